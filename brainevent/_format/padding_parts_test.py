# SPDX-License-Identifier: Apache-2.0
"""Padding contributes to no operation, whatever its weight."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

D = np.array([[0, 2, 0], [1, 0, 3]], np.float32)
AT = (D != 0).astype(np.float32)
OPTIONS = {
    'CSR': {'nse': 5},
    'CSC': {'nse': 5},
    'COO': {'nse': 5},
    'FixedNumPerPre': {'num_conn': 3, 'nse': 5},
    'FixedNumPerPost': {'num_conn': 2, 'nse': 5},
}


@pytest.fixture(params=[(k, t) for k in OPTIONS for t in (False, True)], ids=str)
def padded(request):
    name, traced = request.param

    def make(d):
        return getattr(be, name).fromdense(d, **OPTIONS[name])

    A = (jax.jit(make) if traced else make)(D)
    assert A.nnz == 3 < A.nse
    return A.with_data(jnp.where(A.data == 0, 7.0, A.data))  # any weight may stand there


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
def test_padding_belongs_to_no_row(padded, backend):
    with be.use_backend(backend):
        for A in (padded, padded.with_mirror()):
            pre, post = jnp.array([True, True]), jnp.ones(3, bool)
            for got, want in (
                (A.todense(), D),
                (be.BinaryArray(pre) @ A, D.sum(0)),
                (A @ be.BinaryArray(post), D.sum(1)),
                (A @ jnp.ones(3), D.sum(1)),
                (jnp.ones((2, 2)) @ A, np.ones((2, 2)) @ D),
                (A.update_on_pre(pre, jnp.arange(1.0, 4)).todense(), D + AT * np.arange(1.0, 4)),
                (A.update_on_post(jnp.arange(1.0, 3), post).todense(), D + AT * [[1], [2]]),
                (A.apply(lambda w: w + 1).todense(), D + AT),
                ((A * D).todense(), D * D),
                ((A + A).todense(), 2 * D),
                (A + np.ones((2, 3), np.float32), D + 1),
                (A[:, :], D),
                (A[1], D[1]),
                (A[jnp.array([1, 0])], D[::-1]),
                (A.sum(), D.sum()),
                (A.max(), 3.0),
                (A.min(), 0.0),
                (A.T.todense(), D.T),
            ):
                np.testing.assert_allclose(got, want)


def test_padding_in_conversions(padded):
    for to in ('tocsr', 'tocsc', 'tocoo', 'toscipy', 'tobcoo'):
        np.testing.assert_allclose(getattr(padded, to)().todense(), D)
        if to in ('tocsr', 'tocsc', 'tocoo'):
            traced = jax.jit(lambda A, to=to: getattr(A, to)())(padded)
            np.testing.assert_allclose(traced.todense(), D)
            assert traced.nnz == 3
    assert padded.toscipy().nnz == 3


def test_padding_has_no_gradient(padded):
    def loss(w):
        A = padded.with_data(w)
        return (A @ jnp.ones(3)).sum() + (jnp.ones(2) @ A).sum() + A.todense().sum()

    grad = jax.grad(loss)(padded.data)
    np.testing.assert_allclose(grad, np.where(padded.data == 7, 0, 3))


def test_padding_survives_a_copy(padded):
    copy = jax.tree.map(lambda x: x + 0, pickle.loads(pickle.dumps(padded)))
    parts = [getattr(copy, name) for name in copy.structure]
    again = type(copy)((copy.data, *parts), shape=copy.shape)  # values are checked
    np.testing.assert_allclose(again.todense(), D)


def test_an_index_that_is_one_too_large_is_not_padding():
    with pytest.raises(be.IndexRangeError):
        be.CSR(([1.0, 2.0], [0, 3], [0, 1, 2]), shape=(2, 3))
    with pytest.raises(be.IndexRangeError, match='does not run over all entries'):
        be.CSR(([1.0, 2.0], [0, 1], [0, 1, 1]), shape=(2, 3))


@pytest.mark.parametrize('name', ['FixedNumPerPre', 'FixedNumPerPost'])
def test_a_table_that_is_too_narrow_shows(name):
    def make(d):
        return getattr(be, name).fromdense(d, nse=5, num_conn=1).data

    full = np.ones((2, 2), np.float32)
    with pytest.raises(be.ShapeError, match='`num_conn` is too small'):
        make(full)
    assert np.isnan(jax.jit(make)(full)).all()


def test_whole_numbers_cannot_show_it():
    with pytest.raises(be.DtypeError, match='whole numbers'):
        jax.jit(lambda d: be.CSR.fromdense(d, nse=2).data)(D.astype(int))
