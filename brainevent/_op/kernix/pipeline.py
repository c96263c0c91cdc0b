# SPDX-License-Identifier: Apache-2.0
"""The pipeline behind the loaders: read the source, hash, build if it must be, load, register."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from brainevent._error import (
    HostCompilerNotFoundError,
    KernelError,
    KernelLoadError,
    OptionError,
    expect,
    explain,
)
from brainevent._op.kernix import runtime
from brainevent._op.kernix.build import Job, build, built_elsewhere, check_name
from brainevent._op.kernix.cpptext import Part, Source
from brainevent._op.kernix.keys import make_keys
from brainevent._op.kernix.loaders import PathLike, Request
from brainevent._op.kernix.module import CompiledModule, Origin
from brainevent._op.kernix.nvcc import cuda_toolchain
from brainevent._op.kernix.source import read_functions
from brainevent._op.kernix.toolchain import (
    HostCxx,
    NoCxx,
    Options,
    Toolchain,
    compile_timeout,
    include_dirs,
)
from brainevent._op.kernix.wrapper import wrapper_text

_HALVES = re.compile('[\ud800-\udfff]')  # of characters: only Python knows them


def load_cpp(request: Request) -> CompiledModule:
    """Compile C++ for the CPU."""
    toolchain: Toolchain
    try:
        toolchain = HostCxx()
    except HostCompilerNotFoundError as cause:
        toolchain = NoCxx(cause)  # a library in the cache serves without one
    return _load(request, toolchain, '.cpp', graph=True)


def load_cuda(
    request: Request, capability: str | Iterable[str] | None, graph: bool
) -> CompiledModule:
    """Compile CUDA C++ for the GPU, or for the CPU while it is emulated."""
    return _load(request, cuda_toolchain(capability), '.cu', graph)


def read_file(path: PathLike) -> list[Part]:
    """Read a source file."""
    file = Path(path).expanduser().absolute()
    try:
        return [Part(str(file), file.read_text(encoding='utf-8-sig'), is_file=True)]
    except (OSError, UnicodeDecodeError) as cause:
        raise KernelLoadError(
            explain(str(path), 'the source cannot be read.', expected='a text file', got=cause)
        ) from cause


def read_folder(directory: PathLike, patterns: Sequence[str] | None) -> list[Part]:
    """Read the source files of a folder, in alphabetical order."""
    folder = Path(directory).expanduser().absolute()
    wanted = _list(patterns) or ['*.cu']
    try:
        found = {path for pattern in wanted for path in folder.glob(pattern)}
    except (ValueError, NotImplementedError, TypeError) as cause:
        raise OptionError(
            explain(
                'load_cuda_dir',
                '`file_patterns` holds what is no pattern.',
                expected="patterns relative to the folder, such as '*.cu' or '**/*.cu'",
                got=f'{wanted!r} ({cause})',
            )
        ) from cause
    files = sorted(path for path in found if path.is_file())
    expect(
        files,
        KernelError,
        'load_cuda_dir',
        'no source file was found.',
        expected=f'files {", ".join(wanted)}',
        got=f'none in {folder}' if folder.is_dir() else f'no folder {folder}',
    )
    return [part for path in files for part in read_file(path)]


def _load(request: Request, toolchain: Toolchain, suffix: str, graph: bool) -> CompiledModule:
    """Read, hash, build if it must be, load, register."""
    name = check_name(request.name, 'name')
    where = f'module {name!r}'
    source = Source(_parts(request))
    specs = read_functions(source, request.functions, where)
    folders = list(dict.fromkeys(Path(p.label).parent for p in source.parts if p.is_file))
    options = _options(request, folders, where)
    keys = make_keys(source.text, folders, specs, graph, toolchain, options)
    if isinstance(toolchain, NoCxx):
        keys = built_elsewhere(name, keys) or keys
    prefix = name if request.target_prefix is None else request.target_prefix
    contents = {f'{prefix}.{spec.name}': keys.functions[spec.name] for spec in specs}
    if request.auto_register:
        runtime.check_target_names(contents, where)
        runtime.check_free(contents, toolchain.platform)  # before minutes of compilation
    directory = request.build_directory
    job = Job(
        name, source, wrapper_text(specs, graph), suffix, keys, toolchain, options,
        None if directory is None else Path(directory).expanduser().absolute(),
        request.force_rebuild,
    )  # fmt: skip
    origin = Origin(
        name, toolchain.platform, keys.key, keys.functions,
        {spec.name: spec for spec in specs}, suffix == '.cu' and toolchain.platform == 'cpu',
    )  # fmt: skip
    module = _module(job, origin)
    if request.auto_register:
        handlers = [module.get_handler(spec.name) for spec in specs]
        ready = zip(contents.items(), handlers, strict=True)
        targets = {target: (handler, content) for (target, content), handler in ready}
        runtime.register(targets, toolchain.platform, module)
    return module


def _module(job: Job, origin: Origin) -> CompiledModule:
    """Load the library; one that is whole but not for this machine is built anew."""
    names = list(origin.specs)
    path = runtime.loaded_path(job.keys.key)
    if path is not None and path.stem == job.name and not (job.force or job.build_directory):
        return CompiledModule(path, names, _origin=origin)
    try:
        return CompiledModule(build(job), names, _origin=origin)
    except KernelLoadError:
        if job.force:
            raise
        return CompiledModule(build(replace(job, force=True)), names, _origin=origin)


def _parts(request: Request) -> list[Part]:
    """Return the texts to be compiled."""
    several = isinstance(request.sources, Iterable) and not isinstance(request.sources, str | bytes)
    given: list[Any] = list(request.sources) if several else [request.sources]
    for part in given:
        expect(
            isinstance(part, Part) or (isinstance(part, str) and not _HALVES.search(part)),
            KernelError,
            f'module {request.name!r}',
            'the source is no text.',
            expected='a string that UTF-8 can write, or a list of them',
            got=lambda part=part: type(part).__name__,
            remedy='load_cpp_file and load_cuda_file read files',
        )
    label = f'<{request.name}>'
    return [p if isinstance(p, Part) else Part(label, p.removeprefix('\ufeff')) for p in given]


def _options(request: Request, folders: Sequence[Path], where: str) -> Options:
    expect(
        request.optimization in (0, 1, 2, 3),
        OptionError,
        where,
        'no such `optimization_level`.',
        expected='0, 1, 2 or 3',
        got=lambda: repr(request.optimization),
    )
    return Options(
        source_name=request.name,
        include_dirs=include_dirs([*_list(request.include_paths), *folders]),
        flags=tuple(map(str, _list(request.flags))),
        link_flags=tuple(map(str, _list(request.link_flags))),
        optimization=int(request.optimization),
        fast_math=bool(request.fast_math),
        verbose=bool(request.verbose),
        timeout=compile_timeout(),
    )


def _list(given: Sequence[Any] | None) -> Sequence[Any]:
    """Take one string for a list of one: nobody means its letters."""
    return [given] if isinstance(given, str | Path) else given or ()
