# SPDX-License-Identifier: Apache-2.0
"""A long compilation is announced once; a short one, and a silenced one, is not."""

import logging
import time

import pytest

from brainevent._error import OptionError
from brainevent._op import notice


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(notice, 'AFTER', 0.05)
    monkeypatch.delenv(notice.ENVIRONMENT, raising=False)


def run(seconds):
    with notice.compilation_notice('product', '/a/folder'):
        time.sleep(seconds)


def test_a_long_one_names_kernel_and_cache(quick, caplog):
    run(0.5)
    (record,) = caplog.records
    assert record.name == 'brainevent'
    assert 'product' in record.getMessage() and '/a/folder' in record.getMessage()


def test_a_short_one_is_silent(quick, caplog, monkeypatch):
    monkeypatch.setattr(notice, 'AFTER', 30.0)
    run(0)
    assert not caplog.records


def test_it_can_be_turned_off(quick, caplog, monkeypatch):
    monkeypatch.setenv(notice.ENVIRONMENT, '0')
    run(0.3)
    monkeypatch.delenv(notice.ENVIRONMENT)
    with caplog.at_level(logging.ERROR, 'brainevent'):
        run(0.3)
    assert not caplog.records


def test_a_failure_ends_it(quick, caplog):
    with pytest.raises(ZeroDivisionError), notice.compilation_notice('product', None):
        1 / 0  # noqa: B018
    time.sleep(0.2)
    assert not caplog.records


def test_another_value_is_refused(quick, monkeypatch):
    monkeypatch.setenv(notice.ENVIRONMENT, 'maybe')
    with pytest.raises(OptionError, match='0 or 1'):
        run(0)
