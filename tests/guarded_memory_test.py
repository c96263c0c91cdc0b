# SPDX-License-Identifier: Apache-2.0
"""Native kernels touch nothing behind the arrays they were given: the next page is protected."""

import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, itertools, mmap
import jax, jax.numpy as jnp, numpy as np
import brainevent as be

libc = ctypes.CDLL(None)
PAGE, kept = mmap.PAGESIZE, []

def guarded(x):
    pages = -(-x.nbytes // PAGE)
    memory = mmap.mmap(-1, (pages + 1) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(start + pages * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    view = np.frombuffer(memory, x.dtype, x.size, pages * PAGE - x.nbytes)
    view[:] = x
    taken = jax.dlpack.from_dlpack(view)
    assert taken.unsafe_buffer_pointer() == view.ctypes.data, 'copied'
    kept.append((memory, view))
    return taken

m, spikes = 64, jnp.array([False, True, True])
for long, last in itertools.product((0, 3, 16, 41, 42, 43, 44), (0, 1, 2, 3, 5)):
    edges = long + last
    ptr = np.cumsum([0, -edges % 16, long, last]).astype(np.int32)  # 64 bytes: nothing is copied
    rng = np.random.default_rng(edges)
    ids = guarded(rng.integers(0, m, ptr[-1]).astype(np.int32))
    tags = guarded(rng.permutation(ptr[-1]).astype(np.int32))
    w = guarded(rng.normal(size=ptr[-1]).astype(np.float32))
    old, used = np.array(w), slice(ptr[1], None)
    new = be.update_csr_on_binary_post(w, ids, ptr, tags, jnp.ones(m), spikes, shape=(m, 3))
    step = np.zeros_like(old)
    step[np.asarray(tags)[used]] = 1
    np.testing.assert_allclose(new, old + step, rtol=1e-6)
    far = np.asarray(ids)[used]
    for got, each in (
        (be.binary_csrmv_indexed(w, ids, ptr, tags, spikes, shape=(3, m), transpose=True),
         old[np.asarray(tags)[used]]),
        (be.binary_csrmv(w, ids, ptr, spikes, shape=(3, m), transpose=True), old[used]),
    ):
        np.testing.assert_allclose(got, np.bincount(far, each, m), rtol=1e-5, atol=1e-5)
print('sound')
"""


@pytest.mark.skipif(sys.platform != 'linux', reason='pages are protected as Linux does it')
def test_nothing_is_read_behind_an_array():
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout.strip()) == (0, 'sound'), done.stderr[-2000:]


PARTS = 24  # of all native operators, chosen by a hash of their names
EVERY_OPERATOR = pathlib.Path(__file__).parent / 'native_bounds.py'


@pytest.mark.skipif(sys.platform != 'linux', reason='pages are protected as Linux does it')
@pytest.mark.parametrize(
    'part', [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, PARTS))]
)
def test_no_operator_touches_what_is_behind_an_array(part):
    """Sound structure, wild structure, and every operand with five other lengths."""
    done = subprocess.run(
        [sys.executable, str(EVERY_OPERATOR), str(part), str(PARTS)],
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0, (done.returncode, last, done.stderr[-2000:])
    name, runs, refusals = last[0].split()
    assert name == 'DONE' and int(runs) > 0 and int(refusals) > 0
