# SPDX-License-Identifier: Apache-2.0
"""Run a network and say what happened: spikes, rates, regularity, speed.

The run is a :func:`jax.lax.scan` in chunks of 100 ms of model time. A chunk is one compiled call;
in between, spikes are taken off the device and whoever waits is told how far it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from brainunit import ms

__all__ = ['Network', 'Result', 'progress_bar', 'simulate']

CHUNK_MS = 100.0


class Network(Protocol):
    """What a network offers to be run: itself a pytree, and so is its state.

    ``members`` says what the neurons are called; ``stimuli``, what happens to them from when until
    when in each second, in ms.
    """

    name: ClassVar[str]
    members: ClassVar[str]
    stimuli: ClassVar[Mapping[str, tuple[float, float]]]
    dt: ClassVar[Any]

    @property
    def neurons(self) -> int:
        """How many neurons there are."""

    @property
    def populations(self) -> dict[str, slice]:
        """Which neurons belong together."""

    @property
    def out_degree(self) -> np.ndarray:
        """How many contacts each neuron makes."""

    def init(self, seed: int = 0) -> Any:
        """Give the state at time zero."""

    def step(self, state: Any) -> Any:
        """Advance by ``dt``; the new state has ``spike``, a bool per neuron."""


@dataclasses.dataclass(frozen=True)
class Result:
    """Spikes of a run and the time it took.

    Parameters
    ----------
    network : Network
    steps : int
        How many were made.
    counts : ndarray of int, shape (neurons,)
        Spikes of each neuron.
    times : ndarray of int, shape (spikes,)
        Step of each recorded spike, in order.
    ids : ndarray of int, shape (spikes,)
        Neuron of each recorded spike.
    stride : int
        Every how many-th neuron was recorded.
    compile_seconds, run_seconds : float
        Wall time of compilation, and of all steps together.
    """

    network: Network
    steps: int
    counts: np.ndarray
    times: np.ndarray
    ids: np.ndarray
    stride: int
    compile_seconds: float
    run_seconds: float

    @property
    def model_seconds(self) -> float:
        """Model time."""
        return self.steps * _milliseconds(self.network.dt) * 1e-3

    @property
    def synaptic_events(self) -> int:
        """How many contacts saw a spike."""
        return int(self.counts @ self.network.out_degree)

    def rate(self, population: str) -> float:
        """Mean number of spikes per neuron and second of model time.

        Parameters
        ----------
        population : str
            A key of ``network.populations``.

        Returns
        -------
        float
        """
        return float(self.counts[self.network.populations[population]].mean() / self.model_seconds)

    def isi_cv(self, population: str, *, intervals: int = 3) -> float:
        """Irregularity: standard deviation over mean of a neuron's interspike intervals.

        Parameters
        ----------
        population : str
            A key of ``network.populations``.
        intervals : int
            Neurons with fewer intervals do not count.

        Returns
        -------
        float
            Mean over neurons; 0 for a clock, 1 for a Poisson process, NaN if no neuron counts.
        """
        members = self.network.populations[population]
        mine = (self.ids >= members.start) & (self.ids < members.stop)
        order = np.argsort(self.ids[mine], kind='stable')
        ids, times = self.ids[mine][order], self.times[mine][order]
        firsts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]][: ids.size])
        gaps = [np.diff(train) for train in np.split(times, firsts[1:])]
        found = [gap.std() / gap.mean() for gap in gaps if gap.size >= intervals]
        return float(np.mean(found)) if found else float('nan')


def simulate(
    network: Network,
    *,
    milliseconds: float,
    seed: int = 0,
    record: int = 4000,
    progress: Callable[[int], Any] = lambda steps: None,
) -> Result:
    """Run a network from its initial state.

    Parameters
    ----------
    network : Network
        COBA, CUBA, CElegans, or another with the same methods.
    milliseconds : float
        Model time.
    seed : int
        Of the initial state.
    record : int
        Record single spikes of about so many neurons, evenly spread; the spikes of all are counted.
    progress : callable
        Called with 0 once everything is compiled, and after each chunk with its steps.

    Returns
    -------
    Result

    Examples
    --------
    >>> from brainevent.demo import CUBA
    >>> simulate(CUBA.draw(400), milliseconds=5.0).model_seconds
    0.005
    """
    dt = _milliseconds(network.dt)
    steps, chunk = round(milliseconds / dt), round(CHUNK_MS / dt)
    lengths = [chunk] * (steps // chunk) + [steps % chunk] * (steps % chunk > 0)
    stride = max(1, -(-network.neurons // record))
    state, counts = network.init(seed), jnp.zeros(network.neurons, jnp.int32)

    start = time.perf_counter()
    compiled = {
        length: _advance.lower(network, state, counts, steps=length, stride=stride).compile()
        for length in set(lengths)
    }
    compile_seconds = time.perf_counter() - start

    progress(0)
    run_seconds, done, times, ids = 0.0, 0, [], []
    for length in lengths:
        start = time.perf_counter()
        state, counts, spikes = jax.block_until_ready(compiled[length](network, state, counts))
        run_seconds += time.perf_counter() - start
        step, neuron = np.nonzero(np.asarray(spikes))
        times.append(step + done)
        ids.append(neuron * stride)
        done += length
        progress(length)

    return Result(
        network=network,
        steps=steps,
        counts=np.asarray(counts),
        times=np.concatenate(times),
        ids=np.concatenate(ids),
        stride=stride,
        compile_seconds=compile_seconds,
        run_seconds=run_seconds,
    )


@functools.partial(jax.jit, static_argnames=('steps', 'stride'))
def _advance(network: Network, state: Any, counts: jax.Array, *, steps: int, stride: int) -> Any:
    def body(carry: Any, _: None) -> Any:
        state, counts = carry
        state = network.step(state)
        return (state, counts + state.spike), state.spike[::stride]

    (state, counts), spikes = jax.lax.scan(body, (state, counts), length=steps)
    return state, counts, spikes


def _milliseconds(duration: Any) -> float:
    return float(duration / ms)


@contextlib.contextmanager
def progress_bar(steps: int) -> Iterator[Callable[[int], Any]]:
    """Show on standard error that a run is being compiled, and then how far it is.

    Parameters
    ----------
    steps : int
        Of the whole run.

    Yields
    ------
    callable
        To be called with 0 when steps begin, and then with how many further ones were made. The
        clock starts at the first call, so that the time left is that of the steps.
    """
    bars: list[Any] = []

    def update(done: int) -> None:
        if not bars:
            print('\r', end='', file=sys.stderr)  # the bar takes the place of `compiling`
            bars.append(_bar(steps))
        bars[0].update(done)

    print('compiling ...', end='', file=sys.stderr, flush=True)
    try:
        yield update
    finally:
        for bar in bars:
            bar.close()
        if not bars:
            print(file=sys.stderr)


def _bar(steps: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return _PlainBar(steps)
    return tqdm(total=steps, unit='step', file=sys.stderr)


class _PlainBar:
    """The bar where tqdm is not installed."""

    width = 40

    def __init__(self, steps: int) -> None:
        self.steps, self.done = steps, 0

    def update(self, steps: int) -> None:
        """Count further steps and redraw."""
        self.done += steps
        filled = self.width * self.done // self.steps
        bar = '#' * filled + '-' * (self.width - filled)
        print(f'\r[{bar}] {self.done}/{self.steps} steps', end='', file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        print(file=sys.stderr)
