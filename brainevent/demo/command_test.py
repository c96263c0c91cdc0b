# SPDX-License-Identifier: Apache-2.0
"""``brainevent demo`` says what it did, and what is wrong with a bad argument."""

import sys

import pytest

from brainevent.demo import command, raster
from brainevent_cli import _duration, main

SHORT = ('--duration', '5ms', '--neurons', '200')


def refused(capsys, *argv):
    with pytest.raises(SystemExit) as info:
        main(['demo', *argv])
    assert info.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize('name', ['coba', 'cuba'])
def test_report_has_rates_events_and_time(name, capsys):
    assert main(['demo', name, *SHORT, '--no-plot']) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f'{name.upper()}: 200 neurons, 16,000 synapses, 5 ms in steps of 0.1 ms')
    for word in ('firing rate (Hz)  excitatory', 'ISI CV', 'synaptic events', 'us a step'):
        assert word in out
    assert '50/50' in err and err.startswith('compiling ...')


def test_backend_can_be_chosen(capsys):
    assert main(['demo', 'cuba', *SHORT, '--no-plot', '--backend', 'jax_raw']) == 0
    assert 'us a step' in capsys.readouterr().out


def test_connectome_runs(capsys):
    assert main(['demo', 'celegans', '--duration', '5ms', '--no-plot']) == 0
    out = capsys.readouterr().out
    assert out.startswith('C. elegans: 473 cells, 4,879 synapses')
    assert 'sensory' in out and 'muscle' in out


def test_raster_is_saved_where_asked(tmp_path, capsys):
    pytest.importorskip('matplotlib')
    path = tmp_path / 'raster.png'
    assert main(['demo', 'coba', *SHORT, '--out', str(path)]) == 0
    assert path.stat().st_size > 1000
    assert str(path) in capsys.readouterr().out


def test_raster_is_named_after_the_network(tmp_path, monkeypatch):
    pytest.importorskip('matplotlib')
    monkeypatch.chdir(tmp_path)
    assert main(['demo', 'cuba', *SHORT]) == 0
    assert (tmp_path / 'cuba.png').exists()


def test_run_goes_on_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setattr(raster, 'why_no_pictures', lambda: 'no matplotlib; install it')
    assert main(['demo', 'coba', *SHORT]) == 0
    assert 'No raster: no matplotlib; install it' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('argv', 'complaint'),
    [
        (['vogels'], "invalid choice: 'vogels'"),
        (['--neurons', '99'], "expected an integer of at least 100, got '99'"),
        (['--neurons', 'many'], "expected an integer of at least 100, got 'many'"),
        (['--neurons', '1e3'], "expected an integer of at least 100, got '1e3'"),
        (['--neurons', '9' * 20], 'of memory'),
        (['celegans', '--neurons', '400'], 'celegans has the cells of its connectome'),
        (['--duration', '100'], 'expected a time in us, ms, s, min'),
        (['--duration', '1h'], 'expected a time in us, ms, s, min'),
        (['--duration', 'nan'], 'expected a time in us, ms, s, min'),
        (['--duration=-1s'], 'expected a time in us, ms, s, min'),
        (['--duration', '0s'], 'at least one step (0.1ms)'),
        (['--duration', '1us'], 'at least one step (0.1ms)'),
        (['--duration', '1e99s'], 'at most an hour'),
        (['--seed', '-1'], "expected an integer of at least 0, got '-1'"),
        (['--out', 'raster'], 'expected a file that ends in .png, .pdf, .svg'),
        (['--out', 'missing/raster.png'], "there is no folder 'missing'"),
        (['--out', 'raster.png', '--no-plot'], 'exclude each other'),
        (['--backend', 'fortran'], '--backend fortran: on this machine (cpu) there are numba'),
        (['--backend', 'cuda_raw'], '--backend cuda_raw: on this machine (cpu) there are numba'),
        (['--frequency=3'], 'unrecognized arguments'),
    ],
)
def test_bad_argument_is_explained(argv, complaint, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert complaint in refused(capsys, *argv)
    assert not list(tmp_path.iterdir())


def test_out_that_is_a_folder_is_refused(tmp_path, capsys):
    (tmp_path / 'x.png').mkdir()
    assert 'is a folder' in refused(capsys, '--out', str(tmp_path / 'x.png'))


def test_folder_that_cannot_be_written_is_refused_before_the_run(tmp_path, capsys, monkeypatch):
    pytest.importorskip('matplotlib')
    monkeypatch.setattr(command.os, 'access', lambda path, mode: False)
    assert 'cannot write' in refused(capsys, '--out', str(tmp_path / 'x.png'))


def test_asking_for_a_raster_without_matplotlib_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, 'matplotlib.figure', None)
    assert "pip install 'brainevent[plot]'" in refused(capsys, '--out', str(tmp_path / 'x.png'))


@pytest.mark.parametrize(
    ('text', 'milliseconds'),
    [('1s', 1000), ('1000ms', 1000), ('0.5 s', 500), ('.5ms', 0.5), ('2e2us', 0.2), ('1min', 6e4)],
)
def test_durations_are_read_with_their_unit(text, milliseconds):
    assert _duration(text) == pytest.approx(milliseconds)


@pytest.mark.parametrize(
    ('ratio', 'text'),
    [
        (2.71, '2.71 times faster than real time'),
        (0.25, '4.00 times slower than real time'),
        (1.0, '1.00 times faster than real time'),
    ],
)
def test_speed_is_faster_or_slower(ratio, text):
    assert command._against_real_time(ratio) == text
