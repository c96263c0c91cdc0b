# SPDX-License-Identifier: Apache-2.0
"""Slices: every batch element is seen alone, whichever operands the batch is in."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from brainevent import errors
from brainevent._op.numba_cuda.batching import Operand, View, slices
from brainevent._op.numba_cuda.frame import Buffer

F4 = np.dtype('float32')
OPERANDS = [Operand('float32', (5,)), Operand('int16', ()), Operand('float32', (2, 3))]


def cut(*shapes):
    buffers = [
        Buffer(1000 * (k + 1), shape, operand.dtype)
        for k, (shape, operand) in enumerate(zip(shapes, OPERANDS, strict=True))
    ]
    return list(slices('k', OPERANDS, buffers))


def test_no_batch_is_one_launch():
    assert cut((5,), (), (2, 3)) == [
        [View(1000, (5,), F4), View(2000, (), np.dtype('int16')), View(3000, (2, 3), F4)]
    ]


def test_a_batch_is_one_launch_an_element():
    places = [[view.address for view in views] for views in cut((3, 5), (1,), (3, 2, 3))]
    assert places == [[1000, 2000, 3000], [1020, 2000, 3024], [1040, 2000, 3048]]


def test_a_batch_of_one_and_of_none():
    assert len(cut((1, 5), (1,), (1, 2, 3))) == 1
    assert cut((1, 5), (0,), (0, 2, 3)) == []


def test_a_batch_of_batches_is_refused_with_the_way_out():
    with pytest.raises(errors.KernelExecutionError) as info:
        cut((4, 3, 5), (1, 1), (4, 3, 2, 3))
    assert str(info.value) == (
        'k: a batch of batches reached the kernel.\n'
        '    expected: at most one level of vmap\n'
        '    got:      buffers of shapes [(4, 3, 5), (1, 1), (4, 3, 2, 3)]\n'
        "    remedy:   wrap the kernel with vmap_method='sequential', or vmap once over a flat "
        'batch'
    )


@pytest.mark.parametrize(
    'shapes', [((4,), (), (2, 3)), ((3, 5), (3,), (3, 2, 4)), ((3, 5), (2,), (3, 2, 3))]
)
def test_other_shapes_are_refused(shapes):
    with pytest.raises(errors.KernelExecutionError, match='not those that the kernel was traced'):
        cut(*shapes)


def test_batches_in_some_operands_only_are_refused():
    with pytest.raises(errors.KernelExecutionError):
        cut((3, 5), (), (3, 2, 3))


def test_other_dtypes_are_refused():
    with pytest.raises(errors.KernelExecutionError, match='XLA type 16'):
        list(slices('k', OPERANDS[:1], [Buffer(0, (5,), 'XLA type 16')]))


@pytest.mark.parametrize(
    'dtype',
    [jnp.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint2],
)
def test_dtypes_that_numba_lacks_are_refused(dtype):
    with pytest.raises(TypeError, match='input 1 has a dtype that a CUDA kernel cannot hold'):
        Operand.of_input('k', 1, jax.ShapeDtypeStruct((3,), dtype))
    with pytest.raises(ValueError, match='astype'):
        Operand.of('k', 'output 0', jax.ShapeDtypeStruct((), dtype))


def test_scalars_are_refused_as_inputs_only():
    with pytest.raises(errors.ShapeError, match='input 0 has no axes'):
        Operand.of_input('k', 0, np.float32(1))
    assert Operand.of('k', 'output 0', np.float32(1)) == ('float32', ())
