# SPDX-License-Identifier: Apache-2.0
"""A product with a list of active elements is the product without, derivatives and batches too."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent import config
from brainevent._edge import FAMILIES, Event
from brainevent._edge.listed import list_active
from tests.conformance.batching_test import check_batches
from tests.conformance.derivatives_test import check_derivatives, check_value
from tests.conformance.grid import (
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


def active_list(x):
    """List active elements, or rows that have any."""
    active = Event.BINARY.active(x)
    return list_active(active if active.ndim == 1 else active.any(1))


@dataclass(frozen=True)
class ListedCase(Case):
    """The same operator, given the list."""

    def __str__(self):
        return 'listed-' + super().__str__()

    def call(self, shape=SHAPE):
        with_list = self.call_with(shape)
        return lambda params, arrays, x: with_list(params, arrays, x, active_list(x))

    def call_with(self, shape=SHAPE):
        """Return the product as a function of operands and list."""

        def product(params, arrays, x, active):
            return self.family(
                'conformance',
                params,
                arrays,
                x,
                shape=shape,
                transpose=self.transpose,
                event=self.event,
                backend=self.backend,
                active=active,
            )

        return product


def _cases(dtype='float32', ranks=('vector', 'columns')):
    return [
        ListedCase(stem, backend, Event.BINARY, transpose, rank, weights, dtype)
        for stem in STEMS
        for backend in backends(stem)
        for transpose in (False, True)
        for rank in ranks
        for weights in weight_kinds(stem)
    ]


def _walked(cases):
    """Keep the cases that a kernel of their own serves: those with lines of the input."""
    return [
        case
        for case in cases
        if case.weights != 'params' and case.stem != 'dense'
        if case.family.layout.towards(case.transpose)[0]
    ]


@pytest.mark.parametrize('case', thinned(_cases(), 32))
def test_value_and_derivatives(case):
    check_derivatives(case)


@pytest.mark.parametrize('case', thinned(_cases('float16', ('vector',)), 40))
def test_sixteen_bits(case):
    check_value(case)


@pytest.mark.parametrize('case', thinned(_walked(_cases()), 48))
def test_batches_of_everything(case):
    check_batches(case)


@pytest.mark.parametrize('case', thinned(_walked(_cases(ranks=('vector',))), 14))
def test_lists_that_are_wrong_are_survived(case):
    """Ids outside count nothing; a number beyond the list means the whole list."""
    ops, f = Operands(case), quick_jit(case.call_with())
    params, x = ops.params(), ops.input()
    n = ops.form.n_in
    far = [-(2**31), -1, n, n + 1, 2**31 - 1]
    cases = [
        ([0, *far, n - 1], 7, [0, n - 1]),
        ([*far, 1, n - 1], 2**31 - 1, [1, n - 1]),
        ([0, 1, 2, *far[:4]], 2, [0, 1]),
        ([0, 1, 2, *far[:4]], -1, []),
        ([0, 1, 2, *far[:4]], -(2**31), []),
    ]
    w = ops.edge_weights(params)
    for ids, number, active in cases:
        listed = jnp.array(ids, jnp.int32), jnp.array([number], jnp.int32)
        counts = np.zeros(n)
        counts[active] = 1
        got = f(params, ops.arrays, x, listed)
        close(case, got, ops.form.product(w, counts), f'{ids}, {number}')


@pytest.mark.parametrize('case', thinned(_walked(_cases(ranks=('vector', 'columns'))), 32))
def test_garbage_in_structure_and_list_is_survived(case):
    ops, f = Operands(case), quick_jit(case.call_with())
    rng = np.random.default_rng(3)
    for _ in range(3):
        garbage = [
            jnp.asarray(rng.integers(-(2**31), 2**31, a.shape).astype(np.int32)) for a in ops.arrays
        ]
        ids = jnp.asarray(rng.integers(-3, 9, 40).astype(np.int32))
        f(ops.params(), garbage, ops.input(), (ids, jnp.array([40]))).block_until_ready()


DRAWN = {
    'JITCScalarR': (1.5,), 'JITCNormalR': (1.5, 0.5), 'JITCUniformC': (1.0, 2.0)
}  # fmt: skip


def check_drawn(kind, backend):
    """Multiply a drawn matrix by compacted events on both sides, and by a batch; and derive."""
    where = {'shape': (9, 7), 'backend': backend}
    A = getattr(be, kind)((*DRAWN[kind], 0.4, 11), **where)
    dense, compact = np.asarray(A.todense()), be.CompactBinary.from_array
    x = jnp.array([0.5, 0, -1, 3, np.nan, 1, 0, 0, 2])
    y, batch = x[2:], jnp.stack([x, -x, 0 * x])
    counts = [np.asarray(v > 0, np.float32) for v in (x, y, batch)]

    @quick_jit
    def products(A, x, y, batch):
        by_events = jax.grad(lambda x: (compact(x) @ A).sum())(x)
        return compact(x) @ A, A @ compact(y), compact(batch) @ A, A.T @ compact(batch.T), by_events

    got = products(A, x, y, batch)
    want = counts[0] @ dense, dense @ counts[1], counts[2] @ dense, dense.T @ counts[2].T
    for a, b in zip(got, (*want, dense.sum(1)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('kind', DRAWN)
@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
def test_drawn_matrices_and_compacted_events(kind, backend):
    check_drawn(kind, backend)


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
def test_lists_may_be_short_and_lines_of_any_length(backend):
    lengths = [0, 70_000, 1, 0, 30_000]
    indptr = jnp.asarray(np.cumsum([0, *lengths]), jnp.int32)
    indices = jnp.asarray(np.arange(sum(lengths)) % 3, jnp.int32)
    weights = jnp.ones(1)
    listed = jnp.array([4, 1], jnp.int32), jnp.array([2], jnp.int32)
    got = FAMILIES['csr'](
        'csr', (weights,), (indices, indptr), jnp.zeros(5), shape=(5, 3), transpose=True,
        event=Event.BINARY, backend=backend, active=listed,
    )  # fmt: skip
    lines = [np.arange(a, b) % 3 for a, b in zip(indptr, indptr[1:], strict=False)]
    want = sum(np.bincount(lines[k], minlength=3) for k in (4, 1))
    np.testing.assert_array_equal(got, want)


def test_long_sums_do_not_saturate():
    """Twenty million ones on one target, in one line."""
    count = 20_000_000
    indptr, indices = jnp.array([0, count], jnp.int32), jnp.zeros(count, jnp.int32)
    for backend in ('numba', 'jax_raw'):
        got = FAMILIES['csr'](
            'csr', (jnp.ones(1),), (indices, indptr), jnp.ones(1), shape=(1, 1), transpose=True,
            event=Event.BINARY, backend=backend, active=active_list(jnp.ones(1)), checked=True,
        )  # fmt: skip
        assert float(got[0]) == count


def test_the_listed_product_is_the_one_that_runs():
    A = FAMILIES['csr']
    arrays = jnp.array([0], jnp.int32), jnp.array([0, 1], jnp.int32)

    def f(x):
        more = {'shape': (1, 1), 'transpose': True, 'event': Event.BINARY}
        return A('csr', (jnp.ones(1),), arrays, x, active=active_list(x), **more)

    assert 'compact_binary_csrmv' in str(jax.make_jaxpr(f)(jnp.ones(1)))


@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
@pytest.mark.parametrize('n', [0, 1, 9, 32, 33, 300])
def test_the_list(backend, n):
    rng = np.random.default_rng(n)
    rows = np.stack([rng.random(n) < rate for rate in (0, 0.03, 0.5, 1)])

    with config.use_backend(backend):
        ids, number = list_active(jnp.asarray(rows))
        again = jax.vmap(jax.vmap(list_active))(jnp.asarray(rows[None]))
    assert (ids.dtype, number.dtype) == (jnp.int32, jnp.int32)
    for row, found, count in zip(rows, ids, number, strict=True):
        want = np.flatnonzero(row)
        np.testing.assert_array_equal(found, np.pad(want, (0, n - want.size)))
        np.testing.assert_array_equal(count, [want.size])
    np.testing.assert_array_equal(again[0][0], ids)
    np.testing.assert_array_equal(again[1][0], number)
