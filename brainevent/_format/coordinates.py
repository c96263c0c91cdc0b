# SPDX-License-Identifier: Apache-2.0
"""The layout of coordinates: edge ``e`` runs from ``col[e]`` to ``row[e]``, in no order at all.

With a mirror it can be walked by row and by column: for each there are the edges' other ends,
where each line begins, and where each edge has its weight.
"""

import numpy as np

from brainevent._edge import STORED, Layout, Products, Twin, Walk
from brainevent._edge.mirror import check_mirror
from brainevent._error import ShapeError, expect
from brainevent._format.compressed import check_ids
from brainevent._typing import Array, Shape

__all__ = ['COO_LAYOUT', 'COO_MIRROR', 'COO_MIRROR_PRODUCTS', 'COO_PRODUCTS']

_NAMES = ('row', 'col', 'row_far', 'row_ptr', 'row_tag', 'col_far', 'col_ptr', 'col_tag')


def _edges(arrays: tuple[Array, ...], shape: Shape) -> tuple[Array, Array]:
    row, col = arrays[:2]
    return row, col


def _count(arrays: tuple[Array, ...], shape: Shape) -> int:
    return int(arrays[0].shape[0])


def _check_shapes(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    row, col = arrays[:2]
    expect(
        row.ndim == 1 and row.shape == col.shape,
        ShapeError,
        where,
        '`row` and `col` do not fit together.',
        expected='one axis each, of the same length',
        got=lambda: f'shapes {row.shape} and {col.shape}',
        remedy='give one row and one column for each entry',
    )


def _check_mirror_shapes(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    _check_shapes(where, arrays, shape)
    for part, lines in zip((slice(2, 5), slice(5, 8)), shape, strict=True):
        check_mirror(where, arrays[part], _NAMES[part], _count(arrays, shape), lines)


def _check_values(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    for name, ids, extent in zip(('row', 'col'), arrays[:2], shape, strict=True):
        check_ids(where, name, np.asarray(ids), extent)


# ---- native: s is (row, col), then far, ptr and tag of rows, then of columns ----


def _edge(s, m, n, e):  # type: ignore[no-untyped-def]
    return s[0][e], s[1][e]


def _row_span(s, m, n, i):  # type: ignore[no-untyped-def]
    return s[3][i], s[3][i + 1]


def _row_far(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[2][e]


def _row_tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[4][e]


def _column_span(s, m, n, i):  # type: ignore[no-untyped-def]
    return s[6][i], s[6][i + 1]


def _column_far(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[5][e]


def _column_tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[7][e]


COO_LAYOUT = Layout(
    name='coo',
    arrays=('row', 'col'),
    ranks=(1, 1),
    edges=_edges,
    count=_count,
    check_shapes=_check_shapes,
    check_values=_check_values,
    edge=_edge,
    cuda_edge=Twin('be::Pairs', (0, 1)),
)

COO_MIRROR = Layout(
    name='coo_mirror',
    arrays=_NAMES,
    ranks=(1,) * 8,
    edges=_edges,
    count=_count,
    check_shapes=_check_mirror_shapes,
    check_values=_check_values,
    walk=Walk(
        _row_span,
        _row_far,
        _row_tag,
        direct=False,
        streams=(2, 4),
        cuda=Twin('be::Tagged', (2, 3, 4)),
    ),
    cowalk=Walk(
        _column_span,
        _column_far,
        _column_tag,
        direct=False,
        streams=(5, 7),
        cuda=Twin('be::Tagged', (5, 6, 7)),
    ),
    edge=_edge,
    cuda_edge=Twin('be::Pairs', (0, 1)),
)

COO_PRODUCTS = Products(COO_LAYOUT, STORED, 'coo')
COO_MIRROR_PRODUCTS = Products(COO_MIRROR, STORED, 'coo_mirror')
