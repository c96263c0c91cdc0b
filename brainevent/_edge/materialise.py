# SPDX-License-Identifier: Apache-2.0
"""Drawn matrices put into memory: dense, or as the list of their edges.

A dense matrix is linear in the parameters of the weights, so its rules are those of the product
without an input: a tangent is the matrix of the tangents, a cotangent of a parameter the inner
product with the matrix of a one. The list of edges holds integers only.
"""

import functools
from collections.abc import Sequence
from typing import Any, cast

import jax.numpy as jnp

from brainevent._compat import is_undefined
from brainevent._edge.doors import raise_level
from brainevent._edge.layout import Layout
from brainevent._edge.operator import EdgeOperator, Spec, batch_shape, struct, sum_to
from brainevent._edge.weight import CONSTANT, Weight
from brainevent._op import XLACustomKernel, soften
from brainevent._typing import Array

__all__ = ['DENSE', 'LISTING', 'Dense', 'is_drawn', 'list_edges']

DENSE = EdgeOperator('dense')
"""``out[row, col] = weight`` of every edge, zero elsewhere."""

LISTING = EdgeOperator('listing')
"""Column and key of every edge, row after row."""


def is_drawn(*, spec: Spec, **_: Any) -> bool | str:
    """Tell whether kernels of drawn layouts serve a call."""
    return spec.layout.draw is not None or 'for drawn layouts only'


class Dense:
    """The primitive that fills a dense matrix with one layout and weight.

    Parameters
    ----------
    layout : Layout
        A drawn one.
    weight : Weight
    name : str
        Of the primitive.
    """

    def __init__(self, layout: Layout, weight: Weight, name: str) -> None:
        self.layout, self.weight = layout, weight
        self.op = XLACustomKernel(name)
        weights = [functools.partial(self._jvp, q) for q in range(weight.params)]
        self.op.def_jvp_rule2(*weights, *[None] * len(layout.arrays))
        self.op.def_transpose_rule(self._transpose)
        self.op.def_batching_rule(self._batch)
        self.op.def_tags(layout.name, 'dense')
        DENSE.attach(self.op, layout)

    def __call__(
        self,
        params: Sequence[Array],
        arrays: Sequence[Array],
        shape: tuple[int, int],
        backend: Any = None,
    ) -> Array:
        """Return the matrix; parameters have one axis and one dtype."""
        return self.bind(params, arrays, Spec(self.layout, self.weight, shape), backend)

    def bind(self, params: Sequence[Any], arrays: Sequence[Any], spec: Spec, backend: Any) -> Array:
        """Bind the primitive."""
        operands = (*params, *arrays)
        out = struct((*batch_shape(operands, spec.levels), *spec.shape), params[0].dtype)
        (result,) = self.op(*operands, outs=[out], spec=spec, backend=backend)
        return cast(Array, result)

    def _jvp(
        self, q: int, dw: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        many = self.weight.params
        tangents = [dw if k == q else jnp.zeros_like(p) for k, p in enumerate(operands[:many])]
        return [self.bind(tangents, operands[many:], spec, backend)]

    def _transpose(
        self, cts: Sequence[Array], *operands: Any, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Any]:
        many, (ct,) = self.weight.params, cts
        params, arrays = operands[:many], operands[many:]
        grads: list[Any] = [None] * len(operands)
        for q, p in enumerate(params):
            if is_undefined(p):
                shape = p.aval.shape
                units = [jnp.full((1,) * len(shape), float(k == q), ct.dtype) for k in range(many)]
                product = self.bind(units, arrays, spec, soften(backend)) * ct
                grads[q] = sum_to(product.sum((-2, -1))[..., None], shape)
        return grads

    def _batch(
        self, operands: Any, axes: Any, *, spec: Spec, backend: Any, **_: Any
    ) -> tuple[list[Array], list[int]]:
        operands = raise_level(operands, axes)
        many = self.weight.params
        deeper = spec.but(levels=spec.levels + 1)
        return [self.bind(operands[:many], operands[many:], deeper, backend)], [0]


_listings: dict[str, XLACustomKernel] = {}


def list_edges(
    layout: Layout,
    arrays: Sequence[Array],
    ptr: Array,
    shape: tuple[int, int],
    size: int,
    keys: bool = True,
) -> tuple[Array, Array, Array, Array]:
    """Count the edges of a drawn layout, and list them row by row.

    Parameters
    ----------
    layout : Layout
    arrays : sequence of Array
        Its structure.
    ptr : Array of int32, shape (shape[0] + 1,)
        Where rows begin in the list; what lies beyond it is left out.
    shape : tuple of int
        Rows and columns.
    size : int
        Length of the list; what is not filled is zero. Nothing is listed, only counted, for 0.
    keys : bool
        Whether to list the keys, too.

    Returns
    -------
    count : Array of int32, shape (shape[0],)
        Edges of every row.
    col : Array of int32, shape (size,)
    high, low : Array of uint32, shape (size,), or (0,) without keys
        The key of every edge.
    """
    op = _listings.get(layout.name) or _declare_listing(layout)
    each = struct((size if keys else 0,), jnp.uint32)
    outs = [struct((shape[0],), jnp.int32), struct((size,), jnp.int32), each, each]
    return tuple(op(*arrays, ptr, outs=outs, spec=Spec(layout, CONSTANT, shape)))


def _declare_listing(layout: Layout) -> XLACustomKernel:
    op = _listings.setdefault(layout.name, XLACustomKernel(f'{layout.name}_listing'))
    op.def_jvp_rule2(*[None] * (len(layout.arrays) + 1))
    op.def_batching_rule(functools.partial(_batch_listing, op))
    op.def_tags(layout.name, 'listing')
    LISTING.attach(op, layout)
    return op


def _batch_listing(
    op: XLACustomKernel, operands: Any, axes: Any, *, outs: Any, spec: Spec, **_: Any
) -> tuple[list[Array], list[int]]:
    operands, deeper = raise_level(operands, axes), spec.but(levels=spec.levels + 1)
    lead = batch_shape(operands, deeper.levels)
    wider = [struct((*lead, o.shape[-1]), o.dtype) for o in outs]
    return list(op(*operands, outs=wider, spec=deeper)), [0] * len(wider)
