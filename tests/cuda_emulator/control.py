# SPDX-License-Identifier: Apache-2.0
"""What a test sets about the emulator: mode, schedule, limit. All are environment variables.

The schedule and the limit are read at each launch, so one library serves all of them; the mode is
read when a library is built.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SCHEDULES = ('forward', 'reverse', 'random:1', 'preempt:2', 'preempt:3')


def missing() -> str | None:
    """Return why the emulator cannot run here, or None."""
    for tool, why in (('g++', 'compiles kernels'), ('addr2line', 'finds the lines of findings')):
        if shutil.which(tool) is None:
            return f'the CUDA emulator needs {tool} on PATH: it {why}'
    return None


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """Set environment variables, or remove those that are None, and put them back."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def emulated(mode: str = 'check') -> AbstractContextManager[None]:
    """Build CUDA sources for the emulator, in one of its modes."""
    return environment(BRAINEVENT_CUDA_EMULATOR=str(FOLDER), BRAINEVENT_CUDA_EMULATOR_MODE=mode)


def schedule(name: str) -> AbstractContextManager[None]:
    """Run blocks and threads in an order: forward, reverse, random[:seed] or preempt[:seed]."""
    return environment(BRAINEVENT_CUDA_EMULATOR_SCHEDULE=name)
