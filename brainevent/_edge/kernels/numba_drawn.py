# SPDX-License-Identifier: Apache-2.0
"""Native kernels of drawn layouts, put together from draw, weight, event and an action.

*Gather* goes along lines of the output, each of which is one sum. *Scatter* goes along the active
lines of the input. Since any block of a line can be drawn by itself, threads share out the blocks,
and with them the output; only where there are fewer blocks than threads do they share out lines,
and add into buffers of their own, which are then summed.

Operands are the parameters of the weight in one array, the probability, the seed, what thins, and
the input.
"""

from typing import Any

import numpy as np
from numba import njit

from brainevent._edge.kernels.numba_columns import _active_columns, _row_adder
from brainevent._edge.kernels.numba_draw import (
    STRETCH,
    block_count,
    draw,
    line_ns,
    root_of,
    rule_at,
    walker,
    weighted_walker,
)
from brainevent._edge.kernels.numba_lines import active_lines
from brainevent._edge.kernels.numba_parts import (
    PRIVATE_SHIFT,
    WAKE_NS,
    count_true,
    event_reader,
    jit,
    part_of,
    whole,
    worth_buffers,
)
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases
from brainevent._op.numba_ffi.intrinsics import NATIVE


@njit(**NATIVE, inline='always')  # an array cannot be handed out of a function without counts
def _view_vector(base, y):
    return low.array_at(base, (y.shape[0],), y.dtype)


@njit(**NATIVE, inline='always')
def _view_columns(base, y):
    return low.array_at(base, (y.shape[0], y.shape[1]), y.dtype)


@jit
def _blocks(ins, n):
    """Return how many blocks a line of ``n`` positions has."""
    _, shift, width, _ = rule_at(ins[1])
    return block_count(shift, width, n)


@jit
def _by_lines(chunks, blocks, lines):
    """Tell whether chunks are parts of the lines, with buffers of their own, or of the blocks."""
    return chunks > 1 and (blocks < chunks or lines >> PRIVATE_SHIFT > 1)


# ---- scatter -----------------------------------------------------------------------------------


def _scatter_element(layout: str, weight: str, event: str, dtype: str) -> Any:
    """Make ``over(first, last, x, args)`` for a vector."""
    _, times = event_reader(event)

    @jit
    def add(total, i, place, value, args):
        element, y = args
        y[place] += times(value, element)
        return total

    walk = weighted_walker(layout, weight, dtype, add)

    @jit
    def visit(i, following, element, args):
        (rule, root, part, n, s), w, y, active = args
        walk(0, rule, draw(root, i), part, n, i, s, w, (element, y))

    return active_lines(event, visit, jit(lambda i, args: None))


def _scatter_row(layout: str, weight: str, event: str, dtype: str) -> Any:
    """Make ``over(first, last, x, args)`` for a batch of vectors in columns."""
    find, add_row = _active_columns(event), _row_adder(event)

    @jit
    def add(total, i, place, value, args):
        x, y, columns, active, count = args
        add_row(value, x, i, y, np.int64(place), columns, active, count)
        return total

    walk = weighted_walker(layout, weight, dtype, add)

    @jit
    def over(first, last, x, args):
        (rule, root, part, n, s), w, y, active = args
        columns = (0, y.shape[1])
        for i in range(first, last):
            count = find(x, i, columns, active)
            if count:
                here = (x, y, columns, active, count)
                walk(0, rule, draw(root, i), part, n, i, s, w, here)

    return over


def _scatter_plan(lines_of: Any) -> Any:
    @whole
    def plan(ins, outs, threads):
        x, y = ins[-1], outs[0]
        m, n = x.shape[0], y.shape[0]
        blocks, columns = _blocks(ins, n), y.size // max(n, 1)
        ns = np.int64(line_ns(rule_at(ins[1]), n, columns) * lines_of(x))
        chunks, heavy = 1, m >> PRIVATE_SHIFT
        if heavy > 1:
            chunks = min(heavy, 64)
        elif blocks >= threads:
            chunks = threads if ns > 2 * WAKE_NS else 1
        elif worth_buffers(ns, threads, y.size):
            chunks = threads
        private = y.size * y.itemsize if _by_lines(chunks, blocks, m) else 0
        return chunks, chunks * (8 * columns + private), ns

    return plan


def drawn_scatter(
    layout: str, weight: str, key: str, event: str, batch: bool, dtype: str
) -> Phases:
    """``y[far] += weight * e(x)[i]``, along every active line ``i`` of the input."""
    make, view = (_scatter_row, _view_columns) if batch else (_scatter_element, _view_vector)
    over = make(layout, weight, event, dtype)
    counted = event == 'BINARY' and not batch
    lines_of = count_true if counted else jit(lambda x: x.shape[0])

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        x, y = ins[-1], outs[0]
        m, n = x.shape[0], y.shape[0]
        rule = rule_at(ins[1])
        blocks, columns = _blocks(ins, n), y.size // max(n, 1)
        base, lines, part = y.ctypes.data, (0, m), part_of(blocks, chunk, chunks)
        if _by_lines(chunks, blocks, m):
            base = scratch + chunks * 8 * columns + chunk * y.size * y.itemsize
            lines, part = part_of(m, chunk, chunks), (0, blocks)
        target, width = view(base, y), rule[2]
        end = n if part[1] == blocks else part[1] << width
        flat = low.array_at(base, (y.size,), y.dtype)
        for j in range((part[0] << width) * columns, end * columns):
            flat[j] = 0
        active = low.words(scratch + chunk * 8 * columns, columns)
        lead = (rule, root_of(ins[2]), part, n, ins[3:-1])
        over(lines[0], lines[1], x, (lead, ins[0], target, active))

    @whole
    def reduce(chunk, chunks, ins, outs, scratch):
        x, y = ins[-1], outs[0]
        if _by_lines(chunks, _blocks(ins, y.shape[0]), x.shape[0]):
            columns = y.size // max(y.shape[0], 1)
            parts = low.array_at(scratch + chunks * 8 * columns, (chunks, y.size), y.dtype)
            flat = low.array_at(y.ctypes.data, (y.size,), y.dtype)
            first, last = part_of(y.size, chunk, chunks)
            for j in range(first, last):
                total = parts[0, j]
                for c in range(1, chunks):
                    total += parts[c, j]
                flat[j] = total

    return Phases(_scatter_plan(lines_of), (body, reduce))


# ---- along lines of the output -----------------------------------------------------------------


def _line_plan(columns_of: Any, length_of: Any) -> Any:
    """Make the plan of kernels that go along all lines, each of which belongs to one thread."""

    @whole
    def plan(ins, outs, threads):
        columns = columns_of(outs[0])
        ns = line_ns(rule_at(ins[1]), length_of(ins, outs), columns) * outs[0].shape[0]
        chunks = threads * 8 if threads > 1 and ns > 2 * WAKE_NS else 1
        return chunks, chunks * columns * outs[0].itemsize, np.int64(ns)

    return plan


_ONE = jit(lambda y: 1)
_COLUMNS = jit(lambda y: y.shape[1])
_INPUT = jit(lambda ins, outs: ins[-1].shape[0])


def drawn_gather(layout: str, weight: str, key: str, event: str, batch: bool, dtype: str) -> Phases:
    """``y[i] = sum of weight * e(x)[far]``, along every line ``i`` of the output."""
    if batch:
        return _gather_rows(layout, weight, event, dtype)
    on, times = event_reader(event)

    @jit
    def add(total, i, place, value, x):
        element = x[place]
        return total + times(value, element) if on(element) else total

    walk = weighted_walker(layout, weight, dtype, add)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, x, y = ins[0], ins[3:-1], ins[-1], outs[0]
        n, rule, root = x.shape[0], rule_at(ins[1]), root_of(ins[2])
        blocks, zero = _blocks(ins, n), y.dtype.type(0)
        first, last = part_of(y.shape[0], chunk, chunks)
        for i in range(first, last):
            stream, total = draw(root, i), zero
            for b in range(0, blocks, STRETCH):
                part = (b, min(b + STRETCH, blocks))
                total += walk(zero, rule, stream, part, n, i, s, w, x)
            y[i] = total

    return Phases(_line_plan(_ONE, _INPUT), (body,))


def _gather_rows(layout: str, weight: str, event: str, dtype: str) -> Phases:
    """Do the same for a batch of vectors in columns."""
    on, times = event_reader(event)

    @jit
    def add(total, i, place, value, args):
        x, part = args
        zero = part.dtype.type(0)
        row = low.row_part(x, np.int64(place), 0, x.shape[1])
        for c in range(x.shape[1]):
            part[c] += times(value, row[c]) if on(row[c]) else zero
        return total

    walk = weighted_walker(layout, weight, dtype, add)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, x, y = ins[0], ins[3:-1], ins[-1], outs[0]
        n, rule, root = x.shape[0], rule_at(ins[1]), root_of(ins[2])
        blocks, columns = _blocks(ins, n), y.shape[1]
        part = low.array_at(scratch + chunk * columns * y.itemsize, (columns,), y.dtype)
        first, last = part_of(y.shape[0], chunk, chunks)
        for i in range(first, last):
            stream = draw(root, i)
            for c in range(columns):
                y[i, c] = 0
            for b in range(0, blocks, STRETCH):
                for c in range(columns):
                    part[c] = 0
                here = (b, min(b + STRETCH, blocks))
                walk(0, rule, stream, here, n, i, s, w, (x, part))
                for c in range(columns):
                    y[i, c] += part[c]

    return Phases(_line_plan(_COLUMNS, _INPUT), (body,))


def drawn_dense(layout: str, weight: str, key: str, dtype: str) -> Phases:
    """``out[i, j] = weight`` of every edge, zero elsewhere."""

    @jit
    def put(total, i, place, value, out):
        out[i, place] = value
        return total

    walk = weighted_walker(layout, weight, dtype, put)

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, s, out = ins[0], ins[3:], outs[0]
        n, rule, root = out.shape[1], rule_at(ins[1]), root_of(ins[2])
        blocks = _blocks(ins, n)
        first, last = part_of(out.shape[0], chunk, chunks)
        for i in range(first, last):
            row = low.row_part(out, i, 0, n)
            for j in range(n):
                row[j] = 0
            walk(0, rule, draw(root, i), (0, blocks), n, i, s, w, out)

    return Phases(_line_plan(_ONE, jit(lambda ins, outs: outs[0].shape[1])), (body,))


def drawn_listing(layout: str, key: str) -> Phases:
    """Count the edges of every line, and put columns and keys where the line begins.

    Operands are the probability twice, the seed, what thins, where lines begin, and an array
    of no size but the length of lines.
    """

    @jit
    def put(total, i, place, key, args):
        col, high, low_word, start = args
        at = start + total
        if at >= 0 and at < col.shape[0]:
            col[at] = np.int32(place)
        if at >= 0 and at < min(high.shape[0], low_word.shape[0]):  # keys may be left out
            high[at], low_word[at] = np.uint32(key >> np.uint64(32)), np.uint32(key)
        return total + 1

    walk = walker(layout, put, jit(lambda w, key: key), np.uint64)

    @whole
    def clear(chunk, chunks, ins, outs, scratch):
        _, col, high, low_word = outs
        first, last = part_of(col.shape[0], chunk, chunks)
        for e in range(first, last):
            col[e] = 0
        first, last = part_of(min(high.shape[0], low_word.shape[0]), chunk, chunks)
        for e in range(first, last):
            high[e], low_word[e] = 0, 0

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        s, ptr, n = ins[3:-2], ins[-2], np.int64(ins[-1][0])
        count, col, high, low_word = outs
        rule, root = rule_at(ins[1]), root_of(ins[2])
        blocks = _blocks(ins, n)
        first, last = part_of(count.shape[0], chunk, chunks)
        for i in range(first, last):
            here = (col, high, low_word, np.int64(ptr[i]))
            count[i] = walk(np.int64(0), rule, draw(root, i), (0, blocks), n, i, s, 0, here)

    return Phases(_line_plan(_ONE, jit(lambda ins, outs: np.int64(ins[-1][0]))), (clear, body))
