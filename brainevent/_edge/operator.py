# SPDX-License-Identifier: Apache-2.0
"""What an operator computes, as a hashable description, and the kernels that compute it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax

from brainevent._edge.event import Event
from brainevent._edge.layout import Layout
from brainevent._edge.weight import Weight
from brainevent._op import KernelEntry, XLACustomKernel
from brainevent._typing import Array

__all__ = ['PRODUCT', 'SAMPLE', 'EdgeOperator', 'Spec']


@dataclass(frozen=True)
class Spec:
    """All that is static about one operator on edges.

    Attributes
    ----------
    layout, weight : Layout, Weight
        How edges are found and what they carry.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        False: from columns to rows (``A x``); True: from rows to columns (``x A``).
    event : Event
        What elements of the input count for.
    rows : bool
        A matrix operand holds its vectors in rows, ``(batch, n)``, instead of columns.
    levels : int
        Leading batch axes of every operand, each of full length or of length one.
    """

    layout: Layout
    weight: Weight
    shape: tuple[int, int]
    transpose: bool = False
    event: Event = Event.REAL
    rows: bool = False
    levels: int = 0

    def but(self, **changes: Any) -> 'Spec':
        """Return the same description with some parts changed."""
        return replace(self, **changes)

    @property
    def extents(self) -> tuple[int, int]:
        """Lengths of the output and of the input."""
        m, n = self.shape
        return (n, m) if self.transpose else (m, n)

    @property
    def edges(self) -> int:
        """Number of structure arrays."""
        return len(self.layout.arrays)

    def split(self, operands: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """Take operands of a product apart: parameters, structure, input."""
        p = self.weight.params
        return tuple(operands[:p]), tuple(operands[p:-1]), operands[-1]


def batch_shape(operands: Sequence[Array], levels: int) -> tuple[int, ...]:
    """Return the full leading axes of operands, each of which has length one or the full one."""
    sizes = [[x.shape[k] for x in operands] for k in range(levels)]
    return tuple(next((n for n in level if n != 1), 1) for level in sizes)


def own_parts(operands: Sequence[Array], levels: int) -> tuple[Any, ...]:
    """Describe what one element of a batch has of each operand."""
    return tuple(struct(x.shape[levels:], x.dtype) for x in operands)


def sum_to(x: Array, shape: Sequence[int]) -> Array:
    """Sum the axes over which an operand was repeated, back to its own shape."""
    axes = tuple(k for k, n in enumerate(shape) if n == 1 and x.shape[k] != 1)
    return x.sum(axes, keepdims=True) if axes else x


class EdgeOperator:
    """An operator on edges: its kernels serve every family of layouts, present and future."""

    observers: ClassVar[list[Callable[[XLACustomKernel], None]]] = []
    """Called with every new primitive, of any operator."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._families: list[tuple[XLACustomKernel, Layout]] = []
        self._kernels: list[tuple[str | None, KernelEntry]] = []
        self.check: Callable[..., None] | None = None
        """Checks operands where a primitive is bound, see `brainevent._edge.shape_check`."""

    def _check_shapes(self, *avals: Any, **static: Any) -> None:
        if self.check is not None:
            self.check(*avals, **static)

    def kernel(
        self,
        backend: str,
        *platforms: str,
        supports: Callable[..., bool | str] | None = None,
        asdefault: bool = False,
        layout: str | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a generator, ``generator(*, spec, outs) -> kernel``, for all families.

        Parameters
        ----------
        backend : str
            The language it is written in.
        *platforms : {'cpu', 'gpu', 'tpu'}
            Where it runs.
        supports : callable, optional
            ``supports(*, spec, **_)`` returns True, or the reason why not. The kernel registered
            last that supports a call serves it.
        asdefault : bool
            Take this backend where nobody asks for one, though others were registered before.
        layout : str, optional
            Register for families over this layout only.
        """

        def register(generator: Callable[..., Any]) -> Callable[..., Any]:
            for platform in platforms:
                entry = KernelEntry(backend, platform, generator, supports, asdefault)
                self._kernels.append((layout, entry.check(f'{self.name}.kernel')))
                for op, of in self._families:
                    if layout in (None, of.name):
                        op.adopt([entry])
            return generator

        return register

    def kernels_for(self, layout: Layout) -> list[KernelEntry]:
        """Return the kernels over a layout so far."""
        return [entry for only, entry in self._kernels if only in (None, layout.name)]

    def attach(self, op: XLACustomKernel, layout: Layout) -> None:
        """Give a new primitive all kernels of this operator."""
        self._families.append((op, layout))
        op.adopt(self.kernels_for(layout))
        op.def_shape_check(self._check_shapes)
        for observe in self.observers:
            observe(op)


def struct(shape: Sequence[int], dtype: Any) -> jax.ShapeDtypeStruct:
    """Describe a result."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


PRODUCT = EdgeOperator('product')
"""``y[target] += weight * e(x)[source]`` over all edges."""

SAMPLE = EdgeOperator('sample')
"""``out[edge] = e(x)[source] * y[target]``, summed over a batch of vectors."""
