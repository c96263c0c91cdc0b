# SPDX-License-Identifier: Apache-2.0
"""Truth values as bits: 32 of them in a word."""

from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.operands import as_array, split_unit
from brainevent._error import OptionError, expect
from brainevent._event.plain import plain
from brainevent._typing import Array

__all__ = ['WORD', 'bitpack', 'bitunpack']

WORD = 32


def bitpack(arr: Any, axis: int) -> Array:
    """Pack truth values along an axis into words of 32 bits.

    Parameters
    ----------
    arr : array_like or Quantity, of at least one axis
        What is not zero is true. Compare it first if another rule is wanted: events of a
        `BinaryArray` are ``arr > 0``.
    axis : int
        Where to pack; negative numbers count from the end.

    Returns
    -------
    Array of uint32
        With ``ceil(n / 32)`` words for the ``n`` elements along ``axis``. Bit ``i`` of word ``w``
        is element ``32 w + i``; bits behind the last element are zero.

    Raises
    ------
    DtypeError
        If ``arr`` holds no numbers.
    OptionError
        If there is no such axis (also a ``ValueError``).

    See Also
    --------
    BitPackedBinary : an event array that can be had in bits.

    Examples
    --------
    >>> import brainevent as be
    >>> import jax.numpy as jnp
    >>> be.bitpack(jnp.array([True, False, True]), 0)
    Array([5], dtype=uint32)
    >>> be.bitpack(jnp.ones((2, 40)), axis=1)
    Array([[4294967295,        255],
           [4294967295,        255]], dtype=uint32)
    """
    array = as_array('bitpack', 'arr', split_unit(plain(arr))[0])
    expect(
        isinstance(axis, int) and -array.ndim <= axis < array.ndim,
        OptionError,
        'bitpack',
        'there is no such axis.',
        expected=lambda: f'an int from {-array.ndim} to {array.ndim - 1}',
        got=lambda: f'axis={axis!r}, and an array of shape {array.shape}',
    )
    bits = jnp.moveaxis(array.astype(bool), axis, -1)
    *lead, n = bits.shape
    padded = jnp.pad(bits, [*[(0, 0)] * len(lead), (0, -n % WORD)])
    words = padded.reshape(*lead, -(-n // WORD), WORD).astype(jnp.uint32)
    packed = jnp.sum(words << _places(words.shape), axis=-1, dtype=jnp.uint32)
    return jnp.moveaxis(packed, -1, axis)


def bitunpack(packed: Array, n: int, axis: int = -1) -> Array:
    """Return the first ``n`` truth values that words along an axis hold.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> bitunpack(jnp.array([5], jnp.uint32), 4)
    Array([ True, False,  True, False], dtype=bool)
    """
    words = jnp.moveaxis(packed, axis, -1)
    shape = (*words.shape, WORD)
    bits = (jnp.broadcast_to(words[..., None], shape) >> _places(shape)) & jnp.uint32(1)
    flat = bits.reshape(*words.shape[:-1], words.shape[-1] * WORD)
    return jnp.moveaxis(flat[..., :n].astype(bool), -1, axis)


def _places(shape: tuple[int, ...]) -> Array:
    """Return the place of every bit in its word, along the last axis."""
    return jax.lax.broadcasted_iota(jnp.uint32, shape, len(shape) - 1)
