# SPDX-License-Identifier: Apache-2.0
"""The demo's COBA and CUBA networks, timed as one compiled loop.

usage: network.py {coba,cuba} NEURONS SECONDS

Prints JSON: microseconds a step, and the mean firing rate.
"""

import json
import sys
import time

import jax
import jax.numpy as jnp

from brainevent.demo import networks


def main() -> None:
    """Run twice, the first time to compile."""
    network = getattr(networks, sys.argv[1].upper()).draw(int(sys.argv[2]), seed=1)
    seconds = float(sys.argv[3])
    steps = round(seconds / 1e-4)

    @jax.jit
    def run(network, state):
        def step(carry, _):
            state, counts = carry
            state = network.step(state)
            return (state, counts + state.spike), None

        counts = jnp.zeros(network.neurons, jnp.int32)
        return jax.lax.scan(step, (state, counts), None, length=steps)[0]

    state = network.init(seed=1)
    jax.block_until_ready(run(network, state))
    start = time.perf_counter()
    _, counts = jax.block_until_ready(run(network, state))
    spent = time.perf_counter() - start
    rate = float(counts.mean()) / seconds
    print(json.dumps({'us': spent / steps * 1e6, 'rate': rate}))


if __name__ == '__main__':
    main()
