# SPDX-License-Identifier: Apache-2.0
"""The check that an input has one entry for each row or column, and the hint that fits."""

import jax.numpy as jnp

from brainevent._edge.event import Event
from brainevent._edge.operator import Spec
from brainevent._error import ShapeError, expect
from brainevent._typing import Array

__all__ = ['check_input']


def check_input(where: str, x: Array, spec: Spec, by_matrix: bool) -> None:
    """Check the input of a product against the shape.

    Parameters
    ----------
    where : str
        Name of the call in messages.
    x : Array
    spec : Spec
    by_matrix : bool
        The call is an operator between a matrix and ``x``, and not a function with ``transpose``.

    Raises
    ------
    ShapeError
        If an axis is missing or too long; the hint names the nearest call that would fit.
    """
    length = x.shape[-1 if spec.rows else 0] if x.ndim in (1, 2) else -1
    expect(
        length == spec.extents[1],
        ShapeError,
        where,
        'the input does not fit `shape`.',
        expected=lambda: (
            f'{spec.extents[1]} entries, '
            + ('' if by_matrix else f'because transpose={spec.transpose} and shape={spec.shape}, ')
            + 'in one axis, or two: '
            + ('(batch, entries)' if spec.rows else '(entries, batch)')
        ),
        got=lambda: f'shape {x.shape}',
        remedy=lambda: _remedy(x, spec, length, by_matrix),
    )


def _remedy(x: Array, spec: Spec, length: int, by_matrix: bool) -> str:
    """Name what was meant, as far as the input shows it."""
    if spec.event is Event.BINARY and x.ndim == 1 and jnp.issubdtype(x.dtype, jnp.integer):
        return (
            'if these are ids of spikes, give them as CompactBinary.from_packed(...), or make a '
            f'vector of them: BinaryArray(jnp.zeros({spec.extents[1]}, bool).at[ids].set(True))'
        )
    if length == spec.extents[0]:
        if not by_matrix:
            return f'pass transpose={not spec.transpose}'
        return 'exchange the sides: `x @ A` has an entry for each row, `A @ x` for each column'
    if by_matrix:
        return 'give one entry for each row in `x @ A`, and for each column in `A @ x`'
    return f'give one entry for each {"row" if spec.transpose else "column"}'
