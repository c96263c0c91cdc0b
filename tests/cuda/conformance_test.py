# SPDX-License-Identifier: Apache-2.0
"""The conformance suite once more, with every product, gradient and batch made by CUDA kernels.

They run on the emulator in checking mode: a read or write outside a buffer, of memory that nobody
wrote, a result left unwritten, a race or a barrier that some threads miss is an error of the call.
"""

import dataclasses

import jax
import pytest

from tests.conformance import (
    batching_test,
    broken_structure_test,
    derivatives_test,
    empty_test,
    per_edge_test,
)
from tests.conformance.grid import dtype_grid, every_dtype, full_grid, thinned, turned_grid
from tests.conformance.per_edge import LEARNING, cases

pytestmark = pytest.mark.usefixtures('emulated')
SCHEDULES = ('reverse', 'random:1', 'preempt:2')


def on_cuda(cases, keep):
    """Return the cases of a grid for the CUDA backend, thinned."""
    mine = [dataclasses.replace(c, backend='cuda_raw') for c in cases if c.backend == 'jax_raw']
    return thinned(mine, keep)


@pytest.mark.parametrize('case', on_cuda(full_grid(), 8))
def test_value_and_derivatives(case):
    derivatives_test.check_derivatives(case)


@pytest.mark.parametrize('schedule', SCHEDULES)
@pytest.mark.parametrize('case', on_cuda(turned_grid(), 30))
def test_under_other_schedules(case, schedule, emulated):
    emulated(schedule)
    derivatives_test.check_derivatives(case)


@pytest.mark.parametrize('case', on_cuda(dtype_grid(), 12))
def test_other_dtypes(case):
    with jax.enable_x64(case.x64):
        if case.dtype in derivatives_test.DERIVED:
            derivatives_test.check_derivatives(case)
        else:
            derivatives_test.check_value(case)


@pytest.mark.parametrize('case', on_cuda(every_dtype(), 6))
def test_every_family_takes_other_widths(case):
    with jax.enable_x64(case.x64):
        derivatives_test.check_value(case)


@pytest.mark.parametrize('case', on_cuda(turned_grid(), 18))
def test_batches(case):
    batching_test.check_batches(case)


@pytest.mark.parametrize('case', on_cuda(empty_test._cases(), 10))
def test_nothing_gives_zeros(case):
    empty_test.check_nothing(case)


@pytest.mark.parametrize(
    'case', on_cuda(broken_structure_test._cases(broken_structure_test.STRUCTURED), 20)
)
def test_garbage_is_survived(case):
    broken_structure_test.check_garbage(case)


@pytest.mark.parametrize(
    'case',
    on_cuda(
        broken_structure_test._cases(
            [s for s in broken_structure_test.STRUCTURED if s in broken_structure_test.IDS]
        ),
        10,
    ),
)
def test_edges_that_point_outside_count_nothing(case):
    broken_structure_test.check_outside(case)


@pytest.mark.parametrize('case', on_cuda(cases(), 14))
def test_scaling_and_picking(case):
    per_edge_test.check(case, 2e-5)


@pytest.mark.parametrize('case', on_cuda(cases(operators=LEARNING), 24))
def test_learning(case):
    per_edge_test.check(case, 2e-5)
