# SPDX-License-Identifier: Apache-2.0
"""Kernels of the house: named by content, built at most once, called through XLA's FFI.

A kernel is given as a :class:`Recipe`, which says where its factory lives. The factory's module,
and with it numba, is imported only when the machine code is not on disk yet.
"""

import functools
import importlib
import importlib.util
import pickle
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
from brainevent._op import cache
from brainevent._op.ffi_naming import digest
from brainevent._op.numba_ffi import load
from brainevent._typing import Array

SCHEMA = '1'
_HALVES = ('float16', 'bfloat16')
_lock = threading.Lock()


@dataclass(frozen=True)
class Recipe:
    """``factory(*args)`` in ``module`` returns the phases; ``args`` have a stable ``repr``."""

    module: str
    factory: str
    args: tuple[Any, ...] = ()

    def build(self) -> Any:
        """Import the factory, and numba with it, and make the phases."""
        return getattr(importlib.import_module(self.module), self.factory)(*self.args)


def call(
    recipe: Recipe,
    operands: Sequence[Array],
    outs: Sequence[jax.ShapeDtypeStruct],
    levels: int = 0,
    aliases: dict[int, int] | None = None,
) -> list[Array]:
    """Call a kernel of the house inside a traced program.

    Every operand and result has ``levels`` leading batch axes, of its own length or of length
    one. Inputs of 16 bits reach the kernel as their bits. ``aliases`` maps inputs to results that
    start as the input's content, in its own memory where nobody else needs that.
    """
    raw = [
        jax.lax.bitcast_convert_type(x, jnp.uint16) if x.dtype.name in _HALVES else x
        for x in operands
    ]
    ins = tuple((x.dtype.name, x.ndim - levels) for x in raw)
    results = tuple((np.dtype(o.dtype).name, len(o.shape) - levels) for o in outs)
    target = _target(recipe, ins, results, config.cpu_threads())
    values = jax.ffi.ffi_call(target, list(outs), input_output_aliases=aliases)(*raw)
    return list(values)


@functools.cache
def _target(recipe: Recipe, ins: Any, outs: Any, threads: int) -> str:
    """Return the registered target of a kernel for a signature, building it if it must be."""
    key = digest(
        SCHEMA, _sources(recipe.module), versions(), load.machine(), repr(recipe), repr(ins),
        repr(outs), str(threads),
    )  # fmt: skip
    target = f'brainevent.{recipe.factory}.{key}'
    build = functools.partial(_build, target, recipe, ins, outs, threads)
    ensure(target, build)
    return target


def ensure(target: str, build: Callable[[], tuple[bytes, ...]], keep: bool = True) -> None:
    """Register a target from disk, or build it, put it there and register it."""
    with _lock:
        if load.is_loaded(target):
            return
        stored = cache.fetch(f'{target}.bin') if keep else None
        files: tuple[bytes, ...] = pickle.loads(stored) if stored else build()
        load.load(target, files)
        if keep and not stored:
            cache.publish(f'{target}.bin', pickle.dumps(files))


def _build(target: str, recipe: Recipe, ins: Any, outs: Any, threads: int) -> tuple[bytes, ...]:
    from brainevent._op.numba_ffi import compile as compiler

    signature = compiler.Signature(ins, outs)
    return compiler.compile_phases(target, recipe.build(), signature, threads).files


@functools.cache
def versions() -> str:
    return f'numba {metadata.version("numba")} numpy {np.__version__}'


@functools.cache
def _sources(module: str) -> str:
    """Hash every file that the machine code is made of: the bridge and the kernels' folder."""
    origin = importlib.util.find_spec(module)
    folders = [Path(__file__).parent]
    if origin is not None and origin.origin:
        folders.append(Path(origin.origin).parent)
    files = sorted(file for folder in folders for file in folder.glob('*.py'))
    return digest(*(file.read_bytes() for file in files if not file.name.endswith('_test.py')))
