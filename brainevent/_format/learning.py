# SPDX-License-Identifier: Apache-2.0
"""Learning rules on loose arrays: weights of connections that fired get a trace added.

All follow one rule: an element is a spike when it is True or greater than zero, the trace is
converted to the unit of the weights, and all weights of the result are clipped to the bounds, or
with ``clip='touched'`` those whose neuron fired.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from brainevent._docstring import like
from brainevent._edge import unwrap
from brainevent._edge.operands import as_index, check_shape
from brainevent._edge.update import Updates
from brainevent._format.compressed import CSR_PRODUCTS
from brainevent._format.coordinates import COO_PRODUCTS
from brainevent._format.dense import DENSE_PRODUCTS, Dense
from brainevent._format.ell import FCN_PRODUCTS
from brainevent._format.tagged import TAGGED_PRODUCTS

__all__ = [
    'coo_on_post',
    'coo_on_pre',
    'csr2csc_on_post',
    'csr_on_pre',
    'dense_on_post',
    'dense_on_pre',
    'fcn_plasticity_row_p',
    'update_coo_on_binary_post',
    'update_coo_on_binary_post_p',
    'update_coo_on_binary_pre',
    'update_coo_on_binary_pre_p',
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
    'update_fixed_post_conn_on_binary_pre',
    'update_fixed_pre_conn_on_binary_post',
]

CSR_UPDATES = Updates(
    CSR_PRODUCTS, 'update_csr_on_binary_pre', 'update_csr_on_binary_post_unsorted'
)
TAGGED_UPDATES = Updates(
    TAGGED_PRODUCTS, 'update_csr_on_binary_post', 'update_csr_on_binary_pre_unsorted'
)
COO_UPDATES = Updates(COO_PRODUCTS)
FCN_UPDATES = Updates(FCN_PRODUCTS, 'fcn_plasticity_row', 'fcn_plasticity_column')
DENSE_UPDATES = Updates(DENSE_PRODUCTS)

update_csr_on_binary_pre_p = CSR_UPDATES.pre
update_csr_on_binary_post_p = TAGGED_UPDATES.pre
update_coo_on_binary_pre_p, update_coo_on_binary_post_p = COO_UPDATES.pre, COO_UPDATES.post
update_dense_on_binary_pre_p, update_dense_on_binary_post_p = DENSE_UPDATES.pre, DENSE_UPDATES.post
fcn_plasticity_row_p = FCN_UPDATES.pre


def _learn(
    updates: Updates,
    where: str,
    weight: Any,
    structure: Sequence[Any],
    spikes: Any,
    trace: Any,
    bounds: tuple[Any, Any, str],
    shape: Any,
    backend: str | None,
    *,
    rows: bool = True,
    turned: bool = False,
) -> Any:
    """Update structure and weights as a function was given them.

    ``rows`` of the layout fire, or its columns; ``turned`` layouts hold the transpose.
    """
    names = updates.products.layout.arrays
    arrays = [as_index(where, n, a) for n, a in zip(names, structure, strict=True)]
    m, n = check_shape(where, shape)
    return updates(
        where,
        weight,
        arrays,
        spikes,
        trace,
        *bounds[:2],
        clip=bounds[2],
        shape=(n, m) if turned else (m, n),
        transpose=rows,
        backend=backend,
    )


def _columns(m: str, n: str, **parameters: str) -> dict[str, str]:
    """Return the entries of parameters of an update by columns that fired."""
    trace = f"""Array or Quantity, shape ({m},)
    Added to the weights of columns that fired, in any unit that the weights can be measured in."""
    spike = f"""Array or BinaryArray, shape ({n},)
    A column fires if its element is True or greater than zero."""
    return {'pre_trace': trace, 'post_spike': spike, **parameters}


_ROW, _COLUMN = (
    'Array of int, shape (nse,)\n    Row of every connection.',
    'Array of int, shape (shape[1] + 1,)\n    Offsets of columns.',
)


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
    clip: str = 'all',
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
    clip : {'all', 'touched'}
        Hold all weights between the bounds, which is one pass over all of them, or those of the
        rows that fired only, which is right if the others were within the bounds before.

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
    in place. The derivative towards weights, trace and bounds is that of the formula, towards
    spikes straight through.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> parts = jnp.array([1., 2., 3.]), jnp.array([0, 2, 1]), jnp.array([0, 2, 3])
    >>> spikes, trace = jnp.array([True, False]), jnp.array([.5, .25, .125])
    >>> brainevent.update_csr_on_binary_pre(*parts, spikes, trace, 0., 2., shape=(2, 3))
    Array([1.5, 2. , 2. ], dtype=float32)
    """
    where, bounds = 'update_csr_on_binary_pre', (w_min, w_max, clip)
    arrays = (indices, indptr)
    return _learn(CSR_UPDATES, where, weight, arrays, pre_spike, post_trace, bounds, shape, backend)


@like(update_csr_on_binary_pre, **_columns('shape[0]', 'shape[1]'))
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
    clip: str = 'all',
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
    w_min, w_max, shape, backend, clip
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
    where, bounds = 'update_csr_on_binary_post', (w_min, w_max, clip)
    arrays = (indices, indptr, weight_indices)
    return _learn(
        TAGGED_UPDATES, where, weight, arrays, post_spike, pre_trace, bounds, shape, backend,
        turned=True,
    )  # fmt: skip


@like(update_csr_on_binary_pre, indices=_ROW, indptr=_COLUMN)
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
    clip: str = 'all',
) -> Any:
    """Add the trace of the columns to the weights of rows that fired, in compressed columns.

    Like `update_csr_on_binary_pre`, but ``indices`` are rows and ``indptr`` runs over columns.
    Every connection is asked; where that matters, keep an index of rows and use
    `update_csr_on_binary_post` with the roles of rows and columns swapped.
    """
    where, bounds = 'update_csc_on_binary_pre', (w_min, w_max, clip)
    arrays = (indices, indptr)
    return _learn(
        CSR_UPDATES, where, weight, arrays, pre_spike, post_trace, bounds, shape, backend,
        rows=False, turned=True,
    )  # fmt: skip


@like(update_csc_on_binary_pre, **_columns('shape[0]', 'shape[1]'))
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
    clip: str = 'all',
) -> Any:
    """Add the trace of the rows to the weights of columns that fired, in compressed columns.

    Like `update_csr_on_binary_pre` with the roles of rows and columns swapped.
    """
    where, bounds = 'update_csc_on_binary_post', (w_min, w_max, clip)
    arrays = (indices, indptr)
    return _learn(
        CSR_UPDATES, where, weight, arrays, post_spike, pre_trace, bounds, shape, backend,
        turned=True,
    )  # fmt: skip


@like(update_csr_on_binary_pre)
def update_dense_on_binary_pre(
    weight: Any,
    pre_spike: Any,
    post_trace: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    backend: str | None = None,
    clip: str = 'all',
) -> Any:
    """Add the trace of the columns to rows that fired of a dense matrix.

    Parameters
    ----------
    weight : Array or Quantity, shape (m, n)
    pre_spike : Array or BinaryArray, shape (m,)
    post_trace : Array or Quantity, shape (n,)
    w_min, w_max, backend, clip
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
    where, matrix = 'update_dense_on_binary_pre', Dense(weight)
    bounds = (w_min, w_max, clip)
    return _learn(
        DENSE_UPDATES, where, matrix.data, (), pre_spike, post_trace, bounds, matrix.shape, backend
    )


@like(update_dense_on_binary_pre, **_columns('m', 'n'))
def update_dense_on_binary_post(
    weight: Any,
    pre_trace: Any,
    post_spike: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    backend: str | None = None,
    clip: str = 'all',
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
    where, matrix = 'update_dense_on_binary_post', Dense(weight)
    bounds = (w_min, w_max, clip)
    return _learn(
        DENSE_UPDATES, where, matrix.data, (), post_spike, pre_trace, bounds, matrix.shape, backend,
        rows=False,
    )  # fmt: skip


@like(update_csr_on_binary_pre)
def update_coo_on_binary_pre(
    weight: Any,
    pre_ids: Any,
    post_ids: Any,
    pre_spike: Any,
    post_trace: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    backend: str | None = None,
    clip: str = 'all',
) -> Any:
    """Add the trace of the columns to the weights of rows that fired, in coordinates.

    Parameters
    ----------
    weight : Array or Quantity, shape (nse,)
    pre_ids, post_ids : Array of int, shape (nse,)
        Row and column of every connection, in any order.
    pre_spike : Array or BinaryArray, shape (rows,)
    post_trace : Array or Quantity, shape (columns,)
    w_min, w_max, backend, clip
        See `update_csr_on_binary_pre`.

    Returns
    -------
    Array or Quantity, shape (nse,)

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> ids = jnp.array([1, 0, 1]), jnp.array([0, 1, 2])
    >>> spikes, trace = jnp.array([False, True]), jnp.array([.5, .25, .125])
    >>> brainevent.update_coo_on_binary_pre(jnp.ones(3), *ids, spikes, trace)
    Array([1.5  , 1.   , 1.125], dtype=float32)
    """
    where, bounds = 'update_coo_on_binary_pre', (w_min, w_max, clip)
    shape, arrays = (_length(pre_spike), _length(post_trace)), (pre_ids, post_ids)
    return _learn(COO_UPDATES, where, weight, arrays, pre_spike, post_trace, bounds, shape, backend)


@like(update_coo_on_binary_pre, **_columns('rows', 'columns'))
def update_coo_on_binary_post(
    weight: Any,
    pre_ids: Any,
    post_ids: Any,
    pre_trace: Any,
    post_spike: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    backend: str | None = None,
    clip: str = 'all',
) -> Any:
    """Add the trace of the rows to the weights of columns that fired, in coordinates.

    Like `update_coo_on_binary_pre` with the roles of rows and columns swapped.
    """
    where, bounds = 'update_coo_on_binary_post', (w_min, w_max, clip)
    shape, arrays = (_length(pre_trace), _length(post_spike)), (pre_ids, post_ids)
    return _learn(
        COO_UPDATES, where, weight, arrays, post_spike, pre_trace, bounds, shape, backend,
        rows=False,
    )  # fmt: skip


def _length(x: Any) -> int:
    """Return the length of a vector; whether it is one is checked where its name is known."""
    return int(np.size(unwrap(x)[0]))


@like(update_csr_on_binary_pre)
def update_fixed_post_conn_on_binary_pre(
    data: Any,
    indices: Any,
    pre_spike: Any,
    post_trace: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    shape: Any,
    backend: str | None = None,
    clip: str = 'all',
) -> Any:
    """Add the trace to the weights of rows that fired, each with a fixed number of connections.

    Parameters
    ----------
    data : Array or Quantity, shape (shape[0], connections of each)
    indices : Array of int, of the same shape
        Column of every connection.
    pre_spike : Array or BinaryArray, shape (shape[0],)
    post_trace : Array or Quantity, shape (shape[1],)
    w_min, w_max, shape, backend, clip
        See `update_csr_on_binary_pre`.

    Returns
    -------
    Array or Quantity
        In the shape of ``data``.
    """
    where, bounds = 'update_fixed_post_conn_on_binary_pre', (w_min, w_max, clip)
    return _learn(
        FCN_UPDATES, where, data, (indices,), pre_spike, post_trace, bounds, shape, backend
    )


@like(
    update_fixed_post_conn_on_binary_pre,
    **_columns(
        'shape[0]',
        'shape[1]',
        data='Array or Quantity, shape (shape[1], connections of each)',
        indices='Array of int, of the same shape\n    Row of every connection.',
    ),
)
def update_fixed_pre_conn_on_binary_post(
    data: Any,
    indices: Any,
    pre_trace: Any,
    post_spike: Any,
    w_min: Any = None,
    w_max: Any = None,
    *,
    shape: Any,
    backend: str | None = None,
    clip: str = 'all',
) -> Any:
    """Add the trace to the weights of columns that fired, each with a fixed number of connections.

    Like `update_fixed_post_conn_on_binary_pre`, but ``data`` and ``indices``, which hold rows, have
    one line for each column of the matrix.
    """
    where, bounds = 'update_fixed_pre_conn_on_binary_post', (w_min, w_max, clip)
    return _learn(
        FCN_UPDATES, where, data, (indices,), post_spike, pre_trace, bounds, shape, backend,
        turned=True,
    )  # fmt: skip


# Names of earlier releases.
csr_on_pre, csr2csc_on_post = update_csr_on_binary_pre, update_csr_on_binary_post
dense_on_pre, dense_on_post = update_dense_on_binary_pre, update_dense_on_binary_post
coo_on_pre, coo_on_post = update_coo_on_binary_pre, update_coo_on_binary_post
