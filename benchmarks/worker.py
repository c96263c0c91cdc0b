# SPDX-License-Identifier: Apache-2.0
"""One side of a paired benchmark: builds cases in this interpreter and times them on request.

Reads JSON lines, ``{"case": name, "reps": number}``, and answers one JSON line each. Whichever
package named ``brainevent`` can be imported here is measured; ``scipy_`` and ``bcoo_`` cases
measure those instead.
"""

import functools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

CASES: dict[str, Callable] = {}


@dataclass(frozen=True)
class Setting:
    """The parameters of a case, as they stand behind its name."""

    n: int = 4000  # neurons
    k: int = 80  # synapses of each
    rate: float = 0.01  # share of neurons that fire in a step
    steps: int = 50  # steps in one call
    b: int = 32  # batch
    w: str = 'het'  # one weight each, or 'homo': one for all; 'normal', 'uniform' where drawn
    clip: str = 'yes'

    @classmethod
    def parse(cls, words: list[str]) -> 'Setting':
        """Read ``name=value`` words."""
        kinds = {field.name: field.type for field in fields(cls)}
        pairs = (word.split('=') for word in words)
        return cls(**{name: kinds[name](value) for name, value in pairs})

    def spikes(self) -> np.ndarray:
        """Draw who fires, shape (steps, n)."""
        return np.random.default_rng(7).random((self.steps, self.n)) < self.rate

    def batch(self) -> np.ndarray:
        """Draw who fires in each sample, shape (b, n)."""
        return np.random.default_rng(3).random((self.b, self.n)) < self.rate

    def vector(self) -> np.ndarray:
        """Draw a dense operand."""
        return np.random.default_rng(0).normal(size=self.n).astype(np.float32)


class Work(NamedTuple):
    """What one call does: the call, how many steps it makes, and the edges taken in a step."""

    call: Callable[[], object]
    steps: int
    edges: float


def case(*names: str) -> Callable:
    """Register a builder, ``build(name, setting) -> Work``."""

    def register(build: Callable) -> Callable:
        CASES.update(dict.fromkeys(names, build))
        return build

    return register


@functools.lru_cache(maxsize=1)
def net(n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw weights, targets (sorted within a row) and row pointers."""
    rng = np.random.default_rng(n + k)
    targets = rng.integers(0, n, (n, k)).astype(np.int32)
    targets.sort(axis=1)
    weights = rng.normal(size=n * k).astype(np.float32)
    return weights, targets, np.arange(0, n * k + 1, k).astype(np.int32)


def arrays(s: Setting) -> tuple:
    """Give weights, indices and indptr on the device."""
    import jax.numpy as jnp

    weights, targets, indptr = net(s.n, s.k)
    weights = np.array([0.5], np.float32) if s.w == 'homo' else weights
    return jnp.asarray(weights), jnp.asarray(targets.ravel()), jnp.asarray(indptr)


def csr(s: Setting) -> object:
    """Make the matrix of a case."""
    import brainevent as be

    return be.CSR(arrays(s), shape=(s.n, s.n))


def jitted(function: Callable, *operands: object) -> Callable[[], object]:
    """Compile, and wait for each result."""
    import jax

    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*operands))


def scanned(s: Setting, product: Callable, prepare: Callable = lambda spikes: spikes) -> Work:
    """Add up a product with each step's spikes, in one compiled loop, after preparing them all."""
    import jax
    import jax.numpy as jnp

    import brainevent as be

    spikes = s.spikes()

    def run(spikes: jax.Array) -> jax.Array:
        def step(total: jax.Array, fired: jax.Array) -> tuple:
            events = fired if isinstance(fired, be.CompactBinary) else be.BinaryArray(fired)
            return total + product(events), None

        return jax.lax.scan(step, jnp.zeros(s.n, jnp.float32), spikes)[0]

    edges = spikes.sum() / s.steps * s.k
    return Work(jitted(run, prepare(jnp.asarray(spikes))), s.steps, edges)


def mirrored(matrix: object) -> object:
    """Index a matrix by column too, by whatever name the package has for it."""
    return matrix.with_mirror() if hasattr(matrix, 'with_mirror') else matrix.build_weight_indices()


@case('scan_sW')
def _(name: str, s: Setting) -> Work:
    A = csr(s)
    return scanned(s, lambda events: events @ A)


@case('scan_compact', 'scan_compacting')
def _(name: str, s: Setting) -> Work:
    import jax

    import brainevent as be

    A, compacted = csr(s), be.CompactBinary.from_array
    if name == 'scan_compact':  # the lists are there when the clock starts
        return scanned(s, lambda events: events @ A, jax.jit(jax.vmap(compacted)))
    return scanned(s, lambda events: compacted(events) @ A)


@case('scan_Ws')
def _(name: str, s: Setting) -> Work:
    A = mirrored(csr(s))
    return scanned(s, lambda events: A @ events)


@case('mirror')
def _(name: str, s: Setting) -> Work:
    import jax

    A = csr(s)
    # Only the leaves of our own matrices hold the mirror; a peer's is made on the host, at once.
    return Work(lambda: jax.block_until_ready(jax.tree.leaves(mirrored(A))), 1, s.n * s.k)


@case('fcn_pre', 'fcn_post')
def _(name: str, s: Setting) -> Work:
    import brainevent as be

    weights, indices, _ = arrays(s)
    kind = be.FixedNumPerPre if name == 'fcn_pre' else be.FixedNumPerPost
    data = weights if s.w == 'homo' else weights.reshape(s.n, s.k)
    A = kind((data, indices.reshape(s.n, s.k)), shape=(s.n, s.n))
    return scanned(s, lambda events: events @ A)


@case('mv', 'vm')
def _(name: str, s: Setting) -> Work:
    A = csr(s)
    product = (lambda v: A @ v) if name == 'mv' else (lambda v: v @ A)
    return Work(jitted(product, s.vector()), 1, s.n * s.k)


@case('eager_sW')
def _(name: str, s: Setting) -> Work:
    import jax
    import jax.numpy as jnp

    import brainevent as be

    A, spikes = csr(s), s.spikes()[0]
    fired = jnp.asarray(spikes)
    return Work(
        lambda: jax.block_until_ready(be.BinaryArray(fired) @ A), 1, int(spikes.sum()) * s.k
    )


@case('mm_event', 'vmap_event', 'mm')
def _(name: str, s: Setting) -> Work:
    import jax
    import jax.numpy as jnp

    import brainevent as be

    A, batch = csr(s), s.batch()

    def deliver(x: jax.Array) -> jax.Array:
        return be.BinaryArray(x) @ A

    if name == 'mm':
        return Work(jitted(lambda x: x @ A, jnp.asarray(batch, jnp.float32)), 1, s.b * s.n * s.k)
    function = deliver if name == 'mm_event' else jax.vmap(deliver)
    return Work(jitted(function, jnp.asarray(batch)), 1, int(batch.sum()) * s.k)


@case('grad_w')
def _(name: str, s: Setting) -> Work:
    import jax

    import brainevent as be

    weights, indices, indptr = arrays(s)

    def loss(w: jax.Array, v: jax.Array) -> jax.Array:
        return (be.csrmv(w, indices, indptr, v, shape=(s.n, s.n)) ** 2).sum()

    return Work(jitted(jax.grad(loss), weights, s.vector()), 1, 2 * s.n * s.k)


def by_column(s: Setting) -> tuple:
    """Give the structure by column: row of each entry, pointers, and place in the weights."""
    import jax.numpy as jnp

    _, targets, _ = net(s.n, s.k)
    order = np.argsort(targets.ravel(), kind='stable').astype(np.int32)
    counts = np.bincount(targets.ravel(), minlength=s.n)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return jnp.asarray((order // s.k).astype(np.int32)), jnp.asarray(indptr), jnp.asarray(order)


@case('plast_pre', 'plast_post')
def _(name: str, s: Setting) -> Work:
    import jax
    import jax.numpy as jnp

    import brainevent as be

    weights, indices, indptr = arrays(s)
    trace = jnp.asarray(np.random.default_rng(0).random(s.n).astype(np.float32))
    bounds = (0.0, 1.0) if s.clip == 'yes' else (None, None)
    columns = by_column(s) if name == 'plast_post' else ()

    def update(w: jax.Array, fired: jax.Array) -> tuple:
        if name == 'plast_pre':
            structure, pair, change = (indices, indptr), (fired, trace), be.update_csr_on_binary_pre
        else:
            structure, pair, change = columns, (trace, fired), be.update_csr_on_binary_post
        return change(w, *structure, *pair, *bounds, shape=(s.n, s.n)), None

    spikes = s.spikes()
    call = jitted(
        lambda w, spikes: jax.lax.scan(update, w, spikes)[0], weights, jnp.asarray(spikes)
    )
    return Work(call, s.steps, spikes.sum() / s.steps * s.k)


def drawn(s: Setting) -> object:
    """Make a matrix of just-in-time connectivity."""
    import brainevent as be

    if s.w in ('normal', 'uniform'):
        kind = be.JITCNormalR if s.w == 'normal' else be.JITCUniformR
        return kind((0.5, 1.0, s.k / s.n, 42), shape=(s.n, s.n))
    return be.JITCScalarR((0.5, s.k / s.n, 42), shape=(s.n, s.n))


@case('jitc_event', 'jitc_stored')
def _(name: str, s: Setting) -> Work:
    A = drawn(s) if name == 'jitc_event' else drawn(s).tocsr()
    return scanned(s, lambda events: events @ A)


@case('jitc_mv', 'jitc_vm')
def _(name: str, s: Setting) -> Work:
    A = drawn(s)
    product = (lambda v: A @ v) if name == 'jitc_mv' else (lambda v: v @ A)
    return Work(jitted(product, s.vector()), 1, s.n * s.k)


@case('scipy_mv', 'scipy_vm')
def _(name: str, s: Setting) -> Work:
    import scipy.sparse

    weights, targets, indptr = net(s.n, s.k)
    A = scipy.sparse.csr_matrix((weights, targets.ravel(), indptr), shape=(s.n, s.n))
    v = s.vector()
    return Work((lambda: A @ v) if name == 'scipy_mv' else (lambda: A.T @ v), 1, s.n * s.k)


@case('bcoo_mv')
def _(name: str, s: Setting) -> Work:
    from jax.experimental import sparse

    A = sparse.BCSR(arrays(s), shape=(s.n, s.n)).to_bcoo()
    return Work(jitted(lambda v: A @ v, s.vector()), 1, s.n * s.k)


class Timer:
    """The case at hand, built and warm; a new name replaces it, so that one lies in memory."""

    def __init__(self) -> None:
        self.name, self.work, self.first = '', None, 0.0

    def __call__(self, name: str, reps: int) -> dict:
        """Build the case if it is another one, and time it."""
        if name != self.name:
            self.name, self.work = '', None
            operator, *words = name.split(':')
            start = time.perf_counter()
            self.work = CASES[operator](operator, Setting.parse(words))
            self.work.call()
            self.first = time.perf_counter() - start
            self.work.call()
            self.name = name
        times = []
        for _ in range(reps):
            start = time.perf_counter()
            self.work.call()
            times.append((time.perf_counter() - start) / self.work.steps * 1e6)
        return {
            'us': statistics.median(times),
            'min_us': min(times),
            'first_s': self.first,
            'edges': float(self.work.edges),
        }


def main() -> None:
    """Answer questions until the input ends."""
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # stray prints stay off the protocol
    timer = Timer()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = timer(question['case'], question['reps'])
        except Exception as error:  # the other side goes on without this case
            answer = {'error': f'{type(error).__name__}: {error}'[:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == '__main__':
    main()
