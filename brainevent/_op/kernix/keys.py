# SPDX-License-Identifier: Apache-2.0
"""Keys: the hash of everything that decides what a compiled library does.

The key is the library's name on disk and its identity in the process: the same key is the same
code, another key is other code. Paths of the user's files are no part of it; what is in them is.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from brainevent._op.ffi_naming import digest
from brainevent._op.kernix.cpptext import includes
from brainevent._op.kernix.source import FunctionSpec
from brainevent._op.kernix.toolchain import Options, Toolchain, native
from brainevent._version import __version__

SCHEMA = '3'
_MANY = 2000  # files in an include folder that are read when a macro names the header
_SUFFIXES = ('.h', '.hh', '.hpp', '.cuh', '.inc', '.inl')


@dataclass(frozen=True)
class Keys:
    """What a library is known by.

    Attributes
    ----------
    key : str
        Of the library.
    functions : dict of str to str
        Of each function: it does not change when other functions of the source are left out.
    inputs : dict
        What went into the keys, in words.
    """

    key: str
    functions: dict[str, str]
    inputs: dict[str, object]


def make_keys(
    text: str,
    folders: Sequence[Path],
    specs: Sequence[FunctionSpec],
    graph: bool,
    toolchain: Toolchain,
    options: Options,
) -> Keys:
    """Hash what a library is made of.

    Parameters
    ----------
    text : str
        The user's source.
    folders : sequence of Path
        Where the files lie that are parts of it: ``#include "x.h"`` looks there first.
    specs : sequence of FunctionSpec
    graph : bool
        As for :func:`~brainevent._op.kernix.wrapper.wrapper_text`.
    toolchain, options
    """
    headers = _headers(text, folders, options)
    common = {
        'schema': SCHEMA,
        'brainevent': __version__,
        'jaxlib': _jaxlib(),
        'source': digest(text),
        'toolchain': list(toolchain.identity()),
        'platform': toolchain.platform,
        'flags': list(options.flags),
        'link flags': list(options.link_flags),
        'optimization': options.optimization,
        'fast math': options.fast_math,
        'cuda graph': graph,
        'native': [digest(words) for words in native(options.flags)],
        'headers': headers,
    }
    # Where headers lie does not matter, as long as the same names lead to the same texts.
    told = {**common, 'headers': sorted(headers.values())}
    base = digest(repr(sorted(told.items())))
    functions = {spec.name: digest(base, str(spec)) for spec in specs}
    key = digest(base, *map(str, specs))
    return Keys(key, functions, {**common, 'functions': [str(spec) for spec in specs]})


def _headers(text: str, folders: Sequence[Path], options: Options) -> dict[str, tuple[str, str]]:
    """Return, by path, the name and the hash of every header that the source can reach.

    Headers outside the given folders belong to the compiler or the system.
    """
    mine = [*_named_by_flags(options.flags), *map(Path, options.include_dirs), *_search_path()]
    found: dict[str, tuple[str, str]] = {}
    waiting: list[tuple[str, Path | None]] = [(text, folder) for folder in (*folders, None)]
    waiting += [(f'#include "{name}"\n', None) for name in _forced(options.flags)]
    waiting.append(('#include "brainevent/ffi.h"\n', None))
    while waiting:
        said, beside = waiting.pop()
        for quote, name in includes(said):
            for label, path in _meant(quote, name, beside, mine):
                content = _read(path) if str(path) not in found else None
                if content is not None:
                    found[str(path)] = (label, digest(content))
                    waiting.append((content.decode(errors='replace'), path.parent))
    return found


def _meant(
    quote: str, name: str, beside: Path | None, dirs: Sequence[Path]
) -> Iterator[tuple[str, Path]]:
    """Yield the file that an ``#include`` means; if a macro says it, all that it can mean."""
    if not name:
        for folder in dirs:
            for path in _some_headers(folder):
                yield str(path.relative_to(folder)), path
        return
    for folder in [*([beside] if quote == '"' and beside else []), *dirs]:
        path = Path(os.path.normpath(folder / name))
        if os.path.isfile(path):  # False for a name that no system can have
            yield name, path
            return


def _some_headers(folder: Path) -> Iterator[Path]:
    files = (path for path in sorted(folder.rglob('*')) if path.suffix in _SUFFIXES)
    return (path for _, path in zip(range(_MANY), files, strict=False))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None  # the compiler will say what is wrong with it


def _named_by_flags(flags: Sequence[str]) -> list[Path]:
    """Return the include folders among the user's flags."""
    return [Path(folder) for folder in _values(flags, '-I', '-isystem', '-iquote')]


def _forced(flags: Sequence[str]) -> list[str]:
    """Return the files that flags put before the source."""
    return [str(Path(name).absolute()) for name in _values(flags, '-include')]


def _values(flags: Sequence[str], *options: str) -> Iterator[str]:
    words = iter(flags)
    for word in words:
        for option in options:
            if word == option:
                yield next(words, '')
            elif word.startswith(option):
                yield word[len(option) :]


def _search_path() -> list[Path]:
    said = (os.environ.get(name, '') for name in ('CPATH', 'CPLUS_INCLUDE_PATH'))
    return [Path(folder) for value in said for folder in value.split(os.pathsep) if folder]


@functools.cache
def _jaxlib() -> str:
    return metadata.version('jaxlib')
