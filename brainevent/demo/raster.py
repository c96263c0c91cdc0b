# SPDX-License-Identifier: Apache-2.0
"""Draw who fired when, and how much each population did, as a picture."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
from brainunit import ms

from brainevent.demo.run import Result

__all__ = ['draw_raster', 'left_out', 'why_no_pictures']

WINDOW_MS = 1000.0
BIN_MS = 5.0
COLOURS = ('#2b5c8a', '#c8553d', '#3f7d58', '#8a6f2b', '#6b4c8a', '#444444')


def why_no_pictures() -> str | None:
    """Say what is missing for pictures, or None if nothing is."""
    try:
        _figure_class()
    except ImportError as error:
        return f"{error}; install it with: pip install 'brainevent[plot]'"
    return None


def left_out(result: Result) -> list[str]:
    """List what a raster does not show of a run: neurons that were not recorded, earlier times.

    Parameters
    ----------
    result : Result
        Of :func:`simulate`.

    Returns
    -------
    list of str
        A phrase for each; empty if everything is shown.
    """
    phrases = []
    if result.stride > 1:
        neurons = result.network.neurons
        recorded = len(range(0, neurons, result.stride))
        phrases.append(f'{recorded:,} of {neurons:,} {result.network.members} are shown')
    begin, end = _window(result)
    if begin > 0:
        phrases.append(f'the last {(end - begin) / 1e3:g} s of {end / 1e3:g} s are shown')
    return phrases


def _window(result: Result) -> tuple[float, float]:
    """Give first and last moment that are drawn, in ms."""
    end = result.steps * float(result.network.dt / ms)
    return max(0.0, end - WINDOW_MS), end


def draw_raster(result: Result, path: str | os.PathLike[str]) -> Path:
    """Save a raster of the last second of a run, with the firing rates below it.

    What it leaves out (see :func:`left_out`) stands in its title.

    Parameters
    ----------
    result : Result
        Of :func:`simulate`.
    path : path
        Where to save it; the suffix is the format: ``.png``, ``.pdf`` or ``.svg``.

    Returns
    -------
    Path
        The file written.
    """
    network, path = result.network, Path(path)
    dt = float(network.dt / ms)
    begin, end = _window(result)
    times = (result.times + 1) * dt
    late = times > begin
    times, ids = times[late], result.ids[late]

    figure = _figure_class()(figsize=(10, 6.5), layout='constrained')
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    bins = np.linspace(begin, end, max(2, round((end - begin) / BIN_MS) + 1))
    for (name, members), colour in zip(
        network.populations.items(), itertools.cycle(COLOURS), strict=False
    ):
        mine = (ids >= members.start) & (ids < members.stop)
        rows = top.scatter(times[mine], ids[mine], s=_dot(times.size), c=colour, linewidths=0)
        rows.set_rasterized(True)
        _label(top, name, members, colour, network.neurons)
        recorded = len(range(*members.indices(network.neurons))) / result.stride
        rate = np.histogram(times[mine], bins)[0] / recorded / np.diff(bins) * 1e3
        bottom.stairs(rate, bins, color=colour, linewidth=1.2, baseline=None)

    for name, span in network.stimuli.items():
        for second in np.arange(np.floor(begin / 1e3), end / 1e3) * 1e3:
            _shade(top, name, second + span[0], second + span[1])

    top.set_title(_title(result), loc='left', fontsize=11)
    top.set_ylabel(network.members)
    top.set_ylim(network.neurons, 0)
    bottom.set_ylabel('rate (Hz)')
    bottom.set_xlabel('time (ms)')
    bottom.set_xlim(begin, end)
    bottom.set_ylim(bottom=0)
    for axes in (top, bottom):
        axes.spines[['top', 'right']].set_visible(False)
    figure.savefig(path, dpi=150)
    return path


def _title(result: Result) -> str:
    network = result.network
    rates = ', '.join(f'{name} {result.rate(name):.1f} Hz' for name in network.populations)
    title = f'{network.name}, {network.neurons:,} {network.members}: {rates}'
    return '\n'.join(filter(None, (title, '; '.join(left_out(result)))))


def _dot(spikes: int) -> float:
    """Area of a dot that keeps sparse rasters visible and dense ones readable."""
    return float(np.clip(4e4 / max(spikes, 1), 0.6, 5.0))


def _shade(axes: Any, name: str, begin: float, end: float) -> None:
    """Mark when a stimulus lasted."""
    axes.axvspan(begin, end, color='#e9e4d4', zorder=0)
    axes.annotate(
        name,
        xy=((begin + end) / 2, 0),
        xycoords=('data', 'axes fraction'),
        xytext=(0, 4),
        textcoords='offset points',
        ha='center',
        fontsize=9,
        color='#7a6f4f',
        annotation_clip=True,
    )


def _label(axes: Any, name: str, members: slice, colour: str, neurons: int) -> None:
    """Name a population at the right edge of the raster, beside its rows."""
    axes.annotate(
        name,
        xy=(1.01, (members.start + members.stop) / 2),
        xycoords=('axes fraction', 'data'),
        color=colour,
        rotation=-90 if members.stop - members.start > neurons / 8 else 0,
        va='center',
        fontsize=9,
        annotation_clip=False,
    )


def _figure_class() -> Any:
    """Give matplotlib's Figure, which unlike pyplot needs no screen."""
    from matplotlib.figure import Figure

    return Figure
