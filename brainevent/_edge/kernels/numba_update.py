# SPDX-License-Identifier: Apache-2.0
"""Native kernels of plasticity: weights of the connections that fired are changed in place.

The result's memory holds the old weights when a kernel starts: XLA gives it the operand's own
where it may, else a copy. Operands are the weights, two bounds, structure, spikes and trace.
"""

import functools
from typing import Any

from brainevent._edge.kernels.numba_lines import active_lines, line_visitor, matrix_extents
from brainevent._edge.kernels.numba_parts import (
    EDGE_NS,
    SCATTERED_NS,
    WAKE_NS,
    count_true,
    edge_count,
    inside,
    jit,
    line,
    part_of,
    place,
    walk_towards,
    whole,
    worth_threads,
)
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
    """Make the plan of an update: every thread takes lines, or edges, of its own."""
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])
    walk = LAYOUTS[layout].towards(transpose)[0 if by_line else 1]
    edge_ns = EDGE_NS if walk is None or walk.direct else SCATTERED_NS

    @whole
    def plan(ins, outs, threads):
        x = ins[-2]
        m, n = extents(x, ins[-1])
        edges = count(ins[2:-2], m, n)
        if by_line and edges * edge_ns > WAKE_NS:
            edges = edges // max(x.shape[0], 1) * count_true(x)
        ns = edges * edge_ns
        return (threads * 8 if worth_threads(ns, threads) else 1), 0, ns

    return plan


def _line_updater(layout: str, transpose: bool, clip: bool) -> tuple[Any, Any]:
    """Make ``visit`` and ``fetch``, which change a line's weights: `line_visitor`."""
    walk = walk_towards(layout, transpose, inward=True)
    path, direct = line(walk), walk.direct
    far, tag, add = path.far, path.tag, adder(clip)

    @jit
    def change(i, e, step, args):
        w, s, m, n, bounds = args[0], args[1], args[2], args[3], args[6]
        t = tag(s, m, n, i, e)
        if direct or inside(t, w.shape[0]):
            w[place(t)] = add(w[place(t)], step, bounds)

    @jit
    def each(first, last, i, element, args):
        _, s, m, n, _, y, _ = args
        for edge in range(first, last):
            e = low.nonnegative(edge)
            j = far(s, m, n, i, e)
            if inside(j, y.shape[0]):
                change(i, e, y[place(j)], args)

    @jit
    def four(i, e, ids, element, args):
        y = args[5]  # all steps are read before any weight is written
        steps = y[place(ids[0])], y[place(ids[1])], y[place(ids[2])], y[place(ids[3])]
        change(i, e, steps[0], args)
        change(i, e + 1, steps[1], args)
        change(i, e + 2, steps[2], args)
        change(i, e + 3, steps[3], args)

    return line_visitor(layout, transpose, False, four, each)


def update_lines(layout: str, key: str, transpose: bool, clip: bool) -> Phases:
    """``w[tag] += y[far]`` along every line of the input that fired."""
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])
    over = active_lines('BINARY', *_line_updater(layout, transpose, clip))

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        bounds, s, x, y = ins[1], ins[2:-2], ins[-2], ins[-1]
        w = low.array_at(outs[0].ctypes.data, (outs[0].size,), outs[0].dtype)
        m, n = extents(x, y)
        first, last = part_of(x.shape[0], chunk, chunks)
        over(first, last, x, (w, s, m, n, (0, count(s, m, n)), y, bounds))

    return Phases(_plan(layout, transpose, True), (body,))


def update_against_lines(layout: str, key: str, transpose: bool, clip: bool) -> Phases:
    """Ask every edge of a layout that can be walked along the other axis only."""
    walk = LAYOUTS[layout].towards(transpose)[1]
    assert walk is not None
    path, direct = line(walk), walk.direct
    span, far, tag, add = path.span, path.far, path.tag, adder(clip)
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])

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
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])

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
