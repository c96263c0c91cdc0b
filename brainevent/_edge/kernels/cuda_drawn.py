# SPDX-License-Identifier: Apache-2.0
"""``cuda_raw`` for drawn layouts: rows are drawn where they are used, by the same integers."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge import random
from brainevent._edge.event import Event
from brainevent._edge.kernels.cuda_raw import MOST_LEVELS
from brainevent._edge.kernels.cuda_units import Path, room_for_double, stored
from brainevent._edge.kernels.drawn import _joined
from brainevent._edge.kernels.jax_raw import _accumulator
from brainevent._edge.kernels.numba_cpu import SPLIT_EDGES
from brainevent._edge.materialise import DENSE, LISTING
from brainevent._edge.operator import PRODUCT, Spec, struct
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]


def _has_twins(*, spec: Spec, **_: Any) -> bool | str:
    if spec.layout.draw is None:
        return 'for drawn layouts only'
    if spec.levels >= MOST_LEVELS:
        return f'batches are nested more than {MOST_LEVELS - 1} deep'
    for name, twin in (
        (spec.layout.name, spec.layout.draw.cuda),
        (spec.weight.name, spec.weight.cuda),
    ):
        if twin is None:
            return f'{name!r} offers no CUDA code'
    return True


def _path(spec: Spec) -> Path:
    twin = spec.layout.draw.cuda if spec.layout.draw else None
    assert twin is not None  # `_has_twins` has looked
    return Path(twin)


def _structure(arrays: Sequence[Array], path: Path, levels: int) -> list[Array]:
    """Return the bits of the probability, the seed, the table of logarithms, and what thins."""
    prob, seed, *more = arrays
    bits = jax.lax.bitcast_convert_type(prob.astype(jnp.float32), jnp.uint32)
    table = jnp.asarray(random.exponential_table()).reshape(*(1,) * levels, -1)
    return path.used([bits, seed, table, *more])


@PRODUCT.kernel('cuda_raw', 'gpu', supports=_has_twins)
def product(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Go along lines of the input if rows are, else along lines of the output."""
    (out,) = outs
    path = _path(spec)

    def kernel(*operands: Array) -> list[Array]:
        params, arrays, x = spec.split(operands)
        acc, shape = _accumulator(stored(out.dtype)), out.shape
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        turned = spec.rows and x.ndim - spec.levels == 2
        if turned:
            x, shape = x.swapaxes(-1, -2), (*shape[:-2], shape[-1], shape[-2])
        # an output gets one edge from each line of the input at most
        split = spec.transpose and acc == jnp.float32 and spec.extents[1] > SPLIT_EDGES
        w = _joined([p.astype(acc) for p in params])
        y, _ = path.run(
            'product', acc, [w, *_structure(arrays, path, spec.levels), x],
            [struct(shape, acc), room_for_double(shape, split)], spec, weight=spec.weight.cuda,
        )  # fmt: skip
        return [(y.swapaxes(-1, -2) if turned else y).astype(out.dtype)]

    return kernel


@DENSE.kernel('cuda_raw', 'gpu', supports=_has_twins, asdefault=True)
def dense(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Fill row after row."""
    (out,) = outs
    path, many = _path(spec), spec.weight.params

    def kernel(*operands: Array) -> list[Array]:
        acc = _accumulator(stored(out.dtype))
        w = _joined([p.astype(acc) for p in operands[:many]])
        (grid,) = path.run(
            'dense', acc, [w, *_structure(operands[many:], path, spec.levels)],
            [struct(out.shape, acc)], spec, weight=spec.weight.cuda,
        )  # fmt: skip
        return [grid.astype(out.dtype)]

    return kernel


@LISTING.kernel('cuda_raw', 'gpu', supports=_has_twins, asdefault=True)
def listing(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Count, and list what there is room for."""
    path = _path(spec)

    def kernel(*operands: Array) -> list[Array]:
        *arrays, ptr = operands
        given = [*_structure(arrays, path, spec.levels), ptr]
        return path.run('listing', jnp.float32, given, outs, spec)

    return kernel
