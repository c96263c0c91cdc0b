# SPDX-License-Identifier: Apache-2.0
"""Numba functions of users as JAX functions: batches, dtypes, what is refused, identity."""

import gc
import sys

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest

from brainevent._error import (
    DtypeError,
    KernelCompilationError,
    KernelSignatureError,
    OptionError,
)
from brainevent._op.kernel import XLACustomKernel
from brainevent._op.numba_ffi import bridge
from brainevent._op.numba_ffi.bridge import NumbaKernel, numba_kernel

F32 = jnp.float32
X = jnp.arange(3.0)
FAILURE = (jax.errors.JaxRuntimeError, ValueError)  # the latter in jax 0.8
METHODS = ('sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', 'legacy_vectorized')


def struct(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def outcome(f, *args):
    return np.asarray(jax.block_until_ready(f(*args)))


@numba.njit
def running_sum(x, out):
    total = np.float32(0)
    for i in range(x.size):
        total += x[i]
        out[i] = total


@numba.njit
def stencil(x, y, out, ends):
    """Depend on shapes, on neighbours and on both inputs; two outputs of different ranks."""
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = x[i, j] + y[(i + 1) % n] * x[i, (j + 1) % m]
    ends[()] = x[0, 0] + n * y[n - 1]


@numba.njit
def copied(x, out):
    for i in range(out.size):
        out.flat[i] = x.flat[i]


def plus(c):
    @numba.njit
    def kernel(x, out):
        for i in range(out.size):
            out[i] = x[i] + c

    return numba_kernel(kernel, struct(3))


# ---- calls -------------------------------------------------------------------------------------


def test_call_in_every_place():
    f = plus(1)
    np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(jax.jit(f)(X), X + 1)
    np.testing.assert_array_equal(f(np.arange(3)), X + 1)  # typed by what comes in
    np.testing.assert_array_equal(jax.lax.scan(lambda c, _: (f(c), None), X, None, 5)[0], X + 5)
    np.testing.assert_array_equal(jax.checkpoint(f)(X), X + 1)
    np.testing.assert_array_equal(jax.lax.cond(True, f, lambda x: x, X), X + 1)
    assert jax.eval_shape(f, X).shape == (3,)
    assert repr(f).startswith('NumbaKernel(kernel, outs=')
    assert isinstance(f, NumbaKernel)


def test_results_have_the_structure_that_was_asked_for():
    @numba.njit
    def kernel(x, a, b, c):
        a[()] = x[()] + 1
        b[0], b[1] = x[()], 2
        c[0, 0] = 3

    outs = {'b': struct(2), 'a': struct(), 'z': (struct(1, 1, dtype=jnp.int32),)}
    got = numba_kernel(kernel, outs)(jnp.float32(5))
    assert float(got['a']) == 6
    assert list(got['b']) == [5, 2]
    assert got['z'][0].dtype == jnp.int32
    assert got['z'][0].shape == (1, 1)


def test_operands_without_elements_and_without_inputs():
    @numba.njit
    def sizes(x, y, out):
        out[0], out[1] = x.size, y.size

    @numba.njit
    def constant(out):
        out[:] = 7

    got = numba_kernel(sizes, struct(2))(jnp.zeros((0, 3)), jnp.zeros((2, 0)))
    assert list(got) == [0, 0]
    assert numba_kernel(copied, struct(0, 3))(jnp.zeros((0, 3))).shape == (0, 3)
    assert list(numba_kernel(constant, struct(2))()) == [7, 7]


def test_kernel_made_without_64_bits_follows_the_setting_of_the_call(x64):
    def make():
        return numba_kernel(copied, struct(3, dtype=jnp.float64))

    f = make()
    assert f(X.astype(jnp.float64)).dtype == jnp.float64
    with jax.enable_x64(False):
        assert f(X.astype(F32)).dtype == F32
        f = make()
        assert f(jnp.arange(3.0)).dtype == F32


def test_long_chain_without_waiting_ends():
    f = numba_kernel(copied, struct(200_000))
    x = jnp.ones(200_000)
    for _ in range(40):
        x = f(x) * 1.0
    twice = jax.jit(lambda v: f(f(v)))(x)
    assert float(x.min()) == float(twice.max()) == 1


# ---- batches -----------------------------------------------------------------------------------


def test_batch_without_a_method_is_refused():
    with pytest.raises(NotImplementedError):
        jax.vmap(plus(1))(jnp.ones((2, 3)))


@pytest.mark.parametrize('method', METHODS)
def test_batch_is_a_python_loop(method):
    f = numba_kernel(running_sum, struct(4), vmap_method=method)
    x = jnp.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(jax.vmap(f)(x[0]), jnp.cumsum(x[0], 1))
    np.testing.assert_array_equal(jax.vmap(f, 1, 1)(x[0].T), jnp.cumsum(x[0], 1).T)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(f))(x), jnp.cumsum(x, 2))
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(x[0, :1]), jnp.cumsum(x[0, :1], 1))
    assert jax.vmap(f)(jnp.zeros((0, 4))).shape == (0, 4)


@pytest.mark.parametrize('method', METHODS)
@pytest.mark.parametrize('axes', [(0, 0), (0, None), (None, 0), (2, 1), (None, 1)])
def test_batch_over_some_operands(method, axes):
    f = numba_kernel(stencil, (struct(2, 3), struct()), vmap_method=method)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3)).astype('f'), rng.normal(size=2).astype('f')
    batch = [
        value if axis is None else np.stack([value * k for k in range(1, 5)], axis)
        for value, axis in zip((x, y), axes, strict=True)
    ]
    got = jax.vmap(f, axes)(*batch)
    for k in range(4):
        one = [v if a is None else v.take(k, a) for v, a in zip(batch, axes, strict=True)]
        for have, want in zip(got, f(*one), strict=True):
            np.testing.assert_array_equal(have[k], want)


@pytest.mark.parametrize('method', METHODS)
def test_nested_batch_over_different_operands(method):
    f = numba_kernel(stencil, (struct(2, 3), struct()), vmap_method=method)
    x, y = jnp.arange(24.0).reshape(4, 2, 3), jnp.arange(10.0).reshape(5, 2)
    got = jax.vmap(jax.vmap(f, (None, 0)), (0, None))(x, y)
    for i in range(4):
        for j in range(5):
            for have, want in zip(got, f(x[i], y[j]), strict=True):
                np.testing.assert_array_equal(have[i, j], want)


# ---- aliases and inputs ------------------------------------------------------------------------


@numba.njit
def add_one_in_place(x, out):
    for i in range(0, out.size, 2):
        out[i] += 1


@pytest.mark.parametrize('method', METHODS)
def test_aliased_output_starts_as_the_input_which_stays(method):
    f = numba_kernel(add_one_in_place, struct(3), input_output_aliases={0: 0}, vmap_method=method)
    x = X + 0
    np.testing.assert_array_equal(f(x), [1, 1, 3])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(jax.jit(lambda v: f(v) + v)(x), [1, 2, 5])
    batch = jnp.stack([x, x + 10])
    np.testing.assert_array_equal(jax.vmap(f)(batch), [[1, 1, 3], [11, 11, 13]])
    np.testing.assert_array_equal(batch, [X, X + 10])


def test_donated_input_is_reused():
    f = numba_kernel(add_one_in_place, struct(3), input_output_aliases={0: 0})
    x = X + 0
    where = x.unsafe_buffer_pointer()
    y = jax.jit(lambda v: f(v), donate_argnums=0)(x)
    assert x.is_deleted()
    assert y.unsafe_buffer_pointer() == where
    np.testing.assert_array_equal(y, [1, 1, 3])


@pytest.mark.parametrize('aliases', [{0: 0}, {1: 0}, {0: 1}, {-1: 0}])
def test_alias_that_does_not_fit_is_refused(aliases):
    f = numba_kernel(copied, struct(2, dtype=jnp.int32), input_output_aliases=aliases)
    with pytest.raises(KernelSignatureError, match=r'cannot start as input.*\n.*\n.*float32\[3\]'):
        f(X)


def test_kernel_that_writes_to_its_input_is_refused():
    @numba.njit
    def kernel(x, out):
        x[0] = 1
        out[0] = x[0]

    x = X + 0
    with pytest.raises(KernelCompilationError, match='readonly') as caught:
        numba_kernel(kernel, struct(3))(x)
    assert caught.value.__cause__ is not None
    np.testing.assert_array_equal(x, X)


# ---- numbers -----------------------------------------------------------------------------------

DTYPES = bridge._NATIVE_DTYPES + bridge._HALVES


def test_every_dtype_that_jax_computes_with():
    assert set(DTYPES) >= {'bool', 'float16', 'bfloat16', 'float64', 'complex128', 'uint64', 'int8'}


@pytest.mark.parametrize('dtype', DTYPES)
def test_dtype(dtype, x64):
    x = jnp.array([[0, 1], [2, 3]]).astype(dtype)
    y = numba_kernel(copied, struct(2, 2, dtype=dtype))(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize('dtype', ['float8_e4m3fn', 'float8_e5m2', 'int4', 'uint2'])
def test_dtype_that_no_kernel_can_hold_is_refused(dtype):
    with pytest.raises(DtypeError, match=f'output 0 .*\n.*\n.*got: +{dtype}'):
        numba_kernel(copied, struct(3, dtype=dtype))
    with pytest.raises(DtypeError, match=f'input 0 .*\n.*\n.*got: +{dtype}'):
        numba_kernel(copied, struct(3))(jnp.zeros(3, dtype))
    with pytest.raises(DtypeError, match='key<'):
        numba_kernel(copied, struct(3))(jax.random.key(0))


def test_sixteen_bit_sums_do_not_stop_at_2048():
    @numba.njit
    def kernel(x, out):
        total = x[0] * 0
        for value in x:
            total += value
        out[0] = total

    for dtype in (jnp.float16, jnp.bfloat16):
        f = numba_kernel(kernel, struct(1, dtype=dtype))
        assert float(f(jnp.ones(4096, dtype))[0]) == 4096


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize('inputs', [(), (X, X)])
def test_wrong_number_of_arrays_is_refused_while_tracing(inputs):
    with pytest.raises(KernelSignatureError) as caught:
        jax.jit(numba_kernel(copied, struct(3))).lower(*inputs)
    assert str(caught.value) == (
        'copied: the kernel takes another number of arrays.\n'
        '    expected: parameters (x, out)\n'
        f'    got:      {len(inputs)} inputs and 1 outputs\n'
        '    remedy:   a kernel is called as kernel(*inputs, *outputs)'
    )
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize('kernel', [lambda x, out: None, max, None, jax.jit(lambda x: x)])
def test_what_is_not_compiled_is_refused(kernel):
    with pytest.raises(KernelSignatureError, match='decorate it with @numba.njit'):
        numba_kernel(kernel, struct(3))


def test_missing_numba_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, 'numba', None)
    with pytest.raises(ImportError, match='pip install numba'):
        numba_kernel(copied, struct(3))


@pytest.mark.parametrize('outs', [(), [], None, {}])
def test_kernel_without_output_is_refused(outs):
    with pytest.raises(KernelSignatureError, match='has no output'):
        numba_kernel(copied, outs)


def test_output_without_shape_is_refused():
    with pytest.raises(KernelSignatureError, match='without shape and dtype'):
        numba_kernel(copied, (3,))


def test_unknown_method_is_refused():
    with pytest.raises(OptionError, match="'sequential'") as caught:
        numba_kernel(copied, struct(3), vmap_method='parallel')
    assert isinstance(caught.value, ValueError)


def test_explicit_signature_for_arrays_that_may_be_written_is_told():
    kernel = numba.njit('void(float32[:], float32[:])')(copied.py_func)
    with pytest.raises(KernelCompilationError, match='give numba.njit no explicit signature'):
        numba_kernel(kernel, struct(3))(X)


def test_explicit_signature_that_fits_is_used():
    kernel = numba.njit('void(Array(float32, 1, "C", readonly=True), float32[::1])')(
        running_sum.py_func
    )
    np.testing.assert_array_equal(numba_kernel(kernel, struct(3))(X), [0, 1, 3])


def test_kernel_that_numba_cannot_type_is_told():
    @numba.njit
    def kernel(x, out):
        out[0] = x.no_such_thing

    with pytest.raises(KernelCompilationError, match='no_such_thing'):
        numba_kernel(kernel, struct(3))(X)
    np.testing.assert_array_equal(plus(4)(X), X + 4)


# ---- identity ----------------------------------------------------------------------------------


def test_same_python_code_with_other_options_runs_its_own_code():
    def body(x, out):
        out[0] = 1.0 / x[0]

    careful, fast = numba.njit(body), numba.njit(error_model='numpy')(body)
    zero = jnp.zeros(1)
    with pytest.raises(FAILURE, match='division by zero'):
        outcome(numba_kernel(careful, struct(1)), zero)
    assert outcome(numba_kernel(fast, struct(1)), zero)[0] == np.inf
    with pytest.raises(FAILURE, match='division by zero'):
        outcome(numba_kernel(careful, struct(1)), zero)


def test_kernels_that_close_over_other_numbers_stay_apart_and_alive():
    kept = [jax.jit(plus(k)) for k in range(8)]
    gc.collect()
    for _ in range(2):
        for k, f in enumerate(kept):
            np.testing.assert_array_equal(f(X), X + k)
        jax.clear_caches()


def test_global_changed_before_the_first_call_counts():
    scope = {'K': 1}
    exec('def kernel(x, out):\n    out[0] = x[0] + K\n', scope)
    kernel = numba.njit(scope['kernel'])
    out = np.zeros(1, 'f')
    kernel(np.zeros(1, 'f'), out)  # numba has compiled it with K = 1
    f = numba_kernel(kernel, struct(1))
    scope['K'] = 2
    assert outcome(f, X)[0] == 2


def test_large_closed_over_array_is_kept_alive():
    # numba writes the address of an array beyond a megabyte into the code
    def make(value):
        table = np.full(200_000, value)

        @numba.njit
        def kernel(x, out):
            out[0] = x[0] + table[100_000]

        return jax.jit(numba_kernel(kernel, struct(1)))

    made = [make(float(k)) for k in range(3)]
    first = [outcome(f, X)[0] for f in made]
    gc.collect()
    litter = [np.full(200_000, np.nan) for _ in range(20)]
    assert first == [outcome(f, X)[0] for f in made] == [0, 1, 2]
    del litter


# ---- memory ------------------------------------------------------------------------------------


def fill_the_allocator_with_garbage():
    arrays = [jnp.full(n, jnp.nan) for n in (3, 40, 60, 80, 300_000) for _ in range(20)]
    jax.block_until_ready(arrays)
    del arrays
    gc.collect()


def matrix_operator(name, seed):
    """Make ``y = A x`` with native forward and transposed kernels that add up in their outputs."""
    matrix = np.random.default_rng(seed).normal(size=(60, 40)).astype('f')

    def product(weights):
        @numba.njit
        def kernel(x, out):
            for i in range(out.size):
                out[i] = 0
            for i in range(weights.shape[0]):
                for j in range(weights.shape[1]):
                    out[i] += weights[i, j] * x[j]

        return numba_kernel(kernel, struct(weights.shape[0]), vmap_method='expand_dims')

    def generator(forward, back):
        op = XLACustomKernel(name)
        op.def_kernel('numba', 'cpu', lambda **_: lambda x: [forward(x)])

        def bound(x):
            return op(x, outs=[struct(forward._outs[0].shape[0])])

        op.def_jvp_rule2(lambda t, x, **_: bound(t))
        op.def_transpose_rule(lambda cts, x, **_: [back(cts[0])])
        return lambda x: bound(x)[0]

    return matrix, generator(product(matrix), product(np.ascontiguousarray(matrix.T)))


def test_garbage_in_fresh_buffers_reaches_no_result_and_no_gradient():
    made = [matrix_operator(f'garbage_{k}', k) for k in range(2)]
    rng = np.random.default_rng(9)
    x, t, ct = (jnp.asarray(rng.normal(size=n).astype('f')) for n in (40, 40, 60))
    for _ in range(2):
        for matrix, f in made:
            fill_the_allocator_with_garbage()
            y, jvp = jax.jvp(f, (x,), (t,))
            (vjp,) = jax.vjp(f, x)[1](ct)
            np.testing.assert_allclose(y, matrix @ x, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(vjp, matrix.T @ ct, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(jnp.vdot(ct, jvp), jnp.vdot(vjp, t), rtol=1e-4)
            fill_the_allocator_with_garbage()
            wide = jax.vmap(f)(jnp.stack([x, t]))
            np.testing.assert_allclose(wide[1], matrix @ t, rtol=1e-4, atol=1e-4)


def test_results_start_at_zero_unless_that_is_declined(cpu):
    @numba.njit
    def add_first(x, total, count, held):
        total[0] += x[0]
        count[()] += 2
        held[0] += 1

    outs = [
        jax.ShapeDtypeStruct((1000,), jnp.float32),
        jax.ShapeDtypeStruct((), jnp.int32),
        jax.ShapeDtypeStruct((2,), jnp.float32),
    ]
    for aliases in (None, {0: 2}):
        f = numba_kernel(add_first, outs, vmap_method='sequential', input_output_aliases=aliases)
        x = jax.device_put(jnp.array([3.0, 4.0]), cpu)
        for _ in range(4):
            total, count, held = f(x)
            assert total.tolist() == [3.0] + [0.0] * 999
            assert int(count) == 2
            assert held.tolist() == ([1.0, 0.0] if aliases is None else [4.0, 4.0])
        assert jax.vmap(f)(jnp.stack([x, x]))[1].tolist() == [2, 2]
    declined = numba_kernel(add_first, outs, clear_outputs=False)
    assert declined._cleared == () and declined(x)[0].shape == (1000,)
