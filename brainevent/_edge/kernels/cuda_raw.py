# SPDX-License-Identifier: Apache-2.0
"""The ``cuda_raw`` backend: which hand-written CUDA kernel serves which call."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.event import Event
from brainevent._edge.kernels import dense
from brainevent._edge.kernels.cuda_units import Path, room_for_double, stored
from brainevent._edge.kernels.jax_raw import _accumulator
from brainevent._edge.kernels.listed import list_in_jax
from brainevent._edge.kernels.numba_cpu import SPLIT_EDGES
from brainevent._edge.kernels.pick import pick_reference
from brainevent._edge.kernels.update import _update_reference as update_reference
from brainevent._edge.layout import Layout, Twin
from brainevent._edge.listed import COMPACT
from brainevent._edge.mirror import MIRROR, by_sorting
from brainevent._edge.operator import PRODUCT, SAMPLE, Spec, own_parts, struct
from brainevent._edge.pick import PICK
from brainevent._edge.scale import SCALE
from brainevent._edge.update import CLIPPED, UPDATE
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]

MOST_LEVELS = 6  # as in cuda/parts.cuh

# ---- which walk ---------------------------------------------------------------------------------


def _twin(layout: Layout, columns: bool) -> Twin | None:
    walk = layout.cowalk if columns else layout.walk
    return walk.cuda if walk else None


def _product_path(spec: Spec) -> Path:
    """Choose as the native kernels do: events scatter where they can, numbers gather."""
    layout, along = spec.layout, not spec.transpose  # lines of the input are columns, or rows
    inward, outward = _twin(layout, along), _twin(layout, not along)
    _, walk = layout.towards(spec.transpose)
    direct = walk is not None and walk.direct
    if outward and (inward is None or (not spec.event.skips and direct)):
        return Path(outward, not along)
    return Path(inward, along) if inward else _found(_any_path(spec))


def _any_path(spec: Spec, first: bool = False) -> Path | None:
    """Choose a walk along rows, or with ``first`` along columns; else another."""
    for columns in (first, not first):
        twin = _twin(spec.layout, columns)
        if twin:
            return Path(twin, columns)
    return Path(spec.layout.cuda_edge) if spec.layout.cuda_edge else None


def _found(path: Path | None) -> Path:
    assert path is not None  # `_has_twin` has looked
    return path


def _has_twin(*, spec: Spec, **_: Any) -> bool | str:
    if spec.levels >= MOST_LEVELS:
        return f'batches are nested more than {MOST_LEVELS - 1} deep'
    if spec.weight.name == 'stored' and _any_path(spec):
        return True
    return f'the layout {spec.layout.name!r} offers no CUDA walk'


# ---- kernels ------------------------------------------------------------------------------------


@PRODUCT.kernel('cuda_raw', 'gpu', supports=_has_twin, asdefault=True)
def product(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Gather or scatter; events in rows are a batch of vectors, numbers in rows are turned."""
    (out,) = outs
    path = _product_path(spec)

    def kernel(*operands: Array) -> list[Array]:
        params, arrays, x = spec.split(operands)
        w = params[0].astype(stored(params[0].dtype))
        acc, shape, deeper = _accumulator(w.dtype), out.shape, spec
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        edges = spec.layout.count(own_parts(arrays, spec.levels), spec.shape)
        used = path.used(arrays)
        turned = spec.rows and not spec.event.skips
        if turned:
            x, shape = x.swapaxes(-1, -2), (*shape[:-2], shape[-1], shape[-2])
        elif spec.rows:
            w, *used = (jnp.expand_dims(a, spec.levels) for a in (w, *used))
            deeper = spec.but(levels=spec.levels + 1)
        wide = room_for_double(shape, acc == jnp.float32 and edges > SPLIT_EDGES)
        outs = [struct(shape, acc), wide]
        y, _ = path.run('product', w.dtype, [w, *used, x], outs, deeper)
        return [(y.swapaxes(-1, -2) if turned else y).astype(out.dtype)]

    return kernel


@SAMPLE.kernel('cuda_raw', 'gpu', supports=_has_twin, asdefault=True)
def sample(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Walk along rows unless edges have no order; a batch is summed in columns."""
    (out,) = outs
    path = _found(_any_path(spec))

    def kernel(*operands: Array) -> list[Array]:
        *arrays, x, y = operands
        acc = _accumulator(stored(y.dtype))
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        if spec.rows:
            x, y = x.swapaxes(-1, -2), y.swapaxes(-1, -2)
        operands = (*path.used(arrays), x, y.astype(acc))
        (value,) = path.run('sample', acc, operands, [struct(out.shape, acc)], spec)
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
    path = _found(_any_path(spec, first=not spec.transpose))

    def kernel(w: Array, *operands: Array) -> list[Array]:
        clip = len(operands) - spec.edges == 3
        *arrays, x, y = operands[:-1] if clip else operands
        acc = _accumulator(stored(w.dtype))
        w = jnp.broadcast_to(w.astype(acc), out.shape)  # memory of its own for every sample
        bounds = operands[-1].astype(acc) if clip else jnp.zeros((1,) * spec.levels + (2,), acc)
        operands = (w, *path.used(arrays), spec.event.active(x), y.astype(acc), bounds)
        (value,) = path.run(
            'update', acc, operands, [struct(out.shape, acc)], spec,
            input_output_aliases={0: 0}, clip=clip,
        )  # fmt: skip
        return [value.astype(out.dtype)]

    return kernel


@SCALE.kernel('cuda_raw', 'gpu', supports=_has_twin, asdefault=True)
def scale(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Walk along rows unless edges have no order."""
    (out,) = outs
    path = _found(_any_path(spec))

    def kernel(w: Array, *operands: Array) -> list[Array]:
        *arrays, y = operands
        acc = _accumulator(stored(w.dtype))
        operands = (w.astype(acc), *path.used(arrays), y.astype(acc))
        (value,) = path.run('scale', acc, operands, [struct(out.shape, acc)], spec)
        return [value.astype(out.dtype)]

    return kernel


# Where no lines are to be walked, XLA sorts what is asked for.
PICK.kernel('cuda_raw', 'gpu', asdefault=True)(pick_reference)


def _lines_path(spec: Spec, elements: bool) -> Path | None:
    """Choose the lines that are asked for; an element lies on two, of which one will do."""
    along = not spec.transpose
    for columns in (along, not along)[: 2 if elements else 1]:
        twin = _twin(spec.layout, columns)
        if twin:
            return Path(twin, columns)
    return None


def _has_lines(*, spec: Spec, elements: bool, **_: Any) -> bool | str:
    return _has_twin(spec=spec) if _lines_path(spec, elements) else 'there are no such lines'


@PICK.kernel('cuda_raw', 'gpu', supports=_has_lines)
def pick(*, spec: Spec, outs: Outs, elements: bool, back: bool, **_: Any) -> Callable[..., Any]:
    """Walk the lines that are asked for."""
    (out,) = outs
    path = _found(_lines_path(spec, elements))

    def kernel(x: Array, *operands: Array) -> list[Array]:
        arrays, ids = operands[: spec.edges], operands[spec.edges :]
        lines, ends = ids[0], ids[-1]
        if path.columns is spec.transpose:  # the other line of an element
            lines, ends = ends, lines
        acc = _accumulator(stored(x.dtype))
        (value,) = path.run(
            'pick', acc, [x.astype(acc), *path.used(arrays), lines, ends],
            [struct(out.shape, acc)], spec, elements=elements, back=back,
        )  # fmt: skip
        return [value.astype(out.dtype)]

    return kernel


# ---- what XLA has already -----------------------------------------------------------------------


def _is_full(*, spec: Spec, **_: Any) -> bool | str:
    ok = spec.layout.name == 'dense' and not spec.event.skips
    return ok or 'for dense matrices and plain numbers only'


MIRROR.kernel('cuda_raw', 'gpu', asdefault=True)(by_sorting)
COMPACT.def_kernel('cuda_raw', 'gpu', list_in_jax, asdefault=True)
PRODUCT.kernel('cuda_raw', 'gpu', supports=_is_full)(dense.product)
SAMPLE.kernel('cuda_raw', 'gpu', supports=dense._is_dense)(dense.sample)
