# SPDX-License-Identifier: Apache-2.0
"""Dense matrices: every row owns an edge to every column. Also the door of ``events @ anything``.

``as_matrix`` turns whatever stands beside an event array into a matrix.
"""

import operator
from collections.abc import Callable
from typing import Any, ClassVar, Self

import brainunit as u
import jax
import jax.numpy as jnp

from brainevent._docstring import like
from brainevent._edge import STORED, Event, Layout, Products, Twin, Walk, unwrap
from brainevent._edge.intake import is_array_like
from brainevent._edge.operands import as_array, check_shape, split_unit
from brainevent._error import ShapeError, expect
from brainevent._format.base import DataRepresentation, StoredMatrix
from brainevent._format.bridge import FORMATS, as_sparse
from brainevent._format.indexing import map_number, row_ids
from brainevent._pytree import pytree
from brainevent._typing import Array, Shape

__all__ = [
    'Dense',
    'as_matrix',
    'binary_densemm',
    'binary_densemm_p',
    'binary_densemv',
    'binary_densemv_p',
    'densemm_p',
    'densemv_p',
]


def _edges(arrays: tuple[Array, ...], shape: Shape) -> tuple[Array, Array]:
    m, n = shape
    dtype = jnp.int32 if max(m, n) < 2**31 else jnp.int64
    row, col = jnp.arange(m, dtype=dtype), jnp.arange(n, dtype=dtype)
    return jnp.repeat(row, n, total_repeat_length=m * n), jnp.tile(col, m)


def _sound(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    """There is no structure that could be wrong."""


# ---- native walks: edge e is row e // n, column e % n ----


def _row_span(s, m, n, i):  # type: ignore[no-untyped-def]
    return i * n, (i + 1) * n


def _row_far(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return e - i * n


def _row_tag(s, m, n, i, e):  # type: ignore[no-untyped-def]
    return e


def _column_span(s, m, n, j):  # type: ignore[no-untyped-def]
    return j * m, (j + 1) * m


def _column_far(s, m, n, j, e):  # type: ignore[no-untyped-def]
    return e - j * m


def _column_tag(s, m, n, j, e):  # type: ignore[no-untyped-def]
    return (e - j * m) * n + j


DENSE_LAYOUT = Layout(
    name='dense',
    arrays=(),
    ranks=(),
    edges=_edges,
    count=lambda arrays, shape: shape[0] * shape[1],
    check_shapes=_sound,
    check_values=_sound,
    walk=Walk(_row_span, _row_far, _row_tag, cuda=Twin('be::Full')),
    cowalk=Walk(_column_span, _column_far, _column_tag, direct=False, cuda=Twin('be::Full')),
)

DENSE_PRODUCTS = Products(DENSE_LAYOUT, STORED, 'dense')
densemv_p, densemm_p = DENSE_PRODUCTS.primitives(Event.REAL)
binary_densemv_p, binary_densemm_p = DENSE_PRODUCTS.primitives(Event.BINARY)

# Without events there is nothing to skip: JAX's own product is the one to beat, and is not beaten.
for _op in (densemv_p, densemm_p, *DENSE_PRODUCTS.samples.values()):
    _op.set_default('cpu', 'jax_raw')


def _elementwise(op: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    """Make a method that combines weights with anything that broadcasts to their shape."""

    def method(self: Any, other: Any) -> Any:
        other = self._operand(op.__name__, other)
        if other is NotImplemented:
            return other
        other = other.todense() if isinstance(other, StoredMatrix) else other
        return self._reweighted(op(other, self._own) if reflected else op(self._own, other))

    method.__name__ = f'__{"r" * reflected}{op.__name__}__'
    method.__qualname__ = f'Dense.{method.__name__}'
    return method


@pytree
class Dense(StoredMatrix):
    """Dense matrix whose products with events visit active rows or columns only.

    Parameters
    ----------
    data : array_like or Quantity, shape (m, n)
        The weights, in any unit.
    shape : tuple of int, optional
        Checked against the shape of ``data``.
    backend : str, optional
        Demand a backend for every product of this matrix.
    buffers : dict, optional
        Named values carried along.

    Raises
    ------
    ShapeError
        If ``data`` does not have two axes, or another shape than ``shape``.

    Notes
    -----
    Products with plain arrays are JAX's own; products with events add up rows, or pick columns,
    of active elements.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> W = brainevent.Dense(jnp.array([[1., 2.], [3., 4.], [5., 6.]]))
    >>> brainevent.BinaryArray([True, False, True]) @ W
    Array([6., 8.], dtype=float32)
    >>> W @ jnp.ones(2)
    Array([ 3.,  7., 11.], dtype=float32)
    """

    structure: ClassVar[tuple[str, ...]] = ()
    families: ClassVar = (DENSE_PRODUCTS, DENSE_PRODUCTS)

    def __init__(
        self, data: Any, *, shape: Any = None, backend: str | None = None, buffers: Any = None
    ) -> None:
        if isinstance(data, tuple) and len(data) == 1:
            (data,) = data
        number, unit = split_unit(data)
        number = as_array('Dense', 'data', number)
        wanted = None if shape is None else check_shape('Dense', shape)
        expect(
            number.ndim == 2 and wanted in (None, number.shape),
            ShapeError,
            'Dense',
            '`data` does not fit.',
            expected='two axes' if wanted is None else f'shape {wanted}',
            got=lambda: f'shape {number.shape}',
        )
        self._set(shape=number.shape, backend=backend, mirror=())
        self._set(_buffers=dict(buffers or {}))
        self._set(data=number if unit is None else u.Quantity(number, unit=unit))

    @classmethod
    def fromdense(cls, mat: Any, *, backend: str | None = None, buffers: Any = None) -> Self:
        """Make a matrix of a dense array; the same as the constructor.

        Parameters
        ----------
        mat : array_like or Quantity, shape (m, n)
        backend : str, optional
        buffers : dict, optional

        Returns
        -------
        Dense
        """
        return cls(mat, backend=backend, buffers=buffers)

    @classmethod
    def _fromcoo(cls, coo: Any) -> Self:
        return cls(coo.todense(), backend=coo.backend)

    def _check_data(self, where: str, shape: tuple[int, ...]) -> None:
        expect(
            shape == self.shape,
            ShapeError,
            where,
            '`data` does not fit.',
            expected=lambda: f'shape {self.shape}',
            got=lambda: f'shape {shape}',
        )

    def transpose(self, axes: Any = None) -> 'Dense':
        """Return the transpose."""
        turned = self._turned(Dense, axes)
        return turned._set(data=self._own.T)  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        """Return a part of the weights, as numpy does it.

        A traced index outside the matrix gives zeros, a concrete one an `IndexRangeError`.
        """
        parts = index if isinstance(index, tuple) else (index,)
        return self._own[index] if any(p is None for p in parts) else super().__getitem__(index)

    def _rows(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._own[index]
        return self._filled(row_ids('Dense', index, self.shape[0]))

    def _elements(self, row: Any, col: Any) -> Any:
        m, n = self.shape
        return self._filled((row_ids('Dense', row, m), row_ids('Dense', col, n)))

    def _filled(self, ids: Any) -> Any:
        return map_number(lambda x: x.at[ids].get(mode='fill', fill_value=0), self._own)

    def slice_rows(self, index: Any) -> 'Dense':
        """Return some rows as a matrix.

        Parameters
        ----------
        index : int, slice or array of int or bool

        Returns
        -------
        Dense
        """
        rows = self[index]
        return Dense(rows.reshape(-1, self.shape[1]), backend=self.backend)

    def with_mirror(self) -> Self:
        """Return the matrix itself: it can be walked by row and by column as it is."""
        return self

    def todense(self) -> Any:
        """Return the weights."""
        return self._own

    def tocoo(self, **options: Any) -> Any:
        """Convert to coordinates; options as for `tocsr`."""
        return self._sparse('COO', options)

    def tocsr(self, **options: Any) -> Any:
        """Convert to compressed rows, which hold what is not zero.

        Parameters
        ----------
        **options
            ``nse``, ``index_dtype`` and ``precompute_weight_indices`` as in ``fromdense`` of the
            sparse format; a traced matrix needs ``nse``.

        Returns
        -------
        CSR
        """
        return self._sparse('CSR', options)

    def tocsc(self, **options: Any) -> Any:
        """Convert to compressed columns; options as for `tocsr`."""
        return self._sparse('CSC', options)

    def _sparse(self, name: str, options: dict[str, Any]) -> Any:
        return FORMATS[name].fromdense(self._own, backend=self.backend, **options)

    def _spread(self, data: Any) -> Any:
        return data.reshape(self.shape)

    __mul__, __rmul__ = _elementwise(operator.mul), _elementwise(operator.mul, True)
    __add__, __radd__ = _elementwise(operator.add), _elementwise(operator.add, True)
    __sub__, __rsub__ = _elementwise(operator.sub), _elementwise(operator.sub, True)
    __mod__, __rmod__ = _elementwise(operator.mod), _elementwise(operator.mod, True)
    __pow__, __rpow__ = _elementwise(operator.pow), _elementwise(operator.pow, True)
    __truediv__ = _elementwise(operator.truediv)
    __rtruediv__ = _elementwise(operator.truediv, True)
    __floordiv__ = _elementwise(operator.floordiv)
    __rfloordiv__ = _elementwise(operator.floordiv, True)


def as_matrix(x: Any) -> Any:
    """Take whatever can stand beside an event array in a product as a matrix.

    Parameters
    ----------
    x : matrix, or array_like or Quantity of shape (m, n), or sparse matrix of scipy or JAX

    Returns
    -------
    Matrix
        Matrices of this package as they are, arrays as `Dense` without a copy.

    Raises
    ------
    ShapeError
        If an array does not have two axes.
    DtypeError
        If ``x`` is no array at all.
    """
    if isinstance(x, DataRepresentation):
        return x
    if isinstance(x, u.Quantity) and isinstance(x.mantissa, DataRepresentation):
        return x.mantissa * x.unit  # what `unit * matrix` makes
    x = unwrap(x)[0]
    if not isinstance(x, (jax.Array, u.Quantity)):
        if (sparse := as_sparse(x)) is not None:
            return sparse
        x = as_array('events @ x', 'x', x)
    shape = x.shape
    expect(
        len(shape) == 2,
        ShapeError,
        'events @ x',
        'the other side is no matrix.',
        expected='two axes',
        got=lambda: f'shape {shape}',
    )
    new = object.__new__(Dense)
    return new._set(shape=shape, backend=None, mirror=(), _buffers={}, data=x)


def is_beside_events(x: Any) -> bool:
    """Return whether `as_matrix` takes an object; others handle the product themselves."""
    known = isinstance(x, (DataRepresentation, u.Quantity)) or is_array_like(x)
    return known or as_sparse(x) is not None


def _product(
    where: str, weights: Any, spikes: Any, transpose: bool, rank: int, backend: str | None
) -> Any:
    """Multiply dense weights by events as functions are given them."""
    matrix = Dense(weights, backend=backend)
    value = unwrap(spikes)[0]
    if not isinstance(value, (jax.Array, u.Quantity)):
        value = as_array(where, 'spikes', value)
    expect(
        value.ndim == rank,
        ShapeError,
        where,
        '`spikes` has the wrong number of axes.',
        expected=f'{rank}',
        got=lambda: f'shape {value.shape}',
        remedy=f'use binary_densem{"m" if rank == 1 else "v"}',
    )
    return DENSE_PRODUCTS(
        where,
        matrix.params,
        (),
        value,
        shape=matrix.shape,
        transpose=transpose,
        event=Event.BINARY,
        backend=backend,
        checked=True,
    )


def binary_densemv(
    weights: Any, spikes: Any, *, transpose: bool = False, backend: str | None = None
) -> Any:
    """Multiply a dense matrix by an event vector.

    Parameters
    ----------
    weights : Array or Quantity, shape (m, n)
        Of any numeric dtype and unit.
    spikes : Array or BinaryArray, shape (n,), or (m,) with ``transpose``
        An element counts exactly one when it is True or greater than zero, else nothing.
    transpose : bool
        Multiply by the transpose: the sum of the active rows.
    backend : str, optional
        Demand a backend.

    Returns
    -------
    Array or Quantity, shape (m,), or (n,) with ``transpose``
        In the dtype and unit of the weights.

    Raises
    ------
    ShapeError, DtypeError
        If an operand does not fit.
    KernelNotAvailableError
        If ``backend`` is given and cannot serve the call.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> W = jnp.array([[1., 2.], [3., 4.], [5., 6.]])
    >>> brainevent.binary_densemv(W, jnp.array([True, False, True]), transpose=True)
    Array([6., 8.], dtype=float32)
    >>> brainevent.binary_densemv(W, jnp.array([False, True]))
    Array([2., 4., 6.], dtype=float32)
    """
    return _product('binary_densemv', weights, spikes, transpose, 1, backend)


_EVENTS = """Array or BinaryArray, shape (n, k), or (m, k) with ``transpose``
    One event vector in each column: an element counts one if it is True or greater than zero."""
_SUMS = """Array or Quantity, shape (m, k), or (n, k) with ``transpose``
    In the dtype and unit of the weights."""


@like(binary_densemv, _SUMS, spikes=_EVENTS)
def binary_densemm(
    weights: Any, spikes: Any, *, transpose: bool = False, backend: str | None = None
) -> Any:
    """Multiply a dense matrix by events in a matrix of shape ``(n, k)``, or ``(m, k)`` transposed.

    Like `binary_densemv` for every column of ``spikes``.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> W = jnp.array([[1., 2.], [3., 4.]])
    >>> brainevent.binary_densemm(W, jnp.array([[True, True], [False, True]]))
    Array([[1., 3.],
           [3., 7.]], dtype=float32)
    """
    return _product('binary_densemm', weights, spikes, transpose, 2, backend)
