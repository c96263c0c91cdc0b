# SPDX-License-Identifier: Apache-2.0
"""The small compiled parts that native kernels are put together from.

Everything here guards itself: structure arrays may hold anything, and an edge that points outside
its matrix, or a weight that does not exist, counts nothing. Parts are made once and shared by all
kernels of a process, since numba compiles a part once for each set of types.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from brainevent._edge.layout import LAYOUTS, Layout, Walk
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.intrinsics import NATIVE

# Sums may be reordered; NaN and infinity keep their meaning.
FAST = {'fastmath': {'reassoc', 'contract', 'nsz', 'arcp'}}

CACHE_LINE = 16  # edges whose 32-bit ids share a cache line
FETCH_EDGES = 512  # as much of a line of edges as is asked for ahead of its use
AHEAD = 32  # edges by which weights at scattered places are asked for before their use
PARALLEL_EDGES = 400_000  # edges worth a second thread
EDGE_NS, SCATTERED_NS = 1, 8  # an edge whose weight lies in line, and anywhere
WAKE_NS = 60_000  # to get another thread to work, and wait for it
SUM_BLOCK = 1 << 12  # a float32 sum is made of partial sums this long
PRIVATE_SHIFT = 22  # scattered sums are split so that one buffer takes at most 2**22 edges


def jit(function: Any) -> Any:
    """Compile a small part, always inlined: a call for each edge would cost more than the edge."""
    return njit(**NATIVE, forceinline=True)(function)


def fast(function: Any) -> Any:
    """Compile a small part whose sums may be reordered."""
    return njit(**NATIVE, **FAST, forceinline=True)(function)


def whole(function: Any) -> Any:
    """Compile a plan or a body, which is called once for many edges."""
    return njit(**NATIVE)(function)


@jit
def inside(index, extent):
    """Tell whether an index of any signed width is inside an axis."""
    return np.uint64(np.int64(index)) < np.uint64(extent)


@jit
def place(index):
    """Return an index known to be inside as one that cannot count from the end."""
    return np.uint64(np.int64(index))


@jit
def part_of(n, chunk, chunks):
    """Return the bounds of one of ``chunks`` equal parts of ``range(n)``."""
    return n * chunk // chunks, n * (chunk + 1) // chunks


@jit
def worth_buffers(ns, threads, out):
    """Tell whether adding into one buffer a thread, and summing them, saves time."""
    return threads > 1 and ns - ns // threads > WAKE_NS + out // 2


@jit
def worth_threads(ns, threads):
    """Tell whether sharing work out, where every thread writes places of its own, saves time."""
    return threads > 1 and ns - ns // threads > WAKE_NS


@jit
def any_in_word(x, i):
    """Tell whether any of the eight truth values from ``x[i]`` on is set."""
    return low.words(x.ctypes.data + i, 1)[0] != 0


@jit
def silent(x, i, last):
    """Return how many truth values from ``x[i]`` on are seen to be unset at one look."""
    if i + 32 <= last:
        four = low.words(x.ctypes.data + i, 4)
        if (four[0] | four[1]) | (four[2] | four[3]) == 0:
            return 32
    if i + 8 <= last and not any_in_word(x, i):
        return 8
    return 0


@jit
def count_true(x):
    """Count truth values."""
    total = np.int64(0)
    for i in range(x.shape[0]):
        total += np.int64(x[i])
    return total


@jit
def cut(edge, count):
    """Move an offset to the edges that exist."""
    return min(max(np.int64(edge), 0), count)


@dataclass(frozen=True)
class Line:
    """A walk, compiled: guarded spans, far ends, tags, and the extents it runs over."""

    span: Any
    far: Any
    tag: Any


@functools.cache
def line(walk: Walk) -> Line:
    """Compile a walk; spans are cut to the edges that exist."""
    raw_span, far, tag = jit(walk.span), jit(walk.far), jit(walk.tag)

    @jit
    def span(s, m, n, i, count):
        first, last = raw_span(s, m, n, i)
        return cut(first, count), cut(last, count)

    return Line(span, far, tag)


@functools.cache
def line_splitter(path: Line) -> Any:
    """Make ``split(s, m, n, lines, edges, chunk, chunks)``: one of equal parts of all edges.

    It returns the bounds of the lines that reach into the part, and the part's own, where lines
    are to be cut: however uneven lines are, no part is longer than the others.
    """
    span = path.span

    @jit
    def reaching(s, m, n, lines, edges, edge):
        low, high = 0, lines
        while low < high:
            middle = (low + high) // 2
            if span(s, m, n, middle, edges)[1] > edge:
                high = middle
            else:
                low = middle + 1
        return low

    @jit
    def split(s, m, n, lines, edges, chunk, chunks):
        if chunks == 1:
            return (0, lines), (0, edges)
        first, last = part_of(edges, chunk, chunks)
        end = min(reaching(s, m, n, lines, edges, last - 1) + 1, lines)
        return (reaching(s, m, n, lines, edges, first), end), (first, last)

    return split


@jit
def split_edges(s, m, n, lines, edges, chunk, chunks):
    """Return the same for a layout without lines: bounds of one of equal parts, twice."""
    part = part_of(edges, chunk, chunks)
    return part, part


def walk_towards(layout: str, transpose: bool, inward: bool) -> Walk:
    """Return the walk along lines of the input, or of the output; who asks knows there is one."""
    walk = LAYOUTS[layout].towards(transpose)[0 if inward else 1]
    assert walk is not None, layout
    return walk


@functools.cache
def weight_reader(one: bool, half: str | None, direct: bool) -> Any:
    """Make ``weight(w, tag)``: one or each, plain or 16 bits, position trusted or not."""
    if half == 'float16':
        value = jit(lambda bits: low.float16_to_float32(bits))
    elif half == 'bfloat16':
        value = jit(lambda bits: low.bfloat16_to_float32(bits))
    else:
        value = jit(lambda number: number)
    if one:
        return jit(lambda w, tag: value(w[0]))
    if direct:
        return jit(lambda w, tag: value(w[tag]))

    @jit
    def guarded(w, tag):
        return value(w[tag]) if inside(tag, w.shape[0]) else value(w[0]) * 0

    return guarded


@functools.cache
def event_reader(event: str) -> tuple[Any, Any]:
    """Make ``on(element)`` and ``times(weight, element)`` for a kind of event."""
    if event == 'BINARY':
        return jit(lambda element: element), jit(lambda weight, element: weight)
    times = jit(lambda weight, element: weight * element)
    if event == 'MASKED':
        return jit(lambda element: element != 0), times
    return jit(lambda element: True), times


@functools.cache
def edge_count(layout: Layout) -> Any:
    """Make ``count(s, m, n)``, the number of edges of a layout, from the layout's own function."""
    count = jit(layout.count)
    return jit(lambda s, m, n: count(s, (m, n)))
