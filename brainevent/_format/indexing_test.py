# SPDX-License-Identifier: Apache-2.0
"""Indexing against numpy, for every format; traced, repeated and wrong indices."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._format import indexing

SHAPE = (4, 3)
ROW, COL = np.array([2, 0, 2, 0, 3, 2]), np.array([1, 2, 1, 0, 0, 2])
W = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], np.float32)


def coo(w=W):
    return be.COO((w, ROW, COL), shape=SHAPE)


TABLE = np.array([[0, 1], [1, 2], [2, 0], [0, 2]])
MATRICES = {
    'COO': coo(),
    'CSR': coo().tocsr(),
    'CSC': coo().tocsc(),
    'CSR with a mirror': coo().tocsr().with_mirror(),
    'one weight': coo(2.0).tocsr(),
    'FixedNumPerPre': be.FixedNumPerPre((np.arange(8.0).reshape(4, 2), TABLE), shape=SHAPE),
    'FixedNumPerPost': be.FixedNumPerPost((2.0, [[0, 1], [1, 3], [2, 0]]), shape=SHAPE),
    'Dense': be.Dense(coo().todense()),
}
ROWS = [0, -1, np.int64(1), slice(None), slice(1, None), slice(None, None, -1), slice(2, 2)]
ROWS += [[0, 2, 2], np.array([[0, 1], [2, -1]]), np.array([True, False, True, False])]
ROWS += [np.array([], int), np.arange(40) % 4, ...]
PAIRS = [(1, 2), (-1, -1), (0, slice(None)), (slice(None), 1), (slice(None), [0, 1])]
PAIRS += [(slice(1, 3), slice(0, 2)), ([0, 1], [1, 2]), (np.array([[0], [1]]), [0, 2])]
PAIRS += [(..., 1), (1, ...), (slice(None), slice(1, None)), (1, slice(1, None)), (1, 2, ...)]
PAIRS += [
    ([1, 0], slice(0, 2)),
    (slice(0, 2), -1),
    (np.array([True] * 4), 0),
    (np.arange(40) % 4, 0),
]
PAIRS += [(slice(0, 1), np.array([True, False, True]))]


@pytest.fixture(params=MATRICES)
def matrix(request):
    # the reference kernels are made quickly; products themselves are tested elsewhere
    with be.use_backend('jax_raw'):
        yield MATRICES[request.param]


def test_every_kind_of_index_as_numpy_has_it(matrix):
    D = np.asarray(matrix.todense())
    for index in (*ROWS, *PAIRS, D > 3):
        got = matrix[index]
        assert got.shape == D[index].shape, index
        np.testing.assert_allclose(got, D[index], err_msg=repr(index))
    np.testing.assert_allclose(matrix[jnp.array([3])][0], D[3])
    np.testing.assert_allclose(matrix[jnp.int32(2), 1], D[2, 1])
    assert matrix[[]].shape == (0, 3)


def test_traced_indices(matrix):
    D = np.asarray(matrix.todense())
    rows = jax.jit(lambda i: matrix[i])
    np.testing.assert_allclose(rows(jnp.array([0, -1, 2])), D[[0, -1, 2]])
    np.testing.assert_allclose(rows(jnp.arange(-4, 30) % 4), D[np.arange(-4, 30) % 4])
    np.testing.assert_allclose(jax.jit(lambda i, j: matrix[i, j])(2, -2), D[2, -2])
    np.testing.assert_allclose(jax.jit(lambda j: matrix[:, j])(jnp.array([2, 0])), D[:, [2, 0]])
    np.testing.assert_allclose(jax.vmap(lambda i: matrix[i])(jnp.arange(4)), D)
    _, scanned = jax.lax.scan(lambda c, i: (c, matrix[i.reshape(1)][0]), 0, jnp.arange(4))
    np.testing.assert_allclose(scanned, D)


def test_traced_indices_outside_give_zeros(matrix):
    zeros = np.zeros(3)
    rows = jax.jit(lambda i: matrix[i])
    for ids in (jnp.array([4, -5]), jnp.tile(jnp.array([100, -100]), 20)):
        np.testing.assert_array_equal(rows(ids), np.zeros((ids.size, 3)))
    np.testing.assert_array_equal(rows(7), zeros)
    assert jax.jit(lambda i, j: matrix[i, j])(2, 9) == 0
    np.testing.assert_array_equal(jax.jit(lambda j: matrix[:, j])(-4), np.zeros(4))


def test_concrete_indices_outside_are_refused(matrix):
    for index in (4, -5, [0, 4], (0, 3), (slice(None), -4), np.array([True, False])):
        with pytest.raises(IndexError):
            matrix[index]
    name = type(matrix).__name__
    with pytest.raises(be.IndexRangeError) as error:
        matrix[[1, 9, 12]]
    assert str(error.value) == (
        f'{name}[index]: an index points outside the matrix.\n'
        '    expected: values from -4 to 3\n    got:      9'
    )
    with pytest.raises(be.IndexRangeError, match='does not fit two axes'):
        matrix[0, [0], 0]
    np.testing.assert_array_equal(matrix[(0, 3, 1)], matrix[[0, 3, 1]])  # a tuple of rows
    with pytest.raises(be.DtypeError, match='no whole number'):
        matrix[0.5]


def test_a_traced_mask_is_refused():
    with pytest.raises(be.UnsupportedOperationError, match='does not tell how many'):
        jax.jit(lambda mask: coo()[mask])(np.ones(4, bool))


@pytest.mark.parametrize('ids', [np.array([0, 2, 2]), np.tile([0, 2, 2], 8)])
def test_gradients_reach_the_weights_of_the_rows_that_were_read(ids):
    def loss(w):
        return (coo(w)[ids] ** 2).sum()

    def plain(w):
        return (jnp.zeros(SHAPE).at[ROW, COL].add(w)[ids] ** 2).sum()

    np.testing.assert_allclose(jax.grad(loss)(jnp.asarray(W)), jax.grad(plain)(jnp.asarray(W)))
    one = jax.grad(lambda w: coo(w)[ids].sum())(jnp.float32(2))
    np.testing.assert_allclose(one, np.isin(ROW, ids) @ np.bincount(ids, minlength=4)[ROW])


def test_a_part_of_wide_rows_is_picked_element_by_element(matrix, monkeypatch):
    D, parts = np.asarray(matrix.todense()), [([1, 0], slice(0, 2)), (slice(1, 3), [-1, 0])]
    parts += [(np.array([[0, 1], [2, 2]]), slice(1, None)), (slice(0, 1), np.array([[0], [1]]))]
    for room in (0, 1 << 20):
        monkeypatch.setattr(indexing, 'DENSE_ROWS', room)
        for index in parts:
            np.testing.assert_allclose(matrix[index], D[index], err_msg=repr(index))
    columns = jax.jit(lambda j: matrix[1:3, j])
    np.testing.assert_allclose(columns(jnp.array([2, 7, -1])), D[1:3][:, [2, 0, 2]] * [1, 0, 1])


def test_elements_have_derivatives_and_batches(matrix):
    i, j = np.array([2, 0, 2, 3]), np.array([1, 2, 1, 0])

    def picked(w):
        return (matrix.with_data(w)[i, j] ** 2).sum()

    def plain(w):
        return (matrix.with_data(w).todense()[i, j] ** 2).sum()

    np.testing.assert_allclose(jax.grad(picked)(matrix.data), jax.grad(plain)(matrix.data))
    D = np.asarray(matrix.todense())
    np.testing.assert_allclose(jax.vmap(lambda i: matrix[i, 1])(jnp.arange(4)), D[:, 1])
    np.testing.assert_allclose(jax.vmap(lambda i, j: matrix[i, j])(i, j), D[i, j])


def test_units_and_bad_weights():
    A = coo(W * u.mV)
    assert A[0].unit == A[0, 2].unit == A[:, 1].unit == A[[0] * 20].unit == u.mV
    spoilt = coo(np.array([np.nan, 2, np.inf, 8, 16, 32], np.float32))
    np.testing.assert_allclose(spoilt[0], [8, 0, 2])
    np.testing.assert_allclose(spoilt[[0] * 20][3], [8, 0, 2])


def test_rows_of_truth_values_are_numbers():
    assert coo(np.ones(6, bool))[2].tolist() == [0, 2, 1]


def test_a_dense_matrix_takes_new_axes():
    assert MATRICES['Dense'][None].shape == (1, 4, 3)


def test_some_rows_as_a_matrix(matrix):
    D = np.asarray(matrix.todense())
    for index in (2, -1, [3, 0, 0], slice(1, None), np.arange(4) != 1, np.arange(0)):
        rows = matrix.slice_rows(index)
        want = np.atleast_2d(D[index])
        np.testing.assert_allclose(rows.todense(), want)
        per_post = type(matrix) is be.FixedNumPerPost
        assert type(rows) is (be.CSR if per_post else type(matrix))
        assert rows.shape == want.shape
    with pytest.raises(be.IndexRangeError):
        matrix.slice_rows(4)


def test_some_rows_of_traced_weights_but_not_of_traced_structure():
    A = coo().tocsr()
    rows = jax.grad(lambda w: (A.with_data(w).slice_rows([2, 2]).data ** 2).sum())(A.data)
    np.testing.assert_allclose(rows, np.where(np.asarray(A.edges()[0]) == 2, 4 * A.data, 0))
    with pytest.raises(be.UnsupportedOperationError, match='not known in a traced program'):
        jax.jit(lambda m: m.slice_rows(0))(A)
    with pytest.raises(be.UnsupportedOperationError, match='not known in a traced program'):
        jax.jit(A.slice_rows)(0)


@pytest.mark.parametrize(
    'index', [([0, 1], [0, 1, 2]), slice(None, None, 0), slice(0.5, 2), (slice(None, None, 0), 0)]
)
@pytest.mark.parametrize(
    'matrix',
    [
        lambda: be.CSR.fromdense(np.eye(3, dtype=np.float32)),
        lambda: be.JITCScalarR((1.0, 0.5, 3), shape=(3, 3)),
    ],
)
def test_indices_that_are_none(matrix, index):
    with pytest.raises(be.IndexRangeError):
        matrix()[index]
