# SPDX-License-Identifier: Apache-2.0
"""What the functions of all formats share: a product of arrays that make up no matrix object."""

from collections.abc import Sequence
from typing import Any

from brainevent._edge import Event, Products, unwrap
from brainevent._edge.event import active_list
from brainevent._edge.operands import as_index, check_shape

__all__ = ['multiply']


def multiply(
    products: Products,
    where: str,
    data: Any,
    structure: Sequence[Any],
    x: Any,
    *,
    shape: Any,
    transpose: bool,
    backend: str | None,
    event: Event = Event.REAL,
) -> Any:
    """Multiply structure and weights as a function was given them by a vector or a matrix."""
    names = products.layout.arrays
    arrays = [as_index(where, n, a) for n, a in zip(names, structure, strict=True)]
    value, kind = unwrap(x)
    return products(
        where,
        (data,),
        arrays,
        value,
        shape=check_shape(where, shape),
        transpose=transpose,
        event=kind if event is Event.REAL else event,
        backend=backend,
        active=active_list(x),
    )
