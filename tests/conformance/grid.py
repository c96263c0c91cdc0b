# SPDX-License-Identifier: Apache-2.0
"""The cases that every family of products is put through, and their operands."""

import functools
import importlib
import itertools
import pkgutil
import zlib
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent._format
from brainevent._edge import FAMILIES, Event, random
from tests.conformance.examples import example
from tests.conformance.oracle import Form

SHAPE, EDGES, BATCH = (7, 5), 17, 3
RANKS = ('vector', 'columns', 'rows')
DTYPES = ('float16', 'bfloat16', 'float64', 'complex64', 'int32', 'int8')
TOLERANCE = {'float16': 4e-3, 'bfloat16': 3e-2, 'float64': 1e-13, 'int32': 0, 'int8': 0}

# A family is registered when its file is imported.
for _file in pkgutil.iter_modules(brainevent._format.__path__, 'brainevent._format.'):
    if not _file.name.endswith(('_test', 'conftest')):
        importlib.import_module(_file.name)

STEMS = tuple(FAMILIES)


@dataclass(frozen=True)
class Case:
    """One operator on one backend: everything that is static about it."""

    stem: str
    backend: str
    event: Event
    transpose: bool
    rank: str
    weights: str
    dtype: str = 'float32'

    def __str__(self):
        """Give the name that pytest shows."""
        event = self.event.name.lower()
        side = 'transposed' if self.transpose else 'straight'
        return '-'.join([self.stem, self.backend, event, side, self.rank, self.weights, self.dtype])

    @property
    def family(self):
        return FAMILIES[self.stem]

    @property
    def x64(self):
        return self.dtype == 'float64'

    def example(self, shape=SHAPE, edges=EDGES, seed=0):
        made = example(self.family.layout.name, seed, shape, edges)
        return made if made.keys is None else replace(made, basis=self._basis(made.keys))

    def _basis(self, keys):
        """Return what each parameter adds to drawn edges: weights are linear in them."""
        weight = self.family.weight
        number = {'unit': random.unit, 'gauss': random.gauss}.get(weight.draws)
        number = number and number(keys, np.float64)
        ones = np.eye(weight.params)
        return np.array([weight.value(one, number) + np.zeros(keys[0].size) for one in ones])

    def call(self, shape=SHAPE):
        """Return the product as a function of weight parameters, structure and input."""

        def product(params, arrays, x):
            return self.family(
                'conformance',
                params,
                arrays,
                x,
                shape=shape,
                transpose=self.transpose,
                event=self.event,
                rows=self.rank == 'rows',
                backend=self.backend,
            )

        return product


def backends(stem):
    """Return the backends of a family that the platform at hand can run."""
    op = FAMILIES[stem].primitives(Event.REAL)[0]
    return op.available_backends(jax.default_backend())


def weight_kinds(stem):
    """Return the ways in which weights of a family are given."""
    return ('each', 'one') if FAMILIES[stem].weight.name == 'stored' else ('params',)


def full_grid():
    """Return every case in float32.

    Layouts with an index of their own read weights like those without: they take turns. So do the
    weights of drawn layouts.
    """
    return [
        Case(stem, backend, event, transpose, rank, weights)
        for stem in STEMS
        for backend in backends(stem)
        for k, (event, transpose, rank) in enumerate(itertools.product(Event, (False, True), RANKS))
        for weights in _in_turn(stem, k)
    ]


def _in_turn(stem, k):
    kinds = weight_kinds(stem)
    if FAMILIES[stem].layout.draw is not None:  # families over one layout take turns, too
        alike = [s for s in STEMS if FAMILIES[s].layout is FAMILIES[stem].layout]
        return kinds if alike[k % len(alike)] == stem else ()
    return kinds if '_' not in stem else (kinds[k % len(kinds)],)


def turned_grid():
    """Return every family, backend, event, direction and rank in float32; weights take turns."""
    seen = {}
    for case in full_grid():
        key = (case.stem, case.backend, case.event, case.transpose, case.rank)
        seen.setdefault(key, []).append(case)
    return [cases[k % len(cases)] for k, cases in enumerate(seen.values())]


def dtype_grid():
    """Return every event, direction and rank in every other dtype; each dtype on one family."""
    plain = [stem for stem in STEMS if '_' not in stem and FAMILIES[stem].layout.draw is None]
    cases = []
    for k, dtype in enumerate(DTYPES):
        stem = plain[k % len(plain)]
        kinds = itertools.cycle(weight_kinds(stem))
        for event, transpose, rank in itertools.product(Event, (False, True), RANKS):
            weights = next(kinds)
            cases += [
                Case(stem, backend, event, transpose, rank, weights, dtype)
                for backend in backends(stem)
            ]
    return cases


def every_dtype():
    """Return every family and backend in 16 and in 64 bits."""
    return [
        Case(stem, backend, Event.BINARY, False, 'vector', weight_kinds(stem)[0], dtype)
        for stem in STEMS
        for backend in backends(stem)
        for dtype in ('float16', 'float64')
    ]


def number(rng, shape, dtype):
    """Draw numbers that even 16 bits hold exactly; a fifth of them is zero."""
    dtype = jnp.dtype(dtype)
    values = rng.integers(-2, 3, shape)
    if jnp.issubdtype(dtype, jnp.integer):
        return jnp.asarray(values, dtype)
    values = values / 2
    if jnp.issubdtype(dtype, jnp.complexfloating):
        values = values + 1j * (rng.integers(-2, 3, shape) / 2)
    return jnp.asarray(values, dtype)


class Operands:
    """Numbers for a case, as JAX arrays and as the double precision arrays of the oracle."""

    def __init__(self, case, shape=SHAPE, edges=EDGES, batch=BATCH, seed=1):
        self.case, self.shape, self.batch = case, shape, batch
        self.rng = np.random.default_rng(seed)
        self.example = case.example(shape, edges)
        self.form = Form.of(self.example, shape, case.transpose)
        self.arrays = tuple(map(jnp.asarray, self.example.arrays))

    def params(self, *lead):
        """Draw weight parameters, with leading axes."""
        count = {'each': self.example.edges, 'one': 1, 'params': 1}[self.case.weights]
        many = self.case.family.weight.params
        return tuple(number(self.rng, (*lead, count), self.case.dtype) for _ in range(many))

    def input(self, *lead):
        """Draw an input; events of complex products are real."""
        dtype = self.case.dtype
        if self.case.event is Event.BINARY and dtype == 'complex64':
            dtype = 'float32'
        return number(self.rng, (*lead, *self._shape(self.form.n_in)), dtype)

    def output(self):
        """Draw a cotangent."""
        return number(self.rng, self._shape(self.form.n_out), self.case.dtype)

    def _shape(self, extent):
        shapes = {'columns': (extent, self.batch), 'rows': (self.batch, extent)}
        return shapes.get(self.case.rank, (extent,))

    # ---- to the oracle's conventions and back ----

    def wide(self, x):
        """Return an operand in double precision, vectors in columns."""
        x = np.asarray(x)
        x = x.astype(np.complex128 if x.dtype.kind == 'c' else np.float64)
        return x.T if self.case.rank == 'rows' else x

    def narrow(self, x):
        """Return a result of the oracle in the orientation of the case."""
        return x.T if self.case.rank == 'rows' else x

    def edge_weights(self, params, example=None):
        """Return one weight for each edge, of another structure if one is given."""
        example = example or self.example
        wide = [np.asarray(p) for p in params]
        wide = [p.astype(np.complex128 if p.dtype.kind == 'c' else np.float64) for p in wide]
        if example.basis is not None:
            return sum(p[0] * b for p, b in zip(wide, example.basis, strict=True))
        return np.broadcast_to(wide[0], (example.edges,))

    def param_cotangents(self, per_edge):
        """Return what a cotangent for each edge means for the parameters."""
        if self.example.basis is not None:
            return tuple(np.array([b @ per_edge]) for b in self.example.basis)
        return (per_edge if self.case.weights == 'each' else per_edge.sum(keepdims=True),)

    def counts(self, x):
        """Return what the elements of an input count for, as the oracle has them."""
        x = self.wide(x)
        return (x > 0).astype(float) if self.case.event is Event.BINARY else x

    def value(self, params, x):
        """Return what the product must give."""
        return self.narrow(self.form.product(self.edge_weights(params), self.counts(x)))


def thinned(cases, keep):
    """Return the cases for a test: one in ``keep`` always, by a hash of its name, the rest slow.

    Each case costs seconds of compilation. What is left out here is run with ``-m slow``; the
    hash spreads what is kept over families, events, directions and ranks, unlike for each test.
    Drawn layouts have long programs, and three families of the same kernels: fewer of them.
    """

    def one_in(case):
        return keep if FAMILIES[case.stem].layout.draw is None else 6 * keep

    return [
        pytest.param(
            case,
            id=str(case),
            marks=()
            if zlib.crc32(f'{keep} {case}'.encode()) % one_in(case) == 0
            else pytest.mark.slow,
        )
        for case in cases
    ]


def close(case, got, want, what):
    """Compare to the tolerance of the case's dtype; shapes must be equal."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f'{what}: shape {got.shape} for {want.shape}'
    wide = np.complex128 if got.dtype.kind == 'c' else np.float64
    tolerance = TOLERANCE.get(case.dtype, 2e-5)
    np.testing.assert_allclose(got.astype(wide), want, rtol=tolerance, atol=tolerance, err_msg=what)


# Compile time is most of the suite's time, and the programs run once.
quick_jit = functools.partial(
    jax.jit,
    compiler_options={
        'xla_backend_optimization_level': 0,
        'xla_llvm_disable_expensive_passes': True,
    },
)
