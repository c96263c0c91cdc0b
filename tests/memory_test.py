# SPDX-License-Identifier: Apache-2.0
"""Gradients and batched products need memory for operands and result, not for edges times batch."""

import os
import platform
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

EDGES, BATCH, SIZE = 400_000, 64, 4_000
LIMIT = 3  # times operands plus result
BACKENDS = ('jax_raw', 'numba')


def programs(backend):
    """Return name -> (function, operands): the products and gradients that are watched."""
    rng = np.random.default_rng(0)
    width = EDGES // SIZE
    table = jnp.asarray(rng.integers(0, SIZE, (SIZE, width)), jnp.int32)
    ptr = jnp.arange(SIZE + 1, dtype=jnp.int32) * width
    w = jnp.asarray(rng.normal(size=EDGES), jnp.float32)
    x = jnp.asarray(rng.normal(size=(SIZE, BATCH)), jnp.float32)
    spikes = x > 1
    shape = {'shape': (SIZE, SIZE), 'backend': backend}

    def of_weights(w, ids, ptr, x, ct):
        return jax.grad(lambda w: (be.csrmm(w, ids, ptr, x, **shape) * ct).sum())(w)

    def of_event_weights(w, ids, ptr, s, ct):
        return jax.grad(lambda w: (be.binary_csrmm(w, ids, ptr, s, **shape) * ct).sum())(w)

    def fixed(w, table, x):
        return be.fcnmm(w, table, x, **shape)

    def fixed_back(w, table, x):
        return be.fcnmm(w, table, x, transpose=True, **shape)

    flat = table.reshape(-1)
    return {
        'csrmm weight gradient': (of_weights, (w, flat, ptr, x, 2 * x)),
        'binary_csrmm weight gradient': (of_event_weights, (w, flat, ptr, spikes, x)),
        'fcnmm': (fixed, (w.reshape(SIZE, width), table, x)),
        'fcnmm transposed': (fixed_back, (w.reshape(SIZE, width), table, x)),
    }


NAMES = tuple(programs('jax_raw'))


def watched(backend, name):
    """Compile one program; also return its operands, and the bytes of operands plus result."""
    function, operands = programs(backend)[name]
    compiled = jax.jit(function).lower(*operands).compile()
    out = jax.eval_shape(function, *operands)
    return compiled, operands, sum(a.size * a.dtype.itemsize for a in (*operands, out))


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('name', NAMES)
def test_temporaries_of_compiled_programs(backend, name):
    compiled, _, size = watched(backend, name)
    stats = compiled.memory_analysis()
    peak = stats.temp_size_in_bytes + stats.argument_size_in_bytes + stats.output_size_in_bytes
    assert peak < LIMIT * size, f'{peak / size:.1f} times operands plus result'


def report():
    """Print by how much each program raises the peak of this process's memory, in sizes."""
    for backend in BACKENDS:
        for name in NAMES:
            compiled, operands, size = watched(backend, name)
            jax.block_until_ready(compiled(*operands))
            with open('/proc/self/clear_refs', 'w') as file:
                file.write('5')  # the peak starts anew
            before = _memory('VmRSS')
            jax.block_until_ready(compiled(*operands))
            print(backend, name, (_memory('VmHWM') - before + size) / size, sep='; ')


def _memory(what):
    with open('/proc/self/status') as file:
        line = next(line for line in file if line.startswith(what))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='reads /proc, and steers malloc')
def test_peak_of_a_process():
    """What kernels take besides XLA counts too; operands are there before, a result is not."""
    code = 'from tests import memory_test; memory_test.report()'
    # Arrays are mapped one by one, so that what was freed before does not hide what is needed.
    env = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'MALLOC_MMAP_THRESHOLD_': '65536'}
    done = subprocess.run(
        [sys.executable, '-c', code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split('; ') for line in done.stdout.splitlines()]
    assert len(rows) == len(BACKENDS) * len(NAMES)
    assert not [row for row in rows if float(row[-1]) > LIMIT]
