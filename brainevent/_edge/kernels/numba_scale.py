# SPDX-License-Identifier: Apache-2.0
"""Native kernels of scaling: one number for every edge, ``w[edge] * y[target]``.

Operands are the numbers, rows and columns of the matrix, its structure, and the vector.
"""

from typing import Any

from brainevent._edge.kernels.numba_parts import (
    PARALLEL_EDGES,
    edge_count,
    inside,
    jit,
    line,
    part_of,
    place,
    whole,
)
from brainevent._edge.kernels.numba_sample import clearer
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases


@jit
def shape_of(ins):
    """Return rows and columns."""
    return low.nonnegative(ins[1][0]), low.nonnegative(ins[1][1])


@whole
def plan_edges(ins, outs, threads):
    """Share the edges among threads."""
    work = outs[0].shape[0]
    return (threads * 8 if threads > 1 and work > PARALLEL_EDGES else 1), 0, work


def scale_lines(layout: str, key: str, transpose: bool) -> Phases:
    """Walk along rows; results go where the edges' weights are."""
    walk = LAYOUTS[layout].walk
    assert walk is not None
    path, direct, count = line(walk), walk.direct, edge_count(LAYOUTS[layout])
    span, far, tag = path.span, path.far, path.tag

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, y, out = ins[0], ins[2:-1], ins[-1], outs[0]
        m, n = shape_of(ins)
        edges = count(s, m, n)
        lines = part_of(m, chunk, chunks)
        for i in range(lines[0], lines[1]):
            first, last = span(s, m, n, i, edges)
            for edge in range(first, last):
                e = low.nonnegative(edge)
                j, t = far(s, m, n, i, e), tag(s, m, n, i, e)
                sound = inside(j, n)
                if sound and (direct or inside(t, out.shape[0])):
                    out[place(t)] = w[place(t)] * y[place(j if transpose else i)]
                elif direct:
                    out[e] = 0

    return Phases(plan_edges, (clearer(layout, shape_of, 2, -1), body))


def scale_edges(layout: str, key: str, transpose: bool) -> Phases:
    """Go through a layout without lines edge by edge."""
    ends: Any = jit(LAYOUTS[layout].edge)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, y, out = ins[0], ins[2:-1], ins[-1], outs[0]
        m, n = shape_of(ins)
        edges = part_of(out.shape[0], chunk, chunks)
        for edge in range(edges[0], edges[1]):
            e = low.nonnegative(edge)
            row, col = ends(s, m, n, e)
            if inside(row, m) and inside(col, n):
                out[e] = w[e] * y[place(col if transpose else row)]
            else:
                out[e] = 0

    return Phases(plan_edges, (body,))
