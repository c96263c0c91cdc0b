# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests beside the code: the CPU device, clean settings, 64-bit numbers."""

import os

os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import jax
import pytest

from brainevent import config
from brainevent._op import backends, registry, selection


@pytest.fixture(autouse=True)
def clean_settings(monkeypatch):
    """Start every test from the default settings, and leave no trace of its own.

    Operators and backends that a test registers are forgotten, and so is which warnings were shown.
    """
    monkeypatch.setattr(registry, '_operators', dict(registry._operators))
    monkeypatch.setattr(backends, '_records', dict(backends._records))
    monkeypatch.setattr(selection, '_warned', set())
    config.clear_backends()
    before = dict(vars(config._now))
    yield
    config.clear_backends()
    threads = config.cpu_threads()
    vars(config._now).update(before)
    if config.cpu_threads() != threads:
        jax.clear_caches()


@pytest.fixture
def cpu():
    """Return the first CPU device; CPU probes commit their inputs to it."""
    return jax.devices('cpu')[0]


@pytest.fixture
def on_cpu(cpu):
    """Let everything that is placed by default be placed on the CPU."""
    with jax.default_device(cpu):
        yield


@pytest.fixture
def x64():
    """Turn on 64-bit numbers for one test."""
    with jax.enable_x64(True):
        yield
