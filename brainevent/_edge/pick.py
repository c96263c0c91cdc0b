# SPDX-License-Identifier: Apache-2.0
"""Picking: whole lines, or single elements, out of a matrix.

With the lines ``i[k]``, and for elements the other ends ``j[k]``, of what is asked for::

    lines:     out[k, target(e)] += w[e]    over edges with source(e) = i[k]
    elements:  out[k] += w[e]               over edges with source(e) = i[k] and target(e) = j[k]

Both are linear in the weights. The way back gives every edge the sum of the cotangents at all
places where its weight was added, and is linear too: each is the transpose of the other.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax.numpy as jnp

from brainevent._compat import is_undefined
from brainevent._edge.doors import Door, raise_level
from brainevent._edge.operands import as_array, check_structure, split_unit, with_unit
from brainevent._edge.operator import EdgeOperator, Spec, batch_shape, own_parts, struct, sum_to
from brainevent._edge.product import Products
from brainevent._error import ShapeError, expect
from brainevent._op import XLACustomKernel, soften
from brainevent._typing import Array

__all__ = ['PICK', 'PICKS', 'Picks', 'picks_of']

PICK = EdgeOperator('pick')
"""Lines or elements of a matrix, and the way back to the weights."""

PICKS: dict[str, 'Picks'] = {}
"""Every family of picks by the stem of its products."""


class Picks(Door):
    """The picks from one layout: lines and elements, each with its way back.

    Parameters
    ----------
    products : Products
        The family over the same layout.
    """

    def __init__(self, products: Products) -> None:
        self.products = products
        self.ops = {
            (elements, back): self._declare('elements' if elements else 'slice_rows', back)
            for elements in (False, True)
            for back in (False, True)
        }
        PICKS[products.stem] = self

    def _declare(self, name: str, back: bool) -> XLACustomKernel:
        layout = self.products.layout
        op = XLACustomKernel(f'{self.products.stem}_{name}{"_grad" if back else ""}')
        ids = [None] * (2 if name == 'elements' else 1)
        op.def_jvp_rule2(self._jvp, *[None] * len(layout.arrays), *ids)
        op.def_transpose_rule(self._transpose)
        op.def_batching_rule(self._batch)
        op.def_tags(layout.name, 'slice', *(('grad',) if back else ()))
        PICK.attach(op, layout)
        return op

    def __call__(
        self,
        where: str,
        data: Any,
        arrays: Sequence[Array],
        *ids: Array,
        shape: tuple[int, int],
        transpose: bool,
        backend: Any = None,
        checked: bool = False,
    ) -> Any:
        """Pick; the unit of the weights is settled here.

        Parameters
        ----------
        where : str
            Name of the call in messages.
        data : Array or Quantity
            Weights: one, or one an edge.
        arrays : sequence of Array
            Structure.
        *ids : Array of int
            Lines to pick, or the lines and the other ends of elements, in one shape. What lies
            outside the matrix is zero.
        shape : tuple of int
            Rows and columns.
        transpose : bool
            True: lines are rows. False: columns.
        backend : str, optional
            Demand a backend.
        checked : bool
            The structure has been checked before.

        Returns
        -------
        Array or Quantity
            In the shape of the ids; lines have one more axis.
        """
        number, unit = split_unit(data)
        number = as_array(where, 'data', number)
        spec = Spec(self.products.layout, self.products.weight, shape, transpose)
        if not checked:
            check_structure(where, spec.layout, arrays, shape)
        count = spec.layout.count(tuple(arrays), shape)
        expect(
            number.size in (1, count),
            ShapeError,
            where,
            '`data` does not fit the structure.',
            expected=f'one weight, or {count}: one for every entry',
            got=lambda: f'shape {number.shape}',
            remedy='give one weight for all entries or one for each',
        )
        flat = tuple(jnp.asarray(x).reshape(-1) for x in ids)
        picked = self.run(spec, backend, number, tuple(arrays), flat)
        return with_unit(picked.reshape(*ids[0].shape, *picked.shape[1:]), unit)

    def _traced(self, spec: Spec, backend: Any) -> Callable[..., Array]:
        def run(data: Array, arrays: tuple[Array, ...], ids: tuple[Array, ...]) -> Array:
            dtype = jnp.dtype('int32') if data.dtype == bool else data.dtype
            return self.bind(data.reshape(-1).astype(dtype), arrays, ids, spec, backend)

        return run

    def bind(
        self, w: Any, arrays: Sequence[Any], ids: Sequence[Any], spec: Spec, backend: Any
    ) -> Array:
        """Bind the primitive of picking; operands are arrays of settled dtypes."""
        return self._bind(False, w, arrays, ids, spec, backend)

    def back(
        self, ct: Any, arrays: Sequence[Any], ids: Sequence[Any], spec: Spec, backend: Any
    ) -> Array:
        """Bind the primitive of the way back: a number for every edge."""
        return self._bind(True, ct, arrays, ids, spec, backend)

    def _bind(
        self,
        back: bool,
        x: Any,
        arrays: Sequence[Any],
        ids: Sequence[Any],
        spec: Spec,
        backend: Any,
    ) -> Array:
        operands = (x, *arrays, *ids)
        elements = len(ids) == 2
        if back:
            core: tuple[int, ...] = (spec.layout.count(own_parts(arrays, spec.levels), spec.shape),)
        else:
            core = (ids[0].shape[-1], *(() if elements else spec.extents[:1]))
        out = struct((*batch_shape(operands, spec.levels), *core), x.dtype)
        op = self.ops[elements, back]
        (result,) = op(
            *operands, outs=[out], spec=spec, elements=elements, back=back, backend=backend
        )
        return cast(Array, result)

    # ---- the calculus: two linear maps, each the transpose of the other ------------------------

    def _apart(self, operands: Sequence[Any], spec: Spec) -> tuple[Any, Any, Any]:
        return operands[0], operands[1 : 1 + spec.edges], operands[1 + spec.edges :]

    def _jvp(
        self, dx: Array, *operands: Array, spec: Spec, back: bool, backend: Any = None, **_: Any
    ) -> list[Array]:
        _x, arrays, ids = self._apart(operands, spec)
        return [self._bind(back, dx, arrays, ids, spec, backend)]

    def _transpose(
        self,
        cts: Sequence[Array],
        *operands: Any,
        spec: Spec,
        back: bool,
        backend: Any = None,
        **_: Any,
    ) -> list[Any]:
        x, arrays, ids = self._apart(operands, spec)
        (ct,), soft = cts, soften(backend)
        if not is_undefined(x):
            return [None] * len(operands)
        shape = x.aval.shape
        if back or shape[-1] != 1:
            dx = sum_to(self._bind(not back, ct, arrays, ids, spec, soft), shape)
        else:  # one weight for all edges
            ones = jnp.ones((1,) * len(shape), ct.dtype)
            inner = self.bind(ones, arrays, ids, spec, soft) * ct
            dx = sum_to(inner.sum(tuple(range(spec.levels, ct.ndim)))[..., None], shape)
        return [dx, *[None] * (len(operands) - 1)]

    def _batch(
        self, operands: Any, axes: Any, *, spec: Spec, back: bool, backend: Any, **_: Any
    ) -> tuple[list[Array], list[int]]:
        x, arrays, ids = self._apart(operands, spec)
        if back or spec.levels or any(axis is not None for axis in axes[: 1 + spec.edges]):
            up = spec.but(levels=spec.levels + 1)
            x, arrays, ids = self._apart(raise_level(operands, axes), spec)
            return [self._bind(back, x, arrays, ids, up, backend)], [0]
        raised = jnp.broadcast_arrays(*raise_level(ids, axes[1 + spec.edges :]))
        flat = [a.reshape(-1) for a in raised]
        picked = self.bind(x, arrays, flat, spec, backend)
        return [picked.reshape(*raised[0].shape, *picked.shape[1:])], [0]


def picks_of(products: Products) -> Picks:
    """Return the picks from the layout of a family of products."""
    return PICKS.get(products.stem) or Picks(products)
