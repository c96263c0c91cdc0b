# SPDX-License-Identifier: Apache-2.0
"""Matrix formats: for each a layout, a family of products, classes and functions."""

from brainevent._format import (
    base,
    convert,
    coo,
    csr,
    dense,
    fcn,
    indexed,
    jitc,
    jitc_functions,
    learning,
    per_edge,
    slices,
)
from brainevent._format import examples as examples
from brainevent._format.base import *  # noqa: F403
from brainevent._format.convert import *  # noqa: F403
from brainevent._format.coo import *  # noqa: F403
from brainevent._format.csr import *  # noqa: F403
from brainevent._format.dense import *  # noqa: F403
from brainevent._format.fcn import *  # noqa: F403
from brainevent._format.indexed import *  # noqa: F403
from brainevent._format.jitc import *  # noqa: F403
from brainevent._format.jitc_functions import *  # noqa: F403
from brainevent._format.learning import *  # noqa: F403
from brainevent._format.per_edge import *  # noqa: F403
from brainevent._format.slices import *  # noqa: F403

__all__ = [
    *base.__all__,
    *convert.__all__,
    *coo.__all__,
    *csr.__all__,
    *dense.__all__,
    *fcn.__all__,
    *indexed.__all__,
    *jitc.__all__,
    *jitc_functions.__all__,
    *learning.__all__,
    *per_edge.__all__,
    *slices.__all__,
]
