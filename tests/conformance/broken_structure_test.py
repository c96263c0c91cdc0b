# SPDX-License-Identifier: Apache-2.0
"""Structure that is wrong contributes nothing, and never reaches memory that is not its own.

Inside a traced program nobody can look at the values of structure arrays, so kernels must live
with whatever they hold.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge import FAMILIES, Event
from tests.conformance.examples import Example
from tests.conformance.grid import (
    EDGES,
    RANKS,
    SHAPE,
    STEMS,
    Case,
    Operands,
    backends,
    close,
    quick_jit,
    thinned,
    weight_kinds,
)
from tests.conformance.oracle import Form

STRUCTURED = [s for s in STEMS if FAMILIES[s].layout.arrays and not FAMILIES[s].layout.draw]
EXTREMES = np.array([-(2**31), -(2**31) + 1, -(2**16), -1, 2**16, 2**30, 2**31 - 1], np.int32)
# Structure arrays that hold ids of rows or columns and nothing else, so that the effect is known.
IDS = {'csr': (0,), 'csr_tagged': (0,), 'coo': (0, 1), 'fcn': (0,)}


def _cases(stems):
    return [
        Case(stem, backend, event, transpose, rank, weight_kinds(stem)[0])
        for stem in stems
        for backend in backends(stem)
        for event in Event
        for transpose in (False, True)
        for rank in (RANKS if event is Event.BINARY else RANKS[:2])
    ]


def _everything(case):
    """Return a program of structure arrays: value and gradients, alone and in a batch."""
    f = case.call()

    def run(arrays, params, x, ct):
        y, back = jax.vjp(lambda p, x: f(p, arrays, x), params, x)
        both = jax.tree.map(lambda a: jnp.stack([a, a]), arrays)
        return y, back(ct), jax.vmap(f, (None, 0, None))(params, both, x)

    return quick_jit(run)


@pytest.mark.parametrize('case', thinned(_cases(STRUCTURED), 10))
def test_garbage_is_survived(case):
    check_garbage(case)


def check_garbage(case):
    """Any array of integers may come: results are numbers, of the right shapes."""
    ops = Operands(case)
    params, x, ct = ops.params(), ops.input(), ops.output()
    run, rng = _everything(case), np.random.default_rng(2)
    for kind in range(6):
        arrays = tuple(_garbage(rng, kind, a) for a in ops.example.arrays)
        y, (of_weights, of_input), batch = run(arrays, params, x, ct)
        assert y.shape == ct.shape and batch.shape == (2, *ct.shape)
        for result in jax.tree.leaves((y, of_weights, of_input, batch)):
            assert np.isfinite(result).all()


def _garbage(rng, kind, a):
    wild = rng.choice(EXTREMES, a.shape)
    near = rng.integers(-3, EDGES + 3, a.shape).astype(np.int32)
    mixed = np.where(rng.random(a.shape) < 0.3, wild, a)
    choices = (wild, near, mixed, a[..., ::-1].copy(), np.full_like(a, 2**31 - 1), -1 - a)
    return choices[kind].astype(np.int32)


@pytest.mark.parametrize('case', thinned(_cases([s for s in STRUCTURED if s in IDS]), 5))
def test_edges_that_point_outside_count_nothing(case):
    check_outside(case)


def check_outside(case):
    ops = Operands(case)
    rng, shape = np.random.default_rng(3), ops.shape
    arrays, row, col = list(ops.example.arrays), ops.example.row.copy(), ops.example.col.copy()
    place = arrays[2] if case.stem == 'csr_tagged' else np.arange(row.size)
    for k in IDS[case.stem]:
        ids, extent = arrays[k].copy(), shape[0] if case.stem == 'coo' and k == 0 else shape[1]
        outside = rng.choice([*EXTREMES, extent, extent + 1, -extent], ids.shape)
        ids = np.where(rng.random(ids.shape) < 0.4, outside, ids).astype(np.int32)
        arrays[k] = ids
        (row if case.stem == 'coo' and k == 0 else col)[place] = ids.reshape(-1)
    arrays = tuple(map(jnp.asarray, arrays))
    params, x, ct = ops.params(), ops.input(), ops.output()
    y, (of_weights, of_input), batch = _everything(case)(arrays, params, x, ct)

    inside = (row >= 0) & (row < shape[0]) & (col >= 0) & (col < shape[1])
    assert 0 < inside.sum() < inside.size
    kept = Example((), row[inside], col[inside])
    form = Form.of(kept, shape, case.transpose)
    w, e, ct = ops.edge_weights(params)[inside], ops.counts(x), ops.wide(ct)
    want = ops.narrow(form.product(w, e))
    close(case, y, want, 'value')
    close(case, batch, np.stack([want, want]), 'batch of structures')
    close(case, of_input, ops.narrow(form.back(w, ct)), 'gradient of input')
    per_edge = np.zeros(inside.size)
    per_edge[inside] = form.sample(e, ct)
    jax.tree.map(
        lambda a, b: close(case, a, b, 'gradient of weights'),
        of_weights,
        ops.param_cotangents(per_edge),
    )


@pytest.mark.parametrize('backend', backends('csr'))
@pytest.mark.parametrize('ends', [(0, EDGES - 4), (5, EDGES), (3, EDGES - 3), (0, EDGES + 9)])
def test_entries_that_no_row_owns_count_nothing(backend, ends):
    """Offsets that start late, or end early or beyond the last entry."""
    case = Case('csr', backend, Event.REAL, False, 'vector', 'each')
    ops = Operands(case)
    indices, indptr = ops.example.arrays
    cut = np.clip(indptr, *ends)
    cut[-1] = ends[1]
    owned = np.clip(np.diff(np.clip(cut, 0, EDGES)), 0, None)
    kept = slice(ends[0], ends[0] + owned.sum())
    row = np.repeat(np.arange(SHAPE[0]), owned)
    form = Form(indices[kept], row, SHAPE[1], SHAPE[0])
    params, x, ct = ops.params(), ops.input(), ops.output()
    y, (of_weights, _), _ = _everything(case)((indices, cut), params, x, ct)
    close(case, y, form.product(ops.edge_weights(params)[kept], ops.counts(x)), 'value')
    per_edge = np.zeros(EDGES)
    per_edge[kept] = form.sample(ops.counts(x), ops.wide(ct))
    close(case, of_weights[0], per_edge, 'gradient of weights')


@pytest.mark.parametrize('case', thinned(_cases(STRUCTURED), 10))
def test_edges_of_a_matrix_without_rows_or_columns(case):
    """There is no element that an edge could read or add to, not even the first."""
    for shape in ((3, 0), (0, 3)):
        source = case.example((3, 3), 6)
        lines = _resized(case, source, shape)
        ops = Operands(case, shape, 0)
        x, ct = ops.input(), ops.output()
        params = tuple(jnp.ones(source.edges) for _ in ops.params())
        if case.family.layout.count(lines, shape) != source.edges:
            continue  # a table without rows has no edges either
        f = case.call(shape)

        @quick_jit
        def run(arrays, params, x, ct, f=f):
            y, back = jax.vjp(lambda p, x: f(p, arrays, x), params, x)
            return y, back(ct)

        arrays = tuple(map(jnp.asarray, lines))
        y, (of_weights, of_input) = run(arrays, params, x, ct)
        close(case, y, np.zeros(ct.shape), 'value')
        close(case, of_input, np.zeros(x.shape), 'gradient of input')
        jax.tree.map(lambda g: close(case, g, np.zeros(g.shape), 'gradient of weights'), of_weights)


def _resized(case, source, shape):
    """Cut the offsets of rows and of columns to the lengths that a shape asks for."""
    names = case.family.layout.arrays
    lines = {'indptr': 0, 'row_ptr': 0, 'ptr': 1, 'col_ptr': 1}
    table = {'indices'} if case.family.layout.name.startswith('fcn') else set()
    return tuple(
        array[: shape[lines[name]] + 1]
        if name in lines
        else (array[: shape[0]] if name in table else array)
        for name, array in zip(names, source.arrays, strict=True)
    )
