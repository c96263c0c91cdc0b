# SPDX-License-Identifier: Apache-2.0
"""Fingerprints: the identity of a kernel is everything that decides what its machine code does.

A function is its bytecode, constants, names, defaults and closure, and, recursively, the globals
it reads; a compiled dispatcher adds its compile options; an array is all of its bytes. What
cannot be told by content (an open file, a lock) has no fingerprint, and its owner falls back to a
name that is unique in this process only.
"""

import builtins
import enum
import hashlib
import itertools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

WIDTH = 32  # hexadecimal digits kept: 128 bits, so names are never compared with their payload

_counter = itertools.count()
_Seen = dict[int, tuple[int, Any]]


class NoFingerprint(Exception):
    """The object holds something that content cannot tell apart."""


def digest(*parts: str | bytes) -> str:
    """Hash a sequence of parts, each with its length, to 128 bits in hexadecimal."""
    h = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, 'little'))
        h.update(data)
    return h.hexdigest()[:WIDTH]


def fingerprint(value: Any) -> str | None:
    """Return the content hash of a function, dispatcher or value; None where there is none."""
    try:
        return digest(*_parts(value, {}))
    except NoFingerprint:
        return None


def process_name(prefix: str) -> str:
    """Return a name that is unique in this process, for what has no fingerprint."""
    return f'{prefix}_unique_{next(_counter)}'


def _parts(value: Any, seen: _Seen) -> Iterator[str | bytes]:
    if id(value) in seen and not isinstance(value, (int, str, float, bytes)):
        yield f'again {seen[id(value)][0]}'  # recursion: the first visit has told it all
        return
    seen[id(value)] = len(seen), value  # held, so that the id is not given out again
    dispatcher_function = getattr(value, 'py_func', None)
    if isinstance(value, types.FunctionType):
        yield from _function_parts(value, seen)
    elif isinstance(dispatcher_function, types.FunctionType):
        yield from ('dispatcher', type(value).__qualname__)
        yield repr(sorted((k, repr(v)) for k, v in _options(value).items()))
        yield from _function_parts(dispatcher_function, seen)
    elif isinstance(value, types.CodeType):
        yield from _code_parts(value, seen)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield from _array_parts(np.asarray(value))
    elif isinstance(value, (list, tuple, set, frozenset, dict)):
        yield from _container_parts(value, seen)
    else:
        yield from _plain_parts(value)


def _options(dispatcher: Any) -> dict[str, Any]:
    """Compile options that change machine code; those that only name the target are in them."""
    return {**getattr(dispatcher, 'targetoptions', {}), 'locals': getattr(dispatcher, 'locals', {})}


def _function_parts(function: types.FunctionType, seen: _Seen) -> Iterator[str | bytes]:
    yield 'function'
    yield from _code_parts(function.__code__, seen)
    yield from _parts(function.__defaults__, seen)
    yield from _parts(function.__kwdefaults__, seen)
    for cell in function.__closure__ or ():
        yield 'cell'
        yield from _parts(_cell_contents(cell), seen)
    names = sorted(_all_names(function.__code__))
    for name in names:
        if name in function.__globals__:
            yield f'global {name}'
            yield from _global_parts(function.__globals__[name], names, seen)
        elif hasattr(builtins, name):
            yield f'builtin {name}'


def _cell_contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled: a function that refers to itself
        return 'empty cell'


def _all_names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_all_names, inner))


def _global_parts(value: Any, names: list[str], seen: _Seen) -> Iterator[str | bytes]:
    """A module counts by its name and by those of its attributes that the function may read."""
    if not isinstance(value, types.ModuleType):
        yield from _parts(value, seen)
        return
    yield from ('module', value.__name__, str(getattr(value, '__version__', '')))
    for name in names:
        attribute = getattr(value, name, None)
        if isinstance(attribute, types.ModuleType):
            yield from _global_parts(attribute, [n for n in names if n != name], seen)
        elif attribute is not None:
            yield name
            yield from _parts(attribute, seen)


def _code_parts(code: types.CodeType, seen: _Seen) -> Iterator[str | bytes]:
    yield code.co_code
    yield repr((code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_names))
    yield repr((code.co_varnames, code.co_freevars, code.co_cellvars))
    for constant in code.co_consts:
        yield from _parts(constant, seen)


def _array_parts(array: np.ndarray[Any, Any]) -> Iterator[str | bytes]:
    if array.dtype.hasobject:
        raise NoFingerprint
    yield f'array {array.dtype.str} {array.dtype.descr} {array.shape}'
    yield np.ascontiguousarray(array).tobytes()


def _container_parts(value: Any, seen: _Seen) -> Iterator[str | bytes]:
    yield f'{type(value).__qualname__} {len(value)}'
    if isinstance(value, (set, frozenset)):
        yield repr(sorted(map(repr, value)))
        return
    for item in value.items() if isinstance(value, dict) else value:
        yield from _parts(item, seen)


def _plain_parts(value: Any) -> Iterator[str | bytes]:
    if value is None or value is Ellipsis:
        yield repr(value)
    elif isinstance(value, (bool, int, float, complex, str, bytes)):
        yield f'{type(value).__qualname__} {value!r}'
    elif isinstance(value, np.dtype):
        yield f'dtype {value.str}'
    elif isinstance(value, enum.Enum):
        yield f'{type(value).__module__}.{value}'
    elif isinstance(value, types.ModuleType):
        yield f'module {value.__name__}'
    elif isinstance(getattr(value, '__qualname__', None), str):
        # classes, builtin functions, ufuncs, numba intrinsics: named things of a versioned library
        home = getattr(value, '__module__', None)
        defined = getattr(value, '_defn', None)
        yield f'named {home}.{value.__qualname__}'
        if isinstance(defined, types.FunctionType):
            yield defined.__code__.co_code
    elif isinstance(value, np.ufunc):
        yield f'ufunc {value.__name__}'
    elif type(value).__module__.startswith('numba.'):
        yield f'numba {value!r}'
    else:
        raise NoFingerprint
