# SPDX-License-Identifier: Apache-2.0
"""Kernels of the house: built once, kept, shared between processes, run beside Python."""

import ast
import pickle
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numba import njit

from brainevent import config
from brainevent._error import KernelCompilationError, KernelLoadError, KernelRegistrationError
from brainevent._op import cache
from brainevent._op.numba_ffi import compile as compiler
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi import load, native
from brainevent._op.numba_ffi.compile import Phases
from brainevent._op.numba_ffi.intrinsics import NATIVE
from brainevent._op.numba_ffi.load import MachineCode

F32 = jnp.float32
HERE = 'brainevent._op.numba_ffi.native_test'


# ---- kernels -----------------------------------------------------------------------------------


def multiplied(by):
    """Make ``y = by * x``, in as many chunks as elements."""

    @njit(**NATIVE)
    def plan(ins, outs, threads):
        return max(1, outs[0].size), 0, 0

    @njit(**NATIVE)
    def body(chunk, chunks, ins, outs, scratch):
        for i in range(chunk, outs[0].size, chunks):
            outs[0][i] = by * ins[0][i]

    return Phases(plan, (body,))


def spread(scratch_bytes):
    """Make ``y[i] = sum of all scratch[j]``, which a first phase has filled with ``x``."""

    @njit(**NATIVE)
    def plan(ins, outs, threads):
        return 4, max(8 * ins[0].size, scratch_bytes), 1_000_000

    @njit(**NATIVE)
    def fill(chunk, chunks, ins, outs, scratch):
        parts = low.array_at(scratch, (ins[0].size,), np.float64)
        for i in range(chunk, ins[0].size, chunks):
            parts[i] = ins[0][i]

    @njit(**NATIVE)
    def add(chunk, chunks, ins, outs, scratch):
        parts = low.array_at(scratch, (ins[0].size,), np.float64)
        for i in range(chunk, outs[0].size, chunks):
            outs[0][i] = parts.sum()

    return Phases(plan, (fill, add))


def halved():
    """Make ``y = x / 2`` of 16-bit numbers, which arrive as bits."""

    @njit(**NATIVE)
    def plan(ins, outs, threads):
        return 1, 0, 0

    @njit(**NATIVE)
    def body(chunk, chunks, ins, outs, scratch):
        for i in range(outs[0].size):
            outs[0][i] = low.float16_to_float32(ins[0][i]) / 2
            outs[1][i] = low.bfloat16_to_float32(ins[1][i]) / 2

    return Phases(plan, (body,))


def waiting():
    """Say in memory that the kernel runs, and wait until Python answers there, or give up."""

    @njit(**NATIVE)
    def plan(ins, outs, threads):
        return 1, 0, 0

    @njit(**NATIVE)
    def body(chunk, chunks, ins, outs, scratch):
        address = (np.int64(ins[0][1]) << 32) | np.int64(ins[0][0])
        low.fetch_add(address, 1)
        outs[0][0] = 0
        for _ in range(1_000_000_000):
            if low.load_word(address + 8) != 0:
                outs[0][0] = 1
                break

    return Phases(plan, (body,))


def run(factory, args, *operands, shape=None, levels=0):
    recipe = native.Recipe(HERE, factory, args)
    out = jax.ShapeDtypeStruct(operands[0].shape if shape is None else shape, F32)
    return jax.jit(lambda *xs: native.call(recipe, xs, [out], levels)[0])(*operands)


# ---- what a call computes ----------------------------------------------------------------------


@pytest.fixture
def threads():
    """Use four threads, whatever the machine has."""
    config.set_numba_parallel(True, num_threads=4)


def test_chunks_and_batches(folder, threads):
    x = jnp.arange(30.0).reshape(2, 3, 5)
    np.testing.assert_array_equal(run('multiplied', (3,), x[0, 0]), 3 * x[0, 0])
    np.testing.assert_array_equal(run('multiplied', (3,), x, levels=2), 3 * x)
    still = run('multiplied', (3,), x[:1, :, :], shape=x.shape, levels=2)
    np.testing.assert_array_equal(still, 3 * jnp.broadcast_to(x[:1], x.shape))
    assert run('multiplied', (3,), x[:0], shape=(0, 3, 5), levels=2).shape == (0, 3, 5)
    assert run('multiplied', (3,), jnp.zeros(0)).shape == (0,)


def test_phases_follow_each_other_and_scratch_is_their_own(folder, threads):
    x = jnp.arange(1.0, 201.0).reshape(2, 100)
    for _ in range(50):
        np.testing.assert_array_equal(run('spread', (0,), x[0]), jnp.full(100, x[0].sum()))
        batch = run('spread', (0,), x, levels=1)
        np.testing.assert_array_equal(batch, jnp.broadcast_to(x.sum(1)[:, None], (2, 100)))


def test_memory_that_is_not_there_is_an_error(folder):
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match='no memory for scratch'):
        run('spread', (1 << 62,), jnp.ones(3)).block_until_ready()


@pytest.mark.parametrize('value', [1.0, -2.5, 6e-8, 65504.0, np.inf, np.nan, -0.0])
def test_sixteen_bits_arrive_as_bits(folder, value):
    shape = [jax.ShapeDtypeStruct((1,), F32)] * 2
    recipe = native.Recipe(HERE, 'halved')
    ops = [jnp.array([value], jnp.float16), jnp.array([value], jnp.bfloat16)]
    got = jax.jit(lambda *xs: native.call(recipe, xs, shape))(*ops)
    for y, x in zip(got, ops, strict=True):
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x.astype(F32)) / 2)


def test_python_goes_on_while_a_kernel_runs(folder):
    cells = np.zeros(2, np.int64)
    address = cells.ctypes.data
    halves = jnp.array([address & 0xFFFFFFFF, address >> 32], jnp.uint32)
    results = []
    crew = threading.Thread(target=lambda: results.append(run('waiting', (), halves, shape=(1,))))
    crew.start()
    while cells[0] == 0 and crew.is_alive():
        pass  # Python runs here ...
    cells[1] = 1  # ... and answers, while the kernel spins
    crew.join()
    assert float(results[0][0]) == 1


# ---- names and files ---------------------------------------------------------------------------


def test_recipe_that_is_not_literal_is_refused():
    with pytest.raises(KernelRegistrationError, match='are not told by their text'):
        native.Recipe(HERE, 'multiplied', (object,))


def test_order_can_be_read_back():
    recipe = native.Recipe(HERE, 'multiplied', (2, 'a', None, (1.5, True)))
    order = native.Order(recipe, (('float32', 1),), (('float32', 1),), 2)
    again = native.Order.read(ast.literal_eval(order.text()))
    assert again == order
    assert again.target == order.target


def test_setting_of_numba_is_part_of_the_file_not_of_the_name(monkeypatch):
    plain = native.environment.__wrapped__()
    monkeypatch.setenv('NUMBA_OPT', '1')
    assert native.environment.__wrapped__() != plain
    monkeypatch.delenv('NUMBA_OPT')
    monkeypatch.setenv('NUMBA_NUM_THREADS', '1')
    monkeypatch.setenv('NUMBA_CACHE_DIR', '/somewhere')
    assert native.environment.__wrapped__() == plain


def order_of(by):
    shape = (('float32', 1),)
    return native.Order(native.Recipe(HERE, 'multiplied', (by,)), shape, shape, 1)


@pytest.fixture
def built(monkeypatch):
    """List the targets that are built from now on; what was built before is not compiled again."""
    names, codes, compile_phases = [], {}, compiler.compile_phases

    def counted(name, *args):
        names.append(name)
        if name not in codes:
            codes[name] = compile_phases(name, *args)
        return codes[name]

    monkeypatch.setattr(compiler, 'compile_phases', counted)
    return names


@pytest.fixture
def forgotten(monkeypatch):
    """Let this process forget a target, under whose name XLA keeps the first code for ever."""
    monkeypatch.setattr(jax.ffi, 'register_ffi_target', lambda *args, **kwargs: None)

    def forget(target):
        del load._loaded[target]

    return forget


def foreign(data):
    """Make an object file of another processor out of one of this one."""
    return data[:4] + bytes([data[4] ^ 3]) + data[5:] if data.startswith(b'\x7fELF') else b'xx'


def damaged(code):
    """Make what may lie under the name of a kernel's file, sealed well, without being its code."""
    return {
        'nothing': b'',
        'a pickle': pickle.dumps((b'code',)),
        'cut short': code.pack()[:-100],
        'not an object file': MachineCode((b'\x7fELF' + bytes(60),)).pack(),
        'another machine': MachineCode(tuple(map(foreign, code.files))).pack(),
        'an unknown symbol': MachineCode(code.files, ('no_such_symbol_anywhere',)).pack(),
        'half of it': MachineCode(code.files[:1], code.needs).pack(),
    }


def test_file_that_cannot_be_loaded_is_built_once_more(folder, built, forgotten):
    order = order_of(7)
    target = order.fill()
    file = native._file(target)
    good = cache.fetch(file)
    for damage, body in damaged(MachineCode.unpack(good)).items():
        cache.publish(file, body)
        forgotten(target)
        built.clear()
        order.fill()
        assert built == [target], damage
        assert cache.fetch(file) == good, damage
        forgotten(target)
        order.fill()
        assert built == [target], damage  # the second time it came from disk


def test_code_that_cannot_be_loaded_is_an_error(folder):
    with pytest.raises(KernelLoadError, match='object files of this machine') as caught:
        load.load('nobody', MachineCode((b'noise',)))
    assert isinstance(caught.value, OSError)
    assert not load.is_loaded('nobody')


def test_numba_without_its_compiler_is_told():
    # with NUMBA_DISABLE_JIT `njit` hands back the Python function
    with pytest.raises(KernelCompilationError, match='unset NUMBA_DISABLE_JIT'):
        compiler._library(lambda address: 0, 'kernel')


def test_packed_code_is_lengths_and_bytes():
    code = MachineCode((b'one', b'', b'two' * 100), ('malloc', 'free'), {'cell': None})
    assert MachineCode.unpack(code.pack()) == code
    assert MachineCode.unpack(MachineCode((b'x',)).pack()) == MachineCode((b'x',))
    with pytest.raises(ValueError, match='cut short'):
        MachineCode.unpack(code.pack()[:-1])


def test_kernel_without_a_name_of_its_own_is_not_kept(folder, built):
    shape = (('float32', 1),)
    recipe = native.Recipe(HERE, 'named_multiplied', (2, 'x_unique_1'))
    native.Order(recipe, shape, shape, 1).fill()
    assert len(built) == 1
    assert not folder.exists()


def named_multiplied(by, name):
    return multiplied(by)


# ---- threads and processes ---------------------------------------------------------------------


def test_threads_that_want_one_kernel_build_it_once(folder, built):
    order, bad = order_of(11), []

    def work():
        try:
            order.fill()
        except Exception as cause:
            bad.append(cause)

    crew = [threading.Thread(target=work) for _ in range(4)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert not bad
    assert built == [order.target]


def test_loading_does_not_wait_for_compiling(folder):
    order_of(12).fill()
    building, finish = threading.Event(), threading.Event()

    def build():
        building.set()
        finish.wait(60)
        raise InterruptedError

    def slow():
        with pytest.raises(InterruptedError):
            native.ensure('brainevent.slow', build)

    crew = threading.Thread(target=slow)
    crew.start()
    assert building.wait(60)
    order_of(13).fill()  # would wait for ever if it waited at all
    finish.set()
    crew.join()
    assert not load.is_loaded('brainevent.slow')


PROCESS = f"""
import sys
import jax, jax.numpy as jnp, numpy as np
from brainevent._op.numba_ffi import native
recipe = native.Recipe({HERE!r}, 'multiplied', (17,))
out = jax.ShapeDtypeStruct((3,), jnp.float32)
y = jax.jit(lambda x: native.call(recipe, [x], [out])[0])(jnp.arange(3.0))
assert list(np.asarray(y)) == [0, 17, 34], y
print('numba' in sys.modules)
"""


def test_process_with_a_warm_cache_never_imports_numba(folder, child, built):
    run('multiplied', (17,), jnp.arange(3.0))
    assert len(built) == 1
    assert child(PROCESS, cache_dir=folder).output() == 'False\n'
    (file,) = folder.iterdir()  # one kernel, one file, nothing left over
    assert file.name.startswith('brainevent.multiplied.')
