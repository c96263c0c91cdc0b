# SPDX-License-Identifier: Apache-2.0
"""Edges of a traced matrix get the room that was asked for, and too little of it shows.

Claims, for `tocsr`, `tocsc` and `tocoo`, both orientations, seed and probability traced and mapped:

1. With room for all edges the matrix is the dense one, entry for entry; the rest is padding.
2. Weights are NaN if, and only if, there are more edges than room: at the exact number, one below
   and above, for every one of 2,000 seeds, and as often as the binomial tail has it.
3. ``mean + 6 * sqrt(mean) + 6`` is too little for one matrix in 1e9, whatever the mean: the
   binomial tail is below the Poisson tail there (Anderson, Samuels 1967, Proc. 5th Berkeley Symp.
   Math. Stat. Prob. 1:1-12), which is computed for means from 1e-6 to 1e9.

Tolerance: claims 1 and 2 are exact, but for the binomial tail, which fails by chance once in 10,000
times. Seeds 0 to 1,999.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import brainevent as be
from brainevent._format import drawn

SHAPE, PROB, SEEDS, ALPHA = (12, 25), 0.3, 2000, 1e-4
WAYS = ('tocsr', 'tocsc', 'tocoo')
ONE = [pytest.param(w, marks=[pytest.mark.slow] * (w != 'tocsc')) for w in WAYS]


def matrix(seed, prob=PROB, corder=False):
    """Make a matrix of random weights, of which none is zero."""
    return be.JITCUniformR((1.0, 2.0, prob, seed), shape=SHAPE, corder=corder)


def all_dense(seeds, probs, corder):
    """Make the matrices of many seeds dense."""
    return np.asarray(jax.vmap(lambda s, p: matrix(s, p, corder).todense())(seeds, probs))


@pytest.mark.parametrize('corder', [False, True])
@pytest.mark.parametrize('way', ONE)
def test_weights_are_nan_exactly_if_there_is_too_little_room(way, corder):
    seeds = jnp.arange(SEEDS)
    mean = SHAPE[0] * SHAPE[1] * PROB
    room = int(mean + stats.norm.isf(0.2) * np.sqrt(mean * (1 - PROB)))
    probs = jnp.full(SEEDS, PROB)
    dense = all_dense(seeds, probs, corder)
    counts = (dense != 0).sum((1, 2))
    assert {room - 1, room, room + 1} <= set(counts.tolist())

    def listed(seed, prob):
        A = getattr(matrix(seed, prob, corder), way)(room)
        return A.data, A.todense()

    data, again = map(np.asarray, jax.jit(jax.vmap(listed))(seeds, probs))
    np.testing.assert_array_equal(np.isnan(data), (counts > room)[:, None] & np.ones(room, bool))
    np.testing.assert_array_equal(again[counts <= room], dense[counts <= room])
    assert np.isnan(again[counts > room]).any((1, 2)).all()
    lost, chance = (counts > room).sum(), stats.binom.sf(room, SHAPE[0] * SHAPE[1], PROB)
    assert stats.binomtest(int(lost), SEEDS, chance).pvalue > ALPHA


@pytest.mark.parametrize('way', ONE)
def test_room_to_the_edge(way):
    """The exact number of edges is enough, one less is not; with all edges and with none."""

    @functools.partial(jax.jit, static_argnums=2)
    def run(seed, prob, room):
        A = getattr(matrix(seed, prob), way)(room)
        return A.data, A.todense(), A @ jnp.ones(SHAPE[1])

    places = SHAPE[0] * SHAPE[1]
    for prob, count in ((PROB, matrix(1).nse), (1.0, places), (0.0, 0)):
        want = np.asarray(matrix(1, prob).todense())
        for room in (count - 1, count, 2 * places)[: 2 + (prob < 1)]:
            if room > 0:
                data, dense, product = map(np.asarray, run(1, prob, room))
                assert data.shape == (room,) and np.isnan(data).all() == (room < count)
                if room >= count:
                    np.testing.assert_array_equal(dense, want)
                    np.testing.assert_allclose(product, want.sum(1), rtol=1e-6)
                else:
                    assert np.isnan(product).any()


def test_edges_that_are_all_in_the_last_row_are_counted():
    """A seed for which one entry, in the last row, is all there is, and one with two."""
    shape, prob = (10, 30), 0.004

    def dense(seed):
        return be.JITCUniformR((1.0, 2.0, prob, seed), shape=shape).todense()

    many = np.asarray(jax.vmap(dense)(jnp.arange(SEEDS))) != 0
    last = many[:, -1].sum(1)
    total = many.sum((1, 2))
    for count in (1, 2):
        seed = int(np.flatnonzero((last == count) & (total == count))[0])
        for room in (1, 2):
            A = jax.jit(
                lambda s, n=room: be.JITCUniformR((1.0, 2.0, prob, s), shape=shape).tocsr(n)
            )
            assert np.isnan(A(seed).data).any() == (count > room)


def test_products_with_too_little_room_are_nan_where_an_edge_is_left():
    def run(seed):
        A = matrix(seed).tocsr(20)
        return A @ jnp.ones(SHAPE[1]), jnp.ones(SHAPE[0]) @ A, jnp.sum(A.todense())

    for seed in range(5):
        assert all(np.isnan(y).any() for y in jax.jit(run)(seed))


def test_constant_weights_and_their_values_show_it_too():
    def run(seed, nse):
        A = be.JITCScalarR((2.0, PROB, seed), shape=SHAPE)
        options = {'shape': SHAPE, 'corder': False, 'nse': nse}
        return A.tocsr(nse).data, be.jitsmv_dt2t(2.0, PROB, jnp.ones(SHAPE[0]), seed, **options)

    enough = be.JITCScalarR((2.0, PROB, 3), shape=SHAPE).nse
    for nse in (enough - 1, enough):
        for got in jax.jit(run, static_argnums=1)(3, nse):
            assert np.isnan(got).all() == (nse < enough)


def test_the_stated_bound_is_too_little_once_in_a_billion():
    mean = np.logspace(-6, 9, 100_001)
    room = np.floor(mean + 6 * np.sqrt(mean) + 6)
    assert stats.poisson.sf(room, mean).max() < 1.1e-9
    for places in (1, 2, 10, 1000, 10**6, 10**9):
        prob = np.minimum(mean / places, 1)
        room = np.floor(places * prob + 6 * np.sqrt(places * prob) + 6)
        assert stats.binom.sf(room, places, prob).max() < 1.1e-9


def test_what_cannot_be_nan_is_refused():
    """Whole numbers, and a list without any entry, would hide that there was too little room."""
    whole = be.JITCScalarR((2, PROB, 1), shape=SHAPE)
    for way in WAYS:
        with pytest.raises(be.DtypeError, match='whole numbers cannot show'):
            jax.jit(lambda A, w=way: getattr(A, w)(200))(whole)
        with pytest.raises(be.OptionError, match='not room for all edges'):
            jax.jit(lambda A, w=way: getattr(A, w)(0))(matrix(1))
        assert getattr(whole, way)().todense().sum() == 2 * whole.nse
        assert getattr(whole, way)(200).todense().sum() == 2 * whole.nse


@pytest.mark.parametrize('corder', [False, True])
@pytest.mark.parametrize('way', ONE)
def test_known_edges_are_refused_where_they_do_not_fit(way, corder):
    A = matrix(1, corder=corder)
    for nse in (A.nse - 1, 0, -1, 2**31):
        with pytest.raises(be.OptionError) as error:
            getattr(A, way)(nse)
        assert f'    expected: {A.nse} to 2147483647 entries' in str(error.value)
    with pytest.raises(be.DtypeError, match='`nse` is not an int'):
        getattr(A, way)(200.0)
    for nse in (A.nse, A.nse + 1, 200):
        np.testing.assert_array_equal(getattr(A, way)(nse).todense(), A.todense())
    within = jax.jit(lambda: getattr(A, way)().todense())()
    np.testing.assert_array_equal(within, A.todense())


def test_values_at_edges_show_that_they_are_too_few():
    A = be.JITCScalarR((2.0, PROB, 3), shape=SHAPE)
    for y, method in ((jnp.ones(SHAPE[0]), 'dt2t'), (jnp.ones(SHAPE[1]), 'dt2t_transposed')):
        run = jax.jit(lambda A, w, y=y, m=method: getattr(A, m)(y, w))
        assert np.isnan(run(A, jnp.ones(A.nse - 1))).all()
        np.testing.assert_array_equal(run(A, jnp.arange(A.nse) + 1.0), np.arange(A.nse) + 1.0)


def test_offsets_do_not_wrap(monkeypatch):
    """As many edges as 32 bits can count, and more, up to twice as many, by numbers made up."""
    for counts in ([2**30, 2**30, 7], [2**31 - 1, 1], [2**31 - 1, 2**31 - 1, 2, 3], [5, 0, 7]):
        monkeypatch.setattr(
            drawn, 'list_edges', lambda *a, c=tuple(counts): (jnp.array(c, jnp.int32), *[None] * 3)
        )
        ptr, _ = drawn.listed(None, (), (len(counts), 1), 0)
        np.testing.assert_array_equal(ptr, np.minimum(np.cumsum([0, *counts]), 2**31 - 1))


@pytest.mark.slow
def test_more_edges_than_a_list_can_have():
    """4,295,032,832 of them: modulo 2**32 only 65,536."""
    A = be.JITCScalarR((1.0, 1.0, 1), shape=(65537, 65536))
    assert A.nse == 65537 * 65536
    with pytest.raises(be.OptionError, match='the list of edges is too long'):
        A.tocsr()
    assert np.isnan(jax.jit(lambda A: A.tocsr(70_000))(A).data)
