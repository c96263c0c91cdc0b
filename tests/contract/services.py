# SPDX-License-Identifier: Apache-2.0
"""What is around operators: random numbers, settings, kernels, benchmarks, errors (§9 to §15)."""

import functools
import tempfile
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from tests.contract.table import (
    check,
    near,
)

# ---- §9 random numbers ---------------------------------------------------------------------------


@check('PallasLFSR88RNG', 'PallasLFSR113RNG', 'PallasLFSR128RNG', 'PallasLFSRRNG')
def _(name, kind):
    rng = kind(42)
    assert len(rng.key) == 4 and rng.randint().dtype == np.uint32
    assert 0 <= rng.rand() < 1 and 2 <= rng.uniform(2.0, 3.0) < 3
    assert 1 <= rng.random_integers(1, 6) <= 6
    assert np.isfinite(rng.randn()) and np.isfinite(rng.normal(0.0, 1.0))
    assert len(rng.generate_key(1)) == len(rng.generate_next_key()) == 4


@check('get_pallas_lfsr_rng_class')
def _(name, function):
    assert isinstance(be.PallasLFSRRNG(1), function())


# ---- §10, §11 settings and registry --------------------------------------------------------------


@check('config')
def _(name, config):
    assert config.get_lfsr_algorithm() == 'lfsr88' and config.get_backend('cpu') is None
    be.set_backend('cpu', 'jax_raw')
    assert be.get_backend('cpu') == config.get_backend('cpu') == 'jax_raw'
    be.clear_backends()
    config.set_compute_capability(['8.6', 'sm_90a'])
    assert config.get_compute_capability() == ['sm_86', 'sm_90a']
    config.set_compute_capability(None)
    assert isinstance(config.get_numba_parallel(), bool)
    assert config.get_numba_num_threads() is None or config.get_numba_num_threads() > 0
    for setter in ('set_numba_parallel', 'set_lfsr_algorithm', 'prefer_system_nvcc'):
        assert callable(getattr(config, setter))


@check('get_registry', 'get_primitives_by_tags', 'get_all_primitive_names')
def _(name, function):
    assert be.get_registry()['csrmv'] is be.csrmv_p
    assert set(be.get_primitives_by_tags({'csr', 'binary'})) >= {'binary_csrmv', 'binary_csrmm'}
    assert be.get_all_primitive_names() == sorted(be.get_registry())


# ---- §12 operators of one's own ------------------------------------------------------------------


def own_operator(name):
    op = be.XLACustomKernel(f'contract_{name}')
    op.def_kernel('jax_raw', 'cpu', lambda *, outs: lambda x: [x * 2])
    return op, lambda x: op(x, outs=[jax.ShapeDtypeStruct(x.shape, x.dtype)])[0]


@check('XLACustomKernel', 'KernelEntry')
def _(name, kind):
    _, call = own_operator(name)
    near(call(jnp.ones(3)), np.full(3, 2.0))
    assert be.KernelEntry('numba', 'cpu', print).backend == 'numba'


@check('defjvp', 'general_batching_rule')
def _(name, function):
    op, call = own_operator(name)
    be.defjvp(op, lambda dx, x, *, outs, **_: op(dx, outs=outs))
    near(jax.jvp(call, (jnp.ones(3),), (jnp.arange(3.0),))[1], 2 * np.arange(3.0))
    near(jax.vmap(call)(jnp.ones((2, 3))), np.full((2, 3), 2.0))
    assert callable(be.general_batching_rule)


@check('numba_kernel')
def _(name, function):
    numba = pytest.importorskip('numba')

    @numba.njit
    def add_one(x, out):
        out[:] = x + 1

    near(function(add_one, jax.ShapeDtypeStruct((3,), jnp.float32))(jnp.zeros(3)), np.ones(3))


@check('numba_cuda_kernel', 'numba_cuda_callable')
def _(name, function):
    with pytest.raises((be.BrainEventError, ImportError)):
        function(3, jax.ShapeDtypeStruct((3,), jnp.float32))


@check('jaxtype_to_warptype', 'jaxinfo_to_warpinfo')
def _(name, function):
    with pytest.raises(ImportError, match='warp'):
        function('float32')


@check('HybridConfig', 'get_hybrid_config', 'init_csr_config')
def _(name, function):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        assert function() == be.HybridConfig()


# ---- §13 compiled code ---------------------------------------------------------------------------


@check('normalize_tokens')
def _(name, function):
    assert function(['args', 'rets', 'attrs.k:int32']) == ['arg', 'ret', 'attr.k:int32']


@check('print_diagnostics', 'get_cache_dir', 'clear_cache', 'set_cache_dir')
def _(name, function):
    before = be.get_cache_dir()
    if name == 'clear_cache':
        assert function('contract_has_no_such_module') == 0
    elif name == 'set_cache_dir':
        function(before)
    else:
        function()
    assert be.get_cache_dir() == before


DOUBLED = """
#include "brainevent/common.h"
// @BE doubled
void doubled(const BE::Tensor x, BE::Tensor y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
}
"""


@functools.cache
def compiled():
    try:
        return be.load_cpp_inline('contract_cpp', DOUBLED)
    except be.HostCompilerNotFoundError as missing:
        pytest.skip(str(missing).splitlines()[0])


def doubles(target):
    out = jax.ShapeDtypeStruct((3,), jnp.float32)
    near(jax.ffi.ffi_call(target, out)(jnp.arange(3, dtype=jnp.float32)), [0, 2, 4])


@check('load_cpp_inline', 'CompiledModule')
def _(name, _):
    module = compiled()
    assert isinstance(module, be.CompiledModule) and module.function_names == ['doubled']
    assert Path(module.path).is_file() and module.content_hash
    with pytest.raises(KeyError):
        module.get_handler('tripled')
    doubles('contract_cpp.doubled')


@check('load_cpp_file')
def _(name, load):
    compiled()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'contract_file.cpp')
        path.write_text(DOUBLED)
        load(path)
    doubles('contract_file.doubled')


@check('register_ffi_target', 'list_registered_targets')
def _(name, function):
    be.register_ffi_target('contract.alias', compiled(), 'doubled', platform='cpu')
    assert 'contract.alias' in str(be.list_registered_targets())
    doubles('contract.alias')


@check('load_cuda_inline', 'load_cuda_file', 'load_cuda_dir')
def _(name, load):
    with tempfile.TemporaryDirectory() as folder, pytest.raises(be.KernelError):
        load('contract', '// no function') if 'inline' in name else load(Path(folder, 'none'))


@check('CompilerBackend', 'CUDABackend', 'CPPBackend', 'HIPBackend')
def _(name, kind):
    assert issubclass(kind, be.CompilerBackend)
    if name == 'HIPBackend':
        with pytest.raises(NotImplementedError):
            kind().compile_source('', 'x.so', '.')


# ---- §14 benchmarks ------------------------------------------------------------------------------


@check('BenchmarkConfig', 'BenchmarkRecord', 'BenchmarkResult', 'benchmark_function')
def _(name, _):
    config = be.BenchmarkConfig('x', (np.ones(3),))
    assert config.put_args()[0].shape == (3,)
    mean, std, low, high, output = be.benchmark_function(jnp.sum, 1, 2, 1, config.args)
    assert low <= mean <= high and output == 3
    record = be.BenchmarkRecord('cpu', 'numba', 'x', 1.0, 0.0, 1.0, 1e3, True, None, {}, {})
    result = be.BenchmarkResult([record], 'op')
    assert result.fastest() is record and result.to_dict()['primitive_name'] == 'op'


# ---- §15 errors ----------------------------------------------------------------------------------

ERRORS = {
    'BrainEventError': Exception,
    'MathError': 'BrainEventError',
    'UnsupportedOperationError': 'BrainEventError',
    'BenchmarkDataFnNotProvidedError': 'BrainEventError',
    'KernelError': 'BrainEventError',
    'KernelNotAvailableError': 'KernelError',
    'KernelCompilationError': 'KernelError',
    'KernelFallbackExhaustedError': 'KernelError',
    'KernelExecutionError': 'KernelError',
    'CUDANotInstalledError': 'KernelError',
    'KernelToolchainError': 'KernelError',
    'KernelRegistrationError': 'KernelError',
    'KernelLoadError': 'KernelError',
    'CompilationError': 'KernelCompilationError',
    'HostCompilerIncompatibleError': 'CompilationError',
    'NvccNotFoundError': 'KernelToolchainError',
    'HostCompilerNotFoundError': 'KernelToolchainError',
    'HeaderNotFoundError': 'KernelToolchainError',
    'GpuArchDetectionError': 'KernelToolchainError',
    'UnsupportedArchError': 'KernelToolchainError',
}


@check(*ERRORS)
def _(name, kind):
    parent = ERRORS[name]
    assert issubclass(kind, getattr(be, parent) if isinstance(parent, str) else parent)
    assert isinstance(kind('text'), Exception) and str(kind('text')) == 'text'
