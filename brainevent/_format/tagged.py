# SPDX-License-Identifier: Apache-2.0
"""The layout of compressed lines whose entries have their weights elsewhere, as a mirror has.

Line ``i`` owns entries ``indptr[i] .. indptr[i + 1]``, and entry ``e`` has the weight at position
``weight_indices[e]``.
"""

import jax.numpy as jnp
import numpy as np

from brainevent._edge import STORED, Layout, Products, Twin, Walk
from brainevent._edge.layout import safe
from brainevent._error import IndexRangeError, ShapeError, expect
from brainevent._format import compressed
from brainevent._format.compressed import CSR_LAYOUT
from brainevent._typing import Array, Shape

__all__ = ['TAGGED_LAYOUT', 'TAGGED_PRODUCTS']


def _edges(arrays: tuple[Array, ...], shape: Shape) -> tuple[Array, Array]:
    """Put the ends of every entry where its weight is; a weight without an entry lies outside."""
    far, ptr, tag = arrays
    line, far = CSR_LAYOUT.edges((far, ptr), shape)
    place = safe(tag, tag.shape[0])
    return _placed(line, place, shape[0]), _placed(far, place, shape[1])


def _placed(ids: Array, place: Array, outside: int) -> Array:
    return jnp.full(ids.shape, outside, ids.dtype).at[place].set(ids, mode='drop')


def _check_shapes(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    CSR_LAYOUT.check_shapes(where, arrays[:2], shape)
    expect(
        arrays[2].shape == arrays[0].shape,
        ShapeError,
        where,
        '`weight_indices` does not fit `indices`.',
        expected=lambda: f'shape {arrays[0].shape}',
        got=lambda: f'shape {arrays[2].shape}',
    )


def _check_values(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    CSR_LAYOUT.check_values(where, arrays[:2], shape)
    tag = np.asarray(arrays[2])
    compressed.check_ids(where, 'weight_indices', tag, tag.size)
    uses = np.bincount(tag, minlength=1)
    expect(
        uses.max() <= 1,
        IndexRangeError,
        where,
        '`weight_indices` names a weight twice.',
        expected='every weight once',
        got=lambda: f'weight {uses.argmax()} {uses.max()} times',
    )


def _tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return s[2][e]


TAGGED_LAYOUT = Layout(
    name='csr_tagged',
    arrays=('indices', 'indptr', 'weight_indices'),
    ranks=(1, 1, 1),
    edges=_edges,
    count=CSR_LAYOUT.count,
    check_shapes=_check_shapes,
    check_values=_check_values,
    walk=Walk(
        compressed._row_span,
        compressed._row_far,
        _tag,
        direct=False,
        streams=(0, 2),
        cuda=Twin('be::Tagged', (0, 1, 2)),
    ),
)

TAGGED_PRODUCTS = Products(TAGGED_LAYOUT, STORED, 'csr_tagged', 'csr{}_indexed')
