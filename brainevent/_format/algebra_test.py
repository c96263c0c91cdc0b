# SPDX-License-Identifier: Apache-2.0
"""Elementwise arithmetic against the dense matrix, for every format; what is refused and how."""

import operator

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge import LAYOUTS

SHAPE = (4, 3)
ROW, COL = np.array([0, 0, 2, 2, 3]), np.array([2, 0, 2, 1, 0])
W = np.array([1.0, 2.0, 4.0, -8.0, 16.0], np.float32)
GRID = np.arange(1.0, 13, dtype=np.float32).reshape(SHAPE)


def coo(w=W):
    return be.COO((w, ROW, COL), shape=SHAPE)


MATRICES = {
    'COO': coo(),
    'CSR': coo().tocsr(),
    'CSC': coo().tocsc(),
    'CSR with a mirror': coo().tocsr().with_mirror(),
    'one weight': coo(2.0).tocsr(),
    'FixedNumPerPre': be.FixedNumPerPre(
        (GRID[:, :2], [[0, 1], [1, 2], [2, 0], [0, 2]]), shape=SHAPE
    ),
    'FixedNumPerPost': be.FixedNumPerPost((2.0, [[0, 1], [1, 3], [2, 0]]), shape=SHAPE),
}


def dense(x):
    return np.asarray(x.todense() if hasattr(x, 'todense') else x)


@pytest.fixture(params=MATRICES)
def matrix(request):
    return MATRICES[request.param]


def test_products_and_quotients_keep_the_structure(matrix):
    D = dense(matrix)
    for other in (
        2,
        -0.5,
        np.float32(2),
        jnp.float32(2),
        jnp.ones(1) * 2,
        GRID,
        GRID[0],
        GRID[:, :1],
    ):
        for got, want in (
            (matrix * other, D * np.asarray(other)),
            (other * matrix, D * np.asarray(other)),
            (matrix / other, D / np.asarray(other)),
        ):
            assert type(got) is type(matrix)
            np.testing.assert_allclose(dense(got), want, rtol=1e-6)
    np.testing.assert_allclose(dense(matrix * be.Dense(GRID)), D * GRID)
    np.testing.assert_allclose(dense(matrix * be.BinaryArray(GRID)), D * GRID)


def test_sums_with_dense_arrays_are_dense(matrix):
    D = dense(matrix)
    for got, want in (
        (matrix + GRID, D + GRID),
        (jnp.asarray(GRID) + matrix, D + GRID),
        (matrix - GRID, D - GRID),
        (GRID - matrix, GRID - D),
        (matrix + be.Dense(GRID), D + GRID),
        (matrix - be.Dense(GRID), D - GRID),
    ):
        assert isinstance(got, jax.Array)
        np.testing.assert_allclose(got, want)


def test_signs_powers_and_functions_act_on_weights(matrix):
    D = dense(matrix)
    for got, want in (
        (-matrix, -D),
        (+matrix, D),
        (abs(matrix), abs(D)),
        (matrix**2, D**2),
        (matrix // 3, D // 3),
        (matrix % 3, D % 3),
        (matrix.apply(jnp.square), D**2),
    ):
        assert type(got) is type(matrix)
        np.testing.assert_allclose(dense(got), want)


def test_matrices_of_one_structure_meet_weight_by_weight():
    for A in MATRICES.values():
        np.testing.assert_allclose(dense(A * A), dense(A) ** 2)
        other = A.with_data(3.0)
        np.testing.assert_allclose(dense(A * other), 3 * dense(A))
        np.testing.assert_allclose(dense(other * A), 3 * dense(A))
    twin = coo()
    np.testing.assert_allclose((coo() / twin).data, np.ones(5))


def test_sums_of_matrices_of_one_structure_keep_it(matrix):
    D, other = dense(matrix), matrix.with_data(3.0)
    ones = dense(matrix.with_data(1.0))
    for got, want in (
        (matrix + matrix, 2 * D),
        (matrix - 2 * matrix, -D),
        (other + matrix, 3 * ones + D),
        (other - other, 0 * ones),
    ):
        assert type(got) is type(matrix)
        assert got.mirror == matrix.mirror
        np.testing.assert_allclose(dense(got), want)
    A = coo(W * u.mV) + coo(W * u.volt)
    np.testing.assert_allclose(A.data.to_decimal(u.mV), 1001 * W)
    grad = jax.grad(lambda w: ((coo(w) + coo(2 * w)).data ** 2).sum())(jnp.asarray(W))
    np.testing.assert_allclose(grad, 18 * W)


def test_sums_of_matrices_of_different_structure_are_dense():
    for other in (
        coo().tocsr(),
        coo().T.T.sort_indices(),
        be.COO((W, ROW, COL[::-1]), shape=SHAPE),
    ):
        for got, sign in ((coo() + other, 1), (coo() - other, -1)):
            assert isinstance(got, jax.Array)
            np.testing.assert_allclose(got, dense(coo()) + sign * dense(other))
    both = jax.jit(lambda a, b: a + b)(coo(), coo())  # who knows what is traced
    np.testing.assert_allclose(both, 2 * dense(coo()))


def test_nothing_looks_at_the_values_of_a_structure_again(monkeypatch):
    """Two million entries are checked once, whatever is made of the matrix."""
    looks = []
    for layout in LAYOUTS.values():
        check = layout.check_values
        monkeypatch.setitem(
            vars(layout), 'check_values', lambda *a, f=check: looks.append(a) or f(*a)
        )
    n = 2_000_000
    indptr = np.arange(0, n + 1, 1000)
    A = be.CSR((np.ones(n, np.float32), np.arange(n) % 1000, indptr), shape=(n // 1000, 1000))
    assert len(looks) == 1
    for name in ('asarray', 'array', 'ascontiguousarray'):
        copy = getattr(np, name)

        def spy(x, *args, f=copy, **options):
            if isinstance(x, jax.Array) and x.size > 100:  # from the device to the host
                looks.append(x)
            return f(x, *args, **options)

        monkeypatch.setattr(np, name, spy)
    with be.use_backend('jax_raw'):
        spikes = be.BinaryArray(jnp.ones(1000, bool))
        for B in (A * 2, A.T, -A, abs(A) / 3, A**2, A + A, A.T.T, A.with_data(A.data + 1), A % 2):
            jax.block_until_ready(B @ spikes if B.shape[1] == 1000 else spikes @ B)
        A.dt2t(jnp.ones(n // 1000), A.data)
        assert float(A[3, 5]) == 1
    assert len(looks) == 1


def test_units_go_along():
    A = coo(W * u.mV)
    assert (A * (2.0 * u.mS)).data.unit == (2.0 * u.mS * u.mV).unit
    assert (coo() * u.mS).data.unit == u.mS
    assert ((GRID * u.mS) * coo()).data.unit == u.mS
    assert (A + GRID * u.volt).unit == u.mV
    np.testing.assert_allclose((GRID * u.volt - A).to_decimal(u.mV), 1e3 * GRID - dense(coo()))


def test_under_jit_and_grad():
    A = coo().tocsr()
    scaled = jax.jit(lambda m, x: (m * x).todense().sum())
    np.testing.assert_allclose(scaled(A, GRID), (dense(A) * GRID).sum())
    grad = jax.grad(lambda x: (A * x).todense().sum())(jnp.asarray(GRID))
    np.testing.assert_allclose(grad, dense(A))


def test_adding_a_number():
    for A in MATRICES.values():
        for refused in (lambda A=A: A + 1, lambda A=A: 1 - A, lambda A=A: A + np.float32(0.5)):
            with pytest.raises(be.UnsupportedOperationError):
                refused()
        assert sum([A, A]).data.shape == A.data.shape
        np.testing.assert_allclose(dense(sum([A, A])), 2 * dense(A))
    with pytest.raises(be.UnsupportedOperationError) as error:
        coo() + 1
    assert str(error.value) == (
        'add with COO: the result is not offered.\n'
        '    expected: a number that keeps zeros zero, or an array\n'
        '    got:      int of shape ()\n'
        '    remedy:   use `A.apply(function)` for stored weights, `A.with_data(weights)` to '
        'combine matrices of one structure, or `A.todense()`'
    )


@pytest.mark.parametrize(
    ('op', 'args'),
    [
        (operator.truediv, (1.0, coo())),
        (operator.pow, (2.0, coo())),
        (operator.mod, (GRID, coo())),
        (operator.pow, (coo(), GRID)),
        (operator.truediv, (coo(), coo().tocsr())),
        *((operator.pow, (coo(), p)) for p in (0, 0.0, -1, -0.5, jnp.zeros(()))),
        *(
            (op, (coo(), zero))
            for op in (operator.truediv, operator.floordiv, operator.mod)
            for zero in (0, np.float32(0), jnp.zeros(()))
        ),
    ],
)
def test_what_has_no_sparse_result_is_refused(op, args):
    with pytest.raises(be.UnsupportedOperationError, match='the result is not offered'):
        op(*args)


def test_matrices_of_traced_structure_are_not_taken_for_equal():
    with pytest.raises(be.UnsupportedOperationError, match='same structure'):
        jax.jit(lambda a, b: a / b)(coo(), coo())
    np.testing.assert_allclose(jax.jit(lambda a, b: (a * b).data)(coo(), coo()), W * W)
    with pytest.raises(be.UnsupportedOperationError):
        jax.jit(lambda a, p: a**p)(coo(), 2.0)
    np.testing.assert_allclose(jax.jit(lambda a: (a * a).data)(coo()), W * W)


@pytest.mark.parametrize('op', [operator.mul, operator.add])
def test_shapes_that_do_not_go_together_are_refused(op):
    with pytest.raises(be.ShapeError):
        op(coo(), GRID.T)
    with pytest.raises(be.ShapeError):
        op(coo(), np.ones((2, 4, 3)))


def test_a_function_that_changes_the_number_of_weights_is_refused():
    with pytest.raises(be.ShapeError):
        coo().apply(lambda w: w[:2])


def test_sparse_matrices_of_other_packages_are_operands(matrix):
    scipy_sparse = pytest.importorskip('scipy.sparse')
    D, other = dense(matrix), np.where(GRID % 2 == 0, GRID, 0).astype(np.float32)
    for foreign in (
        scipy_sparse.csr_array(other),
        scipy_sparse.coo_matrix(other),
        jax.experimental.sparse.BCOO.fromdense(jnp.asarray(other)),
        u.sparse.COO.fromdense(jnp.asarray(other)),
        be.COO.fromdense(other),
        be.CSC.fromdense(other, nse=9),
    ):
        product = matrix * foreign
        assert type(product) is type(matrix)
        np.testing.assert_allclose(dense(product), D * other)
        np.testing.assert_allclose(dense(matrix + foreign), D + other)
        np.testing.assert_allclose(dense(matrix - foreign), D - other)


class Unknown:
    def __radd__(self, other):
        return 'mine'

    __rsub__ = __rmul__ = __rtruediv__ = __rmatmul__ = __rmod__ = __rpow__ = __rfloordiv__ = (
        __radd__
    )


@pytest.mark.parametrize('left', [*MATRICES, 'Dense', 'JITCNormalR', 'events'])
def test_the_reflected_method_of_an_unknown_operand_runs(left):
    others = {
        'Dense': be.Dense(GRID),
        'JITCNormalR': be.JITCNormalR((1.0, 0.5, 0.5, 1), shape=SHAPE),
        'events': be.BinaryArray([True]),
    }
    A = {**MATRICES, **others}[left]
    assert A @ Unknown() == 'mine'
    if left != 'events':
        names = ['add', 'sub', 'mul', 'truediv', 'mod', 'pow', 'floordiv']
        assert {getattr(operator, name)(A, Unknown()) for name in names} == {'mine'}
        with pytest.raises(TypeError, match='unsupported operand'):
            A - 'text'


def test_a_function_of_two_arguments(matrix):
    D = dense(matrix)
    np.testing.assert_allclose(dense(matrix.apply2(2.0, jnp.multiply)), 2 * D)
    np.testing.assert_allclose(dense(matrix.apply2(GRID, jnp.multiply)), D * GRID)
    inverse = matrix.apply2(3.0, operator.truediv, reverse=True)
    np.testing.assert_allclose(dense(inverse), np.where(D, 3 / np.where(D, D, 1), 0))
    np.testing.assert_allclose(dense(matrix.apply2(matrix, jnp.add)), 2 * D)


def test_new_weights_keep_the_kind_of_unit():
    A = coo(W * u.mS)
    with pytest.raises(be.UnitError, match='without unit'):
        A.with_data(W)
    assert A.with_data(W * u.nS).data.unit == u.nS
    assert not isinstance((A / u.mS).data, u.Quantity) or (A / u.mS).data.is_unitless
    events = be.BinaryArray(np.ones(4, bool))
    np.testing.assert_allclose((events @ (u.mS * coo())).to_decimal(u.mS), dense(coo()).sum(0))
