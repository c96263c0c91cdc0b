# SPDX-License-Identifier: Apache-2.0
"""The first product of a fresh process, ``BinaryArray @ CSR``, with machine code already on disk.

usage: cold_start.py A=PYTHON[@FOLDER] [B=PYTHON[@FOLDER]] [--rounds N]

A process that runs before the rounds fills the disk caches of each side.
"""

import json
import sys
import time

NEURONS, SYNAPSES = 4_000, 80


def probe() -> dict:
    """Time import, device start and first product in this process, which should be fresh."""
    start = time.perf_counter()
    import brainevent as be

    imported = time.perf_counter()
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)
    edges = NEURONS * SYNAPSES
    data, indices, indptr, fired = jax.block_until_ready(
        (
            jnp.asarray(rng.normal(size=edges).astype(np.float32)),
            jnp.asarray(rng.integers(0, NEURONS, edges).astype(np.int32)),
            jnp.arange(0, edges + 1, SYNAPSES, dtype=jnp.int32),
            jnp.asarray(rng.random(NEURONS) < 0.01),
        )
    )
    ready = time.perf_counter()
    A = be.CSR((data, indices, indptr), shape=(NEURONS, NEURONS))
    jax.block_until_ready(be.BinaryArray(fired) @ A)
    done = time.perf_counter()
    return {'import_s': imported - start, 'first_s': done - ready, 'total_s': done - start}


def main() -> None:
    """Print a line for each side."""
    import sides

    options = sides.parser(__doc__.splitlines()[0], rounds=5).parse_args()
    sides.in_turn(options.sides, 1, 'cold_start.py', '--probe')
    found = sides.in_turn(options.sides, options.rounds, 'cold_start.py', '--probe')
    print('| side | import s | first product s | in all s |')
    print('|---|---|---|---|')
    for name, a in found.items():
        print(f'| {name} | {a["import_s"]:.2f} | {a["first_s"]:.3f} | {a["total_s"]:.2f} |')


if __name__ == '__main__':
    if sys.argv[1:] == ['--probe']:
        print(json.dumps(probe()))
    else:
        main()
