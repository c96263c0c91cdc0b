# SPDX-License-Identifier: Apache-2.0
"""JAX internals: the only file that touches them, and whatever differs between versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters.xla import apply_primitive

__all__ = [
    'Primitive',
    'Tracer',
    'Zero',
    'abstract_results',
    'align_varying',
    'apply_primitive',
    'backend_scope',
    'before_exported_call',
    'canonical_dtype',
    'instantiate',
    'is_concrete',
    'is_tracer',
    'is_trivial',
    'is_undefined',
    'is_zero',
    'lower_traced',
    'replicated',
    'set_batching',
    'set_jvp',
    'set_lowering',
    'set_transpose',
    'zero_tangent',
]

Tracer = jax.core.Tracer
Zero = ad.Zero

# Part of jit's cache key, per thread: ((platform, backend), ...) chosen by `use_backend`, or None.
backend_scope = jax.make_user_context(None)


def is_tracer(x: Any) -> bool:
    """Whether ``x`` stands for a value that is not known yet."""
    return isinstance(x, Tracer)


def is_concrete(x: Any) -> bool:
    """Whether the value of ``x`` can be read on the host now."""
    return not isinstance(x, Tracer | jax.ShapeDtypeStruct)


def is_undefined(x: Any) -> bool:
    """Whether a transpose rule is asked for the cotangent of ``x``."""
    return ad.is_undefined_primal(x)  # type: ignore[no-any-return]


def is_zero(x: Any) -> bool:
    """Whether a tangent or cotangent is known to be zero."""
    return type(x) is Zero or getattr(x, 'dtype', None) == jax.dtypes.float0


def is_trivial(zero: Any) -> bool:
    """Whether a symbolic zero stands in a tangent space without directions, as of integers."""
    return zero.aval.dtype == jax.dtypes.float0  # type: ignore[no-any-return]


def instantiate(x: Any) -> Any:
    """Return a JAX array in place of a symbolic zero or a NumPy array."""
    if type(x) is Zero:
        return ad.instantiate_zeros(x)
    return x if isinstance(x, jax.Array) or is_zero(x) else jax.numpy.asarray(x)


def zero_tangent(primal: Any) -> Any:
    """Return the symbolic zero in the tangent space of ``primal``."""
    return Zero(jax.typeof(primal).to_tangent_aval())


def abstract_results(structs: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """Return the abstract values of results; inside `jax.shard_map` they vary as the inputs do."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return [jax.core.ShapedArray(s.shape, s.dtype) for s in structs]
    kwargs: dict[str, Any] = {
        'sharding': jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    }
    axes = _all_varying(avals)
    if axes and _MANUAL == 'vma':
        kwargs['vma'] = axes
    elif axes:
        kwargs[_MANUAL] = type(avals[0].manual_axis_type)(varying=axes)
    return [jax.core.ShapedArray(s.shape, s.dtype, **kwargs) for s in structs]


def align_varying(arrays: Sequence[Any]) -> Sequence[Any]:
    """Let all inputs vary over the same axes of a `jax.shard_map`, as JAX does for its own."""
    if jax.sharding.get_abstract_mesh().empty:
        return arrays
    avals = [jax.typeof(x) for x in arrays]
    axes = _all_varying(avals)
    missing = [tuple(sorted(axes - _varying(aval), key=str)) for aval in avals]
    return [_cast_varying(x, lack) if lack else x for x, lack in zip(arrays, missing, strict=True)]


def replicated(arrays: Sequence[Any]) -> Sequence[Any]:
    """Gather arrays that are sharded over explicit axes of a mesh, as results are declared to be.

    A kernel in JAX consists of gathers and scatters, which cannot infer an explicit sharding.
    """
    return [_replicated(x, getattr(jax.typeof(x), 'sharding', None)) for x in arrays]


def _replicated(x: Any, sharding: Any) -> Any:
    # while a program is lowered no mesh is set: that of the array counts
    mesh = getattr(sharding, 'mesh', None)
    if mesh is None or mesh.empty or not any(sharding.spec):
        return x
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return jax.sharding.reshard(x, everywhere)


# JAX 0.10 renamed the set of varying axes and the cast.
_MANUAL = 'manual_axis_type' if hasattr(jax.core.ShapedArray, 'manual_axis_type') else 'vma'


def _varying(aval: Any) -> frozenset[Any]:
    manual = getattr(aval, _MANUAL, frozenset())
    return manual if isinstance(manual, frozenset) else manual.varying  # type: ignore[no-any-return]


def _all_varying(avals: Sequence[Any]) -> frozenset[Any]:
    return frozenset().union(*map(_varying, avals))


def _cast_varying(x: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, 'pcast'):
        return jax.lax.pcast(x, axes, to='varying')
    return jax.lax.pvary(x, axes)


def lower_traced(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a traceable function with several results into a lowering rule."""
    return mlir.lower_fun(fun, multiple_results=True)  # type: ignore[no-any-return]


def set_lowering(primitive: Primitive, platform: str, rule: Callable[..., Any]) -> None:
    """Register how ``primitive`` is lowered on ``platform``."""
    mlir.register_lowering(primitive, rule, platform=platform)


def set_jvp(primitive: Primitive, rule: Callable[..., Any]) -> None:
    """Register a raw forward-mode rule."""
    ad.primitive_jvps[primitive] = rule


def set_transpose(primitive: Primitive, rule: Callable[..., Any]) -> None:
    """Register a raw transpose rule."""
    ad.primitive_transposes[primitive] = rule


def set_batching(primitive: Primitive, rule: Callable[..., Any]) -> None:
    """Register a raw batching rule."""
    batching.primitive_batchers[primitive] = rule


def before_exported_call(act: Callable[[Any], Any], *platforms: str) -> bool:
    """Let ``act(exported)`` run before a program of `jax.export` is compiled for a platform.

    Returns False, and does nothing, where JAX has moved what this hangs on.
    """
    try:
        primitive = jax._src.export._export.call_exported_p
        lower = jax._src.interpreters.mlir._lowerings[primitive].rule
    except (AttributeError, KeyError):
        return False

    def rule(ctx: Any, *args: Any, exported: Any, **params: Any) -> Any:
        if not set(platforms).isdisjoint(ctx.module_context.platforms):
            act(exported)
        return lower(ctx, *args, exported=exported, **params)

    mlir.register_lowering(primitive, rule)
    return True


def canonical_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype that JAX stores for ``dtype`` under the current x64 setting."""
    return jax.dtypes.canonicalize_dtype(dtype)  # type: ignore[no-any-return]
