# SPDX-License-Identifier: Apache-2.0
"""Matrix formats: for each a layout, a family of products, classes and functions."""

from brainevent._format import base, convert, coo, csr, dense, fcn, learning
from brainevent._format.base import *  # noqa: F403
from brainevent._format.convert import *  # noqa: F403
from brainevent._format.coo import *  # noqa: F403
from brainevent._format.csr import *  # noqa: F403
from brainevent._format.dense import *  # noqa: F403
from brainevent._format.fcn import *  # noqa: F403
from brainevent._format.learning import *  # noqa: F403

__all__ = [
    *base.__all__,
    *convert.__all__,
    *coo.__all__,
    *csr.__all__,
    *dense.__all__,
    *fcn.__all__,
    *learning.__all__,
]
