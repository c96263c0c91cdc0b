# SPDX-License-Identifier: Apache-2.0
"""The doors of run-time compilation: what users call. The machinery is imported on first use."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brainevent._op.kernix.module import CompiledModule

if TYPE_CHECKING:
    from brainevent._op.kernix.cpptext import Part

PathLike = str | os.PathLike[str]
Functions = Mapping[str, Sequence[str]] | Sequence[str] | None


@dataclass(frozen=True)
class Request:
    """What every loader is asked, whatever the language."""

    name: str
    sources: str | Sequence[str | Part]
    functions: Functions
    build_directory: PathLike | None
    force_rebuild: bool
    auto_register: bool
    target_prefix: str | None
    flags: Sequence[str] | None
    link_flags: Sequence[str] | None
    include_paths: Sequence[PathLike] | None
    optimization: int
    fast_math: bool
    verbose: bool


def load_cpp_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    functions: Functions = None,
    *,
    extra_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[PathLike] | None = None,
    build_directory: PathLike | None = None,
    verbose: bool = False,
    force_rebuild: bool = False,
    replace: bool = False,
    auto_register: bool = True,
    target_prefix: str | None = None,
    optimization_level: int = 3,
    use_fast_math: bool = False,
) -> CompiledModule:
    """Compile C++ source to functions that JAX calls on the CPU.

    A function takes arrays as ``const BE::Tensor`` (operands) and ``BE::Tensor`` (results), and
    numbers. A comment ``// @BE name`` above it offers it to JAX.

    Parameters
    ----------
    name : str
        Of the module; its functions are registered with XLA as ``name.function``.
    cpp_sources : str or list of str
        C++17. Several texts are joined.
    functions : dict, list or None
        Tokens by function name, or function names; None reads the ``// @BE`` comments.
    extra_cflags, extra_ldflags : list of str, optional
        Behind the flags of the house, such as ``['-march=native']``.
    extra_include_paths : list of path-like, optional
        Folders of headers. What they hold is part of the cache key.
    build_directory : path-like, optional
        Where the compiler works; a folder that is removed afterwards if not given.
    verbose : bool
        Print the command and what the compiler says.
    force_rebuild : bool
        Compile even if the library is in the cache.
    replace : bool
        Accepted; see Notes.
    auto_register : bool
        Register the functions with XLA by name. False leaves names alone: call
        ``module.function(...)``.
    target_prefix : str, optional
        In place of ``name`` in the registered names.
    optimization_level : int
        0 to 3.
    use_fast_math : bool
        Let floating-point arithmetic be reordered, and infinities and NaN be ignored.

    Returns
    -------
    CompiledModule

    Raises
    ------
    KernelError
        If no function is found, or one that cannot be called.
    HostCompilerNotFoundError
        If there is no C++ compiler.
    CompilationError
        If the compiler refuses the source; its messages point at the lines of the source.
    KernelRegistrationError
        If a registered name stands for other code.

    Notes
    -----
    XLA cannot point a registered name at other code. Loading changed source under the same name
    is refused, whatever ``replace`` and ``force_rebuild`` say. With ``auto_register=False`` it
    may be loaded as often as wanted: each module's own functions run its own code.

    Examples
    --------
    >>> source = '''
    ... #include "brainevent/common.h"
    ... // @BE scale
    ... void scale(const BE::Tensor x, BE::Tensor y, float factor) {
    ...     for (int64_t i = 0; i < x.numel(); ++i)
    ...         y.data_ptr<float>()[i] = factor * x.data_ptr<float>()[i];
    ... }
    ... '''
    >>> module = load_cpp_inline('doc_scale', source)  # doctest: +SKIP
    >>> x = jnp.arange(3.0)
    >>> module.function('scale')(x, outs=x, factor=2.0)  # doctest: +SKIP
    Array([0., 2., 4.], dtype=float32)
    """
    request = Request(
        name, cpp_sources, functions, build_directory, force_rebuild, auto_register,
        target_prefix, extra_cflags, extra_ldflags, extra_include_paths, optimization_level,
        use_fast_math, verbose,
    )  # fmt: skip
    return _loaded('load_cpp', request)


def load_cuda_inline(
    name: str,
    cuda_sources: str | Sequence[str],
    functions: Functions = None,
    *,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[PathLike] | None = None,
    build_directory: PathLike | None = None,
    verbose: bool = False,
    compute_capability: str | Iterable[str] | None = None,
    force_rebuild: bool = False,
    replace: bool = False,
    auto_register: bool = True,
    target_prefix: str | None = None,
    optimization_level: int = 3,
    use_fast_math: bool = False,
    allow_cuda_graph: bool = True,
) -> CompiledModule:
    """Compile CUDA C++ source to functions that JAX calls on the GPU.

    As `load_cpp_inline`, but the functions launch kernels, on the stream that they take as
    ``int64_t stream`` or ``cudaStream_t``. Where the environment variable
    ``BRAINEVENT_CUDA_EMULATOR`` names an emulator, that compiles the source, and the functions
    run on the CPU.

    Parameters
    ----------
    name, functions, extra_ldflags, extra_include_paths, build_directory, verbose
        As for `load_cpp_inline`.
    cuda_sources : str or list of str
        CUDA C++17.
    extra_cuda_cflags : list of str, optional
        For nvcc, behind the flags of the house.
    compute_capability : str or iterable of str, optional
        What to compile for, such as ``'9.0'``; else what
        `brainevent.config.set_compute_capability` or ``BRAINEVENT_COMPUTE_CAPABILITIES`` says;
        else the GPUs of this machine.
    force_rebuild, replace, auto_register, target_prefix, optimization_level, use_fast_math
        As for `load_cpp_inline`.
    allow_cuda_graph : bool
        Let XLA capture calls into CUDA graphs. False for a function that synchronises, allocates,
        or does something else by the values in its arrays.

    Returns
    -------
    CompiledModule

    Raises
    ------
    KernelError
        If no function is found, or one that cannot be called.
    NvccNotFoundError, HostCompilerNotFoundError
        If a compiler is missing.
    HostCompilerIncompatibleError
        If nvcc does not accept the C++ compiler.
    GpuArchDetectionError, UnsupportedArchError
        If there is no GPU and nothing is said, or nvcc does not know it.
    CompilationError
        If the compiler refuses the source.
    KernelRegistrationError
        If a registered name stands for other code.
    """
    request = Request(
        name, cuda_sources, functions, build_directory, force_rebuild, auto_register,
        target_prefix, extra_cuda_cflags, extra_ldflags, extra_include_paths, optimization_level,
        use_fast_math, verbose,
    )  # fmt: skip
    return _loaded('load_cuda', request, compute_capability, allow_cuda_graph)


def load_cpp_file(
    filepath: PathLike, functions: Functions = None, *, name: str | None = None, **kwargs: Any
) -> CompiledModule:
    """Compile a C++ file; see `load_cpp_inline`.

    Parameters
    ----------
    filepath : path-like
        Its folder is searched for headers, too.
    functions : dict, list or None
    name : str, optional
        Of the module; the stem of the file if not given.
    **kwargs
        As for `load_cpp_inline`.

    Returns
    -------
    CompiledModule

    Raises
    ------
    KernelLoadError
        If the file cannot be read (also an ``OSError``).
    KernelError
        As `load_cpp_inline`.
    """
    parts = _pipeline().read_file(filepath)
    return load_cpp_inline(name or _stem(filepath), parts, functions, **kwargs)


def load_cuda_file(
    filepath: PathLike, functions: Functions = None, *, name: str | None = None, **kwargs: Any
) -> CompiledModule:
    """Compile a CUDA C++ file; see `load_cuda_inline`.

    Parameters
    ----------
    filepath : path-like
        Its folder is searched for headers, too.
    functions : dict, list or None
    name : str, optional
        Of the module; the stem of the file if not given.
    **kwargs
        As for `load_cuda_inline`.

    Returns
    -------
    CompiledModule

    Raises
    ------
    KernelLoadError
        If the file cannot be read (also an ``OSError``).
    KernelError
        As `load_cuda_inline`.
    """
    parts = _pipeline().read_file(filepath)
    return load_cuda_inline(name or _stem(filepath), parts, functions, **kwargs)


def load_cuda_dir(
    directory: PathLike,
    functions: Functions = None,
    *,
    name: str | None = None,
    file_patterns: Sequence[str] | None = None,
    **kwargs: Any,
) -> CompiledModule:
    """Compile the CUDA C++ files of a folder as one; see `load_cuda_inline`.

    Parameters
    ----------
    directory : path-like
    functions : dict, list or None
    name : str, optional
        Of the module; the name of the folder if not given.
    file_patterns : list of str, optional
        As for `pathlib.Path.glob`, relative to the folder; ``['*.cu']`` if not given, which does
        not look into folders below, as ``'**/*.cu'`` does. A file that several patterns match is
        taken once. The files are joined in alphabetical order of their paths; each is searched
        for headers in its own folder.
    **kwargs
        As for `load_cuda_inline`.

    Returns
    -------
    CompiledModule

    Raises
    ------
    KernelError
        If no file is found, and as `load_cuda_inline`.
    OptionError
        If a pattern is none (also a ``ValueError``).
    """
    parts = _pipeline().read_folder(directory, file_patterns)
    return load_cuda_inline(name or _stem(directory), parts, functions, **kwargs)


def print_diagnostics() -> None:
    """Print what run-time compilation finds on this machine, and what it misses.

    Examples
    --------
    >>> print_diagnostics()  # doctest: +ELLIPSIS
    brainevent: ...
    """
    importlib.import_module('brainevent._op.kernix.diagnostics').print_diagnostics()


def _stem(path: PathLike) -> str:
    return os.path.splitext(os.path.basename(os.path.abspath(path)))[0]


def _pipeline() -> Any:
    return importlib.import_module('brainevent._op.kernix.pipeline')


def _loaded(how: str, *what: Any) -> CompiledModule:
    module: CompiledModule = getattr(_pipeline(), how)(*what)
    return module
