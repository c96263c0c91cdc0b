# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge import random
from brainevent._edge.materialise import list_edges
from brainevent._format.drawn import DRAWN_LAYOUT, JITN, JITS

SHAPE = (6, 40)
ARRAYS = (jnp.full(1, 0.3, jnp.float32), jnp.asarray(random.seed_words(5)))


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
def test_a_dense_matrix_is_linear_in_its_parameters(backend):
    def fill(loc, scale):
        return JITN.dense((loc[None], scale[None]), ARRAYS, SHAPE, backend)

    one, zero = jnp.float32(1), jnp.float32(0)
    basis = fill(one, zero), fill(zero, one)
    args, tangents = (jnp.float32(2), jnp.float32(3)), (jnp.float32(5), jnp.float32(-1))
    value, slope = jax.jvp(fill, args, tangents)
    np.testing.assert_allclose(value, 2 * basis[0] + 3 * basis[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(slope, 5 * basis[0] - basis[1], rtol=1e-5, atol=1e-5)
    ct = jnp.asarray(np.random.default_rng(0).normal(size=SHAPE).astype(np.float32))
    back = jax.vjp(fill, *args)[1](ct)
    for got, b in zip(back, basis, strict=True):
        np.testing.assert_allclose(got, (b * ct).sum(), rtol=1e-4)
    many = jax.vmap(fill, (0, None))(jnp.arange(3.0), zero)
    np.testing.assert_allclose(many, np.arange(3.0)[:, None, None] * basis[0], atol=1e-6)
    curve = jax.hessian(lambda a: (fill(a, zero) ** 2).sum())(one)
    np.testing.assert_allclose(curve, 2 * (basis[0] ** 2).sum(), rtol=1e-5)


def test_lists_in_batches_and_without_room():
    seeds = jnp.stack([jnp.asarray(random.seed_words(s)) for s in range(3)])
    start = jnp.arange(7, dtype=jnp.int32) * 40

    def run(seed, size=240):
        return list_edges(DRAWN_LAYOUT, (ARRAYS[0], seed), start, SHAPE, size)

    count, col, *_ = jax.vmap(run)(seeds)
    for k in range(3):
        grid = np.asarray(JITS.dense((jnp.ones(1),), (ARRAYS[0], seeds[k]), SHAPE))
        np.testing.assert_array_equal(count[k], grid.sum(1))
        rows = [np.nonzero(line)[0] for line in grid]
        for i, want in enumerate(rows):
            np.testing.assert_array_equal(col[k, 40 * i : 40 * i + want.size], want)
    few = run(seeds[0], 45)
    np.testing.assert_array_equal(few[0], count[0])
    np.testing.assert_array_equal(few[1][:40], col[0, :40])
    assert run(seeds[0], 0)[1].shape == (0,)
