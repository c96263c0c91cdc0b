# SPDX-License-Identifier: Apache-2.0
"""From every format to every other, from and to matrices of other packages, and padding."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.experimental import sparse as jax_sparse

import brainevent as be
from brainevent._format.bridge import as_sparse

DENSE = np.array([[0, 1, 2, 0], [3, 0, 0, 4], [0, 5, 6, 0]], np.float32)  # two in every row
STORED = ['CSR', 'CSC', 'COO', 'FixedNumPerPre']


@pytest.fixture(autouse=True)
def reference():
    """Products by the reference kernels, which are made quickly; the conformance suite has all."""
    with be.use_backend('jax_raw'):
        yield


def near(got, want, **kw):
    np.testing.assert_allclose(np.asarray(got), want, **kw)


def with_repeats(kind, data=None):
    """Return a matrix of a format in which an entry is repeated and none in order."""
    row, col = np.array([2, 0, 2, 0, 1, 1]), np.array([1, 2, 1, 0, 0, 2])
    data = np.arange(1.0, 7.0, dtype=np.float32) if data is None else data
    coo = be.COO((data, row, col), shape=(3, 4))
    return {
        'COO': lambda: coo,
        'CSR': coo.tocsr,
        'CSC': coo.tocsc,
        'FixedNumPerPre': lambda: be.FixedNumPerPre._fromcoo(coo),
        'FixedNumPerPost': lambda: be.FixedNumPerPre._fromcoo(coo).T,
    }[kind]()


ALL = ['CSR', 'CSC', 'COO', 'FixedNumPerPre', 'FixedNumPerPost']


@pytest.mark.parametrize('to', ['tocsr', 'tocsc', 'tocoo'])
@pytest.mark.parametrize('kind', ALL)
def test_conversions_keep_repeats_units_and_the_one_weight(kind, to):
    A = with_repeats(kind)
    B = getattr(A, to)()
    assert type(B).__name__ == to[2:].upper()
    assert B.nse == A.nse == 6
    near(B.todense(), A.todense())
    one = getattr(with_repeats(kind).with_data(2.0 * u.mV), to)()
    assert one.data.shape == () and one.data.unit == u.mV
    near(one.todense().mantissa, with_repeats(kind).with_data(2.0).todense())
    if to[2:].upper() == kind:
        assert B is A


@pytest.mark.parametrize('to', ['tocsr', 'tocsc', 'tocoo'])
@pytest.mark.parametrize('kind', ALL)
def test_conversions_of_traced_matrices(kind, to):
    A = with_repeats(kind)
    near(jax.jit(lambda A: getattr(A, to)())(A).todense(), A.todense())

    def half(A, w):
        B = getattr(A.with_data(w), to)()
        assert not isinstance(getattr(B, B.structure[0]), jax.core.Tracer)  # known stays known
        return (B.data**2).sum()

    near(jax.jit(jax.grad(lambda w: half(A, w)))(A.data), 2 * A.data)


def test_conversion_leaves_out_what_traced_structure_puts_outside():
    @jax.jit
    def run(row, col):
        A = be.COO((jnp.array([1.0, 2.0, 4.0]), row, col), shape=(2, 2))
        return A.tocsr().todense(), A.tocsc().todense()

    want = [[0, 0], [4, 0]]
    for got in run(np.array([2, -1, 1]), np.array([0, 0, 0])):
        near(got, want)
    for got in run(np.array([0, 0, 1]), np.array([-1, 2, 0])):
        near(got, want)


@pytest.mark.parametrize('kind', STORED)
def test_from_dense(kind):
    cls = getattr(be, kind)
    A = cls.fromdense(DENSE * u.nS, backend='jax_raw')
    assert A.nse == 6 and A.data.unit == u.nS and A.backend == 'jax_raw'
    near(A.todense().mantissa, DENSE)
    ids = [getattr(A, name) for name in A.structure]
    assert {a.dtype.name for a in ids} == {'int32'}
    assert not A.mirror and cls.fromdense(DENSE, precompute_weight_indices=True).mirror


@pytest.mark.parametrize('kind', ['CSR', 'CSC', 'COO'])
def test_from_dense_with_a_number_of_entries(kind):
    cls = getattr(be, kind)
    wide = cls.fromdense(DENSE, nse=9)
    assert wide.nse == 9
    near(wide.todense(), DENSE)
    with pytest.raises(be.ShapeError, match='nse=6 at least'):
        cls.fromdense(DENSE, nse=2)
    short = jax.jit(lambda d: cls.fromdense(d, nse=2))(DENSE)
    assert np.isnan(short.data).all() and np.isnan(short @ jnp.ones(4)).any()
    with pytest.raises(be.DtypeError, match='too little room'):
        jax.jit(lambda d: cls.fromdense(d, nse=9))(DENSE.astype(int))
    traced = jax.jit(lambda d: cls.fromdense(d, nse=9))(DENSE)
    near(traced.todense(), DENSE)
    near(traced @ jnp.ones(4), DENSE.sum(1))
    near(traced.tocsc().todense(), DENSE)
    grad = jax.grad(lambda d: (cls.fromdense(d, nse=6) @ jnp.arange(4.0)).sum())(DENSE)
    near(grad, (DENSE != 0) * np.arange(4.0))
    assert cls.fromdense(np.zeros((0, 4)), nse=3).todense().shape == (0, 4)


def test_dense_matrices_give_away_what_is_not_zero():
    W = be.Dense(DENSE * u.nS)
    for to in ('tocoo', 'tocsr', 'tocsc'):
        A = getattr(W, to)()
        assert A.nse == 6 and A.data.unit == u.nS
        near(A.todense().mantissa, DENSE)
        near(jax.jit(lambda W, to=to: getattr(W, to)(nse=7))(W).todense().mantissa, DENSE)


def test_from_dense_says_what_is_missing():
    with pytest.raises(be.OptionError) as info:
        jax.jit(lambda d: be.CSR.fromdense(d).data)(DENSE)
    assert str(info.value).startswith(
        'CSR.fromdense: how many entries are not zero is not known in a traced matrix.'
    )
    with pytest.raises(be.ShapeError):
        be.CSR.fromdense(np.ones(3))
    with pytest.raises(ValueError, match='index_dtype'):
        be.CSR.fromdense(DENSE, index_dtype=np.int64)
    with pytest.raises(ValueError, match='index_dtype'):
        be.CSR.fromdense(DENSE, index_dtype=np.float32)


def test_index_dtypes_are_given_as_asked(x64):
    A = be.CSR.fromdense(DENSE, index_dtype=np.int64, indptr_dtype='int64')
    assert A.indices.dtype == A.indptr.dtype == np.int64


SCIPY = [
    'csr_array',
    'csc_array',
    'coo_array',
    'csr_matrix',
    'lil_array',
    'dok_array',
    'bsr_array',
    'dia_array',
]


@pytest.mark.parametrize('name', SCIPY)
def test_scipy_matrices_come_in(name):
    foreign = getattr(scipy.sparse, name)(DENSE)
    near(as_sparse(foreign).todense(), DENSE)
    for kind in STORED:
        A = getattr(be, kind).fromscipy(foreign, backend='jax_raw')
        assert type(A).__name__ == kind and A.backend == 'jax_raw'
        near(A.todense(), DENSE)
    expected = {'csr': 'CSR', 'csc': 'CSC'}.get(foreign.format, 'COO')
    assert type(as_sparse(foreign)).__name__ == expected


def test_scipy_keeps_no_hold_on_our_matrix():
    foreign = scipy.sparse.csr_array(DENSE)
    A = be.CSR.fromscipy(foreign)
    foreign.data[:] = 0
    near(A.todense(), DENSE)
    out = A.toscipy()
    out.data[:] = 0
    near(A.todense(), DENSE)


@pytest.mark.parametrize('kind', ALL)
def test_matrices_go_out(kind):
    A = with_repeats(kind)
    out = A.toscipy()
    assert out.format == {'CSR': 'csr', 'CSC': 'csc'}.get(kind, 'coo') and out.nnz == 6
    near(out.toarray(), A.todense())
    near(A.with_data(2.0).toscipy().toarray(), A.with_data(2.0).todense())
    near(A.with_data(A.data.astype(jnp.bfloat16)).toscipy().toarray(), A.todense())
    bcoo = A.tobcoo()
    assert isinstance(bcoo, jax_sparse.BCOO) and bcoo.nse == 6
    near(bcoo.todense(), A.todense())
    near(jax.jit(lambda A: A.tobcoo().todense())(A), A.todense())
    near(type(A.tocsr()).frombcoo(bcoo).todense(), A.todense())
    for convert in ('toscipy', 'tobcoo'):
        with pytest.raises(be.UnitError, match=f'{kind}.{convert}: the weights have a unit'):
            getattr(A.with_data(2.0 * u.mV), convert)()
    with pytest.raises(be.OptionError):
        jax.jit(lambda A: A.toscipy().nnz)(A)


@pytest.mark.parametrize('name', ['BCOO', 'BCSR', 'COO', 'CSR', 'CSC'])
@pytest.mark.parametrize('nse', [6, 9])
def test_jax_matrices_come_in_without_their_padding(name, nse):
    foreign = getattr(jax_sparse, name).fromdense(jnp.asarray(DENSE), nse=nse)
    ours = as_sparse(foreign)
    assert type(ours).__name__ == {'BCSR': 'CSR', 'CSR': 'CSR', 'CSC': 'CSC'}.get(name, 'COO')
    near(ours.todense(), DENSE)
    assert ours.nse == (nse if name == 'COO' else 6)  # there the padding looks like entries
    near(jax.jit(lambda m: be.CSR.fromscipy(m).todense())(foreign), DENSE)
    near(be.CSC.frombcoo(foreign).todense(), DENSE)


@pytest.mark.parametrize('name', ['COO', 'CSR', 'CSC'])
@pytest.mark.parametrize('nse', [6, 9])
def test_brainunit_matrices_come_in_with_their_unit(name, nse):
    foreign = getattr(u.sparse, name).fromdense(jnp.asarray(DENSE) * u.mS, nse=nse)
    ours = as_sparse(foreign)
    assert type(ours).__name__ == name
    near(ours.todense().to(u.mS).mantissa, DENSE)
    assert u.get_unit(ours.data) == u.mS


def test_what_is_no_sparse_matrix_is_told_apart():
    assert as_sparse(DENSE) is None
    assert as_sparse(jnp.asarray(DENSE)) is None
    assert as_sparse(DENSE * u.mV) is None
    A = be.CSR.fromdense(DENSE)
    assert as_sparse(A) is A
    with pytest.raises(be.DtypeError) as info:
        be.CSR.fromscipy(DENSE)
    assert str(info.value) == (
        'CSR.fromscipy: `mat` is no sparse matrix that is known here.\n'
        '    expected: a matrix of scipy.sparse, jax.experimental.sparse or brainunit.sparse\n'
        '    got:      ndarray\n'
        '    remedy:   use CSR.fromdense for an array'
    )
    with pytest.raises(be.ShapeError):
        as_sparse(jax_sparse.BCOO.fromdense(jnp.ones((2, 3, 4))))
    with pytest.raises(be.ShapeError):
        as_sparse(jax_sparse.BCOO.fromdense(jnp.asarray(DENSE), n_dense=1))
    with pytest.raises(be.ShapeError):
        as_sparse(scipy.sparse.coo_array(np.ones(3)))


@pytest.mark.parametrize(
    'make', [scipy.sparse.csr_array, jax_sparse.BCOO.fromdense, u.sparse.CSR.fromdense]
)
def test_events_multiply_foreign_matrices(make):
    foreign = make(DENSE)
    spikes = np.array([2.0, 0.0, -1.0], np.float32)
    near(be.BinaryArray(spikes) @ foreign, (spikes > 0) @ DENSE)


@pytest.mark.parametrize('to', ['tocsr', 'tocsc', 'tocoo'])
@pytest.mark.parametrize('kind', ['CSR', 'CSC', 'COO', 'FixedNumPerPre', 'JITCScalarR'])
def test_conversions_keep_buffers(kind, to):
    buffers = {'delay': jnp.arange(3)}
    D = np.float32([[1, 0, 2], [0, 3, 4]])
    if kind == 'JITCScalarR':
        A = be.JITCScalarR((1.0, 0.5, 3), shape=(2, 3), buffers=buffers)
    else:
        A = getattr(be, kind).fromdense(D, buffers=buffers)
    assert getattr(A, to)().delay.tolist() == [0, 1, 2]
