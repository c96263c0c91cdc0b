# SPDX-License-Identifier: Apache-2.0
"""What to measure of an operator on edges: operands of a common size, made alike for all families.

A family says nothing about measurements. Its operators are found in the tables of families by what
they are, their structure is drawn by the entry of their layout in `STRUCTURES`, and all else
follows from it.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._edge import materialise, mirror
from brainevent._edge.event import Event
from brainevent._edge.layout import LAYOUTS, Layout
from brainevent._edge.listed import list_active
from brainevent._edge.operands import as_index, check_shape
from brainevent._edge.operator import EdgeOperator, Spec
from brainevent._edge.pick import PICKS, Picks
from brainevent._edge.product import FAMILIES, Products
from brainevent._edge.scale import SCALES, Scales
from brainevent._edge.update import UPDATES, Updates
from brainevent._edge.weight import CONSTANT, STORED, Weight
from brainevent._error import BenchmarkDataFnNotProvidedError, explain
from brainevent._op import BenchmarkConfig, XLACustomKernel

__all__ = ['ACTIVE', 'BATCH', 'STRUCTURES', 'Structure']

ACTIVE, BATCH, PICKED, LISTED = 0.01, 16, 200, 64

Arrays = tuple[Any, ...]


class Structure(NamedTuple):
    """A matrix to measure with: its shape, structure arrays, and words about its size."""

    shape: tuple[int, int]
    arrays: Arrays
    data_kwargs: dict[str, Any]


STRUCTURES: dict[str, Callable[[], Structure]] = {}
"""How to draw a matrix of a common size, by the name of the layout."""


class Use(NamedTuple):
    """One operator in use."""

    layout: Layout
    weight: Weight
    directions: tuple[bool, ...]
    operands: Callable[['Hand'], Arrays]
    run: Callable[[Spec, Any, Arrays], Any]
    event: Event = Event.REAL


class Hand:
    """Deals the operands of one matrix, always the same ones."""

    def __init__(self, spec: Spec, arrays: Arrays) -> None:
        self.spec, self.arrays = spec, arrays
        self.count = spec.layout.count(arrays, spec.shape)
        self.rng = np.random.default_rng(1)

    def numbers(self, *shape: int) -> Any:
        """Deal numbers between one half and one."""
        return jnp.asarray(self.rng.uniform(0.5, 1, shape), jnp.float32)

    def edges(self) -> Any:
        """Deal a number for every edge."""
        return self.numbers(self.count)

    def params(self) -> Arrays:
        """Deal parameters of weights."""
        count = self.count if self.spec.weight is STORED else 1
        return tuple(self.numbers(count) for _ in range(self.spec.weight.params))

    def input(self, *batch: int) -> Any:
        """Deal an input; of events few are active."""
        shape = (self.spec.extents[1], *batch)
        if self.spec.event is Event.REAL:
            return self.numbers(*shape)
        active = jnp.asarray(self.rng.random(shape) < ACTIVE)
        return active if self.spec.event is Event.BINARY else active * self.numbers(*shape)

    def output(self, *batch: int) -> Any:
        """Deal numbers for the other side."""
        return self.numbers(self.spec.extents[0], *batch)

    def ids(self, side: int) -> Any:
        """Deal places on the side of the input (1) or of the output (0)."""
        return jnp.asarray(self.rng.integers(0, self.spec.extents[side], PICKED), jnp.int32)


# ---- the operators of each kind of family ------------------------------------------------------

BOTH = (False, True)


def _of_products(family: Products) -> Iterator[tuple[XLACustomKernel, Use]]:
    layout, weight = family.layout, family.weight

    def product(op: XLACustomKernel, spec: Spec, backend: Any, operands: Arrays) -> Any:
        params, arrays, x = spec.split(operands)
        named = zip(layout.arrays, arrays, strict=True)
        ids = [a if isinstance(a, jax.Array) else as_index(op.name, n, a) for n, a in named]
        return family(
            op.name, params, ids, x,
            shape=spec.shape, transpose=spec.transpose, event=spec.event, backend=backend,
        )  # fmt: skip

    def sample(spec: Spec, backend: Any, operands: Arrays) -> Any:
        *arrays, x, y = operands
        return family.sample(arrays, x, y, spec, backend)

    def listed(spec: Spec, backend: Any, operands: Arrays) -> Any:
        return family.listed.bind(*spec.split(operands), spec, backend)

    def for_listed(hand: Hand, batch: Arrays) -> Arrays:
        x = hand.input(*batch)
        return (*hand.params(), *hand.arrays, *list_active(x.any(1) if batch else x), x)

    for rank, op in family.listed.ops.items():
        operands = functools.partial(for_listed, batch=(BATCH,) * (rank - 1))
        yield op, Use(layout, weight, BOTH, operands, listed, Event.BINARY)

    for (event, rank), op in family.ops.items():
        batch = (BATCH,) * (rank - 1)

        def for_product(hand: Hand, batch: Any = batch) -> Arrays:
            return (*hand.params(), *hand.arrays, hand.input(*batch))

        def for_sample(hand: Hand, batch: Any = batch) -> Arrays:
            return (*hand.arrays, hand.input(*batch), hand.output(*batch))

        run = functools.partial(product, op)
        yield op, Use(layout, weight, BOTH, for_product, run, event)
        if weight is STORED:  # the gradient of others takes no sample
            yield family.samples[event, rank], Use(layout, weight, BOTH, for_sample, sample, event)


def _of_updates(updates: Updates) -> Iterator[tuple[XLACustomKernel, Use]]:
    def free(hand: Hand) -> Arrays:
        return (hand.edges(), *hand.arrays, hand.input(), hand.output())

    def held(hand: Hand) -> Arrays:
        return (*free(hand), jnp.array([0.6, 0.9]))

    def run(spec: Spec, backend: Any, operands: Arrays) -> Any:
        w, *rest = operands
        x, y, *bounds = rest[spec.edges :]
        return updates.bind(w, rest[: spec.edges], x, y, spec, backend, *bounds)

    layout, weight = updates.products.layout, updates.products.weight
    for rows, op in ((True, updates.pre), (False, updates.post)):
        for each, operands in ((op, free), (updates.clipped[rows], held)):
            yield each, Use(layout, weight, (rows,), operands, run, Event.BINARY)


def _of_scales(scales: Scales) -> Iterator[tuple[XLACustomKernel, Use]]:
    def for_one(hand: Hand) -> Arrays:
        return (hand.edges(), *hand.arrays, hand.output())

    def for_many(hand: Hand) -> Arrays:
        arrays = (a[None] for a in hand.arrays)
        return (hand.edges()[None], *arrays, hand.output(BATCH).T)

    def run(spec: Spec, backend: Any, operands: Arrays, levels: int) -> Any:
        w, *arrays, y = operands
        return scales.bind(w, arrays, y, spec.but(levels=levels), backend)

    family = scales.products
    for op, deal, levels in ((scales.one, for_one, 0), (scales.many, for_many, 1)):
        act = functools.partial(run, levels=levels)
        yield op, Use(family.layout, family.weight, BOTH, deal, act)


def _of_picks(picks: Picks) -> Iterator[tuple[XLACustomKernel, Use]]:
    family = picks.products

    def run(spec: Spec, backend: Any, operands: Arrays, back: bool) -> Any:
        end = 1 + spec.edges
        act = picks.back if back else picks.bind
        return act(operands[0], operands[1:end], operands[end:], spec, backend)

    def deal(hand: Hand, elements: bool, back: bool) -> Arrays:
        ids = (hand.ids(1), hand.ids(0)) if elements else (hand.ids(1),)
        lines = hand.numbers(*((PICKED,) if elements else (PICKED, hand.spec.extents[0])))
        return (lines if back else hand.edges(), *hand.arrays, *ids)

    for (elements, back), op in picks.ops.items():
        operands = functools.partial(deal, elements=elements, back=back)
        act = functools.partial(run, back=back)
        yield op, Use(family.layout, family.weight, BOTH, operands, act)


def _of_mirrors() -> Iterator[tuple[XLACustomKernel, Use]]:
    def run(op: XLACustomKernel, spec: Spec, backend: Any, arrays: Arrays) -> Any:
        ask = functools.partial(mirror.mirror, spec.layout, shape=spec.shape)
        return op(*arrays, outs=jax.eval_shape(ask, arrays), spec=spec, backend=backend)

    for layout, op in mirror._ops.items():
        act = functools.partial(run, op)
        yield op, Use(LAYOUTS[layout], STORED, (False,), lambda hand: hand.arrays, act)


def _of_dense(dense: materialise.Dense) -> Use:
    def run(spec: Spec, backend: Any, operands: Arrays) -> Any:
        many = spec.weight.params
        return dense.bind(operands[:many], operands[many:], spec, backend)

    def operands(hand: Hand) -> Arrays:
        return (*hand.params(), *hand.arrays)

    return Use(dense.layout, dense.weight, (False,), operands, run)


def _of_listings() -> Iterator[tuple[XLACustomKernel, Use]]:
    def run(op: XLACustomKernel, spec: Spec, backend: Any, operands: Arrays) -> Any:
        *arrays, ptr = operands
        size = spec.shape[0] * LISTED
        ask = functools.partial(materialise.list_edges, spec.layout, shape=spec.shape, size=size)
        outs = jax.eval_shape(lambda a, p: ask(a, ptr=p), tuple(arrays), ptr)
        return op(*operands, outs=outs, spec=spec, backend=backend)

    def operands(hand: Hand) -> Arrays:
        ptr = jnp.arange(hand.spec.shape[0] + 1, dtype=jnp.int32) * LISTED
        return (*hand.arrays, ptr)

    for layout, op in materialise._listings.items():
        act = functools.partial(run, op)
        yield op, Use(LAYOUTS[layout], CONSTANT, (False,), operands, act)


def uses() -> dict[XLACustomKernel, Use]:
    """Return what is known of every operator on edges."""
    tables: tuple[tuple[Callable[[Any], Any], dict[str, Any]], ...] = (
        (_of_products, FAMILIES),
        (_of_updates, UPDATES),
        (_of_scales, SCALES),
        (_of_picks, PICKS),
    )
    found = {op: use for of, table in tables for f in table.values() for op, use in of(f)}
    drawn = (getattr(family, 'dense', None) for family in FAMILIES.values())
    dense = {d.op: _of_dense(d) for d in drawn if d is not None}
    return {**found, **dense, **dict(_of_mirrors()), **dict(_of_listings())}


def _use_of(op: XLACustomKernel) -> Use:
    use = uses().get(op)
    if use is None or use.layout.name not in STRUCTURES:
        raise BenchmarkDataFnNotProvidedError(
            explain(
                f'{op.name}.benchmark',
                'the operator does not know what to measure.',
                expected='an entry in `brainevent._edge.measure.STRUCTURES` for its layout',
                got='none',
                remedy='give it data of its own with `def_call` and `def_benchmark_data`',
            )
        )
    return use


def call(
    op: XLACustomKernel,
    *operands: Any,
    shape: Any,
    transpose: bool | None = None,
    backend: Any = None,
) -> Any:
    """Call an operator on operands as its kernels get them: weights, structure, input."""
    use = _use_of(op)
    direction = use.directions[0] if transpose is None else bool(transpose)
    spec = Spec(use.layout, use.weight, check_shape(op.name, shape), direction, use.event)
    return use.run(spec, backend, operands)


def configs(op: XLACustomKernel, *, platform: str) -> list[BenchmarkConfig]:
    """Return the configurations to measure an operator with: one for each direction."""
    use = _use_of(op)
    shape, arrays, words = _drawn(use.layout.name)
    made = []
    for transpose in use.directions:
        spec = Spec(use.layout, use.weight, shape, transpose, use.event)
        active = ACTIVE if use.event.skips else 1.0
        made.append(
            BenchmarkConfig(
                'transposed' if transpose else 'straight',
                use.operands(Hand(spec, arrays)),
                {'shape': shape, 'transpose': transpose},
                {**words, 'active': active},
            )
        )
    return made


@functools.lru_cache(maxsize=16)
def _drawn(layout: str) -> Structure:
    return STRUCTURES[layout]()


def _describe(op: XLACustomKernel) -> None:
    op.def_call(functools.partial(call, op))
    op.def_benchmark_data(functools.partial(configs, op))


EdgeOperator.observers.append(_describe)
