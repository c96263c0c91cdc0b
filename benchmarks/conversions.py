# SPDX-License-Identifier: Apache-2.0
"""Peak memory and time of conversions, against the size of the result.

usage: conversions.py [CASE]

Each case runs in a fresh process (Linux): once to compile, then once more while the high-water
mark of resident memory is watched. The factor counts all that is allocated, the result included.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

EDGES = 20_000_000
ROWS = 100_000
STATUS = Path('/proc/self/status')


def stored(kind, to):
    """Make a conversion of a stored matrix of random entries."""
    import numpy as np

    import brainevent as be

    rng = np.random.default_rng(0)
    weights = rng.normal(size=EDGES).astype(np.float32)
    ids = rng.integers(0, ROWS, EDGES).astype(np.int32)
    if kind == 'COO':
        A = be.COO((weights, ids[::-1].copy(), ids), shape=(ROWS, ROWS))
    else:
        ptr = np.arange(0, EDGES + 1, EDGES // ROWS, dtype=np.int32)
        A = getattr(be, kind)((weights, ids, ptr), shape=(ROWS, ROWS))
    return getattr(A, to)


def drawn(kind, to, corder):
    """Make a conversion of a drawn matrix."""
    import brainevent as be

    numbers = {'Scalar': (1.0,), 'Normal': (0.0, 1.0), 'Uniform': (0.0, 1.0)}[kind]
    side, prob = 20_000, EDGES / 20_000**2
    A = getattr(be, f'JITC{kind}R')((*numbers, prob, 3), shape=(side, side), corder=corder)
    return getattr(A, to)


CASES = {
    'CSR.tocsc': lambda: stored('CSR', 'tocsc'),
    'CSC.tocsr': lambda: stored('CSC', 'tocsr'),
    'COO.tocsr': lambda: stored('COO', 'tocsr'),
    'COO.tocsc': lambda: stored('COO', 'tocsc'),
    **{
        f'JITC{kind}.{to}, corder={corder}': lambda k=kind, t=to, c=corder: drawn(k, t, c)
        for kind in ('Scalar', 'Normal')
        for to in ('tocsr', 'tocsc', 'tocoo')
        for corder in (False, True)
    },
}


def _resident(field):
    """Read one line of the process status, in bytes."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def measure(name):
    """Measure one case in this process, which should be fresh."""
    import jax

    convert = CASES[name]()
    jax.block_until_ready(jax.tree.leaves(convert()))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # freed memory goes back to the system
    before = _resident('VmRSS')
    Path('/proc/self/clear_refs').write_text('5')
    start = time.perf_counter()
    result = jax.tree.leaves(jax.block_until_ready(convert()))
    seconds = time.perf_counter() - start
    size = sum(x.nbytes for x in result)
    peak = _resident('VmHWM') - before
    return {'case': name, 'megabytes': size / 1e6, 'factor': peak / size, 'seconds': seconds}


def main():
    """Run the case named, or each in a process of its own, and print factors."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    print('| case | result MB | peak over result | seconds |')
    print('|---|---|---|---|')
    env = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'MALLOC_MMAP_THRESHOLD_': '65536'}
    for name in CASES:
        command = [sys.executable, __file__, name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
        a = json.loads(done.stdout.splitlines()[-1])
        print(f'| {name} | {a["megabytes"]:.0f} | {a["factor"]:.2f} | {a["seconds"]:.2f} |')


if __name__ == '__main__':
    main()
