# SPDX-License-Identifier: Apache-2.0
"""Docstrings of functions that differ from another one in a parameter or two."""

import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ['BATCH', 'EVENTS', 'EVENT_BATCH', 'PRODUCT_BATCH', 'like']

F = TypeVar('F', bound=Callable[..., Any])

EVENTS = """Array or BinaryArray, shape (shape[1],), or (shape[0],) with ``transpose``
    An element counts one if it is True or greater than zero, and nothing otherwise."""
BATCH = """Array or Quantity, shape (shape[1], k), or (shape[0], k) with ``transpose``
    One vector in each column, multiplied by value; a bool counts 0 or 1."""
EVENT_BATCH = """Array or BinaryArray, shape (shape[1], k), or (shape[0], k) with ``transpose``
    One event vector in each column: an element counts one if it is True or greater than zero."""
PRODUCT_BATCH = """Array or Quantity, shape (shape[0], k), or (shape[1], k) with ``transpose``
    In the product of both units and the common dtype."""

_SECTION = re.compile(r'^(\w[\w ]*)\n-+\n', re.MULTILINE)
_ENTRY = re.compile(r'^(\S[^\n]*?) : ?([^\n]*(?:\n[ \n][^\n]*)*)', re.MULTILINE)


def like(
    other: Callable[..., Any], returns: str | None = None, **parameters: str
) -> Callable[[F], F]:
    """Complete the docstring of a function by sections of another function.

    Parameters
    ----------
    other : callable
        Its Parameters, Returns and Raises are taken where the function has none of its own.
    returns : str, optional
        The entry of Returns, if it is another one.
    **parameters : str
        Type and description of parameters that differ, or that ``other`` does not have.

    Returns
    -------
    callable
        A decorator; the docstring of the function itself has summary and examples.
    """
    given = _sections(other)

    def complete(function: F) -> F:
        own = _sections(function)
        entries = _entries(given['Parameters']) | _entries(own.get('Parameters', ''))
        entries |= parameters
        names = [name for name in inspect.signature(function).parameters if name in entries]
        groups = itertools.groupby(names, lambda name: entries[name].rstrip())
        described = '\n'.join(f'{", ".join(group)} : {text}' for text, group in groups)
        made = {
            '': own[''].rstrip(),
            'Parameters': described,
            'Returns': returns or own.get('Returns') or given.get('Returns', ''),
            'Raises': own.get('Raises') or given.get('Raises', ''),
        }
        rest = {name: text for name, text in own.items() if name not in made}
        function.__doc__ = '\n\n'.join(
            f'{name}\n{"-" * len(name)}\n{text.strip()}' if name else text
            for name, text in (made | rest).items()
            if text.strip()
        )
        return function

    return complete


def _sections(function: Callable[..., Any]) -> dict[str, str]:
    """Cut a docstring into its sections; what comes first has no name."""
    text = inspect.getdoc(function) or ''
    parts = _SECTION.split(text)
    return {'': parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _entries(section: str) -> dict[str, str]:
    """Return type and description of each parameter."""
    found: dict[str, str] = {}
    for names, text in _ENTRY.findall(section):
        found |= dict.fromkeys((name.strip().lstrip('*') for name in names.split(',')), text)
    return found
