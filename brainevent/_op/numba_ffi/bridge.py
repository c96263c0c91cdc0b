# SPDX-License-Identifier: Apache-2.0
"""``numba_kernel``: an ``njit`` function of the user's becomes a native XLA handler."""

import functools
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import canonical_dtype
from brainevent._error import (
    DtypeError,
    KernelCompilationError,
    KernelError,
    KernelSignatureError,
    OptionError,
    expect,
    explain,
)
from brainevent._op import ffi_naming
from brainevent._op.numba_ffi import native
from brainevent._op.numba_ffi.load import MachineCode
from brainevent._typing import Array

__all__ = ['NumbaKernel', 'numba_kernel']

_NATIVE_DTYPES = (
    'bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64',
    'float32', 'float64', 'complex64', 'complex128',
)  # fmt: skip
PREFIX = 'brainevent_numba_ffi_'
_HALVES = ('float16', 'bfloat16')
_VMAP_METHODS = (
    None, 'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', 'legacy_vectorized',
)  # fmt: skip


def numba_kernel(
    kernel: Callable[..., Any],
    outs: Any,
    *,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    clear_outputs: bool = True,
) -> 'NumbaKernel':
    """Make a JAX function of a numba function, without Python on the way of a call.

    Parameters
    ----------
    kernel : numba dispatcher
        A function decorated with ``numba.njit``. It is called as ``kernel(*inputs, *outputs)``
        with one C-contiguous array an operand, scalars as arrays without axes. Inputs are
        read-only. Outputs start at zero, unless ``clear_outputs`` is False.
    outs : ShapeDtypeStruct or pytree of them
        Shapes and dtypes of the results; the call returns arrays in the same structure.
    vmap_method : str, optional
        As in :func:`jax.ffi.ffi_call`. Whatever the method, the kernel sees one batch element at
        a time, in a native loop. None: ``vmap`` raises.
    input_output_aliases : dict of int to int, optional
        Input number to output number: the output starts as the input's content. The input itself
        is never changed for anybody else; a donated one is reused in place.
    clear_outputs : bool
        Set outputs to zero before the kernel runs. False saves the time where the kernel writes
        every element: what it does not write is then undefined.

    Returns
    -------
    NumbaKernel
        A callable that works eagerly and inside ``jit``, ``scan`` and the like. ``float16`` and
        ``bfloat16`` operands reach the kernel as ``float32``.

    Raises
    ------
    ImportError
        If numba is not installed.
    KernelSignatureError
        If ``kernel`` is not an ``njit`` function, or takes another number of arrays.
    OptionError
        If ``vmap_method`` is not known.
    DtypeError
        If an operand has a dtype that a kernel cannot hold.
    KernelCompilationError
        If numba cannot compile the kernel for these dtypes.

    Notes
    -----
    An exception that the kernel raises comes back as ``jax.errors.JaxRuntimeError`` (in JAX 0.8 a
    ``ValueError``) with its text. Derivatives are not defined: wrap the call in an
    ``XLACustomKernel`` to give it rules.

    The kernel is known by its content: bytecode, options, and whatever it reads, as it is when a
    call is traced. Machine code of known content is kept on disk and found again by other
    processes; code that holds an address of its process (an array beyond a megabyte, ``objmode``,
    ``print`` of an array) is compiled by each.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, numba
    >>> @numba.njit
    ... def double(x, out):
    ...     for i in range(out.size):
    ...         out[i] = 2 * x[i]
    >>> f = numba_kernel(double, jax.ShapeDtypeStruct((3,), jnp.float32))
    >>> f(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    if sys.modules.get('numba', ...) is None or importlib.util.find_spec('numba') is None:
        raise ImportError('numba_kernel needs numba: pip install numba')
    expect(
        type(kernel).__name__ != 'CUDADispatcher',
        KernelSignatureError,
        'numba_kernel',
        '`kernel` is a CUDA kernel.',
        expected='a function decorated with numba.njit, for the CPU',
        got=lambda: repr(kernel),
        remedy='numba_cuda_kernel(kernel, outs, launch_dims=...) runs it on a GPU',
    )
    expect(
        isinstance(getattr(kernel, 'py_func', None), types.FunctionType)
        and isinstance(getattr(kernel, 'targetoptions', None), dict),
        KernelSignatureError,
        'numba_kernel',
        '`kernel` is not a compiled numba function.',
        expected='a function decorated with numba.njit',
        got=lambda: repr(kernel),
        remedy='decorate it with @numba.njit, and see that NUMBA_DISABLE_JIT is not set',
    )
    expect(
        vmap_method in _VMAP_METHODS,
        OptionError,
        'numba_kernel',
        'unknown `vmap_method`.',
        expected=f'one of {_VMAP_METHODS}',
        got=repr(vmap_method),
    )
    aliases = dict(input_output_aliases or {})
    return NumbaKernel(kernel, outs, vmap_method, aliases, clear_outputs)


class NumbaKernel:
    """A numba function as a JAX function; made by :func:`numba_kernel`."""

    def __init__(
        self,
        kernel: Any,
        outs: Any,
        vmap_method: str | None,
        aliases: dict[int, int],
        clear_outputs: bool = True,
    ) -> None:
        self.kernel = kernel
        self.name: str = kernel.py_func.__name__
        leaves, self._tree = jax.tree.flatten(outs)
        self._outs = [_struct(self.name, out) for out in leaves]
        expect(
            bool(leaves),
            KernelSignatureError,
            self.name,
            'the kernel has no output.',
            expected='at least one ShapeDtypeStruct in `outs`',
            got=repr(outs),
            remedy='a kernel is called for what it writes: give it an output',
        )
        self._aliases = aliases
        held = aliases.values() if clear_outputs else range(len(leaves))
        self._cleared = tuple(k for k in range(len(leaves)) if k not in held)
        self._vmap_method = vmap_method
        if vmap_method in ('expand_dims', 'broadcast_all', 'legacy_vectorized'):
            # the handler loops over a batch whatever its layout; an alias needs the full extent
            self._vmap_method = 'broadcast_all' if aliases else 'expand_dims'
        for k, out in enumerate(self._outs):
            _check_dtype(self.name, 'output', k, out.dtype)
        self._unique = ffi_naming.process_name(self.name)
        self._jitted = jax.jit(self._call)

    def __call__(self, *inputs: Any) -> Any:
        """Run the kernel on arrays; see :func:`numba_kernel`."""
        return self._jitted(*inputs)

    def __repr__(self) -> str:
        """Name the kernel and its results."""
        return f'NumbaKernel({self.name}, outs={self._outs})'

    def _call(self, *inputs: Any) -> Any:
        arrays = [jnp.asarray(x) for x in inputs]
        for k, x in enumerate(arrays):
            _check_dtype(self.name, 'input', k, x.dtype)
        # under the x64 setting of this call, not of the time when the kernel was made
        wanted = [jax.ShapeDtypeStruct(o.shape, canonical_dtype(o.dtype)) for o in self._outs]
        self._check_arity(len(arrays))
        self._check_aliases(arrays, wanted)
        arrays = [_widen(x) for x in arrays]
        outs = [jax.ShapeDtypeStruct(o.shape, _wide_dtype(o.dtype)) for o in wanted]
        target = self._target(
            tuple((x.dtype.name, x.ndim) for x in arrays),
            tuple((np.dtype(o.dtype).name, len(o.shape)) for o in outs),
        )
        results = jax.ffi.ffi_call(
            target, outs, vmap_method=self._vmap_method, input_output_aliases=self._aliases
        )(*arrays)
        narrow = [r.astype(o.dtype) for r, o in zip(results, wanted, strict=True)]
        return jax.tree.unflatten(self._tree, narrow)

    def _check_arity(self, inputs: int) -> None:
        parameters = inspect.signature(self.kernel.py_func)
        try:
            parameters.bind(*[None] * (inputs + len(self._outs)))
        except TypeError as cause:
            raise KernelSignatureError(
                explain(
                    self.name,
                    'the kernel takes another number of arrays.',
                    expected=f'parameters {parameters}',
                    got=f'{inputs} inputs and {len(self._outs)} outputs',
                    remedy='a kernel is called as kernel(*inputs, *outputs)',
                )
            ) from cause

    def _check_aliases(self, arrays: list[Any], outs: list[Any]) -> None:
        for source, target in self._aliases.items():
            known = source in range(len(arrays)) and target in range(len(outs))
            pair: tuple[Any, ...] = (arrays[source], outs[target]) if known else ()
            expect(
                known and len({(x.shape, np.dtype(x.dtype)) for x in pair}) == 1,
                KernelSignatureError,
                self.name,
                f'output {target} cannot start as input {source}.',
                expected='numbers of an input and an output of the same shape and dtype',
                got=[f'{x.dtype}{list(x.shape)}' for x in (*arrays, *outs)],
                remedy='see `input_output_aliases`: {input number: output number}',
            )

    def _target(self, ins: Any, outs: Any) -> str:
        """Return the registered target for these dtypes and ranks, named by content."""
        content = ffi_naming.fingerprint(self.kernel)
        facts = repr(ins), repr(outs), repr(self._cleared)
        key = ffi_naming.digest(native.SCHEMA, content or self._unique, *facts)
        target = f'{PREFIX}{key}' if content else f'{PREFIX}unique_{key}'
        native.ensure(target, functools.partial(self._build, target, ins, outs), bool(content))
        return target

    def _build(self, target: str, ins: Any, outs: Any) -> MachineCode:
        compiler = importlib.import_module('brainevent._op.numba_ffi.compile')
        runtime = importlib.import_module('brainevent._op.numba_ffi.runtime')
        try:
            with runtime.safe_layers():
                signature = compiler.Signature(ins, outs)
                code: MachineCode = compiler.compile_guarded(
                    target, self.kernel, signature, self._cleared
                )
                return code
        except KernelError:
            raise
        except Exception as cause:  # whatever numba says: it is about this kernel
            raise KernelCompilationError(
                explain(
                    self.name,
                    'numba cannot compile the kernel.',
                    expected='a function of arrays that numba supports, whose inputs are read-only',
                    got=f'inputs {ins}, outputs {outs}\n{cause}',
                    remedy='write to outputs only, and give numba.njit no explicit signature',
                )
            ) from cause


def _struct(name: str, out: Any) -> jax.ShapeDtypeStruct:
    try:
        return jax.ShapeDtypeStruct(out.shape, out.dtype)
    except AttributeError as cause:
        raise KernelSignatureError(
            explain(
                name,
                '`outs` holds something without shape and dtype.',
                expected='a jax.ShapeDtypeStruct or a pytree of them',
                got=repr(out),
            )
        ) from cause


def _check_dtype(name: str, side: str, k: int, dtype: Any) -> None:
    expect(
        str(dtype) in _NATIVE_DTYPES + _HALVES,  # a PRNG key has a dtype that numpy cannot name
        DtypeError,
        name,
        f'{side} {k} has a dtype that a kernel cannot hold.',
        expected=', '.join(_NATIVE_DTYPES + _HALVES),
        got=dtype,
        remedy='convert the array with astype before the call',
    )


def _wide_dtype(dtype: Any) -> Any:
    return np.dtype('float32') if np.dtype(dtype).name in _HALVES else np.dtype(dtype)


def _widen(x: Array) -> Array:
    return x.astype(_wide_dtype(x.dtype))
