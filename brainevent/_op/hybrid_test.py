# SPDX-License-Identifier: Apache-2.0
"""Schedule settings are present, checked, and honest about having no effect."""

import dataclasses

import pytest

import brainevent as be
from brainevent._op import hybrid


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv(hybrid.ENVIRONMENT, raising=False)
    hybrid._read.cache_clear()
    yield
    hybrid._read.cache_clear()


def test_the_defaults_are_silent():
    assert be.get_hybrid_config() == be.HybridConfig()
    assert be.get_hybrid_config() is be.get_hybrid_config()
    assert [f.default for f in dataclasses.fields(be.HybridConfig)] == [256, 2048, 128, 4096, ()]


def test_settings_are_frozen_and_positive():
    with pytest.raises(dataclasses.FrozenInstanceError):
        be.HybridConfig().block_size = 1
    for bad in (0, -1, 2.0, True, None):
        with pytest.raises(be.OptionError, match='`task_nnz` is not a positive number'):
            be.HybridConfig(task_nnz=bad)


def test_the_environment_is_read_and_said_to_be_inert(monkeypatch):
    monkeypatch.setenv(hybrid.ENVIRONMENT, '{"block_size": 64}')
    with pytest.warns(UserWarning, match='no schedule to tune'):
        assert be.get_hybrid_config() == be.HybridConfig(block_size=64)
    assert be.get_hybrid_config().block_size == 64  # warned once


@pytest.mark.parametrize('text', ['[', '[1]', '3', '{"blocks": 3}', '{"block_size": 0}'])
def test_what_is_no_settings_is_refused(text, monkeypatch):
    monkeypatch.setenv(hybrid.ENVIRONMENT, text)
    with pytest.raises(ValueError, match='BRAINEVENT_CSR_HYBRID_CONFIG does not hold settings'):
        be.get_hybrid_config()


def test_tuning_measures_nothing_and_says_so():
    with pytest.warns(UserWarning, match='init_csr_config: there is no schedule to tune'):
        assert be.init_csr_config(save=False, device_kind='x', n_runs=3) == be.HybridConfig()
