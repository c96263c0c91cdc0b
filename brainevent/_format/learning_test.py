# SPDX-License-Identifier: Apache-2.0
"""The learning rules on loose arrays, each against a plain loop over its connections."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

SHAPE = (4, 3)
ROW, COL = np.array([0, 0, 2, 2, 2, 3]), np.array([2, 0, 1, 1, 2, 0])
PTR = np.array([0, 2, 2, 5, 6])
W = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], np.float32)
BY_COL = np.argsort(COL, kind='stable')
COL_PTR = np.searchsorted(COL[BY_COL], np.arange(4))
PRE, POST = np.array([True, False, True, False]), np.array([0.0, 2.0, 1.0], np.float32)
PRE_TRACE = np.array([0.5, 0.25, 1.0, 2.0], np.float32)
POST_TRACE = np.array([0.5, 0.25, 0.125], np.float32)
ON_PRE = W + np.where(PRE[ROW], POST_TRACE[COL], 0)
ON_POST = W + np.where(POST[COL] > 0, PRE_TRACE[ROW], 0)
BACKENDS = ('numba', 'jax_raw')


def near(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('bounds', [(), (2.0, 8.0), (None, 8.0), (2.0,)])
def test_every_format_follows_the_same_rule(backend, bounds):
    low, high = (*bounds, None, None)[:2]
    how = {'shape': SHAPE, 'backend': backend}

    def both(pre, post, at=slice(None)):
        near(pre, np.clip(ON_PRE[at], low, high))
        near(post, np.clip(ON_POST[at], low, high))

    both(
        be.update_csr_on_binary_pre(W, COL, PTR, PRE, POST_TRACE, *bounds, **how),
        be.update_csr_on_binary_post(
            W, ROW[BY_COL], COL_PTR, BY_COL, PRE_TRACE, POST, *bounds, **how
        ),
    )
    csc = (W[BY_COL], ROW[BY_COL], COL_PTR)
    both(
        be.update_csc_on_binary_pre(*csc, PRE, POST_TRACE, *bounds, **how),
        be.update_csc_on_binary_post(*csc, PRE_TRACE, POST, *bounds, **how),
        BY_COL,
    )
    both(
        be.update_coo_on_binary_pre(W, ROW, COL, PRE, POST_TRACE, *bounds, backend=backend),
        be.update_coo_on_binary_post(W, ROW, COL, PRE_TRACE, POST, *bounds, backend=backend),
    )
    grid = np.arange(12.0, dtype=np.float32).reshape(SHAPE)
    pre = be.update_dense_on_binary_pre(grid, PRE, POST_TRACE, *bounds, backend=backend)
    near(pre, np.clip(grid + np.outer(PRE, POST_TRACE), low, high))
    post = be.update_dense_on_binary_post(grid, PRE_TRACE, POST, *bounds, backend=backend)
    near(post, np.clip(grid + np.outer(PRE_TRACE, POST > 0), low, high))
    table = np.array([[0, 1], [1, 2], [2, 0], [0, 0]])
    pre = be.update_fixed_post_conn_on_binary_pre(
        grid[:, :2], table, PRE, POST_TRACE, *bounds, **how
    )
    near(pre, np.clip(grid[:, :2] + PRE[:, None] * POST_TRACE[table], low, high))
    post = be.update_fixed_pre_conn_on_binary_post(
        grid[:3, :2], table[:3] + 1, PRE_TRACE, POST, *bounds, **how
    )
    near(post, np.clip(grid[:3, :2] + (POST[:, None] > 0) * PRE_TRACE[table[:3] + 1], low, high))


@pytest.mark.parametrize('backend', BACKENDS)
def test_bounds_of_what_is_touched_leave_the_others_alone(backend):
    how = {'shape': SHAPE, 'backend': backend, 'clip': 'touched'}
    pre = np.where(PRE[ROW], np.clip(ON_PRE, 2.2, 8.1), W)
    post = np.where(POST[COL] > 0, np.clip(ON_POST, 2.2, 8.1), W)
    near(be.update_csr_on_binary_pre(W, COL, PTR, PRE, POST_TRACE, 2.2, 8.1, **how), pre)
    args = (ROW[BY_COL], COL_PTR, BY_COL, PRE_TRACE, POST, 2.2, 8.1)
    near(be.update_csr_on_binary_post(W, *args, **how), post)
    A = be.COO((W, ROW, COL), shape=SHAPE, backend=backend)
    near(A.update_on_pre(PRE, POST_TRACE, 2.2, 8.1, clip='touched').data, pre)
    near(A.update_on_post(PRE_TRACE, POST, 2.2, 8.1, clip='touched').data, post)
    grid = be.Dense(np.arange(12.0, dtype=np.float32).reshape(SHAPE), backend=backend)
    dense = grid.update_on_pre(PRE, POST_TRACE, None, 7.0, clip='touched').data
    near(dense, np.where(PRE[:, None], np.minimum(grid.data + POST_TRACE, 7), grid.data))


@pytest.mark.parametrize(
    ('low', 'high', 'want'),
    [(-1, None, [1, 2, 3]), (1.5, 2.5, [2, 2, 2]), (None, 300, [1, 2, 3]), (2, 1e30, [2, 2, 3])],
)
@pytest.mark.parametrize('clip', ['all', 'touched'])
def test_bounds_of_whole_numbers_never_wrap(low, high, want, clip):
    A = be.CSR.fromdense(np.array([[1, 2], [3, 0]], np.uint8))
    fired = be.BinaryArray(jnp.ones(2, bool))
    got = A.update_on_pre(fired, jnp.zeros(2, jnp.uint8), low, high, clip=clip).data
    assert got.dtype == jnp.uint8
    assert got.tolist() == want


def test_bounds_that_cannot_be_held_are_refused():
    A = be.COO((W, ROW, COL), shape=SHAPE)
    with pytest.raises(be.OptionError) as error:
        A.update_on_pre(PRE, POST_TRACE, 0, 1, clip='some')
    assert str(error.value) == (
        'COO.update_on_pre: unknown `clip`.\n'
        "    expected: one of 'all', 'touched'\n    got:      'some'"
    )
    with pytest.raises(be.ShapeError, match='single numbers'):
        A.update_on_pre(PRE, POST_TRACE, np.zeros(6), clip='touched')
    with pytest.raises(be.DtypeError, match='have no order'):
        A.with_data(W + 1j).update_on_pre(PRE, POST_TRACE, 0.0)


def test_lists_of_columns_with_traced_positions_of_weights():
    @jax.jit
    def update(tag):
        args = ROW[BY_COL], COL_PTR, tag, PRE_TRACE, POST
        return be.update_csr_on_binary_post(W, *args, shape=SHAPE)

    near(update(BY_COL.astype(np.int32)), ON_POST)
    outside = BY_COL.copy()
    outside[:3] = (-1, 99, 2**31 - 1)
    lost = np.isin(np.arange(6), BY_COL[:3])
    for backend in BACKENDS:
        with be.use_backend(backend):
            near(jax.jit(lambda t: update(t))(outside), np.where(lost, W, ON_POST))


def test_positions_of_weights_that_are_none_are_refused():
    args = ROW[BY_COL], COL_PTR
    rest = PRE_TRACE, POST
    with pytest.raises(be.IndexRangeError, match='`weight_indices` points outside'):
        be.update_csr_on_binary_post(W, *args, BY_COL + 1, *rest, shape=SHAPE)
    with pytest.raises(be.ShapeError, match='`weight_indices` does not fit `indices`'):
        be.update_csr_on_binary_post(W, *args, BY_COL[:3], *rest, shape=SHAPE)
    with pytest.raises(be.IndexRangeError) as error:
        be.update_csr_on_binary_post(W, *args, [0, 1, 2, 3, 3, 3], *rest, shape=SHAPE)
    assert str(error.value) == (
        'update_csr_on_binary_post: `weight_indices` names a weight twice.\n'
        '    expected: every weight once\n    got:      weight 3 3 times'
    )


def test_gradient_towards_the_trace_by_an_index_of_columns():
    ct = jnp.arange(6.0)
    for backend in BACKENDS:

        def loss(trace, backend=backend):
            args = ROW[BY_COL], COL_PTR, BY_COL, trace, POST
            new = be.update_csr_on_binary_post(W, *args, shape=SHAPE, backend=backend)
            return new @ ct

        want = np.bincount(ROW, ct * (POST[COL] > 0), 4)
        near(jax.grad(loss)(jnp.asarray(PRE_TRACE)), want)


def test_spikes_in_the_place_of_the_trace_are_refused():
    """Release 0.0.7 had them the other way round; a square matrix would take both."""
    A = be.COO((jnp.ones(2), [0, 1], [1, 0]), shape=(2, 2))
    spikes, trace = be.BinaryArray(jnp.array([True, False])), jnp.array([0.5, 2.0])
    with pytest.raises(be.OptionError) as error:
        A.update_on_post(spikes, trace)
    assert str(error.value) == (
        'COO.update_on_post: the trace is an event array.\n'
        '    expected: spikes and trace in their places\n'
        '    got:      BinaryArray as the trace\n'
        '    remedy:   the order is (pre_spike, post_trace) in updates on pre, and '
        '(pre_trace, post_spike) in updates on post'
    )
    np.testing.assert_allclose(A.update_on_post(trace, spikes).data, [1, 3])


def test_broken_structure_is_refused():
    with pytest.raises(be.IndexRangeError):
        be.update_csr_on_binary_pre(W, COL + 1, PTR, PRE, POST_TRACE, shape=SHAPE)
    with pytest.raises(be.ShapeError):
        be.update_csr_on_binary_pre(W, COL, PTR[:-1], PRE, POST_TRACE, shape=SHAPE)
    with pytest.raises(be.ShapeError):
        be.update_csr_on_binary_pre(W[:4], COL, PTR, PRE, POST_TRACE, shape=SHAPE)
    with pytest.raises(be.IndexRangeError):
        be.update_coo_on_binary_pre(W, ROW, COL + 1, PRE, POST_TRACE)
    with pytest.raises(be.ShapeError):
        be.update_dense_on_binary_pre(W, PRE, POST_TRACE)
    with pytest.raises(be.KernelNotAvailableError):
        be.update_dense_on_binary_pre(np.ones(SHAPE), PRE, POST_TRACE, backend='cuda_raw')


def test_earlier_names_are_the_same_functions():
    assert be.csr_on_pre is be.update_csr_on_binary_pre
    assert be.csr2csc_on_post is be.update_csr_on_binary_post
    assert be.dense_on_pre is be.update_dense_on_binary_pre
