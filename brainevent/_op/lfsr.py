# SPDX-License-Identifier: Apache-2.0
"""Random numbers from shift registers: a few integer operations a number, for authors of kernels.

A generator is a state of four 32-bit words and a linear recurrence over bits, so it runs wherever
32-bit integers do: in a Pallas kernel, under `jax.jit`, in a loop. Nothing of the package itself
draws from it.

============================ ============================ ================== =================
class                        recurrence                   period             reference
============================ ============================ ================== =================
`PallasLFSR88RNG`            taus88                       about 2**88        L'Ecuyer [1]_
`PallasLFSR113RNG`           lfsr113                      about 2**113       L'Ecuyer [2]_
`PallasLFSR128RNG`           xorshift128                  2**128 - 1         Marsaglia [3]_
============================ ============================ ================== =================

All bits of their output are linear over two elements: good for sampling, not for secrets.

References
----------
.. [1] P. L'Ecuyer, "Maximally equidistributed combined Tausworthe generators",
   Mathematics of Computation 65, 203-213 (1996).
.. [2] P. L'Ecuyer, "Tables of maximally equidistributed combined LFSR generators",
   Mathematics of Computation 68, 261-269 (1999).
.. [3] G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (14), 1-6 (2003).
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from brainevent import config
from brainevent._compat import is_tracer
from brainevent._error import DtypeError, OptionError, expect
from brainevent._pytree import serializable
from brainevent._typing import Array

__all__ = [
    'PallasLFSR113RNG',
    'PallasLFSR128RNG',
    'PallasLFSR88RNG',
    'PallasLFSRRNG',
    'get_pallas_lfsr_rng_class',
]

Key = tuple[Array, Array, Array, Array]

_GOLDEN = 0x9E3779B9  # 2**32 over the golden ratio: words of neighbouring seeds lie far apart


class _ShiftRegister(abc.ABC):
    """A generator: four words of state, and methods that draw from it and move it on."""

    least: ClassVar[tuple[int, int, int, int]]
    """Bits set in every fresh word: a register below its least value never leaves zero."""

    def __init__(self, seed: Any) -> None:
        self._key = self.generate_key(seed)

    def __init_subclass__(cls) -> None:
        """Make every generator a pytree whose leaves are the words of its state."""
        jax.tree_util.register_pytree_node(cls, lambda rng: rng.tree_flatten(), cls.tree_unflatten)
        serializable(cls)

    def tree_flatten(self) -> tuple[Key, None]:
        """Show the four words of the state as leaves."""
        return self._key, None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> Self:
        """Put a generator together from whatever stands for its words."""
        return cls._of(children)

    @classmethod
    def _of(cls, key: Any) -> Self:
        rng = object.__new__(cls)
        rng._key = tuple(key)
        return rng

    @property
    def key(self) -> Key:
        """The state, four words of dtype uint32; it can be set.

        Raises
        ------
        TypeError
            When set to anything but a tuple of four arrays.
        ValueError
            When one of them is not of dtype uint32.
        """
        return self._key

    @key.setter
    def key(self, value: Any) -> None:
        where = f'{type(self).__name__}.key'
        expect(
            isinstance(value, tuple) and len(value) == 4,
            DtypeError,
            where,
            'this is no state.',
            expected='a tuple of 4 arrays of dtype uint32',
            got=lambda: f'{type(value).__name__} {value!r:.60}',
        )
        for position, word in enumerate(value):
            expect(
                hasattr(word, 'dtype'),
                DtypeError,
                where,
                f'word {position} is no array.',
                expected='an array of dtype uint32',
                got=lambda word=word: type(word).__name__,
            )
            expect(
                word.dtype == np.uint32,
                OptionError,
                where,
                f'word {position} has another dtype.',
                expected='uint32',
                got=lambda word=word: word.dtype,
            )
        self._key = value

    def generate_key(self, seed: Any) -> Key:
        """Return the state that belongs to a seed; the generator keeps its own.

        Parameters
        ----------
        seed : int, or Array of int
            Taken modulo 2**32; may be traced. With an array of seeds every draw is an array.

        Returns
        -------
        tuple of 4 Array of uint32

        Raises
        ------
        TypeError
            If the seed is no integer.
        """
        word = _as_word(type(self).__name__, seed)
        words = (_mixed(word + np.uint32(k * _GOLDEN & 0xFFFFFFFF)) for k in (1, 2, 3, 4))
        return tuple(w | np.uint32(bit) for w, bit in zip(words, self.least, strict=True))  # type: ignore[return-value]

    def generate_next_key(self) -> Key:
        """Move on by one step and return the new state.

        Returns
        -------
        tuple of 4 Array of uint32
        """
        self._key = self._next(*self._key)
        return self._key

    @staticmethod
    @abc.abstractmethod
    def _next(a: Array, b: Array, c: Array, d: Array) -> Key:
        """Return the state after this one."""

    @staticmethod
    @abc.abstractmethod
    def _output(a: Array, b: Array, c: Array, d: Array) -> Array:
        """Return the number that a state shows."""

    def randint(self) -> Array:
        """Draw an integer, each of 32 bits equally often.

        Returns
        -------
        Array of uint32
        """
        return self._output(*self.generate_next_key())

    def rand(self) -> Array:
        """Draw from [0, 1), in steps of 2**-24.

        Returns
        -------
        Array of float32
        """
        return (self.randint() >> np.uint32(8)).astype(jnp.float32) * np.float32(2.0**-24)

    def randn(self, epsilon: float = 1e-10) -> Array:
        """Draw from the standard normal distribution, by the sine branch of Box and Muller.

        Parameters
        ----------
        epsilon : float
            Floor of the number whose logarithm is taken.

        Returns
        -------
        Array of float32
        """
        radius = jnp.sqrt(np.float32(-2) * jnp.log(jnp.maximum(self.rand(), epsilon)))
        return radius * jnp.sin(np.float32(2 * math.pi) * self.rand())

    def uniform(self, low: Any, high: Any) -> Array:
        """Draw from [low, high).

        Parameters
        ----------
        low, high : float or Array

        Returns
        -------
        Array of float32
        """
        return low + (high - low) * self.rand()  # type: ignore[no-any-return]

    def normal(self, mu: Any, sigma: Any, epsilon: float = 1e-10) -> Array:
        """Draw from a normal distribution.

        Parameters
        ----------
        mu, sigma : float or Array
            Mean and standard deviation.
        epsilon : float
            As in `randn`.

        Returns
        -------
        Array of float32
        """
        return mu + sigma * self.randn(epsilon)  # type: ignore[no-any-return]

    def random_integers(self, low: Any, high: Any) -> Array:
        """Draw an integer from ``low`` to ``high``, both included, by a remainder.

        Parameters
        ----------
        low, high : int or Array of int

        Returns
        -------
        Array of int32
            Small numbers are favoured by less than (high - low + 1) / 2**32.
        """
        first = jnp.asarray(low).astype(jnp.uint32)
        span = jnp.asarray(high).astype(jnp.uint32) - first + np.uint32(1)
        number = self.randint()
        # All 2**32 integers have a span of zero.
        rest = jnp.where(span == 0, number, number % jnp.maximum(span, np.uint32(1)))
        return (first + rest).astype(jnp.int32)


def _tausworthe(z: Array, q: int, s: int, keep: int, back: int) -> Array:
    """Move one register on by ``s`` bits; ``keep`` masks the bits that belong to it."""
    feedback = ((z << np.uint32(q)) ^ z) >> np.uint32(back)
    return ((z & np.uint32(keep)) << np.uint32(s)) ^ feedback


class PallasLFSR88RNG(_ShiftRegister):
    """Generator taus88: three combined Tausworthe registers, with a period of about 2**88.

    Parameters
    ----------
    seed : int, or Array of int
        May be traced.

    Notes
    -----
    The fourth word of the state is carried along unused. The recurrence is that of L'Ecuyer,
    Mathematics of Computation 65, 203-213 (1996).

    Examples
    --------
    >>> import brainevent
    >>> rng = brainevent.PallasLFSR88RNG(42)
    >>> bool(0 <= rng.rand() < 1), bool(1 <= rng.random_integers(1, 6) <= 6)
    (True, True)
    >>> @jax.jit
    ... def two(rng):
    ...     return rng.randn(), rng.randn(), rng  # the state goes on with the one returned
    >>> first, second, rng = two(rng)
    """

    least = (2, 8, 16, 0)

    @staticmethod
    def _next(a: Array, b: Array, c: Array, d: Array) -> Key:
        return (
            _tausworthe(a, 13, 12, 0xFFFFFFFE, 19),
            _tausworthe(b, 2, 4, 0xFFFFFFF8, 25),
            _tausworthe(c, 3, 17, 0xFFFFFFF0, 11),
            d,
        )

    @staticmethod
    def _output(a: Array, b: Array, c: Array, d: Array) -> Array:
        return a ^ b ^ c


class PallasLFSR113RNG(_ShiftRegister):
    """Generator lfsr113: four combined Tausworthe registers, with a period of about 2**113.

    Parameters
    ----------
    seed : int, or Array of int
        May be traced.

    Notes
    -----
    The recurrence is that of L'Ecuyer, Mathematics of Computation 68, 261-269 (1999).

    Examples
    --------
    >>> import brainevent
    >>> rng = brainevent.PallasLFSR113RNG(42)
    >>> rng.randint().dtype
    dtype('uint32')
    """

    least = (2, 8, 16, 128)

    @staticmethod
    def _next(a: Array, b: Array, c: Array, d: Array) -> Key:
        return (
            _tausworthe(a, 6, 18, 0xFFFFFFFE, 13),
            _tausworthe(b, 2, 2, 0xFFFFFFF8, 27),
            _tausworthe(c, 13, 7, 0xFFFFFFF0, 21),
            _tausworthe(d, 3, 13, 0xFFFFFF80, 12),
        )

    @staticmethod
    def _output(a: Array, b: Array, c: Array, d: Array) -> Array:
        return a ^ b ^ c ^ d


class PallasLFSR128RNG(_ShiftRegister):
    """Generator xorshift128: one register of 128 bits, with a period of 2**128 - 1.

    Parameters
    ----------
    seed : int, or Array of int
        May be traced.

    Notes
    -----
    The recurrence is that of Marsaglia, Journal of Statistical Software 8 (14), 1-6 (2003).

    Examples
    --------
    >>> import brainevent
    >>> rng = brainevent.PallasLFSR128RNG(42)
    >>> bool(2.0 <= rng.uniform(2.0, 3.0) < 3.0)
    True
    """

    least = (1, 0, 0, 0)

    @staticmethod
    def _next(a: Array, b: Array, c: Array, d: Array) -> Key:
        t = a ^ (a << np.uint32(11))
        return b, c, d, d ^ (d >> np.uint32(19)) ^ t ^ (t >> np.uint32(8))

    @staticmethod
    def _output(a: Array, b: Array, c: Array, d: Array) -> Array:
        return d


_CLASSES: dict[str, type[_ShiftRegister]] = {
    'lfsr88': PallasLFSR88RNG,
    'lfsr113': PallasLFSR113RNG,
    'lfsr128': PallasLFSR128RNG,
}


def get_pallas_lfsr_rng_class() -> type[_ShiftRegister]:
    """Return the class of generator that `config.set_lfsr_algorithm` chose.

    Returns
    -------
    type

    Examples
    --------
    >>> import brainevent
    >>> brainevent.get_pallas_lfsr_rng_class().__name__
    'PallasLFSR88RNG'
    """
    return _CLASSES[config.get_lfsr_algorithm()]


def PallasLFSRRNG(seed: Any) -> _ShiftRegister:  # noqa: N802 -- reads like the classes it makes
    """Make a generator of the class that `config.set_lfsr_algorithm` chose.

    Parameters
    ----------
    seed : int, or Array of int
        May be traced.

    Returns
    -------
    PallasLFSR88RNG, PallasLFSR113RNG or PallasLFSR128RNG

    Examples
    --------
    >>> import brainevent
    >>> brainevent.PallasLFSRRNG(42).rand().shape
    ()
    """
    return get_pallas_lfsr_rng_class()(seed)


def _as_word(where: str, seed: Any) -> Array:
    """Return a seed as 32 bits."""
    if isinstance(seed, int) and not isinstance(seed, bool):
        return jnp.asarray(np.uint32(seed & 0xFFFFFFFF))
    number = seed if is_tracer(seed) else np.asarray(seed)
    expect(
        jnp.issubdtype(number.dtype, jnp.integer),
        DtypeError,
        where,
        'the seed is no integer.',
        expected='an integer, or an array of integers',
        got=lambda: f'{type(seed).__name__} {seed!r:.60}',
    )
    return jnp.asarray(seed).astype(jnp.uint32)


def _mixed(x: Array) -> Array:
    """Spread 32 bits over 32 bits: the finaliser of MurmurHash3 (A. Appleby, public domain)."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))
