# SPDX-License-Identifier: Apache-2.0
"""Coordinates: products, both orders of the mirror, notes on sorting, delivery of spikes."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.mirror import mirror
from brainevent._format.coordinates import COO_LAYOUT

ROW, COL = np.array([2, 0, 2, 0, 3, 2]), np.array([1, 2, 1, 0, 0, 2])
W = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], np.float32)
SHAPE = (4, 3)
DENSE = np.zeros(SHAPE, np.float32)
np.add.at(DENSE, (ROW, COL), W)
X, Y = np.array([1.0, -2.0, 3.0], np.float32), np.array([1.0, 2.0, 0.0, -3.0], np.float32)


@pytest.fixture(autouse=True)
def reference():
    """Products by the reference kernels, which are made quickly; the conformance suite has all."""
    with be.use_backend('jax_raw'):
        yield


def near(got, want, **kw):
    np.testing.assert_allclose(np.asarray(got), want, **kw)


def test_products_of_repeated_and_unsorted_coordinates():
    A = be.COO((W, ROW, COL), shape=SHAPE)
    near(A.todense(), DENSE)
    for M in (A, A.with_mirror(), A.T.T, A.T.with_mirror().T):
        near(M @ X, DENSE @ X)
        near(Y @ M, Y @ DENSE)
        near(M @ be.BinaryArray(X), DENSE @ (X > 0))
        near(be.BinaryArray(Y) @ M, (Y > 0) @ DENSE)
        near(be.BinaryArray(np.stack([Y, -Y])) @ M, np.stack([Y > 0, -Y > 0]) @ DENSE)
        near(M.T @ be.BinaryArray(Y), (Y > 0) @ DENSE)


def test_functions_in_both_directions():
    near(be.coomv(W, ROW, COL, X, shape=SHAPE), DENSE @ X)
    near(be.coomv(W, ROW, COL, Y, shape=SHAPE, transpose=True), Y @ DENSE)
    near(be.coomm(W, ROW, COL, np.stack([X, -X], 1), shape=SHAPE), DENSE @ np.stack([X, -X], 1))
    near(be.binary_coomv(W, ROW, COL, X, shape=SHAPE), DENSE @ (X > 0))
    spikes = np.stack([Y > 0, Y < 0], 1)
    near(be.binary_coomm(W, ROW, COL, spikes, shape=SHAPE, transpose=True), DENSE.T @ spikes)
    near(
        be.coomv(2.0, ROW, COL, X > 0, shape=SHAPE),
        2.0 * ((DENSE > 0) * 1.0 + (DENSE == 5)) @ (X > 0),
    )


def test_units_multiply():
    y = be.coomv(W * u.nS, ROW, COL, X * u.mV, shape=SHAPE)
    assert u.get_unit(y) == u.nS * u.mV
    near(u.get_mantissa(y), DENSE @ X)


@pytest.mark.parametrize('backend', ['jax_raw', 'numba'])
def test_mirror_keeps_the_order_of_entries_in_both_directions(backend):
    row = jnp.array([2, 0, 2, -1, 0, 3, 2, 0, 4], jnp.int32)
    col = jnp.array([1, 2, 1, 0, 0, 0, 2, 3, 1], jnp.int32)  # three entries lie outside
    with be.use_backend(backend):
        arrays = [np.asarray(a) for a in mirror(COO_LAYOUT, (row, col), SHAPE)]
    (by_row, row_ptr, row_tag), (by_col, col_ptr, col_tag) = arrays[:3], arrays[3:]
    assert row_ptr.tolist() == [0, 2, 2, 5, 6]
    assert row_tag[:6].tolist() == [1, 4, 0, 2, 6, 5]
    assert by_row[:6].tolist() == [2, 0, 1, 1, 2, 0]
    assert col_ptr.tolist() == [0, 2, 4, 6]
    assert col_tag[:6].tolist() == [4, 5, 0, 2, 1, 6]
    assert by_col[:6].tolist() == [0, 3, 2, 2, 0, 2]


def test_mirror_of_traced_coordinates():
    build = jax.jit(lambda r, c: be.COO((W, r, c), shape=SHAPE).with_mirror())
    A = build(ROW, COL)
    assert len(A.mirror) == 6
    near(be.BinaryArray(Y) @ A, (Y > 0) @ DENSE)
    near(A @ be.BinaryArray(X), DENSE @ (X > 0))


@pytest.mark.parametrize('mirrored', [False, True])
def test_gradients_are_those_of_the_dense_matrix(mirrored):
    A = be.COO((W, ROW, COL), shape=SHAPE)
    A = A.with_mirror() if mirrored else A

    def loss(w, y):
        return ((y @ A.with_data(w)) ** 2).sum()

    def dense(w, y):
        return ((y @ jnp.zeros(SHAPE).at[ROW, COL].add(w)) ** 2).sum()

    for got, want in zip(jax.grad(loss, (0, 1))(W, Y), jax.grad(dense, (0, 1))(W, Y), strict=True):
        near(got, want, rtol=1e-5)


@pytest.mark.parametrize('backend', ['jax_raw', 'numba'])
def test_traced_coordinates_outside_contribute_nothing(backend):
    w = np.append(W, [np.nan, np.inf, 1.0, 1.0]).astype(np.float32)
    row, col = np.append(ROW, [-1, 4, 0, 1]), np.append(COL, [0, 0, -1, 2**31 - 1])

    @jax.jit
    def run(w, row, col, x, y):
        A = be.COO((w, row, col), shape=SHAPE, backend=backend)
        return (
            A @ x,
            y @ A,
            A @ be.BinaryArray(x),
            jax.grad(lambda w: (A.with_data(w) @ x).sum())(w),
        )

    ax, ya, aev, grad = run(w, row.astype(np.int32), col.astype(np.int32), X, Y)
    near(ax, DENSE @ X)
    near(ya, Y @ DENSE)
    near(aev, DENSE @ (X > 0))
    near(grad, np.append(X[COL], [0, 0, 0, 0]))


def test_sorted_both_ways_is_refused():
    with pytest.raises(be.OptionError) as info:
        be.COO((W, ROW, COL), shape=SHAPE, rows_sorted=True, cols_sorted=True)
    assert isinstance(info.value, ValueError)
    assert str(info.value) == (
        'COO: entries cannot be sorted by row and by column.\n'
        '    expected: rows_sorted or cols_sorted, or neither\n'
        '    got:      both'
    )


def test_notes_on_sorting_travel_and_change_no_result():
    A = be.COO((W, ROW, COL), shape=SHAPE)
    assert A.ptr is None
    S = A.sort_indices()
    assert S.info == (SHAPE, True, False)
    assert S.row.tolist() == [0, 0, 2, 2, 2, 3]
    assert S.col.tolist() == [0, 2, 1, 1, 2, 0]
    assert S.data.tolist() == [8.0, 2.0, 1.0, 4.0, 32.0, 16.0]
    assert S.ptr.tolist() == [0, 2, 2, 5, 6]
    assert S.T.info == (SHAPE[::-1], False, True)
    assert S.T.ptr.tolist() == [0, 2, 2, 5, 6]
    assert jax.tree.map(lambda x: x, S).rows_sorted
    wrong = be.COO((W, ROW, COL), shape=SHAPE, rows_sorted=True)
    near(be.BinaryArray(Y) @ wrong, (Y > 0) @ DENSE)
    near(wrong.tocsr().todense(), DENSE)


def test_a_bad_list_of_coordinates_is_refused():
    for row, col, error in [
        ([0, 4], [0, 0], be.IndexRangeError),
        ([0, 1], [0, -1], be.IndexRangeError),
        ([0, 1], [0], be.ShapeError),
        ([[0, 1]], [[0, 1]], be.ShapeError),
        ([0.5, 1], [0, 1], be.DtypeError),
    ]:
        with pytest.raises(error):
            be.COO((1.0, row, col), shape=SHAPE)
        with pytest.raises(error):
            be.coomv(1.0, row, col, X, shape=SHAPE)
    with pytest.raises(be.ShapeError):
        be.coomv(W[:3], ROW, COL, X, shape=SHAPE)


@pytest.mark.parametrize('backend', ['jax_raw', None])
def test_delivery_of_spikes_as_braincell_asks_for_it(backend, x64):
    rng = np.random.default_rng(0)
    n_pre, width, contacts = 20, 50, 300
    pre = jnp.asarray(rng.integers(0, n_pre, contacts), jnp.int32)
    target = jnp.asarray(rng.integers(0, width, contacts), jnp.int32)
    weight = rng.random(contacts) * u.uS

    def deliver(spikes):
        return be.coomv(
            weight, pre, target, spikes, shape=(n_pre, width), transpose=True, backend=backend
        )

    spikes = jnp.asarray(rng.random((5, n_pre)) < 0.3, float)
    _, got = jax.lax.scan(lambda carry, s: (carry, deliver(s)), None, spikes)
    assert u.get_unit(got) == u.uS
    assert got.dtype == jnp.float64
    want = jnp.zeros((5, width)).at[:, target].add(u.get_mantissa(weight) * spikes[:, pre])
    near(u.get_mantissa(got), want, rtol=1e-9)


def test_reference_kernel_moves_no_more_memory_than_gather_and_scatter():
    edges = 10_000
    row, col = jnp.zeros(edges, jnp.int32), jnp.zeros(edges, jnp.int32)
    w, x = jnp.ones(edges), jnp.ones(100)

    def ours(w, row, col, x):
        return be.coomv(w, row, col, x, shape=(100, 100), backend='jax_raw')

    def plain(w, row, col, x):
        return jnp.zeros(100).at[row].add(w * x[col])

    memory = [jax.jit(f).lower(w, row, col, x).compile().memory_analysis() for f in (ours, plain)]
    assert memory[0].temp_size_in_bytes <= memory[1].temp_size_in_bytes


def test_no_entries_no_rows_no_columns():
    for shape in [(3, 2), (0, 2), (3, 0), (0, 0)]:
        A = be.COO((1.0, [], []), shape=shape)
        for M in (A, A.with_mirror()):
            near(M @ jnp.ones(shape[1]), np.zeros(shape[0]))
            near(be.BinaryArray(jnp.ones(shape[0], bool)) @ M, np.zeros(shape[1]))
        assert A.tocsr().todense().shape == A.sort_indices().shape == shape
