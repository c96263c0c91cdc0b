# SPDX-License-Identifier: Apache-2.0
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent import UnsupportedOperationError

SHAPE = (9, 14)
KINDS = {
    'scalar': lambda seed=3: be.JITCScalarR((2.5, 0.4, seed), shape=SHAPE),
    'normal': lambda seed=3: be.JITCNormalR((1.0, 0.5, 0.4, seed), shape=SHAPE, corder=True),
    'uniform': lambda seed=3: be.JITCUniformC((-1.0, 2.0, 0.4, seed), shape=SHAPE),
}
GRID = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def near(got, want):
    got = got.todense() if isinstance(got, be.JITCMatrix) else got
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_scaling_acts_on_every_entry(kind):
    A = kind()
    D = np.asarray(A.todense())
    for got, want in (
        (A * 2, D * 2),
        (-3.0 * A, -3 * D),
        (A / 4, D / 4),
        (np.float32(2) * A, 2 * D),
        (-A, -D),
        (+A, D),
        (A * jnp.ones(1), D),
    ):
        near(got, want)
        assert type(got) is type(A)


def test_what_does_not_keep_zeros_is_refused(kind):
    A = kind()
    for refused in (
        lambda: A + 1,
        lambda: 1 + A,
        lambda: A - 2,
        lambda: 2 - A,
        lambda: A / 0,
        lambda: A**0,
        lambda: A**-1,
        lambda: A % 0,
    ):
        with pytest.raises(UnsupportedOperationError):
            refused()
    near(0 + A, np.asarray(A.todense()))
    near(0 - A, -np.asarray(A.todense()))


def test_matrices_with_the_same_edges(kind):
    A = kind()
    D = np.asarray(A.todense())
    near(A + A * 2, 3 * D)
    near(A - A, 0 * D)
    for other in (kind(4), A.T, KINDS['scalar'](5)):
        with pytest.raises(UnsupportedOperationError):
            A + other


def test_sums_with_dense_are_dense(kind):
    A = kind()
    D = np.asarray(A.todense())
    near(A + GRID, D + GRID)
    near(jnp.asarray(GRID) - A, GRID - D)
    with pytest.raises(UnsupportedOperationError, match='tocsr'):
        A + GRID[0]


def test_what_makes_another_distribution(kind):
    A = kind()
    for call in (lambda: A % 2, lambda: A**2, lambda: A // 2, lambda: abs(A), lambda: A * A):
        if isinstance(A, be.JITCScalarR):
            assert isinstance(call(), be.JITCScalarR)
        else:
            with pytest.raises(UnsupportedOperationError) as error:
                call()
            assert 'convert it first with tocsr() or todense()' in str(error.value)
    for call in (lambda: 2 / A, lambda: 2**A, lambda: A * GRID, lambda: A / A.tocsr()):
        with pytest.raises(UnsupportedOperationError):
            call()


def test_constant_weights_are_numbers():
    A = KINDS['scalar']()
    at = np.asarray(A.todense()) != 0
    near(A % 2, 0.5 * at)
    near(A**2, 6.25 * at)
    near(A // 2, 1.0 * at)
    near(abs(-A), 2.5 * at)
    near(A * A, 6.25 * at)
    near(A / A, 1.0 * at)
    near(A.apply(jnp.sqrt), np.sqrt(2.5) * at)
