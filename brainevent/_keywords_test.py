# SPDX-License-Identifier: Apache-2.0
"""Public keywords, and the short ones that have shipped, give the same results."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be


def stored():
    X = np.array([[0.0, 2.0], [3.0, 4.0]], np.float32)
    kinds = (be.CSR, be.CSC, be.COO, be.Dense, be.FixedNumPerPre, be.FixedNumPerPost)
    for kind in kinds:
        yield kind.fromdense(X, **({'num_conn': 2} if 'Fixed' in kind.__name__ else {}))


def drawn():
    for kind in (be.JITCScalarR, be.JITCScalarC):
        yield kind((1.5, 0.5, 3), shape=(2, 2))
    for kind in (be.JITCNormalR, be.JITCNormalC, be.JITCUniformR, be.JITCUniformC):
        yield kind((0.5, 1.5, 0.5, 3), shape=(2, 2))


@pytest.mark.parametrize('A', [*stored(), *drawn()], ids=lambda A: type(A).__name__)
@pytest.mark.parametrize('name', ['dt2t', 'dt2t_transposed', 'yw_to_w', 'yw_to_w_transposed'])
@pytest.mark.filterwarnings('ignore:.*is now called:DeprecationWarning')
def test_dt2t_takes_public_and_short_names(A, name):
    fn, y, w = (
        getattr(A, name),
        jnp.arange(1.0, 3.0),
        A.data if isinstance(A.data, jnp.ndarray) else jnp.ones(()),
    )
    expected = fn(y, w)
    np.testing.assert_array_equal(fn(y_dim_arr=y, w_dim_arr=w), expected)
    np.testing.assert_array_equal(fn(y=y, w=w), expected)
    assert list(inspect.signature(fn).parameters) == ['y_dim_arr', 'w_dim_arr']


@pytest.mark.parametrize('A', list(stored())[:4], ids=lambda A: type(A).__name__)
def test_diag_add_takes_both_names(A):
    d = jnp.ones(2)
    expected = A.todense() + jnp.eye(2)
    for B in (A.diag_add(d), A.diag_add(other=d), A.diag_add(d=d)):
        np.testing.assert_array_equal(B.todense(), expected)


@pytest.mark.parametrize(
    ('fn', 'prefix'), [(be.csr_to_csc_index, 'csr'), (be.csc_to_csr_index, 'csc')]
)
def test_index_conversions_take_both_names(fn, prefix):
    ptr, ids = np.array([0, 1, 3]), np.array([1, 0, 1])
    named = {f'{prefix}_indptr': ptr, f'{prefix}_indices': ids}
    for given in (named, {'indptr': ptr, 'indices': ids}):
        for got, wanted in zip(fn(**given, shape=(2, 2)), fn(ptr, ids, shape=(2, 2)), strict=True):
            np.testing.assert_array_equal(got, wanted)
    with pytest.raises(TypeError, match='which are one'):
        fn(**named, indices=ids, shape=(2, 2))


EVENTS = (be.BinaryArray, be.MaskedFloat, be.BitPackedBinary, be.CompactBinary.from_array)


@pytest.mark.parametrize(
    'A', [*stored(), *drawn(), *(k(jnp.eye(2)) for k in EVENTS)], ids=lambda A: type(A).__name__
)
def test_pytree_methods_take_both_names(A):
    leaves, static = A.tree_flatten()
    events = not isinstance(A, be.DataRepresentation)
    public = ('aux_data', 'flat_contents' if events else 'children')
    for names in (public, ('aux' if events and static is None else 'static', 'leaves')):
        B = type(A).tree_unflatten(**dict(zip(names, (static, leaves), strict=True)))
        assert type(B) is type(A) and B.shape == A.shape
    assert tuple(inspect.signature(type(A).tree_unflatten).parameters) == public


def test_dot_of_packed_events_takes_both_names():
    s, A = be.BitPackedBinary([True, False]), jnp.ones((2, 3))
    np.testing.assert_array_equal(s.dot(oc=A), s.dot(A))
    np.testing.assert_array_equal(s.dot(other=A), s @ A)
