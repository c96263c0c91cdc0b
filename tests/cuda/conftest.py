# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels on the emulator: ``cuda_raw`` serves the CPU, and every access is checked."""

import os
import shutil
from pathlib import Path

import pytest

EMULATOR = Path(__file__).parents[1] / 'cuda_emulator'


@pytest.fixture
def emulated(monkeypatch):
    """Run CUDA kernels on the emulator, checked unless the environment says otherwise."""
    if not shutil.which(os.environ.get('CXX', 'g++')):
        pytest.skip('the emulator needs a C++ compiler')
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', str(EMULATOR))

    def schedule(name):
        monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR_SCHEDULE', name)

    return schedule
