# SPDX-License-Identifier: Apache-2.0
"""Compacted events: the ids of active elements, listed once and used by many products."""

from typing import Any, Self

import jax
import jax.numpy as jnp

from brainevent._edge.event import Event, unwrap
from brainevent._edge.listed import list_active
from brainevent._edge.operands import as_array, as_index, split_unit
from brainevent._error import DtypeError, OptionError, ShapeError, expect
from brainevent._event.arrays import as_spikes
from brainevent._event.bitpack import WORD, bitpack, bitunpack
from brainevent._format.dense import as_matrix, is_beside_events
from brainevent._keywords import also_named
from brainevent._pytree import pytree
from brainevent._typing import Array

__all__ = ['CompactBinary']


@pytree
class CompactBinary:
    """Binary events with a list of those that are active, for products that need not search.

    A vector that meets several matrices is searched once; every product then goes through the
    listed elements only. `from_array` makes the list.

    Parameters
    ----------
    packed : Array of uint32, shape (ceil(n_orig / 32),) or (n_orig, ceil(batch_size / 32))
        The events in bits, see `bitpack`; may be empty, of shape (0,).
    active_ids : Array of int, shape (n,)
        In front the ids of active elements, or of rows with an active element; the rest is
        not read. Each id stands once, and none may be missing.
    n_active : Array of int, shape (1,)
        How many ids there are.
    value : array_like or Quantity, shape (n_orig,) or (n_orig, batch_size), or None
        The events themselves. None: they are what ``packed`` says, or the list where that is
        empty, and have no derivative.
    n_orig : int
        Number of elements, or of rows.
    batch_size : int, optional
        Number of columns; None for a vector.
    bit_width : int
        Bits of a word: 32.

    Raises
    ------
    OptionError
        If ``bit_width`` is not 32 (also a ``ValueError``).
    ShapeError
        If parts do not fit each other (also a ``ValueError``).
    DtypeError
        If ids are no integers, or ``packed`` no words (also a ``TypeError``).

    See Also
    --------
    BinaryArray : events that every product searches anew.

    Notes
    -----
    An element is active if it is True or greater than zero, as everywhere. ``@`` takes any matrix,
    or an array of two axes, on either side. The derivative with respect to ``value`` is that of the
    ordinary product (straight through).

    The list saves the search in products that go through lines of the input: ``events @ A`` for
    matrices stored by row, ``A @ events`` for those stored by column, both with a mirror. For the
    others, and where rows of a batch are multiplied from the left, ``value`` is used instead.

    Parts that contradict each other give results that do, too, but nothing worse: ids outside the
    matrix count nothing.

    Examples
    --------
    >>> import brainevent as be
    >>> import jax.numpy as jnp
    >>> spikes = be.CompactBinary.from_array(jnp.array([0., 2., 0., 1.]))
    >>> spikes.active_ids, spikes.n_active
    (Array([1, 3, 0, 0], dtype=int32), Array([2], dtype=int32))
    >>> A = be.CSR.fromdense(jnp.arange(8.).reshape(4, 2))
    >>> spikes @ A
    Array([ 8., 10.], dtype=float32)
    """

    __event__ = Event.BINARY
    __array_priority__ = 1000
    __array_ufunc__ = None  # numpy leaves operators to us

    _packed: Array
    _active_ids: Array
    _n_active: Array
    _value: Any
    _n_orig: int
    _batch_size: int | None
    _listed: bool  # whether the ids mean anything

    def __init__(
        self,
        packed: Any,
        active_ids: Any,
        n_active: Any,
        value: Any,
        n_orig: int,
        batch_size: int | None = None,
        bit_width: int = WORD,
    ) -> None:
        where = 'CompactBinary'
        _check_width(where, bit_width)
        packed = as_array(where, 'packed', packed)
        expect(
            packed.dtype == jnp.uint32,
            DtypeError,
            where,
            '`packed` does not hold words.',
            expected='uint32, as `bitpack` gives',
            got=lambda: packed.dtype,
        )
        value = value if value is None else as_spikes(value, where)
        ids = as_index(where, 'active_ids', active_ids)
        number = as_index(where, 'n_active', n_active)
        self._set(packed, ids, number, value, (n_orig, batch_size, True))
        self._check(where)

    def _set(self, packed: Any, ids: Any, number: Any, value: Any, static: Any) -> Self:
        self._packed, self._active_ids, self._n_active, self._value = packed, ids, number, value
        self._n_orig, self._batch_size, self._listed = static
        return self

    def _check(self, where: str) -> None:
        """Check what the parts of one set of events have to be like."""
        shape, words = self.shape, -(-self.shape[-1] // WORD)
        whole = (
            ('value', self._value, (shape,), shape),
            ('packed', self._packed, ((0,), (*shape[:-1], words)), (*shape[:-1], words)),
            ('n_active', self._n_active, ((), (1,)), (1,)),
            ('active_ids', self._active_ids, (self._active_ids.shape[:1],), '(n,)'),
        )
        for name, part, allowed, wanted in whole:
            expect(
                part is None or part.shape in allowed,
                ShapeError,
                where,
                f'`{name}` does not fit.',
                expected=f'shape {wanted}',
                got=lambda part=part: f'shape {part.shape}',
            )
        expect(
            self.ndim == 1 or self._value is not None or self._packed.ndim == 2,
            ShapeError,
            where,
            'a batch is not told by the ids of its rows.',
            expected='`value` or `packed`',
            got='neither',
        )

    # ---- made from ----------------------------------------------------------------------------

    @classmethod
    def from_array(cls, x: Any, bit_width: int = WORD) -> Self:
        """List the active elements of a vector, or the rows of a matrix that have any.

        Parameters
        ----------
        x : array_like, Quantity or event array, of one axis or two
            Active is what is True or greater than zero.
        bit_width : int
            32.

        Returns
        -------
        CompactBinary
            With ids in ascending order, then zeros. A matrix is packed along axis 1.

        Raises
        ------
        OptionError
            If ``bit_width`` is not 32.
        ShapeError
            If ``x`` does not have one axis or two.
        DtypeError
            If ``x`` holds no numbers, or complex ones.

        Examples
        --------
        >>> import brainevent as be
        >>> import jax.numpy as jnp
        >>> be.CompactBinary.from_array(jnp.array([[0, 0], [0, 1]])).active_ids
        Array([1, 0], dtype=int32)
        """
        return cls._made('from_array', x, bit_width)

    @classmethod
    def from_array_light(cls, x: Any, bit_width: int = WORD) -> Self:
        """Do the same, but leave the list of a vector out: ids and number are zero.

        Products search the events then, as those of `BinaryArray` do. Parameters, results and
        errors are those of `from_array`.

        Examples
        --------
        >>> import brainevent as be
        >>> import jax.numpy as jnp
        >>> light = be.CompactBinary.from_array_light(jnp.array([False, True]))
        >>> light.packed, light.n_active
        (Array([2], dtype=uint32), Array([0], dtype=int32))
        >>> light @ jnp.array([[1.], [2.]])
        Array([2.], dtype=float32)
        """
        return cls._made('from_array_light', x, bit_width, light=True)

    @classmethod
    def compact_only_vector(cls, x: Any) -> Self:
        """List the active elements of a vector without packing it: ``packed`` is empty.

        Parameters
        ----------
        x : array_like, Quantity or event array, shape (n,)

        Returns
        -------
        CompactBinary

        Raises
        ------
        ShapeError
            If ``x`` does not have one axis.
        DtypeError
            If ``x`` holds no numbers, or complex ones.

        Examples
        --------
        >>> import brainevent as be
        >>> be.CompactBinary.compact_only_vector([0, 1, 1]).active_ids
        Array([1, 2, 0], dtype=int32)
        """
        return cls._made('compact_only_vector', x, WORD, ranks=(1,), bits=False)

    @classmethod
    def compacy_only_vector(cls, x: Any) -> Self:
        """Do what `compact_only_vector` does; an older spelling."""
        return cls.compact_only_vector(x)

    @classmethod
    def from_packed(
        cls,
        packed: Any,
        active_ids: Any,
        n_active: Any,
        value: Any,
        n_orig: int,
        batch_size: int | None = None,
        bit_width: int = WORD,
    ) -> Self:
        """Put events together from parts that are there already; the same as the class itself.

        Examples
        --------
        >>> import brainevent as be
        >>> import jax.numpy as jnp
        >>> bits = be.bitpack(jnp.array([True, False, True]), 0)
        >>> be.CompactBinary.from_packed(bits, [0, 2], [2], None, 3).to_dense()
        Array([ True, False,  True], dtype=bool)
        """
        return cls(packed, active_ids, n_active, value, n_orig, batch_size, bit_width)

    @classmethod
    def _made(
        cls,
        name: str,
        x: Any,
        bit_width: int,
        *,
        ranks: tuple[int, ...] = (1, 2),
        bits: bool = True,
        light: bool = False,
    ) -> Self:
        where = f'CompactBinary.{name}'
        _check_width(where, bit_width)
        value = as_spikes(unwrap(x)[0], where)
        expect(
            value.ndim in ranks,
            ShapeError,
            where,
            'the events have the wrong rank.',
            expected=' or '.join(f'{rank} axis' if rank == 1 else f'{rank} axes' for rank in ranks),
            got=lambda: f'shape {value.shape}',
        )
        number = split_unit(value)[0]
        expect(
            number.dtype.kind != 'c',
            DtypeError,
            where,
            'complex numbers are no events.',
            expected='truth values, integers or floats',
            got=number.dtype,
        )
        active = Event.BINARY.active(number)
        lines = active if active.ndim == 1 else active.any(1)
        listed = not light or active.ndim == 2
        ids, count = list_active(lines if listed else jnp.zeros_like(lines))
        packed = bitpack(active, -1) if bits else jnp.zeros(0, jnp.uint32)
        static = (value.shape[0], value.shape[1] if value.ndim == 2 else None, listed)
        return object.__new__(cls)._set(packed, ids, count, value, static)

    # ---- parts --------------------------------------------------------------------------------

    @property
    def packed(self) -> Array:
        """Array of uint32: the events in bits, along the last axis."""
        return self._packed

    @property
    def active_ids(self) -> Array:
        """Array of int, shape (n,): active elements, or rows that have one, in front."""
        return self._active_ids

    @property
    def n_active(self) -> Array:
        """Array of int, shape (1,): how many ids there are."""
        return self._n_active

    @property
    def value(self) -> Any:
        """Array or Quantity: the events as they were given, or else as truth values."""
        if self._value is not None:
            return self._value
        if self._packed.size or 0 in self.shape:
            return bitunpack(self._packed, self.shape[-1])
        behind = jnp.arange(self._active_ids.size) >= self._n_active.reshape(())
        ids = jnp.where(behind | (self._active_ids < 0), self._n_orig, self._active_ids)
        return jnp.zeros(self._n_orig, bool).at[ids].set(True, mode='drop')

    @property
    def n_orig(self) -> int:
        """Number of elements, or of rows."""
        return self._n_orig

    @property
    def batch_size(self) -> int | None:
        """Number of columns; None for a vector."""
        return self._batch_size

    @property
    def bit_width(self) -> int:
        """Bits of a word of ``packed``."""
        return WORD

    @property
    def shape(self) -> tuple[int, ...]:
        """Tuple of int: shape of the events."""
        return (self._n_orig,) if self._batch_size is None else (self._n_orig, self._batch_size)

    @property
    def ndim(self) -> int:
        """Number of axes: 1 or 2."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._n_orig * (1 if self._batch_size is None else self._batch_size)

    @property
    def dtype(self) -> Any:
        """Dtype of the events."""
        return jnp.dtype(bool) if self._value is None else self._value.dtype

    def to_dense(self) -> Any:
        """Return the events as an array: ``value``."""
        return self.value

    def __repr__(self) -> str:
        return f'CompactBinary(shape={self.shape}, dtype={self.dtype})'

    # ---- products -----------------------------------------------------------------------------

    @property
    def __active__(self) -> tuple[Array, ...]:
        self._check('CompactBinary')  # leaves may have been replaced after construction
        return (self._active_ids, self._n_active.reshape(1)) if self._listed else ()

    def __matmul__(self, other: Any) -> Any:
        return as_matrix(other).__rmatmul__(self) if is_beside_events(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return as_matrix(other).__matmul__(self) if is_beside_events(other) else NotImplemented

    # ---- a pytree -----------------------------------------------------------------------------

    def tree_flatten_with_keys(self) -> tuple[Any, Any]:
        """Show the parts as leaves, named, for JAX."""
        leaves, static = self.tree_flatten()
        names = ('packed', 'active_ids', 'n_active', 'value')
        return tuple(zip(map(jax.tree_util.GetAttrKey, names), leaves, strict=True)), static

    def tree_flatten(self) -> tuple[Any, Any]:
        """Show the parts as leaves, for JAX."""
        leaves = (self._packed, self._active_ids, self._n_active, self._value)
        return leaves, (self._n_orig, self._batch_size, self._listed)

    @classmethod
    @also_named(static='aux_data', leaves='flat_contents')
    def tree_unflatten(cls, aux_data: Any, flat_contents: Any) -> Self:
        """Put events together from whatever stands for their parts."""
        packed, ids, number, value = flat_contents
        return object.__new__(cls)._set(packed, ids, number, value, aux_data)


def _check_width(where: str, bit_width: int) -> None:
    expect(
        bit_width == WORD,
        OptionError,
        where,
        'words of this width are not offered.',
        expected=f'bit_width={WORD}',
        got=lambda: f'bit_width={bit_width!r}',
    )
