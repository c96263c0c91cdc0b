# SPDX-License-Identifier: Apache-2.0
"""How a family of operators is called: traced into the program at hand, or compiled by itself."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from brainevent._compat import is_tracer
from brainevent._edge.operator import Spec
from brainevent._typing import Array

__all__ = ['Door', 'raise_level']


class Door:
    """A family whose calls run as compiled functions of their own outside a traced program."""

    def _traced(self, spec: Spec, backend: Any) -> Callable[..., Array]:
        """Return the operator as a function to be traced into the program at hand."""
        raise NotImplementedError

    @functools.lru_cache(maxsize=4096)  # noqa: B019 -- families live as long as the process
    def _compiled(self, spec: Spec, backend: Any) -> Callable[..., Array]:
        return jax.jit(self._traced(spec, backend))

    def run(self, spec: Spec, backend: Any, *operands: Any) -> Array:
        """Run the operator on operands, of which None are absent."""
        traced = any(map(is_tracer, jax.tree.leaves(operands)))
        return (self._traced if traced else self._compiled)(spec, backend)(*operands)


def raise_level(operands: Sequence[Array], axes: Sequence[Any]) -> list[Array]:
    """Give every operand one more leading axis, of length one where it has no batch."""
    return [
        x[None] if axis is None else jax.numpy.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]
