# SPDX-License-Identifier: Apache-2.0
"""Compile programs for an H200 by XLA's GPU compiler, on a machine without any GPU.

Products, gradients and batches of every format are lowered with ``backend='cuda_raw'``: nvcc builds
their kernels, XLA must know the targets, accept their version and attributes, keep updates in place
and take the kernels into command buffers. Nothing is run.

Needs nvcc and, in an environment of its own, jax with ``jax-cuda13-plugin`` and
``jax-cuda13-pjrt`` of the same version, installed without dependencies.

usage: python tools/aot_check.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# What XLA is told of the device that is not here. Without versions it would leave kernels out of
# command buffers.
H200 = """
gpu_device_info {
  cuda_compute_capability { major: 9 }
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98 threads_per_warp: 32
  threads_per_block_limit: 1024 threads_per_core_limit: 2048
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 4800000000000 device_memory_size: 151397597184 l2_cache_size: 52428800
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 }
device_description_str: "H200 (described, not present)"
"""
N, K = 64, 8  # rows and columns, edges of a row

Program = tuple[str, Callable[..., Any], tuple[Any, ...]]


def _matrices() -> dict[str, Any]:
    import numpy as np

    import brainevent as be

    rng = np.random.default_rng(0)
    ids = rng.integers(0, N, (N, K)).astype(np.int32)
    ptr = (np.arange(N + 1) * K).astype(np.int32)
    w = np.ones(N * K, np.float32)
    csr = be.CSR((w, ids.reshape(-1), ptr), shape=(N, N))
    row = np.repeat(np.arange(N, dtype=np.int32), K)
    return {
        'csr': csr,
        'csr with a mirror': csr.with_mirror(),
        'csc': csr.T,
        'coo': be.COO((w, row, ids.reshape(-1)), shape=(N, N)),
        'fcn': be.FixedNumPerPre((w.reshape(N, K), ids), shape=(N, N)),
        'dense': be.Dense(np.ones((N, N), np.float32)),
    }


def programs() -> Iterator[Program]:
    """Return name, function and operands of every program."""
    import jax
    import jax.numpy as jnp

    import brainevent as be

    for name, matrix in _matrices().items():
        x, on, wide = jnp.ones(N), jnp.ones(N, bool), jnp.ones((N, 5))

        def forward(a: Any, x: Any, on: Any, wide: Any) -> Any:
            events = be.BinaryArray(on)
            return a @ x, x @ a, a @ events, events @ a, a @ wide, be.BinaryArray(wide.T) @ a

        def gradient(a: Any, x: Any, on: Any, wide: Any) -> Any:
            def loss(w: Any, x: Any) -> Any:
                b = a.with_data(w)
                return ((be.BinaryArray(on) @ b) ** 2).sum() + ((b @ x) ** 2).sum()

            return jax.grad(loss, (0, 1))(a.data, x)

        def batched(a: Any, x: Any, on: Any, wide: Any) -> Any:
            many = jnp.stack([a.data] * 3)
            return jax.vmap(lambda w: be.BinaryArray(on) @ a.with_data(w))(many)

        def learning(a: Any, x: Any, on: Any, wide: Any) -> Any:
            return a.update_on_pre(on, x).data, a.update_on_post(x, on).data

        for what in (forward, gradient, batched, learning):
            yield f'{what.__name__}, {name}', what, (matrix, x, on, wide)


def steps(a: Any, x: Any) -> Any:
    """Multiply six times in a row: enough work for a command buffer."""
    import brainevent as be

    for _ in range(6):
        x = be.BinaryArray(x > 0.5) @ a
    return x


def _check() -> int:
    import jax
    import jax.numpy as jnp
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    import brainevent as be

    described = topologies.get_topology_desc(platform='cuda', target_config=H200, topology='1x1x1')
    place = SingleDeviceSharding(described.devices[0])
    be.config.set_compute_capability('9.0')

    def compiled(f: Callable[..., Any], operands: tuple[Any, ...], **options: Any) -> str:
        there = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), operands
        )
        text: str = jax.jit(f, **options).lower(*there).compile().as_text()
        return text

    failures = 0

    def report(name: str, ok: bool, said: str) -> None:
        nonlocal failures
        failures += not ok
        print(f'{"ok    " if ok else "FAILED"} {name}: {said}', flush=True)

    with be.use_backend('gpu', 'cuda_raw'):
        for name, f, operands in programs():
            try:
                text = compiled(f, operands)
            except Exception as error:
                report(name, False, str(error)[:2000])
                continue
            calls = text.count('custom_call_target="brainevent_')
            own = name.startswith(('forward, dense', 'gradient, dense'))
            report(
                name,
                calls > 0 or own,
                f'{calls} kernels, {len(re.findall(" copy[(]", text))} copies',
            )
        csr = _matrices()['csr']
        operands = csr, jnp.ones(N, bool), jnp.ones(N)
        text = compiled(lambda a, on, y: a.update_on_pre(on, y), operands, donate_argnums=0)
        copies = len(re.findall(rf'f32\[{N * K}\]\S* copy\(', text))
        report('donated weights are updated in place', copies == 0, f'{copies} copies of them')
        compiled(steps, (csr, jnp.ones(N)))
        print(f'kernels: {be.get_cache_dir()}', flush=True)
    return failures


def main() -> int:
    """Run the check in a process whose log can be read, and say what went into command buffers."""
    if os.environ.get('BRAINEVENT_AOT_CHILD'):
        sys.path.insert(0, str(ROOT))
        return _check()
    environment = {
        **os.environ,
        'BRAINEVENT_AOT_CHILD': '1',
        'JAX_PLATFORMS': 'cpu',
        'JAX_SKIP_CUDA_CONSTRAINTS_CHECK': '1',
        'TF_CPP_MIN_LOG_LEVEL': '0',
        'TF_CPP_VMODULE': 'command_buffer_conversion_pass=5',
    }
    child = subprocess.Popen(
        [sys.executable, __file__], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    buffers, log = [], []
    for line in child.stdout or ():
        log.append(line)
        found = re.search(r'Creating command buffer thunk with the following thunks: (.*)', line)
        if found:
            buffers.append(len(found[1].split(',')))
        if line.startswith(('ok ', 'FAILED', 'kernels')):
            print(line, end='', flush=True)
    failures = child.wait()
    if failures:
        print(''.join(log[-30:]))
    print(f'command buffers: {len(buffers)}, the longest of {max(buffers, default=0)} kernels')
    return 1 if failures or max(buffers, default=0) < 6 else 0


if __name__ == '__main__':
    sys.exit(main())
