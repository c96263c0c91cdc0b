# SPDX-License-Identifier: Apache-2.0
"""Checks of operand shapes at every primitive, below all entry points.

Native kernels guard the values of structure arrays, and trust the lengths of their operands. These
are static, so each primitive checks them where it is bound: against the shape of the matrix, the
number of edges and each other. No call can reach a kernel with buffers that are too short.
"""

from collections.abc import Callable, Sequence
from typing import Any

from brainevent._edge.listed import LISTED
from brainevent._edge.materialise import DENSE, LISTING
from brainevent._edge.mirror import MIRROR
from brainevent._edge.operator import (
    PRODUCT,
    SAMPLE,
    EdgeOperator,
    Spec,
    batch_shape,
    own_parts,
)
from brainevent._edge.pick import PICK
from brainevent._edge.scale import SCALE
from brainevent._edge.update import CLIPPED, UPDATE
from brainevent._error import ShapeError, expect

__all__ = ['check_shapes_of']

Shape = tuple[int, ...]
Part = tuple[str, Shape, tuple[Shape, ...]]
"""Name of an operand or a result, its shape, and the shapes it may have."""
Rule = Callable[..., list[Part]]
"""``rule(spec, edges, operands, results, **static)``; the operands are without the structure."""


def check_shapes_of(operator: EdgeOperator, head: Callable[[Spec], int], rule: Rule) -> None:
    """Let all primitives of an operator check the shapes of their operands.

    Parameters
    ----------
    operator : EdgeOperator
    head : callable
        ``head(spec)`` is the number of operands in front of the structure.
    rule : callable
        Returns what the other operands and the results have to be like.
    """

    def check(*avals: Any, outs: Any, spec: Spec, **static: Any) -> None:
        results, where = _flat(outs), f'{spec.layout.name} {operator.name}'
        _check_batch(where, avals, results, spec.levels)
        parts = own_parts(avals, spec.levels)
        first = head(spec)
        last = first + spec.edges
        arrays, rest = parts[first:last], (*parts[:first], *parts[last:])
        spec.layout.check_shapes(where, arrays, spec.shape)
        edges = spec.layout.count(arrays, spec.shape)
        shapes = [x.shape for x in rest]
        own = [x.shape[spec.levels :] for x in results]
        for name, shape, allowed in rule(spec, edges, shapes, own, **static):
            expect(
                shape in allowed,
                ShapeError,
                where,
                f'the {name} does not fit the matrix of shape {spec.shape}.',
                expected=lambda allowed=allowed: ' or '.join(map(str, allowed)),
                got=lambda shape=shape: f'shape {shape}',
            )

    operator.check = check


def _flat(outs: Any) -> Sequence[Any]:
    return outs if isinstance(outs, (list, tuple)) else [outs]


def _check_batch(where: str, avals: Sequence[Any], results: Sequence[Any], levels: int) -> None:
    """Check that leading axes are of length one or of the full length."""
    if not levels:
        return
    full = batch_shape(avals, levels)
    for x in (*avals, *results):
        lead = x.shape[:levels]
        fits = all(n in (1, most) for n, most in zip(lead, full, strict=False))
        expect(
            len(lead) == levels and fits,
            ShapeError,
            where,
            'the batch axes of operands differ.',
            expected=f'axes of length one, or of {full}',
            got=lambda lead=lead: f'{lead}',
        )
    for x in results:
        expect(
            x.shape[:levels] == full,
            ShapeError,
            where,
            'the result does not hold the batch.',
            expected=f'leading axes {full}',
            got=lambda x=x: f'shape {x.shape}',
        )


# ---- what operands have to be like, operator by operator ----------------------------------------


def _weights(spec: Spec, edges: int, params: Sequence[Shape]) -> list[Part]:
    allowed: tuple[Shape, ...] = ((1,), (edges,)) if spec.weight.name == 'stored' else ((1,),)
    return [('weight', shape, allowed) for shape in params]


def _vectors(spec: Spec, x: Shape, y: Shape, out: str) -> list[Part]:
    """Return the rules of an input and an output: one vector each, or a batch of as many."""
    length, result = spec.extents[1], spec.extents[0]
    if len(x) < 2:
        return [('input', x, ((length,),)), (out, y, ((result,),))]
    batch = x[0 if spec.rows else -1]
    pair = ((batch, length), (batch, result)) if spec.rows else ((length, batch), (result, batch))
    return [('input', x, pair[:1]), (out, y, pair[1:])]


def _product(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    *params, x = ops
    return [*_weights(spec, edges, params), *_vectors(spec, x, outs[0], 'result')]


def _listed(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    *params, ids, number, x = ops
    lists: list[Part] = [('list', ids, (ids[:1],)), ('number of listed', number, ((1,),))]
    return [*lists, *_product(spec, edges, (*params, x), outs)]


def _sample(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    x, y = ops
    return [*_vectors(spec, x, y, 'output operand'), ('result', outs[0], ((edges,),))]


def _scale(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    w, y = ops
    each: tuple[Shape, ...] = ((edges,),)
    return [('operand', w, each), ('vector', y, ((spec.extents[0],),)), ('result', outs[0], each)]


def _update(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    w, x, y, *bounds = ops
    size = 1
    for n in w:
        size *= n
    return [
        ('weight', (size,), ((edges,),)),
        ('result', outs[0], (w,)),
        ('spike', x, ((spec.extents[1],),)),
        ('trace', y, ((spec.extents[0],),)),
        *(('bound', b, ((2,),)) for b in bounds),
    ]


def _pick(spec: Spec, edges: int, ops: Any, outs: Any, *, back: bool, **_: Any) -> list[Part]:
    x, *ids = ops
    each: Shape = ids[0][:1]
    picked = each if len(ids) == 2 else (*each, spec.extents[0])
    if back:
        ends: list[Part] = [('cotangent', x, (picked,)), ('result', outs[0], ((edges,),))]
    else:
        ends = [*_weights(spec, edges, (x,)), ('result', outs[0], (picked,))]
    return [*(('index', i, (each,)) for i in ids), *ends]


def _mirror(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    lines = spec.shape[1:] if spec.layout.walk else spec.shape
    tags = ((edges,), (0,)) if spec.layout.walk else ((edges,),)  # they may be left out
    wanted = [s for n in lines for s in (((edges,),), ((n + 1,),), tags)]
    return [('result', out, shapes) for out, shapes in zip(outs, wanted, strict=True)]


def _dense(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    return [*_weights(spec, edges, ops), ('result', outs[0], (spec.shape,))]


def _listing(spec: Spec, edges: int, ops: Any, outs: Any, **_: Any) -> list[Part]:
    m = spec.shape[0]
    count, places, high, low = outs
    return [
        ('row offset', ops[0], ((m + 1,),)),
        ('count', count, ((m,),)),
        ('list', places, (places[:1],)),
        ('key', high, (places, (0,))),  # keys may be left out
        ('key', low, (high,)),
    ]


def _params(spec: Spec) -> int:
    return spec.weight.params


def _after(number: int) -> Callable[[Spec], int]:
    return lambda spec: number


check_shapes_of(PRODUCT, _params, _product)
check_shapes_of(LISTED, _params, _listed)
check_shapes_of(SAMPLE, _after(0), _sample)
check_shapes_of(SCALE, _after(1), _scale)
check_shapes_of(UPDATE, _after(1), _update)
check_shapes_of(CLIPPED, _after(1), _update)
check_shapes_of(PICK, _after(1), _pick)
check_shapes_of(MIRROR, _after(0), _mirror)
check_shapes_of(DENSE, _params, _dense)
check_shapes_of(LISTING, _after(0), _listing)
