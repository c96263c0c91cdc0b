# SPDX-License-Identifier: Apache-2.0
"""The door of every operator: units off and on, dtypes brought together, shapes checked once."""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import canonical_dtype, is_concrete
from brainevent._edge.event import Event
from brainevent._edge.intake import host_array, on_host, own_array, signed_ids
from brainevent._edge.layout import Layout
from brainevent._error import DtypeError, IndexRangeError, ShapeError, UnitError, expect
from brainevent._typing import Array, Shape

__all__ = [
    'as_array',
    'as_index',
    'check_shape',
    'check_spike_unit',
    'check_structure',
    'common_dtype',
    'remember_sound',
    'settled',
    'split_unit',
    'with_unit',
]


def split_unit(x: Any) -> tuple[Any, Any]:
    """Take a value apart into its number and its unit; None is no unit."""
    if isinstance(x, u.Quantity):
        return x.mantissa, (None if x.is_unitless else x.unit)
    return x, None


def with_unit(x: Array, *units: Any) -> Any:
    """Put the product of units on a result; what cancels leaves a plain array."""
    unit = None
    for other in units:
        if other is not None:
            unit = other if unit is None else unit * other
    return x if unit is None else u.maybe_decimal(u.Quantity(x, unit=unit))


def check_spike_unit(where: str, unit: Any) -> None:
    """Refuse a unit of binary events: whether 5 mV is a spike depends on a threshold.

    Raises
    ------
    UnitError
        With the hint to compare the quantity first.
    """
    expect(
        unit is None,
        UnitError,
        where,
        'a quantity is not an event vector.',
        expected='truth values or plain numbers, of which those above zero are events',
        got=lambda: f'unit {unit}',
        remedy='compare it first, for example `V > V_threshold`',
    )


def as_array(where: str, name: str, x: Any) -> Array:
    """Make a JAX array of numbers out of what a user passes.

    Raises
    ------
    DtypeError
        If it holds no numbers.
    """
    if isinstance(x, jax.Array):
        return x if x.dtype.itemsize < 8 else settled(x)
    if hasattr(x, '__jax_array__'):
        return as_array(where, name, x.__jax_array__())
    return own_array(host_array(where, name, x))


def settled(x: Any) -> Any:
    """Return an array in a dtype of today: 64-bit mode may have been left since it was made."""
    number, unit = split_unit(x)
    dtype = canonical_dtype(number.dtype) if isinstance(number, jax.Array) else None
    if dtype is None or dtype == number.dtype:
        return x
    return number.astype(dtype) if unit is None else u.Quantity(number.astype(dtype), unit=unit)


def as_index(where: str, name: str, ids: Any, limit: int | None = None) -> Array:
    """Make an index array of signed integers that kernels can use, without losing a value.

    Raises
    ------
    UnitError, DtypeError
        If ``ids`` are not plain integers.
    IndexRangeError
        If a value does not fit the integers JAX can hold at present.
    """
    ids, unit = split_unit(ids)
    expect(
        unit is None,
        UnitError,
        where,
        f'`{name}` has a unit.',
        expected='plain integers',
        got=lambda: f'unit {unit}',
    )
    if not isinstance(ids, jax.Array) and hasattr(ids, '__jax_array__'):
        ids = ids.__jax_array__()
    raw = ids if isinstance(ids, jax.Array) else on_host(where, name, ids)
    if raw.size == 0 and raw.dtype.kind == 'f':
        raw = np.zeros(raw.shape, np.int32)  # numpy's empty list is of floats
    expect(
        np.issubdtype(raw.dtype, np.integer),
        DtypeError,
        where,
        f'`{name}` does not hold integers.',
        expected='an integer dtype',
        got=raw.dtype,
        remedy='convert it with astype(int32) if every value is a whole number',
    )
    if raw.dtype in (jnp.uint32, jnp.uint64) and is_concrete(raw):
        raw = np.asarray(raw)  # what does not fit a signed integer is found on the host
    if isinstance(raw, jax.Array):
        return raw if raw.dtype in (jnp.int32, jnp.int64) else signed_ids(raw)
    low, high = (int(raw.min()), int(raw.max())) if raw.size else (0, 0)
    fits = low >= -(2**31) and high < 2**31
    expect(
        high < 2**63,
        IndexRangeError,
        where,
        f'`{name}` points outside any matrix.',
        expected='values below 2**63',
        got=lambda: f'values from {low} to {high}',
        remedy='look for negative numbers that were taken as unsigned ones',
    )
    expect(
        fits or jax.config.read('jax_enable_x64'),
        IndexRangeError,
        where,
        f'`{name}` holds values that need 64 bits.',
        expected='values below 2**31, or 64-bit mode',
        got=lambda: f'values from {low} to {high}',
        remedy="jax.config.update('jax_enable_x64', True)",
    )
    return own_array(raw, np.int32 if fits else np.int64)


def common_dtype(data: Array, x: Array, event: Event) -> Any:
    """Return the dtype of a product: events never widen weights, truth values are numbers.

    Masked values do not widen weights either, but where weights are whole or real numbers and
    they are not, their fractions or imaginary parts count.
    """
    richer = event is Event.MASKED and _nature(x.dtype) > _nature(data.dtype)
    counts = richer or (event is Event.REAL and x.dtype != np.bool_)
    # what has no part in it is not asked for, so that strict promotion has nothing to refuse
    dtype = jnp.result_type(data, x) if counts else data.dtype
    return jnp.dtype('int32') if dtype == np.bool_ else dtype


def _nature(dtype: Any) -> int:
    """Return 0 for whole, 1 for real, 2 for complex numbers."""
    return int(jnp.issubdtype(dtype, jnp.inexact)) + jnp.issubdtype(dtype, jnp.complexfloating)


# Structure that was found sound: id of an array -> the array (weakly) and what it was checked for.
_sound: dict[tuple[int, ...], tuple[tuple[weakref.ref[Any], ...], Any]] = {}
_sound_lock = threading.Lock()


def check_structure(where: str, layout: Layout, arrays: Sequence[Array], shape: Shape) -> None:
    """Check shapes of structure arrays, and the values of concrete ones unless done before.

    Raises
    ------
    ShapeError, IndexRangeError
        Naming the array, what was expected and what was found.
    """
    layout.check_shapes(where, tuple(arrays), shape)
    if not all(map(is_concrete, arrays)):
        return
    key = tuple(map(id, arrays))
    known = _sound.get(key)
    if known is not None and known[1] == (layout.name, shape):
        same = (ref() is array for ref, array in zip(known[0], arrays, strict=True))
        if all(same):
            return
    layout.check_values(where, tuple(arrays), shape)
    remember_sound(layout, arrays, shape)


def remember_sound(layout: Layout, arrays: Sequence[Array], shape: Shape) -> None:
    """Note that concrete arrays hold a sound structure, so that nobody looks again."""
    key = tuple(map(id, arrays))
    forget = _forget(key)
    with _sound_lock:
        _sound[key] = tuple(weakref.ref(a, forget) for a in arrays), (layout.name, shape)


def _forget(key: tuple[int, ...]) -> Callable[[Any], None]:
    def forget(_: Any) -> None:
        _sound.pop(key, None)

    return forget


def check_shape(where: str, shape: Any) -> tuple[int, int]:
    """Return a matrix shape as two ints.

    Raises
    ------
    ShapeError
        If it is anything else.
    """
    ok = isinstance(shape, (tuple, list)) and len(shape) == 2
    if ok and all(type(n) is int and 0 <= n < 2**31 for n in shape):
        return shape[0], shape[1]
    whole = ok and all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape)
    expect(
        whole,
        ShapeError,
        where,
        '`shape` is not the shape of a matrix.',
        expected='two non-negative ints (rows, columns)',
        got=lambda: repr(shape),
    )
    expect(
        max(shape) < 2**31 or jax.config.read('jax_enable_x64'),
        ShapeError,
        where,
        'an axis of the matrix needs 64-bit indices.',
        expected='axes shorter than 2**31, or 64-bit mode',
        got=lambda: repr(shape),
        remedy="jax.config.update('jax_enable_x64', True)",
    )
    return int(shape[0]), int(shape[1])
