# SPDX-License-Identifier: Apache-2.0
"""How the edges of a matrix are found: the one thing that a format brings of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._typing import Array, Shape

__all__ = ['LAYOUTS', 'Layout', 'Walk']

Arrays = tuple[Array, ...]


@dataclass(frozen=True)
class Walk:
    """The edges along one line (row or column) of a matrix, as native kernels find them.

    Plain functions of scalars and arrays, compiled by numba where they are used: ``s`` is the
    tuple of structure arrays, ``m`` and ``n`` the matrix's rows and columns, ``i`` a line, ``e``
    an edge within ``span(s, m, n, i) -> (first, last)``. ``far`` is the edge's other end, ``tag``
    the position of its weight. Kernels check what these return: arrays may hold anything.
    """

    span: Callable[..., Any]
    far: Callable[..., Any]
    tag: Callable[..., Any]
    direct: bool = True  # the tag is the edge itself, so weights are read in storage order
    streams: tuple[int, ...] = ()  # structure arrays that are read edge by edge


@dataclass(frozen=True, eq=False)
class Layout:
    """A way to store structure.

    Attributes
    ----------
    name : str
        Identifies the layout in names, caches and messages.
    arrays : tuple of str
        Names of the structure arrays.
    ranks : tuple of int
        Their numbers of axes.
    edges : callable
        ``edges(arrays, shape) -> (row, col)`` of every edge, in the order of their tags.
    count : callable
        ``count(arrays, shape) -> int``, the number of edges, from shapes alone.
    check_shapes, check_values : callable
        ``(where, arrays, shape)``: raise on shapes, and on the values of concrete arrays.
    walk, cowalk : Walk, optional
        Edges of a row, and of a column.
    edge : callable, optional
        ``edge(s, m, n, e) -> (row, col)`` for a layout without any order.
    """

    name: str
    arrays: tuple[str, ...]
    ranks: tuple[int, ...]
    edges: Callable[[Arrays, Shape], tuple[Array, Array]]
    count: Callable[[Arrays, Shape], int]
    check_shapes: Callable[[str, Arrays, Shape], None]
    check_values: Callable[[str, Arrays, Shape], None]
    walk: Walk | None = None
    cowalk: Walk | None = None
    edge: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        """Enter the table, where kernels find a layout by its name."""
        LAYOUTS[self.name] = self

    def __repr__(self) -> str:
        """Give the name: a repr is part of cache keys."""
        return f'Layout({self.name})'

    def towards(self, transpose: bool) -> tuple[Walk | None, Walk | None]:
        """Return the walks along lines of the input, and along lines of the output."""
        return (self.walk, self.cowalk) if transpose else (self.cowalk, self.walk)


LAYOUTS: dict[str, Layout] = {}


def rows_of(indptr: Array, count: int) -> Array:
    """Return the row of every edge of compressed rows; offsets may hold anything.

    Every row marks where it begins, and the marks so far are counted: that takes half the memory
    and time of a search.
    """
    start = jnp.clip(indptr, 0, min(count, np.iinfo(indptr.dtype).max))
    marks = jnp.zeros(count + 1, indptr.dtype).at[start].add(1)
    return jnp.cumsum(marks, dtype=indptr.dtype)[:count] - 1


def within(ids: Array, extent: int) -> Array:
    """Tell which ids are inside an axis."""
    return (ids >= 0) & (ids < extent)


def safe(ids: Array, extent: int) -> Array:
    """Move ids outside an axis to its end, where gathers fill and scatters drop."""
    return jax.lax.select(within(ids, extent), ids, jnp.full_like(ids, extent))
