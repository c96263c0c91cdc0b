# SPDX-License-Identifier: Apache-2.0
"""Index conversions against dense masks, in NumPy, in JAX and traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge.layout import PADDING
from brainevent._error import BackendError, DtypeError, IndexRangeError, ShapeError
from brainevent._format.convert import (
    coo2csr,
    coo_to_csc_index,
    csc_to_csr_index,
    csr_to_coo_index,
    csr_to_csc_index,
)
from brainevent._format.host_sort import stable_order

SHAPES = [(7, 5), (1, 9), (9, 1), (0, 4), (4, 0), (0, 0)]


def random_coo(shape, nse=40, seed=0):
    rng = np.random.default_rng(seed)
    nse = nse if min(shape) else 0
    high = [max(n, 1) for n in shape]
    return rng.integers(0, high[0], nse), rng.integers(0, high[1], nse)


def expected(group, member, n_groups):
    """(indptr, members, order) by the book."""
    order = np.argsort(group, kind='stable')
    indptr = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=n_groups)[:n_groups])])
    return indptr, member[order], order


def check(got, want, kind=np.ndarray, dtype=np.int32):
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert isinstance(one, kind)
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, other)


def traced(f):
    """The conversion with every index array traced."""
    return lambda *ids, **kwargs: jax.jit(lambda *ids: f(*ids, **kwargs))(*map(jnp.asarray, ids))


def in_jax(f):
    return lambda *ids, **kwargs: f(*map(jnp.asarray, ids), **kwargs)


WAYS = [
    pytest.param(lambda f: f, np.ndarray, id='numpy'),
    pytest.param(in_jax, jax.Array, id='jax'),
    pytest.param(traced, jax.Array, id='traced'),
]


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize(('way', 'kind'), WAYS)
def test_coordinates_to_rows_and_columns(shape, way, kind):
    row, col = random_coo(shape)
    check(way(coo2csr)(row, col, shape=shape), expected(row, col, shape[0]), kind)
    check(way(coo_to_csc_index)(row, col, shape=shape), expected(col, row, shape[1]), kind)


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize(('way', 'kind'), WAYS)
def test_rows_to_columns_and_back(shape, way, kind):
    indptr, indices, _ = coo2csr(*random_coo(shape), shape=shape)
    row, col = csr_to_coo_index(indptr, indices)
    check(way(csr_to_coo_index)(indptr, indices), (row, col), kind)
    check((row,), (np.repeat(np.arange(shape[0]), np.diff(indptr)),))

    csc = way(csr_to_csc_index)(indptr, indices, shape=shape)
    check(csc, expected(col, row, shape[1]), kind)
    back = way(csc_to_csr_index)(*csc[:2], shape=shape)
    # within a row the entries are now in the order of their columns
    np.testing.assert_array_equal(back[0], indptr)
    np.testing.assert_array_equal(back[1], col[np.lexsort((col, row))])
    np.testing.assert_array_equal(np.asarray(csc[1])[np.asarray(back[2])], row)


def test_permutation_is_left_out_on_request():
    structure = np.array([0, 1, 3]), np.array([1, 0, 1])
    for convert in (csr_to_csc_index, csc_to_csr_index):
        assert convert(*structure, shape=(2, 2), include_perm=False)[2] is None


@pytest.mark.parametrize('method', ['coo', 'numpy', 'gpu_column_block'])
def test_every_old_method_gives_the_same(method):
    structure = np.array([0, 1, 3]), np.array([1, 0, 1])
    got = csr_to_csc_index(*structure, shape=(2, 2), method=method, column_block_size=2)
    check(got, csr_to_csc_index(*structure, shape=(2, 2)))


def test_unknown_method_is_refused():
    with pytest.raises(ValueError) as info:
        csr_to_csc_index(np.array([0]), np.array([]), shape=(0, 0), method='magic')
    assert isinstance(info.value, BackendError)
    assert str(info.value) == (
        'csr_to_csc_index: `method` is unknown.\n'
        "    expected: one of 'coo', 'numpy', 'gpu_column_block'\n"
        "    got:      'magic'"
    )


def test_mixed_input_gives_jax_arrays():
    row, col = random_coo((7, 5))
    check(coo2csr(row, jnp.asarray(col), shape=(7, 5)), expected(row, col, 7), jax.Array)
    check(csr_to_coo_index(np.array([0, 1]), jnp.array([3])), ([0], [3]), jax.Array)


def test_lists_and_empty_lists_are_accepted():
    check(coo2csr([1, 0], [0, 0], shape=(2, 1)), ([0, 1, 2], [0, 0], [1, 0]))
    check(coo2csr([], [], shape=[2, 1]), ([0, 0, 0], [], []))


@pytest.mark.parametrize('dtype', ['int8', 'uint8', 'int16', 'uint16', 'uint32', 'int64', 'uint64'])
def test_narrow_and_unsigned_ids_do_not_wrap(dtype):
    shape = (1000, 3)  # more rows than int8 can count
    row, col = np.array([100, 5, 100], dtype), np.array([2, 1, 0], dtype)
    want = expected(row.astype(int), col.astype(int), 1000)
    check(coo2csr(row, col, shape=shape), want)
    check(traced(coo2csr)(row, col, shape=shape), want, jax.Array)


def test_ids_beyond_32_bits_stay_what_they_are():
    far = 2**40
    indptr, col, order = coo2csr(np.array([1, 0]), np.array([far, 3]), shape=(2, far + 1))
    check((indptr, order), ([0, 1, 2], [1, 0]))
    check((col,), ([3, far],), dtype=np.int64)
    check(csr_to_coo_index(indptr, col)[1:], ([3, far],), dtype=np.int64)


def test_ids_beyond_32_bits_are_not_cut_for_jax():
    if jax.config.jax_enable_x64:
        pytest.skip('64-bit integers are on')
    with pytest.raises(IndexRangeError, match='does not fit into 32 bits'):
        coo2csr(jnp.array([1, 0]), np.array([2**40, 3]), shape=(2, 2**40 + 1))
    # a large shape alone is no reason to refuse
    check(coo2csr(jnp.array([1]), np.array([3]), shape=(2, 2**40))[1:2], ([3],), jax.Array)


def test_rows_times_columns_may_exceed_32_bits():
    n = 70_001
    row, col = np.array([n - 1, 0, n - 1]), np.array([0, n - 1, n - 1])
    check(coo2csr(row, col, shape=(n, n)), expected(row, col, n))


@pytest.mark.parametrize('n', [1, 2, 2**16, 2**16 + 1, 2**20, 2**33])
def test_order_is_stable_across_digit_borders(n):
    keys = np.random.default_rng(1).integers(0, n, 500)
    keys[::3] = n - 1
    np.testing.assert_array_equal(stable_order(keys, n), np.argsort(keys, kind='stable'))


@pytest.mark.parametrize('bad', [3, -1, 2**32])
@pytest.mark.parametrize('wrap', [np.asarray, jnp.asarray])
def test_concrete_ids_outside_the_shape_are_refused(bad, wrap):
    if wrap is jnp.asarray and bad > 2**31:
        pytest.skip('no such id in 32 bits')
    ids, good = wrap(np.array([0, 1, bad])), wrap(np.array([0, 1, 2]))
    for convert in (coo2csr, coo_to_csc_index):
        for pair in ((ids, good), (good, ids)):
            with pytest.raises(IndexRangeError, match='points outside the matrix'):
                convert(*pair, shape=(3, 3))
    indptr = wrap(np.array([0, 1, 2, 3]))
    for convert in (csr_to_csc_index, csc_to_csr_index):
        with pytest.raises(IndexRangeError):
            convert(indptr, ids, shape=(3, 3))


def test_error_text_of_an_id_outside():
    with pytest.raises(IndexError) as info:
        coo2csr(np.array([0, -1]), np.array([0, 1]), shape=(3, 3))
    assert str(info.value) == (
        'coo2csr: `row_ids` points outside the matrix.\n'
        '    expected: ids from 0 to 2\n'
        '    got:      ids from -1 to 0'
    )


def test_traced_ids_outside_end_up_beyond_the_last_row():
    row, col = jnp.array([2, -1, 0, 3]), jnp.array([0, 1, 7, 1])
    indptr, indices, order = traced(coo2csr)(row, col, shape=(3, 2))
    assert indptr.tolist() == [0, 1, 1, 2]
    assert order.tolist() == [2, 0, 1, 3]
    assert indices.tolist()[:2] == [PADDING, 0]  # there is no column 7
    row, _ = traced(csr_to_coo_index)(indptr, indices)
    assert row.tolist() == [0, 2, 3, 3]  # the two strays belong to no row


@pytest.mark.parametrize('indptr', [[1, 2, 3], [0, 2, 1], [0, 1, 2], [0, 1, 4], [0, 4, 3]])
@pytest.mark.parametrize('wrap', [np.asarray, jnp.asarray])
def test_indptr_that_does_not_partition_is_refused(indptr, wrap):
    indptr, indices = wrap(np.array(indptr)), wrap(np.array([0, 1, 0]))
    with pytest.raises(IndexRangeError, match='does not partition'):
        csr_to_coo_index(indptr, indices)
    with pytest.raises(IndexRangeError, match='does not partition'):
        csr_to_csc_index(indptr, indices, shape=(2, 2))


def test_shapes_and_dtypes_are_checked_at_the_door():
    one = np.array([0])
    with pytest.raises(ShapeError, match='differ in length'):
        coo2csr(one, np.array([0, 1]), shape=(2, 2))
    with pytest.raises(ShapeError, match='not a vector'):
        coo2csr(one[None], one, shape=(2, 2))
    with pytest.raises(DtypeError, match='does not hold integers'):
        coo2csr(one, np.array([0.0]), shape=(2, 2))
    with pytest.raises(DtypeError):
        coo2csr(np.array([True]), one, shape=(2, 2))
    for shape in [(2,), (2, -1), (2, 2.0)]:
        with pytest.raises(ShapeError, match='not the shape of a matrix'):
            coo2csr(one, one, shape=shape)
    with pytest.raises(ShapeError, match='does not fit `shape`'):
        csr_to_csc_index(np.array([0, 1]), one, shape=(2, 2))
    with pytest.raises(ShapeError, match='`indptr` is empty'):
        csr_to_coo_index([], one)


def test_known_ids_stay_known_inside_jit():
    row, col = jnp.array([1, 0]), jnp.array([0, 1])

    @jax.jit
    def f(x):
        indptr, indices, order = coo2csr(row, col, shape=(2, 2))
        assert np.asarray(csr_to_coo_index(indptr, indices)[0]).tolist() == [0, 1]
        assert np.asarray(csr_to_csc_index(indptr, indices, shape=(2, 2))[1]).tolist() == [1, 0]
        return x[order]

    assert f(jnp.array([1.0, 2.0])).tolist() == [2.0, 1.0]


@pytest.mark.parametrize('known', ['rows', 'columns'])
def test_one_array_known_the_other_traced(known):
    row, col = random_coo((7, 5))
    if known == 'rows':
        got = jax.jit(lambda c: coo2csr(jnp.asarray(row), c, shape=(7, 5)))(jnp.asarray(col))
    else:
        got = jax.jit(lambda r: coo2csr(r, jnp.asarray(col), shape=(7, 5)))(jnp.asarray(row))
    check(got, expected(row, col, 7), jax.Array)


def test_batches_of_structures():
    rows, cols = map(jnp.asarray, np.stack([random_coo((7, 5)), random_coo((7, 5), seed=1)], 1))
    got = jax.vmap(lambda r, c: coo2csr(r, c, shape=(7, 5)))(rows, cols)
    for b in range(2):
        check([x[b] for x in got], coo2csr(rows[b], cols[b], shape=(7, 5)), jax.Array)


def test_64_bit_ids_give_32_bit_results_under_x64():
    with jax.enable_x64(True):
        row, col = random_coo((7, 5))
        for way in (in_jax, traced):
            got = way(coo2csr)(row, col, shape=(7, 5))
            check(got, expected(row, col, 7), jax.Array)
        # an id that would turn valid if its upper half were cut off
        indptr, _, order = traced(coo2csr)(np.array([2**32 + 1, 1]), np.array([0, 0]), shape=(3, 1))
        assert indptr.tolist() == [0, 0, 1, 1]
        assert order.tolist() == [1, 0]
