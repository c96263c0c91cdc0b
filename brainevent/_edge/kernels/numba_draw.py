# SPDX-License-Identifier: Apache-2.0
"""The draw of `brainevent._edge.random` in native code: the same bits, on numbers of 64 bits."""

import functools
import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from brainevent._edge import random
from brainevent._edge.kernels.numba_parts import fast, jit
from brainevent._edge.layout import LAYOUTS
from brainevent._edge.weight import WEIGHTS
from brainevent._op.numba_ffi import intrinsics as low

U = np.uint64
_WORD = ir.IntType(64)


def _joined(pair: Any) -> Any:
    return np.uint64((int(pair[0]) << 32) | int(pair[1]))


GAMMA = _joined(random.GAMMA)
FIRST, SECOND = map(_joined, random.MULTIPLIERS)
DOWN0, DOWN1, DOWN2 = map(np.uint64, random.SHIFTS)
LN2 = np.uint64(random.LN2)
RARE, GROUPED = np.uint64(random.RARE), np.uint64(random.GROUPED)
TABLE = np.array([_joined(entry[::-1]) for entry in random.exponential_table()])  # slope, value
MASK, REST = np.uint64(0xFFFFFFFF), np.uint64((1 << 22) - 1)
ONE_IN_64 = np.uint64(1 << 32)
LANES = 16  # edges that are drawn at a time; `walker` has room for so many
STRETCH = 1 << 10  # blocks whose edges are added up apart
EDGE_NS, LINE_NS = 4.0, 20.0  # to draw an edge, and to begin a line


@intrinsic
def zeros_below(typing: Any, x: Any) -> Any:
    """Count the zeros that a word of 64 bits ends in."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), codegen


@intrinsic
def zeros_above(typing: Any, x: Any) -> Any:
    """Count the zeros that a word of 64 bits begins with."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.ctlz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), codegen


@jit
def mix(z):
    """Return the bits of ``z``, mixed."""
    z = (z ^ (z >> DOWN0)) * FIRST
    z = (z ^ (z >> DOWN1)) * SECOND
    return z ^ (z >> DOWN2)


@jit
def draw(key, i):
    """Return output ``i`` of the generator that starts from a key."""
    return mix(key + (U(i) + U(1)) * GAMMA)


@jit
def root_of(seed):
    """Return the key from which streams are drawn."""
    return draw((U(seed[0]) << U(32)) | U(seed[1]), 0)


@jit
def log_part(v):
    """Return ``-log(1 - v / 2)`` for a fraction of 32 bits, in units of 2**-32."""
    entry = TABLE[v >> U(22)]
    y = ((entry >> U(32)) * (v & REST)) >> U(22)
    return (entry & MASK) + ((y + ((y * y) >> U(43))) >> U(10))


@jit
def gap(mantissa, shift, key):
    """Return the number of positions, or of groups of them, that are passed over before an edge."""
    zeros = zeros_below(key | ONE_IN_64)
    return ((zeros * LN2 + log_part(key >> U(32))) * mantissa) >> shift


@jit
def grouped_gap(rule, key):
    """Return the number of positions passed over, from groups and the position in a group."""
    return (gap(rule[0], rule[1], key) << rule[3]) | (draw(key, 2) >> (U(64) - rule[3]))


@jit
def rule_of(bits):
    """Return mantissa, shift, width and rest of the probability with these bits of a float32."""
    bits = U(bits)
    if bits < U(0x23000000) or bits > U(0x7F800000):
        return U(0), U(0), U(31), U(0)
    if bits >= U(0x3F800000):
        return U(0), U(63), U(6), U(0)
    down = U(126) - (bits >> U(23))
    fraction = ((bits & U(0x7FFFFF)) | U(0x800000)) << U(8)
    p = fraction >> min(down, U(31))
    if down >= U(4):
        series = U(0)
        for k in range(8, 1, -1):
            series = (p * (series + U((1 << 32) // k))) >> U(32)
        rate = fraction >> U(1)
        rate += (rate * series) >> U(32)
        up = zeros_above(rate) - U(32)
        digits, scale = rate << up, U(31) + up + down
    else:
        zeros = zeros_above(p ^ MASK) - U(32)
        rest = ((ONE_IN_64 - p) << zeros) & MASK
        rate = zeros * LN2 + log_part(((ONE_IN_64 - rest) << U(1)) & MASK)
        scale = zeros_above(rate)
        digits = (rate << scale) >> U(32)
    mantissa = ((U(1) << U(59)) // digits + U(1)) >> U(1)
    shift = U(90) - scale
    rest = min(GROUPED - shift, U(31)) if shift < RARE else U(0)
    return mantissa, shift + rest, min(max(U(64) - shift, U(6)), U(31)), rest


@jit
def rule_at(prob):
    """Return the rule of the probability in an array of one float32."""
    return rule_of(low.array_at(prob.ctypes.data, (1,), np.uint32)[0])


@jit
def block_count(shift, width, extent):
    """Return how many blocks an axis has; none where there are no edges."""
    return (extent + (np.int64(1) << width) - 1) >> width if shift > U(0) else np.int64(0)


@jit
def line_ns(rule, extent, columns):
    """Return about how many nanoseconds the edges of one line take."""
    mantissa, shift, _, rest = rule
    if shift == U(0):
        return 0.0
    wide, narrow = np.int64(1) << np.int64(rest), np.int64(1) << (np.int64(shift) - 32)
    passed = np.float64(mantissa) * np.float64(wide) / np.float64(narrow)
    return LINE_NS + extent / (passed + 1.0) * (EDGE_NS + columns // 4)


# ---- values ------------------------------------------------------------------------------------


def _reals(dtype: str) -> Any:
    """Return the type of random numbers for weights of a dtype."""
    return np.float64 if dtype in ('float64', 'complex128') else np.float32


@functools.cache
def unit_maker(dtype: str) -> Any:
    """Make ``unit(key)``, an edge's uniform number."""
    real = _reals(dtype)
    scale = real(2.0**-32)
    return jit(lambda key: real(np.int64(draw(key, 0) >> U(32))) * scale)


def _polynomial(coefficients: tuple[float, ...], real: Any) -> Any:
    """Make a polynomial, all of its coefficients in the code."""
    first, *rest = map(real, coefficients)
    if not rest:
        return jit(lambda x: first)
    more = _polynomial(tuple(rest), real)
    return fast(lambda x: more(x) * x + first)


@jit
def _log_of_tail(rest):
    """Return ``-log`` of a tail, ``rest + 1/2`` in units of 2**-32, in 64 bits."""
    odd = U(np.int64(rest) + np.int64(rest) + 1)
    zeros = zeros_above(odd) - U(32)
    log = (zeros + U(1)) * LN2 + log_part((((odd << zeros) ^ MASK) << U(1)) & MASK)
    return np.float64(np.int64(log >> U(32))) + np.float64(np.int64(log & MASK)) * 2.0**-32


@functools.cache
def _single_log_of_tail() -> Any:
    """Make the same for float32, without tables: four edges more fit into an instruction."""
    series = _polynomial(random.LOG_SINGLE, np.float32)
    half, scale, ln2 = np.float32(0.5), np.float32(2.0**-32), np.float32(math.log(2))
    root, digits = np.int32(0x3F3504F3), np.int32(0x7FFFFF)  # sqrt(1/2)

    @fast
    def log_of_tail(rest):
        tail = low.bits_of_float32((np.float32(rest) + half) * scale)
        bits = np.int32(tail - root)
        f = low.float32_of_bits(np.int32((bits & digits) + root)) - np.float32(1)
        return -(f + f * f * series(f) + np.float32(np.int32(bits >> 23)) * ln2)

    return log_of_tail


@functools.cache
def gauss_maker(dtype: str) -> Any:
    """Make ``gauss(key)``, an edge's standard normal number.

    Both parts are computed, and one is taken: without a branch, vector instructions serve several
    edges at once, which is three times as fast.
    """
    real = _reals(dtype)
    single = real is np.float32
    centre, tail = random.SINGLE if single else (random.CENTRE, random.TAIL)
    above, below, above_tail, below_tail = (_polynomial(c, real) for c in (*centre, *tail))
    log_of_tail = _single_log_of_tail() if single else _log_of_tail
    half, scale, edge = real(0.5), real(2.0**-32), real(0.425)
    middle, start = real(0.180625), real(1.6)
    top, most = np.uint32(0x80000000), np.int32(0x7FFFFFFF)

    @jit
    def gauss(key):
        word = np.int32(np.uint32(draw(key, 0) >> U(32)) ^ top)
        size = np.int32(word ^ (word >> 31))
        near = (real(size) + half) * scale
        x = middle - near * near
        r = low.square_root(real(log_of_tail(np.int32(size ^ most)))) - start
        central = near <= edge
        over = near * above(x) if central else above_tail(r)
        value = over / (below(x) if central else below_tail(r))
        return -value if word < 0 else value

    return gauss


@functools.cache
def value_maker(weight: str, dtype: str) -> Any:
    """Make ``value(params, key)``: what an edge weighs."""
    kind = WEIGHTS[weight]
    value = jit(kind.native or kind.value)
    if not kind.draws:
        return jit(lambda params, key: value(params, key))
    number = {'unit': unit_maker, 'gauss': gauss_maker}[kind.draws](dtype)
    return jit(lambda params, key: value(params, number(key)))


# ---- going along a line ------------------------------------------------------------------------


@functools.cache
def keeper(layout: str) -> Any:
    """Make ``keep(s, i, j, key)``: whether an edge stays."""
    draw_of = LAYOUTS[layout].draw
    if draw_of is None or draw_of.keep is None:
        return jit(lambda s, i, j, state, t: True)
    keep = jit(draw_of.keep)

    @jit
    def thinned(s, i, j, state, t):
        key = mix(state + U(t + 1) * GAMMA)
        word = np.uint32(draw(key, 1) >> U(32))
        return keep(s, np.int64(i), np.int64(j), word)

    return thinned


@jit
def in_groups(state, rule, gaps):
    """Replace numbers of groups by those of positions."""
    for t in range(LANES):
        gaps[t] = grouped_gap(rule, mix(state + U(t + 1) * GAMMA)) + U(1)


def _filler(value: Any, each: bool) -> tuple[Any, Any]:
    """Make ``fill(state, rule, w, gaps, values)`` and ``take(values, t, w)`` for some edges."""

    @jit
    def gaps_alone(state, rule, w, gaps, values):
        for t in range(LANES):
            gaps[t] = gap(rule[0], rule[1], mix(state + U(t + 1) * GAMMA)) + U(1)
        if rule[3] > U(0):
            in_groups(state, rule, gaps)

    @jit
    def gaps_and_values(state, rule, w, gaps, values):
        for t in range(LANES):
            key = mix(state + U(t + 1) * GAMMA)
            gaps[t] = gap(rule[0], rule[1], key) + U(1)
            values[t] = value(w, key)
        if rule[3] > U(0):
            in_groups(state, rule, gaps)

    if each:
        return gaps_and_values, jit(lambda values, t, w: values[t])
    return gaps_alone, jit(lambda values, t, w: value(w, U(0)))


def weighted_walker(layout: str, weight: str, dtype: str, visit: Any) -> Any:
    """Make a walker whose values are weights."""
    each = np.dtype(dtype).type if WEIGHTS[weight].draws else None
    return walker(layout, visit, value_maker(weight, dtype), each)


def walker(layout: str, visit: Any, value: Any, dtype: Any = None) -> Any:
    """Make ``walk(total, rule, stream, part, n, i, s, w, args)``: visit the edges of some blocks.

    ``visit(total, i, j, value, args)`` returns what is handed on to the next edge. Gaps and values,
    of ``dtype``, of several edges are drawn at a time, by vector instructions; without a dtype all
    edges have the value that the first key would give.
    """
    keep = keeper(layout)
    fill, take = _filler(value, dtype is not None)
    kind = np.float32 if dtype is None else dtype

    @jit
    def walk(total, rule, stream, part, n, i, s, w, args):
        gaps = low.array_at(low.stack_words(16), (LANES,), np.uint64)
        values = low.array_at(low.stack_words(32), (LANES,), kind)
        for block in range(part[0], part[1]):
            state = draw(stream, block)
            place = U(block) << rule[2]
            last = min(place + (U(1) << rule[2]), U(n))
            place -= U(1)
            while True:
                fill(state, rule, w, gaps, values)
                for t in range(LANES):
                    place += gaps[t]
                    if place >= last:
                        break
                    if keep(s, i, place, state, t):
                        total = visit(total, i, place, take(values, t, w), args)
                if place >= last:
                    break
                state += U(LANES) * GAMMA
        return total

    return walk
