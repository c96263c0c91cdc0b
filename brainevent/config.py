# SPDX-License-Identifier: Apache-2.0
"""Settings of the process, and `use_backend` for a scope: which kernels run, and how they are made.

Examples
--------
>>> from brainevent import config
>>> config.set_backend('cpu', 'jax_raw')
>>> config.get_backend('cpu')
'jax_raw'
>>> config.clear_backends()
>>> with config.use_backend('jax_raw'):
...     pass  # calls made or traced here prefer jax_raw
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

import jax

from brainevent._compat import backend_scope
from brainevent._error import (
    BackendError,
    DtypeError,
    OptionError,
    UnsupportedArchError,
    expect,
    explain,
    listed,
)
from brainevent._keywords import also_named

__all__ = [
    'clear_backends',
    'cpu_threads',
    'get_backend',
    'get_compute_capability',
    'get_lfsr_algorithm',
    'get_numba_num_threads',
    'get_numba_parallel',
    'get_prefer_system_nvcc',
    'prefer_system_nvcc',
    'set_backend',
    'set_compute_capability',
    'set_lfsr_algorithm',
    'set_numba_parallel',
    'use_backend',
]

PLATFORMS = ('cpu', 'gpu', 'tpu')
LFSR_ALGORITHMS = ('lfsr88', 'lfsr113', 'lfsr128')

Scope = tuple[tuple[str, str], ...]


class _Settings:
    """The settings and their lock. The operator layer, one floor up, fills in the two hooks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.backends: dict[str, str] = {}
        self.parallel: bool | None = None
        self.num_threads: int | None = None
        self.lfsr = 'lfsr88'
        self.system_nvcc: bool | None = None
        self.capabilities: tuple[str, ...] | None = None
        # Platforms by name of backend, and what must surround a change of the choice of kernels.
        self.known: Callable[[], dict[str, tuple[str, ...]]] = dict
        self.guard: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


_now = _Settings()


def connect(
    *,
    known: Callable[[], dict[str, tuple[str, ...]]],
    guard: Callable[[], contextlib.AbstractContextManager[Any]],
) -> None:
    """Let the operator layer name its backends and watch every change of choice."""
    _now.known, _now.guard = known, guard


def settings_lock() -> threading.RLock:
    """Return the lock that surrounds every change of settings and kernel tables."""
    return _now.lock


def check_platform(where: str, platform: Any) -> str:
    """Return ``platform``, or raise an error that lists the valid ones."""
    expect(
        platform in PLATFORMS,
        BackendError,
        where,
        f'unknown platform {platform!r}.',
        expected=lambda: 'one of ' + listed(PLATFORMS),
        got=repr(platform),
    )
    return platform  # type: ignore[no-any-return]


def check_backend(where: str, backend: Any) -> str:
    """Return ``backend``, or raise an error that lists the registered names."""
    known = _now.known()
    expect(
        isinstance(backend, str) and backend in known,
        BackendError,
        where,
        f'unknown backend {backend!r}.',
        expected=lambda: 'one of ' + listed(known),
        got=repr(backend),
        remedy='register a kernel under that name first, or choose one of these',
    )
    return backend  # type: ignore[no-any-return]


# --- choice of backend ----------------------------------------------------------------------


def set_backend(platform: str, backend: str | None) -> None:
    """Prefer one backend for every operator on a platform, in the whole process.

    Takes effect at once, in eager calls and in functions compiled before. An operator that does
    not have the backend passes it over with one warning.

    Parameters
    ----------
    platform : {'cpu', 'gpu', 'tpu'}
    backend : str or None
        Name of a registered backend; None removes the preference.

    Raises
    ------
    BackendError
        If the platform or the backend is not known (also a ``ValueError``).

    See Also
    --------
    use_backend : The same for a ``with`` block.

    Examples
    --------
    >>> from brainevent import config
    >>> config.set_backend('cpu', 'jax_raw')
    >>> config.set_backend('cpu', None)
    """
    check_platform('set_backend', platform)
    if backend is not None:
        check_backend('set_backend', backend)
    with _now.guard():
        chosen = dict(_now.backends)
        chosen.pop(platform, None)
        _now.backends = chosen if backend is None else {**chosen, platform: backend}


def get_backend(platform: str) -> str | None:
    """Return the backend preferred on a platform in this process, or None.

    Parameters
    ----------
    platform : {'cpu', 'gpu', 'tpu'}

    Returns
    -------
    str or None

    Raises
    ------
    BackendError
        If the platform is not known.

    Examples
    --------
    >>> from brainevent import config
    >>> config.get_backend('cpu') is None
    True
    """
    return _now.backends.get(check_platform('get_backend', platform))


def clear_backends() -> None:
    """Remove the preferences of every platform.

    Examples
    --------
    >>> from brainevent import config
    >>> config.clear_backends()
    """
    with _now.guard():
        _now.backends = {}


class use_backend(contextlib.ContextDecorator):  # noqa: N801
    """Prefer a backend inside a ``with`` block or a decorated function, in this thread only.

    The choice is part of `jax.jit`'s cache key: a function compiled outside is compiled once
    more inside, and neither run disturbs the other. What was bound inside keeps its choice when
    it is differentiated, batched or compiled later. Blocks nest; the inner one wins.

    Parameters
    ----------
    *choice : str or None
        ``backend``, or ``platform`` and ``backend``. The platform is one of 'cpu', 'gpu' and
        'tpu'; ``use_backend('numba')`` means every platform on which that backend runs. The
        backend is a registered one; None removes the preference of the surrounding block.

    Raises
    ------
    BackendError
        If the platform or the backend is not known (also a ``ValueError``).

    Examples
    --------
    >>> import brainevent
    >>> with brainevent.use_backend('jax_raw'):
    ...     pass
    >>> with brainevent.use_backend('cpu', 'jax_raw'):
    ...     pass
    """

    def __init__(self, *choice: str | None) -> None:
        expect(
            len(choice) in (1, 2),
            DtypeError,
            'use_backend',
            'wrong number of arguments.',
            expected='use_backend(backend) or use_backend(platform, backend)',
            got=f'{len(choice)} arguments',
        )
        backend = choice[-1]
        if backend is not None:
            check_backend('use_backend', backend)
        if len(choice) == 2:
            self._platforms: tuple[str, ...] = (check_platform('use_backend', choice[0]),)
        else:
            self._platforms = _now.known()[backend] if backend else PLATFORMS
        self._choice, self._backend = choice, backend
        self._open: list[Any] = []

    def _recreate_cm(self) -> use_backend:
        return use_backend(*self._choice)  # a decorated function may run in several threads

    def __enter__(self) -> None:
        scope = dict(backend_scope.value or ())
        for platform in self._platforms:
            scope.pop(platform, None)
            if self._backend is not None:
                scope[platform] = self._backend
        context = scoped(tuple(sorted(scope.items())) or None)
        context.__enter__()
        self._open.append(context)

    def __exit__(self, *exc: object) -> None:
        self._open.pop().__exit__(*exc)


def current_scope() -> Scope | None:
    """Return what `use_backend` chose in this thread, in a hashable form."""
    return backend_scope.value  # type: ignore[no-any-return]


def scoped(scope: Scope | None) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which ``scope`` is the choice of `use_backend`."""
    if scope == backend_scope.value:
        return contextlib.nullcontext()
    return backend_scope(scope)  # type: ignore[no-any-return]


# --- threads, random numbers ----------------------------------------------------------------


def set_numba_parallel(parallel: bool = True, num_threads: int | None = None) -> None:
    """Say how many threads one CPU kernel may use.

    Kernels of this package run on XLA's own thread pool, which several kernels share safely;
    this sets the largest share of one kernel. Until it is called a kernel may use every core.

    Parameters
    ----------
    parallel : bool
        False means one thread.
    num_threads : int, optional
        At most so many threads; every core if not given.

    Raises
    ------
    OptionError
        If ``num_threads`` is not a positive integer (also a ``ValueError``).

    Examples
    --------
    >>> from brainevent import config
    >>> config.set_numba_parallel(True, num_threads=2)
    >>> config.get_numba_parallel(), config.get_numba_num_threads()
    (True, 2)
    """
    if num_threads is not None and (
        isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1
    ):
        raise OptionError(
            explain(
                'set_numba_parallel',
                '`num_threads` is not a number of threads.',
                expected='a positive integer or None',
                got=repr(num_threads),
            )
        )
    with _now.lock:
        before = cpu_threads()
        _now.parallel, _now.num_threads = bool(parallel), num_threads
        changed = cpu_threads() != before
    if changed:
        jax.clear_caches()  # compiled kernels carry their share


def get_numba_parallel() -> bool:
    """Return whether parallel CPU kernels were asked for; False until then.

    Returns
    -------
    bool

    Examples
    --------
    >>> from brainevent import config
    >>> isinstance(config.get_numba_parallel(), bool)
    True
    """
    return bool(_now.parallel)


def get_numba_num_threads() -> int | None:
    """Return the number of threads set by `set_numba_parallel`, or None.

    Returns
    -------
    int or None

    Examples
    --------
    >>> from brainevent import config
    >>> config.set_numba_parallel(False)
    >>> config.get_numba_num_threads() is None
    True
    """
    return _now.num_threads


def cpu_threads() -> int:
    """Return the largest number of threads one CPU kernel may use.

    Returns
    -------
    int

    Examples
    --------
    >>> from brainevent import config
    >>> config.set_numba_parallel(False)
    >>> config.cpu_threads()
    1
    """
    if _now.parallel is False:
        return 1
    return _now.num_threads or os.cpu_count() or 1


@also_named(name='algorithm')
def set_lfsr_algorithm(algorithm: str) -> None:
    """Choose the generator behind `PallasLFSRRNG`.

    Parameters
    ----------
    algorithm : {'lfsr88', 'lfsr113', 'lfsr128'}

    Raises
    ------
    OptionError
        If the algorithm is not one of these (also a ``ValueError``).

    Examples
    --------
    >>> from brainevent import config
    >>> config.set_lfsr_algorithm('lfsr88')
    """
    expect(
        algorithm in LFSR_ALGORITHMS,
        OptionError,
        'set_lfsr_algorithm',
        f'unknown algorithm {algorithm!r}.',
        expected=lambda: 'one of ' + listed(LFSR_ALGORITHMS),
        got=repr(algorithm),
    )
    _now.lfsr = algorithm


def get_lfsr_algorithm() -> str:
    """Return the generator behind `PallasLFSRRNG`.

    Returns
    -------
    str

    Examples
    --------
    >>> from brainevent import config
    >>> config.get_lfsr_algorithm()
    'lfsr88'
    """
    return _now.lfsr


# --- CUDA toolchain -------------------------------------------------------------------------


def prefer_system_nvcc(enable: bool = True) -> None:
    """Look for nvcc on ``PATH`` before the one that pip installed, or the other way round.

    Parameters
    ----------
    enable : bool

    Examples
    --------
    >>> from brainevent import config
    >>> config.prefer_system_nvcc(True)
    >>> config.get_prefer_system_nvcc()
    True
    """
    _now.system_nvcc = bool(enable)


def get_prefer_system_nvcc() -> bool | None:
    """Return what `prefer_system_nvcc` was told, or None.

    Returns
    -------
    bool or None

    Examples
    --------
    >>> from brainevent import config
    >>> config.prefer_system_nvcc(False)
    >>> config.get_prefer_system_nvcc()
    False
    """
    return _now.system_nvcc


def set_compute_capability(value: str | Iterable[str] | None = None) -> None:
    """Fix the GPU architectures that CUDA kernels are compiled for.

    Parameters
    ----------
    value : str, iterable of str, or None
        Such as ``'8.6'``, ``'sm_90a'`` or ``'8.0,9.0'``; None or ``''`` asks the devices again.

    Raises
    ------
    UnsupportedArchError
        If an entry is not an architecture (also a ``ValueError``).

    Examples
    --------
    >>> from brainevent import config
    >>> config.set_compute_capability('8.6, sm_90a')
    >>> config.get_compute_capability()
    ['sm_86', 'sm_90a']
    >>> config.set_compute_capability(None)
    """
    _now.capabilities = parse_capabilities(value or '') or None


def get_compute_capability() -> list[str] | None:
    """Return the architectures fixed by `set_compute_capability`, normalised, or None.

    Returns
    -------
    list of str or None

    Examples
    --------
    >>> from brainevent import config
    >>> config.get_compute_capability() is None
    True
    """
    return None if _now.capabilities is None else list(_now.capabilities)


def parse_capabilities(value: str | float | Iterable[str]) -> tuple[str, ...]:
    """Normalise architectures: '8.6', '86', 'sm_86' and 'compute_86' all are 'sm_86'."""
    parts = value.split(',') if isinstance(value, str) else value
    names = [str(part).strip() for part in (parts if isinstance(parts, Iterable) else [parts])]
    found: dict[str, None] = {}
    for name in filter(None, names):
        match = re.fullmatch(r'(?:sm_|compute_)?(\d{1,2})\.?(\d)([af]?)', name)
        if match is None:
            raise UnsupportedArchError(
                explain(
                    'compute capability',
                    f'{name!r} is not a GPU architecture.',
                    expected="entries such as '8.6', '86', 'sm_86' or 'sm_90a'",
                    got=repr(value),
                )
            )
        found[f'sm_{match[1]}{match[2]}{match[3]}'] = None
    return tuple(found)
