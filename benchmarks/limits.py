# SPDX-License-Identifier: Apache-2.0
"""What this machine can do at most: read memory, and add at or read from random places.

Plain Numba loops on one thread (reading: on two as well). A product with events cannot beat the
scatter, one that reads every row cannot beat the gather.
"""

import time
from collections.abc import Callable

import numba
import numpy as np

ENTRIES = 20_000_000
ROW = 200
NEURONS = (4_000, 100_000, 1_000_000)


@numba.njit(fastmath=True)
def _read(a):
    total = np.float32(0)
    for i in range(a.size):
        total += a[i]
    return total


@numba.njit(fastmath=True, parallel=True)
def _read_parallel(a):
    total = np.float32(0)
    for i in numba.prange(a.size):
        total += a[i]
    return total


@numba.njit(fastmath=True)
def _scatter(w, targets, out):
    for i in range(w.size):
        out[targets[i]] += w[i]


@numba.njit(fastmath=True)
def _gather(w, targets, v):
    total = np.float32(0)
    for i in range(w.size):
        total += w[i] * v[targets[i]]
    return total


def best(function: Callable, *arguments: object, repeats: int = 7) -> float:
    """Give the shortest of several runs, in seconds."""
    function(*arguments)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the limits as a Markdown table."""
    a = np.ones(5 * ENTRIES, np.float32)
    print('| limit | |')
    print('|---|---|')
    for name, read in (('one thread', _read), ('two threads', _read_parallel)):
        if name == 'two threads':
            numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
        print(f'| reading, {name} | {a.nbytes / best(read, a) / 1e9:.1f} GB/s |')
    w = np.ones(ENTRIES, np.float32)
    for n in NEURONS:
        rng = np.random.default_rng(0)
        targets = rng.integers(0, n, (ENTRIES // ROW, ROW)).astype(np.int32)
        targets.sort(axis=1)
        targets, v = targets.ravel(), np.ones(n, np.float32)
        for name, function in (('scatter', _scatter), ('gather', _gather)):
            print(
                f'| {name}, n={n} | {best(function, w, targets, v) / ENTRIES * 1e9:.2f} ns/edge |'
            )


if __name__ == '__main__':
    main()
