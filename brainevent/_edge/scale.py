# SPDX-License-Identifier: Apache-2.0
"""Scaling: a number for every edge, times a vector at the edge's target.

``scale(w, y)[e] = w[e] * y[target(e)]`` is linear in both operands. Its cotangents are a scale and
a product with a vector of ones: ``sum_e ct[e] w[e]`` over the edges of every target.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_undefined
from brainevent._edge.doors import Door, raise_level
from brainevent._edge.event import Event, unwrap
from brainevent._edge.operands import as_array, check_structure, split_unit, with_unit
from brainevent._edge.operator import EdgeOperator, Spec, batch_shape, struct, sum_to
from brainevent._edge.product import Products
from brainevent._error import ShapeError, expect
from brainevent._op import XLACustomKernel, soften
from brainevent._typing import Array

__all__ = ['SCALE', 'SCALES', 'Scales', 'scales_of']

SCALE = EdgeOperator('scale')
"""``out[edge] = w[edge] * y[target]``."""

SCALES: dict[str, 'Scales'] = {}
"""Every family of scalings by the stem of its products."""


class Scales(Door):
    """The scalings of one layout: of one vector (mv), and of a batch of them (mm).

    Parameters
    ----------
    products : Products
        The family over the same layout; its product with ones is a derivative.
    """

    def __init__(self, products: Products) -> None:
        self.products = products
        self.one, self.many = (self._declare(rank) for rank in ('mv', 'mm'))
        SCALES[products.stem] = self

    def _declare(self, rank: str) -> XLACustomKernel:
        layout = self.products.layout
        op = XLACustomKernel(f'{self.products.stem}{rank}_dt2t')
        structure = [None] * len(layout.arrays)
        op.def_jvp_rule2(self._jvp_weights, *structure, self._jvp_vector)
        op.def_transpose_rule(self._transpose)
        op.def_batching_rule(self._batch)
        op.def_tags(layout.name, 'scale', 'dt2t')
        SCALE.attach(op, layout)
        return op

    def __call__(
        self,
        where: str,
        y: Any,
        w: Any,
        arrays: Sequence[Array],
        *,
        shape: tuple[int, int],
        transpose: bool,
        core: tuple[int, ...],
        batch: bool = False,
        backend: Any = None,
        checked: bool = False,
    ) -> Any:
        """Scale; units, dtypes and shapes of all operands are settled here.

        Parameters
        ----------
        where : str
            Name of the call in messages.
        y : Array or Quantity
            One vector, or with ``batch`` one in each row.
        w : Array or Quantity
            A number for each edge, in the shape ``core`` or flat, or one for all; with ``batch``
            there may be an axis in front.
        arrays : sequence of Array
            Structure.
        shape : tuple of int
            Rows and columns.
        transpose : bool
            False: ``y`` belongs to rows. True: to columns.
        core : tuple of int
            The shape in which numbers of edges are stored.
        batch : bool
            Scale once for each row of ``y``.
        backend : str, optional
            Demand a backend.
        checked : bool
            The structure has been checked before.

        Returns
        -------
        Array or Quantity
            In the shape of ``w``, or ``core``, after the batch; in the product of both units.
        """
        (y, y_unit), (w, w_unit) = split_unit(unwrap(y)[0]), split_unit(w)
        y, w = as_array(where, 'y', y), as_array(where, 'w', w)
        spec = Spec(self.products.layout, self.products.weight, shape, transpose, levels=int(batch))
        if not checked:
            check_structure(where, spec.layout, arrays, shape)
        self._check_vector(where, y, spec)
        count = spec.layout.count(tuple(arrays), shape)
        lead = y.shape[: spec.levels]
        w, own = _flat(where, w, lead, core, count)
        number = self.run(spec, backend, w, tuple(arrays), y)
        return with_unit(number.reshape(*lead, *own), w_unit, y_unit)

    def _check_vector(self, where: str, y: Array, spec: Spec) -> None:
        side, length = 'column' if spec.transpose else 'row', spec.extents[0]
        wanted = f'(batch, {length})' if spec.levels else f'({length},)'
        expect(
            y.ndim == 1 + spec.levels and y.shape[-1] == length,
            ShapeError,
            where,
            '`y` does not fit the matrix.',
            expected=lambda: f'shape {wanted}: one entry for each {side} of {spec.shape}',
            got=lambda: f'shape {y.shape}',
        )

    def _traced(self, spec: Spec, backend: Any) -> Callable[..., Array]:
        def run(w: Array, arrays: tuple[Array, ...], y: Array) -> Array:
            dtype = jnp.result_type(w, y)
            dtype = jnp.dtype('int32') if dtype == np.bool_ else dtype
            count = spec.layout.count(arrays, spec.shape)
            w = jnp.broadcast_to(w, (*w.shape[:-1], count)).astype(dtype)
            if spec.levels:
                w, arrays = (w if w.ndim > 1 else w[None]), tuple(a[None] for a in arrays)
            return self.bind(w, arrays, y.astype(dtype), spec, backend)

        return run

    def bind(self, w: Any, arrays: Sequence[Any], y: Any, spec: Spec, backend: Any) -> Array:
        """Bind the primitive; operands are arrays of settled dtypes."""
        operands = (w, *arrays, y)
        out = struct((*batch_shape(operands, spec.levels), w.shape[-1]), w.dtype)
        op = self.many if spec.levels else self.one
        (result,) = op(*operands, outs=[out], spec=spec, backend=backend)
        return cast(Array, result)

    # ---- the calculus -----------------------------------------------------------------------

    def _jvp_weights(
        self, dw: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        _w, *arrays, y = operands
        return [self.bind(dw, arrays, y, spec, backend)]

    def _jvp_vector(
        self, dy: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        w, *arrays, _y = operands
        return [self.bind(w, arrays, dy, spec, backend)]

    def _transpose(
        self, cts: Sequence[Array], *operands: Any, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Any]:
        w, *arrays, y = operands
        (ct,), soft = cts, soften(backend)
        blank: list[Any] = [None] * len(arrays)
        if is_undefined(w):
            return [sum_to(self.bind(ct, arrays, y, spec, soft), w.aval.shape), *blank, None]
        ones = jnp.ones((*(1,) * spec.levels, spec.extents[1]), ct.dtype)
        plain = spec.but(event=Event.REAL)
        dy = self.products.bind([ct * w], arrays, ones, plain, soft)
        return [None, *blank, sum_to(dy, y.aval.shape)]

    def _batch(
        self, operands: Any, axes: Any, *, spec: Spec, backend: Any, **_: Any
    ) -> tuple[list[Array], list[int]]:
        w, *arrays, y = raise_level(operands, axes)
        return [self.bind(w, arrays, y, spec.but(levels=spec.levels + 1), backend)], [0]


def _flat(
    where: str, w: Array, lead: tuple[int, ...], core: tuple[int, ...], count: int
) -> tuple[Array, tuple[int, ...]]:
    """Return numbers of edges in one axis, after a batch's if there is one, and their own shape."""
    if lead and w.shape in ((*lead, *core), (*lead, count)):
        return w.reshape(*lead, count), w.shape[1:]
    if w.size == 1:
        return w.reshape(1), (w.shape if count == 1 and not lead else core)
    more = f' or {(*lead, *core)}' if lead else ''
    expect(
        w.shape in (core, (count,)),
        ShapeError,
        where,
        '`w` does not fit the structure.',
        expected=lambda: f'{count} values, one for every entry: shape {core}{more}',
        got=lambda: f'shape {w.shape}',
    )
    return w.reshape(-1), w.shape


def scales_of(products: Products) -> Scales:
    """Return the scalings over the layout of a family of products."""
    return SCALES.get(products.stem) or Scales(products)
