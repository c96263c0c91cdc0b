# SPDX-License-Identifier: Apache-2.0
"""Every public name that earlier releases promised is there and does what it says.

The folder ``contract`` holds a table from each name to a small check of its value against dense
arithmetic, or against what else it stands for. Kernels are the business of other tests: here the
plain JAX backend serves all products.
"""

import importlib

import pytest

import brainevent as be
from tests.contract.table import CHECKS

for _part in ('products', 'edges', 'services'):
    importlib.import_module(f'tests.contract.{_part}')

PENDING = set()
"""Promised names that are not there yet; a name that has come must be taken out."""


@pytest.fixture(autouse=True)
def plain_jax():
    with be.use_backend('jax_raw'):
        yield


@pytest.mark.parametrize('name', sorted(CHECKS))
def test_a_promised_name(name):
    if name in PENDING:
        assert not hasattr(be, name), f'{name} has come: take it out of PENDING'
        pytest.skip('not there yet')
    CHECKS[name](name, getattr(be, name))


def test_only_promised_names_are_pending():
    assert set(CHECKS) >= PENDING


def test_names_come_by_import_too():
    for name in sorted(set(CHECKS) - PENDING):
        exec(f'from brainevent import {name}', {})
