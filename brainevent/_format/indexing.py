# SPDX-License-Identifier: Apache-2.0
"""Indexing of matrices with stored weights, as numpy does it: the result is dense.

Rows, columns and elements are picked: only the lines that are asked for are walked, where the
format can, and no more is made dense than the result.
"""

from typing import Any

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge import Products, unwrap
from brainevent._edge.intake import on_host, signed_ids
from brainevent._edge.layout import PADDING, safe
from brainevent._edge.operands import split_unit
from brainevent._edge.pick import picks_of
from brainevent._error import (
    DtypeError,
    IndexRangeError,
    UnsupportedOperationError,
    expect,
    explain,
)
from brainevent._format.bridge import FORMATS, known
from brainevent._op import soften
from brainevent._typing import Array

__all__ = ['Indexing', 'map_number', 'row_ids']

DENSE_ROWS = 1 << 22  # numbers that may be made dense on the way to a part of some rows
_ALL = slice(None)


class Indexing:
    """``A[i]``, ``A[rows]``, ``A[i, j]`` and the like."""

    data: Any
    shape: tuple[int, int]
    arrays: tuple[Array, ...]
    products: Products
    layout_shape: tuple[int, int]
    flipped: bool
    backend: str | None

    def __getitem__(self, index: Any) -> Any:
        """Return a dense part of the matrix, indexed as numpy indexes an array of two axes.

        A traced index outside the matrix gives zeros, a concrete one an `IndexRangeError`.
        """
        row, col = _both_axes(type(self).__name__, index, self.shape)
        if _is_full(col):
            return self._rows(row)
        if _is_full(row):
            columns = self.transpose()._rows(col)  # type: ignore[attr-defined]
            return map_number(lambda x: jnp.moveaxis(x, -1, 0), columns)
        if isinstance(row, slice) or isinstance(col, slice):
            return self._block(row, col)
        return self._elements(row, col)

    def _block(self, row: Any, col: Any) -> Any:
        """Return what some rows and some columns have in common, of which one is a slice."""
        where, (m, n) = type(self).__name__, self.shape
        rows, cols = row_ids(where, row, m), row_ids(where, col, n)
        if rows.size * n > DENSE_ROWS:
            return self._elements(rows.reshape(*rows.shape, *(1,) * cols.ndim), cols)
        return map_number(
            lambda x: x.at[..., cols].get(mode='fill', fill_value=0), self._rows(rows)
        )

    def slice_rows(self, index: Any) -> Any:
        """Return some rows as a matrix.

        Parameters
        ----------
        index : int, slice, or array of int or bool
            Concrete, since it decides how many entries the result has; of `FixedNumPerPre` also
            traced ids.

        Returns
        -------
        Matrix
            Of the same format; of `FixedNumPerPost`, compressed rows.

        Raises
        ------
        UnsupportedOperationError
            If the index or the structure of the matrix is traced.
        IndexRangeError
            If a row is not there.

        Examples
        --------
        >>> import brainevent
        >>> A = brainevent.CSR(([1., 2., 3.], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
        >>> A.slice_rows([1, 0, 1]).indices
        Array([1, 0, 2, 1], dtype=int32)
        """
        where, (m, n) = f'{type(self).__name__}.slice_rows', self.shape
        ids = row_ids(where, _plain(where, index, m), m)
        arrays = self.arrays
        if self._rows_are_a_table:
            return self._picked_table(jnp.asarray(ids).reshape(-1))
        expect(
            all(map(is_concrete, (ids, *arrays))),
            UnsupportedOperationError,
            where,
            'how many entries the rows have is not known in a traced program.',
            expected='a concrete index and a concrete structure',
            got='traced ones',
            remedy='use `A[index]`, which is dense',
        )
        ids = ids.reshape(-1)
        with known(arrays):
            row, col = map(np.asarray, self.edges())  # type: ignore[attr-defined]
        order = np.argsort(row, kind='stable')
        first, last = (np.searchsorted(row[order], ids, side=side) for side in ('left', 'right'))
        indptr = np.concatenate([[0], np.cumsum(last - first)])
        shift = np.repeat(first - indptr[:-1], last - first)
        return self._picked(order[np.arange(indptr[-1]) + shift], col, indptr, (ids.size, n))

    @property
    def _rows_are_a_table(self) -> bool:
        """Whether every row has as many entries, so that rows can be taken by traced ids."""
        return not self.flipped and getattr(getattr(self, 'indices', None), 'ndim', 1) == 2

    def _picked_table(self, ids: Any) -> Any:
        """Return rows of a table; a row outside the matrix has no entries."""
        m, n = self.shape
        table = self.indices.at[ids].get(mode='fill', fill_value=PADDING)  # type: ignore[attr-defined]
        data = self.data
        if data.size != 1:
            data = map_number(lambda x: x.at[ids].get(mode='fill', fill_value=0), data)
        return self._with(data=data, indices=table, shape=(ids.size, n), mirror=())  # type: ignore[attr-defined, no-any-return]

    def _picked(self, entries: Any, col: Any, indptr: Any, shape: tuple[int, int]) -> Any:
        """Put together a matrix of some entries, row after row."""
        data = self.data if self.data.size == 1 else self.data.reshape(-1)[entries]
        rows = FORMATS['CSR'](data, col[entries], indptr, shape=shape, backend=self.backend)
        return {'COO': rows.tocoo, 'CSC': rows.tocsc}.get(type(self).__name__, lambda: rows)()

    def _rows(self, index: Any) -> Any:
        """Return dense rows, of shape ``(*index.shape, columns)``."""
        return self._pick(row_ids(type(self).__name__, index, self.shape[0]))

    def _elements(self, row: Any, col: Any) -> Any:
        """Return single entries; row and column broadcast."""
        where, (m, n) = type(self).__name__, self.shape
        row, col = row_ids(where, row, m), row_ids(where, col, n)
        try:
            shape = jnp.broadcast_shapes(row.shape, col.shape)
        except ValueError as cause:
            raise IndexRangeError(
                explain(
                    f'{where}[index]',
                    'row and column ids do not broadcast.',
                    expected='two arrays of the same shape, or one number',
                    got=f'shapes {row.shape} and {col.shape}',
                    remedy='use `A[rows[:, None], cols]` for a block',
                )
            ) from cause
        return self._pick(*(jnp.broadcast_to(ids, shape) for ids in (row, col)))

    def _pick(self, *ids: Any) -> Any:
        return picks_of(self.products)(
            f'{type(self).__name__}[index]',
            self.data,
            self.arrays,
            *(jnp.asarray(x) for x in ids),
            shape=self.layout_shape,
            transpose=not self.flipped,
            backend=soften(self.backend),
            checked=True,
        )


def map_number(fn: Any, x: Any) -> Any:
    """Apply a function to the number and keep the unit."""
    number, unit = split_unit(x)
    return fn(number) if unit is None else u.Quantity(fn(number), unit=unit)


def _is_full(index: Any) -> bool:
    return isinstance(index, slice) and index == _ALL


def _both_axes(where: str, index: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return an index for rows and one for columns."""
    if not isinstance(index, tuple):
        index = (index,)
    if len(index) > 2 and all(isinstance(part, (int, np.integer)) for part in index):
        index = (np.asarray(index),)  # a tuple of rows; two ints are an element
    index = tuple(unwrap(part)[0] for part in index)
    if len(index) == 1 and np.ndim(index[0]) == 2 and _is_mask(index[0]):
        mask = _concrete_mask(where, index[0], shape)
        row, col = np.nonzero(mask)
        return row, col
    dots = [k for k, part in enumerate(index) if part is Ellipsis]
    if len(dots) == 1:
        (k,) = dots
        index = (*index[:k], *[_ALL] * (3 - len(index)), *index[k + 1 :])
    expect(
        len(dots) <= 1 and 1 <= len(index) <= 2 and not any(part is None for part in index),
        IndexRangeError,
        f'{where}[index]',
        'the index does not fit two axes.',
        expected='an index for rows, and one for columns',
        got=lambda: repr(index),
    )
    row, col = index if len(index) == 2 else (index[0], _ALL)
    return _plain(where, row, shape[0]), _plain(where, col, shape[1])


def _is_mask(x: Any) -> bool:
    dtype = np.asarray(x).dtype if isinstance(x, list) else getattr(x, 'dtype', np.dtype('int32'))
    return dtype == np.dtype('bool')


def _concrete_mask(where: str, mask: Any, shape: tuple[int, ...]) -> Any:
    expect(
        is_concrete(mask),
        UnsupportedOperationError,
        f'{where}[mask]',
        'a traced mask does not tell how many entries it takes.',
        expected='a concrete mask',
        got=lambda: repr(mask),
        remedy='use `jnp.where(mask, ..., 0)` on the result, or `jnp.nonzero(mask, size=...)`',
    )
    mask = np.asarray(mask)
    expect(
        mask.shape == shape,
        IndexRangeError,
        f'{where}[mask]',
        'the mask does not fit.',
        expected=lambda: f'shape {shape}',
        got=lambda: f'shape {mask.shape}',
    )
    return mask


def _plain(where: str, index: Any, extent: int) -> Any:
    """Return a slice, or an array of whole numbers."""
    if isinstance(index, slice):
        return index
    if _is_mask(index):
        return np.nonzero(_concrete_mask(where, index, (extent,)))[0]
    return index


def row_ids(where: str, index: Any, extent: int) -> Any:
    """Return an index along one axis as an array of ids from zero on.

    Concrete ids are a NumPy array, checked; traced ones that are outside become ``extent``.
    """
    if isinstance(index, slice):
        try:
            return np.arange(*index.indices(extent))
        except (TypeError, ValueError) as cause:
            text = explain(
                f'{where}[index]',
                'not a slice of whole numbers.',
                expected='ints, and a step that is not 0',
                got=f'{index} ({cause})',
            )
            raise IndexRangeError(text) from cause
    ids = index if isinstance(index, jax.Array) else on_host(f'{where}[index]', 'index', index)
    if ids.size == 0 and ids.dtype.kind == 'f':
        ids = ids.astype(np.int32)
    expect(
        np.issubdtype(ids.dtype, np.integer),
        DtypeError,
        f'{where}[index]',
        'an index is no whole number.',
        expected='ints, slices, arrays of ints or truth values',
        got=ids.dtype,
    )
    if not is_concrete(ids):
        ids = signed_ids(ids, extent)
        return safe(jnp.where(ids < 0, ids + extent, ids), extent)
    ids = signed_ids(np.asarray(ids), max(extent, 2**31))
    bad = ids[(ids < -extent) | (ids >= extent)]
    if bad.size:
        raise IndexRangeError(
            explain(
                f'{where}[index]',
                'an index points outside the matrix.',
                expected=f'values from {-extent} to {extent - 1}',
                got=np.asarray(index)[(ids < -extent) | (ids >= extent)].reshape(-1)[0],
            )
        )
    return np.where(ids < 0, ids + extent, ids)
