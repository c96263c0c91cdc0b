# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver as a handler needs it: clear memory and launch work on XLA's stream."""

import contextlib
import ctypes
import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from brainevent._error import CUDANotInstalledError, KernelExecutionError, explain
from brainevent._op.numba_cuda.batching import View
from brainevent._op.numba_cuda.frame import CallFrame
from brainevent._op.numba_cuda.launch import Work


class Driver(Protocol):
    """What touches the device; tests have one that works on the host."""

    platform: str

    def stream(self, frame: CallFrame) -> int:
        """Return the stream that a call belongs to."""
        ...

    def clear(self, address: int, size: int, stream: int) -> None:
        """Write zeros over ``size`` bytes, in the order of the stream."""
        ...

    def launch(self, work: Work, views: Sequence[View], stream: int) -> None:
        """Start work on arrays, in the order of the stream."""
        ...


class CudaDriver:
    """The real one. Nothing is looked for before the first call, and no failure is remembered."""

    platform = 'CUDA'  # XLA takes 'cuda' as well, and then never finds the handler

    def __init__(self, library: Any = None, numba_cuda: Any = None) -> None:
        self._library = library
        self._cuda = numba_cuda

    def stream(self, frame: CallFrame) -> int:
        """Ask XLA."""
        return frame.stream()

    def clear(self, address: int, size: int, stream: int) -> None:
        """Queue a memset."""
        with self._device_of(stream):
            self._ask(
                'cuMemsetD8Async',
                ctypes.c_uint64(address),
                ctypes.c_ubyte(0),
                ctypes.c_size_t(size),
                ctypes.c_void_p(stream),
            )

    def launch(self, work: Work, views: Sequence[View], stream: int) -> None:
        """Wrap addresses and stream for numba, without copies, and run the work."""
        if self._cuda is None:
            self._cuda = importlib.import_module('numba.cuda')
        with self._device_of(stream):
            arrays = [self._array(view) for view in views]
            work.run(arrays, self._cuda.external_stream(stream))

    def _array(self, view: View) -> Any:
        description = {
            'version': 3,
            'shape': view.shape,
            'strides': None,
            'typestr': view.dtype.str,
            'data': (view.address, False),
        }
        return self._cuda.from_cuda_array_interface(description, sync=False)

    @contextlib.contextmanager
    def _device_of(self, stream: int) -> Iterator[None]:
        """Make the stream's device the current one; numba works on whatever is current."""
        context = ctypes.c_void_p()
        self._ask('cuStreamGetCtx', ctypes.c_void_p(stream), ctypes.byref(context))
        self._ask('cuCtxPushCurrent_v2', context)
        try:
            yield
        finally:
            self._ask('cuCtxPopCurrent_v2', ctypes.byref(ctypes.c_void_p()))

    def _ask(self, function: str, *args: Any) -> None:
        if self._library is None:
            self._library = _load()
        code = getattr(self._library, function)(*args)
        if code:
            raise KernelExecutionError(
                explain('CUDA', f'{function} failed.', expected='success', got=f'CUresult {code}')
            )


def _load() -> Any:
    try:
        return ctypes.CDLL('libcuda.so.1')
    except OSError as cause:
        raise CUDANotInstalledError(
            explain(
                'CUDA',
                'the driver library cannot be loaded.',
                expected='libcuda.so.1 of an NVIDIA driver',
                got=cause,
                remedy='install the driver, or run on a machine with a GPU',
            )
        ) from cause
