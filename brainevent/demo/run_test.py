# SPDX-License-Identifier: Apache-2.0
"""The runner counts what a network does, whatever the chunks and however much is recorded."""

import dataclasses
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brainunit import ms

from brainevent.demo.run import Result, progress_bar, simulate


class Clock(NamedTuple):
    now: jax.Array
    spike: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Metronomes:
    """Neuron ``i`` fires every ``periods[i]`` steps."""

    periods: jax.Array
    name = 'metronomes'
    members = 'metronomes'
    stimuli = {}
    dt = 0.1 * ms
    out_degree = np.array([1, 10, 100, 1000])
    populations = {'fast': slice(0, 2), 'slow': slice(2, 4)}

    @property
    def neurons(self):
        return self.periods.shape[0]

    def init(self, seed=0):
        return Clock(jnp.int32(0), jnp.zeros(self.neurons, bool))

    def step(self, state):
        now = state.now + 1
        return Clock(now, now % self.periods == 0)


PERIODS = np.array([10, 20, 500, 600])


@pytest.fixture(scope='module')
def result():
    return simulate(Metronomes(jnp.asarray(PERIODS)), milliseconds=250.0)


def test_spikes_are_counted_across_chunks(result):
    assert result.steps == 2500 and result.model_seconds == pytest.approx(0.25)
    np.testing.assert_array_equal(result.counts, 2500 // PERIODS)
    assert result.synaptic_events == (2500 // PERIODS) @ Metronomes.out_degree


def test_recorded_spikes_are_in_place(result):
    for neuron, period in enumerate(PERIODS):
        times = result.times[result.ids == neuron]
        np.testing.assert_array_equal(times, np.arange(period - 1, 2500, period))
    assert (np.diff(result.times) >= 0).all()


def test_rate_is_spikes_per_neuron_and_second(result):
    assert result.rate('fast') == pytest.approx((250 + 125) / 2 / 0.25)


def test_recording_fewer_neurons_leaves_counts_alone(result):
    fewer = simulate(result.network, milliseconds=250.0, record=2)
    np.testing.assert_array_equal(fewer.counts, result.counts)
    assert fewer.stride == 2 and set(fewer.ids) == {0, 2}


def test_progress_is_told_in_chunks():
    told = []
    network = Metronomes(jnp.asarray(PERIODS))
    simulate(network, milliseconds=250.0, progress=told.append)
    assert told == [0, 1000, 1000, 500]


def trains(*times):
    ids = np.repeat(np.arange(len(times)), [len(t) for t in times])
    times = np.concatenate(times)
    order = np.argsort(times, kind='stable')
    network = Metronomes(jnp.asarray(PERIODS))
    return Result(network, 10, np.zeros(4, int), times[order], ids[order], 1, 0.0, 0.0)


def test_cv_of_a_clock_is_zero_and_of_pairs_is_one():
    pairs = np.cumsum([1, 0, 8, 0, 8, 0, 8])
    result = trains(np.arange(0, 50, 5), np.array([]), pairs, np.array([3]))
    assert result.isi_cv('fast') == 0
    assert result.isi_cv('slow', intervals=6) == pytest.approx(1.0)


def test_cv_of_nothing_is_nan():
    assert np.isnan(trains([], [], [], [4]).isi_cv('fast'))
    assert np.isnan(trains([1, 2, 4], [], [], []).isi_cv('fast'))


def test_bar_without_tqdm_goes_to_standard_error(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'tqdm', None)
    with progress_bar(200) as told:
        told(0)
        told(50)
        told(150)
    out, err = capsys.readouterr()
    assert out == '' and '50/200' in err and err.endswith(f'[{"#" * 40}] 200/200 steps\n')


def test_compilation_is_not_work_of_the_bar(capsys):
    pytest.importorskip('tqdm')
    with progress_bar(200) as told:
        before = capsys.readouterr().err
        told(0)
        began = capsys.readouterr().err
        told(200)
    assert before == 'compiling ...' and began.lstrip('\r').startswith('  0%')
    assert '200/200' in capsys.readouterr().err


def test_a_run_that_does_not_compile_has_no_bar(capsys):
    with pytest.raises(ValueError), progress_bar(200):
        raise ValueError
    assert capsys.readouterr().err == 'compiling ...\n'
