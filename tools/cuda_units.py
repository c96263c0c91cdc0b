# SPDX-License-Identifier: Apache-2.0
"""All units of CUDA code that the package can ask for, for the tools that build them ahead."""

from __future__ import annotations

import itertools

from brainevent._edge.kernels.cuda_units import NUMBERS, unit_name, unit_text
from brainevent._edge.layout import LAYOUTS
from brainevent._edge.weight import WEIGHTS, Weight

STORED_OPERATORS = ('product', 'sample', 'update', 'scale', 'pick')


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
