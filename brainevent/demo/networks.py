# SPDX-License-Identifier: Apache-2.0
"""The balanced networks of Brette et al. 2007: COBA (conductances) and CUBA (currents).

Both are leaky integrate-and-fire neurons, 80 % excitatory and 20 % inhibitory, that make 80
contacts each with randomly drawn targets. Excitation and inhibition cancel on average, and what is
left of them makes the neurons fire irregularly [1]_, [2]_.

A network is a value. Its matrices are leaves of a pytree, so that it passes into :func:`jax.jit` as
an argument; what the equations call constants are constants of the class, with their units. Units
are checked while a step is traced and cost nothing afterwards.

References
----------
.. [1] Brette et al. 2007, J Comput Neurosci 23:349-398, benchmarks 1 (COBA) and 2 (CUBA).
.. [2] Vogels and Abbott 2005, J Neurosci 25:10786-10795, the networks these are cut from.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

import brainevent as be

__all__ = ['COBA', 'CUBA', 'BalancedNetwork', 'State']


class State(NamedTuple):
    """What a balanced network remembers between two steps, one entry per neuron."""

    v: Any  # membrane potential
    exc: Any  # what excitatory spikes feed: a conductance in COBA, a voltage in CUBA
    inh: Any  # the same for inhibitory spikes
    rest: jax.Array  # steps for which the membrane is still held
    spike: jax.Array  # who fired in the step just made


@dataclasses.dataclass(frozen=True)
class BalancedNetwork(abc.ABC):
    """Excitatory and inhibitory neurons, connected at random: what COBA and CUBA share.

    Parameters
    ----------
    exc : FixedNumPerPre, shape (excitatory, neurons)
        What an excitatory spike adds to its targets, one weight for all contacts.
    inh : FixedNumPerPre, shape (inhibitory, neurons)
        The same for inhibitory spikes.

    Notes
    -----
    One step of length ``dt`` (exponential Euler): membranes move by the exact solution while their
    input stands still, neurons above threshold fire and return to reset, inputs decay, and
    the new spikes are delivered, so that they act on the next step.
    """

    exc: be.FixedNumPerPre
    inh: be.FixedNumPerPre

    name: ClassVar[str]
    members: ClassVar[str] = 'neurons'
    stimuli: ClassVar[Mapping[str, tuple[float, float]]] = {}
    weight_exc: ClassVar[Any]
    weight_inh: ClassVar[Any]
    contacts: ClassVar[int] = 80
    dt: ClassVar[Any] = 0.1 * u.ms
    tau: ClassVar[Any] = 20.0 * u.ms
    tau_exc: ClassVar[Any] = 5.0 * u.ms
    tau_inh: ClassVar[Any] = 10.0 * u.ms
    threshold: ClassVar[Any] = -50.0 * u.mV
    reset: ClassVar[Any] = -60.0 * u.mV
    refractory: ClassVar[Any] = 5.0 * u.ms

    @classmethod
    def draw(cls, neurons: int = 4000, *, seed: int = 0, dtype: Any = np.float32) -> Self:
        """Draw the contacts of a network.

        Parameters
        ----------
        neurons : int
            A fifth of them is inhibitory. The number of contacts of a neuron does not grow with it.
        seed : int
            Of the targets. They are drawn with replacement; a pair drawn twice counts twice.
        dtype : dtype
            Of the weights, and so of the whole simulation.

        Returns
        -------
        BalancedNetwork

        Examples
        --------
        >>> CUBA.draw(1000, seed=1).exc.shape
        (800, 1000)
        """
        rng = np.random.default_rng(seed)
        excitatory = neurons * 4 // 5
        exc, inh = (
            be.FixedNumPerPre(
                (weight.astype(dtype), rng.integers(0, neurons, (pre, cls.contacts), np.int32)),
                shape=(pre, neurons),
            )
            for weight, pre in (
                (cls.weight_exc, excitatory),
                (cls.weight_inh, neurons - excitatory),
            )
        )
        return cls(exc, inh)

    @property
    def neurons(self) -> int:
        """How many neurons there are."""
        return int(self.exc.shape[1])

    @property
    def populations(self) -> dict[str, slice]:
        """Which neurons belong together, in the order of a raster."""
        cut = self.exc.shape[0]
        return {'excitatory': slice(0, cut), 'inhibitory': slice(cut, self.neurons)}

    @property
    def out_degree(self) -> np.ndarray:
        """How many contacts each neuron makes."""
        return np.full(self.neurons, self.contacts)

    def init(self, seed: int = 0) -> State:
        """Give the state at time zero: membranes spread between reset and threshold.

        Parameters
        ----------
        seed : int
            Of what is drawn at random.

        Returns
        -------
        State
        """
        rng = np.random.default_rng(seed)
        n, dtype = self.neurons, self.exc.data.dtype
        v = self.reset + (self.threshold - self.reset) * rng.random(n)
        exc, inh = self.initial_input(rng)
        return State(
            v=u.math.asarray(v, dtype=dtype),
            exc=u.math.asarray(exc, dtype=dtype),
            inh=u.math.asarray(inh, dtype=dtype),
            rest=jnp.zeros(n, jnp.int8),
            spike=jnp.zeros(n, bool),
        )

    def step(self, state: State) -> State:
        """Advance by ``dt``.

        Parameters
        ----------
        state : State

        Returns
        -------
        State
        """
        v = u.math.where(state.rest > 0, state.v, self.membrane(state))
        spike = v > self.threshold
        cut = self.exc.shape[0]
        # A neuron that fires in step k moves again in step k + refractory / dt.
        held = round(float(self.refractory / self.dt)) - 1
        return State(
            v=u.math.where(spike, self.reset, v),
            exc=state.exc * decay(self.dt, self.tau_exc) + be.BinaryArray(spike[:cut]) @ self.exc,
            inh=state.inh * decay(self.dt, self.tau_inh) + be.BinaryArray(spike[cut:]) @ self.inh,
            rest=jnp.where(spike, jnp.int8(held), jnp.maximum(state.rest - 1, 0)),
            spike=spike,
        )

    @abc.abstractmethod
    def membrane(self, state: State) -> Any:
        """Where free membranes are after ``dt``, as if none had a threshold."""

    @abc.abstractmethod
    def initial_input(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """Excitatory and inhibitory input at time zero."""


def decay(dt: Any, tau: Any) -> Any:
    """Say what is left of an exponential after ``dt``."""
    return u.math.exp(-dt / tau)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class COBA(BalancedNetwork):
    """Synapses are conductances, which pull the membrane towards their reversal potential.

    ``C dv/dt = g_leak (E_leak - v) + g_exc (E_exc - v) + g_inh (E_inh - v) + I``, and both
    conductances decay exponentially.

    Parameters
    ----------
    exc, inh : FixedNumPerPre
        In nS: 6 and 67.
    drive : Quantity of pA
        The constant current ``I``. With the default of 200 pA, which alone would hold a neuron 10
        mV above threshold, a network fires at about 20 Hz. Benchmark 1 of the review has none: with
        ``0 pA`` activity keeps itself going at about 19 Hz, if it catches on at all.

    Examples
    --------
    >>> network = COBA.draw(500)
    >>> state = network.step(network.init())
    >>> state.v.shape, str(state.exc.unit)
    ((500,), 'nS')
    """

    drive: Any = dataclasses.field(default_factory=lambda: 200.0 * u.pA)

    name: ClassVar[str] = 'COBA'
    weight_exc: ClassVar[Any] = 6.0 * u.nS
    weight_inh: ClassVar[Any] = 67.0 * u.nS
    leak: ClassVar[Any] = 10.0 * u.nS
    reversal: ClassVar[Any] = -60.0 * u.mV
    reversal_exc: ClassVar[Any] = 0.0 * u.mV
    reversal_inh: ClassVar[Any] = -80.0 * u.mV

    def membrane(self, state: State) -> Any:
        """Where free membranes are after ``dt``."""
        capacity = self.tau * self.leak
        total = self.leak + state.exc + state.inh
        pull = (
            self.leak * self.reversal
            + state.exc * self.reversal_exc
            + state.inh * self.reversal_inh
            + self.drive
        )
        stay = u.math.exp(-self.dt * total / capacity)
        # The goal is pull / total, of which (1 - stay) is reached. The division comes last because
        # XLA recomputes cheap results in each of their uses, and keeps those of a division: 5 %
        # less time a step at 4,000 neurons, 20 % at 40,000.
        return (pull + (state.v * total - pull) * stay) / total

    def initial_input(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """Conductances of a network at work, so that activity starts in its usual range."""
        exc = 4.0 + 1.5 * rng.standard_normal(self.neurons)
        inh = 20.0 + 12.0 * rng.standard_normal(self.neurons)
        return self.leak * np.maximum(exc, 0.0), self.leak * np.maximum(inh, 0.0)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CUBA(BalancedNetwork):
    """Synapses are currents: a spike adds the same whatever the membrane potential.

    ``tau dv/dt = E_leak - v + exc + inh``, in voltages, as current over leak conductance; both
    inputs decay exponentially. ``E_leak`` lies 1 mV above threshold.

    Parameters
    ----------
    exc, inh : FixedNumPerPre
        In mV: 1.62 and -9, which is 0.27 and 4.5 nS at driving forces of 60 and -20 mV over a
        leak of 10 nS.

    Examples
    --------
    >>> network = CUBA.draw(500)
    >>> int(network.step(network.init()).spike.sum())
    0
    """

    name: ClassVar[str] = 'CUBA'
    weight_exc: ClassVar[Any] = 1.62 * u.mV
    weight_inh: ClassVar[Any] = -9.0 * u.mV
    reversal: ClassVar[Any] = -49.0 * u.mV

    def membrane(self, state: State) -> Any:
        """Where free membranes are after ``dt``."""
        rest = self.reversal + state.exc + state.inh
        return rest + (state.v - rest) * decay(self.dt, self.tau)

    def initial_input(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """Nothing at first."""
        nothing = 0.0 * u.mV * np.zeros(self.neurons)
        return nothing, nothing
