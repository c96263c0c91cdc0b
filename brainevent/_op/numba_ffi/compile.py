# SPDX-License-Identifier: Apache-2.0
"""Kernels to machine code: numba compiles an XLA handler, the object code comes out as bytes.

A handler reads shapes from XLA's call frame, so one handler serves every shape of a signature.
Ranks are read too: leading axes beyond a kernel's own rank are a batch, and the handler runs
the kernel once per batch element, an axis of length one standing still. That is all there is
to ``vmap``.

A kernel of the house comes as :class:`Phases`. Work that is worth it is split into chunks on
XLA's own thread pool: chunks are taken from an atomic counter, the caller works too and never
waits for a task that got no thread, and the job is reference-counted, since a late task still
looks at it.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from brainevent._error import KernelCompilationError, explain
from brainevent._op.numba_ffi import abi
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi.intrinsics import NATIVE, answer_metadata
from brainevent._op.numba_ffi.load import C_LIBRARY, MachineCode

BATCH = -1  # phase number of a job whose chunks are whole batch elements
POOL_WORTH_NS = 150_000  # below this much work, waking another thread costs more than it saves
SPINS = 2_000  # looks at a counter before the processor is offered to somebody else

# Words of a job in shared memory; XLA's argument structs are put together behind them.
JOB_NEXT, JOB_DONE, JOB_TOTAL, JOB_REFS, JOB_FRAME, JOB_PHASE = range(6)
JOB_CHUNKS, JOB_SCRATCH, JOB_STRIDE, JOB_ARGS, JOB_WORDS = 6, 7, 8, 9, 16


@dataclass(frozen=True)
class Phases:
    """A kernel of the house.

    ``plan(ins, outs, threads)`` returns ``(chunks, scratch bytes, nanoseconds)``;
    each body is called as ``body(chunk, chunks, ins, outs, scratch address)`` for every chunk,
    and a phase starts when the one before it is finished.
    """

    plan: Callable[..., Any]
    bodies: tuple[Callable[..., Any], ...]


@dataclass(frozen=True)
class Signature:
    """Dtype names and ranks of the operands of one handler, batch axes not counted."""

    ins: tuple[tuple[str, int], ...]
    outs: tuple[tuple[str, int], ...]


@njit(**NATIVE)
def _batch_offset(lead, dims, out_lead, out_dims, index):
    """Count the elements of its own rank that an operand skips for a batch element."""
    if lead == 0:
        return 0
    offset, stride = 0, 1
    for k in range(lead - 1, -1, -1):
        extent = out_dims[out_lead - lead + k]
        if dims[k] != 1:
            offset += (index % extent) * stride
            stride *= dims[k]
        index //= extent
    return offset


def _dtype(name: str) -> str:
    return 'np.bool_' if name == 'bool' else f'np.{name}'


def _view_lines(side: str, k: int, dtype: str, rank: int) -> list[str]:
    """Write the lines that make array ``{side}{k}`` out of a buffer of the frame."""
    dims = [f'd[l + {r}]' for r in range(rank)]
    shape = '(' + ''.join(f'{d}, ' for d in dims) + ')'
    at = 'input_at' if side == 'i' else 'array_at'
    item = np.dtype(dtype).itemsize
    size = ' * '.join(dims) if dims else '1'
    return [
        f' b = words({side}_buffers[{k}], {abi.BUFFER_WORDS})',
        f' l = b[{abi.BUFFER_RANK}] - {rank}',
        f' d = words(b[{abi.BUFFER_DIMS}], b[{abi.BUFFER_RANK}])',
        f' o = batch_offset(l, d, lead, dims, index) * ({size})',
        f' {side}{k} = {at}(b[{abi.BUFFER_DATA}] + o * {item}, {shape}, {_dtype(dtype)})',
    ]


@functools.cache
def _views(signature: Signature) -> Any:
    """Make ``views(frame, index) -> (ins, outs)``, the operands of one batch element."""
    rank = signature.outs[0][1]
    lines = [
        'def views(frame, index):',
        f' i_buffers = words(frame[{abi.FRAME_ARGS}], {max(1, len(signature.ins))})',
        f' o_buffers = words(frame[{abi.FRAME_RETS}], {len(signature.outs)})',
        f' first = words(o_buffers[0], {abi.BUFFER_WORDS})',
        f' lead = first[{abi.BUFFER_RANK}] - {rank}',
        f' dims = words(first[{abi.BUFFER_DIMS}], first[{abi.BUFFER_RANK}])',
    ]
    names = []
    for side, entries in (('i', signature.ins), ('o', signature.outs)):
        names.append('(' + ''.join(f'{side}{k}, ' for k in range(len(entries))) + ')')
        for k, (dtype, core) in enumerate(entries):
            lines += _view_lines(side, k, dtype, core)
    lines += [f' return {names[0]}, {names[1]}']
    scope = {
        'words': low.words,
        'array_at': low.array_at,
        'input_at': low.input_at,
        'batch_offset': _batch_offset,
        'np': np,
    }
    exec('\n'.join(lines), scope)
    return njit(**NATIVE)(scope['views'])


@njit(**NATIVE)
def _batch(frame, rank):
    """Count the batch elements: the product of the leading axes of the first result."""
    first = low.words(low.words(frame[abi.FRAME_RETS], 1)[0], abi.BUFFER_WORDS)
    dims = low.words(first[abi.BUFFER_DIMS], first[abi.BUFFER_RANK])
    n = 1
    for k in range(first[abi.BUFFER_RANK] - rank):
        n *= dims[k]
    return n


@njit(**NATIVE)
def _release(job):
    if low.fetch_add(job + 8 * JOB_REFS, -1) == 1:
        low.free(job)


@njit(**NATIVE)
def _schedule(frame, job, task):
    """Hand ``task(job)`` to XLA's thread pool; without a pool the caller does the work alone."""
    api = low.words(frame[abi.FRAME_API], abi.API_WORDS)
    request = low.words(job + 8 * JOB_ARGS, 5)
    request[0], request[1] = abi.SCHEDULE_ARGS_BYTES, 0
    request[2], request[3], request[4] = frame[abi.FRAME_CONTEXT], task, job
    error = low.call_with(api[abi.API_SCHEDULE], job + 8 * JOB_ARGS)
    if error != 0:
        low.fetch_add(job + 8 * JOB_REFS, -1)
        request[0], request[1], request[2] = abi.DESTROY_ARGS_BYTES, 0, error
        low.call_with(api[abi.API_ERROR_DESTROY], job + 8 * JOB_ARGS)


@njit(**NATIVE)
def _run_job(address, task, helpers, phase, total, chunks, scratch, stride):
    """Work through ``total`` pieces of one phase, together with XLA's threads if that is wanted.

    Alone, the job lies on the stack; shared, on the heap, where a late task may still look at it.
    """
    job = low.malloc(8 * JOB_WORDS) if helpers > 0 else 0
    if job == 0:
        helpers, job = 0, low.stack_words(JOB_WORDS)
    cell = low.words(job, JOB_WORDS)
    cell[JOB_NEXT], cell[JOB_DONE], cell[JOB_TOTAL], cell[JOB_REFS] = 0, 0, total, 2 + helpers
    cell[JOB_FRAME], cell[JOB_PHASE], cell[JOB_CHUNKS] = address, phase, chunks
    cell[JOB_SCRATCH], cell[JOB_STRIDE] = scratch, stride
    frame = low.words(address, abi.FRAME_WORDS)
    for _ in range(helpers):
        _schedule(frame, job, task)
    low.call_with(task, job)
    if helpers > 0:
        spins = 0
        while low.load_word(job + 8 * JOB_DONE) < total:
            spins += 1  # only for pieces that another thread has already taken
            if spins > SPINS:
                low.sched_yield()
        _release(job)


def _task(phases: Phases, views: Any) -> Any:
    """Make ``task(job)``: take pieces until none is left, then let go of the job.

    A piece is a chunk of one phase, or all phases of one batch element.
    """
    two = len(phases.bodies) > 1
    first, last = phases.bodies[0], phases.bodies[-1]

    @njit(types.int64(types.int64), **NATIVE)
    def task(job):
        cell = low.words(job, JOB_WORDS)
        total, chunks = cell[JOB_TOTAL], cell[JOB_CHUNKS]
        frame = low.words(cell[JOB_FRAME], abi.FRAME_WORDS)
        piece = low.fetch_add(job + 8 * JOB_NEXT, 1)
        while piece < total:
            whole = cell[JOB_PHASE] == BATCH
            ins, outs = views(frame, piece if whole else 0)
            scratch = cell[JOB_SCRATCH] + piece * cell[JOB_STRIDE]
            for step in range((2 if two else 1) * chunks if whole else 1):
                phase, chunk = step // chunks, step % chunks
                if not whole:
                    phase, chunk = cell[JOB_PHASE], piece
                if phase == 0:
                    first(chunk, chunks, ins, outs, scratch)
                elif two:
                    last(chunk, chunks, ins, outs, scratch)
            low.fetch_add(job + 8 * JOB_DONE, 1)
            piece = low.fetch_add(job + 8 * JOB_NEXT, 1)
        _release(job)
        return 0

    return task


def _address_of(symbol: str) -> Any:
    """Make an intrinsic that is the address of a C function by its symbol."""

    @intrinsic
    def address(typing: Any) -> Any:
        def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
            function = cgutils.get_or_insert_function(b.module, kind, symbol)
            return b.ptrtoint(function, kind.return_type)

        return types.int64(), codegen

    return address


def _library(function: Any, symbol: str) -> Any:
    """Give a compiled ``int64(int64)`` the C calling convention, in a library of its own."""
    if not hasattr(function, 'overloads'):
        raise KernelCompilationError(
            explain(
                symbol,
                'numba does not compile.',
                expected='numba with its compiler switched on',
                got='NUMBA_DISABLE_JIT is set',
                remedy='unset NUMBA_DISABLE_JIT, or choose another backend',
            )
        )
    (record,) = function.overloads.values()
    context = cpu_target.target_context
    module = context.create_module(symbol)
    description = record.fndesc
    kind = context.call_conv.get_function_type(description.restype, description.argtypes)
    callee = ir.Function(module, kind, description.llvm_func_name)
    word = ir.IntType(64)
    wrapper = ir.Function(module, ir.FunctionType(word, [word]), symbol)
    builder = ir.IRBuilder(wrapper.append_basic_block('entry'))
    _, result = context.call_conv.call_function(
        builder, callee, description.restype, description.argtypes, wrapper.args
    )
    builder.ret(result)
    library = context.codegen().create_library(symbol)
    library.enable_object_caching()
    library.add_linking_library(record.library)
    library.add_ir_module(module)
    library.finalize()
    return library


def _object_file(library: Any, symbol: str) -> bytes:
    library.get_pointer_to_function(symbol)
    return bytes(library._get_compiled_object())


def _needs(library: Any) -> list[str]:
    """List the symbols that code expects of its surroundings."""
    module = library._final_module
    items = [*module.functions, *module.global_variables]
    return sorted(i.name for i in items if i.is_declaration and not i.name.startswith('llvm.'))


def _own_object_file(function: Any, symbol: str, allowed: tuple[str, ...]) -> bytes:
    """Take an object file that needs nothing but some symbols.

    A process that loads it from disk has nothing else to offer.
    """
    library = _library(function, symbol)
    alien = set(_needs(library)) - set(allowed)
    if alien:
        raise KernelCompilationError(f'{symbol} is not self-contained: it needs {alien}')
    return _object_file(library, symbol)


@global_compiler_lock
def compile_phases(name: str, phases: Phases, signature: Signature, threads: int) -> MachineCode:
    """Compile the handler of a kernel of the house."""
    views = _views(signature)
    task_code = _own_object_file(_task(phases, views), f'{name}.task', C_LIBRARY)
    task_address = _address_of(f'{name}.task')
    plan, count, rank = phases.plan, len(phases.bodies), signature.outs[0][1]

    @njit(types.int64(types.int64), **NATIVE)
    def entry(address):
        frame = low.words(address, abi.FRAME_WORDS)
        if frame[abi.FRAME_EXTENSION] != 0:
            answer_metadata(frame)
            return 0
        n = _batch(frame, rank)
        if n == 0:
            return 0
        ins, outs = views(frame, 0)
        chunks, scratch_bytes, ns = plan(ins, outs, threads if n == 1 else 1)
        shared = chunks > 1 if n == 1 else n * ns > POOL_WORTH_NS
        helpers = min(threads, n * chunks) - 1 if shared else 0
        stride = scratch_bytes if helpers > 0 and n > 1 else 0
        scratch = 0
        if scratch_bytes > 0:
            scratch = low.malloc(scratch_bytes * n if stride else scratch_bytes)
            if scratch == 0:
                return low.out_of_memory(frame[abi.FRAME_API])
        if n > 1:
            _run_job(address, task_address(), helpers, BATCH, n, chunks, scratch, stride)
        else:
            for phase in range(count):
                _run_job(address, task_address(), helpers, phase, chunks, chunks, scratch, 0)
        if scratch != 0:
            low.free(scratch)
        return 0

    entry_code = _own_object_file(entry, name, (*C_LIBRARY, f'{name}.task'))
    return MachineCode((task_code, entry_code), C_LIBRARY)


def _afresh(kernel: Any) -> Any:
    """Return a function that numba compiles now, with the globals that there are now.

    One with explicit signatures was compiled where it was defined, and is not compiled again.
    """
    if not kernel._can_compile:
        return kernel
    pipeline = kernel._compiler.pipeline_class
    return type(kernel)(kernel.py_func, kernel.locals, dict(kernel.targetoptions), pipeline)


def _environments(library: Any) -> dict[str, Any]:
    """Return numba's environments, by their symbols, that code really reads; None is a blank one.

    They hold the Python objects that code hands to Python, as ``print(array)`` does.
    """
    uses = Counter(re.findall(r'@"?(_ZN08NumbaEnv[^\s",)]*)', library.get_llvm_str()))
    found = {name: lookup_environment(name) for name, count in uses.items() if count > 1}
    return {name: value if value and value.consts else None for name, value in found.items()}


def _clearer(cleared: tuple[int, ...]) -> Any:
    """Make ``clear(outs)``, which sets some results to zero; they differ in type."""

    @njit(**low.NATIVE)
    def nothing(outs):
        pass

    clear = nothing
    for k in cleared:
        clear = _and_one(clear, k)
    return clear


def _and_one(before: Any, k: int) -> Any:
    @njit(**low.NATIVE)
    def clear(outs):
        before(outs)
        flat = low.array_at(outs[k].ctypes.data, (outs[k].size,), outs[k].dtype)
        for i in range(flat.size):
            flat[i] = 0

    return clear


@global_compiler_lock
def compile_guarded(
    name: str, kernel: Any, signature: Signature, cleared: tuple[int, ...] = ()
) -> MachineCode:
    """Compile the handler of a user's ``njit`` function; what it raises becomes XLA's error.

    The results ``cleared`` are set to zero before each element of a batch.
    """
    views, rank = _views(signature), signature.outs[0][1]
    kernel, clear = _afresh(kernel), _clearer(cleared)

    @njit(types.int64(types.int64), nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    def entry(address):
        frame = low.words(address, abi.FRAME_WORDS)
        if frame[abi.FRAME_EXTENSION] != 0:
            answer_metadata(frame)
            return 0
        for index in range(_batch(frame, rank)):
            ins, outs = views(frame, index)
            clear(outs)
            error = low.call_guarded(kernel, frame[abi.FRAME_API], ins + outs)
            if error != 0:
                return error
        return 0

    library = _library(entry, name)
    cells = _environments(library)
    reloads = {function.__name__ for function in library._reload_init} - {'_reload_parfors'}
    portable = not (any(cells.values()) or reloads or library.has_dynamic_globals)
    files = (_object_file(library, name),)
    return MachineCode(files, tuple(_needs(library)), cells, portable, (kernel, entry))
