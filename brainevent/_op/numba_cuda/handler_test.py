# SPDX-License-Identifier: Apache-2.0
"""Handlers, driven with call frames made by hand and a driver that takes notes."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

from brainevent._op.numba_cuda import handler as handler_module
from brainevent._op.numba_cuda.batching import Operand
from brainevent._op.numba_cuda.handler import Handler
from brainevent._op.numba_cuda.launch import Call, Grid, Launch


class Notes:
    """A driver that notes what is asked of it, and does not."""

    platform = 'CUDA'

    def __init__(self, failure=None):
        self.log, self._failure = [], failure

    def stream(self, frame):
        return frame.stream()

    def clear(self, address, size, stream):
        self.log.append(('clear', address, size, stream))

    def launch(self, work, views, stream):
        if self._failure is not None:
            raise self._failure
        self.log.append(('launch', *[(v.address, v.shape) for v in views], stream))


X = np.arange(6.0, dtype='float32').reshape(2, 3)
OUT = np.full((2, 4), 9, 'int64')
WHOLE = [Operand('float32', (2, 3))], [Operand('int64', (2, 4))]
ROWS = [Operand('float32', (3,))], [Operand('int64', (4,))]


def call(made, driver, operands, work=None, aliased=()):
    """Call a handler as XLA does: through the address of its entry."""
    work = Launch(None, Grid((1,), (8,))) if work is None else work
    handler = Handler('k', work, operands, aliased, driver)
    return handler.entry(made.address)


def test_outputs_are_cleared_before_the_launch(hand_made):
    driver = Notes()
    assert call(hand_made([X], [OUT]), driver, WHOLE) is None
    x, out = X.ctypes.data, OUT.ctypes.data
    assert driver.log == [('clear', out, 64, 42), ('launch', (x, (2, 3)), (out, (2, 4)), 42)]


def test_a_batch_is_cleared_once_and_launched_for_each_element(hand_made):
    driver = Notes()
    assert call(hand_made([X], [OUT]), driver, ROWS) is None
    x, out = X.ctypes.data, OUT.ctypes.data
    assert driver.log == [
        ('clear', out, 64, 42),
        ('launch', (x, (3,)), (out, (4,)), 42),
        ('launch', (x + 12, (3,)), (out + 32, (4,)), 42),
    ]


def test_a_grid_without_threads_leaves_zeros(hand_made):
    driver = Notes()
    work = Launch(None, Grid((0,), (8,)))
    assert call(hand_made([X], [OUT]), driver, WHOLE, work) is None
    assert driver.log == [('clear', OUT.ctypes.data, 64, 42)]


def test_an_output_that_starts_as_an_input_is_not_cleared(hand_made):
    driver = Notes()
    assert call(hand_made([X], [OUT]), driver, WHOLE, aliased=[0]) is None
    assert [entry[0] for entry in driver.log] == ['launch']


def test_an_empty_output_is_not_cleared(hand_made):
    driver = Notes()
    operands = [Operand('float32', (2, 3))], [Operand('int64', (0,))]
    assert call(hand_made([X], [np.zeros(0, 'int64')]), driver, operands) is None
    assert [entry[0] for entry in driver.log] == ['launch']


def test_nothing_is_touched_before_the_call_is_understood(hand_made):
    driver = Notes()
    made = hand_made([X[None]], [OUT[None]])
    assert call(made, driver, ROWS) == 1001
    assert driver.log == []
    ((code, text),) = made.errors
    assert code == 13
    assert "vmap_method='sequential'" in text


def test_another_number_of_buffers_is_an_error(hand_made):
    made, driver = hand_made([X, X], [OUT]), Notes()
    assert call(made, driver, WHOLE)
    assert driver.log == []


@pytest.mark.parametrize(
    'failure', [ValueError('bad'), KeyboardInterrupt('bad'), SystemExit('bad')]
)
def test_whatever_is_raised_becomes_an_error_of_xla(hand_made, failure):
    made = hand_made([X], [OUT])
    assert call(made, Notes(failure), WHOLE)
    assert made.errors == [(13, f'{type(failure).__name__}: bad')]


def test_xla_is_told_the_version_and_nothing_is_run(hand_made):
    made, driver = hand_made([X], [OUT]).ask_metadata(), Notes()
    assert call(made, driver, WHOLE) is None
    assert driver.log == []
    version = (ctypes.c_int32 * 2).from_address(ctypes.addressof(made.metadata) + 24)
    assert list(version) == [0, 1]


def test_a_handler_outlives_its_maker_and_is_made_once(monkeypatch):
    registered = []
    monkeypatch.setattr(handler_module, '_targets', set())
    monkeypatch.setattr(handler_module, '_pinned', [])
    monkeypatch.setattr(
        handler_module.jax.ffi,
        'register_ffi_target',
        lambda name, capsule, platform: registered.append((name, platform)),
    )
    made = []

    def make():
        made.append(weakref.ref(Handler('k', Call(print), WHOLE, (), Notes())))
        return made[-1]()

    for _ in range(2):
        handler_module.ensure('brainevent_test_pins', make, 'CUDA')
    gc.collect()
    assert len(made) == 1
    assert made[0]() is not None
    # on the CPU, where XLA would know no such name, stands a refusal
    assert registered == [('brainevent_test_pins', 'CUDA'), ('brainevent_test_pins', 'cpu')]
