# SPDX-License-Identifier: Apache-2.0
"""``brainevent demo``: run a network, report what it did and how fast, save its raster."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
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

__all__ = ['run']

NETWORKS: dict[str, type[BalancedNetwork] | type[CElegans]] = {
    'coba': COBA,
    'cuba': CUBA,
    'celegans': CElegans,
}


def run(args: argparse.Namespace) -> int:
    """Carry out the command.

    Parameters
    ----------
    args : argparse.Namespace
        The parsed arguments.

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
        shown = '; '.join([str(raster.draw_raster(result, out)), *raster.left_out(result)])
        print(f'raster            {shown}')
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
        f'{_against_real_time(model / wall)} (and {result.compile_seconds:.1f} s to compile)',
    }
    return '\n'.join(f'{title:<17} {text}' for title, text in lines.items())


def _against_real_time(ratio: float) -> str:
    """State how model time goes by, for seconds of it in each second."""
    if ratio >= 1:
        return f'{ratio:.2f} times faster than real time'
    return f'{1 / ratio:.2f} times slower than real time'


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
