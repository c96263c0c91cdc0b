# SPDX-License-Identifier: Apache-2.0
"""Native kernels of the product, put together from walk, weight, event and an action.

*Gather* walks along lines of the output: every line is one sum, lines run in parallel. *Scatter*
walks along lines of the input: silent lines are skipped; threads add into buffers of their own,
which are then summed. A layout without lines is worked through edge by edge, like a scatter.
"""

from typing import Any

import numpy as np

from brainevent._edge.kernels.numba_lines import active_lines, line_visitor, matrix_extents
from brainevent._edge.kernels.numba_parts import (
    EDGE_NS,
    PARALLEL_EDGES,
    PRIVATE_SHIFT,
    SCATTERED_NS,
    SUM_BLOCK,
    WAKE_NS,
    count_true,
    edge_count,
    event_reader,
    fast,
    inside,
    jit,
    line,
    line_splitter,
    part_of,
    place,
    split_edges,
    walk_towards,
    weight_reader,
    whole,
    worth_buffers,
)
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases

# ---- gather: one sum for every line of the output ----------------------------------------------


def gather_vector(
    layout: str, key: str, transpose: bool, event: str, one: bool, half: str | None
) -> Phases:
    """``y[i] = sum over edges of line i: weight * e(x)[far]``."""
    walk = walk_towards(layout, transpose, inward=False)
    path, extents = line(walk), matrix_extents(transpose)
    span, far, tag = path.span, path.far, path.tag
    weight, count = weight_reader(one, half, walk.direct), edge_count(LAYOUTS[layout])
    on, times = event_reader(event)

    @fast
    def line_sum(s, w, x, m, n, i, edges, zero):
        first, last = span(s, m, n, i, edges)
        total = zero
        for start in range(first, last, SUM_BLOCK):
            part = zero
            for edge in range(start, min(start + SUM_BLOCK, last)):
                e = low.nonnegative(edge)
                j = far(s, m, n, i, e)
                sound = inside(j, x.shape[0])
                element = x[place(j) if sound else np.uint64(0)]
                term = times(weight(w, tag(s, m, n, i, e)), element)
                part += term if sound & on(element) else zero
            total += part
        return total

    @whole
    def plan(ins, outs, threads):
        m, n = extents(ins[-1], outs[0])
        edges = count(ins[1:-1], m, n)
        return (threads * 8 if threads > 1 and edges > PARALLEL_EDGES else 1), 0, edges

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, x, y = ins[0], ins[1:-1], ins[-1], outs[0]
        m, n = extents(x, y)
        edges, zero = count(s, m, n), y.dtype.type(0)
        first, last = part_of(y.shape[0], chunk, chunks)
        for i in range(first, last):
            y[i] = line_sum(s, w, x, m, n, i, edges, zero) if x.shape[0] > 0 else zero

    return Phases(plan, (body,))


def gather_columns(
    layout: str, key: str, transpose: bool, event: str, one: bool, half: str | None
) -> Phases:
    """Do the same for a batch of vectors in columns: ``y[i, :] += weight * e(x)[far, :]``."""
    walk = walk_towards(layout, transpose, inward=False)
    path, extents = line(walk), matrix_extents(transpose)
    span, far, tag = path.span, path.far, path.tag
    weight, count = weight_reader(one, half, walk.direct), edge_count(LAYOUTS[layout])
    on, times = event_reader(event)

    @fast
    def add_line(s, w, x, m, n, i, first, last, out):
        zero = out.dtype.type(0)
        for edge in range(first, last):
            e = low.nonnegative(edge)
            j = far(s, m, n, i, e)
            if inside(j, x.shape[0]):
                value = weight(w, tag(s, m, n, i, e))
                for c in range(x.shape[1]):
                    element = x[j, c]
                    out[c] += times(value, element) if on(element) else zero

    @whole
    def plan(ins, outs, threads):
        m, n = extents(ins[-1], outs[0])
        work = count(ins[1:-1], m, n) * outs[0].shape[1]
        chunks = threads * 8 if threads > 1 and work > PARALLEL_EDGES else 1
        return chunks, chunks * outs[0].shape[1] * outs[0].itemsize, work

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, x, y = ins[0], ins[1:-1], ins[-1], outs[0]
        m, n = extents(x, y)
        edges, width = count(s, m, n), y.shape[1]
        part = low.array_at(scratch + chunk * width * y.itemsize, (width,), y.dtype)
        rows = part_of(y.shape[0], chunk, chunks)
        for i in range(rows[0], rows[1]):
            first, last = span(s, m, n, i, edges)
            for c in range(width):
                y[i, c] = 0
            for start in range(first, last, 1 << 16):
                for c in range(width):
                    part[c] = 0
                add_line(s, w, x, m, n, i, start, min(start + (1 << 16), last), part)
                for c in range(width):
                    y[i, c] += part[c]

    return Phases(plan, (body,))


# ---- scatter: every active line of the input adds to what it reaches ---------------------------


def line_adder(
    layout: str, transpose: bool, event: str, one: bool, half: str | None
) -> tuple[Any, Any]:
    """Make ``visit`` and ``fetch``, which add a line's edges: `line_visitor`."""
    walk = walk_towards(layout, transpose, inward=True)
    path = line(walk)
    far, tag, weight = path.far, path.tag, weight_reader(one, half, walk.direct)
    _, times = event_reader(event)

    @jit
    def value(i, e, element, args):
        return times(weight(args[0], tag(args[1], args[2], args[3], i, e)), element)

    @jit
    def each(first, last, i, element, args):
        _, s, m, n, _, y = args
        for edge in range(first, last):
            e = low.nonnegative(edge)
            j = far(s, m, n, i, e)
            if inside(j, y.shape[0]):
                y[place(j)] += value(i, e, element, args)

    @jit
    def four(i, e, ids, element, args):
        y = args[5]
        y[place(ids[0])] += value(i, e, element, args)
        y[place(ids[1])] += value(i, e + 1, element, args)
        y[place(ids[2])] += value(i, e + 2, element, args)
        y[place(ids[3])] += value(i, e + 3, element, args)

    return line_visitor(layout, transpose, one, four, each)


def _edge_adder(layout: str, transpose: bool, event: str, one: bool, half: str | None) -> Any:
    """Make ``add(first, last, x, (w, s, m, n, reach, y))`` for a layout without lines."""
    ends, weight = jit(LAYOUTS[layout].edge), weight_reader(one, half, True)
    on, times = event_reader(event)

    @jit
    def add(first, last, x, args):
        w, s, m, n, reach, y = args
        for edge in range(first, last):
            e = low.nonnegative(edge)
            row, col = ends(s, m, n, e)
            source, target = (row, col) if transpose else (col, row)
            sound = inside(source, x.shape[0]) and inside(target, y.shape[0])
            if sound and on(x[place(source)]):
                y[place(target)] += times(weight(w, e), x[place(source)])

    return add


def _scatter_plan(layout: str, transpose: bool, event: str, one: bool) -> Any:
    """Make the plan of a scatter: as many private buffers as threads, if there is work for them."""
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])
    walk = LAYOUTS[layout].towards(transpose)[0]
    edge_ns = EDGE_NS if walk is None or walk.direct or one else SCATTERED_NS
    counted = event == 'BINARY' and walk is not None

    @whole
    def plan(ins, outs, threads):
        x, y = ins[-1], outs[0]
        m, n = extents(x, y)
        edges = count(ins[1:-1], m, n)
        if counted and edges * edge_ns > 2 * WAKE_NS:
            edges = edges // max(x.shape[0], 1) * count_true(x)
        ns = edges * edge_ns
        chunks = threads if worth_buffers(ns, threads, y.shape[0]) else 1
        chunks = max(chunks, min(64, edges >> PRIVATE_SHIFT))
        return chunks, (chunks * y.shape[0] * y.itemsize if chunks > 1 else 0), ns

    return plan


def scatter_vector(
    layout: str, key: str, transpose: bool, event: str, one: bool, half: str | None
) -> Phases:
    """``y[far] += weight * e(x)[i]`` for every active line ``i`` of the input."""
    walk = LAYOUTS[layout].towards(transpose)[0]
    if walk:
        split = line_splitter(line(walk))
        add = active_lines(event, *line_adder(layout, transpose, event, one, half))
    else:
        split = split_edges
        add = _edge_adder(layout, transpose, event, one, half)
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, x, y = ins[0], ins[1:-1], ins[-1], outs[0]
        m, n = extents(x, y)
        edges, out = count(s, m, n), y.shape[0]
        base = y.ctypes.data if chunks == 1 else scratch + chunk * out * y.itemsize
        target = low.array_at(base, (out,), y.dtype)
        for j in range(out):
            target[j] = 0
        part, reach = split(s, m, n, x.shape[0], edges, chunk, chunks)
        add(part[0], part[1], x, (w, s, m, n, reach, target))

    @whole
    def reduce(chunk, chunks, ins, outs, scratch):
        y = outs[0]
        out = y.shape[0]
        if chunks > 1:
            parts = low.array_at(scratch, (chunks, out), y.dtype)
            first, last = part_of(out, chunk, chunks)
            for j in range(first, last):
                y[j] = parts[0, j]
            for c in range(1, chunks):
                for j in range(first, last):
                    y[j] += parts[c, j]

    return Phases(_scatter_plan(layout, transpose, event, one), (body, reduce))
