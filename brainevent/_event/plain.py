# SPDX-License-Identifier: Apache-2.0
"""An event array as an ordinary array: arithmetic, comparisons and reductions give plain arrays.

Only ``@`` counts events. Everything else sees the values as they were given: a spike of 2.0 times
3.0 is 6.0. Results are plain arrays (or quantities), never event arrays; indexing keeps the kind
and is defined with the classes themselves.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from brainevent._event.interop import UFUNC_OPERATORS, asked_by_contraction, asked_by_operator

__all__ = ['PlainArray', 'plain']


def plain(x: Any) -> Any:
    """Return the values of an event array; anything else as it is."""
    return x.value if isinstance(x, PlainArray) else x


def _named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    method.__name__ = name
    method.__qualname__ = f'PlainArray.{name}'
    return method


def _unary(op: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return op(self.value)

    return _named(method, op.__name__)


def _forward(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return op(self.value, plain(other))

    return _named(method, op.__name__)


def _reflected(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return op(plain(other), self.value)

    return _named(method, 'r' + op.__name__)


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain_kwargs = {key: plain(arg) for key, arg in kwargs.items()}
        return getattr(self.value, name)(*map(plain, args), **plain_kwargs)

    method.__doc__ = f'Return ``value.{name}(...)``, a plain array.'
    return _named(method, name)


def _attribute(name: str) -> property:
    return property(lambda self: getattr(self.value, name), doc=f'``value.{name}``, a plain array.')


class PlainArray:
    """Everything of an event array that does not count events."""

    value: Any
    counts: Any  # what the entries count for in a product
    __array_priority__ = 1000

    __neg__ = _unary(operator.neg)
    __pos__ = _unary(operator.pos)
    __abs__ = _unary(operator.abs)
    __invert__ = _unary(operator.invert)
    __bool__ = _unary(bool)
    __int__ = _unary(int)
    __float__ = _unary(float)
    __complex__ = _unary(complex)
    __index__ = _unary(operator.index)

    __add__, __radd__ = _forward(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _forward(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _forward(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _forward(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _forward(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _forward(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _forward(operator.pow), _reflected(operator.pow)
    __divmod__, __rdivmod__ = _forward(divmod), _reflected(divmod)
    __and__, __rand__ = _forward(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _forward(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _forward(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _forward(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _forward(operator.rshift), _reflected(operator.rshift)

    __eq__ = _forward(operator.eq)
    __ne__ = _forward(operator.ne)
    __lt__ = _forward(operator.lt)
    __le__ = _forward(operator.le)
    __gt__ = _forward(operator.gt)
    __ge__ = _forward(operator.ge)
    # elementwise equality takes Python's hash away; event arrays hash by identity
    __hash__ = object.__hash__

    sum, prod, mean = _method('sum'), _method('prod'), _method('mean')
    std, var = _method('std'), _method('var')
    any, all = _method('any'), _method('all')
    max, min = _method('max'), _method('min')
    argmax, argmin, argsort = _method('argmax'), _method('argmin'), _method('argsort')
    cumsum, cumprod = _method('cumsum'), _method('cumprod')
    nonzero, take, repeat = _method('nonzero'), _method('take'), _method('repeat')
    astype, clip, round = _method('astype'), _method('clip'), _method('round')
    reshape, ravel, flatten = _method('reshape'), _method('ravel'), _method('flatten')
    transpose, swapaxes, squeeze = _method('transpose'), _method('swapaxes'), _method('squeeze')
    item, tolist = _method('item'), _method('tolist')

    T, mT, at = _attribute('T'), _attribute('mT'), _attribute('at')
    real, imag = _attribute('real'), _attribute('imag')

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self.counts if asked_by_contraction() else self.value
        return np.array(values, dtype=dtype, copy=copy)

    def __jax_array__(self) -> Any:
        if asked_by_operator():
            return self
        return self.counts if asked_by_contraction() else self.value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == '__call__' and not kwargs:
            if ufunc is np.matmul:
                left, right = inputs
                return left @ right if isinstance(left, PlainArray) else right.__rmatmul__(left)
            if ufunc in UFUNC_OPERATORS:
                return UFUNC_OPERATORS[ufunc](*map(plain, inputs))
        values = [np.asarray(x) if isinstance(x, PlainArray) else x for x in inputs]
        return getattr(ufunc, method)(*values, **kwargs)
