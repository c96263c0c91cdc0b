# SPDX-License-Identifier: Apache-2.0
"""The emulator as a toolchain: CUDA C++ in, a library for JAX's CPU platform out.

``BRAINEVENT_CUDA_EMULATOR=<this folder>`` makes every ``brainevent.load_cuda_*`` use it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from brainevent._error import (
    CompilationError,
    HostCompilerNotFoundError,
    OptionError,
    expect,
    explain,
)
from brainevent._op.cache import get_cache_dir
from brainevent._op.kernix.toolchain import (
    Options,
    environment,
    find_host_compiler,
    run_compiler,
    version,
)

MODE = 'BRAINEVENT_CUDA_EMULATOR_MODE'
# The runtime reads the others at every launch; here a slip is found before anything runs.
_SETTINGS = {
    MODE: (r'check|plain', 'check or plain'),
    'BRAINEVENT_CUDA_EMULATOR_SCHEDULE': (
        r'forward|reverse|(random|preempt)(:[0-9]+)?',
        'forward, reverse, random, random:SEED, preempt or preempt:SEED',
    ),
    'BRAINEVENT_CUDA_EMULATOR_LIMIT': (
        r'0*[1-9][0-9]*',
        'a positive number of memory accesses in one launch',
    ),
}

_HERE = Path(__file__).resolve().parent
_COMMON = ('-std=c++17', '-fPIC', '-fno-strict-aliasing', '-ffp-contract=off')
# Optimised a little, so that a line of the kernel costs few accesses but is still itself.
_CHECKED = (
    *('-Og', '-g1', '-fsanitize=thread', '--param', 'tsan-instrument-func-entry-exit=0'),
    *('--param', 'tsan-distinguish-volatile=1'),
    '-fsanitize=signed-integer-overflow,shift,bounds,integer-divide-by-zero,float-cast-overflow',
)
_FLAGS = {'check': _CHECKED, 'plain': ('-O2', '-g1')}


def _beside(name: str) -> ModuleType:
    """Import a file of this folder, which is no package and on no path."""
    spec = importlib.util.spec_from_file_location(f'_cuda_emulator_{name}', _HERE / f'{name}.py')
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_convert = _beside('convert')


def toolchain() -> Emulator:
    """Return the emulator in the mode that the environment asks for.

    Raises
    ------
    OptionError
        If a variable of the emulator holds what it does not know.
    """
    for variable, (pattern, expected) in _SETTINGS.items():
        value = os.environ.get(variable, '')
        expect(
            not value or re.fullmatch(pattern, value),
            OptionError,
            variable,
            'no such setting of the emulator.',
            expected=expected,
            got=repr(value),
            remedy='mend the variable, or unset it',
        )
    return Emulator(os.environ.get(MODE) or 'check')


class Emulator:
    """g++ with CUDA's vocabulary and a runtime that runs blocks of threads.

    Parameters
    ----------
    mode : {'check', 'plain'}
        Whether memory accesses and arithmetic are checked.
    """

    name = 'emulator'
    platform = 'cpu'

    def __init__(self, mode: str = 'check') -> None:
        self.mode = mode
        self.command = _gcc()

    def identity(self) -> tuple[str, ...]:
        """Return the mode, g++'s version, and a hash of the emulator."""
        return (self.name, self.mode, version(self.command), _content(), *environment())

    def compile(self, source: str, folder: Path, output: Path, options: Options) -> None:
        """Compile ``source`` to the shared library ``output``; other files go into ``folder``."""
        unit = _convert.Unit(options.include_dirs, folder)
        try:
            text = unit.convert(source)
        except _convert.ConversionError as cause:
            raise _not_understood(cause, source, options) from cause
        file = folder / f'{options.source_name}.cpp'
        file.write_text(text, encoding='utf-8')
        object_file = file.with_suffix('.o')
        command = [
            *(*self.command, *_COMMON, *_FLAGS[self.mode], '-w', '-DBE_EMULATOR=1'),
            f'-I{_HERE / "include"}',
            *('-include', 'cuda_runtime.h'),  # as nvcc does
            *(f'-I{folder}' for folder in options.include_dirs),
            *_for_host(options.flags),
            *('-c', str(file), '-o', str(object_file)),
        ]
        run_compiler(command, folder, options, source=source)
        runtime = self._runtime(folder, options)
        link = [
            *(
                *self.command,
                '-shared',
                '-Wl,-Bsymbolic',
                '-Wl,--no-undefined',
                '-Wl,--wrap=__cxa_throw',
            ),
            *(str(object_file), str(runtime), '-o', str(output)),
            *('-lstdc++', '-ldl', '-lm'),  # the first if CXX says gcc
        ]
        run_compiler(link, folder, options, source=source)

    def _runtime(self, folder: Path, options: Options) -> Path:
        """Return the compiled runtime, which all libraries of both modes have in common."""
        key = hashlib.sha256('\n'.join((version(self.command), _content())).encode())
        kept = Path(get_cache_dir(), f'cuda-emulator-{key.hexdigest()[:16]}.o')
        if kept.is_file():
            return kept
        made = folder / 'runtime.o'
        source = _HERE / 'runtime' / 'all.cc'
        flags = ('-std=c++17', '-O2', '-g1', '-fPIC', '-fvisibility=hidden')
        run_compiler([*self.command, *flags, '-c', str(source), '-o', str(made)], folder, options)
        return _keep(made, kept)


def _keep(made: Path, kept: Path) -> Path:
    """Publish a file in one step, where that is possible."""
    try:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=kept.parent)
        os.close(handle)
        shutil.copyfile(made, temporary)
        os.replace(temporary, kept)
    except OSError:
        return made
    return kept


def _gcc() -> tuple[str, ...]:
    """Return the command of g++; clang's sanitizers call other hooks."""
    command = find_host_compiler()
    if 'Free Software Foundation' in version(command):
        return command
    found = shutil.which('g++')
    expect(
        found is not None,
        HostCompilerNotFoundError,
        'CUDA emulator [E-CXX]',
        'it needs g++.',
        expected='g++ on PATH',
        got=' '.join(command),
        remedy='install g++ (apt install g++)',
    )
    return (str(found),)


def _sources() -> Iterator[Path]:
    for pattern in ('runtime/*', 'include/**/*.h', 'convert.py', 'toolchain.py'):
        yield from sorted(_HERE.glob(pattern))


def _content() -> str:
    """Return a hash of everything that decides what the emulator makes of a kernel."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(f'{path.relative_to(_HERE)}\0'.encode() + path.read_bytes() + b'\0')
    return digest.hexdigest()


def _for_host(flags: tuple[str, ...]) -> list[str]:
    """Return those of nvcc's flags that mean something to g++: definitions and include folders."""
    kept: list[str] = []
    rest = iter(flags)
    for flag in rest:
        if flag in ('-D', '-U', '-I', '-include', '-isystem'):
            kept += [flag, next(rest, '')]
        elif re.match(r'-[DUI].|-std=c\+\+', flag):
            kept.append(flag)
    return kept


def _not_understood(cause: Exception, source: str, options: Options) -> CompilationError:
    text = explain(
        f'{options.source_name} [E-COMPILE]',
        'the CUDA emulator does not understand the source.',
        expected='launches k<<<grid, block, shared, stream>>>(...) and __shared__ declarations',
        got=cause,
        remedy='see docs/cuda-emulator.md for what is supported',
    )
    return CompilationError(text, str(cause), 'cuda emulator', 'convert', source=source)
