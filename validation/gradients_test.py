# SPDX-License-Identifier: Apache-2.0
"""Gradients through a simulated network are right, forward and in reverse.

Claims, on a recurrent network of 24 leaky integrate-and-fire neurons, sparse weights, 30 steps:

1. Membranes between spikes: the derivative in the weights, with the spikes as they are, equals
   central finite differences of the program itself. (It is piecewise smooth; the step is too small
   to move a spike, which is checked.)
2. Graded activity: with a smooth activation in place of spikes, through the ordinary product, the
   derivative in weights and input equals central finite differences.
3. Surrogate gradients: with spikes whose derivative is replaced by a smooth one (Neftci et al.
   2019, IEEE Signal Process Mag 36:51-63), values and derivatives equal those of the same program
   with a dense matrix, which JAX differentiates with rules of its own.

In all of them reverse mode and forward mode are the same linear map and its adjoint.

Tolerance: float64; 1e-7 relative to the largest entry against finite differences of step 1e-6
(error of order step squared, and 1e-16 over step), 1e-12 against dense. Seed 0.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

N, STEPS, SEED = 24, 30, 0


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


@jax.custom_jvp
def fire(v):
    """1 above threshold; differentiated as if it were a steep sigmoid."""
    return (v > 0).astype(v.dtype)


@fire.defjvp
def _fire_jvp(primals, tangents):
    (v,), (dv,) = primals, tangents
    return fire(v), dv / (1 + 4 * jnp.abs(v)) ** 2


def problem(fmt):
    """A sparse matrix, its weights, and input currents."""
    rng = np.random.default_rng(SEED)
    dense = np.where(rng.random((N, N)) < 0.3, rng.normal(0, 0.6, (N, N)), 0.0)
    matrix = getattr(be, fmt).fromdense(jnp.asarray(dense))
    return matrix, jnp.asarray(rng.normal(0.25, 0.2, (STEPS, N)))


def membranes(product, current, activity):
    """Run the network; its potentials at all steps."""

    def step(carry, current):
        v, out = carry
        v = 0.9 * v * (1 - jax.lax.stop_gradient(out > 0.5)) + current + product(out)
        out = activity(v - 1.0)
        return (v, out), (v, out)

    start = (jnp.zeros(N), jnp.zeros(N))
    return jax.lax.scan(step, start, current)[1]


def loss(v):
    return jnp.mean(jnp.sin(v) + 0.1 * v**2)


def programs(fmt, kind):
    """The loss as a function of weights and input current, and the weights and current."""
    matrix, current = problem(fmt)
    activity = {
        'stopped': lambda v: jax.lax.stop_gradient(fire(v)),
        'graded': lambda v: jax.nn.sigmoid(4 * v),
        'surrogate': fire,
    }[kind]
    wrap = (lambda x: x) if kind == 'graded' else be.BinaryArray

    def sparse(w, current):
        a = matrix.with_data(w)
        return loss(membranes(lambda out: wrap(out) @ a, current, activity)[0])

    rows, cols = (np.asarray(x) for x in edges(matrix))

    def dense(w, current):
        a = jnp.zeros((N, N)).at[rows, cols].add(w)
        return loss(membranes(lambda out: out @ a, current, activity)[0])

    def spikes(w, current):
        a = matrix.with_data(w)
        return membranes(lambda out: wrap(out) @ a, current, activity)[1]

    return sparse, dense, spikes, (matrix.data, current)


def edges(matrix):
    """Row and column of each stored entry, found by giving each a number."""
    numbered = matrix.with_data(jnp.arange(1.0, matrix.data.size + 1))
    table = np.asarray(numbered.todense()).astype(int)
    rows, cols = np.nonzero(table)
    order = np.argsort(table[rows, cols])
    return rows[order], cols[order]


def close(got, wanted, tolerance):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def differences(f, x, step=1e-6):
    """Central finite differences, one entry at a time."""
    steps = (step * jnp.eye(x.size)).reshape(x.size, *x.shape)
    both = jax.jit(jax.vmap(lambda d: f(x + d) - f(x - d)))
    return np.asarray(both(steps)).reshape(x.shape) / (2 * step)


def forward(f, x):
    """The gradient from Jacobian-vector products alone."""
    push = jax.jit(jax.vmap(lambda t: jax.jvp(f, (x,), (t.reshape(x.shape),))[1]))
    return np.asarray(push(jnp.eye(x.size))).reshape(x.shape)


formats = pytest.mark.parametrize('fmt', ['CSR', 'CSC', 'COO'])


@formats
def test_weights_between_spikes_against_finite_differences(fmt):
    sparse, _, spikes, (w, current) = programs(fmt, 'stopped')
    raster = np.asarray(spikes(w, current))
    assert 20 < raster.sum() < raster.size / 2
    for sign in (1, -1):
        np.testing.assert_array_equal(spikes(w + sign * 1e-6, current), raster)

    def f(w):
        return sparse(w, current)

    wanted = differences(f, w)
    close(jax.jit(jax.grad(f))(w), wanted, 1e-7)
    close(forward(f, w), wanted, 1e-7)


@formats
@pytest.mark.parametrize('argument', ['weights', 'current'])
def test_graded_activity_against_finite_differences(fmt, argument):
    sparse, _, _, (w, current) = programs(fmt, 'graded')
    f, x = {
        'weights': (lambda w: sparse(w, current), w),
        'current': (lambda c: sparse(w, c), current),
    }[argument]
    wanted = differences(f, x)
    close(jax.jit(jax.grad(f))(x), wanted, 1e-7)
    close(forward(f, x), wanted, 1e-7)


@formats
@pytest.mark.parametrize('kind', ['surrogate', 'graded', 'stopped'])
def test_both_modes_against_a_dense_program(fmt, kind):
    sparse, dense, _, at = programs(fmt, kind)
    value, gradient = jax.jit(jax.value_and_grad(sparse, (0, 1)))(*at)
    wanted_value, wanted = jax.value_and_grad(dense, (0, 1))(*at)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-13)
    for g, w in zip(gradient, wanted, strict=True):
        assert np.abs(w).max() > 0
        close(g, w, 1e-12)
    close(forward(lambda w: sparse(w, at[1]), at[0]), wanted[0], 1e-12)


@formats
def test_modes_are_adjoint_through_the_whole_run(fmt):
    matrix, current = problem(fmt)

    def run(w, current):
        a = matrix.with_data(w)
        return membranes(lambda out: be.BinaryArray(out) @ a, current, fire)[0]

    at = (matrix.data, current)
    keys = jax.random.split(jax.random.key(SEED), 3)
    tangents = tuple(jax.random.normal(k, x.shape) for k, x in zip(keys[:2], at, strict=True))
    v, pushed = jax.jvp(run, at, tangents)
    cotangent = jax.random.normal(keys[2], v.shape)
    pulled = jax.vjp(run, *at)[1](cotangent)
    left = jnp.vdot(cotangent, pushed)
    right = sum(jnp.vdot(p, t) for p, t in zip(pulled, tangents, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-11)


def test_curvature_is_that_of_dense():
    sparse, dense, _, (w, current) = programs('CSR', 'graded')
    direction = jnp.cos(jnp.arange(w.size, dtype=w.dtype))

    def curvature(f):
        return jax.jvp(jax.grad(lambda w: f(w, current)), (w,), (direction,))[1]

    close(jax.jit(lambda: curvature(sparse))(), curvature(dense), 1e-12)
