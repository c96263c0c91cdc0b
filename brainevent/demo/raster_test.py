# SPDX-License-Identifier: Apache-2.0
"""A raster is a picture file, with or without spikes, home and matplotlib."""

import os
import subprocess
import sys

import numpy as np
import pytest

from brainevent.demo.celegans import CElegans
from brainevent.demo.networks import CUBA
from brainevent.demo.raster import draw_raster, why_no_pictures
from brainevent.demo.run import Result

pytest.importorskip('matplotlib')


def result(times, ids, steps=200, network=None):
    return Result(
        network=network or CUBA.draw(100),
        steps=steps,
        counts=np.bincount(ids, minlength=500),
        times=np.asarray(times, int),
        ids=np.asarray(ids, int),
        stride=1,
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
