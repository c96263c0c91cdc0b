# SPDX-License-Identifier: Apache-2.0
"""Who gets an event array's values, and who must hand the operation over to it.

Spikes of size 2 tell the event product from the ordinary one.
"""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._event.arrays import BinaryArray, MaskedFloat

VALUES = np.array([2.0, 0.0, -1.0, 0.5], np.float32)
COUNTS = np.array([1.0, 0.0, 0.0, 1.0], np.float32)
DENSE = np.arange(12, dtype=np.float32).reshape(3, 4)

WAYS = [pytest.param(lambda f: f, id='eager'), pytest.param(jax.jit, id='jit')]


def near(got, want, unit=None):
    assert not isinstance(got, BinaryArray)
    if unit is not None:
        assert u.get_unit(got) == unit
    np.testing.assert_allclose(u.get_mantissa(got), want, rtol=1e-6)


@pytest.mark.parametrize('way', WAYS)
def test_matmul_of_every_array_type_counts_events(way):
    events, dense = BinaryArray(VALUES), jnp.asarray(DENSE)
    near(way(lambda e, m: m @ e)(events, dense), DENSE @ COUNTS)
    near(way(lambda e: DENSE @ e)(events), DENSE @ COUNTS)
    near(way(lambda e: np.matmul(DENSE, e))(events), DENSE @ COUNTS)
    near(way(lambda e: np.matmul(e, DENSE.T))(events), DENSE @ COUNTS)
    near(way(lambda e, m: (m * u.mS) @ e)(events, dense), DENSE @ COUNTS, u.mS)
    near(way(lambda e: u.Quantity(DENSE, unit=u.mS) @ e)(events), DENSE @ COUNTS, u.mS)
    near(way(lambda e, m: e @ (m.T * u.mS))(events, dense), DENSE @ COUNTS, u.mS)


@pytest.mark.parametrize('way', WAYS)
def test_contracting_functions_count_events(way):
    events, dense = BinaryArray(VALUES), jnp.asarray(DENSE)
    contractions = [
        jnp.matmul,
        jnp.dot,
        lambda m, e: m.dot(e),
        lambda m, e: jnp.tensordot(m, e, 1),
        lambda m, e: jnp.einsum('ij,j->i', m, e),
        lambda m, e: jax.vmap(lambda row: jnp.vdot(row, e))(m),
        u.math.matmul,
        u.math.dot,
    ]
    for contract in contractions:
        near(way(contract)(dense, events), DENSE @ COUNTS)
        near(way(contract)(dense, MaskedFloat(VALUES)), DENSE @ VALUES)
    slope = jax.grad(lambda x: jnp.matmul(dense, BinaryArray(x)).sum())(jnp.asarray(VALUES))
    near(slope, DENSE.sum(0))


def test_contracting_functions_survive_values_that_are_not_finite():
    values = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    near(jnp.matmul(DENSE, BinaryArray(values)), DENSE @ [0, 1, 0, 1])


def test_sparse_matrices_of_other_packages_count_events():
    sparse = pytest.importorskip('scipy.sparse')
    from jax.experimental.sparse import BCOO

    events = BinaryArray(VALUES)
    near(sparse.csr_array(DENSE) @ events, DENSE @ COUNTS)
    near(u.sparse.CSR.fromdense(jnp.asarray(DENSE)) @ events, DENSE @ COUNTS)
    near(BCOO.fromdense(jnp.asarray(DENSE)) @ events, DENSE @ COUNTS)


@pytest.mark.parametrize('way', WAYS)
def test_functions_see_the_values(way):
    events, g = BinaryArray(VALUES), jnp.ones(4)
    near(way(jnp.asarray)(events), VALUES)
    near(way(lambda e: jnp.asarray(e, jnp.float16))(events), VALUES)
    near(way(lambda e: jnp.where(e, 1.0, 0.0))(events), VALUES != 0)
    near(way(lambda e, g: jnp.where(g > 0, e, 0.0))(events, g), VALUES)
    near(way(jnp.sum)(events), VALUES.sum())
    near(way(jnp.exp)(events), np.exp(VALUES))
    near(way(jnp.zeros_like)(events), np.zeros(4))
    near(way(lambda e: jnp.stack([e, e]))(events), np.stack([VALUES, VALUES]))
    near(way(lambda e, g: jnp.concatenate([g, e]))(events, g), [1, 1, 1, 1, *VALUES])
    near(way(lambda e, g: jnp.outer(g, e))(events, g), np.outer(np.ones(4), VALUES))
    near(way(lambda e, g: g.at[:].set(e))(events, g), VALUES)
    near(way(jax.nn.relu)(events), np.maximum(VALUES, 0))


@pytest.mark.parametrize('way', WAYS)
def test_functions_of_brainunit_see_the_values(way):
    events = BinaryArray(VALUES)
    near(way(lambda e: u.math.where(e, 1.0, 0.0))(events), VALUES != 0)
    near(way(lambda e: u.math.where(e, 1.0 * u.mV, 0.0 * u.mV))(events), VALUES != 0, u.mV)
    near(way(u.math.sum)(events), VALUES.sum())
    near(way(u.math.exp)(events), np.exp(VALUES))
    near(way(u.math.asarray)(events), VALUES)
    near(way(lambda e: e * u.mV)(events), VALUES, u.mV)
    assert u.get_unit(events).is_unitless


def test_functions_of_numpy_see_the_values():
    events = BinaryArray(VALUES)
    near(np.asarray(events), VALUES)
    assert np.asarray(events, np.float64).dtype == np.float64
    near(np.isnan(events), np.isnan(VALUES))
    near(np.add(events, 1), VALUES + 1)
    near(np.sum(events), VALUES.sum())
    near(np.mean(events), VALUES.mean())
    near(np.add.reduce(events), VALUES.sum())
    near(np.where(events, 1, 0), VALUES != 0)
    total = np.ones(4, np.float32)
    total += events
    near(total, VALUES + 1)


def test_a_strangers_function_named_dot_sees_the_values():
    def dot(events):
        return jnp.asarray(events) * 2

    near(dot(BinaryArray(VALUES)), VALUES * 2)
