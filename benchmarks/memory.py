# SPDX-License-Identifier: Apache-2.0
"""Peak memory of batched products and weight gradients, against operands plus result.

usage: memory.py [CASE]

A gradient that forms an array of edges times batch shows here as a factor of dozens. Two measures:
what XLA plans for the compiled function, and how far the resident memory of a fresh process rises
above what it was with the operands in place (Linux only), which counts a kernel's own scratch too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

NEURONS, SYNAPSES, BATCH = 4_000, 100, 64  # 4e5 edges

STATUS = Path('/proc/self/status')


def _operands():
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)
    targets = rng.integers(0, NEURONS, (NEURONS, SYNAPSES)).astype(np.int32)
    targets.sort(axis=1)
    weights = rng.normal(size=targets.shape).astype(np.float32)
    batch = rng.normal(size=(NEURONS, BATCH)).astype(np.float32)
    return jnp.asarray(weights), jnp.asarray(targets), jnp.asarray(batch)


def csrmm_weight_gradient():
    """Give the function and its operands: how a loss of the product depends on the weights."""
    import jax
    import jax.numpy as jnp

    import brainevent as be

    weights, targets, batch = _operands()
    indptr = jnp.arange(0, weights.size + 1, SYNAPSES, dtype=jnp.int32)

    def loss(w, indices, indptr, batch):
        return (be.csrmm(w, indices, indptr, batch, shape=(NEURONS, NEURONS)) ** 2).sum()

    return jax.grad(loss), (weights.ravel(), targets.ravel(), indptr, batch)


def fcnmm():
    """Give the function and its operands: the product of a fixed number of targets with a batch."""
    import brainevent as be

    weights, targets, batch = _operands()

    def product(w, indices, batch):
        return be.fcnmm(w, indices, batch, shape=(NEURONS, NEURONS), transpose=False)

    return product, (weights, targets, batch)


CASES = {f.__name__: f for f in (csrmm_weight_gradient, fcnmm)}


def _resident(field: str) -> int:
    """Read one line of the process status, in bytes."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def measure(name: str) -> dict:
    """Measure one case in this process, which should be fresh."""
    import jax

    function, operands = CASES[name]()
    compiled = jax.jit(function).lower(*operands).compile()
    jax.block_until_ready(compiled(*operands))  # machine code and thread pools are in place
    plan = compiled.memory_analysis()
    needed = plan.argument_size_in_bytes + plan.output_size_in_bytes
    answer = {
        'case': name,
        'needed': needed,
        'planned': (needed + plan.temp_size_in_bytes) / needed,
    }
    if STATUS.exists():
        before = _resident('VmRSS')
        Path('/proc/self/clear_refs').write_text('5')  # the high-water mark starts anew
        jax.block_until_ready(compiled(*operands))
        answer['resident'] = (
            plan.argument_size_in_bytes + max(_resident('VmHWM') - before, 0)
        ) / needed
    return answer


def main() -> None:
    """Run the case named, or each in a process of its own, and print factors."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    print('| case | operands plus result MB | planned by XLA | resident |')
    print('|---|---|---|---|')
    # Freed blocks of any size go back to the system, so that a second run shows like the first.
    env = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'MALLOC_MMAP_THRESHOLD_': '65536'}
    for name in CASES:
        done = subprocess.run(
            [sys.executable, __file__, name],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        a = json.loads(done.stdout.splitlines()[-1])
        resident = f'{a["resident"]:.2f}x' if 'resident' in a else 'not measured'
        print(f'| {name} | {a["needed"] / 1e6:.1f} | {a["planned"]:.2f}x | {resident} |')


if __name__ == '__main__':
    main()
