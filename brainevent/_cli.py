# SPDX-License-Identifier: Apache-2.0
"""The command line as a module of the package; it is written in ``brainevent_cli``."""

from brainevent_cli import main

__all__ = ['main']
