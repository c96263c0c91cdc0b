# SPDX-License-Identifier: Apache-2.0
"""Whatever matrix, operand and chain of transformations one thinks of: a dense program agrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brainevent as be

# Examples are the same in every run, and compile time is nobody's fault.
drawn = settings(
    deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck)
)
EIGHTHS = st.integers(-16, 16).map(lambda k: k / 8)
FORMATS = ('csr', 'csc', 'coo', 'mirror', 'fixed pre', 'fixed post', 'dense')
KINDS = ('plain', 'binary', 'masked')


@st.composite
def structures(draw, low=0):
    """Draw a shape and edges: repeated, in any order, possibly none."""
    shape = draw(st.integers(low, 6)), draw(st.integers(low, 6))
    count = draw(st.integers(low, 12)) if 0 not in shape else 0
    ends = [
        draw(st.lists(st.integers(0, max(k - 1, 0)), min_size=count, max_size=count)) for k in shape
    ]
    return shape, np.array(ends[0], np.int32), np.array(ends[1], np.int32)


class Matrix:
    """A matrix in one of the formats and its dense array, as functions of weights."""

    def __init__(self, structure, fmt, backend):
        self.shape, row, col = structure
        self.fmt, self.backend = fmt, backend
        if fmt.startswith('fixed'):
            rows, cols = self.shape if fmt == 'fixed pre' else self.shape[::-1]
            width = 0 if 0 in self.shape else 1 + row.size % 3
            table = (np.arange(rows * width).reshape(rows, width) * 7 + row.size) % max(cols, 1)
            line = np.repeat(np.arange(rows), width)
            row, col = (line, table.reshape(-1))[:: 1 if fmt == 'fixed pre' else -1]
            self.table = table.astype(np.int32)
        elif fmt == 'dense':
            row, col = np.indices(self.shape).reshape(2, -1)
        else:
            order = np.lexsort((row,)) if fmt in ('csr', 'mirror') else np.arange(row.size)
            order = np.lexsort((col,)) if fmt == 'csc' else order
            row, col = row[order], col[order]
        self.row, self.col = row, col

    def sparse(self, w):
        common = {'shape': self.shape, 'backend': self.backend}
        if self.fmt == 'coo':
            return be.COO((w, self.row, self.col), **common)
        if self.fmt == 'dense':
            return be.Dense(jnp.broadcast_to(w, (self.row.size,)).reshape(self.shape))
        if self.fmt.startswith('fixed'):
            kind = be.FixedNumPerPre if self.fmt == 'fixed pre' else be.FixedNumPerPost
            return kind((w if w.size == 1 else w.reshape(self.table.shape), self.table), **common)
        if self.fmt == 'csc':
            ptr = np.searchsorted(self.col, np.arange(self.shape[1] + 1))
            return be.CSC((w, self.row, ptr), **common)
        ptr = np.searchsorted(self.row, np.arange(self.shape[0] + 1))
        mat = be.CSR((w, self.col, ptr), **common)
        return mat.with_mirror() if self.fmt == 'mirror' else mat

    def dense(self, w):
        w = jnp.broadcast_to(w, (self.row.size,))
        return jnp.zeros(self.shape, w.dtype).at[self.row, self.col].add(w)


def wrapped(kind, x):
    return {'plain': jnp.asarray, 'binary': be.BinaryArray, 'masked': be.MaskedFloat}[kind](x)


def counted(kind, x):
    """Return what the elements of an operand count for, straight through for gradients."""
    if kind != 'binary':
        return x
    on = (x > 0).astype(x.dtype)
    return x + jax.lax.stop_gradient(on - x)


@st.composite
def calls(draw, low=0):
    """Draw a matrix, a side, a kind and a rank of the operand, and numbers for them."""
    structure = draw(structures(low))
    fmt, kind = draw(st.sampled_from(FORMATS)), draw(st.sampled_from(KINDS))
    mat = Matrix(structure, fmt, draw(st.sampled_from(['jax_raw', 'jax_raw', 'numba'])))
    left, batch = draw(st.booleans()), draw(st.sampled_from([None, 0, 1, 3][:: 1 if low else -1]))
    length = mat.shape[0 if left else 1]
    lead = () if batch is None else (batch,)
    shape = (*lead, length) if left else (length, *lead)
    numbers = draw(st.lists(EIGHTHS, min_size=30, max_size=30))
    x = jnp.asarray(np.resize(numbers, shape), jnp.float32)
    one = draw(st.booleans())
    w = jnp.asarray(np.resize(numbers[::-1], 1 if one else mat.row.size), jnp.float32)

    def mine(w, x):
        m, v = mat.sparse(w), wrapped(kind, x)
        return v @ m if left else m @ v

    def want(w, x):
        d, v = mat.dense(w), counted(kind, x)
        return v @ d if left else d @ v

    return mine, want, w, x


# ---- transformations: each turns a function of (weights, input) into another one ---------------


def _halves(g, w, x):
    first = g(w, x)
    return jax.lax.scan(lambda c, s: (c + g(w, x * s), None), first, jnp.array([0.5, -1.0]))[0]


TRANSFORMATIONS = {
    'jit': jax.jit,
    'checkpoint': jax.checkpoint,
    'vmap input': lambda g: lambda w, x: jax.vmap(g, (None, 0))(w, jnp.stack([x, -x])),
    'vmap weights': lambda g: lambda w, x: jax.vmap(g, (0, None), -1)(jnp.stack([w, 2 * w]), x),
    'vmap both': lambda g: lambda w, x: jax.vmap(g)(jnp.stack([w, 1 - w]), jnp.stack([x, 2 * x])),
    'jvp': lambda g: lambda w, x: jax.jvp(g, (w, x), (w / 2, x + 1))[1],
    'linearize': lambda g: lambda w, x: jax.linearize(g, w, x)[1](1 - w, x / 2),
    'gradient of weights': lambda g: jax.grad(lambda w, x: (g(w, x) ** 2).sum()),
    'gradient of input': lambda g: jax.grad(lambda w, x: (g(w, x) ** 2).sum(), 1),
    'scan': lambda g: lambda w, x: _halves(g, w, x),
    'cond': lambda g: lambda w, x: jax.lax.cond(x.sum() > 0, g, lambda w, x: 2 * g(w, x), w, x),
}


@pytest.mark.parametrize('first', sorted(TRANSFORMATIONS))
@settings(drawn, max_examples=6)
@given(data=st.data())
def test_chains_of_transformations(first, data):
    mine, want, w, x = data.draw(calls(low=1))
    rest = st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), max_size=2)
    for name in [first, *data.draw(rest)]:
        mine, want = TRANSFORMATIONS[name](mine), TRANSFORMATIONS[name](want)
    expected = want(w, x)
    got = jax.jit(mine)(w, x)
    assert got.shape == expected.shape
    scale = float(jnp.abs(expected).max(initial=1))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * scale)


@drawn
@given(call=calls())
def test_products_of_anything_with_anything(call):
    mine, want, w, x = call
    got = mine(w, x)
    expected = want(w, x)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@settings(drawn, max_examples=25)
@given(
    structure=structures(1),
    data=st.sampled_from(['int8', 'int32', 'float16', 'bfloat16', 'float32', 'complex64']),
    other=st.sampled_from(['bool', 'uint8', 'int32', 'float16', 'float32', 'complex64']),
    kind=st.sampled_from(KINDS),
)
def test_products_in_any_pair_of_dtypes(structure, data, other, kind):
    mat = Matrix(structure, 'coo', 'jax_raw')
    w = jnp.ones(mat.row.size, data)
    x = (jnp.arange(mat.shape[1]) % 3).astype(other)
    if kind == 'binary' and other == 'complex64':
        with pytest.raises(be.DtypeError, match='complex numbers are no events'):
            mat.sparse(w) @ be.BinaryArray(x)
        return
    got = np.asarray(mat.sparse(w) @ wrapped(kind, x)).astype(complex)
    numbers = np.asarray(x).astype(complex).real
    counts = (numbers > 0).astype(float) if kind == 'binary' else numbers
    np.testing.assert_allclose(got, np.asarray(mat.dense(jnp.ones(w.size))) @ counts)


@settings(drawn, max_examples=25)
@given(structure=structures(), fmt=st.sampled_from(FORMATS), seed=st.integers(0, 99))
def test_adjoints_are_adjoint(structure, fmt, seed):
    """``<y, A x> = <A' y, x>``, and the gradient of the weights is the same form once more."""
    mat = Matrix(structure, fmt, 'jax_raw')
    rng = np.random.default_rng(seed)
    w, x, y = (jnp.asarray(rng.normal(size=k), jnp.float32)
               for k in (mat.row.size, mat.shape[1], mat.shape[0]))  # fmt: skip
    form, (of_w, of_x) = jax.value_and_grad(lambda w, x: y @ (mat.sparse(w) @ x), (0, 1))(w, x)
    for other in (of_w @ w, of_x @ x, (y @ mat.sparse(w)) @ x, (mat.sparse(w).T @ y) @ x):
        np.testing.assert_allclose(form, other, rtol=1e-4, atol=1e-4)
