# SPDX-License-Identifier: Apache-2.0
"""Native kernels of dense matrices and events: active ids are listed once, then rows are added.

Vectors lie in rows, ``x`` is ``(batch, input)``; ``w`` is flat, row by row.
"""

from typing import Any

import numpy as np

from brainevent._edge.kernels.numba_parts import (
    PARALLEL_EDGES,
    any_in_word,
    fast,
    jit,
    part_of,
    weight_reader,
)
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.compile import Phases

CACHE_FLOATS = 1 << 16  # numbers of a block of columns that stay in the cache for all vectors
NARROWEST = 128  # columns of a block, at least
LANES = 64  # blocks begin at multiples, so that vectorised loops leave no rest
DENSELY = 6  # one active element in so many: a whole row is read rather than picked from

# Scratch: for every vector the number of active elements, then their ids.


@jit
def _list_active(chunk, chunks, ins, outs, scratch):
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


@jit
def _scratch_bytes(x):
    return 4 * x.shape[0] * (x.shape[1] + 1)


def dense_rows(half: str | None) -> Phases:
    """``y[b, :] = sum of rows of w that are active in x[b]``, block of columns by block."""
    weight = weight_reader(False, half, True)

    @fast
    def add_row(w, row, y):
        for j in range(y.shape[0]):
            y[j] += weight(w, row + j)

    @fast
    def add_eight(w, ids, k, n, first, y):
        a, b = np.int64(ids[k]) * n + first, np.int64(ids[k + 1]) * n + first
        c, d = np.int64(ids[k + 2]) * n + first, np.int64(ids[k + 3]) * n + first
        e, f = np.int64(ids[k + 4]) * n + first, np.int64(ids[k + 5]) * n + first
        g, h = np.int64(ids[k + 6]) * n + first, np.int64(ids[k + 7]) * n + first
        for j in range(y.shape[0]):
            left = (weight(w, a + j) + weight(w, b + j)) + (weight(w, c + j) + weight(w, d + j))
            right = (weight(w, e + j) + weight(w, f + j)) + (weight(w, g + j) + weight(w, h + j))
            y[j] += left + right

    @jit
    def plan(ins, outs, threads):
        x, y = ins[1], outs[0]
        batch, n = y.shape
        work = batch * n * x.shape[1] // 10
        chunks = 1
        if batch > 1 and n > NARROWEST:
            chunks = n // max(CACHE_FLOATS // max(x.shape[1], 1), NARROWEST) + 1
        if threads > 1 and work > PARALLEL_EDGES:
            chunks = max(chunks, min(threads, max(n // NARROWEST, 1)))
        return chunks, _scratch_bytes(x), work // 4

    @jit
    def body(chunk, chunks, ins, outs, scratch):
        w, x, out = ins[0], ins[1], outs[0]
        (batch, length), n = x.shape, out.shape[1]
        first, last = part_of(-(-n // LANES), chunk, chunks)
        first, last = first * LANES, min(last * LANES, n)
        for b in range(batch):
            ids = low.array_at(scratch + 4 * b * (length + 1), (length + 1,), np.int32)
            y = low.row_part(out, b, first, last - first)
            for j in range(last - first):
                y[j] = 0
            count = ids[0]
            whole = count // 8 * 8
            for k in range(1, whole + 1, 8):
                add_eight(w, ids, k, n, first, y)
            for k in range(whole + 1, count + 1):
                add_row(w, np.int64(ids[k]) * n + first, y)

    return Phases(plan, (_list_active, body))


def dense_columns(half: str | None) -> Phases:
    """``y[b, i] = sum of w[i, active in x[b]]``, row by row."""
    weight = weight_reader(False, half, True)

    @fast
    def pick(w, row, ids, zero):
        total = zero
        for k in range(1, ids[0] + 1):
            total += weight(w, row + ids[k])
        return total

    @fast
    def read(w, row, on, zero):
        total = zero
        for j in range(on.shape[0]):
            value = weight(w, row + j)  # read first, so that the choice needs no branch
            total += value if on[j] else zero
        return total

    @jit
    def plan(ins, outs, threads):
        x, y = ins[1], outs[0]
        work = y.size * x.shape[1] // 10
        chunks = threads * 4 if threads > 1 and work > PARALLEL_EDGES else 1
        return chunks, _scratch_bytes(x), work

    @jit
    def body(chunk, chunks, ins, outs, scratch):
        w, x, y = ins[0], ins[1], outs[0]
        batch, n = x.shape
        zero = y.dtype.type(0)
        first, last = part_of(y.shape[1], chunk, chunks)
        for i in range(first, last):
            for b in range(batch):
                ids = low.array_at(scratch + 4 * b * (n + 1), (n + 1,), np.int32)
                if ids[0] * DENSELY > n:
                    y[b, i] = read(w, i * n, low.row_part(x, b, 0, n), zero)
                else:
                    y[b, i] = pick(w, i * n, ids, zero)

    return Phases(plan, (_list_active, body))
