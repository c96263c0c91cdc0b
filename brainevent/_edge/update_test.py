# SPDX-License-Identifier: Apache-2.0
"""Plasticity as an operator: its calculus, batches, dtypes, units, and what it must not touch."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.update import result_dtype

ROW, COL = np.array([2, 0, 2, 0, 3, 2]), np.array([1, 2, 1, 0, 0, 2])
W = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], np.float32)
SHAPE = (4, 3)
PRE, POST = np.array([2.0, 0.0, 1.0, -1.0], np.float32), np.array([True, False, True])
PRE_TRACE = np.array([0.5, 0.25, 1.0, 2.0], np.float32)
POST_TRACE = np.array([0.5, 0.25, 0.125], np.float32)
ON_PRE = np.where(PRE[ROW] > 0, POST_TRACE[COL], 0)
ON_POST = np.where(POST[COL], PRE_TRACE[ROW], 0)
BACKENDS = ('numba', 'jax_raw')


def coo(w=W, backend=None):
    return be.COO((w, ROW, COL), shape=SHAPE, backend=backend)


def near(got, want, **kw):
    np.testing.assert_allclose(np.asarray(got), want, **{'rtol': 1e-6, **kw})


def formats(backend):
    """Return matrices of every kind of walk: none, along one axis, along both, along the other."""
    csr = coo(backend=backend).tocsr()
    return [coo(backend=backend), csr, csr.with_mirror(), coo(backend=backend).tocsc()]


@pytest.mark.parametrize('backend', BACKENDS)
def test_every_walk_adds_the_trace_where_a_spike_was(backend):
    pre, post = (np.zeros(SHAPE, np.float32) for _ in range(2))
    np.add.at(pre, (ROW, COL), W + ON_PRE)
    np.add.at(post, (ROW, COL), W + ON_POST)
    for A in formats(backend):
        near(A.update_on_pre(PRE, POST_TRACE).todense(), pre)
        near(A.update_on_pre(be.BinaryArray(PRE), POST_TRACE).todense(), pre)
        near(A.update_on_post(PRE_TRACE, POST).todense(), post)


@pytest.mark.parametrize('backend', BACKENDS)
def test_nan_and_negative_elements_are_no_spikes_and_traces_of_the_silent_do_not_show(backend):
    spikes = np.array([np.nan, 0.0, 1.0, -1.0], np.float32)
    trace = np.array([0.5, np.inf, np.nan], np.float32)
    for A in formats(backend):
        first = A.update_on_pre(spikes, trace).todense()
        near(first[np.array([0, 1, 3])], A.todense()[np.array([0, 1, 3])])
        assert np.isinf(first[2, 1]) and np.isnan(first[2, 2])
        same = A.update_on_pre(np.zeros(4), np.full(3, np.nan))
        near(same.data, A.data)


@pytest.mark.parametrize('backend', BACKENDS)
def test_derivatives_towards_weights_trace_and_spikes(backend):
    def update(w, x, y):
        return coo(w, backend).update_on_pre(x, y).data

    primals, tangents = (W, PRE, POST_TRACE), (W * 3, PRE + 1, POST_TRACE * 2)
    primals, tangents = (tuple(map(jnp.asarray, args)) for args in (primals, tangents))
    out, tangent = jax.jvp(update, primals, tangents)
    near(out, W + ON_PRE)
    # the spikes' own tangent goes straight through, as if they were numbers
    want = W * 3 + np.where(PRE[ROW] > 0, 2 * POST_TRACE[COL], 0) + (PRE + 1)[ROW] * POST_TRACE[COL]
    near(tangent, want)
    ct = jnp.arange(6.0)
    grads = jax.vjp(update, *primals)[1](ct)
    near(sum(jnp.vdot(g, t) for g, t in zip(grads, tangents, strict=True)), ct @ tangent)
    near(jax.jacfwd(update, 2)(*primals), jax.jacrev(update, 2)(*primals))
    second = jax.grad(lambda y: (jax.grad(lambda z: (update(W, PRE, z) ** 2).sum())(y) ** 2).sum())
    reach = np.zeros((6, 3), np.float32)
    reach[np.arange(6), COL] = PRE[ROW] > 0
    normal = reach.T @ reach
    gradient = 2 * reach.T @ (W + ON_PRE)
    near(second(jnp.asarray(POST_TRACE)), 4 * normal @ gradient)


@pytest.mark.parametrize('backend', BACKENDS)
def test_batches_of_any_operand_equal_single_calls(backend):
    ws, xs = jnp.stack([W, 2 * W]), jnp.stack([PRE, -PRE])
    ys = jnp.stack([POST_TRACE, 3 * POST_TRACE])

    def update(w, x, y):
        return be.Dense(w, backend=backend).update_on_pre(x, y).data

    grids = jnp.arange(24.0).reshape(2, 4, 3)
    for fun, weights in (
        (lambda w, x, y: coo(w, backend).update_on_pre(x, y).data, ws),
        (lambda w, x, y: coo(w, backend).tocsr().update_on_pre(x, y).data, ws),
        (update, grids),
    ):
        for axes in ((0, 0, 0), (None, 0, None), (0, None, None), (None, None, 0), (0, 1, None)):
            every = (weights, xs, ys)
            pairs = list(zip(every, axes, strict=True))
            got = jax.vmap(fun, axes)(*[a if k == 0 else a.T if k else a[0] for a, k in pairs])
            for i in range(2):
                near(got[i], fun(*(a[0] if k is None else a[i] for a, k in pairs)))
        double = jax.vmap(jax.vmap(fun, (None, 0, None)), (0, None, None))(weights, xs, ys[0])
        near(double[1, 1], fun(weights[1], xs[1], ys[0]))
        loss = jax.vmap(jax.grad(lambda w, x, y, f=fun: (f(w, x, y) ** 2).sum(), (0, 2)))
        # entries of a converted matrix stand in another order than the weights it was made of
        grads, values = loss(weights, xs, ys)[0], jax.vmap(fun)(weights, xs, ys)
        near(np.sort(grads.ravel()), np.sort(2 * values.ravel()))
        by_trace = jax.vmap(jax.grad(lambda y, x, w, f=fun: f(w, x, y).sum()), (None, 0, None))
        assert by_trace(ys[0], xs, weights[0]).shape == (2, 3)


def test_spikes_batched_alone_do_not_share_weights_in_place():
    fun = jax.jit(jax.vmap(lambda x: be.Dense(jnp.ones((4, 3))).update_on_pre(x, POST_TRACE).data))
    near(fun(jnp.stack([PRE, PRE]))[1, 1], [1, 1, 1])


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('dtype', ['float16', 'bfloat16', 'int32', 'complex64'])
def test_weights_keep_their_dtype(backend, dtype):
    trace = np.array([1, 2, 3]).astype(np.float32 if dtype != 'int32' else np.int32)
    for A in (coo(jnp.asarray(W, dtype), backend), coo(jnp.asarray(W, dtype), backend).tocsr()):
        new = A.update_on_pre(PRE, trace)
        assert new.dtype == dtype
        near(
            new.data.astype('complex64'),
            A.data + np.where(PRE[A.edges()[0]] > 0, trace[A.edges()[1]], 0),
        )


def test_traces_of_a_richer_kind_make_weights_richer_too():
    names = [('int32', 'float32', 'float32'), ('float16', 'float32', 'float16')]
    names += [('float32', 'complex64', 'complex64'), ('bool', 'int32', 'int32')]
    for w, y, want in names:
        assert result_dtype(jnp.zeros(1, w), jnp.zeros(1, y)) == want


def test_float64_is_kept_and_does_not_widen_float32(x64):
    A = coo(W.astype(np.float64))
    step = A.update_on_pre(PRE, POST_TRACE.astype(np.float64) * 1e-12).data - W
    near(step, ON_PRE * 1e-12, atol=1e-14)
    assert coo(W).update_on_pre(PRE, POST_TRACE.astype(np.float64)).dtype == np.float32


def test_trace_and_bounds_are_converted():
    A = coo(W * u.mV)
    got = A.update_on_pre(PRE, POST_TRACE * u.volt, 0.1 * u.volt, 500.0 * u.mV).data
    near(got.to_decimal(u.mV), np.clip(W + 1e3 * ON_PRE, 100, 500))
    near(coo().update_on_pre(PRE, POST_TRACE * (u.mV / u.mV)).data, W + ON_PRE)


def test_bounds_that_leave_no_room_are_refused():
    A = be.CSR.fromdense(np.float32([[1, 0], [2, 3]]))
    with pytest.raises(be.OptionError, match='between `w_min` and `w_max`'):
        A.update_on_pre(jnp.array([True, False]), jnp.ones(2), 2.0, 1.0)
    assert (A.update_on_pre(jnp.array([True, False]), jnp.ones(2), 2.0, 2.0).data == 2).all()


@pytest.mark.parametrize(
    ('name', 'args', 'expected', 'got'),
    [
        ('trace', (PRE, POST_TRACE), 'a quantity in mV', 'a number without unit'),
        ('trace', (PRE, POST_TRACE * u.mS), 'a quantity in mV', 'unit mS'),
        ('w_max', (PRE, POST_TRACE * u.mV, None, 1.0), 'a quantity in mV', 'a number without unit'),
    ],
)
def test_other_quantities_are_refused(name, args, expected, got):
    with pytest.raises(be.UnitError) as error:
        coo(W * u.mV).update_on_pre(*args)
    assert str(error.value) == (
        f'COO.update_on_pre: the unit of `{name}` does not fit.\n'
        f'    expected: {expected}\n    got:      {got}'
    )


@pytest.mark.parametrize('backend', BACKENDS)
def test_bounds_hold_for_weights_no_spike_touched(backend):
    A, silent = coo(backend=backend), np.zeros(4, bool)
    near(A.update_on_pre(silent, POST_TRACE, 2, None).data, np.maximum(W, 2))
    near(A.update_on_pre(silent, POST_TRACE, None, jnp.float32(8)).data, np.minimum(W, 8))
    bounded = jax.jit(lambda lo, hi: A.update_on_pre(PRE, POST_TRACE, lo, hi).data)
    near(bounded(2.0, 8.0), np.clip(W + ON_PRE, 2, 8))
    ints = coo(jnp.arange(6)).update_on_pre(silent, np.zeros(3, int), 1, 4)
    np.testing.assert_array_equal(ints.data, [1, 1, 2, 3, 4, 4])


@pytest.mark.parametrize('backend', BACKENDS)
def test_traced_structure_that_points_outside_touches_nothing(backend):
    bad_row, bad_col = ROW.copy(), COL.copy()
    bad_row[0], bad_col[1], bad_row[2], bad_col[3] = 9, -1, -5, 2**30
    fine = np.isin(np.arange(6), (4, 5))

    @jax.jit
    def update(row, col):
        A = be.COO((W, row, col), shape=SHAPE, backend=backend)
        return A.update_on_pre(np.ones(4), POST_TRACE).data

    near(update(bad_row, bad_col), W + np.where(fine, POST_TRACE[COL], 0))

    @jax.jit
    def update_rows(ptr):
        A = be.CSR((W, COL, ptr), shape=SHAPE, backend=backend)
        return A.update_on_pre(np.ones(4), POST_TRACE).data

    assert update_rows(np.array([-7, 100, 2, 1000, -1])).shape == (6,)


def test_weights_that_others_hold_stay_as_they_are():
    w = jnp.asarray(W)
    coo(w).update_on_pre(PRE, POST_TRACE)
    jax.jit(lambda w: coo(w).update_on_pre(PRE, POST_TRACE).data)(w)
    near(w, W)


@pytest.mark.parametrize('clip', [None, 'all', 'touched'])
@pytest.mark.parametrize('donated', [True, False])
def test_no_program_copies_the_weights(clip, donated):
    """Two million weights: the compiled loop has neither a copy of them nor memory for one."""
    n = 2_000_000
    A = be.CSR(
        (jnp.zeros(n), np.arange(n, dtype=np.int32) % 1000, np.arange(0, n + 1, 1000)),
        shape=(n // 1000, 1000),
    )
    bounds = {} if clip is None else {'w_min': 0.0, 'w_max': 1.0, 'clip': clip}

    def steps(data, xs):
        def step(w, x):
            return A.with_data(w).update_on_pre(x, jnp.ones(1000), **bounds).data, None

        return jax.lax.scan(step, data, xs)[0]

    def one(data, x):
        return A.with_data(data).update_on_pre(x, jnp.ones(1000), **bounds).data

    xs = jax.ShapeDtypeStruct((3, n // 1000), bool)
    data = jax.ShapeDtypeStruct((n,), jnp.float32)
    for f, x in ((steps, xs), (one, jax.ShapeDtypeStruct(xs.shape[1:], bool))):
        compiled = jax.jit(f, donate_argnums=0 if donated else ()).lower(data, x).compile()
        copies = [
            line for line in compiled.as_text().splitlines() if f'f32[{n}]{{0}} copy(' in line
        ]
        # without donation the weights of others are copied once, before the loop
        assert len(copies) <= (0 if donated else 1), copies
        assert compiled.memory_analysis().temp_size_in_bytes < n


@pytest.mark.parametrize('kind', ['CSR', 'FixedNumPerPre', 'Dense'])
def test_weights_carried_by_scan_change_in_place(kind):
    table = np.arange(8, dtype=np.int32).reshape(4, 2) % 3
    A = {
        'CSR': coo().tocsr(),
        'FixedNumPerPre': be.FixedNumPerPre((jnp.ones((4, 2)), table), shape=SHAPE),
        'Dense': be.Dense(jnp.ones(SHAPE)),
    }[kind]
    xs = jnp.stack([PRE, -PRE, PRE])

    def steps(data, xs):
        def step(w, x):
            return A.with_data(w).update_on_pre(x, POST_TRACE).data, None

        return jax.lax.scan(step, data, xs)[0]

    program = jax.jit(steps, donate_argnums=0).lower(A.data, xs).compile().as_text()
    (call,) = (line for line in program.splitlines() if 'output_to_operand_aliasing' in line)
    weights = call.split('custom-call(')[1].split(',')[0]
    made = [line for line in program.splitlines() if line.strip().startswith(f'{weights} = ')]
    assert 'get-tuple-element' in made[0], 'the weights are copied in every step'
    want = A
    for x in xs:
        want = want.update_on_pre(x, POST_TRACE)
    near(steps(A.data, xs), want.data)


def test_one_weight_for_all_is_refused():
    with pytest.raises(be.ShapeError) as error:
        coo(2.0).update_on_pre(PRE, POST_TRACE)
    assert str(error.value) == (
        'COO.update_on_pre: there is not one weight for every connection.\n'
        '    expected: 6 weights\n'
        '    got:      shape ()\n'
        '    remedy:   plasticity makes weights differ: repeat a shared weight for every connection'
    )


def test_operands_of_the_wrong_length_are_refused():
    with pytest.raises(be.ShapeError) as error:
        coo().update_on_post(PRE_TRACE, PRE)
    assert str(error.value) == (
        'COO.update_on_post: the spike does not fit `shape`.\n'
        '    expected: shape (3,): one entry for each column of (4, 3)\n'
        '    got:      shape (4,)'
    )
    for pre, trace in ((PRE[:3], POST_TRACE), (PRE, PRE_TRACE), (PRE[None], POST_TRACE)):
        with pytest.raises(be.ShapeError):
            coo().update_on_pre(pre, trace)
    with pytest.raises(be.DtypeError, match='complex numbers are no spikes'):
        coo().update_on_pre(PRE + 0j, POST_TRACE)


@pytest.mark.parametrize('backend', BACKENDS)
def test_empty_and_single_matrices(backend):
    none = be.CSR((np.zeros(0, np.float32), [], [0, 0]), shape=(1, 3), backend=backend)
    assert none.update_on_pre([True], POST_TRACE, 0, 1).data.shape == (0,)
    one = be.CSR((2.0, [1], [0, 1]), shape=(1, 3), backend=backend)
    got = one.update_on_pre([True], POST_TRACE).data
    assert got.shape == ()
    near(got, 2.25)
    wide = be.Dense(jnp.zeros((0, 3)), backend=backend).update_on_pre(np.zeros(0, bool), POST_TRACE)
    assert wide.shape == (0, 3)


def test_updates_offer_native_code_and_the_reference():
    for name in ('csr', 'coo', 'dense'):
        for side in ('pre', 'post'):
            op = getattr(be, f'update_{name}_on_binary_{side}_p')
            assert op.name == f'update_{name}_on_binary_{side}'
            assert op.available_backends('cpu') == ['numba', 'jax_raw']


@pytest.mark.parametrize('clip', ['all', 'touched'])
@pytest.mark.parametrize(
    ('dtype', 'trace', 'bounds', 'want'),
    [
        ('uint8', 10, (0, 255), [11, 255, 13]),
        ('uint8', 300, (0, 255), [255, 255, 255]),
        ('uint8', -5, (0, None), [0, 245, 0]),
        ('int8', 10, (-128, 127), [11, 4, 13]),
        ('int16', 40_000, (None, 30_000), [30_000, 30_000, 30_000]),
    ],
)
def test_bounds_hold_where_narrow_numbers_would_wrap(dtype, trace, bounds, want, clip):
    weights = jnp.asarray([1, 250 if dtype != 'int8' else -6, 3]).astype(dtype)
    A = be.CSR((weights, [1, 0, 2], [0, 1, 3]), shape=(2, 3))
    spikes, trace = jnp.array([True, True]), jnp.full(3, trace)
    new = A.update_on_pre(spikes, trace, *bounds, clip=clip)
    assert new.data.dtype == weights.dtype and new.data.tolist() == want


@pytest.mark.parametrize(
    ('weights', 'low', 'high', 'error'),
    [
        ('float32', [0.0, 5.0, 0.0], 4.0, be.OptionError),
        ('float32', None, np.nan, be.OptionError),
        ('float32', np.nan, 1.0, be.OptionError),
        ('int32', 2.5, 2.7, be.OptionError),
        ('int32', -0.5, -0.2, be.OptionError),
        ('int32', np.nan, 2, be.OptionError),
        ('uint8', 300, 400, be.OptionError),
        ('float32', 0j, 4 + 7j, be.DtypeError),
    ],
)
def test_bounds_between_which_no_weight_lies_are_refused(weights, low, high, error):
    A = be.CSR((jnp.asarray([1, 2, 3], weights), [1, 0, 2], [0, 1, 3]), shape=(2, 3))
    low = low if low is None or np.ndim(low) == 0 else jnp.asarray(low)
    with pytest.raises(error):
        A.update_on_pre(jnp.array([True, True]), jnp.ones(3, weights), low, high)
