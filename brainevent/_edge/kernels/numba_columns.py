# SPDX-License-Identifier: Apache-2.0
"""Native scatter for a batch of vectors in columns: ``y[far, :] += weight * e(x)[i, :]``.

Threads share the columns out among themselves, so nobody adds where another does. Only a very
long list of edges is split by edges instead, into buffers that are then summed.
"""

from typing import Any

from brainevent._edge.kernels.numba_lines import matrix_extents
from brainevent._edge.kernels.numba_parts import (
    PARALLEL_EDGES,
    PRIVATE_SHIFT,
    edge_count,
    event_reader,
    fast,
    inside,
    jit,
    line,
    line_splitter,
    part_of,
    split_edges,
    walk_towards,
    weight_reader,
    whole,
)
from brainevent._edge.layout import LAYOUTS
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases


def _row_adder(event: str) -> Any:
    """Make ``add(value, x, i, y, j, columns, active, count)``: one edge, many columns.

    Rows are viewed as vectors that begin at zero: an index that may be negative, which Python
    would count from the end, would keep the loop from being vectorised.
    """
    on, times = event_reader(event)

    if event == 'BINARY':

        @jit
        def add(value, x, i, y, j, columns, active, count):
            for k in range(count):
                y[j, active[k]] += value
    else:

        @fast
        def add(value, x, i, y, j, columns, active, count):
            zero, width = y.dtype.type(0), columns[1] - columns[0]
            here = low.row_part(x, i, columns[0], width)
            there = low.row_part(y, j, columns[0], width)
            for c in range(width):
                there[c] += times(value, here[c]) if on(here[c]) else zero

    return add


def _active_columns(event: str) -> Any:
    """Make ``find(x, i, columns, active)``: list the active columns of a line and count them."""
    if event != 'BINARY':
        return jit(lambda x, i, columns, active: 1)

    @jit
    def find(x, i, columns, active):
        count = 0
        for c in range(columns[0], columns[1]):
            active[count] = c
            count += x[i, c]
        return count

    return find


def _lines_adder(layout: str, transpose: bool, event: str, one: bool, half: str | None) -> Any:
    walk = walk_towards(layout, transpose, inward=True)
    path = line(walk)
    span, far, tag = path.span, path.far, path.tag
    weight = weight_reader(one, half, walk.direct)
    find, add_row = _active_columns(event), _row_adder(event)

    @jit
    def add(lines, columns, x, active, args):
        w, s, m, n, reach, y = args
        for i in range(lines[0], lines[1]):
            count = find(x, i, columns, active)
            if count:
                first, last = span(s, m, n, i, reach[1])
                for edge in range(max(first, reach[0]), last):
                    e = low.nonnegative(edge)
                    j = far(s, m, n, i, e)
                    if inside(j, y.shape[0]):
                        value = weight(w, tag(s, m, n, i, e))
                        add_row(value, x, i, y, j, columns, active, count)

    return add


def _edges_adder(layout: str, transpose: bool, event: str, one: bool, half: str | None) -> Any:
    ends, weight = jit(LAYOUTS[layout].edge), weight_reader(one, half, True)
    find, add_row = _active_columns(event), _row_adder(event)

    @jit
    def add(lines, columns, x, active, args):
        w, s, m, n, reach, y = args
        for edge in range(lines[0], lines[1]):
            e = low.nonnegative(edge)
            row, col = ends(s, m, n, e)
            source, target = (row, col) if transpose else (col, row)
            if inside(source, x.shape[0]) and inside(target, y.shape[0]):
                count = find(x, source, columns, active)
                if count:
                    add_row(weight(w, e), x, source, y, target, columns, active, count)

    return add


def _columns_plan(layout: str, transpose: bool, event: str) -> Any:
    """Make the plan: columns for each thread, or buffers for a very long list of edges."""
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])
    # the part of all additions that events are likely to ask
    share = 20 if event == 'BINARY' else 1

    @whole
    def plan(ins, outs, threads):
        x, y = ins[-1], outs[0]
        m, n = extents(x, y)
        edges, width = count(ins[1:-1], m, n), y.shape[1]
        work = edges * width // share
        split = edges >> PRIVATE_SHIFT
        if split > 1:
            chunks = min(split, 64)
        else:
            chunks = min(threads, max(width // 8, 1)) if work > PARALLEL_EDGES else 1
        private = y.size * y.itemsize if split > 1 else 0
        return chunks, chunks * (8 * width + private), work

    return plan


def scatter_columns(
    layout: str, key: str, transpose: bool, event: str, one: bool, half: str | None
) -> Phases:
    """``y[far, :] += weight * e(x)[i, :]`` for every line ``i`` of the input."""
    walk = LAYOUTS[layout].towards(transpose)[0]
    make, split = (_lines_adder, line_splitter(line(walk))) if walk else (_edges_adder, split_edges)
    add = make(layout, transpose, event, one, half)
    extents, count = matrix_extents(transpose), edge_count(LAYOUTS[layout])
    plan = _columns_plan(layout, transpose, event)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, x, y = ins[0], ins[1:-1], ins[-1], outs[0]
        m, n = extents(x, y)
        edges, width = count(s, m, n), y.shape[1]
        active = low.words(scratch + chunk * 8 * width, width)
        private = chunks > 1 and edges >> PRIVATE_SHIFT > 1
        if private:
            columns = (0, width)
            base = scratch + chunks * 8 * width + chunk * y.size * y.itemsize
        else:
            columns, base = part_of(width, chunk, chunks), y.ctypes.data
        at, parts = (chunk, chunks) if private else (0, 1)
        lines, reach = split(s, m, n, x.shape[0], edges, at, parts)
        target = low.array_at(base, (y.shape[0], width), y.dtype)
        for j in range(y.shape[0]):
            for c in range(columns[0], columns[1]):
                target[j, c] = 0
        add(lines, columns, x, active, (w, s, m, n, reach, target))

    @whole
    def reduce(chunk, chunks, ins, outs, scratch):
        x, y = ins[-1], outs[0]
        m, n = extents(x, y)
        if chunks > 1 and count(ins[1:-1], m, n) >> PRIVATE_SHIFT > 1:
            flat = low.array_at(y.ctypes.data, (y.size,), y.dtype)
            base = scratch + chunks * 8 * y.shape[1]
            parts = low.array_at(base, (chunks, y.size), y.dtype)
            first, last = part_of(y.size, chunk, chunks)
            for j in range(first, last):
                total = parts[0, j]
                for c in range(1, chunks):
                    total += parts[c, j]
                flat[j] = total

    return Phases(plan, (body, reduce))
