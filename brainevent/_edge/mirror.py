# SPDX-License-Identifier: Apache-2.0
"""The same edges in another order: what makes the second direction event-driven.

``mirror`` lists the edges of a layout by column: ``far`` holds the row of every edge, column ``j``
owns positions ``ptr[j] .. ptr[j + 1]``, and ``tag`` says where each edge has its weight. Within a
column edges keep their order. Edges that point outside the matrix come last, after ``ptr[n]``.
A layout without rows of its own is listed by row first, in three arrays like these, then by column.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._compat import is_tracer
from brainevent._edge.layout import Layout, safe, within
from brainevent._edge.operator import EdgeOperator, Spec, struct
from brainevent._edge.weight import STORED
from brainevent._error import ShapeError, expect
from brainevent._op import XLACustomKernel
from brainevent._typing import Array

__all__ = ['MIRROR', 'check_mirror', 'mirror']

MIRROR = EdgeOperator('mirror')
"""Stable order of all edges by line, in time proportional to their number."""

_ops: dict[str, XLACustomKernel] = {}


def mirror(
    layout: Layout, arrays: Sequence[Array], shape: tuple[int, int], tags: bool = True
) -> tuple[Array, ...]:
    """Order the edges of a layout by column, and by row if it has no rows.

    Parameters
    ----------
    layout : Layout
    arrays : sequence of Array
        Its structure, concrete or traced.
    shape : tuple of int
        Rows and columns.
    tags : bool
        Whether to return ``tag``, which a layout without rows always has.

    Returns
    -------
    far, ptr, tag : Array of int
        Of shapes ``(nse,)``, ``(columns + 1,)`` and ``(nse,)``, or ``(0,)`` without tags; three
        more in front, for the rows, if the layout has none.
    """
    op = _ops.get(layout.name) or _declare(layout)
    spec = Spec(layout, STORED, shape)
    count = layout.count(tuple(arrays), shape)
    dtype = jnp.int32 if count < 2**31 else jnp.int64
    each = struct((count if tags or not layout.walk else 0,), dtype)
    outs = [
        out
        for lines in (shape[1:] if layout.walk else shape)
        for out in (struct((count,), jnp.int32), struct((lines + 1,), dtype), each)
    ]
    if any(map(is_tracer, arrays)):
        return tuple(op(*arrays, outs=outs, spec=spec))
    with jax.ensure_compile_time_eval():
        return tuple(jax.jit(lambda *s: op(*s, outs=outs, spec=spec))(*arrays))


def check_mirror(
    where: str, arrays: Sequence[Array], names: Sequence[str], count: int, lines: int
) -> None:
    """Check the shapes of one index that `mirror` makes.

    Parameters
    ----------
    where : str
        Name of the call in messages.
    arrays : sequence of Array
        ``far``, ``ptr`` and ``tag``.
    names : sequence of str
        Their names in messages.
    count, lines : int
        Number of edges, and of columns (or rows) that the index lists.

    Raises
    ------
    ShapeError
        Naming the array.
    """
    shapes = ((count,), (lines + 1,), (count,))
    for array, name, shape in zip(arrays, names, shapes, strict=True):
        expect(
            array.shape == shape,
            ShapeError,
            where,
            f'`{name}` of the mirror does not fit.',
            expected=f'shape {shape}',
            got=lambda array=array: f'shape {array.shape}',
            remedy='build the mirror anew with with_mirror()',
        )


def _declare(layout: Layout) -> XLACustomKernel:
    op = _ops.setdefault(layout.name, XLACustomKernel(f'{layout.name}_mirror_index'))
    op.def_jvp_rule2(*[None] * len(layout.arrays))
    op.def_tags(layout.name, 'mirror')
    MIRROR.attach(op, layout)
    return op


def by_sorting(*, spec: Spec, outs: Sequence[Any], **_: Any) -> Callable[..., Any]:
    """Sort edges by line, in plain JAX."""

    def kernel(*arrays: Array) -> list[Array]:
        row, col = spec.layout.edges(tuple(arrays), spec.shape)
        m, n = spec.shape
        inside = within(row, m) & within(col, n)
        results = [] if spec.layout.walk else _lines(row, col, inside, m)
        results += _lines(col, row, inside, n)
        parts = zip(results, outs, strict=True)  # tags may be left out
        return [r[: o.shape[0]].astype(o.dtype) for r, o in parts]

    return kernel


def _lines(near: Array, far: Array, inside: Array, lines: int) -> list[Array]:
    """Sort edges by their near end."""
    key = jnp.where(inside, safe(near, lines), lines)
    order = jnp.argsort(key, stable=True)
    ptr = jnp.searchsorted(key[order], jnp.arange(lines + 1, dtype=key.dtype))
    return [far[order], ptr, order]
