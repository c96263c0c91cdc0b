# SPDX-License-Identifier: Apache-2.0
"""Compacted events: what their parts are, and that every matrix multiplies them from both sides."""

import copy
import pickle

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.event import Event
from brainevent._error import DtypeError, OptionError, ShapeError

VALUES = np.array([2.0, 0.0, -1.0, 0.5, np.nan], np.float32)
DENSE = np.arange(15, dtype=np.float32).reshape(5, 3) - 4
BATCH = np.stack([VALUES, np.zeros(5, np.float32), -VALUES])

VECTORS = {
    'mixed': VALUES,
    'none active': np.array([0.0, -1.0, np.nan, -0.0, -np.inf], np.float32),
    'all active': np.array([0.1, 1.0, 2.0, np.inf, 1e-30], np.float32),
    'bool': VALUES > 0,
    'uint8': np.array([0, 255, 0, 1, 0], np.uint8),
    'int32': np.array([-3, 2, 0, 0, 1], np.int32),
    'float16': VALUES.astype(np.float16),
}


def _counts(x):
    return (np.asarray(x) > 0).astype(np.float32)


def _fixed(kind, dense):
    """Store a matrix with every entry, so that each line has as many."""
    m, n = dense.shape
    if kind is be.FixedNumPerPre:
        return kind((dense, np.tile(np.arange(n, dtype=np.int32), (m, 1))), shape=(m, n))
    return kind((dense.T, np.tile(np.arange(m, dtype=np.int32), (n, 1))), shape=(m, n))


FORMATS = {
    'array': lambda d: d,
    'Dense': be.Dense,
    'CSR': be.CSR.fromdense,
    'CSC': be.CSC.fromdense,
    'COO': be.COO.fromdense,
    'CSR mirror': lambda d: be.CSR.fromdense(d).with_mirror(),
    'COO mirror': lambda d: be.COO.fromdense(d).with_mirror(),
    'FixedNumPerPre': lambda d: _fixed(be.FixedNumPerPre, d),
    'FixedNumPerPost': lambda d: _fixed(be.FixedNumPerPost, d),
    'FixedNumPerPre mirror': lambda d: _fixed(be.FixedNumPerPre, d).with_mirror(),
}


# Parts


def test_parts_of_a_vector():
    events = be.CompactBinary.from_array(VALUES)
    np.testing.assert_array_equal(events.packed, [0b1001])
    np.testing.assert_array_equal(events.active_ids, [0, 3, 0, 0, 0])
    np.testing.assert_array_equal(events.n_active, [2])
    np.testing.assert_array_equal(events.value, VALUES)
    np.testing.assert_array_equal(events.to_dense(), VALUES)
    assert (events.n_orig, events.batch_size, events.bit_width) == (5, None, 32)
    assert (events.shape, events.ndim, events.size, events.dtype) == ((5,), 1, 5, np.float32)
    assert events.packed.dtype == jnp.uint32
    assert repr(events) == 'CompactBinary(shape=(5,), dtype=float32)'


def test_parts_of_a_batch():
    events = be.CompactBinary.from_array(BATCH)
    np.testing.assert_array_equal(events.packed, [[0b01001], [0], [0b00100]])
    np.testing.assert_array_equal(events.active_ids, [0, 2, 0])
    np.testing.assert_array_equal(events.n_active, [2])
    assert (events.n_orig, events.batch_size) == (3, 5)
    assert (events.shape, events.ndim, events.size) == ((3, 5), 2, 15)


def test_the_light_form_leaves_the_list_of_a_vector_out():
    light = be.CompactBinary.from_array_light(VALUES)
    np.testing.assert_array_equal(light.packed, [0b1001])
    np.testing.assert_array_equal(light.active_ids, np.zeros(5))
    np.testing.assert_array_equal(light.n_active, [0])
    np.testing.assert_allclose(light @ be.CSR.fromdense(DENSE), _counts(VALUES) @ DENSE)
    batch = be.CompactBinary.from_array_light(BATCH)
    np.testing.assert_array_equal(batch.active_ids, [0, 2, 0])


@pytest.mark.parametrize('name', ['compact_only_vector', 'compacy_only_vector'])
def test_the_list_alone(name):
    events = getattr(be.CompactBinary, name)(VALUES)
    assert (events.packed.shape, events.packed.dtype) == ((0,), jnp.uint32)
    np.testing.assert_array_equal(events.active_ids, [0, 3, 0, 0, 0])
    np.testing.assert_array_equal(events.value, VALUES)
    with pytest.raises(ShapeError, match='wrong rank'):
        getattr(be.CompactBinary, name)(BATCH)


def test_parts_are_kept_as_they_are_given():
    events = be.CompactBinary.from_array(VALUES)
    parts = events.packed, events.active_ids, events.n_active
    for kind in (be.CompactBinary, be.CompactBinary.from_packed):
        again = kind(*parts, VALUES, 5)
        assert again.packed is parts[0]
        assert again.active_ids is parts[1]
        assert again.n_active is parts[2]
    A = be.CSR.fromdense(DENSE)
    np.testing.assert_allclose(again @ A, events @ A)


def test_events_without_their_values_are_told_by_bits_or_ids():
    full = be.CompactBinary.from_array(VALUES)
    A, want = be.CSR.fromdense(DENSE), _counts(VALUES) @ DENSE
    for packed in (full.packed, jnp.zeros(0, jnp.uint32)):
        events = be.CompactBinary.from_packed(packed, [0, 3, -7], [2], None, 5)
        np.testing.assert_array_equal(events.to_dense(), VALUES > 0)
        assert events.dtype == bool
        np.testing.assert_allclose(events @ A, want)
        np.testing.assert_allclose(A.T @ events, want)
        np.testing.assert_allclose(events @ be.Dense(DENSE), want)
    batch = be.CompactBinary.from_array(BATCH)
    bits = be.CompactBinary.from_packed(batch.packed, batch.active_ids, [2], None, 3, 5)
    np.testing.assert_array_equal(bits.value, BATCH > 0)
    np.testing.assert_allclose(bits @ A, _counts(BATCH) @ DENSE)


@pytest.mark.parametrize(
    'x', [list(VALUES), tuple(VALUES), jnp.asarray(VALUES), be.BinaryArray(VALUES),
          be.BitPackedBinary(VALUES), be.CompactBinary.from_array(VALUES)],
)  # fmt: skip
def test_what_events_are_made_of(x):
    np.testing.assert_array_equal(be.CompactBinary.from_array(x).n_active, [2])


@pytest.mark.parametrize('n', [0, 1, 33])
@pytest.mark.parametrize('backend', ['numba', 'jax_raw'])
def test_lists_of_any_length(n, backend):
    x = np.random.default_rng(n).random(n) < 0.3
    with be.use_backend(backend):
        events = be.CompactBinary.from_array(x)
    (want,) = np.nonzero(x)
    np.testing.assert_array_equal(events.active_ids, np.pad(want, (0, n - want.size)))
    np.testing.assert_array_equal(events.n_active, [want.size])


# Refusals


@pytest.mark.parametrize('width', [8, 64, None])
def test_words_have_32_bits(width):
    for make in (be.CompactBinary.from_array, be.CompactBinary.from_array_light):
        with pytest.raises(OptionError, match='words of this width'):
            make(VALUES, bit_width=width)
    with pytest.raises(ValueError, match='bit_width=32'):
        be.CompactBinary(jnp.zeros(0, jnp.uint32), [0], [0], VALUES, 5, None, width)


@pytest.mark.parametrize('x', [np.float32(1.0), np.ones((1, 1, 1))])
def test_events_have_one_axis_or_two(x):
    with pytest.raises(ShapeError) as info:
        be.CompactBinary.from_array(x)
    assert str(info.value) == (
        'CompactBinary.from_array: the events have the wrong rank.\n'
        '    expected: 1 axis or 2 axes\n'
        f'    got:      shape {x.shape}'
    )


@pytest.mark.parametrize('x', ['spikes', None, [1j]])
def test_what_is_no_event_is_refused(x):
    with pytest.raises(DtypeError):
        be.CompactBinary.from_array(x)


@pytest.mark.parametrize(
    ('change', 'error', 'match'),
    [
        ({'value': VALUES[:4]}, ShapeError, '`value` does not fit'),
        ({'packed': np.zeros(2, np.uint32)}, ShapeError, '`packed` does not fit'),
        ({'packed': np.zeros(1, np.int32)}, DtypeError, '`packed` does not hold words'),
        ({'active_ids': [0.5]}, DtypeError, '`active_ids` does not hold integers'),
        ({'active_ids': [[0]]}, ShapeError, '`active_ids` does not fit'),
        ({'n_active': [1, 1]}, ShapeError, '`n_active` does not fit'),
        ({'value': None, 'batch_size': 4, 'packed': np.zeros(0, np.uint32)}, ShapeError, 'batch'),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, error, match):
    parts = {'packed': np.zeros(1, np.uint32), 'active_ids': [0], 'n_active': [1]}
    parts |= {'value': VALUES, 'n_orig': 5, **change}
    with pytest.raises(error, match=match):
        be.CompactBinary(**parts)


def test_operands_that_do_not_fit_are_refused():
    events = be.CompactBinary.from_array(VALUES)
    with pytest.raises(ShapeError):
        events @ be.CSR.fromdense(DENSE.T)
    with pytest.raises(ShapeError):
        DENSE @ events
    with pytest.raises(ShapeError):
        events @ np.ones(5)


# Products


@pytest.mark.parametrize('x', VECTORS.values(), ids=VECTORS)
def test_every_kind_of_element_on_both_sides(x):
    A = be.CSR.fromdense(DENSE)
    events, want = be.CompactBinary.from_array(x), _counts(x) @ DENSE
    np.testing.assert_allclose(events @ A, want)
    np.testing.assert_allclose(A.T @ events, want)


def _format_cases():
    """Every format; the kernels of some are slow to compile, and are those of others."""
    slow = ('CSR mirror', 'COO mirror', 'FixedNumPerPost', 'FixedNumPerPre mirror')
    return [pytest.param(n, marks=pytest.mark.slow if n in slow else ()) for n in FORMATS]


@pytest.mark.parametrize('name', _format_cases())
def test_products_with_every_format_on_both_sides(name):
    A, B = FORMATS[name](DENSE), FORMATS[name](np.ascontiguousarray(DENSE.T))
    vector = be.CompactBinary.from_array(VALUES)
    np.testing.assert_allclose(vector @ A, _counts(VALUES) @ DENSE)
    np.testing.assert_allclose(B @ vector, _counts(VALUES) @ DENSE)
    rows, columns = be.CompactBinary.from_array(BATCH), be.CompactBinary.from_array(BATCH.T.copy())
    np.testing.assert_allclose(rows @ A, _counts(BATCH) @ DENSE)
    np.testing.assert_allclose(B @ columns, DENSE.T @ _counts(BATCH.T))


@pytest.mark.parametrize('shape', [(0, 3), (3, 0), (0, 0)])
def test_nothing_gives_zeros(shape):
    A = be.CSR.fromdense(np.zeros(shape, np.float32))
    events = be.CompactBinary.from_array(np.ones(shape[0], bool))
    np.testing.assert_array_equal(events @ A, np.zeros(shape[1]))
    np.testing.assert_array_equal(A.T @ events, np.zeros(shape[1]))
    batch = be.CompactBinary.from_array(np.ones((shape[0], 2), bool))
    np.testing.assert_array_equal(A.T @ batch, np.zeros((shape[1], 2)))


def test_functions_take_the_list():
    A, want = be.CSR.fromdense(DENSE), _counts(VALUES) @ DENSE
    events = be.CompactBinary.from_array(VALUES)

    def f(events):
        more = {'shape': A.shape, 'transpose': True}
        return be.binary_csrmv(A.data, A.indices, A.indptr, events, **more)

    np.testing.assert_allclose(f(events), want)
    assert 'compact_binary_csrmv' in str(jax.make_jaxpr(f)(events))


def test_backends_without_lists_get_the_events(monkeypatch):
    """A kernel that a guest registers for products serves compacted events as well."""
    from brainevent._edge import FAMILIES

    ops = FAMILIES['csr'].primitives(Event.BINARY)
    for op in ops:
        monkeypatch.setattr(op._table, 'entries', op._table.entries)  # the guest leaves again
        op.def_kernel(
            'guest', 'cpu', lambda *, outs, **_: lambda *xs: [jnp.full(outs[0].shape, 7.0)]
        )
    A = be.CSR(be.CSR.fromdense(DENSE).data, *be.CSR.fromdense(DENSE).arrays, shape=(5, 3),
               backend='guest')  # fmt: skip
    np.testing.assert_array_equal(be.CompactBinary.from_array(VALUES) @ A, np.full(3, 7.0))


def test_units_pass_through():
    events = be.CompactBinary.from_array(VALUES)
    A = be.CSR.fromdense(DENSE * u.nA)
    for got in (events @ A, A.T @ events, events @ (DENSE * u.nA), (DENSE.T * u.nA) @ events):
        assert u.get_unit(got) == u.nA
        np.testing.assert_allclose(u.get_mantissa(got), _counts(VALUES) @ DENSE)


def test_gradients_are_those_of_binary_events():
    A = be.CSR.fromdense(DENSE)
    weights = jnp.arange(3.0)
    x = jnp.asarray(VALUES)

    def loss(kind):
        return lambda w, x: ((kind(x) @ A.with_data(w)) * weights).sum() ** 2

    for w in (A.data, jnp.ones(1)):
        got = jax.grad(loss(be.CompactBinary.from_array), (0, 1))(w, x)
        want = jax.grad(loss(be.BinaryArray), (0, 1))(w, x)
        jax.tree.map(np.testing.assert_allclose, got, want)
    got = jax.grad(lambda x: (A.T @ be.CompactBinary.compacy_only_vector(x)).sum())(x)
    np.testing.assert_allclose(got, DENSE.sum(1))
    light = jax.grad(lambda x: (be.CompactBinary.from_array_light(x) @ A).sum())(x)
    np.testing.assert_allclose(light, DENSE.sum(1))


def test_gradient_towards_the_object():
    A = be.CSR.fromdense(DENSE)
    events = be.CompactBinary.from_array(VALUES)
    got = jax.grad(lambda e: (e @ A).sum(), allow_int=True)(events)
    np.testing.assert_allclose(got.value, DENSE.sum(1))


# As a pytree


def test_transformations_carry_events():
    A = be.CSR.fromdense(DENSE)
    want = _counts(BATCH) @ DENSE
    events = jax.jit(be.CompactBinary.from_array)(VALUES)
    np.testing.assert_allclose(jax.jit(lambda e, A: e @ A)(events, A), want[0])
    many = jax.vmap(be.CompactBinary.from_array)(BATCH)
    np.testing.assert_allclose(jax.vmap(lambda e: e @ A)(many), want)
    np.testing.assert_allclose(jax.vmap(lambda e: A.T @ e, out_axes=1)(many), want.T)
    carry, outs = jax.lax.scan(lambda c, e: (e, c @ A), events, many)
    np.testing.assert_allclose(outs, want[[0, 0, 1]])
    np.testing.assert_array_equal(carry.active_ids, [2, 0, 0, 0, 0])
    same = jax.lax.cond(True, lambda e: e, lambda e: e, events)
    np.testing.assert_array_equal(same.n_active, [2])
    assert jax.eval_shape(lambda e: e @ A, events).shape == (3,)


def test_leaves_have_names_and_anything_can_be_put_back():
    events = be.CompactBinary.from_array(VALUES)
    paths, tree = jax.tree_util.tree_flatten_with_path(events)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    assert names == ['.packed', '.active_ids', '.n_active', '.value']
    again = jax.tree.unflatten(tree, [object()] * 4)
    assert again.shape == (5,)
    bits = be.CompactBinary(np.zeros(1, np.uint32), [0], [0], None, 5)
    assert len(jax.tree.leaves(bits)) == 3


@pytest.mark.parametrize(
    'make', [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_and_pickles(make):
    events = be.CompactBinary.from_array(VALUES)
    again = make(events)
    assert type(again) is be.CompactBinary
    np.testing.assert_allclose(again @ DENSE, events @ DENSE)
