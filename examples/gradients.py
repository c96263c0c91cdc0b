# SPDX-License-Identifier: Apache-2.0
"""Train a recurrent spiking network with surrogate gradients through sparse connections.

    python examples/gradients.py [epochs]

Two classes of input patterns drive 100 spiking neurons through sparse random connections; the
neurons are connected sparsely among themselves. All three weight arrays are learned. Two lines make
it work: ``matrix.with_data(weights)`` makes a matrix differentiable in its weights, and a
``custom_jvp`` gives the spike a derivative. The products in the backward pass are sparse as well.
"""

import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import brainevent as be

INPUTS, HIDDEN, CLASSES = 50, 100, 2
PATTERNS, STEPS, RATE = 64, 40, 0.08
DECAY, THRESHOLD = 0.9, 1.0


class Weights(NamedTuple):
    """What is learned: one number for each connection that exists."""

    feed: jax.Array
    recur: jax.Array
    read: jax.Array


@jax.custom_jvp
def fire(v: jax.Array) -> jax.Array:
    """1 above zero; differentiated as if it were a steep sigmoid (Neftci et al. 2019)."""
    return (v > 0).astype(v.dtype)


@fire.defjvp
def _fire_jvp(primals: Any, tangents: Any) -> Any:
    (v,), (dv,) = primals, tangents
    return fire(v), dv / (1 + 10 * jnp.abs(v)) ** 2


def connect(
    rng: np.random.Generator, pre: int, post: int, probability: float, scale: float
) -> be.CSR:
    present = rng.random((pre, post)) < probability
    weights = rng.normal(0, scale / np.sqrt(probability * pre), (pre, post))
    return be.CSR.fromdense(jnp.asarray(np.where(present, weights, 0.0), jnp.float32))


def patterns(rng: np.random.Generator) -> tuple[jax.Array, jax.Array]:
    """Spikes, (steps, patterns, inputs): each class fires in its own order; labels."""
    labels = rng.integers(0, CLASSES, PATTERNS)
    phase = rng.random((CLASSES, 1, INPUTS))
    time = np.linspace(0, 1, STEPS)[:, None]
    rate = RATE * (1 + 0.9 * np.sin(2 * np.pi * (time + phase)))
    spikes = rng.random((STEPS, PATTERNS, INPUTS)) < rate[labels].transpose(1, 0, 2)
    return jnp.asarray(spikes), jnp.asarray(labels)


def main(epochs: int = 60) -> float:
    rng = np.random.default_rng(0)
    feed, recur = connect(rng, INPUTS, HIDDEN, 0.3, 2.0), connect(rng, HIDDEN, HIDDEN, 0.1, 0.5)
    read = jnp.asarray(rng.normal(0, 0.1, (HIDDEN, CLASSES)), jnp.float32)
    weights = Weights(feed.data, recur.data, read)
    inputs, labels = patterns(rng)

    def network(weights: Weights) -> jax.Array:
        """Give the mean activity of each readout, (patterns, classes)."""
        a, b = feed.with_data(weights.feed), recur.with_data(weights.recur)

        def step(carry: Any, spikes: jax.Array) -> Any:
            v, out = carry
            v = DECAY * v * (1 - jax.lax.stop_gradient(out))
            v = v + be.BinaryArray(spikes) @ a + be.BinaryArray(out) @ b
            out = fire(v - THRESHOLD)
            return (v, out), out @ weights.read

        rest = jnp.zeros((PATTERNS, HIDDEN))
        return jax.lax.scan(step, (rest, rest), inputs)[1].mean(0)

    def loss(weights: Weights) -> tuple[jax.Array, jax.Array]:
        scores = network(weights) * 10
        correct = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1)
        return -correct.mean(), (scores.argmax(1) == labels).mean()

    @jax.jit
    def learn(weights: Weights, moments: Any, epoch: jax.Array) -> Any:
        """One step of Adam (Kingma and Ba 2015)."""
        (value, accuracy), gradient = jax.value_and_grad(loss, has_aux=True)(weights)
        mean, square = moments
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, gradient)
        rate = 0.01 * jnp.sqrt(1 - 0.999**epoch) / (1 - 0.9**epoch)
        weights = jax.tree.map(
            lambda w, m, s: w - rate * m / (jnp.sqrt(s) + 1e-8), weights, mean, square
        )
        return weights, (mean, square), value, accuracy

    moments = (jax.tree.map(jnp.zeros_like, weights),) * 2
    for epoch in range(1, epochs + 1):
        weights, moments, value, accuracy = learn(weights, moments, jnp.float32(epoch))
        if epoch % 10 == 0 or epoch == 1:
            print(f'epoch {epoch:3d}: loss {value:.4f}, accuracy {accuracy:.2f}')
    return float(accuracy)


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))
