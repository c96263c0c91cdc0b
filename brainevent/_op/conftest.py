# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of what is compiled: a cache folder of their own, and other processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brainevent._op import cache

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Use a cache folder that this test alone has, and that does not exist yet."""
    monkeypatch.setattr(cache, '_ready', None)
    monkeypatch.setattr(cache, '_chosen', tmp_path / 'kernels')
    monkeypatch.setattr(cache, '_private', None)
    monkeypatch.setattr(cache, '_warned', set())
    return tmp_path / 'kernels'


class Child:
    """A Python process that runs some code, with a cache folder; ``first`` hides other packages."""

    def __init__(self, code, *args, cache_dir, first='', **env):
        env = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'BRAINEVENT_CACHE_DIR': str(cache_dir), **env}
        env['PYTHONPATH'] = os.pathsep.join([*filter(None, [first]), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, '-W', 'error::RuntimeWarning', '-c', code, *map(str, args)],
            env={name: value for name, value in env.items() if value is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def runs(self):
        """Tell whether the process has not ended yet."""
        return self._process.poll() is None

    def output(self):
        """Wait for the end, which must be a good one, and return what was printed."""
        try:
            out, err = self._process.communicate(timeout=240)
        finally:
            self._process.kill()
        assert self._process.returncode == 0, f'{out}\n{err[-3000:]}'
        return out


@pytest.fixture
def child(tmp_path):
    """Start other processes; they share a cache folder that is empty at first."""

    def start(code, *args, cache_dir=tmp_path / 'shared', **env):
        return Child(code, *args, cache_dir=cache_dir, **env)

    return start
