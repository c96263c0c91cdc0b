# SPDX-License-Identifier: Apache-2.0
"""Native kernels of plasticity: weights of the connections that fired are changed in place.

The result's memory holds the old weights when a kernel starts: XLA gives it the operand's own
where it may, else a copy. Operands are the weights, two bounds, structure, spikes and trace.
"""

import functools
from typing import Any

from brainevent._edge.kernels.numba_parts import (
    PARALLEL_EDGES,
    any_in_word,
    count_true,
    edge_count,
    inside,
    jit,
    line,
    part_of,
    whole,
)
from brainevent._edge.kernels.numba_product import _matrix_extents
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases


@functools.cache
def adder(clip: bool) -> Any:
    """Make ``add(weight, step, bounds)``: the sum, between the bounds if it is to be clipped."""
    if not clip:
        return jit(lambda weight, step, bounds: weight + step)

    @jit
    def add(weight, step, bounds):
        total = weight + step
        total = bounds[0] if total < bounds[0] else total
        return bounds[1] if total > bounds[1] else total

    return add


def _plan(layout: str, transpose: bool, by_line: bool) -> Any:
    extents, count = _matrix_extents(transpose), edge_count(LAYOUTS[layout])

    @whole
    def plan(ins, outs, threads):
        x = ins[-2]
        m, n = extents(x, ins[-1])
        edges = count(ins[2:-2], m, n)
        if by_line:
            edges = edges // max(x.shape[0], 1) * count_true(x)
        return (threads * 8 if threads > 1 and edges > PARALLEL_EDGES else 1), 0, edges

    return plan


def update_lines(layout: str, key: str, transpose: bool, clip: bool) -> Phases:
    """``w[tag] += y[far]`` along every line of the input that fired."""
    walk = LAYOUTS[layout].towards(transpose)[0]
    assert walk is not None
    path, direct = line(walk), walk.direct
    span, far, tag, add = path.span, path.far, path.tag, adder(clip)
    extents, count = _matrix_extents(transpose), edge_count(LAYOUTS[layout])

    @jit
    def add_line(i, s, m, n, edges, y, w, bounds):
        first, last = span(s, m, n, i, edges)
        for e in range(first, last):
            j = far(s, m, n, i, e)
            t = tag(s, m, n, i, e)
            if inside(j, y.shape[0]) and (direct or inside(t, w.shape[0])):
                w[t] = add(w[t], y[j], bounds)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        bounds, s, x, y = ins[1], ins[2:-2], ins[-2], ins[-1]
        w = low.array_at(outs[0].ctypes.data, (outs[0].size,), outs[0].dtype)
        m, n = extents(x, y)
        edges = count(s, m, n)
        first, last = part_of(x.shape[0], chunk, chunks)
        for start in range(first, last, 8):
            stop = min(start + 8, last)
            if stop < start + 8 or any_in_word(x, start):
                for i in range(start, stop):
                    if x[i]:
                        add_line(i, s, m, n, edges, y, w, bounds)

    return Phases(_plan(layout, transpose, True), (body,))


def update_against_lines(layout: str, key: str, transpose: bool, clip: bool) -> Phases:
    """Ask every edge of a layout that can be walked along the other axis only."""
    walk = LAYOUTS[layout].towards(transpose)[1]
    assert walk is not None
    path, direct = line(walk), walk.direct
    span, far, tag, add = path.span, path.far, path.tag, adder(clip)
    extents, count = _matrix_extents(transpose), edge_count(LAYOUTS[layout])

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        bounds, s, x, y = ins[1], ins[2:-2], ins[-2], ins[-1]
        w = low.array_at(outs[0].ctypes.data, (outs[0].size,), outs[0].dtype)
        m, n = extents(x, y)
        edges = count(s, m, n)
        first, last = part_of(y.shape[0] if count_true(x) else 0, chunk, chunks)
        for i in range(first, last):
            step = y[i]
            start, stop = span(s, m, n, i, edges)
            for e in range(start, stop):
                j = far(s, m, n, i, e)
                if inside(j, x.shape[0]) and x[j]:
                    t = tag(s, m, n, i, e)
                    if direct or inside(t, w.shape[0]):
                        w[t] = add(w[t], step, bounds)

    return Phases(_plan(layout, transpose, False), (body,))


def update_edges(layout: str, key: str, transpose: bool, clip: bool) -> Phases:
    """Ask every edge of a layout without lines."""
    ends, add = jit(LAYOUTS[layout].edge), adder(clip)
    extents, count = _matrix_extents(transpose), edge_count(LAYOUTS[layout])

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        bounds, s, x, y = ins[1], ins[2:-2], ins[-2], ins[-1]
        w = low.array_at(outs[0].ctypes.data, (outs[0].size,), outs[0].dtype)
        m, n = extents(x, y)
        first, last = part_of(count(s, m, n), chunk, chunks)
        for e in range(first, last):
            row, col = ends(s, m, n, e)
            source, target = (row, col) if transpose else (col, row)
            if inside(source, x.shape[0]) and inside(target, y.shape[0]) and x[source]:
                w[e] = add(w[e], y[target], bounds)

    return Phases(_plan(layout, transpose, False), (body,))
