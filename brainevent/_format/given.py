# SPDX-License-Identifier: Apache-2.0
"""What all formats are given: arrays and shape by constructors, other matrices by products."""

from collections.abc import Sequence
from typing import Any

import brainunit as u
from jax.experimental.sparse import JAXSparse

from brainevent._edge.operands import check_shape
from brainevent._error import DtypeError, UnsupportedOperationError, expect
from brainevent._format.bridge import as_sparse

__all__ = ['own_shape', 'refuse_sparse', 'unpacked']


def unpacked(where: str, names: tuple[str, ...], given: Any) -> Sequence[Any]:
    """Take apart the one tuple that a constructor may be given; an array is not unpacked."""
    listed = isinstance(given, (tuple, list))
    expect(
        listed and len(given) == len(names),
        DtypeError,
        where,
        'the arrays of the matrix are not complete.',
        expected=f'{", ".join(names)}, or a tuple of them',
        got=lambda: f'{type(given).__name__}' + (f' of {len(given)}' if listed else ''),
        remedy=lambda: (
            f'use {where}.fromscipy for a sparse matrix'
            if not listed and as_sparse(given) is not None
            else f'give all of them, or use {where}.fromdense for a dense array'
        ),
    )
    return given  # type: ignore[no-any-return]


def own_shape(where: str, shape: Any) -> tuple[int, int]:
    """Return the shape of a matrix as two ints.

    Raises
    ------
    DtypeError
        If it was not given.
    ShapeError
        If it is anything else.
    """
    expect(
        shape is not None,
        DtypeError,
        where,
        '`shape` is missing.',
        expected='shape=(rows, columns)',
        got='no shape',
    )
    return check_shape(where, shape)


def refuse_sparse(where: str, other: Any) -> None:
    """Refuse the product of two sparse matrices, from whatever package the other one is.

    Raises
    ------
    UnsupportedOperationError
    """
    expect(
        not isinstance(other, (u.sparse.SparseMatrix, JAXSparse)) and as_sparse(other) is None,
        UnsupportedOperationError,
        where,
        'products of two sparse matrices are not offered.',
        expected='an array or an event array',
        got=lambda: type(other).__name__,
        remedy='make one of them dense, with `A.todense()` or `x.toarray()`',
    )
