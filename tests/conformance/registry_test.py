# SPDX-License-Identifier: Apache-2.0
"""Every family that exists is in the suite."""

import numpy as np
import pytest

from brainevent._edge import FAMILIES, Event
from tests.conformance.examples import MAKERS, example
from tests.conformance.grid import STEMS, backends


def test_families_are_registered():
    assert {'csr', 'csr_mirror'} <= set(STEMS)


@pytest.mark.parametrize('stem', STEMS)
def test_every_layout_has_an_example(stem):
    assert FAMILIES[stem].layout.name in MAKERS


@pytest.mark.parametrize('stem', STEMS)
def test_reference_backend_serves_every_family(stem):
    assert 'jax_raw' in backends(stem)
    for event in Event:
        for op in FAMILIES[stem].primitives(event):
            assert op.available_backends('cpu')[-1] == 'jax_raw'


@pytest.mark.parametrize('stem', STEMS)
def test_examples_show_the_edges_of_the_layout(stem):
    layout = FAMILIES[stem].layout
    for shape in ((7, 5), (1, 4), (4, 1), (0, 3), (3, 0)):
        ex = example(layout.name, 3, shape, 12)
        room = layout.count(ex.arrays, shape)
        assert room == ex.edges or layout.draw and room > ex.edges
        layout.check_shapes('example', ex.arrays, shape)
        layout.check_values('example', ex.arrays, shape)
        row, col = layout.edges(ex.arrays, shape)
        np.testing.assert_array_equal(row[: ex.edges], ex.row)
        np.testing.assert_array_equal(col[: ex.edges], ex.col)
        assert (np.asarray(row)[ex.edges :] == shape[0]).all()
