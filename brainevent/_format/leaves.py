# SPDX-License-Identifier: Apache-2.0
"""Checks that the leaves of a matrix still fit its static shape.

A matrix is a pytree: `jax.tree.map`, `jax.shard_map`, `jax.vmap` and libraries replace its leaves
without a constructor, while its shape is static and stays. Shapes of leaves are static as well, so
the check costs nothing in a compiled program and works for traced arrays.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from brainevent._edge.operands import split_unit
from brainevent._error import DtypeError, ShapeError, expect, explain

__all__ = ['check_leaves']


def check_leaves(
    where: str, shape: tuple[int, int], leaves: Iterable[tuple[str, Any]], check: Callable[[], None]
) -> None:
    """Run a check of shapes, and explain a failure by what happens to the leaves of a matrix.

    Parameters
    ----------
    where : str
        Name of the class in messages.
    shape : tuple of int
        Static shape of the matrix.
    leaves : iterable of (str, Array or Quantity)
        Leaves with their names.
    check : callable
        ``check()`` raises `ShapeError` if the leaves do not fit.

    Raises
    ------
    DtypeError
        If a leaf is not an array, but a placeholder.
    ShapeError
        If the leaves do not fit the shape, or each other.
    """
    leaves = [(name, split_unit(leaf)[0]) for name, leaf in leaves]
    for name, leaf in leaves:
        expect(
            hasattr(leaf, 'shape') or isinstance(leaf, (int, float, complex)),
            DtypeError,
            where,
            f'the leaf `{name}` of the matrix is not an array.',
            expected='arrays as leaves, in every operation',
            got=lambda leaf=leaf: repr(leaf),
            remedy='put placeholders back before the matrix is used, for example with '
            'jax.tree.unflatten(structure, arrays)',
        )
    try:
        check()
    except ShapeError as cause:
        text = explain(
            where,
            'the leaves of the matrix do not fit its shape; they were replaced after construction.',
            expected=f'leaves that belong to a matrix of shape {shape}',
            got=', '.join(f'{name} of shape {np.shape(leaf)}' for name, leaf in leaves),
            remedy='select rows with `A[...]` or `A.slice_rows(...)`; use a stack of matrices '
            'inside `jax.vmap`; in `jax.shard_map` build each block with the shape of the block',
        )
        raise ShapeError(f'{text}\n    cause:    {cause}') from cause
