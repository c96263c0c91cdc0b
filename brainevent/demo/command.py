# SPDX-License-Identifier: Apache-2.0
"""``brainevent demo``: run a network, report what it did and how fast, save its raster."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import jax
from brainunit import ms

import brainevent as be
from brainevent.demo import raster
from brainevent.demo.celegans import CElegans
from brainevent.demo.networks import COBA, CUBA, BalancedNetwork
from brainevent.demo.run import Network, Result, progress_bar, simulate

__all__ = ['add_arguments', 'run']

NETWORKS: dict[str, type[BalancedNetwork] | type[CElegans]] = {
    'coba': COBA,
    'cuba': CUBA,
    'celegans': CElegans,
}
UNITS_MS = {'us': 1e-3, 'ms': 1.0, 's': 1e3, 'min': 6e4}
LONGEST_MS = 3.6e6
FEWEST = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    parser.add_argument(
        'network',
        nargs='?',
        default='coba',
        choices=sorted(NETWORKS),
        help='coba or cuba: the balanced networks of Brette et al. 2007; celegans: a spiking '
        'sketch on the connectome of C. elegans (default: coba)',
    )
    parser.add_argument(
        '--neurons',
        type=_neurons,
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
        '--seed', type=_seed, default=0, metavar='N', help='of connections and initial state'
    )
    parser.add_argument(
        '--out',
        type=_picture,
        metavar='FILE',
        help='where to save the raster, as .png, .pdf or .svg (default: NETWORK.png)',
    )
    parser.add_argument('--no-plot', action='store_true', help='save no raster')
    parser.add_argument('--backend', metavar='NAME', help='such as numba, jax_raw, cuda_raw')


def run(args: argparse.Namespace) -> int:
    """Carry out the command.

    Parameters
    ----------
    args : argparse.Namespace
        Of a parser with :func:`add_arguments`.

    Returns
    -------
    int
        Exit status.

    Raises
    ------
    argparse.ArgumentError
        If the arguments do not fit each other or this machine.
    """
    out = _where_to_draw(args)
    _check_backend(args.backend)
    network = _build(args)
    dt, synapses = float(network.dt / ms), int(network.out_degree.sum())
    print(
        f'{network.name}: {network.neurons:,} {network.members}, {synapses:,} synapses, '
        f'{args.duration:g} ms in steps of {dt:g} ms'
    )
    chosen = contextlib.nullcontext() if args.backend is None else be.use_backend(args.backend)
    with chosen, progress_bar(round(args.duration / dt)) as bar:
        result = simulate(network, milliseconds=args.duration, seed=args.seed, progress=bar)
    print(report(result))
    if out is not None:
        print(f'raster            {raster.draw_raster(result, out)}')
    return 0


def report(result: Result) -> str:
    """Say in a few lines what a run did.

    Parameters
    ----------
    result : Result

    Returns
    -------
    str
    """

    def each(number: Callable[[str], float], pattern: str) -> str:
        values = {name: number(name) for name in result.network.populations}
        shown = {name: '-' if math.isnan(x) else f'{x:{pattern}}' for name, x in values.items()}
        return ', '.join(f'{name} {text}' for name, text in shown.items())

    model, wall = result.model_seconds, result.run_seconds
    lines = {
        'firing rate (Hz)': each(result.rate, '.1f'),
        'ISI CV': each(result.isi_cv, '.2f'),
        'synaptic events': f'{result.synaptic_events / model:,.0f} per second of model time, '
        f'{result.synaptic_events / wall:,.0f} per second',
        'wall time': f'{wall:.3f} s, {wall / result.steps * 1e6:.1f} us a step, '
        f'{model / wall:.2f} times real time (and {result.compile_seconds:.1f} s to compile)',
    }
    return '\n'.join(f'{title:<17} {text}' for title, text in lines.items())


def _build(args: argparse.Namespace) -> Network:
    kind = NETWORKS[args.network]
    if issubclass(kind, CElegans):
        if args.neurons is not None:
            _refuse('--neurons is for coba and cuba; celegans has the cells of its connectome')
        return kind.draw(seed=args.seed)
    neurons = 4000 if args.neurons is None else args.neurons
    # Targets are int32; twice as much for the copy that goes to the device.
    needed, present = neurons * kind.contacts * 8, _memory()
    if needed > present:
        _refuse(
            f'--neurons {neurons} needs {needed / 2**30:.0f} GiB for its synapses, '
            f'but this machine has {present / 2**30:.0f} GiB of memory'
        )
    return kind.draw(neurons, seed=args.seed)


def _where_to_draw(args: argparse.Namespace) -> Path | None:
    """Find out before the run whether its raster can be saved."""
    if args.no_plot:
        if args.out is not None:
            _refuse('--out and --no-plot exclude each other')
        return None
    missing = raster.why_no_pictures()
    if missing is not None:
        if args.out is not None:
            _refuse(f'--out needs matplotlib: {missing}')
        print(f'No raster: {missing}')
        return None
    out = args.out or Path(f'{args.network}.png')
    target = out if out.exists() else out.parent
    if not os.access(target, os.W_OK):
        _refuse(f'cannot write {out}; give another --out, or --no-plot')
    return out


def _check_backend(name: str | None) -> None:
    """Refuse a backend that cannot serve here; as a mere preference it would be passed over."""
    platform = jax.default_backend()
    present = be.binary_csrmv_p.available_backends(platform)
    if name is not None and name not in present:
        _refuse(f'--backend {name}: on this machine ({platform}) there are {", ".join(present)}')


def _memory() -> float:
    """Bytes of physical memory, where that can be asked."""
    try:
        return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    except (AttributeError, ValueError, OSError):
        return math.inf


def _refuse(message: str) -> NoReturn:
    raise argparse.ArgumentError(None, message)


def _neurons(text: str) -> int:
    return _integer(text, FEWEST)


def _seed(text: str) -> int:
    return _integer(text, 0)


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f'expected an integer of at least {least}, got {text!r}')
    return number


def _duration(text: str) -> float:
    """Read a time with its unit, in ms."""
    found = re.fullmatch(r'\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([a-z]+)\s*', text)
    if found is None or found[2] not in UNITS_MS:
        raise argparse.ArgumentTypeError(
            f'expected a time in {", ".join(UNITS_MS)}, such as 500ms, got {text!r}'
        )
    duration = float(found[1]) * UNITS_MS[found[2]]
    shortest = float(COBA.dt / ms)
    if not shortest <= duration <= LONGEST_MS:
        raise argparse.ArgumentTypeError(
            f'expected at least one step ({shortest:g}ms) and at most an hour, got {text!r}'
        )
    return duration


def _picture(text: str) -> Path:
    path = Path(text).expanduser()
    if path.suffix.lower() not in raster.FORMATS:
        raise argparse.ArgumentTypeError(
            f'expected a file that ends in {", ".join(raster.FORMATS)}, got {text!r}'
        )
    if path.is_dir():
        raise argparse.ArgumentTypeError(f'{text!r} is a folder')
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f'there is no folder {str(path.parent)!r}')
    return path
