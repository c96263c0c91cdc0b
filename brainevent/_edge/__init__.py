# SPDX-License-Identifier: Apache-2.0
"""Operators on the edges of a matrix.

For every edge that the layout shows, take its weight, ask what the event at its source counts
for, and add at its target.
"""

from brainevent._edge import kernels as kernels
from brainevent._edge import measure as measure
from brainevent._edge import shape_check as shape_check
from brainevent._edge.event import Event, unwrap
from brainevent._edge.layout import LAYOUTS, Draw, Layout, Twin, Walk
from brainevent._edge.operator import PRODUCT, SAMPLE, EdgeOperator, Spec
from brainevent._edge.product import FAMILIES, Products
from brainevent._edge.weight import CONSTANT, NORMAL, STORED, UNIFORM, Weight

__all__ = [
    'CONSTANT',
    'FAMILIES',
    'LAYOUTS',
    'NORMAL',
    'PRODUCT',
    'SAMPLE',
    'STORED',
    'UNIFORM',
    'Draw',
    'EdgeOperator',
    'Event',
    'Layout',
    'Products',
    'Spec',
    'Twin',
    'Walk',
    'Weight',
    'unwrap',
]
