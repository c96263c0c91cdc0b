# SPDX-License-Identifier: Apache-2.0
"""Operators for anyone: primitives with kernels in several backends, and nothing about edges."""

from brainevent._op.backends import Backend, get_backend_record, register_backend
from brainevent._op.benchmark import (
    BenchmarkConfig,
    BenchmarkRecord,
    BenchmarkResult,
    benchmark_function,
)
from brainevent._op.cache import clear_cache, get_cache_dir, set_cache_dir
from brainevent._op.hybrid import HybridConfig, get_hybrid_config, init_csr_config
from brainevent._op.kernel import KernelEntry, XLACustomKernel
from brainevent._op.kernix import (
    CompiledModule,
    CompilerBackend,
    CPPBackend,
    CUDABackend,
    HIPBackend,
    ModuleFunction,
    list_registered_targets,
    load_cpp_file,
    load_cpp_inline,
    load_cuda_dir,
    load_cuda_file,
    load_cuda_inline,
    normalize_tokens,
    print_diagnostics,
    register_ffi_target,
)
from brainevent._op.lfsr import (
    PallasLFSR88RNG,
    PallasLFSR113RNG,
    PallasLFSR128RNG,
    PallasLFSRRNG,
    get_pallas_lfsr_rng_class,
)
from brainevent._op.numba_cuda.bridge import (
    NumbaCudaKernel,
    numba_cuda_callable,
    numba_cuda_kernel,
)
from brainevent._op.numba_ffi.bridge import NumbaKernel, numba_kernel
from brainevent._op.numba_ffi.exported import export_checks, register_exported
from brainevent._op.registry import (
    get_all_primitive_names,
    get_primitives_by_tags,
    get_registry,
)
from brainevent._op.rules import defjvp, general_batching_rule
from brainevent._op.selection import Prefer, soften
from brainevent._op.warp import jaxinfo_to_warpinfo, jaxtype_to_warptype

__all__ = [
    'Backend',
    'BenchmarkConfig',
    'BenchmarkRecord',
    'BenchmarkResult',
    'HybridConfig',
    'CPPBackend',
    'CUDABackend',
    'CompiledModule',
    'CompilerBackend',
    'HIPBackend',
    'KernelEntry',
    'ModuleFunction',
    'NumbaCudaKernel',
    'NumbaKernel',
    'PallasLFSR113RNG',
    'PallasLFSR128RNG',
    'PallasLFSR88RNG',
    'PallasLFSRRNG',
    'Prefer',
    'XLACustomKernel',
    'benchmark_function',
    'clear_cache',
    'defjvp',
    'export_checks',
    'general_batching_rule',
    'get_all_primitive_names',
    'get_cache_dir',
    'get_backend_record',
    'get_hybrid_config',
    'get_pallas_lfsr_rng_class',
    'get_primitives_by_tags',
    'get_registry',
    'init_csr_config',
    'jaxinfo_to_warpinfo',
    'jaxtype_to_warptype',
    'list_registered_targets',
    'load_cpp_file',
    'load_cpp_inline',
    'load_cuda_dir',
    'load_cuda_file',
    'load_cuda_inline',
    'normalize_tokens',
    'numba_cuda_callable',
    'numba_cuda_kernel',
    'numba_kernel',
    'print_diagnostics',
    'register_backend',
    'register_exported',
    'register_ffi_target',
    'set_cache_dir',
    'soften',
]
