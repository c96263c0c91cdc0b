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


@pytest.fixture(autouse=True)
def plain_jax():
    with be.use_backend('jax_raw'):
        yield


@pytest.mark.parametrize('name', sorted(CHECKS))
def test_a_promised_name(name):
    CHECKS[name](name, getattr(be, name))


def test_names_come_by_import_too():
    for name in sorted(CHECKS):
        exec(f'from brainevent import {name}', {})


def test_operators_are_registered_under_the_names_they_are_exported_by():
    for name in be.__all__:
        op = getattr(be, name)
        if isinstance(op, be.XLACustomKernel) and name.endswith('_p'):
            assert op.name == name[:-2]
            assert be.get_registry()[op.name] is op
    assert hasattr(be.BenchmarkResult, 'records')
    assert hasattr(be.CompiledModule, 'function_names') and hasattr(be.CompiledModule, 'path')
