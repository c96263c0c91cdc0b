# SPDX-License-Identifier: Apache-2.0
"""Sums, means, extremes and the diagonal of a matrix; the number of its entries."""

import math
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge.layout import within
from brainevent._edge.operands import split_unit, with_unit
from brainevent._error import OptionError, UnsupportedOperationError, expect
from brainevent._format.indexing import map_number

__all__ = ['Extremes', 'Reductions']


class Reductions:
    """What follows from products and elements, for matrices of every kind."""

    shape: tuple[int, int]
    dtype: Any

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return int(self.nse)  # type: ignore[attr-defined]

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of all elements, or along an axis.

        Parameters
        ----------
        axis : {None, 0, 1, -1, -2}
            None: of all. 0: of each column. 1: of each row.

        Returns
        -------
        Array or Quantity, shape () or (columns,) or (rows,)

        Raises
        ------
        OptionError
            If there is no such axis.

        Examples
        --------
        >>> import brainevent
        >>> A = brainevent.CSR(([1., 2., 3.], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
        >>> A.sum(), A.sum(1)
        (Array(6., dtype=float32), Array([3., 3.], dtype=float32))
        """
        return self._shown(self._sum(own_axis(f'{type(self).__name__}.sum', axis)))

    def _shown(self, result: Any) -> Any:
        """Return a result, marked if the matrix is not valid; a drawn matrix decides that."""
        return result

    def _sum(self, axis: int | None) -> Any:
        kind = jnp.int32 if self.dtype == bool else self.dtype
        m, n = self.shape
        if axis == 0:
            return jnp.ones(m, kind) @ self
        rows = self @ jnp.ones(n, kind)  # type: ignore[operator]
        return rows if axis == 1 else rows.sum()

    def mean(self, axis: int | None = None) -> Any:
        """Return the mean of all elements, or along an axis; places without entry count as zero.

        Parameters
        ----------
        axis : {None, 0, 1, -1, -2}

        Returns
        -------
        Array or Quantity, shape () or (columns,) or (rows,)
        """
        axis = own_axis(f'{type(self).__name__}.mean', axis)
        many = math.prod(self.shape) if axis is None else self.shape[axis]
        return self._shown(self._sum(axis) / many)

    def max(self, axis: int | None = None) -> Any:
        """Return the largest element, or that along an axis; the matrix is made dense for it."""
        return jnp.max(
            self._dense_in_passing(f'{type(self).__name__}.max'),
            own_axis(f'{type(self).__name__}.max', axis),
        )  # type: ignore[attr-defined]

    def min(self, axis: int | None = None) -> Any:
        """Return the smallest element, or that along an axis; the matrix is made dense for it."""
        return jnp.min(
            self._dense_in_passing(f'{type(self).__name__}.min'),
            own_axis(f'{type(self).__name__}.min', axis),
        )  # type: ignore[attr-defined]

    def diagonal(self) -> Any:
        """Return the elements ``A[i, i]``.

        Returns
        -------
        Array or Quantity, shape (min(shape),)
        """
        ids = np.arange(min(self.shape))
        return self[ids, ids]  # type: ignore[index]

    def astype(self, dtype: Any) -> Any:
        """Return the matrix with weights of another dtype.

        Parameters
        ----------
        dtype : dtype

        Returns
        -------
        Matrix
        """
        params = (map_number(lambda x: jnp.asarray(x).astype(dtype), p) for p in self.params)  # type: ignore[attr-defined]
        return self.with_params(*params)  # type: ignore[attr-defined]


class Extremes:
    """What needs the entries themselves, for matrices with a stored structure."""

    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        """Number of entries, without padding; stored zeros and repeated entries count.

        Raises
        ------
        UnsupportedOperationError
            If the structure is traced.
        """
        row, col = self._known_edges('nnz')
        return int((within(row, self.shape[0]) & within(col, self.shape[1])).sum())

    def max(self, axis: int | None = None) -> Any:
        """Return the largest element, or that along an axis; places without entry count as zero.

        Parameters
        ----------
        axis : {None, 0, 1, -1, -2}

        Returns
        -------
        Array or Quantity, shape () or (columns,) or (rows,)

        Raises
        ------
        UnsupportedOperationError
            If the structure is traced, or weights are complex.
        """
        return self._extreme('max', axis)

    def min(self, axis: int | None = None) -> Any:
        """Return the smallest element, or that along an axis; see `max`."""
        return self._extreme('min', axis)

    def _extreme(self, name: str, axis: int | None) -> Any:
        where = f'{type(self).__name__}.{name}'
        axis = own_axis(where, axis)
        row, col = self._known_edges(name)
        inside = within(row, self.shape[0]) & within(col, self.shape[1])
        number, unit = split_unit(self._own)  # type: ignore[attr-defined]
        expect(
            not jnp.issubdtype(number.dtype, jnp.complexfloating),
            UnsupportedOperationError,
            where,
            'complex numbers have no order.',
            expected='real weights',
            got=number.dtype,
        )
        m, n = self.shape
        place = row[inside].astype(np.int64) * n + col[inside]
        ids, merged = np.unique(place, return_inverse=True)
        each = jnp.broadcast_to(number.reshape(-1), row.shape)[np.flatnonzero(inside)]
        each = each.astype(jnp.int32) if each.dtype == bool else each
        elements = jax.ops.segment_sum(each, merged, ids.size)  # repeated entries add up
        lines, line, length = {
            None: (1, ids * 0, m * n),
            0: (n, ids % max(n, 1), m),
            1: (m, ids // max(n, 1), n),
        }[axis]
        over = getattr(jax.ops, f'segment_{name}')(elements, line, lines)
        some, all_stored = (
            (np.bincount(line, minlength=lines) > 0),
            (np.bincount(line, minlength=lines) == length),
        )
        zero = jnp.zeros((), over.dtype)
        pick = jnp.maximum if name == 'max' else jnp.minimum
        result = jnp.where(some, jnp.where(all_stored, over, pick(over, zero)), zero)
        return with_unit(result[0] if axis is None else result, unit)

    def _known_edges(self, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        expect(
            all(map(is_concrete, self.arrays)),  # type: ignore[attr-defined]
            UnsupportedOperationError,
            f'{type(self).__name__}.{name}',
            'the structure is not known in a traced program.',
            expected='a concrete structure',
            got='a traced one',
            remedy='read it outside of jit and other transformations',
        )
        with jax.ensure_compile_time_eval():
            row, col = self.edges()  # type: ignore[attr-defined]
        return np.asarray(row), np.asarray(col)


def own_axis(where: str, axis: Any) -> int | None:
    """Return an axis of a matrix as None, 0 or 1."""
    if axis is None:
        return None
    try:
        number = operator.index(axis)
    except TypeError:
        number = 2
    expect(
        -2 <= number < 2,
        OptionError,
        where,
        'there is no such axis.',
        expected='None, 0 or 1',
        got=lambda: repr(axis),
    )
    return number % 2
