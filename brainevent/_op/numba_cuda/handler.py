# SPDX-License-Identifier: Apache-2.0
"""Handlers: Python functions that XLA calls on its stream, known by the content of their work."""

import ctypes
import functools
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax

from brainevent._error import explain
from brainevent._op.numba_cuda import batching
from brainevent._op.numba_cuda.batching import Operand
from brainevent._op.numba_cuda.driver import Driver
from brainevent._op.numba_cuda.frame import CallFrame
from brainevent._op.numba_cuda.launch import Work

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

_lock = threading.Lock()
_targets: set[str] = set()
_pinned: list[Any] = []  # XLA keeps addresses for ever, so what is here never goes away


class Handler:
    """One kernel under one signature, as XLA calls it.

    Outputs that do not start as an input start at zero, so that a kernel may add to them, and so
    that a grid without threads leaves zeros and not what was in memory before.
    """

    def __init__(
        self,
        name: str,
        work: Work,
        operands: tuple[Sequence[Operand], Sequence[Operand]],
        aliased: Collection[int],
        driver: Driver,
    ) -> None:
        self._name = name
        self._work = work
        self._operands = [*operands[0], *operands[1]]
        self._fresh = [k for k in range(len(operands[1])) if k not in aliased]
        self._driver = driver
        self.entry = _ENTRY(functools.partial(_answer, self.run))

    def run(self, frame: CallFrame) -> None:
        """Serve a call: clear, then launch once for each element of a batch."""
        outputs = frame.outputs
        arrays = list(batching.slices(self._name, self._operands, [*frame.inputs, *outputs]))
        stream = self._driver.stream(frame)
        for k in self._fresh:
            size = batching.nbytes(outputs[k].shape, outputs[k].dtype)
            if size:
                self._driver.clear(outputs[k].address, size, stream)
        if not self._work.idle:
            for views in arrays:
                self._driver.launch(self._work, views, stream)


def ensure(target: str, make: Callable[[], Handler], platform: str) -> None:
    """Register a handler under a name that derives from its content, once."""
    with _lock:
        if target in _targets:
            return
        _register(target, make().entry, platform)
        if platform != 'cpu':
            _register(target, _refuse_cpu(), 'cpu')
        _targets.add(target)


def _register(target: str, entry: Any, platform: str) -> None:
    _pinned.append(entry)
    jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(entry), platform=platform)


@functools.cache
def _refuse_cpu() -> Any:
    """Return what stands under the same names on the CPU, where XLA would know none."""
    return _ENTRY(functools.partial(_answer, _no_gpu))


def _no_gpu(frame: CallFrame) -> None:
    raise RuntimeError(
        explain(
            'numba_cuda',
            'a CUDA kernel was called on the CPU.',
            expected='a program that runs on an NVIDIA GPU',
            got='operands on a CPU device',
            remedy='move them with jax.device_put, or wrap a numba.njit twin with numba_kernel',
        )
    )


def _answer(run: Any, address: int) -> int | None:
    """Serve XLA; whatever is raised on the way becomes its error."""
    frame = CallFrame(address)
    try:
        if not frame.answer_metadata():
            run(frame)
    except BaseException as error:  # nobody above could catch it
        return frame.error(f'{type(error).__name__}: {error}')
    return None
