# SPDX-License-Identifier: Apache-2.0
"""Measurements: what is shown, saved and returned; wrong arguments."""

import json

import jax
import numpy as np
import pytest

import brainevent as be
import brainevent_cli as _cli
from brainevent._commands import benchmark

NAN = float('nan')


@pytest.fixture
def tiny():
    """Register an operator with a fast, a slow and a broken kernel."""
    op = be.XLACustomKernel('tiny')
    op.def_kernel('jax_raw', 'cpu', lambda *, outs: lambda x: [x + 1])
    op.def_kernel('broken', 'cpu', lambda *, outs: lambda x: [x.nothing])
    op.def_call(lambda x, backend=None: op(x, outs=[x], backend=backend))
    config = be.BenchmarkConfig('small', (np.ones(3, np.float32),), {}, {'size': 3})
    op.def_benchmark_data(lambda *, platform: [config])
    op.def_tags('tiny', 'float')
    return op


def refused(argv, capsys):
    with pytest.raises(SystemExit) as info:
        _cli.main(argv)
    assert info.value.code == 2
    return capsys.readouterr().err


def test_measurements_are_shown_and_saved(tiny, tmp_path, capsys):
    file = tmp_path / 'out.json'
    argv = ['--platform', 'cpu', '--data', 'float,tiny', '--n-warmup', '1', '--n-runs', '2']
    assert _cli.main(['benchmark-performance', *argv, '--output', str(file)]) == 0
    out = capsys.readouterr().out
    assert out.startswith('1 operators on cpu (cpu)')
    assert 'small, broken: KernelCompilationError' in out
    saved = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert (saved['platform'], saved['n_warmup'], saved['n_runs']) == ('cpu', 1, 2)
    assert saved['best'] == {'tiny': 'jax_raw'}
    good, bad = saved['results']['tiny']
    assert good['backend'] == 'jax_raw' and good['mean_ms'] > 0
    assert bad['mean_ms'] is None and not bad['success']


def test_nothing_with_these_tags_is_said(tiny, capsys):
    assert _cli.main(['benchmark-performance', '--data', 'tiny,csr']) == 1
    assert "no operator carries all of ['csr', 'tiny']" in capsys.readouterr().err


def test_nothing_measured_is_a_failure(tiny, capsys):
    tiny.def_tags('idle')
    tiny._benchmark_data = None
    assert _cli.main(['benchmark-performance', '--data', 'idle']) == 1
    assert 'tiny: no data to measure it with' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('argv', 'words'),
    [
        (['--platform', 'npu'], "invalid choice: 'npu'"),
        (['--n-runs', '0'], 'expected an integer of at least 1'),
        (['--n-warmup', '-1'], 'expected'),
        (['--output', 'no/such/folder/x.json'], 'expected a file in a folder that exists'),
        (['--output', '.'], 'expected a file in a folder that exists'),
    ],
)
def test_wrong_arguments_are_refused(argv, words, capsys):
    assert words in refused(['benchmark-performance', *argv], capsys)


def test_a_platform_that_is_not_there_is_refused(monkeypatch, capsys):
    def devices(platform=None):
        raise RuntimeError('none')

    monkeypatch.setattr(jax, 'devices', devices)
    assert '--platform tpu: this machine has none' in refused(
        ['benchmark-performance', '--platform', 'tpu'], capsys
    )


def record(backend, label, mean):
    good = mean is not NAN
    return be.BenchmarkRecord('cpu', backend, label, mean, 0, mean, None, good, None, {}, {})


def test_the_best_backend_did_everything_in_the_least_time():
    records = [record('a', 'x', 5), record('a', 'y', 1), record('b', 'x', 1), record('b', 'y', 6)]
    assert benchmark.best_backend(be.BenchmarkResult(records)) == 'a'
    records += [record('c', 'x', 0.1), record('c', 'y', NAN)]
    assert benchmark.best_backend(be.BenchmarkResult(records)) == 'a'
    assert benchmark.best_backend(be.BenchmarkResult([record('c', 'y', NAN)])) is None
