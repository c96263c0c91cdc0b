# SPDX-License-Identifier: Apache-2.0
"""Rows of a matrix on loose arrays: only the rows that are asked for are walked."""

from typing import Any

import jax.numpy as jnp

from brainevent._edge.operands import as_index, check_shape
from brainevent._edge.pick import picks_of
from brainevent._format.compressed import CSR_PRODUCTS

__all__ = ['csr_slice_rows', 'csr_slice_rows_grad_p', 'csr_slice_rows_p']

CSR_PICKS = picks_of(CSR_PRODUCTS)
csr_slice_rows_p, csr_slice_rows_grad_p = CSR_PICKS.ops[False, False], CSR_PICKS.ops[False, True]


def csr_slice_rows(
    data: Any,
    indices: Any,
    indptr: Any,
    row_indices: Any,
    *,
    shape: Any,
    backend: str | None = None,
) -> Any:
    """Return rows of a matrix in compressed rows, as a dense array.

    Parameters
    ----------
    data : Array or Quantity, shape () or (1,) or (nse,)
        One weight for all entries, or one for each, of any numeric dtype and unit.
    indices : Array of int, shape (nse,)
        Column of every entry.
    indptr : Array of int, shape (shape[0] + 1,)
        Offsets of rows.
    row_indices : int or Array of int
        Rows, in any order and as often as wanted; traced or not. What is no row, a negative
        number included, gives zeros.
    shape : tuple of int
        Rows and columns.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    Array or Quantity, shape (*row_indices.shape, shape[1])
        In the dtype and unit of ``data``; repeated entries add up.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError
        If an operand does not fit.
    KernelNotAvailableError
        If ``backend`` is given and cannot serve the call.

    Notes
    -----
    Takes time in proportion to the result and the entries of these rows. Linear in ``data``, and
    differentiable in it, forward and in reverse.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> parts = jnp.array([1., 2., 3.]), jnp.array([0, 2, 1]), jnp.array([0, 2, 3])
    >>> brainevent.csr_slice_rows(*parts, jnp.array([1, 0]), shape=(2, 3))
    Array([[0., 3., 0.],
           [1., 0., 2.]], dtype=float32)
    >>> brainevent.csr_slice_rows(*parts, 0, shape=(2, 3))
    Array([1., 0., 2.], dtype=float32)
    """
    where = 'csr_slice_rows'
    return CSR_PICKS(
        where,
        data,
        [as_index(where, n, a) for n, a in (('indices', indices), ('indptr', indptr))],
        jnp.asarray(as_index(where, 'row_indices', row_indices)),
        shape=check_shape(where, shape),
        transpose=True,
        backend=backend,
    )
