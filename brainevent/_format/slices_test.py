# SPDX-License-Identifier: Apache-2.0
"""Rows of loose arrays, and single elements of matrices too wide for a dense row."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

SHAPE = (4, 3)
COL, PTR = np.array([2, 0, 1, 1, 2, 0]), np.array([0, 2, 2, 5, 6])
ROW = np.repeat(np.arange(4), np.diff(PTR))
W = jnp.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
DENSE = np.zeros(SHAPE, np.float32)
np.add.at(DENSE, (ROW, COL), W)
BACKENDS = ('numba', 'jax_raw')


def rows(w, ids, backend=None):
    return be.csr_slice_rows(w, COL, PTR, ids, shape=SHAPE, backend=backend)


@pytest.mark.parametrize('backend', BACKENDS)
def test_values(backend):
    np.testing.assert_array_equal(rows(W, 2, backend), DENSE[2])
    np.testing.assert_array_equal(rows(W, [3, 0, 0], backend), DENSE[[3, 0, 0]])
    np.testing.assert_array_equal(rows(W, [[3], [1]], backend), DENSE[[[3], [1]]])
    np.testing.assert_array_equal(rows(2.0, [2], backend), [[0, 4, 2]])
    assert rows(W, [], backend).shape == (0, 3)


@pytest.mark.parametrize('backend', BACKENDS)
def test_what_is_no_row_gives_zeros(backend):
    ids = np.array([0, -1, 4, 2**31 - 1, -(2**31)])
    want = np.where((ids == 0)[:, None], DENSE[0], 0)
    np.testing.assert_array_equal(rows(W, ids, backend), want)
    np.testing.assert_array_equal(jax.jit(lambda i: rows(W, i, backend))(ids), want)


def test_derivatives_and_batches():
    ids = np.array([2, 0, 2])

    def loss(w):
        return (rows(w, ids) ** 2).sum()

    def plain(w):
        return (jnp.zeros(SHAPE).at[ROW, COL].add(w)[ids] ** 2).sum()

    np.testing.assert_allclose(jax.grad(loss)(W), jax.jit(jax.grad(plain))(W))
    np.testing.assert_allclose(jax.jvp(loss, (W,), (W,))[1], 2 * plain(W))
    one = jax.grad(lambda w: rows(w, ids).sum())(jnp.float32(2))
    np.testing.assert_allclose(one, 8)
    np.testing.assert_allclose(jax.vmap(lambda i: rows(W, i))(jnp.arange(4)), DENSE)
    both = jax.vmap(rows)(jnp.stack([W, -W]), jnp.array([[2, 0], [3, 3]]))
    np.testing.assert_allclose(both, [DENSE[[2, 0]], -DENSE[[3, 3]]])


def test_units_refusals_and_primitives():
    assert rows(W * u.mV, 0).unit == u.mV
    with pytest.raises(be.DtypeError):
        rows(W, 0.5)
    with pytest.raises(be.ShapeError):
        rows(W[:4], 0)
    assert be.csr_slice_rows_p.name == 'csr_slice_rows'
    assert {'numba', 'jax_raw'} <= set(be.csr_slice_rows_p.available_backends('cpu'))


@pytest.mark.parametrize('kind', ['CSR', 'CSC', 'COO'])
@pytest.mark.parametrize('backend', BACKENDS)
def test_an_element_of_a_very_wide_matrix_makes_no_dense_row(kind, backend):
    wide = (10**9, 2 * 10**9)
    A = be.COO((W, ROW, COL * 7), shape=wide, backend=backend)
    if kind != 'COO':
        # the compressed axis is the one that is short
        A = be.CSR((W, COL * 7, PTR), shape=(4, wide[1]), backend=backend)
        A = A.T if kind == 'CSC' else A
    i, j = (7, 2) if kind == 'CSC' else (2, 7)
    assert A[i, j] == 12

    def picked(w, i):
        return A.with_data(w)[i, j].sum()

    lowered = jax.jit(jax.grad(picked)).lower(A.data, jnp.array([i, i]))
    assert lowered.compile().memory_analysis().temp_size_in_bytes < 1e6
    block = A[7:14, 1:3] if kind == 'CSC' else A[1:3, 7:14]
    assert block.shape == ((7, 2) if kind == 'CSC' else (2, 7))
    assert block.sum() == 12
