# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels beyond one warp and one block: long lines, many lines, wide batches, split sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.kernels import cuda_raw

pytestmark = pytest.mark.usefixtures('emulated')

# rows, columns, mean edges of a row: a thread, a warp and a block to a line; lines shared by blocks
SHAPES = {
    'thread': (700, 90, 3),
    'warp': (300, 211, 40),
    'block': (4, 2600, 2400),
    'shared': (2, 9000, 9000),
}


def matrix(rows, columns, mean, seed=0, dtype=np.float32):
    """Draw CSR arrays with rows of unequal lengths, some of them empty, and the dense matrix."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(mean // 2, 2 * mean - mean // 2 + 1, rows)
    lengths[::7] = 0 if rows > 7 else lengths[::7]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = rng.integers(0, columns, indptr[-1]).astype(np.int32)
    data = rng.normal(size=indptr[-1]).astype(dtype)
    dense = np.zeros((rows, columns))
    np.add.at(dense, (np.repeat(np.arange(rows), lengths), indices), data)
    return (data, indices, indptr), dense


@pytest.mark.parametrize('transpose', [False, True])
@pytest.mark.parametrize('tier', SHAPES)
def test_vectors(tier, transpose, emulated):
    rows, columns, mean = SHAPES[tier]
    csr, dense = matrix(rows, columns, mean)
    side = dense.T if transpose else dense
    rng = np.random.default_rng(1)
    x = rng.normal(size=side.shape[1]).astype(np.float32)
    spikes = rng.random(side.shape[1]) < 0.3
    for schedule in ('forward', 'random:3'):
        emulated(schedule)
        keywords = {'shape': dense.shape, 'transpose': transpose, 'backend': 'cuda_raw'}
        close(be.csrmv(*csr, x, **keywords), side @ x)
        close(be.binary_csrmv(*csr, spikes, **keywords), side @ spikes)


@pytest.mark.parametrize('transpose', [False, True])
@pytest.mark.parametrize('batch', [1, 2, 5, 33, 70])
def test_batches_of_every_width(batch, transpose):
    csr, dense = matrix(60, 41, 9)
    side = dense.T if transpose else dense
    rng = np.random.default_rng(2)
    x = rng.normal(size=(side.shape[1], batch)).astype(np.float32)
    keywords = {'shape': dense.shape, 'transpose': transpose, 'backend': 'cuda_raw'}
    close(be.csrmm(*csr, x, **keywords), side @ x)
    close(be.binary_csrmm(*csr, x > 0.5, **keywords), side @ (x > 0.5))


@pytest.mark.parametrize('dtype', [np.float32, jnp.float16])
def test_sums_that_threads_share_are_split_where_they_are_long(dtype, monkeypatch):
    monkeypatch.setattr(cuda_raw, 'SPLIT_EDGES', 10)
    csr, dense = matrix(50, 31, 8)
    ones = np.ones(50, bool)
    data = jnp.asarray(csr[0], dtype)
    got = jax.jit(
        lambda w: be.binary_csrmv(
            w, *csr[1:], ones, shape=(50, 31), transpose=True, backend='cuda_raw'
        )
    )(data)
    np.testing.assert_allclose(
        got, ones @ dense, rtol=1e-2 if dtype != np.float32 else 2e-5, atol=2e-2
    )


def test_offsets_of_64_bits():
    with jax.enable_x64(True):
        (data, indices, indptr), dense = matrix(30, 20, 6, dtype=np.float64)
        mat = be.CSR((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=dense.shape)
        assert mat.indptr.dtype == jnp.int32  # the door narrows what it can see
        x = np.linspace(-1, 1, 20)

        @jax.jit
        def product(ids, ptr):
            return be.csrmv(data, ids, ptr, x, shape=dense.shape, backend='cuda_raw')

        got = product(indices.astype(np.int64), indptr.astype(np.int64))
        np.testing.assert_allclose(got, dense @ x, rtol=1e-12)


@pytest.mark.parametrize('fires', ['pre', 'post'])
@pytest.mark.parametrize('tier', ['thread', 'warp', 'block'])
def test_plasticity(tier, fires):
    rows, columns, mean = SHAPES[tier]
    (data, indices, indptr), dense = matrix(rows, columns, mean)
    mat = be.CSR((data, indices, indptr), shape=dense.shape, backend='cuda_raw').with_mirror()
    rng = np.random.default_rng(3)
    pre, post = rng.random(rows), rng.random(columns)
    row = np.repeat(np.arange(rows), np.diff(indptr))
    if fires == 'pre':
        got = mat.update_on_pre(pre < 0.3, post.astype(np.float32)).data
        want = data + np.where((pre < 0.3)[row], post[indices], 0)
    else:
        got = mat.update_on_post(pre.astype(np.float32), post < 0.3).data
        want = data + np.where((post < 0.3)[indices], pre[row], 0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)
