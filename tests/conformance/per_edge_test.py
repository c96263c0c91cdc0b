# SPDX-License-Identifier: Apache-2.0
"""Scaling, picking and learning over every layout, against the same formulas in plain JAX.

Every operator is put through value, both modes, second order, adjointness and batches of each
operand, in one program a case.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge import FAMILIES
from brainevent._edge.pick import picks_of
from brainevent._edge.scale import scales_of
from tests.conformance.examples import example
from tests.conformance.grid import number, quick_jit, thinned
from tests.conformance.per_edge import LEARNING, STORED, PerEdge, cases


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


@pytest.mark.parametrize('case', thinned(cases(), 8))
def test_value_derivatives_and_batches(case):
    check(case, 2e-5)


@pytest.mark.parametrize('case', thinned(cases(operators=LEARNING), 8))
def test_learning(case):
    """By itself, since its derivatives take more programs than all others."""
    check(case, 2e-5)


@pytest.mark.parametrize('case', thinned(cases('float64', ('each',)), 40))
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
    return cases() + cases(operators=LEARNING)


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
