# SPDX-License-Identifier: Apache-2.0
"""Kernels of users while they run: exceptions, Python inside, threads, and other processes."""

import threading

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest

from brainevent._error import KernelCompilationError
from brainevent._op.numba_ffi import compile as compiler
from brainevent._op.numba_ffi import intrinsics as low
from brainevent._op.numba_ffi import load, runtime
from brainevent._op.numba_ffi.bridge import numba_kernel

X = jnp.arange(3.0)
FAILURE = (jax.errors.JaxRuntimeError, ValueError)  # the latter in jax 0.8


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def outcome(f, *args):
    return np.asarray(jax.block_until_ready(f(*args)))


def plus(c):
    @numba.njit
    def kernel(x, out):
        for i in range(out.size):
            out[i] = x[i] + c

    return numba_kernel(kernel, struct(3))


@numba.njit
def complain(x, out):
    if x[0] < 0:
        raise ValueError('below zero', x[0])
    for i in range(out.size):
        out[i] = 100 // x[i] if x[i] == 0 else x[i]


# ---- exceptions in kernels ---------------------------------------------------------------------


def test_exception_arrives_with_its_text_and_leaves_nothing_behind():
    f = numba_kernel(complain, struct(3), vmap_method='expand_dims')
    g = jax.jit(f)
    for call in (f, g):
        for _ in range(3):
            with pytest.raises(FAILURE, match=r"ValueError\('below zero', -1"):
                outcome(call, X - 1)
            np.testing.assert_array_equal(call(X + 1), X + 1)
    with pytest.raises(FAILURE, match='division by zero'):
        outcome(f, X)
    with pytest.raises(FAILURE, match='below zero'):
        outcome(jax.vmap(f), jnp.stack([X + 1, X - 1]))
    np.testing.assert_array_equal(jax.vmap(f)(jnp.stack([X + 1] * 2)), jnp.stack([X + 1] * 2))


def together(work, n=4):
    """Run ``work(k)`` in ``n`` threads at once and return what they raised."""
    bad, ready = [], threading.Barrier(n)

    def run(k):
        try:
            ready.wait(60)
            work(k)
        except BaseException as cause:
            bad.append(cause)

    crew = [threading.Thread(target=run, args=(k,)) for k in range(n)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return bad


def test_exceptions_of_several_threads_do_not_mix():
    f = jax.jit(numba_kernel(complain, struct(3)))

    def work(k):
        for _ in range(20):
            with pytest.raises(FAILURE, match=rf'below zero.*-{k + 1}\.0'):
                outcome(f, X - (k + 1))
            np.testing.assert_array_equal(outcome(f, X + k + 1), X + k + 1)

    assert together(work) == []


class Silent(Exception):
    """An exception that cannot be shown."""

    def __repr__(self):
        raise RuntimeError

    __str__ = __repr__


class Surrogate(Exception):
    """An exception whose text is not UTF-8."""

    def __repr__(self):
        return '\ud800'


@pytest.mark.parametrize('error', [Silent, Surrogate])
def test_exception_that_cannot_be_shown_is_an_error_not_a_crash(error):
    @numba.njit
    def kernel(x, out):
        raise error('nobody reads this')

    with pytest.raises(FAILURE, match='an exception that cannot be shown'):
        outcome(numba_kernel(kernel, struct(3)), X)


def test_printing_an_array_does_not_crash(capfd):
    @numba.njit
    def kernel(x, out):
        print('kernel sees', x)
        out[0] = x[0]

    outcome(numba_kernel(kernel, struct(1)), X)
    assert capfd.readouterr().out == 'kernel sees [0. 1. 2.]\n'


def test_python_inside_a_kernel_works():
    @numba.njit
    def kernel(x, out):
        with numba.objmode(y='float64'):
            y = float(len(str(x[0])))
        out[:] = y

    assert list(outcome(numba_kernel(kernel, struct(2)), X)) == [3, 3]


# ---- threads -----------------------------------------------------------------------------------


def test_threads_that_build_the_same_kernels_at_once():
    def work(k):
        for _ in range(3):
            np.testing.assert_array_equal(plus(0.5 + k % 2)(X), X + 0.5 + k % 2)

    assert together(work) == []


def test_python_goes_on_while_a_kernel_runs():
    @numba.njit
    def kernel(halves, out):
        address = (np.int64(halves[1]) << 32) | np.int64(halves[0])
        low.fetch_add(address, 1)
        out[0] = 0
        for _ in range(1_000_000_000):
            if low.load_word(address + 8) != 0:
                out[0] = 1
                break

    cells = np.zeros(2, np.int64)
    address = cells.ctypes.data
    halves = jnp.array([address & 0xFFFFFFFF, address >> 32], jnp.uint32)
    f, results = numba_kernel(kernel, struct(1)), []
    crew = threading.Thread(target=lambda: results.append(outcome(f, halves)))
    crew.start()
    while cells[0] == 0 and crew.is_alive():
        pass  # Python runs here ...
    cells[1] = 1  # ... and answers, while the kernel waits
    crew.join()
    assert results[0][0] == 1


def parallel_kernel():
    @numba.njit(parallel=True)
    def doubled(x, out):
        for i in numba.prange(out.size):
            out[i] = x[i] * 2

    @numba.njit
    def kernel(x, out):
        doubled(x, out)  # threads are asked for further down, not by the kernel itself

    return kernel


def test_parallel_kernels_are_safe_from_several_threads():
    f = jax.jit(numba_kernel(parallel_kernel(), struct(20_000)))
    x = jnp.arange(20_000.0)

    def work(k):
        for _ in range(10):
            np.testing.assert_array_equal(outcome(f, x + k), 2 * (x + k))

    assert together(work) == []
    assert numba.threading_layer() in ('omp', 'tbb')
    assert numba.config.THREADING_LAYER == 'default'  # what others ask of numba is as before


def test_layer_that_ends_the_process_is_refused(monkeypatch):
    monkeypatch.setattr(numba, 'threading_layer', lambda: 'workqueue')
    with pytest.raises(KernelCompilationError, match="got: +the layer 'workqueue'"):
        runtime.start_threads()


# ---- processes ---------------------------------------------------------------------------------

PROCESS = """
import jax, jax.numpy as jnp, numba, numpy as np
from brainevent._op.numba_ffi import load
from brainevent._op.numba_ffi import compile as compiler
from brainevent._op.numba_ffi.bridge import numba_kernel

built, compile_guarded = [], compiler.compile_guarded
def counted(name, kernel, signature, *cleared):
    built.append(kernel.py_func.__name__)
    return compile_guarded(name, kernel, signature, *cleared)
compiler.compile_guarded = counted

large, offset = np.arange(200_000.0), 1.5

@numba.njit
def addressed(x, out):
    out[:] = x + large[-1]

@numba.njit
def printed(x, out):
    print(x)
    out[:] = x

@numba.njit(parallel=True)
def shared(x, out):
    for i in numba.prange(out.size):
        out[i] = np.sin(x[i])

@numba.njit
def raising(x, out):
    out[:] = x + offset
    if x[0] == 0:
        raise ValueError('zero', x[1])

for kernel in addressed, printed, shared, raising:
    f = numba_kernel(kernel, jax.ShapeDtypeStruct((3,), jnp.float32))
    try:
        print(np.asarray(f(jnp.arange(3.0))), flush=True)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        print(error)
print(sorted(name for name in load._loaded if name.startswith('brainevent_')))
print('built', sorted(built))
"""


def test_processes_share_what_can_be_shared_and_compute_the_same(folder, child, monkeypatch, capfd):
    cold = [child(PROCESS, cache_dir=folder, PYTHONHASHSEED=seed) for seed in '12']
    *first, built = cold[0].output().splitlines()
    assert built == "built ['addressed', 'printed', 'raising', 'shared']"
    assert cold[1].output().splitlines()[:-1] == first
    monkeypatch.setattr(compiler, 'compile_guarded', compiler.compile_guarded)
    monkeypatch.setattr(load, '_loaded', {})
    exec(PROCESS, {'__name__': '__main__'})
    *again, built = capfd.readouterr().out.splitlines()
    assert built == "built ['addressed', 'printed']"  # they hold addresses of their process
    assert again == first  # and the names are the same


def test_damaged_file_is_built_again(folder, monkeypatch):
    outcome(plus(31), X)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    # a process that starts anew: XLA keeps the first code of a name for ever
    monkeypatch.setattr(jax.ffi, 'register_ffi_target', lambda *args, **kwargs: None)
    monkeypatch.delitem(load._loaded, file.name.split('.')[0])
    np.testing.assert_array_equal(plus(31)(X), X + 31)
    assert len(file.read_bytes()) == len(whole)
