# SPDX-License-Identifier: Apache-2.0
"""Which elementwise operations keep zeros zero, and which operands they take.

One rule holds for every format: an operation with a number acts on stored weights if it maps zero
to zero, and is refused otherwise, since places without an entry would have to change too.
"""

import operator
from collections.abc import Callable
from typing import Any

import brainunit as u
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge.operands import split_unit

__all__ = ['is_number', 'keeps_zero']

# An unknown number keeps zeros zero in these, unless it is zero or not finite.
_SCALING = (operator.mul, operator.truediv, operator.floordiv, operator.mod)


def is_number(x: Any) -> bool:
    """Return whether an operand is one number or a unit."""
    return isinstance(x, u.Unit) or (np.size(x) == 1 and np.ndim(x) < 2)


def keeps_zero(op: Callable[[Any, Any], Any], number: Any, reflected: bool = False) -> bool:
    """Return whether ``op(0, number)`` is zero, or ``op(number, 0)`` if reflected.

    Parameters
    ----------
    op : callable
        A function of the module `operator`.
    number : number, Array, Quantity or Unit
        Of one element. Where its value is traced, operations that scale are taken to keep zeros.
    reflected : bool
        Whether the number is the left operand.
    """
    value = split_unit(number)[0]
    if isinstance(value, u.Unit) or not is_concrete(value):
        return op is operator.mul or (op in _SCALING and not reflected)
    value = np.asarray(value).reshape(())
    value = value.astype(complex if value.dtype.kind == 'c' else float)
    zero = value.dtype.type(0)
    with np.errstate(all='ignore'):
        try:
            result = op(value, zero) if reflected else op(zero, value)
        except TypeError:  # complex numbers have no remainder
            return False
    return bool(result == 0)
