# SPDX-License-Identifier: Apache-2.0
"""The diagonal and linear systems, against JAX's own dense linear algebra."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

N = 5
DENSE = np.array(
    [[0, 2, 0, 0, 1], [0, 3, 0, 0, 0], [1, 0, 4, 0, 0], [0, 0, -1, 5, 0], [2, 0, 0, 0, 0]],
    np.float32,
)
D = jnp.array([1.0, -1.0, 2.0, 0.5, 3.0])
B = jnp.arange(10.0).reshape(N, 2) - 4
KINDS = ('CSR', 'CSC', 'COO', 'Dense')


@pytest.fixture(autouse=True)
def reference():
    """Products by the reference kernels, which are made quickly."""
    with be.use_backend('jax_raw'):
        yield


def matrix(kind, dense=DENSE):
    return getattr(be, kind).fromdense(dense)


def near(got, want, tolerance=2e-5):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), got, want
    )


# ---- the diagonal --------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', KINDS)
def test_numbers_are_added_and_missing_entries_come_in(kind):
    A = matrix(kind)
    new = A.diag_add(D)
    assert type(new) is type(A)
    near(new.todense(), DENSE + np.diag(D))
    near(A.diag_add(2).todense(), DENSE + 2 * np.eye(N))
    near(new.diag_add(D).todense(), DENSE + 2 * np.diag(D))
    if kind != 'Dense':
        assert new.nse == A.nse + 2
        assert new.diag_add(1.0).nse == new.nse
    near(jax.jit(lambda A, d: A.diag_add(d))(A, D).todense(), DENSE + np.diag(D))


def test_entries_stay_in_order():
    A = matrix('CSR').diag_add(D)
    assert np.all(np.diff(np.asarray(A.indices) + N * np.asarray(A.edges()[0])) > 0)
    C = matrix('CSC').diag_add(D)
    assert np.all(np.diff(np.asarray(C.indices) + N * np.asarray(C.edges()[1])) > 0)


@pytest.mark.parametrize('shape', [(3, 5), (5, 3), (0, 3)])
def test_matrices_that_are_not_square_have_a_diagonal_too(shape):
    A = be.CSR.fromdense(DENSE[: shape[0], : shape[1]])
    want = np.asarray(A.todense()) + np.eye(*shape)
    near(A.diag_add(1.0).todense(), want)
    near(A.diag_add(jnp.ones(min(shape))).todense(), want)


def test_one_weight_for_all_repeats_and_the_mirror():
    A = be.CSR((2.0, [1, 1, 0], [0, 2, 3]), shape=(2, 2)).with_mirror()
    new = A.diag_add(jnp.array([1.0, 5.0]))
    near(new.todense(), [[1, 4], [2, 5]])
    assert new.mirror
    near(jnp.ones(2) @ new, [3, 9])
    twice = be.CSR((jnp.ones(3), [0, 0, 1], [0, 2, 3]), shape=(2, 2)).diag_add(1.0)
    near(twice.todense(), [[3, 0], [0, 2]])


def test_derivatives_batches_and_units_of_the_diagonal():
    A = matrix('CSR')

    def f(w, d):
        return (A.with_data(w).diag_add(d).todense() ** 2).sum() / 2

    gw, gd = jax.grad(f, (0, 1))(A.data, D)
    near(gd, np.diag(DENSE) + D)
    near(gw, A.data + jnp.where(A.edges()[0] == A.edges()[1], D[A.edges()[0]], 0))
    near(jax.vmap(lambda d: A.diag_add(d).data)(jnp.stack([D, D]))[1], A.diag_add(D).data)
    got = A.with_data(A.data * u.mV).diag_add(D * u.volt).todense()
    near(got.to_decimal(u.mV), DENSE + 1000 * np.diag(D))
    assert be.CSR.fromdense(DENSE.astype(np.int32)).diag_add(1).dtype == np.int32


@pytest.mark.parametrize('kind', [be.CSR, be.CSC, be.COO])
def test_a_matrix_without_entries_gets_a_diagonal(kind):
    A = kind.fromdense(np.zeros((2, 3), np.float32)).diag_add(jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(A.todense(), [[1, 0, 0], [0, 2, 0]])


def test_what_is_no_diagonal_is_refused():
    with pytest.raises(be.ShapeError) as error:
        matrix('CSC').diag_add(jnp.ones(4))
    assert str(error.value) == (
        'CSC.diag_add: `d` does not fit the diagonal.\n'
        '    expected: one number, or shape (5,)\n    got:      shape (4,)'
    )
    with pytest.raises(be.UnitError):
        matrix('CSR').diag_add(D * u.mV)
    with pytest.raises(be.UnsupportedOperationError, match='diag_add'):
        be.FixedNumPerPre((1.0, [[0], [1]]), shape=(2, 2)).diag_add(1.0)


# ---- linear systems ------------------------------------------------------------------------------

FULL = DENSE + np.diag(np.asarray(D))


@pytest.mark.parametrize('kind', KINDS)
def test_solutions(kind):
    A = matrix(kind, FULL)
    near(A.solve(B), np.linalg.solve(FULL, B))
    near(A.solve(B[:, 0], 1e-6, reorder=1), np.linalg.solve(FULL, B[:, 0]))
    near(A.T.solve(B), np.linalg.solve(FULL.T, B))
    near(A @ A.solve(B), B)
    near(jax.jit(lambda A, b: A.solve(b))(A, B), np.linalg.solve(FULL, B))
    assert A.solve(B[:, :0]).shape == (N, 0)


def test_repeats_shared_weights_and_tables():
    A = be.CSR((3.0, [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    near(A.solve(jnp.array([12.0, 6.0])), [2, 2])
    table = be.FixedNumPerPre((jnp.array([[2.0], [4.0]]), [[1], [0]]), shape=(2, 2))
    near(table.solve(jnp.array([2.0, 4.0])), [1, 1])


@pytest.mark.parametrize('kind', ['CSR', 'CSC', 'Dense'])
def test_derivatives_of_solutions(kind):
    A = matrix(kind, FULL)

    def f(w, b):
        return A.with_data(w).solve(b)

    def plain(w, b):
        return jnp.linalg.solve(A.with_data(w).todense(), b)

    args, tangents = (A.data, B), (A.data * 0.1 + 1, B - 1)

    def all_of(fun):
        gradient = jax.grad(lambda w, b: (fun(w, b) ** 2).sum(), (0, 1))
        return (
            jax.jvp(fun, args, tangents)[1],
            gradient(*args),
            jax.jvp(gradient, args, tangents)[1],
            jax.vmap(fun, (None, 1))(*args),
            jax.vmap(fun, (0, None))(jnp.stack([args[0], 2 * args[0]]), args[1]),
            jax.vmap(gradient, (None, 1))(*args),
        )

    near(*jax.jit(lambda: (all_of(f), all_of(plain)))(), 5e-4)


def test_a_batch_on_the_right_is_factorised_once(monkeypatch):
    import scipy.sparse.linalg

    calls, splu = [], scipy.sparse.linalg.splu
    monkeypatch.setattr(scipy.sparse.linalg, 'splu', lambda m: calls.append(m) or splu(m))
    A = matrix('CSR', FULL)
    got = jax.vmap(jax.vmap(A.solve))(jnp.ones((3, 2, N)))
    assert got.shape == (3, 2, N)
    assert len(calls) == 1


def test_units_and_dtypes_of_solutions(x64):
    A = matrix('CSR', FULL)
    assert A.with_data(A.data * u.mS).solve(B * u.nA).unit == u.nA / u.mS
    wide = be.CSR.fromdense(FULL.astype(np.float64))
    near(wide.solve(np.asarray(B, np.float64)), np.linalg.solve(FULL.astype(float), B), 1e-12)
    whole = be.CSR.fromdense(np.array([[2, 0], [1, 4]], np.int32))
    near(whole.solve(jnp.array([2, 9], jnp.int32)), [1, 2])
    half = be.CSR.fromdense(np.array([[2, 0], [1, 4]], np.float16))
    assert half.solve(jnp.array([2, 9], jnp.float16)).dtype == np.float16
    spiral = be.CSR.fromdense(np.array([[1j, 0], [1, 2]], np.complex64))
    near(spiral.solve(jnp.array([1j, 5])), [1, 2])


@pytest.mark.parametrize('kind', KINDS)
def test_a_singular_matrix_gives_no_numbers(kind):
    zero = matrix(kind, FULL) * 0
    assert not np.isfinite(zero.solve(B)).any()
    good_and_bad = jnp.stack([zero.data, matrix(kind, FULL).data])
    first, second = jax.vmap(lambda w: zero.with_data(w).solve(B))(good_and_bad)
    assert not np.isfinite(first).any()
    near(second, np.linalg.solve(FULL, B))


def test_traced_structure_that_points_outside_is_left_out():
    def f(indices):
        return be.CSR((jnp.ones(3), indices, np.array([0, 1, 3])), shape=(2, 2)).solve(jnp.ones(2))

    near(jax.jit(f)(jnp.array([0, 1, 99])), [1, 1])


def test_systems_that_do_not_fit_are_refused():
    with pytest.raises(be.ShapeError, match='not square'):
        be.CSR.fromdense(FULL[:3]).solve(B)
    with pytest.raises(be.ShapeError) as error:
        matrix('CSC', FULL).solve(B.T)
    assert str(error.value) == (
        'CSC.solve: `b` does not fit the matrix.\n'
        '    expected: shape (5,), or (5, k)\n    got:      shape (2, 5)'
    )
