# SPDX-License-Identifier: Apache-2.0
"""Operators for anyone: primitives with kernels in several backends, and nothing about edges."""

from brainevent._op.backends import Backend, get_backend_record, register_backend
from brainevent._op.benchmark import (
    BenchmarkConfig,
    BenchmarkRecord,
    BenchmarkResult,
    benchmark_function,
)
from brainevent._op.cache import get_cache_dir, set_cache_dir
from brainevent._op.kernel import KernelEntry, XLACustomKernel
from brainevent._op.numba_ffi.bridge import NumbaKernel, numba_kernel
from brainevent._op.numba_ffi.exported import export_checks, register_exported
from brainevent._op.registry import (
    get_all_primitive_names,
    get_primitives_by_tags,
    get_registry,
)
from brainevent._op.rules import defjvp, general_batching_rule
from brainevent._op.selection import Prefer, soften

__all__ = [
    'Backend',
    'BenchmarkConfig',
    'BenchmarkRecord',
    'BenchmarkResult',
    'KernelEntry',
    'NumbaKernel',
    'Prefer',
    'XLACustomKernel',
    'benchmark_function',
    'defjvp',
    'export_checks',
    'general_batching_rule',
    'get_all_primitive_names',
    'get_cache_dir',
    'get_backend_record',
    'get_primitives_by_tags',
    'get_registry',
    'numba_kernel',
    'register_backend',
    'register_exported',
    'set_cache_dir',
    'soften',
]
