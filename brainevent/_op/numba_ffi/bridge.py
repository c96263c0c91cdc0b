# SPDX-License-Identifier: Apache-2.0
"""``numba_kernel``: an ``njit`` function of the user's becomes a native XLA handler."""

import functools
import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._error import DtypeError, KernelCompilationError, KernelSignatureError, explain
from brainevent._op import ffi_naming
from brainevent._op.numba_ffi import load, native
from brainevent._typing import Array

__all__ = ['NumbaKernel', 'numba_kernel']

_NATIVE_DTYPES = frozenset(
    'bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 '
    'float32 float64 complex64 complex128'.split()
)
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
) -> 'NumbaKernel':
    """Make a JAX function of a numba function, without Python on the way of a call.

    Parameters
    ----------
    kernel : numba dispatcher
        A function decorated with ``numba.njit``. It is called as ``kernel(*inputs, *outputs)``
        with one C-contiguous array an operand, scalars as arrays without axes. Inputs are
        read-only. Outputs are **not** initialised: write every element.
    outs : ShapeDtypeStruct or pytree of them
        Shapes and dtypes of the results; the call returns arrays in the same structure.
    vmap_method : str, optional
        As in :func:`jax.ffi.ffi_call`. Whatever the method, the kernel sees one batch element at
        a time, in a native loop. None: ``vmap`` raises.
    input_output_aliases : dict of int to int, optional
        Input number to output number: the output starts as the input's content. The input itself
        is never changed for anybody else; a donated one is reused in place.

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
    DtypeError
        If an operand has a dtype that a kernel cannot hold.
    KernelCompilationError
        If numba cannot compile the kernel for these dtypes.

    Notes
    -----
    An exception that the kernel raises comes back as ``jax.errors.JaxRuntimeError`` with its
    text. Derivatives are not defined: wrap the call in an ``XLACustomKernel`` to give it rules.

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
    if importlib.util.find_spec('numba') is None:
        raise ImportError('numba_kernel needs numba: pip install numba')
    if not isinstance(getattr(kernel, 'py_func', None), type(numba_kernel)):
        raise KernelSignatureError(
            explain(
                'numba_kernel',
                '`kernel` is not a compiled numba function',
                expected='a function decorated with numba.njit',
                got=repr(kernel),
                remedy='decorate it with @numba.njit',
            )
        )
    if vmap_method not in _VMAP_METHODS:
        raise ValueError(
            explain(
                'numba_kernel',
                'unknown `vmap_method`',
                expected=f'one of {_VMAP_METHODS}',
                got=repr(vmap_method),
            )
        )
    return NumbaKernel(kernel, outs, vmap_method, dict(input_output_aliases or {}))


class NumbaKernel:
    """A numba function as a JAX function; made by :func:`numba_kernel`."""

    def __init__(
        self, kernel: Any, outs: Any, vmap_method: str | None, aliases: dict[int, int]
    ) -> None:
        self.kernel = kernel
        self.name: str = kernel.py_func.__name__
        leaves, self._tree = jax.tree.flatten(outs)
        self._outs = [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in leaves]
        self._aliases = aliases
        self._vmap_method = vmap_method
        if vmap_method in ('expand_dims', 'broadcast_all', 'legacy_vectorized'):
            # the handler loops over a batch whatever its layout; an alias needs the full extent
            self._vmap_method = 'broadcast_all' if aliases else 'expand_dims'
        for k, out in enumerate(self._outs):
            _check_dtype(self.name, 'output', k, out.dtype)
        self._fingerprint = ffi_naming.fingerprint(kernel)
        self._unique = ffi_naming.process_name('')
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
        self._check_arity(len(arrays))
        arrays = [_widen(x) for x in arrays]
        outs = [jax.ShapeDtypeStruct(o.shape, _wide_dtype(o.dtype)) for o in self._outs]
        target = self._target(
            tuple((x.dtype.name, x.ndim) for x in arrays),
            tuple((np.dtype(o.dtype).name, len(o.shape)) for o in outs),
        )
        results = jax.ffi.ffi_call(
            target, outs, vmap_method=self._vmap_method, input_output_aliases=self._aliases
        )(*arrays)
        narrow = [r.astype(o.dtype) for r, o in zip(results, self._outs, strict=True)]
        return jax.tree.unflatten(self._tree, narrow)

    def _check_arity(self, inputs: int) -> None:
        try:
            inspect.signature(self.kernel.py_func).bind(*[None] * (inputs + len(self._outs)))
        except TypeError as cause:
            raise KernelSignatureError(
                explain(
                    self.name,
                    'the kernel takes another number of arrays',
                    expected=f'parameters {inspect.signature(self.kernel.py_func)}',
                    got=f'{inputs} inputs and {len(self._outs)} outputs',
                    remedy='a kernel is called as kernel(*inputs, *outputs)',
                )
            ) from cause

    def _target(self, ins: Any, outs: Any) -> str:
        """Return the registered target for these dtypes and ranks, named by content."""
        prepare_numba(bool(self.kernel.targetoptions.get('parallel')))
        known = self._fingerprint
        key = ffi_naming.digest(
            native.SCHEMA, native.versions(), load.machine(), known or self._unique, repr(ins),
            repr(outs),
        )  # fmt: skip
        target = f'brainevent_numba_ffi_{key}'
        build = functools.partial(self._build, target, ins, outs)
        native.ensure(target, build, keep=known is not None)
        return target

    def _build(self, target: str, ins: Any, outs: Any) -> tuple[bytes, ...]:
        from brainevent._op.numba_ffi import compile as compiler

        try:
            signature = compiler.Signature(ins, outs)
            return compiler.compile_guarded(target, self.kernel, signature).files
        except compiler.NumbaError as cause:
            raise KernelCompilationError(
                explain(
                    self.name,
                    'numba cannot compile the kernel',
                    expected='a function of arrays that numba supports, whose inputs are read-only',
                    got=f'inputs {ins}, outputs {outs}\n{cause}',
                    remedy='write to outputs only; see the message of numba above',
                )
            ) from cause


@functools.cache
def prepare_numba(parallel: bool) -> None:
    """Let numba define its run-time symbols, and start a thread pool that is safe in XLA."""
    from brainevent._op.numba_ffi import runtime

    runtime.start()
    if parallel:
        runtime.start_threads()


def _check_dtype(name: str, side: str, k: int, dtype: Any) -> None:
    if np.dtype(dtype).name not in _NATIVE_DTYPES and np.dtype(dtype).name not in _HALVES:
        raise DtypeError(
            explain(
                name,
                f'{side} {k} has a dtype that a kernel cannot hold',
                expected=', '.join(sorted(_NATIVE_DTYPES | set(_HALVES))),
                got=np.dtype(dtype).name,
                remedy='convert the array with astype before the call',
            )
        )


def _wide_dtype(dtype: Any) -> Any:
    return np.dtype('float32') if np.dtype(dtype).name in _HALVES else np.dtype(dtype)


def _widen(x: Array) -> Array:
    return x.astype(_wide_dtype(x.dtype))
