# SPDX-License-Identifier: Apache-2.0
"""The folder of compiled kernels: made on first use, private, published to atomically.

A file carries the hash of its own content, so one that was torn, cut or replaced is a miss and is
built again. A folder that cannot be used means a private temporary one, and one warning.
"""

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
import warnings
from pathlib import Path

from brainevent._error import KernelError, explain
from brainevent._version import __version__

ENVIRONMENT = 'BRAINEVENT_CACHE_DIR'
_MAGIC = b'brainevent-cache-1\n'

_lock = threading.Lock()
_chosen: Path | None = None
_ready: Path | None = None


def default_dir() -> Path:
    """Return where kernels are cached when nobody says otherwise."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named)
    base = os.environ.get('XDG_CACHE_HOME')
    home = Path(base) if base else Path(os.path.expanduser('~')) / '.cache'
    return home / 'brainevent' / __version__


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled kernels in ``path`` from now on.

    Parameters
    ----------
    path : path-like
        The folder; it is made, with mode 0700, when the first kernel is stored.

    Raises
    ------
    KernelError
        If the folder cannot be made or written.
    """
    global _chosen, _ready
    folder = Path(path)
    try:
        _claim(folder)
    except OSError as cause:
        raise KernelError(
            explain(
                'set_cache_dir',
                'the folder cannot be used',
                expected='a folder that this user owns and may write',
                got=f'{folder} ({cause})',
                remedy='name another folder',
            )
        ) from cause
    with _lock:
        _chosen = _ready = folder


def get_cache_dir() -> str:
    """Return the folder in which compiled kernels are kept; it need not exist yet."""
    return str(_ready or _chosen or default_dir())


def fetch(name: str) -> bytes | None:
    """Return what was published under a name, or None if it is missing or damaged."""
    try:
        data = (_folder() / name).read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    body = data[head:]
    if data[:head] != _MAGIC + hashlib.sha256(body).digest():
        return None
    return body


def publish(name: str, body: bytes) -> None:
    """Store a file under a name in one step; other processes see all of it or nothing."""
    folder = _folder()
    try:
        handle, temporary = tempfile.mkstemp(prefix='.build-', dir=folder)
        with os.fdopen(handle, 'wb') as file:
            file.write(_MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(temporary, folder / name)
    except OSError as cause:
        _warn(folder, cause)


def _claim(folder: Path) -> None:
    """Make the folder and make sure that nobody else can put code into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, 'getuid') and folder.stat().st_uid != os.getuid():
        raise PermissionError(f'{folder} belongs to another user')
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f'{folder} is not writable')


def _folder() -> Path:
    global _ready
    with _lock:
        if _ready is None:
            wanted = _chosen or default_dir()
            try:
                _claim(wanted)
                _ready = wanted
            except OSError as cause:
                _warn(wanted, cause)
                _ready = Path(tempfile.mkdtemp(prefix='brainevent-'))
                atexit.register(shutil.rmtree, _ready, ignore_errors=True)
        return _ready


def _warn(folder: Path, cause: OSError) -> None:
    warnings.warn(
        explain(
            'brainevent kernel cache',
            'compiled kernels cannot be kept on disk',
            expected='a folder that this user owns and may write',
            got=f'{folder} ({cause})',
            remedy=f'set {ENVIRONMENT} to a writable folder; until then kernels are built anew',
        ),
        RuntimeWarning,
        stacklevel=2,
    )
