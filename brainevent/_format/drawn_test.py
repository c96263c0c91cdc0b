# SPDX-License-Identifier: Apache-2.0
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent import config
from brainevent._edge import FAMILIES, Event, Weight, random
from brainevent._edge.kernels import jax_drawn
from brainevent._edge.materialise import list_edges
from brainevent._error import KernelNotAvailableError, ShapeError
from brainevent._format.drawn import DRAWN_LAYOUT, JITN, JITS, JITU, Drawn, drawn_layout, listed
from tests.drawn_model import FILE, drawn_edges

BACKENDS = ('numba', 'jax_raw')
WORDS = random.seed_words(42)


def arrays(prob, seed=WORDS):
    return jnp.full(1, prob, jnp.float32), jnp.asarray(seed)


def ones(family, dtype=jnp.float32):
    return tuple(jnp.full(1, c, dtype) for c in family.weight.constant)


def model(prob, shape, seed=WORDS):
    row, col, *_ = drawn_edges(np.float32([prob]), seed, shape)
    grid = np.zeros(shape, int)
    np.add.at(grid, (row, col), 1)
    return grid


def multiply(family, prob, x, shape, **options):
    return family('test', ones(family), arrays(prob), x, shape=shape, **options)


@pytest.mark.parametrize('backend', BACKENDS)
def test_golden_matrices(backend):
    matrices = json.loads(FILE.read_text(encoding='utf-8'))['matrix']
    for want in matrices if backend == 'numba' else matrices[:2]:
        shape, parts = tuple(want['shape']), arrays(want['probability'], np.uint32(want['seed']))
        with config.use_backend(backend):
            ptr, (_, col, high, low) = listed(DRAWN_LAYOUT, parts, shape, 2000)
        rows = np.split(np.asarray(col), np.asarray(ptr))[1:-1]
        assert [r.tolist() for r in rows] == want['columns']
        first = np.stack([high, low], 1)[ptr[:-1]]
        assert first.tolist() == want['first_keys']


NONE = [0, np.nan, -1, 1e-30]  # what counts as no edges where nobody can look
PROBS = np.float32(
    [*NONE, 1e-9, 1e-4, 3e-3, 0.02, 0.0624, 0.0626, 0.2, 0.5, 0.75, 0.97, 0.999999, 1, 2]
)


def test_every_backend_lists_the_same_edges_for_all_probabilities():
    shape, size = (5, 700), 3600

    def run(prob):
        parts, ptr = (prob[None], jnp.asarray(WORDS)), jnp.arange(6, dtype=jnp.int32) * 720
        return list_edges(DRAWN_LAYOUT, parts, ptr, shape, size)

    found = {}
    for backend in BACKENDS:
        with config.use_backend(backend):
            found[backend] = jax.jit(jax.vmap(run))(PROBS)
    jax.tree.map(np.testing.assert_array_equal, *found.values())
    count = np.asarray(found['numba'][0])
    for k, prob in enumerate(PROBS):
        np.testing.assert_array_equal(count[k], model(prob, shape).sum(1))
    assert not count[: len(NONE)].any() and (count[-2:] == 700).all()


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('prob', [0.004, 0.3])
def test_a_larger_matrix_contains_the_smaller(backend, prob):
    large = JITU.dense(ones(JITU), arrays(prob), (40, 9000), backend)
    small = JITU.dense(ones(JITU), arrays(prob), (7, 700), backend)
    np.testing.assert_array_equal(large[:7, :700], small)
    np.testing.assert_array_equal(large != 0, model(prob, (40, 9000)))


@pytest.mark.parametrize('backend', BACKENDS)
def test_many_blocks_and_threads(backend):
    """Work enough to be shared, by blocks and by lines."""
    rng = np.random.default_rng(0)
    for shape, prob in (((300, 20_000), 0.05), ((9000, 90), 0.4))[: 1 + (backend == 'numba')]:
        want = model(prob, shape)
        x, y = (rng.integers(-2, 3, n).astype(np.float32) for n in shape)
        with config_threads(5):
            for event in (Event.REAL, Event.BINARY):
                count = (lambda v: v > 0) if event is Event.BINARY else (lambda v: v)
                options = {'event': event, 'backend': backend}
                got = multiply(JITS, prob, x, shape, transpose=True, **options)
                np.testing.assert_array_equal(got, count(x) @ want)
                got = multiply(JITS, prob, y, shape, **options)
                np.testing.assert_array_equal(got, want @ count(y))
            batch = np.stack([x, -x, np.ones_like(x)])
            got = multiply(JITS, prob, batch, shape, transpose=True, rows=True, backend=backend)
            np.testing.assert_array_equal(got, batch @ want)


class config_threads:
    def __init__(self, count):
        self.count = count

    def __enter__(self):
        config.set_numba_parallel(self.count > 1, num_threads=self.count)

    def __exit__(self, *_):
        config.set_numba_parallel(True)


@pytest.mark.slow
@pytest.mark.parametrize('backend', BACKENDS)
def test_long_sums_do_not_stick(backend):
    n = 20_000_000
    assert multiply(JITS, 1.0, jnp.ones(n), (n, 1), transpose=True, backend=backend) == n
    assert multiply(JITS, 1.0, jnp.ones(n), (1, n), backend=backend) == n


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('dtype', ['float16', 'complex64'])
def test_other_dtypes(backend, dtype):
    shape, family = (6, 50), JITN
    factor = 1j if dtype == 'complex64' else 1
    params = tuple(jnp.full(1, p).astype(dtype) * factor for p in (2.0, 0.5))
    grid = np.asarray(family.dense(params, arrays(0.3), shape, backend))
    assert grid.dtype == jnp.dtype(dtype)
    np.testing.assert_array_equal(grid != 0, model(0.3, shape))
    x = jnp.arange(50) % 3 > 0
    got = family('t', params, arrays(0.3), x, shape=shape, event=Event.BINARY, backend=backend)
    assert got.dtype == jnp.dtype(dtype)
    wide = np.complex128 if dtype == 'complex64' else np.float64
    want = grid.astype(wide) @ np.asarray(x, float)
    np.testing.assert_allclose(
        np.asarray(got).astype(wide), want, rtol=0.02 if '16' in dtype else 1e-5
    )


def test_values_are_the_same_in_every_precision():
    family = JITN
    single = family.dense(ones(family)[:1] + (jnp.full(1, 3.0),), arrays(0.5), (20, 200))
    with jax.enable_x64(True):
        wide = tuple(jnp.full(1, p, jnp.float64) for p in (1.0, 3.0))
        double = family.dense(wide, arrays(0.5), (20, 200))
        reference = family.dense(wide, arrays(0.5), (20, 200), 'jax_raw')
    np.testing.assert_allclose(single, double, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(reference, double, rtol=1e-12, atol=1e-14)


def test_silent_elements_do_not_show_what_they_would_meet():
    params = (jnp.full(1, jnp.nan), jnp.ones(1))
    for backend in BACKENDS:
        for transpose in (False, True):
            got = JITN(
                'test', params, arrays(1.0), jnp.zeros(4), shape=(4, 4),
                transpose=transpose, event=Event.BINARY, backend=backend,
            )  # fmt: skip
            assert not np.asarray(got).any()


def test_few_lanes_take_several_turns(monkeypatch):
    monkeypatch.setattr(jax_drawn, 'ITEMS', 64)
    monkeypatch.setattr(jax_drawn, 'LINES', 8)
    shape, want = (30, 3000), model(0.1, (30, 3000))
    x, y = jnp.arange(30.0), jnp.arange(3000.0) % 7
    got = multiply(JITS, 0.1, x, shape, transpose=True, backend='jax_raw')
    np.testing.assert_allclose(got, np.arange(30.0) @ want)
    got = multiply(JITS, 0.1, y, shape, backend='jax_raw')
    np.testing.assert_allclose(got, want @ np.asarray(y), rtol=1e-6)


def test_shapes_of_structure_are_checked():
    with pytest.raises(ShapeError, match='not one number'):
        JITS('call', ones(JITS), (jnp.zeros(2), jnp.asarray(WORDS)), jnp.ones(3), shape=(2, 3))
    with pytest.raises(ShapeError, match='too long'):
        DRAWN_LAYOUT.check_shapes('call', arrays(0.1), (2**31, 1))


# ---- what third parties add ----------------------------------------------------------------------


@pytest.fixture
def fresh_names():
    before = set(FAMILIES)
    yield
    for stem in set(FAMILIES) - before:
        del FAMILIES[stem]


def test_a_layout_that_thins_and_a_weight_of_its_own(fresh_names):
    """Edges stay with a chance from a table, and weigh something or nothing."""
    layout = drawn_layout(
        'test_ring', ('chance',), (1,),
        keep=lambda s, i, j, word: word < s[0][(i + j) % 3],
    )  # fmt: skip
    half = Weight('test_half', 1, lambda p, u: p[0] * (u < 0.5), draws='unit')
    family = Drawn(layout, half, 'test_ring')
    shape, chance = (12, 500), np.uint32([0, 2**31, 2**32 - 1])
    parts = (*arrays(0.5), jnp.asarray(chance))
    row, col, high, low = drawn_edges(np.float32([0.5]), WORDS, shape)
    word = random.draw((high, low), np.ones_like(high))[0]
    kept = word < chance[(row + col) % 3]
    want = np.zeros(shape)
    want[row[kept], col[kept]] = 2 * (random.unit((high, low), np.float64) < 0.5)[kept]
    assert 0.3 < kept.mean() < 0.7
    for backend in BACKENDS:
        got = family.dense((jnp.full(1, 2.0),), parts, shape, backend)
        np.testing.assert_array_equal(got, want)
        y = family('test', (jnp.full(1, 2.0),), parts, jnp.ones(500), shape=shape, backend=backend)
        np.testing.assert_allclose(y, want.sum(1))
        with config.use_backend(backend):
            ptr, lists = listed(layout, parts, shape, kept.sum())
        np.testing.assert_array_equal(lists[1], col[kept])


def test_a_demand_for_another_backend_is_refused():
    with pytest.raises(KernelNotAvailableError):
        multiply(JITS, 0.5, jnp.ones(3), (2, 3), backend='cusparse')
