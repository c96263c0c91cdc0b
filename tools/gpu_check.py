# SPDX-License-Identifier: Apache-2.0
"""What only a GPU can show, in one run of under four minutes: correctness, memory, speed.

Each part runs as a process of its own with a time limit, so that a fault in one costs nothing of
the others. The answers of all parts are written to one JSON file.

usage: python tools/gpu_check.py OUTPUT.json [PART ...]
       python tools/gpu_check.py --part PART            (one part, its answer on the last line)
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ANSWER = 'answer: '

PARTS: dict[str, tuple[Callable[[], Any], float]] = {}


def part(seconds: float) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a part with its time limit."""

    def register(run: Callable[[], Any]) -> Callable[[], Any]:
        PARTS[run.__name__] = run, seconds
        return run

    return register


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as cause:
        return f'failed: {cause}'
    return (done.stdout + done.stderr).strip()


# ---- 1. what is here -----------------------------------------------------------------------------


@part(40)
def versions() -> Any:
    """Name the machine and its software; without a GPU nothing else is run."""
    import jax
    import jaxlib

    import brainevent

    devices = [d for d in jax.devices() if d.platform == 'gpu']
    return {
        'ok': bool(devices),
        'brainevent': brainevent.__version__,
        'jax': jax.__version__,
        'jaxlib': jaxlib.__version__,
        'python': sys.version.split()[0],
        'devices': [f'{d.device_kind}, {getattr(d, "compute_capability", "?")}' for d in devices],
        'driver': _output('nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'),
        'nvcc': _output('nvcc', '--version').splitlines()[-1:],
        'host compiler': _output('g++', '--version').splitlines()[:1],
    }


# ---- 2. building ---------------------------------------------------------------------------------


def _build(unit: tuple[str, str]) -> tuple[str, float]:
    from brainevent import load_cuda_inline
    from brainevent._edge.kernels.cuda_units import SOURCES

    start = time.perf_counter()
    load_cuda_inline(*unit, extra_include_paths=[str(SOURCES)], auto_register=False)
    return unit[0], round(time.perf_counter() - start, 2)


@part(90)
def build() -> Any:
    """Build all units side by side; then again, from the cache."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from tools.cuda_units import every_unit

    units, took = list(every_unit().items()), {}
    for name in ('cold', 'warm'):
        start = time.perf_counter()
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context('spawn')) as pool:
            times = dict(pool.map(_build, units))
        took[name] = round(time.perf_counter() - start, 1)
        took[f'{name}, slowest'] = max(times.items(), key=lambda item: item[1])
    return {'ok': took['warm'] < took['cold'], 'units': len(units), **took}


# ---- 3. conformance ------------------------------------------------------------------------------


def _conformance(flags: str) -> Any:
    environment = {
        **os.environ,
        'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} {flags}'.strip(),
        'XLA_PYTHON_CLIENT_PREALLOCATE': 'false',
    }
    command = [sys.executable, '-m', 'pytest', '-q', '-x', '--no-header', '-p', 'no:cacheprovider',
               'tests/cuda/conformance_test.py', 'tests/cuda/tiers_test.py']  # fmt: skip
    if _output(sys.executable, '-c', 'import xdist') == '':
        command += ['-n', str(min(8, os.cpu_count() or 1))]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    told = lines[-1:] if done.returncode == 0 else lines[-40:]
    return {'ok': done.returncode == 0, 'pytest': told}


@part(75)
def conformance() -> Any:
    """Put the kernels through the cases of the emulator, on the device."""
    return _conformance('')


@part(75)
def conformance_in_graphs() -> Any:
    """Do the same with every run of kernels captured and replayed as a graph."""
    return _conformance('--xla_gpu_graph_min_graph_size=1')


# ---- 4. memory -----------------------------------------------------------------------------------


@part(60)
def sanitizer() -> Any:
    """Run every launcher without JAX, under each tool of compute-sanitizer."""
    program = shutil.which('compute-sanitizer') or '/usr/local/cuda/bin/compute-sanitizer'
    house = ROOT / 'brainevent'
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        driver = str(Path(folder, 'driver'))
        built = _output('nvcc', '-std=c++17', '-O1', '-lineinfo', '-arch=native',
                        f'-I{house / "include"}', f'-I{house / "_edge/kernels/cuda"}',
                        str(ROOT / 'tools/gpu/driver.cu'), '-o', driver)  # fmt: skip
        found['build'] = built or 'clean'
        found['alone'] = _output(driver)
        for tool in ('memcheck', 'racecheck', 'initcheck', 'synccheck'):
            said = _output(program, '--tool', tool, '--error-exitcode', '1', driver)
            found[tool] = said.splitlines()[-3:]
    clean = all(re.search(r'\b0 (errors|hazards)', ' '.join(found[t])) for t in list(found)[2:])
    return {'ok': clean and found['alone'] == 'all results are right', **found}


# ---- 5. speed ------------------------------------------------------------------------------------


def _seconds(step: Callable[..., Any], *operands: Any, times: int = 200) -> float:
    """Return the time of one call of many in a loop on the device."""
    import jax

    @jax.jit
    def loop(*operands: Any) -> Any:
        def body(_: Any, carry: Any) -> Any:
            y, x = carry
            x = jax.lax.optimization_barrier((x, y))[0]
            return step(x, *operands[1:]), x

        first = step(*operands)
        return jax.lax.fori_loop(0, times, body, (first, operands[0]))[0]

    jax.block_until_ready(loop(*operands))
    best = float('inf')
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(loop(*operands))
        best = min(best, time.perf_counter() - start)
    return best / (times + 1)


def _case(rows: int, width: int, rate: float, seed: int = 0) -> tuple[Any, ...]:
    import numpy as np

    rng = np.random.default_rng(seed)
    indices = rng.integers(0, rows, rows * width, dtype=np.int32)
    indptr = (np.arange(rows + 1) * width).astype(np.int32)
    data = rng.random(rows * width, dtype=np.float32)
    return data, indices, indptr, rng.random(rows) < rate


@part(60)
def copying() -> Any:
    """Measure what a copy within the device moves, the yardstick of all other figures."""
    import jax.numpy as jnp

    x = jnp.ones(1 << 28, jnp.float32)
    seconds = _seconds(lambda x: x + 1, x, times=20)
    return {'ok': True, 'GB/s': round(2 * x.nbytes / seconds / 1e9)}


@part(90)
def speed() -> Any:
    """Time each tier against the reference and cuSPARSE, over lengths of rows and rates."""
    import jax.numpy as jnp

    import brainevent as be

    rows, found = 1 << 15, []
    for width in (2, 8, 32, 128, 1024):
        for rate in (0.001, 0.01, 0.1, 0.5):
            *csr, on = map(jnp.asarray, _case(rows, width, rate))
            line: dict[str, Any] = {'width': width, 'rate': rate}
            for transpose in (True, False):
                for backend in ('cuda_raw', 'jax_raw', 'cusparse'):

                    def step(x: Any, *csr: Any, t: bool = transpose, b: str = backend) -> Any:
                        return be.binary_csrmv(*csr, x, shape=(rows, rows), transpose=t, backend=b)

                    name = f'{"scatter" if transpose else "gather"} {backend}, us'
                    line[name] = round(1e6 * _seconds(step, on, *csr, times=50), 2)
            found.append(line)
    return {'ok': True, 'products of events, 32768 rows': found}


# ---- 6. size, names ------------------------------------------------------------------------------


@part(60)
def large() -> Any:
    """Count more than 2**31 edges, through offsets of 64 bits."""
    import jax
    import jax.numpy as jnp

    import brainevent as be

    with jax.enable_x64(True):
        rows, width = 1 << 14, (1 << 17) + 64
        indptr = jnp.arange(rows + 1, dtype=jnp.int64) * width
        indices = (jnp.arange(rows * width, dtype=jnp.int64) % rows).astype(jnp.int32)
        one = jnp.ones(1, jnp.float32)

        def product(x: Any, ids: Any, ptr: Any) -> Any:
            return be.csrmv(one, ids, ptr, x, shape=(rows, rows), backend='cuda_raw')

        y = jax.jit(product)(jnp.ones(rows, jnp.float32), indices, indptr)
        return {'ok': bool((y == width).all()), 'edges': rows * width}


@part(60)
def stale() -> Any:
    """Edit a kernel in one process: the new text runs, and a live name is not given away."""
    import jax.numpy as jnp

    import brainevent as be

    text = """
#include <cuda_runtime.h>
#include "brainevent/common.h"
__global__ void fill(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = VALUE;
}
// @BE filled ret stream
void filled(BE::Tensor y, int64_t stream) {
  fill<<<1, 32, 0, reinterpret_cast<cudaStream_t>(stream)>>>(y.data_ptr<float>(), 4);
}
"""
    import jax

    out, got, refused = jax.ShapeDtypeStruct((4,), jnp.float32), [], False
    for value in ('1.0f', '2.0f'):
        source = text.replace('VALUE', value)
        module = be.load_cuda_inline('gpu_check', source, auto_register=False)
        got.append(float(module.function('filled')(outs=out)[0]))
        try:
            be.load_cuda_inline('gpu_check', source, replace=True)
        except be.KernelRegistrationError:
            refused = True
    return {'ok': got == [1.0, 2.0] and refused, 'values': got, 'live name refused': refused}


# ---- all of it -----------------------------------------------------------------------------------


def _run_part(name: str) -> dict[str, Any]:
    start = time.perf_counter()
    command = [sys.executable, __file__, '--part', name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PARTS[name][1])
        told = [x for x in done.stdout.splitlines() if x.startswith(ANSWER)]
        answer = json.loads(told[-1][len(ANSWER) :]) if told else {'ok': False}
        if not told:
            answer['error'] = (done.stdout + done.stderr).strip().splitlines()[-30:]
    except subprocess.TimeoutExpired:
        answer = {'ok': False, 'error': f'not done after {PARTS[name][1]:g} s'}
    return {**answer, 'seconds': round(time.perf_counter() - start, 1)}


def main(arguments: list[str]) -> int:
    """Run the parts that are named, or all of them."""
    sys.path.insert(0, str(ROOT))
    if arguments[:1] == ['--part']:
        print(ANSWER + json.dumps(PARTS[arguments[1]][0]()))
        return 0
    if not arguments:
        print(__doc__)
        return 2
    output, *names = arguments
    report: dict[str, Any] = {}
    for name in names or list(PARTS):
        report[name] = _run_part(name)
        print(f'{name}: {"ok" if report[name]["ok"] else "FAILED"}, {report[name]["seconds"]} s')
        Path(output).write_text(json.dumps(report, indent=1) + '\n', encoding='utf-8')
        if name == 'versions' and not report[name]['ok']:
            print('no GPU is within reach')
            return 1
    return 0 if all(answer['ok'] for answer in report.values()) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
