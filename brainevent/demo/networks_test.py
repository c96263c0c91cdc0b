# SPDX-License-Identifier: Apache-2.0
"""What is peculiar to the balanced networks; their activity is checked in ``validation``."""

import dataclasses

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent.demo.networks import COBA, CUBA

both = pytest.mark.parametrize('kind', [COBA, CUBA])


def mantissa(quantity, unit):
    return np.asarray(u.Quantity(quantity).to_decimal(unit))


@both
def test_a_fifth_is_inhibitory_and_everyone_makes_eighty_contacts(kind):
    network = kind.draw(500, seed=3)
    assert network.neurons == 500
    assert network.populations == {'excitatory': slice(0, 400), 'inhibitory': slice(400, 500)}
    assert network.out_degree.sum() == network.exc.nse + network.inh.nse == 500 * 80


@both
def test_seed_pins_contacts_and_state(kind):
    first, again, other = (kind.draw(200, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.exc.indices, again.exc.indices)
    assert (np.asarray(first.exc.indices) != np.asarray(other.exc.indices)).any()
    np.testing.assert_array_equal(mantissa(first.init(5).v, u.mV), mantissa(again.init(5).v, u.mV))


@both
def test_step_keeps_shapes_dtypes_and_units(kind):
    network = kind.draw(200)
    state = network.init()
    after = jax.eval_shape(network.step, state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)


@both
def test_another_network_of_the_same_size_does_not_retrace(kind):
    traces = []

    @jax.jit
    def step(network, state):
        traces.append(network)
        return network.step(state)

    for seed in range(3):
        network = kind.draw(200, seed=seed)
        step(network, network.init(seed))
    assert len(traces) == 1


def test_spike_is_held_at_reset_for_the_refractory_period():
    network = CUBA.draw(100)
    step, state = jax.jit(network.step), network.init()
    state = step(state._replace(v=state.v.at[0].set(0.0 * u.mV)))
    assert bool(state.spike[0]) and mantissa(state.v, u.mV)[0] == -60
    moves = 0
    for _ in range(49):
        state = step(state)
        moves += mantissa(state.v, u.mV)[0] != -60
    assert moves == 0
    assert mantissa(step(state).v, u.mV)[0] != -60


def test_spike_reaches_its_targets_once_for_each_contact():
    network = COBA.draw(100, seed=1)
    state = network.init()
    quiet = state._replace(v=jnp.full(100, -60.0) * u.mV, exc=0 * state.exc, inh=0 * state.inh)
    after = network.step(quiet._replace(v=quiet.v.at[3].set(0.0 * u.mV)))
    wanted = 6.0 * np.bincount(np.asarray(network.exc.indices)[3], minlength=100)
    np.testing.assert_allclose(mantissa(after.exc, u.nS), wanted, rtol=1e-6)
    assert not mantissa(after.inh, u.nS).any()


def test_conductances_pull_as_hard_as_their_units_say():
    # Wrong scales leave a network all but uncoupled, at a rate that looks plausible.
    network = COBA.draw(100)
    state = network.init()
    state = state._replace(
        v=jnp.full(100, -60.0) * u.mV,
        exc=jnp.full(100, 10.0) * u.nS,
        inh=jnp.zeros(100) * u.nS,
    )
    # Leak and synapse of 10 nS each: C = 200 pF charges with 10 ms towards (-60 + 0 + 20) / 2 mV.
    wanted = -20 - 40 * np.exp(-0.1 / 10)
    np.testing.assert_allclose(mantissa(network.membrane(state), u.mV), wanted, rtol=1e-6)


def test_drive_can_be_swept_without_retracing():
    network = COBA.draw(100)
    sweep = jax.vmap(
        lambda drive: dataclasses.replace(network, drive=drive).membrane(network.init())
    )
    v = mantissa(sweep(jnp.array([0.0, 100.0, 200.0]) * u.pA), u.mV)
    assert v.shape == (3, 100) and (np.diff(v, axis=0) > 0).all()
