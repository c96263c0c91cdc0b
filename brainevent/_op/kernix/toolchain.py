# SPDX-License-Identifier: Apache-2.0
"""Toolchains: what turns one C++ text into a library that this process can load."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import jax

from brainevent._error import (
    CompilationError,
    HeaderNotFoundError,
    HostCompilerNotFoundError,
    KernelToolchainError,
    OptionError,
    expect,
    explain,
)

TIMEOUT = 600.0  # seconds
HOUSE_INCLUDE = Path(__file__).parents[2] / 'include'

# What compilers and linkers read from the environment besides their arguments.
_ENVIRONMENT = (
    'CPATH', 'CPLUS_INCLUDE_PATH', 'LIBRARY_PATH', 'COMPILER_PATH', 'GCC_EXEC_PREFIX',
    'MACOSX_DEPLOYMENT_TARGET', 'SDKROOT',
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """How one translation unit is to be compiled.

    Attributes
    ----------
    source_name : str
        Stem of the files made, such as ``'my_kernels'``. The source itself carries ``#line``
        directives that lead to the user's files.
    include_dirs : tuple of str
        In order of search: the user's folders, the house's headers, XLA's headers.
    flags : tuple of str
        The user's flags for the compiler, after all others.
    link_flags : tuple of str
        The user's flags for the linker, at the end.
    optimization : int
        As in ``-O3``.
    fast_math : bool
        Let floating-point arithmetic be reordered and infinities be ignored.
    verbose : bool
        Print the command and what the compiler says.
    timeout : float
        Seconds after which the compiler is stopped.
    """

    source_name: str
    include_dirs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    optimization: int = 3
    fast_math: bool = False
    verbose: bool = False
    timeout: float = TIMEOUT


class Toolchain(Protocol):
    """A compiler with all its settings.

    Attributes
    ----------
    name : str
        As it stands in messages, such as ``'nvcc'``.
    platform : {'cpu', 'CUDA'}
        The platform of XLA's FFI on which the libraries run.
    """

    name: str
    platform: str

    def identity(self) -> tuple[str, ...]:
        """Return everything about the compiler that decides what the library holds."""

    def compile(self, source: str, folder: Path, output: Path, options: Options) -> None:
        """Compile ``source`` to the shared library ``output``; other files go into ``folder``.

        Raises
        ------
        KernelCompilationError, KernelToolchainError
            As :func:`run_compiler` does.
        """


Diagnosis = Callable[[str, str], Exception | None]
"""From the compiler's words and the command, an error more telling than that it failed."""


def run_compiler(
    command: Sequence[str],
    folder: Path,
    options: Options,
    *,
    source: str = '',
    diagnose: Diagnosis | None = None,
) -> str:
    """Run a compiler that leaves its scraps in ``folder``; return what it said, or raise it.

    Raises
    ------
    KernelToolchainError
        If the program cannot be started, or what ``diagnose`` found.
    CompilationError
        If it refuses the source, is killed, or takes longer than ``options.timeout``.
    """
    line = shlex.join(command)
    debug(f'run {line}')
    status, said = _run(command, folder, options.timeout)
    if options.verbose:
        print(f'{line}\n{said}'.rstrip(), file=sys.stderr)
    if status == 0:
        return said
    found = diagnose(said, line) if diagnose else None
    if found is not None:
        raise found
    what, remedy = _ending(status, options.timeout)
    text = explain(
        f'{options.source_name} [E-COMPILE]',
        what,
        expected='a translation unit that the compiler accepts',
        got=f'{_shortened(said)}\n    command:  {line}',
        remedy=remedy,
    )
    raise CompilationError(text, said, line, 'compile', source=source)


_TIMED_OUT = 'timed out'


def _run(command: Sequence[str], folder: Path, timeout: float) -> tuple[int | str, str]:
    """Return the exit status and the output; a compiler out of time ends with its children."""
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, 'LC_ALL': 'C', 'TMPDIR': str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as cause:  # ValueError: a NUL among the flags
        raise KernelToolchainError(
            explain(
                command[0],
                'the compiler cannot be started [E-TOOL].',
                expected='a program that can be run',
                got=cause,
                remedy='see brainevent.print_diagnostics()',
            )
        ) from cause
    try:
        said, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        return _TIMED_OUT, ''
    except BaseException:  # Ctrl-C must not leave a compiler behind
        _end(process)
        raise
    return process.returncode, said.decode(errors='replace')


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, 'killpg'):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()


def _ending(status: int | str, timeout: float) -> tuple[str, str]:
    """Say what happened to a compiler that did not succeed, and what to do."""
    if status == _TIMED_OUT:
        remedy = 'set BRAINEVENT_COMPILE_TIMEOUT to more seconds, or split the source'
        return f'the compiler was stopped after {timeout:g} s.', remedy
    if isinstance(status, int) and status < 0:
        remedy = 'see whether memory ran out; then call again'
        return f'the compiler was killed by signal {-status}.', remedy
    remedy = 'mend the source; the error has .dump(), which prints it with line numbers'
    return 'the compiler refused the source.', remedy


def _shortened(said: str, lines: int = 60) -> str:
    """Return the compiler's words, without the end of an avalanche."""
    kept = said.strip().splitlines()
    more = len(kept) - lines
    return '\n'.join([*kept[:lines], *([f'... and {more} more lines'] if more > 0 else [])])


class HostCxx:
    """The C++ compiler of this machine, for kernels that run on the CPU.

    Parameters
    ----------
    command : sequence of str, optional
        How it is called; looked for as :func:`find_host_compiler` says if not given.
    """

    name = 'c++'
    platform = 'cpu'

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self.command = tuple(command or find_host_compiler())

    def identity(self) -> tuple[str, ...]:
        """Return the compiler's version and target, and the variables it reads."""
        target = _answer((*self.command, '-dumpmachine'))
        return (self.name, version(self.command), target, *environment())

    def compile(self, source: str, folder: Path, output: Path, options: Options) -> None:
        """Compile ``source`` to the shared library ``output``; see :class:`Toolchain`."""
        file = folder / f'{options.source_name}.cpp'
        file.write_text(source, encoding='utf-8')
        command = [
            *self.command,
            *('-std=c++17', '-shared', '-fPIC', '-fvisibility=hidden'),
            f'-O{options.optimization}',
            *(['-ffast-math'] if options.fast_math else []),
            *(f'-I{folder}' for folder in options.include_dirs),
            *options.flags,
            *(str(file), '-o', str(output)),
            *options.link_flags,
        ]
        run_compiler(command, folder, options, source=source)


class NoCxx:
    """What takes the place of the C++ compiler where there is none: it knows libraries only.

    Parameters
    ----------
    cause : HostCompilerNotFoundError
        Raised when something has to be compiled.
    """

    name = HostCxx.name
    platform = HostCxx.platform

    def __init__(self, cause: HostCompilerNotFoundError) -> None:
        self.cause = cause

    def identity(self) -> tuple[str, ...]:
        """Return what `HostCxx.identity` does, without version and target."""
        return (self.name, '', '', *environment())

    def compile(self, source: str, folder: Path, output: Path, options: Options) -> None:
        """Raise the error that says where a compiler was looked for."""
        raise self.cause


def find_host_compiler() -> tuple[str, ...]:
    """Return the command of the C++ compiler: ``CXX``, conda's, then g++, c++, clang++ on PATH.

    Raises
    ------
    HostCompilerNotFoundError
        With the list of what was looked for.
    """
    named = os.environ.get('CXX', '').strip()
    wanted = [named] if named else [*_conda_compilers(), 'g++', 'c++', 'clang++']
    for candidate in wanted:
        first, *rest = _words(candidate)
        found = shutil.which(first)
        debug(f'host compiler {candidate}: {found or "not found"}')
        if found:
            return (found, *rest)
    raise HostCompilerNotFoundError(
        explain(
            'host compiler [E-CXX]',
            'no C++ compiler was found.',
            expected='a C++ compiler such as g++',
            got=f'none of {", ".join(wanted)} on PATH' if not named else f'CXX={named}, not found',
            remedy='install g++ (apt install g++, conda install cxx-compiler), or set CXX to one',
        )
    )


def _words(command: str) -> list[str]:
    """Split a command as a shell does; one with an open quote is a program that is not there."""
    try:
        return shlex.split(command) or ['']
    except ValueError:
        return [command]


def _conda_compilers() -> list[str]:
    prefix = os.environ.get('CONDA_PREFIX')
    if not prefix:
        return []
    return sorted(str(path) for path in Path(prefix, 'bin').glob('*-conda-*-c++'))


def include_dirs(user: Sequence[str | os.PathLike[str]] = ()) -> tuple[str, ...]:
    """Return the folders of headers in order of search: the user's, the house's, XLA's.

    Raises
    ------
    HeaderNotFoundError
        If a header that every kernel needs is not there.
    """
    xla = jax.ffi.include_dir()
    for folder, header in ((HOUSE_INCLUDE, 'brainevent/ffi.h'), (xla, 'xla/ffi/api/c_api.h')):
        expect(
            Path(folder, header).is_file(),
            HeaderNotFoundError,
            'include path [E-HDR]',
            'a header that every kernel needs was not found.',
            expected=header,
            got=f'no such file in {folder}',
            remedy='install brainevent and jaxlib again',
        )
    given = (str(Path(folder).expanduser().absolute()) for folder in user)
    return (*given, str(HOUSE_INCLUDE), str(xla))


def so_suffix() -> str:
    """Return what the names of shared libraries end in on this system."""
    return {'darwin': '.dylib', 'win32': '.dll'}.get(sys.platform, '.so')


def compile_timeout() -> float:
    """Return after how many seconds a compiler is stopped."""
    value = os.environ.get('BRAINEVENT_COMPILE_TIMEOUT', '').strip()
    if not value:
        return TIMEOUT
    ok = re.fullmatch(r'\d+(\.\d*)?', value) is not None and float(value) > 0
    expect(
        ok,
        OptionError,
        'BRAINEVENT_COMPILE_TIMEOUT',
        'not a time.',
        expected='a positive number of seconds',
        got=repr(value),
    )
    return float(value)


def version(command: Sequence[str]) -> str:
    """Return what ``command --version`` says; asked again only when the program has changed."""
    return _answer((*command, '--version'))


def environment(more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the variables that compilers read, as they are now, and the machine."""
    said = [f'{n}={os.environ[n]}' for n in (*_ENVIRONMENT, *more) if os.environ.get(n)]
    return (sys.platform, platform.machine(), *said)


def native(flags: Sequence[str]) -> tuple[str, ...]:
    """Return what this processor offers, if ``flags`` let it decide the code."""
    tuned = re.findall(r'-m(?:arch|cpu|tune)=native', ' '.join(flags))
    if not tuned:
        return ()
    return (_answer((*find_host_compiler(), *tuned, '-dM', '-E', '-x', 'c++', os.devnull)),)


def _answer(command: Sequence[str]) -> str:
    """Return what a short question to a program prints, or why it does not."""
    try:
        status = os.stat(command[0])
        return _asked(tuple(command), status.st_mtime_ns, status.st_size)
    except (OSError, subprocess.SubprocessError) as cause:
        return str(cause)  # not remembered: the next time it may answer


@functools.lru_cache(maxsize=256)
def _asked(command: tuple[str, ...], modified: int, size: int) -> str:
    done = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=30, check=True
    )
    return done.stdout.strip()


def debug(text: str) -> None:
    """Print what is looked for and run, if BRAINEVENT_TOOLCHAIN_DEBUG asks for it."""
    if os.environ.get('BRAINEVENT_TOOLCHAIN_DEBUG', '0') not in ('', '0'):
        print(f'brainevent toolchain: {text}', file=sys.stderr)
