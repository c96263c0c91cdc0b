# SPDX-License-Identifier: Apache-2.0
"""Names of earlier releases resolve, or say what to use instead."""

import sys
import warnings

import pytest

import brainevent as be
from brainevent import _retired


@pytest.mark.parametrize('name', _retired.GONE)
def test_a_name_that_is_gone_gives_advice(name):
    with pytest.raises(AttributeError) as caught:
        getattr(be, name)
    assert f'there is no `{name}` any more' in str(caught.value)
    assert f'remedy:   use {_retired.GONE[name]}' in str(caught.value)
    assert not hasattr(be, name)
    with pytest.raises(ImportError) as caught:
        exec(f'from brainevent import {name}')
    assert f'remedy:   use {_retired.GONE[name]}' in str(caught.value)


def test_no_name_is_both_gone_and_there():
    assert not set(_retired.GONE) & (set(be.__all__) | set(_retired.RENAMED))
    assert not set(_retired.RENAMED) & set(be.__all__)


def test_advice_names_what_exists():
    for advice in _retired.GONE.values():
        first = advice.replace(',', ' ').replace(':', ' ').replace('()', '').split()[0]
        if first[0].isupper() or first.startswith('get_'):
            assert hasattr(be, first), advice


def test_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="module 'brainevent' has no attribute 'no_such'"):
        be.no_such  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute '__path_to__'"):
        be.__path_to__  # noqa: B018


def test_a_warning_only_where_behaviour_differs(monkeypatch):
    monkeypatch.setitem(_retired.RENAMED, 'old', _retired.Renamed('CSR'))
    assert be.old is be.CSR
    monkeypatch.setitem(_retired.RENAMED, 'other', _retired.Renamed('CSC', 'it is turned'))
    with pytest.warns(DeprecationWarning, match='other is now CSC, and differs: it is turned') as w:
        assert be.other is be.CSC
    assert w[0].filename == __file__


def test_names_whose_successor_is_missing_are_missing(monkeypatch):
    monkeypatch.setitem(_retired.RENAMED, 'old', _retired.Renamed('not_there'))
    assert not hasattr(be, 'old')


def test_live_clients_hear_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        from brainevent import EventArray, FixedPostNumConn, FixedPreNumConn

    assert EventArray is be.BinaryArray
    assert FixedPostNumConn is be.FixedNumPerPre
    assert FixedPreNumConn is be.FixedNumPerPost


def test_dir_lists_what_can_be_used():
    listed = dir(be)
    assert listed == sorted(set(listed))
    assert set(be.__all__) <= set(listed)
    assert all(hasattr(be, name) for name in listed)
    assert not [name for name in listed if name[0] == '_' and name[:2] != '__']
    assert not set(listed) & (set(_retired.GONE) | set(_retired.RENAMED))


@pytest.mark.parametrize(
    ('name', 'meant'),
    [
        ('BinaryArry', 'BinaryArray'),
        ('csr', 'CSR'),
        ('binary_csr_mv', 'binary_csrmv'),
        ('FixedNumPerPres', 'FixedNumPerPre'),
        ('set_backends', 'set_backend'),
    ],
)
def test_a_misspelt_name_is_corrected(name, meant):
    text = f"module 'brainevent' has no attribute {name!r}; did you mean {meant!r}?"
    with pytest.raises(AttributeError) as caught:
        getattr(be, name)
    assert str(caught.value) == text
    with pytest.raises(ImportError) as caught:
        exec(f'from brainevent import {name}')
    assert str(caught.value) == text
    assert getattr(be, name, None) is None


def test_modules_of_the_package_are_imported_though_they_resemble_a_name(monkeypatch):
    monkeypatch.setattr(_retired, '_near', lambda name, candidates: ['CSR'])
    monkeypatch.delitem(be.__dict__, 'extend', raising=False)
    monkeypatch.delitem(sys.modules, 'brainevent.extend', raising=False)
    from brainevent import extend

    assert extend.__name__ == 'brainevent.extend'
