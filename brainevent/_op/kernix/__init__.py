# SPDX-License-Identifier: Apache-2.0
"""Run-time compilation: C++ and CUDA C++ of the user's become functions that JAX calls."""

from brainevent._op.kernix.compilers import (
    CompilerBackend,
    CPPBackend,
    CUDABackend,
    HIPBackend,
)
from brainevent._op.kernix.exported import register_compiled
from brainevent._op.kernix.loaders import (
    load_cpp_file,
    load_cpp_inline,
    load_cuda_dir,
    load_cuda_file,
    load_cuda_inline,
    print_diagnostics,
)
from brainevent._op.kernix.module import CompiledModule, ModuleFunction, register_ffi_target
from brainevent._op.kernix.runtime import list_registered_targets
from brainevent._op.kernix.tokens import normalize_tokens

__all__ = [
    'CPPBackend',
    'CUDABackend',
    'CompiledModule',
    'CompilerBackend',
    'HIPBackend',
    'ModuleFunction',
    'list_registered_targets',
    'load_cpp_file',
    'load_cpp_inline',
    'load_cuda_dir',
    'load_cuda_file',
    'load_cuda_inline',
    'normalize_tokens',
    'print_diagnostics',
    'register_compiled',
    'register_ffi_target',
]
