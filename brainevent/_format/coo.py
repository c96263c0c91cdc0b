# SPDX-License-Identifier: Apache-2.0
"""Coordinates: a row, a column and a weight for every entry, in any order."""

from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp

from brainevent._docstring import BATCH, EVENT_BATCH, EVENTS, PRODUCT_BATCH, like
from brainevent._edge import Event
from brainevent._error import OptionError, expect
from brainevent._format.base import StoredMatrix
from brainevent._format.bridge import reordered
from brainevent._format.convert import sorted_entries
from brainevent._format.coordinates import COO_MIRROR_PRODUCTS, COO_PRODUCTS
from brainevent._format.functions import multiply
from brainevent._format.given import unpacked
from brainevent._pytree import pytree

__all__ = [
    'COO',
    'binary_coomm',
    'binary_coomm_p',
    'binary_coomv',
    'binary_coomv_p',
    'coomm',
    'coomm_p',
    'coomv',
    'coomv_p',
]

coomv_p, coomm_p = COO_PRODUCTS.primitives(Event.REAL)
binary_coomv_p, binary_coomm_p = COO_PRODUCTS.primitives(Event.BINARY)


class COOInfo(NamedTuple):
    """What is known of a list of coordinates."""

    shape: tuple[int, int]
    rows_sorted: bool
    cols_sorted: bool


@pytree
class COO(StoredMatrix):
    """Matrix as a list of coordinates.

    Parameters
    ----------
    data : array_like or Quantity, or tuple
        One weight for all entries, or one for each, in any unit; or ``(data, row, col)``.
    row, col : array_like of int, shape (nse,)
        Row and column of every entry, in any order; repeats add up.
    ptr : array_like, optional
        Accepted for old callers and not needed.
    shape : tuple of int
        Rows and columns.
    rows_sorted, cols_sorted : bool
        A note that entries are in the order of their rows, or of their columns; at most one of
        them. Results do not depend on it.
    backend : str, optional
        Demand a backend for every product of this matrix.
    buffers : dict, optional
        Named values carried along.
    check_structure : bool
        False skips the checks of values; shapes are always checked.

    Raises
    ------
    ShapeError, IndexRangeError, DtypeError
        If the arrays are no sound structure of that shape. Values of traced arrays are never
        looked at; where they are wrong they contribute nothing.
    OptionError
        If entries are said to be sorted both ways.

    Notes
    -----
    Products look at every entry. `with_mirror` adds an index by row and by column, and products
    with events then visit active entries only; so do `tocsr` and `tocsc` for one direction each.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.COO(([1., 2., 3.], [1, 0, 0], [1, 0, 2]), shape=(2, 3))
    >>> A @ jnp.ones(3)
    Array([5., 1.], dtype=float32)
    >>> brainevent.BinaryArray(jnp.array([True, False])) @ A
    Array([2., 0., 3.], dtype=float32)
    """

    structure: ClassVar = ('row', 'col')
    static: ClassVar = (*StoredMatrix.static, 'rows_sorted', 'cols_sorted')
    families: ClassVar = (COO_PRODUCTS, COO_MIRROR_PRODUCTS)

    row: jax.Array
    col: jax.Array
    rows_sorted: bool
    cols_sorted: bool

    def __init__(
        self,
        data: Any,
        row: Any = None,
        col: Any = None,
        ptr: Any = None,
        *,
        shape: Any = None,
        rows_sorted: bool = False,
        cols_sorted: bool = False,
        backend: str | None = None,
        buffers: Any = None,
        check_structure: bool = True,
    ) -> None:
        del ptr
        if row is None and col is None:
            # old callers append `ptr` to the tuple
            given = data[:3] if isinstance(data, (tuple, list)) else data
            data, row, col = unpacked(type(self).__name__, ('data', 'row', 'col'), given)
        expect(
            not (rows_sorted and cols_sorted),
            OptionError,
            type(self).__name__,
            'entries cannot be sorted by row and by column.',
            expected='rows_sorted or cols_sorted, or neither',
            got='both',
        )
        self._set(rows_sorted=bool(rows_sorted), cols_sorted=bool(cols_sorted))
        self._fill(
            data, (row, col), shape=shape, backend=backend, buffers=buffers, check=check_structure
        )

    @property
    def info(self) -> COOInfo:
        """Shape, and how entries are said to be sorted."""
        return COOInfo(self.shape, self.rows_sorted, self.cols_sorted)

    @property
    def ptr(self) -> jax.Array | None:
        """Where each row, or column, begins, if entries are said to be sorted by it; else None."""
        if not (self.rows_sorted or self.cols_sorted):
            return None
        ids, lines = (self.row, self.shape[0]) if self.rows_sorted else (self.col, self.shape[1])
        return jnp.searchsorted(ids, jnp.arange(lines + 1, dtype=ids.dtype))

    def transpose(self, axes: Any = None) -> 'COO':
        """Return the transpose, a matrix over the same arrays."""
        turned = self._turned(COO, axes)
        return turned._set(  # type: ignore[no-any-return]
            row=self.col,
            col=self.row,
            mirror=(*self.mirror[3:], *self.mirror[:3]),
            rows_sorted=self.cols_sorted,
            cols_sorted=self.rows_sorted,
        )

    def sort_indices(self) -> Self:
        """Return the same matrix with entries in the order of their rows, and columns therein.

        Returns
        -------
        COO
            Without a mirror. Repeated entries keep their order.
        """
        row, col = self.arrays[:2]
        m, n = self.shape
        _, row, first = sorted_entries(col, n, row, m)
        _, col, second = sorted_entries(row, m, col[first], n)
        return self._with(
            data=reordered(self.data, first[second]),
            row=row[second],
            col=col,
            mirror=(),
            rows_sorted=True,
            cols_sorted=False,
        )

    @classmethod
    def _fromcoo(cls, coo: Any) -> Any:
        return coo


def coomv(
    data: Any,
    row: Any,
    col: Any,
    vector: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in coordinates by a vector: ``y[row] += data * vector[col]``.

    Parameters
    ----------
    data : Array or Quantity, shape () or (1,) or (nse,)
        One weight for all entries, or one for each, of any numeric dtype and unit.
    row, col : Array of int, shape (nse,)
        Row and column of every entry, in any order; repeats add up.
    vector : Array or Quantity, shape (shape[1],), or (shape[0],) with ``transpose``
        Multiplied by value; a bool counts 0 or 1.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Multiply by the transpose: ``y[col] += data * vector[row]``.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
        In the product of both units and the common dtype.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError
        If an operand does not fit.
    KernelNotAvailableError
        If ``backend`` is given and cannot serve the call.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> parts = jnp.array([1., 2., 3.]), jnp.array([1, 0, 0]), jnp.array([1, 0, 2])
    >>> brainevent.coomv(*parts, jnp.array([1., 10., 100.]), shape=(2, 3))
    Array([302.,  10.], dtype=float32)
    """
    return multiply(
        COO_PRODUCTS, 'coomv', data, (row, col), vector,
        shape=shape, transpose=transpose, backend=backend,
    )  # fmt: skip


@like(coomv, PRODUCT_BATCH, B=BATCH)
def coomm(
    data: Any,
    row: Any,
    col: Any,
    B: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in coordinates by a dense matrix ``B`` of shape ``(k, n)``.

    Like `coomv` for every column of ``B``; see there for the operands.
    """
    return multiply(
        COO_PRODUCTS, 'coomm', data, (row, col), B,
        shape=shape, transpose=transpose, backend=backend,
    )  # fmt: skip


@like(coomv, vector=EVENTS)
def binary_coomv(
    data: Any,
    row: Any,
    col: Any,
    vector: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in coordinates by an event vector.

    Like `coomv`, but an element of ``vector`` counts exactly one when it is True or greater than
    zero, and nothing otherwise.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> parts = jnp.array([1., 2., 3.]), jnp.array([1, 0, 0]), jnp.array([1, 0, 2])
    >>> brainevent.binary_coomv(*parts, jnp.array([True, False]), shape=(2, 3), transpose=True)
    Array([2., 0., 3.], dtype=float32)
    """
    return multiply(
        COO_PRODUCTS, 'binary_coomv', data, (row, col), vector,
        shape=shape, transpose=transpose, backend=backend, event=Event.BINARY,
    )  # fmt: skip


@like(binary_coomv, PRODUCT_BATCH, B=EVENT_BATCH)
def binary_coomm(
    data: Any,
    row: Any,
    col: Any,
    B: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in coordinates by events in a matrix ``B`` of shape ``(k, n)``.

    Like `binary_coomv` for every column of ``B``.
    """
    return multiply(
        COO_PRODUCTS, 'binary_coomm', data, (row, col), B,
        shape=shape, transpose=transpose, backend=backend, event=Event.BINARY,
    )  # fmt: skip
