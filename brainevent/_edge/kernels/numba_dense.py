# SPDX-License-Identifier: Apache-2.0
"""Native kernels of dense matrices and events: active ids are listed once, then rows are added.

Vectors lie in rows, ``x`` is ``(batch, input)``; ``w`` is flat, row by row. Loops run over views
that start at zero: an index that might be negative keeps numba's code from being vectorised, which
costs a factor of ten here.
"""

import numpy as np
from numba import njit

from brainevent._edge.kernels.numba_parts import (
    PARALLEL_EDGES,
    any_in_word,
    fast,
    jit,
    part_of,
    weight_reader,
    whole,
)
from brainevent._edge.kernels.numba_update import adder
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases
from brainevent._op.numba_ffi.intrinsics import NATIVE

CACHE_FLOATS = 1 << 16  # numbers of a block of columns that stay in the cache for all vectors
NARROWEST = 128  # columns of a block, at least
LANES = 64  # blocks begin at multiples, so that vectorised loops leave no rest
DENSELY = 14  # one active element in so many: a whole row is read rather than picked from


@njit(**NATIVE, inline='always')  # an array cannot be handed out of a function without counts
def _stretch(w, start, length):
    """View ``w[start : start + length]``."""
    return low.array_at(w.ctypes.data + start * w.itemsize, (length,), w.dtype)


@jit
def _ids_bytes(x):
    return 4 * x.shape[0] * (x.shape[1] + 1)


@whole
def _list_active(chunk, chunks, ins, outs, scratch):
    """List the active elements of every vector in scratch: their number, then their ids."""
    x = ins[1]
    batch, length = x.shape
    first, last = part_of(batch, chunk, chunks)
    for b in range(first, last):
        ids = low.array_at(scratch + 4 * b * (length + 1), (length + 1,), np.int32)
        row = low.row_part(x, b, 0, length)
        count = 0
        for start in range(0, length, 8):
            stop = min(start + 8, length)
            if stop < start + 8 or any_in_word(row, start):
                for i in range(start, stop):
                    ids[count + 1] = i
                    count += row[i]
        ids[0] = count


def dense_rows(half: str | None) -> Phases:
    """``y[b, :] = sum of the rows of w that are active in x[b]``, by blocks of columns."""
    weight = weight_reader(False, half, True)

    @fast
    def add_row(w, i, n, first, y):
        row = _stretch(w, np.int64(i) * n + first, y.shape[0])
        for j in range(y.shape[0]):
            y[j] += weight(row, j)

    @fast
    def add_four(w, ids, k, n, first, y):
        a = _stretch(w, np.int64(ids[k]) * n + first, y.shape[0])
        b = _stretch(w, np.int64(ids[k + 1]) * n + first, y.shape[0])
        c = _stretch(w, np.int64(ids[k + 2]) * n + first, y.shape[0])
        d = _stretch(w, np.int64(ids[k + 3]) * n + first, y.shape[0])
        for j in range(y.shape[0]):
            y[j] += (weight(a, j) + weight(b, j)) + (weight(c, j) + weight(d, j))

    @whole
    def plan(ins, outs, threads):
        x, y = ins[1], outs[0]
        batch, n = y.shape
        work = batch * n * x.shape[1] // 10
        chunks = 1
        if batch > 1 and n > NARROWEST:
            chunks = n // max(CACHE_FLOATS // max(x.shape[1], 1), NARROWEST) + 1
        if threads > 1 and work > PARALLEL_EDGES:
            chunks = max(chunks, min(threads, max(n // NARROWEST, 1)))
        return chunks, _ids_bytes(x), work // 4

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, x, out = ins[0], ins[1], outs[0]
        (batch, length), n = x.shape, out.shape[1]
        blocks = part_of(-(-n // LANES), chunk, chunks)
        first, last = min(blocks[0] * LANES, n), min(blocks[1] * LANES, n)
        for b in range(batch):
            ids = low.array_at(scratch + 4 * b * (length + 1), (length + 1,), np.int32)
            y = low.row_part(out, b, first, last - first)
            for j in range(y.shape[0]):
                y[j] = 0
            count = np.int64(ids[0])
            fours = count // 4 * 4
            for k in range(1, fours + 1, 4):
                add_four(w, ids, k, n, first, y)
            for k in range(fours + 1, count + 1):
                add_row(w, ids[k], n, first, y)

    return Phases(plan, (_list_active, body))


def dense_columns(half: str | None) -> Phases:
    """``y[b, i] = sum of w[i, active in x[b]]``, row by row."""
    weight = weight_reader(False, half, True)

    @fast
    def pick(row, ids, zero):
        total = zero
        for k in range(1, ids[0] + 1):
            total += weight(row, ids[k])
        return total

    @fast
    def read(row, on, zero):
        total = zero
        for j in range(on.shape[0]):
            if on[j]:
                total += weight(row, j)
        return total

    @whole
    def plan(ins, outs, threads):
        x, y = ins[1], outs[0]
        work = y.size * x.shape[1] // 10
        chunks = threads * 4 if threads > 1 and work > PARALLEL_EDGES else 1
        return chunks, _ids_bytes(x), work

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        w, x, y = ins[0], ins[1], outs[0]
        batch, n = x.shape
        zero = y.dtype.type(0)
        first, last = part_of(y.shape[1], chunk, chunks)
        for i in range(first, last):
            row = _stretch(w, i * n, n)
            for b in range(batch):
                ids = low.array_at(scratch + 4 * b * (n + 1), (n + 1,), np.int32)
                if np.int64(ids[0]) * DENSELY > n:
                    y[b, i] = read(row, low.row_part(x, b, 0, n), zero)
                else:
                    y[b, i] = pick(row, ids, zero)

    return Phases(plan, (_list_active, body))


# ---- plasticity: ins are (w, bounds, x, y), and the result starts as w ------------------------


def learn_rows(clip: bool) -> Phases:
    """``w[i, :] += y`` for every active row."""
    add = adder(clip)

    @fast
    def add_row(row, y, bounds):
        for j in range(y.shape[0]):
            row[j] = add(row[j], y[j], bounds)

    @whole
    def plan(ins, outs, threads):
        work = ins[0].size // 10
        return (threads * 4 if threads > 1 and work > PARALLEL_EDGES else 1), 0, work // 4

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        bounds, x, y, w = ins[1], ins[2], ins[3], outs[0]
        first, last = part_of(x.shape[0], chunk, chunks)
        for start in range(first, last, 8):
            stop = min(start + 8, last)
            if stop < start + 8 or any_in_word(x, start):
                for i in range(start, stop):
                    if x[i]:
                        add_row(_stretch(w, i * y.shape[0], y.shape[0]), y, bounds)

    return Phases(plan, (body,))


def learn_columns(clip: bool) -> Phases:
    """``w[:, j] += y`` for every active column, row by row."""
    add = adder(clip)

    @whole
    def plan(ins, outs, threads):
        work = ins[0].size // 10
        x = ins[2]
        chunks = threads * 4 if threads > 1 and work > PARALLEL_EDGES else 1
        return chunks, 4 * (x.shape[0] + 1) * chunks, work

    @whole
    def body(chunk, chunks, ins, outs, scratch):
        bounds, x, y, w = ins[1], ins[2], ins[3], outs[0]
        n = x.shape[0]
        ids = low.array_at(scratch + 4 * (n + 1) * chunk, (n + 1,), np.int32)
        count = 0
        for j in range(n):
            ids[count] = j
            count += x[j]
        first, last = part_of(y.shape[0] if count else 0, chunk, chunks)
        for i in range(first, last):
            row = _stretch(w, i * n, n)
            for k in range(count):
                row[ids[k]] = add(row[ids[k]], y[i], bounds)

    return Phases(plan, (body,))
