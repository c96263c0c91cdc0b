# SPDX-License-Identifier: Apache-2.0
"""Native kernels of picking: lines or elements of a matrix, and the way back to the weights.

Operands are the weights (on the way back, what was picked), rows and columns of the matrix, its
structure, and the ids of lines; for elements also the ids of their other ends.
"""

from typing import Any

import numpy as np

from brainevent._edge.kernels.numba_parts import (
    PARALLEL_EDGES,
    edge_count,
    inside,
    jit,
    line,
    part_of,
    place,
    walk_towards,
    weight_reader,
    whole,
)
from brainevent._edge.kernels.numba_scale import shape_of
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases


def _meeting(elements: bool, back: bool, one: bool, half: str | None) -> Any:
    """Make ``meet(x, out, ids, k, j, tag)``: an edge to ``j`` lies on the line asked for at k."""
    weight = weight_reader(one, half, True)
    if elements:
        wanted, at = jit(lambda ids, k, j: ids[-1][k] == j), jit(lambda k, j: k)
    else:
        wanted, at = jit(lambda ids, k, j: True), jit(lambda k, j: (k, place(j)))

    @jit
    def forward(x, out, ids, k, j, tag):
        if wanted(ids, k, j):
            out[at(k, j)] += weight(x, tag)

    @jit
    def backward(x, out, ids, k, j, tag):
        if wanted(ids, k, j):
            out[tag] += x[at(k, j)]

    return backward if back else forward


def _clearer(back: bool, elements: bool) -> Any:
    """Make ``clear(out, first, last)`` for places, or for edges."""
    if back or elements:

        @jit
        def clear(out, first, last):
            for k in range(first, last):
                out[k] = 0

        return clear

    @jit
    def clear_lines(out, first, last):
        for k in range(first, last):
            for j in range(out.shape[1]):
                out[k, j] = 0

    return clear_lines


def pick_lines(
    layout: str,
    key: str,
    transpose: bool,
    elements: bool,
    back: bool,
    one: bool,
    half: str | None,
) -> Phases:
    """Walk along the lines that are asked for, in parallel unless they may share edges."""
    walk = walk_towards(layout, transpose, True)
    path, direct, count = line(walk), walk.direct, edge_count(LAYOUTS[layout])
    span, far, tag = path.span, path.far, path.tag
    tail = -2 if elements else -1
    meet, clear = _meeting(elements, back, one, half), _clearer(back, elements)

    @whole
    def plan(ins, outs, threads):
        edges = ins[0].size if back else outs[0].size
        wide = not back and threads > 1 and edges > PARALLEL_EDGES
        return (threads * 4 if wide else 1), 0, edges

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        x, s, ids, out = ins[0], ins[2:tail], ins[tail:], outs[0]
        m, n = shape_of(ins)
        lines, extent = (m, n) if transpose else (n, m)
        edges = count(s, m, n)
        first, last = part_of(ids[0].shape[0], chunk, chunks)
        clear(out, 0 if back else first, edges if back else last)
        for k in range(first, last):
            i = ids[0][k]
            if inside(i, lines):
                start, stop = span(s, m, n, np.int64(i), edges)
                for e in range(start, stop):
                    j, t = far(s, m, n, np.int64(i), e), tag(s, m, n, np.int64(i), e)
                    if inside(j, extent) and (direct or inside(t, edges)):
                        meet(x, out, ids, k, j, place(t))

    return Phases(plan, (body,))


# ---- edges that come in another order: lines are looked up, in chains of a hash table ----------


@jit
def _table_size(count):
    size = np.int64(8)
    while size < 2 * count:
        size *= 2
    return size


@jit
def _chains(scratch, count):
    """Return heads and links of the chains: places in the list of lines, or -1."""
    size = _table_size(count)
    return scratch, scratch + 4 * size, size


def _against(elements: bool, back: bool, one: bool, half: str | None) -> tuple[Any, Any, Any]:
    """Make the plan, the phase that chains up lines, and ``ask(...)`` for one edge."""
    tail = -2 if elements else -1
    meet, clear = _meeting(elements, back, one, half), _clearer(back, elements)

    @whole
    def plan(ins, outs, threads):
        count = ins[tail].shape[0]
        edges = outs[0].size if back else ins[0].size
        wide = back and threads > 1 and edges > PARALLEL_EDGES
        return (threads * 8 if wide else 1), 4 * (_table_size(count) + count), edges

    @whole
    def link_up(chunk, chunks, ins, outs, scratch):
        ids = ins[tail]
        first, last = part_of(outs[0].shape[0], chunk, chunks)
        clear(outs[0], first, last)
        if chunk == 0:
            heads, links, size = _chains(scratch, ids.shape[0])
            head = low.array_at(heads, (size,), np.int32)
            link = low.array_at(links, (ids.shape[0],), np.int32)
            for h in range(size):
                head[h] = -1
            for k in range(ids.shape[0] - 1, -1, -1):
                h = np.int64(ids[k]) & (size - 1)
                link[k] = head[h]
                head[h] = k

    @jit
    def ask(x, out, ids, scratch, i, j, tag):
        heads, links, size = _chains(scratch, ids[0].shape[0])
        h = np.int64(i) & (size - 1)
        k = np.int64(low.array_at(heads, (size,), np.int32)[h])
        while k >= 0:
            if ids[0][k] == i:
                meet(x, out, ids, k, j, tag)
            k = np.int64(low.array_at(links, (ids[0].shape[0],), np.int32)[k])

    return plan, link_up, ask


def pick_against_lines(
    layout: str,
    key: str,
    transpose: bool,
    elements: bool,
    back: bool,
    one: bool,
    half: str | None,
) -> Phases:
    """Ask every edge of a layout that can be walked along the other axis only."""
    walk = walk_towards(layout, transpose, False)
    path, direct, count = line(walk), walk.direct, edge_count(LAYOUTS[layout])
    span, far, tag = path.span, path.far, path.tag
    tail = -2 if elements else -1
    plan, link_up, ask = _against(elements, back, one, half)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        x, s, ids, out = ins[0], ins[2:tail], ins[tail:], outs[0]
        m, n = shape_of(ins)
        lines, extent = (n, m) if transpose else (m, n)
        edges = count(s, m, n)
        first, last = part_of(lines, chunk, chunks)
        for j in range(first, last):
            start, stop = span(s, m, n, j, edges)
            for e in range(start, stop):
                i, t = far(s, m, n, j, e), tag(s, m, n, j, e)
                if inside(i, extent) and (direct or inside(t, edges)):
                    ask(x, out, ids, scratch, i, j, place(t))

    return Phases(plan, (link_up, body))


def pick_edges(
    layout: str,
    key: str,
    transpose: bool,
    elements: bool,
    back: bool,
    one: bool,
    half: str | None,
) -> Phases:
    """Ask every edge of a layout without lines."""
    ends: Any = jit(LAYOUTS[layout].edge)
    count = edge_count(LAYOUTS[layout])
    tail = -2 if elements else -1
    plan, link_up, ask = _against(elements, back, one, half)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        x, s, ids, out = ins[0], ins[2:tail], ins[tail:], outs[0]
        m, n = shape_of(ins)
        first, last = part_of(count(s, m, n), chunk, chunks)
        for e in range(first, last):
            row, col = ends(s, m, n, e)
            if inside(row, m) and inside(col, n):
                i, j = (row, col) if transpose else (col, row)
                ask(x, out, ids, scratch, i, j, place(e))

    return Phases(plan, (link_up, body))
