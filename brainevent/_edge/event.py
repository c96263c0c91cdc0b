# SPDX-License-Identifier: Apache-2.0
"""What an element of an input counts for: itself, or one when it is a spike."""

import enum
from typing import Any

from brainevent._typing import Array

__all__ = ['Event', 'active_list', 'unwrap']


class Event(enum.Enum):
    """Kinds of input; the value is the prefix in names of operators.

    ``REAL`` elements count for themselves. ``BINARY`` elements are events: ``True``, or greater
    than zero, counts exactly one, all else (zero, negative, NaN) nothing. ``MASKED`` elements
    count for themselves too, but zeros are skipped, whatever they would have met.
    """

    REAL = ''
    BINARY = 'binary_'
    MASKED = 'masked_'

    def active(self, x: Array) -> Array:
        """Tell which elements meet their connections at all."""
        if x.dtype == bool:
            return x
        return x > 0 if self is Event.BINARY else x != 0

    def counts(self, x: Array, dtype: Any) -> Array:
        """Return what every element counts for."""
        return (self.active(x) if self is Event.BINARY else x).astype(dtype)

    @property
    def skips(self) -> bool:
        """Whether silent elements may be passed over."""
        return self is not Event.REAL


def unwrap(x: Any) -> tuple[Any, Event]:
    """Take an event array apart into its values and what they are; anything else is real."""
    event = getattr(x, '__event__', Event.REAL)
    return (x.value if event is not Event.REAL else x), event


def active_list(x: Any) -> tuple[Array, ...]:
    """Return ids and number of the active elements if an event array has them listed."""
    return getattr(x, '__active__', ())
