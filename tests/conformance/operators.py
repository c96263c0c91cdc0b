# SPDX-License-Identifier: Apache-2.0
"""Every operator as a function of what it can be differentiated by.

Cases come from the tables in which operators register, and from a list of functions that are
made of operators. `house` tells what there must be a case for.
"""

import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import brainevent as be
from brainevent._edge import FAMILIES, Event, random
from brainevent._edge.pick import picks_of
from brainevent._edge.scale import scales_of
from brainevent._edge.update import updates_of
from tests.conformance.grid import STEMS, Case, Operands, backends, number, weight_kinds
from tests.conformance.listed_test import ListedCase
from tests.conformance.per_edge import LEARNING, PICKING, SCALING, STORED, PerEdge

BACKENDS = ('numba', 'jax_raw')


@dataclass(frozen=True)
class Function:
    """An operator with its structure put in.

    ``event`` tells which operand is an event vector, and ``straight`` gives the part of the
    function that is linear in it when its elements count as themselves.
    """

    call: Callable[..., Any]
    arrays: tuple[Any, ...]
    primals: tuple[Any, ...]
    tangents: tuple[Any, ...]
    event: int | None = None
    straight: Callable[..., Any] | None = None


@dataclass(frozen=True)
class _Wrapped:
    case: Any

    def __str__(self):
        return str(self.case)

    @property
    def stem(self):
        return self.case.stem

    @property
    def backend(self):
        return self.case.backend


class Product(_Wrapped):
    """One primitive of products, with a list or without."""

    def function(self):
        ops, case = Operands(self.case), self.case
        plain = Case(case.stem, case.backend, Event.REAL, case.transpose, case.rank, case.weights)
        binary = case.event is Event.BINARY

        def of(case):
            product = case.call()
            return lambda arrays, *operands: product(operands[:-1], arrays, operands[-1])

        draws = [(*ops.params(), ops.input()) for _ in range(2)]
        event = len(draws[0]) - 1 if binary else None
        return Function(of(case), ops.arrays, *draws, event, of(plain) if binary else None)


class Edges(_Wrapped):
    """One operator with a number for each edge."""

    def function(self):
        case = self.case
        arrays = tuple(map(jnp.asarray, case.example.arrays))
        row, col = case.example.row, case.example.col
        source, target = (row, col) if case.transpose else (col, row)

        def straight(arrays, w, x, y):
            return x[source] * y[target]

        learning = case.operator in LEARNING
        return Function(
            lambda arrays, *operands: case.call(arrays)(*operands),
            arrays,
            case.operands(0),
            case.operands(1),
            1 if learning else None,
            straight if case.operator == 'update' else None,  # the others have corners
        )


@dataclass(frozen=True)
class Composed:
    """A public function or method."""

    name: str
    build: Callable[..., Function]
    stem: str = 'csr'
    backend: str = 'jax_raw'

    def __str__(self):
        return self.name

    def function(self):
        return self.build()


def products():
    """Return a case for each primitive and backend; directions, weights and ranks take turns."""
    kinds = [(event, rank) for event in Event for rank in ('vector', 'columns')]
    made, turn = [], 0
    for stem in STEMS:
        for backend in backends(stem):
            for event, rank in kinds:
                turn += 1
                weights = weight_kinds(stem)[0]
                made.append(Case(stem, backend, event, turn % 2 == 0, rank, weights))
            for rank in ('vector', 'columns'):
                turn += 1
                how = Event.BINARY, turn % 2 == 0, rank, weight_kinds(stem)[-1]
                made.append(ListedCase(stem, backend, *how))
    return [Product(case) for case in made if case.backend in BACKENDS]


def per_edge():
    """Return a case for each primitive and backend."""
    return [
        Edges(PerEdge(operator, stem, backend, transpose))
        for operator in (*SCALING, *PICKING, *LEARNING)
        for stem in STORED
        for backend in backends(stem)
        if backend in BACKENDS
        for transpose in ((False, True) if operator in LEARNING else (True,))
    ]


# ---- functions that are made of operators --------------------------------------------------------

SHAPE = (4, 4)
DENSE = np.float32([[4, 1, 0, 0.5], [0, 5, 2, 0], [1, 0, 6, 0], [0, 1.5, 0, 4]])
ROW, COL = np.nonzero(DENSE)
PTR = np.searchsorted(ROW, np.arange(5))
TABLE = np.array([[0, 1], [1, 2], [2, 0], [0, 3]])


def _draws(*shapes):
    rng = np.random.default_rng(5)
    return [tuple(number(rng, s, 'float64') for s in shapes) for _ in range(2)]


def _smooth(call, *shapes, event=None):
    return lambda: Function(lambda arrays, *operands: call(*operands), (), *_draws(*shapes), event)


def _learn(name):
    """Learn by one function, with bounds that no sum meets."""
    function, post = getattr(be, name), name.endswith('post')
    csc, bounds = be.CSC.fromdense(DENSE), (-0.76, 0.83)
    turned = be.csr_to_csc_index(PTR, COL, shape=SHAPE)
    structure, how = {
        'update_csr_on_binary_pre': ((COL, PTR), {'shape': SHAPE}),
        'update_csr_on_binary_post': ((turned[1], turned[0], turned[2]), {'shape': SHAPE}),
        'update_csc_on_binary_pre': ((csc.indices, csc.indptr), {'shape': SHAPE}),
        'update_csc_on_binary_post': ((csc.indices, csc.indptr), {'shape': SHAPE}),
        'update_coo_on_binary_pre': ((ROW, COL), {}),
        'update_coo_on_binary_post': ((ROW, COL), {}),
        'update_dense_on_binary_pre': ((), {}),
        'update_dense_on_binary_post': ((), {}),
        'update_fixed_post_conn_on_binary_pre': ((TABLE,), {'shape': SHAPE}),
        'update_fixed_pre_conn_on_binary_post': ((TABLE,), {'shape': SHAPE}),
    }[name]
    weight = {'dense': SHAPE, 'fixed': TABLE.shape}.get(name.split('_')[1], (ROW.size,))

    def call(w, x, y):
        return function(w, *structure, *((y, x) if post else (x, y)), *bounds, **how)

    return Composed(name, _smooth(call, weight, 4, 4, event=1))


LEARNED = [
    f'update_{kind}_on_binary_{side}' for kind in ('csr', 'csc', 'coo', 'dense')
    for side in ('pre', 'post')
] + ['update_fixed_post_conn_on_binary_pre', 'update_fixed_pre_conn_on_binary_post']  # fmt: skip


def _solve(kind, columns):
    A = getattr(be, kind).fromdense(DENSE)

    def build():
        (_, b), (dw, db) = _draws(A.data.shape, (4, 2) if columns else 4)
        dw = dw * (np.asarray(A.data) != 0)
        call = lambda arrays, w, b: A.with_data(w).solve(b)  # noqa: E731
        return Function(call, (), (A.data.astype(b.dtype), b), (dw / 4, db))

    return Composed(f'{kind}.solve of {1 + columns} axes', build)


def _drawn(call):
    """Make a function of loc and scale out of one of a drawn matrix."""
    seed = random.seed_words(3)
    A = be.JITCNormalR((1.0, 0.5, 0.4, seed), shape=SHAPE)
    return _smooth(lambda loc, scale: call(A.with_data((loc, scale))), (), ())


def composed():
    """Return one case for each function that arranges operators in a way of its own."""
    A, T = be.CSR.fromdense(DENSE), be.FixedNumPerPre((jnp.ones(TABLE.shape), TABLE), shape=SHAPE)
    n, perm = ROW.size, np.arange(ROW.size)[::-1].copy()
    csr = {'shape': SHAPE}
    made = {
        'sddmm': (lambda a, b: be.sddmm_coo_indices(a, b, ROW, COL).data, (4, 2), (2, 4)),
        'CSR.diag_add': (lambda w, d: A.with_data(w).diag_add(d).data, n, 4),
        'Dense.diag_add': (lambda w, d: be.Dense(w).diag_add(d).data, SHAPE, 4),
        'CSR[rows]': (lambda w: A.with_data(w)[np.array([2, 0, 2])], n),
        'CSR[i, j]': (lambda w: A.with_data(w)[np.array([2, 0]), np.array([2, 3])], n),
        'FixedNumPerPre[rows]': (lambda w: T.with_data(w)[np.array([2, 0])], TABLE.shape),
        'CSR.slice_rows': (lambda w: A.with_data(w).slice_rows(np.array([2, 0])).data, n),
        'csr_slice_rows': (lambda w: be.csr_slice_rows(w, COL, PTR, np.array([1, 1]), **csr), n),
        'CSR.todense': (lambda w: A.with_data(w).todense(), n),
        'CSR.tocsc': (lambda w: A.with_data(w).tocsc().data, n),
        'FixedNumPerPre.tocoo': (lambda w: T.with_data(w).tocoo().data, TABLE.shape),
        'CSR * dense': (lambda w, d: (A.with_data(w) * d).data, n, SHAPE),
        'CSR + dense': (lambda w, d: A.with_data(w) + d, n, SHAPE),
        'CSR.T': (lambda w, x: A.with_data(w).T @ x, n, 4),
        'mirror': (lambda w, x: A.with_mirror().with_data(w) @ x, n, 4),
        'csrmv_indexed': (
            lambda w, x: be.csrmv_indexed(w, COL, PTR, perm, x, **csr, transpose=True), n, 4
        ),
    }  # fmt: skip
    drawn = {
        'JITC.todense': lambda A: A.todense(),
        'JITC.tocsr': lambda A: A.tocsr().data,
        'JITC.dt2t': lambda A: be.jitnmv_dt2t(
            A.loc, A.scale, A.prob, jnp.arange(4.0), A.seed, shape=SHAPE
        ),
        'JITC[i, j]': lambda A: A[1, 2],
    }
    return [
        *(Composed(name, _smooth(*args)) for name, args in made.items()),
        *(Composed(name, _drawn(call)) for name, call in drawn.items()),
        *(_solve(kind, columns) for kind in ('CSR', 'CSC', 'Dense') for columns in (0, 1)),
        *map(_learn, LEARNED),
    ]


def fills():
    """Return a case for each family of drawn weights and backend: its dense matrix."""

    def build(stem, backend):
        family = FAMILIES[stem]
        ops = Operands(Case(stem, backend, Event.REAL, False, 'vector', 'params'))
        return lambda: Function(
            lambda arrays, *params: family.dense(params, arrays, ops.shape, backend),
            ops.arrays,
            ops.params(),
            ops.params(),
        )

    return [
        Composed(f'{stem}-{backend}', build(stem, backend), stem, backend)
        for stem in STEMS
        if stem not in STORED
        for backend in BACKENDS
    ]


@functools.cache
def own_names():
    """Return what the package registers, told by a process where nobody else has operators."""
    program = 'import brainevent as be; print(*be.get_registry(), sep="\\n")'
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.split('\n'))


def house():
    """Return all primitives of the package, those that are made on first use included."""
    late = set()
    for family in map(FAMILIES.__getitem__, STORED):
        scales, picks, updates = scales_of(family), picks_of(family), updates_of(family)
        made = [scales.one, scales.many, updates.pre, updates.post, *updates.clipped.values()]
        late |= {op.name for op in (*made, *picks.ops.values())}
    return {name: op for name, op in be.get_registry().items() if name in own_names() | late}


def is_void(op):
    """Tell whether an operator gives integers, which have no derivative."""
    return op.name == 'compact' or bool(op.tags & {'listing', 'mirror'})
