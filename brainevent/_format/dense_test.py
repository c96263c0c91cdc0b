# SPDX-License-Identifier: Apache-2.0
"""Dense matrices: products on both sides and backends, arithmetic, and what counts as a matrix."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import brainevent as be
from brainevent._format.dense import as_matrix

RNG = np.random.default_rng(0)
W = RNG.normal(size=(70, 150)).astype(np.float32)
LEFT, RIGHT = RNG.random((40, 70)) < 0.3, RNG.random((150, 40)) < 0.1
BACKENDS = ('numba', 'jax_raw')


def near(got, want, **kw):
    np.testing.assert_allclose(np.asarray(got), want, **{'rtol': 1e-5, 'atol': 1e-5, **kw})


@pytest.mark.parametrize('backend', BACKENDS)
def test_events_from_both_sides(backend):
    A = be.Dense(W, backend=backend)
    near(be.BinaryArray(LEFT[0]) @ A, LEFT[0] @ W)
    near(be.BinaryArray(LEFT) @ A, LEFT @ W)
    near(A @ be.BinaryArray(RIGHT[:, 0]), W @ RIGHT[:, 0])
    near(A @ be.BinaryArray(RIGHT), W @ RIGHT)
    near(A.T @ be.BinaryArray(LEFT.T), W.T @ LEFT.T)
    near(be.binary_densemm(W, LEFT.T, transpose=True, backend=backend), W.T @ LEFT.T)
    near(be.MaskedFloat(LEFT[0] * 2.5) @ A, LEFT[0] @ W * 2.5)


@pytest.mark.parametrize('share', [0.0, 0.01, 0.2, 1.0])
def test_few_and_many_events_take_different_ways_to_one_result(share):
    events = np.random.default_rng(1).random((150, 40)) < share
    near(W @ be.BinaryArray(events), W @ events, atol=1e-4)
    near(W @ be.BinaryArray(events[:, 0]), W @ events[:, 0], atol=1e-4)
    near(be.BinaryArray(events.T) @ W.T.copy(), events.T @ W.T, atol=1e-4)


@pytest.mark.parametrize('backend', BACKENDS)
def test_weights_that_silent_elements_would_meet_do_not_show(backend):
    bad = W.copy()
    bad[3], bad[:, 5] = np.nan, np.inf
    left, right = np.ones(70, bool), np.ones((150, 40), bool)
    left[3] = False
    right[5] = False
    A = be.Dense(bad, backend=backend)
    got = be.BinaryArray(left) @ A
    assert np.isinf(got[5]) and np.isfinite(np.delete(got, 5)).all()
    for active in (right, right & (np.arange(150)[:, None] % 50 == 0)):
        got = A @ be.BinaryArray(active)
        assert np.isnan(got[3]).all()
        clean = np.delete(np.delete(bad, 5, 1), 3, 0) @ np.delete(active, 5, 0)
        near(np.delete(got, 3, 0), clean, atol=1e-3)
        near((A @ be.BinaryArray(active[:, 0]))[:3], clean[:3, 0], atol=1e-3)


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('dtype', ['float16', 'bfloat16', 'int32', 'complex64'])
def test_dtypes_of_weights(backend, dtype):
    w = jnp.asarray(np.round(W * 2), dtype)
    wide = np.asarray(w.astype('complex64'))
    for got, want in (
        (be.BinaryArray(LEFT[0]) @ be.Dense(w, backend=backend), LEFT[0] @ wide),
        (be.Dense(w, backend=backend) @ be.BinaryArray(RIGHT), wide @ RIGHT),
    ):
        assert got.dtype == dtype
        near(got.astype('complex64'), want, rtol=1e-2)


def test_sums_of_half_precision_do_not_stick():
    ones = jnp.ones((4096, 1), jnp.bfloat16)
    for backend in BACKENDS:
        A = be.Dense(ones, backend=backend)
        near(A.T @ be.BinaryArray(np.ones(4096, bool)), [4096])
        near(be.BinaryArray(np.ones(4096, bool)) @ A, [4096])
        near(np.ones(4096, np.float16) @ be.Dense(ones.astype('float16'), backend=backend), [4096])


@pytest.mark.parametrize('backend', BACKENDS)
def test_plain_arrays_are_multiplied_by_value(backend):
    A, x, y = be.Dense(W, backend=backend), RNG.normal(size=150), RNG.normal(size=70)
    x, y = x.astype(np.float32), y.astype(np.float32)
    near(A @ x, W @ x)
    near(y @ A, y @ W)
    near(A @ np.stack([x, -x], 1), W @ np.stack([x, -x], 1))
    near(np.stack([y, -y]) @ A, np.stack([y, -y]) @ W)
    near(A.T @ np.stack([y, -y], 1), W.T @ np.stack([y, -y], 1))


@pytest.mark.parametrize('backend', BACKENDS)
def test_gradients_and_batches_equal_the_ordinary_product(backend):
    w, s, g = jnp.asarray(W[:5, :4]), jnp.asarray(LEFT[0, :5]), jnp.arange(4.0)

    def mine(w, s):
        return (be.BinaryArray(s) @ be.Dense(w, backend=backend)) @ g

    def plain(w, s):
        return (s.astype(float) @ w) @ g

    near(jax.grad(mine)(w, s), jax.grad(plain)(w, s))
    ws, ss = jnp.stack([w, 2 * w]), jnp.asarray(LEFT[:2, :5])
    for axes in ((None, 0), (0, None), (0, 0)):
        args = [a if k == 0 else a[0] for a, k in zip((ws, ss), axes, strict=True)]
        near(jax.vmap(mine, axes)(*args), jax.vmap(plain, axes)(*args))
        near(jax.vmap(jax.grad(mine), axes)(*args), jax.vmap(jax.grad(plain), axes)(*args))
    near(
        jax.jacfwd(lambda w: be.Dense(w, backend=backend) @ be.BinaryArray(s[:4]))(w).sum(),
        s[:4].sum() * 5,
    )


def test_products_of_plain_arrays_are_those_of_jax_unless_asked_otherwise():
    assert be.densemv_p.get_default('cpu') == 'jax_raw'
    assert be.densemm_p.available_backends('cpu') == ['numba', 'jax_raw']
    assert be.binary_densemv_p.get_default('cpu') == 'numba'


def test_units():
    near((be.BinaryArray(LEFT[0]) @ (W * u.mS)).to_decimal(u.mS), LEFT[0] @ W)
    near((be.Dense(W * u.mS) @ (np.ones(150) * u.mV)).to_decimal(u.uA), W.sum(1))


def test_arithmetic_broadcasts_and_stays_dense():
    A, row = be.Dense(W), np.arange(1.0, 151, dtype=np.float32)
    for got, want in (
        (A + 1, W + 1),
        (1 - A, 1 - W),
        (A * row, W * row),
        (row / A, row / W),
        (2.0**A, 2.0**W),
        (A // 2, W // 2),
        (A % 2, W % 2),
        (A * A, W * W),
        (-abs(+A), -abs(W)),
        (A - A.T.T, 0 * W),
        (A.apply(jnp.square), W * W),
        (A + be.CSR.fromdense(jnp.asarray(W)), 2 * W),
    ):
        assert type(got) is be.Dense
        near(got.data, want, rtol=1e-4)
    assert ((A * u.mV) + 1.0 * u.volt).data.unit == u.mV
    with pytest.raises(be.ShapeError, match=r'expected: shape \(70, 150\)'):
        A + np.ones((2, 70, 150))


def test_a_matrix_is_a_value():
    A = be.Dense(W, backend='numba', buffers={'note': 1})
    assert A.buffers == {'note': 1} and A.shape == (70, 150) and A.nse == 70 * 150
    assert A.with_mirror() is A
    B = jax.tree.map(lambda x: 2 * x, A)
    assert type(B) is be.Dense and B.backend == 'numba' and B.buffers == {'note': 2}
    assert len(jax.tree.leaves(A)) == 2 and len(jax.tree.leaves(be.Dense(W))) == 1
    near(jax.jit(lambda m, s: s @ m)(B, be.BinaryArray(LEFT[0])), 2 * LEFT[0] @ W, atol=1e-4)
    near(be.Dense.fromdense(W).with_data(2 * W).data, 2 * W)
    near(A.tocsr().todense(), W)
    near(A.slice_rows(np.array([3, 1])).data, W[[3, 1]])
    assert A.slice_rows(2).shape == (1, 150)


def test_dt2t_keeps_the_shape_of_the_weights():
    A, y, x = be.Dense(W), np.arange(70.0), np.arange(150.0)
    near(A.dt2t(y, W), W * y[:, None], rtol=1e-5)
    near(A.dt2t_transposed(x, W), W * x)


@pytest.mark.parametrize('shape', [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize('backend', BACKENDS)
def test_empty_matrices(shape, backend):
    A = be.Dense(jnp.zeros(shape), backend=backend)
    near(be.BinaryArray(np.ones(shape[0], bool)) @ A, np.zeros(shape[1]))
    near(A @ be.BinaryArray(np.ones((shape[1], 2), bool)), np.zeros((shape[0], 2)))
    near(A @ np.ones(shape[1]), np.zeros(shape[0]))


def test_what_is_no_matrix_is_refused():
    with pytest.raises(be.ShapeError) as error:
        be.Dense(np.ones(3))
    assert str(error.value) == (
        'Dense: `data` does not fit.\n    expected: two axes\n    got:      shape (3,)'
    )
    with pytest.raises(be.ShapeError, match=r'expected: shape \(3, 2\)'):
        be.Dense(np.ones((2, 3)), shape=(3, 2))
    with pytest.raises(be.ShapeError) as error:
        be.BinaryArray([True]) @ np.ones(1)
    assert str(error.value) == (
        'events @ x: the other side is no matrix.\n    expected: two axes\n    got:      shape (1,)'
    )
    with pytest.raises(TypeError, match='unsupported operand'):
        be.BinaryArray([True]) @ 'weights'
    with pytest.raises(be.ShapeError, match='use binary_densemm'):
        be.binary_densemv(W, RIGHT)


def test_what_stands_beside_events_becomes_a_matrix():
    A, jax_array = be.Dense(W), jnp.asarray(W)
    assert as_matrix(A) is A
    assert as_matrix(jax_array).data is jax_array
    assert as_matrix(W * u.mV).data.unit == u.mV
    near(as_matrix(W.tolist()).data, W)
    near(as_matrix(be.BinaryArray(W)).data, W)
    near(be.BinaryArray(LEFT[0]) @ scipy.sparse.csr_array(W), LEFT[0] @ W)
    near(be.BinaryArray(LEFT[0]) @ jax.experimental.sparse.BCOO.fromdense(jax_array), LEFT[0] @ W)
