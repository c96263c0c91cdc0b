# SPDX-License-Identifier: Apache-2.0
"""Object code to a registered XLA target: what a process does with a kernel it has on disk.

Needs llvmlite, not numba: kernels of the house use the C library alone, so a warm process
computes without ever importing the compiler. Code of users names what it needs of numba's run
time, which is then started.
"""

import ctypes
import functools
import importlib
import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import jax

from brainevent._error import KernelLoadError, explain

C_LIBRARY = ('malloc', 'free', 'memset', 'memcpy', 'memmove', 'sched_yield')
"""All that the machine code of a house kernel may ask of its surroundings."""

_PYTHON = (
    'PyErr_Clear', 'PyErr_Fetch', 'PyErr_NormalizeException', 'PyErr_SetObject', 'PyErr_SetString',
    'PyErr_SetNone', 'PyErr_WriteUnraisable', 'PyObject_Repr', 'PyUnicode_AsUTF8',
    'PyUnicode_FromString', 'PyBytes_FromStringAndSize', 'Py_DecRef', 'Py_IncRef',
)  # fmt: skip

_THREADS = 'numba_parallel_for'  # the symbol by which code asks for numba's threads

_lock = threading.Lock()
_loaded: dict[str, tuple[Any, ...]] = {}  # target -> what must live as long as the process


@dataclass(frozen=True)
class MachineCode:
    """Object files that are loaded together, and what they need.

    Attributes
    ----------
    files : tuple of bytes
        In the object format of this machine.
    needs : tuple of str
        Symbols that the surroundings must offer.
    cells : dict of str to object
        Variables of the code that hold the address of a Python object; for None, that of one of
        numba's environments with nothing in it.
    portable : bool
        Whether another process can use it: it holds no address of this one.
    holds : tuple of object
        What must stay alive for the code to work.
    """

    files: tuple[bytes, ...]
    needs: tuple[str, ...] = ()
    cells: dict[str, Any] = field(default_factory=dict)
    portable: bool = True
    holds: tuple[Any, ...] = ()

    def pack(self) -> bytes:
        """Write the code as one string of bytes, each part behind its length."""
        names = ('\n'.join(part).encode() for part in (self.needs, self.cells))
        return b''.join(struct.pack('<Q', len(part)) + part for part in (*names, *self.files))

    @classmethod
    def unpack(cls, data: bytes) -> 'MachineCode':
        """Read what `pack` wrote; nothing in it is executed on the way."""
        needs, cells, *files = _parts(data)
        return cls(tuple(files), _lines(needs), dict.fromkeys(_lines(cells)))


def _parts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from('<Q', data, at)
        at += 8 + length
        if at > len(data):
            raise ValueError('cut short')
        yield data[at - length : at]


def _lines(part: bytes) -> tuple[str, ...]:
    return tuple(part.decode().split('\n')) if part else ()


@functools.cache
def _llvm() -> ModuleType:
    """Set up LLVM once: the machine's own instructions, and the symbols that code may use."""
    llvm = importlib.import_module('llvmlite.binding')
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    c_library = ctypes.CDLL(None) if os.name == 'posix' else ctypes.cdll.msvcrt
    for names, library in ((C_LIBRARY, c_library), (_PYTHON, ctypes.pythonapi)):
        for name in names:
            symbol = getattr(library, name, None)
            if symbol is not None:
                llvm.add_symbol(name, ctypes.cast(symbol, ctypes.c_void_p).value)
    return llvm


@functools.cache
def machine() -> str:
    """Name what machine code is made for: processor, its features, and LLVM."""
    llvm = _llvm()
    features = llvm.get_host_cpu_features().flatten()
    name = f'{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}'
    return f'{name} llvmlite {importlib.import_module("llvmlite").__version__}'


def is_loaded(target: str) -> bool:
    """Tell whether a target of that name is registered by this process."""
    return target in _loaded


def loaded_targets() -> tuple[str, ...]:
    """List the targets that this process has registered."""
    return tuple(_loaded)


def load(target: str, code: MachineCode) -> None:
    """Link object files in memory and register the symbol ``target`` with XLA, once.

    Raises
    ------
    KernelLoadError
        If the code is not for this machine, or needs what is not there.
    """
    llvm = _llvm()
    _check(target, code)
    with _lock:
        if target in _loaded:
            return
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(''), _target_machine())
        for data in code.files:
            engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        address = engine.get_function_address(target)
        if not address:
            raise KernelLoadError(_told(target, 'code that holds this symbol', 'other code'))
        values = {name: _runtime().blank() if v is None else v for name, v in code.cells.items()}
        for name, value in values.items():
            cell = ctypes.c_void_p.from_address(engine.get_global_value_address(name))
            cell.value = id(value)
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(address))
        jax.ffi.register_ffi_target(target, capsule, platform='cpu')
        _loaded[target] = (engine, values, code.holds)


def _target_machine() -> Any:
    return _llvm().Target.from_default_triple().create_target_machine()


@functools.cache
def _own_kind() -> bytes:
    """Return what this machine's object files begin with."""
    return _kind(_target_machine().emit_object(_llvm().parse_assembly('')))


def _kind(data: bytes) -> bytes:
    """Cut out of an object file its format, word size, byte order and processor."""
    if data.startswith(b'\x7fELF'):
        return data[:6] + data[18:20]
    return data[:8] if data[:4] in (b'\xcf\xfa\xed\xfe', b'\xce\xfa\xed\xfe') else data[:2]


def _check(target: str, code: MachineCode) -> None:
    """Refuse code that LLVM would answer by ending the process."""
    if not code.files or any(_kind(data) != _own_kind() for data in code.files):
        raise KernelLoadError(_told(target, 'object files of this machine', 'other bytes'))
    if not _missing(code.needs):
        return
    _runtime().start()
    if _THREADS in code.needs:
        _runtime().start_threads()
    if _missing(code.needs):
        _runtime().start_all()
    missing = _missing(code.needs)
    if missing:
        raise KernelLoadError(_told(target, 'code whose symbols are known', ', '.join(missing)))


def _runtime() -> ModuleType:
    return importlib.import_module('brainevent._op.numba_ffi.runtime')


def _missing(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if _llvm().address_of_symbol(name) is None]


def _told(target: str, expected: str, got: str) -> str:
    remedy = 'let it be built anew: remove its file from the cache folder'
    what = 'the machine code of the kernel cannot be loaded.'
    return explain(target, what, expected=expected, got=got, remedy=remedy)
