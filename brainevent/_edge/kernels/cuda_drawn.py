# SPDX-License-Identifier: Apache-2.0
"""``cuda_raw`` for drawn layouts: rows are drawn where they are used, by the same integers."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge import random
from brainevent._edge.event import Event
from brainevent._edge.kernels.cuda_raw import MOST_LEVELS, SPLIT_EDGES, size_of
from brainevent._edge.kernels.cuda_units import facts, kind_of, run, stored
from brainevent._edge.kernels.drawn import _joined
from brainevent._edge.kernels.jax_raw import _accumulator
from brainevent._edge.layout import Twin
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


def _twin(spec: Spec) -> Twin:
    twin = spec.layout.draw.cuda if spec.layout.draw else None
    assert twin is not None  # `_has_twins` has looked
    return twin


def _structure(arrays: Sequence[Array], twin: Twin, levels: int) -> list[Array]:
    """Return the bits of the probability, the seed, the table of logarithms, and what thins."""
    prob, seed, *more = arrays
    bits = jax.lax.bitcast_convert_type(prob.astype(jnp.float32), jnp.uint32)
    table = jnp.asarray(random.exponential_table()).reshape(*(1,) * levels, -1)
    given = [bits, seed, table, *more]
    return [given[k] for k in twin.arrays]


@PRODUCT.kernel('cuda_raw', 'gpu', supports=_has_twins)
def product(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Go along lines of the input if rows are, else along lines of the output."""
    (out,) = outs
    twin = _twin(spec)

    def kernel(*operands: Array) -> list[Array]:
        params, arrays, x = spec.split(operands)
        acc, shape = _accumulator(stored(out.dtype)), out.shape
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        turned = spec.rows and x.ndim - spec.levels == 2
        if turned:
            x, shape = x.swapaxes(-1, -2), (*shape[:-2], shape[-1], shape[-2])
        # an output gets one edge from each line of the input at most
        split = spec.transpose and acc == jnp.float32 and spec.extents[1] > SPLIT_EDGES
        wide = struct((2 * size_of(shape) if split else 0,), jnp.uint32)
        w = _joined([p.astype(acc) for p in params])
        y, _ = run(
            'product', twin, kind_of(acc), [w, *_structure(arrays, twin, spec.levels), x],
            [struct(shape, acc), wide], weight=spec.weight.cuda, **facts(spec, False, spec.levels),
        )  # fmt: skip
        return [(y.swapaxes(-1, -2) if turned else y).astype(out.dtype)]

    return kernel


@DENSE.kernel('cuda_raw', 'gpu', supports=_has_twins, asdefault=True)
def dense(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Fill row after row."""
    (out,) = outs
    twin, many = _twin(spec), spec.weight.params

    def kernel(*operands: Array) -> list[Array]:
        acc = _accumulator(stored(out.dtype))
        w = _joined([p.astype(acc) for p in operands[:many]])
        (grid,) = run(
            'dense', twin, kind_of(acc), [w, *_structure(operands[many:], twin, spec.levels)],
            [struct(out.shape, acc)], weight=spec.weight.cuda, **facts(spec, False, spec.levels),
        )  # fmt: skip
        return [grid.astype(out.dtype)]

    return kernel


@LISTING.kernel('cuda_raw', 'gpu', supports=_has_twins, asdefault=True)
def listing(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Count, and list what there is room for."""
    twin = _twin(spec)

    def kernel(*operands: Array) -> list[Array]:
        *arrays, ptr = operands
        given = [*_structure(arrays, twin, spec.levels), ptr]
        return run('listing', twin, 'float', given, outs, **facts(spec, False, spec.levels))

    return kernel
