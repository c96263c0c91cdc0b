# SPDX-License-Identifier: Apache-2.0
"""``dt2t`` and ``sddmm`` on loose arrays: shapes, units, derivatives, refusals."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.sparse import BCOO

import brainevent as be

SHAPE = (4, 3)
ROW, COL = np.array([0, 0, 2, 2, 2, 3]), np.array([2, 0, 1, 1, 2, 0])
PTR = np.array([0, 2, 2, 5, 6])
W = jnp.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
Y, X = jnp.arange(1.0, 5), jnp.arange(1.0, 4)
TABLE = np.array([[0, 1], [1, 2], [2, 0], [0, 2]])
TW = jnp.arange(8.0).reshape(4, 2)
STRUCTURES = {'csr': (COL, PTR), 'coo': (ROW, COL)}


def near(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


@pytest.mark.parametrize('name', STRUCTURES)
@pytest.mark.parametrize('backend', [None, 'numba', 'jax_raw'])
def test_rows_columns_and_batches(name, backend):
    mv, mm = (getattr(be, f'{name}{rank}_dt2t') for rank in ('mv', 'mm'))
    how = {'shape': SHAPE, 'backend': backend}
    structure = STRUCTURES[name]
    near(mv(Y, W, *structure, **how), W * Y[ROW])
    near(mv(X, W, *structure, transpose=True, **how), W * X[COL])
    near(mv(Y, 2.0, *structure, **how), 2 * Y[ROW])
    ys, ws = jnp.stack([Y, -Y]), jnp.stack([W, 3 * W])
    near(mm(ys, ws, *structure, **how), ws * ys[:, ROW])
    near(mm(ys, W, *structure, **how), W * ys[:, ROW])
    near(mm(ys[:0], ws[:0], *structure, **how), np.zeros((0, 6)))


def test_columns_come_with_the_shape_of_the_matrix_itself():
    # the arrays of the transpose, read as compressed columns
    turned = SHAPE[::-1]
    near(be.cscmv_dt2t(X, W, COL, PTR, shape=turned), W * X[COL])
    near(be.cscmv_dt2t(Y, W, COL, PTR, shape=turned, transpose=True), W * Y[ROW])
    near(be.cscmm_dt2t(X[None], W[None], COL, PTR, shape=turned), (W * X[COL])[None])


def test_tables_keep_their_shape():
    row = np.arange(4)[:, None]
    near(be.fcnmv_dt2t(TW, TABLE, Y, shape=SHAPE), TW * Y[row])
    near(be.fcnmv_dt2t(TW, TABLE, X, shape=SHAPE, transpose=True), TW * X[TABLE])
    near(be.fcnmv_dt2t(2.0, TABLE, Y, shape=SHAPE), 2 * np.broadcast_to(Y[row], (4, 2)))
    ys, ws = jnp.stack([Y, -Y]), jnp.stack([TW, 3 * TW])
    near(be.fcnmm_dt2t(ws, TABLE, ys, shape=SHAPE), ws * ys[:, row])
    near(be.fcnmm_dt2t(TW, TABLE, ys, shape=SHAPE), TW * ys[:, row])


def test_derivatives_both_ways_and_jit():
    def f(y, w):
        return be.csrmv_dt2t(y, w, COL, PTR, shape=SHAPE)

    near(jax.jit(f)(Y, W), W * Y[ROW])
    gy, gw = jax.grad(lambda y, w: (f(y, w) ** 2).sum() / 2, (0, 1))(Y, W)
    near(gy, np.bincount(ROW, W**2 * Y[ROW], 4))
    near(gw, W * Y[ROW] ** 2)
    near(jax.jvp(f, (Y, W), (Y, W))[1], 2 * W * Y[ROW])
    near(jax.vmap(f, (0, None))(jnp.stack([Y, -Y]), W)[1], -W * Y[ROW])


def test_units_of_both_are_kept():
    got = be.csrmv_dt2t(Y * u.mV, W * u.mS, COL, PTR, shape=SHAPE)
    near(got.to_decimal(u.uA), W * Y[ROW])
    assert be.fcnmv_dt2t(TW, TABLE, Y * u.mV, shape=SHAPE).unit == u.mV


def test_what_does_not_fit_is_refused():
    with pytest.raises(be.ShapeError) as error:
        be.csrmv_dt2t(X, W, COL, PTR, shape=SHAPE)
    assert str(error.value) == (
        'csrmv_dt2t: `y` does not fit the matrix.\n'
        '    expected: shape (4,): one entry for each row of (4, 3)\n'
        '    got:      shape (3,)'
    )
    with pytest.raises(be.ShapeError, match='one entry for each row'):
        be.csrmm_dt2t(Y, W, COL, PTR, shape=SHAPE)
    with pytest.raises(be.ShapeError, match='6 values, one for every entry'):
        be.csrmv_dt2t(Y, W[:5], COL, PTR, shape=SHAPE)
    with pytest.raises(be.IndexRangeError):
        be.csrmv_dt2t(Y, W, COL + 1, PTR, shape=SHAPE)
    with pytest.raises(be.KernelNotAvailableError):
        be.csrmv_dt2t(Y, W, COL, PTR, shape=SHAPE, backend='pallas')


def test_the_older_name_and_the_primitives():
    assert be.csrmv_yw2y is be.csrmv_dt2t
    for name in ('csrmv', 'csrmm', 'coomv', 'coomm', 'fcnmv', 'fcnmm'):
        op = getattr(be, f'{name}_dt2t_p')
        assert op.name == f'{name}_dt2t'
        assert {'numba', 'jax_raw'} <= set(op.available_backends('cpu'))


# ---- sddmm ---------------------------------------------------------------------------------------

A, B = jnp.arange(8.0).reshape(4, 2) - 3, jnp.arange(6.0).reshape(2, 3) - 2
AT = np.asarray((A @ B)[ROW, COL])


def _dense(values):
    dense = np.zeros(SHAPE)
    np.add.at(dense, (ROW, COL), values)
    return dense


@pytest.mark.parametrize('backend', [None, 'numba', 'jax_raw'])
def test_products_at_some_places(backend):
    how = {'backend': backend}
    for got in (
        be.sddmm_coo_indices(A, B, ROW, COL, **how),
        be.sddmm_indices(A, B, np.stack([ROW, COL], 1), **how),
        be.sddmm_bcoo(A, B, BCOO((W, jnp.stack([ROW, COL], 1)), shape=SHAPE), **how),
    ):
        assert isinstance(got, BCOO)
        assert got.shape == SHAPE
        near(got.data, AT)
        near(got.todense(), _dense(AT))


def test_derivatives_of_products_at_some_places():
    def f(A, B):
        return (be.sddmm_coo_indices(A, B, ROW, COL).data ** 2).sum()

    def plain(A, B):
        return ((A @ B)[ROW, COL] ** 2).sum()

    for got, want in zip(
        jax.grad(f, (0, 1))(A, B), jax.jit(jax.grad(plain, (0, 1)))(A, B), strict=True
    ):
        near(got, want)
    near(jax.jvp(f, (A, B), (A + 1, B))[1], jax.jvp(plain, (A, B), (A + 1, B))[1])
    many = jax.vmap(lambda A: be.sddmm_coo_indices(A, B, ROW, COL).data)(jnp.stack([A, -A]))
    near(many, np.stack([AT, -AT]))


def test_padding_stays_padding():
    ids = jnp.array([[0, 2], [4, 3], [2, 1]])
    got = be.sddmm_bcoo(A, B, BCOO((jnp.ones(3), ids), shape=SHAPE))
    near(got.data, [(A @ B)[0, 2], 0, (A @ B)[2, 1]])


def test_a_product_with_a_unit_is_a_matrix_that_can_hold_it():
    got = be.sddmm_coo_indices(A * u.mV, B * u.mS, ROW, COL)
    assert isinstance(got, be.COO)
    near(got.todense().to_decimal(u.uA), _dense(AT))


def test_factors_that_do_not_fit_are_refused():
    with pytest.raises(be.ShapeError, match='cannot be multiplied'):
        be.sddmm_coo_indices(A, A, ROW, COL)
    with pytest.raises(be.ShapeError, match='no list of places'):
        be.sddmm_indices(A, B, ROW)
    with pytest.raises(be.IndexRangeError):
        be.sddmm_coo_indices(A, B, ROW + 1, COL)
    with pytest.raises(be.DtypeError, match='no matrix of JAX in coordinates'):
        be.sddmm_bcoo(A, B, _dense(AT))
    with pytest.raises(be.ShapeError, match='does not fit the product'):
        be.sddmm_bcoo(A, B, BCOO((W, jnp.stack([ROW, COL], 1)), shape=(4, 4)))
