# SPDX-License-Identifier: Apache-2.0
"""Batches: a kernel is written for one element, so it is launched once for each.

A kernel that couples rows (a stencil, a sum, a scan) would mix the elements of a batch if it were
launched once over all of them. So the buffers are cut along their leading axis, and each slice is
given to the kernel under its own grid.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from brainevent._error import DtypeError, KernelExecutionError, ShapeError, expect
from brainevent._op.numba_cuda.frame import DTYPES, Buffer


class OperandError(DtypeError, ValueError):
    """A dtype that a CUDA kernel of numba's cannot hold."""


class Operand(NamedTuple):
    """What a kernel is written for: dtype and shape of an array, without batch."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, where: str, what: str, array: Any) -> 'Operand':
        """Describe an array or struct, or refuse it."""
        expect(
            str(array.dtype) in DTYPES,
            OperandError,
            where,
            f'{what} has a dtype that a CUDA kernel cannot hold.',
            expected=', '.join(DTYPES),
            got=array.dtype,
            remedy='convert the array with astype before the call',
        )
        return cls(str(array.dtype), tuple(array.shape))

    @classmethod
    def of_input(cls, where: str, k: int, array: Any) -> 'Operand':
        """Describe an input, which has at least one axis."""
        expect(
            len(array.shape) > 0,
            ShapeError,
            where,
            f'input {k} has no axes.',
            expected='an array of one element or more',
            got=f'a scalar of {array.dtype}',
            remedy='pass x.reshape(1), or let the kernel close over a Python number',
        )
        return cls.of(where, f'input {k}', array)


class View(NamedTuple):
    """A C-contiguous array on the device, of one batch element."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def nbytes(shape: Sequence[int], dtype: str) -> int:
    """Count the bytes of an array."""
    return prod(shape) * np.dtype(dtype).itemsize


def slices(
    where: str, operands: Sequence[Operand], buffers: Sequence[Buffer]
) -> Iterator[list[View]]:
    """Cut the buffers of a call into the arrays of one launch after the other."""
    levels = _levels(where, operands, buffers)
    extent = max([1, *(b.shape[0] for b in buffers)]) if levels else 1
    if levels and any(b.shape[0] == 0 for b in buffers):
        return
    steps = [
        nbytes(o.shape, o.dtype) if levels and b.shape[0] > 1 else 0
        for o, b in zip(operands, buffers, strict=True)
    ]
    for k in range(extent):
        yield [
            View(b.address + k * step, o.shape, np.dtype(o.dtype))
            for o, b, step in zip(operands, buffers, steps, strict=True)
        ]


def _levels(where: str, operands: Sequence[Operand], buffers: Sequence[Buffer]) -> int:
    """Return how many batch axes the buffers have, none or one; or refuse the call."""
    levels = {len(b.shape) - len(o.shape) for o, b in zip(operands, buffers, strict=True)}
    expect(
        levels == {0} or levels == {1},
        KernelExecutionError,
        where,
        'a batch of batches reached the kernel.',
        expected='at most one level of vmap',
        got=f'buffers of shapes {[b.shape for b in buffers]}',
        remedy="wrap the kernel with vmap_method='sequential', or vmap once over a flat batch",
    )
    (depth,) = levels
    leading = {b.shape[0] for b in buffers if depth} - {1}
    fits = len(leading) <= 1 and all(
        b.dtype == o.dtype and b.shape[depth:] == o.shape
        for o, b in zip(operands, buffers, strict=True)
    )
    expect(
        fits,
        KernelExecutionError,
        where,
        'the buffers are not those that the kernel was traced for.',
        expected=lambda: [f'{o.dtype}{list(o.shape)}' for o in operands],
        got=lambda: [f'{b.dtype}{list(b.shape)}' for b in buffers],
    )
    return depth
