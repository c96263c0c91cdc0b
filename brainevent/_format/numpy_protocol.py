# SPDX-License-Identifier: Apache-2.0
"""How NumPy meets a matrix: operators of arrays work, other functions refuse at once.

Without these methods NumPy takes a matrix for a sequence of rows and makes an array of objects, or
reads it row by row.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from brainevent._edge.intake import is_array_like
from brainevent._edge.operands import split_unit
from brainevent._error import FrozenError, UnitError, UnsupportedOperationError, expect, explain

__all__ = ['NumpyProtocol']

DENSE_ELEMENTS = 1 << 20
"""Elements up to which ``np.asarray(A)`` makes a matrix dense: 4 MiB of float32."""

_BINARY = {
    np.matmul: 'matmul', np.add: 'add', np.subtract: 'sub', np.multiply: 'mul',
    np.true_divide: 'truediv', np.floor_divide: 'floordiv', np.remainder: 'mod', np.power: 'pow',
}  # fmt: skip
_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
_UNARY = {np.negative: '__neg__', np.positive: '__pos__', np.absolute: '__abs__'}
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: 2,
    np.size: lambda a, axis=None: math.prod(a.shape) if axis is None else a.shape[axis],
    np.transpose: lambda a, axes=None: a.transpose(axes),
    np.dot: lambda a, b: _multiply(a, b),
    np.sum: lambda a, axis=None: a.sum(axis),
    np.mean: lambda a, axis=None: a.mean(axis),
    np.max: lambda a, axis=None: a.max(axis),
    np.min: lambda a, axis=None: a.min(axis),
    np.diagonal: lambda a: a.diagonal(),
}


def _multiply(a: Any, b: Any) -> Any:
    return a @ b if isinstance(a, NumpyProtocol) else b.__rmatmul__(a)  # type: ignore[attr-defined]


class NumpyProtocol:
    """``np.asarray(A)``, ``np.dot(x, A)``, ``x * A`` with an array ``x``, and comparisons."""

    shape: tuple[int, int]

    def __iter__(self) -> Any:
        """Refuse: a matrix is not a sequence of rows."""
        raise UnsupportedOperationError(
            explain(
                f'iter({type(self).__name__})',
                'a matrix is not a sequence of rows.',
                expected='a dense array, or single rows',
                got='an iteration over a matrix',
                remedy='use `A.todense()`, or `A[i]` for a row',
            )
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a small matrix as a dense array.

        Raises
        ------
        UnsupportedOperationError
            If the matrix has more than 2**20 elements, dense.
        UnitError
            If the weights have a unit.
        """
        return np.array(self._dense_in_passing(f'np.asarray({type(self).__name__})'), dtype=dtype)

    def _dense_in_passing(self, where: str) -> Any:
        """Return a small matrix without unit as a dense array; refuse any other."""
        expect(
            math.prod(self.shape) <= DENSE_ELEMENTS,
            UnsupportedOperationError,
            where,
            'the matrix is not made dense in passing.',
            expected=f'at most {DENSE_ELEMENTS} elements',
            got=lambda: f'shape {self.shape}',
            remedy='use `A.todense()` if that is meant',
        )
        number, unit = split_unit(self.todense())  # type: ignore[attr-defined]
        expect(
            unit is None,
            UnitError,
            where,
            'the unit would be lost.',
            expected='weights without unit',
            got=lambda: f'weights in {unit}',
            remedy='use `A.todense()`, which keeps it',
        )
        return number

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Run an operator of arrays as the method of this matrix; refuse other functions."""
        if method == '__call__' and not options:
            if ufunc in _UNARY:
                return getattr(self, _UNARY[ufunc])()
            if ufunc in _BINARY:
                reflected = not isinstance(inputs[0], NumpyProtocol)
                name = f'__{"r" * reflected}{_BINARY[ufunc]}__'
                return getattr(inputs[reflected], name)(inputs[1 - reflected])
            if ufunc in _COMPARISONS:
                self._no_comparison()
        return self._no_function(f'np.{ufunc.__name__}')

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Run the few functions that need no dense matrix; refuse others."""
        if func not in _FUNCTIONS:
            self._no_function(f'np.{func.__name__}')
        return _FUNCTIONS[func](*args, **kwargs)

    def _no_function(self, name: str) -> Any:
        raise UnsupportedOperationError(
            explain(
                f'{name} with {type(self).__name__}',
                'the function is not offered for matrices.',
                expected='an operator, np.dot, np.sum, np.mean, np.diagonal or np.transpose',
                got=name,
                remedy='use `A.apply(function)` for stored weights, or `A.todense()`',
            )
        )

    # ---- what users of arrays type first ---------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        """Refuse: a matrix is a value."""
        raise FrozenError(
            explain(
                f'{type(self).__name__}[index] = value',
                'a matrix is a value, its entries cannot be set.',
                expected='a new matrix made from this one',
                got='an assignment to an element',
                remedy='use `A.with_data(A.data.at[k].set(value))` for a stored entry, or build '
                'the matrix anew, for example with `COO`',
            )
        )

    def __eq__(self, other: object) -> Any:
        """Refuse to compare elements; matrices themselves compare by identity."""
        if isinstance(other, NumpyProtocol) or not is_array_like(other):
            return NotImplemented
        return self._no_comparison()

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> Any:
        """Refuse to compare elements."""
        return self._no_comparison() if is_array_like(other) else NotImplemented

    __le__ = __gt__ = __ge__ = __lt__

    def _no_comparison(self) -> Any:
        raise UnsupportedOperationError(
            explain(
                f'comparison with {type(self).__name__}',
                'elements of a matrix are not compared, as most of them are not stored.',
                expected='weights, or a dense matrix',
                got='a matrix',
                remedy='compare `A.data` for stored weights, or `A.todense()`',
            )
        )

    def toarray(self) -> Any:
        """Return the matrix as a dense array: `todense`, as SciPy calls it."""
        return self.todense()  # type: ignore[attr-defined]

    def dot(self, other: Any) -> Any:
        """Return ``A @ other``."""
        return self @ other  # type: ignore[operator]
