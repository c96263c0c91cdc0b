# SPDX-License-Identifier: Apache-2.0
"""Matrices in the hands of NumPy, and the short summaries that SciPy's users look for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

D = np.array([[0, 2, 0], [-1, 0, 3], [0, 0, 4]], np.float32)
MAKE = {
    'CSR': be.CSR.fromdense,
    'CSC': be.CSC.fromdense,
    'COO': be.COO.fromdense,
    'Dense': be.Dense.fromdense,
    'FixedNumPerPre': lambda d: be.FixedNumPerPre.fromdense(d, num_conn=2),
    'FixedNumPerPost': lambda d: be.FixedNumPerPost.fromdense(d, num_conn=2),
    'JITCNormalR': lambda _: be.JITCNormalR((1.0, 0.5, 0.5, 3), shape=(3, 3)),
    'JITCScalarR': lambda _: be.JITCScalarR((2.0, 0.5, 3), shape=(3, 3)),
}


@pytest.fixture(params=MAKE)
def matrix(request):
    return MAKE[request.param](D)


def test_summaries(matrix):
    want = np.asarray(matrix.todense())
    for axis in (None, 0, 1, -1):
        for name in ('sum', 'mean', 'max', 'min'):
            got = getattr(matrix, name)(axis)
            np.testing.assert_allclose(got, getattr(want, name)(axis), rtol=1e-6)
            np.testing.assert_allclose(getattr(np, name)(matrix, axis=axis), got, rtol=1e-6)
    np.testing.assert_allclose(matrix.diagonal(), want.diagonal(), rtol=1e-6)
    np.testing.assert_allclose(matrix.toarray(), want)
    np.testing.assert_allclose(matrix.dot(jnp.ones(3)), want.sum(1), rtol=1e-6)
    assert matrix.nnz == (9 if isinstance(matrix, be.Dense) else (want != 0).sum())
    half = matrix.astype(jnp.float16)
    assert half.dtype == jnp.float16 and type(half) is type(matrix)
    with pytest.raises(be.OptionError):
        matrix.sum(2)


def test_numpy_functions_work_or_refuse(matrix):
    want = np.asarray(matrix.todense())
    np.testing.assert_allclose(np.asarray(matrix), want)
    np.testing.assert_allclose(np.dot(np.ones(3, np.float32), matrix), want.sum(0), rtol=1e-6)
    np.testing.assert_allclose(np.dot(matrix, np.ones(3, np.float32)), want.sum(1), rtol=1e-6)
    assert np.shape(matrix) == (3, 3) and np.ndim(matrix) == 2 and np.size(matrix) == 9
    np.testing.assert_allclose(np.matmul(np.ones(3, np.float32), matrix), want.sum(0), rtol=1e-6)
    with pytest.raises(be.UnsupportedOperationError, match='todense'):
        np.exp(matrix)
    with pytest.raises(be.UnsupportedOperationError, match='todense'):
        np.linalg.norm(matrix)


def test_comparison_iteration_and_assignment_are_refused(matrix):
    for refused in (
        lambda: matrix == 0,
        lambda: matrix != 0,
        lambda: matrix > jnp.ones(3),
        lambda: np.zeros((3, 3)) == matrix,
        lambda: list(matrix),
    ):
        with pytest.raises(be.UnsupportedOperationError, match='todense'):
            refused()
    assert matrix == matrix  # noqa: PLR0124
    assert matrix != None  # noqa: E711
    with pytest.raises(be.FrozenError, match='with_data'):
        matrix.data = 1
    with pytest.raises(be.FrozenError, match='with_data'):
        matrix[0, 1] = 3


def test_a_large_matrix_does_not_become_dense_by_itself():
    A = be.JITCScalarR((1.0, 1e-6, 1), shape=(100_000, 100_000))
    for refused in (lambda: np.asarray(A), lambda: A.max()):
        with pytest.raises(be.UnsupportedOperationError, match='todense'):
            refused()


def test_gradients_of_a_matrix_with_equinox_and_optax():
    eqx, optax = pytest.importorskip('equinox'), pytest.importorskip('optax')
    A = be.CSR.fromdense(D)

    def loss(A):
        return ((A @ jnp.ones(3)) ** 2).sum()

    grads = eqx.filter_grad(loss)(A)
    np.testing.assert_allclose(grads.data, jax.grad(lambda w: loss(A.with_data(w)))(A.data))
    step = optax.sgd(0.1)
    updates, _ = step.update(grads, step.init(eqx.filter(A, eqx.is_inexact_array)))
    new = eqx.apply_updates(A, updates)
    np.testing.assert_allclose(new.data, A.data - 0.1 * grads.data)
    assert loss(new) < loss(A)


@pytest.mark.parametrize('name', [name for name in MAKE if name[:4] != 'JITC'])
def test_systems_without_unknowns(name):
    A = getattr(be, name).fromdense(np.zeros((0, 0), np.float32))
    assert A.solve(jnp.zeros(0)).shape == (0,)
    assert A.solve(jnp.zeros((0, 2))).shape == (0, 2)
    assert jax.vmap(A.solve)(jnp.zeros((3, 0))).shape == (3, 0)
    assert MAKE[name](D).solve(jnp.zeros((3, 0))).shape == (3, 0)
