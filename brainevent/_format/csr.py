# SPDX-License-Identifier: Apache-2.0
"""Compressed sparse rows. CSC is CSR of the transpose: the same arrays, read the other way."""

from typing import Any, ClassVar, Self

import jax
import numpy as np

from brainevent._docstring import BATCH, EVENT_BATCH, EVENTS, PRODUCT_BATCH, like
from brainevent._edge import Event
from brainevent._edge.mirror import mirror
from brainevent._edge.operands import as_index
from brainevent._error import OptionError, expect
from brainevent._format.base import StoredMatrix
from brainevent._format.bridge import FORMATS, reordered
from brainevent._format.compressed import CSR_LAYOUT, CSR_MIRROR_PRODUCTS, CSR_PRODUCTS
from brainevent._format.convert import is_whole, sorted_entries
from brainevent._format.functions import multiply
from brainevent._format.given import unpacked
from brainevent._pytree import pytree

__all__ = [
    'CSC',
    'CSR',
    'binary_csrmm',
    'binary_csrmm_p',
    'binary_csrmv',
    'binary_csrmv_p',
    'csrmm',
    'csrmm_p',
    'csrmv',
    'csrmv_p',
]

MANY = 1 << 20  # entries, from which on a compiled conversion is worth its compilation

csrmv_p, csrmm_p = CSR_PRODUCTS.primitives(Event.REAL)
binary_csrmv_p, binary_csrmm_p = CSR_PRODUCTS.primitives(Event.BINARY)


class _Compressed(StoredMatrix):
    """What CSR and CSC share: lines of entries, and offsets to where each line begins."""

    structure: ClassVar = ('indices', 'indptr')
    families: ClassVar = (CSR_PRODUCTS, CSR_MIRROR_PRODUCTS)

    def __init__(
        self,
        data: Any,
        indices: Any = None,
        indptr: Any = None,
        *,
        shape: Any = None,
        backend: str | None = None,
        buffers: Any = None,
        indptr_dtype: Any = 'auto',
        check_structure: bool = True,
    ) -> None:
        if indices is None and indptr is None:
            names = ('data', 'indices', 'indptr')
            data, indices, indptr = unpacked(type(self).__name__, names, data)
        self._fill(
            data,
            (indices, indptr),
            shape=shape,
            backend=backend,
            buffers=buffers,
            check=check_structure,
        )
        self._set(indptr=_offsets(type(self).__name__, self.indptr, indptr_dtype))

    def _as(self, name: str) -> Any:
        """Turn many entries by counting, not by way of coordinates."""
        kind, one = FORMATS[name], self.data.size == 1
        if isinstance(self, kind) or not issubclass(kind, _Compressed):
            return super()._as(name)
        self._check_leaves(self.data)
        made = turned(self.indices, self.indptr, self.layout_shape, not one)
        if made is None:
            return super()._as(name)
        far, ptr, tag = made
        data = reordered(self.data, tag)
        return kind(
            data,
            far,
            ptr,
            shape=self.shape,
            backend=self.backend,
            buffers=self.buffers,
            check_structure=False,
        )

    @classmethod
    def _fromcoo(cls, coo: Any, **options: Any) -> Self:
        ends = (coo.row, coo.shape[0]), (coo.col, coo.shape[1])
        group, member = ends[::-1] if cls.flipped else ends
        indptr, indices, order = sorted_entries(*group, *member)
        return cls(
            reordered(coo.data, order),
            indices,
            indptr,
            shape=coo.shape,
            backend=coo.backend,
            buffers=coo.buffers,
            check_structure=False,
            **options,
        )


def turned(
    indices: Any, indptr: Any, shape: tuple[int, int], weighted: bool
) -> tuple[Any, Any, Any] | None:
    """Turn many compressed rows into columns by counting: less time and memory than a sort.

    Returns
    -------
    tuple or None
        Ids, offsets, and the order of the entries if it is needed. None for few entries, which
        are not worth a compilation, and for traced or padded ones.
    """
    if indices.shape[:1] < (MANY,) or not is_whole(indptr, indices, shape[1]):
        return None
    return mirror(CSR_LAYOUT, (indices, indptr), shape, tags=weighted)  # type: ignore[return-value]


def _offsets(where: str, indptr: jax.Array, wanted: Any) -> jax.Array:
    """Give offsets the width that was asked for, by name or as a dtype."""
    wanted = wanted if isinstance(wanted, str) else np.dtype(wanted).name
    expect(
        wanted in ('auto', 'int32', 'int64'),
        OptionError,
        where,
        'unknown `indptr_dtype`.',
        expected="'auto', 'int32' or 'int64'",
        got=lambda: repr(wanted),
    )
    expect(
        wanted != 'int64' or jax.config.read('jax_enable_x64'),
        OptionError,
        where,
        '`indptr_dtype` is not available.',
        expected="'auto' or 'int32', or 64-bit mode",
        got='int64',
        remedy="jax.config.update('jax_enable_x64', True)",
    )
    return indptr if wanted == 'auto' else as_index(where, 'indptr', indptr).astype(wanted)


@pytree
class CSR(_Compressed):
    """Matrix in compressed sparse rows.

    Parameters
    ----------
    data : array_like or Quantity, or tuple
        One weight for all entries, or one for each, in any unit; or ``(data, indices, indptr)``.
    indices : array_like of int, shape (nse,)
        Column of every entry, row by row; in any order within a row, repeats add up.
    indptr : array_like of int, shape (shape[0] + 1,)
        Row ``i`` owns entries ``indptr[i]`` to ``indptr[i + 1]``.
    shape : tuple of int
        Rows and columns.
    backend : str, optional
        Demand a backend for every product of this matrix.
    indptr_dtype : {'auto', 'int32', 'int64'} or dtype
        Width of the offsets.
    check_structure : bool
        False skips the checks of values; shapes are always checked.

    Raises
    ------
    ShapeError, IndexRangeError, DtypeError
        If the arrays are no sound structure of that shape. Values of traced arrays are never
        looked at; where they are wrong they contribute nothing.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.CSR(([1., 2., 3.], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    >>> A @ jnp.ones(3)
    Array([3., 3.], dtype=float32)
    >>> brainevent.BinaryArray(jnp.array([True, False])) @ A
    Array([1., 0., 2.], dtype=float32)
    """

    def transpose(self, axes: Any = None) -> 'CSC':
        """Return the transpose, a CSC matrix over the same arrays."""
        return self._turned(CSC, axes)  # type: ignore[no-any-return]


@pytree
class CSC(_Compressed):
    """Matrix in compressed sparse columns.

    Parameters
    ----------
    data : array_like or Quantity, or tuple
        One weight for all entries, or one for each, in any unit; or ``(data, indices, indptr)``.
    indices : array_like of int, shape (nse,)
        Row of every entry, column by column.
    indptr : array_like of int, shape (shape[1] + 1,)
        Column ``j`` owns entries ``indptr[j]`` to ``indptr[j + 1]``.
    shape : tuple of int
        Rows and columns, of the matrix itself.
    backend, indptr_dtype, check_structure
        As for `CSR`.

    Raises
    ------
    ShapeError, IndexRangeError, DtypeError
        If the arrays are no sound structure of that shape.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.CSC(([1., 2., 3.], [0, 1, 0], [0, 1, 2, 3]), shape=(2, 3))
    >>> A @ jnp.ones(3)
    Array([4., 2.], dtype=float32)
    """

    flipped: ClassVar[bool] = True

    def transpose(self, axes: Any = None) -> CSR:
        """Return the transpose, a CSR matrix over the same arrays."""
        return self._turned(CSR, axes)  # type: ignore[no-any-return]


def _product(
    where: str,
    data: Any,
    indices: Any,
    indptr: Any,
    x: Any,
    shape: Any,
    transpose: bool,
    event: Event,
    backend: str | None,
) -> Any:
    """Multiply compressed rows as functions are given them."""
    return multiply(
        CSR_PRODUCTS, where, data, (indices, indptr), x,
        shape=shape, transpose=transpose, backend=backend, event=event,
    )  # fmt: skip


def csrmv(
    data: Any,
    indices: Any,
    indptr: Any,
    v: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in compressed rows by a vector.

    Parameters
    ----------
    data : Array or Quantity, shape () or (1,) or (nse,)
        One weight for all entries, or one for each, of any numeric dtype and unit.
    indices : Array of int, shape (nse,)
        Column of every entry.
    indptr : Array of int, shape (shape[0] + 1,)
        Offsets of rows.
    v : Array or Quantity, shape (shape[1],), or (shape[0],) with ``transpose``
        Multiplied by value; a bool counts 0 or 1.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Multiply by the transpose.
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
    >>> parts = jnp.array([1., 2., 3.]), jnp.array([0, 2, 1]), jnp.array([0, 2, 3])
    >>> brainevent.csrmv(*parts, jnp.array([1., 10., 100.]), shape=(2, 3))
    Array([201.,  30.], dtype=float32)
    """
    return _product('csrmv', data, indices, indptr, v, shape, transpose, Event.REAL, backend)


@like(csrmv, PRODUCT_BATCH, B=BATCH)
def csrmm(
    data: Any,
    indices: Any,
    indptr: Any,
    B: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in compressed rows by a dense matrix ``B`` of shape ``(k, n)``.

    Like `csrmv` for every column of ``B``; see there for the operands.
    """
    return _product('csrmm', data, indices, indptr, B, shape, transpose, Event.REAL, backend)


@like(csrmv, v=EVENTS, workspace='object, optional\n    Accepted and not used.')
def binary_csrmv(
    data: Any,
    indices: Any,
    indptr: Any,
    v: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
    workspace: Any = None,
) -> Any:
    """Multiply a matrix in compressed rows by an event vector.

    Like `csrmv`, but an element of ``v`` counts exactly one when it is True or greater than zero,
    and nothing otherwise. ``workspace`` is accepted and not used.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> parts = jnp.array([1., 2., 3.]), jnp.array([0, 2, 1]), jnp.array([0, 2, 3])
    >>> brainevent.binary_csrmv(*parts, jnp.array([True, False]), shape=(2, 3), transpose=True)
    Array([1., 0., 2.], dtype=float32)
    """
    del workspace
    return _product(
        'binary_csrmv', data, indices, indptr, v, shape, transpose, Event.BINARY, backend
    )


@like(binary_csrmv, PRODUCT_BATCH, B=EVENT_BATCH)
def binary_csrmm(
    data: Any,
    indices: Any,
    indptr: Any,
    B: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
    workspace: Any = None,
) -> Any:
    """Multiply a matrix in compressed rows by events in a matrix ``B`` of shape ``(k, n)``.

    Like `binary_csrmv` for every column of ``B``.
    """
    del workspace
    return _product(
        'binary_csrmm', data, indices, indptr, B, shape, transpose, Event.BINARY, backend
    )
