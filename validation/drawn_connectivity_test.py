# SPDX-License-Identifier: Apache-2.0
"""Drawn connectivity is what it says: independent edges of the asked probability, with weights.

Every edge is an independent Bernoulli trial, so the number of edges, out-degrees and in-degrees are
binomial, two rows (columns, neighbours in a row, matrices of two seeds) share as many edges as
chance has it, and weights follow their distribution to the tails whatever the gaps around them.
Matrices are of 2,000 and 20,000 neurons. A test fails where chance alone would make it fail once
in 10,000 times or less; seeds are fixed, so the outcome is too.
"""

import resource

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import brainevent as be

ALPHA = 1e-4
SIGMAS = stats.norm.isf(ALPHA / 2)
SIZES = [
    (2000, 1e-4), (2000, 1e-3), (2000, 0.0039), (2000, 0.02), (2000, 0.1), (2000, 0.3), (2000, 0.5),
    (2000, 0.75), (2000, 0.9), (2000, 0.99), (20_000, 1e-4), (20_000, 1e-3), (20_000, 0.01),
]  # fmt: skip


def edges(n, prob, seed, corder=False):
    """List row and column of all edges, and the probability that was really asked for."""
    A = be.JITCScalarR((1.0, prob, seed), shape=(n, n), corder=corder).tocsr()
    degree = np.diff(np.asarray(A.indptr))
    return np.repeat(np.arange(n), degree), np.asarray(A.indices), float(np.float32(prob))


def seed_of(n, prob):
    """Take another seed for each size: matrices of one seed have their random numbers in common."""
    return SIZES.index((n, prob)) + 1000


def expect_binomial(counts, trials, p, what):
    """Compare counts with the binomial distribution by spread, by histogram, and by KS."""
    mean, variance = trials * p, trials * p * (1 - p)
    spread = ((counts - mean) ** 2).sum() / variance
    tails = stats.chi2.cdf(spread, counts.size), stats.chi2.sf(spread, counts.size)
    assert min(tails) > ALPHA / 2, f'{what}: spread'

    law = stats.binom(trials, p)
    ends = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
    observed = np.histogram(counts, [-1, *(ends + 0.5), trials + 1])[0]
    expected = counts.size * np.diff([0, *law.cdf(ends), 1])
    keep = expected > 0
    if keep.sum() > 1:
        assert stats.chisquare(observed[keep], expected[keep]).pvalue > ALPHA, f'{what}: histogram'

    # counts are whole numbers: a random place within each step makes them continuous
    below, step = law.cdf(counts - 1), law.pmf(counts)
    places = below + step * np.random.default_rng(0).random(counts.size)
    assert stats.kstest(places, 'uniform').pvalue > ALPHA, f'{what}: Kolmogorov-Smirnov'


@pytest.mark.parametrize(('n', 'prob'), SIZES)
def test_numbers_of_edges_and_degrees_are_binomial(n, prob):
    for corder in (False, True):
        row, col, p = edges(n, prob, seed_of(n, prob), corder)
        z = (row.size - n * n * p) / np.sqrt(n * n * p * (1 - p))
        assert abs(z) < SIGMAS, f'{z} standard deviations'
        expect_binomial(np.bincount(row, minlength=n), n, p, 'out-degree')
        expect_binomial(np.bincount(col, minlength=n), n, p, 'in-degree')


@pytest.mark.parametrize(('n', 'prob'), [(20_000, 0.01), (2000, 0.3), (2000, 0.9)])
def test_no_place_in_a_block_is_special(n, prob):
    """Where edges stand within the blocks in which they are drawn shows nothing of the blocks."""
    row, col, p = edges(n, prob, 7)
    for width in (64, 128, 1024, 4096):
        if width <= n // 4:
            whole = n // width * width
            counts = np.bincount(col[col < whole] % width, minlength=width)
            expect_binomial(counts, n * whole // width, p, f'blocks of {width}')


def shared(one, other, n):
    """Count places that hold an edge in both of two lists of edges."""
    return np.intersect1d(one[0] * n + one[1], other[0] * n + other[1], assume_unique=True).size


@pytest.mark.parametrize(('n', 'prob'), [(2000, 0.02), (1500, 0.3), (1000, 0.9), (20_000, 1e-3)])
def test_neighbours_are_independent(n, prob):
    row, col, p = edges(n, prob, 11)
    row, col = row.astype(np.int64), col.astype(np.int64)
    for i, j in [(0, 1), (0, 2), (0, 64), (1, 0), (2, 0), (256, 0), (1, 1), (1, -1), (64, 64)]:
        first, last = max(j, 0), n + min(j, 0)  # columns that have a neighbour
        here = (row >= i) & (col >= first) & (col < last)
        moved = (row + i < n) & (col + j >= first) & (col + j < last)
        common = shared((row[here], col[here]), (row[moved] + i, col[moved] + j), n)
        pairs = (n - i) * (last - first)
        surplus = common - p * (here.sum() + moved.sum()) + p**2 * pairs
        z = surplus / np.sqrt(pairs) / (p * (1 - p))
        assert abs(z) < SIGMAS, f'lag {i}, {j}: {z} standard deviations'


@pytest.mark.parametrize(('n', 'prob'), [(2000, 0.05), (1000, 0.5), (20_000, 1e-3)])
def test_seeds_are_independent(n, prob):
    """Seeds next to each other, far from each other, and those that differ in the upper word."""
    seeds = [0, 1, 2, -1, 2**31 - 1, 2**32, 2**63]
    lists = [tuple(part.astype(np.int64) for part in edges(n, prob, s)[:2]) for s in seeds]
    p = float(np.float32(prob))
    for k, one in enumerate(lists):
        for other in lists[k + 1 :]:
            common = shared(one, other, n)
            chance = one[0].size * other[0].size / n**2
            z = (common - chance) / np.sqrt(n * n * p**2 * (1 - p) ** 2)
            assert abs(z) < SIGMAS, f'{z} standard deviations'


def values(A):
    """Return the weights of all edges in double precision, and the gaps before them."""
    A = A.tocsr()
    col = np.asarray(A.indices).astype(np.int64)
    gaps = np.diff(col, prepend=0)
    gaps[np.asarray(A.indptr)[:-1].clip(max=col.size - 1)] = 0
    return np.asarray(A.data, np.float64), gaps


def test_normal_weights_to_five_standard_deviations():
    x, gaps = values(be.JITCNormalR((0.0, 1.0, 0.1, 21), shape=(8000, 8000)))
    n = x.size
    assert n > 6_000_000
    for k, moment in ((1, 0), (2, 1), (3, 0), (4, 3), (6, 15)):
        error = np.sqrt((stats.norm.moment(2 * k) - moment**2) / n)
        assert abs((x**k).mean() - moment) < SIGMAS * error, f'moment {k}'
    for side in (x, -x):
        for s in (1, 2, 3, 4, 4.5, 5):
            expected = n * stats.norm.sf(s)
            assert min(stats.poisson.cdf(np.sum(side > s), expected),
                       stats.poisson.sf(np.sum(side > s) - 1, expected)) > ALPHA / 2, s  # fmt: skip
    assert stats.kstest(x[:1_000_000], 'norm').pvalue > ALPHA
    independent(x, gaps)


def test_uniform_weights():
    x, gaps = values(be.JITCUniformR((-1.0, 3.0, 0.01, 22), shape=(20_000, 20_000)))
    u = (x + 1) / 4
    assert u.min() >= 0 and u.max() <= 1
    assert stats.kstest(u[:1_000_000], 'uniform').pvalue > ALPHA
    counts = np.histogram(u, 256, (0, 1))[0]
    assert stats.chisquare(counts).pvalue > ALPHA
    independent(x, gaps)


def independent(x, gaps):
    """A weight tells nothing of the gap before its edge, of its neighbour's weight or the next."""
    rank = np.where(gaps > np.median(gaps), 1.0, -1.0)
    scaled = (x - x.mean()) / x.std()
    for what, other in (('gap', rank), ('next', np.roll(scaled, 1)), ('after', np.roll(scaled, 2))):
        z = (scaled * (other - other.mean())).sum() / np.sqrt(x.size) / other.std()
        assert abs(z) < SIGMAS, what


@pytest.mark.parametrize('prob', [1e-4, 0.02, 0.3, 0.9, 0.999])
def test_every_backend_has_the_same_matrix(prob):
    grids = [
        be.JITCUniformR((1.0, 2.0, prob, 5), shape=(2000, 2000), backend=b).todense()
        for b in ('numba', 'jax_raw')
    ]
    np.testing.assert_array_equal(grids[0] != 0, grids[1] != 0)
    np.testing.assert_allclose(*grids, rtol=1e-6)


@pytest.mark.slow
def test_large_network_in_bounded_memory():
    """COBA of 400,000 neurons and 1.6e9 synapses: a stored matrix would take 13 GB.

    Conductances are scaled down with the number of synapses from 80, as in the benchmark of
    Brette et al. (2007), J. Comput. Neurosci. 23, 349-398, on which the network is modelled.
    """
    n, excitatory, per_neuron, steps = 400_000, 320_000, 4000, 200
    scale = 80 / per_neuron
    prob = per_neuron / n
    to_all = [(6.0 * scale, excitatory, 1), (67.0 * scale, n - excitatory, 2)]
    E, I = (be.JITCScalarR((w, prob, s), shape=(m, n)) for w, m, s in to_all)  # noqa: E741

    def step(state, key):
        v, ge, gi, wait, rate = state
        ge, gi = ge * jnp.exp(-0.1 / 5), gi * jnp.exp(-0.1 / 10)
        current = (ge * (0.0 - v) + gi * (-80.0 - v)) / 10.0
        v = jnp.where(wait > 0, -60.0, v + 0.1 / 20 * (-60.0 - v + 20.0 + current))
        fired = v > -50.0
        wait = jnp.where(fired, 50, wait - 1)
        v = jnp.where(fired, -60.0, v)
        ge = ge + be.BinaryArray(fired[:excitatory]) @ E
        gi = gi + be.BinaryArray(fired[excitatory:]) @ I
        return (v, ge, gi, wait, rate + fired.sum()), None

    v, ge, gi = (jax.random.normal(key, n) for key in jax.random.split(jax.random.key(0), 3))
    conductances = jnp.maximum(40 + 15 * ge, 0), jnp.maximum(200 + 120 * gi, 0)
    start = (5 * v - 55, *conductances, jnp.zeros(n, jnp.int32), jnp.int32(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = jax.jit(lambda s: jax.lax.scan(step, s, None, steps)[0])
    state = jax.block_until_ready(run(start))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    rate = float(state[-1]) / n / (steps * 1e-4)
    assert np.isfinite(np.asarray(state[0])).all() and 1 < rate < 200
    assert grown < 500, f'{grown} MiB'
