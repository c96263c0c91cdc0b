# SPDX-License-Identifier: Apache-2.0
"""Names for the types that stand in many signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax

__all__ = ['Array', 'ArrayLike', 'Kernel', 'KernelGenerator', 'Rule', 'Shape', 'Supports']

Array: TypeAlias = jax.Array
ArrayLike: TypeAlias = Any  # arrays, scalars, quantities and whatever offers ``__jax_array__``
Shape: TypeAlias = tuple[int, ...]
Kernel: TypeAlias = Callable[..., Any]
KernelGenerator: TypeAlias = Callable[..., Kernel]
Rule: TypeAlias = Callable[..., Sequence[Any]]
Supports: TypeAlias = Callable[..., 'bool | str']
