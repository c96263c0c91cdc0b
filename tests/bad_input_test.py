# SPDX-License-Identifier: Apache-2.0
"""Every wrong operand is refused at the door, by name, with what was expected and what to do."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

W = np.ones(5, np.float32)
COL = np.array([2, 0, 2, 1, 0])
PTR = np.array([0, 3, 3, 5])
ROW = np.repeat(np.arange(3), np.diff(PTR))
TABLE = np.array([[0, 1], [1, 2], [2, 0]])
X = np.ones(3, np.float32)
SHAPE = {'shape': (3, 3)}

TEXTS = {
    'long input': (
        lambda: be.csrmv(W, COL, PTR, np.ones(4), **SHAPE),
        be.ShapeError,
        """\
csrmv: the input does not fit `shape`.
    expected: 3 entries, because transpose=False and shape=(3, 3), in one axis, \
or two: (entries, batch)
    got:      shape (4,)
    remedy:   give one entry for each column""",
    ),
    'few weights': (
        lambda: be.csrmv(W[:4], COL, PTR, X, **SHAPE),
        be.ShapeError,
        """\
csrmv: `data` does not fit the structure.
    expected: one weight, or 5: one for every connection
    got:      shape (4,)
    remedy:   give one weight for all connections or one for each""",
    ),
    'fractional indices': (
        lambda: be.csrmv(W, COL + 0.5, PTR, X, **SHAPE),
        be.DtypeError,
        """\
csrmv: `indices` does not hold integers.
    expected: an integer dtype
    got:      float64
    remedy:   convert it with astype(int32) if every value is a whole number""",
    ),
    'column past the end': (
        lambda: be.fcnmv(np.ones((3, 2)), TABLE + 1, X, **SHAPE),
        be.IndexRangeError,
        """\
fcnmv: `indices` points outside the matrix.
    expected: values from 0 to 2
    got:      values from 1 to 3""",
    ),
    'complex events': (
        lambda: be.binary_csrmv(W, COL, PTR, X * 1j, **SHAPE),
        be.DtypeError,
        """\
binary_csrmv: complex numbers are no events.
    expected: truth values, integers or floats
    got:      complex64
    remedy:   compare them first, or multiply without BinaryArray""",
    ),
    'odd shape': (
        lambda: be.coomv(W, ROW, COL, X, shape=(3,)),
        be.ShapeError,
        """\
coomv: `shape` is not the shape of a matrix.
    expected: two non-negative ints (rows, columns)
    got:      (3,)""",
    ),
    'unknown backend': (
        lambda: be.csrmv(W, COL, PTR, X, **SHAPE, backend='fortran'),
        be.KernelNotAvailableError,
        """\
csrmv: backend 'fortran' is not available.
    expected: one of 'numba', 'jax_raw', 'cuda_raw', 'cusparse'
    got:      backend='fortran'
    remedy:   leave `backend` out, or pass one of these""",
    ),
}


@pytest.mark.parametrize('what', sorted(TEXTS))
def test_texts_in_full(what):
    call, kind, text = TEXTS[what]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


def _offsets(*ptr):
    return lambda: be.CSR((W, COL, np.array(ptr)), **SHAPE)


REFUSED = {
    'weights: too many': (lambda: be.csrmv(np.ones(7), COL, PTR, X, **SHAPE), ValueError),
    'weights: none': (lambda: be.csrmv(np.ones(0), COL, PTR, X, **SHAPE), ValueError),
    'weights: nothing': (lambda: be.csrmv(None, COL, PTR, X, **SHAPE), TypeError),
    'weights: words': (lambda: be.csrmv(['a'] * 5, COL, PTR, X, **SHAPE), TypeError),
    'weights: ragged': (lambda: be.csrmv([[1], [1, 2]], COL, PTR, X, **SHAPE), TypeError),
    'weights: dates': (lambda: be.csrmv(W.astype('M8[s]'), COL, PTR, X, **SHAPE), TypeError),
    'weights: records': (lambda: be.csrmv(np.zeros(5, 'i4,f4'), COL, PTR, X, **SHAPE), TypeError),
    'input: scalar': (lambda: be.csrmv(W, COL, PTR, 1.0, **SHAPE), ValueError),
    'input: three axes': (lambda: be.csrmm(W, COL, PTR, np.ones((3, 2, 2)), **SHAPE), ValueError),
    'input: transposed': (
        lambda: be.csrmv(W, COL, np.array([0, 5]), X, shape=(1, 3), transpose=True),
        ValueError,
    ),
    'input: object': (lambda: be.csrmv(W, COL, PTR, object(), **SHAPE), TypeError),
    'events: too few': (lambda: be.binary_csrmv(W, COL, PTR, X[:2] > 0, **SHAPE), ValueError),
    'shape: negative': (lambda: be.csrmv(W, COL, PTR, X, shape=(-3, 3)), ValueError),
    'shape: fractional': (lambda: be.csrmv(W, COL, PTR, X, shape=(3.0, 3)), ValueError),
    'shape: a number': (lambda: be.csrmv(W, COL, PTR, X, shape=3), ValueError),
    'shape: too low': (lambda: be.csrmv(W, COL, PTR, X, shape=(2, 3)), ValueError),
    'indices: two axes': (lambda: be.csrmv(W, COL[None], PTR, X, **SHAPE), ValueError),
    'indices: negative': (lambda: be.csrmv(W, COL - 1, PTR, X, **SHAPE), IndexError),
    'indices: past the end': (lambda: be.csrmv(W, COL + 1, PTR, X, **SHAPE), ValueError),
    'indices: 64 bits': (lambda: be.csrmv(W, COL + 2**32, PTR, X, **SHAPE), ValueError),
    'indices: truth values': (lambda: be.csrmv(W, COL > 0, PTR, X, **SHAPE), TypeError),
    'offsets: go down': (_offsets(0, 3, 2, 5), IndexError),
    'offsets: start late': (_offsets(1, 3, 3, 5), IndexError),
    'offsets: end early': (_offsets(0, 3, 3, 4), IndexError),
    'offsets: end late': (_offsets(0, 3, 3, 6), IndexError),
    'offsets: negative': (_offsets(-1, 3, 3, 5), IndexError),
    'offsets: too few': (_offsets(0, 3, 5), ValueError),
    'offsets: too many': (_offsets(0, 3, 3, 5, 5), ValueError),
    'coordinates: of two lengths': (lambda: be.coomv(W, ROW, COL[:3], X, **SHAPE), ValueError),
    'coordinates: negative': (lambda: be.coomv(W, ROW - 1, COL, X, **SHAPE), IndexError),
    'coordinates: past the end': (lambda: be.coomv(W, ROW, COL + 1, X, **SHAPE), IndexError),
    'table: one axis': (lambda: be.fcnmv(W, COL, X, **SHAPE), ValueError),
    'table: too few rows': (lambda: be.fcnmv(np.ones(4), TABLE[:2], X, **SHAPE), ValueError),
    'table: negative': (lambda: be.fcnmv(np.ones((3, 2)), TABLE - 1, X, **SHAPE), IndexError),
    'dense: one axis': (lambda: be.Dense(X), ValueError),
    'dense: another shape': (lambda: be.Dense(np.ones((2, 3)), shape=(3, 2)), ValueError),
    'matrix: both events': (
        lambda: be.BinaryArray(X) @ be.BinaryArray(X),
        (TypeError, ValueError, be.BrainEventError),
    ),
    'backend: of another platform': (
        lambda: be.csrmv(W, COL, PTR, X, **SHAPE, backend='cuda_raw'),
        be.KernelNotAvailableError,
    ),
    'backend: no name': (lambda: be.csrmv(W, COL, PTR, X, **SHAPE, backend=3), TypeError),
    'unit: of an index': (
        lambda: be.csrmv(W, COL * u.mV, PTR, X, **SHAPE),
        be.UnitError,
    ),
}


@pytest.mark.parametrize('what', sorted(REFUSED))
def test_refused_at_the_door(what):
    call, kinds = REFUSED[what]
    with pytest.raises(kinds) as caught:
        call()
    assert isinstance(caught.value, be.BrainEventError)
    text = str(caught.value)
    assert 'expected' in text and 'got' in text


TRACED = {
    'weights': lambda w, x: be.csrmv(w[:4], COL, PTR, x, **SHAPE),
    'input': lambda w, x: be.csrmv(w, COL, PTR, x[:2], **SHAPE),
    'offsets': lambda w, x: be.csrmv(w, COL, jnp.arange(3), x, **SHAPE),
    'table': lambda w, x: be.fcnmv(w, TABLE, x, **SHAPE),
}


@pytest.mark.parametrize('what', sorted(TRACED))
def test_shapes_are_checked_while_tracing(what):
    for transform in (jax.jit, jax.make_jaxpr, lambda f: lambda w, x: jax.eval_shape(f, w, x)):
        with pytest.raises(be.ShapeError):
            transform(TRACED[what])(jnp.asarray(W), jnp.asarray(X))


def test_values_are_checked_again_after_the_shape_changed():
    """What was found sound for one shape may not fit another."""
    col, ptr = jnp.asarray(COL, jnp.int32), jnp.asarray(PTR, jnp.int32)
    be.csrmv(W, col, ptr, X, **SHAPE)
    with pytest.raises(be.IndexRangeError):
        be.csrmv(W, col, ptr, X[:2], shape=(3, 2))


def test_later_writes_of_the_caller_do_not_arrive():
    weights, cols, n = np.ones(4096, np.float32), np.arange(4096, dtype=np.int32), 4096
    mat = be.CSR((weights, cols, np.arange(n + 1, dtype=np.int32)), shape=(n, n))
    weights[:], cols[:] = 7, 10**9
    np.testing.assert_array_equal(mat @ jnp.ones(n), np.ones(n))
