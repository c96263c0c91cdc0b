# SPDX-License-Identifier: Apache-2.0
"""Plasticity: every edge whose source fired gets the trace at its target added to its weight.

``update(w, x, y)[e] = w[e] + e(x)[source(e)] * y[target(e)]`` is a weight plus a sample. So one
rule each is all there is to its calculus: the tangent of the weights passes unchanged, the tangents
of the trace and of the spikes (straight through) are samples, and a sample knows its transpose.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import brainunit as u
import jax
import jax.numpy as jnp

from brainevent._compat import is_tracer
from brainevent._edge.event import Event, unwrap
from brainevent._edge.layout import safe, within
from brainevent._edge.operands import as_array, check_structure, split_unit
from brainevent._edge.operator import EdgeOperator, Spec, batch_shape, struct
from brainevent._edge.product import Products, _raise_level
from brainevent._error import DtypeError, ShapeError, UnitError, expect, explain
from brainevent._op import XLACustomKernel, soften
from brainevent._typing import Array

__all__ = ['UPDATE', 'UPDATES', 'Updates', 'updates_of']

UPDATE = EdgeOperator('update')
"""``out[edge] = w[edge] + e(x)[source] * y[target]``."""

UPDATES: dict[str, 'Updates'] = {}
"""Every family of updates by the stem of its products."""


class Updates:
    """The two updates of one layout: on spikes of its rows (pre) and of its columns (post).

    Parameters
    ----------
    products : Products
        The family over the same layout; its samples are the derivatives.
    pre, post : str, optional
        Names of the primitives.
    """

    def __init__(self, products: Products, pre: str | None = None, post: str | None = None) -> None:
        self.products = products
        stem = products.stem
        self.pre = self._declare(pre or f'update_{stem}_on_binary_pre')
        self.post = self._declare(post or f'update_{stem}_on_binary_post')
        UPDATES[stem] = self

    def _declare(self, name: str) -> XLACustomKernel:
        layout = self.products.layout
        op = XLACustomKernel(name)
        structure = [None] * len(layout.arrays)
        op.def_jvp_rule2(self._jvp_weight, *structure, self._jvp_spikes, self._jvp_trace)
        op.def_batching_rule(self._batch)
        op.def_tags(layout.name, 'update', 'binary')
        UPDATE.attach(op, layout)
        return op

    def __call__(
        self,
        where: str,
        data: Any,
        arrays: Sequence[Array],
        spikes: Any,
        trace: Any,
        w_min: Any = None,
        w_max: Any = None,
        *,
        shape: tuple[int, int],
        transpose: bool,
        backend: str | None = None,
        checked: bool = False,
    ) -> Any:
        """Update and clip; units, dtypes and shapes of all operands are settled here.

        Parameters
        ----------
        where : str
            Name of the call in messages.
        data : Array or Quantity
            One weight for each edge.
        arrays : sequence of Array
            Structure.
        spikes : Array or event array, of one axis
            An element fires when it is True or greater than zero.
        trace : Array or Quantity, of one axis
            Added to the weights, in their unit.
        w_min, w_max : number, Array or Quantity, optional
            Bounds of all weights of the result.
        shape : tuple of int
            Rows and columns.
        transpose : bool
            True: rows fire, columns have traces. False: the other way round.
        backend : str, optional
            Demand a backend.
        checked : bool
            The structure has been checked before.

        Returns
        -------
        Array or Quantity
            In the shape and unit of ``data``.
        """
        number, unit = split_unit(data)
        number = as_array(where, 'weight', number)
        spec = Spec(self.products.layout, self.products.weight, shape, transpose, Event.BINARY)
        if not checked:
            check_structure(where, spec.layout, arrays, shape)
        x = as_array(where, 'spike', in_unit(where, 'spike', unwrap(spikes)[0], None))
        y = as_array(where, 'trace', in_unit(where, 'trace', unwrap(trace)[0], unit))
        bounds = [
            None if b is None else as_array(where, name, in_unit(where, name, b, unit))
            for name, b in (('w_min', w_min), ('w_max', w_max))
        ]
        self._check_operands(where, number, arrays, x, y, spec)
        operands = (number, tuple(arrays), x, y, bounds)
        run = self._traced if any(map(is_tracer, jax.tree.leaves(operands))) else self._compiled
        out = run(spec, backend)(*operands)
        return out if unit is None else u.Quantity(out, unit=unit)

    def _check_operands(
        self, where: str, w: Array, arrays: Sequence[Array], x: Array, y: Array, spec: Spec
    ) -> None:
        count = spec.layout.count(tuple(arrays), spec.shape)
        expect(
            w.size == count or (count == 0 and w.size == 1),
            ShapeError,
            where,
            'there is not one weight for every connection.',
            expected=f'{count} weights',
            got=lambda: f'shape {w.shape}',
            remedy='plasticity makes weights differ: repeat a shared weight for every connection',
        )
        for name, a, length in (('spike', x, spec.extents[1]), ('trace', y, spec.extents[0])):
            side = 'row' if (name == 'spike') is spec.transpose else 'column'
            expect(
                a.shape == (length,),
                ShapeError,
                where,
                f'the {name} does not fit `shape`.',
                expected=f'shape ({length},): one entry for each {side} of {spec.shape}',
                got=lambda a=a: f'shape {a.shape}',
            )
        expect(
            not jnp.issubdtype(x.dtype, jnp.complexfloating),
            DtypeError,
            where,
            'complex numbers are no spikes.',
            expected='truth values, integers or floats',
            got=x.dtype,
        )

    def _traced(self, spec: Spec, backend: Any) -> Callable[..., Array]:
        """Return the update as a function to be traced into the program at hand."""

        def run(data: Array, arrays: Any, x: Array, y: Array, bounds: Sequence[Any]) -> Array:
            dtype = result_dtype(data, y)
            w = data.astype(dtype)
            if spec.layout.count(arrays, spec.shape):
                # in the shape they have: a reshape would cost the update in place
                w = w if w.ndim else w.reshape(1)
                w = self.bind(w, arrays, x, y.astype(dtype), spec, backend).reshape(data.shape)
            low, high = (None if b is None else b.astype(dtype) for b in bounds)
            return w if low is None and high is None else jnp.clip(w, low, high)

        return run

    @functools.lru_cache(maxsize=4096)  # noqa: B019 -- families live as long as the process
    def _compiled(self, spec: Spec, backend: Any) -> Callable[..., Array]:
        """Return the update as a compiled function of its own, for calls outside a program."""
        return jax.jit(self._traced(spec, backend))

    def bind(
        self, w: Any, arrays: Sequence[Any], x: Any, y: Any, spec: Spec, backend: Any
    ) -> Array:
        """Bind the primitive; operands are arrays of settled dtypes."""
        operands = (w, *arrays, x, y)
        out = struct((*batch_shape(operands, spec.levels), *w.shape[spec.levels :]), w.dtype)
        op = self.pre if spec.transpose else self.post
        (new,) = op(*operands, outs=[out], spec=spec, backend=backend)
        return new  # type: ignore[no-any-return]

    # ---- the calculus -----------------------------------------------------------------------

    def _jvp_weight(self, dw: Array, *_: Array, outs: Any, **__: Any) -> list[Array]:
        return [jnp.broadcast_to(dw, outs[0].shape)]

    def _jvp_spikes(
        self, dx: Array, *operands: Array, spec: Spec, backend: Any = None, outs: Any, **_: Any
    ) -> list[Array]:
        _w, *arrays, _x, y = operands
        plain = spec.but(event=Event.REAL)
        step = self.products.sample(arrays, dx.astype(y.dtype), y, plain, soften(backend))
        return [_like_weights(step, outs[0], spec)]

    def _jvp_trace(
        self, dy: Array, *operands: Array, spec: Spec, backend: Any = None, outs: Any, **_: Any
    ) -> list[Array]:
        _w, *arrays, x, _y = operands
        step = self.products.sample(arrays, x, dy, spec, soften(backend))
        return [_like_weights(step, outs[0], spec)]

    def _batch(
        self, operands: Any, axes: Any, *, spec: Spec, backend: Any, **_: Any
    ) -> tuple[list[Array], list[int]]:
        w, *arrays, x, y = _raise_level(operands, axes)
        return [self.bind(w, arrays, x, y, spec.but(levels=spec.levels + 1), backend)], [0]


def _like_weights(step: Array, out: Any, spec: Spec) -> Array:
    """Bring one number for every edge into the shape of the weights, batch included."""
    core = step.reshape(*step.shape[: spec.levels], *out.shape[spec.levels :])
    return jnp.broadcast_to(core, out.shape)


def updates_of(products: Products) -> Updates:
    """Return the updates over the layout of a family of products."""
    return UPDATES.get(products.stem) or Updates(products)


def in_unit(where: str, name: str, x: Any, unit: Any) -> Any:
    """Return the number of ``x`` in a unit; None is no unit.

    Raises
    ------
    UnitError
        If ``x`` measures something else.
    """
    number, own = split_unit(x)
    if own is None and unit is None:
        return number
    try:
        return u.Quantity(number, unit=own or u.UNITLESS).to_decimal(unit or u.UNITLESS)
    except u.UnitMismatchError as cause:
        raise UnitError(
            explain(
                where,
                f'the unit of `{name}` does not fit.',
                expected=f'a quantity in {unit}' if unit else 'a number without unit',
                got=f'unit {own}' if own else 'a number without unit',
            )
        ) from cause


def result_dtype(w: Array, trace: Array) -> Any:
    """Weights keep their dtype unless the trace is of a richer kind: floats on integers."""
    wide = jnp.result_type(w, trace)
    kinds = (jnp.complexfloating, jnp.floating, jnp.integer, jnp.bool_)
    same = any(jnp.issubdtype(w.dtype, k) and jnp.issubdtype(wide, k) for k in kinds)
    return w.dtype if same and w.dtype != bool else wide


def by_gathering(*, spec: Spec, outs: Sequence[Any], **_: Any) -> Callable[..., Array]:
    """Make ``w + e(x)[source] * y[target]`` for all edges at once, in plain JAX."""

    def kernel(w: Array, *operands: Array) -> Array:
        *arrays, x, y = operands
        row, col = spec.layout.edges(tuple(arrays), spec.shape)
        inside = within(row, spec.shape[0]) & within(col, spec.shape[1])
        source, target = (row, col) if spec.transpose else (col, row)
        x_length, y_length = spec.extents[1], spec.extents[0]
        fired = spec.event.active(x).at[safe(source, x_length)].get(mode='fill', fill_value=False)
        step = y.at[safe(target, y_length)].get(mode='fill', fill_value=0)
        return w + jnp.where(fired & inside, step, 0).reshape(w.shape)

    return kernel
