# SPDX-License-Identifier: Apache-2.0
"""What a user passes as an array, as a NumPy array whose every value JAX can hold.

JAX refuses masked arrays, other byte orders and long doubles with texts of its own, and wraps
integers that do not fit its 32 bits. Here these are converted where nothing is lost, and refused
by name where something would be.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import canonical_dtype
from brainevent._error import DtypeError, expect

__all__ = ['host_array', 'is_array_like', 'on_host', 'own_array', 'signed_ids']

_LONG: dict[Any, Any] = {
    np.dtype(np.longdouble): np.float64,
    np.dtype(np.clongdouble): np.complex128,
}


def host_array(where: str, name: str, x: Any) -> np.ndarray[Any, Any]:
    """Return an array of numbers or truth values in a dtype and byte order that JAX knows.

    Parameters
    ----------
    where, name : str
        Call and argument in messages.
    x : array_like
        Anything but a JAX array.

    Returns
    -------
    ndarray
        In the native byte order. Long doubles are float64 or complex128.

    Raises
    ------
    DtypeError
        If ``x`` does not hold numbers, has a mask, or holds values that would be lost.
    """
    array = on_host(where, name, x)
    if array.dtype.kind in 'iu':
        fitting = canonical_dtype(array.dtype)
        low, high = _ends(array) if fitting != array.dtype else (0, 0)
        expect(
            np.iinfo(fitting).min <= low and high <= np.iinfo(fitting).max,
            DtypeError,
            where,
            f'`{name}` holds integers that need 64 bits.',
            expected=lambda: f'values of {fitting}, or 64-bit mode',
            got=lambda: f'{array.dtype} with values from {low} to {high}',
            remedy="jax.config.update('jax_enable_x64', True), or convert it to a float dtype",
        )
    return array


def is_array_like(x: Any) -> bool:
    """Return whether an operand is an array, a number, or a sequence of them."""
    if isinstance(x, (np.ndarray, np.generic, jax.Array, int, float, complex, list, tuple)):
        return True
    return any(hasattr(x, name) for name in ('__jax_array__', '__array__', '__array_interface__'))


def on_host(where: str, name: str, x: Any) -> np.ndarray[Any, Any]:
    """Do the same as `host_array`, for integers of any size."""
    masked, table = isinstance(x, np.ma.MaskedArray), hasattr(x, '__dataframe__')
    reason: Exception | None = None
    try:
        array = np.asarray(None if masked or table else x)
    except (TypeError, ValueError, OverflowError) as cause:
        array, reason = np.asarray(None), cause
    expect(
        array.dtype == bool or jnp.issubdtype(array.dtype, jnp.number),
        DtypeError,
        where,
        f'`{name}` is a masked array.' if masked else f'`{name}` is not an array of numbers.',
        expected='an array, a number or a Quantity' + ' without a mask' * masked,
        got=lambda: f'{type(x).__name__}' + (f' ({reason})' if reason else ''),
        remedy=(masked and 'use `x.filled(value)`, or `x.compressed()`')
        or (
            table
            and 'use `x.to_numpy()` if its columns are those of a matrix; columns of an edge '
            'table are arguments of `COO`'
        )
        or (
            hasattr(x, 'toarray')
            and 'take a sparse matrix over with `fromscipy`, or make it dense with `x.toarray()`'
        )
        or None,
    )
    if array.dtype in _LONG:
        array = _shortened(where, name, array)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder('='))


def own_array(array: np.ndarray[Any, Any], dtype: Any = None) -> jax.Array:
    """Copy a caller's array, who may write to it later, into a concrete one, even under a trace.

    The transfer is explicit, so that `jax.transfer_guard` lets it pass.
    """
    with jax.ensure_compile_time_eval():
        own: jax.Array = jax.device_put(np.array(array, dtype))
    return own


def _shortened(where: str, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert long doubles, of which JAX has none, if no value changes."""
    with np.errstate(over='ignore'):
        short: np.ndarray[Any, Any] = array.astype(_LONG[array.dtype])
    expect(
        np.array_equal(short.astype(array.dtype), array, equal_nan=True),
        DtypeError,
        where,
        f'`{name}` holds long doubles that lose digits.',
        expected=f'values of {short.dtype}',
        got=array.dtype,
        remedy=f'round them with `x.astype({short.dtype})`',
    )
    return short


def _ends(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    return (int(array.min()), int(array.max())) if array.size else (0, 0)


def signed_ids(ids: Any, extent: int | None = None) -> Any:
    """Return ids as signed integers that can hold an extent; nothing wraps.

    Parameters
    ----------
    ids : Array or ndarray of any integer dtype
        Traced or concrete.
    extent : int, optional
        Of the axis; any that an index can have if not given. An unsigned id beyond it stays
        beyond it.

    Returns
    -------
    Array or ndarray
        Of int32, or of int64 where 64 bits are given, or needed for the extent.
    """
    traced = isinstance(ids, jax.Array)
    long = not traced or jax.config.read('jax_enable_x64')
    most = int(np.iinfo(ids.dtype).max)
    wide = long and (most >= 2**32 or (most if extent is None else extent) >= 2**31)
    dtype, end = (np.int64, 2**63 - 1) if wide else (np.int32, 2**31 - 1)
    ids = (jnp if traced else np).minimum(ids, np.asarray(min(most, end), ids.dtype))
    return ids.astype(dtype)
