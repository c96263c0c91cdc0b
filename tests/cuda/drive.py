# SPDX-License-Identifier: Apache-2.0
"""Call an FFI handler with a hand-made call frame, as XLA would: no XLA, no device, no driver."""

import ctypes

import numpy as np

from brainevent._op.numba_ffi import abi

# XLA_FFI_Args, _Rets, _Attrs end in count, types, items (attributes: count, types, names, items).
_COUNT, _TYPES, _NAMES = -2, -1, -1
_ATTRS = abi.FRAME_RETS + 6
_SCALAR, _METADATA = 3, 1
_STREAM_GET = 10
_DTYPES = {
    'bool': 1, 'int8': 2, 'int16': 3, 'int32': 4, 'int64': 5, 'uint8': 6, 'uint16': 7, 'uint32': 8,
    'uint64': 9, 'float16': 10, 'float32': 11, 'float64': 12, 'complex64': 15, 'complex128': 18,
}  # fmt: skip
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Memory:
    """Words and bytes at addresses that stay valid as long as this object."""

    def __init__(self):
        self._kept = []

    def words(self, *values):
        """Return the address of a struct of 8-byte words."""
        return self.keep((ctypes.c_int64 * max(len(values), 1))(*values))

    def keep(self, thing):
        """Return the address of a ctypes object or an array."""
        self._kept.append(thing)
        return thing.ctypes.data if isinstance(thing, np.ndarray) else ctypes.addressof(thing)

    def function(self, act):
        """Return the address of a C function of one pointer."""
        made = _FUNCTION(act)
        self._kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value


def handler(library, name):
    """Return an entry of a loaded library."""
    function = getattr(library, f'be_{name}')
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    return function


def metadata(function):
    """Ask a handler for its API version and its traits, as XLA does before any call."""
    memory = _Memory()
    answer = (ctypes.c_int64 * 6)(48, 24)
    extension = memory.words(32, _METADATA, 0, ctypes.addressof(answer))
    assert function(memory.words(168, extension, *[0] * (abi.FRAME_WORDS - 2))) is None
    major, minor = ctypes.cast(answer, ctypes.POINTER(ctypes.c_int32))[6:8]
    return (major, minor), answer[4] & 0xFFFFFFFF


def call(function, args, rets, attrs=None, no_stream=''):
    """Call a handler on NumPy arrays; return the text of its error, or None.

    ``no_stream`` is what XLA answers where it has no stream to give.
    """
    memory, errors = _Memory(), []

    def create_error(address):
        text, code = (ctypes.c_int64 * 4).from_address(address)[2:]
        errors.append((ctypes.string_at(text).decode(), code & 0xFFFFFFFF))
        return len(errors)

    def stream_get(_):
        return 99 if no_stream else None

    table = [0] * abi.API_WORDS
    table[abi.API_ERROR_CREATE] = memory.function(create_error)
    table[_STREAM_GET] = memory.function(stream_get)
    frame = [168, *[0] * (abi.FRAME_WORDS - 1)]
    frame[abi.FRAME_API] = memory.words(*table)
    for items, arrays in ((abi.FRAME_ARGS, args), (abi.FRAME_RETS, rets)):
        buffers = [_buffer(memory, array) for array in arrays]
        frame[items], frame[items + _COUNT] = memory.words(*buffers), len(buffers)
    _fill_attributes(memory, frame, attrs or {})
    status = function(memory.words(*frame))
    if status == 99:
        return no_stream
    assert bool(status) == bool(errors)
    return errors[0][0] if errors else None


def _buffer(memory, array):
    dims = memory.words(*array.shape)
    dtype = _DTYPES[array.dtype.name]
    return memory.words(48, 0, dtype, memory.keep(array), array.ndim, dims)


def _fill_attributes(memory, frame, attrs):
    """XLA gives attributes in alphabetical order; here they are scalars."""
    names, values = [], []
    for name, value in sorted(attrs.items()):
        text = memory.keep(ctypes.create_string_buffer(name.encode()))
        names.append(memory.words(text, len(name)))
        number = np.array(value)
        values.append(memory.words(_DTYPES[number.dtype.name], memory.keep(number)))
    kinds = memory.keep((ctypes.c_int32 * max(len(attrs), 1))(*[_SCALAR] * len(attrs)))
    frame[_ATTRS - 3 : _ATTRS + 1] = len(attrs), kinds, memory.words(*names), memory.words(*values)
