# SPDX-License-Identifier: Apache-2.0
"""The tools that check CUDA kernels say what they lack, and time what they should."""

import json
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

import brainevent as be

TOOLS = Path(__file__).parents[1] / 'tools'


@pytest.fixture
def gpu_check(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import gpu_check

    return gpu_check


def test_the_gpu_check_stops_where_there_is_no_gpu(tmp_path):
    report = tmp_path / 'report.json'
    command = [sys.executable, str(TOOLS / 'gpu_check.py'), str(report)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.endswith('no GPU is within reach\n')
    found = json.loads(report.read_text())
    assert list(found) == ['versions'] and not found['versions']['ok']


def test_every_part_of_the_gpu_check_has_a_time_limit(gpu_check):
    assert {'versions', 'build', 'conformance', 'sanitizer', 'speed'} <= set(gpu_check.PARTS)
    assert sum(seconds for _, seconds in gpu_check.PARTS.values()) < 12 * 60


def test_its_timer_runs_the_step_and_not_a_constant(gpu_check):
    *csr, on = map(jnp.asarray, gpu_check._case(64, 8, 0.1))

    def step(x, *csr):
        return be.binary_csrmv(*csr, x, shape=(64, 64), transpose=True, backend='jax_raw')

    assert gpu_check._seconds(step, on, *csr, times=3) > 0


def test_the_workflow_is_the_one_at_the_top():
    root = Path(__file__).resolve().parent.parent
    assert (root / '.github/workflows/ci.yml').read_text() == (root / 'CI.yml').read_text()
