# SPDX-License-Identifier: Apache-2.0
"""Building: a library is compiled once, by one process, and found by all others.

An entry of the cache is a folder: the library, what went into it in words, and the source as it
was compiled, to which the compiler's messages point. Entries are published in one step. Whoever
wants one looks, takes the entry's lock, looks again, and builds. The system frees the lock of a
builder that dies, so a killed one blocks nobody.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainevent._error import CompilationError, KernelError, KernelToolchainError, expect, explain
from brainevent._op import cache
from brainevent._op.kernix.cpptext import Source
from brainevent._op.kernix.keys import Keys
from brainevent._op.kernix.toolchain import Options, Toolchain, so_suffix
from brainevent._op.notice import compilation_notice

try:
    import fcntl
except ImportError:  # no locks there: every process builds its own, and the last one stays
    fcntl = None  # type: ignore[assignment]

_PAUSE = 0.05  # seconds between two tries to take a lock
_NAME = re.compile(r'\w[\w.-]{0,99}')


@dataclass(frozen=True)
class Job:
    """What is to be compiled, and how.

    Attributes
    ----------
    name : str
    source : Source
    wrapper : str
        The handlers, to stand behind the source.
    suffix : str
        Of the source, ``'.cpp'`` or ``'.cu'``.
    keys : Keys
    toolchain : Toolchain
    options : Options
    build_directory : Path or None
        Where the compiler works, if the user wants to see that.
    force : bool
        Build even if the library is there.
    """

    name: str
    source: Source
    wrapper: str
    suffix: str
    keys: Keys
    toolchain: Toolchain
    options: Options
    build_directory: Path | None = None
    force: bool = False

    def entry(self, root: Path) -> Path:
        """Return the folder of this library under ``root``."""
        return root / f'{self.name}-{self.keys.key[:16]}'

    def kept(self) -> str:
        """Return the text of the file to which compiler messages point."""
        return f'{self.source.text}\n{self.wrapper}'

    def unit(self, kept: Path) -> str:
        """Return the translation unit: as kept, with lines that lead to the user's files."""
        lines, at = [], 1
        for part in self.source.parts:
            here = (1, part.label) if part.is_file else (at, str(kept))
            lines.append(f'#line {here[0]} {_quoted(here[1])}\n{part.text}\n')
            at += part.text.count('\n') + 1
        return f'{"".join(lines)}#line {at} {_quoted(str(kept))}\n{self.wrapper}'


def check_name(name: object, where: str) -> str:
    """Return the name of a module, or refuse what cannot be part of a file's name."""
    expect(
        isinstance(name, str) and _NAME.fullmatch(name) and len(name.encode()) <= 100,
        KernelError,
        where,
        'the name of the module cannot be used.',
        expected='letters, digits, _, - and ., at most 100 bytes',
        got=lambda: repr(name),
        remedy='pass another `name=`',
    )
    return str(name)


def build(job: Job) -> Path:
    """Return the library of a job, compiled if it is not in the cache.

    A cache that cannot be written, or is full, means a private temporary folder and one warning.

    Raises
    ------
    KernelCompilationError, KernelToolchainError
        As the toolchain does.
    KernelError
        If there is no place at all.
    """
    if not job.force:
        for place in cache.places():  # one that cannot be written may hold it
            found = find(job.entry(place), job.name, job.keys.key)
            if found is not None:
                return found
    root = cache.folder()
    if root is not None:
        try:
            return _build_in(root, job)
        except KernelError:
            raise
        except OSError as cause:
            cache.warn_once(root, cause)
    private = cache.private_folder()
    try:
        if private is not None:
            return _build_in(private, job)
        raise FileNotFoundError('no temporary folder can be made')
    except KernelError:
        raise
    except OSError as cause:
        raise KernelError(
            explain(
                job.name,
                'there is no place to build the kernel.',
                expected='a cache folder, or at least a temporary folder',
                got=f'{root} and {private}: {cause}',
                remedy=f'free some space, or set {cache.ENVIRONMENT} to a writable folder',
            )
        ) from cause


def find(entry: Path, name: str, key: str) -> Path | None:
    """Return the library if it is there, whole, this user's, and made of what is asked for."""
    library, told = entry / f'{name}{so_suffix()}', entry / f'{name}.json'
    if not (library.is_file() and told.is_file()):
        return None  # a pipe among them would be read for ever
    try:
        record = json.loads(told.read_bytes())
        with open(library, 'rb') as file:
            if not cache.is_own(os.fstat(file.fileno())):
                return None
            content = hashlib.sha256(file.read()).hexdigest()
        if (record['key'], record['library']) == (key, content):
            return library
    except (OSError, ValueError, LookupError, TypeError):
        pass  # missing, torn, or nothing of ours
    return None


def built_elsewhere(name: str, keys: Keys) -> Keys | None:
    """Return the keys of a cached library of the same inputs, built by any compiler, or None."""
    wanted = _without_compiler(json.loads(json.dumps(keys.inputs)))
    for place in cache.places():
        for told in sorted(place.glob(f'{name}-*/{name}.json')):
            try:
                record = json.loads(told.read_bytes())
                inputs = _without_compiler(record['inputs'])
                found = Keys(record['key'], record['functions'], record['inputs'])
            except (OSError, ValueError, LookupError, TypeError):
                continue  # torn, or not of this version
            if inputs == wanted and find(told.parent, name, found.key) is not None:
                return found
    return None


def _without_compiler(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return inputs without the version of the compiler; headers by content, not by place."""
    kind, _, _, *surroundings = inputs['toolchain']
    headers = sorted(inputs['headers'].values())
    return {**inputs, 'toolchain': [kind, *surroundings], 'headers': headers}


def _build_in(root: Path, job: Job) -> Path:
    entry = job.entry(root)
    found = None if job.force else find(entry, job.name, job.keys.key)
    if found is not None:
        return found
    root.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have cleared it by hand
    with _locked(entry, job.options.timeout):
        found = None if job.force else find(entry, job.name, job.keys.key)
        return found or _compile(root, entry, job)


def _compile(root: Path, entry: Path, job: Job) -> Path:
    """Compile in a folder aside and publish what comes out."""
    kept = entry / f'{job.name}{job.suffix}'
    library = entry / f'{job.name}{so_suffix()}'
    aside = Path(tempfile.mkdtemp(prefix=cache.UNFINISHED, dir=root))
    try:
        _write(aside / 'kept', job.kept().encode(), kept)
        work = job.build_directory or aside
        work.mkdir(parents=True, exist_ok=True)
        output = work / library.name
        try:
            with compilation_notice(job.name, root):
                job.toolchain.compile(job.unit(kept), work, output, job.options)
        except CompilationError as error:
            if os.strerror(errno.ENOSPC) not in error.compiler_output:
                raise
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(work)) from error
        expect(
            output.is_file(),
            KernelToolchainError,
            job.name,
            'the compiler made no library [E-TOOL].',
            expected=output.name,
            got='no such file, and no error',
            remedy='see the flags, and CXX or BRAINEVENT_NVCC_PATH',
        )
        content = output.read_bytes()
        record = {
            'key': job.keys.key,
            'library': hashlib.sha256(content).hexdigest(),
            'platform': job.toolchain.platform,
            'functions': job.keys.functions,
            'inputs': job.keys.inputs,
        }
        _write(aside / 'library', content, library)
        told = json.dumps(record, indent=1, ensure_ascii=False)
        _write(aside / 'record', told.encode(), entry / f'{job.name}.json')
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return library


def _write(aside: Path, content: bytes, final: Path) -> None:
    """Put a file into its place in one step; the place may have been cleared meanwhile."""
    aside.write_bytes(content)
    final.parent.mkdir(mode=0o700, exist_ok=True)
    os.replace(aside, final)


@contextlib.contextmanager
def _locked(entry: Path, patience: float) -> Iterator[None]:
    """Hold the lock of an entry; without it after ``patience`` seconds, or where there are none."""
    deadline = time.monotonic() + patience
    handle = None
    while fcntl is not None and time.monotonic() < deadline:
        handle = _try_lock(entry)
        if handle is not None:
            break
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)  # and with it the lock


def _try_lock(entry: Path) -> int | None:
    """Take the lock of an entry; None if another one holds it, or it was removed meanwhile."""
    entry.mkdir(mode=0o700, exist_ok=True)
    name = entry / '.lock'
    handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:  # some network file systems have no locks: publishing is one step anyway
        return handle
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(handle), os.stat(name)):
            return handle
    os.close(handle)  # the entry was cleared: take the lock of the new one
    return None


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
