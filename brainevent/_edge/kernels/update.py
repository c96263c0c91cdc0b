# SPDX-License-Identifier: Apache-2.0
"""Plasticity in both CPU backends: which native kernel serves which layout, and plain JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.kernels.jax_raw import _PLATFORMS, _over_levels
from brainevent._edge.kernels.numba_cpu import _HALVES, _HOME, _layout_key, _like, _walkable
from brainevent._edge.operator import Spec
from brainevent._edge.update import CLIPPED, UPDATE, by_gathering
from brainevent._op.numba_ffi import native
from brainevent._typing import Array


def _update(*, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any) -> Callable[..., Any]:
    """Walk lines that fired if there are such lines, else ask every edge."""
    layout = spec.layout
    other = 'update_edges' if layout.edge else 'update_against_lines'
    factory = 'update_lines' if layout.towards(spec.transpose)[0] else other
    names = (layout.name, _layout_key(layout), spec.transpose)
    return change_in_place('numba_update', factory, names, spec, outs[0])


def change_in_place(
    module: str, factory: str, names: tuple[Any, ...], spec: Spec, out: jax.ShapeDtypeStruct
) -> Callable[..., list[Array]]:
    """Make the call of a native kernel whose result takes the memory of the weights."""

    def kernel(w: Array, *operands: Array) -> list[Array]:
        clip = len(operands) - spec.edges == 3
        *arrays, x, y = operands[:-1] if clip else operands
        acc = jnp.dtype('float32') if w.dtype.name in _HALVES else w.dtype
        # memory of its own for every element of a batch
        w = jnp.broadcast_to(w.astype(acc), out.shape)
        none = jnp.zeros((1,) * spec.levels + (2,), acc)
        bounds = operands[-1].astype(acc) if clip else none
        ins = [w, bounds, *arrays, spec.event.active(x), y.astype(acc)]
        recipe = native.Recipe(_HOME + module, factory, (*names, clip))
        result = [_like(out.shape, acc)]
        value = native.call(recipe, ins, result, levels=spec.levels, aliases={0: 0})[0]
        return [value.astype(out.dtype)]

    return kernel


def _update_reference(
    *, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any
) -> Callable[..., Any]:
    """Ask every edge."""
    return _over_levels(by_gathering(spec=spec, outs=outs), spec.levels, outs[0])


for _operator in (UPDATE, CLIPPED):
    _operator.kernel('numba', 'cpu', supports=_walkable)(_update)
    _operator.kernel('jax_raw', *_PLATFORMS)(_update_reference)
