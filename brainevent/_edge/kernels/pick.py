# SPDX-License-Identifier: Apache-2.0
"""Picking in both CPU backends: which native kernel serves which layout, and plain JAX."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.kernels.jax_raw import _PLATFORMS, _accumulator, _over_levels
from brainevent._edge.kernels.numba_cpu import (
    _HALVES,
    _HOME,
    _layout_key,
    _like,
    _walkable,
    extents,
)
from brainevent._edge.layout import within
from brainevent._edge.operator import Spec
from brainevent._edge.pick import PICK
from brainevent._op.numba_ffi import native
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]
FEW = 8  # so many comparisons of every edge take less time than to sort and search


@PICK.kernel('numba', 'cpu', supports=_walkable)
def pick(
    *, spec: Spec, outs: Outs, elements: bool, back: bool, **_: Any
) -> Callable[..., list[Array]]:
    """Walk the lines that are asked for; where there are no such lines, ask every edge."""
    (out,) = outs
    layout, edges = spec.layout, spec.edges
    inward, outward = layout.towards(spec.transpose)
    # an element lies on two lines: the one that can be walked will do
    turned = elements and inward is None and outward is not None
    direction = spec.transpose is not turned
    against = 'pick_edges' if layout.edge else 'pick_against_lines'
    factory = 'pick_lines' if inward is not None or turned else against

    def kernel(x: Array, *operands: Array) -> list[Array]:
        arrays, ids = operands[:edges], operands[edges:]
        ids = ids[::-1] if turned else ids
        half = x.dtype.name if x.dtype.name in _HALVES and not back else None
        acc = _accumulator(x.dtype)
        one = not back and x.shape[-1] == 1
        names = (layout.name, _layout_key(layout), direction, elements, back, one, half)
        ins = [x if half else x.astype(acc), extents(spec), *arrays, *ids]
        recipe = native.Recipe(_HOME + 'numba_pick', factory, names)
        value = native.call(recipe, ins, [_like(out.shape, acc)], levels=spec.levels)[0]
        return [value.astype(out.dtype)]

    return kernel


@PICK.kernel('jax_raw', *_PLATFORMS)
def pick_reference(
    *, spec: Spec, outs: Outs, elements: bool, back: bool, **_: Any
) -> Callable[..., list[Array]]:
    """Find for every edge the first place where its weight is asked for."""
    edges = spec.edges

    def kernel(x: Array, *operands: Array) -> Array:
        arrays, ids = operands[:edges], operands[edges:]
        row, col = spec.layout.edges(tuple(arrays), spec.shape)
        source, target = (row, col) if spec.transpose else (col, row)
        count, wanted = source.shape[0], ids[0].shape[0]
        acc = _accumulator(x.dtype)
        core = (wanted,) if elements else (wanted, spec.extents[0])
        if 0 in (count, *core):
            return jnp.zeros((count,) if back else core, x.dtype)
        inside = within(row, spec.shape[0]) & within(col, spec.shape[1])
        ends = (source, target) if elements else (source,)
        firsts = _Places(ids)
        place = jnp.where(inside, firsts.find(ends), wanted)
        at = (place,) if elements else (place, target)
        own = firsts.find(ids)
        if back:
            sums = jnp.zeros(core, acc).at[own].add(x.astype(acc))
            return sums.at[at].get(mode='fill', fill_value=0).astype(x.dtype)
        weights = jnp.broadcast_to(x.astype(acc), (count,))
        return jnp.zeros(core, acc).at[at].add(weights, mode='drop')[own].astype(x.dtype)

    return _over_levels(kernel, spec.levels, outs[0])


class _Places:
    """Places in a list of lines, or of pairs of line and end."""

    def __init__(self, ids: Sequence[Array]) -> None:
        self.ids, self.count = ids, ids[0].shape[0]
        if self.count > FEW:
            self.order = jnp.lexsort(ids[::-1]).astype(jnp.int32)
            self.sorted = [x[self.order] for x in ids]

    def find(self, ids: Sequence[Array]) -> Array:
        """Return where each is for the first time; the number of places if it is nowhere."""
        place = jnp.full(ids[0].shape, self.count, jnp.int32)
        if self.count > FEW:
            at = self._search(ids)
            found = jnp.stack([m.at[at].get(mode='clip') == x for m, x in self._pairs(ids)])
            return jnp.where(found.all(0), self.order.at[at].get(mode='clip'), place)
        for k in reversed(range(self.count)):
            met = [mine[k] == x for mine, x in zip(self.ids, ids, strict=True)]
            place = jnp.where(functools.reduce(operator.and_, met), k, place)
        return place

    def _pairs(self, ids: Sequence[Array]) -> list[tuple[Array, Array]]:
        return [(mine, x.astype(mine.dtype)) for mine, x in zip(self.sorted, ids, strict=True)]

    def _search(self, ids: Sequence[Array]) -> Array:
        """Return how many come before each in the sorted list."""
        (line, x), *more = self._pairs(ids)
        low = jnp.searchsorted(line, x).astype(jnp.int32)
        if not more:
            return low
        ((end, y),) = more
        high = jnp.searchsorted(line, x, side='right').astype(jnp.int32)

        def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = (low + high) // 2
            before = (low < high) & (end.at[middle].get(mode='clip') < y)
            return jnp.where(before, middle + 1, low), jnp.where(before, high, middle)

        bounds: tuple[Array, Array] = jax.lax.fori_loop(
            0, self.count.bit_length(), halve, (low, high)
        )
        return bounds[0]
