# SPDX-License-Identifier: Apache-2.0
"""A driver that works on the host, and call frames made by hand."""

import ctypes
import itertools
import types

import jax
import numpy as np
import pytest

from brainevent._op.numba_cuda import bridge, frame
from brainevent._op.numba_cuda.launch import Launch


class HostDriver:
    """Device memory is the host's; kernels run one thread after the other, in Python."""

    platform = 'cpu'

    def __init__(self):
        self.log = []

    def stream(self, frame):
        return 7

    def clear(self, address, size, stream):
        self.log.append(('clear', size, stream))
        ctypes.memset(address, 0, size)

    def launch(self, work, views, stream):
        arrays = [_array(view) for view in views]
        if isinstance(work, Launch):
            self.log.append(('launch', work.grid.blocks, work.grid.threads, stream))
            _simulate(work, arrays)
        else:
            self.log.append(('call', stream))
            work.run(arrays, stream)

    def launches(self):
        return [entry for entry in self.log if entry[0] != 'clear']


HOST = HostDriver()  # one for all tests: XLA keeps the first handler of a name, and its driver


def _array(view):
    size = int(np.prod(view.shape)) * view.dtype.itemsize
    raw = (ctypes.c_ubyte * size).from_address(view.address)
    return np.frombuffer(raw, view.dtype).reshape(view.shape)


def _simulate(work, arrays):
    fake = types.SimpleNamespace(atomic=types.SimpleNamespace(add=_add))
    function = work.py_func
    names = {**function.__globals__, 'cuda': fake}
    body = types.FunctionType(function.__code__, names, None, None, function.__closure__)
    extents = [b * t for b, t in zip(work.grid.blocks, work.grid.threads, strict=True)]
    for place in itertools.product(*map(range, extents)):
        fake.grid = lambda n, place=place: place[0] if n == 1 else place
        body(*arrays)


def _add(array, index, value):
    array[index] += value


@pytest.fixture(params=['host', 'gpu'])
def device(request, monkeypatch):
    """Run kernels on a GPU if there is one, and on a host that plays one; the host's driver."""
    if request.param == 'gpu':
        if not any(d.platform == 'gpu' for d in jax.devices()):
            pytest.skip('no GPU here')
        yield None
        return
    yield from _play(monkeypatch)


@pytest.fixture
def host(monkeypatch):
    """Run kernels on a host that plays a GPU; its driver."""
    yield from _play(monkeypatch)


def _play(monkeypatch):
    HOST.log.clear()
    monkeypatch.setattr(bridge, '_driver', HOST)
    with jax.default_device(jax.devices('cpu')[0]):
        yield HOST


CODES = {name: code for code, name in frame._CODES.items()}
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class HandMade:
    """An ``XLA_FFI_CallFrame`` with an API table that notes what is asked of it."""

    def __init__(self, inputs=(), outputs=(), stream=42, no_stream=None):
        self.errors, self.destroyed, self._keep = [], [], []
        self._stream, self._no_stream = stream, no_stream
        self.api = (ctypes.c_int64 * 24)()
        for place, function in (
            (6, self._create), (7, self._message), (8, self._destroy), (10, self._get_stream),
        ):  # fmt: skip
            entry = _FUNCTION(function)
            self._keep.append(entry)
            self.api[place] = ctypes.cast(entry, ctypes.c_void_p).value
        self.words = (ctypes.c_int64 * 22)()
        self.words[2], self.words[3] = ctypes.addressof(self.api), 1234
        self.words[7], self.words[9] = len(inputs), self._items(inputs)
        self.words[12], self.words[14] = len(outputs), self._items(outputs)
        self.address = ctypes.addressof(self.words)

    def _items(self, arrays):
        table = (ctypes.c_int64 * max(1, len(arrays)))(*map(self._buffer, arrays))
        self._keep.append(table)
        return ctypes.addressof(table)

    def _buffer(self, array):
        """Describe an array, or a pair of one and the code of a dtype that it is said to have."""
        array, code = array if isinstance(array, tuple) else (array, CODES[array.dtype.name])
        dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        words = (ctypes.c_int64 * 6)(
            48, 0, code, array.ctypes.data, array.ndim, ctypes.addressof(dims)
        )
        self._keep += [array, dims, words]
        return ctypes.addressof(words)

    def ask_metadata(self, kind=1):
        """Turn the frame into XLA's question for the version; the place of the answer."""
        self.metadata = (ctypes.c_int64 * 6)()
        extension = (ctypes.c_int64 * 4)(32, kind, 0, ctypes.addressof(self.metadata))
        self._keep.append(extension)
        self.words[1] = ctypes.addressof(extension)
        return self

    def _create(self, args):
        words = (ctypes.c_int64 * 3).from_address(args)
        code = ctypes.c_int32.from_address(args + 24).value
        self.errors.append((code, ctypes.string_at(words[2]).decode()))
        return 1000 + len(self.errors)

    def _message(self, args):
        text = ctypes.create_string_buffer(self._no_stream.encode())
        self._keep.append(text)
        (ctypes.c_int64 * 4).from_address(args)[3] = ctypes.addressof(text)

    def _destroy(self, args):
        self.destroyed.append((ctypes.c_int64 * 3).from_address(args)[2])

    def _get_stream(self, args):
        words = (ctypes.c_int64 * 4).from_address(args)
        assert words[2] == 1234
        words[3] = self._stream
        return 77 if self._no_stream else None


@pytest.fixture
def hand_made():
    return HandMade
