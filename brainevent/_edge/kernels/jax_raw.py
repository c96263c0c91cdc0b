# SPDX-License-Identifier: Apache-2.0
"""Reference kernels in plain JAX: every layout, every platform, written to be read.

Memory stays in proportion to operands and result: a wide batch is worked through in blocks of
columns, and a long list of edges in blocks whose partial sums are then added, which also keeps
long float32 sums from sticking at 2**24.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._compat import align_varying
from brainevent._edge.event import Event
from brainevent._edge.mirror import MIRROR, by_sorting
from brainevent._edge.operator import PRODUCT, SAMPLE, Spec
from brainevent._typing import Array

EDGE_BLOCK = 1 << 22
_PLATFORMS = ('cpu', 'gpu', 'tpu')


@PRODUCT.kernel('jax_raw', *_PLATFORMS)
def product(*, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any) -> Callable[..., Any]:
    """``y[target] += weight * e(x)[source]``, all edges at once."""

    def kernel(*operands: Array) -> Array:
        params, arrays, x = spec.split(operands)
        acc = _accumulator(params[0].dtype)
        source, target = _ends(spec, arrays)
        if 0 in (*spec.shape, source.shape[0]):
            return jnp.zeros(outs[0].shape[spec.levels :], outs[0].dtype)

        def add_up(x: Array) -> Array:
            y = _scatter_edges(spec, params, source, target, x, acc)
            return y.astype(params[0].dtype)

        if x.ndim == 1:
            return add_up(x)
        columns = x.T if spec.rows else x
        y = _by_column_blocks(add_up, columns, source.shape[0], spec.extents[0])
        return y.T if spec.rows else y

    return _over_levels(kernel, spec.levels, outs[0])


@SAMPLE.kernel('jax_raw', *_PLATFORMS)
def sample(*, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any) -> Callable[..., Any]:
    """``out[edge] = e(x)[source] * y[target]``, summed over a batch one vector at a time."""

    def kernel(*operands: Array) -> Array:
        *arrays, x, y = operands
        acc = _accumulator(y.dtype)
        source, target = _ends(spec, arrays)
        if 0 in (*x.shape, *y.shape):
            return jnp.zeros(source.shape, y.dtype)

        def one(x: Array, y: Array) -> Array:
            terms = _take(spec.event.counts(x, acc), source) * _take(y.astype(acc), target)
            met = (source < x.shape[0]) & (target < y.shape[0])
            if spec.event.skips:  # what a silent element would have met must not show, NaN or not
                met &= _take(spec.event.active(x), source)
            return jnp.where(met, terms, 0)

        if x.ndim == 1:
            return one(x, y).astype(y.dtype)
        axis = 0 if spec.rows else 1
        start, *_ = align_varying([jnp.zeros(source.shape, acc), source, target, x, y])

        def add(k: Array, total: Array) -> Array:
            pair = [jax.lax.dynamic_index_in_dim(v, k, axis, keepdims=False) for v in (x, y)]
            return total + one(*pair)

        total: Array = jax.lax.fori_loop(0, x.shape[axis], add, start)
        return total.astype(y.dtype)

    return _over_levels(kernel, spec.levels, outs[0])


def _accumulator(dtype: Any) -> Any:
    """Return the dtype of sums: float32 for numbers of 16 bits."""
    return jnp.dtype('float32') if dtype in (jnp.float16, jnp.bfloat16) else jnp.dtype(dtype)


def _ends(spec: Spec, arrays: Sequence[Array]) -> tuple[Array, Array]:
    """Return source and target of every edge.

    Read as unsigned numbers, so that one comparison finds all that lie outside, and scatters drop
    them on their own: on the CPU this is as fast as a product that trusts its indices.
    """
    row, col = (_unsigned(ids) for ids in spec.layout.edges(tuple(arrays), spec.shape))
    return (row, col) if spec.transpose else (col, row)


def _unsigned(ids: Array) -> Array:
    return jax.lax.bitcast_convert_type(ids, jnp.dtype(f'uint{8 * ids.dtype.itemsize}'))


def _take(x: Array, ids: Array) -> Array:
    """Gather; what lies outside is the last element, and the caller's to leave out."""
    return x.at[ids].get(mode='clip')


def _scatter_edges(
    spec: Spec, params: Any, source: Array, target: Array, x: Array, acc: Any
) -> Array:
    """Add up all edges for a vector or a block of columns."""
    values = spec.event.counts(x, acc)
    active = spec.event.active(x) if spec.event.skips else None

    def wide(one_each: Array) -> Array:
        return one_each.reshape(*one_each.shape, *(1,) * (x.ndim - 1))

    def add(y: Array, source: Array, target: Array, tag: Array) -> Array:
        weight = jnp.asarray(spec.weight.value(params, tag), acc)
        weight = wide(weight) if weight.ndim else weight
        counts = wide(source < x.shape[0])
        if active is not None:  # what a silent element would meet must not show, NaN or not
            counts &= _take(active, source)
        term = weight if spec.event is Event.BINARY else weight * _take(values, source)
        return y.at[target].add(jnp.where(counts, term, 0), mode='drop')

    zero = jnp.zeros((spec.extents[0], *x.shape[1:]), acc)
    zero, *_ = align_varying([zero, source, target, x, *params])
    edges = source.shape[0]
    if edges <= EDGE_BLOCK:
        return add(zero, source, target, jnp.arange(edges))

    def block(k: Array, total: Array) -> Array:
        first = jnp.minimum(k * EDGE_BLOCK, edges - EDGE_BLOCK)
        tag = first + jnp.arange(EDGE_BLOCK)
        fresh = tag >= k * EDGE_BLOCK  # the last block reaches back over edges already added
        near, far = (jax.lax.dynamic_slice(a, (first,), (EDGE_BLOCK,)) for a in (source, target))
        far = jnp.where(fresh, far, spec.extents[0])
        # without the barrier XLA adds the block to the total edge by edge
        fresh_sum: Array = jax.lax.optimization_barrier(add(zero, near, far, tag))
        return total + fresh_sum

    result: Array = jax.lax.fori_loop(0, -(-edges // EDGE_BLOCK), block, zero)
    return result


def _by_column_blocks(fun: Callable[[Array], Array], x: Array, edges: int, out: int) -> Array:
    """Apply ``fun`` to blocks of columns so narrow that edges times columns stay small."""
    n, batch = x.shape
    if not isinstance(batch, int):  # a size that an exported program leaves open
        columns = jax.lax.map(lambda column: fun(column[:, None])[:, 0], x.T)
        return columns.T
    room = max(edges, (n + out) * batch, 1 << 16)
    width = max(1, room // max(edges, 1))
    if width >= batch:
        return fun(x)
    blocks = -(-batch // width)
    padded = jnp.pad(x, ((0, 0), (0, blocks * width - batch)))
    ys = jax.lax.map(fun, jnp.moveaxis(padded.reshape(n, blocks, width), 1, 0))
    return jnp.moveaxis(ys, 0, 1).reshape(out, blocks * width)[:, :batch]


def _over_levels(
    kernel: Callable[..., Array], levels: int, out: jax.ShapeDtypeStruct
) -> Callable[..., list[Array]]:
    """Map a kernel over leading batch axes; an operand of length one there stands still."""

    def mapped(*operands: Array, level: int = levels) -> Array:
        if level == 0:
            return kernel(*operands)
        size = max(x.shape[0] for x in operands)
        axes = [0 if x.shape[0] == size and size > 1 else None for x in operands]
        inner = [x if axis == 0 else x[0] for x, axis in zip(operands, axes, strict=True)]
        if size == 1:
            return mapped(*inner, level=level - 1)[None]
        return jax.vmap(lambda *xs: mapped(*xs, level=level - 1), in_axes=axes)(*inner)

    def run(*operands: Array) -> list[Array]:
        if 0 in out.shape:
            return [jnp.zeros(out.shape, out.dtype)]
        return [mapped(*operands)]

    return run


MIRROR.kernel('jax_raw', *_PLATFORMS)(by_sorting)
