# SPDX-License-Identifier: Apache-2.0
"""What an edge carries: a value, linear in a few parameters, found from the edge's tag."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from brainevent._typing import Array

__all__ = ['STORED', 'Weight']


@dataclass(frozen=True)
class Weight:
    """A kind of weight: its name, its number of parameters, and its value on edges."""

    name: str
    params: int
    value: Callable[[tuple[Array, ...], Any], Array]


def _stored(params: tuple[Array, ...], tag: Any) -> Array:
    (data,) = params
    return data[0] if data.shape[0] == 1 else data[tag]


STORED = Weight('stored', 1, _stored)
"""One number for every edge, or one for all of them."""
