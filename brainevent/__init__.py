# SPDX-License-Identifier: Apache-2.0
"""Event-driven sparse operators for JAX.

For every edge the *layout* shows, take its *weight*, ask what the *event* counts for, *add* at its
target.
"""

from brainevent import _error, _event, _format, _op, config, errors
from brainevent._error import *  # noqa: F403
from brainevent._event import *  # noqa: F403
from brainevent._format import *  # noqa: F403
from brainevent._op import *  # noqa: F403
from brainevent._version import __version__ as __version__
from brainevent.config import use_backend

__all__ = [
    '__version__',
    'config',
    'errors',
    'use_backend',
    *_error.__all__,
    *_event.__all__,
    *_format.__all__,
    *_op.__all__,
]
