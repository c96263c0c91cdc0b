# SPDX-License-Identifier: Apache-2.0
"""Products of compressed rows whose entry ``j`` has the weight ``data[perm[j]]``.

So one array of weights serves two orders of the same matrix, by row and by column.
"""

from typing import Any

from brainevent._docstring import BATCH, EVENT_BATCH, EVENTS, PRODUCT_BATCH, like
from brainevent._edge import Event
from brainevent._format.functions import multiply
from brainevent._format.tagged import TAGGED_PRODUCTS

__all__ = [
    'binary_csrmm_indexed',
    'binary_csrmm_indexed_p',
    'binary_csrmv_indexed',
    'binary_csrmv_indexed_p',
    'csrmm_indexed',
    'csrmm_indexed_p',
    'csrmv_indexed',
    'csrmv_indexed_p',
]

csrmv_indexed_p, csrmm_indexed_p = TAGGED_PRODUCTS.primitives(Event.REAL)
binary_csrmv_indexed_p, binary_csrmm_indexed_p = TAGGED_PRODUCTS.primitives(Event.BINARY)


def csrmv_indexed(
    data: Any,
    indices: Any,
    indptr: Any,
    perm: Any,
    v: Any,
    *,
    shape: Any,
    workspace: Any = None,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in compressed rows, whose weights are in another order, by a vector.

    Parameters
    ----------
    data : Array or Quantity, shape () or (1,) or (nse,)
        One weight for all entries, or one for each, of any numeric dtype and unit.
    indices : Array of int, shape (nse,)
        Column of every entry.
    indptr : Array of int, shape (shape[0] + 1,)
        Offsets of rows.
    perm : Array of int, shape (nse,)
        Where in ``data`` each entry has its weight; every place once.
    v : Array or Quantity, shape (shape[1],), or (shape[0],) with ``transpose``
        Multiplied by value; a bool counts 0 or 1.
    shape : tuple of int
        Rows and columns.
    workspace : object, optional
        Accepted and not used.
    transpose : bool
        Multiply by the transpose.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
        In the product of both units and the common dtype.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError
        If an operand does not fit.
    KernelNotAvailableError
        If ``backend`` is given and cannot serve the call.

    See Also
    --------
    csr_to_csc_index : makes ``indices``, ``indptr`` and ``perm`` of the other order.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> data = jnp.array([1., 2., 3.])  # by row, at columns 0, 2 and 1
    >>> indptr, indices, perm = brainevent.csr_to_csc_index(
    ...     jnp.array([0, 2, 3]), jnp.array([0, 2, 1]), shape=(2, 3)
    ... )
    >>> by_column = data, indices, indptr, perm
    >>> brainevent.csrmv_indexed(*by_column, jnp.array([1., 10.]), shape=(3, 2))
    Array([ 1., 30.,  2.], dtype=float32)
    """
    return multiply(
        TAGGED_PRODUCTS, 'csrmv_indexed', data, (indices, indptr, perm), v,
        shape=shape, transpose=transpose, backend=backend,
    )  # fmt: skip


@like(csrmv_indexed, PRODUCT_BATCH, B=BATCH)
def csrmm_indexed(
    data: Any,
    indices: Any,
    indptr: Any,
    perm: Any,
    B: Any,
    *,
    shape: Any,
    workspace: Any = None,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `csrmv_indexed` for every column of a dense matrix ``B``."""
    return multiply(
        TAGGED_PRODUCTS, 'csrmm_indexed', data, (indices, indptr, perm), B,
        shape=shape, transpose=transpose, backend=backend,
    )  # fmt: skip


@like(csrmv_indexed, v=EVENTS)
def binary_csrmv_indexed(
    data: Any,
    indices: Any,
    indptr: Any,
    perm: Any,
    v: Any,
    *,
    shape: Any,
    workspace: Any = None,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix in compressed rows, whose weights are in another order, by events.

    Like `csrmv_indexed`, but an element of ``v`` counts exactly one when it is True or greater
    than zero, and nothing otherwise.
    """
    return multiply(
        TAGGED_PRODUCTS, 'binary_csrmv_indexed', data, (indices, indptr, perm), v,
        shape=shape, transpose=transpose, backend=backend, event=Event.BINARY,
    )  # fmt: skip


@like(binary_csrmv_indexed, PRODUCT_BATCH, B=EVENT_BATCH)
def binary_csrmm_indexed(
    data: Any,
    indices: Any,
    indptr: Any,
    perm: Any,
    B: Any,
    *,
    shape: Any,
    workspace: Any = None,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `binary_csrmv_indexed` for every column of ``B``."""
    return multiply(
        TAGGED_PRODUCTS, 'binary_csrmm_indexed', data, (indices, indptr, perm), B,
        shape=shape, transpose=transpose, backend=backend, event=Event.BINARY,
    )  # fmt: skip
