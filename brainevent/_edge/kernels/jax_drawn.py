# SPDX-License-Identifier: Apache-2.0
"""Reference kernels of drawn layouts in plain JAX: many blocks side by side, edge after edge.

A lane draws one block of one line. Lanes go on together until the longest block is through, then
the next blocks take their turn. Nothing is as long as the list of edges: memory stays in
proportion to operands and result.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brainevent._compat import align_varying
from brainevent._edge import random
from brainevent._edge.kernels.jax_raw import _PLATFORMS, _accumulator, _over_levels
from brainevent._edge.layout import Draw
from brainevent._edge.materialise import DENSE, LISTING, is_drawn
from brainevent._edge.operator import PRODUCT, Spec
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]

LANES = {'cpu': 1 << 10, 'gpu': 1 << 16, 'tpu': 1 << 16}  # as many as keep a device busy
LINES = 1 << 22  # lines whose sums are added up apart, so that float32 sums do not stick at 2**24
ITEMS = 1 << 31  # blocks that one group of lines may have


class Edges(NamedTuple):
    """One edge for each lane: whether it is there, its ends, and its key."""

    there: Array
    line: Array
    place: Array
    key: tuple[Array, Array]


class _Lanes(NamedTuple):
    alive: Array
    line: Array
    place: Array  # where the next gap begins
    last: Array
    state: tuple[Array, Array]


class Walker:
    """Goes along all edges of lines of a drawn layout of which ``width`` positions are looked at.

    Parameters
    ----------
    draw : Draw
    arrays : sequence of Array
        Structure: probability, seed, and what thins.
    width : int
        Length of the lines.
    """

    def __init__(self, draw: Draw, arrays: Sequence[Array], width: int) -> None:
        prob, seed, *more = arrays
        bits = jax.lax.bitcast_convert_type(prob.astype(jnp.float32), jnp.uint32)
        self.rule = random.rule_of(bits.reshape(()))
        self.root = (seed[..., 0].reshape(()), seed[..., 1].reshape(()))
        self.draw, self.more, self.width = draw, tuple(more), width
        self.blocks = random.blocks(self.rule, jnp.uint32(width))

    def _start(self, line: Array, block: Array, alive: Array) -> _Lanes:
        state = random.block_key(random.stream_key(self.root, line), block)
        here = block << self.rule.width
        last = jnp.minimum(here + (jnp.uint32(1) << self.rule.width), jnp.uint32(self.width))
        return _Lanes(alive, line, here, last, state)

    def _next(self, lanes: _Lanes) -> tuple[_Lanes, Edges]:
        state, key = random.next_key(lanes.state)
        place = lanes.place + random.gap(self.rule, key)
        alive = lanes.alive & (place < lanes.last)
        there = alive
        if self.draw.keep is not None:
            word = random.draw(key, jnp.ones_like(place))[0]
            ends = lanes.line.astype(jnp.int32), place.astype(jnp.int32)
            there = alive & self.draw.keep(self.more, *ends, word)
        edges = Edges(there, lanes.line, place, key)
        return _Lanes(alive, lanes.line, place + jnp.uint32(1), lanes.last, state), edges

    def lanes(self, most: int, bound: int, columns: int = 1) -> int:
        """Return how many blocks of at most ``bound`` lines to draw side by side."""
        return max(1, min(max(most // columns, 256), bound * (self.width // 64 + 1)))

    def go(
        self,
        lines: Callable[[Array], Array],
        count: Array,
        bound: int,
        lanes: int,
        carry: Any,
        visit: Callable[[Any, Edges], Any],
        leave: Callable[[Any, Array], Any] = lambda carry, line: carry,
    ) -> Any:
        """Visit all edges of ``count`` lines, at most ``bound``: a carry goes from edge to edge.

        ``lines(k)`` is the number of line ``k``. ``visit(carry, edges)`` takes a set of edges, one
        for each lane; ``leave(carry, line)`` is called when lanes are through with a block. Blocks
        are counted in 32 bits, within groups of lines.
        """
        per_line = jnp.maximum(self.blocks, jnp.uint32(1))
        group = min(bound, max(1, ITEMS // (self.width // 64 + 1)))

        def turn(state: Any) -> Any:
            base, first, carry = state
            item = first + jnp.arange(lanes, dtype=jnp.uint32)
            here = jnp.minimum(count - base, jnp.uint32(group)) * self.blocks
            line = lines(base + jnp.minimum(item // per_line, jnp.uint32(group - 1)))
            start = self._start(line.astype(jnp.uint32), item % per_line, item < here)

            def step(state: tuple[_Lanes, Any]) -> tuple[_Lanes, Any]:
                after, edges = self._next(state[0])
                return after, visit(state[1], edges)

            _, carry = jax.lax.while_loop(lambda s: jnp.any(s[0].alive), step, (start, carry))
            first = first + jnp.uint32(lanes)
            through = first >= here
            base = base + jnp.where(through, jnp.uint32(group), jnp.uint32(0))
            return base, jnp.where(through, jnp.uint32(0), first), leave(carry, start.line)

        zero = self.blocks ^ self.blocks
        state = (jnp.where(self.blocks > 0, zero, count), zero, carry)
        return jax.lax.while_loop(lambda s: s[0] < count, turn, state)[2]


def product(*, spec: Spec, outs: Outs, most: int, **_: Any) -> Callable[..., Any]:
    """``y[target] += weight * e(x)[source]``, over the edges of active lines where that helps."""

    def kernel(*operands: Array) -> Array:
        params, arrays, x = spec.split(operands)
        out, x = outs[0].dtype, x.T if spec.rows and x.ndim == 2 else x
        if 0 in (*spec.shape, *x.shape):
            return jnp.zeros(outs[0].shape[spec.levels :], out)
        acc = _accumulator(params[0].dtype)
        aligned = align_varying([*params, *arrays, x])
        params, arrays, x = spec.split(aligned)
        params = tuple(p.reshape(()).astype(acc) for p in params)
        way = _scatter if spec.transpose else _gather
        y = way(spec, params, arrays, x, acc, most).astype(out)
        return y.T if spec.rows and y.ndim == 2 else y

    return _over_levels(kernel, spec.levels, outs[0])


def _terms(spec: Spec, params: Any, edges: Edges, x: Array, at: Array, acc: Any) -> Array:
    """Return what edges add for what stands at one of their ends."""
    wide = (-1,) + (1,) * (x.ndim - 1)
    element = x.at[at].get(mode='clip')
    on = edges.there.reshape(wide)
    if spec.event.skips:
        on = on & spec.event.active(element)
    weight = spec.weight.of_edges(params, edges.key)
    weight = weight.reshape(wide) if weight.ndim else weight
    return jnp.where(on, weight * spec.event.counts(element, acc), jnp.zeros((), acc))


def _scatter(spec: Spec, params: Any, arrays: Any, x: Array, acc: Any, most: int) -> Array:
    """Go along lines of the input, active ones where silence counts nothing."""
    (m, n), draw = spec.shape, spec.layout.draw
    assert draw is not None
    walker = Walker(draw, arrays, n)
    if spec.event.skips:
        active = spec.event.active(x)
        active = active.any(1) if x.ndim == 2 else active
        ids = jnp.nonzero(active, size=m, fill_value=0)[0].astype(jnp.uint32)
        count = active.sum(dtype=jnp.uint32)
    else:
        ids, count = jnp.arange(m, dtype=jnp.uint32), jnp.uint32(m)

    def visit(y: Array, edges: Edges) -> Array:
        terms = _terms(spec, params, edges, x, edges.line, acc)
        place = jnp.where(edges.there, edges.place, jnp.uint32(n))
        return y.at[place].add(terms, mode='drop')

    zero, lanes = _zeros((n, *x.shape[1:]), acc, arrays, x), walker.lanes(most, m, x[0].size)
    if m <= LINES:
        return walker.go(lambda i: ids[i], count, m, lanes, zero, visit)  # type: ignore[no-any-return]

    def add_group(k: Array, total: Array) -> Array:
        first = k.astype(jnp.uint32) * jnp.uint32(LINES)
        here = jnp.minimum(count - jnp.minimum(first, count), jnp.uint32(LINES))
        part: Array = walker.go(lambda i: ids[first + i], here, LINES, lanes, zero, visit)
        return total + part

    result: Array = jax.lax.fori_loop(0, -(-m // LINES), add_group, zero)
    return result


def _gather(spec: Spec, params: Any, arrays: Any, x: Array, acc: Any, most: int) -> Array:
    """Go along lines of the output; every lane adds up its block."""
    (m, n), draw = spec.shape, spec.layout.draw
    assert draw is not None
    walker = Walker(draw, arrays, n)
    lanes = walker.lanes(most, m, x[0].size)

    def visit(carry: tuple[Array, Array], edges: Edges) -> tuple[Array, Array]:
        return carry[0], carry[1] + _terms(spec, params, edges, x, edges.place, acc)

    def leave(carry: tuple[Array, Array], line: Array) -> tuple[Array, Array]:
        return carry[0].at[line].add(carry[1]), jnp.zeros_like(carry[1])

    carry = tuple(_zeros((k, *x.shape[1:]), acc, arrays, x) for k in (m, lanes))
    y: Array = walker.go(lambda i: i, jnp.uint32(m), m, lanes, carry, visit, leave)[0]
    return y


def _zeros(shape: Sequence[int], dtype: Any, *like: Any) -> Array:
    """Return zeros that vary over a mesh as the operands do."""
    return align_varying([jnp.zeros(tuple(shape), dtype), *jax.tree.leaves(like)])[0]  # type: ignore[no-any-return]


def dense(*, spec: Spec, outs: Outs, most: int, **_: Any) -> Callable[..., Any]:
    """``out[row, col] = weight``, over all edges."""

    def kernel(*operands: Array) -> Array:
        many = spec.weight.params
        params, arrays = operands[:many], operands[many:]
        (m, n), draw, out = spec.shape, spec.layout.draw, outs[0].dtype
        assert draw is not None
        walker = Walker(draw, arrays, n)
        params = tuple(p.reshape(()) for p in params)

        def visit(grid: Array, edges: Edges) -> Array:
            place = jnp.where(edges.there, edges.place, jnp.uint32(n))
            value = spec.weight.of_edges(params, edges.key)
            return grid.at[edges.line, place].set(value, mode='drop')

        grid = _zeros((m, n), out, params, arrays)
        if 0 in (m, n):
            return grid
        result: Array = walker.go(lambda i: i, jnp.uint32(m), m, walker.lanes(most, m), grid, visit)
        return result

    return _over_levels(kernel, spec.levels, outs[0])


for _platform, _most in LANES.items():
    for _operator, _generator in ((PRODUCT, product), (DENSE, dense)):
        _operator.kernel('jax_raw', _platform, supports=is_drawn)(
            functools.partial(_generator, most=_most)
        )


@LISTING.kernel('jax_raw', *_PLATFORMS, supports=is_drawn)
def listing(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Count edges, and put them where rows begin; one lane goes along all blocks of a row."""
    (m, n), draw, size = spec.shape, spec.layout.draw, outs[1].shape[-1]
    assert draw is not None

    def kernel(*operands: Array) -> list[Array]:
        *arrays, ptr = operands
        walker = Walker(draw, arrays, n)
        lists = [jnp.zeros(o.shape[-1], o.dtype) for o in outs[1:]]
        if 0 in (m, n):
            return [jnp.zeros(m, jnp.int32), *lists]
        line = jnp.arange(m, dtype=jnp.uint32)

        def step(state: Any) -> Any:
            lanes, at, lists = state
            lanes, edges = walker._next(lanes)
            if size:
                place = jnp.where(edges.there & (at < size), at, size)
                found = (edges.place.astype(jnp.int32), *edges.key)
                lists = [  # keys are left out where nobody needs them
                    x.at[place].set(new, mode='drop') if x.size else x
                    for x, new in zip(lists, found, strict=True)
                ]
            return lanes, at + edges.there.astype(jnp.int32), lists

        def through_block(state: Any) -> Any:
            block, at, lists = state
            start = walker._start(line, jnp.broadcast_to(block, (m,)), jnp.ones(m, bool))
            alive = jax.lax.while_loop(lambda s: s[0].alive.any(), step, (start, at, lists))
            return block + jnp.uint32(1), *alive[1:]

        state = (jnp.uint32(0), ptr[:-1], lists)
        state = jax.lax.while_loop(lambda s: s[0] < walker.blocks, through_block, state)
        return [state[1] - ptr[:-1], *state[2]]

    return _over_lists(kernel, spec.levels)


def edge_at(
    draw: Draw | None, arrays: Sequence[Array], width: int, line: Array, place: Array
) -> tuple[Array, tuple[Array, Array]]:
    """Return whether there are edges at some places of some lines, and their keys.

    Each is found by the edges before it in its block; all go on together.
    """
    assert draw is not None
    walker = Walker(draw, arrays, width)
    line, place = line.astype(jnp.uint32), place.astype(jnp.uint32)
    start = walker._start(line, place >> walker.rule.width, place < width)

    def step(state: Any) -> Any:
        lanes, there, key = state
        lanes, edges = walker._next(lanes)
        here = edges.place == place
        found = edges.there & here
        key = tuple(jnp.where(found, new, old) for new, old in zip(edges.key, key, strict=True))
        before = lanes.alive & (edges.place < place)
        return lanes._replace(alive=before), there | found, key

    zero = line ^ line
    state = (start, zero > 0, (zero, zero))
    _, there, key = jax.lax.while_loop(lambda s: s[0].alive.any(), step, state)
    return there, key


def _over_lists(kernel: Callable[..., Any], levels: int) -> Callable[..., Any]:
    """Map a kernel with several results over leading batch axes."""
    for _ in range(levels):
        kernel = _over_list(kernel)
    return kernel


def _over_list(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def mapped(*operands: Array) -> Any:
        size = next((x.shape[0] for x in operands if x.shape[0] != 1), 1)
        return jax.vmap(kernel)(*(jnp.broadcast_to(x, (size, *x.shape[1:])) for x in operands))

    return mapped
