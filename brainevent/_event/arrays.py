# SPDX-License-Identifier: Apache-2.0
"""Event arrays: a vector or matrix of spikes whose product with ``@`` counts events.

The kind of event is a class attribute, ``__event__``; matrices read it and ``value`` and need to
know no class of this file.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, ClassVar, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._edge.event import Event
from brainevent._edge.intake import host_array, own_array
from brainevent._edge.operands import check_spike_unit, split_unit
from brainevent._error import MathError, UnsupportedOperationError, expect
from brainevent._event.bitpack import bitpack
from brainevent._event.plain import PlainArray, plain
from brainevent._format.dense import as_matrix, is_beside_events
from brainevent._keywords import also_named
from brainevent._pytree import pytree
from brainevent._typing import Array

__all__ = ['BinaryArray', 'BitPackedBinary', 'EventArray', 'EventRepresentation', 'MaskedFloat']


def _as_value(value: Any, where: str) -> Any:
    """Return ``value`` as a JAX array, or a quantity of one, that no later write can change."""
    value = plain(value)
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, u.Quantity):
        mantissa = value.mantissa
        if isinstance(mantissa, jax.Array):
            return value
        return u.Quantity(_as_value(mantissa, where), unit=value.unit)
    if (convert := getattr(value, '__jax_array__', None)) is not None:
        return _as_value(convert(), where)
    return own_array(host_array(where, 'value', value))


def as_spikes(value: Any, where: str) -> Any:
    """Return what binary events are made of: an array without unit.

    Raises
    ------
    DtypeError
        If ``value`` does not hold numbers.
    UnitError
        If it has a unit: whether 5 mV is a spike depends on a threshold.
    """
    number, unit = split_unit(_as_value(value, where))
    check_spike_unit(where, unit)
    return number


def _count(event: Event, values: Any) -> Any:
    """Count each active entry once, with a derivative of one (straight through)."""
    if isinstance(values, u.Quantity):
        return u.Quantity(_count(event, values.mantissa), unit=values.unit)
    counts = event.active(values).astype(values.dtype)
    if jnp.issubdtype(values.dtype, jnp.inexact):
        finite = jnp.where(jnp.isfinite(values), values, 0)
        counts += finite - jax.lax.stop_gradient(finite)  # zero, with slope one
    return counts


class EventRepresentation(PlainArray):
    """An array whose entries are events for ``@`` and plain numbers for everything else.

    This is the abstract base; a subclass sets the kind of event, ``__event__``.

    Parameters
    ----------
    value : array_like, Quantity or EventRepresentation
        The spikes, of any shape and dtype. NumPy input is copied, so that writing to it later
        does not change the events; another event array is unwrapped.

    Raises
    ------
    DtypeError
        If ``value`` is no array, number, list of numbers or Quantity.
    UnsupportedOperationError
        If this base class itself is called.

    See Also
    --------
    BinaryArray : every active entry counts one.
    MaskedFloat : zeros are skipped, other entries count as themselves.

    Notes
    -----
    Only ``@`` counts events. It does so with matrices of this package and with plain
    two-dimensional arrays and quantities, on either side. Arithmetic, comparisons, reductions and
    functions such as ``jnp.where`` and ``np.asarray`` see ``value`` and return plain arrays, inside
    ``jax.jit`` too. Indexing and iteration keep the kind: ``events[:n] @ matrix`` counts events.

    ``jnp.matmul`` and its relatives, and sparse matrices of SciPy, JAX and brainunit with the event
    array on their right, give the result of ``@`` but do the work of an ordinary product.
    ``np.dot`` forms the ordinary product of ``value``. ``jax.lax`` functions and ``array[events]``
    raise: give them ``.value``.

    An event array is a pytree with one leaf. Equality is elementwise, hashing is by identity.
    """

    __event__: ClassVar[Event]

    def __init__(self, value: Any) -> None:
        expect(
            hasattr(self, '__event__'),
            UnsupportedOperationError,
            type(self).__name__,
            'the kind of event is open.',
            expected='a class with `__event__`',
            got='an abstract class',
            remedy='use BinaryArray or MaskedFloat',
        )
        self.value = value

    @property
    def value(self) -> Any:
        """Array or Quantity: the entries as they were given."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        own = as_spikes if self.__event__ is Event.BINARY else _as_value
        self._value = own(value, type(self).__name__)

    @property
    def shape(self) -> tuple[int, ...]:
        """Tuple of int: shape of ``value``."""
        return np.shape(self._value)

    @property
    def ndim(self) -> int:
        """Rank of ``value``."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)

    @property
    def dtype(self) -> Any:
        """Dtype of ``value``."""
        return self._value.dtype

    @property
    def counts(self) -> Any:
        """Array or Quantity: what the entries count for in a product; straight-through gradient."""
        return self._value

    def with_value(self, value: Any) -> Self:
        """Return events of the same kind with other entries.

        Parameters
        ----------
        value : array_like, Quantity or EventRepresentation
            The new entries, of any shape.

        Returns
        -------
        EventRepresentation
            Of the class of ``self``.

        Examples
        --------
        >>> import brainevent as be
        >>> be.MaskedFloat([0., 2.]).with_value([1., 0., 3.]).shape
        (3,)
        """
        return type(self)(value)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Self]:
        return map(self.with_value, iter(self._value))

    def __getitem__(self, index: Any) -> Self:
        index = tuple(map(plain, index)) if isinstance(index, tuple) else plain(index)
        return self.with_value(self._value[index])

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self._value!r})'

    def __matmul__(self, other: Any) -> Any:
        self._check_rank('events @ matrix')
        return as_matrix(other).__rmatmul__(self) if is_beside_events(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        self._check_rank('matrix @ events')
        return as_matrix(other).__matmul__(self) if is_beside_events(other) else NotImplemented

    def dot(self, other: Any) -> Any:
        """Return ``self @ other``, which counts events.

        Parameters
        ----------
        other : matrix, or Array or Quantity of shape (shape[-1], n)

        Returns
        -------
        Array or Quantity
        """
        return self @ other

    def _check_rank(self, where: str) -> None:
        expect(
            self.ndim in (1, 2),
            MathError,
            where,
            f'{type(self).__name__} has the wrong rank for a product.',
            expected='a vector or a matrix of events',
            got=lambda: f'shape {self.shape}',
            remedy='index or reshape the events, or use `jax.vmap` over the other axes',
        )

    def tree_flatten_with_keys(self) -> tuple[tuple[tuple[Any, Any]], None]:
        """Return the one leaf with its name, for JAX."""
        return ((jax.tree_util.GetAttrKey('value'), self._value),), None

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        """Return the one leaf, for JAX."""
        return (self._value,), None

    @classmethod
    @also_named(aux='aux_data', leaves='flat_contents')
    def tree_unflatten(cls, aux_data: None, flat_contents: tuple[Any]) -> Self:
        """Rebuild from any leaf: JAX also passes tracers, shapes and placeholders."""
        events = object.__new__(cls)
        (events._value,) = flat_contents
        return events


@pytree
class BinaryArray(EventRepresentation):
    """Binary events: ``True`` or a value above zero is one event and counts exactly one.

    NaN, zero and negative values are no events. ``EventArray`` is the same class.

    Parameters
    ----------
    value : array_like, Quantity or EventRepresentation, of any shape and real dtype
        The spikes. NumPy input is copied.

    Raises
    ------
    DtypeError
        If ``value`` is no array, number, list of numbers or Quantity.
    MathError
        At ``@``, if there are no axes or more than two.

    See Also
    --------
    MaskedFloat : events that keep their value.
    EventRepresentation : what all event arrays have in common.

    Notes
    -----
    The derivative with respect to the events is that of the ordinary product (straight through).

    Examples
    --------
    >>> import brainevent as be
    >>> import jax.numpy as jnp
    >>> spikes = be.BinaryArray([True, False, True])
    >>> spikes @ jnp.array([[1., 2.], [3., 4.], [5., 6.]])
    Array([6., 8.], dtype=float32)

    The size of a spike does not matter for ``@``, but does for everything else:

    >>> spikes = be.BinaryArray(jnp.array([2., 0., -1.]))
    >>> spikes @ jnp.ones((3, 1))
    Array([1.], dtype=float32)
    >>> spikes + 1.
    Array([3., 1., 0.], dtype=float32)

    A part of the events is events again:

    >>> spikes[:2] @ jnp.ones((2, 1))
    Array([1.], dtype=float32)
    """

    __event__ = Event.BINARY

    @property
    def counts(self) -> Any:
        """Array or Quantity: 1 where there is an event, else 0; straight-through gradient."""
        return _count(self.__event__, self._value)

    def bitpack(self) -> 'BitPackedBinary':
        """Return the same events as an array that can be had in bits.

        Returns
        -------
        BitPackedBinary

        Examples
        --------
        >>> import brainevent as be
        >>> be.BinaryArray([True, False, True]).bitpack().packed
        (Array([5], dtype=uint32),)
        """
        return BitPackedBinary(self._value)


@pytree
class BitPackedBinary(EventRepresentation):
    """Binary events that can be had in bits, 32 elements in a word.

    Products, derivatives and arithmetic are those of `BinaryArray`. Bits are for storing and
    sending events: they take a thirty-second of the memory of float32.

    Parameters
    ----------
    arr : array_like, Quantity or EventRepresentation, of any shape and real dtype
        The events. NumPy input is copied.

    Raises
    ------
    DtypeError
        If ``arr`` is no array, number, list of numbers or Quantity.
    MathError
        At ``@``, if there are no axes or more than two.

    See Also
    --------
    bitpack : pack truth values of any kind.
    CompactBinary : events with a list of those that are active.

    Notes
    -----
    The one leaf of the pytree is ``value``. Bits are made when they are asked for, and a compiled
    program that does not use them does not make them.

    Examples
    --------
    >>> import brainevent as be
    >>> import jax.numpy as jnp
    >>> spikes = be.BitPackedBinary(jnp.array([0., 2., -1., 1.]))
    >>> spikes.packed
    (Array([10], dtype=uint32),)
    >>> spikes @ jnp.array([[1.], [2.], [4.], [8.]])
    Array([10.], dtype=float32)
    """

    __event__ = Event.BINARY

    def __init__(self, arr: Any) -> None:
        super().__init__(arr)

    counts = BinaryArray.counts

    @also_named(other='oc')
    def dot(self, oc: Any) -> Any:
        """Return ``self @ oc``, which counts events; see `BinaryArray.dot`."""
        return self @ oc

    @property
    def packed(self) -> tuple[Array, ...]:
        """Tuple of Array of uint32: the events in bits, packed along each axis in turn."""
        active = self.__event__.active(split_unit(self._value)[0])
        return tuple(bitpack(active, axis) for axis in range(self.ndim))

    @property
    def original_shape(self) -> tuple[int, ...]:
        """Tuple of int: shape of the events before packing."""
        return self.shape

    def transpose(self, *axes: Any) -> 'BitPackedBinary':
        """Return the events with their axes reversed, or in the order of ``axes``."""
        return self.with_value(self._value.transpose(*axes))

    @property
    def T(self) -> 'BitPackedBinary':
        """BitPackedBinary: the events with their axes reversed."""
        return self.transpose()


@pytree
class MaskedFloat(EventRepresentation):
    """Graded events: zeros are skipped, other values count as themselves.

    The result is the ordinary product; only the work differs.

    Parameters
    ----------
    value : array_like, Quantity or EventRepresentation, of any shape and dtype
        The graded events. NumPy input is copied.

    Raises
    ------
    DtypeError
        If ``value`` is no array, number, list of numbers or Quantity.
    MathError
        At ``@``, if there are no axes or more than two.

    See Also
    --------
    BinaryArray : events that count one, whatever their value.
    EventRepresentation : what all event arrays have in common.

    Examples
    --------
    >>> import brainevent as be
    >>> import jax.numpy as jnp
    >>> be.MaskedFloat([0.5, 0., 2.]) @ jnp.array([[1., 2.], [3., 4.], [5., 6.]])
    Array([10.5, 13. ], dtype=float32)
    """

    __event__ = Event.MASKED


EventArray = BinaryArray
