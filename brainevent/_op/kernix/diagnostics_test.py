# SPDX-License-Identifier: Apache-2.0
"""Diagnostics: every question has an answer, even where nothing is installed."""

import pytest

import brainevent as be
from brainevent._op.kernix import nvcc
from brainevent._op.kernix.diagnostics import diagnostics


def test_answers_where_nothing_is_installed(monkeypatch, tmp_path):
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.setattr(nvcc, '_DEFAULT_PLACE', str(tmp_path))
    monkeypatch.setattr(nvcc, '_pip_nvcc', lambda: None)
    for variable in ('CXX', 'CUDA_HOME', 'CUDA_PATH', 'CONDA_PREFIX', 'BRAINEVENT_CUDA_EMULATOR'):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv('BRAINEVENT_NVCC_PREFER', 'pip')
    said = dict(diagnostics())
    assert 'E-CXX' in said['C++ compiler']
    assert 'E-NVCC' in said['CUDA compiler']
    assert 'E-ARCH' in said['architectures']
    assert said['GPUs'] == 'none that JAX shows'
    assert said['BRAINEVENT_NVCC_PREFER'] == 'pip'
    assert 'CXX' not in said


@pytest.mark.usefixtures('compiler')
def test_printed(capsys, monkeypatch):
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', 'somewhere')
    monkeypatch.setenv('BRAINEVENT_COMPUTE_CAPABILITIES', '9.0')
    be.print_diagnostics()
    lines = capsys.readouterr().out.splitlines()
    assert f'brainevent:     {be.__version__}' in lines
    assert 'CUDA compiler:  emulated by somewhere' in lines
    assert 'architectures:  sm_90' in lines
