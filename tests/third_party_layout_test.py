# SPDX-License-Identifier: Apache-2.0
"""A layout from outside whose first array does not hold one entry for each edge.

Native kernels count edges and rows as the layout does, whatever its arrays are. Results are those
of the same matrix in a format of the package, and of plain JAX.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge import LAYOUTS
from brainevent._edge.mirror import mirror
from brainevent._edge.operator import Spec
from brainevent._edge.pick import picks_of
from brainevent._edge.scale import scales_of
from brainevent._edge.update import updates_of
from brainevent.extend import STORED, Event, Layout, Products, Walk

BACKENDS = ('numba', 'jax_raw')
ROWS, COLUMNS = 40, 24


def _sound(where, arrays, shape):
    pass


def _offsets_first():
    """Compressed rows with offsets in front of columns: ``rows + 1`` entries in the first array."""
    csr = LAYOUTS['csr']
    return Layout(
        'test_offsets_first',
        arrays=('indptr', 'indices'),
        ranks=(1, 1),
        edges=lambda arrays, shape: csr.edges(arrays[::-1], shape),
        count=lambda arrays, shape: arrays[1].shape[0],
        check_shapes=_sound,
        check_values=_sound,
        walk=Walk(
            span=lambda s, m, n, i: (s[0][i], s[0][i + 1]),
            far=lambda s, m, n, i, e: s[1][e],
            tag=lambda s, m, n, i, e: e,
            streams=(1,),
        ),
    )


def _shifted():
    """Edges in no order, with rows counted from a number that stands in the first array."""
    return Layout(
        'test_shifted',
        arrays=('first', 'row', 'col'),
        ranks=(1, 1, 1),
        edges=lambda arrays, shape: (arrays[1] + arrays[0][0], arrays[2]),
        count=lambda arrays, shape: arrays[1].shape[0],
        check_shapes=_sound,
        check_values=_sound,
        edge=lambda s, m, n, e: (s[1][e] + s[0][0], s[2][e]),
    )


FAMILIES = {
    'offsets_first': Products(_offsets_first(), STORED, 'test_offsets_first'),
    'shifted': Products(_shifted(), STORED, 'test_shifted'),
}


def matrix(name, edges):
    """Return structure arrays, weights and the dense matrix; there may be fewer edges than rows."""
    rng = np.random.default_rng(edges)
    place = np.sort(rng.permutation(ROWS * COLUMNS)[:edges])
    row, col = (x.astype(np.int32) for x in np.divmod(place, COLUMNS))
    w = rng.normal(size=edges).astype(np.float32)
    dense = np.zeros((ROWS, COLUMNS), np.float32)
    dense[row, col] = w
    if name == 'offsets_first':
        arrays = np.searchsorted(row, np.arange(ROWS + 1)).astype(np.int32), col
    else:
        arrays = np.array([3], np.int32), row - 3, col
    return tuple(map(jnp.asarray, arrays)), jnp.asarray(w), dense, (row, col)


# more edges than entries in the first array, and for compressed rows fewer
CASES = (('offsets_first', 7), ('offsets_first', 600), ('shifted', 600))
EVERY = pytest.mark.parametrize(
    'name, edges, backend', [(*c, b) for c, b in itertools.product(CASES, BACKENDS)]
)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@EVERY
@pytest.mark.parametrize(
    'event',
    [pytest.param(e, marks=[pytest.mark.slow] * (e is not Event.BINARY)) for e in Event],
)
@pytest.mark.parametrize('transpose', [False, True])
def test_products_and_gradients_take_every_edge(name, edges, backend, event, transpose):
    family, (arrays, w, dense, (row, col)) = FAMILIES[name], matrix(name, edges)
    sides = (row, col) if transpose else (col, row)
    rng = np.random.default_rng(1)
    length, result = (ROWS, COLUMNS) if transpose else (COLUMNS, ROWS)
    x = jnp.asarray(rng.random((length, 3)) < 0.5)
    x = x if event is Event.BINARY else x * jnp.asarray(rng.normal(size=x.shape), jnp.float32)
    turned = dense.T if transpose else dense

    def product(w, x, **options):
        return family(
            'test', (w,), arrays, x, shape=(ROWS, COLUMNS), transpose=transpose,
            event=event, backend=backend, **options,
        )  # fmt: skip

    close(product(w, x[:, 0]), turned @ np.asarray(x[:, 0], np.float32))
    close(product(w, x), turned @ np.asarray(x, np.float32))
    close(product(w, x.T, rows=True), (turned @ np.asarray(x, np.float32)).T)
    close(
        jax.vmap(product, (0, None))(jnp.stack([w, 2 * w]), x[:, 0])[1],
        2 * turned @ np.asarray(x[:, 0], np.float32),
    )
    ct = jnp.asarray(rng.normal(size=result), jnp.float32)
    got = jax.grad(lambda w: product(w, x[:, 0]) @ ct)(w)
    close(got, np.asarray(x[:, 0], np.float32)[sides[0]] * np.asarray(ct)[sides[1]])


@EVERY
@pytest.mark.parametrize('transpose', [False, True])
def test_updates_scales_and_picks_take_every_edge(name, edges, backend, transpose):
    family, (arrays, w, dense, (row, col)) = FAMILIES[name], matrix(name, edges)
    shape, rng = (ROWS, COLUMNS), np.random.default_rng(2)
    source, target = (row, col) if transpose else (col, row)
    length, result = (ROWS, COLUMNS) if transpose else (COLUMNS, ROWS)
    options = {'shape': shape, 'transpose': transpose, 'backend': backend}
    spikes = rng.random(length) < 0.5
    trace = rng.normal(size=result).astype(np.float32)

    new = updates_of(family)('test', w, arrays, jnp.asarray(spikes), jnp.asarray(trace), **options)
    close(new, w + spikes[source] * trace[target])
    scaled = scales_of(family)('test', jnp.asarray(trace), w, arrays, core=w.shape, **options)
    close(scaled, w * trace[target])

    picks = picks_of(family)
    lines = jnp.asarray(rng.integers(0, length, 9), jnp.int32)
    ends = jnp.asarray(rng.integers(0, result, 9), jnp.int32)
    by_line = dense if transpose else dense.T
    close(picks('test', w, arrays, lines, **options), by_line[np.asarray(lines)])
    close(
        picks('test', w, arrays, lines, ends, **options),
        by_line[np.asarray(lines), np.asarray(ends)],
    )
    taken = jax.grad(lambda w: picks('test', w, arrays, lines, **options).sum())(w)
    close(taken, np.bincount(np.asarray(lines), minlength=length)[source])


@EVERY
def test_a_mirror_holds_every_edge(name, edges, backend):
    layout, (arrays, _, _, (row, col)) = FAMILIES[name].layout, matrix(name, edges)
    shape = (ROWS, COLUMNS)
    outs = jax.eval_shape(lambda *s: mirror(layout, s, shape), *arrays)
    op = be.get_registry()[f'{layout.name}_mirror_index']
    spec = Spec(layout, STORED, shape)
    run = jax.jit(lambda *s: op(*s, outs=list(outs), spec=spec, backend=backend))
    far, ptr, tag = run(*arrays)[-3:]
    order = np.argsort(col, kind='stable')
    np.testing.assert_array_equal(tag, order)
    np.testing.assert_array_equal(far, row[order])
    np.testing.assert_array_equal(ptr, np.searchsorted(col[order], np.arange(COLUMNS + 1)))
