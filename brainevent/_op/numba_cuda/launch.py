# SPDX-License-Identifier: Apache-2.0
"""What one call does on the GPU: a kernel over a grid of threads, or a function of the user's."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from brainevent._error import OptionError, expect, explain
from brainevent._op import ffi_naming

MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024  # of a block; the same limits hold on every GPU that CUDA 12 knows


@dataclass(frozen=True)
class Grid:
    """How many blocks of how many threads, and the bytes of shared memory that a block gets."""

    blocks: tuple[int, ...]
    threads: tuple[int, ...]
    shared_mem: int = 0

    @property
    def idle(self) -> bool:
        """Whether there is no thread at all, which CUDA refuses to launch."""
        return 0 in self.blocks + self.threads


class Work(Protocol):
    """What is done with the arrays of a call (of a batch element) on a stream."""

    @property
    def py_func(self) -> Callable[..., Any]:
        """The Python function behind it."""
        ...

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        ...

    def content(self) -> tuple[str, ...] | None:
        """Return what tells it from other work; None if only the object itself does."""
        ...

    def run(self, arrays: Sequence[Any], stream: Any) -> None:
        """Do it with device arrays, inputs then outputs, and a stream of numba's."""
        ...


@dataclass(frozen=True)
class Launch:
    """A kernel of numba's with its grid."""

    kernel: Any
    grid: Grid

    @property
    def py_func(self) -> Callable[..., Any]:
        """The Python function behind the kernel."""
        function: Callable[..., Any] = self.kernel.py_func
        return function

    @property
    def idle(self) -> bool:
        """Whether no thread is launched."""
        return self.grid.idle

    def content(self) -> tuple[str, ...] | None:
        """Return fingerprint and grid."""
        told = ffi_naming.fingerprint(self.kernel)
        return told and (told, repr(self.grid))  # type: ignore[return-value]

    def run(self, arrays: Sequence[Any], stream: Any) -> None:
        """Launch the kernel."""
        grid = self.grid
        self.kernel[grid.blocks, grid.threads, stream, grid.shared_mem](*arrays)


@dataclass(frozen=True)
class Call:
    """A Python function that launches what it likes."""

    py_func: Callable[..., Any]
    idle: bool = False

    def content(self) -> tuple[str, ...] | None:
        """Return the fingerprint."""
        told = ffi_naming.fingerprint(self.py_func)
        return told and (told,)  # type: ignore[return-value]

    def run(self, arrays: Sequence[Any], stream: Any) -> None:
        """Call the function."""
        self.py_func(*arrays, stream)


def plan(
    where: str, grid: Any, block: Any, launch_dims: Any, threads_per_block: int, shared_mem: int
) -> Grid:
    """Decide the grid: the one given, or enough blocks to cover ``launch_dims`` with threads."""
    explicit = grid is not None and block is not None
    none = grid is None and block is None
    expect(
        (explicit and launch_dims is None) or (none and launch_dims is not None),
        OptionError,
        where,
        'the launch is not said, or said twice.',
        expected='`grid` and `block` together, or `launch_dims` alone',
        got=f'grid={grid}, block={block}, launch_dims={launch_dims}',
        remedy='give launch_dims=n for one thread an element',
    )
    shared = _extents(where, 'shared_mem', shared_mem, most=1)[0]
    if explicit:
        chosen = Grid(_extents(where, 'grid', grid), _extents(where, 'block', block), shared)
    else:
        extents = _extents(where, 'launch_dims', launch_dims)
        (size,) = _extents(where, 'threads_per_block', threads_per_block, most=1)
        expect(
            1 <= size <= MAX_THREADS,
            OptionError,
            where,
            '`threads_per_block` is no number of threads.',
            expected=f'1 to {MAX_THREADS}',
            got=size,
        )
        threads = _block(extents, size)
        blocks = tuple(-(-n // t) for n, t in zip(extents, threads, strict=True))
        chosen = Grid(blocks, threads, shared)
    _check_limits(where, chosen)
    return chosen


def _block(extents: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Share threads among the axes, the first ones first: 256, or 16 x 16, or 8 x 8 x 4."""
    if len(extents) == 1:
        shape = [size]
    else:
        each, left = divmod(size.bit_length() - 1, len(extents))
        shape = [1 << (each + (k < left)) for k in range(len(extents))]
    return tuple(min(t, max(n, 1)) for t, n in zip(shape, extents, strict=True))


def _extents(where: str, name: str, value: Any, most: int = 3) -> tuple[int, ...]:
    """Read one to three counts."""
    wanted = 'a count of at least 0' if most == 1 else f'1 to {most} counts of at least 0'
    try:
        counts = tuple(map(operator.index, value if isinstance(value, Sequence) else (value,)))
    except TypeError as cause:
        raise OptionError(
            explain(where, f'`{name}` is no extent.', expected=wanted, got=repr(value))
        ) from cause
    expect(
        1 <= len(counts) <= most and min(counts) >= 0,
        OptionError,
        where,
        f'`{name}` is no extent.',
        expected=wanted,
        got=repr(value),
    )
    return counts


def _check_limits(where: str, grid: Grid) -> None:
    """Refuse what no GPU can launch now, and not in the middle of a program."""
    fits = (
        all(n <= limit for n, limit in zip(grid.blocks, MAX_GRID, strict=False))
        and all(n <= limit for n, limit in zip(grid.threads, MAX_BLOCK, strict=False))
        and prod(grid.threads) <= MAX_THREADS
    )
    expect(
        fits,
        OptionError,
        where,
        'no GPU can launch this grid.',
        expected=f'a grid within {MAX_GRID}, a block within {MAX_BLOCK} and {MAX_THREADS} threads',
        got=f'grid {grid.blocks}, block {grid.threads}',
        remedy='let each thread do more than one element, or swap the axes',
    )
