# SPDX-License-Identifier: Apache-2.0
"""A kernel in C++, compiled when the program runs: traces of spike trains, with derivatives.

    python examples/inline_kernel.py

The trace of a neuron decays by a factor each step and grows by one with each spike. The C++ kernel
runs through time in one pass; ``jax_raw`` is the same as a scan. Backwards in time it is its own
transpose, which is all that gradients need. Needs a C++ compiler such as g++.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import brainevent as be

SOURCE = r"""
#include "brainevent/common.h"

// One row of `spikes` is one step of time; neurons lie side by side.
// @BE trace
void trace(const BE::Tensor spikes, BE::Tensor traces, double decay, bool backwards) {
  BE_CHECK(spikes.ndim() == 2) << "spikes are " << spikes << ", not (time, neurons)";
  const int64_t steps = spikes.size(0), neurons = spikes.size(1);
  BE_DISPATCH_FLOATING(spikes.dtype(), T, {
    const T* x = spikes.data_ptr<T>();
    T* y = traces.data_ptr<T>();
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t now = (backwards ? steps - 1 - step : step) * neurons;
      const int64_t before = backwards ? now + neurons : now - neurons;
      for (int64_t i = 0; i < neurons; ++i)
        y[now + i] = x[now + i] + (step > 0 ? static_cast<T>(decay) * y[before + i] : T(0));
    }
  });
}
"""

trace_p = be.XLACustomKernel('example_trace')


def jax_generator(*, decay: float, backwards: bool, **_: Any) -> Any:
    def kernel(spikes: jax.Array) -> list[jax.Array]:
        def step(y: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            y = decay * y + x
            return y, y

        start = jnp.zeros_like(spikes[0])
        return [jax.lax.scan(step, start, spikes, reverse=backwards)[1]]

    return kernel


def cpp_generator(**static: Any) -> Any:
    """Compile when the first call is lowered; later calls and processes find the library."""
    module = be.load_cpp_inline('example_trace', SOURCE)
    return module.kernel('trace')(**static)


trace_p.def_kernel('cpp', 'cpu', cpp_generator)
for platform in ('cpu', 'gpu', 'tpu'):
    trace_p.def_kernel('jax_raw', platform, jax_generator)


def trace(
    spikes: jax.Array, decay: float = 0.9, backwards: bool = False, backend: str | None = None
) -> jax.Array:
    """Return the traces of spike trains of shape (time, neurons)."""
    out = jax.ShapeDtypeStruct(spikes.shape, spikes.dtype)
    (y,) = trace_p(spikes, outs=[out], decay=decay, backwards=backwards, backend=backend)
    return y


def _tangent(change: jax.Array, spikes: jax.Array, *, outs: Any, **static: Any) -> Any:
    return trace_p(change, outs=outs, **static)


def _transpose(
    cotangents: Any, spikes: Any, *, decay: float, backwards: bool, backend: Any, **_: Any
) -> Any:
    return [trace(cotangents[0], decay, not backwards, backend)]


trace_p.def_jvp_rule2(_tangent)
trace_p.def_transpose_rule(_transpose)


def main() -> None:
    rng = np.random.default_rng(0)
    spikes = jnp.asarray(rng.random((200, 50)) < 0.05, jnp.float32)
    for backend in ('cpp', 'jax_raw'):
        made = jax.jit(partial(trace, backend=backend))(spikes)
        print(f'{backend}: mean trace {made.mean():.5f}, largest {made.max():.5f}')

    def distance(spikes: jax.Array, backend: str | None = None) -> jax.Array:
        """Measure how far the mean trace is from 0.3, after a burn-in."""
        return ((trace(spikes, backend=backend)[50:].mean(axis=1) - 0.3) ** 2).sum()

    by_cpp, by_jax = (jax.grad(distance)(spikes, backend) for backend in ('cpp', 'jax_raw'))
    print(f'gradients of the two differ by at most {jnp.abs(by_cpp - by_jax).max():.1e}')
    both = jax.vmap(trace)(jnp.stack([spikes, 2 * spikes]))
    print(f'a batch of two: {both.mean(axis=(1, 2)).round(4).tolist()}')

    try:
        jax.block_until_ready(trace(spikes[0]))
    except jax.errors.JaxRuntimeError as error:
        print(f'a refusal: {str(error).splitlines()[0].partition(" (check")[0]}')


if __name__ == '__main__':
    main()
