# SPDX-License-Identifier: Apache-2.0
import copy
import functools
import pickle

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent import (
    DtypeError,
    OptionError,
    ShapeError,
    UnitError,
    UnsupportedOperationError,
)

SHAPE, PROB, SEED = (17, 23), 0.3, 42
PARAMETERS = {'Scalar': (1.5,), 'Normal': (1.5, 0.5), 'Uniform': (1.0, 2.0)}
NAMES = [f'JITC{kind}{letter}' for kind in PARAMETERS for letter in 'RC']
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=23).astype(np.float32), RNG.normal(size=17).astype(np.float32)


def make(name, *, prob=PROB, seed=SEED, shape=SHAPE, **options):
    return getattr(be, name)((*PARAMETERS[name[4:-1]], prob, seed), shape=shape, **options)


def near(got, want):
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=1e-4, atol=1e-5)


def dense(A):
    return np.asarray(A.todense(), np.float64)


@pytest.mark.parametrize('name', ['JITCScalarR', 'JITCNormalR', 'JITCNormalC', 'JITCUniformC'])
def test_one_matrix_in_every_use(name):
    A = make(name, corder=name.endswith('C'))
    D = dense(A)
    assert 0.15 < (D != 0).mean() < 0.45
    batch, rows = np.stack([X, -X, X * 2], 1), np.stack([Y, -Y])
    near(A @ X, D @ X)
    near(Y @ A, Y @ D)
    near(be.BinaryArray(Y) @ A, (Y > 0) @ D)
    if name.startswith('JITCNormal'):
        near(A @ batch, D @ batch)
        near(rows @ A, rows @ D)
        near(A @ be.BinaryArray(batch), D @ (batch > 0))
        near(be.MaskedFloat(Y) @ A, Y @ D)
    near(A.T.todense(), D.T)
    near(A.T @ Y, D.T @ Y)
    for other in (A.tocsr(), A.tocsc(), A.tocoo(), A.T.tocsr().T):
        near(other.todense(), D)
        assert other.nse == A.nse == (D != 0).sum()


def test_letters_name_the_same_matrix_and_corders_do_not():
    for kind in PARAMETERS:
        R, C = make(f'JITC{kind}R'), make(f'JITC{kind}C')
        np.testing.assert_array_equal(dense(R), dense(C))
        assert type(R.T) is type(C) and type(C.T) is type(R)
        assert R.T.shape == SHAPE[::-1] and R.T.corder is True
        assert (dense(R) != dense(make(f'JITC{kind}R', corder=True))).any()


def test_distributions_of_one_seed_share_their_edges():
    edges = [dense(make(name)) != 0 for name in NAMES]
    assert all((one == edges[0]).all() for one in edges)


def test_parameters_one_by_one_or_in_a_tuple():
    want = dense(make('JITCNormalR'))
    near(be.JITCNormalR(1.5, 0.5, PROB, SEED, shape=SHAPE).todense(), want)
    near(
        be.JITCNormalR([1.5, 0.5, PROB, SEED], shape=list(SHAPE), matrix_mode='mv').todense(), want
    )
    near(be.JITCNormalR(np.array([1.5]), jnp.float32(0.5), np.float64(PROB), np.int64(SEED),
                        shape=SHAPE).todense(), want)  # fmt: skip


def test_seeds_of_any_kind():
    want = dense(make('JITCScalarR', seed=7))
    for seed in (np.int64(7), np.uint8(7), jnp.int32(7), jnp.array([7]), jnp.uint32([0, 7])):
        np.testing.assert_array_equal(dense(make('JITCScalarR', seed=seed)), want)
    large = make('JITCScalarR', seed=2**40 + 7)
    assert large.seed.tolist() == [256, 7] and (dense(large) != want).any()
    assert (dense(make('JITCScalarR', seed=jax.random.key(3))) != want).any()
    with pytest.raises(DtypeError, match='no whole number'):
        make('JITCScalarR', seed=1.5)
    with pytest.raises(ShapeError, match='not one number'):
        make('JITCScalarR', seed=jnp.arange(3))


def test_a_seed_that_is_left_out_is_drawn_once_and_never_while_tracing():
    A = be.JITCScalarR((1.0, 0.5), shape=SHAPE)
    B = be.JITCScalarR(1.0, 0.5, shape=SHAPE)
    np.testing.assert_array_equal(dense(A), dense(A))
    assert int(A.seed) != int(B.seed)
    np.random.seed(3)
    one = be.JITCScalarR(1.0, 0.5, shape=SHAPE).seed
    np.random.seed(3)
    assert int(one) == int(be.JITCScalarR(1.0, 0.5, shape=SHAPE).seed)
    with pytest.raises(OptionError) as error:
        jax.jit(lambda w: be.JITCScalarR((w, 0.5), shape=SHAPE).todense())(1.0)
    assert str(error.value).splitlines()[-1] == (
        '    remedy:   draw it outside, or from a key: jax.random.randint(key, (), 0, 2**31 - 1)'
    )


def test_traced_and_mapped_parameters():
    def run(w, p, s):
        return be.JITCScalarC((w, p, s), shape=SHAPE) @ X

    seeds, probs = jnp.arange(3), jnp.array([0.1, 0.3, 1.0])
    want = np.array([[run(1.5, p, s) for s in range(3)] for p in (0.1, 0.3, 1.0)])
    near(jax.jit(run)(1.5, 0.3, 2), want[1, 2])
    near(jax.vmap(run, (None, None, 0))(1.5, 0.3, seeds), want[1])
    near(jax.vmap(jax.vmap(run, (None, None, 0)), (None, 0, None))(1.5, probs, seeds), want)
    near(jax.vmap(run)(jnp.full(3, 1.5), probs, seeds), want[np.arange(3), np.arange(3)])
    matrices = jax.vmap(lambda s: be.JITCNormalR((1.5, 0.5, PROB, s), shape=SHAPE))(seeds)
    got = jax.vmap(lambda A, y: be.BinaryArray(y) @ A)(matrices, jnp.stack([Y, -Y, Y]))
    near(got[2], (Y > 0) @ dense(make('JITCNormalR', seed=2)))
    near(jax.vmap(lambda A: A.todense())(matrices)[1], dense(make('JITCNormalR', seed=1)))


@pytest.mark.parametrize('name', ['JITCScalarR', 'JITCNormalC'])
def test_derivatives_to_second_order(name):
    A, count = make(name), len(PARAMETERS[name[4:-1]])
    basis = np.stack([dense(A.with_data(tuple(e) if count > 1 else e[0])) for e in np.eye(count)])

    def loss(data, x, dense_matrix):
        data = jnp.stack(data)
        M = (
            jnp.tensordot(data, basis, 1)
            if dense_matrix
            else A.with_data(tuple(data) if count > 1 else data[0])
        )
        return jnp.sin(M @ x).sum() + (M.todense() ** 2 if not dense_matrix else M**2).sum()

    args = tuple(jnp.float32(p) for p in A.params), jnp.asarray(X)
    for derivative in (jax.grad, jax.hessian):
        got, want = (derivative(loss, (0, 1))(*args, d) for d in (False, True))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3), got, want)


def test_probability_and_seed_have_no_derivative():
    A = make('JITCUniformR')
    gradient = jax.grad(lambda A: (A @ X).sum(), allow_int=True)(A)
    assert gradient.prob == 0 and gradient.seed.dtype == jax.dtypes.float0
    tangent = jax.jvp(lambda p: make('JITCScalarR', prob=p) @ X, (0.3,), (1.0,))[1]
    assert not np.asarray(tangent).any()


def test_units():
    A = be.JITCNormalR((1 * u.volt, 500 * u.mV, PROB, SEED), shape=SHAPE)
    D = dense(make('JITCNormalR').with_data((1.0, 0.5)))
    near((A @ (X * u.second)).to_decimal(u.volt * u.second), D @ X)
    near(A.todense().to_decimal(u.mV), 1e3 * D)
    near(A.tocsr().data.to_decimal(u.volt), D[D != 0])
    near((2 * u.second * A).todense().to_decimal(u.volt * u.second), 2 * D)
    near((A + D * u.volt).to_decimal(u.volt), 2 * D)
    assert (be.BinaryArray(Y) @ A).unit == u.volt
    with pytest.raises(UnitError, match='`scale`'):
        be.JITCNormalR((1 * u.volt, 0.5, PROB, SEED), shape=SHAPE)
    with pytest.raises(UnitError, match='`prob` has a unit'):
        be.JITCScalarR((1.0, 0.5 * u.mV, SEED), shape=SHAPE)


def test_whole_numbers():
    A = be.JITCScalarR((2, PROB, SEED), shape=SHAPE)
    assert A.dtype == jnp.int32 and (A @ np.arange(23)).dtype == jnp.int32
    assert be.JITCUniformR((1, 2, PROB, SEED), shape=SHAPE).dtype == jnp.float32
    near(be.JITCUniformR((1, 2, PROB, SEED), shape=SHAPE).todense(), dense(make('JITCUniformR')))


def test_edges_at_both_ends_of_probability():
    for name in NAMES[::2]:
        assert make(name, prob=0).nse == 0 and not dense(make(name, prob=0.0)).any()
        assert (dense(make(name, prob=1)) != 0).all()
        assert make(name, prob=0.0).tocsr().nse == 0


def test_materialised_under_jit_with_room():
    A = make('JITCUniformR')
    D = dense(A)
    for corder in (False, True):
        B = make('JITCUniformR', corder=corder)
        for way in ('tocsr', 'tocsc', 'tocoo'):
            got = jax.jit(lambda B, way=way: getattr(B, way)(nse=180).todense())(B)
            near(got, dense(B))
    short = jax.jit(lambda A: A.tocsr(nse=50))(A)
    assert np.isnan(short.data).all() and short.indices.shape == (50,)
    with pytest.raises(OptionError) as error:
        jax.jit(lambda A: A.tocsr())(A)
    assert str(error.value).splitlines()[0] == (
        'JITCUniformR.tocsr: how many edges a traced matrix has is not known.'
    )
    slope = jax.grad(lambda w: A.with_data((w, 2.0)).tocsr().data.sum())(1.0)
    near(slope, (2.0 - D[D != 0]).sum())


def test_edges_are_counted_under_jit_where_probability_and_seed_are_known():
    A = make('JITCScalarR')
    slope = jax.jit(jax.grad(lambda w: A.with_data(w).tocsr().todense().sum()))(1.0)
    assert slope == A.nse == (dense(A) != 0).sum()
    scaled = jax.jit(lambda y: be.jitsmv_dt2t(2.0, PROB, y, SEED, shape=SHAPE, corder=False))
    assert scaled(jnp.ones(SHAPE[0])).tolist() == [2.0] * int(slope)


def test_parts():
    A, D = make('JITCNormalR'), dense(make('JITCNormalR'))
    for B, E in ((A, D), (A.T, D.T)):
        near(B[3], E[3])
        near(B[-1, 2], E[-1, 2])
        near(B[[1, 5], [2, 3]], E[[1, 5], [2, 3]])
        near(B[2:9:3, 1:4], E[2:9:3, 1:4])
        near(B[:, 4], E[:, 4])
        near(jax.jit(lambda B, i: B[i])(B, 7), E[7])
    near(A.slice_rows([4, 1]).todense(), D[[4, 1]])


def test_values_at_edges_honour_what_is_given():
    A = make('JITCScalarR')
    C = A.tocsr()
    w = jnp.arange(1.0, A.nse + 1)
    near(A.dt2t(Y, w), C.dt2t(Y, w))
    near(A.dt2t(Y * u.mV, 2.0).mantissa, 2 * C.dt2t(Y, jnp.ones(1)))
    near(A.dt2t_transposed(X, w), C.dt2t_transposed(X, w))
    near(jax.jit(lambda A, w: A.dt2t(Y, w))(A, w), C.dt2t(Y, w))


def test_what_a_drawn_matrix_cannot_do():
    A = make('JITCScalarR')
    for call in (
        lambda: A.update_on_pre(Y > 0, X),
        lambda: A.update_on_post(Y, X > 0),
        lambda: be.JITCScalarR.fromdense(np.ones((2, 2))),
        lambda: A @ A,
        lambda: A.transpose((0, 1)),
    ):
        with pytest.raises(UnsupportedOperationError):
            call()
    with pytest.raises(AttributeError, match='a matrix is a value'):
        A.weight = 3


@pytest.mark.parametrize('prob', [-0.1, 1.5, np.nan, np.inf])
def test_what_is_no_probability_is_refused(prob):
    for name in NAMES[::2]:
        with pytest.raises(ValueError, match='`prob` is no probability'):
            make(name, prob=prob)


def test_other_wrong_arguments():
    with pytest.raises(ValueError, match='`low` is above `high`'):
        be.JITCUniformR((2.0, 1.0, PROB, SEED), shape=SHAPE)
    with pytest.raises(ShapeError, match='`weight` is not one number'):
        be.JITCScalarR((np.ones(3), PROB, SEED), shape=SHAPE)
    with pytest.raises(DtypeError, match='not complete'):
        be.JITCScalarR((1.0,), shape=SHAPE)
    with pytest.raises(ShapeError, match='`prob` is not one real number'):
        be.JITCScalarR((1.0, [0.1, 0.2], SEED), shape=SHAPE)
    with pytest.raises(ShapeError, match='does not fit `shape`'):
        make('JITCScalarR') @ np.ones(5)
    with pytest.raises(DtypeError, match='a tuple of loc, scale'):
        make('JITCNormalR').with_data(1.0)


def test_matrices_are_values():
    A = make('JITCNormalC', corder=True)
    leaves, tree = jax.tree.flatten(A)
    assert len(leaves) == 4 and jax.tree.structure(A) == tree
    for twin in (pickle.loads(pickle.dumps(A)), copy.deepcopy(A), jax.tree.unflatten(tree, leaves)):
        near(twin.todense(), dense(A))
        assert (twin.corder, twin.backend) == (True, None)
    step = jax.jit(lambda A, x: A @ x)
    near(step(A, X), dense(A) @ X)
    near(step(make('JITCNormalC', seed=1, corder=True), X),
         dense(make('JITCNormalC', seed=1, corder=True)) @ X)  # fmt: skip
    assert step._cache_size() == 1
    last = jax.lax.scan(lambda A, x: (A * 2, A @ x), A, jnp.stack([X, X]))
    near(last[1][1], 2 * dense(A) @ X)


def test_repr():
    A = be.JITCNormalR((1 * u.mV, 0.5 * u.mV, 0.25, 42), shape=(3, 4))
    assert repr(A) == (
        'JITCNormalR(loc=1. mV, scale=0.5 mV, prob=0.25, seed=42, shape=(3, 4), corder=False)'
    )
    assert 'JITCNormalR' in repr(jax.tree.map(lambda x: 'leaf', A))
    assert 'prob=' in str(jax.eval_shape(lambda A: A, A))


def test_a_backend_of_its_own():
    A = make('JITCNormalR', backend='jax_raw')
    near(A @ X, dense(make('JITCNormalR', backend='numba')) @ X)
    with pytest.raises(be.KernelNotAvailableError):
        make('JITCNormalR', backend='pallas') @ X


@pytest.mark.parametrize('prob', [1.5, -0.5, np.nan])
@pytest.mark.parametrize('kind', ['JITCScalarR', 'JITCNormalC', 'JITCUniformR'])
def test_a_traced_probability_that_is_not_one_shows(kind, prob):
    weights = (1.0,) if 'Scalar' in kind else (0.5, 1.0)

    def use(p):
        A = getattr(be, kind)((*weights, p, 3), shape=(5, 4))
        events = be.BinaryArray(jnp.ones(4, bool))
        return A @ jnp.ones(4), jnp.ones(5) @ A, A @ events, A.todense(), A[1], A[1, 1], A.T[:, 2]

    for got in jax.jit(use)(prob):
        assert np.isnan(got).all()
    for got in jax.jit(use)(0.5):
        assert not np.isnan(got).any()
    for to in ('tocsr', 'tocsc', 'tocoo'):
        make = functools.partial(getattr(be, kind), shape=(5, 4))
        listed = jax.jit(lambda p, to=to, make=make: getattr(make((*weights, p, 3)), to)(30).data)
        assert np.isnan(listed(prob)).all()
    with pytest.raises(be.OptionError, match='probability'):
        use(prob)


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
def test_a_traced_probability_that_is_not_one_shows_in_derivatives_and_whole_numbers(backend):
    def loss(w, x, p):
        A = be.JITCScalarR((w, p, 3), shape=(5, 4), backend=backend)
        return (A @ x).sum()

    for prob, shows in ((1.5, True), (0.5, False)):
        for k in (0, 1):
            got = jax.jit(jax.grad(loss, k))(2.0, jnp.ones(4), prob)
            assert np.isnan(got).all() == shows and np.isnan(got).any() == shows
    for dtype, sign in (('int32', np.iinfo('int32').min), ('uint8', 255)):
        weight = jnp.asarray(2, dtype)
        product = jax.jit(
            lambda p, w=weight, d=dtype: (
                be.JITCScalarR((w, p, 3), shape=(5, 4), backend=backend) @ jnp.ones(4, d)
            )
        )
        assert (product(-0.5) == sign).all() and (product(0.5) <= 8).all()


def test_old_names_and_refused_methods():
    A = be.JITCNormalR((0.5, 2.0, 0.3, 1), shape=(3, 3))
    B = be.JITCUniformC((-1.0, 2.0, 0.3, 1), shape=(3, 3))
    assert (A.wloc, A.wscale, B.wlow, B.whigh) == (0.5, 2.0, -1.0, 2.0)
    for refused in (lambda: A.solve(jnp.ones(3)), lambda: B.diag_add(1.0), A.with_mirror):
        with pytest.raises(be.UnsupportedOperationError, match='tocsr'):
            refused()


def test_a_traced_probability_of_a_function():
    run = jax.jit(lambda p: be.jitsmv(1.0, p, jnp.ones(4), 3, shape=(5, 4)))
    assert np.isnan(run(-0.5)).all() and np.isfinite(run(0.5)).all()


def test_intervals_wider_than_the_dtype():
    with pytest.raises(be.OptionError, match='wider'):
        be.JITCUniformR((-3e38, 3e38, 0.5, 3), shape=(5, 4))
    dense = be.JITCUniformR((-1e38, 1e38, 0.5, 3), shape=(5, 4)).todense()
    assert np.isfinite(dense).all()


@pytest.mark.parametrize('seed', [2**64, -(2**63) - 1, 10**30])
def test_seeds_beyond_64_bits_are_refused(seed):
    with pytest.raises(be.OptionError, match='64 bits'):
        be.JITCScalarR((1.0, 0.5, seed), shape=(3, 3))
    be.JITCScalarR((1.0, 0.5, 2**64 - 1), shape=(3, 3)).todense()


@pytest.mark.parametrize('prob', [-0.5, np.nan, 1.5])
@pytest.mark.parametrize('to', ['tocsr', 'tocsc', 'tocoo'])
@pytest.mark.parametrize('corder', [False, True])
def test_a_list_of_a_probability_that_is_not_one_shows_in_what_is_made_of_it(prob, to, corder):
    """The list has no edges for a negative probability, so NaN weights alone would not show."""

    def use(p):
        A = getattr(be.JITCScalarR((2.0, p, 3), shape=(6, 5), corder=corder), to)(30)
        return A @ jnp.ones(5), jnp.ones(6) @ A, A.todense(), A.sum()

    for got in jax.jit(use)(prob):
        assert np.isnan(got).all()
    want = be.JITCScalarR((2.0, 0.5, 3), shape=(6, 5), corder=corder).todense()
    np.testing.assert_array_equal(jax.jit(use)(0.5)[2], want)


@pytest.mark.parametrize('dtype', ['int32', 'uint8', 'bool'])
def test_sums_of_whole_numbers_with_a_probability_that_is_not_one(dtype):
    def use(p):
        A = be.JITCScalarR((jnp.asarray(1, dtype), p, 3), shape=(6, 6))
        return [A.sum(), A.sum(0), A.mean(), A.mean(1)]

    total, columns, mean, means = jax.jit(use)(2.0)
    for got in (total, columns):
        ends = np.iinfo(got.dtype)
        assert (np.asarray(got) == (ends.min or ends.max)).all()
    assert np.isnan(mean) and np.isnan(means).all()
    total, _, mean, _ = jax.jit(use)(1.0)
    assert (total, mean) == (36, 1)


@pytest.mark.parametrize('prob', [-1e-50, 1 + 1e-9, np.float64(-1e-60)])
def test_a_probability_is_checked_before_it_is_rounded(prob):
    with pytest.raises(be.OptionError, match='probability'):
        be.JITCScalarR((1.0, prob, 3), shape=(4, 4))


def test_a_traced_matrix_does_not_count_its_edges():
    with pytest.raises(be.UnsupportedOperationError, match='todense'):
        jax.jit(lambda p: be.JITCScalarR((1.0, p, 3), shape=(4, 4)).nse)(0.5)
    assert jax.jit(lambda p: be.JITCScalarR((1.0, p, 3), shape=(4, 4)).max())(0.5) == 1
