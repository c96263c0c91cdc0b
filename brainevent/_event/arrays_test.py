# SPDX-License-Identifier: Apache-2.0
"""Event arrays as objects: what they are made from, what they keep, how JAX carries them."""

import copy
import pickle

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.event import Event
from brainevent._error import DtypeError, MathError, UnitError, UnsupportedOperationError
from brainevent._event.arrays import (
    BinaryArray,
    BitPackedBinary,
    EventArray,
    EventRepresentation,
    MaskedFloat,
)
from brainevent._event.compact import CompactBinary

VALUES = np.array([2.0, 0.0, -1.0, 0.5], np.float32)
COUNTS = np.array([1.0, 0.0, 0.0, 1.0], np.float32)
DENSE = np.arange(12, dtype=np.float32).reshape(4, 3)

KINDS = [
    pytest.param(BinaryArray, COUNTS, id='binary'),
    pytest.param(MaskedFloat, VALUES, id='masked'),
]


def test_event_array_is_the_binary_array():
    assert EventArray is BinaryArray
    assert BinaryArray.__event__ is Event.BINARY
    assert MaskedFloat.__event__ is Event.MASKED


def test_the_base_is_abstract():
    with pytest.raises(UnsupportedOperationError, match='use BinaryArray or MaskedFloat'):
        EventRepresentation([1.0])


@pytest.mark.parametrize(('kind', 'counts'), KINDS)
def test_products_on_either_side(kind, counts):
    events = kind(VALUES)
    np.testing.assert_allclose(events @ DENSE, counts @ DENSE)
    np.testing.assert_allclose(DENSE.T @ events, DENSE.T @ counts)
    np.testing.assert_allclose(events.dot(DENSE), counts @ DENSE)
    batch = kind(np.stack([VALUES, VALUES[::-1]]))
    np.testing.assert_allclose(batch @ DENSE, np.stack([counts, counts[::-1]]) @ DENSE)


@pytest.mark.parametrize('dtype', ['bool', 'int8', 'uint8', 'int32', 'float16', 'bfloat16'])
def test_storage_of_spikes_does_not_change_the_answer(dtype):
    spikes = jnp.array([1, 0, 0, 1]).astype(dtype)
    np.testing.assert_allclose(BinaryArray(spikes) @ DENSE, COUNTS @ DENSE)


@pytest.mark.parametrize(
    'value',
    [
        [2.0, 0.0, -1.0, 0.5],
        (2.0, 0.0, -1.0, 0.5),
        VALUES,
        jnp.asarray(VALUES),
        MaskedFloat(VALUES),
        BinaryArray(VALUES),
        [jnp.float32(v) for v in VALUES],
    ],
)
def test_what_a_value_may_be(value):
    events = BinaryArray(value)
    assert isinstance(events.value, jax.Array)
    assert events.shape == (4,)
    assert (events.ndim, events.size, len(events)) == (1, 4, 4)
    assert events.dtype in (np.float32, np.float64)
    np.testing.assert_array_equal(events.value, VALUES)


def test_an_array_of_another_library_is_asked_for_its_jax_array():
    class Array:
        def __jax_array__(self):
            return jnp.asarray(VALUES)

    np.testing.assert_array_equal(BinaryArray(Array()).value, VALUES)


@pytest.mark.parametrize('scalar', [True, 1, 2.5, np.float32(1.0), np.array(1)])
def test_scalars_become_arrays_without_axes(scalar):
    event = BinaryArray(scalar)
    assert (event.shape, event.ndim, event.size) == ((), 0, 1)
    assert bool(event)
    assert float(event) == scalar
    assert int(BinaryArray(3)) == 3
    with pytest.raises(TypeError):
        len(event)
    with pytest.raises(TypeError):
        iter(event)


def test_quantities_are_accepted():
    events = MaskedFloat(u.Quantity(VALUES, unit=u.mV))
    assert u.get_unit(events.value) == u.mV
    assert isinstance(events.value.mantissa, jax.Array)
    assert (events.shape, events.dtype, len(jax.tree.leaves(events))) == ((4,), np.float32, 1)
    assert u.get_unit(events[:2].value) == u.mV
    assert u.get_unit(events.sum()) == u.mV
    got = events @ DENSE
    assert u.get_unit(got) == u.mV
    np.testing.assert_allclose(u.get_mantissa(got), VALUES @ DENSE)


@pytest.mark.parametrize('kind', [BinaryArray, BitPackedBinary, CompactBinary.from_array])
def test_a_quantity_is_not_an_event_vector(kind):
    volts = u.Quantity(VALUES, unit=u.mV)
    with pytest.raises(UnitError, match='compare it first'):
        kind(volts)
    with pytest.raises(UnitError, match='compare it first'):
        kind(MaskedFloat(volts))
    same = kind(u.Quantity(VALUES, unit=u.UNITLESS))  # a number all the same
    np.testing.assert_allclose(same @ DENSE, COUNTS @ DENSE)


def test_functions_refuse_a_quantity_as_events():
    A, volts = be.CSR.fromdense(DENSE.T), u.Quantity(VALUES, unit=u.mV)
    with pytest.raises(UnitError, match='compare it first'):
        be.binary_csrmv(A.data, A.indices, A.indptr, volts, shape=A.shape)
    with pytest.raises(UnitError, match='compare it first'):
        be.binary_densemv(DENSE.T, volts)
    with pytest.raises(UnitError, match='compare it first'):
        A.T.update_on_pre(volts, np.zeros(DENSE.shape[1], np.float32))


@pytest.mark.parametrize('wrap', [lambda x: x, lambda x: u.Quantity(x, unit=u.mV)])
def test_later_writes_to_the_callers_array_do_not_reach_the_events(wrap):
    room = np.zeros(8192, np.float32)
    aligned = room[(-room.ctypes.data // 4) % 16 :][:4096]  # what JAX would otherwise share
    events = MaskedFloat(wrap(aligned))
    aligned[:] = 1.0
    assert float(u.get_mantissa(events.sum())) == 0.0


@pytest.mark.parametrize(
    'bad', [object(), 'spikes', None, ['spikes'], [2**70], [[1.0], [1.0, 2.0]]]
)
def test_what_is_no_array_is_refused(bad):
    with pytest.raises(DtypeError, match='`value` is not an array of numbers'):
        BinaryArray(bad)


def test_error_text_of_a_wrong_value():
    with pytest.raises(TypeError) as info:
        MaskedFloat('spikes')
    assert str(info.value) == (
        'MaskedFloat: `value` is not an array of numbers.\n'
        '    expected: an array, a number or a Quantity\n'
        '    got:      str'
    )


@pytest.mark.parametrize('shape', [(), (1, 2, 4)])
def test_products_need_one_axis_or_two(shape):
    events = BinaryArray(np.ones(shape))
    with pytest.raises(MathError, match='wrong rank'):
        events @ DENSE
    with pytest.raises(MathError, match='wrong rank'):
        DENSE @ events


def test_value_can_be_set():
    events = BinaryArray([1.0])
    events.value = [0, 1]
    assert isinstance(events.value, jax.Array)
    assert events.shape == (2,)
    other = events.with_value(VALUES)
    assert type(other) is BinaryArray
    assert (other.shape, events.shape) == ((4,), (2,))


@pytest.mark.parametrize(('kind', 'counts'), KINDS)
def test_a_part_of_the_events_is_events(kind, counts):
    events = kind(VALUES)
    for index in (slice(2), slice(None, None, 2), np.array([3, 0]), VALUES > 0, ..., None):
        part = events[index]
        assert type(part) is kind
        np.testing.assert_array_equal(part.value, VALUES[index])
    np.testing.assert_allclose(events[:2] @ DENSE[:2], counts[:2] @ DENSE[:2])
    assert events[3].shape == ()
    assert type(events[BinaryArray(VALUES > 0)]) is kind
    batch = kind(np.stack([VALUES, VALUES]))
    np.testing.assert_array_equal(batch[0, BinaryArray([1, 0])].value, VALUES[[1, 0]])


def test_iteration_keeps_the_kind():
    rows = list(BinaryArray(np.stack([VALUES, -VALUES])))
    assert [type(row) for row in rows] == [BinaryArray, BinaryArray]
    np.testing.assert_array_equal(rows[1].value, -VALUES)
    assert 2.0 in BinaryArray(VALUES)


def test_hash_is_identity_and_equality_elementwise():
    one, other = BinaryArray(VALUES), BinaryArray(VALUES)
    assert len({one, other, one}) == 2
    assert (one == other).all()


def test_repr_shows_kind_and_value():
    assert repr(BinaryArray([True, False])) == 'BinaryArray(Array([ True, False], dtype=bool))'


@pytest.mark.parametrize(
    'make', [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
@pytest.mark.parametrize(('kind', 'counts'), KINDS)
def test_copies_and_pickles(make, kind, counts):
    events = kind(VALUES)
    again = make(events)
    assert type(again) is kind
    assert again is not events
    np.testing.assert_allclose(again @ DENSE, counts @ DENSE)


# As a pytree


def test_one_leaf_with_a_name():
    ((path, leaf),), _ = jax.tree_util.tree_flatten_with_path(BinaryArray(VALUES))
    assert jax.tree_util.keystr(path) == '.value'
    np.testing.assert_array_equal(leaf, VALUES)


@pytest.mark.parametrize('leaf', [object(), None, 1.0, jax.ShapeDtypeStruct((2,), np.float32)])
def test_any_leaf_can_be_put_back(leaf):
    events = jax.tree.unflatten(jax.tree.structure(BinaryArray(VALUES)), [leaf])
    assert type(events) is BinaryArray
    assert events.value is leaf
    assert repr(leaf) in repr(events)
    assert events.shape == getattr(leaf, 'shape', ())


@pytest.mark.parametrize(('kind', 'counts'), KINDS)
def test_transformations_carry_events(kind, counts):
    events, dense, want = kind(VALUES), jnp.asarray(DENSE), counts @ DENSE
    both = kind(np.stack([VALUES, VALUES]))
    np.testing.assert_allclose(jax.jit(lambda e, m: e @ m)(events, dense), want)
    np.testing.assert_allclose(jax.jit(lambda x: kind(x) @ dense)(VALUES), want)
    np.testing.assert_allclose(jax.vmap(lambda e: e @ dense)(both), [want, want])
    carry, outs = jax.lax.scan(lambda c, e: (c.with_value(e), c @ dense), events, both)
    assert type(carry) is kind
    np.testing.assert_allclose(outs, [want, want])
    assert type(jax.lax.cond(True, lambda e: e, lambda e: e[::-1], events)) is kind
    assert jax.eval_shape(lambda e: e @ dense, events).shape == (3,)
    assert jax.block_until_ready(events) is events


@pytest.mark.parametrize(('kind', 'counts'), KINDS)
def test_gradient_towards_events_is_straight_through(kind, counts):
    want = DENSE.sum(1)
    by_value = jax.grad(lambda x: (kind(x) @ jnp.asarray(DENSE)).sum())(jnp.asarray(VALUES))
    np.testing.assert_allclose(by_value, want)
    by_events = jax.grad(lambda e: (e @ jnp.asarray(DENSE)).sum())(kind(VALUES))
    assert type(by_events) is kind
    np.testing.assert_allclose(by_events.value, want)
