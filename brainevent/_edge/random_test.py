# SPDX-License-Identifier: Apache-2.0
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from brainevent._edge import random
from tests.drawn_model import FILE, golden

MASK = 2**64 - 1


def plain_mix(z):
    """SplitMix64's output function on whole numbers, from the paper."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def plain_draw(key, i):
    return plain_mix((key + (i + 1) * 0x9E3779B97F4A7C15) & MASK)


def words(values):
    values = [int(v) for v in values]
    return tuple(np.array([(v >> s) & 0xFFFFFFFF for v in values], np.uint32) for s in (32, 0))


def whole(pair):
    return [(int(h) << 32) | int(low) for h, low in zip(*pair, strict=True)]


def rules(prob, count=1):
    bits = np.full(count, prob, np.float32).view(np.uint32)
    return random.rule_of(bits)


def test_generator_gives_the_published_sequence():
    key = words([1234567] * 5)
    want = [
        6457827717110365317, 3203168211198807973, 9817491932198370423,
        4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
    assert whole(random.draw(key, np.arange(5, dtype=np.uint32))) == want
    assert [plain_draw(1234567, i) for i in range(5)] == want


def test_tree_of_keys():
    seed = 2**63 + 12345
    stream = plain_draw(plain_draw(seed, 0), 77)
    block = plain_draw(stream, 5)
    one = np.ones(1, np.uint32)
    got_stream = random.stream_key(words([seed]), one * np.uint32(77))
    got_block = random.block_key(got_stream, one * np.uint32(5))
    assert whole(got_stream) == [stream] and whole(got_block) == [block]
    state, key = random.next_key(random.next_key(got_block)[0])
    assert whole(key) == [plain_draw(block, 1)]
    assert whole(state) == [(block + 2 * 0x9E3779B97F4A7C15) & MASK]


def test_table_entries_are_far_from_ties():
    for i in range(1024):
        exact = math.log(2048 / (2048 - i)) * 2**32
        assert abs(exact - math.floor(exact) - 0.5) > 1e-4


def test_exponential_numbers_are_exact_to_a_few_units():
    rng = np.random.default_rng(0)
    v, low = rng.integers(0, 2**32, (2, 100_000), np.uint32)
    low[:3], v[-2:] = (0, 1, 2**31), (0, 2**32 - 1)
    zeros = np.array([(int(x) & -int(x)).bit_length() - 1 if x else 32 for x in low])
    high, rest = random._exponential(random._zeros_below(low), v)
    got = (high.astype(float) * 2**32 + rest) / 2**32
    want = zeros * math.log(2) - np.log1p(-v.astype(float) / 2**33)
    units = np.abs(got - want) * 2**32  # log(2) is rounded, and counts as often as there are zeros
    assert (units < 3 + zeros / 2).all()


def test_mean_gap_is_that_of_the_probability():
    near_one = 1 - np.logspace(-7, -1, 500)
    probs = np.concatenate([np.logspace(-17, -0.001, 2000), near_one, [0.5, 0.25, 2.0**-57]])
    probs = probs.astype(np.float32)
    rule = random.rule_of(probs.view(np.uint32))
    below = probs < 1
    down = rule.shift[below].astype(int) - rule.rest[below]  # groups of 2**rest positions
    mean = rule.mantissa[below] * 2.0 ** (32 - down)
    rate = -np.log1p(-probs[below].astype(float))
    assert np.abs(mean * rate - 1).max() < 2e-8
    edges = 2.0 ** rule.width[below] * rate
    wide = (rule.width[below] > random.NARROWEST) & (rule.width[below] < random.WIDEST)
    assert edges[wide].min() >= 32 and edges[wide].max() <= 64


@pytest.mark.parametrize('prob', [0.0, -0.0, -1.0, float('nan'), 1e-30, 1e-40, -float('inf')])
def test_what_is_no_probability_gives_no_edges(prob):
    rule = rules(prob)
    assert random.blocks(rule, np.uint32(1000)) == 0
    assert random.gap(rule, words([0])) == random.FAR


@pytest.mark.parametrize('prob', [1.0, 2.0, float('inf')])
def test_certain_edges_leave_no_gap(prob):
    keys = words(plain_draw(3, i) for i in range(100))
    assert not random.gap(rules(prob, 100), keys).any()
    assert not random.gap(rules(prob), words([MASK - 2**32 + 1])).any()


@pytest.mark.parametrize(
    'prob', [2.0**-57, 2.0**-40, 1e-9, 2.0**-23, 1e-5, 0.02, 0.3, 0.9, 0.999999]
)
def test_gaps_by_plain_arithmetic(prob):
    keys = [plain_draw(9, i) for i in range(200)] + [0, MASK, 2**63, MASK - 2**32 + 1]
    rule = rules(prob, len(keys))
    table = random.exponential_table().tolist()
    want = []
    for key in keys:
        v, low = key >> 32, key & 0xFFFFFFFF
        zeros = (low & -low).bit_length() - 1 if low else 32
        value, slope = table[v >> 22]
        y = (slope * (v & (2**22 - 1))) >> 22
        e = zeros * int(random.LN2) + value + ((y + (y * y >> 43)) >> 10)
        groups, rest = (e * int(rule.mantissa[0])) >> int(rule.shift[0]), int(rule.rest[0])
        place = plain_draw(key, 2) >> (64 - rest)
        want.append(min((groups << rest) + place, 2**31))
    assert random.gap(rule, words(keys)).tolist() == want


@pytest.mark.parametrize('prob', [0.001, 0.1, 0.5, 0.95])
def test_gaps_are_geometric(prob):
    n = 200_000
    keys = random.draw(words([int(1e6 * prob)] * n), np.arange(n, dtype=np.uint32))
    gaps = random.gap(rules(prob, n), keys)
    ends = np.unique(np.linspace(0, stats.geom.ppf(0.999, prob), 30).astype(int))
    observed = np.histogram(gaps, [*ends, 2**32])[0]
    tail = (1 - np.float64(np.float32(prob))) ** np.append(ends, np.inf)
    _, p = stats.chisquare(observed, n * -np.diff(tail))
    assert p > 1e-3


@pytest.mark.parametrize('prob', [2.0**-40, 1e-9, 1e-8, 2.0**-23])
def test_rare_gaps_take_every_value(prob):
    """No position is more probable than its neighbours: gaps are no multiples of anything."""
    n = 1_000_000
    keys = random.draw(words([7] * n), np.arange(n, dtype=np.uint32))
    gaps = random.gap(rules(prob, n), keys)
    near = gaps[gaps < random.FAR]
    rate = -math.log1p(-float(np.float32(prob)))
    expected = n * -math.expm1(-rate * 2**31)
    assert abs(near.size - expected) < 5 * math.sqrt(expected)
    for divisor in (2, 3, 5, 64, 256):
        observed = np.bincount(near % divisor, minlength=divisor)
        assert stats.chisquare(observed).pvalue > 1e-3, divisor


def test_jax_draws_the_same_bits():
    keys = words(plain_draw(5, i) for i in range(500))
    bits = np.linspace(0x20000000, 0x40000000, 500).astype(np.uint32)
    rule = random.rule_of(bits)
    assert (rule.rest > 0).any() and (rule.rest == 0).any()

    @jax.jit
    def run(bits, *keys):
        rule = random.rule_of(bits)
        return (
            rule,
            random.gap(rule, keys),
            random.unit(keys, 'float32'),
            random.gauss(keys, 'float32'),
        )

    got_rule, gap, unit, gauss = run(jnp.asarray(bits), *map(jnp.asarray, keys))
    for got, want in zip(got_rule, rule, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(gap, random.gap(rule, keys))
    np.testing.assert_array_equal(unit, random.unit(keys, np.float32))
    np.testing.assert_allclose(gauss, random.gauss(keys, np.float32), rtol=2e-6)


def test_golden_vectors():
    stored, now = json.loads(FILE.read_text(encoding='utf-8')), golden()
    gauss = stored.pop('gauss'), now.pop('gauss')
    assert stored == now
    np.testing.assert_allclose(*gauss, rtol=1e-14)


def keys_whose_word_is(word):
    """Find keys whose number is made of a word: draw is a bijection, run it backwards."""
    z = int(word) << 32
    for shift, inverse in ((31, 0x319642B2D24D8EC3), (27, 0x96DE1B173F119089), (30, 1)):
        x = z
        for _ in range(3):
            x = z ^ (x >> shift)
        z = (x * inverse) & MASK
    return (z - 0x9E3779B97F4A7C15) & MASK


def test_normal_numbers_invert_the_distribution_to_their_tails():
    sample = np.random.default_rng(1).integers(0, 2**32, 5000)
    word = np.concatenate(
        [[0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], 2 ** np.arange(31), sample]
    )
    keys = words(keys_whose_word_is(w) for w in word)
    np.testing.assert_array_equal(random.draw(keys, np.uint32(0))[0], word)
    want = stats.norm.ppf((word + 0.5) / 2**32)
    want[-5000 - 31 - 2 :] = -stats.norm.ppf((2**32 - word[-5000 - 31 - 2 :] - 0.5) / 2**32)
    np.testing.assert_allclose(random.gauss(keys, np.float64), want, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(random.gauss(keys, np.float32), want, rtol=3e-6)
    assert want.max() > 6 and want.min() < -6


def test_uniform_numbers_are_of_32_bits():
    word = np.array([0, 1, 2**31, 2**32 - 1])
    keys = words(keys_whose_word_is(w) for w in word)
    np.testing.assert_array_equal(random.unit(keys, np.float64), word / 2**32)
    np.testing.assert_array_equal(random.unit(keys, np.float32), (word / 2**32).astype(np.float32))


@pytest.mark.parametrize('seed', [0, 7, -1, -(2**31), 2**31 - 1])
def test_a_seed_means_the_same_in_every_type(seed):
    want = random.seed_words(seed)
    assert whole((want[:1], want[1:])) == [seed % 2**64]
    np.testing.assert_array_equal(random.seed_words(jnp.int32(seed)), want)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(random.seed_words(jnp.int64(seed)), want)
        assert random.seed_words(jnp.int64(2**40 + 3)).tolist() == [256, 3]
