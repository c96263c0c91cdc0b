# SPDX-License-Identifier: Apache-2.0
"""Edges of a drawn matrix in memory: listed along their streams, in dense rows, or one by one."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._compat import is_concrete
from brainevent._edge import Event
from brainevent._edge.kernels.jax_drawn import edge_at
from brainevent._edge.layout import PADDING, within
from brainevent._edge.operands import split_unit, with_unit
from brainevent._format.bridge import reordered
from brainevent._format.csr import CSC, CSR, turned
from brainevent._format.drawn import Drawn, listed, own_room
from brainevent._format.drawn_checks import is_probability, show_invalid
from brainevent._typing import Array

__all__ = ['compressed', 'picked_elements', 'picked_rows']

PICKED = 64  # rows that are drawn at a time to be made dense


def compressed(matrix: Any, what: str, nse: int | None, kind: Any = None) -> Any:
    """List the edges of a matrix, along its streams or as compressed rows or columns."""
    arrays = matrix.arrays
    known = matrix.nse if all(map(is_concrete, arrays)) else None
    exact = not jnp.issubdtype(matrix.dtype, jnp.inexact)
    nse = own_room(f'{type(matrix).__name__}.{what}', nse, known, matrix.shape, exact)
    params, units = zip(*map(split_unit, matrix.params), strict=True)
    shape, draws = matrix.layout_shape, bool(matrix.family.weight.draws)
    data, far, ptr = _listed(matrix.family, params, arrays, shape, nse)
    if not is_concrete(matrix.prob):
        far, ptr = _spread_if_invalid(matrix.prob, far, ptr, shape)
    own = CSC if matrix.flipped else CSR
    made = turned(far, ptr, shape, draws) if kind not in (own, None) else None
    if made is not None:
        far, ptr, order = made  # the list along the streams is given up before weights move
        data = reordered(data, order)
    found = kind if made is not None else own
    listed_ = found(
        with_unit(show_invalid(matrix.prob, data), units[0]), far, ptr, shape=matrix.shape,
        backend=matrix.backend, buffers=matrix.buffers, check_structure=False,
    )  # fmt: skip
    return listed_ if kind is None else listed_._as(kind.__name__)


@functools.partial(jax.jit, static_argnames=('family', 'shape', 'nse'))
def _listed(
    family: Drawn, params: Sequence[Array], arrays: Any, shape: tuple[int, int], nse: int
) -> tuple[Array, Array, Array]:
    """Return weights, far ends and offsets; weights are NaN if there is not room for all edges.

    Compiled as a whole, so that what lies between the list and the weights is never in memory.
    """
    draws = bool(family.weight.draws)
    ptr, (_, far, *key) = listed(family.layout, arrays, shape, nse, keys=draws)
    far = jnp.where(jnp.arange(nse) < ptr[-1], far, PADDING)
    data = _weights(family, params, tuple(key)) if draws else params[0]
    if jnp.issubdtype(data.dtype, jnp.inexact):
        data = jnp.where(ptr[-1] > nse, jnp.nan, data)
    return data, far, jnp.minimum(ptr, nse)


def _spread_if_invalid(
    prob: Array, far: Array, ptr: Array, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Return far ends and offsets; spread over the matrix where the probability is none.

    The weights are NaN then, which has to reach as many rows and columns as there is room for.
    """
    valid, (m, n), nse = is_probability(prob), shape, far.shape[0]
    if 0 in (m, n, nse):
        return far, ptr
    per_line = -(-nse // m)
    spread = jnp.minimum(jnp.arange(m + 1) * per_line, nse).astype(ptr.dtype)
    ends = (jnp.arange(nse) % n).astype(far.dtype)
    return jnp.where(valid, far, ends), jnp.where(valid, ptr, spread)


def _weights(family: Drawn, params: Sequence[Array], key: Any) -> Array:
    """Return what edges weigh, by their keys."""
    dtype = jnp.result_type(*params)
    weights: Array = family.weight.of_edges([x.reshape(()).astype(dtype) for x in params], key)
    return weights


def picked_rows(matrix: Any, rows: Any) -> Any:
    """Return dense rows: products with vectors that are one in one row."""
    params, units = zip(*map(split_unit, matrix.params), strict=True)

    def pick(row: Array) -> Any:
        return matrix.family(
            f'{type(matrix).__name__}[index]', params, matrix.arrays,
            jax.nn.one_hot(row, matrix.shape[0], dtype=bool), shape=matrix.layout_shape,
            transpose=not matrix.flipped, event=Event.BINARY, backend=matrix.backend,
            checked=True,
        )  # fmt: skip

    rows = jnp.asarray(rows)
    known = isinstance(rows.size, int)  # a program with an open batch draws row by row
    many = min(PICKED, max(rows.size, 1)) if known else None
    picked = jax.lax.map(pick, rows.reshape(-1), batch_size=many)
    picked = picked.reshape(*rows.shape, *picked.shape[1:])
    return with_unit(show_invalid(matrix.prob, picked), units[0])


def picked_elements(matrix: Any, row: Any, col: Any) -> Any:
    """Return single elements, each of which is drawn with the part of its line before it."""
    params, units = zip(*map(split_unit, matrix.params), strict=True)
    picked = _elements(
        matrix.family, params, matrix.arrays, matrix.layout_shape,
        *map(jnp.asarray, (col, row) if matrix.flipped else (row, col)),
    )  # fmt: skip
    return with_unit(show_invalid(matrix.prob, picked), units[0])


@functools.partial(jax.jit, static_argnames=('family', 'shape'))
def _elements(
    family: Drawn,
    params: Sequence[Array],
    arrays: Any,
    shape: tuple[int, int],
    line: Array,
    place: Array,
) -> Array:
    there, key = edge_at(family.layout.draw, arrays, shape[1], line.reshape(-1), place.reshape(-1))
    there = there.reshape(line.shape) & within(line, shape[0]) & within(place, shape[1])
    key = tuple(part.reshape(line.shape) for part in key)
    weights = _weights(family, params, key) if family.weight.draws else params[0].reshape(())
    dtype = jnp.dtype('int32') if weights.dtype == bool else weights.dtype
    return jnp.where(there, weights.astype(dtype), 0)
