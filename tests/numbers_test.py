# SPDX-License-Identifier: Apache-2.0
"""Dtypes, events of every kind, NaN and infinity, long sums and long lists of edges."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge import FAMILIES, Event
from tests.conformance.grid import RANKS, STEMS, Case, backends

COL = np.array([0, 2, 1, 1, 0], np.int32)
PTR = np.array([0, 2, 3, 5], np.int32)
ROW = np.repeat(np.arange(3), np.diff(PTR))
DATA = np.array([1.0, 2.0, 4.0, 8.0, 16.0], np.float32)
DENSE = np.zeros((3, 3))
np.add.at(DENSE, (ROW, COL), DATA)
BACKENDS = backends('csr')
EVENTS = ['bool', 'int8', 'uint8', 'int32', 'uint32', 'float16', 'bfloat16', 'float32']
NUMBERS = [*EVENTS, 'complex64']


def matrix(data=DATA, backend=None):
    return be.CSR((jnp.asarray(data), COL, PTR), shape=(3, 3), backend=backend)


# ---- dtypes ------------------------------------------------------------------------------------


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('data', NUMBERS)
def test_products_follow_the_promotion_of_jax(backend, data):
    weights = jnp.ones(5, data)
    for other in NUMBERS:
        x = jnp.ones(3, other)
        got = matrix(weights, backend) @ x
        kind = jnp.result_type(weights, x)
        assert got.dtype == ('int32' if kind == np.bool_ else kind), other
        np.testing.assert_array_equal(np.asarray(got).astype(complex), [2, 1, 2])


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('event', EVENTS)
def test_events_of_any_dtype_count_once_and_never_widen_weights(backend, event):
    raw = jnp.asarray([1, 0, 2]).astype(event)
    for data in ('float16', 'bfloat16', 'float32', 'int8', 'complex64'):
        mat = matrix(jnp.asarray(DATA).astype(data), backend)
        for got, want in (
            (mat @ be.BinaryArray(raw), DENSE @ [1, 0, 1]),
            (be.BinaryArray(raw) @ mat, [1, 0, 1] @ DENSE),
        ):
            assert got.dtype == data
            np.testing.assert_array_equal(np.asarray(got).astype(complex), want)


@pytest.mark.parametrize('backend', BACKENDS)
def test_only_positive_values_are_events(backend):
    mat = matrix(backend=backend)
    for raw, on in (
        ([np.nan, -1.0, 0.5], [0, 0, 1]),
        ([np.inf, -np.inf, -0.0], [1, 0, 0]),
        ([1e-30, np.nan, 300.0], [1, 0, 1]),
    ):
        events = be.BinaryArray(jnp.array(raw, jnp.float32))
        np.testing.assert_array_equal(mat @ events, DENSE @ on)
        np.testing.assert_array_equal(events @ mat, on @ DENSE)
    largest = be.BinaryArray(jnp.array([255, 0, 128], jnp.uint8))
    np.testing.assert_array_equal(mat @ largest, DENSE @ [1, 0, 1])


@pytest.mark.parametrize('backend', BACKENDS)
def test_masked_values_count_as_themselves(backend):
    mat, x = matrix(backend=backend), jnp.array([-0.5, 0.0, 3.0])
    np.testing.assert_array_equal(mat @ be.MaskedFloat(x), DENSE @ x)
    np.testing.assert_array_equal(be.MaskedFloat(x) @ mat, x @ DENSE)


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('data', ['int32', 'float32'])
@pytest.mark.parametrize('x', [[0.5, 0.0, 1.5], [0.5j, 0.0, 1.0]])
def test_masked_values_of_another_kind_are_not_cut(backend, data, x):
    """Half a spike through whole weights is half a weight; imaginary parts stay."""
    x = jnp.asarray(x)
    got = matrix(jnp.asarray(DATA).astype(data), backend) @ be.MaskedFloat(x)
    np.testing.assert_array_equal(got, DENSE @ np.asarray(x))


def test_double_precision_is_kept():
    with jax.enable_x64(True):
        tiny = np.array([1.0, 1e-12])
        for backend in BACKENDS:
            mat = be.CSR((tiny, np.array([0, 1]), np.array([0, 2])), shape=(1, 2), backend=backend)
            for x in (be.BinaryArray(jnp.ones(2, bool)), jnp.ones(2)):
                got = mat @ x
                assert got.dtype == jnp.float64
                assert abs(float(got[0]) - 1 - 1e-12) < 1e-15


@pytest.mark.parametrize('backend', BACKENDS)
def test_wide_index_arrays_give_the_same(backend):
    with jax.enable_x64(True):
        for ids, ptr in itertools.product((np.int32, np.int64, np.uint8), (np.int32, np.int64)):
            mat = be.CSR((DATA, COL.astype(ids), PTR.astype(ptr)), shape=(3, 3), backend=backend)
            x = jnp.array([1, 2, 3], jnp.float32)
            np.testing.assert_array_equal(mat @ x, DENSE @ [1, 2, 3])
            np.testing.assert_array_equal(x @ mat, [1, 2, 3] @ DENSE)
            grad = jax.grad(lambda w, x=x, mat=mat: (mat.with_data(w) @ x).sum())(mat.data)
            np.testing.assert_array_equal(grad, np.array([1, 2, 3])[COL])


# ---- NaN and infinity --------------------------------------------------------------------------


def _poisoned(case, poison, on, shape=(6, 4)):
    """Return a case's result and that of clean weights, where edges of silent inputs are poison."""
    example = case.example(shape, 20)
    source = example.row if case.transpose else example.col
    clean = np.ones(example.edges, np.float32)
    dirty = np.where(np.isin(source, np.flatnonzero(on)), clean, poison).astype(np.float32)
    x = {'vector': on, 'columns': np.stack([on, on], 1), 'rows': np.stack([on, on])}[case.rank]
    arrays = tuple(map(jnp.asarray, example.arrays))
    f = case.call(shape)
    return [f((jnp.asarray(w),), arrays, jnp.asarray(x, jnp.float32)) for w in (dirty, clean)]


@pytest.mark.parametrize('stem', [s for s in STEMS if FAMILIES[s].weight.name == 'stored'])
@pytest.mark.parametrize('event', [Event.BINARY, Event.MASKED])
@pytest.mark.parametrize('transpose', [False, True])
def test_bad_weights_of_silent_inputs_do_not_leak(stem, event, transpose):
    on = np.array([0, 1, 0, 1, 0, 0] if transpose else [0, 1, 0, 0])
    for backend, rank in itertools.product(backends(stem), RANKS):
        case = Case(stem, backend, event, transpose, rank, 'each')
        for poison in (np.nan, np.inf):
            got, want = _poisoned(case, poison, on)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize('backend', BACKENDS)
def test_bad_weights_of_active_inputs_show(backend):
    mat = matrix([np.nan, 2, 4, np.inf, 16], backend)
    for x in (be.BinaryArray(jnp.ones(3, bool)), be.MaskedFloat(jnp.ones(3)), jnp.ones(3)):
        np.testing.assert_array_equal(mat @ x, [np.nan, 4, np.inf])
        np.testing.assert_array_equal(x @ mat, [np.nan, np.inf, 2])


@pytest.mark.parametrize('backend', BACKENDS)
def test_plain_products_touch_stored_entries_only(backend):
    got = matrix(backend=backend) @ jnp.array([np.nan, 1.0, 1.0])
    np.testing.assert_array_equal(got, [np.nan, 4, np.nan])
    got = matrix([np.nan, 2, 4, 8, 16], backend) @ jnp.zeros(3)
    np.testing.assert_array_equal(got, [np.nan, 0, 0])


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('kind', [be.BinaryArray, be.MaskedFloat])
@pytest.mark.parametrize('batch', [False, True])
def test_bad_cotangents_do_not_reach_weights_of_silent_inputs(backend, kind, batch):
    """A weight that no spike passed has no part in the result, whatever became of it."""
    mat, x = matrix(backend=backend), jnp.array([0.0, 1.0, 0.0])
    x = jnp.stack([x, x], 1) if batch else x
    _, back = jax.vjp(lambda w: mat.with_data(w) @ kind(x), mat.data)
    ct = jnp.full((3, *x.shape[1:]), jnp.nan)
    np.testing.assert_array_equal(back(ct)[0], [0, 0, np.nan, np.nan, 0])


# ---- long sums ---------------------------------------------------------------------------------


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('dtype', ['float16', 'bfloat16'])
def test_sums_of_halves_do_not_stick(backend, dtype):
    """4096 ones are 4096, though 2048 + 1 is 2048 in 16 bits."""
    n = 4096
    one, ids, on = jnp.ones(1, dtype), np.arange(n), be.BinaryArray(jnp.ones(n, bool))
    row = be.CSR((one, ids, np.array([0, n])), shape=(1, n), backend=backend)
    column = be.CSR((one, np.zeros(n, int), np.arange(n + 1)), shape=(n, 1), backend=backend)
    for got in (row @ on, on @ column, row @ jnp.ones(n, dtype), jnp.ones(n, dtype) @ column):
        np.testing.assert_allclose(np.asarray(got).astype(float), [n], rtol=0.01)


MANY = 20_000_000  # float32 ones added one by one stop at 2**24


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('kind', ['events', 'numbers'])
def test_twenty_million_ones_gathered(backend, kind):
    ids, ptr = np.zeros(MANY, np.int32), np.array([0, MANY], np.int32)
    mat = be.CSR((np.ones(1, np.float32), ids, ptr), shape=(1, 1), backend=backend)
    for shape in ((1,), (1, 2)):
        x = be.BinaryArray(jnp.ones(shape, bool)) if kind == 'events' else jnp.ones(shape)
        np.testing.assert_allclose(mat @ x, np.full(shape, MANY), rtol=1e-6)


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('kind', ['events', 'numbers'])
def test_twenty_million_ones_scattered(backend, kind):
    ids, ptr = np.zeros(MANY, np.int32), np.arange(MANY + 1, dtype=np.int32)
    mat = be.CSR((np.ones(1, np.float32), ids, ptr), shape=(MANY, 1), backend=backend)
    x = be.BinaryArray(jnp.ones(MANY, bool)) if kind == 'events' else jnp.ones(MANY)
    np.testing.assert_allclose(x @ mat, [MANY], rtol=1e-6)
    grad = jax.grad(lambda w: (x @ mat.with_data(w))[0])(mat.data)
    np.testing.assert_allclose(grad, [MANY], rtol=1e-6)
    if kind == 'events':
        pair = be.BinaryArray(jnp.ones((MANY, 2), bool))
        np.testing.assert_allclose(mat.T @ pair, [[MANY, MANY]], rtol=1e-6)


@pytest.mark.parametrize('backend', BACKENDS)
def test_twenty_million_ones_scattered_by_one_line(backend):
    ids, ptr = np.zeros(MANY, np.int32), np.array([0, MANY], np.int32)
    mat = be.CSR((np.ones(1, np.float32), ids, ptr), shape=(1, 1), backend=backend)
    for x in (be.BinaryArray(jnp.ones(1, bool)), jnp.ones(1)):
        np.testing.assert_allclose(x @ mat, [MANY], rtol=1e-6)


@pytest.mark.parametrize('backend', BACKENDS)
def test_twenty_million_coordinates(backend):
    ids = np.zeros(MANY, np.int32)
    x = jnp.ones(1)
    got = be.coomv(jnp.ones(1), ids, ids, x, shape=(1, 1), backend=backend)
    np.testing.assert_allclose(got, [MANY], rtol=1e-6)


# ---- long lists of edges: blocks, private sums and threads -------------------------------------


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('edges', [(1 << 22) + 3, (1 << 23) + 5])
def test_long_lists_of_edges(backend, edges):
    m, n = 30_000, 5_000
    rng = np.random.default_rng(0)
    row, col = np.sort(rng.integers(0, m, edges)), rng.integers(0, n, edges).astype(np.int32)
    ptr = np.searchsorted(row, np.arange(m + 1)).astype(np.int32)
    w = rng.integers(1, 4, edges).astype(np.float32)
    mat = be.CSR((w, col, ptr), shape=(m, n), backend=backend)
    right, left = rng.integers(0, 2, n), rng.integers(0, 2, m)
    forward = np.bincount(row, w * right[col], m)
    backward = np.bincount(col, w * left[row], n)
    for wrap in (jnp.float32, lambda x: be.BinaryArray(jnp.asarray(x))):
        np.testing.assert_array_equal(mat @ wrap(right), forward)
        np.testing.assert_array_equal(wrap(left) @ mat, backward)
        pair = wrap(np.stack([left, 1 - left]))
        np.testing.assert_array_equal(pair @ mat, [backward, np.bincount(col, w, n) - backward])
    ct = jnp.asarray(rng.integers(0, 3, m), jnp.float32)
    events = be.BinaryArray(jnp.asarray(right))
    grad = jax.grad(lambda w: (mat.with_data(w) @ events) @ ct)(mat.data)
    np.testing.assert_array_equal(grad, right[col] * np.asarray(ct)[row])
