# SPDX-License-Identifier: Apache-2.0
"""Programs of ``jax.export``: the kernels they call are found again in another process.

A program knows a kernel by its target alone, and XLA compiles it only when that target is
registered. XLA's FFI asks nobody about a name it does not know (the stages of a handler are
reached by name, too), and names that derive from content cannot all be registered at import. So
the one sound moment is just before the program is compiled: the lowering of an exported call
looks for our names in the serialised program and loads them from the cache folder. That is plain
Python, the same on every processor; nothing is touched by the import. `register_exported` does
the same by hand, for a program that reaches XLA on another way.

Kernels of the house need no file: the call carries the order they are built from, which is
believed only if it leads to the very same name, here and now. Code of users cannot be built
without its source, so it must be on disk or made by this process.
"""

import ast
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.export import DisabledSafetyCheck

from brainevent import _compat
from brainevent._error import KernelLoadError, explain
from brainevent._op import cache
from brainevent._op.numba_ffi import load, native

__all__ = ['export_checks', 'register_exported']

_NAME = re.compile(r'brainevent(?:_numba_ffi_(?:unique_)?|\.\w+\.)[0-9a-f]{32}(?![0-9a-f])')
# Names of other bridges that derive from content too; their programs are looked after there.
_LASTING = re.compile(
    _NAME.pattern + r'|brainevent_kernix\.\w+\.[0-9a-f]{32}|brainevent_numba_cuda_\w*_[0-9a-f]{32}'
)
_NAME_IN_BYTES = re.compile(_NAME.pattern.encode())
_ORDER_IN_BYTES = re.compile(native.ORDER_MARK.encode() + rb'([^\0]+)')  # strings end in a null


def register_exported(exported: Any) -> tuple[str, ...]:
    """Register the CPU kernels that a program of ``jax.export`` calls.

    Calling the program does this by itself; by hand it is needed for programs that reach XLA
    without ``Exported.call``, and it tells early whether all is there.

    Parameters
    ----------
    exported : jax.export.Exported
        Such as ``jax.export.deserialize`` returns.

    Returns
    -------
    tuple of str
        The targets of this package in the program.

    Raises
    ------
    KernelLoadError
        If the machine code of a kernel is not to be had in this process (also an ``OSError``).

    Examples
    --------
    >>> import jax
    >>> from jax import export
    >>> program = export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((2,), 'float32'))
    >>> register_exported(program)
    ()
    """
    data: bytes = exported.mlir_module_serialized
    names = tuple(sorted({name.decode() for name in _NAME_IN_BYTES.findall(data)}))
    missing = [name for name in names if not load.is_loaded(name)]
    if missing:
        orders = [order for text in _ORDER_IN_BYTES.findall(data) if (order := _read(text))]
        by_target = {order.target: order for order in orders}
        for name in missing:
            if name in by_target:
                by_target[name].fill()
            elif not native.load_stored(name):
                raise KernelLoadError(_told(name))
    return names


def export_checks(
    fun: Callable[..., Any], *args: Any, platforms: Sequence[str] | None = None, **kwargs: Any
) -> list[Any]:
    """List the safety checks of ``jax.export`` that kernels of this package need not pass.

    JAX refuses to export calls of native code unless it is told that their names are lasting.
    Ours derive from content: the same name is the same kernel for ever.

    Parameters
    ----------
    fun : callable
        The function to be exported.
    *args, **kwargs
        Arguments as for the export: which kernels are called depends on them, so a batch that is
        open there is open here, as ``jax.ShapeDtypeStruct`` with a symbolic shape.
    platforms : sequence of str, optional
        As for ``jax.export.export``, such as ``['cuda']``; that of this process if not given.

    Returns
    -------
    list of jax.export.DisabledSafetyCheck
        For the ``disabled_checks`` of ``jax.export.export``.

    Examples
    --------
    >>> import jax
    >>> from jax import export
    >>> f = jax.jit(lambda x: x + 1)
    >>> x = jax.ShapeDtypeStruct((2,), 'float32')
    >>> program = export.export(f, disabled_checks=export_checks(f, x))(x)
    """
    jitted: Any = fun if hasattr(fun, 'lower') else jax.jit(fun)
    traced = jitted.trace(*args, **kwargs)
    chosen = None if platforms is None else tuple(platforms)
    text = traced.lower(lowering_platforms=chosen).as_text()
    names = sorted(set(_LASTING.findall(text)))
    return [DisabledSafetyCheck.custom_call(name) for name in names]


def _read(text: bytes) -> native.Order | None:
    """Read an order; one for code that is not known by content, or not imported here, is none."""
    if b'_unique_' in text:
        return None
    try:
        order = native.Order.read(ast.literal_eval(text.decode()))
    except (ValueError, TypeError, SyntaxError):
        return None
    module = order.recipe.module
    return order if module.startswith('brainevent.') or module in sys.modules else None


def _told(name: str) -> str:
    if name.startswith('brainevent.'):
        reason = 'it is of another version of brainevent, or of a module not imported yet'
        remedy = 'export the program again with this version, or import what defines the kernel'
    elif '_unique_' in name:
        reason = 'it has no name by content, so it belongs to the process that made it'
        remedy = 'let it close over numbers, arrays and njit functions only; then export again'
    else:
        reason = f'no machine code of it for this machine in {cache.get_cache_dir()}'
        remedy = (
            'call the same numba_kernel once in this process, or set '
            f'{cache.ENVIRONMENT} to the cache folder of the process that exported'
        )
    what = 'a kernel of the program is not known here.'
    return explain('exported program', what, expected=f'kernel {name}', got=reason, remedy=remedy)


AUTOMATIC = _compat.before_exported_call(register_exported, 'cpu')
"""Whether JAX let us in; without it programs need `register_exported` before they are called."""
