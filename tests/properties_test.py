# SPDX-License-Identifier: Apache-2.0
"""Whatever matrix, operand and chain of transformations one thinks of: a dense program agrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brainevent as be
from tests.random_programs import (
    FORMATS,
    KINDS,
    TRANSFORMATIONS,
    Matrix,
    assert_same,
    broken,
    calls,
    operations,
    programs,
    structures,
    wrapped,
)

# Examples are the same in every run, and compile time is nobody's fault.
drawn = settings(
    deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize('first', sorted(TRANSFORMATIONS))
@settings(drawn, max_examples=6)
@given(data=st.data())
def test_chains_of_transformations(first, data):
    mine, want, w, x = data.draw(calls(low=1))
    rest = st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), max_size=2)
    for name in [first, *data.draw(rest)]:
        mine, want = TRANSFORMATIONS[name](mine), TRANSFORMATIONS[name](want)
    expected = want(w, x)
    got = jax.jit(mine)(w, x)
    assert got.shape == expected.shape
    scale = float(jnp.abs(expected).max(initial=1))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * scale)


# ---- what tools/fuzz.py runs for a given time; here a few examples, the same in every run --------


def check_program(case):
    """A chain of transformations of a product is that of the dense one."""
    names, mine, want, w, x = case
    assert_same(jax.jit(mine)(w, x), want(w, x), w.dtype, factor=1 + len(names))


def check_operation(case):
    """An operation gives what it gives of the dense array."""
    _name, mat, w, run, want = case
    assert_same(run(mat.sparse(w)), want(), w.dtype)


def check_broken(case):
    """Leaves that do not belong to the shape are refused by name; none end the process."""
    changes, sound, name, matrix, run = case
    try:
        jax.block_until_ready(run(matrix))
    except be.BrainEventError as error:  # a traced matrix also refuses what needs its values
        assert sound is not True or any(changes) or not isinstance(error, be.ShapeError), name
    else:
        assert sound is not False, f'{name} of a matrix with leaves changed by {changes}'


CHECKS = {'programs': check_program, 'operations': check_operation, 'broken': check_broken}


@settings(drawn, max_examples=30)
@given(case=programs())
def test_programs(case):
    check_program(case)


@settings(drawn, max_examples=60)
@given(case=operations())
def test_operations(case):
    check_operation(case)


@settings(drawn, max_examples=60)
@given(case=broken())
def test_leaves_that_were_replaced(case):
    check_broken(case)


@drawn
@given(call=calls())
def test_products_of_anything_with_anything(call):
    mine, want, w, x = call
    got = mine(w, x)
    expected = want(w, x)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@settings(drawn, max_examples=25)
@given(
    structure=structures(1),
    data=st.sampled_from(['int8', 'int32', 'float16', 'bfloat16', 'float32', 'complex64']),
    other=st.sampled_from(['bool', 'uint8', 'int32', 'float16', 'float32', 'complex64']),
    kind=st.sampled_from(KINDS[:3]),
)
def test_products_in_any_pair_of_dtypes(structure, data, other, kind):
    mat = Matrix(structure, 'coo', 'jax_raw')
    w = jnp.ones(mat.row.size, data)
    x = (jnp.arange(mat.shape[1]) % 3).astype(other)
    if kind == 'binary' and other == 'complex64':
        with pytest.raises(be.DtypeError, match='complex numbers are no events'):
            mat.sparse(w) @ be.BinaryArray(x)
        return
    got = np.asarray(mat.sparse(w) @ wrapped(kind, x)).astype(complex)
    numbers = np.asarray(x).astype(complex).real
    counts = (numbers > 0).astype(float) if kind == 'binary' else numbers
    np.testing.assert_allclose(got, np.asarray(mat.dense(jnp.ones(w.size))) @ counts)


@settings(drawn, max_examples=25)
@given(structure=structures(), fmt=st.sampled_from(FORMATS), seed=st.integers(0, 99))
def test_adjoints_are_adjoint(structure, fmt, seed):
    """``<y, A x> = <A' y, x>``, and the gradient of the weights is the same form once more."""
    mat = Matrix(structure, fmt, 'jax_raw')
    rng = np.random.default_rng(seed)
    w, x, y = (jnp.asarray(rng.normal(size=k), jnp.float32)
               for k in (mat.row.size, mat.shape[1], mat.shape[0]))  # fmt: skip
    form, (of_w, of_x) = jax.value_and_grad(lambda w, x: y @ (mat.sparse(w) @ x), (0, 1))(w, x)
    for other in (of_w @ w, of_x @ x, (y @ mat.sparse(w)) @ x, (mat.sparse(w).T @ y) @ x):
        np.testing.assert_allclose(form, other, rtol=1e-4, atol=1e-4)
