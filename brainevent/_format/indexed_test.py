# SPDX-License-Identifier: Apache-2.0
"""Products by an index: values against dense, batches, derivatives, units, refusals."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

SHAPE = (4, 3)
COL, PTR = np.array([2, 0, 1, 1, 2, 0]), np.array([0, 2, 2, 5, 6])
ROW = np.repeat(np.arange(4), np.diff(PTR))
PERM = np.array([3, 5, 0, 1, 4, 2])
W = jnp.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
DENSE = np.zeros(SHAPE, np.float32)
np.add.at(DENSE, (ROW, COL), np.asarray(W)[PERM])
V, T = jnp.array([0.5, -1.0, 2.0]), jnp.array([1.0, 0.0, 3.0, -2.0])


def near(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_every_product():
    args, how = (W, COL, PTR, PERM), {'shape': SHAPE, 'backend': 'jax_raw'}
    batch = jnp.stack([V, 2 * V], 1)
    near(be.csrmv_indexed(*args, V, **how), DENSE @ V)
    near(be.csrmv_indexed(*args, T, transpose=True, **how), DENSE.T @ T)
    near(be.csrmm_indexed(*args, batch, **how), DENSE @ batch)
    near(be.binary_csrmv_indexed(*args, V, workspace=None, **how), DENSE @ (V > 0))
    near(be.binary_csrmv_indexed(*args, T, transpose=True, **how), DENSE.T @ (T > 0))
    near(be.binary_csrmm_indexed(*args, batch, workspace=3, **how), DENSE @ (batch > 0))
    near(be.csrmv_indexed(2.0, *args[1:], V, **how), 2 * (V[COL] @ np.eye(4)[ROW]))


def test_the_mirror_of_compressed_rows_is_an_index():
    ptr, row, perm = be.csr_to_csc_index(PTR, COL, shape=SHAPE)
    A = be.CSR((W, COL, PTR), shape=SHAPE)
    got = be.binary_csrmv_indexed(W, row, ptr, perm, V, shape=SHAPE[::-1], transpose=True)
    near(got, A @ be.BinaryArray(V))


def test_derivatives_batches_and_units():
    def f(w, v):
        return be.csrmv_indexed(w, COL, PTR, PERM, v, shape=SHAPE)

    gw, gv = jax.grad(lambda w, v: f(w, v).sum(), (0, 1))(W, V)
    near(gw[PERM], V[COL])
    near(gv, DENSE.sum(0))
    near(jax.vmap(f, (0, None))(jnp.stack([W, -W]), V)[1], -DENSE @ V)
    near(jax.jvp(f, (W, V), (W, V))[1], 2 * DENSE @ V)
    assert f(W * u.mS, V * u.mV).unit == u.mS * u.mV


def test_an_index_that_is_none_is_refused():
    with pytest.raises(be.IndexRangeError, match='names a weight twice'):
        be.csrmv_indexed(W, COL, PTR, np.zeros(6, int), V, shape=SHAPE)
    with pytest.raises(be.ShapeError, match='does not fit `indices`'):
        be.csrmv_indexed(W, COL, PTR, PERM[:4], V, shape=SHAPE)


def test_the_primitives():
    for name in ('csrmv', 'csrmm', 'binary_csrmv', 'binary_csrmm'):
        op = getattr(be, f'{name}_indexed_p')
        assert op is be.get_registry()[op.name]
        assert {'numba', 'jax_raw'} <= set(op.available_backends('cpu'))
