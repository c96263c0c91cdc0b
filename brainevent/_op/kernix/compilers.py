# SPDX-License-Identifier: Apache-2.0
"""Compiler backends: one compilation without cache, wrapper or registration, for build scripts."""

from __future__ import annotations

import abc
import importlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from brainevent._error import UnsupportedOperationError, explain

if TYPE_CHECKING:
    from brainevent._op.kernix.toolchain import Toolchain

PathLike = str | os.PathLike[str]


class CompilerBackend(abc.ABC):
    """What turns a source text into a shared library.

    Examples
    --------
    >>> issubclass(CPPBackend, CompilerBackend)
    True
    """

    platform_name: ClassVar[str]

    @abc.abstractmethod
    def compile_source(
        self, source: str, output_path: PathLike, build_dir: PathLike, **options: Any
    ) -> str:
        """Compile ``source`` to ``output_path``.

        Parameters
        ----------
        source : str
        output_path : path-like
            The shared library.
        build_dir : path-like
            Where other files may be left.
        **options
            As the backend says.

        Returns
        -------
        str
            The path of the library.
        """


class CPPBackend(CompilerBackend):
    """C++ for the CPU.

    Parameters
    ----------
    toolchain : Toolchain, optional
        The compiler of this machine if not given.
    """

    platform_name = 'cpu'

    def __init__(self, toolchain: Toolchain | None = None) -> None:
        self.toolchain = toolchain

    def compile_source(
        self,
        source: str,
        output_path: PathLike,
        build_dir: PathLike,
        *,
        extra_cflags: Sequence[str] | None = None,
        **options: Any,
    ) -> str:
        """Compile ``source`` to ``output_path``; options are those of `load_cpp_inline`."""
        toolchain = self.toolchain or _module('toolchain').HostCxx()
        return _compile(toolchain, source, output_path, build_dir, extra_cflags, **options)


class CUDABackend(CompilerBackend):
    """CUDA C++ for the GPU.

    Parameters
    ----------
    toolchain : Toolchain, optional
        nvcc if not given, or the emulator that the environment names.
    """

    platform_name = 'CUDA'

    def __init__(self, toolchain: Toolchain | None = None) -> None:
        self.toolchain = toolchain

    def compile_source(
        self,
        source: str,
        output_path: PathLike,
        build_dir: PathLike,
        *,
        extra_cuda_cflags: Sequence[str] | None = None,
        gpu_arch: str | Iterable[str] | None = None,
        **options: Any,
    ) -> str:
        """Compile ``source`` to ``output_path``; options are those of `load_cuda_inline`.

        ``gpu_arch`` says what for, such as ``'sm_90'``; a toolchain that was given knows itself.
        """
        toolchain = self.toolchain or _module('nvcc').cuda_toolchain(gpu_arch)
        return _compile(toolchain, source, output_path, build_dir, extra_cuda_cflags, **options)


class HIPBackend(CompilerBackend):
    """AMD's GPUs: a place held free."""

    platform_name = 'ROCM'

    def compile_source(
        self, source: str, output_path: PathLike, build_dir: PathLike, **options: Any
    ) -> str:
        """Refuse: there is no such compiler here.

        Raises
        ------
        UnsupportedOperationError
            Always (also a ``NotImplementedError``).
        """
        raise UnsupportedOperationError(
            explain(
                'HIPBackend',
                'HIP is not supported.',
                expected='CUDABackend, CPPBackend',
                got='HIPBackend',
                remedy='on AMD GPUs use the backend "jax_raw"',
            )
        )


def _module(name: str) -> Any:
    return importlib.import_module(f'brainevent._op.kernix.{name}')


def _compile(
    toolchain: Toolchain,
    source: str,
    output_path: PathLike,
    build_dir: PathLike,
    flags: Sequence[str] | None,
    *,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[PathLike] | None = None,
    verbose: bool = False,
    optimization_level: int = 3,
    use_fast_math: bool = False,
) -> str:
    tools = _module('toolchain')
    output, folder = Path(output_path).absolute(), Path(build_dir).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    options = tools.Options(
        source_name=output.stem,
        include_dirs=tools.include_dirs(extra_include_paths or ()),
        flags=tuple(flags or ()),
        link_flags=tuple(extra_ldflags or ()),
        optimization=optimization_level,
        fast_math=use_fast_math,
        verbose=verbose,
        timeout=tools.compile_timeout(),
    )
    toolchain.compile(source, folder, output, options)
    return str(output)
