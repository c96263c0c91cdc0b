# SPDX-License-Identifier: Apache-2.0
"""Checks of what a drawn matrix is made of, concrete and traced."""

import math
from collections.abc import Sequence
from typing import Any

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete, is_tracer
from brainevent._edge.operands import split_unit, with_unit
from brainevent._error import OptionError, ShapeError, expect

__all__ = [
    'check_interval',
    'check_single',
    'described',
    'is_probability',
    'room_of',
    'show_invalid',
]


def is_probability(prob: Any) -> jax.Array:
    """Return whether a traced number is one from 0 to 1."""
    return ((prob >= 0) & (prob <= 1)).reshape(())  # type: ignore[no-any-return]


def show_invalid(prob: Any, result: Any) -> Any:
    """Return a result that is NaN if a traced probability is not a number from 0 to 1.

    So are its derivatives. Whole numbers, which cannot be NaN, become the extreme of their dtype.
    """
    if is_concrete(prob):
        return result  # checked at construction
    valid = is_probability(prob)
    number, unit = split_unit(result)
    if jnp.issubdtype(number.dtype, jnp.inexact):
        number = number * jnp.where(valid, 1, jnp.nan).astype(number.dtype)
    elif jnp.issubdtype(number.dtype, jnp.integer):
        ends = jnp.iinfo(number.dtype)
        number = jnp.where(valid, number, np.asarray(ends.min or ends.max, number.dtype))
    return with_unit(number, unit)


def check_interval(where: str, low: Any, high: Any) -> None:
    """Check the ends of uniform weights, where they are known."""
    ends = [split_unit(end)[0] for end in (low, high)]
    if not all(map(is_concrete, ends)):
        return
    first, last = map(np.asarray, ends)

    def given() -> str:
        return f'low={described(low)}, high={described(high)}'

    expect(
        not _overflows(first, last),
        OptionError,
        where,
        'the interval is wider than the dtype can hold.',
        expected=lambda: f'high - low below the largest number of {np.result_type(first, last)}',
        got=given,
        remedy='use a wider dtype, or smaller weights',
    )
    expect(
        bool(np.all(first <= last)),
        OptionError,
        where,
        '`low` is above `high`.',
        expected='low <= high',
        got=given,
        remedy='exchange them',
    )


def _overflows(low: Any, high: Any) -> bool:
    """Return whether a finite interval has no finite length in the dtype of its ends."""
    with np.errstate(over='ignore', invalid='ignore'):
        finite = bool(np.isfinite(low).all() and np.isfinite(high).all())
        return finite and not bool(np.isfinite(high - low).all())


def check_single(where: str, leaves: Sequence[tuple[str, Any]]) -> None:
    """Check that parameters, probability and seed are one number each; a seed may be two words."""
    for name, leaf in leaves:
        shape = np.shape(split_unit(leaf)[0])
        expect(
            math.prod(shape) == 1 or (name == 'seed' and shape == (2,)),
            ShapeError,
            where,
            f'`{name}` is not one number.',
            expected='shape () or (1,)',
            got=lambda shape=shape: f'shape {shape}',
        )


def room_of(w: Any) -> int | None:
    """Return how many edges a value for each of them tells of; None if it tells nothing."""
    size = int(np.size(split_unit(w)[0]))
    return size if size > 1 and is_tracer(split_unit(w)[0]) else None


def described(x: Any) -> str:
    """Return the value of a concrete parameter as text, or what stands for it."""
    return f'{x}' if isinstance(x, (jax.Array, u.Quantity)) and is_concrete(x) else f'{x!r}'
