# SPDX-License-Identifier: Apache-2.0
"""What an edge carries: a value, linear in a few parameters, found from the edge's tag."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from brainevent._edge.layout import Twin
from brainevent._edge.random import gauss, unit
from brainevent._typing import Array

__all__ = ['CONSTANT', 'NORMAL', 'STORED', 'UNIFORM', 'WEIGHTS', 'Weight']

WEIGHTS: dict[str, 'Weight'] = {}
"""Every kind of weight by its name, by which native kernels find it."""


@dataclass(frozen=True)
class Weight:
    """A kind of weight: its parameters, and its value on edges.

    Attributes
    ----------
    name : str
        Identifies it in names, caches and messages.
    params : int
        Number of parameters.
    value : callable
        ``value(params, tag)``, linear in the parameters. The tag of an edge is the place of its
        stored weight, or, on a drawn layout, a random number that is the edge's own.
    draws : {'', 'unit', 'gauss'}
        Which number that is on a drawn layout: none, uniform in [0, 1), or standard normal.
    native : callable, optional
        The same function for one edge, for numba to compile, if ``value`` is more than arithmetic.
    constant : tuple of float, optional
        Parameters for which all edges weigh one, if there are any.
    cuda : Twin, optional
        Its CUDA C++: a class template over the type of sums, as in ``kernels/cuda/drawn.cuh``.
    """

    name: str
    params: int
    value: Callable[[Any, Any], Any]
    draws: str = ''
    native: Callable[[Any, Any], Any] | None = None
    constant: tuple[float, ...] | None = None
    cuda: Twin | None = None

    def __post_init__(self) -> None:
        """Enter the table."""
        WEIGHTS[self.name] = self

    def of_edges(self, params: Any, key: Any) -> Array:
        """Return the weights of drawn edges with these keys; parameters are single numbers.

        Numbers of 16 bits are computed in float32.
        """
        dtype = params[0].dtype
        wide = jnp.promote_types(dtype, jnp.float32) if self.draws else dtype
        real = jnp.zeros((), wide).real.dtype
        number = _MAKERS[self.draws](key, real) if self.draws else None
        return jnp.asarray(self.value([p.astype(wide) for p in params], number)).astype(dtype)


_MAKERS: dict[str, Callable[[Any, Any], Any]] = {'unit': unit, 'gauss': gauss}


def _stored(params: tuple[Array, ...], tag: Any) -> Array:
    (data,) = params
    return data[0] if data.shape[0] == 1 else data[tag]


def _constant(params, number):  # type: ignore[no-untyped-def]
    return params[0]


def _uniform(params, number):  # type: ignore[no-untyped-def]
    return params[0] + (params[1] - params[0]) * number


def _normal(params, number):  # type: ignore[no-untyped-def]
    return params[0] + params[1] * number


STORED = Weight('stored', 1, _stored, cuda=Twin('be::Stored'))
"""One number for every edge, or one for all of them."""

CONSTANT = Weight('constant', 1, _constant, constant=(1.0,), cuda=Twin('be::Constant'))
"""The same number on all edges that are drawn."""

UNIFORM = Weight(
    'uniform', 2, _uniform, draws='unit', constant=(1.0, 1.0), cuda=Twin('be::Uniform')
)
"""Uniform between a low and a high end."""

NORMAL = Weight('normal', 2, _normal, draws='gauss', constant=(1.0, 0.0), cuda=Twin('be::Normal'))
"""Normal, of a location and a scale."""
