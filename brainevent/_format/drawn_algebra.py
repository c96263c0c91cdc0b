# SPDX-License-Identifier: Apache-2.0
"""Elementwise arithmetic of drawn matrices: what acts on all edges alike acts on the parameters.

Edges and their random numbers stay what they are, so ``(2 * A).todense() == 2 * A.todense()``, for
every distribution. What would lead out of a distribution is refused.
"""

import operator
from collections.abc import Callable
from typing import Any, ClassVar, Self

import brainunit as u
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge import unwrap
from brainevent._edge.intake import is_array_like
from brainevent._edge.operands import as_array
from brainevent._error import UnsupportedOperationError, explain
from brainevent._format.bridge import as_sparse
from brainevent._format.drawn import Drawn
from brainevent._format.elementwise import is_number, keeps_zero

__all__ = ['DrawnAlgebra']

Binary = Callable[[Any, Any], Any]


def _method(kind: str, op: Binary, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Make the method of an operator; ``kind`` names the rule it follows."""

    def method(self: Any, other: Any) -> Any:
        other = unwrap(other)[0]
        known = isinstance(other, (u.sparse.SparseMatrix, u.Quantity, u.Unit))
        if not (known or is_array_like(other) or as_sparse(other) is not None):
            return NotImplemented
        return getattr(self, kind)(op, other, reflected)

    method.__name__ = f'__{"r" * reflected}{op.__name__}__'
    method.__qualname__ = f'DrawnAlgebra.{method.__name__}'
    return method


class DrawnAlgebra:
    """Elementwise operators of a matrix of just-in-time connectivity."""

    family: ClassVar[Drawn]
    params: tuple[Any, ...]
    prob: Any
    seed: Any
    shape: tuple[int, int]
    corder: bool

    __mul__, __rmul__ = _method('_scale', operator.mul), _method('_scale', operator.mul, True)
    __truediv__ = _method('_scale', operator.truediv)
    __rtruediv__ = _method('_reshape', operator.truediv, True)
    __add__, __radd__ = _method('_shift', operator.add), _method('_shift', operator.add, True)
    __sub__, __rsub__ = _method('_shift', operator.sub), _method('_shift', operator.sub, True)
    __mod__, __rmod__ = _method('_reshape', operator.mod), _method('_reshape', operator.mod, True)
    __pow__, __rpow__ = _method('_reshape', operator.pow), _method('_reshape', operator.pow, True)
    __floordiv__ = _method('_reshape', operator.floordiv)
    __rfloordiv__ = _method('_reshape', operator.floordiv, True)

    def __neg__(self) -> Self:
        """Negate all weights."""
        return self.with_params(*map(operator.neg, self.params))  # type: ignore[attr-defined, no-any-return]

    def __pos__(self) -> Self:
        """Return the matrix itself."""
        return self

    def __abs__(self) -> Self:
        """Take absolute values, of constant weights."""
        return self.apply(operator.abs)

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Apply a function to the weight that all edges have.

        Parameters
        ----------
        fn : callable
            Takes the weight and returns another.

        Returns
        -------
        JITCMatrix
            With the same edges.

        Raises
        ------
        UnsupportedOperationError
            If the weights are random.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp
        >>> A = brainevent.JITCScalarR((2.0, 0.5, 42), shape=(3, 4))
        >>> A.apply(jnp.square).weight
        Array(4., dtype=float32)
        """
        if self.family.weight.draws:
            self._no('apply', fn)
        return self.with_params(fn(*self.params))  # type: ignore[attr-defined, no-any-return]

    def apply2(self, other: Any, fn: Callable[[Any, Any], Any], *, reverse: bool = False) -> Self:
        """Combine the weight that all edges have with a number, or with that of the same edges.

        Parameters
        ----------
        other : number, Quantity or matrix with the same edges
        fn : callable
            ``fn(weight, other)`` returns a weight.
        reverse : bool
            Call ``fn(other, weight)``.

        Returns
        -------
        JITCMatrix
            With the same edges.

        Raises
        ------
        UnsupportedOperationError
            If the weights are random, or the edges differ.
        """
        same = isinstance(other, DrawnAlgebra) and self._same_edges(other)
        if self.family.weight.draws or not (same or is_number(other)):
            self._no('apply2', other)
        right = other.params if same else (other,)
        pair = (right, self.params) if reverse else (self.params, right)
        return self.with_params(*map(fn, *pair))  # type: ignore[attr-defined, no-any-return]

    # ---- the rules ------------------------------------------------------------------------------

    def _scale(self, op: Binary, other: Any, reflected: bool) -> Any:
        """Multiply or divide: every parameter, as weights are linear in them."""
        if isinstance(other, DrawnAlgebra) or not is_number(other):
            return self._reshape(op, other, reflected)
        if not keeps_zero(op, other, reflected):
            self._no(op.__name__, other)
        return self._with_numbers(lambda p: op(other, p) if reflected else op(p, other))

    def _shift(self, op: Binary, other: Any, reflected: bool) -> Any:
        """Add or subtract, at edges: a number, or a matrix with the same edges."""
        if isinstance(other, DrawnAlgebra):
            if not self._same_edges(other):
                self._no(op.__name__, other)
            return self._with_pairs(op, other)
        if is_number(other):
            if not keeps_zero(op, other, reflected):
                self._no(op.__name__, other)
            return -self if reflected and op is operator.sub else self
        other = self._dense_operand(op.__name__, other)
        dense = self.todense()  # type: ignore[attr-defined]
        return op(other, dense) if reflected else op(dense, other)

    def _reshape(self, op: Binary, other: Any, reflected: bool) -> Any:
        """Do what makes another distribution of random weights: with constant ones only."""
        same = isinstance(other, DrawnAlgebra) and self._same_edges(other)
        alone = is_number(other) and keeps_zero(op, other, reflected)
        if self.family.weight.draws or not (same or alone):
            self._no(op.__name__, other)
        if same:
            return self._with_pairs(op, other)
        return self._with_numbers(lambda p: op(p, other))

    # ---- operands -------------------------------------------------------------------------------

    def _with_numbers(self, fn: Callable[[Any], Any]) -> Any:
        return self.with_params(*map(fn, self.params))  # type: ignore[attr-defined]

    def _with_pairs(self, op: Binary, other: Any) -> Any:
        return self.with_params(*map(op, self.params, other.params))  # type: ignore[attr-defined]

    def _same_edges(self, other: 'DrawnAlgebra') -> bool:
        """Tell whether two matrices are known to have the same edges and random numbers."""
        alike = self.family is other.family and self.shape == other.shape
        pairs = ((self.prob, other.prob), (self.seed, other.seed))
        known = all(a is b or (is_concrete(a) and is_concrete(b)) for a, b in pairs)
        return (
            alike
            and self.corder == other.corder
            and known
            and all(a is b or np.array_equal(a, b) for a, b in pairs)
        )

    def _dense_operand(self, what: str, other: Any) -> Any:
        if isinstance(other, u.sparse.SparseMatrix):
            self._no(what, other)
        if not hasattr(other, 'dtype'):
            other = as_array(what, 'the other side', other)
        if np.shape(other) != self.shape:
            self._no(what, other)
        return other

    def _no(self, what: str, other: Any) -> None:
        raise UnsupportedOperationError(
            explain(
                f'{what} with {type(self).__name__}',
                'the result is not drawn from such a distribution.',
                expected='a number times all weights, or a matrix with the same edges',
                got=lambda: (
                    f'{type(other).__name__} of shape {np.shape(other)}'
                    if hasattr(other, 'shape') or is_number(other)
                    else type(other).__name__
                ),
                remedy='convert it first with tocsr() or todense()',
            )
        )
