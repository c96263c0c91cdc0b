# SPDX-License-Identifier: Apache-2.0
"""A fixed number of connections a neuron: a table with one row of partners for each.

`FixedNumPerPre` has a row for every row of the matrix, `FixedNumPerPost` one for every column: it
is the transpose of the other over the same table.
"""

import math
from typing import Any, ClassVar, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._docstring import BATCH, EVENT_BATCH, EVENTS, PRODUCT_BATCH, like
from brainevent._edge import Event
from brainevent._edge.layout import PADDING
from brainevent._edge.operands import as_array, split_unit
from brainevent._error import OptionError, ShapeError, expect
from brainevent._format.base import StoredMatrix
from brainevent._format.bridge import known, show_shortage
from brainevent._format.convert import sorted_entries
from brainevent._format.ell import FCN_MIRROR_PRODUCTS, FCN_PRODUCTS
from brainevent._format.functions import multiply
from brainevent._format.given import unpacked
from brainevent._pytree import pytree

__all__ = [
    'FixedNumConn',
    'FixedNumPerPost',
    'FixedNumPerPre',
    'FixedPostNumConn',
    'FixedPreNumConn',
    'binary_fcnmm',
    'binary_fcnmm_p',
    'binary_fcnmv',
    'binary_fcnmv_p',
    'fcnmm',
    'fcnmm_p',
    'fcnmv',
    'fcnmv_p',
]

fcnmv_p, fcnmm_p = FCN_PRODUCTS.primitives(Event.REAL)
binary_fcnmv_p, binary_fcnmm_p = FCN_PRODUCTS.primitives(Event.BINARY)


class FixedNumConn(StoredMatrix):
    """What `FixedNumPerPre` and `FixedNumPerPost` share; use one of these."""

    structure: ClassVar = ('indices',)
    families: ClassVar = (FCN_PRODUCTS, FCN_MIRROR_PRODUCTS)

    indices: jax.Array

    def __init__(
        self,
        data: Any,
        indices: Any = None,
        *,
        shape: Any = None,
        backend: str | None = None,
        precompute_weight_indices: bool = False,
        buffers: Any = None,
        check_structure: bool = True,
    ) -> None:
        if indices is None:
            data, indices = unpacked(type(self).__name__, ('data', 'indices'), data)
        self._fill(
            data, (indices,), shape=shape, backend=backend, buffers=buffers, check=check_structure
        )
        if self.flipped or precompute_weight_indices:
            self._set(mirror=self.with_mirror().mirror)

    @property
    def num_pre(self) -> int:
        """Number of rows of the matrix, where spikes come from in ``spikes @ A``."""
        return int(self.shape[0])

    @property
    def num_post(self) -> int:
        """Number of columns of the matrix, where they arrive."""
        return int(self.shape[1])

    @property
    def num_conn(self) -> int:
        """Number of connections of each neuron."""
        return int(self.indices.shape[1])

    def _check_data(self, where: str, shape: tuple[int, ...]) -> None:
        _check_weights(where, 'data', shape, self.indices)

    @classmethod
    def _fromcoo(cls, coo: Any, *, num_conn: int | None = None) -> Self:
        """Put the entries of each line into its row of the table.

        Places that are left over are padding, with a weight of zero.
        """
        coo = coo.T if cls.flipped else coo
        rows, cols = coo.shape
        indptr, indices, order = sorted_entries(coo.row, rows, coo.col, cols)
        with known((indptr, indices)):
            line = jnp.asarray(coo.row)[order]
            place = jnp.arange(line.shape[0]) - jnp.asarray(indptr)[line]
            width, even = _width(f'{cls.__name__}.fromdense', indptr, num_conn)
            table = jnp.full((rows, width), PADDING, jnp.int32)
            table = table.at[line, place].set(indices.astype(jnp.int32), mode='drop')
        data = coo.data
        if not (even and data.size == 1):
            number, unit = split_unit(data)
            number = jnp.broadcast_to(number.reshape(-1), line.shape)[order]
            full = jnp.zeros((rows, width), number.dtype).at[line, place].set(number, mode='drop')
            if not is_concrete(indptr):
                full = show_shortage(
                    f'{cls.__name__}.fromdense', full, indptr[1:] - indptr[:-1] > width
                )
            data = full if unit is None else u.Quantity(full, unit=unit)
        shape = coo.shape[::-1] if cls.flipped else coo.shape
        how = {'backend': coo.backend, 'buffers': coo.buffers, 'check_structure': False}
        return cls(data, table, shape=shape, **how)


def _width(where: str, indptr: Any, num_conn: int | None) -> tuple[int, bool]:
    """Return the width of the table, and whether no row of it needs filling up."""
    expect(
        num_conn is not None or is_concrete(indptr),
        OptionError,
        where,
        'how many connections a neuron has is not known in a traced matrix.',
        expected='the number of connections of each neuron',
        got='num_conn=None',
        remedy='pass num_conn=, or convert outside of jit and other transformations',
    )
    if not is_concrete(indptr):
        return int(num_conn or 0), False
    counts = np.diff(np.asarray(indptr))
    low, high = (int(counts.min()), int(counts.max())) if counts.size else (0, 0)
    width = high if num_conn is None else int(num_conn)
    expect(
        high <= width,
        ShapeError,
        where,
        '`num_conn` is too small.',
        expected=lambda: f'num_conn={high} at least',
        got=lambda: f'num_conn={num_conn}',
    )
    expect(
        low == high or num_conn is not None,
        OptionError,
        where,
        'the numbers of connections do not fit a table.',
        expected='as many for each neuron',
        got=lambda: f'from {low} to {high}',
        remedy=lambda: f'pass num_conn={high}, rows are filled up with padding, or use CSR',
    )
    return width, low == width


@pytree
class FixedNumPerPre(FixedNumConn):
    """Matrix with the same number of connections in every row.

    Parameters
    ----------
    data : array_like or Quantity, or tuple
        One weight for all connections, or one for each in the shape of ``indices``, in any unit;
        or ``(data, indices)``.
    indices : array_like of int, shape (shape[0], num_conn)
        Columns that each row reaches, in any order; repeats add up.
    shape : tuple of int
        Rows and columns.
    backend : str, optional
        Demand a backend for every product of this matrix.
    precompute_weight_indices : bool
        Build the mirror at once, see `with_mirror`: products with events from the right then
        visit active columns only.
    buffers : dict, optional
        Named values carried along.

    Raises
    ------
    ShapeError, IndexRangeError, DtypeError
        If the arrays are no sound structure of that shape. Values of traced arrays are never
        looked at; where they are wrong they contribute nothing.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.FixedNumPerPre((1.5, [[0, 2], [1, 2], [0, 1]]), shape=(3, 4))
    >>> brainevent.BinaryArray([True, False, True]) @ A
    Array([3. , 1.5, 1.5, 0. ], dtype=float32)
    """

    def transpose(self, axes: Any = None) -> 'FixedNumPerPost':
        """Return the transpose over the same table; it has a mirror only if this matrix has."""
        return self._turned(FixedNumPerPost, axes)  # type: ignore[no-any-return]


@pytree
class FixedNumPerPost(FixedNumConn):
    """Matrix with the same number of connections in every column.

    Parameters
    ----------
    data : array_like or Quantity, or tuple
        One weight for all connections, or one for each in the shape of ``indices``, in any unit;
        or ``(data, indices)``.
    indices : array_like of int, shape (shape[1], num_conn)
        Rows that reach each column, in any order; repeats add up.
    shape : tuple of int
        Rows and columns of the matrix itself.
    backend, buffers
        As for `FixedNumPerPre`.
    precompute_weight_indices : bool
        Accepted; the mirror is always built, so that ``spikes @ A`` visits active rows only.

    Raises
    ------
    ShapeError, IndexRangeError, DtypeError
        If the arrays are no sound structure of that shape.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.FixedNumPerPost((1.5, [[0, 2], [1, 2], [0, 1]]), shape=(4, 3))
    >>> brainevent.BinaryArray([True, False, True, False]) @ A
    Array([3. , 1.5, 1.5], dtype=float32)
    """

    flipped: ClassVar[bool] = True

    def transpose(self, axes: Any = None) -> FixedNumPerPre:
        """Return the transpose over the same table."""
        return self._turned(FixedNumPerPre, axes)  # type: ignore[no-any-return]


FixedPostNumConn = FixedNumPerPre
FixedPreNumConn = FixedNumPerPost


def _check_weights(where: str, name: str, shape: tuple[int, ...], indices: Any) -> None:
    """Check that there is one weight, or a table of weights like that of indices."""
    one, table = math.prod(shape) == 1 and len(shape) < 2, np.shape(indices)
    expect(
        one or shape == table,
        ShapeError,
        where,
        f'`{name}` does not fit the structure.',
        expected=lambda: f'one weight, or shape {table} as the indices have it',
        got=lambda: f'shape {shape}',
        remedy='give one weight for all connections or one for each, in rows like the indices',
    )


def _multiply(where: str, weights: Any, indices: Any, x: Any, **options: Any) -> Any:
    number = as_array(where, 'weights', split_unit(weights)[0])
    _check_weights(where, 'weights', number.shape, indices)
    return multiply(FCN_PRODUCTS, where, weights, (indices,), x, **options)


def fcnmv(
    weights: Any,
    indices: Any,
    vector: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix with a fixed number of connections a row by a vector.

    Parameters
    ----------
    weights : Array or Quantity, shape () or (1,) or (shape[0], num_conn)
        One weight for all connections, or one for each, of any numeric dtype and unit.
    indices : Array of int, shape (shape[0], num_conn)
        Columns that each row reaches, in any order; repeats add up.
    vector : Array or Quantity, shape (shape[1],), or (shape[0],) with ``transpose``
        Multiplied by value; a bool counts 0 or 1.
    shape : tuple of int
        Rows and columns.
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

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> weights, indices = jnp.array([[1., 2.], [3., 4.]]), jnp.array([[0, 2], [1, 2]])
    >>> brainevent.fcnmv(weights, indices, jnp.array([1., 10., 100.]), shape=(2, 3))
    Array([201., 430.], dtype=float32)
    """
    return _multiply(
        'fcnmv', weights, indices, vector, shape=shape, transpose=transpose, backend=backend
    )


@like(fcnmv, PRODUCT_BATCH, matrix=BATCH)
def fcnmm(
    weights: Any,
    indices: Any,
    matrix: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix with a fixed number of connections a row by a dense ``(k, n)`` matrix.

    Like `fcnmv` for every column of ``matrix``; see there for the operands.
    """
    return _multiply(
        'fcnmm', weights, indices, matrix, shape=shape, transpose=transpose, backend=backend
    )


@like(fcnmv, spikes=EVENTS)
def binary_fcnmv(
    weights: Any,
    indices: Any,
    spikes: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix with a fixed number of connections a row by an event vector.

    Like `fcnmv`, but an element of ``spikes`` counts exactly one when it is True or greater than
    zero, and nothing otherwise. With ``transpose`` only the rows of active elements are visited.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> weights, indices = jnp.array([[1., 2.], [3., 4.]]), jnp.array([[0, 2], [1, 2]])
    >>> spikes = jnp.array([False, True])
    >>> brainevent.binary_fcnmv(weights, indices, spikes, shape=(2, 3), transpose=True)
    Array([0., 3., 4.], dtype=float32)
    """
    return _multiply(
        'binary_fcnmv', weights, indices, spikes,
        shape=shape, transpose=transpose, backend=backend, event=Event.BINARY,
    )  # fmt: skip


@like(binary_fcnmv, PRODUCT_BATCH, matrix=EVENT_BATCH)
def binary_fcnmm(
    weights: Any,
    indices: Any,
    matrix: Any,
    *,
    shape: Any,
    transpose: bool = False,
    backend: str | None = None,
) -> Any:
    """Multiply a matrix with a fixed number of connections a row by events in a ``(k, n)`` matrix.

    Like `binary_fcnmv` for every column of ``matrix``.
    """
    return _multiply(
        'binary_fcnmm', weights, indices, matrix,
        shape=shape, transpose=transpose, backend=backend, event=Event.BINARY,
    )  # fmt: skip
