# SPDX-License-Identifier: Apache-2.0
"""Numba intrinsics below the array level: raw words, atomics, indirect calls, bit casts, prefetch.

Imported only when machine code is really built; a warm cache never comes here.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from brainevent._op.numba_ffi import abi

NATIVE: dict[str, Any] = {
    'error_model': 'numpy',
    '_nrt': False,
    'nogil': True,
    'no_cpython_wrapper': True,
    'no_cfunc_wrapper': True,
}
"""Options of every function of the house: no exceptions, no reference counts, no Python."""

_I64 = types.int64
_WORD = ir.IntType(64)


def _pointer(builder: Any, address: Any, kind: Any = _WORD) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _make_array(array: Any, address: int, shape: int) -> Any:
    """Write the code that views memory as an array; nobody owns it and nobody counts references."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        extents = cgutils.unpack_tuple(b, args[shape]) if array.ndim else []
        item = ctx.get_abi_sizeof(ctx.get_data_type(array.dtype))
        strides: list[Any] = []
        step = _WORD(item)
        for extent in reversed(extents):
            strides.insert(0, step)
            step = b.mul(step, extent)
        struct = ctx.make_array(array)(ctx, b)
        kind = ctx.get_data_type(array.dtype)
        data = _pointer(b, args[address], kind)
        populate_array(
            struct, data=data, shape=extents, strides=strides, itemsize=item, meminfo=None
        )
        return struct._getvalue()

    return codegen


@intrinsic
def array_at(typing: Any, address: Any, shape: Any, dtype: Any) -> Any:
    """View memory at an address as a C-contiguous array that may be written."""
    array = types.Array(dtype.dtype, len(shape), 'C')
    return array(_I64, types.UniTuple(_I64, len(shape)), dtype), _make_array(array, 0, 1)


@intrinsic
def input_at(typing: Any, address: Any, shape: Any, dtype: Any) -> Any:
    """View an input: a kernel that writes to it does not compile."""
    array = types.Array(dtype.dtype, len(shape), 'C', readonly=True)
    return array(_I64, types.UniTuple(_I64, len(shape)), dtype), _make_array(array, 0, 1)


@intrinsic
def words(typing: Any, address: Any, n: Any) -> Any:
    """View memory as ``n`` signed 64-bit words."""
    array = types.Array(_I64, 1, 'C')

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        pair = ctx.make_tuple(b, types.UniTuple(_I64, 1), [args[1]])
        return _make_array(array, 0, 1)(ctx, b, sig, [args[0], pair])

    return array(_I64, _I64), codegen


@intrinsic
def row_part(typing: Any, matrix: Any, i: Any, first: Any, width: Any) -> Any:
    """View ``matrix[i, first : first + width]`` of a C-contiguous matrix as a vector."""
    vector = types.Array(matrix.dtype, 1, 'C', readonly=not matrix.mutable)

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        struct = ctx.make_array(sig.args[0])(ctx, b, args[0])
        columns = b.extract_value(struct.shape, 1)
        data = b.gep(struct.data, [b.add(b.mul(args[1], columns), args[2])])
        item = ctx.get_abi_sizeof(ctx.get_data_type(vector.dtype))
        view = ctx.make_array(vector)(ctx, b)
        populate_array(
            view, data=data, shape=[args[3]], strides=[_WORD(item)], itemsize=item, meminfo=None
        )
        return view._getvalue()

    return vector(matrix, _I64, _I64, _I64), codegen


@intrinsic
def call_with(typing: Any, function: Any, argument: Any) -> Any:
    """Call the C function at an address with one pointer-sized argument and result."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.call(_pointer(b, args[0], ir.FunctionType(_WORD, [_WORD])), [args[1]])

    return _I64(_I64, _I64), codegen


@intrinsic
def fetch_add(typing: Any, address: Any, amount: Any) -> Any:
    """Atomically add to the word at an address and return what was there."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.atomic_rmw('add', _pointer(b, args[0]), args[1], 'seq_cst')

    return _I64(_I64, _I64), codegen


@intrinsic
def load_word(typing: Any, address: Any) -> Any:
    """Atomically load the word at an address."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.load_atomic(_pointer(b, args[0]), 'seq_cst', 8)

    return _I64(_I64), codegen


def _libc(name: str, arguments: int, result: Any) -> Any:
    """Make an intrinsic for a C library function of machine words."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(_WORD if result is _I64 else ir.VoidType(), [_WORD] * arguments)
        value = b.call(cgutils.get_or_insert_function(b.module, kind, name), args)
        return value if result is _I64 else ctx.get_dummy_value()

    return codegen


@intrinsic
def malloc(typing: Any, size: Any) -> Any:
    """``malloc`` of the C library; 0 when memory is out."""
    return _I64(_I64), _libc('malloc', 1, _I64)


@intrinsic
def free(typing: Any, address: Any) -> Any:
    """``free`` of the C library."""
    return types.void(_I64), _libc('free', 1, types.void)


@intrinsic
def sched_yield(typing: Any) -> Any:
    """Offer the processor to another thread."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        b.call(cgutils.get_or_insert_function(b.module, kind, 'sched_yield'), [])
        return ctx.get_dummy_value()

    return types.void(), codegen


@intrinsic(prefer_literal=True)
def stack_words(typing: Any, n: Any) -> Any:
    """Reserve words on the stack of the calling function; returns their address."""
    count = n.literal_value

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.ptrtoint(cgutils.alloca_once(b, ir.ArrayType(_WORD, count)), _WORD)

    return _I64(n), codegen


@intrinsic
def nonnegative(typing: Any, index: Any) -> Any:
    """Pass a signed 64-bit index on, with the promise that it does not count from the end.

    numba tests every index for a negative value, unless it can tell that there is none; in a loop
    over edges that test costs the vector instructions, and with them a factor of two to three.
    """

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
        promise = cgutils.get_or_insert_function(b.module, kind, 'llvm.assume')
        b.call(promise, [b.icmp_signed('>=', args[0], _WORD(0))])
        return args[0]

    return _I64(_I64), codegen


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]``; a hint, never a fault."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        struct = ctx.make_array(sig.args[0])(ctx, b, args[0])
        byte = ir.IntType(8).as_pointer()
        where = b.bitcast(b.gep(struct.data, [args[1]]), byte)
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        hint = cgutils.get_or_insert_function(b.module, kind, 'llvm.prefetch.p0')
        b.call(hint, [where, i32(0), i32(3), i32(1)])
        return ctx.get_dummy_value()

    return types.void(array, _I64), codegen


def _of_one(build: Any) -> Any:
    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return build(b, args[0])

    return codegen


@intrinsic
def float16_to_float32(typing: Any, bits: Any) -> Any:
    """Value of an IEEE half given by its bits."""

    def widen(b: Any, bits: Any) -> Any:
        return b.fpext(b.bitcast(bits, ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), _of_one(widen)


@intrinsic
def bfloat16_to_float32(typing: Any, bits: Any) -> Any:
    """Value of a bfloat16 given by its bits: the upper half of a float32."""

    def widen(b: Any, bits: Any) -> Any:
        word = b.shl(b.zext(bits, ir.IntType(32)), ir.IntType(32)(16))
        return b.bitcast(word, ir.FloatType())

    return types.float32(types.uint16), _of_one(widen)


@intrinsic
def float32_of_bits(typing: Any, bits: Any) -> Any:
    """Value of a float32 given by its bits."""
    codegen = _of_one(lambda b, bits: b.bitcast(bits, ir.FloatType()))
    return types.float32(types.int32), codegen


@intrinsic
def bits_of_float32(typing: Any, value: Any) -> Any:
    """Bits of a float32."""
    codegen = _of_one(lambda b, value: b.bitcast(value, ir.IntType(32)))
    return types.int32(types.float32), codegen


@intrinsic
def square_root(typing: Any, x: Any) -> Any:
    """Square root by the processor's own instruction, whatever the sign."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = args[0].type
        return b.call(b.module.declare_intrinsic('llvm.sqrt', [kind]), args)

    return x(x), codegen


@njit(**NATIVE)
def answer_metadata(frame):
    """Tell XLA, which asks once at registration, the API version that the handler speaks."""
    metadata = words(frame[abi.FRAME_EXTENSION], abi.EXTENSION_WORDS)[abi.EXTENSION_METADATA]
    version = array_at(metadata + abi.METADATA_VERSION_BYTE, (2,), np.int32)
    version[0], version[1] = abi.API_VERSION


def _c_function(b: Any, name: str, result: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, [value.type for value in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)


def _report(ctx: Any, b: Any, status: Any, api: Any) -> Any:
    """Turn a failed numba call into an XLA error that carries the exception's text.

    The Python exception object is made under the GIL; this is the only place where a
    handler touches Python, and only after a kernel has raised.
    """
    python = ctx.get_python_api(b)
    gil = python.gil_ensure()
    ctx.call_conv.raise_error(b, python, status)
    cells = [cgutils.alloca_once(b, python.pyobj) for _ in range(3)]
    _c_function(b, 'PyErr_Fetch', ir.VoidType(), *cells)
    _c_function(b, 'PyErr_NormalizeException', ir.VoidType(), *cells)
    text = _c_function(b, 'PyObject_Repr', python.pyobj, b.load(cells[1]))
    error = _create_error(b, api, b.ptrtoint(_readable(ctx, b, python, text), _WORD))
    python.decref(text)
    for cell in cells:
        python.decref(b.load(cell))
    python.gil_release(gil)
    return error


def _readable(ctx: Any, b: Any, python: Any, text: Any) -> Any:
    """Return the UTF-8 of a Python string; of one that could not be made, a text that says so."""
    fallback = ctx.insert_const_string(b.module, 'an exception that cannot be shown')
    message = cgutils.alloca_once_value(b, fallback)
    with b.if_then(cgutils.is_not_null(b, text)):
        encoded = python.string_as_string(text)
        b.store(b.select(cgutils.is_null(b, encoded), fallback, encoded), message)
    python.err_clear()
    return b.load(message)


def _create_error(b: Any, api: Any, message: Any) -> Any:
    """Call ``XLA_FFI_Error_Create``, which copies the message."""
    arguments = cgutils.alloca_once(b, ir.ArrayType(_WORD, 4))
    values = (_WORD(abi.ERROR_ARGS_BYTES), _WORD(0), message, _WORD(abi.ERROR_INTERNAL))
    for k, value in enumerate(values):
        b.store(value, cgutils.gep_inbounds(b, arguments, 0, k))
    table = _pointer(b, api)
    create = b.load(b.gep(table, [_WORD(abi.API_ERROR_CREATE)]))
    kind = ir.FunctionType(_WORD, [_WORD])
    return b.call(_pointer(b, create, kind), [b.ptrtoint(arguments, _WORD)])


@intrinsic
def out_of_memory(typing: Any, api: Any) -> Any:
    """Make the XLA error that says scratch memory could not be had."""

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        text = ctx.insert_const_string(b.module, 'brainevent: no memory for scratch space')
        return _create_error(b, args[0], b.ptrtoint(text, _WORD))

    return _I64(_I64), codegen


@intrinsic
def call_guarded(typing: Any, kernel: Any, api: Any, arguments: Any) -> Any:
    """Call ``kernel(*arguments)``; return 0, or the XLA error that holds its exception."""
    signature = kernel.get_call_type(typing, tuple(arguments), {})
    if signature is None:
        raise TypingError(f'none of its explicit signatures takes {tuple(arguments)}')

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        record = kernel.dispatcher.overloads[signature.args]
        ctx.active_code_library.add_linking_library(record.library)
        values = [
            ctx.cast(b, value, have, want)
            for value, have, want in zip(
                cgutils.unpack_tuple(b, args[2]), arguments, signature.args, strict=True
            )
        ]
        function = ctx.declare_function(b.module, record.fndesc)
        status, _ = ctx.call_conv.call_function(
            b, function, record.fndesc.restype, record.fndesc.argtypes, values
        )
        error = cgutils.alloca_once_value(b, _WORD(0))
        with cgutils.if_unlikely(b, status.is_error):
            b.store(_report(ctx, b, status, args[1]), error)
        return b.load(error)

    return _I64(kernel, _I64, arguments), codegen
