# SPDX-License-Identifier: Apache-2.0
"""Calls written for earlier releases still bind: parameters, their order, and their defaults."""

import inspect

import pytest

import brainevent as be

BOUNDS = 'w_min=None, w_max=None, *, shape, backend=None'
LOOSE = 'w_min=None, w_max=None, *, backend=None'
TURNED = '*, shape, transpose=False, backend=None'
CORDER = '*, shape, transpose=False, corder=True, backend=None'
ROWS = 'data, indices, indptr'
DRAWN = '*, shape, corder=False, backend=None, buffers=None'

SIGNATURES = {
    'bitpack': 'arr, axis',
    'CompactBinary': 'packed, active_ids, n_active, value, n_orig, batch_size=None, bit_width=32',
    'BinaryArray': 'value',
    **dict.fromkeys(
        ('CSR', 'CSC'),
        'data, indices=None, indptr=None, *, shape, backend=None, buffers=None, '
        "indptr_dtype='auto', check_structure=True",
    ),
    'COO': 'data, row=None, col=None, ptr=None, *, shape, rows_sorted=False, cols_sorted=False, '
    'backend=None, buffers=None',
    'Dense': 'data, *, shape=None, backend=None, buffers=None',
    'FixedNumPerPre': 'data, indices=None, *, shape, backend=None, '
    'precompute_weight_indices=False, buffers=None',
    'FixedNumPerPost': 'data, indices=None, *, shape, backend=None, '
    'precompute_weight_indices=False, buffers=None',
    'CSR.fromdense': "mat, *, nse=None, index_dtype=None, indptr_dtype='auto', backend=None, "
    'precompute_weight_indices=False',
    'CSR.update_on_pre': 'self, pre_spike, post_trace, w_min=None, w_max=None',
    'CSR.update_on_post': 'self, pre_trace, post_spike, w_min=None, w_max=None',
    'CSR.dt2t': 'self, y_dim_arr, w_dim_arr',
    'CSR.dt2t_transposed': 'self, y_dim_arr, w_dim_arr',
    'CSR.yw_to_w': 'self, y_dim_arr, w_dim_arr',
    'CSR.diag_add': 'self, other',
    'CSR.tree_unflatten': 'aux_data, children',
    'JITCScalarR.dt2t': 'self, y_dim_arr, w_dim_arr',
    'BinaryArray.tree_unflatten': 'aux_data, flat_contents',
    'BitPackedBinary.dot': 'self, oc',
    'config.set_lfsr_algorithm': 'algorithm',
    'jaxinfo_to_warpinfo': 'jax_info',
    'XLACustomKernel.def_batching_rule': 'self, fun',
    'CSR.solve': 'self, b, tol=1e-6, reorder=1',
    'csrmv': f'{ROWS}, v, {TURNED}',
    'csrmm': f'{ROWS}, B, {TURNED}',
    'binary_csrmv': f'{ROWS}, v, *, shape, workspace=None, transpose=False, backend=None',
    'binary_csrmm': f'{ROWS}, B, *, shape, workspace=None, transpose=False, backend=None',
    'binary_csrmv_indexed': f'{ROWS}, perm, v, *, shape, workspace=None, transpose=False, '
    'backend=None',
    'binary_csrmm_indexed': f'{ROWS}, perm, B, *, shape, workspace=None, transpose=False, '
    'backend=None',
    **dict.fromkeys(
        ('csrmv_dt2t', 'csrmm_dt2t', 'cscmv_dt2t', 'cscmm_dt2t', 'csrmv_yw2y'),
        f'y, w, indices, indptr, {TURNED}',
    ),
    'csr_slice_rows': f'{ROWS}, row_indices, *, shape, backend=None',
    'update_csr_on_binary_pre': f'weight, indices, indptr, pre_spike, post_trace, {BOUNDS}',
    'update_csr_on_binary_post': 'weight, indices, indptr, weight_indices, pre_trace, post_spike, '
    f'{BOUNDS}',
    'update_csc_on_binary_pre': f'weight, indices, indptr, pre_spike, post_trace, {BOUNDS}',
    'update_csc_on_binary_post': f'weight, indices, indptr, pre_trace, post_spike, {BOUNDS}',
    'update_dense_on_binary_pre': f'weight, pre_spike, post_trace, {LOOSE}',
    'update_dense_on_binary_post': f'weight, pre_trace, post_spike, {LOOSE}',
    'update_coo_on_binary_pre': f'weight, pre_ids, post_ids, pre_spike, post_trace, {LOOSE}',
    'update_coo_on_binary_post': f'weight, pre_ids, post_ids, pre_trace, post_spike, {LOOSE}',
    'update_fixed_post_conn_on_binary_pre': f'data, indices, pre_spike, post_trace, {BOUNDS}',
    'update_fixed_pre_conn_on_binary_post': f'data, indices, pre_trace, post_spike, {BOUNDS}',
    'coomv': f'data, row, col, vector, {TURNED}',
    'coomm': f'data, row, col, B, {TURNED}',
    'binary_densemv': 'weights, spikes, *, transpose=False, backend=None',
    'binary_densemm': 'weights, spikes, *, transpose=False, backend=None',
    'fcnmv': f'weights, indices, vector, {TURNED}',
    'fcnmm': f'weights, indices, matrix, {TURNED}',
    'binary_fcnmv': f'weights, indices, spikes, {TURNED}',
    'binary_fcnmm': f'weights, indices, matrix, {TURNED}',
    'fcnmv_dt2t': f'weights, indices, y, {TURNED}',
    'fcnmm_dt2t': f'weights, indices, y, {TURNED}',
    'jits': f'weight, prob, seed, {CORDER}',
    'jitn': f'w_loc, w_scale, prob, seed, {CORDER}',
    'jitu': f'w_low, w_high, prob, seed, {CORDER}',
    'jitsmv': f'weight, prob, vector, seed=None, {CORDER}',
    'binary_jitnmm': f'w_loc, w_scale, prob, B, seed=None, {CORDER}',
    'jitumv_dt2t': f'w_low, w_high, prob, y, seed, {CORDER}',
    'JITCScalarR': f'weight, prob=None, seed=None, {DRAWN}',
    'JITCNormalC': f'loc, scale=None, prob=None, seed=None, {DRAWN}',
    'JITCUniformR': f'low, high=None, prob=None, seed=None, {DRAWN}',
    'coo_to_csc_index': 'pre_ids, indices, *, shape',
    'coo2csr': 'row_ids, col_ids, *, shape',
    'csr_to_coo_index': 'indptr, indices',
    'csr_to_csc_index': "csr_indptr, csr_indices, *, shape, include_perm=True, method='coo', "
    'column_block_size=4096',
    'PallasLFSR88RNG': 'seed',
    'PallasLFSR88RNG.randn': 'self, epsilon=1e-10',
    'PallasLFSR88RNG.normal': 'self, mu, sigma, epsilon=1e-10',
    'PallasLFSR88RNG.random_integers': 'self, low, high',
    'config.set_numba_parallel': 'parallel=True, num_threads=None',
    'config.set_backend': 'platform, backend',
    'config.prefer_system_nvcc': 'enable=True',
    'XLACustomKernel': 'name, doc=None',
    'XLACustomKernel.def_kernel': 'self, backend, platform, kg, asdefault=False',
    'numba_kernel': 'kernel, outs, *, vmap_method=None, input_output_aliases=None',
    'numba_cuda_kernel': 'kernel, outs, *, grid=None, block=None, launch_dims=None, '
    'threads_per_block=256, shared_mem=0, vmap_method=None, input_output_aliases=None',
    'numba_cuda_callable': 'func, outs, *, vmap_method=None, input_output_aliases=None',
    'load_cpp_inline': 'name, cpp_sources, functions=None, *, extra_cflags=None, '
    'extra_ldflags=None, extra_include_paths=None, build_directory=None, verbose=False, '
    'force_rebuild=False, replace=False, auto_register=True, target_prefix=None',
    'load_cuda_inline': 'name, cuda_sources, functions=None, *, extra_cuda_cflags=None, '
    'extra_ldflags=None, extra_include_paths=None, build_directory=None, verbose=False, '
    'compute_capability=None, force_rebuild=False, replace=False, auto_register=True, '
    'target_prefix=None, optimization_level=3, use_fast_math=False, allow_cuda_graph=True',
    'CompiledModule': 'so_path, function_names',
    'register_ffi_target': "target_name, module, func_name, *, platform='CUDA', replace=False, "
    'content_id=None',
    'clear_cache': 'name=None',
    'HybridConfig': 'block_size=256, fixed_scatter_blocks=2048, tpr_threshold=128, '
    'task_nnz=4096, benchmark_records=()',
    'init_csr_config': 'save=True, device_kind=None',
    'BenchmarkConfig': 'name, args, kernel_kwargs=None, data_kwargs=None',
    'BenchmarkRecord': 'platform, backend, label, mean_ms, std_ms, min_ms, throughput, success, '
    'error, kernel_kwargs, data_kwargs',
    'BenchmarkResult': "records, primitive_name=''",
    'BenchmarkResult.print': 'self, sort_by=None, group_by=None, compare_by=None, '
    'highlight_best=True, order_by=None, speedup_vs=None, vary_by=None',
    'BenchmarkResult.plot': "self, ax=None, x=None, y='mean_ms', hue=None, style=None, "
    "kind='line', show=False",
    'BenchmarkResult.save': "self, path, format='json'",
    'benchmark_function': 'fn, n_warmup, n_runs, n_batch_per_run=1, data=()',
    'CompilationError': "message, compiler_output='', command='', stage='compile'",
}

FREE = {'index_dtype', 'kernel_kwargs', 'data_kwargs', 'buffers', 'tol', 'reorder'}
"""Parameters whose default is another object of the same meaning, or that are not used."""


def found(name):
    where = be
    for part in name.split('.'):
        where = getattr(where, part)
    return where


@pytest.mark.parametrize('name', SIGNATURES)
def test_a_call_still_binds(name):
    wanted = inspect.signature(eval(f'lambda {SIGNATURES[name]}: None')).parameters
    present = inspect.signature(found(name)).parameters
    by_position = [p.name for p in present.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    extra = any(p.kind is p.VAR_KEYWORD for p in present.values())
    order = [p.name for p in wanted.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    if name == 'init_csr_config':  # keywords only
        order = []
    assert by_position[: len(order)] == order
    for parameter in wanted.values():
        assert parameter.name in present or extra, parameter.name
        free = parameter.name in FREE or parameter.default is parameter.empty
        if parameter.name in present and not free:
            default = present[parameter.name].default
            assert default == parameter.default, parameter.name
    needed = {p.name for p in present.values() if p.default is p.empty and p.kind < p.VAR_KEYWORD}
    assert needed - {p.name for p in present.values() if p.kind is p.VAR_POSITIONAL} <= set(wanted)


def test_shorter_keywords_of_this_code_stay_accepted():
    A = be.CSR(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    assert A.dt2t(y=[10.0, 100.0], w=A.data).tolist() == [10.0, 20.0, 300.0]
    assert A.dt2t(y_dim_arr=[10.0, 100.0], w_dim_arr=A.data).tolist() == [10.0, 20.0, 300.0]
    both = (
        {'indptr': A.indptr, 'indices': A.indices},
        {'csr_indptr': A.indptr, 'csr_indices': A.indices},
    )
    for names in both:
        assert be.csr_to_csc_index(**names, shape=A.shape)[1].tolist() == [0, 1, 0]
    with pytest.raises(TypeError, match='which are one'):
        A.dt2t(y=1, y_dim_arr=2, w=A.data)
    be.config.set_compute_capability()
