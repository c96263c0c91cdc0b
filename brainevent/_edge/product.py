# SPDX-License-Identifier: Apache-2.0
"""Products of a matrix and a vector or a batch of them, and all of their calculus.

The product is the trilinear form ``T(w, x, y) = sum_e w_e x[source(e)] y[target(e)]`` contracted
with ``w`` and ``x``; the sample is the same form contracted with ``x`` and ``y``. Both are linear
in each of their operands, so every derivative is again a product or a sample:

=================================  =====================================================
tangent of the weights             product with the tangent in their place
tangent of the input               product with the tangent, events read as plain numbers
cotangent of the input             product, direction flipped, events read as plain numbers
cotangent of the weights, each     sample
cotangent of one shared weight     inner product of the cotangent with the product of a one
=================================  =====================================================

They hold for every layout, weight, kind of event, direction and rank, to every order. Events are
differentiated straight through: with respect to an event vector the operator is the ordinary
product, with respect to weights an active event counts one.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax.numpy as jnp

from brainevent._compat import is_tracer, is_undefined
from brainevent._edge.doors import Door, raise_level
from brainevent._edge.event import Event
from brainevent._edge.layout import Layout
from brainevent._edge.listed import Listed
from brainevent._edge.misfit import check_input
from brainevent._edge.operands import (
    as_array,
    check_spike_unit,
    check_structure,
    common_dtype,
    split_unit,
    with_unit,
)
from brainevent._edge.operator import (
    PRODUCT,
    SAMPLE,
    EdgeOperator,
    Spec,
    batch_shape,
    own_parts,
    struct,
    sum_to,
)
from brainevent._edge.weight import Weight
from brainevent._error import DtypeError, ShapeError, expect
from brainevent._op import XLACustomKernel, soften
from brainevent._typing import Array

__all__ = ['FAMILIES', 'Products']

FAMILIES: dict[str, 'Products'] = {}
"""Every family by its stem. Conformance tests take their cases from here."""


class Products(Door):
    """The named products of one layout and weight: {real, binary, masked} x {mv, mm}.

    Parameters
    ----------
    layout : Layout
        How edges are found.
    weight : Weight
        What they carry.
    stem : str
        Part of the primitives' names: ``csr`` gives ``csrmv``, ``binary_csrmm`` and so on.
    names : str, optional
        The names where they are not the stem and ``mv`` or ``mm``, with ``{}`` for these.
    """

    def __init__(self, layout: Layout, weight: Weight, stem: str, names: str = '') -> None:
        self.layout, self.weight, self.stem = layout, weight, stem
        self.names = names or f'{stem}{{}}'
        kinds = [(event, rank) for event in Event for rank in (1, 2)]
        self.ops = {kind: self._declare(PRODUCT, '', *kind) for kind in kinds}
        sampled = kinds if weight.name == 'stored' else []  # others have no number for each edge
        self.samples = {kind: self._declare(SAMPLE, '_sample', *kind) for kind in sampled}
        self.listed = Listed(self)
        FAMILIES[stem] = self

    def __repr__(self) -> str:
        """Name the family."""
        return f'Products({self.layout.name}, {self.weight.name})'

    def primitives(self, event: Event) -> tuple[XLACustomKernel, XLACustomKernel]:
        """Return the operators for a vector and for a batch of vectors."""
        return self.ops[event, 1], self.ops[event, 2]

    def _declare(
        self, operator: EdgeOperator, suffix: str, event: Event, rank: int
    ) -> XLACustomKernel:
        name = event.value + self.names.format('mv' if rank == 1 else 'mm') + suffix
        op = XLACustomKernel(name)
        structure = [None] * len(self.layout.arrays)
        if operator is PRODUCT:
            weights = [functools.partial(self._jvp_weight, q) for q in range(self.weight.params)]
            op.def_jvp_rule2(*weights, *structure, self._jvp_input)
            op.def_transpose_rule(self._transpose)
            op.def_batching_rule(functools.partial(_batch, self.bind))
        else:
            op.def_jvp_rule2(*structure, self._jvp_sample_input, self._jvp_sample_output)
            op.def_transpose_rule(self._transpose_sample)
            op.def_batching_rule(functools.partial(_batch_sample, self.sample))
        op.def_tags(self.layout.name, operator.name, (event.value or 'float_').rstrip('_'))
        operator.attach(op, self.layout)
        return op

    # ---- the door -------------------------------------------------------------------------

    def __call__(
        self,
        where: str,
        params: Sequence[Any],
        arrays: Sequence[Array],
        x: Any,
        *,
        shape: tuple[int, int],
        transpose: bool = False,
        event: Event = Event.REAL,
        rows: bool = False,
        backend: str | None = None,
        checked: bool = False,
        active: Sequence[Array] = (),
    ) -> Any:
        """Multiply; units, dtypes and shapes of all operands are settled here.

        Parameters
        ----------
        where : str
            Name of the call in messages.
        params : sequence of Array or Quantity
            Parameters of the weights; they share a unit. Stored weights: one, or one an edge.
        arrays : sequence of Array
            Structure.
        x : Array or Quantity
            Input of one axis, or two: ``(n, batch)``, ``(batch, n)`` with ``rows``.
        shape, transpose, event, rows
            See `Spec`.
        backend : str, optional
            Demand a backend.
        checked : bool
            The structure has been checked before, by a matrix.
        active : sequence of Array
            Ids and number of the active elements of binary events, or of the rows of a batch in
            columns that have any, if somebody has listed them; see `brainevent._edge.listed`.

        Returns
        -------
        Array or Quantity
            In the product of both units.
        """
        numbers, units = zip(*map(split_unit, params), strict=True)
        value, x_unit = split_unit(x)
        if event is Event.BINARY:
            check_spike_unit(where, x_unit)
        data = [as_array(where, 'data', p) for p in numbers]
        value = as_array(where, 'v', value)
        spec = Spec(self.layout, self.weight, shape, bool(transpose), event, rows)
        if not checked:
            check_structure(where, self.layout, arrays, shape)
        self._check_operands(where, data, arrays, value, spec, checked)
        listed = tuple(active) if event is Event.BINARY and not rows else ()
        traced = any(map(is_tracer, (*data, *arrays, *listed, value)))
        run = (self._traced if traced else self._compiled)(spec, backend)
        return with_unit(run(tuple(data), tuple(arrays), value, listed), units[0], x_unit)

    def _check_operands(
        self,
        where: str,
        data: Sequence[Array],
        arrays: Sequence[Array],
        x: Array,
        spec: Spec,
        by_matrix: bool,
    ) -> None:
        count = self.layout.count(tuple(arrays), spec.shape)
        for p in data if self.weight.name == 'stored' else ():
            expect(
                p.size in (1, count),
                ShapeError,
                where,
                '`data` does not fit the structure.',
                expected=f'one weight, or {count}: one for every connection',
                got=lambda p=p: f'shape {p.shape}',
                remedy='give one weight for all connections or one for each',
            )
        check_input(where, x, spec, by_matrix)
        expect(
            spec.event is not Event.BINARY or x.dtype.kind != 'c',
            DtypeError,
            where,
            'complex numbers are no events.',
            expected='truth values, integers or floats',
            got=x.dtype,
            remedy='compare them first, or multiply without BinaryArray',
        )

    def _traced(self, spec: Spec, backend: Any) -> Callable[..., Array]:
        """Return the product as a function to be traced into the program at hand."""

        def run(
            data: tuple[Array, ...], arrays: tuple[Array, ...], x: Array, listed: tuple[Array, ...]
        ) -> Array:
            dtype = common_dtype(functools.reduce(_wider, data), x, spec.event)
            params = [p.reshape(-1).astype(dtype) for p in data]
            if spec.event is Event.REAL:
                x = x.astype(dtype)
            if listed:
                return self.listed.bind(params, (*arrays, *listed), x, spec, backend)
            return self.bind(params, arrays, x, spec, backend)

        return run

    def bind(
        self, params: Sequence[Any], arrays: Sequence[Any], x: Any, spec: Spec, backend: Any
    ) -> Array:
        """Bind the primitive of a product; operands are arrays of settled dtypes."""
        operands = (*params, *arrays, x)
        core = list(x.shape[spec.levels :])
        core[-1 if spec.rows else 0] = spec.extents[0]
        out = struct((*batch_shape(operands, spec.levels), *core), params[0].dtype)
        op = self.ops[spec.event, len(core)]
        (result,) = op(*operands, outs=[out], spec=spec, backend=backend)
        return cast(Array, result)

    def sample(self, arrays: Sequence[Any], x: Any, y: Any, spec: Spec, backend: Any) -> Array:
        """Bind the primitive of a sample: one number for every edge."""
        operands = (*arrays, x, y)
        lead = batch_shape(operands, spec.levels)
        count = self.layout.count(own_parts(arrays, spec.levels), spec.shape)
        op = self.samples[spec.event, x.ndim - spec.levels]
        out = struct((*lead, count), y.dtype)
        (result,) = op(*operands, outs=[out], spec=spec, backend=backend)
        return cast(Array, result)

    # ---- the calculus of the product --------------------------------------------------------

    def _jvp_weight(
        self, q: int, dw: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        params, arrays, x = spec.split(operands)
        tangents = [dw if k == q else jnp.zeros_like(p) for k, p in enumerate(params)]
        return [self.bind(tangents, arrays, x, spec, backend)]

    def _jvp_input(
        self, dx: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        params, arrays, _x = spec.split(operands)
        plain, kind = spec.but(event=Event.REAL), params[0].dtype
        return [self.bind(params, arrays, dx.astype(kind), plain, soften(backend))]

    def _transpose(
        self, cts: Sequence[Array], *operands: Any, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Any]:
        params, arrays, x = spec.split(operands)
        blank: list[Any] = [None] * len(arrays)
        (ct,), soft = cts, soften(backend)
        if is_undefined(x):
            back = spec.but(transpose=not spec.transpose, event=Event.REAL)
            dx = self.bind(params, arrays, ct, back, soft)
            return [*[None] * len(params), *blank, sum_to(dx, x.aval.shape)]
        grads = [
            self._weight_cotangent(q, ct, params, arrays, x, spec, soft)
            if is_undefined(p)
            else None
            for q, p in enumerate(params)
        ]
        return [*grads, *blank, None]

    def _weight_cotangent(
        self, q: int, ct: Array, params: Any, arrays: Any, x: Array, spec: Spec, backend: Any
    ) -> Array:
        shape = params[q].aval.shape
        if self.weight.name == 'stored' and shape[-1] != 1:
            return sum_to(self.sample(arrays, x, ct, spec, backend), shape)
        lone = (1,) * len(shape)
        units = [jnp.full(lone, float(k == q), ct.dtype) for k in range(len(params))]
        product = self.bind(units, arrays, x, spec, backend)
        inner = (product * ct).sum(tuple(range(spec.levels, ct.ndim)))
        return sum_to(inner[..., None], shape)

    # ---- the calculus of the sample ---------------------------------------------------------

    def _jvp_sample_input(
        self, dx: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        *arrays, _x, y = operands
        plain = spec.but(event=Event.REAL)
        return [self.sample(arrays, dx.astype(y.dtype), y, plain, soften(backend))]

    def _jvp_sample_output(
        self, dy: Array, *operands: Array, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Array]:
        *arrays, x, _y = operands
        return [self.sample(arrays, x, dy, spec, backend)]

    def _transpose_sample(
        self, cts: Sequence[Array], *operands: Any, spec: Spec, backend: Any = None, **_: Any
    ) -> list[Any]:
        *arrays, x, y = operands
        (g,), soft = cts, soften(backend)
        blank: list[Any] = [None] * len(arrays)
        if is_undefined(x):
            back = spec.but(transpose=not spec.transpose, event=Event.REAL)
            return [*blank, sum_to(self.bind([g], arrays, y, back, soft), x.aval.shape), None]
        return [*blank, None, sum_to(self.bind([g], arrays, x, spec, soft), y.aval.shape)]


def _wider(a: Array, b: Array) -> Array:
    return a if jnp.promote_types(a.dtype, b.dtype) == a.dtype else b


# ---- batching: a batch of inputs is a wider input; any other batch is one more leading axis ----


def _fold(x: Array, axis: int, spec: Spec) -> tuple[Array, tuple[int, ...], int]:
    """Fold a batch axis into the batch of an operand; also how to unfold the result.

    A vector, or vectors in rows, get the batch in front; vectors in columns get it behind. The
    second value is the batch as it was before folding, the third the result's batch axis.
    """
    if x.ndim == 2 or spec.rows:
        x = jnp.moveaxis(x, axis, 0)
        batch = x.shape[:-1]
        return x.reshape(math.prod(batch), x.shape[-1]), batch, 0
    x = jnp.moveaxis(x, axis, 1)
    batch = x.shape[1:]
    return x.reshape(x.shape[0], math.prod(batch)), batch, 1


def _batch(
    bind: Callable[..., Array], operands: Any, axes: Any, *, spec: Spec, backend: Any, **_: Any
) -> tuple[list[Array], list[int]]:
    params, arrays, x = spec.split(operands)
    if spec.levels or any(axis is not None for axis in axes[:-1]):
        params, arrays, x = spec.split(raise_level(operands, axes))
        return [bind(params, arrays, x, spec.but(levels=spec.levels + 1), backend)], [0]
    rows = x.ndim == 2 or spec.rows
    folded, batch, axis = _fold(x, axes[-1], spec)
    y = bind(params, arrays, folded, spec.but(rows=rows), backend)
    full = (*batch, y.shape[1]) if rows else (y.shape[0], *batch)
    return [y.reshape(full)], [axis]


def _batch_sample(
    sample: Callable[..., Array], operands: Any, axes: Any, *, spec: Spec, backend: Any, **_: Any
) -> tuple[list[Array], list[int]]:
    *arrays, x, y = raise_level(operands, axes)
    return [sample(arrays, x, y, spec.but(levels=spec.levels + 1), backend)], [0]
