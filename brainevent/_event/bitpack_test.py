# SPDX-License-Identifier: Apache-2.0
"""Words hold their bits where they should, and bit-packed events multiply as any others."""

import copy
import pickle

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._error import DtypeError, MathError, OptionError
from brainevent._event.bitpack import bitunpack

VALUES = np.array([2.0, 0.0, -1.0, 0.5, np.nan], np.float32)
COUNTS = np.array([1.0, 0.0, 0.0, 1.0, 0.0], np.float32)
DENSE = np.arange(15, dtype=np.float32).reshape(5, 3)


def _packed(rows):
    """Pack the last axis as numpy does it."""
    pad = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, -rows.shape[-1] % 32)])
    return np.packbits(pad, axis=-1, bitorder='little').view('<u4')


@pytest.mark.parametrize('n', [0, 1, 32, 33])
def test_bits_are_where_numpy_puts_them(n):
    rows = np.random.default_rng(n).random((3, n)) < 0.5
    got = be.bitpack(jnp.asarray(rows), 1)
    assert got.dtype == jnp.uint32
    np.testing.assert_array_equal(got, _packed(rows))
    np.testing.assert_array_equal(be.bitpack(rows, -1), got)
    np.testing.assert_array_equal(be.bitpack(rows.T, 0), got.T)
    np.testing.assert_array_equal(bitunpack(got, n), rows)
    np.testing.assert_array_equal(bitunpack(got.T, n, 0), rows.T)


@pytest.mark.parametrize('dtype', ['bool', 'uint8', 'int32', 'float16', 'float32', 'complex64'])
def test_what_is_not_zero_is_packed_as_true(dtype):
    x = jnp.array([0, 1, 1, 0]).astype(dtype)
    np.testing.assert_array_equal(be.bitpack(x, 0), [6])
    np.testing.assert_array_equal(be.bitpack(u.Quantity(x, unit=u.mV), 0), [6])
    np.testing.assert_array_equal(be.bitpack(be.BinaryArray(x), 0), [6])


def test_packing_is_traced_and_batched():
    rows = np.random.default_rng(0).random((2, 70)) < 0.5
    want = _packed(rows)
    np.testing.assert_array_equal(jax.jit(lambda x: be.bitpack(x, 1))(rows), want)
    np.testing.assert_array_equal(jax.vmap(lambda x: be.bitpack(x, 0))(rows), want)
    np.testing.assert_array_equal(be.bitpack([1, 0, 1], 0), [5])


@pytest.mark.parametrize('axis', [2, -3, 1.0, None])
def test_a_wrong_axis_is_refused(axis):
    with pytest.raises(OptionError, match='there is no such axis'):
        be.bitpack(np.ones((2, 2)), axis)


def test_error_texts():
    with pytest.raises(ValueError) as info:
        be.bitpack(np.ones(3), 1)
    assert str(info.value) == (
        'bitpack: there is no such axis.\n'
        '    expected: an int from -1 to 0\n'
        '    got:      axis=1, and an array of shape (3,)'
    )
    with pytest.raises(DtypeError):
        be.bitpack('text', 0)


# Events


def test_only_events_are_packed():
    """Unlike in `bitpack`, a negative number or NaN is none."""
    events = be.BitPackedBinary(np.stack([VALUES, -VALUES]))
    assert [p.shape for p in events.packed] == [(1, 5), (2, 1)]
    np.testing.assert_array_equal(events.packed[1], [[0b01001], [0b00100]])
    np.testing.assert_array_equal(events.packed[0], [[1, 0, 2, 1, 0]])
    assert (events.original_shape, events.shape, events.ndim) == ((2, 5), (2, 5), 2)


@pytest.mark.parametrize('dtype', ['bool', 'uint8', 'int8', 'float16', 'float32'])
def test_products_on_either_side(dtype):
    values = np.nan_to_num(VALUES * 2, nan=0 if dtype != 'float32' else np.nan)
    events = be.BitPackedBinary(jnp.asarray(values > 0 if dtype[0] in 'bu' else values, dtype))
    for matrix in (DENSE, jnp.asarray(DENSE), be.Dense(DENSE), be.CSR.fromdense(DENSE)):
        np.testing.assert_allclose(events @ matrix, COUNTS @ DENSE)
        np.testing.assert_allclose(matrix.T @ events, COUNTS @ DENSE)
    np.testing.assert_allclose(events.dot(DENSE), COUNTS @ DENSE)
    batch = be.BitPackedBinary(np.stack([VALUES, -VALUES]))
    counts = np.stack([VALUES > 0, -VALUES > 0]).astype(np.float32)
    np.testing.assert_allclose(batch @ be.CSC.fromdense(DENSE), counts @ DENSE)
    np.testing.assert_allclose(DENSE.T @ batch.T, DENSE.T @ counts.T)


def test_units_pass_through():
    got = be.BitPackedBinary(VALUES) @ be.CSR.fromdense(DENSE * u.nA)
    assert u.get_unit(got) == u.nA


def test_the_kind_is_kept():
    events = be.BinaryArray(np.stack([VALUES, VALUES])).bitpack()
    assert type(events) is be.BitPackedBinary
    for other in (events.T, events.transpose(1, 0), events.transpose(), events[0], events[:, :2]):
        assert type(other) is be.BitPackedBinary
    assert (events.T.shape, events.transpose(0, 1).shape) == ((5, 2), (2, 5))
    assert type(events.with_value([1.0, 0.0])) is be.BitPackedBinary
    assert isinstance(events, be.EventRepresentation)
    np.testing.assert_array_equal(events + 1.0, np.stack([VALUES, VALUES]) + 1)
    np.testing.assert_array_equal(events[0].counts, COUNTS)


@pytest.mark.parametrize(
    'make', [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_and_pickles(make):
    again = make(be.BitPackedBinary(VALUES))
    np.testing.assert_array_equal(again.packed[0], [9])


def test_transformations_carry_events():
    A = be.CSR.fromdense(DENSE)
    rows = np.stack([VALUES, -VALUES])
    want = (rows > 0) @ DENSE
    events = be.BitPackedBinary(rows)
    assert len(jax.tree.leaves(events)) == 1
    np.testing.assert_allclose(jax.jit(lambda e, A: e @ A)(events, A), want)
    np.testing.assert_allclose(jax.vmap(lambda e: e @ A)(events), want)
    _, outs = jax.lax.scan(lambda c, e: (c, e @ A), 0, events)
    np.testing.assert_allclose(outs, want)
    words = jax.jit(lambda e: e.packed)(be.BitPackedBinary(VALUES))
    np.testing.assert_array_equal(words[0], [9])


def test_gradient_towards_events_is_straight_through():
    A = be.CSR.fromdense(DENSE)
    got = jax.grad(lambda e: (e @ A).sum())(be.BitPackedBinary(VALUES))
    assert type(got) is be.BitPackedBinary
    np.testing.assert_allclose(got.value, DENSE.sum(1))
    got = jax.grad(lambda x: (DENSE.T @ be.BitPackedBinary(x)).sum())(jnp.asarray(VALUES))
    np.testing.assert_allclose(got, DENSE.sum(1))


def test_any_rank_can_be_packed_and_two_multiplied():
    events = be.BitPackedBinary(np.ones((2, 2, 2)))
    assert len(events.packed) == 3
    with pytest.raises(MathError, match='wrong rank'):
        events @ DENSE
