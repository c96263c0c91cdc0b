# SPDX-License-Identifier: Apache-2.0
"""Numbers as users have them: narrow ids, other byte orders, masks, long doubles, 64 bits."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

M, N = 300, 5
D = np.random.default_rng(0).integers(0, 3, (M, N)).astype(np.float32)
DTYPES = ['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64']


def table():
    rows = np.stack([np.arange(M) % N, (np.arange(M) + 2) % N], 1)
    return be.FixedNumPerPre(
        (np.arange(2.0 * M, dtype=np.float32).reshape(M, 2), rows), shape=(M, N)
    )


FORMATS = {
    'CSR': lambda: be.CSR.fromdense(D),
    'CSC': lambda: be.CSC.fromdense(D),
    'COO': lambda: be.COO.fromdense(D),
    'Dense': lambda: be.Dense(D),
    'FixedNumPerPre': table,
    'FixedNumPerPost': lambda: be.FixedNumPerPost((table().data, table().indices), shape=(N, M)).T,
    'JITCScalarR': lambda: be.JITCScalarR((1.5, 0.5, 3), shape=(M, N)),
    'JITCNormalC': lambda: be.JITCNormalC((1.5, 0.5, 0.5, 3), shape=(M, N)),
}


def ids_of(dtype):
    """Return rows that a narrow dtype can name, though their sums with the extent do not fit."""
    return np.array([50, 127 if dtype == 'int8' else 250, 0], dtype)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('kind', FORMATS)
def test_ids_of_any_dtype_name_the_same_entries(kind, dtype):
    A = FORMATS[kind]()
    dense, ids = np.asarray(A.todense()), ids_of(dtype)
    rows = ids.astype(int)
    for given in (ids, jnp.asarray(ids)):
        np.testing.assert_allclose(A[given], dense[rows], rtol=1e-6)
        np.testing.assert_allclose(A.T[:, given], dense.T[:, rows], rtol=1e-6)
        np.testing.assert_allclose(A[given, given % N], dense[rows, rows % N], rtol=1e-6)
        np.testing.assert_allclose(A[given[1], 2], dense[rows[1], 2], rtol=1e-6)
        np.testing.assert_allclose(A[given, 1:3], dense[rows, 1:3], rtol=1e-6)
    np.testing.assert_allclose(A.slice_rows(ids).todense(), dense[rows], rtol=1e-6)
    traced = jax.jit(lambda i: (A[i], A.T[:, i], A[i, i % N]))(jnp.asarray(ids))
    for got, want in zip(
        traced, (dense[rows], dense.T[:, rows], dense[rows, rows % N]), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize('dtype', ['int8', 'int16', 'int32', 'int64'])
def test_negative_ids_of_a_narrow_dtype(dtype):
    A, ids = FORMATS['CSR'](), np.array([-1, -128], dtype)
    np.testing.assert_array_equal(A[ids], D[ids.astype(int)])
    np.testing.assert_array_equal(jax.jit(lambda i: A[i])(jnp.asarray(ids)), D[ids.astype(int)])


@pytest.mark.parametrize('dtype', ['int8', 'uint8', 'uint64'])
def test_ids_outside_are_refused_when_concrete_and_zero_when_traced(dtype):
    A, bad = be.CSR.fromdense(D[:20]), np.array([127], dtype)
    with pytest.raises(be.IndexRangeError, match='127'):
        A[bad]
    np.testing.assert_array_equal(jax.jit(lambda i: A[i])(jnp.asarray(bad)), np.zeros((1, N)))


def test_ids_beyond_63_bits():
    A = FORMATS['CSR']()
    with pytest.raises(be.IndexRangeError, match='18446744073709551615'):
        A[np.array([2**64 - 1], np.uint64)]


@pytest.mark.parametrize('dtype', DTYPES)
def test_conversions_take_offsets_and_ids_of_any_dtype(dtype):
    indptr, indices = np.array([0, 2, 3], dtype), np.array([0, 2, 1], dtype)
    want = ([0, 1, 2, 3], [0, 1, 0], [0, 2, 1])
    for make in (np.asarray, jnp.asarray):
        for got in (
            be.csr_to_csc_index(make(indptr), make(indices), shape=(2, 3)),
            jax.jit(lambda p, i: be.csr_to_csc_index(p, i, shape=(2, 3)))(indptr, indices),
        ):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g, w)
        row, col = be.csr_to_coo_index(make(indptr), make(indices))
        assert (np.asarray(row).tolist(), np.asarray(col).tolist()) == ([0, 0, 1], [0, 2, 1])
        back = be.coo2csr(make(np.array([0, 0, 1], dtype)), make(indices), shape=(2, 3))
        np.testing.assert_array_equal(back[0], [0, 2, 3])


@pytest.mark.parametrize('dtype', DTYPES)
def test_structure_of_any_dtype_without_a_warning(dtype):
    ends = np.array([0, 2, 1], dtype), np.array([0, 2, 3], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for make in (np.asarray, jnp.asarray):
            A = be.CSR(([1.0, 2.0, 3.0], *map(make, ends)), shape=(2, 3))
            np.testing.assert_array_equal(A.todense(), [[1, 0, 2], [0, 3, 0]])
            traced = jax.jit(lambda i, p: be.CSR(([1.0, 2.0, 3.0], i, p), shape=(2, 3)).todense())
            np.testing.assert_array_equal(traced(*map(make, ends)), A.todense())


def test_traced_ids_beyond_31_bits_lie_outside():
    ids = jnp.array([0, 2**32 - 1], jnp.uint32)
    made = jax.jit(lambda i: be.COO(([1.0, 2.0], jnp.zeros(2, int), i), shape=(1, 2)).todense())
    np.testing.assert_array_equal(made(ids), [[1, 0]])


# ---- what JAX cannot hold as it is ------------------------------------------------------

SMALL = np.array([[0, 2, 0], [3, 0, 5]], np.float32)
PLACES = {
    'weights': lambda a: be.CSR((a(np.float32([2, 3, 5])), [1, 0, 2], [0, 1, 3]), shape=(2, 3)),
    'with_data': lambda a: be.CSR.fromdense(SMALL).with_data(a(np.float32([2, 3, 5]))),
    'fromdense': lambda a: be.COO.fromdense(a(SMALL)),
    'Dense': lambda a: be.Dense(a(SMALL)),
    'times one': lambda a: be.CSR.fromdense(SMALL) * a(np.ones((2, 3), np.float32)),
}
OPERANDS = {
    'operand': lambda a: be.CSR.fromdense(SMALL) @ a(np.eye(3, dtype=np.float32)),
    'left operand': lambda a: a(np.eye(2, dtype=np.float32)) @ be.CSR.fromdense(SMALL),
    'events': lambda a: be.BinaryArray(a(np.eye(2, dtype=np.float32))) @ be.CSC.fromdense(SMALL),
    'masked events': lambda a: be.MaskedFloat(a(np.eye(2, dtype=np.float32))) @ SMALL,
    'beside events': lambda a: be.BinaryArray(np.eye(2, dtype=bool)) @ a(SMALL),
    'trace': lambda a: (
        be.Dense(SMALL * 0)
        .update_on_pre(np.array([1, 0], bool), a(np.float32([0, 2, 0])))
        .data.at[1]
        .set(SMALL[1])
    ),
    'bounds': lambda a: (
        be.Dense(SMALL)
        .update_on_pre(np.array([0, 0], bool), np.zeros(3, np.float32), None, a(np.float32(9)))
        .data
    ),
}


EVERYWHERE = [
    *(pytest.param(lambda a, f=f: f(a).todense(), id=name) for name, f in PLACES.items()),
    *(pytest.param(f, id=name) for name, f in OPERANDS.items()),
]


@pytest.mark.parametrize('run', EVERYWHERE)
@pytest.mark.parametrize('dtype', ['>f4', '>f8', 'longdouble', '>i4'])
def test_numbers_are_converted_where_nothing_is_lost(run, dtype):
    np.testing.assert_array_equal(run(lambda x: x.astype(dtype)), SMALL)


@pytest.mark.parametrize('run', EVERYWHERE)
def test_a_mask_is_never_dropped(run):
    for mask in (False, True):
        with pytest.raises(be.DtypeError, match='masked'):
            run(lambda x, mask=mask: np.ma.array(x, mask=np.full(x.shape, mask)))


@pytest.mark.parametrize('run', EVERYWHERE)
def test_a_long_double_that_loses_digits_is_refused(run):
    with pytest.raises(be.DtypeError, match='long double'):
        run(lambda x: x.astype(np.longdouble) + np.longdouble(2) ** -60)


@pytest.mark.parametrize('run', EVERYWHERE)
@pytest.mark.parametrize('dtype', ['int64', 'uint64'])
def test_integers_that_need_64_bits_are_refused(run, dtype):
    with pytest.raises(be.DtypeError, match='64'):
        run(lambda x: x.astype(dtype) + 2**33)


def test_64_bit_integers_work_in_64_bit_mode():
    with jax.enable_x64(True):
        A = be.CSR(([2**40, 3], [1, 0], [0, 1, 2]), shape=(2, 2))
        assert (A @ np.array([1, 1], np.int64)).tolist() == [2**40, 3]


def test_a_leaf_of_a_narrow_dtype_is_refused():
    A = jax.tree.map(lambda x: x.astype('int8'), be.CSR.fromdense(SMALL))
    with pytest.raises(be.DtypeError, match='int8'):
        A @ np.ones(3)
