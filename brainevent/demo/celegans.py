# SPDX-License-Identifier: Apache-2.0
"""A spiking sketch on the real *C. elegans* connectome: synapses by events, gap junctions by value.

The wiring is data: every chemical synapse and gap junction of the adult hermaphrodite [1]_, as the
package ships it in ``data/``, with the number of contacts as strength. What runs on it is not a
model of the worm. Most of its neurons do not fire action potentials, and the constants below are
illustrative: chosen of a plausible order, so that the network is quiet, and answers when it is
touched.

Signs follow the transmitter. The 26 neurons that were first found to use GABA [2]_ (DD, VD, RME,
RIS, AVL, DVB) inhibit, all others excite. Exceptions are not modelled, such as GABA that excites
the enteric muscles, or glutamate that inhibits through chloride channels.

Neurons and muscles fire; glia, epithelia and other cells only conduct. The network is touched twice
a second: first near the head (ALM, AVM), then near the tail (PLM), the two stimuli of which
the circuit was worked out [3]_.

References
----------
.. [1] Cook et al. 2019, Nature 571:63-71, as distributed by the C. elegans Connectome Toolbox.
.. [2] McIntire et al. 1993, Nature 364:337-341.
.. [3] Chalfie et al. 1985, J Neurosci 5:956-964.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

import brainevent as be

__all__ = ['CElegans', 'State', 'Wiring', 'load_wiring']

FILE = 'celegans_cook2019_hermaphrodite.csv'


def _cells(classes: str) -> re.Pattern[str]:
    """Match the members of cell classes: a name, then side and number (RME -> RMEL, VD -> VD12)."""
    return re.compile(f'({"|".join(classes.split())})[DV]?[LR]?[0-9]*')


GABA = _cells('DD VD RME RIS AVL DVB')

# Where a cell goes in the raster: the first pattern that fits. Classes as in White et al. 1986
# (Phil Trans R Soc B 314:1-340); a neuron of several roles is listed with the first of them.
GROUPS = {
    'sensory': _cells(
        'ADE ADF ADL AFD ALM ALN AQR ASE ASG ASH ASI ASJ ASK AVM AWA AWB AWC BAG CEP FLP IL1 IL2 '
        'OLL OLQ PDE PHA PHB PHC PLM PLN PQR PVD PVM SDQ URB URX URY'
    ),
    'motor': _cells(
        'AS AVL DA DB DD DVB HSN PDA PDB RIV RMD RME RMF RMH SAB SMB SMD URA VA VB VC VD'
    ),
    'pharynx': re.compile('(I[1-6]|M[1-5]|MC|NSM)[LR]?|MI'),
    'muscle': re.compile('M[DV][LR][0-9]{2}|(mu_|pm|um|vm).*'),
    'other': re.compile('GLR.*|.*[a-z].*'),
    'interneuron': re.compile('.*'),
}
ORDER = ('sensory', 'interneuron', 'motor', 'pharynx', 'muscle', 'other')
PASSIVE = ('other',)


def _group_of(cell: str) -> str:
    return next(group for group, pattern in GROUPS.items() if pattern.fullmatch(cell))


class Wiring(NamedTuple):
    """The connectome as index arrays; cells are sorted by group, then by name."""

    cells: tuple[str, ...]
    groups: Mapping[str, slice]
    chemical: tuple[np.ndarray, np.ndarray, np.ndarray]  # from, to, number of contacts
    gap: tuple[np.ndarray, np.ndarray, np.ndarray]  # both directions of each junction


@functools.cache
def load_wiring() -> Wiring:
    """Read the connectome that ships with the package; once, so that its arrays are read-only.

    Returns
    -------
    Wiring

    Examples
    --------
    >>> wiring = load_wiring()
    >>> len(wiring.cells), len(wiring.chemical[0]), int(wiring.chemical[2].sum())
    (473, 4879, 28113)
    """
    text = (resources.files(__package__) / 'data' / FILE).read_text(encoding='utf-8')
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith('#')))
    names = {row[end] for row in rows for end in ('pre', 'post')}
    cells = tuple(sorted(names, key=lambda cell: (ORDER.index(_group_of(cell)), cell)))
    number = {cell: i for i, cell in enumerate(cells)}
    sizes = [sum(_group_of(cell) == group for cell in cells) for group in ORDER]
    ends = np.cumsum(sizes).tolist()

    def edges(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = [
            (number[row['pre']], number[row['post']], int(row['count']))
            for row in rows
            if row['kind'] == kind
        ]
        pre, post, count = np.array(found, np.int32).T
        for column in (pre, post, count):
            column.flags.writeable = False
        return pre, post, count

    groups = {
        group: slice(end - size, end) for group, end, size in zip(ORDER, ends, sizes, strict=True)
    }
    return Wiring(cells, MappingProxyType(groups), edges('chemical'), edges('gap'))


class State(NamedTuple):
    """What the network remembers between two steps, one entry per cell."""

    v: Any  # membrane potential
    current: Any  # synaptic input
    fatigue: Any  # adaptation: a current that grows with each spike of the cell itself
    rest: jax.Array  # steps for which the membrane is still held
    spike: jax.Array  # who fired in the step just made
    clock: jax.Array  # steps made so far


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CElegans:
    """Leaky integrate-and-fire cells on the connectome of *C. elegans*.

    ``C dv/dt = g_leak (E_leak - v) + sum_j gap_ij (v_j - v_i) + I_syn - I_fatigue + I_bias +
    I_touch``. A spike adds its synapses' weights to ``I_syn`` of their targets, and a constant to
    ``I_fatigue`` of its own cell; both decay exponentially.

    Parameters
    ----------
    chemical : CSR, shape (cells, cells)
        From row to column, in pA: what a spike adds. Inhibitory rows are negative.
    gap : CSR, shape (cells, cells)
        Symmetric, in nS.
    gap_total : Quantity, shape (cells,)
        All gap junctions of a cell: with ``gap``, the graph Laplacian.
    bias : Quantity, shape (cells,)
        Constant currents, differing between cells, in pA.
    head, tail : Quantity, shape (cells,)
        What touch adds while it lasts, in pA.
    can_fire : Array of bool, shape (cells,)

    Examples
    --------
    >>> worm = CElegans.draw()
    >>> worm.neurons, worm.step(worm.init()).v.shape
    (473, (473,))
    """

    chemical: be.CSR
    gap: be.CSR
    gap_total: Any
    bias: Any
    head: Any
    tail: Any
    can_fire: jax.Array

    name: ClassVar[str] = 'C. elegans'
    members: ClassVar[str] = 'cells'
    stimuli: ClassVar[Mapping[str, tuple[float, float]]] = {
        'head': (200.0, 300.0),
        'tail': (600.0, 700.0),
    }
    dt: ClassVar[Any] = 0.1 * u.ms
    capacity: ClassVar[Any] = 1.0 * u.pF
    leak: ClassVar[Any] = 0.1 * u.nS
    tau_syn: ClassVar[Any] = 5.0 * u.ms
    tau_fatigue: ClassVar[Any] = 100.0 * u.ms
    rest: ClassVar[Any] = -60.0 * u.mV
    threshold: ClassVar[Any] = -50.0 * u.mV
    refractory: ClassVar[Any] = 3.0 * u.ms
    contact: ClassVar[Any] = 0.13 * u.pA
    junction: ClassVar[Any] = 0.002 * u.nS
    effort: ClassVar[Any] = 0.5 * u.pA
    bias_max: ClassVar[Any] = 0.9 * u.pA
    touch: ClassVar[Any] = 6.0 * u.pA

    @classmethod
    def draw(cls, *, seed: int = 0, dtype: Any = np.float32) -> Self:
        """Build the network; only the constant currents are drawn at random.

        Parameters
        ----------
        seed : int
        dtype : dtype
            Of the whole simulation.

        Returns
        -------
        CElegans
        """
        wiring = load_wiring()
        n = len(wiring.cells)

        def matrix(pre: np.ndarray, post: np.ndarray, weight: Any) -> be.CSR:
            indptr, indices, order = be.coo2csr(pre, post, shape=(n, n))
            return be.CSR((weight[order].astype(dtype), indices, indptr), shape=(n, n))

        def where(wanted: re.Pattern[str]) -> np.ndarray:
            return np.array([bool(wanted.fullmatch(cell)) for cell in wiring.cells])

        pre, post, count = wiring.chemical
        gap = matrix(*wiring.gap[:2], cls.junction * wiring.gap[2])
        touch = cls.touch.astype(dtype)
        passive = np.concatenate([np.r_[wiring.groups[group]] for group in PASSIVE])
        return cls(
            chemical=matrix(pre, post, cls.contact * count * np.where(where(GABA), -1, 1)[pre]),
            gap=gap,
            gap_total=gap @ jnp.ones(n, dtype),
            bias=(cls.bias_max * np.random.default_rng(seed).random(n)).astype(dtype),
            head=touch * where(_cells('ALM AVM')).astype(dtype),
            tail=touch * where(_cells('PLM')).astype(dtype),
            can_fire=jnp.asarray(~np.isin(np.arange(n), passive)),
        )

    @property
    def neurons(self) -> int:
        """How many cells there are."""
        return int(self.chemical.shape[0])

    @property
    def populations(self) -> dict[str, slice]:
        """Which cells belong together, in the order of a raster."""
        return {
            group: cells for group, cells in load_wiring().groups.items() if group not in PASSIVE
        }

    @property
    def out_degree(self) -> np.ndarray:
        """How many cells each cell has chemical synapses on."""
        return np.diff(np.asarray(self.chemical.indptr))

    def init(self, seed: int = 0) -> State:
        """Give the state at time zero: all at rest.

        Parameters
        ----------
        seed : int
            Not used; other networks draw their initial state.

        Returns
        -------
        State
        """
        n, dtype = self.neurons, self.chemical.data.dtype
        return State(
            v=self.rest * jnp.ones(n, dtype),
            current=u.math.zeros(n, dtype, unit=u.pA),
            fatigue=u.math.zeros(n, dtype, unit=u.pA),
            rest=jnp.zeros(n, jnp.int8),
            spike=jnp.zeros(n, bool),
            clock=jnp.zeros((), jnp.int32),
        )

    def step(self, state: State) -> State:
        """Advance by ``dt`` (exponential Euler, neighbours' potentials held).

        Parameters
        ----------
        state : State

        Returns
        -------
        State
        """
        total = self.leak + self.gap_total
        current = state.current - state.fatigue + self.input(state.clock)
        pull = self.leak * self.rest + self.gap @ state.v + current
        stay = u.math.exp(-self.dt * total / self.capacity)
        free = (pull + (state.v * total - pull) * stay) / total
        v = u.math.where(state.rest > 0, state.v, free)
        spike = (v > self.threshold) & self.can_fire
        held = round(float(self.refractory / self.dt)) - 1
        return State(
            v=u.math.where(spike, self.rest, v),
            current=state.current * u.math.exp(-self.dt / self.tau_syn)
            + be.BinaryArray(spike) @ self.chemical,
            fatigue=state.fatigue * u.math.exp(-self.dt / self.tau_fatigue)
            + u.math.where(spike, self.effort, 0.0 * u.pA),
            rest=jnp.where(spike, jnp.int8(held), jnp.maximum(state.rest - 1, 0)),
            spike=spike,
            clock=state.clock + 1,
        )

    def input(self, clock: jax.Array) -> Any:
        """Give what comes from outside: constant currents, and touch when its time has come."""
        second = round(float(1.0 * u.second / self.dt))
        total = self.bias
        for place, current in (('head', self.head), ('tail', self.tail)):
            begin, end = (round(ms / 1000 * second) for ms in self.stimuli[place])
            now = clock % second
            total = total + current * ((now >= begin) & (now < end))
        return total
