# SPDX-License-Identifier: Apache-2.0
"""XLA's call frame read from Python: buffers and stream of a call, and the way to fail."""

import ctypes
from typing import Any, NamedTuple

from brainevent._error import KernelExecutionError, explain
from brainevent._op.numba_ffi import abi

# beyond what native handlers need of the structs in xla/ffi/api/c_api.h, in words
_COUNT_BEFORE_ITEMS = 2  # XLA_FFI_Args and XLA_FFI_Rets: size, extension, count, types, items
_BUFFER_DTYPE = 2  # an int32
_EXTENSION_TYPE, _EXTENSION_NEXT = 1, 2
_METADATA_EXTENSION = 1
_API_ERROR_MESSAGE = 7
_API_STREAM_GET = 10
_ARGS_BYTES = 32  # of both: size, extension, subject, answer

_CODES = {
    1: 'bool', 2: 'int8', 3: 'int16', 4: 'int32', 5: 'int64', 6: 'uint8', 7: 'uint16',
    8: 'uint32', 9: 'uint64', 10: 'float16', 11: 'float32', 12: 'float64', 15: 'complex64',
    18: 'complex128',
}  # fmt: skip
DTYPES = tuple(_CODES.values())
"""What a CUDA kernel of numba's can hold."""

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Buffer(NamedTuple):
    """A buffer of a call: where it is, how it is shaped, and the name of its dtype."""

    address: int
    shape: tuple[int, ...]
    dtype: str


class CallFrame:
    """An ``XLA_FFI_CallFrame`` at an address, valid during the call."""

    def __init__(self, address: int) -> None:
        self._words = _words(address, abi.FRAME_WORDS)
        self._api = _words(self._words[abi.FRAME_API], abi.API_WORDS)

    def answer_metadata(self) -> bool:
        """Fill in the version if that is what XLA asks for, instead of a call."""
        extension = self._words[abi.FRAME_EXTENSION]
        while extension:
            words = _words(extension, abi.EXTENSION_WORDS - 1)
            if words[_EXTENSION_TYPE] & 0xFFFFFFFF == _METADATA_EXTENSION:
                metadata = _words(extension, abi.EXTENSION_WORDS)[abi.EXTENSION_METADATA]
                place = metadata + abi.METADATA_VERSION_BYTE
                (ctypes.c_int32 * 2).from_address(place)[:] = list(abi.API_VERSION)
                return True
            extension = words[_EXTENSION_NEXT]
        return False

    @property
    def inputs(self) -> list[Buffer]:
        """Read the operands."""
        return self._buffers(abi.FRAME_ARGS)

    @property
    def outputs(self) -> list[Buffer]:
        """Read the results."""
        return self._buffers(abi.FRAME_RETS)

    def stream(self) -> int:
        """Ask XLA for the CUDA stream that the call belongs to."""
        error, stream = self._ask(_API_STREAM_GET, self._words[abi.FRAME_CONTEXT])
        if error:
            _, text = self._ask(_API_ERROR_MESSAGE, error)
            said = ctypes.string_at(text).decode(errors='replace') if text else 'no reason'
            self._ask(abi.API_ERROR_DESTROY, error)
            raise KernelExecutionError(
                explain('XLA', 'there is no stream.', expected='a call on a GPU', got=said)
            )
        return stream

    def error(self, text: str) -> int:
        """Make an error that XLA raises with this text."""
        message = ctypes.create_string_buffer(text.encode())
        args = (ctypes.c_int64 * 4)(abi.ERROR_ARGS_BYTES, 0, ctypes.addressof(message), 0)
        args[3] = abi.ERROR_INTERNAL
        return int(_ENTRY(self._api[abi.API_ERROR_CREATE])(ctypes.addressof(args)) or 0)

    def _ask(self, function: int, subject: int) -> tuple[int, int]:
        """Call a function of XLA's with one argument; its error and its answer."""
        args = (ctypes.c_int64 * 4)(_ARGS_BYTES, 0, subject, 0)
        error = _ENTRY(self._api[function])(ctypes.addressof(args))
        return int(error or 0), args[3]

    def _buffers(self, items: int) -> list[Buffer]:
        count = self._words[items - _COUNT_BEFORE_ITEMS]
        addresses = _words(self._words[items], count) if count else ()
        return [_buffer(address) for address in addresses]


def _buffer(address: int) -> Buffer:
    words = _words(address, abi.BUFFER_WORDS)
    rank = words[abi.BUFFER_RANK]
    shape = tuple(_words(words[abi.BUFFER_DIMS], rank)) if rank else ()
    code = words[_BUFFER_DTYPE] & 0xFFFFFFFF
    return Buffer(words[abi.BUFFER_DATA], shape, _CODES.get(code, f'XLA type {code}'))


def _words(address: int, count: int) -> Any:
    return (ctypes.c_int64 * count).from_address(address)
