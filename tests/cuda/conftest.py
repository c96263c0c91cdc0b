# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels on the emulator: ``cuda_raw`` serves the CPU, and every access is checked.

Where JAX runs on a GPU the same tests run on the device.
"""

import os
import shutil
from pathlib import Path

import jax
import pytest

EMULATOR = Path(__file__).parents[1] / 'cuda_emulator'


@pytest.fixture
def emulated(monkeypatch):
    """Run CUDA kernels on the emulator, checked unless the environment says otherwise."""
    if jax.default_backend() == 'gpu':
        return lambda name: None
    if not shutil.which(os.environ.get('CXX', 'g++')):
        pytest.skip('the emulator needs a C++ compiler')
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', str(EMULATOR))

    def schedule(name):
        monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR_SCHEDULE', name)

    return schedule
