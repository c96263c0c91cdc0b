# SPDX-License-Identifier: Apache-2.0
"""Units of CUDA code: the ten lines that instantiate one operator for one walk and kind of number.

The templates lie in ``cuda/``. A unit is compiled when it is first called, for the GPUs at hand,
and then found on disk.
"""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from brainevent._edge.event import Event
from brainevent._edge.layout import LAYOUTS, Twin
from brainevent._edge.operator import Spec
from brainevent._edge.weight import WEIGHTS, Weight
from brainevent._op.kernix import load_cuda_inline
from brainevent._typing import Array

STORED_OPERATORS = ('product', 'sample', 'update', 'scale', 'pick')
SOURCES = Path(__file__).parent / 'cuda'
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


def every_unit() -> dict[str, str]:
    """Return all units of the layouts that there are: operators, walks, weights, numbers."""
    walks = [w.cuda for lay in LAYOUTS.values() for w in (lay.walk, lay.cowalk) if w]
    twins = {t.struct: t for t in (*walks, *(lay.cuda_edge for lay in LAYOUTS.values())) if t}
    units: dict[str, str] = {}
    for operator, twin, kind in itertools.product(STORED_OPERATORS, twins.values(), NUMBERS):
        if not (operator == 'pick' and twin.struct == 'be::Pairs'):  # needs lines
            units[unit_name(operator, twin, kind)] = unit_text(operator, twin, kind)
    drawn = {lay.draw.cuda.struct: lay.draw.cuda for lay in LAYOUTS.values()
             if lay.draw and lay.draw.cuda}  # fmt: skip
    weights = [w for w in WEIGHTS.values() if w.cuda and w.name != 'stored']
    for twin, weight in itertools.product(drawn.values(), weights):
        for operator, kind in itertools.product(('product', 'dense'), _sums(weight)):
            name = unit_name(operator, twin, kind, weight.cuda)
            units[name] = unit_text(operator, twin, kind, weight.cuda)
    for twin in drawn.values():
        units[unit_name('listing', twin, 'float')] = unit_text('listing', twin, 'float')
    return units


def _sums(weight: Weight) -> tuple[str, ...]:
    """Return the kinds of numbers in which a drawn weight is computed."""
    return (
        ('float', 'double', 'complex') if weight.draws else ('float', 'double', 'complex', 'whole')
    )


def unit_name(operator: str, twin: Twin, kind: str, weight: Twin | None = None) -> str:
    """Return the name of a unit's module."""
    parts = [operator, twin.struct, *([weight.struct] if weight else []), kind]
    return '_'.join(part.removeprefix('be::') for part in parts)


@functools.cache
def _unit(operator: str, twin: Twin, kind: str, weight: Twin | None) -> str:
    return unit_text(operator, twin, kind, weight)


def run(
    operator: str,
    twin: Twin,
    kind: str,
    operands: Sequence[Array],
    outs: Sequence[Any],
    *,
    weight: Twin | None = None,
    **more: Any,
) -> list[Array]:
    """Call an operator of a unit, which is loaded, or built, now."""
    module = load_cuda_inline(
        unit_name(operator, twin, kind, weight),
        _unit(operator, twin, kind, weight),
        extra_include_paths=[str(SOURCES)],
        auto_register=False,
    )
    result: list[Array] = module.function(operator)(*operands, outs=list(outs), **more)
    return result


def facts(spec: Spec, columns: bool, levels: int) -> dict[str, Any]:
    """Return what a kernel is told besides its operands."""
    rows, cols = spec.shape
    return {
        'event': EVENTS[spec.event],
        'levels': levels,
        'transpose': spec.transpose,
        'along_columns': columns,
        'rows': rows,
        'cols': cols,
    }
