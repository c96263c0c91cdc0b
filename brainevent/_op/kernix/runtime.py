# SPDX-License-Identifier: Apache-2.0
"""The run time: libraries in this process, and the names under which XLA knows their functions.

XLA cannot point a name at other code: the CPU refuses, CUDA says yes and goes on with the old
code. So a name stands for one content as long as the process lives, and a second content under it
is refused here, on every platform. Libraries stay loaded for the same reason.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from brainevent._error import (
    KernelLoadError,
    KernelRegistrationError,
    OptionError,
    expect,
    explain,
    listed,
)

PREFIX = 'be_'
"""What the symbols of handlers begin with."""

_OF_CXX = re.compile(
    r'undefined symbol: (_ZTVN10__cxxabi|_ZN?K?S[abdiost]|_Z[dn][alw]|__(cxa|gxx)_)'
)
PLATFORMS = {'cpu': 'cpu', 'host': 'cpu', 'cuda': 'CUDA', 'gpu': 'CUDA'}


@dataclass(frozen=True)
class _Target:
    """What a name stands for."""

    platform: str
    content: str
    keeps: Any


_lock = threading.RLock()
_libraries: dict[str, tuple[ctypes.CDLL, Path]] = {}
_targets: dict[tuple[str, str], _Target] = {}


def loaded_path(key: str) -> Path | None:
    """Return where the library of a key lies, if this process has loaded it and it is there."""
    known = _libraries.get(key)
    return known[1] if known is not None and known[1].exists() else None


def open_library(path: Path, key: str) -> ctypes.CDLL:
    """Load a library, once for each key.

    Raises
    ------
    KernelLoadError
        In the words of the system's loader.
    """
    with _lock:
        if key not in _libraries:
            try:
                _expect_whole(path)
                _libraries[key] = (ctypes.CDLL(str(path)), path)
            except OSError as cause:
                raise KernelLoadError(
                    explain(
                        str(path),
                        'the library cannot be loaded [E-LOAD].',
                        expected='a shared library for this machine whose needs are met',
                        got=cause,
                        remedy=_remedy(str(cause)),
                    )
                ) from cause
        return _libraries[key][0]


def _remedy(said: str) -> str:
    if _OF_CXX.search(said):
        return 'CXX must name a C++ compiler (g++, not gcc), which links the C++ library'
    return 'see the link flags, and LD_LIBRARY_PATH for libraries it needs'


def _expect_whole(path: Path) -> None:
    """Refuse a torn ELF file: loading it would end the process with a bus error."""
    with open(path, 'rb') as file:
        head = file.read(64)
        size = os.fstat(file.fileno()).st_size
    if head[:4] == b'\x7fELF' and head[4] == 2 and len(head) == 64:
        order = '<' if head[5] == 1 else '>'
        (sections,) = struct.unpack_from(f'{order}Q', head, 40)  # the table at the file's end
        width, count = struct.unpack_from(f'{order}HH', head, 58)
        if sections + width * count > size:
            raise OSError(f'the file is cut short at {size} bytes')


def symbol(library: ctypes.CDLL, name: str, path: str) -> Any:
    """Return a function of a library.

    Raises
    ------
    KernelLoadError
        If the library does not have it.
    """
    try:
        return getattr(library, name)
    except AttributeError as cause:
        raise KernelLoadError(
            explain(
                str(path),
                f'the library has no symbol {name!r} [E-LOAD].',
                expected='a library that was built for this function',
                got='another one',
                remedy='load the source again with force_rebuild=True',
            )
        ) from cause


def ffi_platform(platform: str, where: str) -> str:
    """Return a platform as XLA's FFI spells it; other spellings are accepted and never found."""
    expect(
        isinstance(platform, str) and platform.lower() in PLATFORMS,
        OptionError,
        where,
        'unknown platform.',
        expected='one of ' + listed(('cpu', 'CUDA')),
        got=lambda: repr(platform),
    )
    return PLATFORMS[platform.lower()]


def cuda_devices() -> list[jax.Device]:
    """Return JAX's CUDA devices, none if there are none; starts JAX's backends."""
    try:
        found: list[jax.Device] = jax.local_devices(backend='cuda')
        return found
    except RuntimeError:
        return []


def register(targets: Mapping[str, tuple[Any, str]], platform: str, keeps: Any) -> None:
    """Register handlers with XLA: all of ``name -> (capsule, content)``, or none.

    Raises
    ------
    KernelRegistrationError
        If a name stands for other content already.
    """
    if platform == 'CUDA':
        cuda_devices()  # a handler that is registered before there is a backend may get lost
    with _lock:
        check_free({name: content for name, (_, content) in targets.items()}, platform)
        for name, (capsule, content) in targets.items():
            if (name, platform) in _targets:
                continue
            jax.ffi.register_ffi_target(name, capsule, platform=platform)
            _targets[name, platform] = _Target(platform, content, (capsule, keeps))


def is_registered(name: str, *platforms: str) -> bool:
    """Tell whether this process has told XLA what a name stands for, on any platform if none."""
    return any((name, platform) in _targets for platform in platforms or PLATFORMS.values())


def check_free(targets: Mapping[str, str], platform: str) -> None:
    """Refuse a name that stands for other content."""
    for name, content in targets.items():
        known = _targets.get((name, platform))
        expect(
            known is None or known.content == content,
            KernelRegistrationError,
            name,
            'the name stands for other code already, and XLA cannot be told otherwise.',
            expected='the source, flags and compiler as when the name was registered',
            got='changed content; replace=True and force_rebuild=True do not help',
            remedy='load it under another name= or target_prefix=; or with auto_register=False, '
            'and call module.function(...), which always runs the code of its module',
        )


def check_target_names(names: Iterable[str], where: str) -> None:
    """Refuse names that XLA cannot hold, that nobody can read, and those of the house."""
    for name in names:
        expect(
            isinstance(name, str)
            and name
            and name.isprintable()
            and ' ' not in name
            and not name.startswith(OWN),
            KernelRegistrationError,
            where,
            'not a name for a target of XLA.',
            expected=f'printable characters without spaces, not beginning with {OWN!r}',
            got=lambda name=name: repr(name),
            remedy='such as "my_module.my_function"',
        )


def list_registered_targets() -> list[str]:
    """Return the names under which functions of compiled modules are registered with XLA.

    Returns
    -------
    list of str
        For ``jax.ffi.ffi_call``, in alphabetical order.

    Examples
    --------
    >>> isinstance(list_registered_targets(), list)
    True
    """
    return sorted({name for name, _ in _targets if not name.startswith(OWN)})


OWN = 'brainevent_kernix.'
"""What the names begin with that modules give to their own functions."""
