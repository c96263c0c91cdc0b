# SPDX-License-Identifier: Apache-2.0
"""A docstring made of another one has the sections of both, in the order of the signature."""

import inspect

from brainevent._docstring import like


def first(a, b, c, *, shape):
    """Add.

    Parameters
    ----------
    a, b : Array, shape (n,)
        Two arrays.

        With a second paragraph.
    c : int
    shape : tuple of int
        Rows and columns.

    Returns
    -------
    Array, shape (n,)

    Raises
    ------
    ShapeError
        If they differ.
    """


@like(first, 'Array, shape (n, k)', d='float\n    Another one.')
def second(d, c, a, b, *, e=None):
    """Add columns.

    Parameters
    ----------
    c : float
        Not an int.

    Examples
    --------
    >>> 1 + 1
    2
    """


def test_sections_of_both():
    assert inspect.getdoc(second) == inspect.cleandoc("""
    Add columns.

    Parameters
    ----------
    d : float
        Another one.
    c : float
        Not an int.
    a, b : Array, shape (n,)
        Two arrays.

        With a second paragraph.

    Returns
    -------
    Array, shape (n, k)

    Raises
    ------
    ShapeError
        If they differ.

    Examples
    --------
    >>> 1 + 1
    2
    """)
