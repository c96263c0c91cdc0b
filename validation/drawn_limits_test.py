# SPDX-License-Identifier: Apache-2.0
"""Drawn matrices at the ends of what integers hold: long axes, odd probabilities, any seed.

Claims, each against the text of the model (`tests/drawn_model.py`) or a dense matrix:

1. An axis may be as long as 2**31 - 1, along streams and across them, and edges lie anywhere on it.
2. Any float32 is a probability: it draws with what it is, up to the last one below 1 and down to
   2**-57, below which it counts as 0: a matrix of 1e12 positions would have an edge once in 100,000
   times. All positions of a line are equally probable, however rare its edges. Where it is traced
   and none (NaN, negative) there are no edges; above 1 there are all.
3. A seed is its value modulo 2**64, whatever type it comes in, concrete, traced or mapped.
4. Entry (i, j) stays the same when a matrix grows. Sides may be empty.
5. Both orientations multiply from both sides in every precision as their dense matrix does.

Tolerance: numbers of edges fail by chance once in 10,000 times; products of 16 bits within 2**-8
(bfloat16) or 2**-10 of the largest sum, float32 within 1e-5, float64 within 1e-13. Seeds are fixed.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import brainevent as be
from brainevent._edge import random
from tests.drawn_model import drawn_edges

ALPHA = 1e-4
LONGEST = 2**31 - 1
BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))


def slow(*cases):
    """Mark what is left to the nightly run."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def expect_poisson(found, expected):
    """Take a number of rare things that chance explains."""
    ends = stats.poisson.cdf(found, expected), stats.poisson.sf(found - 1, expected)
    assert 2 * min(ends) > ALPHA, f'{found} where {expected} were expected'


# ---- long axes -----------------------------------------------------------------------------------


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
@pytest.mark.parametrize('prob', [1e-6, *slow(1e-8, 1e-12)])
def test_streams_of_2_to_the_31(backend, prob):
    words, p = random.seed_words(3), np.float32(prob)
    row, col, *_ = drawn_edges(np.float32([prob]), words, (4, LONGEST))
    with be.use_backend('cpu', backend):
        A = be.JITCScalarR((1.0, prob, 3), shape=(4, LONGEST)).tocsr()
        B = be.JITCScalarR((1.0, prob, 3), shape=(LONGEST, 4), corder=True).tocsc()
    for M in (A, B):
        np.testing.assert_array_equal(np.diff(M.indptr), np.bincount(row, minlength=4))
        np.testing.assert_array_equal(M.indices, col)
    expect_poisson(col.size, 4 * LONGEST * float(p))
    if col.size > 100:
        assert col.max() > 0.9 * LONGEST and stats.kstest(col / LONGEST, 'uniform').pvalue > ALPHA


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
@pytest.mark.parametrize(('prob', 'lines'), [(1e-9, 2_000), (2.0**-40, 1_000_000)])
def test_every_position_of_a_rare_edge_is_as_probable(prob, lines, backend):
    A = be.JITCScalarR((1.0, prob, 11), shape=(lines, LONGEST), backend=backend).tocsr()
    col = np.asarray(A.indices)
    expect_poisson(col.size, lines * LONGEST * float(np.float32(prob)))
    assert stats.kstest(col / LONGEST, 'uniform').pvalue > ALPHA
    for divisor in (2, 3, 5, 64, 256):  # gaps in units of 2**-32 left most of them out
        assert stats.chisquare(np.bincount(col % divisor, minlength=divisor)).pvalue > ALPHA


@pytest.mark.slow
def test_lines_of_2_to_the_31():
    """Two gigabytes of events, of which three are active: the first, a middle and the last one."""
    active = np.array([0, 2**30 + 5, LONGEST - 1])
    events = np.zeros(LONGEST, bool)
    events[active] = True
    events = be.BinaryArray(jnp.asarray(events))
    keys = random.stream_key(tuple(np.repeat(random.seed_words(3)[:, None], 3, 1)),
                             active.astype(np.uint32))  # fmt: skip
    rule = random.rule_of(np.full(3, 0.3, np.float32).view(np.uint32))
    state, place = random.block_key(keys, np.zeros(3, np.uint32)), np.zeros(3, np.uint32)
    want = np.zeros((3, 40))
    while (place < 40).any():
        state, key = random.next_key(state)
        place = place + random.gap(rule, key)
        inside = place < 40
        want[np.arange(3)[inside], place[inside]] = 1
        place = np.where(inside, place + np.uint32(1), np.uint32(40))
    got = events @ be.JITCScalarR((1.0, 0.3, 3), shape=(LONGEST, 40))
    np.testing.assert_array_equal(got, want.sum(0))
    got = be.JITCScalarR((1.0, 0.3, 3), shape=(40, LONGEST), corder=True) @ events
    np.testing.assert_array_equal(got, want.sum(0))


# ---- probabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize('prob', [0.99999, *slow(0.999999, BELOW_ONE)])
def test_probabilities_just_below_one_leave_few_places_out(prob):
    shape, rest = (200, 100_000), 1 - float(np.float32(prob))
    for corder in (False, True):
        A = be.JITCScalarR((1.0, prob, 8), shape=shape, corder=corder)
        sums = np.asarray(A @ jnp.ones(shape[1]), np.float64)
        others = np.asarray(jnp.ones(shape[0]) @ A, np.float64)
        missing = np.prod(shape) - sums.sum()
        assert missing == np.prod(shape) - others.sum()
        expect_poisson(missing, np.prod(shape) * rest)


def test_probabilities_of_every_kind():
    """Concrete ones are checked; traced ones, mapped ones too, show in results that are NaN."""
    shape = (50, 600)

    def count(prob):
        A = be.JITCScalarR((1.0, prob, 5), shape=shape)
        return A.todense().sum(), (A @ jnp.ones(600)).sum(), (jnp.ones(50) @ A).sum()

    none = [0.0, -0.0, 1e-40, 1e-45, 1e-30, 2.0**-58, 1e-12]
    all_edges = [1.0, 1 - 1e-9]
    invalid = [np.nan, -1.0, -np.inf, 2.0, np.inf, 3e38]
    got = np.asarray(jax.jit(jax.vmap(count))(np.float32([*none, *all_edges, *invalid])))
    assert not got[:, : len(none)].any()
    assert (got[:, len(none) : -len(invalid)] == 50 * 600).all()
    assert np.isnan(got[:, -len(invalid) :]).all()
    for prob in (*none, *all_edges, *invalid):
        if 0 <= prob <= 1:
            assert {float(x) for x in count(prob)} == {float(prob > 0.5) * 50 * 600}
        else:
            with pytest.raises(be.OptionError, match='no probability'):
                count(prob)


def test_float64_probabilities_are_those_of_float32():
    with jax.enable_x64(True):
        A, B = (be.JITCScalarR((1.0, p, 5), shape=(50, 60)) for p in (0.3, np.float32(0.3)))
        assert A.prob.dtype == jnp.float64
        np.testing.assert_array_equal(A.todense(), B.todense())


# ---- seeds ---------------------------------------------------------------------------------------

EDGE_SEEDS = [
    0,
    7,
    -1,
    -(2**31),
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32 + 7,
    2**63 - 1,
    2**63,
    -(2**63),
]
TYPES = [np.int8, np.int16, np.int32, np.uint32, np.int64, np.uint64]


def pattern(seed):
    """Return a matrix large enough that two seeds cannot agree by chance."""
    return be.JITCScalarR((1.0, 0.3, seed), shape=(6, 70)).todense()


def test_seeds_are_whole_numbers_of_64_bits():
    """Negative ones stand for their two's complement; none is reduced in silence."""
    for beyond in (2**64, -(2**64) + 7):
        with pytest.raises(be.OptionError, match='64 bits'):
            pattern(beyond)
    grids = {s: np.asarray(pattern(s)) for s in (*EDGE_SEEDS, 2**64 - 1)}
    for one, other in itertools.combinations(grids, 2):
        same = (one - other) % 2**64 == 0
        assert (grids[one] == grids[other]).all() == same, (one, other)


@pytest.mark.parametrize('x64', [False, True])
def test_a_seed_is_the_same_in_every_type(x64):
    grids = {s: np.asarray(pattern(s)) for s in EDGE_SEEDS}
    with jax.enable_x64(x64):
        traced, mapped = jax.jit(pattern), jax.jit(jax.vmap(pattern))
        for kind in TYPES:
            held = [s for s in EDGE_SEEDS if np.iinfo(kind).min <= s <= np.iinfo(kind).max]
            for seed in held:
                np.testing.assert_array_equal(pattern(kind(seed)), grids[seed])
                np.testing.assert_array_equal(pattern(np.array([seed], kind)), grids[seed])
            if x64 or np.dtype(kind).itemsize < 8:  # JAX cuts off larger ones by itself
                many = np.array(held, kind)
                np.testing.assert_array_equal(mapped(many), np.stack([grids[s] for s in held]))
                np.testing.assert_array_equal(traced(many[-1]), grids[held[-1]])
                np.testing.assert_array_equal(pattern(jnp.asarray(many[0])), grids[held[0]])


# ---- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize('prob', [0.3, *slow(0.004, 0.97)])
@pytest.mark.parametrize('corder', [False, True])
def test_entries_stay_when_a_matrix_grows(prob, corder):
    def dense(shape, backend=None):
        options = {'shape': shape, 'corder': corder, 'backend': backend}
        return np.asarray(be.JITCNormalR((1.0, 2.0, prob, -9), **options).todense())

    large = dense((301, 4500))
    for m, n in [(1, 1), (1, 4500), (301, 1), (64, 64), (63, 65), (300, 4097), (2, 128)]:
        np.testing.assert_array_equal(dense((m, n)), large[:m, :n])
    np.testing.assert_allclose(dense((20, 130), 'jax_raw'), large[:20, :130], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('shape', [(0, 5), (5, 0), *slow((0, 0))])
@pytest.mark.parametrize('backend', ['jax_raw', *slow('numba')])
def test_empty_sides(shape, backend):
    m, n = shape
    for corder in (False, True):
        A = be.JITCNormalR((1.0, 2.0, 0.5, 1), shape=shape, corder=corder, backend=backend)
        assert A.nse == 0 and A.todense().shape == shape
        for listed in (A.tocsr(), A.tocsc(), A.tocoo(), jax.jit(lambda A: A.tocsr(3))(A)):
            assert listed.todense().shape == shape
        np.testing.assert_array_equal(A @ jnp.ones(n), np.zeros(m))
        np.testing.assert_array_equal(jnp.ones((2, m)) @ A, np.zeros((2, n)))
        np.testing.assert_array_equal(be.BinaryArray(jnp.ones(m, bool)) @ A, np.zeros(n))
        assert (A @ jnp.ones((n, 0))).shape == (m, 0)


# ---- precisions ----------------------------------------------------------------------------------

ROUNDING = {'bfloat16': 2.0**-8, 'float16': 2.0**-10, 'float32': 1e-5, 'float64': 1e-13}
KINDS = {'JITCScalarR': (0.75,), 'JITCNormalC': (0.5, 2.0), 'JITCUniformR': (-1.0, 2.0)}
SHAPE = (90, 130)


def weigh(kind, dtype, corder, backend):
    """Make a matrix whose weights are of a dtype."""
    params = (jnp.asarray(p, dtype) for p in KINDS[kind])
    options = {'shape': SHAPE, 'corder': corder, 'backend': backend}
    return getattr(be, kind)((*params, 0.3, 12), **options)


@pytest.mark.parametrize('backend', ['numba', *slow('jax_raw')])
@pytest.mark.parametrize('dtype', ['bfloat16', *slow('float16', 'float32', 'float64')])
@pytest.mark.parametrize('kind', ['JITCNormalC', *slow('JITCScalarR', 'JITCUniformR')])
def test_both_sides_of_both_orientations_in_every_precision(kind, dtype, backend):
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-3, 4, n) for n in SHAPE[::-1])
    with jax.enable_x64(dtype == 'float64'):
        for corder in (False, True):
            A = weigh(kind, dtype, corder, backend)
            wide = 'float64' if dtype == 'float64' else 'float32'
            D, exact = (
                np.asarray(weigh(kind, t, corder, backend).todense(), np.float64)
                for t in (dtype, wide)
            )
            assert A.dtype == jnp.dtype(dtype)
            np.testing.assert_array_equal(D != 0, exact != 0)
            np.testing.assert_allclose(D, exact, rtol=2 * ROUNDING[dtype])
            cases = [
                (A @ jnp.asarray(x, dtype), exact @ x, np.abs(exact) @ np.abs(x)),
                (jnp.asarray(y, dtype) @ A, y @ exact, np.abs(y) @ np.abs(exact)),
                (A @ be.BinaryArray(jnp.asarray(x)), exact @ (x > 0), np.abs(exact) @ (x > 0)),
                (be.BinaryArray(jnp.asarray(y)) @ A, (y > 0) @ exact, (y > 0) @ np.abs(exact)),
            ]
            for got, want, size in cases:
                assert got.dtype == jnp.dtype(dtype)
                error = np.abs(np.asarray(got, np.float64) - want).max()
                assert error <= 2 * ROUNDING[dtype] * size.max()
