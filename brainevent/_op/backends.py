# SPDX-License-Identifier: Apache-2.0
"""Backend records: what a way of running kernels is called, where it runs and what it needs."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from brainevent import config
from brainevent._error import KernelError

__all__ = [
    'Backend',
    'CompilerMissing',
    'backend_platforms',
    'cuda_is_emulated',
    'ensure_backend',
    'get_backend_record',
    'import_trouble',
    'register_backend',
]


EMULATOR = 'BRAINEVENT_CUDA_EMULATOR'


class CompilerMissing(KernelError):
    """The compiler of a backend is there, but fails; another backend may serve the call."""


@dataclass(eq=False)
class Backend:
    """A way of running kernels.

    Parameters
    ----------
    name : str
        As in ``backend='numba'``.
    platforms : tuple of str
        Where its kernels run.
    probe : callable, optional
        Returns True if everything it needs is at hand, else what is missing. Asked when a call
        is lowered, and again until the answer was True once.
    hint : str
        What to do about the missing piece.
    """

    name: str
    platforms: tuple[str, ...]
    probe: Callable[[], bool | str] | None = None
    hint: str = ''
    _ready: bool = field(default=False, init=False, repr=False)

    def missing(self) -> str | None:
        """Return what is missing together with the remedy, or None."""
        if self._ready or self.probe is None:
            return None
        answer = self.probe()
        if answer is True:
            self._ready = True
            return None
        reason = answer or f'{self.name} cannot run here'
        return f'{reason} ({self.hint})' if self.hint else str(reason)


_records: dict[str, Backend] = {}
_lock = threading.Lock()


def register_backend(record: Backend) -> Backend:
    """Make a backend known by its name; the newest record of a name counts.

    Parameters
    ----------
    record : Backend

    Returns
    -------
    Backend
        The same record.

    Examples
    --------
    >>> from brainevent._op.backends import Backend, register_backend
    >>> register_backend(Backend('my_way', ('cpu',), probe=lambda: True)).missing() is None
    True
    """
    for platform in record.platforms:
        config.check_platform(f'Backend({record.name!r})', platform)
    with _lock:
        _records[record.name] = record
    return record


def ensure_backend(name: str, platform: str) -> Backend:
    """Return the record of ``name``; a new one if a guest brings the name, and add the platform."""
    with _lock:
        record = _records.setdefault(name, Backend(name, (platform,)))
        if platform not in record.platforms:
            record.platforms = (*record.platforms, platform)
        return record


def get_backend_record(name: str) -> Backend | None:
    """Return the record of a backend, or None.

    Parameters
    ----------
    name : str

    Returns
    -------
    Backend or None

    Examples
    --------
    >>> from brainevent._op.backends import get_backend_record
    >>> get_backend_record('numba').platforms
    ('cpu',)
    """
    return _records.get(name)


def backend_platforms() -> dict[str, tuple[str, ...]]:
    """Return every known name with the platforms it runs on, emulated ones too."""
    more = {'cuda_raw': ('cpu',)} if cuda_is_emulated() else {}
    with _lock:
        return {name: record.platforms + more.get(name, ()) for name, record in _records.items()}


def cuda_is_emulated() -> bool:
    """Tell whether ``BRAINEVENT_CUDA_EMULATOR`` names an emulator that runs CUDA on the CPU."""
    return bool(os.environ.get(EMULATOR))


def _needs(module: str) -> Callable[[], bool | str]:
    """Return a probe for an importable package that does not import it."""

    def probe() -> bool | str:
        if module in sys.modules:
            found = sys.modules[module] is not None  # None blocks the import on purpose
        else:
            found = importlib.util.find_spec(module) is not None
        return found or f'the package {module!r} is not installed'

    return probe


def import_trouble(module: str) -> str | None:
    """Import a package and return why that fails, or None; a misfit fails in many ways."""
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as cause:
        return f'{module} cannot be imported ({type(cause).__name__}: {cause})'
    return None


def _cuda_compiler() -> bool | str:
    found: bool | str = importlib.import_module('brainevent._op.kernix.nvcc').missing_cuda()
    return found


register_backend(Backend('numba', ('cpu',), _needs('numba'), 'pip install numba'))
register_backend(Backend('jax_raw', ('cpu', 'gpu', 'tpu')))
register_backend(
    Backend(
        'cuda_raw',
        ('gpu',),
        _cuda_compiler,
        "pip install 'jax[cuda13]', or install the CUDA toolkit and g++; see print_diagnostics()",
    )
)
register_backend(Backend('numba_cuda', ('gpu',), _needs('numba'), 'pip install numba-cuda'))
register_backend(Backend('pallas', ('gpu', 'tpu')))
register_backend(Backend('triton', ('gpu',), _needs('triton'), 'pip install triton'))
register_backend(Backend('warp', ('gpu',), _needs('warp'), 'pip install warp-lang'))
register_backend(Backend('cublas', ('gpu',)))
register_backend(Backend('cusparse', ('gpu',)))
