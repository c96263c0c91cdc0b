# SPDX-License-Identifier: Apache-2.0
"""An operator of your own: a leaky integrate-and-fire step with a native CPU kernel.

    python examples/kernel_author.py

``XLACustomKernel`` makes a JAX primitive with a table of kernels. This one has two: a Numba loop,
compiled to native code that XLA calls without Python, and plain JAX for every other platform. One
derivative rule serves both, and it is where the surrogate gradient of the spike lives.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np

import brainevent as be

lif_step_p = be.XLACustomKernel('example_lif_step')


def numba_generator(*, outs: Any, decay: float, threshold: float, **_: Any) -> Any:
    """Make the kernel for these static parameters; called once for each compilation."""
    number = np.dtype(outs[0].dtype).type
    decay, threshold = number(decay), number(threshold)

    @numba.njit
    def kernel(v, current, v_next, spike):  # type: ignore[no-untyped-def]
        for i in range(v.shape[0]):
            moved = decay * v[i] + current[i]
            fired = moved > threshold
            spike[i] = fired
            v_next[i] = 0 if fired else moved

    return be.numba_kernel(kernel, outs=outs, vmap_method='sequential')


def jax_generator(*, decay: float, threshold: float, **_: Any) -> Any:
    def kernel(v: jax.Array, current: jax.Array) -> tuple[jax.Array, jax.Array]:
        moved = decay * v + current
        fired = moved > threshold
        return jnp.where(fired, 0, moved), fired.astype(v.dtype)

    return kernel


lif_step_p.def_numba_kernel(numba_generator)
for platform in ('cpu', 'gpu', 'tpu'):
    lif_step_p.def_kernel('jax_raw', platform, jax_generator)


def _tangents(change: Any, v: Any, current: Any, *, decay: float, threshold: float) -> Any:
    """Say how a change before the threshold changes the potential after it, and the spike."""
    moved = decay * v + current
    fired = moved > threshold
    return jnp.where(fired, 0, change), change / (1 + 10 * jnp.abs(moved - threshold)) ** 2


def _tangents_of_v(
    dv: Any, v: Any, current: Any, *, decay: float, threshold: float, **_: Any
) -> Any:
    return _tangents(decay * dv, v, current, decay=decay, threshold=threshold)


def _tangents_of_current(
    di: Any, v: Any, i: Any, *, decay: float, threshold: float, **_: Any
) -> Any:
    return _tangents(di, v, i, decay=decay, threshold=threshold)


lif_step_p.def_jvp_rule2(_tangents_of_v, _tangents_of_current)


def lif_step(
    v: jax.Array,
    current: jax.Array,
    *,
    decay: float = 0.9,
    threshold: float = 1.0,
    backend: str | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Advance membranes by one step; the potentials after reset, and the spikes as 0 and 1."""
    out = jax.ShapeDtypeStruct(v.shape, v.dtype)
    v_next, spike = lif_step_p(
        v, current, outs=[out, out], decay=decay, threshold=threshold, backend=backend
    )
    return v_next, spike


def main() -> None:
    rng = np.random.default_rng(0)
    v = jnp.asarray(rng.random(1000), jnp.float32)
    current = jnp.asarray(rng.random(1000) * 0.5, jnp.float32)
    print('backends on the CPU:', lif_step_p.available_backends('cpu'))

    for name in lif_step_p.available_backends('cpu'):
        v_next, spike = lif_step(v, current, backend=name)
        print(f'{name}: {int(spike.sum())} spikes, mean potential {v_next.mean():.6f}')

    def spikes_of_run(current: jax.Array) -> jax.Array:
        def step(v: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            v, spike = lif_step(v, current)
            return v, spike.sum()

        return jax.lax.scan(step, v, length=50)[1].sum()

    count, gradient = jax.jit(jax.value_and_grad(spikes_of_run))(current)
    norm = jnp.linalg.norm(gradient)
    print(f'{int(count)} spikes in 50 steps; surrogate gradient of norm {norm:.2f}')
    batch = jax.vmap(spikes_of_run)(jnp.stack([current, 2 * current]))
    print('a batch of two inputs:', batch.astype(int).tolist())


if __name__ == '__main__':
    main()
