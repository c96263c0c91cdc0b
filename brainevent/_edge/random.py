# SPDX-License-Identifier: Apache-2.0
"""Which edges a drawn matrix has: pure functions of integers, the same bits on every platform.

*Streams.* A line (row, or column) of a drawn matrix is a stream. Positions along it are cut into
blocks of a fixed width, a power of two that depends on the probability alone. All randomness comes
from SplitMix64 [1]_, a counter-based generator: output ``i`` of the generator of key ``k`` is
``draw(k, i) = mix(k + (i + 1) * GAMMA)``. Outputs seed further generators, as the source has it:

    seed -> draw(seed, 0) -> stream -> block -> edge -> value of the edge

so that any block of any line can be drawn by itself, and what lies elsewhere, or how large the
matrix is, plays no part.

*Gaps.* Every position is an edge with probability ``p``, independent of all others, so the number
of positions passed over before the next edge is geometric, ``P(gap >= k) = (1 - p)**k``. With ``E``
exponential, ``floor(E / lam)`` has that law for ``lam = -log(1 - p)``. Blocks begin afresh, which
the geometric law allows. ``E`` comes from 64 bits in fixed point, in units of ``2**-32``:

    E = zeros * log(2) + F(v),    F(v) = -log(1 - v / 2),

where ``v`` is the upper word as a fraction and ``zeros`` the number of zeros that the lower word
ends in, which is ``j`` or more with probability ``2**-j``. ``F`` is read off a table of 1024
intervals: with ``1 - v / 2 = (1 - v0 / 2) * (1 - y)`` it is ``F(v0) + y + y**2 / 2``, short by less
than ``2**-31``. ``1 / lam`` is a mantissa of 27 bits and a shift, found from the float32
probability by integer arithmetic. Nothing is rounded by a platform: pattern and golden vectors are
integers only. The distribution of a gap is right to ``2**-31``, its mean to a few parts in ``1e8``,
which is the precision of a float32 probability.

*Rare edges.* Where ``lam`` is not much larger than ``2**-32``, those units would show: some
positions would be more probable than their neighbours, or never edges. There a gap is drawn in two
parts. Positions are taken in groups of ``2**rest``, so many that the probability of an edge in a
group is about ``2**-16``; the number of groups passed over is drawn as above, and the position in
the group is ``rest`` bits of another number. In a group all positions are then equally probable,
while exact probabilities differ by ``2**-16`` from the first to the last.

*Values.* An edge's own key, ``draw(block, t)``, seeds what its weight needs: a uniform number of 32
bits, or a normal one, by inversion of the normal distribution [2]_ with the logarithm from the
table above. Both are computed in the precision of the weights, from the same bits.

Functions take and return NumPy or JAX arrays of uint32 alike; numbers of 64 bits are pairs
``(high, low)``. The native kernels hold the same text in their own language.

References
----------
.. [1] Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014. It passes
   BigCrush of TestU01. The mixing function is number 13 of Stafford, Better bit mixing (2011).
.. [2] Wichura, Algorithm AS 241: the percentage points of the normal distribution, Applied
   Statistics 37 (1988), 477-484, the variant of 16 digits.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    'FAR',
    'Rule',
    'block_key',
    'blocks',
    'draw',
    'exponential_table',
    'gap',
    'gauss',
    'next_key',
    'rule_of',
    'seed_words',
    'stream_key',
    'unit',
]

Words = Any  # a NumPy or JAX array of uint32
Pair = tuple[Words, Words]

GAMMA = (np.uint32(0x9E3779B9), np.uint32(0x7F4A7C15))
MULTIPLIERS = (
    (np.uint32(0xBF58476D), np.uint32(0x1CE4E5B9)),
    (np.uint32(0x94D049BB), np.uint32(0x133111EB)),
)
SHIFTS = (30, 27, 31)
LN2 = np.uint32(round(math.log(2) * 2**32))
FAR = np.uint32(1 << 31)  # a gap that no axis is long enough for
NARROWEST, WIDEST = 6, 31  # blocks hold 64 positions, or as many as make 32 to 64 edges
RARE, GROUPED = 37, 43  # shifts below the first, of probabilities below 2**-22, become the second

_LOW = np.uint32(0xFFFF)
_TABLE_BITS = 10
_REST = np.uint32((1 << 22) - 1)


class Rule(NamedTuple):
    """What a probability means for gaps: ``gap = (E * mantissa) >> shift``; no edges if 0."""

    mantissa: Words
    shift: Words
    width: Words
    """Positions of a block, as a power of two."""
    rest: Words
    """Positions of a group, as a power of two, where gaps are drawn in two parts; otherwise 0."""


# ---- numbers of 64 bits ------------------------------------------------------------------------


def _u32(x: int) -> Any:
    return np.uint32(x)


def _multiply(a: Words, b: Words) -> Pair:
    """Return all 64 bits of a product."""
    a0, a1, b0, b1 = a & _LOW, a >> _u32(16), b & _LOW, b >> _u32(16)
    middle = a1 * b0 + (a0 * b0 >> _u32(16))
    high = a1 * b1 + (middle >> _u32(16)) + ((a0 * b1 + (middle & _LOW)) >> _u32(16))
    return high, a * b


def _high(a: Words, b: Words) -> Words:
    return _multiply(a, b)[0]


def _add(a: Pair, b: Pair) -> Pair:
    low = a[1] + b[1]
    return a[0] + b[0] + (low < a[1]).astype(np.uint32), low


def _times(a: Pair, b: Pair) -> Pair:
    """Return the lower 64 bits of a product."""
    high, low = _multiply(a[1], b[1])
    return high + a[1] * b[0] + a[0] * b[1], low


def _fold(z: Pair, by: int) -> Pair:
    """Return ``z ^ (z >> by)``."""
    down = (z[1] >> _u32(by)) | (z[0] << _u32(32 - by))
    return z[0] ^ (z[0] >> _u32(by)), z[1] ^ down


def _zeros_below(x: Words) -> Words:
    """Count the zeros that a word ends in; 32 of them in a word of zeros."""
    marks = ~x & (x - _u32(1))
    ones = jax.lax.population_count(marks) if isinstance(x, jax.Array) else np.bitwise_count(marks)
    return ones.astype(np.uint32)


def _zeros_above(x: Words) -> Words:
    """Count the zeros that a word begins with."""
    if isinstance(x, jax.Array):
        return jax.lax.clz(x)
    return (32 - np.frexp(np.asarray(x, np.float64))[1]).astype(np.uint32)


def _where(choose: Any, a: Any, b: Any) -> Any:
    return (jnp if isinstance(choose, jax.Array) else np).where(choose, a, b)


# ---- the generator -----------------------------------------------------------------------------


def mix(z: Pair) -> Pair:
    """Return the bits of ``z``, mixed."""
    for shift, multiplier in zip(SHIFTS, MULTIPLIERS, strict=False):
        z = _times(_fold(z, shift), multiplier)
    return _fold(z, SHIFTS[2])


def draw(key: Pair, i: Words) -> Pair:
    """Return output ``i`` of the generator that starts from a key."""
    step = _multiply(i + _u32(1), GAMMA[1])
    return mix(_add(key, (step[0] + (i + _u32(1)) * GAMMA[0], step[1])))


def seed_words(seed: Any) -> Any:
    """Return whole numbers, signed ones by their two's complement, as words (high, low)."""
    if isinstance(seed, jax.Array):
        wide = seed.dtype.itemsize == 8
        low = seed.astype(jnp.uint32)
        sign = jnp.where(seed < 0, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))
        high = (seed >> 32).astype(jnp.uint32) if wide else sign
        return jnp.stack([high, low], -1)
    value = int(seed) % 2**64
    return np.array([value >> 32, value & 0xFFFFFFFF], np.uint32)


def stream_key(seed: Pair, stream: Words) -> Pair:
    """Return the key of a stream of the matrix of a seed."""
    return draw(draw(seed, seed[0] * _u32(0)), stream)


def block_key(stream: Pair, block: Words) -> Pair:
    """Return the key of a block of a stream: the state from which its edges are drawn."""
    return draw(stream, block)


def next_key(state: Pair) -> tuple[Pair, Pair]:
    """Return the next state within a block, and the key of the edge that it makes."""
    state = _add(state, GAMMA)
    return state, mix(state)


# ---- gaps --------------------------------------------------------------------------------------


@functools.cache
def exponential_table() -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return ``F`` where intervals begin, in 2**-32, and its slope there over one, in 2**-42.

    No entry lies so near a tie that the last bit of a logarithm in double precision decides it.
    """
    places = range(1 << _TABLE_BITS)
    value = [round(math.log(2048 / (2048 - i)) * 2**32) for i in places]
    slope = [2**42 // (2048 - i) for i in places]
    return np.array([value, slope], np.uint32).T.copy()


def _log_part(v: Words) -> Words:
    """Return ``-log(1 - v / 2)`` for a fraction of 32 bits, in units of 2**-32."""
    table: Any = exponential_table()
    if isinstance(v, jax.Array):
        table = jnp.asarray(table)
    value, slope = (table[:, k][v >> _u32(32 - _TABLE_BITS)] for k in range(2))
    high, low = _multiply(slope, v & _REST)
    y = (high << _u32(10)) | (low >> _u32(22))
    return value + ((y + (_high(y, y) >> _u32(11))) >> _u32(10))


def _exponential(zeros: Words, v: Words) -> Pair:
    """Return ``zeros * log(2) + F(v)`` in units of 2**-32."""
    return _add(_multiply(zeros, LN2), (zeros * _u32(0), _log_part(v)))


def gap(rule: Rule, key: Pair) -> Words:
    """Return the number of positions that are passed over before an edge, `FAR` at most."""
    e = _exponential(_zeros_below(key[1]), key[0])
    high = _high(e[1], rule.mantissa) + e[0] * rule.mantissa
    near = high >> (rule.shift & _u32(31))  # shifts are 32 or more
    if isinstance(near, jax.Array):
        grouped = jnp.any(rule.rest > 0)
        near = jax.lax.cond(grouped, _in_group, lambda rule, key, group: group, rule, key, near)
    else:
        near = _in_group(rule, key, near)
    return _where(rule.shift == 0, FAR, near)


def _in_group(rule: Rule, key: Pair, group: Words) -> Words:
    """Return the gap that a number of groups and a position in a group make, `FAR` at most."""
    one = key[0] ^ key[0] | _u32(1)
    place = (draw(key, one + one)[0] >> _u32(1)) >> (_u32(31) - rule.rest)
    beyond = group >> (_u32(31) - rule.rest) > 0
    return _where(beyond, FAR, (group << rule.rest) | place)


def rule_of(bits: Words) -> Rule:
    """Return the rule of a probability, given by the bits of a float32.

    Above 1 counts as 1; below 2**-57, negative, or no number as 0.
    """
    live = (bits >= _u32(0x23000000)) & (bits <= _u32(0x7F800000))
    certain = bits >= _u32(0x3F800000)
    bits = _where(live & ~certain, bits, _u32(0x3F7FFFFF))
    down = _u32(126) - (bits >> _u32(23))
    fraction = ((bits & _u32(0x7FFFFF)) | _u32(0x800000)) << _u32(8)
    p = fraction >> _where(down < _u32(31), down, _u32(31))  # in units of 2**-32
    rare = down >= _u32(4)
    small, large = _rate_of_rare(fraction, p), _rate_of_likely(p)
    digits = _where(rare, small[0], large[0])
    shift = _u32(90) - _where(rare, small[1] + down, large[1])
    mantissa = _where(live & ~certain, _reciprocal(digits), _u32(0))
    shift = _where(live, _where(certain, _u32(63), shift), _u32(0))
    narrow = _where(shift < _u32(58), _u32(64) - shift, _u32(NARROWEST))
    width = _where(narrow > WIDEST, _u32(WIDEST), narrow)
    rest = _where(live & (shift < RARE), _u32(GROUPED) - shift, _u32(0))
    rest = _where(rest > WIDEST, _u32(WIDEST), rest)
    return Rule(mantissa, shift + rest, width, rest)


def _rate_of_rare(fraction: Words, p: Words) -> Pair:
    """Return 32 digits and the scale of ``-log(1 - p)`` over the scale of p, by its series."""
    series = p ^ p
    for k in range(8, 1, -1):
        series = _high(p, series + _u32((1 << 32) // k))
    half = fraction >> _u32(1)
    rate = half + _high(half, series)
    up = _zeros_above(rate)
    return rate << up, _u32(31) + up


def _rate_of_likely(p: Words) -> Pair:
    """Return 32 digits and the scale of ``-log(1 - p)``, from the table."""
    rest = _u32(0) - p  # 1 - p
    zeros = _zeros_above(~p)
    high, low = _exponential(zeros, (_u32(0) - (rest << zeros)) << _u32(1))
    up, down = _zeros_above(low), _u32(32) - _zeros_above(high)
    whole = high > _u32(0)
    digits = _where(whole, (high << (_u32(32) - down)) | (low >> down), low << up)
    return digits, _where(whole, _u32(32) - down, _u32(32) + up)


def _reciprocal(digits: Words) -> Words:
    """Return ``2**58 / digits`` for a number of 32 digits, rounded: long division by halves."""
    quotient, rest = digits ^ digits, (digits ^ digits) | _u32(1 << 27)  # of 2**59
    top, low = digits >> _u32(16), digits & _LOW
    for _ in range(2):
        guess = rest // top
        over = rest - guess * top
        for _ in range(2):
            much = (over <= _LOW) & ((guess > _LOW) | (guess * low > over << _u32(16)))
            guess = guess - much.astype(np.uint32)
            over = over + _where(much, top, _u32(0))
        rest = (rest << _u32(16)) - guess * digits
        quotient = (quotient << _u32(16)) | guess
    return (quotient + _u32(1)) >> _u32(1)


def blocks(rule: Rule, extent: Words) -> Words:
    """Return how many blocks an axis has; none where there are no edges."""
    some = (extent + (_u32(1) << rule.width) - _u32(1)) >> rule.width
    return _where(rule.shift > _u32(0), some, _u32(0))


# ---- values ------------------------------------------------------------------------------------


def unit(key: Pair, dtype: Any) -> Any:
    """Return an edge's uniform number in [0, 1), of 32 bits before rounding."""
    word = draw(key, key[0] ^ key[0])[0]
    return word.astype(dtype) * np.dtype(dtype).type(2.0**-32)


CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip

# The same to 1.2e-7, with half the coefficients: as exact as a float32 can tell.
SINGLE = (
    ((3.3871327179, 50.434271938, 159.29113202, 59.109374720),
     (1.0, 17.895169469, 78.757757664, 67.187563600)),
    ((1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
     (1.0, 0.73700164250, 0.12021132975)),
)  # fmt: skip
# (log(1 + f) - f) / f**2 between the roots of 1/2 and 2: least squares, reweighted until the
# largest error was 6.5e-9.
LOG_SINGLE = (
    -0.49999982, 0.333342255, -0.250024908, 0.199536124, -0.1655234, 0.149793013, -0.144418434,
    0.0873354941,
)  # fmt: skip


def gauss(key: Pair, dtype: Any) -> Any:
    """Return an edge's standard normal number.

    The word is a sign and 31 bits of a distance from the centre. Tails are found from what is left
    to the end, an odd multiple of 2**-33, so that they are as exact as the centre.
    """
    real = np.dtype(dtype).type
    word = draw(key, key[0] ^ key[0])[0]
    minus = word >> _u32(31) == 0
    size = word & _u32(0x7FFFFFFF)
    size = _where(minus, _u32(0x7FFFFFFF) - size, size)
    odd = ((_u32(0x7FFFFFFF) - size) << _u32(1)) | _u32(1)  # the tail, in 2**-33
    zeros = _zeros_above(odd)
    high, low = _exponential(zeros + _u32(1), ~(odd << zeros) << _u32(1))
    log = high.astype(dtype) + low.astype(dtype) * real(2.0**-32)
    near = (size.astype(dtype) + real(0.5)) * real(2.0**-32)
    x, r = real(0.180625) - near * near, _sqrt(log) - real(1.6)
    (above, below), (above_tail, below_tail) = CENTRE, TAIL
    central = near <= real(0.425)
    top = _where(central, near * _polynomial(above, x), _polynomial(above_tail, r))
    value = top / _where(central, _polynomial(below, x), _polynomial(below_tail, r))
    return _where(minus, -value, value)


def _sqrt(x: Any) -> Any:
    return (jnp if isinstance(x, jax.Array) else np).sqrt(x)


def _polynomial(coefficients: Any, x: Any) -> Any:
    *rest, total = (x.dtype.type(c) for c in coefficients)
    for c in reversed(rest):
        total = total * x + c
    return total
