# SPDX-License-Identifier: Apache-2.0
"""Values and derivatives of every product, to second order, against the trilinear form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge import Event
from tests.conformance.grid import Operands, close, dtype_grid, every_dtype, full_grid, quick_jit

DERIVED = ('float16', 'float64', 'complex64')  # bfloat16 differs from float16 in its values only


def _derivatives(f, params, arrays, x, ct, dparams, dx):
    """Trace value, both modes and the second order as one program."""

    def product(p, x):
        return f(p, arrays, x)

    def gradient(p, x):
        y, back = jax.vjp(product, p, x)
        return back(y)

    y, back = jax.vjp(product, params, x)
    return {
        'value': y,
        'vjp': back(ct),
        'jvp': jax.jvp(product, (params, x), (dparams, dx))[1],
        'jvp of weights': jax.jvp(lambda p: product(p, x), (params,), (dparams,))[1],
        'jvp of input': jax.jvp(lambda x: product(params, x), (x,), (dx,))[1],
        'second order': jax.jvp(gradient, (params, x), (dparams, dx))[1],
    }


def _expected(ops, params, x, ct, dparams, dx):
    """The same by the oracle: events are differentiated straight through, and count one."""
    form, e, dx, ct = ops.form, ops.counts(x), ops.wide(dx), ops.wide(ct)
    w, dw = ops.edge_weights(params), ops.edge_weights(dparams)
    y, of_weights, of_input = form.product(w, e), form.product(dw, e), form.product(w, dx)
    dy = of_weights + of_input

    def pair(per_edge, per_input):
        return ops.param_cotangents(per_edge), ops.narrow(per_input)

    return {
        'value': ops.narrow(y),
        'vjp': pair(form.sample(e, ct), form.back(w, ct)),
        'jvp': ops.narrow(dy),
        'jvp of weights': ops.narrow(of_weights),
        'jvp of input': ops.narrow(of_input),
        'second order': pair(
            form.sample(dx, y) + form.sample(e, dy), form.back(dw, y) + form.back(w, dy)
        ),
    }


def _check_derivatives(case):
    ops = Operands(case)
    params, x, ct = ops.params(), ops.input(), ops.output()
    dparams, dx = ops.params(), ops.input()
    got = quick_jit(lambda *args: _derivatives(case.call(), *args))(
        params, ops.arrays, x, ct, dparams, dx
    )
    want = _expected(ops, params, x, ct, dparams, dx)
    if x.dtype.kind == 'f' and case.dtype == 'complex64':  # a real input has a real cotangent
        want = {k: (v[0], v[1].real) if isinstance(v, tuple) else v for k, v in want.items()}
    for what, value in want.items():
        jax.tree.map(lambda a, b, what=what: close(case, a, b, what), got[what], value)
    _check_adjoint(case, got, params, x, ct, dparams, dx)


def _inner(a, b):
    return sum(
        np.sum(np.asarray(x).astype(complex) * np.asarray(y).astype(complex))
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


def _check_adjoint(case, got, params, x, ct, dparams, dx):
    """``<ct, J t> = <J' ct, t>``, in weights and in the input by itself."""
    of_weights, of_input = got['vjp']
    pairs = [(got['jvp of weights'], of_weights, dparams), (got['jvp of input'], of_input, dx)]
    for forward, backward, tangent in pairs:
        left, right = _inner(ct, forward), _inner(backward, tangent)
        if jnp.iscomplexobj(ct) and not jnp.iscomplexobj(tangent):
            left = left.real
        close(case, left, right, 'adjointness')


@pytest.mark.parametrize('case', full_grid(), ids=str)
def test_value_and_derivatives(case):
    _check_derivatives(case)


@pytest.mark.parametrize('case', dtype_grid(), ids=str)
def test_value_and_derivatives_in_other_dtypes(case):
    with jax.enable_x64(case.x64):
        if case.dtype in DERIVED:
            _check_derivatives(case)
        else:
            _check_value(case)


@pytest.mark.parametrize('case', every_dtype(), ids=str)
def test_every_family_takes_other_widths(case):
    with jax.enable_x64(case.x64):
        _check_value(case)


def _check_value(case):
    ops = Operands(case)
    params, x = ops.params(), ops.input()
    got = case.call()(params, ops.arrays, x)
    assert got.dtype == jnp.dtype(case.dtype)
    close(case, got, ops.value(params, x), 'value')


def _vectors():
    return [c for c in full_grid() if c.rank == 'vector' and c.event is not Event.MASKED]


@pytest.mark.parametrize('case', _vectors(), ids=str)
def test_hessian(case):
    """The full second derivative, which batches every rule over basis vectors."""
    ops = Operands(case, edges=6, shape=(4, 3))
    params, x = ops.params(), ops.input()
    f = case.call((4, 3))

    def loss(p, x):
        return (f(p, ops.arrays, x) ** 2).sum() / 2

    got = quick_jit(jax.hessian(loss, (0, 1)))(params, x)
    want = _hessian(ops, params, x)
    jax.tree.map(lambda a, b: close(case, a, b, 'hessian'), got, want)


def _hessian(ops, params, x):
    """One column for each basis vector of weights and input."""
    form, e, w = ops.form, ops.counts(x), ops.edge_weights(params)
    y = form.product(w, e)

    def column(dw, dx):
        dy = form.product(dw, e) + form.product(w, dx)
        per_edge = form.sample(dx, y) + form.sample(e, dy)
        return ops.param_cotangents(per_edge), form.back(dw, y) + form.back(w, dy)

    units = [np.eye(p.size) for p in params]
    blank = [np.zeros(p.size) for p in params]
    by_params = []
    for q, basis in enumerate(units):
        columns = [
            column(ops.edge_weights([*blank[:q], unit, *blank[q + 1 :]]), np.zeros(x.shape))
            for unit in basis
        ]
        by_params.append(_stack(columns))
    by_input = _stack([column(np.zeros(w.shape), unit) for unit in np.eye(x.size)])
    rows = range(len(params))
    return (
        (tuple(tuple(by_params[q][0][r] for q in rows) for r in rows), tuple(by_input[0])),
        (tuple(by_params[q][1] for q in rows), by_input[1]),
    )


def _stack(columns):
    return jax.tree.map(lambda *parts: np.stack(parts, -1), *columns)
