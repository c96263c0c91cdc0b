# SPDX-License-Identifier: Apache-2.0
"""What nvcc builds, without a GPU: warnings are errors, and handlers are driven by hand."""

import ctypes
import ctypes.util
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._op import cache
from brainevent._op.kernix.nvcc import find_nvcc
from tests.cuda import drive

SOURCE = r"""
#include "brainevent/cuda_common.h"

// Adds the weights of active rows to their columns, and to the row itself their sum.
template <class T>
__global__ void rows_kernel(const T* w, const int* index, const int* start, const bool* events,
                            T* y, int64_t rows) {
  for (int64_t row = BE::warp_index(); row < rows; row += BE::warp_count()) {
    BE_CHECK(start[row] <= start[row + 1]) << "this row ends before it starts";
    BE::accumulator_t<T> sum = 0;
    for (int e = start[row] + BE::lane(); e < start[row + 1]; e += 32) {
      sum += BE::widen(w[e]);
      if (BE::is_active(events[row])) BE::atomic_add(&y[index[e]], w[e]);
    }
    sum = BE::warp_sum(sum);
    if (BE::lane() == 0) BE::atomic_add(&y[row], BE::narrow<T>(sum));
  }
}

// @BE rows arg:float32[1] arg arg arg ret attr.unused stream
void rows(const BE::Tensor w, const BE::Tensor index, const BE::Tensor start,
          const BE::Tensor events, BE::Tensor y, float unused, cudaStream_t stream) {
  (void)unused;
  BE::clear(y, stream);
  rows_kernel<float><<<BE::blocks_for(y.numel(), 8), 256, 0, stream>>>(
      w.data_ptr<float>(), index.data_ptr<int>(), start.data_ptr<int>(), events.data_ptr<bool>(),
      y.data_ptr<float>(), y.numel());
  BE_CHECK_KERNEL_LAUNCH();
}

// @BE rows_of_any
void rows_of_any(const BE::Tensor w, const BE::Tensor index, const BE::Tensor start,
                 const BE::Tensor events, BE::Tensor y, int64_t stream) {
  const auto s = reinterpret_cast<cudaStream_t>(stream);
  BE::clear(y, s);
  BE_DISPATCH_FLOATING_AND_HALF(w.dtype(), T, {
    rows_kernel<T><<<BE::blocks_for(y.numel(), 8), 256, 0, s>>>(
        w.data_ptr<T>(), index.data_ptr<int>(), start.data_ptr<int>(), events.data_ptr<bool>(),
        y.data_ptr<T>(), y.numel());
  });
}

__global__ void counts_kernel(int* a, unsigned* b, long long* c, uint64_t* d, int64_t* e) {
  BE::atomic_add(a, 1);
  BE::atomic_add(b, 2u);
  BE::atomic_add(c, 3ll);
  BE::atomic_add(d, uint64_t(4));
  BE::atomic_add(e, int64_t(-5));
}

// @BE counts
void counts(BE::Tensor a, BE::Tensor b, BE::Tensor c, BE::Tensor d, BE::Tensor e, int64_t stream) {
  const auto s = reinterpret_cast<cudaStream_t>(stream);
  for (const BE::Tensor& tensor : {a, b, c, d, e}) BE::clear(tensor, s);
  counts_kernel<<<2, 32, 0, s>>>(a.data_ptr<int>(), b.data_ptr<unsigned>(),
                                 c.data_ptr<long long>(), d.data_ptr<uint64_t>(),
                                 e.data_ptr<int64_t>());
}
"""
W = np.arange(6)
INDEX = np.array([0, 1, 2, 0, 1, 2], np.int32)
START = np.array([0, 2, 2, 6], np.int32)
EVENTS = np.array([True, True, False])
WANTED = [1, 1, 14]  # row 0 is active: 0 to column 0, 1 to column 1; and the sums 1, 0, 14


@pytest.fixture(scope='module')
def module(tmp_path_factory):
    """Build for a GPU that need not be there; every warning is an error."""
    try:
        find_nvcc()
    except be.NvccNotFoundError:
        pytest.skip('nvcc is not installed')
    if not shutil.which('g++'):
        pytest.skip('nvcc needs g++')
    strict = ['-Werror', 'all-warnings', '-Xcompiler', '-Wall,-Wextra', '-O1']
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv('BRAINEVENT_CUDA_EMULATOR', raising=False)
        patch.setattr(cache, '_ready', None)
        patch.setattr(cache, '_chosen', tmp_path_factory.mktemp('nvcc'))
        return be.load_cuda_inline(
            'nvcc_test', SOURCE, compute_capability='9.0', extra_cuda_cflags=strict
        )


def handler(module, name):
    return drive.handler(ctypes.CDLL(module.path), name)


def test_what_is_built_is_for_the_gpu(module):
    assert (module.platform, module.ffi_platform) == ('gpu', 'CUDA')
    assert not module.is_emulated
    assert 'nvcc_test.rows' in be.list_registered_targets()


@pytest.mark.parametrize('name', ['rows', 'rows_of_any', 'counts'])
def test_version_and_traits(module, name):
    command_buffer_compatible = 1
    assert drive.metadata(handler(module, name)) == ((0, 1), command_buffer_compatible)


def test_calls_that_do_not_fit(module):
    rows = handler(module, 'rows')
    w, y = W.astype(np.float32), np.zeros(3, np.float32)
    arrays, attrs = [w, INDEX, START, EVENTS], {'unused': np.float32(1)}
    assert drive.call(rows, arrays[1:], [y], attrs) == (
        'rows: wrong number of operands.\n    expected: 4\n    got:      3'
    )
    assert 'wrong number of results' in drive.call(rows, arrays, [y, y], attrs)
    text = drive.call(rows, [INDEX, *arrays[1:]], [y], attrs)
    assert 'argument 0 (`w`) does not fit' in text
    assert 'expected: float32, 1 dimensions\n    got:      int32, 1 dimensions' in text
    text = drive.call(rows, arrays, [y], attrs, no_stream='there is no stream here')
    assert text == 'there is no stream here'


@pytest.mark.skipif(
    ctypes.util.find_library('cuda') is not None,
    reason='there is a driver, and no memory of the GPU in this test',
)
def test_without_a_driver_the_error_is_cudas_own(module):
    w, y = W.astype(np.float32), np.zeros(3, np.float32)
    arrays = [w, INDEX, START, EVENTS]
    rows = handler(module, 'rows')
    text = drive.call(rows, arrays, [y], {'unused': np.float32(1)})
    assert text.startswith('rows: CUDA driver version is insufficient for CUDA runtime version (')
    assert 'cuda_common.h:' in text
    text = drive.call(rows, arrays, [y], {'unused': np.float64(1)})
    assert 'attribute `unused` does not fit' in text  # refused before anything is launched
    assert 'driver' in drive.call(handler(module, 'rows_of_any'), arrays, [y])


def test_an_architecture_that_nvcc_does_not_know(module):
    with pytest.raises(be.UnsupportedArchError) as caught:
        be.load_cuda_inline('nvcc_test_new', SOURCE, compute_capability='99.9', auto_register=False)
    assert 'sm_999' in str(caught.value)


def test_the_helpers_compute_what_they_say(emulated):
    module = be.load_cuda_inline('nvcc_test_emulated', SOURCE, auto_register=False)
    assert (module.platform, module.is_emulated) == ('cpu', True)
    for dtype in ('float32', 'float16', 'bfloat16'):
        w = jnp.asarray(W, dtype)
        out = jax.ShapeDtypeStruct((3,), w.dtype)
        y = module['rows_of_any'](w, INDEX, START, EVENTS, outs=out)
        assert y.tolist() == WANTED
    dtypes = ('int32', 'uint32', 'int64', 'uint64', 'int64')
    with jax.enable_x64(True):
        counts = module['counts'](outs=[jax.ShapeDtypeStruct((1,), dtype) for dtype in dtypes])
    assert [int(n[0]) for n in counts] == [64, 128, 192, 256, -320]
