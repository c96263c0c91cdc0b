# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver, with its library and numba played: order, arguments, failures."""

import ctypes
import types

import numpy as np
import pytest

from brainevent import errors
from brainevent._op.numba_cuda import driver as driver_module
from brainevent._op.numba_cuda.batching import View
from brainevent._op.numba_cuda.driver import CudaDriver
from brainevent._op.numba_cuda.frame import CallFrame
from brainevent._op.numba_cuda.launch import Call, Grid, Launch

STREAM = 2**47 + 8


class Library:
    """The functions of libcuda that are used; every stream is of context 99."""

    def __init__(self, **codes):
        self.log, self._codes = [], codes

    def __getattr__(self, name):
        def function(*args):
            values = [getattr(arg, 'value', None) for arg in args]
            if name == 'cuStreamGetCtx':
                args[1]._obj.value = 99
            self.log.append((name, *[value for value in values if value is not None]))
            return self._codes.get(name, 0)

        return function


def numba_cuda(log):
    return types.SimpleNamespace(
        external_stream=lambda stream: ('stream', stream),
        from_cuda_array_interface=lambda told, sync: log.append(('array', sync)) or told,
    )


def test_memory_is_cleared_on_the_stream():
    library = Library()
    CudaDriver(library).clear(2**40, 2**33, STREAM)
    assert library.log == [
        ('cuStreamGetCtx', STREAM),
        ('cuCtxPushCurrent_v2', 99),
        ('cuMemsetD8Async', 2**40, 0, 2**33, STREAM),
        ('cuCtxPopCurrent_v2',),
    ]


def test_a_kernel_is_launched_on_the_stream_with_arrays_in_place():
    library, launched = Library(), []

    class Kernel:
        def __getitem__(self, launch):
            library.log.append('launch')
            return lambda *arrays: launched.append((launch, arrays))

    driver = CudaDriver(library, numba_cuda(library.log))
    work = Launch(Kernel(), Grid((2, 1), (16, 8), 64))
    driver.launch(work, [View(4096, (3, 0), np.dtype('bool'))], STREAM)
    assert [entry[0] for entry in library.log if entry != 'launch'] == [
        'cuStreamGetCtx', 'cuCtxPushCurrent_v2', 'array', 'cuCtxPopCurrent_v2',
    ]  # fmt: skip
    assert library.log[2:4] == [('array', False), 'launch']
    ((launch, arrays),) = launched
    assert launch == ((2, 1), (16, 8), ('stream', STREAM), 64)
    assert arrays == (
        {'version': 3, 'shape': (3, 0), 'strides': None, 'typestr': '|b1', 'data': (4096, False)},
    )


def test_the_context_is_left_after_a_failure():
    def fail(*args):
        raise ZeroDivisionError

    library = Library()
    with pytest.raises(ZeroDivisionError):
        CudaDriver(library, numba_cuda([])).launch(Call(fail), [], STREAM)
    assert library.log[-1] == ('cuCtxPopCurrent_v2',)


def test_a_failure_of_cuda_names_its_code():
    with pytest.raises(errors.KernelExecutionError, match='cuMemsetD8Async failed') as info:
        CudaDriver(Library(cuMemsetD8Async=700)).clear(1, 2, 3)
    assert 'CUresult 700' in str(info.value)


def test_a_missing_driver_is_looked_for_again(monkeypatch):
    answers = [OSError('no such file'), OSError('no such file'), Library()]

    def cdll(name):
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(driver_module.ctypes, 'CDLL', cdll)
    driver = CudaDriver()
    for _ in range(2):
        with pytest.raises(errors.CUDANotInstalledError, match=r'libcuda\.so\.1'):
            driver.clear(1, 2, 3)
    driver.clear(1, 2, 3)
    assert answers == []


def test_the_stream_is_the_one_xla_gives(hand_made):
    assert CudaDriver.platform == 'CUDA'
    assert CudaDriver().stream(CallFrame(hand_made(stream=5).address)) == 5


def test_arguments_have_the_widths_that_cuda_expects():
    kinds = []
    library = types.SimpleNamespace(
        cuStreamGetCtx=lambda *a: 0,
        cuCtxPushCurrent_v2=lambda *a: 0,
        cuCtxPopCurrent_v2=lambda *a: 0,
        cuMemsetD8Async=lambda *a: kinds.extend(map(type, a)) or 0,
    )
    CudaDriver(library).clear(1, 2, 3)
    assert kinds == [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p]
