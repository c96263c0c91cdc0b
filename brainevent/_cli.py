# SPDX-License-Identifier: Apache-2.0
"""The command ``brainevent``: a table of subcommands and the door to them.

A subcommand is an entry of ``COMMANDS``: its name, a line of help, and two functions, one that
declares its arguments and one that carries it out and returns the exit status. What the user got
wrong it raises as :class:`argparse.ArgumentError`; that ends with a message and status 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import brainevent
from brainevent._commands import benchmark, cache, doctor
from brainevent.demo import command as demo

__all__ = ['main']


class Command(NamedTuple):
    """One subcommand."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = (
    Command('demo', 'run a network and save its raster', demo.add_arguments, demo.run),
    Command(
        'benchmark-performance',
        'measure operators with every backend',
        benchmark.add_arguments,
        benchmark.run,
    ),
    Command('doctor', 'say what can run here, and why not', doctor.add_arguments, doctor.run),
    Command('cache', 'show or clear compiled kernels', cache.add_arguments, cache.run),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; by default those of the process.

    Returns
    -------
    int
        Exit status: 0 for success (help included), 2 for wrong arguments, 130 if interrupted,
        141 if the reader of the output is gone.

    Examples
    --------
    >>> main(['--version'])
    Traceback (most recent call last):
    SystemExit: 0
    """
    parser, subparsers = _parsers()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 0
    command = next(entry for entry in COMMANDS if entry.name == args.command)
    try:
        status = command.run(args)
        sys.stdout.flush()
        return status
    except argparse.ArgumentError as error:
        subparsers[command.name].error(str(error))
    except BrokenPipeError:  # the reader has seen enough: `brainevent doctor | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 141
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return 130


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog='brainevent', description='Event-driven sparse operators for JAX.'
    )
    parser.add_argument(
        '--version', action='version', version=f'brainevent {brainevent.__version__}'
    )
    choice = parser.add_subparsers(dest='command', metavar='command')
    subparsers = {}
    for command in COMMANDS:
        subparsers[command.name] = choice.add_parser(
            command.name, help=command.help, description=command.help
        )
        command.add_arguments(subparsers[command.name])
    return parser, subparsers
