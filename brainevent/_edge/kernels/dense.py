# SPDX-License-Identifier: Apache-2.0
"""Kernels that a dense matrix has to itself: JAX's own products, and native ones for events."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.event import Event
from brainevent._edge.kernels import numba_cpu
from brainevent._edge.kernels.jax_raw import _PLATFORMS, _accumulator, _over_levels
from brainevent._edge.kernels.numba_cpu import _HALVES, _HOME, _like
from brainevent._edge.kernels.update import change_in_place
from brainevent._edge.operator import PRODUCT, SAMPLE, Spec, batch_shape
from brainevent._edge.update import CLIPPED, UPDATE, within_bounds
from brainevent._op.numba_ffi import native
from brainevent._typing import Array

Outs = Sequence[jax.ShapeDtypeStruct]

# A batch of so many vectors, with so many active elements among all, is faster in full.
MANY, CROWDED = 32, 1 / 20
_BLAS = ('float32', 'float64')


def _is_dense(*, spec: Spec, **_: Any) -> bool | str:
    return spec.layout.name == 'dense' or 'for dense matrices only'


def _counts_events(*, spec: Spec, **_: Any) -> bool | str:
    dense = spec.layout.name == 'dense' and spec.event is Event.BINARY
    return dense or 'for dense matrices and binary events only'


def _matrix(w: Array, spec: Spec) -> Array:
    """Return weights, or the one weight of all edges, with two axes."""
    return jnp.broadcast_to(w, spec.shape) if w.size == 1 else w.reshape(spec.shape)


@PRODUCT.kernel('jax_raw', *_PLATFORMS, supports=_is_dense)
def product(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Multiply by what elements count for; weights that silent elements would meet do not show."""

    def kernel(w: Array, x: Array) -> Array:
        matrix, flip = _matrix(w, spec), x.ndim == 2 and spec.rows is not spec.transpose
        x = x.T if flip else x
        if not spec.event.skips or not jnp.issubdtype(w.dtype, jnp.inexact):
            y = _multiply(spec, matrix, x)
        else:
            sound = jnp.isfinite(matrix).all()
            y = jax.lax.cond(
                sound, partial(_multiply, spec), partial(_multiply_apart, spec), matrix, x
            )
        return (y.T if flip else y).astype(w.dtype)

    return _over_levels(kernel, spec.levels, outs[0])


def _multiply(spec: Spec, matrix: Array, x: Array) -> Array:
    """Multiply from the side that needs no transpose of the matrix."""
    counts = spec.event.counts(x, matrix.dtype)
    sides = (counts, matrix) if spec.transpose else (matrix, counts)
    return _dot(*sides, _accumulator(matrix.dtype))


def _multiply_apart(spec: Spec, matrix: Array, x: Array) -> Array:
    """Multiply finite weights, and add those that are not where an active element meets them."""
    finite = jnp.isfinite(matrix)
    wild = jnp.where(finite, 0, matrix)
    axis = 0 if spec.transpose else 1

    def meet(x: Array) -> Array:
        on, counts = (jnp.expand_dims(f, 1 - axis) for f in (spec.event.active(x), x))
        counts = spec.event.counts(counts, wild.dtype)
        met = jnp.where(on & ~finite, wild * counts, 0)
        return met.sum(axis, dtype=_accumulator(matrix.dtype))

    y = _multiply(spec, jnp.where(finite, matrix, 0), x)
    if x.ndim == 1:
        return y + meet(x)
    met: Array = jax.lax.map(meet, x if spec.transpose else x.T)
    return y + (met if spec.transpose else met.T)


def _dot(a: Array, b: Array, acc: Any) -> Array:
    highest = jax.lax.Precision.HIGHEST
    y: Array = jnp.matmul(a, b, precision=highest, preferred_element_type=acc)
    return y


@SAMPLE.kernel('jax_raw', *_PLATFORMS, supports=_is_dense)
def sample(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """``out[source, target] = e(x)[source] * y[target]``, summed over a batch by a product."""

    def kernel(x: Array, y: Array) -> Array:
        counts = spec.event.counts(x, y.dtype)
        if x.ndim == 1:
            grid = counts[:, None] * y[None, :]
        else:
            xs, ys = (counts.T, y) if spec.rows else (counts, y.T)
            grid = _dot(xs, ys, _accumulator(y.dtype)).astype(y.dtype)
        return (grid if spec.transpose else grid.T).reshape(-1)

    return _over_levels(kernel, spec.levels, outs[0])


@CLIPPED.kernel('jax_raw', *_PLATFORMS, supports=_is_dense)
@UPDATE.kernel('jax_raw', *_PLATFORMS, supports=_is_dense)
def update(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Add the trace to rows, or to columns, that fired."""

    def kernel(w: Array, x: Array, y: Array, *bounds: Array) -> Array:
        on = spec.event.active(x)[:, None]
        step = jnp.where(on, y[None, :], 0)
        turned = (lambda a: a) if spec.transpose else jnp.transpose
        new = w + turned(step).reshape(w.shape)
        if not bounds:
            return new
        fired = turned(jnp.broadcast_to(on, step.shape)).reshape(w.shape)
        return jnp.where(fired, within_bounds(new, *bounds), w)

    return _over_levels(kernel, spec.levels, outs[0])


@PRODUCT.kernel('numba', 'cpu', supports=_counts_events)
def count_events(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Add up active rows, or pick active columns; vectors are put in rows."""
    (out,) = outs
    m, n = spec.shape
    counted, full = partial(_call_native, spec), partial(_all_columns, spec)

    def kernel(w: Array, x: Array) -> list[Array]:
        if w.shape[-1] != m * n:
            return numba_cpu.product(spec=spec, outs=outs)(w, x)  # type: ignore[no-any-return]
        vector = x.ndim - spec.levels == 1
        on = spec.event.active(x)
        on = on[..., None, :] if vector else on if spec.rows else on.swapaxes(-1, -2)
        if spec.transpose or spec.levels or on.shape[0] < MANY or w.dtype not in _BLAS:
            y = counted(w, on)
        else:
            y = jax.lax.cond(
                on.mean() > CROWDED,
                lambda: jax.lax.cond(jnp.isfinite(w).all(), full, counted, w, on),
                lambda: counted(w, on),
            )
        y = y[..., 0, :] if vector else y if spec.rows else y.swapaxes(-1, -2)
        return [y.astype(out.dtype)]

    return kernel


def _call_native(spec: Spec, w: Array, on: Array) -> Array:
    """Call the native kernel for truth values whose vectors lie in rows."""
    half = w.dtype.name if w.dtype.name in _HALVES else None
    factory = 'dense_rows' if spec.transpose else 'dense_columns'
    recipe = native.Recipe(_HOME + 'numba_dense', factory, (half,))
    lead = batch_shape((w, on), spec.levels)
    result = _like((*lead, on.shape[-2], spec.extents[0]), _accumulator(w.dtype))
    return native.call(recipe, [w, on], [result], levels=spec.levels)[0]


def _all_columns(spec: Spec, w: Array, on: Array) -> Array:
    """Multiply by silent elements as well, which is worth it when there are few of them."""
    return _dot(on.astype(w.dtype), w.reshape(spec.shape).T, w.dtype)


@CLIPPED.kernel('numba', 'cpu', supports=_is_dense)
@UPDATE.kernel('numba', 'cpu', supports=_is_dense)
def learn(*, spec: Spec, outs: Outs, **_: Any) -> Callable[..., Any]:
    """Add the trace to rows, or to columns, that fired, in the weights' own memory."""
    factory = 'learn_rows' if spec.transpose else 'learn_columns'
    return change_in_place('numba_dense', factory, (), spec, outs[0])
