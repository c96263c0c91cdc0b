# SPDX-License-Identifier: Apache-2.0
"""The CUDA compiler: which nvcc, for which GPUs, and an emulator in its place for tests."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from brainevent import config
from brainevent._error import (
    GpuArchDetectionError,
    HostCompilerIncompatibleError,
    HostCompilerNotFoundError,
    KernelToolchainError,
    NvccNotFoundError,
    OptionError,
    UnsupportedArchError,
    expect,
    explain,
)
from brainevent._op.kernix.runtime import cuda_devices
from brainevent._op.kernix.toolchain import (
    Options,
    Toolchain,
    debug,
    environment,
    find_host_compiler,
    run_compiler,
    version,
)

EMULATOR = 'BRAINEVENT_CUDA_EMULATOR'
_CAPABILITIES = 'BRAINEVENT_COMPUTE_CAPABILITIES'
_ENVIRONMENT = ('NVCC_PREPEND_FLAGS', 'NVCC_APPEND_FLAGS', 'NVCC_CCBIN')
_DEFAULT_PLACE = '/usr/local/cuda'  # where NVIDIA's installer puts it on Linux


def cuda_toolchain(capabilities: str | Iterable[str] | None = None) -> Toolchain:
    """Return what compiles CUDA sources: nvcc, or the emulator that the environment names.

    Parameters
    ----------
    capabilities : str or iterable of str, optional
        Architectures; see :func:`architectures`.

    Raises
    ------
    KernelToolchainError
        If something needed is missing; each has a type of its own.
    """
    folder = os.environ.get(EMULATOR)
    if folder:
        found: Toolchain = _emulator(Path(folder).expanduser()).toolchain()
        return found
    nvcc = find_nvcc()
    return Nvcc(architectures(capabilities), nvcc)


def missing_cuda() -> bool | str:
    """Return True if CUDA sources can be compiled here, else what is missing."""
    if os.environ.get(EMULATOR):
        return True
    try:
        find_nvcc()
        find_host_compiler()
    except (NvccNotFoundError, HostCompilerNotFoundError) as error:
        missing = 'nvcc' if isinstance(error, NvccNotFoundError) else 'a C++ compiler for nvcc'
        return f'{missing} was not found'
    return True


def _emulator(folder: Path) -> ModuleType:
    """Import ``toolchain.py`` of a folder under a name that is nobody else's."""
    file = folder / 'toolchain.py'
    expect(
        file.is_file(),
        KernelToolchainError,
        EMULATOR,
        'no emulator there.',
        expected='a folder with a file toolchain.py',
        got=folder,
        remedy=f'unset {EMULATOR} to compile with nvcc',
    )
    name = f'_brainevent_cuda_emulator_{abs(hash(file.resolve())):x}'
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


class Nvcc:
    """NVIDIA's compiler, for given architectures.

    Parameters
    ----------
    architectures : sequence of str
        Such as ``('sm_80', 'sm_90')``: machine code for each, and nothing else, because a driver
        older than the compiler refuses the portable form.
    nvcc : str, optional
        The program; looked for as :func:`find_nvcc` says if not given.
    """

    name = 'nvcc'
    platform = 'CUDA'

    def __init__(self, architectures: Sequence[str], nvcc: str | None = None) -> None:
        self.architectures = tuple(architectures)
        self.nvcc = nvcc or find_nvcc()
        self.host = _host_for_nvcc()

    def identity(self) -> tuple[str, ...]:
        """Return the versions of both compilers, the architectures, and the variables they read."""
        words = (self.name, version((self.nvcc,)), version((self.host,)), *self.architectures)
        return (*words, *environment(_ENVIRONMENT))

    def compile(self, source: str, folder: Path, output: Path, options: Options) -> None:
        """Compile ``source`` to the shared library ``output``; see :class:`Toolchain`."""
        file = folder / f'{options.source_name}.cu'
        file.write_text(source, encoding='utf-8')
        command = [
            *(self.nvcc, '-std=c++17', '-shared', '-lineinfo', f'-O{options.optimization}'),
            *('-ccbin', self.host, '-Xcompiler', '-fPIC,-fvisibility=hidden'),
            *(
                f'-gencode=arch={name.replace("sm_", "compute_")},code={name}'
                for name in self.architectures
            ),
            *(['--use_fast_math'] if options.fast_math else []),
            *(['-allow-unsupported-compiler'] if _allows_any_host() else []),
            *(f'-I{folder}' for folder in options.include_dirs),
            *options.flags,
            *(str(file), '-o', str(output)),
            *options.link_flags,
        ]
        run_compiler(command, folder, options, source=source, diagnose=self._diagnose)

    def _diagnose(self, said: str, command: str) -> Exception | None:
        """Know the two refusals that have nothing to do with the source."""
        words = re.search(r'[^\n]*unsupported (?:GNU|clang|Microsoft)[^\n]*', said, re.I)
        if words is not None:
            text = explain(
                'nvcc [E-HOST]',
                'the CUDA compiler does not accept the C++ compiler.',
                expected='a version that this nvcc supports',
                got=f'{version((self.host,)).splitlines()[0]}\n    nvcc:     {words[0].strip()}',
                remedy='set CXX to an older compiler, or BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER=1',
            )
            return HostCompilerIncompatibleError(text, said, command)
        words = re.search(
            r'[^\n]*(?:unsupported gpu architecture|gpu-architecture)[^\n]*', said, re.I
        )
        if words is not None:
            text = explain(
                'nvcc [E-ARCH]',
                'the CUDA compiler does not know the GPU architecture.',
                expected=f'an architecture in the list of `{self.nvcc} --list-gpu-code`',
                got=f'{", ".join(self.architectures)}\n    nvcc:     {words[0].strip()}',
                remedy='install a CUDA toolkit that fits the GPU, or correct '
                'compute_capability= / config.set_compute_capability',
            )
            return UnsupportedArchError(text, compiler_output=said, command=command)
        return None


def _allows_any_host() -> bool:
    return os.environ.get('BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER', '0') not in ('', '0')


def _host_for_nvcc() -> str:
    """Return the one program that nvcc shall call; of ``ccache g++`` that is g++."""
    named = os.environ.get('NVCC_CCBIN')
    if named:
        return named
    command = find_host_compiler()
    programs = [shutil.which(word) for word in command if not word.startswith('-')]
    return next(found for found in reversed(programs) if found)


# --- which nvcc -------------------------------------------------------------------------------


def find_nvcc() -> str:
    """Return the CUDA compiler: the one that is named, else pip's, PATH's, the usual place's.

    ``BRAINEVENT_NVCC_PATH``, ``CUDA_HOME`` and ``CUDA_PATH`` name one;
    `brainevent.config.prefer_system_nvcc` or ``BRAINEVENT_NVCC_PREFER=system`` puts PATH first.

    Raises
    ------
    NvccNotFoundError
        With the list of what was looked for.
    """
    tried = []
    for label, candidate in _nvcc_places():
        found = shutil.which(candidate) if candidate else None
        debug(f'nvcc from {label}: {found or "not found"}')
        if found:
            return found
        tried.append(f'{label}: {candidate or "not set"}')
    raise NvccNotFoundError(
        explain(
            'CUDA compiler [E-NVCC]',
            'nvcc was not found.',
            expected='a CUDA toolkit, of the system or of pip',
            got='looked for\n        ' + '\n        '.join(tried),
            remedy="pip install 'jax[cuda13]', or install the CUDA toolkit and set CUDA_HOME",
        )
    )


def _nvcc_places() -> Iterator[tuple[str, str | None]]:
    named = os.environ.get('BRAINEVENT_NVCC_PATH')
    if named:  # who names one wants that one
        path = Path(named).expanduser()
        yield 'BRAINEVENT_NVCC_PATH', str(path / 'nvcc' if path.is_dir() else path)
        return
    for variable in ('CUDA_HOME', 'CUDA_PATH'):
        home = os.environ.get(variable)
        yield variable, str(Path(home, 'bin', 'nvcc')) if home else None
    pip = ('pip', _pip_nvcc())
    yield from [('PATH', 'nvcc'), pip] if _prefers_system() else [pip, ('PATH', 'nvcc')]
    yield 'the usual place', f'{_DEFAULT_PLACE}/bin/nvcc'


def _prefers_system() -> bool:
    chosen = config.get_prefer_system_nvcc()
    if chosen is not None:
        return chosen
    value = os.environ.get('BRAINEVENT_NVCC_PREFER', '').strip().lower()
    expect(
        value in ('', 'system', 'path', 'pip', 'wheel'),
        OptionError,
        'BRAINEVENT_NVCC_PREFER',
        'not a place to look for nvcc first.',
        expected="'system' or 'pip'",
        got=repr(value),
    )
    return value in ('system', 'path')


def _pip_nvcc() -> str | None:
    """Find the nvcc that came with ``jax[cuda13]``, without importing anything."""
    spec = importlib.util.find_spec('nvidia')
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).glob('*/bin/nvcc*'), reverse=True):
            if file.stem == 'nvcc' and file.suffix in ('', '.exe'):
                return str(file)
    return None


# --- which GPUs -------------------------------------------------------------------------------


def architectures(asked: str | Iterable[str] | None = None) -> tuple[str, ...]:
    """Return what to compile for: what is asked or set, else what the GPUs here are.

    The order is the argument, `brainevent.config.set_compute_capability`,
    ``BRAINEVENT_COMPUTE_CAPABILITIES``, JAX's devices, ``nvidia-smi``.

    Raises
    ------
    UnsupportedArchError
        If something set is not an architecture.
    GpuArchDetectionError
        If nothing is set and no GPU is found.
    """
    said = asked or config.get_compute_capability() or os.environ.get(_CAPABILITIES)
    if said:
        return config.parse_capabilities(said)
    asks: tuple[Callable[[], list[str]], ...] = (_device_capabilities, _smi_capabilities)
    for ask in asks:
        found = config.parse_capabilities(ask())
        debug(f'architectures from {ask.__name__}: {found or "none"}')
        if found:
            return tuple(sorted(found))
    raise GpuArchDetectionError(
        explain(
            'compute capability [E-ARCH]',
            'no GPU to compile for was found.',
            expected='a GPU that JAX or nvidia-smi shows, or an architecture that is set',
            got='neither',
            remedy='pass compute_capability="9.0", call brainevent.config.'
            f'set_compute_capability("9.0"), or set {_CAPABILITIES}=9.0',
        )
    )


def _device_capabilities() -> list[str]:
    return [str(device.compute_capability) for device in cuda_devices()]


def _smi_capabilities() -> list[str]:
    command = ['nvidia-smi', '--query-gpu=compute_cap', '--format=csv,noheader']
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [
        line.strip() for line in done.stdout.splitlines() if re.fullmatch(r'\d+\.\d', line.strip())
    ]
