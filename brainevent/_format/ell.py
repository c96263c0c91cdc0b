# SPDX-License-Identifier: Apache-2.0
"""The layout of a fixed number of edges a row: row ``i`` of a table holds the columns it reaches.

With a mirror it can also be walked by column: ``far`` and ``ptr`` are the same matrix in
compressed columns, and ``tag`` says where each of its entries has its weight.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._edge import STORED, Layout, Products, Twin, Walk
from brainevent._edge.mirror import check_mirror
from brainevent._error import ShapeError, expect
from brainevent._format.compressed import check_ids
from brainevent._typing import Array, Shape

__all__ = ['FCN_LAYOUT', 'FCN_MIRROR', 'FCN_MIRROR_PRODUCTS', 'FCN_PRODUCTS']


def _edges(arrays: tuple[Array, ...], shape: Shape) -> tuple[Array, Array]:
    indices = arrays[0]
    row = jax.lax.broadcasted_iota(indices.dtype, indices.shape, 0)
    return jnp.reshape(row, -1), jnp.reshape(indices, -1)


def _count(arrays: tuple[Array, ...], shape: Shape) -> int:
    rows, width = arrays[0].shape
    return int(rows * width)


def _check_shapes(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    indices = arrays[0]
    expect(
        indices.ndim == 2 and indices.shape[0] == shape[0],
        ShapeError,
        where,
        '`indices` do not fit `shape`.',
        expected=lambda: f'shape ({shape[0]}, connections of each)',
        got=lambda: f'shape {indices.shape}',
    )


def _check_mirror_shapes(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    _check_shapes(where, arrays, shape)
    check_mirror(where, arrays[1:], ('far', 'ptr', 'tag'), _count(arrays, shape), shape[1])


def _check_values(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    check_ids(where, 'indices', np.asarray(arrays[0]), shape[1])


# ---- native walks: s is (indices,) or (indices, far, ptr, tag) ----


def _row_span(s, m, n, i):  # type: ignore[no-untyped-def]
    return i * s[0].shape[1], (i + 1) * s[0].shape[1]


def _row_far(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[0][i, e - i * s[0].shape[1]]


def _own_tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return e


def _column_span(s, m, n, i):  # type: ignore[no-untyped-def]
    return s[2][i], s[2][i + 1]


def _column_far(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[1][e]


def _column_tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[3][e]


_ROWS = Walk(_row_span, _row_far, _own_tag, streams=(0,), cuda=Twin('be::Table', (0,)))

FCN_LAYOUT = Layout(
    name='fcn',
    arrays=('indices',),
    ranks=(2,),
    edges=_edges,
    count=_count,
    check_shapes=_check_shapes,
    check_values=_check_values,
    walk=_ROWS,
)

FCN_MIRROR = Layout(
    name='fcn_mirror',
    arrays=('indices', 'far', 'ptr', 'tag'),
    ranks=(2, 1, 1, 1),
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
        streams=(1, 3),
        cuda=Twin('be::Tagged', (1, 2, 3)),
    ),
)

FCN_PRODUCTS = Products(FCN_LAYOUT, STORED, 'fcn')
FCN_MIRROR_PRODUCTS = Products(FCN_MIRROR, STORED, 'fcn_mirror')
