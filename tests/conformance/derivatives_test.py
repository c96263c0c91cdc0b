# SPDX-License-Identifier: Apache-2.0
"""Values and derivatives of every product, to second order, against the trilinear form."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge import Event
from tests.conformance.grid import (
    Operands,
    close,
    dtype_grid,
    every_dtype,
    full_grid,
    quick_jit,
    thinned,
)

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


def check_derivatives(case):
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


@pytest.mark.parametrize('case', thinned(full_grid(), 4))
def test_value_and_derivatives(case):
    check_derivatives(case)


@pytest.mark.parametrize('case', thinned(dtype_grid(), 6))
def test_value_and_derivatives_in_other_dtypes(case):
    with jax.enable_x64(case.x64):
        if case.dtype in DERIVED:
            check_derivatives(case)
        else:
            check_value(case)


@pytest.mark.parametrize('case', thinned(every_dtype(), 3))
def test_every_family_takes_other_widths(case):
    with jax.enable_x64(case.x64):
        check_value(case)


def check_value(case):
    ops = Operands(case)
    params, x = ops.params(), ops.input()
    got = case.call()(params, ops.arrays, x)
    assert got.dtype == jnp.dtype(case.dtype)
    close(case, got, ops.value(params, x), 'value')


def _vectors():
    return [c for c in full_grid() if c.rank == 'vector' and c.event is not Event.MASKED]


@pytest.mark.parametrize('case', thinned(_vectors(), 7))
def test_hessian(case):
    """The full second derivative, which batches every rule over basis vectors."""
    ops = Operands(case, edges=6, shape=(4, 3))
    params, x = ops.params(), ops.input()
    f = case.call((4, 3))

    flat, parts_of = jax.flatten_util.ravel_pytree((params, x))

    def loss(flat):
        p, x = parts_of(flat)
        return (f(p, ops.arrays, x) ** 2).sum() / 2

    got = quick_jit(jax.hessian(loss))(flat)
    close(case, got, _hessian(ops, params, x, parts_of), 'hessian')


def _hessian(ops, params, x, parts_of):
    """One column for each basis vector of weights and input together."""
    form, e, w = ops.form, ops.counts(x), ops.edge_weights(params)
    y = form.product(w, e)
    columns = []
    for unit in np.eye(x.size + sum(p.size for p in params), dtype=np.float32):
        dparams, dx = parts_of(unit)
        dw, dx = ops.edge_weights(dparams), ops.wide(dx)
        dy = form.product(dw, e) + form.product(w, dx)
        per_edge = form.sample(dx, y) + form.sample(e, dy)
        per_input = form.back(dw, y) + form.back(w, dy)
        columns.append(np.concatenate([*ops.param_cotangents(per_edge), per_input]))
    return np.stack(columns, 1)
