# SPDX-License-Identifier: Apache-2.0
"""Every case of the paired benchmark runs on a small scale, and its protocol holds."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture(scope='module')
def folder(pytestconfig):
    return pytestconfig.rootpath / 'benchmarks'


@pytest.fixture
def load(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module


SMALL = ':n=40:k=4:rate=.2:steps=2:b=3'


def test_a_case_is_read_from_its_name(load):
    setting = load('worker').Setting.parse(['n=100', 'rate=.02', 'w=homo'])
    assert (setting.n, setting.k, setting.rate, setting.w) == (100, 80, 0.02, 'homo')


def test_the_listed_cases_exist(load):
    worker, paired = load('worker'), load('paired')
    for pair in paired.CASES:
        for name in pair.split('~'):
            operator, *words = name.split(':')
            assert operator in worker.CASES
            worker.Setting.parse(words)


def test_every_case_runs(load):
    worker = load('worker')
    pytest.importorskip('scipy', reason='scipy cases measure scipy')
    for name in [*(f'{case}{SMALL}' for case in worker.CASES), f'scan_sW{SMALL}:w=homo']:
        answer = worker.Timer()(name, 1)
        assert answer['us'] > 0, name
        assert answer['edges'] > 0, name


def test_a_scan_delivers_what_the_dense_product_does(load):
    worker = load('worker')
    setting = worker.Setting.parse(SMALL[1:].split(':'))
    weights, targets, _ = worker.net(setting.n, setting.k)
    dense = np.zeros((setting.n, setting.n), np.float32)
    np.add.at(dense, (np.arange(setting.n)[:, None], targets), weights.reshape(targets.shape))
    expected = (setting.spikes() @ dense).sum(axis=0)
    for name in ('scan_sW', 'fcn_pre'):
        np.testing.assert_allclose(worker.CASES[name](name, setting).call(), expected, rtol=1e-5)


def test_the_worker_answers_each_line_and_survives_errors(folder):
    questions = [{'case': 'no_such_case', 'reps': 1}, {'case': f'scipy_mv{SMALL}', 'reps': 1}]
    done = subprocess.run(
        [sys.executable, str(folder / 'worker.py')],
        input=''.join(f'{json.dumps(q)}\n' for q in questions),
        capture_output=True,
        text=True,
        timeout=300,
    )
    bad, good = map(json.loads, done.stdout.splitlines())
    assert bad == {'error': "KeyError: 'no_such_case'"}
    assert good['us'] > 0


def test_a_side_is_an_interpreter_and_perhaps_a_checkout(load, tmp_path):
    sides = load('sides')
    side = sides.Side(f'A={sys.executable}@{tmp_path}')
    assert (side.name, side.python) == ('A', sys.executable)
    assert side.env['PYTHONPATH'] == str(tmp_path)
    assert 'PYTHONPATH' not in sides.Side(f'A={sys.executable}').env
    with pytest.raises(Exception, match='NAME=PYTHON'):
        sides.Side('nothing')


def test_the_table_shows_ratio_and_error(load):
    rows = [
        {'case': 'x', 'us': [1.0, 3.0], 'first_s': [0.5, 1.0], 'ns_per_edge': 0.25, 'ratio': 3.0},
        {'case': 'y', 'us': [1.0], 'first_s': [0.5], 'ns_per_edge': 0.25},
        {'case': 'z', 'error': 'no'},
    ]
    assert list(load('paired').table(rows))[2:] == [
        '| `x` | 1.0 | 3.0 | 3.00 | 0.25 | 0.50, 1.00 |',
        '| `y` | 1.0 |  |  | 0.25 | 0.50 |',
        '| `z` | no | | | | |',
    ]
