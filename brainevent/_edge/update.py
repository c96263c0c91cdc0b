# SPDX-License-Identifier: Apache-2.0
"""Plasticity: every edge whose source fired gets the trace at its target added to its weight.

``update(w, x, y)[e] = w[e] + e(x)[source(e)] * y[target(e)]`` is a weight plus a sample. So one
rule each is all there is to its calculus: the tangent of the weights passes unchanged, the tangents
of the trace and of the spikes (straight through) are samples, and a sample knows its transpose.

Clipping all weights afterwards is JAX's own. Clipping only those that changed is a second operator:
its tangents are those of the first wherever nothing was clipped, and the bounds' elsewhere.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import brainunit as u
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge.doors import Door, raise_level
from brainevent._edge.event import Event, unwrap
from brainevent._edge.layout import safe, within
from brainevent._edge.operands import (
    as_array,
    check_spike_unit,
    check_structure,
    split_unit,
)
from brainevent._edge.operator import EdgeOperator, Spec, batch_shape, struct
from brainevent._edge.product import Products
from brainevent._error import (
    DtypeError,
    OptionError,
    ShapeError,
    UnitError,
    expect,
    explain,
    listed,
)
from brainevent._op import XLACustomKernel, soften
from brainevent._typing import Array

__all__ = ['CLIP', 'CLIPPED', 'UPDATE', 'UPDATES', 'Updates', 'updates_of', 'within_bounds']

CLIP = ('all', 'touched')

UPDATE = EdgeOperator('update')
"""``out[edge] = w[edge] + e(x)[source] * y[target]``."""

CLIPPED = EdgeOperator('clipped update')
"""The same, and what changed is put between two bounds, which are the last operand."""

UPDATES: dict[str, 'Updates'] = {}
"""Every family of updates by the stem of its products."""


class Updates(Door):
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
        names = {
            True: pre or f'update_{products.stem}_on_binary_pre',
            False: post or f'update_{products.stem}_on_binary_post',
        }
        self.pre, self.post = (self._declare(names[rows]) for rows in (True, False))
        self.clipped = {
            rows: self._declare(f'{name}_clipped', clip=True) for rows, name in names.items()
        }
        UPDATES[products.stem] = self

    def _declare(self, name: str, clip: bool = False) -> XLACustomKernel:
        layout = self.products.layout
        op = XLACustomKernel(name)
        plain = (self._jvp_weight, *[None] * len(layout.arrays), self._jvp_spikes, self._jvp_trace)
        free = [rule and functools.partial(self._jvp_free, rule) for rule in plain]
        op.def_jvp_rule2(*((*free, self._jvp_bounds) if clip else plain))
        op.def_batching_rule(self._batch)
        op.def_tags(layout.name, 'update', 'plasticity', 'binary')
        (CLIPPED if clip else UPDATE).attach(op, layout)
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
        clip: str = 'all',
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
            Bounds.
        clip : {'all', 'touched'}
            Hold all weights of the result between the bounds, or those whose source fired.
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
        _check_trace(where, trace)
        number, unit = split_unit(data)
        number = as_array(where, 'weight', number)
        spec = Spec(self.products.layout, self.products.weight, shape, transpose, Event.BINARY)
        if not checked:
            check_structure(where, spec.layout, arrays, shape)
        spike, spike_unit = split_unit(unwrap(spikes)[0])
        check_spike_unit(where, spike_unit)
        x = as_array(where, 'spike', spike)
        y = as_array(where, 'trace', in_unit(where, 'trace', unwrap(trace)[0], unit))
        bounds = tuple(
            None if b is None else as_array(where, name, in_unit(where, name, b, unit))
            for name, b in (('w_min', w_min), ('w_max', w_max))
        )
        self._check_operands(where, number, arrays, x, y, spec)
        _check_bounds(where, bounds, clip, number, y)
        if any(b is not None for b in bounds):
            _check_order(where, bounds, result_dtype(number, y))
        out = self.run(spec, (backend, clip), number, tuple(arrays), x, y, bounds)
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

    def _traced(self, spec: Spec, choice: tuple[Any, str]) -> Callable[..., Array]:
        """Return the update as a function; the choice is of a backend, and of what to clip."""
        backend, clip = choice

        def run(data: Array, arrays: Any, x: Array, y: Array, bounds: Sequence[Any]) -> Array:
            settled = result_dtype(data, y)
            # whole numbers of few bits are added in 32, so that bounds hold where they would wrap
            narrow = jnp.issubdtype(settled, jnp.integer) and settled.itemsize < 4
            dtype = jnp.dtype('int32') if narrow else settled
            w = data.astype(dtype)
            limits = [_limit(b, dtype, up) for b, up in zip(bounds, (True, False), strict=True)]
            free = all(limit is None for limit in limits)
            held = None if free or clip == 'all' else _as_operand(limits, dtype)
            if spec.layout.count(arrays, spec.shape):
                # in the shape they have: a reshape would cost the update in place
                w = w if w.ndim else w.reshape(1)
                y = y.astype(dtype)
                w = self.bind(w, arrays, x, y, spec, backend, held).reshape(data.shape)
            return (w if free or held is not None else jnp.clip(w, *limits)).astype(settled)

        return run

    def bind(
        self,
        w: Any,
        arrays: Sequence[Any],
        x: Any,
        y: Any,
        spec: Spec,
        backend: Any,
        bounds: Any = None,
    ) -> Array:
        """Bind the primitive; operands are arrays of settled dtypes."""
        operands = (w, *arrays, x, y, *(() if bounds is None else (bounds,)))
        out = struct((*batch_shape(operands, spec.levels), *w.shape[spec.levels :]), w.dtype)
        plain = self.pre if spec.transpose else self.post
        op = plain if bounds is None else self.clipped[spec.transpose]
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

    def _jvp_free(
        self, rule: Callable[..., list[Array]], d: Array, *operands: Array, spec: Spec, **how: Any
    ) -> list[Array]:
        """Let a tangent of the update pass where it was not clipped."""
        (tangent,) = rule(d, *operands[:-1], spec=spec, **how)
        below, above = self._cut(operands, spec, how.get('backend'))
        return [jnp.where(below | above, 0, tangent)]

    def _jvp_bounds(
        self, d: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        below, above = self._cut(operands, spec, backend)
        low, high = (d[..., k].reshape(*d.shape[:-1], *(1,) * _core(below, spec)) for k in (0, 1))
        return [jnp.where(below, low, jnp.where(above, high, 0))]

    def _cut(self, operands: Sequence[Array], spec: Spec, backend: Any) -> tuple[Array, Array]:
        """Tell which weights were raised to the lower bound, and which cut to the upper one."""
        w, *arrays, x, y, bounds = operands
        soft = soften(backend)
        free = self.bind(w, arrays, x, y, spec, soft)
        held = self.bind(w, arrays, x, y, spec, soft, bounds)
        return held > free, held < free

    def _batch(
        self, operands: Any, axes: Any, *, spec: Spec, backend: Any, **_: Any
    ) -> tuple[list[Array], list[int]]:
        w, *rest = raise_level(operands, axes)
        arrays, (x, y, *bounds) = rest[: spec.edges], rest[spec.edges :]
        up = spec.but(levels=spec.levels + 1)
        return [self.bind(w, arrays, x, y, up, backend, *bounds)], [0]


def _check_trace(where: str, trace: Any) -> None:
    expect(
        unwrap(trace)[1] is not Event.BINARY,
        OptionError,
        where,
        'the trace is an event array.',
        expected='spikes and trace in their places',
        got=lambda: f'{type(trace).__name__} as the trace',
        remedy='the order is (pre_spike, post_trace) in updates on pre, and '
        '(pre_trace, post_spike) in updates on post',
    )


def _core(x: Array, spec: Spec) -> int:
    return x.ndim - spec.levels


def _limit(bound: Array | None, dtype: Any, up: bool) -> Array | None:
    """Return a bound in the weights' dtype: for whole numbers the next one, or where they end."""
    if bound is None or jnp.issubdtype(dtype, jnp.inexact):
        return bound if bound is None else bound.astype(dtype)
    ends = np.iinfo(dtype)
    if jnp.issubdtype(bound.dtype, jnp.inexact):
        bound = jnp.ceil(bound) if up else jnp.floor(bound)
        inside = jnp.where(bound >= ends.max, ends.max, bound.astype(dtype))
        return jnp.where(bound <= ends.min, ends.min, inside).astype(dtype)
    given = np.iinfo(np.int8 if bound.dtype == bool else bound.dtype)
    low, high = max(ends.min, given.min), min(ends.max, given.max)
    return jnp.clip(bound, low, high).astype(dtype)


def _as_operand(limits: Sequence[Any], dtype: Any) -> Array:
    """Put two bounds into one array; none is where no number reaches."""
    if jnp.issubdtype(dtype, jnp.inexact):
        ends: tuple[Any, Any] = (-jnp.inf, jnp.inf)
    else:
        ends = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    pairs = zip(limits, ends, strict=True)
    return jnp.stack([jnp.asarray(e if b is None else b, dtype).reshape(()) for b, e in pairs])


def _check_bounds(where: str, bounds: Sequence[Any], clip: str, *numbers: Array) -> None:
    expect(
        clip in CLIP,
        OptionError,
        where,
        'unknown `clip`.',
        expected=lambda: f'one of {listed(CLIP)}',
        got=lambda: repr(clip),
    )
    given = [b for b in bounds if b is not None]
    ordered = (*numbers, *given)
    expect(
        not given or not any(jnp.issubdtype(a.dtype, jnp.complexfloating) for a in ordered),
        DtypeError,
        where,
        'complex numbers have no order.',
        expected='no bounds, or weights, a trace and bounds of real numbers',
        got=lambda: ', '.join(str(a.dtype) for a in ordered),
    )
    expect(
        clip == 'all' or all(b.size == 1 for b in given),
        ShapeError,
        where,
        'bounds of what is touched are single numbers.',
        expected='one number for each bound',
        got=lambda: ', '.join(f'shape {b.shape}' for b in given),
        remedy="use clip='all'",
    )
    expect(
        all(b.size == 1 or b.shape == numbers[0].shape for b in given),
        ShapeError,
        where,
        'the bounds do not fit the weights.',
        expected=lambda: f'one number for each bound, or shape {numbers[0].shape}',
        got=lambda: ', '.join(f'shape {b.shape}' for b in given),
    )


def _check_order(where: str, bounds: Sequence[Any], dtype: Any) -> None:
    """Check the values of bounds that are known on this host."""
    low, high = (
        None if b is None or not _on_host(b) else np.asarray(b).astype(np.float64) for b in bounds
    )
    whole = jnp.issubdtype(dtype, jnp.integer)
    ends = np.iinfo(dtype) if whole else None
    if whole:
        low, high = low if low is None else np.ceil(low), high if high is None else np.floor(high)
    least = low if low is not None else (ends.min if ends else -np.inf)
    most = high if high is not None else (ends.max if ends else np.inf)
    room = bool(np.all(np.less_equal(least, most)))  # False for NaN
    if ends:
        room &= bool(
            np.all(np.less_equal(least, ends.max)) and np.all(np.less_equal(ends.min, most))
        )
    expect(
        room,
        OptionError,
        where,
        f'no weight of {np.dtype(dtype)} lies between `w_min` and `w_max`.',
        expected='w_min <= w_max, neither of them NaN, and a value of the dtype between them',
        got=lambda: f'w_min={bounds[0]}, w_max={bounds[1]}',
        remedy='exchange the bounds if `w_min` is above `w_max`',
    )


def _on_host(x: Any) -> bool:
    return is_concrete(x) and all(device.platform == 'cpu' for device in x.devices())


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


def within_bounds(x: Array, bounds: Array) -> Array:
    """Return numbers between two bounds; what is no number stays none."""
    return jnp.clip(x, bounds[0], bounds[1])


def by_gathering(*, spec: Spec, outs: Sequence[Any], **_: Any) -> Callable[..., Array]:
    """Make ``w + e(x)[source] * y[target]`` for all edges at once, in plain JAX."""

    def kernel(w: Array, *operands: Array) -> Array:
        arrays, (x, y, *bounds) = operands[: spec.edges], operands[spec.edges :]
        row, col = spec.layout.edges(tuple(arrays), spec.shape)
        inside = within(row, spec.shape[0]) & within(col, spec.shape[1])
        source, target = (row, col) if spec.transpose else (col, row)
        x_length, y_length = spec.extents[1], spec.extents[0]
        fired = spec.event.active(x).at[safe(source, x_length)].get(mode='fill', fill_value=False)
        met = (fired & inside).reshape(w.shape)
        step = y.at[safe(target, y_length)].get(mode='fill', fill_value=0).reshape(w.shape)
        if not bounds:
            return w + jnp.where(met, step, 0)
        return jnp.where(met, within_bounds(w + step, *bounds), w)

    return kernel
