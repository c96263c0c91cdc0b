# SPDX-License-Identifier: Apache-2.0
"""Which kernel runs is what was asked for: one spy where kernels are chosen, one where they run.

Every operator is called through its public function with three backends, in turn chosen for the
call, the block and the process. ``cuda_raw`` runs on the emulator.
"""

import collections
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent import config
from brainevent._op import selection
from tests.cuda.conftest import emulated  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures('emulated')

BACKENDS = ('numba', 'cuda_raw', 'jax_raw')
# names of XLA's targets; jax_raw is XLA's own operations
TARGETS = {
    'numba': re.compile(r'\bbrainevent\.\w+\.[0-9a-f]{32}\b'),
    'cuda_raw': re.compile(r'\bbrainevent_kernix\.\w+\.[0-9a-f]{32}\b'),
}
SHAPE = (5, 4)
DENSE = np.array([[0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 0, 0], [5, 4, 0, 7], [0, 0, 6, 0]], np.float32)
ROW, COL = (x.astype(np.int32) for x in np.nonzero(DENSE))
INDPTR = np.searchsorted(ROW, np.arange(6)).astype(np.int32)
W = DENSE[ROW, COL]
TABLE = np.array([[0, 1], [2, 3], [1, 3], [0, 2], [3, 3]], np.int32)
X, EVENTS = np.array([1.0, -2.0, 0.5, 3.0], np.float32), np.array([1.0, 0.0, 0.0, 2.0], np.float32)
ROWS = np.array([0.5, 1.0, 0.0, 2.0, -1.0], np.float32)


def csr(function, x, **more):
    return lambda backend: function(W, COL, INDPTR, x, shape=SHAPE, backend=backend, **more)


def learn(backend):
    spikes, trace = ROWS > 0, X
    return be.update_csr_on_binary_pre(
        W, COL, INDPTR, spikes, trace, -2.0, 6.0, shape=SHAPE, backend=backend
    )


def towards_weights(backend):
    def loss(w):
        return be.csrmv(w, COL, INDPTR, X, shape=SHAPE, backend=backend) @ ROWS

    return jax.grad(loss)(jnp.asarray(W))


def sampled(backend):
    left = np.arange(15, dtype=np.float32).reshape(5, 3)
    right = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    return be.sddmm_coo_indices(left, right, ROW, COL, backend=backend).data


OPERATORS = {
    'csrmv': csr(be.csrmv, X),
    'csrmv transposed': csr(be.csrmv, ROWS, transpose=True),
    'csrmm': csr(be.csrmm, np.stack([X, EVENTS], 1)),
    'binary_csrmv': csr(be.binary_csrmv, EVENTS),
    'binary_coomv': lambda backend: be.binary_coomv(
        W, ROW, COL, EVENTS, shape=SHAPE, backend=backend
    ),
    'fcnmv': lambda backend: be.fcnmv(
        TABLE.astype(np.float32), TABLE, X, shape=SHAPE, backend=backend
    ),
    'learning': learn,
    'gradient of weights': towards_weights,
    'sddmm': sampled,
    'csr_slice_rows': lambda backend: be.csr_slice_rows(
        W, COL, INDPTR, np.array([3, 0, 9]), shape=SHAPE, backend=backend
    ),
}


class Spy:
    """What was chosen when programs were made, and what ran."""

    def __init__(self):
        self.chosen, self.ran = [], []

    def taken(self):
        """Return the backends chosen since last asked, and those that ran."""
        jax.effects_barrier()
        found = set(self.chosen), set(self.ran)
        self.chosen.clear(), self.ran.clear()
        return found


@pytest.fixture
def spy(monkeypatch):
    """Note each choice of a kernel; and let each kernel say when it runs."""
    noted, choose = Spy(), selection.KernelTable.choose

    def choose_and_note(table, request, static, broken=None):
        entry = choose(table, request, static, broken)
        noted.chosen.append(entry.backend)

        def generator(**static):
            kernel = entry.kernel_generator(**static)

            def run(*arrays):
                results = list(kernel(*arrays))
                results[0] = passed_by(results[0], lambda: noted.ran.append(entry.backend))
                return results

            return run

        return selection.KernelEntry(entry.backend, entry.platform, generator, entry.supports)

    monkeypatch.setattr(selection.KernelTable, 'choose', choose_and_note)
    # what other tests ran must not make a change of preference a change of what runs
    for table in selection._tables.values():
        monkeypatch.setattr(table, 'requests', set())
    monkeypatch.setattr(selection, '_tables', {})
    jax.clear_caches()
    yield noted
    jax.clear_caches()


def passed_by(x, note):
    """Return an array by way of a function on the host, which notes that it came by."""

    def host(value):
        note()
        return np.asarray(value)

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(host, shape, x, vmap_method='sequential')


def targets(lowered):
    """Return the backends whose names stand in the text of a program."""
    text = lowered.as_text()
    return {backend for backend, name in TARGETS.items() if name.search(text)}


@pytest.mark.parametrize('name', OPERATORS)
def test_what_is_asked_for_runs(name, spy):
    call, traces = OPERATORS[name], collections.Counter()

    def traced():
        traces[name] += 1
        return call(None)

    warm, results = jax.jit(traced), {}

    def both():
        """Run eagerly and as a compiled program; return what was chosen and what ran."""
        results['eager'], eager = call(None), spy.taken()
        results['jit'], jitted = warm(), spy.taken()
        np.testing.assert_allclose(results['eager'], results['jit'], rtol=1e-6, atol=1e-6)
        assert eager[1] == jitted[1]
        return eager[0] | jitted[0], eager[1]

    by_backend = {}
    assert both() == ({'numba'}, {'numba'})
    for backend in BACKENDS[::-1]:
        config.set_backend('cpu', backend)
        assert both() == ({backend}, {backend})
        by_backend[backend] = results['jit']
        made = traces.copy()
        for same in (
            lambda: config.set_backend('cpu', config.get_backend('cpu')),
            lambda: config.set_backend('gpu', 'jax_raw'),
            lambda: config.set_backend('tpu', 'jax_raw'),
        ):
            same()
            assert both() == (set(), {backend})  # nothing was chosen anew, and the same ran
        assert traces == made
        assert targets(warm.lower()) == {backend} - {'jax_raw'}
        spy.taken()
    config.clear_backends()
    assert both() == (set(), {'numba'})  # numba was last, and is the default
    for backend in BACKENDS:
        np.testing.assert_allclose(by_backend[backend], by_backend['jax_raw'], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize('name', ['csrmv', 'learning'])
def test_a_block_and_a_call_are_stronger_and_cost_nothing_afterwards(name, spy):
    call = OPERATORS[name]
    warm = jax.jit(lambda: call(None))
    forced = {backend: jax.jit(lambda backend=backend: call(backend)) for backend in BACKENDS}
    config.set_backend('cpu', 'jax_raw')
    for again in range(2):
        for block in BACKENDS:
            with config.use_backend('cpu', block):
                for run in (warm, lambda: call(None)):
                    run()
                    chosen, ran = spy.taken()
                    assert ran == {block}
                    assert chosen <= {block}
                    assert not (again and chosen), 'a block that was seen before is not compiled'
                for backend, run in forced.items():
                    run()
                    assert spy.taken()[1] == {backend}
        warm()
        assert spy.taken()[1] == {'jax_raw'}
    assert warm._cache_size() == len(BACKENDS) + 1  # and one outside of blocks


@pytest.mark.parametrize('name', OPERATORS)
def test_what_is_asked_for_on_gpus_is_in_the_program(name):
    """No GPU is needed to see it: the program is lowered for one, and not run."""

    def lowered():
        traced = jax.jit(lambda: OPERATORS[name](None)).trace()
        return targets(traced.lower(lowering_platforms=('cuda',)))

    assert lowered() == {'cuda_raw'}
    config.set_backend('gpu', 'jax_raw')
    assert lowered() == set()
    with config.use_backend('gpu', 'cuda_raw'):
        assert lowered() == {'cuda_raw'}
    config.set_backend('cpu', 'numba')
    assert lowered() == set()
    config.clear_backends()
    assert lowered() == {'cuda_raw'}
