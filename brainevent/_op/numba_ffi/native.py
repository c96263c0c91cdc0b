# SPDX-License-Identifier: Apache-2.0
"""Kernels of the house: named by content, built at most once, called through XLA's FFI.

A kernel is given as a :class:`Recipe`, which says where its factory lives. The factory's module,
and with it numba, is imported only when the machine code is not on disk yet. The call carries
recipe and signature as an attribute, so that an exported program can be served in another process
and on another machine.

A target is named by what the kernel means; a file also by the machine and the compiler that its
machine code is of.
"""

import ast
import functools
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent import config
from brainevent._error import KernelLoadError, KernelRegistrationError, expect
from brainevent._op import cache
from brainevent._op.backends import CompilerMissing, import_trouble
from brainevent._op.ffi_naming import digest
from brainevent._op.notice import compilation_notice
from brainevent._op.numba_ffi import load
from brainevent._op.numba_ffi.load import MachineCode
from brainevent._typing import Array
from brainevent._version import __version__

SCHEMA = '2'
ORDER_MARK = 'brainevent-order '
_HALVES = ('float16', 'bfloat16')
_NO_CODE = ('NUMBA_CACHE_DIR', 'NUMBA_NUM_THREADS', 'NUMBA_THREADING_LAYER')

_lock = threading.Lock()
_turns: dict[str, threading.Lock] = {}


@dataclass(frozen=True)
class Recipe:
    """``factory(*args)`` in ``module`` returns the phases; ``args`` are Python literals."""

    module: str
    factory: str
    args: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        try:
            told = ast.literal_eval(repr(self.args)) == self.args
        except (ValueError, SyntaxError):
            told = False
        expect(
            told,
            KernelRegistrationError,
            self.factory,
            'the arguments of a kernel are not told by their text.',
            expected='numbers, strings, None, and tuples of them',
            got=repr(self.args),
        )

    def build(self) -> Any:
        """Import the factory, and numba with it, and make the phases."""
        return getattr(importlib.import_module(self.module), self.factory)(*self.args)


@dataclass(frozen=True)
class Order:
    """A kernel of the house for one signature: all that is needed to build it, in literals."""

    recipe: Recipe
    ins: tuple[tuple[str, int], ...]
    outs: tuple[tuple[str, int], ...]
    threads: int

    @property
    def target(self) -> str:
        """The name under which XLA knows the kernel."""
        key = digest(SCHEMA, _sources(self.recipe.module), self.text())
        return f'brainevent.{self.recipe.factory}.{key}'

    def text(self) -> str:
        """Write the order as a literal that `read` understands."""
        recipe = (self.recipe.module, self.recipe.factory, self.recipe.args)
        return repr((recipe, self.ins, self.outs, self.threads))

    @classmethod
    def read(cls, value: Any) -> 'Order':
        """Make an order of the value of its text."""
        recipe, ins, outs, threads = value
        return cls(Recipe(*recipe), ins, outs, threads)

    def fill(self) -> str:
        """Return the registered target, built if it must be."""
        target = self.target
        ensure(target, self._build, keep='_unique_' not in self.text())
        return target

    def _build(self) -> MachineCode:
        compiler = _compiler()
        signature = compiler.Signature(self.ins, self.outs)
        phases = self.recipe.build()
        code: MachineCode = compiler.compile_phases(self.target, phases, signature, self.threads)
        return code


def _compiler() -> Any:
    """Import what compiles, and numba with it."""
    trouble = import_trouble('numba')
    if trouble is not None:
        raise CompilerMissing(trouble)
    return importlib.import_module('brainevent._op.numba_ffi.compile')


def call(
    recipe: Recipe,
    operands: Sequence[Array],
    outs: Sequence[jax.ShapeDtypeStruct],
    levels: int = 0,
    aliases: dict[int, int] | None = None,
) -> list[Array]:
    """Call a kernel of the house inside a traced program.

    Every operand and result has ``levels`` leading batch axes, of its own length or of length
    one. Inputs of 16 bits reach the kernel as their bits. ``aliases`` maps inputs to outputs
    that start as their content, in place where nobody else holds the input.
    """
    raw = [
        jax.lax.bitcast_convert_type(x, jnp.uint16) if x.dtype.name in _HALVES else x
        for x in operands
    ]
    ins = tuple((x.dtype.name, x.ndim - levels) for x in raw)
    results = tuple((np.dtype(o.dtype).name, len(o.shape) - levels) for o in outs)
    order = Order(recipe, ins, results, config.cpu_threads())
    target = order.fill()
    invoke = jax.ffi.ffi_call(target, list(outs), input_output_aliases=aliases)
    values = invoke(*raw, order=ORDER_MARK + order.text())
    return list(values)


def ensure(target: str, build: Callable[[], MachineCode], keep: bool = True) -> None:
    """Register a target from disk, or build it, register it and put it there.

    One thread at a time works at a target; who wants another one does not wait.
    """
    if load.is_loaded(target):
        return
    with _turn(target):
        if load.is_loaded(target) or (keep and load_stored(target)):
            return
        with compilation_notice(
            target.rpartition('.')[0] or target, cache.folder() if keep else None
        ):
            code = build()
        load.load(target, code)
        if keep and code.portable:
            cache.publish(_file(target), code.pack())


def load_stored(target: str) -> bool:
    """Register a target from disk; False if nothing there can be used."""
    stored = cache.fetch(_file(target))
    if stored is None:
        return False
    try:
        load.load(target, MachineCode.unpack(stored))
    except (KernelLoadError, ValueError, RuntimeError):  # not of this machine: build it anew
        return load.is_loaded(target)
    return True


def _turn(target: str) -> threading.Lock:
    with _lock:
        return _turns.setdefault(target, threading.Lock())


def _file(target: str) -> str:
    return f'{target}.{environment()[:8]}.bin'


@functools.cache
def environment() -> str:
    """Hash what machine code depends on besides the kernel: machine, compiler, and its settings."""
    settings = {k: v for k, v in os.environ.items() if k.startswith('NUMBA_')}
    told = sorted(f'{k}={v}' for k, v in settings.items() if k not in _NO_CODE)
    versions = (metadata.version('numba'), np.__version__, sys.implementation.cache_tag)
    return digest(SCHEMA, __version__, _sources(__name__), load.machine(), repr(versions), *told)


@functools.cache
def _sources(module: str) -> str:
    """Hash every file that the machine code may be made of: the bridge and the kernels' folder."""
    origin = importlib.util.find_spec(module)
    folders = {Path(__file__).parent}
    if origin is not None and origin.origin:
        folders.add(Path(origin.origin).parent)
    files = sorted(file for folder in folders for file in folder.glob('*.py'))
    return digest(*(file.read_bytes() for file in files if _counts(file.name)))


def _counts(name: str) -> bool:
    """Tell whether a file may hold native code: not a test, nor kernels of another backend."""
    return not name.endswith('_test.py') and not name.startswith(('cuda_', 'jax_'))
