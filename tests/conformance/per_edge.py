# SPDX-License-Identifier: Apache-2.0
"""Operators with a number for each edge: how to call them, and the same formulas in plain JAX."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._edge import FAMILIES
from brainevent._edge.pick import picks_of
from brainevent._edge.scale import scales_of
from brainevent._edge.update import updates_of
from tests.conformance.examples import example
from tests.conformance.grid import STEMS, backends, number

SHAPE, EDGES = (7, 5), 17
STORED = [stem for stem in STEMS if FAMILIES[stem].weight.name == 'stored']
SCALING, PICKING = ('scale', 'scale many'), ('lines', 'elements')
LEARNING = ('update', 'clip', 'clip all')
LINES, ENDS = np.array([2, 0, 2, 99, 3, -7, 2]), np.array([1, 0, 3, 2, 1, 1, 1])


@dataclass(frozen=True)
class PerEdge:
    """One operator over one family, on one backend, in one direction."""

    operator: str
    stem: str
    backend: str
    transpose: bool
    weights: str = 'each'
    dtype: str = 'float32'

    def __str__(self):
        side = 'transposed' if self.transpose else 'straight'
        return '-'.join([self.operator, self.stem, self.backend, side, self.weights, self.dtype])

    @functools.cached_property
    def example(self):
        return example(FAMILIES[self.stem].layout.name, 0, SHAPE, EDGES)

    @property
    def how(self):
        return {'shape': SHAPE, 'transpose': self.transpose, 'backend': self.backend}

    def operands(self, seed=0):
        """Draw differentiable operands."""
        rng = np.random.default_rng(seed)
        ex, (m, n) = self.example, SHAPE
        w = number(rng, (1 if self.weights == 'one' else ex.edges,), self.dtype)
        if self.operator in PICKING:
            return (w,)
        if self.operator == 'scale many':
            w, m, n = number(rng, (2, ex.edges), self.dtype), (2, m), (2, n)
        rows, cols = number(rng, m, self.dtype), number(rng, n, self.dtype)
        if self.operator in SCALING:
            return w, cols if self.transpose else rows
        source, target = (rows, cols) if self.transpose else (cols, rows)
        # bounds that no sum meets exactly: there the derivative is anybody's
        bounds = jnp.asarray([-0.76, 0.83], self.dtype)
        return (w, source, target, bounds)[: 3 if self.operator == 'update' else 4]

    def call(self, arrays):
        """Return the operator as a function of its operands."""
        family, where = FAMILIES[self.stem], 'conformance'
        if self.operator in SCALING:
            how = {'core': (self.example.edges,), 'batch': self.operator == 'scale many'}
            scale = scales_of(family)
            return lambda w, y: scale(where, y, w, arrays, **how, **self.how)
        if self.operator in LEARNING:
            how = {'clip': 'touched' if self.operator == 'clip' else 'all', **self.how}
            update = updates_of(family)
            return lambda w, x, y, bounds=(): update(where, w, arrays, x, y, *bounds, **how)
        ids = (LINES, ENDS)[: 2 if self.operator == 'elements' else 1]
        return lambda w: picks_of(family)(where, w, arrays, *map(jnp.asarray, ids), **self.how)

    def formula(self):
        """Return what the operator must give, in plain JAX."""
        row, col = self.example.row, self.example.col
        source, target = (row, col) if self.transpose else (col, row)
        if self.operator in SCALING:
            return lambda w, y: w * y[..., target]
        if self.operator in LEARNING:
            return functools.partial(_learned, self.operator, source, target)

        def pick(w):
            dense = jnp.zeros(SHAPE, w.dtype).at[row, col].add(w)
            dense = dense if self.transpose else dense.T
            lines = jnp.where((LINES >= 0) & (dense.shape[0] > LINES), LINES, 99)
            ids = (lines, ENDS) if self.operator == 'elements' else lines
            return dense.at[ids].get(mode='fill', fill_value=0)

        return pick


def _learned(operator, source, target, w, x, y, bounds=(None, None)):
    """Learn and clip; towards spikes straight through."""
    on = (x > 0).astype(x.dtype)
    straight = on + x - jax.lax.stop_gradient(x)
    new = w + straight[source] * y[target]
    held = new if operator == 'update' else jnp.clip(new, *bounds)
    return jnp.where(on[source] > 0, held, new) if operator == 'clip' else held


def cases(dtype='float32', weights=('each', 'one'), operators=(*SCALING, *PICKING)):
    """Return every operator over every layout, on every backend, both ways."""
    return [
        PerEdge(operator, stem, backend, transpose, kind, dtype)
        for operator in operators
        for stem in STORED
        for backend in backends(stem)
        if backend in ('numba', 'jax_raw')
        for transpose in (False, True)
        for kind in (weights if operator in PICKING else ('each',))
    ]
