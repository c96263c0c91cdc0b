# SPDX-License-Identifier: Apache-2.0
"""``brainevent doctor``: what is installed, which backends can run, and why others cannot."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
from collections.abc import Iterator

import jax

import brainevent as be
from brainevent import config
from brainevent._commands import cache
from brainevent._op import cache as kept
from brainevent._op.backends import backend_platforms, import_trouble
from brainevent._op.kernix.diagnostics import diagnostics

__all__ = ['run']

PACKAGES = (
    'brainevent', 'jax', 'jaxlib', 'numpy', 'numba', 'brainunit',
    'scipy', 'matplotlib', 'rich', 'tqdm', 'numba-cuda', 'triton', 'warp-lang',
)  # fmt: skip

Lines = Iterator[tuple[str, str]]


def run(args: argparse.Namespace) -> int:
    """Carry out the command.

    Parameters
    ----------
    args : argparse.Namespace

    Returns
    -------
    int
        Exit status: 1 if the default backend of the platform at hand cannot run.
    """
    del args
    for title, lines in (
        ('packages', _packages()),
        ('backends', _backends()),
        ('this machine', _machine()),
    ):
        print(title)
        for name, text in lines:
            print(f'  {name:<20} {text}')
    broken = _why_broken()
    print('all is well' if broken is None else f'trouble: {broken}')
    return 0 if broken is None else 1


def _packages() -> Lines:
    for name in PACKAGES:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield name, be.__version__ if name == 'brainevent' else 'not installed'


def _backends() -> Lines:
    operators = be.get_registry().values()
    for platform in config.PLATFORMS:
        there = _has(platform)
        for name, platforms in backend_platforms().items():
            if platform not in platforms:
                continue
            serving = sum(name in op._table.backends(platform) for op in operators)
            yield f'{platform} {name}', '; '.join(_state(name, serving, there))


def _state(name: str, serving: int, there: bool) -> Iterator[str]:
    if not there:
        yield 'no such device'
    else:
        missing = _missing(name)
        yield 'ready' if missing is None else f'not available: {missing}'
    yield f'{serving} operators' if serving else 'for kernels of your own'


def _machine() -> Lines:
    yield 'cache', cache.describe()
    yield 'threads', f'{config.cpu_threads()} a kernel at most, {os.cpu_count()} processors'
    chosen = {p: config.get_backend(p) for p in config.PLATFORMS}
    yield 'chosen backends', ', '.join(f'{p}: {b}' for p, b in chosen.items() if b) or 'none'
    for name, text in diagnostics():
        if name not in ('brainevent', 'jax', 'cache folder'):
            yield name, text.splitlines()[0]


def _has(platform: str) -> bool:
    try:
        return bool(jax.devices(platform))
    except RuntimeError:
        return False


def _missing(name: str | None) -> str | None:
    """Return what a backend lacks; numba is imported to see whether it works."""
    record = be.get_backend_record(name) if name else None
    missing = record.missing() if record else None
    return import_trouble('numba') if missing is None and name == 'numba' else missing


def _why_broken() -> str | None:
    """Say why an ordinary product cannot run with its default backend here, or return None."""
    platform = jax.default_backend()
    default = be.binary_csrmv_p.get_default(platform)
    missing, lost = _missing(default), kept.trouble()
    if missing is None and lost is not None:
        return f'compiled kernels cannot be kept: {lost}'
    return missing and f'{default} is the default on {platform}, but {missing}'
