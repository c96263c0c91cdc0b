# SPDX-License-Identifier: Apache-2.0
"""Rules of differentiation and batching for operators with several results."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brainevent import _compat
from brainevent._error import DtypeError, ShapeError, expect
from brainevent._typing import Rule

__all__ = ['defjvp', 'general_batching_rule']


def defjvp(primitive: Any, *jvp_rules: Rule | None) -> None:
    """Define the forward derivative of an operator, one rule for each input.

    Parameters
    ----------
    primitive : XLACustomKernel or jax Primitive
        The operator.
    *jvp_rules : callable or None
        ``rule(tangent, *primals, **params)`` returns a list or tuple with the tangent of every
        result; of an operator with one result, the bare tangent will do. None says that an input
        has no derivative. A rule never sees symbolic zeros: it is not called for an input whose
        tangent is zero.

    Raises
    ------
    ShapeError
        Now, if the signature of a rule shows another number of inputs; at differentiation, if
        the number of rules is not the number of inputs, or a tangent does not fit its result
        (also a ``ValueError``).
    DtypeError
        At differentiation, if a rule returns one array for several results (also a ``TypeError``).

    Examples
    --------
    >>> import brainevent
    >>> op = brainevent.XLACustomKernel('doc_square')
    >>> op.def_kernel('jax_raw', 'cpu', lambda **static: lambda x: [x * x])
    >>> brainevent.defjvp(op, lambda dx, x, **params: [2 * x * dx])
    >>> square = lambda x: op(x, outs=[jax.ShapeDtypeStruct(x.shape, x.dtype)])[0]
    >>> jax.jvp(square, (jnp.float32(3),), (jnp.float32(1),))[1]
    Array(6., dtype=float32)
    """
    guard = getattr(primitive, 'within_scope', lambda rule: rule)
    primitive = getattr(primitive, 'primitive', primitive)
    for rule in jvp_rules:
        _check_signature(primitive.name, rule, len(jvp_rules))

    # The rules are run with the parameters as their author knows them; binding takes them raw.
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        expect(
            len(jvp_rules) == len(primals),
            ShapeError,
            f'defjvp({primitive.name})',
            'the number of rules is not the number of inputs.',
            expected=f'{len(primals)} rules, one for each input',
            got=f'{len(jvp_rules)} rules',
            remedy='give None for an input without derivative',
        )
        answer = primitive.bind(*primals, **params)
        results = list(answer) if primitive.multiple_results else [answer]
        sums = [_compat.zero_tangent(result) for result in results]
        for rule, tangent in zip(jvp_rules, tangents, strict=True):
            if rule is None or _compat.is_zero(tangent):
                continue
            parts = _as_tangents(primitive.name, guard(rule)(tangent, *primals, **params), results)
            sums = [_add(total, part) for total, part in zip(sums, parts, strict=True)]
        return (results, sums) if primitive.multiple_results else (results[0], sums[0])

    _compat.set_jvp(primitive, jvp)


def general_batching_rule(
    prim: Any, args: Sequence[Any], axes: Sequence[int | None], **kwargs: Any
) -> tuple[Any, Any]:
    """Run an operator once for each element of a batch, one after the other.

    The rule of an operator that has no better one. It is correct for every operator, nested
    batches included, because each step is an ordinary call; but the steps do not overlap. Give a
    batched kernel with `XLACustomKernel.def_batching_rule` where speed matters.

    Parameters
    ----------
    prim : XLACustomKernel or jax Primitive
    args : sequence of Array
    axes : sequence of int or None
        The batch axis of each argument; None where it has none. Without any the operator runs once,
        and the results have no batch axis either.
    **kwargs
        Parameters of the call.

    Returns
    -------
    results : list of Array
        Batched along axis 0; one array if the primitive has one result.
    axes : list of int, or of None

    Examples
    --------
    >>> from brainevent import general_batching_rule
    >>> general_batching_rule(jax.lax.neg_p, (jnp.arange(3.),), (0,))
    (Array([-0., -1., -2.], dtype=float32), 0)
    """
    prim = getattr(prim, 'primitive', prim)
    expect(
        len(args) == len(axes) and len(args) > 0,
        ShapeError,
        f'general_batching_rule({prim.name})',
        'the number of axes is not the number of inputs.',
        expected=f'{len(args)} axes, each an int or None, for at least one input',
        got=lambda: f'{axes}',
    )
    if all(axis is None for axis in axes):
        results = prim.bind(*args, **kwargs)
        return results, jax.tree.map(lambda _: None, results)
    batched = [
        jnp.moveaxis(x, axis, 0) for x, axis in zip(args, axes, strict=True) if axis is not None
    ]

    def one(row: Sequence[Any]) -> Any:
        left = iter(row)
        full = [x if axis is None else next(left) for x, axis in zip(args, axes, strict=True)]
        return prim.bind(*full, **kwargs)

    results = jax.lax.map(one, batched)
    return results, jax.tree.map(lambda _: 0, results)


def transposed(name: str, rule: Rule) -> Rule:
    """Wrap a transpose rule so that it sees arrays, and its answer is checked."""

    def transpose(cotangents: Sequence[Any], *operands: Any, **params: Any) -> Sequence[Any]:
        if all(_compat.is_zero(ct) for ct in cotangents):
            return [None] * len(operands)
        answer = rule([_compat.instantiate(ct) for ct in cotangents], *operands, **params)
        expect(
            isinstance(answer, tuple | list),
            DtypeError,
            f'transpose of {name}',
            'the rule did not return a sequence.',
            expected='a list or tuple with one entry for each operand',
            got=type(answer).__name__,
        )
        expect(
            len(answer) == len(operands),
            ShapeError,
            f'transpose of {name}',
            'wrong number of cotangents.',
            expected=f'{len(operands)}, one for each operand (None where it has none)',
            got=len(answer),
        )
        for position, (ct, operand) in enumerate(zip(answer, operands, strict=True)):
            if ct is not None and _compat.is_undefined(operand):
                _expect_like(f'transpose of {name}', f'cotangent {position}', ct, operand.aval)
        return answer

    return transpose


def _places(rule: Any) -> tuple[int, int] | None:
    """Return how many positional arguments a rule needs and takes; None if any number will do.

    Hundreds of rules are made when the package is imported, and `inspect.signature` is slow: a
    plain function, or a partial one, is asked for its code's own count.
    """
    inner: Any = rule
    taken, named = 0, set[str]()
    while isinstance(inner, functools.partial):
        taken, named, inner = taken + len(inner.args), named | set(inner.keywords), inner.func
    if isinstance(inner, types.MethodType):
        taken, inner = taken + 1, inner.__func__
    if isinstance(inner, types.FunctionType) and not hasattr(inner, '__wrapped__'):
        code = inner.__code__
        if code.co_flags & inspect.CO_VARARGS:
            return None
        names = code.co_varnames[: code.co_argcount]
        needed = len(names) - len(inner.__defaults__ or ())
        free = next((k for k, n in enumerate(names) if k >= taken and n in named), len(names))
        return max(min(needed, free) - taken, 0), max(free - taken, 0)
    try:
        parameters = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):  # builtins may have no signature
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in places), len(places)


def _check_signature(name: str, rule: Any, count: int) -> None:
    """Refuse a rule whose own signature contradicts the number of rules."""
    if rule is None:
        return
    expect(
        callable(rule),
        DtypeError,
        f'defjvp({name})',
        'a rule is not callable.',
        expected='callables or None',
        got=lambda: repr(rule),
    )
    places = _places(rule)
    if places is None:
        return
    needed, most = places
    expect(
        needed <= count + 1 <= most,
        ShapeError,
        f'defjvp({name})',
        'the number of rules is not the number of inputs.',
        expected=f'{needed - 1} rules, because a rule takes a tangent and {needed - 1} inputs',
        got=f'{count} rules',
        remedy='give None for an input without derivative',
    )


def _as_tangents(name: str, answer: Any, results: Sequence[Any]) -> Sequence[Any]:
    """Return the tangents a rule gave, after checking that they fit the results."""
    if len(results) == 1 and hasattr(answer, 'dtype'):
        answer = [answer]
    if isinstance(answer, tuple | list):
        for tangent in answer:
            expect(
                not hasattr(tangent, 'mantissa'),
                DtypeError,
                f'defjvp({name})',
                'a tangent has a unit.',
                expected='arrays without unit',
                got=lambda tangent=tangent: tangent,
            )
        answer = [jnp.asarray(t) if hasattr(t, '__array_interface__') else t for t in answer]
    expect(
        isinstance(answer, tuple | list),
        DtypeError,
        f'defjvp({name})',
        'a rule did not return a sequence.',
        expected='a list or tuple with one tangent for each result',
        got=lambda: type(answer).__name__,
        remedy='return [tangent]',
    )
    expect(
        len(answer) == len(results),
        ShapeError,
        f'defjvp({name})',
        'wrong number of tangents.',
        expected=f'{len(results)}, one for each result',
        got=len(answer),
    )
    spaces = [_compat.zero_tangent(result) for result in results]
    # Integer results have no tangent, whatever a rule says.
    tangents = [
        None if _compat.is_zero(t) or _compat.is_trivial(s) else t
        for t, s in zip(answer, spaces, strict=True)
    ]
    for position, (tangent, space) in enumerate(zip(tangents, spaces, strict=True)):
        if tangent is not None:
            _expect_like(f'defjvp({name})', f'tangent {position}', tangent, space.aval)
    return tangents


def _expect_like(where: str, what: str, value: Any, aval: Any) -> None:
    """Refuse a derivative of another shape or dtype than its space."""
    if _compat.is_zero(value):
        return
    shape, dtype = jnp.shape(value), jnp.result_type(value)
    expect(
        shape == aval.shape,
        ShapeError,
        where,
        f'{what} has the wrong shape.',
        expected=f'shape {aval.shape}',
        got=f'shape {shape}',
    )
    expect(
        dtype == aval.dtype,
        DtypeError,
        where,
        f'{what} has the wrong dtype.',
        expected=aval.dtype,
        got=dtype,
    )


def _add(total: Any, part: Any) -> Any:
    if part is None:
        return total
    return part if _compat.is_zero(total) else total + part
