# SPDX-License-Identifier: Apache-2.0
"""Grids: what is chosen for an extent, and what is refused before a GPU sees it."""

import pytest

from brainevent import errors
from brainevent._op.numba_cuda.launch import Call, Grid, plan


def planned(grid=None, block=None, launch_dims=None, threads_per_block=256, shared_mem=0):
    return plan('k', grid, block, launch_dims, threads_per_block, shared_mem)


@pytest.mark.parametrize(
    ('dims', 'threads', 'blocks', 'shape'),
    [
        (1, 256, (1,), (1,)),
        (10, 256, (1,), (10,)),
        (257, 256, (2,), (256,)),
        (100, 96, (2,), (96,)),
        ((1000, 3), 256, (63, 1), (16, 3)),
        ([40, 40], 256, (3, 3), (16, 16)),
        ((9, 9, 9), 256, (2, 2, 3), (8, 8, 4)),
        ((64, 64, 64), 1024, (4, 8, 8), (16, 8, 8)),
        ((50, 50), 1, (50, 50), (1, 1)),
        ((50, 50), 100, (7, 7), (8, 8)),
    ],
)
def test_blocks_cover_the_extent(dims, threads, blocks, shape):
    chosen = planned(launch_dims=dims, threads_per_block=threads, shared_mem=64)
    assert chosen == Grid(blocks, shape, 64)
    assert not chosen.idle


def test_an_explicit_grid_is_taken_as_it_is():
    assert planned(grid=4, block=(32, 2), shared_mem=128) == Grid((4,), (32, 2), 128)


@pytest.mark.parametrize(
    'given', [{'launch_dims': 0}, {'launch_dims': (4, 0)}, {'grid': (0, 2), 'block': 32}]
)
def test_no_threads_are_a_grid_that_is_not_launched(given):
    assert planned(**given).idle


@pytest.mark.parametrize(
    'given',
    [
        {},
        {'grid': 1},
        {'block': 1},
        {'grid': 1, 'launch_dims': 3},
        {'grid': 1, 'block': 1, 'launch_dims': 3},
    ],
)
def test_the_launch_is_said_once(given):
    with pytest.raises(errors.OptionError, match='not said, or said twice') as info:
        planned(**given)
    assert isinstance(info.value, ValueError)


def test_the_error_says_what_was_given():
    with pytest.raises(ValueError) as info:
        planned(grid=(2, 2))
    assert str(info.value) == (
        'k: the launch is not said, or said twice.\n'
        '    expected: `grid` and `block` together, or `launch_dims` alone\n'
        '    got:      grid=(2, 2), block=None, launch_dims=None\n'
        '    remedy:   give launch_dims=n for one thread an element'
    )


@pytest.mark.parametrize('extent', [-1, (3, -2), (1, 2, 3, 4), (), 2.5, 'ab', (1, None)])
def test_extents_are_one_to_three_counts(extent):
    for given in ({'launch_dims': extent}, {'grid': extent, 'block': 1}):
        with pytest.raises(errors.OptionError, match='is no extent'):
            planned(**given)


@pytest.mark.parametrize(
    'given',
    [
        {'grid': (1, 65536), 'block': 1},
        {'grid': 2**31, 'block': 1},
        {'grid': 1, 'block': 1025},
        {'grid': 1, 'block': (32, 64)},
        {'grid': 1, 'block': (1, 1, 65)},
        {'launch_dims': (1, 1 << 21)},
    ],
)
def test_what_no_gpu_can_launch_is_refused(given):
    with pytest.raises(errors.OptionError, match='no GPU can launch this grid'):
        planned(**given)


@pytest.mark.parametrize('threads', [0, 1025, -1, None])
def test_threads_per_block_is_a_number_of_threads(threads):
    with pytest.raises(errors.OptionError, match='threads_per_block'):
        planned(launch_dims=3, threads_per_block=threads)


def test_shared_memory_is_a_count():
    with pytest.raises(errors.OptionError, match='shared_mem'):
        planned(launch_dims=3, shared_mem=-1)


def test_a_function_gets_the_stream_last():
    got = []
    Call(lambda *args: got.extend(args)).run(['x', 'out'], 'stream')
    assert got == ['x', 'out', 'stream']
