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
