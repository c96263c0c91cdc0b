# SPDX-License-Identifier: Apache-2.0
"""The layout of compressed rows: row ``i`` owns edges ``indptr[i] .. indptr[i + 1]``.

With a mirror it can also be walked by column: ``far`` and ``ptr`` are the same matrix in
compressed columns, and ``tag`` says where each of its entries has its weight.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from brainevent._edge import STORED, Layout, Products, Twin, Walk
from brainevent._edge.layout import PADDING, rows_of
from brainevent._edge.mirror import check_mirror
from brainevent._error import IndexRangeError, ShapeError, expect
from brainevent._typing import Array, Shape

__all__ = ['CSR_LAYOUT', 'CSR_MIRROR', 'CSR_MIRROR_PRODUCTS', 'CSR_PRODUCTS']


def _edges(arrays: tuple[Array, ...], shape: Shape) -> tuple[Array, Array]:
    indices, indptr = arrays[:2]
    if shape[0] == 0 or indices.shape[0] == 0:
        return jnp.zeros(indices.shape, indices.dtype), indices
    row = rows_of(indptr, indices.shape[0]).astype(indices.dtype)
    return jnp.where(row < shape[0], row, PADDING), indices  # what is in no row is padding


def _count(arrays: tuple[Array, ...], shape: Shape) -> int:
    return int(arrays[0].shape[0])


def _check_shapes(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    indices, indptr = arrays[:2]
    expect(
        indices.ndim == 1,
        ShapeError,
        where,
        '`indices` does not have one axis.',
        expected='shape (nse,)',
        got=lambda: f'shape {indices.shape}',
    )
    expect(
        indptr.shape == (shape[0] + 1,),
        ShapeError,
        where,
        '`indptr` does not fit `shape`.',
        expected=lambda: f'shape ({shape[0] + 1},): one offset more than there are lines',
        got=lambda: f'shape {indptr.shape}',
        remedy='check that `shape` is (rows, columns)',
    )


def _check_mirror_shapes(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    _check_shapes(where, arrays, shape)
    check_mirror(where, arrays[2:], ('far', 'ptr', 'tag'), _count(arrays, shape), shape[1])


def _check_values(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    indices, indptr = np.asarray(arrays[0]), np.asarray(arrays[1])
    ends = (int(indptr[0]), int(indptr[-1]))
    padded = ends[1] >= 0 and bool(np.all(indices[ends[1] :] == PADDING))
    expect(
        ends[0] == 0 and ends[1] <= indices.shape[0] and padded,
        IndexRangeError,
        where,
        '`indptr` does not run over all entries.',
        expected=lambda: f'from 0 to {indices.shape[0]}, the number of `indices`',
        got=lambda: f'from {ends[0]} to {ends[1]}',
    )
    expect(
        bool(np.all(indptr[1:] >= indptr[:-1])),
        IndexRangeError,
        where,
        '`indptr` goes down.',
        expected='offsets that never decrease',
        got=lambda: f'a step down at position {int(np.argmax(indptr[1:] < indptr[:-1])) + 1}',
    )
    check_ids(where, 'indices', indices, shape[1])


def check_ids(where: str, name: str, ids: np.ndarray[Any, Any], extent: int) -> None:
    """Check that all ids are inside an axis, or padding.

    Raises
    ------
    IndexRangeError
        Naming the extremes.
    """
    if ids.size == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if high == PADDING:
        high = int(ids.max(initial=-1, where=ids != PADDING))
    expect(
        low >= 0 and high < extent,
        IndexRangeError,
        where,
        f'`{name}` points outside the matrix.',
        expected=f'values from 0 to {extent - 1}',
        got=f'values from {low} to {high}',
    )


# ---- native walks: s is (indices, indptr) or (indices, indptr, far, ptr, tag) ----


def _row_span(s, m, n, i):  # type: ignore[no-untyped-def]
    return s[1][i], s[1][i + 1]


def _row_far(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[0][e]


def _own_tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return e


def _column_span(s, m, n, i):  # type: ignore[no-untyped-def]
    return s[3][i], s[3][i + 1]


def _column_far(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[2][e]


def _column_tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[4][e]


_ROWS = Walk(_row_span, _row_far, _own_tag, streams=(0,), cuda=Twin('be::Compressed', (0, 1)))

CSR_LAYOUT = Layout(
    name='csr',
    arrays=('indices', 'indptr'),
    ranks=(1, 1),
    edges=_edges,
    count=_count,
    check_shapes=_check_shapes,
    check_values=_check_values,
    walk=_ROWS,
)

CSR_MIRROR = Layout(
    name='csr_mirror',
    arrays=('indices', 'indptr', 'far', 'ptr', 'tag'),
    ranks=(1, 1, 1, 1, 1),
    edges=_edges,
    count=_count,
    check_shapes=_check_mirror_shapes,
    check_values=_check_values,
    walk=_ROWS,
    cowalk=Walk(
        _column_span,
        _column_far,
        _column_tag,
        direct=False,
        streams=(2, 4),
        cuda=Twin('be::Tagged', (2, 3, 4)),
    ),
)

CSR_PRODUCTS = Products(CSR_LAYOUT, STORED, 'csr')
CSR_MIRROR_PRODUCTS = Products(CSR_MIRROR, STORED, 'csr_mirror')
