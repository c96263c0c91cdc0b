# SPDX-License-Identifier: Apache-2.0
"""``dt2t``: a value for every entry times a vector at its row or column, in every format."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

SHAPE = (4, 3)
ROW, COL = np.array([2, 0, 2, 0, 3, 2]), np.array([1, 2, 1, 0, 0, 2])
W = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], np.float32)
Y, X = np.arange(1.0, 5, dtype=np.float32), np.arange(1.0, 4, dtype=np.float32)
COO = be.COO((W, ROW, COL), shape=SHAPE)
TABLE = be.FixedNumPerPre((np.ones((4, 2)), [[0, 1], [1, 2], [2, 0], [0, 2]]), shape=SHAPE)


@pytest.mark.parametrize('A', [COO, COO.tocsr(), COO.tocsc(), COO.tocsr().with_mirror(), TABLE])
def test_rows_and_columns(A):
    row, col = (np.asarray(ids).reshape(A.data.shape) for ids in A.edges())
    np.testing.assert_allclose(A.dt2t(Y, A.data), A.data * Y[row])
    np.testing.assert_allclose(A.dt2t_transposed(X, A.data), A.data * X[col])
    np.testing.assert_allclose(A.dt2t(be.BinaryArray(Y), 2.0).reshape(-1), 2 * Y[row.reshape(-1)])


def test_old_names_warn_and_work():
    with pytest.warns(DeprecationWarning, match='yw_to_w is now called dt2t'):
        np.testing.assert_allclose(COO.yw_to_w(Y, W), W * Y[ROW])
    with pytest.warns(DeprecationWarning):
        np.testing.assert_allclose(COO.yw_to_w_transposed(X, W), W * X[COL])


def test_units_multiply():
    assert COO.dt2t(Y * u.mV, W * u.mS).unit == u.mV * u.mS
    assert COO.dt2t_transposed(X * u.mV, W).unit == u.mV


def test_batches_and_derivatives():
    ys, ws = jnp.stack([Y, 2 * Y]), jnp.stack([W, 3 * W])
    np.testing.assert_allclose(jax.vmap(COO.dt2t)(ys, ws), ws * ys[:, ROW])
    np.testing.assert_allclose(jax.vmap(COO.dt2t, (None, 0))(ys[0], ws), ws * Y[ROW])
    grads = jax.grad(lambda y, w: COO.dt2t(y, w).sum(), (0, 1))(ys[0], ws[0])
    np.testing.assert_allclose(grads[0], np.bincount(ROW, W, 4))
    np.testing.assert_allclose(grads[1], Y[ROW])


def test_operands_that_do_not_fit_are_refused():
    with pytest.raises(be.ShapeError, match='`y` does not fit the matrix'):
        COO.dt2t(X, W)
    with pytest.raises(be.ShapeError, match='6 values, one for every entry'):
        COO.dt2t(Y, W[:4])
