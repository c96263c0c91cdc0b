# SPDX-License-Identifier: Apache-2.0
"""Just-in-time connectivity of your own: log-normal weights, connections rarer with distance.

A law of weights is one `Weight`; a rule that decides which edges stay is one function. Products
from both sides, native code, derivatives and batching follow. Strengths of cortical synapses are
log-normal (Song et al. 2005, PLoS Biol. 3:e68), and connections get rarer with distance (Perin et
al. 2011, PNAS 108:5419-5424).

run: python examples/drawn_third_party.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import brainevent as be
from brainevent.extend import CONSTANT, DRAWN_LAYOUT, Drawn, Weight, drawn_layout

# ---- log-normal weights: linear in their median, the width is part of the law --------------------

WIDTH = 0.5


def log_normal(median, g):
    """Weigh ``median * exp(WIDTH * g)``, in arithmetic that JAX and native code share.

    Native kernels have no mathematical library: a series for a sixteenth, squared four times.
    """
    x = g * (WIDTH / 16)
    power = 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5))))
    for _ in range(4):
        power = power * power
    return median[0] * power


LOG_NORMAL = Weight('lognormal', 1, log_normal, draws='gauss')


@jax.tree_util.register_pytree_with_keys_class
class LogNormalMatrix(be.JITCMatrix):
    """Matrix of ``(median, prob, seed)``."""

    family = Drawn(DRAWN_LAYOUT, LOG_NORMAL, 'lognormal')
    names = ('median',)


# ---- a ring: far neurons are connected more rarely ----------------------------------------------


def near_enough(s, i, j, word):
    """Keep an edge with the chance that a table has for the distance; integers decide."""
    return word < s[0][abs(i - j)]


RING = Drawn(drawn_layout('ring', ('chance',), (1,), keep=near_enough), CONSTANT, 'ring')


def ring(n, most, reach, seed):
    """Return structure: edges with probability ``most * exp(-distance / reach)`` around a ring."""
    distance = np.minimum(np.arange(n), n - np.arange(n))
    chance = np.minimum(np.exp(-distance / reach) * 2**32, 2**32 - 1).astype(np.uint32)
    return jnp.full(1, most, jnp.float32), jnp.uint32([0, seed]), jnp.asarray(chance)


def main(n=2000):
    """Print what both are like, and that backends agree."""
    A = LogNormalMatrix((2.0, 0.1, 42), shape=(n, n))
    weights = np.log(A.tocsr().data / 2.0)
    print(
        f'log-normal weights: mean of the logarithm {weights.mean():.2f}, width {weights.std():.2f}'
    )

    spikes = be.BinaryArray(jax.random.uniform(jax.random.key(0), n) < 0.05)
    slope = jax.grad(lambda median: (spikes @ A.with_data(median)).sum())(2.0)
    print(f'derivative in the median, and what is linear in it: {slope:.1f}, '
          f'{(spikes @ A).sum() / 2:.1f}')  # fmt: skip

    structure, weight = ring(n, 0.5, n / 50, seed=7), (jnp.ones(1),)
    dense = np.asarray(RING.dense(weight, structure, (n, n)))
    for lag in (0, n // 50, n // 10):
        density = np.mean([np.diagonal(dense, lag).mean(), np.diagonal(dense, -lag).mean()])
        print(f'ring: density at distance {lag}: {density:.3f}, '
              f'asked for {0.5 * np.exp(-lag / (n / 50)):.3f}')  # fmt: skip
    results = [
        RING('ring', weight, structure, jnp.ones(n), shape=(n, n), transpose=True, backend=backend)
        for backend in ('numba', 'jax_raw')
    ]
    print(f'backends agree: {bool((results[0] == results[1]).all())}')


if __name__ == '__main__':
    main()
