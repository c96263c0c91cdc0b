# SPDX-License-Identifier: Apache-2.0
"""Derivatives of drawn matrices are those of the dense matrix, to second order, in all that varies.

Claims, for constant, normal and uniform weights, both orientations, vectors and batches, both
sides:

1. Values, tangents (forward), cotangents (reverse) and second derivatives (forward over reverse) in
   the parameters of the weights and in the operand equal those of ``sum_k parameter_k * basis_k``,
   where the bases are dense matrices made by the text of the model on NumPy, and JAX
   differentiates.
2. Forward and reverse are adjoint: ``<ct, J t> = <J^T ct, t>``.
3. The derivative in the probability is zero, and a seed has none (float0).
4. All of it under `vmap` over seeds, and over seeds and parameters together.

Tolerance: float64; 1e-10 relative to the largest entry: sums of 40 products, and edges whose normal
numbers are computed twice. Seeds 11 to 13.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge import random
from tests.drawn_model import drawn_edges

SHAPE, PROB, SEEDS = (30, 40), 0.3, (11, 12, 13)
CASES = {'Scalar': (1.5,), 'Normal': (0.5, 2.0), 'Uniform': (-1.0, 2.0)}
QUICK = {kind: [kind, *(pytest.param(k, marks=pytest.mark.slow) for k in CASES if k != kind)]
         for kind in CASES}  # fmt: skip


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


@functools.cache
def bases(kind, seed, corder):
    """Return the matrices of which the drawn one is a sum, weighted by its parameters."""
    shape = SHAPE[::-1] if corder else SHAPE
    row, col, *key = drawn_edges(np.float32([PROB]), random.seed_words(seed), shape)
    unit = random.unit(key, np.float64)
    values = {
        'Scalar': [np.ones_like(unit)],
        'Normal': [np.ones_like(unit), random.gauss(key, np.float64)],
        'Uniform': [1 - unit, unit],
    }[kind]
    grids = np.zeros((len(values), *shape))
    grids[:, row, col] = values
    return grids.swapaxes(1, 2) if corder else grids


def near(got, want):
    """Compare trees of numbers, relative to the largest of each."""

    def compare(a, b):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert np.abs(a - b).max(initial=0) <= 1e-10 * max(np.abs(b).max(initial=0), 1)

    jax.tree.map(compare, got, want)


def product(matrix, x, left):
    """Multiply from one of both sides."""
    return x @ matrix if left else matrix @ x


def drawn(kind, corder, params, seed, prob=PROB):
    """Make a drawn matrix of traced or concrete parameters."""
    return getattr(be, f'JITC{kind}R')((*params, prob, seed), shape=SHAPE, corder=corder)


def like(tree, rng):
    """Return random numbers in the shapes of a tree."""
    return jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), tree)


def problems(kind, corder, left):
    """Yield the function of parameters and operand, drawn and dense, and where to differentiate."""
    rng = np.random.default_rng(3)
    count = SHAPE[0] if left else SHAPE[1]
    grids = jnp.asarray(bases(kind, SEEDS[0], corder))

    def by_drawing(params, x):
        return jnp.sin(product(drawn(kind, corder, params, SEEDS[0]), x, left))

    def by_dense(params, x):
        return jnp.sin(product(jnp.tensordot(jnp.stack(params), grids, 1), x, left))

    batch = (3, count) if left else (count, 3)
    for shape in ((count,), batch):
        at = tuple(map(jnp.float64, CASES[kind])), jnp.asarray(rng.normal(size=shape))
        yield by_drawing, by_dense, at, rng


@pytest.mark.parametrize('left', [False, True])
@pytest.mark.parametrize('corder', [False, True])
@pytest.mark.parametrize('kind', QUICK['Normal'])
def test_forward_and_reverse(kind, corder, left):
    for ours, dense, at, rng in problems(kind, corder, left):
        tangents = like(at, rng)
        value, moved = jax.jvp(ours, at, tangents)
        near((value, moved), jax.jvp(dense, at, tangents))
        ct = jnp.asarray(rng.normal(size=value.shape))
        back, want = jax.vjp(ours, *at)[1](ct), jax.vjp(dense, *at)[1](ct)
        near(back, want)
        inner = sum(jax.tree.leaves(jax.tree.map(jnp.vdot, back, tangents)))
        near(inner, jnp.vdot(ct, moved))


@pytest.mark.slow
@pytest.mark.parametrize('left', [False, True])
@pytest.mark.parametrize('corder', [False, True])
@pytest.mark.parametrize('kind', CASES)
def test_second_order(kind, corder, left):
    ours, dense, at, _ = next(problems(kind, corder, left))
    got, want = (
        jax.hessian(lambda *a, f=f: (f(*a) ** 2).sum(), (0, 1))(*at) for f in (ours, dense)
    )
    near(got, want)


@pytest.mark.slow
@pytest.mark.parametrize('kind', CASES)
def test_dense_and_listed_forms(kind):
    """Making the matrix dense, and listing its edges, are linear in the parameters too."""
    params = tuple(map(jnp.float64, CASES[kind]))
    grids = bases(kind, SEEDS[0], False)

    def loss(params, grid):
        return (jnp.sin(grid(params)) ** 2).sum()

    want = jax.hessian(loss)(params, lambda p: jnp.tensordot(jnp.stack(p), grids, 1))
    for form in (
        lambda p: drawn(kind, False, p, SEEDS[0]).todense(),
        lambda p: drawn(kind, False, p, SEEDS[0]).tocsr(600).todense(),
    ):
        near(jax.jit(jax.hessian(loss), static_argnums=1)(params, form), want)


@pytest.mark.slow
@pytest.mark.parametrize('kind', CASES)
def test_mapped_over_seeds(kind):
    x = jnp.asarray(np.random.default_rng(4).normal(size=SHAPE[1]))
    grids = jnp.stack([jnp.asarray(bases(kind, s, False)) for s in SEEDS])
    params = jnp.asarray([np.array(CASES[kind]) * k for k in (1.0, 0.5, -1.0)])
    params = jnp.sort(params, 1)  # the ends of uniform weights stay in order

    def ours(params, x, seed):
        return jnp.sin(drawn(kind, False, tuple(params), seed) @ x).sum()

    def dense(params, x, grids):
        return jnp.sin(jnp.tensordot(params, grids, 1) @ x).sum()

    for axes in ((None, None, 0), (0, None, 0)):
        at = params if axes[0] == 0 else params[0]
        for derivative in (jax.grad, jax.hessian):
            got = jax.vmap(derivative(ours, (0, 1)), axes)(at, x, jnp.asarray(SEEDS))
            near(got, jax.vmap(derivative(dense, (0, 1)), axes)(at, x, grids))


@pytest.mark.parametrize('kind', QUICK['Scalar'])
def test_probability_and_seed(kind):
    params = tuple(map(jnp.float64, CASES[kind]))
    x = jnp.arange(SHAPE[1]) / 7

    def loss(prob, seed, params):
        A = drawn(kind, False, params, seed, prob)
        return (A @ x).sum() + A.todense().sum() + A.tocsr(800).data.sum()

    at = jnp.float64(PROB), jnp.int64(SEEDS[0]), params
    to_prob, to_seed = jax.grad(loss, (0, 1), allow_int=True)(*at)
    assert to_prob == 0 and to_seed.dtype == jax.dtypes.float0
    no_seed = np.zeros((), jax.dtypes.float0)
    zeros = jax.tree.map(jnp.zeros_like, params)
    assert jax.jvp(loss, at, (jnp.float64(1), no_seed, zeros))[1] == 0
    assert jax.grad(lambda p: jax.grad(loss, 2)(p, SEEDS[0], params)[0])(at[0]) == 0
    seeds = jnp.asarray(SEEDS)
    assert not jax.vmap(jax.grad(loss), (None, 0, None))(at[0], seeds, params).any()
