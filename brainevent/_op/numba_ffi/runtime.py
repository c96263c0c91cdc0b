# SPDX-License-Identifier: Apache-2.0
"""numba's own run time, for kernels of users: its symbols, and a thread pool safe inside XLA."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numba
from numba.core.environment import Environment
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.np.ufunc import parallel

from brainevent._error import KernelCompilationError, explain

_lock = threading.RLock()


def start() -> None:
    """Define the symbols of reference counting, which nearly every compiled function names."""
    rtsys.initialize(cpu_target.target_context)


def start_all() -> None:
    """Define every symbol that numba's own functions have; takes a second."""
    cpu_target.target_context.refresh()


def blank() -> Environment:
    """Make an environment with nothing in it; code may look whether it has one."""
    return Environment({})


@contextmanager
def safe_layers() -> Iterator[None]:
    """Let numba, should it launch its threads, choose among thread-safe layers only.

    XLA calls kernels from several threads at once; numba's ``workqueue`` layer ends the process
    when that happens.
    """
    with _lock:
        before = numba.config.THREADING_LAYER
        if before == 'default':
            numba.config.THREADING_LAYER = 'threadsafe'
        try:
            yield
        finally:
            numba.config.THREADING_LAYER = before


def start_threads() -> None:
    """Launch numba's threads for ``parallel=True``, never on the layer that is not thread-safe."""
    reason = None
    try:
        with safe_layers():
            parallel._launch_threads()
        layer = numba.threading_layer()
    except ValueError as cause:
        layer, reason = 'none', cause
    if layer not in ('tbb', 'omp'):
        raise KernelCompilationError(
            explain(
                'numba_kernel',
                'a kernel with parallel=True needs a thread-safe threading layer.',
                expected="numba's threads on OpenMP or TBB",
                got=f'the layer {layer!r}',
                remedy='pip install tbb before anything launches the threads, or compile the '
                'kernel without parallel=True',
            )
        ) from reason
