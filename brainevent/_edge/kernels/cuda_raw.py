# SPDX-License-Identifier: Apache-2.0
"""The ``cuda_raw`` backend: which hand-written CUDA kernel serves which call."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.event import Event
from brainevent._edge.kernels import dense
from brainevent._edge.kernels.cuda_units import facts, kind_of, run, stored
from brainevent._edge.kernels.jax_raw import _accumulator
from brainevent._edge.kernels.listed import list_in_jax
from brainevent._edge.kernels.pick import pick_reference
from brainevent._edge.kernels.update import _update_reference as update_reference
from brainevent._edge.layout import Layout, Twin
from brainevent._edge.listed import COMPACT
from brainevent._edge.mirror import MIRROR, by_sorting
from brainevent._edge.operator import PRODUCT, SAMPLE, Spec, struct
from brainevent._edge.pick import PICK
from brainevent._edge.scale import SCALE
from brainevent._edge.update import CLIPPED, UPDATE
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]

SPLIT_EDGES = 1 << 23  # float32 sums that threads share are held in double beyond
MOST_LEVELS = 6  # as in cuda/parts.cuh
# ---- which walk ---------------------------------------------------------------------------------


def _twin(layout: Layout, columns: bool) -> Twin | None:
    walk = layout.cowalk if columns else layout.walk
    return walk.cuda if walk else None


def _product_walk(spec: Spec) -> tuple[Twin, bool] | None:
    """Choose as the native kernels do: events scatter where they can, numbers gather.

    The second value says that the walk goes along columns of the matrix.
    """
    layout, along = spec.layout, not spec.transpose  # lines of the input are columns, or rows
    inward, outward = _twin(layout, along), _twin(layout, not along)
    direct = (layout.walk if along else layout.cowalk) if outward else None
    if outward and (inward is None or (not spec.event.skips and direct and direct.direct)):
        return outward, not along
    if inward:
        return inward, along
    return (layout.cuda_edge, False) if layout.cuda_edge else None


def _any_walk(spec: Spec, inward: bool = False) -> tuple[Twin, bool] | None:
    """Choose a walk along rows, or with ``inward`` along lines of the input; else another."""
    first = inward and not spec.transpose
    for columns in (first, not first):
        twin = _twin(spec.layout, columns)
        if twin:
            return twin, columns
    return (spec.layout.cuda_edge, False) if spec.layout.cuda_edge else None


def _has_twin(*, spec: Spec, **_: Any) -> bool | str:
    if spec.levels >= MOST_LEVELS:
        return f'batches are nested more than {MOST_LEVELS - 1} deep'
    if spec.weight.name == 'stored' and _any_walk(spec):
        return True
    return f'the layout {spec.layout.name!r} offers no CUDA walk'


# ---- kernels ------------------------------------------------------------------------------------


@PRODUCT.kernel('cuda_raw', 'gpu', supports=_has_twin, asdefault=True)
def product(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Gather or scatter; events in rows are a batch of vectors, numbers in rows are turned."""
    (out,) = outs
    chosen = _product_walk(spec)
    assert chosen is not None  # `_has_twin` has looked
    twin, columns = chosen

    def kernel(*operands: Array) -> list[Array]:
        params, arrays, x = spec.split(operands)
        w = params[0].astype(stored(params[0].dtype))
        acc, levels, shape = _accumulator(w.dtype), spec.levels, out.shape
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        edges = spec.layout.count(_core(arrays, levels), spec.shape)
        used = [arrays[k] for k in twin.arrays]
        turned = spec.rows and not spec.event.skips
        if turned:
            x, shape = x.swapaxes(-1, -2), (*shape[:-2], shape[-1], shape[-2])
        elif spec.rows:
            w, *used = (jnp.expand_dims(a, levels) for a in (w, *used))
            levels += 1
        split = acc == jnp.float32 and edges > SPLIT_EDGES
        wide = struct((2 * size_of(shape) if split else 0,), jnp.uint32)
        y, _ = run(
            'product', twin, kind_of(w.dtype), [w, *used, x], [struct(shape, acc), wide],
            **facts(spec, columns, levels),
        )  # fmt: skip
        return [(y.swapaxes(-1, -2) if turned else y).astype(out.dtype)]

    return kernel


@SAMPLE.kernel('cuda_raw', 'gpu', supports=_has_twin, asdefault=True)
def sample(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Walk along rows unless edges have no order; a batch is summed in columns."""
    (out,) = outs
    chosen = _any_walk(spec)
    assert chosen is not None
    twin, columns = chosen

    def kernel(*operands: Array) -> list[Array]:
        *arrays, x, y = operands
        acc = _accumulator(stored(y.dtype))
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        if spec.rows:
            x, y = x.swapaxes(-1, -2), y.swapaxes(-1, -2)
        used = [arrays[k] for k in twin.arrays]
        (value,) = run(
            'sample', twin, kind_of(acc), [*used, x, y.astype(acc)], [struct(out.shape, acc)],
            **facts(spec, columns, spec.levels),
        )  # fmt: skip
        return [value.astype(out.dtype)]

    return kernel


def _has_order(*, spec: Spec, outs: Outs, **_: Any) -> bool | str:
    real = jnp.issubdtype(outs[0].dtype, jnp.floating)
    return _has_twin(spec=spec) if real else 'weights are no floats'


CLIPPED.kernel('cuda_raw', 'gpu', asdefault=True)(update_reference)


@CLIPPED.kernel('cuda_raw', 'gpu', supports=_has_order)
@UPDATE.kernel('cuda_raw', 'gpu', supports=_has_twin, asdefault=True)
def update(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Walk lines that fired if there are such lines, else ask every edge; in place."""
    (out,) = outs
    chosen = _any_walk(spec, inward=True)
    assert chosen is not None
    twin, columns = chosen

    def kernel(w: Array, *operands: Array) -> list[Array]:
        clip = len(operands) - spec.edges == 3
        *arrays, x, y = operands[:-1] if clip else operands
        acc = _accumulator(stored(w.dtype))
        w = jnp.broadcast_to(w.astype(acc), out.shape)  # memory of its own for every sample
        bounds = operands[-1].astype(acc) if clip else jnp.zeros((1,) * spec.levels + (2,), acc)
        used = [arrays[k] for k in twin.arrays]
        (value,) = run(
            'update', twin, kind_of(acc),
            [w, *used, spec.event.active(x), y.astype(acc), bounds], [struct(out.shape, acc)],
            input_output_aliases={0: 0}, clip=clip, **facts(spec, columns, spec.levels),
        )  # fmt: skip
        return [value.astype(out.dtype)]

    return kernel


@SCALE.kernel('cuda_raw', 'gpu', supports=_has_twin, asdefault=True)
def scale(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Walk along rows unless edges have no order."""
    (out,) = outs
    chosen = _any_walk(spec)
    assert chosen is not None
    twin, columns = chosen

    def kernel(w: Array, *operands: Array) -> list[Array]:
        *arrays, y = operands
        acc = _accumulator(stored(w.dtype))
        used = [arrays[k] for k in twin.arrays]
        (value,) = run(
            'scale', twin, kind_of(acc), [w.astype(acc), *used, y.astype(acc)],
            [struct(out.shape, acc)], **facts(spec, columns, spec.levels),
        )  # fmt: skip
        return [value.astype(out.dtype)]

    return kernel


# Where no lines are to be walked, XLA sorts what is asked for.
PICK.kernel('cuda_raw', 'gpu', asdefault=True)(pick_reference)


def _has_lines(*, spec: Spec, elements: bool, **_: Any) -> bool | str:
    sides = (not spec.transpose, spec.transpose)[: 2 if elements else 1]
    found = any(_twin(spec.layout, columns) for columns in sides)
    return _has_twin(spec=spec) if found else 'there are no such lines'


@PICK.kernel('cuda_raw', 'gpu', supports=_has_lines)
def pick(*, spec: Spec, outs: Outs, elements: bool, back: bool, **_: Any) -> Callable[..., Any]:
    """Walk the lines that are asked for; an element lies on two, of which one will do."""
    (out,) = outs
    edges, columns = spec.edges, not spec.transpose
    twin = _twin(spec.layout, columns)
    turned = twin is None
    if twin is None:
        columns = spec.transpose
        twin = _twin(spec.layout, columns)
    assert twin is not None  # `_has_lines` has looked
    chosen = twin

    def kernel(x: Array, *operands: Array) -> list[Array]:
        arrays, ids = operands[:edges], operands[edges:]
        i, j = (ids[0], ids[-1]) if not turned else (ids[-1], ids[0])
        acc = _accumulator(stored(x.dtype))
        used = [arrays[k] for k in chosen.arrays]
        (value,) = run(
            'pick', chosen, kind_of(acc), [x.astype(acc), *used, i, j], [struct(out.shape, acc)],
            elements=elements, back=back, **facts(spec, columns, spec.levels),
        )  # fmt: skip
        return [value.astype(out.dtype)]

    return kernel


def _core(arrays: Sequence[Array], levels: int) -> tuple[Any, ...]:
    return tuple(struct(a.shape[levels:], a.dtype) for a in arrays)


def size_of(shape: Sequence[int]) -> int:
    """Return how many elements an array of a shape has."""
    return int(functools.reduce(lambda a, b: a * b, shape, 1))


# ---- what XLA has already -----------------------------------------------------------------------


def _is_full(*, spec: Spec, **_: Any) -> bool | str:
    ok = spec.layout.name == 'dense' and not spec.event.skips
    return ok or 'for dense matrices and plain numbers only'


MIRROR.kernel('cuda_raw', 'gpu', asdefault=True)(by_sorting)
COMPACT.def_kernel('cuda_raw', 'gpu', list_in_jax, asdefault=True)
PRODUCT.kernel('cuda_raw', 'gpu', supports=_is_full)(dense.product)
SAMPLE.kernel('cuda_raw', 'gpu', supports=dense._is_dense)(dense.sample)
