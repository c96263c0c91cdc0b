# SPDX-License-Identifier: Apache-2.0
"""The ``numba`` backend on the CPU: which native kernel serves which call.

Nothing here imports numba: a kernel whose machine code is on disk runs without the compiler.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.event import Event
from brainevent._edge.layout import Layout
from brainevent._edge.mirror import MIRROR
from brainevent._edge.operator import PRODUCT, SAMPLE, Spec
from brainevent._op import ffi_naming
from brainevent._op.numba_ffi import native
from brainevent._typing import Array

_HOME = 'brainevent._edge.kernels.'
SPLIT_EDGES = 1 << 23  # beyond, float32 sums are split, which one vector of many cannot be
_HALVES = ('float16', 'bfloat16')


def _walkable(*, spec: Spec, **_: Any) -> bool | str:
    layout = spec.layout
    if layout.walk or layout.cowalk or layout.edge:
        return True
    return f'the layout {layout.name!r} offers no native walk'


@functools.cache
def _layout_key(layout: Layout) -> str:
    """Tell the content of a layout's native functions; they are part of the machine code."""
    walks = [f for w in (layout.walk, layout.cowalk) if w for f in (w.span, w.far, w.tag)]
    keys = [ffi_naming.fingerprint(f) for f in (*walks, layout.edge, layout.count)]
    if None in keys:
        return ffi_naming.process_name(layout.name)
    facts = repr([w and (w.direct, w.streams) for w in (layout.walk, layout.cowalk)])
    return ffi_naming.digest(layout.name, facts, *map(str, keys))


@PRODUCT.kernel('numba', 'cpu', supports=_walkable)
def product(*, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any) -> Callable[..., Any]:
    """Choose gather or scatter, and settle dtypes and the orientation of a batch."""
    (out,) = outs

    def kernel(*operands: Array) -> list[Array]:
        params, arrays, x = spec.split(operands)
        (w,) = params
        half = w.dtype.name if w.dtype.name in _HALVES else None
        acc = jnp.dtype('float32') if half else w.dtype
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        one = w.shape[-1] == 1
        vector = x.ndim - spec.levels == 1
        lone = spec.rows and spec.event.skips and not spec.levels
        if lone and spec.layout.count(arrays, spec.shape) < SPLIT_EDGES:
            # vectors in rows, events: each is a vector of its own, in one call
            recipe = _product_recipe(spec, True, one, half)
            fixed = [a[None] for a in (w, *arrays)]
            y = native.call(recipe, [*fixed, x], [_like(out.shape, acc)], levels=1)[0]
        elif spec.rows:
            recipe = _product_recipe(spec, False, one, half)
            y = _call_columns(recipe, (w, *arrays), x, out.shape, acc, spec.levels)
        else:
            recipe = _product_recipe(spec, vector, one, half)
            result = [_like(out.shape, acc)]
            y = native.call(recipe, [w, *arrays, x], result, levels=spec.levels)[0]
        return [y.astype(out.dtype)]

    return kernel


def _product_recipe(spec: Spec, vector: bool, one: bool, half: str | None) -> native.Recipe:
    """Choose the action: events scatter where they can, numbers gather along stored weights."""
    inward, outward = spec.layout.towards(spec.transpose)
    gather = outward is not None and (inward is None or (not spec.event.skips and outward.direct))
    action = 'gather' if gather else 'scatter'
    module = 'numba_product' if vector or gather else 'numba_columns'
    factory = f'{action}_{"vector" if vector else "columns"}'
    names = (spec.layout.name, _layout_key(spec.layout), spec.transpose, spec.event.name, one, half)
    return native.Recipe(_HOME + module, factory, names)


def _call_columns(
    recipe: native.Recipe, head: Sequence[Array], x: Array, shape: Any, acc: Any, levels: int
) -> Array:
    """Call a kernel for vectors in columns on vectors in rows."""
    turned = (*shape[:-2], shape[-1], shape[-2])
    y = native.call(recipe, [*head, x.swapaxes(-1, -2)], [_like(turned, acc)], levels=levels)[0]
    return y.swapaxes(-1, -2)


@SAMPLE.kernel('numba', 'cpu', supports=_walkable)
def sample(*, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any) -> Callable[..., Any]:
    """Walk rows unless edges have no order; a batch is summed over columns side by side."""
    (out,) = outs

    def kernel(*operands: Array) -> list[Array]:
        *arrays, x, y = operands
        acc = jnp.dtype('float32') if y.dtype.name in _HALVES else y.dtype
        x = spec.event.active(x) if spec.event is Event.BINARY else x.astype(acc)
        if spec.rows:
            x, y = x.swapaxes(-1, -2), y.swapaxes(-1, -2)
        names = (
            spec.layout.name, _layout_key(spec.layout), spec.transpose, spec.event.name,
            x.ndim - spec.levels,
        )  # fmt: skip
        factory = 'sample_edges' if spec.layout.edge else 'sample_lines'
        recipe = native.Recipe(_HOME + 'numba_sample', factory, names)
        result = [_like(out.shape, acc)]
        value = native.call(recipe, [*arrays, x, y.astype(acc)], result, levels=spec.levels)[0]
        return [value.astype(out.dtype)]

    return kernel


def extents(spec: Spec) -> Array:
    """Return rows and columns as an operand, for kernels whose other operands do not tell them."""
    wide = jnp.int32 if max(spec.shape) < 2**31 else jnp.int64
    return jnp.asarray(spec.shape, wide).reshape(*(1,) * spec.levels, 2)


def _like(shape: Sequence[int], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


@MIRROR.kernel('numba', 'cpu', supports=_walkable)
def mirror(*, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any) -> Callable[..., Any]:
    """Count and place, without comparing."""
    factory = 'mirror_lines' if spec.layout.walk else 'mirror_edges'
    names = (spec.layout.name, _layout_key(spec.layout))
    recipe = native.Recipe(_HOME + 'numba_mirror', factory, names)
    return lambda *arrays: native.call(recipe, [extents(spec), *arrays], outs)
