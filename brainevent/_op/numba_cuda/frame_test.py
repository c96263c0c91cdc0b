# SPDX-License-Identifier: Apache-2.0
"""Frames made by hand are read back; errors go through XLA's own functions."""

import ctypes

import numpy as np
import pytest

from brainevent import errors
from brainevent._op.numba_cuda.frame import Buffer, CallFrame


def test_buffers_are_read(hand_made):
    x = np.arange(6, dtype='float16').reshape(2, 3)
    y = np.zeros((), 'complex128')
    frame = CallFrame(hand_made([x], [y]).address)
    assert frame.inputs == [Buffer(x.ctypes.data, (2, 3), 'float16')]
    assert frame.outputs == [Buffer(y.ctypes.data, (), 'complex128')]
    assert CallFrame(hand_made().address).inputs == []


@pytest.mark.parametrize('code', [16, 19, 20, 21, 22, 26, 28, 32])
def test_a_dtype_that_numba_does_not_have_is_not_taken_for_another(hand_made, code):
    frame = CallFrame(hand_made([(np.zeros(3, 'uint8'), code)]).address)
    assert frame.inputs[0].dtype == f'XLA type {code}'


def test_the_stream_is_asked_for(hand_made):
    assert CallFrame(hand_made(stream=2**47 + 5).address).stream() == 2**47 + 5


def test_no_stream_is_an_error_and_its_memory_is_given_back(hand_made):
    made = hand_made(no_stream='not on a CPU')
    with pytest.raises(errors.KernelExecutionError, match='not on a CPU'):
        CallFrame(made.address).stream()
    assert made.destroyed == [77]


def test_an_error_is_made_by_xla(hand_made):
    made = hand_made()
    assert CallFrame(made.address).error('größer') == 1001
    assert made.errors == [(13, 'größer')]


def test_the_metadata_question_is_answered(hand_made):
    made = hand_made().ask_metadata()
    assert CallFrame(made.address).answer_metadata()
    version = (ctypes.c_int32 * 2).from_address(ctypes.addressof(made.metadata) + 24)
    assert list(version) == [0, 1]


def test_other_extensions_are_no_question(hand_made):
    made = hand_made().ask_metadata(kind=9)
    assert not CallFrame(made.address).answer_metadata()
    assert list(made.metadata) == [0] * 6
    assert not CallFrame(hand_made().address).answer_metadata()
