# SPDX-License-Identifier: Apache-2.0
"""Edges of drawn matrices in memory: lists along and across streams, and single elements."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.materialise import list_edges
from brainevent._format import csr
from brainevent._format.drawn import DRAWN_LAYOUT, listed

SHAPE = (9, 70)  # more than one block of positions
CLASSES = {'Scalar': (1.5,), 'Normal': (0.5, 2.0), 'Uniform': (-1.0, 2.0)}


def assert_close(a, b):
    assert a.unit == b.unit
    np.testing.assert_allclose(a.mantissa, b.mantissa, rtol=1e-5, atol=1e-6)


def matrix(kind, letter='R', prob=0.3, corder=False, backend=None, unit=None):
    numbers = CLASSES[kind]
    numbers = numbers if unit is None else tuple(x * unit for x in numbers)
    cls = getattr(be, f'JITC{kind}{letter}')
    return cls((*numbers, prob, 7), shape=SHAPE, corder=corder, backend=backend)


@pytest.mark.parametrize('corder', [False, True])
@pytest.mark.parametrize('letter', ['R', 'C'])
@pytest.mark.parametrize('kind', CLASSES)
@pytest.mark.parametrize('prob', [0.0, 0.02, 0.3, 1.0])
def test_elements_are_those_of_the_dense_matrix(kind, letter, corder, prob):
    A = matrix(kind, letter, prob, corder, unit=u.mV)
    D = A.todense()
    row, col = map(np.ravel, np.indices(SHAPE))
    assert_close(A[row, col], D.reshape(-1))
    assert_close(A[3, -1], D[3, -1])
    assert A[row.reshape(SHAPE), col.reshape(SHAPE)].shape == SHAPE
    i, j = jnp.array([0, 8, 9, -1, 4]), jnp.array([1, 69, 0, 3, 70])  # three lie outside
    got = jax.jit(lambda A, i, j: A[i, j])(A, i, j)
    want = [D.mantissa[0, 1], D.mantissa[8, 69], 0, 0, 0]
    np.testing.assert_allclose(got.mantissa[jnp.array([0, 1, 2, 4])], np.delete(want, 3), rtol=1e-6)


def test_elements_are_differentiable_and_mapped():
    row, col = map(np.ravel, np.indices(SHAPE))

    def chosen(loc, scale):
        A = be.JITCNormalR((loc, scale, 0.3, 7), shape=SHAPE)
        return (A[row, col] ** 2).sum(), (A.todense() ** 2).sum()

    for k in (0, 1):
        got, want = (jax.grad(lambda *p, n=n: chosen(*p)[n], k)(0.5, 2.0) for n in (0, 1))
        np.testing.assert_allclose(got, want, rtol=1e-4)
    seeds = jnp.arange(3)
    got = jax.vmap(lambda s: be.JITCScalarR((1.0, 0.3, s), shape=SHAPE)[row, col])(seeds)
    want = [be.JITCScalarR((1.0, 0.3, int(s)), shape=SHAPE).todense() for s in seeds]
    np.testing.assert_array_equal(got, np.reshape(want, (3, -1)))


def test_elements_of_a_matrix_that_could_not_be_dense():
    A = be.JITCNormalR((0.0, 1.0, 0.01, 3), shape=(2**30, 2**30))
    rows = A.shape[0] - 1 - np.arange(5)
    values = A[np.repeat(rows, 2000), np.tile(np.arange(2000), 5)]
    assert 50 < int((values != 0).sum()) < 160


@pytest.mark.parametrize('many', [1, 1 << 20])
@pytest.mark.parametrize('to', ['tocsr', 'tocsc', 'tocoo'])
@pytest.mark.parametrize('corder', [False, True])
@pytest.mark.parametrize('kind', CLASSES)
def test_lists_along_and_across_streams(kind, corder, to, many, monkeypatch):
    monkeypatch.setattr(csr, 'MANY', many)
    A = matrix(kind, corder=corder, unit=u.nS)
    L = getattr(A, to)()
    assert type(L).__name__ == to[2:].upper() and L.nse == A.nse
    assert_close(L.todense(), A.todense())
    assert L.data.size == (1 if kind == 'Scalar' else A.nse)
    with pytest.raises(be.OptionError, match='not room'):
        getattr(A, to)(nse=A.nse - 1)
    padded = getattr(A, to)(nse=A.nse + 5)
    assert padded.nse == A.nse + 5
    assert_close(padded.todense(), A.todense())


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
def test_keys_can_be_left_out(backend):
    arrays = jnp.float32([0.3]), jnp.uint32([0, 7])
    with be.use_backend('cpu', backend):
        ptr, (count, col, *keys) = listed(DRAWN_LAYOUT, arrays, SHAPE, 300)
        same = list_edges(DRAWN_LAYOUT, arrays, ptr, SHAPE, 300, keys=False)
    np.testing.assert_array_equal(same[0], count)
    np.testing.assert_array_equal(same[1], col)
    assert [x.size for x in (*keys, *same[2:])] == [300, 300, 0, 0]


@pytest.mark.parametrize('one', [False, True])
@pytest.mark.parametrize('kind', ['CSR', 'CSC'])
def test_turning_by_counting_is_turning_by_sorting(kind, one, monkeypatch):
    rng = np.random.default_rng(0)
    lines, far = (9, 70) if kind == 'CSR' else (70, 9)
    ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 12, lines))])
    ids = rng.integers(0, far, ptr[-1])
    weights = np.float32([2.0]) if one else rng.normal(size=ptr[-1]).astype(np.float32)
    A = getattr(be, kind)((weights, ids, ptr), shape=SHAPE)
    to = 'tocsc' if kind == 'CSR' else 'tocsr'
    by_sorting = getattr(A, to)()
    monkeypatch.setattr(csr, 'MANY', 1)
    by_counting = getattr(A, to)()
    for a, b in zip(jax.tree.leaves(by_sorting), jax.tree.leaves(by_counting), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    padded = be.CSR.fromdense(np.float32([[1, 0], [2, 3]]), nse=5)
    assert padded.tocsc().nse == 5 and (padded.tocsc().todense() == padded.todense()).all()
