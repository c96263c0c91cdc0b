# SPDX-License-Identifier: Apache-2.0
"""Which native kernel serves a drawn layout, and the operands it gets.

Nothing here imports numba: a kernel whose machine code is on disk runs without the compiler.
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge import random
from brainevent._edge.event import Event
from brainevent._edge.kernels.numba_cpu import _HALVES, _HOME, _like
from brainevent._edge.layout import Layout
from brainevent._edge.materialise import DENSE, LISTING, is_drawn
from brainevent._edge.operator import PRODUCT, Spec
from brainevent._edge.weight import Weight
from brainevent._op import ffi_naming
from brainevent._op.numba_ffi import native
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]


@functools.cache
def _content(layout: Layout, weight: Weight | None) -> str:
    """Tell the content of a kernel that lies outside of the kernels' folder."""
    assert layout.draw is not None
    parts = [layout.draw.keep, weight and (weight.native or weight.value)]
    keys = [ffi_naming.fingerprint(part) if part else '' for part in parts]
    if None in keys:
        return ffi_naming.process_name(layout.name)
    draws = weight.draws if weight else ''
    return ffi_naming.digest(_model(), layout.name, draws, *map(str, keys))


@functools.cache
def _model() -> bytes:
    return Path(random.__file__).read_bytes()


def _operands(params: Sequence[Array], arrays: Sequence[Array], acc: Any) -> list[Array]:
    """Return parameters as one array, then the structure."""
    together = [p.astype(acc) for p in params]
    w = together[0] if len(together) == 1 else _joined(together)
    return [w, *arrays]


def _joined(params: Sequence[Array]) -> Array:
    """Put parameters behind each other; a batch axis may be of length one for some."""
    lead = jnp.broadcast_shapes(*(p.shape for p in params))
    return jnp.concatenate([jnp.broadcast_to(p, lead) for p in params], -1)


def _accumulator(dtype: Any) -> Any:
    return jnp.dtype('float32') if dtype.name in _HALVES else dtype


@PRODUCT.kernel('numba', 'cpu', supports=is_drawn)
def product(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Go along lines of the input if rows are, else along lines of the output."""
    (out,) = outs
    acc = _accumulator(out.dtype)

    def kernel(*operands: Array) -> list[Array]:
        params, arrays, x = spec.split(operands)
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        batch = x.ndim - spec.levels == 2
        turned = batch and spec.rows
        x = x.swapaxes(-1, -2) if turned else x
        names = (
            spec.layout.name, spec.weight.name, _content(spec.layout, spec.weight),
            spec.event.name, batch, acc.name,
        )  # fmt: skip
        factory = 'drawn_scatter' if spec.transpose else 'drawn_gather'
        recipe = native.Recipe(_HOME + 'numba_drawn', factory, names)
        shape = (*out.shape[:-2], out.shape[-1], out.shape[-2]) if turned else out.shape
        given = [*_operands(params, arrays, acc), x]
        (y,) = native.call(recipe, given, [_like(shape, acc)], levels=spec.levels)
        return [(y.swapaxes(-1, -2) if turned else y).astype(out.dtype)]

    return kernel


@DENSE.kernel('numba', 'cpu', supports=is_drawn)
def dense(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Fill row after row."""
    (out,) = outs
    acc, many = _accumulator(out.dtype), spec.weight.params

    def kernel(*operands: Array) -> list[Array]:
        names = (
            spec.layout.name, spec.weight.name, _content(spec.layout, spec.weight), acc.name
        )  # fmt: skip
        recipe = native.Recipe(_HOME + 'numba_drawn', 'drawn_dense', names)
        given = _operands(operands[:many], operands[many:], acc)
        (grid,) = native.call(recipe, given, [_like(out.shape, acc)], levels=spec.levels)
        return [grid.astype(out.dtype)]

    return kernel


@LISTING.kernel('numba', 'cpu', supports=is_drawn)
def listing(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Count, and list what there is room for."""

    def kernel(*operands: Array) -> list[Array]:
        *arrays, ptr = operands
        names = (spec.layout.name, _content(spec.layout, None))
        recipe = native.Recipe(_HOME + 'numba_drawn', 'drawn_listing', names)
        length = jnp.full((1,) * (spec.levels + 1), spec.shape[1], jnp.int32)
        given = [arrays[0], *arrays, ptr, length]
        return native.call(recipe, given, outs, levels=spec.levels)

    return kernel
