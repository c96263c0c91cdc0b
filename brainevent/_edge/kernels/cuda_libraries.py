# SPDX-License-Identifier: Apache-2.0
"""``cublas`` and ``cusparse``: products by NVIDIA's libraries, reached through JAX's own operators.

A library multiplies by silent elements too, so weights that are no finite numbers would show where
nothing fired; where there are such weights the reference takes the call.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import sparse

from brainevent._edge.event import Event
from brainevent._edge.kernels import dense, jax_raw
from brainevent._edge.operator import PRODUCT, Spec
from brainevent._typing import Array

PRODUCT.kernel('cublas', 'gpu', layout='dense')(dense.product)


def _is_binary_csr(*, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any) -> bool | str:
    ok = spec.event is Event.BINARY and not spec.levels and outs[0].dtype in _TYPES
    return ok or 'for events and real weights of 32 or 64 bits only'


_TYPES = (jnp.float32, jnp.float64)


@PRODUCT.kernel('cusparse', 'gpu', supports=_is_binary_csr, layout='csr')
def product(
    *, spec: Spec, outs: Sequence[jax.ShapeDtypeStruct], **_: Any
) -> Callable[..., list[Array]]:
    """Multiply by ones and zeros."""
    reference = jax_raw.product(spec=spec, outs=outs)

    def library(w: Array, indices: Array, indptr: Array, x: Array) -> Array:
        data = jnp.broadcast_to(w, indices.shape)
        matrix = sparse.CSR((data, indices, indptr), shape=spec.shape)
        counts = spec.event.counts(x, w.dtype)
        side = matrix.T if spec.transpose else matrix
        y: Array = (side @ counts.T).T if spec.rows and x.ndim == 2 else side @ counts
        return y

    def kernel(*operands: Array) -> list[Array]:
        sound = jnp.isfinite(operands[0]).all()
        y = jax.lax.cond(sound, library, lambda *o: reference(*o)[0], *operands)
        return [y.astype(outs[0].dtype)]

    return kernel
