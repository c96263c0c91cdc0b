# SPDX-License-Identifier: Apache-2.0
"""The command ``brainevent``: a table of subcommands, their arguments, and the call of one.

This module stands beside the package and not in it: it does not import ``brainevent``, which loads
JAX, before there is something to run. Help, version and wrong arguments are answered at once.

A subcommand is an entry of ``COMMANDS``: its name, a line of help, a function that declares its
arguments, and the module whose ``run`` carries it out and returns the exit status. What the user
got wrong ``run`` raises as :class:`argparse.ArgumentError`; that ends with a message and status 2.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ['COMMANDS', 'Command', 'main']

NETWORKS = ('celegans', 'coba', 'cuba')
PLATFORMS = ('cpu', 'gpu', 'tpu')
PICTURES = ('.png', '.pdf', '.svg')
UNITS_MS = {'us': 1e-3, 'ms': 1.0, 's': 1e3, 'min': 6e4}
SHORTEST_MS, LONGEST_MS = 0.1, 3.6e6
FEWEST = 100


class Command(NamedTuple):
    """One subcommand."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    module: str


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
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough: `brainevent doctor | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 141
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return 130


def _run(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog='brainevent', description='Event-driven sparse operators for JAX.'
    )
    parser.add_argument('--version', action='version', version=f'brainevent {_version()}')
    choice = parser.add_subparsers(dest='command', metavar='command')
    subparsers = {}
    for command in COMMANDS:
        subparsers[command.name] = choice.add_parser(
            command.name, help=command.help, description=command.help
        )
        command.add_arguments(subparsers[command.name])
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 0
    chosen = next(command for command in COMMANDS if command.name == args.command)
    try:
        return int(importlib.import_module(chosen.module).run(args))
    except argparse.ArgumentError as error:
        subparsers[chosen.name].error(str(error))


def _version() -> str:
    """Read the version out of its file; an import of the package would load JAX."""
    package = importlib.util.find_spec('brainevent')
    if package is None or package.origin is None:
        return 'not found'
    file = Path(package.origin).with_name('_version.py')
    return str(runpy.run_path(str(file))['__version__'])


# ---- arguments ------------------------------------------------------------------------------


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'network',
        nargs='?',
        default='coba',
        choices=NETWORKS,
        help='coba or cuba: the balanced networks of Brette et al. 2007; celegans: a spiking '
        'sketch on the connectome of C. elegans (default: coba)',
    )
    parser.add_argument(
        '--neurons',
        type=_integer(FEWEST),
        metavar='N',
        help='size of coba and cuba (default: 4000)',
    )
    parser.add_argument(
        '--duration',
        type=_duration,
        default=1000.0,
        metavar='TIME',
        help='model time with its unit, such as 500ms or 2s (default: 1s)',
    )
    parser.add_argument(
        '--seed', type=_integer(0), default=0, metavar='N', help='of connections and initial state'
    )
    parser.add_argument(
        '--out',
        type=_picture,
        metavar='FILE',
        help='where to save the raster, as .png, .pdf or .svg (default: NETWORK.png)',
    )
    parser.add_argument('--no-plot', action='store_true', help='save no raster')
    parser.add_argument('--backend', metavar='NAME', help='such as numba, jax_raw, cuda_raw')


def _benchmark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--platform',
        choices=PLATFORMS,
        help='where to measure (default: where JAX runs by itself)',
    )
    parser.add_argument(
        '--data',
        metavar='TAG[,TAG]',
        default='',
        help='only operators that carry all of these tags, such as csr,binary',
    )
    parser.add_argument(
        '--n-warmup',
        type=_integer(0),
        default=5,
        metavar='N',
        help='calls before measuring (default: 5)',
    )
    parser.add_argument(
        '--n-runs', type=_integer(1), default=20, metavar='N', help='calls measured (default: 20)'
    )
    parser.add_argument('--output', type=_file, metavar='FILE.json', help='save the measurements')


def _doctor(parser: argparse.ArgumentParser) -> None:
    del parser


def _cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('action', choices=('show', 'clear'), help='what to do with it')
    parser.add_argument(
        'name', nargs='?', help='with clear: only what the module of this name was compiled to'
    )


COMMANDS = (
    Command('demo', 'run a network and save its raster', _demo, 'brainevent.demo.command'),
    Command(
        'benchmark-performance',
        'measure operators with every backend',
        _benchmark,
        'brainevent._commands.benchmark',
    ),
    Command(
        'doctor', 'show what can run here, and why not', _doctor, 'brainevent._commands.doctor'
    ),
    Command('cache', 'show or clear compiled kernels', _cache, 'brainevent._commands.cache'),
)


# ---- readers of arguments -------------------------------------------------------------------


def _integer(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(
                f'expected an integer of at least {least}, got {text!r}'
            )
        return number

    return read


def _duration(text: str) -> float:
    """Read a time with its unit, in ms."""
    found = re.fullmatch(r'\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([a-z]+)\s*', text)
    if found is None or found[2] not in UNITS_MS:
        raise argparse.ArgumentTypeError(
            f'expected a time in {", ".join(UNITS_MS)}, such as 500ms, got {text!r}'
        )
    duration = float(found[1]) * UNITS_MS[found[2]]
    if not SHORTEST_MS <= duration <= LONGEST_MS:
        raise argparse.ArgumentTypeError(
            f'expected at least one step ({SHORTEST_MS:g}ms) and at most an hour, got {text!r}'
        )
    return duration


def _picture(text: str) -> Path:
    path = Path(text).expanduser()
    if path.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(
            f'expected a file that ends in {", ".join(PICTURES)}, got {text!r}'
        )
    if path.is_dir():
        raise argparse.ArgumentTypeError(f'{text!r} is a folder')
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f'there is no folder {str(path.parent)!r}')
    return path


def _file(text: str) -> Path:
    """Find out before the measurements whether they can be saved."""
    path = Path(text).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f'expected a file in a folder that exists, got {text!r}')
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f'cannot write {text!r}')
    return path


if __name__ == '__main__':
    sys.exit(main())
