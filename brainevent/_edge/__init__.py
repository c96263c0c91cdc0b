# SPDX-License-Identifier: Apache-2.0
"""Operators on the edges of a matrix.

For every edge that the layout shows, take its weight, ask what the event at its source counts
for, and add at its target.
"""

from brainevent._edge import kernels as kernels
from brainevent._edge.event import Event, unwrap
from brainevent._edge.layout import LAYOUTS, Layout, Walk
from brainevent._edge.operator import PRODUCT, SAMPLE, EdgeOperator, Spec
from brainevent._edge.product import FAMILIES, Products
from brainevent._edge.weight import STORED, Weight

__all__ = [
    'FAMILIES',
    'LAYOUTS',
    'PRODUCT',
    'SAMPLE',
    'STORED',
    'EdgeOperator',
    'Event',
    'Layout',
    'Products',
    'Spec',
    'Walk',
    'Weight',
    'unwrap',
]
