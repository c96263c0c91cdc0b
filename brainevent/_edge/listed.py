# SPDX-License-Identifier: Apache-2.0
"""Events whose active elements are listed: making the list, and products that need not search.

A list is ``ids``, the active sources in front and anything behind, and ``number``, of shape
``(1,)``, how many they are. It stands beside the events themselves, which it must agree with. So
a product with a list is the product without, done faster, and has its derivatives. What a list
says wrongly is survived: ids outside the matrix and a number beyond the list count nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp
import numpy as np

from brainevent import config
from brainevent._edge.doors import raise_level
from brainevent._edge.event import Event
from brainevent._edge.operator import PRODUCT, EdgeOperator, Spec, batch_shape, struct
from brainevent._op import BenchmarkConfig, XLACustomKernel
from brainevent._typing import Array

if TYPE_CHECKING:
    from brainevent._edge.product import Products

__all__ = ['COMPACT', 'LISTED', 'Listed', 'list_active']

COMPACT = XLACustomKernel('compact', doc='List the active elements of vectors of truth values.')
"""``active (..., n) -> ids (..., n), number (..., 1)``; every leading axis is a batch."""

LISTED = EdgeOperator('listed')
"""``y[target] += weight`` over the edges of the listed sources."""


def list_active(active: Array, *, backend: Any = None) -> tuple[Array, Array]:
    """List the active elements of a vector, or of every vector in rows.

    Parameters
    ----------
    active : Array of bool, shape (..., n)
    backend : str, optional
        Demand a backend.

    Returns
    -------
    ids : Array of int, shape (..., n)
        Active elements in ascending order, then zeros.
    number : Array of int, shape (..., 1)
        How many they are.
    """
    *lead, n = active.shape
    dtype = jnp.int32 if n < 2**31 else jnp.int64
    outs = [struct((*lead, n), dtype), struct((*lead, 1), dtype)]
    ids, number = COMPACT(active, outs=outs, backend=backend)
    return ids, number


def _compact_batch(
    operands: Any, axes: Any, *, backend: Any, **_: Any
) -> tuple[list[Array], list[int]]:
    (active,) = raise_level(operands, axes)
    return list(list_active(active, backend=backend)), [0, 0]


def _compact_data(*, platform: str) -> list[BenchmarkConfig]:
    """Return vectors of a common size; one element in a hundred is active."""
    made = []
    for n in (4000, 100_000):
        active = np.random.default_rng(0).random(n) < 0.01
        words = {'neurons': n, 'active': 0.01}
        made.append(BenchmarkConfig(f'{n}', (jnp.asarray(active),), {}, words))
    return made


COMPACT.def_jvp_rule2(None)
COMPACT.def_batching_rule(_compact_batch)
COMPACT.def_tags('event', 'binary', 'compact')
COMPACT.def_call(list_active)
COMPACT.def_benchmark_data(_compact_data)


class Listed:
    """The products of one layout and weight with listed binary events: mv and mm.

    Operands are those of the binary product, with the list behind the structure.

    Parameters
    ----------
    products : Products
        The family; its binary product is the same without a list.
    """

    def __init__(self, products: Products) -> None:
        self.products = products
        self.ops = {rank: self._declare(rank) for rank in (1, 2)}

    def _declare(self, rank: int) -> XLACustomKernel:
        layout, weight = self.products.layout, self.products.weight
        plain = self.products.ops[Event.BINARY, rank]
        op = XLACustomKernel(f'compact_{plain.name}')
        weights = [partial(self._jvp_weight, q) for q in range(weight.params)]
        op.def_jvp_rule2(*weights, *[None] * (len(layout.arrays) + 2), self._jvp_input)
        op.def_transpose_rule(self._transpose)
        op.def_batching_rule(self._batch)
        op.def_tags(*sorted(plain.tags), 'compact')
        op.adopt(  # all kernels of products serve it, if only without the list
            replace(entry, kernel_generator=partial(self._search, entry.backend))
            for entry in PRODUCT.kernels_for(layout)
        )
        LISTED.attach(op, layout)
        return op

    def bind(
        self, params: Sequence[Any], arrays: Sequence[Any], x: Any, spec: Spec, backend: Any
    ) -> Array:
        """Bind the primitive; a backend that is not known here searches for itself.

        ``arrays`` are the structure and the list.
        """
        operands = (*params, *arrays, x)
        op = self.ops[x.ndim - spec.levels]
        if isinstance(backend, str) and not _serves(op, backend):
            return self._without_list(params, arrays, x, spec, backend)
        shape = (*batch_shape(operands, spec.levels), spec.extents[0], *x.shape[spec.levels + 1 :])
        out = struct(shape, params[0].dtype)
        (result,) = op(*operands, outs=[out], spec=spec, backend=backend)
        return cast(Array, result)

    def _without_list(
        self, params: Sequence[Any], arrays: Sequence[Any], x: Any, spec: Spec, backend: Any
    ) -> Array:
        return self.products.bind(params, arrays[:-2], x, spec, backend)

    def _search(self, backend: str, *, spec: Spec, **_: Any) -> Callable[..., Any]:
        """Make the kernel of a backend without lists: its product with the events themselves."""
        return lambda *operands: [self._without_list(*spec.split(operands), spec, backend)]

    # ---- the calculus is that of the product without a list ------------------------------------

    def _jvp_weight(
        self, q: int, dw: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        params, arrays, x = spec.split(operands)
        tangents = [dw if k == q else jnp.zeros_like(p) for k, p in enumerate(params)]
        return [self.bind(tangents, arrays, x, spec, backend)]

    def _jvp_input(self, dx: Array, *operands: Array, **static: Any) -> list[Array]:
        *rest, _ids, _number, x = operands
        return self.products._jvp_input(dx, *rest, x, **static)

    def _transpose(self, cts: Sequence[Array], *operands: Any, **static: Any) -> list[Any]:
        *rest, _ids, _number, x = operands
        *grads, of_x = self.products._transpose(cts, *rest, x, **static)
        return [*grads, None, None, of_x]

    def _batch(
        self, operands: Any, axes: Any, *, spec: Spec, backend: Any, **_: Any
    ) -> tuple[list[Array], list[int]]:
        params, arrays, x = spec.split(raise_level(operands, axes))
        return [self.bind(params, arrays, x, spec.but(levels=spec.levels + 1), backend)], [0]


def _serves(op: XLACustomKernel, backend: str) -> bool:
    return any(backend in op.available_backends(platform) for platform in config.PLATFORMS)
