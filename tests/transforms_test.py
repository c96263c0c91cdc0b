# SPDX-License-Identifier: Apache-2.0
"""Products inside the transformations of JAX, one in another, give what a dense program gives."""

import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

COL = np.array([2, 0, 2, 1, 0], np.int32)
PTR = np.array([0, 3, 3, 5], np.int32)
ROW = np.repeat(np.arange(3), np.diff(PTR))
W = jnp.array([1.0, 2.0, 4.0, 8.0, 16.0])
X = jnp.array([0.5, -1.0, 2.0])
SPIKES = jnp.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]], bool)

pytestmark = pytest.mark.parametrize('backend', ['jax_raw', 'numba'])


def sparse(w, backend):
    return be.CSR((w, COL, PTR), shape=(3, 3), backend=backend)


def dense(w, backend=None):
    return jnp.zeros((3, 3)).at[ROW, COL].add(w)


def close(got, want):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)


# A step of a small recurrent network: spikes through the matrix, straight-through for the gradient.


def fire(v):
    hard = (v > 0.5).astype(v.dtype)
    return v + jax.lax.stop_gradient(hard - v)


def sparse_step(mat, v, x):
    spikes = fire(v)
    return 0.3 * v + 0.1 * (mat @ be.BinaryArray(spikes)) + 0.1 * (spikes @ mat) + x


def dense_step(mat, v, x):
    spikes = fire(v)
    return 0.3 * v + 0.1 * (mat @ spikes) + 0.1 * (spikes @ mat) + x


def network(build, step, backend, remat=False):
    inputs = jnp.linspace(-1, 1, 12).reshape(4, 3)

    def loss(w, v):
        mat = build(w, backend)
        one = functools.partial(step, mat)
        one = jax.checkpoint(one) if remat else one
        v, trace = jax.lax.scan(lambda v, x: (one(v, x),) * 2, v, inputs)
        return (trace**2).sum() + v.sum()

    return loss


@pytest.mark.parametrize('remat', [False, True])
def test_gradient_through_time(backend, remat):
    mine = network(sparse, sparse_step, backend, remat)
    close(jax.grad(mine, (0, 1))(W, X), jax.grad(network(dense, dense_step, None), (0, 1))(W, X))


def test_forward_mode_through_time(backend):
    mine, want = network(sparse, sparse_step, backend), network(dense, dense_step, None)
    close(jax.jacfwd(mine, (0, 1))(W, X), jax.jacfwd(want, (0, 1))(W, X))


def test_second_order_through_time(backend):
    mine, want = network(sparse, sparse_step, backend), network(dense, dense_step, None)
    close(jax.jit(jax.hessian(mine))(W, X), jax.hessian(want)(W, X))


def test_batch_of_networks_through_time(backend):
    """Gradients of many networks at once, in weights of their own and from states of their own."""
    mine, want = network(sparse, sparse_step, backend), network(dense, dense_step, None)
    ws, vs = jnp.stack([W, -W, 0.1 * W]), jnp.stack([X, X + 1, -X])
    for axes in ((0, 0), (0, None), (None, 0)):
        args = [
            a if axis == 0 else one for a, one, axis in zip((ws, vs), (W, X), axes, strict=True)
        ]
        grads = [jax.vmap(jax.grad(f, (0, 1)), axes)(*args) for f in (mine, want)]
        close(*grads)


def test_linearize_and_its_transpose(backend):
    f = lambda w, x: sparse(w, backend) @ x  # noqa: E731
    g = lambda w, x: dense(w) @ x  # noqa: E731
    (y, line), (y_dense, line_dense) = jax.linearize(f, W, X), jax.linearize(g, W, X)
    close(y, y_dense)
    close(line(W + 1, X - 1), line_dense(W + 1, X - 1))
    back = jax.linear_transpose(lambda x: sparse(W, backend) @ x, X)
    close(back(X), (dense(W).T @ X,))


def test_both_jacobians(backend):
    for j in (jax.jacfwd, jax.jacrev):
        for f in (lambda m, s: m @ s, lambda m, s: s @ m):
            mine = j(lambda w, f=f: f(sparse(w, backend), be.BinaryArray(SPIKES[0])))(W)
            close(mine, j(lambda w, f=f: f(dense(w), SPIKES[0].astype(float)))(W))


def test_cond_and_switch_branches(backend):
    def mine(k, w, x):
        m = sparse(w, backend)
        ways = [lambda x: m @ x, lambda x: x @ m, lambda x: m @ be.BinaryArray(x)]
        return jax.lax.switch(k, ways, x).sum()

    def want(k, w, x):
        d = dense(w)
        return [d @ x, x @ d, d @ (x > 0)][k].sum()

    for k in range(3):
        close(jax.jit(jax.grad(mine, 1))(k, W, X), jax.grad(want, 1)(k, W, X))


def test_while_loop_carries_a_matrix(backend):
    def halve(state):
        mat, v = state
        return mat.with_data(mat.data / 2), mat @ v

    mat, v = jax.lax.while_loop(lambda s: s[0].data[0] > 0.2, halve, (sparse(W, backend), X))
    d = dense(W)
    close(v, (d / 4) @ ((d / 2) @ (d @ X)))
    close(mat.data, W / 8)


def test_one_compiled_function_serves_all_structures_of_a_size(backend):
    traces = []

    @jax.jit
    def f(m, x):
        traces.append(None)
        return m @ x

    for cols in (COL, COL[::-1].copy(), np.zeros(5, np.int32)):
        want = np.zeros((3, 3))
        np.add.at(want, (ROW, cols), np.asarray(W))
        close(f(be.CSR((W, cols, PTR), shape=(3, 3), backend=backend), X), want @ X)
    assert len(traces) == 1


def test_traced_structure_as_arguments(backend):
    """A simulator may build its matrix from three tracers inside its loop."""

    @jax.jit
    def f(w, col, ptr, spikes):
        def step(total, s):
            return total + be.CSR((w, col, ptr), shape=(3, 3), backend=backend) @ be.BinaryArray(
                s
            ), s

        return jax.lax.scan(step, jnp.zeros(3), spikes)[0]

    close(f(W, COL, PTR, SPIKES), dense(W) @ SPIKES.sum(0).astype(float))


def test_vmap_over_matrices(backend):
    mats = jax.vmap(lambda w: sparse(w, backend))(jnp.stack([W, 2 * W]))
    close(jax.vmap(lambda m, s: m @ be.BinaryArray(s))(mats, SPIKES[:2]),
          jnp.stack([dense(W) @ SPIKES[0], 2 * dense(W) @ SPIKES[1]]))  # fmt: skip


def test_shapes_without_values(backend):
    out = jax.eval_shape(lambda w, x: sparse(w, backend) @ x, W, X)
    assert (out.shape, out.dtype) == ((3,), jnp.float32)
    grads = jax.eval_shape(jax.grad(lambda w: (sparse(w, backend) @ X).sum()), W)
    assert grads.shape == W.shape


def test_donated_operands(backend):
    f = jax.jit(lambda w, x: (sparse(w, backend) @ x + x, w * 2), donate_argnums=(0, 1))
    y, w = f(W + 0, X + 0)
    close(y, dense(W) @ X + X)
    close(w, 2 * W)


def test_gradient_of_integer_and_boolean_operands_is_refused_or_void(backend):
    grad = jax.grad(lambda w: (sparse(w, backend) @ SPIKES[0]).sum())(W)
    close(grad, SPIKES[0].astype(float)[COL])
    y, dy = jax.jvp(lambda w: sparse(w, backend) @ SPIKES[0], (W,), (W,))
    close(y, dy)
    with pytest.raises(TypeError):
        jax.grad(lambda s: (sparse(W, backend) @ be.BinaryArray(s)).sum())(SPIKES[0])


SHARDED = """
import jax, jax.numpy as jnp, numpy as np, brainevent as be
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
devices = jax.devices()
assert len(devices) == 2
mesh = Mesh(np.array(devices), ('b',))
mat = be.CSR((jnp.arange(1., 6.), [2, 0, 2, 1, 0], [0, 3, 3, 5]), shape=(3, 3), backend='{backend}')
spikes = jnp.asarray(np.random.default_rng(0).random((4, 3)) < .5)
want = np.asarray(spikes, np.float32) @ np.asarray(mat.todense())
f = lambda m, s: be.BinaryArray(s) @ m
sharded = jax.device_put(spikes, NamedSharding(mesh, P('b')))
mapped = jax.shard_map(f, mesh=mesh, in_specs=(P(), P('b')), out_specs=P('b'))
np.testing.assert_allclose(jax.jit(mapped)(mat, sharded), want)
loss = lambda w: (mapped(mat.with_data(w), sharded) ** 2).sum()
grad = jax.jit(jax.grad(loss))(mat.data)
plain = jax.grad(lambda w: (f(mat.with_data(w), spikes) ** 2).sum())(mat.data)
np.testing.assert_allclose(grad, plain, rtol=1e-5)
np.testing.assert_allclose(jax.jit(f)(mat, sharded), want)
for device in devices:
    with jax.default_device(device):
        here = [jax.device_put(x, device) for x in (mat, spikes)]
        np.testing.assert_allclose(f(*here), want)
explicit = jax.make_mesh((2,), ('b',), axis_types=(jax.sharding.AxisType.Explicit,))
with jax.sharding.set_mesh(explicit):
    for spec in (P('b'), P()):
        laid = jax.device_put(spikes, NamedSharding(explicit, spec))
        np.testing.assert_allclose(jax.jit(f)(mat, laid), want)
        slope = jax.jit(jax.grad(lambda w, s: (f(mat.with_data(w), s) ** 2).sum()))
        np.testing.assert_allclose(slope(mat.data, laid), plain, rtol=1e-5)
    tall = be.CSR.fromdense(np.arange(12, dtype=np.float32).reshape(4, 3), backend='{backend}')
    vector = jax.device_put(jnp.ones(4, bool), NamedSharding(explicit, P('b')))
    np.testing.assert_allclose(jax.jit(f)(tall, vector), np.arange(12).reshape(4, 3).sum(0))
print('SOUND')
"""


def test_two_devices(backend, tmp_path):
    """Share a batch out over devices, by hand and by the compiler; and use one after another."""
    env = {
        **os.environ,
        'JAX_PLATFORMS': 'cpu',
        'XLA_FLAGS': '--xla_force_host_platform_device_count=2',
    }
    done = subprocess.run(
        [sys.executable, '-c', SHARDED.format(backend=backend)],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == 'SOUND\n', done.stderr[-2000:]


def test_constants_do_not_travel_in_passing(backend):
    """Tracing under a transfer guard: weights, bounds and structure are on the device already."""
    A, s, trace = sparse(W, backend), SPIKES[0], jnp.arange(3.0)
    calls = (
        jax.jit(lambda a, s: be.BinaryArray(s) @ a),
        jax.jit(lambda a, s: a.update_on_pre(s, trace, 0.0, 9.0).data),
        jax.jit(lambda a, s: a.update_on_post(trace, s, None, 9).data),
        jax.jit(lambda a, s: (a * 2.0).dt2t(trace, a.data)),
        jax.jit(lambda a, s: a[jnp.argmax(s)]),
    )
    with jax.transfer_guard('disallow'):
        for call in calls:
            jax.block_until_ready(call(A, s))
