# SPDX-License-Identifier: Apache-2.0
"""A raster is a picture file, with or without spikes, home and matplotlib."""

import os
import subprocess
import sys

import numpy as np
import pytest

from brainevent.demo.celegans import CElegans
from brainevent.demo.networks import CUBA
from brainevent.demo.raster import draw_raster, left_out, why_no_pictures
from brainevent.demo.run import Result

pytest.importorskip('matplotlib')
from matplotlib.figure import Figure  # noqa: E402


def result(times, ids, steps=200, network=None, stride=1):
    return Result(
        network=network or CUBA.draw(100),
        steps=steps,
        counts=np.bincount(ids, minlength=500),
        times=np.asarray(times, int),
        ids=np.asarray(ids, int),
        stride=stride,
        compile_seconds=0.0,
        run_seconds=1.0,
    )


@pytest.mark.parametrize(
    ('suffix', 'magic'), [('.png', b'\x89PNG'), ('.pdf', b'%PDF'), ('.svg', b'<?xml')]
)
def test_picture_has_the_format_of_its_suffix(tmp_path, suffix, magic):
    path = draw_raster(result([3, 50, 199], [0, 90, 7]), tmp_path / f'raster{suffix}')
    assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize('steps', [1, 200, 30_000])
def test_silence_can_be_drawn(tmp_path, steps):
    nothing = np.array([], int)
    assert draw_raster(result(nothing, nothing, steps), tmp_path / 'x.png').stat().st_size > 1000


def test_stimuli_are_marked_in_the_second_that_is_shown(tmp_path):
    worm = result([3, 16_000], [0, 90], 17_000, CElegans.draw())
    text = draw_raster(worm, tmp_path / 'x.svg').read_text()
    assert text.count('<!-- head -->') == text.count('<!-- tail -->') == 1


def test_missing_matplotlib_is_named_with_its_remedy(monkeypatch):
    assert why_no_pictures() is None
    monkeypatch.setitem(sys.modules, 'matplotlib.figure', None)
    assert "pip install 'brainevent[plot]'" in why_no_pictures()


def test_drawing_needs_no_home(tmp_path):
    # A folder below a file can be made by nobody, not even by root.
    code = (
        'from brainevent.demo import CUBA, draw_raster, simulate;'
        f'draw_raster(simulate(CUBA.draw(100), milliseconds=1.0), {str(tmp_path / "x.png")!r})'
    )
    clean = {k: v for k, v in os.environ.items() if k != 'MPLCONFIGDIR'}
    run = [sys.executable, '-c', code]
    subprocess.run(run, env=clean | {'HOME': '/dev/null/home'}, check=True, capture_output=True)
    assert (tmp_path / 'x.png').exists()


@pytest.mark.parametrize(
    ('steps', 'stride', 'phrases'),
    [
        (10_000, 1, []),
        (200, 3, ['34 of 100 neurons are shown']),
        (25_000, 1, ['the last 1 s of 2.5 s are shown']),
        (25_000, 2, ['50 of 100 neurons are shown', 'the last 1 s of 2.5 s are shown']),
    ],
)
def test_what_is_left_out_stands_in_the_title(tmp_path, steps, stride, phrases):
    run = result([3], [0], steps, stride=stride)
    assert left_out(run) == phrases
    text = draw_raster(run, tmp_path / 'x.svg').read_text()
    assert all(phrase in text for phrase in phrases)
    assert phrases or 'are shown' not in text


@pytest.mark.parametrize('network', [CUBA.draw(100), CElegans.draw()])
def test_the_axis_covers_all_cells(tmp_path, monkeypatch, network):
    figures = []

    def figure(*args, **kwargs):
        figures.append(Figure(*args, **kwargs))
        return figures[0]

    monkeypatch.setattr('brainevent.demo.raster._figure_class', lambda: figure)
    draw_raster(result([3], [0], network=network), tmp_path / 'x.png')
    assert figures[0].axes[0].get_ylim() == (network.neurons, 0)
