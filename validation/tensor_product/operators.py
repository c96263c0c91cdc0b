# SPDX-License-Identifier: Apache-2.0
"""An equivariant tensor product as three operators that are closed under differentiation.

All of it is about one number, linear in each of its four operands, summed over the samples ``b``
of a batch and the terms ``t`` of `terms`:

    Q(x, y, w, g)  =  sum  c[t] x[b, i[t]] y[b, j[t]] w[b, k[t]] g[b, n[t]]

- forward: ``z``, the gradient of Q with respect to g
- backward: the gradients of Q with respect to x, y and w
- double backward: the gradients with respect to x, y, w and g of what one gets by putting
  a direction in the place of x, plus one in the place of y, plus one in the place of w:
  ``D = Q(dx, y, w, g) + Q(x, dy, w, g) + Q(x, y, dw, g)``

Since Q is linear in each operand, a tangent of any of the three is the operator itself with the
tangent in the operand's place, and a cotangent is the backward or double backward operator with
the cotangents in the places that they belong to. So the rules below are substitutions, and hold
to every order.

Weights have one row for each sample, or one row that all samples share.
"""

from typing import Any

import jax
import jax.numpy as jnp

import brainevent as be
from validation.tensor_product import kernels
from validation.tensor_product.terms import Irreps, paths, terms, width

forward_p = be.XLACustomKernel('tensor_product')
backward_p = be.XLACustomKernel('tensor_product_backward')
double_backward_p = be.XLACustomKernel('tensor_product_double_backward')

OPERATORS = {
    'forward': forward_p,
    'backward': backward_p,
    'double_backward': double_backward_p,
}
for _name, _op in OPERATORS.items():
    _op.def_numba_kernel(kernels.numba_generator(_name))
    _op.def_cuda_raw_kernel(kernels.cuda_generator(_name))

G = 3  # place of g among the operands x, y, w, g


class TensorProduct:
    """``z = T(x, y, w)``: the tensor product of two operands, paths mixed by weights.

    Parameters
    ----------
    left, right, out : list of (int, int)
        Multiplicity and degree of what ``x``, ``y`` and the result consist of.
    mode : {'uvu', 'uvw'}
        How copies are mixed; see `terms`.

    Examples
    --------
    >>> product = TensorProduct([(1, 1)], [(1, 1)], [(1, 0)], 'uvw')  # the scalar product
    >>> x, w = jnp.array([[1.0, 2.0, 2.0]]), jnp.ones((1, 1))
    >>> jnp.abs(product(x, x, w))
    Array([[5.196...]], dtype=float32)
    """

    def __init__(self, left: Irreps, right: Irreps, out: Irreps, mode: str) -> None:
        self.places, self.coefficients = terms(left, right, out, mode)
        weights = max((p.weights.stop for p in paths(left, right, out, mode)), default=0)
        self.widths = width(left), width(right), weights, width(out)

    def table(self, dtype: Any) -> tuple[jax.Array, jax.Array]:
        """Return the operands that say what the product is."""
        return jnp.asarray(self.places), jnp.asarray(self.coefficients, dtype)

    def __call__(self, x: Any, y: Any, w: Any, *, backend: str | None = None) -> jax.Array:
        """Multiply a batch; all derivatives are defined."""
        for name, array, columns in zip('xyw', (x, y, w), self.widths, strict=False):
            # kernels do not look: what does not fit must not reach them
            rows = {len(x), 1} if name == 'w' else {len(x)}
            if array.ndim != 2 or len(array) not in rows or array.shape[1] != columns:
                raise be.errors.ShapeError(
                    f'tensor product: `{name}` does not fit.\n'
                    f'    expected: shape ({len(x)}, {columns})\n'
                    f'    got:      shape {array.shape}'
                )
        out = jax.ShapeDtypeStruct((x.shape[0], self.widths[G]), x.dtype)
        return forward_p(*self.table(x.dtype), x, y, w, outs=out, backend=backend)

    def backward(self, *operands: Any, backend: str | None = None) -> list[jax.Array]:
        """Return the gradients of Q with respect to x, y and w."""
        return _backward(self.table(operands[0].dtype), operands, backend=backend)

    def double_backward(self, *operands: Any, backend: str | None = None) -> list[jax.Array]:
        """Return the gradients of D, for operands x, y, w, g, dx, dy, dw."""
        table = self.table(operands[0].dtype)
        return _double_backward(table, operands[:4], operands[4:], backend=backend)


def _backward(table: Any, operands: Any, **how: Any) -> list[Any]:
    return backward_p(*table, *operands, outs=_like(operands[:G]), **how)


def _double_backward(table: Any, operands: Any, directions: Any, **how: Any) -> list[Any]:
    return double_backward_p(*table, *operands, *directions, outs=_like(operands), **how)


def _like(arrays: Any) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]


def _put(operands: Any, place: int, value: Any) -> tuple[Any, ...]:
    """Return the operands with another one in a place; None stands for zeros."""
    value = jnp.zeros_like(operands[place]) if value is None else value
    return (*operands[:place], value, *operands[place + 1 :])


def _without(results: Any, place: int) -> list[Any]:
    """Return tangents of which one is zero: a gradient does not depend on its own operand."""
    return [None if k == place else result for k, result in enumerate(results)]


# ---- tangents: the operator itself, the tangent in the operand's place ----------------------


def _forward_tangent(place: int) -> Any:
    def rule(dt: Any, places: Any, coefficients: Any, *operands: Any, **params: Any) -> list[Any]:
        return [forward_p(places, coefficients, *_put(operands, place, dt), **params)]

    return rule


def _backward_tangent(place: int) -> Any:
    def rule(dt: Any, places: Any, coefficients: Any, *operands: Any, **params: Any) -> list[Any]:
        results = backward_p(places, coefficients, *_put(operands, place, dt), **params)
        return _without(results, place)

    return rule


def _double_backward_tangent(place: int) -> Any:
    def rule(dt: Any, places: Any, coefficients: Any, *all_of_it: Any, **params: Any) -> list[Any]:
        operands, directions = all_of_it[:4], all_of_it[4:]
        if place > G:  # a direction: D is linear in all three together
            zeros = tuple(map(jnp.zeros_like, directions))
            directions = _put(zeros, place - G - 1, dt)
        else:
            operands = _put(operands, place, dt)
            directions = directions if place == G else _put(directions, place, None)
        results = double_backward_p(places, coefficients, *operands, *directions, **params)
        return results if place > G else _without(results, place)

    return rule


forward_p.def_jvp_rule2(None, None, *map(_forward_tangent, range(3)))
backward_p.def_jvp_rule2(None, None, *map(_backward_tangent, range(4)))
double_backward_p.def_jvp_rule2(None, None, *map(_double_backward_tangent, range(7)))


# ---- cotangents: the next operator, cotangents in the places that they belong to -------------


def _transposed(cotangent_of: Any) -> Any:
    """Make a transpose rule of a function that gives the cotangent of one operand."""

    def rule(cotangents: Any, *operands: Any, outs: Any, backend: Any) -> list[Any]:
        # what is asked for is no array yet; no formula depends on it, so zeros will do
        asked = [k for k, x in enumerate(operands) if not isinstance(x, jax.Array)]
        filled = [
            jnp.zeros(x.aval.shape, x.aval.dtype) if k in asked else x
            for k, x in enumerate(operands)
        ]
        answers: list[Any] = [None] * len(operands)
        for k in asked:
            table, rest = tuple(filled[:2]), tuple(filled[2:])
            answers[k] = cotangent_of(k - 2, table, rest, cotangents, backend=backend)
        return answers

    return rule


def _forward_cotangent(place: int, table: Any, operands: Any, cotangents: Any, **how: Any) -> Any:
    return _backward(table, (*operands, *cotangents), **how)[place]


def _backward_cotangent(place: int, table: Any, operands: Any, cotangents: Any, **how: Any) -> Any:
    directions = cotangents if place == G else _put(cotangents, place, None)
    return _double_backward(table, operands, directions, **how)[place]


def _double_backward_cotangent(
    place: int, table: Any, all_of_it: Any, cotangents: Any, **how: Any
) -> Any:
    operands, directions = all_of_it[:4], all_of_it[4:]
    g, cts, ct_of_g = operands[G], tuple(cotangents[:G]), cotangents[G]
    if place > G:
        place -= G + 1
        other = _backward(table, _put(operands, G, ct_of_g), **how)[place]
        return other + _double_backward(table, operands, _put(cts, place, None), **how)[place]
    if place == G:
        return sum(
            _double_backward(table, _put(operands, k, cts[k]), _put(directions, k, None), **how)[G]
            for k in range(3)
        )
    directions = _put(directions, place, None)
    return sum(
        _double_backward(table, four, directions, **how)[place]
        for four in ((*cts, g), _put(operands, G, ct_of_g))
    )


forward_p.def_transpose_rule(_transposed(_forward_cotangent))
backward_p.def_transpose_rule(_transposed(_backward_cotangent))
double_backward_p.def_transpose_rule(_transposed(_double_backward_cotangent))
