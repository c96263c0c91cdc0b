# SPDX-License-Identifier: Apache-2.0
"""One line about a kernel whose compilation takes longer than a second."""

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from brainevent._error import OptionError, expect

ENVIRONMENT = 'BRAINEVENT_COMPILE_NOTICE'
AFTER = 1.0  # seconds
logger = logging.getLogger('brainevent')


@contextlib.contextmanager
def compilation_notice(kernel: str, cache: str | Path | None) -> Iterator[None]:
    """Write one line to the logger ``brainevent`` if the block takes longer than `AFTER` seconds.

    Parameters
    ----------
    kernel : str
        Name of what is compiled.
    cache : path-like or None
        Where the result is kept; None if it is not kept.

    Notes
    -----
    Without a handler, Python prints a warning of a logger on standard error. To turn the line
    off, set ``BRAINEVENT_COMPILE_NOTICE=0``, or the level of the logger above ``WARNING``.
    """
    wanted = os.environ.get(ENVIRONMENT) or '1'
    expect(
        wanted in ('0', '1'),
        OptionError,
        ENVIRONMENT,
        'not a switch.',
        expected='0 or 1',
        got=lambda: repr(wanted),
    )
    if wanted == '0':
        yield
        return
    kept = f'kept in {cache}' if cache else 'not kept on disk'
    text = 'brainevent compiles the kernel %s (first use; %s)'
    timer = threading.Timer(AFTER, logger.warning, (text, kernel, kept))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
