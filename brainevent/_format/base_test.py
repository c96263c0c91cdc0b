# SPDX-License-Identifier: Apache-2.0
"""What all stored matrices share: printing of whatever the leaves are, constructors at the door."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import brainevent as be

DENSE = np.array([[0, 2, 0], [3, 0, 5]], np.float32)
PLACEHOLDERS = {
    'None': lambda x: None,
    'spec': lambda x: PartitionSpec(),
    'axis': lambda x: 0,
    'norm': jnp.sum,
    'name': lambda x: 'leaf',
    'sharding': lambda x: x.sharding,
}


@pytest.mark.parametrize('place', PLACEHOLDERS.values(), ids=PLACEHOLDERS)
@pytest.mark.parametrize('kind', [be.CSR, be.CSC, be.COO, be.Dense])
def test_repr_survives_leaves_that_are_no_arrays(kind, place):
    A = kind.fromdense(DENSE)
    assert repr(jax.tree.map(place, A)).startswith(f'{kind.__name__}(')


def test_repr_shows_what_stands_for_the_leaves():
    A = jax.tree.map(lambda x: PartitionSpec('x'), be.CSR.fromdense(DENSE))
    spec = repr(PartitionSpec('x'))
    assert repr(A) == f'CSR({spec}, {spec}, {spec}, shape=(2, 3))'


@pytest.mark.parametrize('kind', [be.CSR, be.CSC, be.COO, be.FixedNumPerPre, be.FixedNumPerPost])
@pytest.mark.parametrize('given', [np.zeros((3, 3), int), None, 1.0, ([1.0],), 'abc'])
def test_constructor_names_the_arrays_that_are_missing(kind, given):
    with pytest.raises(be.errors.DtypeError, match='the arrays of the matrix are not complete'):
        kind(given, shape=(3, 3))


def test_dense_integers_are_not_taken_for_coordinates():
    with pytest.raises(be.errors.DtypeError) as caught:
        be.COO(np.ones((3, 3), int), shape=(3, 3))
    assert str(caught.value) == (
        'COO: the arrays of the matrix are not complete.\n'
        '    expected: data, row, col, or a tuple of them\n'
        '    got:      ndarray\n'
        '    remedy:   give all of them, or use COO.fromdense for a dense array'
    )


def test_coordinates_may_come_with_the_old_pointer():
    A = be.COO(([1.0], [1], [0], [0]), shape=(2, 2))
    np.testing.assert_array_equal(A.todense(), [[0, 0], [1, 0]])


def test_a_matrix_cannot_be_changed_in_place():
    A = be.CSR.fromdense(DENSE)
    with pytest.raises(be.FrozenError) as caught:
        A.data = 1
    assert isinstance(caught.value, AttributeError)
    assert str(caught.value) == (
        'CSR: a matrix is a value, `data` cannot be set.\n'
        '    expected: a new matrix made from this one\n'
        '    got:      an assignment to `data`\n'
        '    remedy:   use with_data(...), or build another matrix'
    )


@pytest.mark.parametrize('x64', [False, True])
def test_ids_beyond_any_signed_number_are_refused_by_name(x64):
    with jax.enable_x64(x64), pytest.raises(be.IndexRangeError) as caught:
        be.CSR(([1.0, 2.0], np.array([0, 2**63], np.uint64), [0, 1, 2]), shape=(2, 2))
    assert str(caught.value) == (
        'CSR: `indices` points outside any matrix.\n'
        '    expected: values below 2**63\n'
        '    got:      values from 0 to 9223372036854775808\n'
        '    remedy:   look for negative numbers that were taken as unsigned ones'
    )


@pytest.mark.parametrize('kind', [be.CSR, be.COO, be.Dense])
def test_matrices_of_64_bits_work_on_after_these_are_turned_off(kind):
    with jax.enable_x64(True):
        A = kind.fromdense(DENSE.astype(np.float64))
    x, spikes = jnp.ones(3), be.BinaryArray(jnp.array([True, False]))
    with be.use_backend('jax_raw'):
        np.testing.assert_allclose(A @ x, [2, 8])
        np.testing.assert_allclose(jax.jit(lambda A: A @ x)(A), [2, 8])
        np.testing.assert_allclose(spikes @ A, [0, 2, 0])
        np.testing.assert_allclose((A * 2) @ x, [4, 16])
        np.testing.assert_allclose(A.dt2t(jnp.ones(2), A.data), A.data)
        np.testing.assert_allclose(A.update_on_pre(jnp.zeros(2), x).data, A.data)
    np.testing.assert_allclose(A.todense(), DENSE)
