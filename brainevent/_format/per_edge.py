# SPDX-License-Identifier: Apache-2.0
"""Operators whose result has a number for every edge, on loose arrays: ``dt2t`` and ``sddmm``.

``dt2t`` multiplies a number for every edge by a vector at the edge's row or column, ``sddmm`` is
the product of two dense matrices at the edges only.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO

from brainevent._docstring import like
from brainevent._edge import Products, Spec, unwrap
from brainevent._edge.operands import (
    as_array,
    as_index,
    check_shape,
    check_structure,
    split_unit,
    with_unit,
)
from brainevent._edge.scale import scales_of
from brainevent._error import DtypeError, ShapeError, expect
from brainevent._format.compressed import CSR_PRODUCTS
from brainevent._format.coo import COO
from brainevent._format.coordinates import COO_PRODUCTS
from brainevent._format.ell import FCN_PRODUCTS

__all__ = [
    'coomm_dt2t',
    'coomm_dt2t_p',
    'coomv_dt2t',
    'coomv_dt2t_p',
    'cscmm_dt2t',
    'cscmv_dt2t',
    'csrmm_dt2t',
    'csrmm_dt2t_p',
    'csrmv_dt2t',
    'csrmv_dt2t_p',
    'csrmv_yw2y',
    'fcnmm_dt2t',
    'fcnmm_dt2t_p',
    'fcnmv_dt2t',
    'fcnmv_dt2t_p',
    'sddmm_bcoo',
    'sddmm_coo_indices',
    'sddmm_indices',
]

CSR_SCALES, COO_SCALES, FCN_SCALES = map(scales_of, (CSR_PRODUCTS, COO_PRODUCTS, FCN_PRODUCTS))
csrmv_dt2t_p, csrmm_dt2t_p = CSR_SCALES.one, CSR_SCALES.many
coomv_dt2t_p, coomm_dt2t_p = COO_SCALES.one, COO_SCALES.many
fcnmv_dt2t_p, fcnmm_dt2t_p = FCN_SCALES.one, FCN_SCALES.many


def _scale(
    products: Products,
    where: str,
    y: Any,
    w: Any,
    structure: Sequence[Any],
    shape: Any,
    transpose: bool,
    backend: str | None,
    *,
    batch: bool = False,
    turned: bool = False,
) -> Any:
    """Scale what functions are given; ``turned`` layouts hold the transpose."""
    names = products.layout.arrays
    arrays = [as_index(where, n, a) for n, a in zip(names, structure, strict=True)]
    m, n = check_shape(where, shape)
    return scales_of(products)(
        where,
        y,
        w,
        arrays,
        shape=(n, m) if turned else (m, n),
        transpose=bool(transpose) is not turned,
        core=arrays[0].shape,
        batch=batch,
        backend=backend,
    )


def csrmv_dt2t(
    y: Any,
    w: Any,
    indices: Any,
    indptr: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a number for every entry of compressed rows by ``y`` at the entry's row.

    Parameters
    ----------
    y : Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
        One number for each row, or column.
    w : Array or Quantity, shape (nse,)
        One number for each entry, of any numeric dtype and unit; one for all will do.
    indices : Array of int, shape (nse,)
        Column of every entry.
    indptr : Array of int, shape (shape[0] + 1,)
        Offsets of rows.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Multiply by ``y`` at the entry's column.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    Array or Quantity, shape (nse,)
        In the product of both units and the common dtype.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError
        If an operand does not fit.
    KernelNotAvailableError
        If ``backend`` is given and cannot serve the call.

    Notes
    -----
    A step of learning with eligibility traces that belong to connections, such as e-prop [1]_.
    Linear in both operands, and differentiable in both, forward and in reverse.

    References
    ----------
    .. [1] Bellec et al., A solution to the learning dilemma for recurrent networks of spiking
       neurons, Nature Communications 11, 3625 (2020).

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> w, structure = jnp.array([1., 2., 3.]), (jnp.array([0, 2, 1]), jnp.array([0, 2, 3]))
    >>> brainevent.csrmv_dt2t(jnp.array([10., 100.]), w, *structure, shape=(2, 3))
    Array([ 10.,  20., 300.], dtype=float32)
    >>> y = jnp.array([1., 10., 100.])
    >>> brainevent.csrmv_dt2t(y, w, *structure, shape=(2, 3), transpose=True)
    Array([  1., 200.,  30.], dtype=float32)
    """
    arrays = (indices, indptr)
    return _scale(CSR_PRODUCTS, 'csrmv_dt2t', y, w, arrays, shape, transpose, backend)


_Y = """Array or Quantity, shape (batch, shape[0]), or (batch, shape[1]) with ``transpose``
    One number for each row, or column."""
_W = """Array or Quantity, shape (batch, nse) or (nse,)
    One number for each entry, in a batch of its own or shared by the batch."""
_BATCH = """Array or Quantity, shape (batch, nse)
    In the product of both units and the common dtype."""
_TABLE = """Array or Quantity, of the shape of ``indices``, with or without a leading axis (batch,)
    One number for each connection, in a batch of its own or shared by the batch."""
_TABLES = """Array or Quantity, shape (batch, *indices.shape)
    In the product of both units and the common dtype."""


@like(csrmv_dt2t, _BATCH, y=_Y, w=_W)
def csrmm_dt2t(
    y: Any,
    w: Any,
    indices: Any,
    indptr: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `csrmv_dt2t` for a batch: ``y`` has shape ``(batch, ...)``, the result too.

    ``w`` has shape ``(batch, nse)``, or is shared by the whole batch.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> w, structure = jnp.array([1., 2., 3.]), (jnp.array([0, 2, 1]), jnp.array([0, 2, 3]))
    >>> y = jnp.array([[1., 10.], [2., 20.]])
    >>> brainevent.csrmm_dt2t(y, jnp.stack([w, w]), *structure, shape=(2, 3))
    Array([[ 1.,  2., 30.],
           [ 2.,  4., 60.]], dtype=float32)
    """
    arrays = (indices, indptr)
    return _scale(CSR_PRODUCTS, 'csrmm_dt2t', y, w, arrays, shape, transpose, backend, batch=True)


# The name of earlier releases.
csrmv_yw2y = csrmv_dt2t


@like(
    csrmv_dt2t,
    indices='Array of int, shape (nse,)\n    Row of every entry.',
    indptr='Array of int, shape (shape[1] + 1,)\n    Offsets of columns.',
)
def cscmv_dt2t(
    y: Any,
    w: Any,
    indices: Any,
    indptr: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `csrmv_dt2t` for compressed columns.

    ``indices`` are rows and ``indptr`` runs over columns; ``shape`` is that of the matrix itself.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> w, structure = jnp.array([1., 2., 3.]), (jnp.array([0, 2, 1]), jnp.array([0, 2, 3]))
    >>> brainevent.cscmv_dt2t(jnp.array([1., 10., 100.]), w, *structure, shape=(3, 2))
    Array([  1., 200.,  30.], dtype=float32)
    """
    arrays = (indices, indptr)
    return _scale(CSR_PRODUCTS, 'cscmv_dt2t', y, w, arrays, shape, transpose, backend, turned=True)


@like(cscmv_dt2t, _BATCH, y=_Y, w=_W)
def cscmm_dt2t(
    y: Any,
    w: Any,
    indices: Any,
    indptr: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `cscmv_dt2t` for a batch, as in `csrmm_dt2t`."""
    return _scale(
        CSR_PRODUCTS, 'cscmm_dt2t', y, w, (indices, indptr), shape, transpose, backend,
        batch=True, turned=True,
    )  # fmt: skip


@like(
    csrmv_dt2t,
    row='Array of int, shape (nse,)\n    Row of every entry.',
    col='Array of int, shape (nse,)\n    Column of every entry.',
)
def coomv_dt2t(
    y: Any,
    w: Any,
    row: Any,
    col: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `csrmv_dt2t` for coordinates.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> w, ends = jnp.array([1., 2., 3.]), (jnp.array([1, 0, 0]), jnp.array([1, 0, 2]))
    >>> brainevent.coomv_dt2t(jnp.array([10., 100.]), w, *ends, shape=(2, 3))
    Array([100.,  20.,  30.], dtype=float32)
    """
    return _scale(COO_PRODUCTS, 'coomv_dt2t', y, w, (row, col), shape, transpose, backend)


@like(coomv_dt2t, _BATCH, y=_Y, w=_W)
def coomm_dt2t(
    y: Any,
    w: Any,
    row: Any,
    col: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `coomv_dt2t` for a batch, as in `csrmm_dt2t`."""
    arrays = (row, col)
    return _scale(COO_PRODUCTS, 'coomm_dt2t', y, w, arrays, shape, transpose, backend, batch=True)


@like(csrmv_dt2t)
def fcnmv_dt2t(
    weights: Any,
    indices: Any,
    y: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a number for every connection of a table by ``y`` at the connection's row.

    Parameters
    ----------
    weights : Array or Quantity, shape (shape[0], connections of each)
        One number for each connection; one for all will do.
    indices : Array of int, of the same shape
        Column of every connection.
    y : Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Multiply by ``y`` at the connection's column.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    Array or Quantity
        In the shape of ``indices`` and the product of both units.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> weights, indices = jnp.array([[1., 2.], [3., 4.]]), jnp.array([[0, 1], [2, 0]])
    >>> brainevent.fcnmv_dt2t(weights, indices, jnp.array([10., 100.]), shape=(2, 3))
    Array([[ 10.,  20.],
           [300., 400.]], dtype=float32)
    """
    return _scale(FCN_PRODUCTS, 'fcnmv_dt2t', y, weights, (indices,), shape, transpose, backend)


@like(fcnmv_dt2t, _TABLES, y=_Y, weights=_TABLE)
def fcnmm_dt2t(
    weights: Any,
    indices: Any,
    y: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Do the same as `fcnmv_dt2t` for a batch: ``y`` has shape ``(batch, ...)``, the result too.

    ``weights`` have a leading batch axis, or are shared by the whole batch.
    """
    arrays = (indices,)
    return _scale(
        FCN_PRODUCTS, 'fcnmm_dt2t', y, weights, arrays, shape, transpose, backend, batch=True
    )


# ---- a product of two dense matrices, at some places --------------------------------------------


def sddmm_coo_indices(A: Any, B: Any, row: Any, col: Any, *, backend: str | None = None) -> Any:
    """Compute the product of two dense matrices at some places only.

    Parameters
    ----------
    A : Array or Quantity, shape (m, k)
    B : Array or Quantity, shape (k, n)
    row, col : Array of int, shape (nse,)
        Where the product is wanted.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    jax.experimental.sparse.BCOO, shape (m, n)
        With ``A[row] @ B[:, col]`` at ``(row, col)``, in the common dtype. A product with a unit,
        which a ``BCOO`` cannot hold, is a `COO` matrix of the same entries.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError
        If an operand does not fit.
    KernelNotAvailableError
        If ``backend`` is given and cannot serve the call.

    Notes
    -----
    Takes ``nse * k`` multiplications; the dense product is never formed. Differentiable in both
    matrices. It is also the derivative of `coomm` towards the weights.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A, B = jnp.array([[1., 2.], [3., 4.]]), jnp.array([[1., 0., 1.], [0., 1., 1.]])
    >>> brainevent.sddmm_coo_indices(A, B, jnp.array([1, 0]), jnp.array([2, 1])).todense()
    Array([[0., 2., 0.],
           [0., 0., 7.]], dtype=float32)
    """
    where = 'sddmm_coo_indices'
    return _sampled(where, A, B, (row, col), backend)


def sddmm_indices(A: Any, B: Any, indices: Any, *, backend: str | None = None) -> Any:
    """Do the same as `sddmm_coo_indices` with places in the rows of one array.

    Parameters
    ----------
    A : Array or Quantity, shape (m, k)
    B : Array or Quantity, shape (k, n)
    indices : Array of int, shape (nse, 2)
        Row and column of every place.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    jax.experimental.sparse.BCOO, shape (m, n)
        See `sddmm_coo_indices`.
    """
    where = 'sddmm_indices'
    ids = as_index(where, 'indices', indices)
    expect(
        ids.ndim == 2 and ids.shape[1] == 2,
        ShapeError,
        where,
        '`indices` are no list of places.',
        expected='shape (nse, 2): row and column of each',
        got=lambda: f'shape {ids.shape}',
    )
    return _sampled(where, A, B, (ids[:, 0], ids[:, 1]), backend)


def sddmm_bcoo(A: Any, B: Any, mat: Any, *, backend: str | None = None) -> Any:
    """Do the same as `sddmm_coo_indices` at the entries of a ``BCOO`` matrix, whatever they hold.

    Parameters
    ----------
    A : Array or Quantity, shape (m, k)
    B : Array or Quantity, shape (k, n)
    mat : jax.experimental.sparse.BCOO, shape (m, n)
        Of two sparse axes. Padding beyond the shape stays padding.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    jax.experimental.sparse.BCOO, shape (m, n)
        With the entries of ``mat`` in their order; see `sddmm_coo_indices`.
    """
    where = 'sddmm_bcoo'
    expect(
        isinstance(mat, BCOO) and mat.n_sparse == 2 and mat.n_batch == mat.n_dense == 0,
        DtypeError,
        where,
        '`mat` is no matrix of JAX in coordinates.',
        expected='a BCOO matrix of two sparse axes',
        got=lambda: repr(mat) if isinstance(mat, BCOO) else type(mat).__name__,
        remedy='use sddmm_coo_indices with rows and columns',
    )
    ends = (mat.indices[:, 0], mat.indices[:, 1])
    return _sampled(where, A, B, ends, backend, shape=tuple(mat.shape))


def _sampled(
    where: str,
    A: Any,
    B: Any,
    ends: Sequence[Any],
    backend: str | None,
    shape: tuple[int, ...] | None = None,
) -> Any:
    """Sample ``A @ B``; where ``shape`` is given, ends may lie outside of it as padding."""
    (a, a_unit), (b, b_unit) = split_unit(unwrap(A)[0]), split_unit(unwrap(B)[0])
    a, b = as_array(where, 'A', a), as_array(where, 'B', b)
    expect(
        a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0],
        ShapeError,
        where,
        '`A` and `B` cannot be multiplied.',
        expected='shapes (m, k) and (k, n)',
        got=lambda: f'shapes {a.shape} and {b.shape}',
    )
    expect(
        shape in (None, (a.shape[0], b.shape[1])),
        ShapeError,
        where,
        '`mat` does not fit the product.',
        expected=lambda: f'shape {(a.shape[0], b.shape[1])}',
        got=lambda: f'shape {shape}',
    )
    both = a.shape[0], b.shape[1]
    arrays = [as_index(where, name, x) for name, x in zip(('row', 'col'), ends, strict=True)]
    if shape is None:
        check_structure(where, COO_PRODUCTS.layout, arrays, both)
    else:
        COO_PRODUCTS.layout.check_shapes(where, tuple(arrays), both)
    dtype = jnp.result_type(a, b)
    dtype = jnp.dtype('int32') if dtype == np.bool_ else dtype
    spec = Spec(COO_PRODUCTS.layout, COO_PRODUCTS.weight, both, transpose=True)
    values = COO_PRODUCTS.sample(arrays, a.astype(dtype), b.T.astype(dtype), spec, backend)
    if a_unit is None and b_unit is None:
        return BCOO((values, jnp.stack(arrays, 1)), shape=both)
    data = with_unit(values, a_unit, b_unit)
    return COO((data, *arrays), shape=both, check_structure=False)
