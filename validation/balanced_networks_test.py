# SPDX-License-Identifier: Apache-2.0
"""The COBA and CUBA networks fire as published, and spike for spike as an independent simulation.

Source. Brette et al. 2007, J Comput Neurosci 23:349-398, benchmarks 1 (COBA) and 2 (CUBA). The
review defines the networks and shows their activity as rasters and as histograms of intervals; it
prints no table of rates. The numbers below are therefore those of two simulators that publish the
networks:

- ANNarchy, notebook "COBA and CUBA networks" of its documentation (version 5.0.3): one run of one
  second each prints 20.477 Hz (COBA, with the constant drive of 20 mV) and 5.61475 Hz (CUBA).
- Brian 2.9, the script "CUBA" of its documentation and the same with the equations of COBA; run
  by us for five seeds, 4,000 neurons, connection probability 0.02, dt 0.1 ms, 1.5 s of which the
  first 0.5 s is left out. Each neuron with three intervals or more counts for the ISI CV. Rates of
  excitatory neurons, and their CVs, over the seeds: COBA 20.4 to 23.5 Hz, 1.60 to 1.65; COBA
  without drive, as in the review, 17.9 to 19.9 Hz, 1.54 to 1.62; CUBA 5.4 to 5.9 Hz, 0.54 to 0.56.
  With the fixed out-degree of 80 that we use, three seeds: COBA 19.3 to 21.5 Hz, CUBA 5.1 to 5.9
  Hz, COBA without drive 19.3 to 20.4 Hz. Without drive a network does not catch on from every
  initial state (one seed in four there, two in six here); the seed of this file is one that does.

Tolerance. Networks are drawn anew by every seed, so that only ranges can be compared: we ask for
the range over Brian's seeds, both kinds of wiring, widened by 10 %. Against the single runs of
ANNarchy, 15 %. Uncoupled networks fire at 53 Hz (COBA) and 19 Hz (CUBA), far outside; a test says
so. Seed 1.

Spike for spike, the oracle is a dense float64 program in NumPy that shares no code with the
package.
"""

import dataclasses

import brainunit as u
import jax
import numpy as np
import pytest

from brainevent.demo import COBA, CUBA
from brainevent.demo.run import Result, simulate

# lowest and highest rate (Hz) and CV over Brian's seeds
PUBLISHED = {
    'COBA': ((19.3, 23.5), (1.59, 1.68)),
    'COBA without drive': ((17.9, 20.4), (1.54, 1.66)),
    'CUBA': ((5.1, 5.9), (0.53, 0.56)),
}
ANNARCHY = {'COBA': 20.477, 'CUBA': 5.61475}
SLACK = 0.1
SEED = 1


def draw(name):
    network = (CUBA if name == 'CUBA' else COBA).draw(4000, seed=SEED)
    if name == 'COBA without drive':
        network = type(network)(network.exc, network.inh, drive=0.0 * u.pA)
    return network


def after(result, milliseconds):
    """Leave out the start of a run."""
    first = round(milliseconds / float(result.network.dt / u.ms))
    late = result.times >= first
    times, ids = result.times[late] - first, result.ids[late]
    counts = np.bincount(ids, minlength=result.network.neurons)
    return Result(result.network, result.steps - first, counts, times, ids, 1, 0.0, 1.0)


@pytest.fixture(scope='module', params=sorted(PUBLISHED))
def run(request):
    network = draw(request.param)
    return request.param, after(simulate(network, milliseconds=1500.0, seed=SEED), 500.0)


def within(value, bounds):
    return bounds[0] * (1 - SLACK) <= value <= bounds[1] * (1 + SLACK)


@pytest.mark.parametrize('population', ['excitatory', 'inhibitory'])
def test_rate_and_irregularity_are_as_published(run, population):
    name, result = run
    rates, cvs = PUBLISHED[name]
    assert within(result.rate(population), rates), result.rate(population)
    assert within(result.isi_cv(population), cvs), result.isi_cv(population)


@pytest.mark.parametrize('name', sorted(ANNARCHY))
def test_rate_of_the_first_second_is_as_in_another_simulator(name):
    result = simulate(draw(name), milliseconds=1000.0, seed=SEED)
    assert result.counts.mean() == pytest.approx(ANNARCHY[name], rel=0.15)


@pytest.mark.parametrize('name', sorted(ANNARCHY))
def test_uncoupled_network_would_be_noticed(name):
    network = draw(name)
    exc, inh = (m.with_data(0 * m.data) for m in (network.exc, network.inh))
    uncoupled = dataclasses.replace(network, exc=exc, inh=inh)
    result = after(simulate(uncoupled, milliseconds=400.0), 200.0)
    highest = PUBLISHED[name][0][1]
    assert result.rate('excitatory') > 2 * highest


def test_activity_is_asynchronous():
    # Were neurons independent, the variance of the population count would equal the mean of each
    # neuron's; the networks are weakly correlated, volleys would be off by two orders.
    result = after(simulate(draw('CUBA'), milliseconds=1500.0, seed=SEED), 500.0)
    bins = np.histogram(result.times, 200, (0, result.steps))[0]
    assert bins.var() / bins.mean() < 30


# --- spike for spike --------------------------------------------------------------------------


def dense(indices, n):
    """How often each row contacts each column."""
    matrix = np.zeros((len(indices), n))
    np.add.at(matrix, (np.arange(len(indices))[:, None], indices), 1.0)
    return matrix


def numpy_run(kind, exc, inh, v, ge, gi, steps):
    """Benchmarks 1 and 2 in mV, nS and ms, with exponential Euler steps of 0.1 ms."""
    n, ne, dt = len(v), len(exc), 0.1
    resting = np.zeros(n, int)
    raster = np.zeros((steps, n), bool)
    for step in range(steps):
        if kind == 'COBA':
            total = 10.0 + ge + gi
            goal = (10.0 * -60.0 + ge * 0.0 + gi * -80.0 + 200.0) / total
            # 20 ms is the time constant of a leak of 10 nS.
            moved = goal + (v - goal) * np.exp(-dt / 20.0 * total / 10.0)
        else:
            goal = -49.0 + ge + gi
            moved = goal + (v - goal) * np.exp(-dt / 20.0)
        v = np.where(resting > 0, v, moved)
        spike = v > -50.0
        v = np.where(spike, -60.0, v)
        resting = np.where(spike, 49, np.maximum(resting - 1, 0))
        ge = ge * np.exp(-dt / 5.0) + spike[:ne] @ exc
        gi = gi * np.exp(-dt / 10.0) + spike[ne:] @ inh
        raster[step] = spike
    return raster


WEIGHTS = {'COBA': (6.0, 67.0, u.nS), 'CUBA': (1.62, -9.0, u.mV)}


def compare(kind, n, milliseconds, dtype):
    network = {'COBA': COBA, 'CUBA': CUBA}[kind].draw(n, seed=SEED, dtype=dtype)
    state = network.init(SEED)
    we, wi, unit = WEIGHTS[kind]
    start = [
        np.asarray(x.to_decimal(in_unit), float)
        for x, in_unit in ((state.v, u.mV), (state.exc, unit), (state.inh, unit))
    ]
    contacts = [dense(np.asarray(m.indices), n) for m in (network.exc, network.inh)]
    result = simulate(network, milliseconds=milliseconds, seed=SEED)
    raster = np.zeros((result.steps, n), bool)
    raster[result.times, result.ids] = True
    wanted = numpy_run(kind, we * contacts[0], wi * contacts[1], *start, result.steps)
    assert wanted.sum() > n / 4, 'nothing to compare'
    return raster, wanted


@pytest.mark.parametrize('kind', ['COBA', 'CUBA'])
def test_every_spike_of_a_small_network_is_that_of_dense_numpy(kind):
    # Chaos doubles a rounding error every few ms. From 1e-16 it takes more than 100 ms to move a
    # spike.
    with jax.enable_x64(True):
        raster, wanted = compare(kind, 400, 100.0, np.float64)
    np.testing.assert_array_equal(raster, wanted)


@pytest.mark.parametrize('kind', ['COBA', 'CUBA'])
def test_single_precision_keeps_the_first_spikes_and_the_rate(kind):
    raster, wanted = compare(kind, 400, 100.0, np.float32)
    differing = (raster != wanted)[:100]
    assert differing.sum() <= 0.02 * wanted[:100].sum() + 2
    assert raster.sum() == pytest.approx(wanted.sum(), rel=0.15)
