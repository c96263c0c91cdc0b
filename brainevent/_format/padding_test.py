# SPDX-License-Identifier: Apache-2.0
"""Places without an entry belong to no row, whatever is done to the matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

D = np.array([[0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 0, 4], [0, 0, 5, 0]], np.float32)
N = 4
SPIKES, TRACE = np.array([1, 0, 0, 1], bool), np.array([10, 20, 30, 40], np.float32)
FULL, REST = np.ones(N, bool), np.arange(1, 5, dtype=np.float32)


def make(kind, mirror, traced):
    cls = getattr(be, kind)
    room = {'num_conn': 3} if kind.startswith('Fixed') else {'nse': 9}

    def build(d):
        room_of_all = {**room, 'nse': 9} if traced else room
        A = cls.fromdense(d, **room_of_all)
        return A.with_mirror() if mirror else A

    return jax.jit(build)(D) if traced else build(D)


CASES = [
    pytest.param(kind, mirror, traced, id=f'{kind}{", mirror" * mirror}{", traced" * traced}')
    for kind in ('CSR', 'CSC', 'COO', 'FixedNumPerPre', 'FixedNumPerPost')
    for mirror in (False, True)
    for traced in (False, True)
]


def pre(dense, spikes, trace):
    return np.where((dense != 0) & spikes[:, None], dense + trace, dense)


OPERATIONS = {
    'todense': (lambda A: A, D),
    'times': (lambda A: A * 2, D * 2),
    'times dense': (lambda A: A * (D + 1), D * (D + 1)),
    'minus': (lambda A: -A, -D),
    'absolute': (lambda A: abs(-A), D),
    'sum of two': (lambda A: A + A, D + D),
    'apply': (lambda A: A.apply(lambda w: w + 1), np.where(D != 0, D + 1, 0)),
    'update_on_pre': (lambda A: A.update_on_pre(SPIKES, TRACE), pre(D, SPIKES, TRACE)),
    'update_on_pre, all': (lambda A: A.update_on_pre(FULL, TRACE), pre(D, FULL, TRACE)),
    'clipped': (
        lambda A: A.update_on_pre(FULL, TRACE, 15.0, 25.0),
        np.where(D != 0, np.clip(D + TRACE, 15, 25), 0),
    ),
    'touched': (
        lambda A: A.update_on_pre(SPIKES, TRACE, 15.0, 25.0, clip='touched'),
        np.where((D != 0) & SPIKES[:, None], np.clip(D + TRACE, 15, 25), D),
    ),
    'update_on_post': (lambda A: A.update_on_post(TRACE, SPIKES), pre(D.T, SPIKES, TRACE).T),
    'update_on_post, all': (lambda A: A.update_on_post(TRACE, FULL), pre(D.T, FULL, TRACE).T),
    'new weights': (lambda A: A.with_data(jnp.ones_like(A.data)), (D != 0) * 1.0),
    'dt2t': (lambda A: A.with_data(A.dt2t(REST, A.data)), D * REST[:, None]),
    'transpose': (lambda A: A.T.T, D),
    'tocoo': (lambda A: A.tocoo(), D),
    'tocsr': (lambda A: A.tocsr(), D),
    'tocsc': (lambda A: A.tocsc(), D),
    'round trip': (lambda A: (A.tocsc().tocoo().tocsr() * 1).update_on_pre(FULL, TRACE), None),
    'slice_rows': (lambda A: A.slice_rows([3, 1, 1]), D[[3, 1, 1]]),
}
OPERATIONS['round trip'] = (OPERATIONS['round trip'][0], pre(D, FULL, TRACE))


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
@pytest.mark.parametrize(('kind', 'mirror', 'traced'), CASES)
def test_padding_stays_out_of_every_operation(kind, mirror, traced, backend):
    A = make(kind, mirror, traced)
    with be.use_backend(backend):
        for name, (run, want) in OPERATIONS.items():
            B = run(A)
            np.testing.assert_allclose(B.todense(), want, err_msg=name)
            np.testing.assert_allclose(B @ REST, want @ REST, err_msg=name)
            np.testing.assert_allclose(
                be.BinaryArray(np.ones(want.shape[0], bool)) @ B, want.sum(0), err_msg=name
            )
            np.testing.assert_allclose(B @ be.BinaryArray(SPIKES), want @ SPIKES, err_msg=name)


@pytest.mark.parametrize(('kind', 'mirror', 'traced'), CASES)
def test_padding_and_what_is_not_a_matrix(kind, mirror, traced):
    A = make(kind, mirror, traced)
    np.testing.assert_array_equal(A[[0, 3]], D[[0, 3]])
    np.testing.assert_array_equal(A[:, 1], D[:, 1])
    np.testing.assert_array_equal(A[3, 3], 0)
    np.testing.assert_array_equal(A.toscipy().toarray(), D)
    assert A.toscipy().nnz == 5
    np.testing.assert_array_equal(A.tobcoo().todense(), D)
    slope = jax.grad(lambda w: (A.with_data(w) @ REST).sum())(A.data)
    assert np.count_nonzero(slope) == 5 and slope.sum() == ((D != 0) @ REST).sum()
    if not kind.startswith('Fixed'):
        np.testing.assert_allclose(A.solve(REST), np.linalg.solve(D, REST), rtol=1e-6)
        np.testing.assert_array_equal(A.diag_add(REST).todense(), D + np.diag(REST))


def test_rows_of_a_table_by_traced_ids():
    A = make('FixedNumPerPre', False, False)
    got = jax.jit(lambda i: A.slice_rows(i))(jnp.array([3, 9, 0]))
    want = np.stack([D[3], np.zeros(N), D[0]])
    assert got.shape == (3, N) and got.nse == 9
    np.testing.assert_array_equal(got.todense(), want)
    np.testing.assert_array_equal(got @ REST, want @ REST)
