# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels inside JAX programs: on a GPU where there is one, else on a host that plays one."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest
from numba import cuda

from brainevent import errors
from brainevent._op import XLACustomKernel, backends, numba_kernel
from brainevent._op.numba_cuda import bridge
from brainevent._op.numba_cuda.bridge import numba_cuda_callable, numba_cuda_kernel

pytestmark = pytest.mark.filterwarnings('ignore:Grid size')  # numba's advice on small grids

N = 6


@cuda.jit
def blur(x, out):
    """Couple neighbours, so that a launch over a whole batch would mix its elements."""
    i = cuda.grid(1)
    if i < out.shape[0]:
        left = x[i - 1] if i > 0 else 0
        right = x[i + 1] if i + 1 < x.shape[0] else 0
        out[i] = left + 2 * x[i] + right


@cuda.jit
def total(x, y, out):
    """Add to an output that nobody has cleared."""
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.add(out, 0, x[i] * y[i])


@cuda.jit
def outer(x, y, out):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = x[i] * y[j]


@cuda.jit
def increase(x, by, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] += by[0]


def blurred(x):
    padded = np.pad(np.asarray(x), [(0, 0)] * (np.ndim(x) - 1) + [(1, 1)])
    return padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]


def struct(*shape, dtype='float32'):
    return jax.ShapeDtypeStruct(shape, dtype)


def numbers(*shape):
    return jnp.arange(1.0, np.prod(shape) + 1).reshape(shape)


def blur_kernel(**options):
    return numba_cuda_kernel(blur, struct(N), **{'launch_dims': N, **options})


def test_a_kernel_for_gpus_is_not_taken_for_one_for_cpus():
    with pytest.raises(errors.KernelSignatureError, match='remedy:   numba_cuda_kernel'):
        numba_kernel(blur, struct(N))


def test_a_kernel_runs_eagerly_and_in_a_program(device):
    f = blur_kernel()
    np.testing.assert_array_equal(f(numbers(N)), blurred(numbers(N)))
    twice = jax.jit(lambda x: f(f(x)))
    np.testing.assert_array_equal(twice(numbers(N)), blurred(blurred(numbers(N))))
    carried, _ = jax.lax.scan(lambda x, _: (f(x), None), numbers(N), length=3)
    np.testing.assert_array_equal(carried, blurred(blurred(blurred(numbers(N)))))


def test_an_explicit_grid_and_axes_in_order(device):
    x, y = numbers(5), numbers(3)
    for given in ({'launch_dims': (5, 3)}, {'grid': (3, 1), 'block': (2, 4)}):
        out = numba_cuda_kernel(outer, struct(5, 3), **given)(x, y)
        np.testing.assert_array_equal(out, np.outer(x, y))


def test_results_have_the_structure_of_outs(device):
    f = numba_cuda_kernel(blur, {'out': [struct(N)]}, launch_dims=N)
    np.testing.assert_array_equal(f(numbers(N))['out'][0], blurred(numbers(N)))


@pytest.mark.parametrize('method', ['expand_dims', 'broadcast_all', 'legacy_vectorized'])
def test_a_batch_is_launched_element_by_element(device, method):
    x = numbers(3, N)
    out = jax.jit(jax.vmap(blur_kernel(vmap_method=method)))(x)
    np.testing.assert_array_equal(out, blurred(x))
    if device:
        assert device.launches() == [('launch', (1,), (N,), 7)] * 3


def test_a_batch_in_one_operand_only(device):
    f = numba_cuda_kernel(total, struct(1), launch_dims=N, vmap_method='broadcast_all')
    x, y = numbers(4, N), numbers(N)
    np.testing.assert_array_equal(jax.vmap(f, (0, None))(x, y)[:, 0], x @ y)
    np.testing.assert_array_equal(jax.vmap(f, (None, 1))(y, x.T)[:, 0], x @ y)


def test_outputs_start_at_zero_however_often(device):
    f = jax.jit(numba_cuda_kernel(total, struct(1), launch_dims=N))
    g = jax.jit(numba_cuda_kernel(total, struct(3), launch_dims=N))
    for k in range(1, 6):
        x = numbers(N) * k
        assert f(x, x)[0] == 91 * k**2
        np.testing.assert_array_equal(g(x, x), [91 * k**2, 0, 0])


def test_a_grid_without_threads_gives_zeros(device):
    for given in ({'launch_dims': 0}, {'grid': 0, 'block': 32}):
        f = numba_cuda_kernel(blur, struct(N), **given)
        np.testing.assert_array_equal(f(numbers(N)), np.zeros(N))


def test_nested_batches_are_refused_but_can_be_sequential(device):
    x = numbers(2, 3, N)
    with pytest.raises((RuntimeError, ValueError), match="vmap_method='sequential'"):
        jax.block_until_ready(jax.vmap(jax.vmap(blur_kernel(vmap_method='expand_dims')))(x))
    out = jax.vmap(jax.vmap(blur_kernel(vmap_method='sequential')))(x)
    np.testing.assert_array_equal(out, blurred(x))


def test_an_output_can_start_as_an_input(device):
    f = numba_cuda_kernel(
        increase, struct(N), launch_dims=N, input_output_aliases={0: 0}, vmap_method='expand_dims'
    )
    x, by = numbers(N), jnp.array([10.0])
    np.testing.assert_array_equal(f(x, by), np.asarray(x) + 10)
    np.testing.assert_array_equal(x, numbers(N))
    batch = jax.vmap(f)(numbers(2, N), jnp.array([[1.0], [2.0]]))
    np.testing.assert_array_equal(batch, numbers(2, N) + jnp.array([[1.0], [2.0]]))


@pytest.mark.parametrize('dtype', ['bool', 'int8', 'uint16', 'float16', 'int64', 'complex64'])
def test_dtypes_reach_the_kernel_as_they_are(device, dtype):
    @cuda.jit
    def copy(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = x[i]

    with jax.enable_x64(True):
        x = jnp.asarray([1, 0, 1]).astype(dtype)
        out = numba_cuda_kernel(copy, struct(3, dtype=dtype), launch_dims=3)(x)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, x)


def test_a_function_launches_what_it_likes(host):
    def twice(x, out, stream):
        assert stream == 7
        out += 2 * x  # it starts at zero

    f = numba_cuda_callable(twice, struct(N), vmap_method='broadcast_all')
    np.testing.assert_array_equal(f(numbers(N)), 2 * numbers(N))
    np.testing.assert_array_equal(jax.vmap(f)(numbers(3, N)), 2 * numbers(3, N))
    assert host.launches() == [('call', 7)] * 4


def test_a_function_of_kernels_on_a_gpu(device):
    if device:
        pytest.skip('numba launches on a GPU only')

    def twice(x, out, stream):
        blur[1, 32, stream](x, out)
        blur[1, 32, stream](out, out)

    f = numba_cuda_callable(twice, struct(1))
    np.testing.assert_array_equal(f(numbers(1)), 4 * numbers(1))


def test_what_is_raised_on_the_way_is_told(host):
    def fail(x, out, stream):
        raise ZeroDivisionError('in the middle')

    with pytest.raises((RuntimeError, ValueError), match='ZeroDivisionError: in the middle'):
        jax.block_until_ready(numba_cuda_callable(fail, struct(1))(numbers(2)))


def test_any_callable_is_a_function(host):
    class Half:
        def __call__(self, x, out, stream):
            out[:] = x / 2

    f = numba_cuda_callable(Half(), struct(2))
    assert 'Half' in repr(f)
    np.testing.assert_array_equal(f(numbers(2)), [0.5, 1])


def test_an_operator_has_such_a_kernel_and_its_derivative(host):
    op = XLACustomKernel('numba_cuda_bridge_blur')
    op.def_kernel('numba_cuda', 'cpu', lambda *, outs: numba_cuda_kernel(blur, outs, launch_dims=N))
    op.def_numba_cuda_kernel(lambda *, outs: numba_cuda_kernel(blur, outs, launch_dims=N))
    op.def_jvp_rule2(lambda dx, x, *, outs, backend: op(dx, outs=outs, backend=backend))
    tangent = jax.jvp(lambda x: op(x, outs=[struct(N)])[0], (numbers(N),), (numbers(N) * 2,))[1]
    np.testing.assert_array_equal(tangent, blurred(numbers(N) * 2))


# ---- refusals -------------------------------------------------------------------------------


@numba.njit
def for_the_cpu(x, out):
    out[:] = x


@cuda.jit(device=True)
def for_other_kernels(x, out):
    out[0] = x[0]


@pytest.mark.parametrize('kernel', [for_the_cpu, for_other_kernels, blur.py_func, None])
def test_only_kernels_of_numba_cuda_are_taken(kernel):
    with pytest.raises(TypeError, match='is not a CUDA kernel of numba'):
        numba_cuda_kernel(kernel, struct(N), launch_dims=N)
    with pytest.raises(errors.KernelSignatureError):
        numba_cuda_callable(None, struct(N))


def test_a_kernel_with_its_own_grid_is_not_batched():
    with pytest.raises(ValueError) as info:
        numba_cuda_kernel(blur, struct(N), grid=1, block=32, vmap_method='sequential')
    assert str(info.value) == (
        'numba_cuda_kernel: a kernel with its own grid cannot be batched.\n'
        '    expected: vmap_method=None, or `launch_dims` in place of `grid` and `block`\n'
        "    got:      grid=1, vmap_method='sequential'\n"
        '    remedy:   say launch_dims: it is the extent of one batch element'
    )


def test_a_batch_that_was_not_announced_is_refused(host):
    with pytest.raises(NotImplementedError):
        jax.vmap(blur_kernel())(numbers(2, N))


def test_an_unknown_method_is_refused():
    with pytest.raises(errors.OptionError, match='unknown `vmap_method`'):
        blur_kernel(vmap_method='fast')
    with pytest.raises(errors.OptionError, match='unknown `vmap_method`'):
        numba_cuda_callable(print, struct(N), vmap_method='fast')


def test_dtypes_and_scalars_are_refused_at_the_door(host):
    with pytest.raises(ValueError, match='output 0 has a dtype'):
        numba_cuda_kernel(blur, struct(N, dtype=jnp.bfloat16), launch_dims=N)
    with pytest.raises(errors.DtypeError):
        numba_cuda_kernel(blur, struct(N, dtype=jnp.float8_e4m3fn), launch_dims=N)
    with pytest.raises(ValueError, match='input 0 has a dtype'):
        blur_kernel()(numbers(N).astype('bfloat16'))
    with pytest.raises(ValueError, match='input 0 has no axes'):
        blur_kernel()(1.0)


def test_another_number_of_arrays_is_refused_when_traced(host):
    with pytest.raises(TypeError, match='takes another number of arrays'):
        blur_kernel()(numbers(N), numbers(N))
    with pytest.raises(TypeError, match='1 inputs, 1 outputs and a stream'):
        numba_cuda_callable(lambda x, stream: None, struct(N))(numbers(N))


def test_aliases_must_fit(host):
    f = numba_cuda_kernel(blur, struct(N), launch_dims=N, input_output_aliases={0: 0})
    with pytest.raises(errors.KernelSignatureError, match='cannot start as input 0'):
        f(numbers(N + 1))


def test_a_missing_numba_is_looked_for_again(monkeypatch):
    answers = ['not yet', True]
    record = backends.Backend('numba_cuda', ('gpu',), lambda: answers.pop(0), 'wait')
    monkeypatch.setattr(bridge, 'get_backend_record', {'numba_cuda': record}.get)
    with pytest.raises(errors.CUDANotInstalledError, match=r'not yet \(wait\)'):
        blur_kernel()
    blur_kernel()


def test_on_a_cpu_the_kernel_says_that_it_needs_a_gpu():
    x = jax.device_put(numbers(N), jax.devices('cpu')[0])
    with pytest.raises((RuntimeError, ValueError), match='a CUDA kernel was called on the CPU'):
        jax.block_until_ready(blur_kernel()(x))


# ---- names ----------------------------------------------------------------------------------


def target(f, *args):
    text = jax.jit(f).lower(*args).as_text()
    (name,) = {part for part in text.split('@') if part.startswith('brainevent_numba_cuda')} or {''}
    return name.split('(')[0]


def test_names_derive_from_content(host):
    x = numbers(N)

    @cuda.jit(fastmath=True)
    def fast(x, out):
        i = cuda.grid(1)
        if i < out.shape[0]:
            out[i] = x[i]

    def make(scale, **options):
        @cuda.jit
        def scaled(x, out):
            i = cuda.grid(1)
            if i < out.shape[0]:
                out[i] = scale * x[i]

        return numba_cuda_kernel(scaled, struct(N), **{'launch_dims': N, **options})

    assert target(make(2.0), x).startswith('brainevent_numba_cuda_ffi_')
    assert target(make(2.0), x) == target(make(2.0), x)
    different = [
        target(make(2.0), x),
        target(make(3.0), x),
        target(make(2.0), x.astype('int32')),
        target(make(2.0), numbers(N, 1)),
        target(make(2.0, launch_dims=N + 1), x),
        target(make(2.0, grid=2, block=N, launch_dims=None), x),
        target(make(2.0, shared_mem=8, threads_per_block=2), x),
        target(make(2.0, input_output_aliases={0: 0}), x),
        target(numba_cuda_kernel(fast, struct(N), launch_dims=N), x),
        target(numba_cuda_callable(lambda x, out, stream: None, struct(N)), x),
    ]
    assert len(set(different)) == len(different)
    assert different[-1].startswith('brainevent_numba_cuda_callable_')


def test_what_has_no_content_is_not_mixed_up(host):
    class Fill:
        def __init__(self, value):
            self.value = value

        def __call__(self, out, stream):
            out[:] = self.value

    fills = [numba_cuda_callable(Fill(k), struct(2)) for k in range(3)]
    assert '_unique_' in target(fills[0])
    for k in range(3):
        np.testing.assert_array_equal(fills[k](), [k, k])


_NAME = """
import jax
from numba import cuda
from brainevent import numba_cuda_kernel

@cuda.jit
def scale(x, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = 2 * x[i]

s = jax.ShapeDtypeStruct((4,), 'float32')
text = jax.jit(numba_cuda_kernel(scale, s, launch_dims=4)).lower(s).as_text()
print(text[text.index('brainevent_numba_cuda_ffi_'):].split('(')[0])
"""


def test_names_are_the_same_in_every_process(capsys):
    exec(_NAME, {})
    here = capsys.readouterr().out
    command = [sys.executable, '-c', _NAME]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert here == there
    assert here.startswith('brainevent_numba_cuda_ffi_')


# ---- the compiler ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('kernel', 'ranks'), [(blur, (1, 1)), (total, (1, 1, 1)), (outer, (1, 1, 2))]
)
def test_the_kernels_of_these_tests_compile_for_a_gpu(kernel, ranks):
    signature = tuple(numba.types.Array(numba.float32, rank, 'C') for rank in ranks)
    try:
        ptx, _ = cuda.compile_ptx(kernel.py_func, signature, cc=(7, 5))
    except Exception as error:
        if 'nvvm' in str(error).lower():
            pytest.skip('no NVVM here')
        raise
    assert '.entry' in ptx
