# SPDX-License-Identifier: Apache-2.0
"""Native kernels of the sample: one number for every edge, ``e(x)[source] * y[target]``."""

import functools
from typing import Any

import numpy as np

from brainevent._edge.kernels.numba_parts import (
    PARALLEL_EDGES,
    edge_count,
    event_reader,
    fast,
    inside,
    jit,
    line,
    part_of,
    place,
    whole,
)
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases


@functools.cache
def _dot(event: str, rank: int) -> Any:
    """Make ``dot(x, source, y, target)``: one number, or the sum over a batch."""
    on, times = event_reader(event)

    @jit
    def scalar(x, source, y, target):
        return times(y[target], x[source]) if on(x[source]) else y.dtype.type(0)

    @fast
    def vector(x, source, y, target):
        total = zero = y.dtype.type(0)
        for c in range(x.shape[1]):
            element = x[source, c]
            total += times(y[target, c], element) if on(element) else zero
        return total

    return scalar if rank == 1 else vector


@functools.cache
def _extents(transpose: bool) -> Any:
    if transpose:
        return jit(lambda x, y: (x.shape[0], y.shape[0]))
    return jit(lambda x, y: (y.shape[0], x.shape[0]))


def _plan(layout: str, transpose: bool, rank: int) -> Any:
    extents, count = _extents(transpose), edge_count(LAYOUTS[layout])

    @whole
    def plan(ins, outs, threads):
        m, n = extents(ins[-2], ins[-1])
        work = count(ins[:-2], m, n) * (1 if rank == 1 else ins[-1].shape[1])
        return (threads * 8 if threads > 1 and work > PARALLEL_EDGES else 1), 0, work

    return plan


def clearer(layout: str, extents: Any, head: int, tail: int) -> Any:
    """Make the phase that clears what no row owns: rows need not cover all edges.

    ``extents(ins)`` are rows and columns, ``ins[head:tail]`` is the structure.
    """
    walk = LAYOUTS[layout].walk
    assert walk is not None
    span, direct, count = line(walk).span, walk.direct, edge_count(LAYOUTS[layout])

    @whole
    def clear(chunk, chunks, ins, outs, scratch):
        if not direct:
            first, last = part_of(outs[0].shape[0], chunk, chunks)
            for e in range(first, last):
                outs[0][e] = 0
            return
        s, out = ins[head:tail], outs[0]
        m, n = extents(ins)
        edges = count(s, m, n)
        lines = part_of(m, chunk, chunks)
        for i in range(lines[0], lines[1]):
            end = span(s, m, n, i, edges)[1]
            start = span(s, m, n, i + 1, edges)[0] if i + 1 < m else edges
            for e in range(end, start):
                out[e] = 0
        first = span(s, m, n, 0, edges)[0] if m > 0 else edges
        for e in range(first if chunk == 0 else 0):
            out[e] = 0

    return clear


def sample_lines(layout: str, key: str, transpose: bool, event: str, rank: int) -> Phases:
    """Walk along rows; results go where the edges' weights are."""
    walk = LAYOUTS[layout].walk
    assert walk is not None
    path, direct = line(walk), walk.direct
    span, far, tag = path.span, path.far, path.tag
    dot, extents, count = _dot(event, rank), _extents(transpose), edge_count(LAYOUTS[layout])

    @fast
    def sample_in_line(s, x, y, m, n, i, first, last, out):
        for edge in range(first, last):
            e = low.nonnegative(edge)
            j = far(s, m, n, i, e)
            sound = inside(j, n)
            there = place(j) if sound else np.uint64(0)
            source, target = (place(i), there) if transpose else (there, place(i))
            value = dot(x, source, y, target)
            out[e] = value if sound else out.dtype.type(0)

    @jit
    def sample_scattered(s, x, y, m, n, i, first, last, out):
        for edge in range(first, last):
            e = low.nonnegative(edge)
            j, t = far(s, m, n, i, e), tag(s, m, n, i, e)
            if inside(j, n) and inside(t, out.shape[0]):
                source, target = (place(i), place(j)) if transpose else (place(j), place(i))
                out[place(t)] = dot(x, source, y, target)

    sample_line = sample_in_line if direct else sample_scattered

    clear = clearer(layout, jit(lambda ins: extents(ins[-2], ins[-1])), 0, -2)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        s, x, y = ins[:-2], ins[-2], ins[-1]
        m, n = extents(x, y)
        edges = count(s, m, n)
        lines = part_of(m, chunk, chunks)
        for i in range(lines[0], lines[1]):
            first, last = span(s, m, n, i, edges)
            if n > 0:
                sample_line(s, x, y, m, n, i, first, last, outs[0])
            elif direct:
                for e in range(first, last):
                    outs[0][e] = 0

    return Phases(_plan(layout, transpose, rank), (clear, body))


def sample_edges(layout: str, key: str, transpose: bool, event: str, rank: int) -> Phases:
    """Go through a layout without lines edge by edge."""
    ends = jit(LAYOUTS[layout].edge)
    dot, extents, count = _dot(event, rank), _extents(transpose), edge_count(LAYOUTS[layout])

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        s, x, y = ins[:-2], ins[-2], ins[-1]
        m, n = extents(x, y)
        out = outs[0]
        edges = part_of(count(s, m, n), chunk, chunks)
        for edge in range(edges[0], edges[1]):
            e = low.nonnegative(edge)
            row, col = ends(s, m, n, e)
            if inside(row, m) and inside(col, n):
                source, target = (row, col) if transpose else (col, row)
                out[e] = dot(x, source, y, target)
            else:
                out[e] = 0

    return Phases(_plan(layout, transpose, rank), (body,))
