# SPDX-License-Identifier: Apache-2.0
"""Registry: every operator by its name, and by its tags."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brainevent._op.kernel import XLACustomKernel

__all__ = ['get_all_primitive_names', 'get_primitives_by_tags', 'get_registry']

_operators: dict[str, XLACustomKernel] = {}
_lock = threading.Lock()


def register(name: str, operator: XLACustomKernel) -> None:
    """Enter an operator; a taken name is given to the newcomer, with a warning."""
    with _lock:
        taken = name in _operators
        _operators[name] = operator
    if taken:
        warnings.warn(
            f'An operator named {name!r} exists already. The registry now shows the new one; '
            'both stay usable.',
            UserWarning,
            stacklevel=3,
        )


def get_registry() -> dict[str, XLACustomKernel]:
    """Return every operator by name.

    Returns
    -------
    dict
        A copy; changing it changes nothing.

    Examples
    --------
    >>> from brainevent._op.registry import get_registry
    >>> isinstance(get_registry(), dict)
    True
    """
    with _lock:
        return dict(_operators)


def get_primitives_by_tags(tags: Iterable[str]) -> dict[str, XLACustomKernel]:
    """Return the operators that carry every one of the tags.

    Parameters
    ----------
    tags : set of str, or one str

    Returns
    -------
    dict
        Operators by name.

    Examples
    --------
    >>> from brainevent._op.registry import get_primitives_by_tags
    >>> get_primitives_by_tags({'no such tag'})
    {}
    """
    wanted = {tags} if isinstance(tags, str) else set(tags)
    return {name: op for name, op in get_registry().items() if wanted <= set(op.tags)}


def get_all_primitive_names() -> list[str]:
    """Return the names of all operators, sorted.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from brainevent._op.registry import get_all_primitive_names
    >>> names = get_all_primitive_names()
    >>> names == sorted(names)
    True
    """
    return sorted(get_registry())
