# SPDX-License-Identifier: Apache-2.0
"""Fingerprints: the identity of a kernel is everything that decides what its machine code does.

A function is its bytecode, constants, names, defaults and closure, and, recursively, the globals
it reads; a compiled dispatcher adds its compile options; an array is all of its bytes. What is
named by a library of a known version counts by that name. Whatever content cannot tell for sure
(a lock, a class of the user's, a method, code that was compiled when its globals were perhaps
others) has no fingerprint, and its owner falls back to a name that no other process has.

Not seen are functions that the user teaches numba under the name of a library's own
(``numba.extending.overload(numpy.sinc)``): a library's functions are taken for what they are.
"""

import dis
import enum
import hashlib
import itertools
import os
import secrets
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

WIDTH = 32  # hexadecimal digits kept: 128 bits, so names are never compared with their payload

_LIBRARIES = frozenset({'numpy', 'numba', 'llvmlite', 'jax', 'jaxlib'})
_STDLIB = (os.path.dirname(os.__file__), sysconfig.get_path('platstdlib'))
_PLAIN = (type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes, range)
_MISSING = object()

_counter = itertools.count()
_token = secrets.token_hex(8)
_sighted: 'weakref.WeakKeyDictionary[Any, str]' = weakref.WeakKeyDictionary()


class NoFingerprint(Exception):
    """The object holds something that content cannot tell apart."""


def digest(*parts: str | bytes) -> str:
    """Hash a sequence of parts, each with its length, to 128 bits in hexadecimal."""
    h = hashlib.sha256()
    for part in parts:
        data = part.encode('utf-8', 'surrogatepass') if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, 'little'))
        h.update(data)
    return h.hexdigest()[:WIDTH]


def fingerprint(value: Any) -> str | None:
    """Return the content hash of a function, dispatcher or value; None where there is none."""
    try:
        return _content(value)
    except (NoFingerprint, RecursionError):
        return None


def process_name(prefix: str) -> str:
    """Return a name that nothing else has, in this process or another, for what has no content."""
    return f'{prefix}_unique_{os.getpid()}_{_token}_{next(_counter)}'


def _content(value: Any) -> str:
    reader = _Reader(root=value)
    reader.read(value)
    return digest(*reader.parts)


class _Reader:
    """Notes down, in a fixed order, everything that a value is made of.

    What is met again is noted by its number: functions may call each other in circles. Values are
    held meanwhile, so that an id is not given out twice.
    """

    def __init__(self, *, root: Any = None, compiled: bool = False) -> None:
        self.parts: list[str | bytes] = []
        self._met: dict[int, tuple[int, Any]] = {}
        self._root = root  # the value that all this is about; None: already inside it
        self._compiled = compiled  # whether what is read now is read by numba, not by Python

    def note(self, *parts: str | bytes) -> None:
        self.parts += parts

    def read(self, value: Any) -> None:
        """Note a value of any kind, or raise `NoFingerprint`."""
        if type(value) in _PLAIN:
            self.note(f'{type(value).__qualname__} {value!r}')
            return
        if id(value) in self._met:
            self.note(f'again {self._met[id(value)][0]}')
            return
        if not isinstance(value, (tuple, types.CodeType)):  # equal constants may be one or two
            self._met[id(value)] = len(self._met), value
        if isinstance(getattr(value, 'py_func', None), types.FunctionType):
            self._read_dispatcher(value)
            return
        for kinds, method in _KINDS:
            if isinstance(value, kinds):
                method(self, value)
                return
        self._read_named(value)

    # ---- functions --------------------------------------------------------------------------

    def _read_function(self, function: types.FunctionType) -> None:
        if _library_name(function) is not None:
            self.note(f'named {_library_name(function)}')
        elif self._compiled:
            # numba knows a Python function only through an implementation given elsewhere
            raise NoFingerprint
        else:
            self._read_body(function)

    def _read_body(self, function: types.FunctionType) -> None:
        self.note('function')
        self._read_code(function.__code__)
        self.read(function.__defaults__)
        self.read(function.__kwdefaults__)
        names, attributes = _names(function.__code__)
        free = function.__code__.co_freevars
        for name, cell in zip(free, function.__closure__ or (), strict=True):
            self.note(f'cell {name}')
            self._read_variable(_cell_contents(cell), attributes)
        for name in names:
            if name in function.__globals__:
                self.note(f'global {name}')
                self._read_variable(function.__globals__[name], attributes)

    def _read_variable(self, value: Any, attributes: list[str]) -> None:
        """Note a variable; a module counts by those of its attributes that may be read."""
        if not isinstance(value, types.ModuleType):
            self.read(value)
            return
        self.note(f'module {value.__name__}')
        if _of_library(value.__name__):
            self.note(_version(value.__name__))
            return
        for name in attributes:
            attribute = getattr(value, name, _MISSING)
            if attribute is not _MISSING:
                self.note(f'attribute {name}')
                self._read_variable(attribute, [n for n in attributes if n != name])

    def _read_code(self, code: types.CodeType) -> None:
        self.note(code.co_code, code.co_exceptiontable)
        self.note(repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)))
        self.note(repr((code.co_flags, code.co_names)))
        self.note(repr((code.co_varnames, code.co_freevars, code.co_cellvars)))
        for constant in code.co_consts:
            self.read(constant)

    def _read_dispatcher(self, dispatcher: Any) -> None:
        """Note a compiled function: its options, and the Python function behind it."""
        options = getattr(dispatcher, 'targetoptions', None)
        if not isinstance(options, dict):
            raise NoFingerprint
        self.note(f'dispatcher {type(dispatcher).__module__}.{type(dispatcher).__qualname__}')
        if not _compiles(dispatcher):
            self.note(f'for {dispatcher.signatures}')
        self._read_mapping(options)
        self._read_mapping(getattr(dispatcher, 'locals', {}))
        pipeline = getattr(getattr(dispatcher, '_compiler', None), 'pipeline_class', None)
        self.read(pipeline)
        if self._root is not None and (dispatcher is not self._root or not _compiles(dispatcher)):
            _refuse_stale(dispatcher)
        outer, self._compiled = self._compiled, True
        self._read_body(dispatcher.py_func)
        self._compiled = outer

    # ---- values -----------------------------------------------------------------------------

    def _read_array(self, array: Any) -> None:
        if type(array) is not np.ndarray and not isinstance(array, np.generic):
            raise NoFingerprint
        values = np.asarray(array)
        if values.dtype.hasobject:
            raise NoFingerprint
        self.note(f'{type(array).__qualname__} {values.dtype!r} {values.shape}', values.tobytes())

    def _read_sequence(self, items: Any) -> None:
        fields = getattr(items, '_fields', None)
        if type(items) not in (list, tuple) and fields is None:
            raise NoFingerprint
        self.note(f'{type(items).__qualname__} {len(items)} {fields}')
        for item in items:
            self.read(item)

    def _read_set(self, items: Any) -> None:
        if type(items) not in (set, frozenset):
            raise NoFingerprint
        self.note(f'{type(items).__qualname__} {len(items)}', *sorted(map(_content, items)))

    def _read_mapping(self, items: Mapping[Any, Any]) -> None:
        if type(items) is not dict:
            raise NoFingerprint
        self.note(f'dict {len(items)}')
        for key, value in sorted(((_content(k), v) for k, v in items.items()), key=lambda e: e[0]):
            self.note(key)
            self.read(value)

    def _read_slice(self, value: slice) -> None:
        self.note('slice')
        self.read((value.start, value.stop, value.step))

    def _read_enum(self, member: enum.Enum) -> None:
        self.note(f'member {type(member).__module__}.{type(member).__qualname__}.{member.name}')
        self.read(member.value)

    def _read_class(self, cls: type) -> None:
        """Note a class: an enumeration, a named tuple, an exception, or one of a library."""
        if _library_name(cls) is not None:
            self.note(f'named {_library_name(cls)}')
        elif type(cls) is not type and not issubclass(cls, enum.Enum):
            raise NoFingerprint  # a class with a maker of its own, such as a jitclass
        elif issubclass(cls, enum.Enum):
            self.note(f'enum {cls.__module__}.{cls.__qualname__}')
            for member in cls:
                self._read_enum(member)
        elif issubclass(cls, tuple) and hasattr(cls, '_fields'):
            self.note(f'fields {cls.__qualname__} {cls._fields}')
            self._read_mapping(getattr(cls, '_field_defaults', {}))
        elif issubclass(cls, BaseException):
            self.note(f'exception {cls.__module__}.{cls.__qualname__}')
        else:
            raise NoFingerprint

    def _read_named(self, value: Any) -> None:
        """Note what is left: things of a library, and what describes itself in full."""
        defined = getattr(value, '_defn', None)  # the code generator of a numba intrinsic
        if _library_name(value) is not None:
            self.note(f'named {_library_name(value)}')
        elif _root(type(value).__module__) == 'numba' and isinstance(defined, types.FunctionType):
            outer, self._compiled = self._compiled, False
            self._read_body(defined)
            self._compiled = outer
        elif _describes_itself(value):
            self.note(f'{type(value).__module__} {value!r}')
        else:
            raise NoFingerprint


# What a type is read by; the first that fits.
_KINDS: tuple[tuple[Any, Callable[[_Reader, Any], None]], ...] = (
    (types.FunctionType, _Reader._read_function),
    (types.CodeType, _Reader._read_code),
    (enum.Enum, _Reader._read_enum),
    ((np.ndarray, np.generic), _Reader._read_array),
    ((list, tuple), _Reader._read_sequence),
    ((set, frozenset), _Reader._read_set),
    (dict, _Reader._read_mapping),
    (slice, _Reader._read_slice),
    (type, _Reader._read_class),
)


def _compiles(dispatcher: Any) -> bool:
    """Tell whether numba still compiles a function, which explicit signatures end."""
    return bool(getattr(dispatcher, '_can_compile', True))


def _refuse_stale(dispatcher: Any) -> None:
    """Refuse a function that numba compiled before its globals were looked at for the first time.

    numba keeps the values that globals had when it compiled; they may have changed since, and the
    machine code would be stored under the name of what it does not do. A function that reads
    nothing of its user's cannot be stale.
    """
    reader = _Reader(compiled=True)
    reader._read_body(dispatcher.py_func)
    now = digest(*reader.parts)
    if not getattr(dispatcher, 'overloads', None):
        _sighted[dispatcher] = now
    elif _sighted.get(dispatcher) != now and _reads_variables(dispatcher.py_func):
        raise NoFingerprint


def _reads_variables(function: types.FunctionType) -> bool:
    names, _ = _names(function.__code__)
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    values += map(_cell_contents, function.__closure__ or ())
    return any(
        not _of_library(value.__name__)
        if isinstance(value, types.ModuleType)
        else _library_name(value) is None
        for value in values
    )


def _names(code: types.CodeType) -> tuple[list[str], list[str]]:
    """List the globals that code reads, and the attributes, inner functions included."""
    found: tuple[set[str], set[str]] = set(), set()
    for inner in _all_codes(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ('LOAD_GLOBAL', 'LOAD_NAME'):
                found[0].add(instruction.argval)
            elif instruction.opname in ('LOAD_ATTR', 'LOAD_METHOD'):
                found[1].add(instruction.argval)
    return sorted(found[0]), sorted(found[1])


def _all_codes(code: types.CodeType) -> Iterable[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _all_codes(constant)


def _cell_contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled: a function that refers to itself
        return 'empty cell'


def _root(module: str) -> str:
    return module.partition('.')[0]


def _of_library(module: str) -> bool:
    """Tell whether a module is part of a library; a user's ``code.py`` is not the standard one."""
    root = _root(module)
    if root not in sys.stdlib_module_names:
        return root in _LIBRARIES
    file = getattr(sys.modules.get(root), '__file__', None)
    return file is None or (file.startswith(_STDLIB) and 'site-packages' not in file)


def _version(module: str) -> str:
    """Return the version of a library; the standard library has that of Python."""
    named = getattr(sys.modules.get(_root(module)), '__version__', None)
    return named if isinstance(named, str) else sys.version.partition(' ')[0]


def _library_name(value: Any) -> str | None:
    """Return the full name and version of what a library is known to hold under that name."""
    home = getattr(value, '__module__', None) or ('numpy' if isinstance(value, np.ufunc) else None)
    name = getattr(value, '__qualname__', None) or getattr(value, '__name__', None)
    if not (isinstance(home, str) and isinstance(name, str) and _of_library(home)):
        return None
    try:
        held = attrgetter(name)(sys.modules[home])
    except (AttributeError, KeyError):
        return None
    return f'{home}.{name} {_version(home)}' if held is value else None


def _describes_itself(value: Any) -> bool:
    """Tell whether the repr of a value is all there is to it: a dtype or a type of numba's."""
    if isinstance(value, np.dtype):
        return not value.hasobject
    home = type(value).__module__
    typed = home.startswith(('numba.core.types', 'llvmlite.ir.types'))
    return typed and ' at 0x' not in repr(value) and '#' not in repr(value)
