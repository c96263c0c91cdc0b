# SPDX-License-Identifier: Apache-2.0
"""Every backend draws the same matrix: what `drawn_connectivity_test.py` shows holds for all.

Claims, for both orientations, with probabilities from 1e-4 to 0.99 and certain and impossible
edges:

1. Edges are equal on `numba`, `jax_raw` and `cuda_raw`, and those of a text of the model that knows
   nothing of kernels (`tests/drawn_model.py`). Integers only: no tolerance.
2. Uniform weights between 0 and 1 are equal bit for bit: a word of 32 bits over 2**32, rounded
   once.
3. Normal weights are equal within 1e-6 relative, or 1e-8 near zero, in float32, and 2e-14 in
   float64: inversion is arithmetic in floating point, which a compiler may contract, and in single
   precision native code takes shorter polynomials.

CUDA code runs on the emulator of `tests/cuda_emulator`, which draws rows of the same matrices,
fewer of them in the quick tests; an entry does not depend on the shape. Seeds 1 to 7.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge import random
from tests.cuda.conftest import emulated  # noqa: F401
from tests.drawn_model import drawn_edges

PROBS = [0.0, 1e-4, 0.0039, 0.02, 0.3, 0.75, 0.99, 1.0]
NATIVE = ('numba', 'jax_raw')


def rows_and_columns(prob, shape, seed, backend, corder):
    """List the edges of a matrix as one backend draws them, with room for all there could be."""
    with be.use_backend('cpu', backend):
        A = be.JITCScalarR((1.0, prob, seed), shape=shape, corder=corder).tocoo(shape[0] * shape[1])
    row, col = np.asarray(A.row), np.asarray(A.col)
    inside = (row < shape[0]) & (col < shape[1])
    return row[inside], col[inside]


def expect_the_model(prob, shape, seed, backend, corder=False):
    """Compare the edges of a backend with those of the model, put in order."""
    got = rows_and_columns(prob, shape, seed, backend, corder)
    words = random.seed_words(seed)
    line, place, *_ = drawn_edges(np.float32([prob]), words, shape[::-1] if corder else shape)
    want = (place, line) if corder else (line, place)
    got, want = (np.stack(ends)[:, np.lexsort(ends[::-1])] for ends in (got, want))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize('backend', NATIVE)
def test_edges_are_those_of_the_model(backend):
    for prob in PROBS:
        expect_the_model(prob, (20, 2000), 1, backend)
    for prob in (0.02, 0.99):
        expect_the_model(prob, (2000, 20), 2, backend, corder=True)


def test_edges_on_cuda_are_those_of_the_model(emulated):  # noqa: F811
    test_edges_are_those_of_the_model('cuda_raw')


@pytest.mark.slow
@pytest.mark.parametrize('prob', PROBS)
@pytest.mark.parametrize('corder', [False, True])
def test_all_edges_of_matrices_of_the_statistical_tests(emulated, prob, corder):  # noqa: F811
    for backend in (*NATIVE, 'cuda_raw'):
        expect_the_model(prob, (2000, 2000), 3, backend, corder)


@pytest.mark.slow
@pytest.mark.parametrize('prob', [1e-4, 0.01, 0.3])
def test_all_edges_of_20000_neurons(emulated, prob):  # noqa: F811
    """Sums of a permutation's numbers tell of every edge where a list would be too long."""
    n, rng = 20_000, np.random.default_rng(0)
    x = jnp.asarray(rng.integers(0, 16, n), jnp.float32)  # sums below 2**24 are exact
    A = [be.JITCScalarR((1.0, prob, 4), shape=(n, n), backend=b) for b in NATIVE]
    np.testing.assert_array_equal(A[0] @ x, A[1] @ x)
    np.testing.assert_array_equal(x @ A[0], x @ A[1])
    rows = be.JITCScalarR((1.0, prob, 4), shape=(200, n), backend='cuda_raw')
    np.testing.assert_array_equal(rows @ x, (A[0] @ x)[:200])


def weights(kind, params, backend, shape, dtype=jnp.float32):
    """Return the matrix that kernels of one backend fill."""
    given = (*(dtype(p) for p in params), 0.6, 5)
    return np.asarray(getattr(be, kind)(given, shape=shape, backend=backend).todense())


def expect_the_weights(backend, shape, dtype=jnp.float32):
    """Compare the weights on a backend with the model's, computed by NumPy."""
    row, col, *key = drawn_edges(np.float32([0.6]), random.seed_words(5), shape)
    real = np.dtype(dtype)
    uniform = weights('JITCUniformR', (0.0, 1.0), backend, shape, dtype)
    assert uniform.dtype == real
    np.testing.assert_array_equal(uniform[row, col], random.unit(key, real))
    normal = weights('JITCNormalR', (0.0, 1.0), backend, shape, dtype)
    rtol, atol = {4: (1e-6, 1e-8), 8: (2e-14, 0)}[real.itemsize]
    np.testing.assert_allclose(normal[row, col], random.gauss(key, real), rtol=rtol, atol=atol)
    for grid in (uniform, normal):
        assert (
            np.count_nonzero(grid) <= row.size and not np.delete(grid, row * shape[1] + col).any()
        )


@pytest.mark.parametrize('backend', NATIVE)
def test_weights_are_those_of_the_model(backend):
    expect_the_weights(backend, (100, 2000))


def test_weights_on_cuda_are_those_of_the_model(emulated):  # noqa: F811
    expect_the_weights('cuda_raw', (30, 700))


@pytest.mark.slow
@pytest.mark.parametrize('backend', [*NATIVE, 'cuda_raw'])
def test_weights_in_double_precision_are_those_of_the_model(emulated, backend):  # noqa: F811
    with jax.enable_x64(True):
        expect_the_weights(backend, (100, 2000), jnp.float64)


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['JITCUniformR', 'JITCNormalR'])
def test_a_million_weights_on_every_backend(emulated, kind):  # noqa: F811
    grids = [weights(kind, (-1.0, 2.0), b, (1000, 2000)) for b in (*NATIVE, 'cuda_raw')]
    for other in grids[1:]:
        np.testing.assert_array_equal(other != 0, grids[0] != 0)
        np.testing.assert_allclose(other, grids[0], rtol=1e-6, atol=1e-6)
