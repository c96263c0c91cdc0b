# SPDX-License-Identifier: Apache-2.0
"""Every operator has its derivatives: finite differences, adjointness, symmetry of the second.

Operators are linear in each operand, or nearly, and numbers are dyadic: central differences are
exact. Towards events, where a difference shows nothing, the tangent must be the ordinary product.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.listed import list_active
from tests.conformance.grid import number, quick_jit, thinned
from tests.conformance.operators import composed, fills, house, is_void, per_edge, products


def _gradient(f):
    """Return value and cotangents as one function."""

    def both(arrays, primals, ct):
        y, back = jax.vjp(lambda *p: f.call(arrays, *p), *primals)
        return y, back(ct)

    return both


def _cotangent(f):
    out = jax.eval_shape(f.call, f.arrays, *f.primals)
    return number(np.random.default_rng(3), out.shape, out.dtype)


def _inner(a, b):
    return float(np.vdot(np.asarray(a, np.float64), np.asarray(b, np.float64)))


def check(f, step, tolerance):
    ct, gradient = _cotangent(f), quick_jit(_gradient(f))

    @quick_jit
    def tangent(arrays, tangents):
        return jax.jvp(lambda *p: _gradient(f)(arrays, p, ct), f.primals, tangents)[1]

    def near(got, want, what):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=what)

    def along(keep):
        zeros = map(jnp.zeros_like, f.tangents)
        kept = zip(f.tangents, zeros, strict=True)
        return tuple(t if keep(k) else zero for k, (t, zero) in enumerate(kept))

    smooth = along(lambda k: k != f.event)
    up, down = (
        gradient(f.arrays, tuple(p + h * t for p, t in zip(f.primals, smooth, strict=True)), ct)
        for h in (step, -step)
    )
    slopes = jax.tree.map(lambda a, b: (a - b) / (2 * step), up, down)
    jax.tree.map(lambda a, b: near(a, b, 'differences'), tangent(f.arrays, smooth), slopes)

    _, grads = gradient(f.arrays, f.primals, ct)
    singles = [tangent(f.arrays, along(lambda k, j=j: k == j)) for j in range(len(grads))]
    for k, (dy, seconds) in enumerate(singles):
        near(_inner(ct, dy), _inner(grads[k], f.tangents[k]), f'adjointness in operand {k}')
        for j, second in enumerate(seconds):
            other = _inner(singles[j][1][k], f.tangents[k])
            near(_inner(second, f.tangents[j]), other, f'symmetry of operands {j} and {k}')
    if f.straight is not None:
        operands = list(f.primals)
        operands[f.event] = f.tangents[f.event]
        near(singles[f.event][0], f.straight(f.arrays, *operands), 'straight through')


@pytest.mark.parametrize('case', thinned(products(), 20))
def test_products(case):
    check(case.function(), 1 / 32, 1e-4)


@pytest.mark.parametrize('case', thinned(per_edge(), 20))
def test_operators_with_a_number_for_each_edge(case):
    check(case.function(), 1 / 32, 1e-4)


LONG = ('jitn', 'jitu', 'JITC.todense', 'JITC[i, j]', 'JITC.dt2t')  # programs that draw


def _marked(cases):
    return [
        pytest.param(c, id=str(c), marks=pytest.mark.slow if c.name.startswith(LONG) else ())
        for c in cases
    ]


@pytest.mark.parametrize('case', _marked([*composed(), *fills()]))
def test_functions_made_of_operators(case):
    with jax.enable_x64(True), be.use_backend('jax_raw'):
        check(case.function(), 1e-4, 1e-6)


# ---- nothing is left out -------------------------------------------------------------------------


def _names(case):
    """Return the operators in the program of value and cotangents of one case."""
    f = case.function()
    program = jax.make_jaxpr(_gradient(f))(f.arrays, f.primals, _cotangent(f))
    return set(re.findall(r'\w+', str(program)))


def test_every_operator_of_the_house_is_in_a_case():
    """Whatever registers must be in the program of some case, or give integers."""
    seen = set()
    for case in [*products(), *per_edge(), *fills()]:
        if case.backend == 'jax_raw':
            seen |= _names(case)
    with jax.enable_x64(True):
        for case in composed():
            if 'solve' in case.name:
                seen |= _names(case)
    missing = {name for name, op in house().items() if not is_void(op)} - seen
    assert not missing


def test_what_gives_integers_has_no_derivative():
    void = {name for name, op in house().items() if is_void(op)}
    assert 'compact' in void
    active = jnp.array([True, False, True])
    tangent = jax.jvp(list_active, (active,), (np.zeros(3, jax.dtypes.float0),))[1]
    assert [t.dtype for t in tangent] == [jax.dtypes.float0] * 2
    drawn = be.JITCScalarR((1.0, 0.4, 3), shape=(4, 4))
    slope = jax.jacfwd(lambda prob: drawn.with_data(prob).tocsr(16).indices)(0.5)
    assert not np.asarray(slope).any()
