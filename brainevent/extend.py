# SPDX-License-Identifier: Apache-2.0
"""The door for third parties: add a format, a kernel, a backend or an operator of your own.

==================  =============================================================================
to add              write
==================  =============================================================================
an operator         an `XLACustomKernel`, with kernels from `numba_kernel` or plain JAX
a format            a `Layout` (with a `Walk`, native code serves it) and its `Products`
weights of a law    a `Weight`, and its `Drawn` products over ``DRAWN_LAYOUT``
a rule of edges     a `drawn_layout`, and its `Drawn` products with ``CONSTANT`` or other weights
a faster kernel     a generator registered with ``PRODUCT.kernel(backend, platform, supports=...)``
a backend           a `Backend` record, and generators for the operators that it serves
==================  =============================================================================

Examples
--------
A matrix whose row ``i`` has one entry, in column ``i``, needs no structure arrays:

>>> import jax.numpy as jnp
>>> from brainevent.extend import STORED, Layout, Products, Walk
>>> def diagonal(arrays, shape):
...     return jnp.arange(shape[0]), jnp.arange(shape[0])
>>> layout = Layout(
...     'doc_diagonal', arrays=(), ranks=(), edges=diagonal,
...     count=lambda arrays, shape: shape[0],
...     check_shapes=lambda where, arrays, shape: None,
...     check_values=lambda where, arrays, shape: None,
... )
>>> products = Products(layout, STORED, 'doc_diagonal')
>>> weights, x = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
>>> products('example', (weights,), (), x, shape=(2, 2), backend='jax_raw')
Array([3., 8.], dtype=float32)
"""

from brainevent._edge import (
    CONSTANT,
    LAYOUTS,
    NORMAL,
    PRODUCT,
    SAMPLE,
    STORED,
    UNIFORM,
    EdgeOperator,
    Event,
    Layout,
    Products,
    Spec,
    Twin,
    Walk,
    Weight,
)
from brainevent._format.drawn import DRAWN_LAYOUT, Drawn, drawn_layout
from brainevent._op import Backend, KernelEntry, Prefer, XLACustomKernel, register_backend
from brainevent._op.numba_ffi.bridge import NumbaKernel, numba_kernel
from brainevent._pytree import pytree

__all__ = [
    'CONSTANT',
    'DRAWN_LAYOUT',
    'LAYOUTS',
    'NORMAL',
    'PRODUCT',
    'SAMPLE',
    'STORED',
    'UNIFORM',
    'Backend',
    'Drawn',
    'EdgeOperator',
    'Event',
    'KernelEntry',
    'Layout',
    'NumbaKernel',
    'Prefer',
    'Products',
    'Spec',
    'Twin',
    'Walk',
    'Weight',
    'XLACustomKernel',
    'drawn_layout',
    'numba_kernel',
    'pytree',
    'register_backend',
]
