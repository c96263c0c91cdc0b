# SPDX-License-Identifier: Apache-2.0
"""The folder of compiled kernels: made on first use, private, published to atomically.

A file carries the hash of its own name and content, so one that was torn, cut, moved or replaced
is a miss and is built again; so is one that another user wrote. A folder that cannot be used
means a private temporary one, and one warning. One that can be read and not written is read first:
the warning comes when something has to be built.
"""

import atexit
import hashlib
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from brainevent._error import KernelError, OptionError, expect, explain, warn
from brainevent._version import __version__

ENVIRONMENT = 'BRAINEVENT_CACHE_DIR'
_SEAL = b'brainevent-cache-'  # of every version
_MAGIC = _SEAL + b'2\n'
_ENTRY = re.compile(r'(.+)-[0-9a-f]{16}')
UNFINISHED = '.build-'
ROOT = 0  # the user whose files all trust
_ABANDONED_AFTER = 24 * 3600.0  # seconds; nobody writes a file for a day

_lock = threading.Lock()
_chosen: Path | None = None
_ready: Path | None = None
_private: Path | None = None
_warned: set[Path] = set()


def default_dir() -> Path:
    """Return where kernels are cached when nobody says otherwise."""
    named = os.environ.get(ENVIRONMENT)
    if named and named.strip():
        return _absolute(named)
    base = Path(os.environ.get('XDG_CACHE_HOME', ''))
    if not base.is_absolute():
        base = Path(os.path.expanduser('~'), '.cache')
    return base / 'brainevent' / __version__


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root; of a home that is not known, one that cannot be used."""
    return Path(os.path.expanduser(path)).absolute()


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Keep compiled kernels in ``path`` from now on.

    Parameters
    ----------
    path : path-like or None
        The folder; it is made, with mode 0700, if it does not exist. None goes back to the
        default: the folder that ``BRAINEVENT_CACHE_DIR`` names, else one in the user's cache.

    Raises
    ------
    KernelError
        If the folder cannot be made or written.
    OptionError
        If ``path`` is empty, or no path (also a ``ValueError``).

    Examples
    --------
    >>> set_cache_dir(get_cache_dir())
    """
    global _chosen, _ready
    if path is None:
        with _lock:
            _chosen = _ready = None
        return
    expect(
        isinstance(path, str | os.PathLike)
        and isinstance(os.fspath(path), str)
        and str(path).strip(),
        OptionError,
        'set_cache_dir',
        'not a folder.',
        expected='a path, or None for the default folder',
        got=lambda: repr(path),
        remedy='the current folder is "."',
    )
    folder = _absolute(path)
    usable: Path | None = folder
    try:
        _claim(folder)
    except (OSError, ValueError) as cause:  # ValueError: a NUL in the name
        if isinstance(cause, ValueError) or not (_may_read(folder) and compiled(folder, None)):
            raise KernelError(
                explain(
                    'set_cache_dir',
                    'the folder cannot be used.',
                    expected='a folder of this user that can be written, or kernels to read',
                    got=f'{folder} ({cause})',
                    remedy='name another folder',
                )
            ) from cause
        usable = None  # what is not there is built elsewhere
    with _lock:
        _chosen, _ready = folder, usable


def get_cache_dir() -> str:
    """Return the folder in which compiled kernels are kept; it need not exist yet.

    Returns
    -------
    str

    Examples
    --------
    >>> isinstance(get_cache_dir(), str)
    True
    """
    return str(_ready or _chosen or default_dir())


def fetch(name: str) -> bytes | None:
    """Return what was published under a name, or None if it is missing, damaged or not ours."""
    for place in places():
        try:
            with open(place / name, 'rb') as file:
                if not is_own(os.fstat(file.fileno())):
                    continue
                data = file.read()
        except OSError:
            continue
        body = data[len(_MAGIC) + 32 :]
        if data == _sealed(name, body):
            return body
    return None


def places() -> list[Path]:
    """Return the folders in which compiled kernels are looked for, in this order."""
    named = _chosen or default_dir()
    found = [named] if _may_read(named) else []
    return list(dict.fromkeys([*found, *(place for place in (_ready, _private) if place)]))


def publish(name: str, body: bytes) -> None:
    """Store a file under a name in one step; other processes see all of it or nothing."""
    place = folder()
    if place is None:
        return
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=place)
        with os.fdopen(handle, 'wb') as file:
            file.write(_sealed(name, body))
        os.replace(temporary, place / name)
    except OSError as cause:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        warn_once(place, cause)


def clear_cache(name: str | None = None) -> int:
    """Remove compiled kernels from disk; those in use go on working.

    Parameters
    ----------
    name : str, optional
        Of the module whose libraries are removed, as given to `load_cpp_inline` and its like;
        everything that this package compiled if not given. Other files stay.

    Returns
    -------
    int
        How many kernels were removed.

    Examples
    --------
    >>> clear_cache('a_module_that_nobody_has')
    0
    """
    places = {Path(get_cache_dir()), *([_private] if _private else [])}
    return sum(_remove(path) for place in places for path in compiled(place, name))


def compiled(place: Path, name: str | None) -> list[Path]:
    """List what is ours in a folder: sealed files, and folders of libraries."""
    try:
        found = sorted(place.iterdir())
    except OSError:
        return []
    return [path for path in found if _is_compiled(path, name)]


def _is_compiled(path: Path, name: str | None) -> bool:
    entry = _ENTRY.fullmatch(path.name)
    try:
        if entry is not None and path.is_dir() and not path.is_symlink():
            ours = (path / '.lock').exists() or (path / f'{entry[1]}.json').exists()
            return ours and name in (None, entry[1])
        if name is not None or not path.is_file():
            return False
        with open(path, 'rb') as file:
            return file.read(len(_SEAL)) == _SEAL
    except OSError:
        return False


def _remove(path: Path) -> bool:
    """Remove a file or a folder; False if it cannot be."""
    try:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError:  # on Windows, one that is in use
        return False
    return True


def _sealed(name: str, body: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(name.encode() + b'\0' + body).digest() + body


def is_own(status: os.stat_result) -> bool:
    """Tell whether only this user, or root, can have written a file; without users, anybody."""
    return _is_trusted(status) and stat.S_ISREG(status.st_mode)


def _is_trusted(status: os.stat_result) -> bool:
    if not hasattr(os, 'getuid') or status.st_uid == os.getuid():
        return True
    return status.st_uid == ROOT and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _may_read(folder: Path) -> bool:
    """Tell whether a folder is there, can be read, and is this user's or root's."""
    try:
        trusted = folder.is_absolute() and _is_trusted(folder.stat())
        return trusted and os.access(folder, os.R_OK | os.X_OK)
    except (OSError, ValueError):
        return False


def _claim(folder: Path) -> None:
    """Make the folder, and make sure that it is this user's; tidy up after killed writers."""
    if not folder.is_absolute():
        raise FileNotFoundError(f'{folder} is nowhere: the home folder is not known')
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, 'getuid') and folder.stat().st_uid != os.getuid():
        raise PermissionError(f'{folder} belongs to another user')
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f'{folder} is not writable')
    for left in folder.glob(f'{UNFINISHED}*'):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_AFTER:
                _remove(left)


def trouble() -> str | None:
    """Return why nothing can be kept in the chosen folder, or None; nothing is made."""
    wanted = _chosen or default_dir()
    there = next((path for path in (wanted, *wanted.parents) if path.exists()), None)
    if there is None or not there.is_dir():
        return f'{wanted} cannot be made: {there} is not a folder'
    if not os.access(there, os.W_OK | os.X_OK) and not (there == wanted and _may_read(wanted)):
        return f'{there} is not writable'
    return None


def folder() -> Path | None:
    """Return the folder to write to; None where even a temporary one cannot be had.

    One that was removed meanwhile is made again.
    """
    global _ready
    wanted, trouble = None, None
    with _lock:
        if _ready is None or not _ready.is_dir():
            wanted = _chosen or default_dir()
            try:
                _claim(wanted)
                _ready = wanted
            except OSError as cause:
                trouble = cause
                _ready = _temporary()
        place = _ready
    if wanted is not None and trouble is not None:
        warn_once(wanted, trouble)
    return place


def private_folder() -> Path | None:
    """Return a temporary folder of this process, for what the chosen one has no room for."""
    global _private
    with _lock:
        if _private is None or not _private.is_dir():
            _private = _temporary()
        return _private


def _temporary() -> Path | None:
    """Make a private folder that goes away with the process, but not with a forked child."""
    try:
        folder = tempfile.mkdtemp(prefix='brainevent-')
    except OSError:
        return None
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)


def warn_once(folder: Path, cause: OSError) -> None:
    """Say that nothing can be kept in a folder, the first time that it fails."""
    if folder in _warned:
        return
    _warned.add(folder)
    warn(
        explain(
            'brainevent kernel cache',
            'compiled kernels cannot be kept on disk.',
            expected='a folder that this user owns and may write',
            got=f'{folder} ({cause})',
            remedy=f'set {ENVIRONMENT} to a writable folder; until then kernels are built anew',
        ),
        RuntimeWarning,
    )
