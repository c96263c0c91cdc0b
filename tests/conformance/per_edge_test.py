# SPDX-License-Identifier: Apache-2.0
"""Scaling, picking and clipped learning over every layout, against the same formulas in plain JAX.

Every operator is put through value, both modes, second order, adjointness and batches of each
operand, in one program a case.
"""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge import FAMILIES
from brainevent._edge.pick import picks_of
from brainevent._edge.scale import scales_of
from brainevent._edge.update import updates_of
from tests.conformance.examples import example
from tests.conformance.grid import STEMS, backends, number, quick_jit, thinned

SHAPE, EDGES = (7, 5), 17
STORED = [stem for stem in STEMS if FAMILIES[stem].weight.name == 'stored']
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
        if self.operator in ('lines', 'elements'):
            return (w,)
        rows, cols = number(rng, (m,), self.dtype), number(rng, (n,), self.dtype)
        if self.operator == 'scale':
            return w, cols if self.transpose else rows
        source, target = (rows, cols) if self.transpose else (cols, rows)
        # bounds that no sum meets exactly: there the derivative is anybody's
        return w, source, target, jnp.asarray([-0.76, 0.83], self.dtype)

    def call(self, arrays):
        """Return the operator as a function of its operands."""
        family, where = FAMILIES[self.stem], 'conformance'
        if self.operator == 'scale':
            core = (self.example.edges,)
            scale = scales_of(family)
            return lambda w, y: scale(where, y, w, arrays, core=core, **self.how)
        if self.operator == 'clip':
            update = updates_of(family)
            return lambda w, x, y, b: update(
                where, w, arrays, x, y, b[0], b[1], clip='touched', **self.how
            )
        ids = (LINES, ENDS)[: 2 if self.operator == 'elements' else 1]
        return lambda w: picks_of(family)(where, w, arrays, *map(jnp.asarray, ids), **self.how)

    def formula(self):
        """Return what the operator must give, in plain JAX."""
        row, col = self.example.row, self.example.col
        source, target = (row, col) if self.transpose else (col, row)
        if self.operator == 'scale':
            return lambda w, y: w * y[target]
        if self.operator == 'clip':
            return functools.partial(_clipped, source, target)

        def pick(w):
            dense = jnp.zeros(SHAPE, w.dtype).at[row, col].add(w)
            dense = dense if self.transpose else dense.T
            lines = jnp.where((LINES >= 0) & (dense.shape[0] > LINES), LINES, 99)
            ids = (lines, ENDS) if self.operator == 'elements' else lines
            return dense.at[ids].get(mode='fill', fill_value=0)

        return pick


def _clipped(source, target, w, x, y, bounds):
    """Learn and clip; towards spikes straight through."""
    on = (x > 0).astype(x.dtype)
    straight = on + x - jax.lax.stop_gradient(x)
    new = w + straight[source] * y[target]
    return jnp.where(on[source] > 0, jnp.clip(new, *bounds), new)


def _cases(dtype='float32', weights=('each', 'one'), operators=('scale', 'lines', 'elements')):
    return [
        PerEdge(operator, stem, backend, transpose, kind, dtype)
        for operator in operators
        for stem in STORED
        for backend in backends(stem)
        if backend in ('numba', 'jax_raw')
        for transpose in (False, True)
        for kind in (weights if operator in ('lines', 'elements') else ('each',))
    ]


def _everything(f, primals, tangents, ct, twice):
    """Value, both modes, second order and batches of everything and of each operand."""

    def gradient(*primals):
        y, back = jax.vjp(f, *primals)
        return back(y)

    batched = [
        jax.vmap(f, [0 if k == j else None for j in range(len(primals))])(
            *(t if k == j else p for j, (p, t) in enumerate(zip(primals, twice, strict=True)))
        )
        for k in range(len(primals))
    ]
    return {
        'value': f(*primals),
        'jvp': jax.jvp(f, primals, tangents)[1],
        'vjp': jax.vjp(f, *primals)[1](ct),
        'second order': jax.jvp(gradient, primals, tangents)[1],
        'batches of each operand': batched,
        'a batch of all': jax.vmap(f)(*twice),
        'gradients of a batch': jax.vmap(gradient)(*twice),
    }


def check(case, tolerance):
    primals, tangents, others = (case.operands(seed) for seed in (0, 1, 2))
    twice = tuple(jnp.stack(pair) for pair in zip(primals, others, strict=True))
    want, formula = jax.eval_shape(case.formula(), *primals), case.formula()
    ct = number(np.random.default_rng(3), want.shape, want.dtype)
    arrays = tuple(map(jnp.asarray, case.example.arrays))

    @quick_jit
    def both(arrays, *operands):
        return _everything(case.call(arrays), *operands), _everything(formula, *operands)

    got, wanted = both(arrays, primals, tangents, ct, twice)
    for what, value in wanted.items():
        jax.tree.map(
            lambda a, b, what=what: np.testing.assert_allclose(
                np.asarray(a, np.complex128), np.asarray(b, np.complex128),
                rtol=tolerance, atol=tolerance, err_msg=what,
            ),
            got[what],
            value,
        )  # fmt: skip
    left = jnp.vdot(ct.conj(), got['jvp'])
    right = sum(jnp.vdot(g.conj(), t) for g, t in zip(got['vjp'], tangents, strict=True))
    np.testing.assert_allclose(left, right, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize('case', thinned(_cases(), 8))
def test_value_derivatives_and_batches(case):
    check(case, 2e-5)


@pytest.mark.parametrize('case', thinned(_cases(operators=('clip',)), 4))
def test_learning_that_clips_what_it_touches(case):
    """By itself, since its derivatives take more programs than all others."""
    check(case, 2e-5)


@pytest.mark.parametrize('case', thinned(_cases('float64', ('each',)), 40))
def test_sixty_four_bits(case):
    with jax.enable_x64(True):
        check(case, 1e-13)


@pytest.mark.parametrize('dtype', ['bfloat16', 'complex64', 'bool'])
@pytest.mark.parametrize('case', [PerEdge('scale', 'coo', 'numba', False, dtype='float32'),
                                  PerEdge('lines', 'fcn', 'numba', True, dtype='float32'),
                                  PerEdge('elements', 'csr', 'numba', True, dtype='float32'),
                                  PerEdge('elements', 'coo', 'jax_raw', True, dtype='float32')],
                         ids=str)  # fmt: skip
def test_values_in_other_dtypes(case, dtype):
    """Numbers are small and whole, so that every dtype holds them exactly; duplicates add up."""
    arrays = tuple(map(jnp.asarray, case.example.arrays))
    operands = tuple(abs(jnp.round(x)).astype(dtype) for x in case.operands())
    got = case.call(arrays)(*operands)
    wide = 'complex64' if dtype == 'complex64' else 'float32'
    want = case.formula()(*(x.astype(wide) for x in operands))
    assert got.dtype == (dtype if dtype != 'bool' else 'int32')
    np.testing.assert_array_equal(np.asarray(got.astype(wide)), want)


def _every():
    return _cases() + _cases(operators=('clip',))


def _broken(case, arrays):
    return tuple(
        jnp.asarray(np.random.default_rng(k).integers(-9, 99, a.shape), a.dtype)
        for k, a in enumerate(arrays)
    )


@pytest.mark.parametrize('case', thinned([c for c in _every() if c.stem != 'dense'], 20))
def test_broken_structure_is_survived(case):
    """Any array of integers may come where nobody can look: results are numbers."""
    primals = case.operands()

    @quick_jit
    def run(arrays):
        y, back = jax.vjp(case.call(arrays), *primals)
        return y, back(y)

    for leaf in jax.tree.leaves(run(_broken(case, case.example.arrays))):
        assert np.isfinite(leaf).all()


@pytest.mark.parametrize('shape', [(0, 3), (3, 4)])
def test_nothing_gives_nothing(shape):
    for stem in STORED:
        family = FAMILIES[stem]
        ex = example(family.layout.name, 0, shape, 0)
        arrays = tuple(map(jnp.asarray, ex.arrays))
        for backend in ('numba', 'jax_raw') if stem in ('csr', 'coo') else ('jax_raw',):
            how = {'shape': shape, 'transpose': True, 'backend': backend}
            w = jnp.zeros(ex.edges)
            scaled = scales_of(family)('t', jnp.ones(shape[1]), w, arrays, core=w.shape, **how)
            assert scaled.shape == (ex.edges,)
            pick = functools.partial(picks_of(family), 't', w, arrays, **how)
            ids = jnp.array([0, 1])
            assert pick(ids).shape == (2, shape[1])
            assert pick(ids, ids).tolist() == [0, 0]
            assert pick(ids[:0]).shape == (0, shape[1])
