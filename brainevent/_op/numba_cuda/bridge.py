# SPDX-License-Identifier: Apache-2.0
"""``numba_cuda_kernel`` and ``numba_cuda_callable``: numba's CUDA kernels inside JAX programs."""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._compat import canonical_dtype
from brainevent._error import (
    CUDANotInstalledError,
    KernelSignatureError,
    OptionError,
    expect,
    explain,
)
from brainevent._op import ffi_naming
from brainevent._op.backends import get_backend_record
from brainevent._op.numba_cuda import handler
from brainevent._op.numba_cuda.batching import Operand
from brainevent._op.numba_cuda.driver import CudaDriver, Driver
from brainevent._op.numba_cuda.launch import Call, Launch, Work, plan
from brainevent._op.numba_ffi import bridge as cpu

__all__ = ['NumbaCudaKernel', 'numba_cuda_callable', 'numba_cuda_kernel']

SCHEMA = '1'
_driver: Driver = CudaDriver()


def numba_cuda_kernel(
    kernel: Callable[..., Any],
    outs: Any,
    *,
    grid: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
    launch_dims: int | tuple[int, ...] | None = None,
    threads_per_block: int = 256,
    shared_mem: int = 0,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
) -> 'NumbaCudaKernel':
    """Make a JAX function, for NVIDIA GPUs, of a CUDA kernel written with numba.

    Parameters
    ----------
    kernel : numba CUDA dispatcher
        A function decorated with ``numba.cuda.jit``. It is called as ``kernel(*inputs, *outputs)``
        with one C-contiguous device array an operand. It must not write to its inputs. Outputs
        start at zero.
    outs : ShapeDtypeStruct or pytree of them
        Shapes and dtypes of the results; the call returns arrays in the same structure.
    grid, block : int or tuple of 1 to 3 ints, optional
        Blocks, and threads of a block; both or none.
    launch_dims : int or tuple of 1 to 3 ints, optional
        Instead of ``grid`` and ``block``: the threads that are needed along each axis. The block
        is 256, 16 x 16 or 8 x 8 x 4 threads, but never longer than an axis; the last blocks may
        stand over, so the kernel compares ``cuda.grid(...)`` with the extents.
    threads_per_block : int
        Other sizes of the block that ``launch_dims`` is covered with, 1 to 1024.
    shared_mem : int
        Bytes of dynamic shared memory.
    vmap_method : str, optional
        As in :func:`jax.ffi.ffi_call`. Whatever the method, the kernel sees one batch element at
        a time: it is launched once for each, with its own grid. None: ``vmap`` raises. A ``vmap``
        of a ``vmap`` needs ``'sequential'``. Not together with ``grid``.
    input_output_aliases : dict of int to int, optional
        Input number to output number: the output starts as the input's content. The input itself
        is never changed for anybody else; a donated one is reused in place.

    Returns
    -------
    NumbaCudaKernel
        A callable that works eagerly and inside ``jit``, ``scan`` and the like, in the order of
        the program.

    Raises
    ------
    CUDANotInstalledError
        If numba is not installed (also an ``ImportError``).
    KernelSignatureError
        If ``kernel`` is not a CUDA kernel, or takes another number of arrays (also a
        ``TypeError``).
    OptionError
        If the launch is given in no way or in two, is more than a GPU can do, or cannot be
        batched; if ``vmap_method`` is not known (also a ``ValueError``).
    DtypeError
        If an operand is ``bfloat16`` or of another dtype that numba does not have on a GPU (also
        a ``ValueError``).
    ShapeError
        If an input has no axes (also a ``ValueError``).

    Notes
    -----
    numba compiles the kernel when the program first runs. An exception on the way comes back as
    ``jax.errors.JaxRuntimeError`` with its text. Each call runs a few lines of Python to launch
    the kernel; a kernel in CUDA C++ does not. Derivatives are not defined: wrap the call in an
    ``XLACustomKernel`` to give it rules.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from numba import cuda
    >>> @cuda.jit
    ... def double(x, out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 2 * x[i]
    >>> f = numba_cuda_kernel(double, jax.ShapeDtypeStruct((3,), jnp.float32), launch_dims=3)
    >>> f(jnp.arange(3.0))  # doctest: +SKIP
    Array([0., 2., 4.], dtype=float32)
    """
    where = 'numba_cuda_kernel'
    _check_installed(where)
    options = getattr(kernel, 'targetoptions', None)
    expect(
        type(kernel).__name__ == 'CUDADispatcher'
        and isinstance(getattr(kernel, 'py_func', None), types.FunctionType)
        and isinstance(options, dict)
        and not options.get('device'),
        KernelSignatureError,
        where,
        '`kernel` is not a CUDA kernel of numba.',
        expected='a function decorated with numba.cuda.jit, without device=True',
        got=lambda: repr(kernel),
        remedy='decorate it with @cuda.jit, and see that NUMBA_ENABLE_CUDASIM is not set',
    )
    expect(
        grid is None or vmap_method is None,
        OptionError,
        where,
        'a kernel with its own grid cannot be batched.',
        expected='vmap_method=None, or `launch_dims` in place of `grid` and `block`',
        got=f'grid={grid}, vmap_method={vmap_method!r}',
        remedy='say launch_dims: it is the extent of one batch element',
    )
    launch = plan(where, grid, block, launch_dims, threads_per_block, shared_mem)
    work = Launch(kernel, launch)
    return NumbaCudaKernel(where, work, outs, vmap_method, dict(input_output_aliases or {}))


def numba_cuda_callable(
    func: Callable[..., Any],
    outs: Any,
    *,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
) -> 'NumbaCudaKernel':
    """Make a JAX function, for NVIDIA GPUs, of a Python function that launches CUDA kernels.

    For what is more than one launch: several kernels, a grid that depends on shapes, a library
    that takes a stream.

    Parameters
    ----------
    func : callable
        Called as ``func(*inputs, *outputs, stream)`` with device arrays and a stream of numba's.
        All it starts must be on this stream, and it must not wait for it. It must not write to
        inputs. Outputs start at zero.
    outs : ShapeDtypeStruct or pytree of them
        Shapes and dtypes of the results; the call returns arrays in the same structure.
    vmap_method : str, optional
        As in `numba_cuda_kernel`: ``func`` is called once for each batch element.
    input_output_aliases : dict of int to int, optional
        As in `numba_cuda_kernel`.

    Returns
    -------
    NumbaCudaKernel

    Raises
    ------
    CUDANotInstalledError
        If numba is not installed (also an ``ImportError``).
    KernelSignatureError
        If ``func`` is not callable or takes another number of arguments (also a ``TypeError``).
    OptionError
        If ``vmap_method`` is not known (also a ``ValueError``).
    DtypeError, ShapeError
        As `numba_cuda_kernel`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from numba import cuda
    >>> @cuda.jit
    ... def add_one(x, out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = x[i] + 1
    >>> def add_two(x, out, stream):
    ...     add_one[1, 32, stream](x, out)
    ...     add_one[1, 32, stream](out, out)
    >>> f = numba_cuda_callable(add_two, jax.ShapeDtypeStruct((3,), jnp.float32))
    >>> f(jnp.arange(3.0))  # doctest: +SKIP
    Array([2., 3., 4.], dtype=float32)
    """
    where = 'numba_cuda_callable'
    _check_installed(where)
    expect(
        callable(func),
        KernelSignatureError,
        where,
        '`func` is not callable.',
        expected='a function of device arrays and a stream',
        got=lambda: repr(func),
    )
    work = Call(_as_function(func))
    return NumbaCudaKernel(where, work, outs, vmap_method, dict(input_output_aliases or {}))


class NumbaCudaKernel(cpu.NumbaKernel):
    """A CUDA kernel as a JAX function; made by `numba_cuda_kernel` or `numba_cuda_callable`."""

    def __init__(
        self,
        where: str,
        work: Work,
        outs: Any,
        vmap_method: str | None,
        aliases: dict[int, int],
    ) -> None:
        expect(
            vmap_method in cpu._VMAP_METHODS,
            OptionError,
            where,
            'unknown `vmap_method`.',
            expected=f'one of {cpu._VMAP_METHODS}',
            got=repr(vmap_method),
        )
        super().__init__(work, outs, vmap_method, aliases)
        self._work = work
        for k, out in enumerate(self._outs):
            Operand.of(self.name, f'output {k}', out)

    def __repr__(self) -> str:
        """Name the kernel and its results."""
        return f'NumbaCudaKernel({self.name}, outs={self._outs})'

    def _call(self, *inputs: Any) -> Any:
        arrays = [jnp.asarray(x) for x in inputs]
        # under the x64 setting of this call, not of the time when the kernel was made
        wanted = [jax.ShapeDtypeStruct(o.shape, canonical_dtype(o.dtype)) for o in self._outs]
        self._check_arity(len(arrays))
        self._check_aliases(arrays, wanted)
        ins = tuple(Operand.of_input(self.name, k, x) for k, x in enumerate(arrays))
        outs = tuple(Operand.of(self.name, f'output {k}', x) for k, x in enumerate(wanted))
        results = jax.ffi.ffi_call(
            self._target(ins, outs),
            wanted,
            vmap_method=self._vmap_method,
            input_output_aliases=self._aliases,
        )(*arrays)
        return jax.tree.unflatten(self._tree, results)

    def _check_arity(self, inputs: int) -> None:
        if isinstance(self._work, Launch):
            super()._check_arity(inputs)
            return
        parameters = inspect.signature(self._work.py_func)
        try:
            parameters.bind(*[None] * (inputs + len(self._outs) + 1))
        except TypeError as cause:
            raise KernelSignatureError(
                explain(
                    self.name,
                    'the function takes another number of arguments.',
                    expected=f'parameters {parameters}',
                    got=f'{inputs} inputs, {len(self._outs)} outputs and a stream',
                    remedy='a function is called as func(*inputs, *outputs, stream)',
                )
            ) from cause

    def _target(self, ins: Any, outs: Any) -> str:
        """Return the registered target for these dtypes and shapes, named by content."""
        content = self._work.content()
        aliases = repr(sorted(self._aliases.items()))
        told = (repr((ins, outs)), aliases, _driver.platform)
        key = ffi_naming.digest(SCHEMA, *(content or (self._unique,)), *told)
        kind = 'ffi' if isinstance(self._work, Launch) else 'callable'
        target = f'brainevent_numba_cuda_{kind}_{"" if content else "unique_"}{key}'
        operands, aliased = (ins, outs), self._aliases.values()
        make = functools.partial(handler.Handler, self.name, self._work, operands, aliased, _driver)
        handler.ensure(target, make, _driver.platform)
        return target


def _check_installed(where: str) -> None:
    """Ask anew each time: what was missing once may be there now."""
    record = get_backend_record('numba_cuda')
    missing = record and record.missing()
    expect(
        not missing,
        CUDANotInstalledError,
        where,
        'numba is needed.',
        expected='numba with its CUDA target',
        got=missing,
        remedy='pip install numba-cuda',
    )


def _as_function(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, with a name and a signature, that calls whatever can be called."""
    if isinstance(func, types.FunctionType):
        return func

    def call(*args: Any) -> Any:
        return func(*args)

    call.__name__ = getattr(func, '__name__', type(func).__name__)
    return call
