# SPDX-License-Identifier: Apache-2.0
"""How the edges of a matrix are found: the one thing that a format brings of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._typing import Array, Shape

__all__ = ['LAYOUTS', 'PADDING', 'Draw', 'Layout', 'Twin', 'Walk']

Arrays = tuple[Array, ...]

PADDING = 2**31 - 1
"""The id of places without an entry: int32 holds it, and no matrix has such a row or column."""


@dataclass(frozen=True)
class Twin:
    """The CUDA C++ of a walk: a struct, the structure arrays it is made of, and its text.

    ``struct`` names a type of ``kernels/cuda/walks.cuh``, such as ``be::Compressed``, or one that
    ``source`` defines in the same way.
    """

    struct: str
    arrays: tuple[int, ...] = ()
    source: str = ''


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
    cuda: Twin | None = None


@dataclass(frozen=True)
class Draw:
    """Edges that are drawn where they are used, along the rows; see `brainevent._edge.random`.

    The structure arrays begin with the probability and the seed. ``keep(s, i, j, word)`` thins
    what that probability gives: ``s`` are the structure arrays behind those two, ``i`` is the row,
    ``j`` the column, ``word`` a random number of 32 bits. One text serves arrays in JAX and
    numbers in native code.
    """

    keep: Callable[..., Any] | None = None
    cuda: Twin | None = None  # a walk that draws as ``kernels/cuda/drawn.cuh`` does


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
        ``count(arrays, shape) -> int``, the number of edges, from shapes alone; at most that many
        where they are drawn. Native kernels compile it: plain arithmetic over ``x.shape``.
    check_shapes, check_values : callable
        ``(where, arrays, shape)``: raise on shapes, and on the values of concrete arrays.
    walk, cowalk : Walk, optional
        Edges of a row, and of a column.
    edge : callable, optional
        ``edge(s, m, n, e) -> (row, col)`` for a layout without any order.
    cuda_edge : Twin, optional
        Its CUDA C++.
    draw : Draw, optional
        How edges are drawn that are stored nowhere.
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
    cuda_edge: Twin | None = None
    draw: Draw | None = None

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
    and time of a search. Known offsets are counted on the host, which compiles nothing.
    """
    if is_concrete(indptr):
        known = np.asarray(indptr)
        begin = np.bincount(np.clip(known, 0, count), minlength=count + 1)[:count]
        with jax.ensure_compile_time_eval():
            return jnp.asarray(np.cumsum(begin, dtype=known.dtype) - known.dtype.type(1))
    start = jnp.clip(indptr, 0, min(count, np.iinfo(indptr.dtype).max))
    marks = jnp.zeros(count + 1, indptr.dtype).at[start].add(1)
    return jnp.cumsum(marks, dtype=indptr.dtype)[:count] - 1


def within(ids: Array, extent: int) -> Array:
    """Tell which ids are inside an axis."""
    return (ids >= 0) & (ids < extent)


def safe(ids: Array, extent: int) -> Array:
    """Move ids outside an axis to its end, where gathers fill and scatters drop."""
    return jax.lax.select(within(ids, extent), ids, jnp.full_like(ids, extent))
