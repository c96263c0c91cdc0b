# SPDX-License-Identifier: Apache-2.0
"""A fixed number of connections: both classes, their mirror, and tables that are no good."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.layout import PADDING

TABLE = np.array([[0, 2], [1, 1], [3, 0]], np.int32)  # row 1 reaches column 1 twice
W = np.array([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]], np.float32)
SHAPE = (3, 4)


def dense(w):
    full = np.zeros(SHAPE, np.float32)
    np.add.at(
        full, (np.repeat(np.arange(3), 2), TABLE.reshape(-1)), np.broadcast_to(w, (3, 2)).ravel()
    )
    return full


DENSE = dense(W)
X, Y = np.array([1.0, -2.0, 3.0, 5.0], np.float32), np.array([1.0, 2.0, -3.0], np.float32)


@pytest.fixture(autouse=True)
def reference():
    """Products by the reference kernels, which are made quickly; the conformance suite has all."""
    with be.use_backend('jax_raw'):
        yield


def near(got, want, **kw):
    np.testing.assert_allclose(np.asarray(got), want, **kw)


def matrices(w=W):
    """Return the same matrix in every guise."""
    pre = be.FixedNumPerPre((w, TABLE), shape=SHAPE)
    post = be.FixedNumPerPost((w, TABLE), shape=SHAPE[::-1])
    return [pre, pre.with_mirror(), pre.T.T, post.T, post.T.T.T]


@pytest.mark.parametrize('w', [W, 1.5, np.array([1.5], np.float32)])
def test_products_from_both_sides(w):
    want = dense(w)
    for A in matrices(w):
        near(A.todense(), want)
        near(A @ X, want @ X)
        near(Y @ A, Y @ want)
        near(A @ be.BinaryArray(X), want @ (X > 0))
        near(be.BinaryArray(Y) @ A, (Y > 0) @ want)
        near(A @ be.BinaryArray(np.stack([X, -X], 1)), want @ np.stack([X > 0, -X > 0], 1))
        near(be.BinaryArray(np.stack([Y, -Y])) @ A, np.stack([Y > 0, -Y > 0]) @ want)


def test_functions_in_both_directions():
    near(be.fcnmv(W, TABLE, X, shape=SHAPE), DENSE @ X)
    near(be.fcnmv(W, TABLE, Y, shape=SHAPE, transpose=True), Y @ DENSE)
    near(be.fcnmm(W, TABLE, np.stack([X, -X], 1), shape=SHAPE), DENSE @ np.stack([X, -X], 1))
    near(be.binary_fcnmv(W, TABLE, X, shape=SHAPE, backend='jax_raw'), DENSE @ (X > 0))
    spikes = np.stack([Y > 0, Y < 0], 1)
    near(be.binary_fcnmm(W, TABLE, spikes, shape=SHAPE, transpose=True), DENSE.T @ spikes)


def test_counts_and_names():
    A = be.FixedNumPerPost((W * u.mS, TABLE), shape=SHAPE[::-1])
    assert (A.num_pre, A.num_post, A.num_conn, A.nse, A.shape) == (4, 3, 2, 6, (4, 3))
    assert u.get_unit(be.BinaryArray(X) @ A) == u.mS
    assert be.FixedPostNumConn is be.FixedNumPerPre
    assert be.FixedPreNumConn is be.FixedNumPerPost
    assert isinstance(A, be.FixedNumConn)
    near((A + A).data.mantissa, 2 * W)


def test_mirror_is_built_at_construction_where_spikes_need_it():
    pre = be.FixedNumPerPre((W, TABLE), shape=SHAPE)
    assert pre.mirror == ()
    assert be.FixedNumPerPre((W, TABLE), shape=SHAPE, precompute_weight_indices=True).mirror
    post = be.FixedNumPerPost((W, TABLE), shape=SHAPE[::-1])
    far, ptr, tag = post.mirror
    assert ptr.tolist() == [0, 2, 4, 5, 6]
    assert far.tolist() == [0, 2, 1, 1, 0, 2]
    assert tag.tolist() == [0, 5, 2, 3, 1, 4]
    assert post.T.mirror == post.mirror and post.T.T.mirror == post.mirror


def test_a_traced_table_has_a_mirror_too():
    @jax.jit
    def run(w, table, x, spikes):
        A = be.FixedNumPerPost((w, table), shape=SHAPE[::-1])
        assert len(A.mirror) == 3
        M = be.FixedNumPerPost((w, table), shape=SHAPE[::-1], precompute_weight_indices=True)
        assert len(M.mirror) == 3
        return x @ A, be.BinaryArray(x) @ M, M @ be.BinaryArray(spikes)

    bad = TABLE.copy()
    bad[1] = [-1, 4]
    left = DENSE.copy()
    left[1] = 0
    for table, want in ((TABLE, DENSE), (bad, left)):
        xa, xm, ms = run(W, table, X, Y)
        near(xa, want @ X)
        near(xm, want @ (X > 0))
        near(ms, (Y > 0) @ want)


def test_weights_traced_and_one_weight_keeps_its_shape():
    """As brainstate builds it: inside jit, with a table known on the host."""

    @jax.jit
    def run(w, spikes):
        conn = be.FixedPostNumConn((w, TABLE), shape=SHAPE)
        assert conn.data.shape == w.shape
        return be.EventArray(spikes) @ conn

    near(run(jnp.float32(1.5), Y), (Y > 0) @ dense(1.5))
    near(run(W, Y), (Y > 0) @ DENSE)
    assert be.FixedPostNumConn((1.5 * u.mS, TABLE), shape=SHAPE).data.shape == ()


def test_gradients_are_those_of_the_dense_matrix():
    for A in matrices():

        def loss(w, y, A=A):
            return ((be.BinaryArray(y) @ A.with_data(w)) ** 2).sum()

        def plain(w, y):
            full = jnp.zeros(SHAPE).at[np.arange(3)[:, None], TABLE].add(w)
            return (((y > 0) @ full) ** 2).sum()

        near(jax.grad(loss)(W, Y), jax.grad(plain)(W, Y), rtol=1e-5)


def test_weights_in_another_shape_are_refused():
    for w in (np.ones(2), np.ones(3), np.ones(6), np.ones((2, 3)), np.ones((1, 1))):
        with pytest.raises(be.ShapeError):
            be.FixedNumPerPre((w, TABLE), shape=SHAPE)
        with pytest.raises(be.ShapeError):
            be.fcnmv(w, TABLE, X, shape=SHAPE)
    with pytest.raises(be.ShapeError) as info:
        be.FixedNumPerPre((W, TABLE), shape=SHAPE).with_data(np.ones(2))
    assert str(info.value) == (
        'FixedNumPerPre: `data` does not fit the structure.\n'
        '    expected: one weight, or shape (3, 2) as the indices have it\n'
        '    got:      shape (2,)\n'
        '    remedy:   give one weight for all connections or one for each, '
        'in rows like the indices'
    )


def test_a_bad_table_is_refused():
    for table, error in [
        (TABLE[0], be.ShapeError),
        (TABLE[:2], be.ShapeError),
        (TABLE + 1, be.IndexRangeError),
        (TABLE - 1, be.IndexRangeError),
        (TABLE + 0.5, be.DtypeError),
    ]:
        with pytest.raises(error):
            be.FixedNumPerPre((1.0, table), shape=SHAPE)
        with pytest.raises(error):
            be.FixedNumPerPost((1.0, table), shape=SHAPE[::-1])


def test_from_dense_matrices():
    even = np.array([[0.0, 1, 2], [3, 0, 4]], np.float32)
    A = be.FixedNumPerPre.fromdense(even * u.mV)
    assert A.indices.tolist() == [[1, 2], [0, 2]] and A.data.unit == u.mV
    near(A.todense().mantissa, even)
    B = be.FixedNumPerPost.fromdense(even.T)
    near(B.todense(), even.T)
    assert B.indices.tolist() == A.indices.tolist()
    wide = be.FixedNumPerPre.fromdense(even, num_conn=4)
    assert wide.indices.tolist() == [[1, 2, PADDING, PADDING], [0, 2, PADDING, PADDING]]
    near(wide.todense(), even)
    traced = jax.jit(lambda d: be.FixedNumPerPre.fromdense(d, nse=6, num_conn=3))(even)
    near(traced.todense(), even)


def test_from_uneven_dense_matrix():
    uneven = np.array([[0.0, 1, 2], [3, 0, 0]], np.float32)
    with pytest.raises(be.OptionError) as info:
        be.FixedNumPerPre.fromdense(uneven)
    assert str(info.value) == (
        'FixedNumPerPre.fromdense: the numbers of connections do not fit a table.\n'
        '    expected: as many for each neuron\n'
        '    got:      from 1 to 2\n'
        '    remedy:   pass num_conn=2, rows are filled up with padding, or use CSR'
    )
    with pytest.raises(be.ShapeError, match='`num_conn` is too small'):
        be.FixedNumPerPre.fromdense(uneven, num_conn=1)
    near(be.FixedNumPerPre.fromdense(uneven, num_conn=2).todense(), uneven)
    short = jax.jit(lambda d: be.FixedNumPerPre.fromdense(d, nse=3, num_conn=1))(uneven)
    assert np.isnan(short.data).all()


def test_no_connections_no_neurons():
    for shape, table in [((3, 4), np.zeros((3, 0), int)), ((0, 4), np.zeros((0, 2), int))]:
        A = be.FixedNumPerPre((1.0, table), shape=shape)
        for M in (A, A.with_mirror()):
            near(M @ be.BinaryArray(jnp.ones(shape[1], bool)), np.zeros(shape[0]))
            near(be.BinaryArray(jnp.ones(shape[0], bool)) @ M, np.zeros(shape[1]))
        assert A.tocsr().nse == 0
        assert be.FixedNumPerPre.fromdense(np.zeros(shape)).todense().shape == shape
