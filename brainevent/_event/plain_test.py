# SPDX-License-Identifier: Apache-2.0
"""An event array as an ordinary array, next to the same thing done to its values."""

import operator

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._event.arrays import BinaryArray, MaskedFloat

VALUES = np.array([2.0, 0.0, -1.0, 0.5], np.float32)
OTHER = np.array([1.0, 2.0, 3.0, 0.5], np.float32)

WAYS = [pytest.param(lambda f: f, id='eager'), pytest.param(jax.jit, id='jit')]
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def same(got, want):
    assert isinstance(got, jax.Array | tuple)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize('op', BINARY)
@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('wrap', [np.asarray, jnp.asarray, MaskedFloat])
def test_operators_with_arrays_on_either_side(op, way, wrap):
    events, other = BinaryArray(VALUES), wrap(OTHER)
    a, b = jnp.asarray(VALUES), jnp.asarray(OTHER)
    same(way(lambda e: op(e, other))(events), op(a, b))
    same(way(lambda e: op(other, e))(events), op(b, a))


@pytest.mark.parametrize('op', BINARY)
def test_operators_with_numbers_on_either_side(op):
    values = jnp.asarray(VALUES)
    for number in (2, 2.0, np.float32(2.0)):
        same(op(BinaryArray(VALUES), number), op(values, 2.0))
        same(op(number, BinaryArray(VALUES)), op(2.0, values))


@pytest.mark.parametrize('op', BITS)
def test_operators_on_bits(op):
    a, b = np.array([1, 2, 3]), np.array([3, 1, 0])
    same(op(BinaryArray(a), b), op(a, b))
    same(op(jnp.asarray(b), BinaryArray(a)), op(b, a))
    same(divmod(BinaryArray(a), 2), divmod(a, 2))
    same(divmod(7, BinaryArray(a)), divmod(7, a))


@pytest.mark.parametrize('way', WAYS)
def test_operators_with_quantities_on_either_side(way):
    events, g = BinaryArray(VALUES), jnp.asarray(OTHER)
    for op in (operator.mul, operator.truediv):
        got = way(lambda e, g, op=op: op(g * u.mS, e + 3.0))(events, g)
        assert u.get_unit(got) == u.mS
        same(u.get_mantissa(got), op(OTHER, VALUES + 3))
    product = way(lambda e, g: e * (g * u.mS))(events, g)
    assert u.get_unit(product) == u.mS
    same(u.get_mantissa(product), VALUES * OTHER)
    for op in (operator.add, operator.sub):
        same(
            u.get_mantissa(way(lambda e, g, op=op: op(u.Quantity(g), e))(events, g)),
            op(OTHER, VALUES),
        )
        same(
            u.get_mantissa(way(lambda e, g, op=op: op(e, u.Quantity(g)))(events, g)),
            op(VALUES, OTHER),
        )
    same(way(lambda e, g: u.Quantity(g) < e)(events, g), OTHER < VALUES)
    with pytest.raises(u.UnitMismatchError):
        events + g * u.mS


def test_adding_events_to_a_conductance():
    events = BinaryArray(VALUES)
    g = jnp.asarray(OTHER)
    g += events
    same(g, OTHER + VALUES)

    def step(g, e):
        g += e
        return g, jnp.where(e != 0, 1.0, 0.0)

    g, spikes = jax.lax.scan(step, jnp.asarray(OTHER), BinaryArray(np.stack([VALUES, VALUES])))
    same(g, OTHER + 2 * VALUES)
    same(spikes, np.stack([VALUES != 0, VALUES != 0]))


def test_unary_operators_and_numbers():
    events = BinaryArray(VALUES)
    same(-events, -VALUES)
    same(+events, VALUES)
    same(abs(events), abs(VALUES))
    same(~BinaryArray(VALUES > 0), VALUES <= 0)
    one = BinaryArray(3)
    assert (int(one), float(one), complex(one), bool(one)) == (3, 3.0, 3 + 0j, True)
    assert [10, 11, 12, 13][one] == 13
    with pytest.raises(ValueError, match='truth value'):
        bool(events)


@pytest.mark.parametrize(
    'name', ['sum', 'prod', 'mean', 'std', 'var', 'any', 'all', 'max', 'min', 'argmax', 'argmin']
)
def test_reductions(name):
    batch = np.stack([VALUES, OTHER])
    same(getattr(BinaryArray(batch), name)(), getattr(batch, name)())
    same(getattr(BinaryArray(batch), name)(axis=1), getattr(batch, name)(axis=1))


def test_shape_changing_methods_return_plain_arrays():
    batch = np.stack([VALUES, OTHER])
    events = BinaryArray(batch)
    same(events.T, batch.T)
    same(events.mT, batch.T)
    same(events.transpose(), batch.T)
    same(events.transpose(1, 0), batch.T)
    same(events.swapaxes(0, 1), batch.T)
    same(events.reshape(4, 2), batch.reshape(4, 2))
    same(events.ravel(), batch.ravel())
    same(events.flatten(), batch.ravel())
    same(events[None].squeeze(), batch)
    same(events.repeat(2, axis=0), batch.repeat(2, axis=0))
    same(events.take(np.array([1]), axis=0), batch.take([1], axis=0))


def test_other_array_methods():
    events = BinaryArray(VALUES)
    assert events.astype(bool).dtype == bool
    same(events.clip(0, 1), VALUES.clip(0, 1))
    same(events.round(), VALUES.round())
    same(events.cumsum(), VALUES.cumsum())
    same(events.cumprod(), VALUES.cumprod())
    same(events.argsort(), VALUES.argsort(kind='stable'))
    same(events.nonzero(), VALUES.nonzero())
    same(events.real, VALUES)
    same(events.imag, np.zeros(4))
    same(events.at[0].set(7.0), [7.0, 0.0, -1.0, 0.5])
    same(jnp.asarray(OTHER).sum(where=events.astype(bool)), OTHER[VALUES != 0].sum())
    assert events.tolist() == VALUES.tolist()
    assert events[3].item() == 0.5
    same(events.max(initial=BinaryArray(5.0).value), 5.0)
