# SPDX-License-Identifier: Apache-2.0
"""Several threads, several kernels in one program, several processes: all get their own results."""

import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

BACKENDS = ('jax_raw', 'numba')
THREADS, ROUNDS = 4, 8
ROWS, COLS, WIDTH = 3_000, 2_000, 60  # enough edges that kernels ask for threads of their own


class Problem:
    """A matrix of whole numbers and operands, with exact results."""

    def __init__(self, seed, backend, rows=ROWS):
        rng = np.random.default_rng(seed)
        self.row = np.repeat(np.arange(rows), WIDTH)
        self.col = rng.integers(0, COLS, rows * WIDTH).astype(np.int32)
        self.w = rng.integers(1, 5, rows * WIDTH).astype(np.float32)
        ptr = np.arange(rows + 1, dtype=np.int32) * WIDTH
        self.mat = be.CSR((self.w, self.col, ptr), shape=(rows, COLS), backend=backend)
        self.left, self.right = rng.random(rows) < 0.5, rng.random(COLS) < 0.5
        self.forward = np.bincount(self.row, self.w * self.right[self.col], rows)
        self.backward = np.bincount(self.col, self.w * self.left[self.row], COLS)

    def operands(self):
        return self.mat, jnp.asarray(self.left), jnp.asarray(self.right)

    def check(self, results):
        forward, backward, plain, columns = results
        np.testing.assert_array_equal(forward, self.forward)
        np.testing.assert_array_equal(backward, self.backward)
        np.testing.assert_array_equal(plain, self.forward)
        np.testing.assert_array_equal(columns, np.stack([self.backward] * 9, 1))


def everything(mat, left, right):
    """Four kernels that do not wait for each other."""
    nine = be.BinaryArray(jnp.stack([left] * 9, 1))
    return (
        mat @ be.BinaryArray(right),
        be.BinaryArray(left) @ mat,
        mat @ right.astype(jnp.float32),
        mat.T @ nine,
    )


def in_threads(work):
    """Run ``work(number)`` in threads that start together; raise what any of them raised."""
    errors, gate = [], threading.Barrier(THREADS)

    def run(k):
        gate.wait()
        try:
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize('backend', BACKENDS)
def test_kernels_of_one_program_side_by_side(backend):
    problem = Problem(0, backend)
    run = jax.jit(everything)
    for _ in range(ROUNDS):
        problem.check(run(*problem.operands()))


@pytest.mark.parametrize('backend', BACKENDS)
def test_threads_call_one_compiled_program(backend):
    problems, run = [Problem(k, backend) for k in range(THREADS)], jax.jit(everything)

    def work(k):
        for _ in range(ROUNDS):
            problems[k].check(run(*problems[k].operands()))

    in_threads(work)


@pytest.mark.parametrize('backend', BACKENDS)
def test_threads_trace_and_compile_at_once(backend):
    """Nobody has called these shapes before, so all threads build the same programs."""
    problems = [Problem(k, backend, rows=1_000 + k % 2) for k in range(THREADS)]

    def work(k):
        problems[k].check(everything(*problems[k].operands()))

    in_threads(work)


def test_threads_choose_backends_of_their_own():
    problems = [Problem(k, None, rows=500) for k in range(THREADS)]

    def work(k):
        with be.use_backend(BACKENDS[k % 2]):
            text = jax.jit(everything).lower(*problems[k].operands()).as_text()
            assert ('brainevent.' in text) == (BACKENDS[k % 2] == 'numba')
            problems[k].check(everything(*problems[k].operands()))

    in_threads(work)


@pytest.mark.parametrize('backend', BACKENDS)
def test_gradients_in_threads(backend):
    problem = Problem(0, backend)
    mat, left, _ = problem.operands()
    grad = jax.jit(jax.grad(lambda w: (be.BinaryArray(left) @ mat.with_data(w)).sum()))

    def work(k):
        for _ in range(ROUNDS):
            np.testing.assert_array_equal(grad(mat.data), problem.left[problem.row])

    in_threads(work)


def test_call_within_a_loop_within_a_batch():
    problem = Problem(0, 'numba', rows=300)
    mat, left, _ = problem.operands()

    @jax.jit
    def run(lefts):
        def step(total, _):
            return total + jax.vmap(lambda s: be.BinaryArray(s) @ mat)(lefts), None

        return jax.lax.scan(step, jnp.zeros((5, COLS)), length=4)[0]

    np.testing.assert_array_equal(run(jnp.stack([left] * 5)), np.stack([4 * problem.backward] * 5))


FIRST_USE = """
import jax, jax.numpy as jnp, numpy as np
from tests.threads_test import Problem, everything
problem = Problem(3, 'numba', rows=400)
problem.check(jax.jit(everything)(*problem.operands()))
print('SOUND')
"""


def test_two_processes_share_an_empty_cache(tmp_path):
    env = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'BRAINEVENT_CACHE_DIR': str(tmp_path / 'cache')}
    command = [sys.executable, '-c', FIRST_USE]
    kinds = {'env': env, 'text': True, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
    both = [subprocess.Popen(command, **kinds) for _ in range(2)]
    for process in both:
        out, err = process.communicate()
        assert out == 'SOUND\n', err[-2000:]
    # and a third one finds all it needs
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    assert done.stdout == 'SOUND\n', done.stderr[-2000:]
