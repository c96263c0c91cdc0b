# SPDX-License-Identifier: Apache-2.0
"""Strict dtype promotion: spikes are truth values beside weights that are floats, in everything."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from tests.conformance.grid import quick_jit

DENSE = np.float32([[0, 2, 0, 1], [3, 0, 5, 0], [0, 1, 0, 0], [1, 0, 0, 4]])
TABLE = np.array([[0, 1], [1, 2], [2, 0], [0, 3]])
STORED = {
    'CSR': lambda: be.CSR.fromdense(DENSE),
    'one weight': lambda: be.CSR(1.5, [1, 0, 3], [0, 1, 1, 2, 3], shape=(4, 4)),
    'half': lambda: be.CSR.fromdense(DENSE.astype(np.float16)),
    'COO mirror': lambda: be.COO.fromdense(DENSE).with_mirror(),
    'FixedNumPerPost': lambda: be.FixedNumPerPost((jnp.ones(TABLE.shape), TABLE), shape=(4, 4)),
    'Dense': lambda: be.Dense(DENSE),
}
DRAWN = {'drawn': lambda: be.JITCScalarR((1.5, 0.4, 3), shape=(4, 4))}
X = jnp.array([True, False, True, False])


@pytest.fixture(autouse=True)
def strict():
    with jax.numpy_dtype_promotion('strict'), be.use_backend('jax_raw'):
        yield


@pytest.mark.parametrize('name', [*STORED, *DRAWN])
def test_truth_values_meet_weights_of_any_dtype(name):
    A = {**STORED, **DRAWN}[name]()

    @quick_jit
    def everything(A, x):
        def drive(w):
            return (be.BinaryArray(x) @ A.with_data(w)).sum()

        many = jnp.stack([x, ~x])
        each = jax.vmap(lambda x: be.BinaryArray(x) @ A)(many)
        results = be.BinaryArray(x) @ A, A @ be.BinaryArray(x), x @ A, A[0]
        return *results, be.CompactBinary.from_array(x) @ A, each[0], jax.grad(drive)(A.data)

    left, right, plain, row, listed, each, grads = everything(A, X)
    dense = np.asarray(A.todense())
    np.testing.assert_allclose(left, dense[X].sum(0), rtol=1e-5)
    np.testing.assert_allclose(right, dense[:, X].sum(1), rtol=1e-5)
    np.testing.assert_allclose(row, dense[0], rtol=1e-5)
    for same in (plain, listed, each):
        np.testing.assert_allclose(same, left, rtol=1e-5)
    assert {g.dtype for g in jax.tree.leaves(grads)} == {left.dtype}


@pytest.mark.parametrize('name', [n for n in STORED if n != 'one weight'])
@pytest.mark.parametrize('clip', ['all', 'touched'])
def test_truth_values_make_weights_learn(name, clip):
    A = STORED[name]()

    @quick_jit
    def learn(A, x, trace):
        def total(w, y):
            B = A.with_data(w).update_on_pre(x, y, 0.0, 4.5, clip=clip)
            return B.update_on_post(y, x, 0.0, 4.5, clip=clip).data.sum()

        return jax.grad(total, (0, 1))(A.data, trace)

    by_weight, by_trace = learn(A, X, jnp.ones(4, A.dtype))
    assert by_weight.dtype == by_trace.dtype == A.dtype


def test_numbers_that_would_be_converted_are_refused_as_jax_does():
    with pytest.raises(ValueError, match='strict'):
        jnp.ones(4, jnp.float16) @ STORED['CSR']()
