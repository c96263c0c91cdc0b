# SPDX-License-Identifier: Apache-2.0
"""Kernels for listed events: which are active, and the edges of those alone.

In plain JAX the edges of all listed lines are numbered through, and taken a block at a time: a
binary search finds the line that a number falls in.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._compat import align_varying
from brainevent._edge.kernels import numba_cpu
from brainevent._edge.kernels.jax_raw import (
    _PLATFORMS,
    EDGE_BLOCK,
    _accumulator,
    _over_levels,
    _take,
)
from brainevent._edge.kernels.numba_cpu import (
    _HALVES,
    _HOME,
    SPLIT_EDGES,
    _layout_key,
    _like,
)
from brainevent._edge.layout import Layout, Walk, safe, within
from brainevent._edge.listed import COMPACT, LISTED
from brainevent._edge.operator import Spec, own_parts, struct
from brainevent._op.numba_ffi import native
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]

BLOCK = 1 << 14  # edges, times vectors of a batch, that are taken at a time


# ---- the list itself ----------------------------------------------------------------------------


def list_in_jax(*, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Count up to every active element: that is its place."""

    def kernel(active: Array) -> list[Array]:
        ids, number = outs

        def find(on: Array) -> Array:
            return jnp.nonzero(on, size=on.shape[0], fill_value=0)[0]

        for _ in range(active.ndim - 1):
            find = jax.vmap(find)
        counted = active.sum(-1, keepdims=True, dtype=number.dtype)
        return [find(active).astype(ids.dtype), counted]

    return kernel


def list_natively(*, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Look at many truth values at once, and write down those that are set."""
    recipe = native.Recipe(_HOME + 'numba_listed', 'list_active')
    return lambda active: native.call(recipe, [active], outs, levels=active.ndim - 1)


COMPACT.def_numba_kernel(list_natively)
for _platform in _PLATFORMS:
    COMPACT.def_kernel('jax_raw', _platform, list_in_jax)


# ---- products -----------------------------------------------------------------------------------


def _has_lines(*, spec: Spec, **_: Any) -> bool | str:
    if spec.weight.name != 'stored' or spec.layout.towards(spec.transpose)[0] is None:
        return 'there are no lines of the input to go through'
    # to look for active rows is nothing beside adding them up
    return spec.layout.name != 'dense' or 'a dense matrix has a kernel of its own'


def _lines_in_jax(*, spec: Spec, **_: Any) -> bool | str:
    answer = _has_lines(spec=spec)
    if answer is not True:
        return answer
    told = f'the walk of the layout {spec.layout.name!r} is for native code only'
    return _traceable(spec.layout, spec.transpose) or told


@functools.cache
def _traceable(layout: Layout, transpose: bool) -> bool:
    """Tell whether a walk is plain arithmetic, which also works on arrays of lines and edges."""
    walk = layout.towards(transpose)[0]
    assert walk is not None
    some = struct((4,), jnp.int32)
    arrays = tuple(struct((4,) * rank, jnp.int32) for rank in layout.ranks)

    def look(s: Any, i: Array, e: Array) -> Any:
        return walk.span(s, 4, 4, i), walk.far(s, 4, 4, i, e), walk.tag(s, 4, 4, i, e)

    try:
        jax.eval_shape(look, arrays, some, some)
    except TypeError:  # JAX's errors about values that are not known yet are TypeErrors
        return False
    return True


@LISTED.kernel('jax_raw', *_PLATFORMS, supports=_lines_in_jax)
def product(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Add the edges of listed lines; the time is that of the listed edges, and of the list."""
    walk = spec.layout.towards(spec.transpose)[0]
    assert walk is not None

    def kernel(*operands: Array) -> Array:
        params, (*arrays, ids, number), x = spec.split(operands)
        acc, dtype = _accumulator(params[0].dtype), params[0].dtype
        edges = spec.layout.count(tuple(arrays), spec.shape)
        core = outs[0].shape[spec.levels :]
        if 0 in (*core, *spec.shape, edges, ids.size):
            return jnp.zeros(core, dtype)
        kind = jnp.int32 if edges < 2**31 else jnp.int64
        live = jnp.arange(ids.size) < number.reshape(()).astype(kind)
        live &= within(ids, spec.extents[1])
        lines = _Lines(walk, arrays, spec, jnp.where(live, ids, 0).astype(kind), live, edges)
        on = spec.event.active(x) if x.ndim == 2 else None

        def add(block: Array, y: Array) -> Array:
            source, target, tag, sound = lines.edges(block * width + jnp.arange(width, dtype=kind))
            weight = jnp.asarray(spec.weight.value(params, tag), acc)
            if on is not None:
                weight = weight[:, None] if weight.ndim else weight
                sound = sound[:, None] & _take(on, source)
            return y.at[target].add(jnp.where(sound, weight, 0), mode='drop')

        width = max(1, min(BLOCK // max((1, *core[1:])), edges))
        y = _in_blocks(add, lines.total, width, [jnp.zeros(core, acc), *operands])
        return y.astype(dtype)

    return _over_levels(kernel, spec.levels, outs[0])


class _Lines:
    """The edges of listed lines, numbered through."""

    def __init__(
        self, walk: Walk, arrays: Sequence[Array], spec: Spec, ids: Array, live: Array, edges: int
    ) -> None:
        self.walk, self.arrays, self.spec, self.ids, self.count = walk, arrays, spec, ids, edges
        first, last = (
            jnp.clip(jnp.asarray(end), 0, edges).astype(ids.dtype)
            for end in walk.span(arrays, *spec.shape, ids)
        )
        length = jnp.where(live, jnp.maximum(last - first, 0), 0)
        self.ends = jnp.cumsum(length, dtype=ids.dtype)
        self.shift = first - (self.ends - length)  # from an edge's number to the edge
        self.total = self.ends[-1]

    def edges(self, number: Array) -> tuple[Array, Array, Array, Array]:
        """Return source, target, tag and soundness of edges by their numbers."""
        # unrolled, the search is one kernel on a GPU instead of one a step
        line = jnp.searchsorted(self.ends, number, side='right', method='scan_unrolled')
        line = jnp.minimum(line, self.ends.size - 1)
        edge = jnp.clip(number + self.shift[line], 0, self.count - 1)
        place = (self.arrays, *self.spec.shape, self.ids[line], edge)
        tag = self.walk.tag(*place)
        sound = (number < self.total) & within(tag, self.count)
        target = safe(self.walk.far(*place), self.spec.extents[0])
        return self.ids[line], target, safe(tag, self.count - 1), sound


def _in_blocks(
    add: Callable[[Array, Array], Array], total: Array, width: int, start: Sequence[Array]
) -> Array:
    """Add all blocks, in sums that are short enough for float32 and then added themselves."""
    zero, total, *_ = align_varying([start[0], total, *start[1:]])
    blocks, many = -(-total // width), max(1, EDGE_BLOCK // width)

    def stretch(k: Array, y: Array) -> Array:
        last = jnp.minimum((k + 1) * many, blocks)
        part: Array = jax.lax.fori_loop(k * many, last, add, zero)
        return y + part

    y: Array = jax.lax.fori_loop(0, -(-blocks // many), stretch, zero)
    return y


@LISTED.kernel('numba', 'cpu', supports=_has_lines)
def walk_lines(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Go through the listed lines; a batch of very many edges is left to the ordinary kernel."""
    (out,) = outs

    def kernel(*operands: Array) -> list[Array]:
        params, (*arrays, ids, number), x = spec.split(operands)
        (w,) = params
        vector = x.ndim - spec.levels == 1
        edges = spec.layout.count(own_parts(arrays, spec.levels), spec.shape)
        if not vector and edges >= SPLIT_EDGES:
            y: list[Array] = numba_cpu.product(spec=spec, outs=outs)(w, *arrays, x)
            return y
        half = w.dtype.name if w.dtype.name in _HALVES else None
        names = (spec.layout.name, _layout_key(spec.layout), spec.transpose, w.shape[-1] == 1, half)
        factory = 'listed_vector' if vector else 'listed_columns'
        recipe = native.Recipe(_HOME + 'numba_listed', factory, names)
        extent = jnp.full(number.shape, spec.extents[1], number.dtype)
        head = [w, *arrays, ids, jnp.concatenate([number, extent], -1)]
        batch = [] if vector else [spec.event.active(x)]
        result = [_like(out.shape, _accumulator(w.dtype))]
        (value,) = native.call(recipe, [*head, *batch], result, levels=spec.levels)
        return [value.astype(out.dtype)]

    return kernel
