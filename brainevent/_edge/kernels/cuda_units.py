# SPDX-License-Identifier: Apache-2.0
"""Units of CUDA code: the ten lines that instantiate one operator for one walk and kind of number.

The templates lie in ``cuda/``. A unit is compiled when it is first called, for the GPUs at hand,
and then found on disk.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import jax
import jax.numpy as jnp

from brainevent._edge.event import Event
from brainevent._edge.layout import Twin
from brainevent._edge.operator import Spec, struct
from brainevent._op.kernix import load_cuda_inline
from brainevent._typing import Array

SOURCES = File(__file__).parent / 'cuda'
EVENTS = {Event.REAL: 0, Event.BINARY: 1, Event.MASKED: 2}

# What the types of a unit are, and what it includes besides.
NUMBERS = {
    'float': ('float', ''),
    'double': ('double', ''),
    'half': ('__half, __nv_bfloat16', 'half.cuh'),
    'whole': ('unsigned, unsigned long long', ''),
    'complex': ('be::Complex<float>, be::Complex<double>', ''),
}


def kind_of(dtype: Any) -> str:
    """Return which unit takes weights of a dtype."""
    if dtype in (jnp.float16, jnp.bfloat16):
        return 'half'
    if jnp.issubdtype(dtype, jnp.integer):
        return 'whole'
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return 'complex'
    return 'double' if dtype == jnp.float64 else 'float'


def stored(dtype: Any) -> Any:
    """Return the dtype in which kernels take weights: whole numbers of 32 bits or more."""
    if jnp.issubdtype(dtype, jnp.integer) and jnp.dtype(dtype).itemsize < 4:
        return jnp.dtype('uint32' if jnp.issubdtype(dtype, jnp.unsignedinteger) else 'int32')
    return jnp.dtype(dtype)


# Operands and results of an operator besides structure arrays, which follow the first operand.
OPERATORS = {
    'product': (('w',), ('x',), ('y', 'wide')),
    'sample': ((), ('x', 'y'), ('out',)),
    'update': (('w',), ('x', 'y', 'bounds'), ('out',)),
    'scale': (('w',), ('y',), ('out',)),
    'pick': (('x',), ('i', 'j'), ('out',)),
    'dense': (('w',), (), ('out',)),
    'listing': ((), ('ptr',), ('count', 'col', 'high', 'low')),
}
_FILES = {'dense': 'materialise', 'listing': 'materialise'}
# What a call is told besides; the fields of `be::Call`, in order, and what follows.
_CALL = {
    'event': 'int32',
    'levels': 'int32',
    'transpose': 'bool',
    'along_columns': 'bool',
    'rows': 'int64',
    'cols': 'int64',
}
_MORE = {'update': {'clip': 'bool'}, 'pick': {'elements': 'bool', 'back': 'bool'}}
_C_TYPES = {'int32': 'int32_t', 'int64': 'int64_t', 'bool': 'bool'}


@functools.cache
def unit_text(operator: str, twin: Twin, kind: str, weight: Twin | None = None) -> str:
    """Write the unit that instantiates an operator for a walk, a kind of number and a weight."""
    types, header = NUMBERS[kind]
    first, others, results = OPERATORS[operator]
    arrays = [f's{k}' for k in range(len(twin.arrays))]
    inputs, more = [*first, *arrays, *others], _MORE.get(operator, {})
    told = {**_CALL, **more}
    tokens = ['arg'] * len(inputs) + ['ret'] * len(results)
    tokens += [f'attr.{name}:{dtype}' for name, dtype in told.items()] + ['stream']
    parameters = [f'const BE::Tensor {name}' for name in inputs]
    parameters += [f'BE::Tensor {name}' for name in results]
    parameters += [f'{_C_TYPES[dtype]} {name}' for name, dtype in told.items()]
    in_place = operator == 'update'  # w and out are the same memory
    given = [*(() if in_place else first), f'{{{", ".join(arrays)}}}', *others, *results]
    chosen = [twin.struct, *([f'be::Types<{types}>'] if operator != 'listing' else [])]
    chosen += [weight.struct] if weight else []
    lines = [
        f'#include "{header}"' if header else '',
        f'#include "{_FILES.get(operator, operator)}.cuh"',
        twin.source,
        weight.source if weight else '',
        f'// @BE {operator} {" ".join(tokens)}',
        f'void {operator}({", ".join(parameters)}, int64_t stream) {{',
        '  (void)w;' if in_place else '',
        f'  const be::Call call{{{", ".join(_CALL)}}};',
        f'  be::{operator}<{", ".join(chosen)}>({", ".join([*given, "call", *more])}, stream);',
        '}',
    ]
    return '\n'.join(filter(None, lines)) + '\n'


def unit_name(operator: str, twin: Twin, kind: str, weight: Twin | None = None) -> str:
    """Return the name of a unit's module."""
    parts = [operator, twin.struct, *([weight.struct] if weight else []), kind]
    return '_'.join(part.removeprefix('be::') for part in parts)


@dataclass(frozen=True)
class Path:
    """A walk as kernels take it: its CUDA C++, and whether it goes along columns of the matrix."""

    twin: Twin
    columns: bool = False

    def used(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the structure arrays that the walk is made of."""
        return [arrays[k] for k in self.twin.arrays]

    def run(
        self,
        operator: str,
        dtype: Any,
        operands: Sequence[Array],
        outs: Sequence[Any],
        spec: Spec,
        *,
        weight: Twin | None = None,
        **more: Any,
    ) -> list[Array]:
        """Call an operator for weights of a dtype; its unit is loaded, or built, now."""
        kind = kind_of(dtype)
        module = load_cuda_inline(
            unit_name(operator, self.twin, kind, weight),
            unit_text(operator, self.twin, kind, weight),
            extra_include_paths=[str(SOURCES)],
            auto_register=False,
        )
        values = EVENTS[spec.event], spec.levels, spec.transpose, self.columns, *spec.shape
        told: dict[str, Any] = dict(zip(_CALL, values, strict=True))
        call = module.function(operator)
        result: list[Array] = call(*operands, outs=list(outs), **told, **more)
        return result


def room_for_double(shape: Sequence[int], needed: bool) -> jax.ShapeDtypeStruct:
    """Describe the result that holds sums in double, which nobody looks at; empty if not needed."""
    return struct((2 * math.prod(shape) if needed else 0,), jnp.uint32)
