# SPDX-License-Identifier: Apache-2.0
"""Pytrees that `jax.export` can write: matrices and events as arguments of saved programs."""

import ast
import contextlib
from typing import Any, TypeVar

import brainunit as u
import jax
from jax.export import register_pytree_node_serialization

__all__ = ['pytree', 'serializable']

T = TypeVar('T')
_DIMENSIONS = (
    'length', 'mass', 'time', 'current', 'temperature', 'substance', 'luminosity',
)  # fmt: skip


def pytree(cls: type[T]) -> type[T]:
    """Register a class with named leaves as a pytree, for saved programs too.

    Parameters
    ----------
    cls : type
        With ``tree_flatten``, ``tree_flatten_with_keys`` and ``tree_unflatten``; its static part
        is a Python literal.

    Returns
    -------
    type
        The class itself.
    """
    jax.tree_util.register_pytree_with_keys_class(cls)
    return serializable(cls)


def serializable(cls: type[T]) -> type[T]:
    """Let programs of ``jax.export`` that take or return a registered pytree be saved.

    The name in the file is what JAX shows where the class is not known: it names the remedy.
    """
    package = cls.__module__.partition('.')[0]
    register_pytree_node_serialization(
        cls,
        serialized_name=f'{package}.{cls.__name__} (import {package} before loading)',
        serialize_auxdata=lambda static: repr(static).encode(),
        deserialize_auxdata=lambda text: ast.literal_eval(text.decode()),
    )
    return cls


def _write_unit(unit: Any) -> bytes:
    powers = [float(unit.dim.get_dimension(name)) for name in _DIMENSIONS]
    numbers = [float(x) for x in (unit.scale, unit.base, unit.factor)]
    return repr((powers, *numbers, unit.name, unit.dispname)).encode()


def _read_unit(text: bytes) -> Any:
    powers, scale, base, factor, name, shown = ast.literal_eval(text.decode())
    dim = u.get_or_create_dimension(powers)
    return u.Unit(dim, scale=scale, base=base, factor=factor, name=name, dispname=shown)


with contextlib.suppress(ValueError):  # brainunit may do so itself one day
    register_pytree_node_serialization(
        u.Quantity,
        serialized_name='brainunit.Quantity (import brainevent before loading)',
        serialize_auxdata=_write_unit,
        deserialize_auxdata=_read_unit,
    )
