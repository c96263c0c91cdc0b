# SPDX-License-Identifier: Apache-2.0
"""How JAX and numpy ask an event array for an array, and which one they get.

JAX turns an operand with ``__jax_array__`` into an array before its own operator runs. For
``dense @ events`` that would be the ordinary product: a spike of 2.0 would count 2. So the answer
depends on who asks:

- a binary operator of an array class gets the event array itself back, does not know it, and hands
  the operation over to the reflected method, which is ours;
- a contraction (``jnp.matmul``, the ``@`` of another package's sparse matrix) gets what the events
  count for;
- everybody else (``jnp.asarray``, ``jnp.where``, ``jnp.sum``, ...) gets the values.

The asker is read off the call stack, since neither library offers another sign. To be removed when
JAX defers to a reflected operator of its own accord.
"""

import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

__all__ = ['UFUNC_OPERATORS', 'asked_by_contraction', 'asked_by_operator']

CONTRACTIONS = frozenset(
    ('matmul', 'dot', 'vdot', 'inner', 'tensordot', 'einsum', 'vecdot', 'matvec', 'vecmat')
    + ('__matmul__', '__rmatmul__')
)
CONTRACTING_PACKAGES = ('jax.', 'saiunit.sparse', 'scipy.sparse')
# the longest way seen, from a sparse matrix through three layers of `asarray`, has six frames
_CONTRACTION_DEPTH = 8


def asked_by_operator() -> bool:
    """Whether the caller was called by a binary operator of an array class.

    Two independent signs, either will do: the operator's argument names and JAX's module of
    array operators. A stranger's operator that matches is served as well, because its ``+`` with
    the event array ends up in our reflected method too.
    """
    frame = sys._getframe(2)
    code = frame.f_code
    return code.co_varnames[: code.co_argcount] == ('self', 'other') or _module(frame).endswith(
        '.numpy.array_methods'
    )


def asked_by_contraction() -> bool:
    """Whether the caller was called on behalf of a product in JAX or a sparse matrix package."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_CONTRACTION_DEPTH):
        if frame is None:
            break
        if frame.f_code.co_name in CONTRACTIONS and _module(frame).startswith(CONTRACTING_PACKAGES):
            return True
        frame = frame.f_back
    return False


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get('__name__', ''))


# numpy's operators arrive as ufuncs; these go through Python's operator instead, so that a traced
# value stays traced and a quantity keeps its unit.
UFUNC_OPERATORS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.power: operator.pow,
    np.divmod: divmod,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    np.left_shift: operator.lshift,
    np.right_shift: operator.rshift,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
}
