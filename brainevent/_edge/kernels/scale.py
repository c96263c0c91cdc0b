# SPDX-License-Identifier: Apache-2.0
"""Scaling in both CPU backends: which native kernel serves which layout, and plain JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.kernels.jax_raw import _PLATFORMS, _ends, _over_levels, _take
from brainevent._edge.kernels.numba_cpu import (
    _HALVES,
    _HOME,
    _layout_key,
    _like,
    _walkable,
    extents,
)
from brainevent._edge.operator import Spec
from brainevent._edge.scale import SCALE
from brainevent._op.numba_ffi import native
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]


@SCALE.kernel('numba', 'cpu', supports=_walkable)
def scale(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Walk rows unless edges have no order."""
    (out,) = outs
    names = (spec.layout.name, _layout_key(spec.layout), spec.transpose)
    factory = 'scale_edges' if spec.layout.edge else 'scale_lines'
    recipe = native.Recipe(_HOME + 'numba_scale', factory, names)

    def kernel(w: Array, *operands: Array) -> list[Array]:
        *arrays, y = operands
        acc = jnp.dtype('float32') if w.dtype.name in _HALVES else w.dtype
        ins = [w.astype(acc), extents(spec), *arrays, y.astype(acc)]
        value = native.call(recipe, ins, [_like(out.shape, acc)], levels=spec.levels)[0]
        return [value.astype(out.dtype)]

    return kernel


@SCALE.kernel('jax_raw', *_PLATFORMS)
def scale_reference(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., list[Array]]:
    """Gather; an edge that lies outside has nothing."""

    def kernel(w: Array, *operands: Array) -> Array:
        *arrays, y = operands
        source, target = _ends(spec, arrays)
        if y.shape[0] == 0:
            return jnp.zeros(w.shape, w.dtype)
        met = (source < spec.extents[1]) & (target < spec.extents[0])
        return jnp.where(met, w * _take(y, target), 0)

    return _over_levels(kernel, spec.levels, outs[0])
