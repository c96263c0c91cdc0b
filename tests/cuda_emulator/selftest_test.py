# SPDX-License-Identifier: Apache-2.0
"""The emulator judges right kernels right under every schedule, and finds every planted fault."""

import re
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent
from tests.cuda_emulator import control

KERNELS = Path(__file__).parent / 'kernels'


pytestmark = pytest.mark.skipif(control.missing() is not None, reason=str(control.missing()))

FAULTS = re.findall(
    r'^  (\w+),', (KERNELS / 'faults.cuh').read_text().split('enum Fault')[1], re.MULTILINE
)


def _marked_lines():
    """Return for each fault ``file:line`` of the line marked with its name."""
    found = {}
    for path in sorted(KERNELS.iterdir()):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in line.partition('// <- ')[2].split():
                found[name] = f'{path.name}:{number}'
    return found


MARKED = _marked_lines()


@pytest.fixture(scope='module')
def checked():
    return _load('check')


@pytest.fixture(scope='module')
def plain():
    return _load('plain')


def _load(mode):
    with control.emulated(mode):
        return brainevent.load_cuda_file(KERNELS / 'selftest.cu', name=f'selftest_{mode}')


class Case:
    """A call with its right answer; `fault` is planted in it."""

    def __init__(self, module, fault='none'):
        self.module = module
        self.fault = FAULTS.index(fault)
        self.rng = np.random.default_rng(0)

    def call(self, name, outs, *arrays, planted=True, aliases=None, **attrs):
        if planted:
            attrs['fault'] = np.int32(self.fault)
        function = self.module.function(name)

        def f(*arrays):
            return function(*arrays, outs=outs, input_output_aliases=aliases, **attrs)

        return jax.block_until_ready(jax.jit(f)(*arrays))

    def csr(self):
        """Return weights, indices, indptr, with empty rows; and the row of each entry."""
        degrees = self.rng.integers(0, 81, 300)
        degrees[::7] = 0
        indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
        indices = self.rng.integers(0, 211, indptr[-1]).astype(np.int32)
        weights = self.rng.normal(size=indptr[-1]).astype(np.float32)
        return weights, indices, indptr, np.repeat(np.arange(300), degrees)

    def scatter(self, dtype=np.float32, events=bool, tolerance=1e-4):
        weights, indices, indptr, rows = self.csr()
        fired = self.rng.random(300) < 0.2
        fired[-1] = True  # where reading past the end leaves the buffer
        right = np.zeros(211)
        np.add.at(right, indices, weights * fired[rows])
        out = jax.ShapeDtypeStruct((211,), dtype)
        y = self.call(
            'scatter', out, jnp.asarray(weights, dtype), indices, indptr, fired.astype(events)
        )
        np.testing.assert_allclose(np.asarray(y, np.float64), right, atol=tolerance, rtol=tolerance)

    def scatter_two_rows(self):
        weights, indices = np.ones(2, np.float32), np.zeros(2, np.int32)
        indptr, fired = np.array([0, 1, 2], np.int32), np.ones(2, bool)
        y = self.call('scatter', like(3), weights, indices, indptr, fired)
        np.testing.assert_array_equal(y, [2, 0, 0])

    def gather(self):
        weights, indices, indptr, rows = self.csr()
        fired = self.rng.random(211) < 0.2
        right = np.zeros(300)
        np.add.at(right, rows, weights * fired[indices])
        y = self.call('gather', like(300), weights, indices, indptr, fired)
        np.testing.assert_allclose(y, right, atol=1e-4)

    def block_sums(self):
        x = self.rng.normal(size=2000).astype(np.float32)
        y = self.call('block_sums', like(3), x)
        np.testing.assert_allclose(np.sum(y), x.sum(dtype=np.float64), atol=1e-3)

    def compact(self, size=3000):
        fired = self.rng.random(size) < 0.3
        found, count = self.call('compact', (like(size, np.int32), like(1, np.int32)), fired)
        n = int(count[0])
        assert sorted(np.asarray(found)[:n]) == list(np.flatnonzero(fired))
        assert (np.asarray(found)[n:] == -1).all()

    def scale_rows(self):
        b = self.rng.normal(size=(20, 33)).astype(np.float32)
        rows = np.array([3, 7, 19], np.int32)
        y = self.call(
            'scale_rows', like((20, 33)), b, rows, planted=False, aliases={0: 0},
            factor=np.float32(2.5),
        )  # fmt: skip
        b[rows] *= np.float32(2.5)
        np.testing.assert_array_equal(y, b)

    def huge(self):
        y = self.call('huge', like(32768), np.array([65537], np.int32))
        np.testing.assert_array_equal(y, np.zeros(32768))

    def warp_operations(self):
        x = self.rng.permutation(40).astype(np.int32)
        y = self.call('warp_operations', like((12, 40), np.int32), x, planted=False)
        for start, end in ((0, 32), (32, 40)):
            for k, row in enumerate(_warp_operations(x[start:end])):
                np.testing.assert_array_equal(y[k, start:end], row, err_msg=f'operation {k}')

    def three_dimensions(self):
        y = self.call('three_dimensions', like(12, np.int32), planted=False)
        t = np.arange(24)
        right = t[::2].sum() * 10000 + t[1::2].sum() * 10 + 8 + 7 + 6
        np.testing.assert_array_equal(y, np.full(12, right))

    def neighbours(self):
        x = self.rng.normal(size=64).astype(np.float32)
        np.testing.assert_array_equal(self.call('neighbours', like(64), x), x[np.arange(64) ^ 1])

    def maximum(self):
        x = self.rng.random(300).astype(np.float32)
        assert self.call('maximum', like(1), x)[0] == x.max()

    def fours(self):
        x = self.rng.random(64).astype(np.float32)
        y = self.call('fours', like(16), x)
        np.testing.assert_allclose(y, x.reshape(16, 4).sum(1), rtol=1e-6)

    def barriers(self):
        x = np.arange(64, dtype=np.int32)
        np.testing.assert_array_equal(self.call('barriers', like(64, np.int32), x), x)

    def complex_sum(self):
        x = (self.rng.normal(size=(300, 2)).astype(np.float32)).view(np.complex64)[:, 0]
        y = self.call('complex_sum', like(1, np.complex64), x, planted=False)
        np.testing.assert_allclose(y[0], x.sum(), rtol=1e-4)

    def squares(self):
        for n in (50, 70):
            y = self.call('squares', like(n, np.int32), planted=False)
            np.testing.assert_array_equal(y, np.arange(n) ** 2 + 1000)

    def faulty(self):
        x = np.ones(64, np.float32)
        y = self.call('faulty', like(64, np.int32), x)
        np.testing.assert_array_equal(y, np.arange(64))


def like(shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape if isinstance(shape, tuple) else (shape,), dtype)


def _warp_operations(v):
    """Yield what a warp of these lanes gets from each operation of the kernel."""
    n = len(v)
    lane = np.arange(n)
    everybody = 2**n - 1

    def signed(bits):
        return np.array(bits, np.int64).astype(np.uint32).view(np.int32)

    def votes(chosen):
        return signed(int(sum(1 << int(k) for k in lane[chosen])))

    yield np.full(n, v[3])
    yield v[np.where(lane >= 2, lane - 2, lane)]
    yield v[np.where(lane % 8 < 6, lane + 2, lane)]
    yield v[lane ^ 5] if n == 32 else v
    yield np.full(n, votes(v & 1 != 0))
    yield np.full(n, (v > 37).any())
    yield np.full(n, 1)
    yield np.array([votes(v % 3 == a % 3) for a in v])
    yield np.full(n, v.sum())
    yield np.full(n, v.max())
    ones = everybody.bit_count()
    table = [3, 1, 4, 1]
    yield np.array(
        [
            ones + (int(a) & -int(a)).bit_length() + 32 - int(a).bit_length() + table[k % 4]
            for k, a in enumerate(v)
        ]
    )
    yield np.full(n, v[1])


RIGHT = {
    'scatter': Case.scatter,
    'scatter, float events': lambda c: c.scatter(events=np.float32),
    'scatter, float16': lambda c: c.scatter(jnp.float16, tolerance=0.3),
    'scatter, bfloat16': lambda c: c.scatter(jnp.bfloat16, tolerance=1.0),
    'compact, one': lambda c: c.compact(1),
    'compact, part of a warp': lambda c: c.compact(31),
    **{
        name: getattr(Case, name)
        for name in (
            'scatter_two_rows', 'gather', 'block_sums', 'compact', 'scale_rows', 'huge',
            'warp_operations', 'three_dimensions', 'neighbours', 'maximum', 'fours', 'barriers',
            'complex_sum', 'squares', 'faulty',
        )
    },
}  # fmt: skip

PLANTED = {  # fault: (case, words of the finding)
    'past_the_end': ('scatter', '[out-of-bounds] read of 4 bytes'),
    'not_cleared': ('scatter', '[uninitialized] atomic update'),
    'not_atomic': ('scatter', '[race]'),
    'no_blocks': ('scatter_two_rows', '[bad-launch] grid (0,1,1)'),
    'lanes_leave': ('gather', '[warp-inactive] __shfl_down_sync reads lane'),
    'half_a_warp': ('gather', '[warp-inactive] __shfl_down_sync reads lane'),
    'rows_unwritten': ('gather', '[not-written]'),
    'no_barrier': ('block_sums', '[race]'),
    'lockstep_assumed': ('block_sums', '[race]'),
    'barrier_in_branch': ('block_sums', '[divergent-barrier]'),
    'too_little_shared': ('block_sums', '[out-of-bounds] write of 4 bytes'),
    'reused_too_soon': ('compact', '[race]'),
    'tail_unwritten': ('compact', '[not-written]'),
    'index_of_32_bits': ('huge', '[undefined] signed integer overflow (*)'),
    'no_syncwarp': ('neighbours', '[race]'),
    'blocks_assumed_ordered': ('maximum', '[race]'),
    'shared_unwritten': ('fours', '[uninitialized] read of element 5 of s'),
    'input_written': ('fours', '[write-to-input]'),
    'misaligned_vector': ('fours', '[undefined] misaligned'),
    'local_array_exceeded': ('fours', '[undefined] index out of a fixed-size array'),
    'host_waits': ('fours', '[host-api] cudaStreamSynchronize'),
    'two_barriers': ('barriers', '[divergent-barrier]'),
    'mask_without_self': ('barriers', '[warp-mask]'),
    'assertion': ('barriers', '[trap] assertion failed: x[t] < 5'),
    'wait_for_ever': ('barriers', '[deadlock]'),
    'spin_for_ever': ('barriers', '[runaway]'),
    'divide_by_zero': ('faulty', '[undefined] division by zero'),
    'other_threads_local': ('faulty', 'local memory of another thread'),
    'host_pointer': ('faulty', '[out-of-bounds] read of 4 bytes'),
    'copy_of_nothing': ('faulty', '[uninitialized] cudaMemcpyAsync'),
    'copy_too_long': ('faulty', '[host-api] cudaMemcpyAsync'),
    'too_much_static_shared': ('faulty', '[bad-launch] 49536 bytes of __shared__'),
    'too_much_dynamic_shared': ('faulty', '[bad-launch] 65536 bytes of dynamic shared'),
    'lines_of_shuffles_differ': ('faulty', '[divergent-warp] lanes meet'),
    'check_in_kernel': ('faulty', '[trap] thread 0'),
    'shift_too_far': ('faulty', '[undefined] shift'),
    'float_too_large': ('faulty', '[undefined] conversion'),
    'memcpy_too_long': ('faulty', '[out-of-bounds] read of 260 bytes: element 64 of x'),
    'launcher_reads': ('faulty', '[host-api] the launcher reads element 0 of x'),
}


@pytest.mark.parametrize('schedule', control.SCHEDULES)
def test_right_kernels_pass(checked, schedule):
    with control.schedule(schedule):
        for name, case in RIGHT.items():
            try:
                case(Case(checked))
            except Exception as cause:
                raise AssertionError(name) from cause


@pytest.mark.parametrize('schedule', ['forward', 'random:1'])
def test_right_kernels_pass_unchecked(plain, schedule):
    with control.schedule(schedule):
        for case in RIGHT.values():
            case(Case(plain))


def test_all_faults_are_planted():
    assert set(PLANTED) == set(FAULTS) - {'none'}
    assert set(MARKED) <= set(PLANTED)


@pytest.mark.parametrize('fault', PLANTED)
def test_planted_fault_is_found(checked, fault):
    case, words = PLANTED[fault]
    with (
        control.environment(BRAINEVENT_CUDA_EMULATOR_LIMIT='300000'),
        pytest.raises(Exception) as caught,  # noqa: B017, PT011 - XLA has a class for it in each release
    ):
        getattr(Case(checked, fault), case)()
    findings = [line for line in str(caught.value).splitlines() if words in line]
    assert findings, str(caught.value)
    assert any(MARKED.get(fault, '') in line for line in findings), (MARKED[fault], findings)


def test_findings_are_told_once_and_then_forgotten(checked):
    with pytest.raises(Exception, match='write-to-input'):
        Case(checked, 'input_written').fours()
    Case(checked).fours()


def test_double_is_added_atomically(checked):
    with jax.enable_x64(True):
        Case(checked).scatter(jnp.float64, tolerance=1e-12)


def test_calls_from_several_threads(checked):
    failed = []

    def work():
        try:
            for _ in range(3):
                Case(checked).gather()
                Case(checked).compact(500)
        except Exception as cause:
            failed.append(cause)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_error_of_the_launcher_is_not_hidden_by_results_it_did_not_write(checked):
    with pytest.raises(Exception, match='x and y differ in length'):
        Case(checked).call('faulty', like(3, np.int32), np.ones(4, np.float32))


STRAY = """
#include "brainevent/common.h"
__global__ void stray_kernel(float* y, int n) {
  y[threadIdx.x + n] = 1;
}
// @BE stray
void stray(BE::Tensor y, int by, cudaStream_t stream) {
  stray_kernel<<<1, 32, 0, stream>>>(y.data_ptr<float>(), by);
}
"""


def test_a_small_launch_in_a_folder_with_a_space(tmp_path):
    (tmp_path / 'my kernels').mkdir()
    file = tmp_path / 'my kernels' / 'stray.cu'
    file.write_text(STRAY)
    mappings = Path('/proc/self/maps')
    with control.emulated('check'):
        stray = brainevent.load_cuda_file(file, auto_register=False).function('stray')
        before = len(mappings.read_text().splitlines())
        ones = stray(outs=jax.ShapeDtypeStruct((32,), jnp.float32), by=0)
        assert ones.tolist() == [1] * 32
        # a process may have 65,530, and every library brings its own
        assert len(mappings.read_text().splitlines()) - before < 500
        with pytest.raises(jax.errors.JaxRuntimeError, match=r'out-of-bounds.* at stray.cu:4, '):
            jax.block_until_ready(stray(outs=jax.ShapeDtypeStruct((32,), jnp.float32), by=1))
