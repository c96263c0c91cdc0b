# SPDX-License-Identifier: Apache-2.0
"""Drawn connectivity is what it says: independent edges of the asked probability, with weights.

Claims, of matrices of 2,000 and 20,000 neurons and probabilities from 1e-4 to 0.99. Every edge is
an independent Bernoulli trial (Gilbert 1959, Ann. Math. Stat. 30:1141-1144, the model G(n, p)),
hence:

1. The number of edges, out-degrees and in-degrees are binomial: by their spread (chi-square), their
   histogram (chi-square), and their order (Kolmogorov-Smirnov, ranks made continuous at random).
2. No place within the blocks in which edges are drawn is special.
3. Neighbours in a row, rows, columns, and matrices of two seeds share as many edges as chance has
   it: at single distances, and by the correlations of all pairs of rows or columns together.
4. Weights follow their distribution, by moments, Kolmogorov-Smirnov, and the numbers beyond one to
   five standard deviations, and depend neither on the gap before their edge nor on each other.

They are shown on the default backend; `drawn_backends_test.py` shows that edges, keys and weights
are the same on all others.

Tolerance: each comparison fails by chance once in 10,000 times (`ALPHA`). There are about 600, so
with other seeds one would fail in every seventeenth run. Seeds are fixed: the outcome is too.
"""

import resource

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import brainevent as be
from brainevent._edge import random

ALPHA = 1e-4
QUICK = [(2000, 1e-4), (2000, 0.02), (2000, 0.5), (2000, 0.99), (20_000, 1e-3)]
SLOW = [
    (2000, 1e-3), (2000, 0.0039), (2000, 0.1), (2000, 0.3), (2000, 0.75), (2000, 0.9),
    (20_000, 1e-4), (20_000, 0.01), (20_000, 0.1), (20_000, 0.5), (20_000, 0.9), (20_000, 0.99),
]  # fmt: skip
SIZES = QUICK + SLOW


def quick_and_slow(quick, slow):
    """Mark what takes more than a moment."""
    return [*quick, *(pytest.param(*case, marks=pytest.mark.slow) for case in slow)]


def accept(p_value, what):
    """Take a p-value that chance explains; ``pytest -rP`` shows all of them."""
    print(f'{what}: p = {p_value:.2g}')
    assert p_value > ALPHA, what


def accept_normal(z, what):
    """Take a number of standard deviations that chance explains."""
    accept(2 * stats.norm.sf(abs(z)), what)


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
    accept(2 * min(tails), f'{what}, spread')

    law = stats.binom(trials, p)
    ends = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
    observed = np.histogram(counts, [-1, *(ends + 0.5), trials + 1])[0]
    expected = counts.size * np.diff([0, *law.cdf(ends), 1])
    keep = expected > 0
    if keep.sum() > 1:
        # the sums agree but for what lies beyond a float
        expected = expected[keep] * (counts.size / expected[keep].sum())
        accept(stats.chisquare(observed[keep], expected).pvalue, f'{what}, histogram')

    # counts are whole numbers: a random place within each step makes them continuous
    below, step = law.cdf(counts - 1), law.pmf(counts)
    places = below + step * np.random.default_rng(0).random(counts.size)
    accept(stats.kstest(places, 'uniform').pvalue, f'{what}, Kolmogorov-Smirnov')


def degrees(n, prob, seed, corder):
    """Count the edges of every row and column; sums of ones are exact up to 2**24."""
    A = be.JITCScalarR((1.0, prob, seed), shape=(n, n), corder=corder)
    ones = jnp.ones(n)
    return tuple(np.asarray(y).astype(np.int64) for y in (A @ ones, ones @ A))


@pytest.mark.parametrize(('n', 'prob'), quick_and_slow(QUICK, SLOW))
def test_numbers_of_edges_and_degrees_are_binomial(n, prob):
    p = float(np.float32(prob))
    for corder in (False, True):
        outs, ins = degrees(n, prob, seed_of(n, prob) + 100 * corder, corder)
        assert outs.sum() == ins.sum()
        z = (outs.sum() - n * n * p) / np.sqrt(n * n * p * (1 - p))
        accept_normal(z, 'number of edges')
        expect_binomial(outs, n, p, 'out-degree')
        expect_binomial(ins, n, p, 'in-degree')


@pytest.mark.parametrize('prob', [0.02, 0.3])
def test_degrees_are_those_of_the_listed_edges(prob):
    """What the degrees above count is what is listed, in both orientations."""
    for corder in (False, True):
        row, col, _ = edges(2000, prob, 5, corder)
        outs, ins = degrees(2000, prob, 5, corder)
        np.testing.assert_array_equal(outs, np.bincount(row, minlength=2000))
        np.testing.assert_array_equal(ins, np.bincount(col, minlength=2000))


@pytest.mark.parametrize(
    ('n', 'prob'), quick_and_slow([(2000, 0.3)], [(20_000, 0.01), (2000, 0.9)])
)
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


@pytest.mark.parametrize(
    ('n', 'prob'), quick_and_slow([(2000, 0.02), (1000, 0.9)], [(1500, 0.3), (20_000, 1e-3)])
)
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
        accept_normal(z, f'distance {i}, {j}')


def expect_independent(one, other, p, what):
    """Compare the edges that any row of one matrix shares with any of another, or of its own.

    With f the fourth moment of a standardised place, a correlation S of n places has E S**2 = 1,
    Var S**2 = 2 + (f**2 - 3) / n, and Cov = (f - 1) / n with the square of another pair that has
    one of its rows. The largest and the smallest number of shared edges are binomial: tails are
    summed up.
    """
    n, own = one.shape[0], np.shares_memory(one, other)
    common = (one @ other.T).astype(np.float64)
    degrees = one.sum(1, dtype=np.float64)[:, None] + other.sum(1, dtype=np.float64)
    square = np.square((common - p * degrees + n * p**2) / (np.sqrt(n) * p * (1 - p)))
    if own:
        pairs = np.triu_indices(n, 1)
        common, square = common[pairs], square[pairs]
    f = (1 - 3 * p * (1 - p)) / (p * (1 - p))
    with_one_in_common = n * (n - 1) * (n - 2) if own else 2 * n**2 * (n - 1)
    variance = square.size * (2 + (f**2 - 3) / n) + with_one_in_common * (f - 1) / n
    accept_normal((square.sum() - square.size) / np.sqrt(variance), f'{what}, correlations')
    law = stats.binom(n, p**2)
    ends = law.sf(common.max() - 1), law.cdf(common.min())
    accept(min(1, 2 * square.size * min(ends)), f'{what}, {common.min()} to {common.max()} shared')


@pytest.mark.parametrize(
    ('n', 'prob'), quick_and_slow([(1000, 0.1)], [(4000, 0.02), (4000, 0.5), (4000, 0.9)])
)
def test_all_pairs_of_lines_are_independent(n, prob):
    """All pairs of rows, of columns, and of lines of matrices of neighbouring seeds."""
    p = float(np.float32(prob))
    for corder in (False, True):
        X, Y = (
            np.asarray(be.JITCScalarR((1.0, prob, s), shape=(n, n), corder=corder).todense())
            for s in (31 + 10 * corder, 32 + 10 * corder)  # else one is the other's transpose
        )
        expect_independent(X, X, p, 'rows')
        expect_independent(X.T, X.T, p, 'columns')
        expect_independent(X, Y, p, 'rows of two seeds')
        expect_independent(X.T, Y.T, p, 'columns of two seeds')


@pytest.mark.parametrize(
    ('n', 'prob'), quick_and_slow([(1000, 0.05)], [(2000, 0.05), (1000, 0.5), (20_000, 1e-3)])
)
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
            accept_normal(z, 'seeds')


def values(A):
    """Return the weights of all edges in double precision, and the gaps before them."""
    A = A.tocsr()
    col = np.asarray(A.indices).astype(np.int64)
    gaps = np.diff(col, prepend=0)
    gaps[np.asarray(A.indptr)[:-1].clip(max=col.size - 1)] = 0
    return np.asarray(A.data, np.float64), gaps


def expect_normal(x, highest):
    """Compare numbers with the standard normal law by even and odd moments, and by their tails."""
    n = x.size
    for k, moment in ((1, 0), (2, 1), (3, 0), (4, 3), (6, 15)):
        error = np.sqrt((stats.norm.moment(2 * k) - moment**2) / n)
        accept_normal(((x**k).mean() - moment) / error, f'moment {k}')
    for side in (x, -x):
        for s in np.arange(1, highest + 0.5, 0.5):
            expected, found = n * stats.norm.sf(s), np.sum(side > s)
            ends = stats.poisson.cdf(found, expected), stats.poisson.sf(found - 1, expected)
            accept(2 * min(ends), f'{found} beyond {s}, {expected:.1f} expected')
    accept(stats.kstest(x[:1_000_000], 'norm').pvalue, 'Kolmogorov-Smirnov')


def test_normal_weights_to_five_standard_deviations():
    x, gaps = values(be.JITCNormalR((0.0, 1.0, 0.1, 21), shape=(6000, 6000)))
    assert x.size > 3_500_000
    expect_normal(x, 5)
    independent(x, gaps)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(4))
def test_normal_weights_of_native_code(seed):
    """64 million float32 numbers that native code puts into a dense matrix: 18 beyond five."""
    A = be.JITCNormalR((0.0, 1.0, 1.0, 5000 + seed), shape=(8000, 8000))
    expect_normal(np.asarray(A.todense()).ravel().astype(np.float64), 5.5)


def test_every_number_beyond_five_standard_deviations():
    """Weights are made of 32 bits: these are all words that lead there, and float32 is exact there.

    The word counts places of the uniform distribution: the number is the quantile in the middle.
    Tolerance: 4 units in the last place of a float32, which the arithmetic in float32 takes.
    """
    beyond = np.arange(1 << 11)
    for word in (beyond, 2**32 - 1 - beyond):
        got = random.gauss(keys_of_words(word), np.float32)
        assert got.dtype == np.float32
        want = np.copysign(stats.norm.isf((beyond + 0.5) / 2**32), word - 2.0**31)
        assert np.abs(want).min() < 5 < np.abs(want).max() < 6.4
        np.testing.assert_allclose(got, want, rtol=5e-7)
        assert (np.diff(np.abs(got.astype(np.float64))) <= 0).all()


def keys_of_words(word):
    """Find the keys of edges whose random words are these: the generator is a bijection."""
    mask, found = 2**64 - 1, []
    for w in map(int, word):
        z = w << 32
        for shift, inverse in ((31, 0x319642B2D24D8EC3), (27, 0x96DE1B173F119089), (30, 1)):
            x = z
            for _ in range(3):
                x = z ^ (x >> shift)
            z = x * inverse & mask
        found.append((z - 0x9E3779B97F4A7C15) & mask)
    return tuple(np.array([k >> s & 0xFFFFFFFF for k in found], np.uint32) for s in (32, 0))


@pytest.mark.parametrize('n', quick_and_slow([5000], [(20_000,)]))
def test_uniform_weights(n):
    x, gaps = values(be.JITCUniformR((-1.0, 3.0, 0.01, 22), shape=(n, n)))
    u = (x + 1) / 4
    assert u.min() >= 0 and u.max() <= 1
    accept(stats.kstest(u[:1_000_000], 'uniform').pvalue, 'Kolmogorov-Smirnov')
    accept(stats.chisquare(np.histogram(u, 256, (0, 1))[0]).pvalue, 'histogram')
    for k in (1, 2, 3, 4):
        error = np.sqrt((1 / (2 * k + 1) - 1 / (k + 1) ** 2) / u.size)
        accept_normal(((u**k).mean() - 1 / (k + 1)) / error, f'moment {k}')
    independent(x, gaps)


def independent(x, gaps):
    """A weight tells nothing of the gap before its edge, of its neighbour's weight or the next."""
    rank = np.where(gaps > np.median(gaps), 1.0, -1.0)
    scaled = (x - x.mean()) / x.std()
    for what, other in (('gap', rank), ('next', np.roll(scaled, 1)), ('after', np.roll(scaled, 2))):
        z = (scaled * (other - other.mean())).sum() / np.sqrt(x.size) / other.std()
        accept_normal(z, what)


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
