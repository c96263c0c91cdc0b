# SPDX-License-Identifier: Apache-2.0
"""A matrix is a value: copied, pickled, mapped, batched, carried and donated like an array."""

import copy
import pickle

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

SHAPE = (3, 3)
TABLE = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
ROW, COL = np.repeat(np.arange(3), 2), TABLE.reshape(-1)
W = jnp.arange(1.0, 7.0)
SPIKES = jnp.array([True, False, True])


def _fixed(cls, w):
    return cls((w.reshape(3, 2) if w.size > 1 else w, TABLE.copy()), shape=SHAPE)


def _coo(w, **notes):
    return be.COO((w, ROW.copy(), COL.copy()), shape=SHAPE, **notes)


MAKERS = {
    'CSR': lambda w: _coo(w).tocsr(),
    'CSR with mirror': lambda w: _coo(w).tocsr().with_mirror(),
    'CSC': lambda w: _coo(w).tocsr().T,
    'COO': _coo,
    'COO with mirror': lambda w: _coo(w).with_mirror(),
    'COO, rows sorted': lambda w: _coo(w, rows_sorted=True),
    'FixedNumPerPre': lambda w: _fixed(be.FixedNumPerPre, w),
    'FixedNumPerPre with mirror': lambda w: _fixed(be.FixedNumPerPre, w).with_mirror(),
    'FixedNumPerPost': lambda w: _fixed(be.FixedNumPerPost, w),
    'Dense': lambda w: be.Dense(jnp.broadcast_to(w, (6,)).reshape(2, 3)[jnp.array([0, 1, 0])]),
}

pytestmark = pytest.mark.parametrize('kind', sorted(MAKERS))


@pytest.fixture(autouse=True)
def reference():
    """Products by the reference kernels, which are made quickly; values are what is tested."""
    with be.use_backend('jax_raw'):
        yield


def same(a, b):
    """Compare two matrices in all that they are."""
    assert type(a) is type(b)
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_allclose(be.BinaryArray(SPIKES) @ a, be.BinaryArray(SPIKES) @ b)


@pytest.mark.parametrize('w', [W, W[:1], W[0]], ids=['each', 'one', 'scalar'])
def test_copies_are_equal(kind, w):
    A = MAKERS[kind](w)
    for twin in (
        copy.copy(A),
        copy.deepcopy(A),
        pickle.loads(pickle.dumps(A)),
        jax.tree.map(lambda x: x, A),
        jax.device_put(A, jax.devices('cpu')[0]),
        jax.jit(lambda A: A)(A),
        A.T.T,
        A.with_data(A.data),
    ):
        same(twin, A)
        assert twin.data.shape == A.data.shape


def test_units_stay_through_the_tree(kind):
    A = MAKERS[kind](W)
    A = A.with_data(A.data * u.mS)
    assert jax.jit(lambda A: A.with_data(A.data * 2))(A).data.unit == u.mS
    assert pickle.loads(pickle.dumps(A)).data.unit == u.mS


def test_leaves_are_weights_and_structure_by_name(kind):
    A = MAKERS[kind](W)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(A)]
    names = ['.data', *(f'.{name}' for name in A.structure)]
    assert paths == names + [f'.mirror[{k}]' for k in range(len(A.mirror))]


def test_leaves_may_be_anything(kind):
    A = MAKERS[kind](W)
    leaves, tree = jax.tree.flatten(A)
    for stand_in in (None, object(), 'leaf', True):
        assert type(jax.tree.unflatten(tree, [stand_in] * len(leaves))) is type(A)
    shapes = jax.eval_shape(lambda A: A.with_data(A.data * 2), A)
    assert shapes.data.shape == A.data.shape and shapes.shape == SHAPE


def test_one_program_serves_every_structure_of_the_same_sizes(kind):
    traces = []

    @jax.jit
    def f(A, s):
        traces.append(None)
        return be.BinaryArray(s) @ A

    A, B = MAKERS[kind](W), MAKERS[kind](-W)
    for M in (A, B, A.with_data(A.data + 1)):
        np.testing.assert_allclose(f(M, SPIKES), SPIKES @ M.todense())
    assert len(traces) == 1


def test_control_flow_carries_it(kind):
    A, B = MAKERS[kind](W), MAKERS[kind](2 * W)

    def step(M, s):
        return M.with_data(M.data * 0.5), be.BinaryArray(s) @ M

    last, ys = jax.lax.scan(step, A, jnp.stack([SPIKES, ~SPIKES]))
    np.testing.assert_allclose(ys[1], ~SPIKES @ (A.todense() * 0.5))
    same(last, A.with_data(A.data * 0.25))
    same(jax.lax.cond(False, lambda: A, lambda: B), B)
    same(jax.lax.fori_loop(0, 3, lambda _, M: M.with_data(M.data + 1), A), A.with_data(A.data + 3))


def test_batches_of_weights_and_of_whole_matrices(kind):
    A, B = MAKERS[kind](W), MAKERS[kind](-2 * W)
    both = jax.tree.map(lambda *xs: jnp.stack(xs), A, B)
    want = jnp.stack([SPIKES @ A.todense(), SPIKES @ B.todense()])
    whole = jax.vmap(lambda M: be.BinaryArray(SPIKES) @ M)
    np.testing.assert_allclose(whole(both), want)
    np.testing.assert_allclose(jax.jit(whole)(both), want)
    weights = jax.vmap(lambda w: be.BinaryArray(SPIKES) @ A.with_data(w))
    np.testing.assert_allclose(weights(both.data), want)


def test_weights_can_be_donated(kind):
    A = MAKERS[kind](W)
    want = np.asarray(A.data) + 1
    A = jax.tree.map(jnp.copy, A)
    f = jax.jit(lambda M: M.with_data(M.data + 1), donate_argnums=0)
    np.testing.assert_array_equal(f(A).data, want)
    assert A.data.is_deleted()


def test_derivatives_towards_weights_leave_structure_alone(kind):
    A = MAKERS[kind](W)
    grad = jax.grad(lambda w: (be.BinaryArray(SPIKES) @ A.with_data(w)).sum())(A.data)
    assert grad.shape == A.data.shape
    whole = jax.grad(lambda M: (be.BinaryArray(SPIKES) @ M).sum(), allow_int=True)(A)
    np.testing.assert_array_equal(whole.data, grad)


def test_it_cannot_be_changed(kind):
    A = MAKERS[kind](W)
    with pytest.raises(AttributeError, match='a matrix is a value'):
        A.data = W
