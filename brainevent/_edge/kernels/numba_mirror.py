# SPDX-License-Identifier: Apache-2.0
"""Native kernels of the mirror: counting sorts of all edges by column, and by row.

Operands are rows and columns of the matrix, and its structure.
"""

from typing import Any

from brainevent._edge.kernels.numba_parts import edge_count, inside, jit, line, whole
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases


def mirror_lines(layout: str, key: str) -> Phases:
    """Count the edges of every column, then put each edge at its column's next place.

    ``ptr[j + 1]`` is the next free place of column ``j`` while edges are put down, and ends up
    where the next column begins. Edges that no column owns keep position zero, out of all spans.
    """
    path = line(LAYOUTS[layout].walk)
    span, far, count = path.span, path.far, edge_count(LAYOUTS[layout])

    @whole
    def plan(ins, outs, threads):
        edges = outs[0].shape[0]
        return 1, 0, 4 * edges

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        origin, ptr, tag = outs
        s, m, n = ins[1:], low.nonnegative(ins[0][0]), ptr.shape[0] - 1
        edges = min(count(s, m, n), origin.shape[0])
        tags = min(edges, tag.shape[0])  # none, where nobody needs them
        for j in range(n + 1):
            ptr[j] = 0
        for e in range(edges):
            origin[e] = 0
        for e in range(tags):
            tag[e] = 0
        for i in range(m):
            first, last = span(s, m, n, i, edges)
            for e in range(first, last):
                j = far(s, m, n, i, e)
                if inside(j, n) and j + 2 <= n:
                    ptr[j + 2] += 1
        for j in range(2, n + 1):
            ptr[j] += ptr[j - 1]
        for i in range(m):
            first, last = span(s, m, n, i, edges)
            for e in range(first, last):
                j = far(s, m, n, i, e)
                if inside(j, n):
                    place = ptr[j + 1]
                    if place < edges:
                        origin[place] = i
                        if place < tags:
                            tag[place] = e
                        ptr[j + 1] = place + 1

    return Phases(plan, (body,))


def _order(ends: Any, by_row: bool) -> Any:
    """Make ``order(s, m, n, edges, far, ptr, tag)``: the same for edges without any order."""
    apart = jit((lambda row, col: (row, col)) if by_row else (lambda row, col: (col, row)))

    @jit
    def order(s, m, n, edges, far, ptr, tag):
        lines = ptr.shape[0] - 1
        for i in range(lines + 1):
            ptr[i] = 0
        for e in range(edges):
            far[e] = 0
            tag[e] = 0
            row, col = ends(s, m, n, e)
            i = apart(row, col)[0]
            if inside(row, m) and inside(col, n) and i + 2 <= lines:
                ptr[i + 2] += 1
        for i in range(2, lines + 1):
            ptr[i] += ptr[i - 1]
        for e in range(edges):
            row, col = ends(s, m, n, e)
            i, other = apart(row, col)
            if inside(row, m) and inside(col, n):
                place = ptr[i + 1]
                far[place] = other
                tag[place] = e
                ptr[i + 1] = place + 1

    return order


def mirror_edges(layout: str, key: str) -> Phases:
    """Order edges by row, then by column, for a layout without lines."""
    ends, count = jit(LAYOUTS[layout].edge), edge_count(LAYOUTS[layout])
    by_row, by_column = _order(ends, True), _order(ends, False)

    @whole
    def plan(ins, outs, threads):
        return 1, 0, 8 * outs[0].shape[0]

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        m, n = outs[1].shape[0] - 1, outs[4].shape[0] - 1
        s = ins[1:]
        edges = min(count(s, m, n), outs[2].shape[0])
        by_row(s, m, n, edges, outs[0], outs[1], outs[2])
        by_column(s, m, n, edges, outs[3], outs[4], outs[5])

    return Phases(plan, (body,))
