# SPDX-License-Identifier: Apache-2.0
"""Random matrices, operations and transformations, each beside a dense program of the same meaning.

`programs` draws a product and a chain of transformations; `operations` draws one operation of any
kind; `broken` draws a matrix whose leaves were replaced. Tests and ``tools/fuzz.py`` share them.
"""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import note
from hypothesis import strategies as st

import brainevent as be

EIGHTHS = st.integers(-16, 16).map(lambda k: k / 8)
STORED = ('csr', 'csc', 'coo', 'fixed pre', 'fixed post', 'dense')
MIRRORED = ('csr mirror', 'csc mirror', 'coo mirror', 'fixed pre mirror')
DRAWN = tuple(f'{kind} {letter}' for kind in ('Scalar', 'Normal', 'Uniform') for letter in 'RC')
FORMATS = STORED + MIRRORED
KINDS = ('plain', 'binary', 'masked', 'compact', 'packed')
IDS = ('int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', '>i4')
WEIGHTS = ('float32', 'float32', 'float16', 'bfloat16', 'int32', 'complex64')
BACKENDS = ('jax_raw', 'jax_raw', 'numba')
TOLERANCE = {'float16': 1e-2, 'bfloat16': 6e-2, 'complex64': 1e-5}  # float32: 1e-5 as well


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

    def __init__(self, structure, fmt, backend, ids='int32'):
        self.shape, row, col = structure
        self.fmt, self.mirror = fmt.removesuffix(' mirror'), fmt.endswith('mirror')
        self.backend, self.ids = backend, ids
        if self.fmt.startswith('fixed'):
            rows, cols = self.shape if self.fmt == 'fixed pre' else self.shape[::-1]
            width = 0 if 0 in self.shape else 1 + row.size % 3
            table = (np.arange(rows * width).reshape(rows, width) * 7 + row.size) % max(cols, 1)
            line = np.repeat(np.arange(rows), width)
            row, col = (line, table.reshape(-1))[:: 1 if self.fmt == 'fixed pre' else -1]
            self.table = table.astype(ids)
        elif self.fmt == 'dense':
            row, col = np.indices(self.shape).reshape(2, -1)
        elif self.fmt != 'coo':
            order = np.argsort(row if self.fmt == 'csr' else col, kind='stable')
            row, col = row[order], col[order]
        self.row, self.col = row, col
        self.size = row.size

    def __repr__(self):
        """Show what the matrix is made of."""
        mirror = ' mirror' * self.mirror
        return (
            f'{self.fmt}{mirror} {self.shape}, rows {self.row.tolist()}, cols {self.col.tolist()}, '
            f'ids {self.ids}, {self.backend}'
        )

    def sparse(self, w):
        """Return the matrix with some weights, one for all or one each."""
        common = {'shape': self.shape, 'backend': self.backend}
        row, col = self.row.astype(self.ids), self.col.astype(self.ids)
        if self.fmt == 'coo':
            mat = be.COO((w, row, col), **common)
        elif self.fmt == 'dense':
            return be.Dense(
                jnp.broadcast_to(w, (self.row.size,)).reshape(self.shape), backend=self.backend
            )
        elif self.fmt.startswith('fixed'):
            kind = be.FixedNumPerPre if self.fmt == 'fixed pre' else be.FixedNumPerPost
            mat = kind((w if w.size == 1 else w.reshape(self.table.shape), self.table), **common)
        elif self.fmt == 'csc':
            ptr = np.searchsorted(self.col, np.arange(self.shape[1] + 1)).astype(self.ids)
            mat = be.CSC((w, row, ptr), **common)
        else:
            ptr = np.searchsorted(self.row, np.arange(self.shape[0] + 1)).astype(self.ids)
            mat = be.CSR((w, col, ptr), **common)
        return mat.with_mirror() if self.mirror else mat

    def dense(self, w):
        """Return the dense array with the same weights."""
        w = jnp.broadcast_to(w, (self.row.size,))
        return jnp.zeros(self.shape, w.dtype).at[self.row, self.col].add(w)

    def order(self, w):
        """Return weights of the entries as the matrix stores them, one each."""
        return jnp.broadcast_to(w, (self.row.size,)).reshape(self.sparse(w).data.shape)


class DrawnMatrix:
    """A matrix of just-in-time connectivity, and its dense array by its own pattern."""

    size = 2

    def __init__(self, shape, fmt, backend, prob, seed):
        kind, letter = fmt.split()
        self.shape, self.kind, self.backend = shape, kind, backend
        self.cls = getattr(be, f'JITC{kind}{letter}')
        self.options = {'prob': prob, 'seed': seed, 'shape': shape, 'corder': bool(seed % 2)}
        unit = self._make('jax_raw', jnp.zeros(()), jnp.ones(()))
        self.noise = np.asarray(unit.todense())
        self.pattern = np.asarray(self._make('jax_raw', jnp.ones(()), jnp.zeros(())).todense())

    def __repr__(self):
        """Show what the matrix is made of."""
        return f'{self.cls.__name__} {self.options}, {self.backend}'

    def _make(self, backend, first, second):
        numbers = {
            'Scalar': (first,),
            'Normal': (first, second),
            'Uniform': (first, first + second),
        }[self.kind]
        return self.cls(*numbers, backend=backend, **self.options)

    def sparse(self, w):
        """Return the matrix: ``w`` holds the weight, mean or lower end, and root of a spread."""
        w = jnp.resize(w, 2)
        return self._make(self.backend, w[0], w[1] ** 2)

    def dense(self, w):
        """Return the dense array with the same weights."""
        w = jnp.resize(w, 2)
        return w[0] * self.pattern + (0 if self.kind == 'Scalar' else w[1] ** 2 * self.noise)


@st.composite
def matrices(draw, low=0, formats=FORMATS + DRAWN, ids=IDS):
    """Draw a matrix of any format."""
    structure = draw(structures(low))
    fmt, backend = draw(st.sampled_from(formats)), draw(st.sampled_from(BACKENDS))
    if fmt in DRAWN:
        prob = draw(st.sampled_from([0.0, 1e-3, 0.3, 0.7, 1.0]))
        return DrawnMatrix(structure[0], fmt, backend, prob, draw(st.integers(0, 99)))
    return Matrix(structure, fmt, backend, draw(st.sampled_from(ids)))


def wrapped(kind, x):
    """Return an operand of a kind, made of numbers."""
    if kind == 'compact':
        return be.CompactBinary.from_array(x > 0)
    if kind == 'packed':
        return be.BinaryArray(x > 0).bitpack()
    return {'plain': jnp.asarray, 'binary': be.BinaryArray, 'masked': be.MaskedFloat}[kind](x)


def counted(kind, x):
    """Return what the elements of an operand count for, straight through for gradients."""
    if kind in ('plain', 'masked'):
        return x
    on = (x > 0).astype(x.dtype)
    return on if kind in ('compact', 'packed') else x + jax.lax.stop_gradient(on - x)


def multiplied(mat, kind, left):
    """Return the product as a function of weights and input, and the dense one."""

    def mine(w, x):
        m, v = mat.sparse(w), wrapped(kind, x)
        return v @ m if left else m @ v

    def want(w, x):
        d, v = mat.dense(w), counted(kind, x)
        return v @ d if left else d @ v

    return mine, want


def described(x):
    """Show an array."""
    return f'{x.dtype} {np.asarray(x).tolist()}'


@st.composite
def numbers(draw, shape, dtype):
    """Draw an array of eighths, or of whole numbers."""
    drawn = draw(st.lists(EIGHTHS, min_size=30, max_size=30))
    x = np.resize(drawn, shape)
    return jnp.asarray(x * 8 if dtype == 'int32' else x).astype(dtype)


@st.composite
def calls(draw, low=0, formats=FORMATS, dtypes=('float32',), ids=('int32',), kinds=KINDS[:3]):
    """Draw a matrix, a side, a kind and a rank of the operand, and numbers for them."""
    mat = draw(matrices(low, formats, ids))
    dtype = draw(st.sampled_from(dtypes)) if isinstance(mat, Matrix) else 'float32'
    if dtype == 'complex64':
        kinds = tuple(kind for kind in kinds if kind in ('plain', 'compact', 'packed'))
    kind = draw(st.sampled_from(kinds))
    left, batch = draw(st.booleans()), draw(st.sampled_from([None, 0, 1, 3][:: 1 if low else -1]))
    length = mat.shape[0 if left else 1]
    batch = None if kind == 'compact' else batch
    lead = () if batch is None else (batch,)
    shape = (*lead, length) if left else (length, *lead)
    real = 'float32' if dtype == 'complex64' else dtype
    x = draw(numbers(shape, real))
    w = draw(numbers((1 if draw(st.booleans()) else mat.size,), dtype))
    mine, want = multiplied(mat, kind, left)
    note(f'{mat}; {kind} {"x @ A" if left else "A @ x"}; w {described(w)}, x {described(x)}')
    return mine, want, w, x


# ---- transformations: each turns a function of (weights, input) into another one ---------------


def _halves(g, w, x):
    first = g(w, x)
    pair = jnp.array([0.5, -1.0]).astype(x.dtype)
    return jax.lax.scan(lambda c, s: (c + g(w, x * s), None), first, pair)[0]


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
LINEAR = ('checkpoint', 'cond', 'jit', 'jvp', 'linearize', 'scan', 'vmap both', 'vmap input')
DISCRETE = ('cond', 'jit', 'scan', 'vmap both', 'vmap input', 'vmap weights')


def transformations(dtype, kinds=()):
    """Name what can be applied to a program of a dtype without overflow or missing derivatives."""
    if dtype == 'int32':
        return DISCRETE
    return LINEAR if dtype in ('float16', 'bfloat16', 'complex64') else tuple(TRANSFORMATIONS)


def assert_same(got, expected, dtype='float32', factor=1):
    """Compare a result with that of the dense program, by the largest number of the latter."""
    assert got.shape == expected.shape, f'{got.shape} instead of {expected.shape}'
    near = TOLERANCE.get(str(dtype), 1e-5) * factor
    got, expected = (np.asarray(x).astype(complex) for x in (got, expected))
    np.testing.assert_allclose(
        got, expected, rtol=10 * near, atol=near * max(1, np.abs(expected).max(initial=1))
    )


@st.composite
def programs(draw, most=3):
    """Draw a product of anything with anything, and a chain of transformations of it."""
    dtype = draw(st.sampled_from(WEIGHTS))
    mine, want, w, x = draw(calls(1, FORMATS + DRAWN, (dtype,), IDS, KINDS))
    names = draw(st.lists(st.sampled_from(transformations(w.dtype.name)), max_size=most))
    for name in names:
        mine, want = TRANSFORMATIONS[name](mine), TRANSFORMATIONS[name](want)
    return names, mine, want, w, x


# ---- operations other than products --------------------------------------------------------------


def _stored(mat, w, x, ids):
    """Return operations that need stored weights, one each."""
    m, n = mat.shape
    spikes, trace = jnp.resize(x, m) > 0, jnp.resize(x, n)
    far, pre = jnp.resize(x, n) > 0, jnp.resize(x, m)
    return {
        'update_on_pre': (
            lambda a: a.update_on_pre(spikes, trace).todense(),
            lambda: mat.dense(w + spikes[mat.row] * trace[mat.col]),
        ),
        'update_on_post': (
            lambda a: a.update_on_post(pre, far).todense(),
            lambda: mat.dense(w + far[mat.col] * pre[mat.row]),
        ),
        'clipped update': (
            lambda a: a.update_on_pre(spikes, trace, -1, 1).todense(),
            lambda: mat.dense(jnp.clip(w + spikes[mat.row] * trace[mat.col], -1, 1)),
        ),
        'dt2t': (lambda a: a.dt2t(pre, a.data), lambda: mat.order(w * pre[mat.row])),
        'dt2t_transposed': (
            lambda a: a.dt2t_transposed(trace, a.data),
            lambda: mat.order(w * trace[mat.col]),
        ),
    }


def all_operations(mat, w, x, ids):
    """Return operations by name: of the matrix, and of its dense array ``d``."""
    m, n = mat.shape
    d = mat.dense(w)
    rows, cols = ((ids % max(k, 1)).astype(ids.dtype) for k in (m, n))
    left, right = jnp.resize(x, m), jnp.resize(x, n)
    found = {
        'todense': (lambda a: a.todense(), lambda: d),
        'A.T.todense': (lambda a: a.T.todense(), lambda: d.T),
        'A.T @ x': (lambda a: a.T @ left, lambda: d.T @ left),
        'x @ A.T': (lambda a: right @ a.T, lambda: right @ d.T),
        '-A': (lambda a: (-a).todense(), lambda: -d),
        '2 * A': (lambda a: (2 * a).todense(), lambda: 2 * d),
        'A + A': (lambda a: (a + a) @ right, lambda: 2 * d @ right),
        'A - dense': (lambda a: a - d, lambda: d - d),
        'sum': (lambda a: a.sum(), lambda: d.sum()),
        'sum of columns': (lambda a: a.sum(0), lambda: d.sum(0)),
        'sum of rows': (lambda a: a.sum(1), lambda: d.sum(1)),
        'diagonal': (lambda a: a.diagonal(), lambda: jnp.diagonal(d)),
        'A @ A.T': (lambda a: a @ a.T.todense(), lambda: d @ d.T),
    }
    if 0 not in mat.shape:
        found |= {
            'A[rows]': (lambda a: a[rows], lambda: d[rows]),
            'A[:, cols]': (lambda a: a[:, cols], lambda: d[:, cols]),
            'A[rows, cols]': (lambda a: a[rows, cols], lambda: d[rows, cols]),
            'A[-1]': (lambda a: a[-1], lambda: d[-1]),
            'A[::2, 1:]': (lambda a: a[::2, 1:], lambda: d[::2, 1:]),
            'traced rows': (lambda a: jax.jit(lambda r: a[r])(jnp.asarray(rows)), lambda: d[rows]),
            'traced elements': (
                lambda a: jax.jit(lambda r, c: a[r, c])(*map(jnp.asarray, (rows, cols))),
                lambda: d[rows, cols],
            ),
            'slice_rows': (lambda a: a.slice_rows(rows).todense(), lambda: d[rows]),
        }
    for name in ('tocsr', 'tocsc', 'tocoo'):
        found |= {
            name: (lambda a, name=name: getattr(a, name)().todense(), lambda: d),
            f'{name} @ x': (lambda a, name=name: getattr(a, name)() @ right, lambda: d @ right),
            f'spikes @ {name}': (
                lambda a, name=name: be.BinaryArray(left > 0) @ getattr(a, name)(),
                lambda: (left > 0).astype(d.dtype) @ d,
            ),
        }
    if isinstance(mat, Matrix) and w.size == mat.size and w.size != 1:
        found |= _stored(mat, w, x, ids)
    return found


@st.composite
def operations(draw):
    """Draw a matrix and one operation: its name, the result, and that of the dense program."""
    mat = draw(matrices())
    dtype = draw(st.sampled_from(WEIGHTS[:-1])) if isinstance(mat, Matrix) else 'float32'
    w = draw(numbers((1 if draw(st.booleans()) else mat.size,), dtype))
    x = draw(numbers((7,), dtype))
    low, high = draw(st.sampled_from([(0, 5), (0, 127)]))
    ids = np.asarray(draw(st.lists(st.integers(low, high), max_size=5)), draw(st.sampled_from(IDS)))
    ids = ids.astype(ids.dtype.newbyteorder('='))
    found = all_operations(mat, w, x, ids)
    name = draw(st.sampled_from(sorted(found)))
    note(f'{mat}; {name}; w {described(w)}, x {described(x)}, ids {ids.dtype} {ids.tolist()}')
    return name, mat, w, *found[name]


# ---- matrices whose leaves were replaced ---------------------------------------------------------


CHANGES = {
    'cut': lambda x: x[: x.shape[0] // 2],
    'doubled': lambda x: jnp.concatenate([x, x]),
    'empty': lambda x: x[:0],
    'one': lambda x: x[:1],
    'one more': lambda x: jnp.concatenate([x, x[:1]]),
    'one more axis': lambda x: x[None].repeat(2, 0),
    'flat': lambda x: x.reshape(-1),
}


def belongs(a, mat, same):
    """Return whether leaves fit the shape of a matrix: ``same`` if none has another shape."""
    if same:
        return True
    if isinstance(mat, DrawnMatrix):
        numbers = [getattr(a, name) for name in (*a.names, 'prob')]
        return all(x.size == 1 for x in numbers) and a.seed.shape in ((), (1,), (2,))
    data = a.data
    if mat.fmt == 'dense':
        return data.shape == mat.shape
    one = data.size == 1 and data.ndim < 2
    if a.mirror:
        return (
            None  # lengths of the mirror follow from those of the entries: decided by the package
        )
    if mat.fmt == 'coo':
        each = a.row.shape == a.col.shape and a.row.ndim == 1
        return each and (one or data.shape == a.row.shape)
    if mat.fmt.startswith('fixed'):
        lines = mat.shape[0 if mat.fmt == 'fixed pre' else 1]
        table = a.indices
        return (
            table.ndim == 2
            and table.shape[0] == lines
            and (data.size == 1 or data.shape == table.shape)
        )
    ptr = mat.shape[0 if mat.fmt == 'csr' else 1] + 1
    return (
        a.indptr.shape == (ptr,) and a.indices.ndim == 1 and (one or data.shape == a.indices.shape)
    )


@st.composite
def broken(draw):
    """Draw a matrix, and the same with some leaves replaced."""
    mat = draw(matrices(low=1))
    w = draw(numbers((1 if draw(st.booleans()) else mat.size,), 'float32'))
    leaves, structure = jax.tree.flatten(mat.sparse(w))
    changes = draw(st.lists(st.sampled_from([None, *CHANGES]), min_size=len(leaves),
                            max_size=len(leaves)))  # fmt: skip
    new = [
        leaf if change is None else CHANGES[change](jnp.atleast_1d(leaf))
        for leaf, change in zip(leaves, changes, strict=True)
    ]
    same = all(a.shape == b.shape for a, b in zip(leaves, new, strict=True))
    matrix = jax.tree.unflatten(structure, new)
    x = draw(numbers((7,), 'float32'))
    ids = np.asarray(draw(st.lists(st.integers(0, 5), max_size=3)), 'int32')
    found = all_operations(mat, w, x, ids)
    name = draw(st.sampled_from(sorted(found)))
    run, traced = found[name][0], draw(st.booleans())
    run = jax.jit(run) if traced and 'slice' not in name else run
    note(f'{mat}; {name}; w {described(w)}, changes {changes}, traced {traced}')
    return changes, belongs(matrix, mat, same), name, matrix, run
