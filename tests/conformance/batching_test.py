# SPDX-License-Identifier: Apache-2.0
"""``vmap`` over every operand and over several of them, nested too, is the same as a loop."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.conformance.grid import BATCH, Operands, close, quick_jit, thinned, turned_grid
from tests.conformance.oracle import Form

# What is batched in each of up to two nested maps, outermost first: (weights, structure, input).
WAYS = {
    'input': [(0, 0, 1)],
    'weights': [(1, 0, 0)],
    'structure': [(0, 1, 0)],
    'weights and structure': [(1, 1, 0)],
    'all': [(1, 1, 1)],
    'input in input': [(0, 0, 1), (0, 0, 1)],
    'weights in input': [(0, 0, 1), (1, 0, 0)],
    'input in weights': [(1, 0, 0), (0, 0, 1)],
    'input in structure': [(0, 1, 0), (0, 0, 1)],
    'weights in all': [(1, 1, 1), (1, 0, 0)],
}
SIZES = (2, 3)


class Batch:
    """Two structures of one size, and weights and inputs for every place of two nested batches."""

    def __init__(self, case):
        self.case = case
        self.ops = Operands(case)
        self.others = [case.example(seed=seed) for seed in (0, 5, 6)]
        self.arrays = tuple(
            jnp.stack([jnp.asarray(part) for part in parts])
            for parts in zip(*(e.arrays for e in self.others), strict=True)
        )
        self.params, self.x = self.ops.params(*SIZES), self.ops.input(*SIZES)

    def take(self, operand, where):
        """Return the part of an operand at one place; None keeps an axis."""
        at = tuple(slice(None) if k is None else k for k in where)
        return jax.tree.map(lambda a: a[at], operand)

    def operands(self, way):
        """Return operands with exactly the axes that a way of batching uses, and their maps."""
        used = [[level[k] for level in _both(way)] for k in range(3)]
        at = [tuple(None if u else 0 for u in levels) for levels in used]
        params, x = self.take(self.params, at[0]), self.take(self.x, at[2])
        arrays = self._structures(used[1])
        return params, arrays, x

    def _structures(self, used):
        k = [SIZES[i] for i, u in enumerate(used) if u]
        return jax.tree.map(lambda a: a[: k[0]] if k else a[0], self.arrays)

    def want(self, way):
        """Return the loop over all places, by the oracle."""
        levels = _both(way)
        ranges = [range(SIZES[i]) if any(level) else [0] for i, level in enumerate(levels)]
        places = list(itertools.product(*ranges))
        values = [self._one(levels, place) for place in places]
        lead = [len(r) for r, level in zip(ranges, levels, strict=True) if any(level)]
        return np.stack(values).reshape(*lead, *values[0].shape)

    def _one(self, levels, place):
        at = [
            tuple(p if level[k] else 0 for p, level in zip(place, levels, strict=True))
            for k in range(3)
        ]
        params, x = self.take(self.params, at[0]), self.take(self.x, at[2])
        example = self.others[max(at[1])]
        form = Form.of(example, self.ops.shape, self.case.transpose)
        w = self.ops.edge_weights(params, example)
        return self.ops.narrow(form.product(w, self.ops.counts(x)))


def _both(way):
    return [*way, (0, 0, 0)][:2]


def _mapped(f, way):
    for level in reversed(way):
        f = jax.vmap(f, in_axes=[0 if used else None for used in level])
    return f


@pytest.mark.parametrize('case', thinned(turned_grid(), 9))
def test_batches_of_everything(case):
    check_batches(case)


def check_batches(case):
    batch, f = Batch(case), case.call()
    ways = {k: v for k, v in WAYS.items() if batch.arrays or not any(s for _, s, _ in v)}
    operands = {name: batch.operands(way) for name, way in ways.items()}

    @quick_jit
    def run(operands):
        return {name: _mapped(f, way)(*operands[name]) for name, way in ways.items()}

    for name, got in run(operands).items():
        close(case, got, batch.want(ways[name]), name)


@pytest.mark.parametrize('case', thinned(turned_grid(), 9))
def test_batch_axes_anywhere_and_gradients(case):
    """Any axis in, another axis out, and gradients of batches, summed and by sample."""
    ops, f = Operands(case), case.call()
    params, xs, cts = ops.params(), ops.input(BATCH), jnp.stack([ops.output()] * BATCH)

    def loss(p, x, ct):
        return (f(p, ops.arrays, x) * ct).sum()

    @quick_jit
    def run(params, xs, cts):
        last = jnp.moveaxis(xs, 0, -1)
        every = jax.vmap(lambda x: f(params, ops.arrays, x), -1, 1)(last)
        by_sample = jax.vmap(jax.grad(loss, (0, 1)), (None, 0, 0))(params, xs, cts)
        total = jax.grad(lambda p: jax.vmap(loss, (None, 0, 0))(p, xs, cts).sum())(params)
        return every, by_sample, total

    every, (of_weights, of_input), total = run(params, xs, cts)
    want = np.stack([ops.value(params, x) for x in xs], 1)
    close(case, every, want, 'last axis in, axis 1 out')
    w = ops.edge_weights(params)
    pairs = list(zip(xs, cts, strict=True))
    samples = [ops.form.sample(ops.counts(x), ops.wide(ct)) for x, ct in pairs]
    backs = [ops.narrow(ops.form.back(w, ops.wide(ct))) for ct in cts]
    close(case, of_input, np.stack(backs), 'gradient of input')
    for q, parts in enumerate(zip(*map(ops.param_cotangents, samples), strict=True)):
        close(case, of_weights[q], np.stack(parts), 'gradient of weights by sample')
        close(case, total[q], sum(parts), 'gradient of weights, summed')
