# SPDX-License-Identifier: Apache-2.0
"""Keywords that have another name today: both names are accepted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ['also_named']

P = ParamSpec('P')
T = TypeVar('T')


def also_named(**others: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Accept arguments of a function by a second name, too.

    Parameters
    ----------
    **others : str
        ``second=first``, for each argument that has a second name.

    Returns
    -------
    callable
        Decorator; signature and documentation show first names only.

    Examples
    --------
    >>> @also_named(d='other')
    ... def twice(other):
    ...     return 2 * other
    >>> twice(d=3), twice(other=3), twice(3)
    (6, 6, 6)
    """

    def decorate(fn: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            for second in others.keys() & kwargs.keys():
                first = others[second]
                if first in kwargs:
                    raise TypeError(f'{fn.__name__}() got `{first}` and `{second}`, which are one')
                kwargs[first] = kwargs.pop(second)
            return fn(*args, **kwargs)

        return call

    return decorate
