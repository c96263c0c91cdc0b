# SPDX-License-Identifier: Apache-2.0
"""Learning rules on loose arrays: weights of connections that fired get a trace added.

All follow one rule: an element is a spike when it is True or greater than zero, the trace is
converted to the unit of the weights, and all weights of the result are clipped to the bounds.
"""

from typing import Any

from brainevent._edge.operands import as_index, check_shape
from brainevent._edge.update import Updates
from brainevent._format.compressed import CSR_PRODUCTS
from brainevent._format.dense import DENSE_PRODUCTS, Dense
from brainevent._format.tagged import TAGGED_PRODUCTS
from brainevent._typing import Array

__all__ = [
    'update_csc_on_binary_post',
    'update_csc_on_binary_pre',
    'update_csr_on_binary_post',
    'update_csr_on_binary_post_p',
    'update_csr_on_binary_pre',
    'update_csr_on_binary_pre_p',
    'update_dense_on_binary_post',
    'update_dense_on_binary_post_p',
    'update_dense_on_binary_pre',
    'update_dense_on_binary_pre_p',
]

CSR_UPDATES = Updates(CSR_PRODUCTS, 'update_csr_on_binary_pre', 'update_csr_on_binary_post_unsorted')
TAGGED_UPDATES = Updates(
    TAGGED_PRODUCTS, 'update_csr_on_binary_post', 'update_csr_on_binary_pre_unsorted'
)
DENSE_UPDATES = Updates(DENSE_PRODUCTS)

update_csr_on_binary_pre_p = CSR_UPDATES.pre
update_csr_on_binary_post_p = TAGGED_UPDATES.pre
update_dense_on_binary_pre_p = DENSE_UPDATES.pre
update_dense_on_binary_post_p = DENSE_UPDATES.post


def _compressed(where: str, indices: Any, indptr: Any) -> tuple[Array, Array]:
    return as_index(where, 'indices', indices), as_index(where, 'indptr', indptr)


def update_csr_on_binary_pre(
    weight: Any,
    indices: Any,
    indptr: Any,
    pre_spike: Any,
    post_trace: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    shape: Any,
    backend: str | None = None,
) -> Any:
    """Add the trace of the columns to the weights of rows that fired, in compressed rows.

    Parameters
    ----------
    weight : Array or Quantity, shape (nse,)
        One weight for each connection.
    indices : Array of int, shape (nse,)
        Column of every connection.
    indptr : Array of int, shape (shape[0] + 1,)
        Offsets of rows.
    pre_spike : Array or BinaryArray, shape (shape[0],)
        A row fires when its element is True or greater than zero.
    post_trace : Array or Quantity, shape (shape[1],)
        In any unit that the weights can be measured in.
    w_min, w_max : number, Array or Quantity, optional
        Bounds of all weights of the result.
    shape : tuple of int
        Rows and columns.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    Array or Quantity, shape (nse,)
        In the unit of ``weight``.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError
        If an operand does not fit, or connections share one weight.
    UnitError
        If the trace or a bound measures something else than the weights.

    Notes
    -----
    Only rows that fired are visited. Weights that are donated or carried by `jax.lax.scan` change
    in place. The derivative towards weights and trace is that of the formula, towards spikes
    straight through.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> parts = jnp.array([1., 2., 3.]), jnp.array([0, 2, 1]), jnp.array([0, 2, 3])
    >>> spikes, trace = jnp.array([True, False]), jnp.array([.5, .25, .125])
    >>> brainevent.update_csr_on_binary_pre(*parts, spikes, trace, 0., 2., shape=(2, 3))
    Array([1.5, 2. , 2. ], dtype=float32)
    """
    where = 'update_csr_on_binary_pre'
    return CSR_UPDATES(
        where,
        weight,
        _compressed(where, indices, indptr),
        pre_spike,
        post_trace,
        w_min,
        w_max,
        shape=check_shape(where, shape),
        transpose=True,
        backend=backend,
    )


def update_csr_on_binary_post(
    weight: Any,
    indices: Any,
    indptr: Any,
    weight_indices: Any,
    pre_trace: Any,
    post_spike: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    shape: Any,
    backend: str | None = None,
) -> Any:
    """Add the trace of the rows to the weights of columns that fired, found by an index of columns.

    Parameters
    ----------
    weight : Array or Quantity, shape (nse,)
        One weight for each connection, in any order.
    indices : Array of int, shape (nse,)
        Row of every connection, column by column.
    indptr : Array of int, shape (shape[1] + 1,)
        Offsets of columns.
    weight_indices : Array of int, shape (nse,)
        Position in ``weight`` of every entry of ``indices``.
    pre_trace : Array or Quantity, shape (shape[0],)
    post_spike : Array or BinaryArray, shape (shape[1],)
    w_min, w_max, shape, backend
        See `update_csr_on_binary_pre`.

    Returns
    -------
    Array or Quantity, shape (nse,)
        In the order of ``weight``.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> weight = jnp.array([1., 2., 3.])  # row by row, at columns 0, 2 and 1
    >>> index = jnp.array([0, 1, 0]), jnp.array([0, 1, 2, 3]), jnp.array([0, 2, 1])
    >>> spikes, trace = jnp.array([True, False, True]), jnp.array([.5, .25])
    >>> brainevent.update_csr_on_binary_post(weight, *index, trace, spikes, shape=(2, 3))
    Array([1.5, 2.5, 3. ], dtype=float32)
    """
    where = 'update_csr_on_binary_post'
    tag = as_index(where, 'weight_indices', weight_indices)
    m, n = check_shape(where, shape)
    return TAGGED_UPDATES(
        where,
        weight,
        (*_compressed(where, indices, indptr), tag),
        post_spike,
        pre_trace,
        w_min,
        w_max,
        shape=(n, m),
        transpose=True,
        backend=backend,
    )


def update_csc_on_binary_pre(
    weight: Any,
    indices: Any,
    indptr: Any,
    pre_spike: Any,
    post_trace: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    shape: Any,
    backend: str | None = None,
) -> Any:
    """Add the trace of the columns to the weights of rows that fired, in compressed columns.

    Like `update_csr_on_binary_pre`, but ``indices`` are rows and ``indptr`` runs over columns.
    Every connection is asked; where that matters, keep an index of rows and use
    `update_csr_on_binary_post` with the roles of rows and columns swapped.
    """
    where = 'update_csc_on_binary_pre'
    m, n = check_shape(where, shape)
    return CSR_UPDATES(
        where,
        weight,
        _compressed(where, indices, indptr),
        pre_spike,
        post_trace,
        w_min,
        w_max,
        shape=(n, m),
        transpose=False,
        backend=backend,
    )


def update_csc_on_binary_post(
    weight: Any,
    indices: Any,
    indptr: Any,
    pre_trace: Any,
    post_spike: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    shape: Any,
    backend: str | None = None,
) -> Any:
    """Add the trace of the rows to the weights of columns that fired, in compressed columns.

    Like `update_csr_on_binary_pre` with the roles of rows and columns swapped.
    """
    where = 'update_csc_on_binary_post'
    m, n = check_shape(where, shape)
    return CSR_UPDATES(
        where,
        weight,
        _compressed(where, indices, indptr),
        post_spike,
        pre_trace,
        w_min,
        w_max,
        shape=(n, m),
        transpose=True,
        backend=backend,
    )


def update_dense_on_binary_pre(
    weight: Any,
    pre_spike: Any,
    post_trace: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    backend: str | None = None,
) -> Any:
    """Add the trace of the columns to rows that fired of a dense matrix.

    Parameters
    ----------
    weight : Array or Quantity, shape (m, n)
    pre_spike : Array or BinaryArray, shape (m,)
    post_trace : Array or Quantity, shape (n,)
    w_min, w_max, backend
        See `update_csr_on_binary_pre`.

    Returns
    -------
    Array or Quantity, shape (m, n)

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> spikes, trace = jnp.array([False, True]), jnp.array([.5, .25])
    >>> brainevent.update_dense_on_binary_pre(jnp.ones((2, 2)), spikes, trace)
    Array([[1.  , 1.  ],
           [1.5 , 1.25]], dtype=float32)
    """
    where = 'update_dense_on_binary_pre'
    return _update_dense(where, weight, pre_spike, post_trace, w_min, w_max, True, backend)


def update_dense_on_binary_post(
    weight: Any,
    pre_trace: Any,
    post_spike: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    backend: str | None = None,
) -> Any:
    """Add the trace of the rows to columns that fired of a dense matrix.

    Like `update_dense_on_binary_pre` with the roles of rows and columns swapped.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> spikes, trace = jnp.array([False, True]), jnp.array([.5, .25])
    >>> brainevent.update_dense_on_binary_post(jnp.ones((2, 2)), trace, spikes)
    Array([[1.  , 1.5 ],
           [1.  , 1.25]], dtype=float32)
    """
    where = 'update_dense_on_binary_post'
    return _update_dense(where, weight, post_spike, pre_trace, w_min, w_max, False, backend)


def _update_dense(
    where: str,
    weight: Any,
    spikes: Any,
    trace: Any,
    w_min: Any,
    w_max: Any,
    transpose: bool,
    backend: str | None,
) -> Any:
    matrix = Dense(weight)
    return DENSE_UPDATES(
        where,
        matrix.data,
        (),
        spikes,
        trace,
        w_min,
        w_max,
        shape=matrix.shape,
        transpose=transpose,
        backend=backend,
        checked=True,
    )
