# SPDX-License-Identifier: Apache-2.0
"""The connectome as it is read, and the network that is built on it."""

import brainunit as u
import jax
import numpy as np

from brainevent.demo.celegans import GABA, CElegans, load_wiring


def test_groups_divide_the_cells():
    wiring = load_wiring()
    sizes = {group: cells.stop - cells.start for group, cells in wiring.groups.items()}
    assert sum(sizes.values()) == len(wiring.cells) == len(set(wiring.cells))
    # The adult hermaphrodite has 302 neurons, 95 of its muscles are of the body wall.
    neurons = sum(sizes[group] for group in ('sensory', 'interneuron', 'motor', 'pharynx'))
    assert neurons == 302 and sizes['pharynx'] == 20
    assert sum(cell.startswith(('MD', 'MV')) for cell in wiring.cells) == 95


def test_known_cells_are_where_they_belong():
    wiring = load_wiring()
    group = {c: name for name, cells in wiring.groups.items() for c in wiring.cells[cells]}
    wanted = {
        'ALML': 'sensory',
        'ASEL': 'sensory',
        'AVAL': 'interneuron',
        'VA12': 'motor',
        'AS1': 'motor',
        'MCL': 'pharynx',
        'MDL07': 'muscle',
        'vm1AL': 'muscle',
        'GLRL': 'other',
        'CEPshDL': 'other',
        'CEPDL': 'sensory',
    }
    assert {cell: group[cell] for cell in wanted} == wanted


def test_twenty_six_neurons_are_gabaergic():
    assert sum(bool(GABA.fullmatch(cell)) for cell in load_wiring().cells) == 26


def test_gap_junctions_are_symmetric_and_move_nothing_at_equal_potentials():
    worm = CElegans.draw()
    gap = u.get_mantissa(worm.gap.todense())
    np.testing.assert_array_equal(gap, gap.T)
    np.testing.assert_allclose(u.get_mantissa(worm.gap_total), gap.sum(1), rtol=1e-6)


def test_only_gabaergic_cells_inhibit():
    worm, wiring = CElegans.draw(), load_wiring()
    dense = u.get_mantissa(worm.chemical.todense())
    for cell, row in zip(wiring.cells, dense, strict=True):
        assert (row <= 0).all() if GABA.fullmatch(cell) else (row >= 0).all(), cell
    assert np.count_nonzero(dense) == worm.out_degree.sum() == 4879


def test_touch_comes_and_goes():
    worm = CElegans.draw()
    cells = np.array(load_wiring().cells)
    wanted = {2500: {'ALML', 'ALMR', 'AVM'}, 16500: {'PLML', 'PLMR'}, 4000: set()}
    for clock, touched in wanted.items():
        extra = u.get_mantissa(worm.input(clock) - worm.bias)
        assert set(cells[np.abs(extra) > 1e-3]) == touched


def test_cells_that_only_conduct_stay_silent():
    worm = CElegans.draw()
    state = worm.init()
    state = jax.jit(worm.step)(state._replace(v=0 * state.v))
    np.testing.assert_array_equal(state.spike, worm.can_fire)
    assert int((~worm.can_fire).sum()) == 36
