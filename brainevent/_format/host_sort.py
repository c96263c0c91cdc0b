# SPDX-License-Identifier: Apache-2.0
"""Stable sorts of entries on the host, with memory in proportion to the result.

NumPy's own stable argsort takes four times the memory of what it returns. Results begin where JAX
wants an array to begin, so that it takes them over without a copy.
"""

from typing import Any

import numpy as np

__all__ = ['aligned', 'in_order', 'stable_order']

Ids = np.ndarray[Any, Any]

STRETCH = 1 << 19  # entries that are handled at a time
ALIGNMENT = 64  # bytes; JAX copies what is not aligned
LOW = (1 << 31) - 1


def aligned(size: int, dtype: Any) -> Ids:
    """Return an array that is not filled, and begins where JAX wants it."""
    dtype = np.dtype(dtype)
    raw = np.empty(size * dtype.itemsize + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + size * dtype.itemsize].view(dtype)


def in_order(x: Ids, order: Ids) -> Ids:
    """Return elements in another order, in memory that JAX takes over without a copy."""
    taken = aligned(order.size, x.dtype)
    for first in range(0, order.size if x.size else 0, STRETCH):  # ids become 64 bits wide
        part = slice(first, first + STRETCH)
        np.take(x, order[part], out=taken[part], mode='clip')
    return taken


def stable_order(keys: Ids, n: int) -> Ids:
    """Return the permutation that sorts keys from 0 to ``n``, and keeps equal ones in order."""
    if max(keys.size, n) > LOW:
        return np.argsort(keys, kind='stable')
    # Key and position in one number: sorted in place, without a second copy.
    both = keys.astype(np.int64)
    both <<= 32
    order = aligned(keys.size, np.int32)
    for first in range(0, keys.size, STRETCH):
        part = slice(first, first + STRETCH)
        both[part] |= np.arange(first, min(first + STRETCH, keys.size))
    both.sort()
    for first in range(0, keys.size, STRETCH):
        part = slice(first, first + STRETCH)
        order[part] = both[part] & LOW
    return order
