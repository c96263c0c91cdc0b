# SPDX-License-Identifier: Apache-2.0
"""Native kernels for listed events: making the list, and going through the lines it names.

Operands of a product are weights, structure, ``ids``, ``facts``, which are the number of ids and
the extent of the input, and for a batch which elements are active.
"""

from typing import Any

import numpy as np

from brainevent._edge.kernels.numba_columns import _lines_adder
from brainevent._edge.kernels.numba_parts import (
    EDGE_NS,
    PARALLEL_EDGES,
    PRIVATE_SHIFT,
    SCATTERED_NS,
    edge_count,
    inside,
    jit,
    line,
    part_of,
    silent,
    walk_towards,
    whole,
    worth_buffers,
)
from brainevent._edge.kernels.numba_product import line_adder, scatter_vector
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases


def list_active() -> Phases:
    """``ids[:number]`` are the active elements of ``x``; what is behind is zero."""

    @whole
    def plan(ins, outs, threads):
        return 1, 0, ins[0].shape[0] // 4

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        x, ids, number = ins[0], outs[0], outs[1]
        i, count, n = 0, 0, x.shape[0]
        while i < n:
            skip = silent(x, i, n)
            if skip > 0:
                i += skip
                continue
            for k in range(i, min(i + 8, n)):
                ids[count] = k
                count += x[k]
            i += 8
        for k in range(count, n):
            ids[k] = 0
        number[0] = count

    return Phases(plan, (body,))


def _extents(transpose: bool) -> Any:
    """Make ``extents(facts, y) -> (m, n)``."""
    if transpose:
        return jit(lambda facts, y: (np.int64(facts[1]), y.shape[0]))
    return jit(lambda facts, y: (y.shape[0], np.int64(facts[1])))


@jit
def _listed(ids, facts):
    """Return how many ids there are to be taken."""
    return min(max(np.int64(facts[0]), 0), ids.shape[0])


def _measure(layout: str, transpose: bool) -> tuple[Any, Any]:
    """Make ``length(s, m, n, i, facts, edges)`` of a line, and ``total`` of all listed ones."""
    span = line(walk_towards(layout, transpose, inward=True)).span

    @jit
    def length(s, m, n, i, facts, edges):
        if not inside(i, facts[1]):
            return 0
        first, last = span(s, m, n, i, edges)
        return max(last - first, 0)

    @jit
    def total(s, m, n, ids, facts, edges):
        found = 0
        for k in range(_listed(ids, facts)):
            found += length(s, m, n, np.int64(ids[k]), facts, edges)
        return found

    return length, total


def _part_adder(layout: str, transpose: bool, one: bool, half: str | None) -> Any:
    """Make ``add(ids, facts, bounds, args)``: add a part of the edges, numbered through.

    The memory of a line is asked for while the line before it is worked through.
    """
    span = line(walk_towards(layout, transpose, inward=True)).span
    visit, fetch = line_adder(layout, transpose, 'BINARY', one, half)
    length, _ = _measure(layout, transpose)

    @jit
    def add(ids, facts, bounds, args):
        w, s, m, n, reach, y = args
        seen, waiting, begin, end = 0, np.int64(-1), 0, 0
        for k in range(_listed(ids, facts)):
            i = np.int64(ids[k])
            many = length(s, m, n, i, facts, reach[1])
            start, stop = max(bounds[0] - seen, 0), min(bounds[1] - seen, many)
            seen += many
            if start < stop:
                if waiting >= 0:
                    visit(waiting, i, True, (w, s, m, n, (begin, end), y))
                else:
                    fetch(i, args)
                first = span(s, m, n, i, reach[1])[0]
                waiting, begin, end = i, first + start, first + stop
            if seen >= bounds[1]:
                break
        if waiting >= 0:
            visit(waiting, -1, True, (w, s, m, n, (begin, end), y))

    return add


def listed_vector(layout: str, key: str, transpose: bool, one: bool, half: str | None) -> Phases:
    """``y[far] += weight`` for every listed line of the input.

    The edges of all listed lines are numbered through and shared out, so that no thread gets
    more than another and no float32 sum gets too long, however uneven lines are.
    """
    count, extents = edge_count(LAYOUTS[layout]), _extents(transpose)
    direct = walk_towards(layout, transpose, inward=True).direct
    add, (_, total) = _part_adder(layout, transpose, one, half), _measure(layout, transpose)
    edge_ns = EDGE_NS if direct or one else SCATTERED_NS

    @whole
    def plan(ins, outs, threads):
        s, ids, facts, y = ins[1:-2], ins[-2], ins[-1], outs[0]
        m, n = extents(facts, y)
        edges = total(s, m, n, ids, facts, count(s, m, n))
        ns = edges * edge_ns
        chunks = threads if worth_buffers(ns, threads, y.shape[0]) else 1
        chunks = max(chunks, min(64, edges >> PRIVATE_SHIFT))
        return chunks, (chunks * y.shape[0] * y.itemsize if chunks > 1 else 0), ns

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, ids, facts, y = ins[0], ins[1:-2], ins[-2], ins[-1], outs[0]
        m, n = extents(facts, y)
        edges, bounds = count(s, m, n), (np.int64(0), np.int64(1) << 62)
        base = y.ctypes.data if chunks == 1 else scratch + chunk * y.shape[0] * y.itemsize
        target = low.array_at(base, (y.shape[0],), y.dtype)
        for j in range(y.shape[0]):
            target[j] = 0
        if chunks > 1:
            bounds = part_of(total(s, m, n, ids, facts, edges), chunk, chunks)
        add(ids, facts, bounds, (w, s, m, n, (0, edges), target))

    # buffers are summed as those of any scatter
    reduce = scatter_vector(layout, key, transpose, 'BINARY', one, half).bodies[-1]
    return Phases(plan, (body, reduce))


def listed_columns(layout: str, key: str, transpose: bool, one: bool, half: str | None) -> Phases:
    """``y[far, :] += weight`` where a listed line is active; threads share the columns out."""
    add = _lines_adder(layout, transpose, 'BINARY', one, half)
    count, extents = edge_count(LAYOUTS[layout]), _extents(transpose)

    @whole
    def plan(ins, outs, threads):
        s, ids, facts, y = ins[1:-3], ins[-3], ins[-2], outs[0]
        m, n = extents(facts, y)
        width = y.shape[1]
        each = count(s, m, n) // max(np.int64(facts[1]), 1)  # every listed line has an event
        work = each * _listed(ids, facts) * 2
        chunks = min(threads, max(width // 8, 1)) if work > PARALLEL_EDGES else 1
        return chunks, chunks * 8 * width, work

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, ids, facts, x, y = ins[0], ins[1:-3], ins[-3], ins[-2], ins[-1], outs[0]
        m, n = extents(facts, y)
        edges, width = count(s, m, n), y.shape[1]
        active = low.words(scratch + chunk * 8 * width, width)
        columns = part_of(width, chunk, chunks)
        for j in range(y.shape[0]):
            for c in range(columns[0], columns[1]):
                y[j, c] = 0
        args = (w, s, m, n, (0, edges), y)
        for k in range(_listed(ids, facts)):
            i = np.int64(ids[k])
            if inside(i, x.shape[0]):
                add((i, i + 1), columns, x, active, args)

    return Phases(plan, (body,))
