# SPDX-License-Identifier: Apache-2.0
"""``brainevent cache``: show or clear the folder of compiled kernels."""

from __future__ import annotations

import argparse
from pathlib import Path

import brainevent as be
from brainevent._op import cache

__all__ = ['describe', 'run']


def run(args: argparse.Namespace) -> int:
    """Carry out the command.

    Parameters
    ----------
    args : argparse.Namespace
        The parsed arguments.

    Returns
    -------
    int
        Exit status.

    Raises
    ------
    argparse.ArgumentError
        If the arguments do not fit each other, or nothing is compiled under a name.
    """
    if args.action == 'clear':
        removed = be.clear_cache(args.name)
        if args.name is not None and not removed:
            raise argparse.ArgumentError(None, f'nothing is compiled under the name {args.name!r}')
        print(f'removed {removed} compiled kernels from {be.get_cache_dir()}')
    elif args.name is not None:
        raise argparse.ArgumentError(None, f'{args.name!r} goes with clear only')
    else:
        print(describe())
    return 0


def describe() -> str:
    """Say where compiled kernels are kept, how many, and how much room they take.

    Returns
    -------
    str
    """
    folder = Path(be.get_cache_dir())
    if not folder.is_dir():
        return f'{folder}: not made yet'
    kernels = cache.compiled(folder, None)
    files = [file for path in kernels for file in ([path] if path.is_file() else path.rglob('*'))]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return f'{folder}: {len(kernels)} compiled kernels, {size / 2**20:.1f} MiB'
