# SPDX-License-Identifier: Apache-2.0
"""What run-time compilation finds on this machine, in words."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator

import jax

from brainevent._error import BrainEventError
from brainevent._op import cache
from brainevent._op.kernix import nvcc, runtime, toolchain
from brainevent._version import __version__

VARIABLES = (
    'BRAINEVENT_CACHE_DIR', 'BRAINEVENT_NVCC_PATH', 'BRAINEVENT_NVCC_PREFER',
    'BRAINEVENT_COMPUTE_CAPABILITIES', 'BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER',
    'BRAINEVENT_COMPILE_TIMEOUT', 'BRAINEVENT_TOOLCHAIN_DEBUG', 'BRAINEVENT_CUDA_EMULATOR',
    'CUDA_HOME', 'CUDA_PATH', 'CXX', 'NVCC_CCBIN', 'CONDA_PREFIX',
)  # fmt: skip


def diagnostics() -> Iterator[tuple[str, str]]:
    """Yield what is asked and what the answer is."""
    yield 'brainevent', __version__
    yield 'jax', f'{jax.__version__}, platform {_said(jax.default_backend)}'
    yield 'system', f'{platform.platform()}, Python {platform.python_version()}'
    yield 'cache folder', cache.get_cache_dir()
    yield 'headers', _said(lambda: ', '.join(toolchain.include_dirs()))
    yield 'C++ compiler', _said(_host)
    yield 'CUDA compiler', _said(_nvcc)
    yield 'GPUs', ', '.join(map(str, runtime.cuda_devices())) or 'none that JAX shows'
    yield 'architectures', _said(lambda: ', '.join(nvcc.architectures()))
    for name in VARIABLES:
        if os.environ.get(name):
            yield name, os.environ[name]


def print_diagnostics() -> None:
    """Print them, one a line."""
    for question, answer in diagnostics():
        print(f'{question + ":":16}{answer}')


def _host() -> str:
    command = toolchain.find_host_compiler()
    return f'{" ".join(command)}: {toolchain.version(command).splitlines()[0]}'


def _nvcc() -> str:
    if os.environ.get(nvcc.EMULATOR):
        return f'emulated by {os.environ[nvcc.EMULATOR]}'
    found = nvcc.find_nvcc()
    release = [line for line in toolchain.version((found,)).splitlines() if 'release' in line]
    return f'{found}: {" ".join(release)}'


def _said(ask: Callable[[], str]) -> str:
    """Return the answer, or what stands in its way."""
    try:
        return ask()
    except (BrainEventError, RuntimeError) as error:
        return str(error).replace('\n', f'\n{"":16}')
