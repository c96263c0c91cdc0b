# SPDX-License-Identifier: Apache-2.0
"""numba's own run time, for kernels of users: its symbols, and a thread pool safe inside XLA."""

from typing import Any

import numba
from numba.core.registry import cpu_target
from numba.np.ufunc import parallel

from brainevent._error import KernelCompilationError, explain


def start() -> Any:
    """Define the symbols that compiled functions of users refer to."""
    return cpu_target.target_context


def start_threads() -> None:
    """Launch numba's threads for ``parallel=True``, never on the layer that is not thread-safe.

    XLA calls kernels from several threads at once; numba's ``workqueue`` layer ends the process
    when that happens.
    """
    if numba.config.THREADING_LAYER == 'default':
        numba.config.THREADING_LAYER = 'threadsafe'
    try:
        parallel._launch_threads()
        layer = numba.threading_layer()
    except ValueError as cause:
        layer, reason = 'workqueue', cause
    else:
        reason = None
    if layer == 'workqueue':
        raise KernelCompilationError(
            explain(
                'numba_kernel',
                'a kernel with parallel=True needs a thread-safe threading layer',
                expected='numba with OpenMP or TBB',
                got='the workqueue layer',
                remedy='pip install tbb, or compile the kernel without parallel=True',
            )
        ) from reason
