# SPDX-License-Identifier: Apache-2.0
"""The run on the connectome of C. elegans is, spike for spike, that of a dense NumPy program.

Claim. Chemical synapses as event-driven products with a CSR matrix, and gap junctions as ordinary
ones, give what the equations give when each of the 473 by 473 pairs is written out.

Source. Wiring: Cook et al. 2019, Nature 571:63-71; read here from the packaged file with other code
than the package's. Counts that the file must agree with: 4,879 chemical connections of 28,113
contacts, 2,883 directed entries of gap junctions.

Tolerance. None in float64, for 300 ms that include a touch. Seed 0.
"""

import csv
from importlib import resources

import brainunit as u
import jax
import numpy as np
import pytest

from brainevent.demo import CElegans, simulate
from brainevent.demo.celegans import load_wiring

SEED = 0
GABA = {f'DD{i}' for i in range(1, 7)} | {f'VD{i}' for i in range(1, 14)}
GABA |= {'RMED', 'RMEL', 'RMER', 'RMEV', 'RIS', 'AVL', 'DVB'}


def read():
    """Chemical and gap matrices by name of the cell, without a header and comments."""
    path = resources.files('brainevent.demo') / 'data' / 'celegans_cook2019_hermaphrodite.csv'
    rows = [r for r in csv.reader(path.read_text().splitlines()) if not r[0].startswith('#')][1:]
    cells = load_wiring().cells
    number = {cell: i for i, cell in enumerate(cells)}
    matrices = {kind: np.zeros((len(cells), len(cells))) for kind in ('chemical', 'gap')}
    for pre, post, kind, count in rows:
        matrices[kind][number[pre], number[post]] += float(count)
    return cells, matrices['chemical'], matrices['gap']


def numpy_run(bias, v, steps):
    """Equations of the demo in mV, nS, pA, pF and ms; each gap junction as its own current."""
    cells, chemical, gap = read()
    dt, leak, contact, junction = 0.1, 0.1, 0.13, 0.002
    weight = contact * chemical * np.where([cell in GABA for cell in cells], -1.0, 1.0)[:, None]
    head = np.array([6.0 * (cell in ('ALML', 'ALMR', 'AVM')) for cell in cells])
    tail = np.array([6.0 * (cell in ('PLML', 'PLMR')) for cell in cells])
    fires = np.array([not any(c.islower() for c in cell) for cell in cells])
    fires &= np.array([not cell.startswith('GLR') for cell in cells])
    fires |= np.array([cell.startswith(('mu_', 'pm', 'um', 'vm')) for cell in cells])
    current, fatigue = np.zeros(len(cells)), np.zeros(len(cells))
    resting = np.zeros(len(cells), int)
    raster = np.zeros((steps, len(cells)), bool)
    total = leak + junction * gap.sum(1)
    for step in range(steps):
        now = step * dt % 1000
        drive = bias + head * (200 <= now < 300) + tail * (600 <= now < 700)
        drive = drive + current - fatigue
        goal = (leak * -60.0 + junction * (gap @ v) + drive) / total
        v = np.where(resting > 0, v, goal + (v - goal) * np.exp(-dt * total / 1.0))
        spike = (v > -50.0) & fires
        v = np.where(spike, -60.0, v)
        resting = np.where(spike, 29, np.maximum(resting - 1, 0))
        current = current * np.exp(-dt / 5.0) + spike @ weight
        fatigue = fatigue * np.exp(-dt / 100.0) + 0.5 * spike
        raster[step] = spike
    return raster


def test_file_holds_the_connectome():
    cells, chemical, gap = read()
    assert len(cells) == 473
    assert np.count_nonzero(chemical) == 4879 and chemical.sum() == 28113
    assert np.count_nonzero(gap) == 2883
    np.testing.assert_array_equal(gap, gap.T)


def test_every_spike_is_that_of_dense_numpy():
    with jax.enable_x64(True):
        worm = CElegans.draw(seed=SEED, dtype=np.float64)
        result = simulate(worm, milliseconds=300.0, seed=SEED)
        bias, v = (
            np.asarray(x.to_decimal(unit))
            for x, unit in ((worm.bias, u.pA), (worm.init(SEED).v, u.mV))
        )
    raster = np.zeros((result.steps, worm.neurons), bool)
    raster[result.times, result.ids] = True
    wanted = numpy_run(bias, v, result.steps)
    assert wanted.sum() > 500
    np.testing.assert_array_equal(raster, wanted)


@pytest.mark.parametrize('where', ['head', 'tail'])
def test_touch_is_answered_by_motor_neurons(where):
    # Illustrative constants, so only that: more motor spikes follow a touch than without it.
    worm = CElegans.draw(seed=SEED)
    silent = type(worm)(**{**vars(worm), where: 0.0 * getattr(worm, where)})
    motor = worm.populations['motor']
    until = 400.0 if where == 'head' else 800.0
    touched, untouched = (
        simulate(network, milliseconds=until, seed=SEED).counts[motor].sum()
        for network in (worm, silent)
    )
    assert touched > untouched
