# SPDX-License-Identifier: Apache-2.0
"""Event-driven sparse operators for JAX.

For every edge the *layout* shows, take its *weight*, ask what the *event* counts for, *add* at its
target.
"""

from typing import TYPE_CHECKING as _TYPING
from typing import Any as _Any

from brainevent import _error, _event, _format, _op, _retired, config, errors
from brainevent._error import *  # noqa: F403
from brainevent._event import *  # noqa: F403
from brainevent._format import *  # noqa: F403
from brainevent._op import *  # noqa: F403
from brainevent._version import __version__ as __version__
from brainevent.config import clear_backends, get_backend, set_backend, use_backend

__all__ = [
    '__version__',
    'clear_backends',
    'config',
    'errors',
    'get_backend',
    'set_backend',
    'use_backend',
    *_error.__all__,
    *_event.__all__,
    *_format.__all__,
    *_op.__all__,
]

if not _TYPING:  # for a type checker a name that is not here does not exist

    def __getattr__(name: str) -> _Any:
        return _retired.lookup(name, globals())


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith('__'))})
