# SPDX-License-Identifier: Apache-2.0
"""Object code to a registered XLA target: what a process does with a kernel it has on disk.

Needs llvmlite, not numba: kernels of the house use the C library alone, so a warm process
computes without ever importing the compiler.
"""

import ctypes
import functools
import threading
from types import ModuleType
from typing import Any

import jax

C_LIBRARY = ('malloc', 'free', 'memset', 'memcpy', 'memmove', 'sched_yield')
"""All that the machine code of a house kernel may ask of its surroundings."""

_PYTHON = (
    'PyErr_Clear', 'PyErr_Fetch', 'PyErr_NormalizeException', 'PyErr_SetObject', 'PyErr_SetString',
    'PyErr_SetNone', 'PyErr_WriteUnraisable', 'PyObject_Repr', 'PyUnicode_AsUTF8',
    'PyUnicode_FromString', 'PyBytes_FromStringAndSize', 'Py_DecRef', 'Py_IncRef',
)  # fmt: skip

_lock = threading.Lock()
_engines: dict[str, Any] = {}  # target -> engine; machine code lives as long as the process


@functools.cache
def _llvm() -> ModuleType:
    """Set up LLVM once: the machine's own instructions, and the symbols that code may use."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    c_library = ctypes.CDLL(None) if hasattr(ctypes, 'pythonapi') else None
    for names, library in ((C_LIBRARY, c_library), (_PYTHON, ctypes.pythonapi)):
        for name in names:
            symbol = getattr(library, name, None)
            if symbol is not None:
                llvm.add_symbol(name, ctypes.cast(symbol, ctypes.c_void_p).value)
    return llvm


@functools.cache
def machine() -> str:
    """Name what machine code is made for: processor, its features, and LLVM."""
    import llvmlite

    llvm = _llvm()
    features = llvm.get_host_cpu_features().flatten()
    triple = llvm.get_process_triple()
    return f'{triple} {llvm.get_host_cpu_name()} {features} llvmlite {llvmlite.__version__}'


def is_loaded(target: str) -> bool:
    """Tell whether a target of that name is registered by this process."""
    return target in _engines


def load(target: str, files: tuple[bytes, ...]) -> None:
    """Link object files in memory and register the symbol ``target`` with XLA, once."""
    llvm = _llvm()
    with _lock:
        if target in _engines:
            return
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(''), machine)
        for data in files:
            engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        address = engine.get_function_address(target)
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype = ctypes.py_object
        capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        jax.ffi.register_ffi_target(target, capsule(address, None, None), platform='cpu')
        _engines[target] = engine
