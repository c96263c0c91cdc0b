# SPDX-License-Identifier: Apache-2.0
"""Elementwise arithmetic of matrices with stored weights: what keeps zeros zero acts on weights.

Multiplication and division keep the structure, and so do sums of matrices of one structure; sums
with dense arrays, and of matrices of different structure, are dense. Operations that act on stored
weights treat repeated entries one by one.
"""

import operator
from collections.abc import Callable
from typing import Any, ClassVar, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge import unwrap
from brainevent._edge.intake import is_array_like
from brainevent._edge.operands import as_array, settled, split_unit
from brainevent._error import DtypeError, ShapeError, UnsupportedOperationError, expect, explain
from brainevent._format.bridge import as_sparse
from brainevent._format.elementwise import is_number, keeps_zero
from brainevent._typing import Array

__all__ = ['Algebra']

Binary = Callable[[Any, Any], Any]


def _scaling(op: Binary, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Make a method that acts on stored weights, with numbers and with whole matrices."""

    def act(self: Any, other: Any) -> Any:
        if isinstance(other, Algebra):
            other = self._weights_like(op, other)
            data = self._spread(self._own) if np.size(other) != 1 else self._own
        else:
            data, other = self._spread(self._own), self._at_entries(op.__name__, other)
        return self._reweighted(op(other, data) if reflected else op(data, other))

    return _named(act, op, reflected)


def _numbers_only(op: Binary, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Make a method that acts on stored weights, with a number that keeps zeros zero."""

    def act(self: Any, other: Any) -> Any:
        return self._no(op.__name__, other, 'a number that keeps zeros zero')

    return _named(act, op, reflected)


def _summing(op: Binary, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Make a method whose result is dense, but for matrices of the same structure."""

    def act(self: Any, other: Any) -> Any:
        if isinstance(other, Algebra):
            if self._is_like(other):
                both = _alike(self, other)
                return self._reweighted(op(*(both[::-1] if reflected else both)))
            other = other.todense()  # type: ignore[attr-defined]
        dense = self.todense()
        expect(
            np.shape(other) == self.shape,
            ShapeError,
            f'{op.__name__} with {type(self).__name__}',
            'the shapes differ.',
            expected=lambda: f'shape {self.shape}',
            got=lambda: f'shape {np.shape(other)}',
        )
        return op(other, dense) if reflected else op(dense, other)

    return _named(act, op, reflected)


def _named(act: Binary, op: Binary, reflected: bool = False) -> Any:
    """Make a method: unknown operands handle the operation themselves, numbers act on weights."""

    def method(self: Any, other: Any) -> Any:
        other = self._operand(op.__name__, other)
        if other is NotImplemented:
            return other
        if not isinstance(other, Algebra) and is_number(other) and keeps_zero(op, other, reflected):
            return self._reweighted(op(other, self._own) if reflected else op(self._own, other))
        if not isinstance(other, Algebra) and is_number(other):
            return self._no(op.__name__, other, 'a number that keeps zeros zero, or an array')
        return act(self, other)

    method.__name__ = f'__{"r" * reflected}{op.__name__}__'
    method.__qualname__ = f'Algebra.{method.__name__}'
    return method


class Algebra:
    """Elementwise operators of a matrix with stored weights."""

    data: Any
    shape: tuple[int, int]
    arrays: tuple[Array, ...]
    structure: ClassVar[tuple[str, ...]]

    __mul__, __rmul__ = _scaling(operator.mul), _scaling(operator.mul, True)
    __truediv__ = _scaling(operator.truediv)
    __rtruediv__ = _numbers_only(operator.truediv, True)
    __add__, __radd__ = _summing(operator.add), _summing(operator.add, True)
    __sub__, __rsub__ = _summing(operator.sub), _summing(operator.sub, True)
    __floordiv__, __rfloordiv__ = (
        _numbers_only(operator.floordiv),
        _numbers_only(operator.floordiv, True),
    )
    __mod__, __rmod__ = _numbers_only(operator.mod), _numbers_only(operator.mod, True)
    __pow__, __rpow__ = _numbers_only(operator.pow), _numbers_only(operator.pow, True)

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Apply a function to the stored weights.

        Parameters
        ----------
        fn : callable
            Takes the weights as they are stored and returns as many.

        Returns
        -------
        Matrix
            Of the same structure.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp
        >>> A = brainevent.CSR(([1., 2.], [1, 0], [0, 1, 2]), shape=(2, 2))
        >>> A.apply(jnp.square).data
        Array([1., 4.], dtype=float32)
        """
        return self._reweighted(fn(self._own))  # type: ignore[attr-defined, no-any-return]

    def apply2(self, other: Any, fn: Callable[[Any, Any], Any], *, reverse: bool = False) -> Any:
        """Combine the stored weights with a number, an array or a matrix of the same structure.

        Parameters
        ----------
        other : number, array_like, Quantity or matrix
            An array that broadcasts to the shape of the matrix is read at the entries.
        fn : callable
            ``fn(weights, other)`` takes both as stored and returns as many weights.
        reverse : bool
            Call ``fn(other, weights)``.

        Returns
        -------
        Matrix
            Of the same structure.

        Raises
        ------
        UnsupportedOperationError
            If a matrix has another structure.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp
        >>> A = brainevent.CSR(([1., 2.], [1, 0], [0, 1, 2]), shape=(2, 2))
        >>> A.apply2(A, jnp.hypot).data
        Array([1.4142135, 2.828427 ], dtype=float32)
        """
        where = f'{type(self).__name__}.apply2'
        other = self._operand('apply2', other)
        expect(
            other is not NotImplemented,
            DtypeError,
            where,
            '`other` is neither a number, an array nor a matrix.',
            expected='a number, an array or a matrix of the same structure',
            got=lambda: type(other).__name__,
        )
        if isinstance(other, Algebra):
            pair = (
                _alike(self, other)
                if self._is_like(other)
                else self._no('apply2', other, 'a matrix of the same structure')
            )
        elif is_number(other):
            pair = self._own, other
        else:
            pair = self._spread(self._own), self._at_entries('apply2', other)
        return self._reweighted(fn(*pair[::-1]) if reverse else fn(*pair))

    def _reweighted(self, data: Any) -> Self:
        """Return a matrix of the same structure with weights of any unit."""
        return self._with(data=self._own_data(data))  # type: ignore[attr-defined, no-any-return]

    def __neg__(self) -> Self:
        """Negate the weights."""
        return self.apply(operator.neg)

    def __pos__(self) -> Self:
        """Return the matrix itself."""
        return self

    def __abs__(self) -> Self:
        """Take the absolute values of the weights."""
        return self.apply(operator.abs)

    @property
    def _own(self) -> Any:
        """The weights, checked with all leaves, in a dtype that JAX has at present."""
        self._check_leaves(self.data)  # type: ignore[attr-defined]
        return settled(self.data)

    # ---- operands ---------------------------------------------------------------------------

    def _operand(self, what: str, x: Any) -> Any:
        """Return the other side as a matrix of ours, a unit, or an array with or without unit.

        `NotImplemented` is returned for objects of other kinds, which may know the operation.
        """
        x = unwrap(x)[0]
        if isinstance(x, Algebra) and not x.structure:
            return x._own  # dense
        if isinstance(x, (Algebra, jax.Array, u.Quantity, u.Unit, int, float, complex)):
            return x
        if (sparse := as_sparse(x)) is not None:
            return sparse
        if isinstance(x, u.sparse.SparseMatrix):
            return self._no(what, x, 'an array, a number, or a matrix with stored weights')
        if not is_array_like(x):
            return NotImplemented
        return as_array(f'{what} with {type(self).__name__}', 'the other side', x)

    def _spread(self, data: Any) -> Any:
        """Give every entry its own weight, in the shape in which they are stored."""
        like = getattr(self, self.structure[0]).shape
        return data.reshape(like) if np.size(data) == np.prod(like) else _repeat(data, like)

    def _at_entries(self, what: str, other: Any) -> Any:
        """Pick from an array that broadcasts to the shape of the matrix what meets the entries."""
        shape = np.shape(other)
        expect(
            _broadcasts(shape, self.shape),
            ShapeError,
            f'{what} with {type(self).__name__}',
            'the shapes do not go together.',
            expected=lambda: f'a number, or a shape that broadcasts to {self.shape}',
            got=lambda: f'shape {shape}',
        )
        number, unit = split_unit(other)
        number = jnp.reshape(number, (1,) * (2 - len(shape)) + shape)
        ends = [
            ids if extent > 1 else jnp.zeros_like(ids)
            for ids, extent in zip(self.edges(), number.shape, strict=True)  # type: ignore[attr-defined]
        ]
        picked = self._spread(number[tuple(ends)])
        return picked if unit is None else u.Quantity(picked, unit=unit)

    def _is_like(self, other: 'Algebra') -> bool:
        """Tell whether another matrix is known to have the same structure."""
        if type(other) is not type(self) or other.shape != self.shape:
            return False
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.structure)
        return all(a is b or (a.shape == b.shape and _known_equal(a, b)) for a, b in pairs)

    def _weights_like(self, op: Binary, other: 'Algebra') -> Any:
        """Return the weights of a matrix at the entries of this one."""
        if self._is_like(other):
            return other._own if np.size(other.data) == 1 else other._spread(other._own)
        if op is not operator.mul:
            return self._no(op.__name__, other, 'a matrix of the same structure')
        expect(
            other.shape == self.shape,
            ShapeError,
            f'{op.__name__} with {type(self).__name__}',
            'the shapes differ.',
            expected=lambda: f'shape {self.shape}',
            got=lambda: f'shape {other.shape}',
        )
        return self._spread(other._pick(*self.edges()))  # type: ignore[attr-defined]

    def _no(self, what: str, other: Any, expected: str) -> Any:
        raise UnsupportedOperationError(
            explain(
                f'{what} with {type(self).__name__}',
                'the result is not offered.',
                expected=expected,
                got=lambda: f'{type(other).__name__} of shape {np.shape(other)}',
                remedy='use `A.apply(function)` for stored weights, `A.with_data(weights)` to '
                'combine matrices of one structure, or `A.todense()`',
            )
        )


def _alike(a: Algebra, b: Algebra) -> tuple[Any, Any]:
    """Return the weights of two matrices of one structure in one shape."""
    if np.size(a.data) == np.size(b.data) == 1:
        return a._own, b._own
    return a._spread(a._own), b._spread(b._own)


def _repeat(data: Any, shape: tuple[int, ...]) -> Any:
    number, unit = split_unit(data)
    full = jnp.broadcast_to(jnp.reshape(number, ()), shape)
    return full if unit is None else u.Quantity(full, unit=unit)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, int]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def _known_equal(a: Array, b: Array) -> bool:
    """Tell whether two arrays are known to hold the same; traced ones are not."""
    return is_concrete(a) and is_concrete(b) and bool(np.array_equal(a, b))
