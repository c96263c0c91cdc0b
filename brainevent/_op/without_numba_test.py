# SPDX-License-Identifier: Apache-2.0
"""A numba that fails on import: cached kernels run, others on another backend, with a warning."""

from pathlib import Path

import pytest

PRODUCT = """
import sys, warnings
warnings.simplefilter('always')
import numpy as np, jax.numpy as jnp
import brainevent as be
A = be.CSR.fromdense(np.float32([[1, 2], [0, 3]]))
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter('always')
    print(jnp.ones(2) @ A)
print([str(w.message) for w in found], 'numba.core' in sys.modules)
"""
DEMAND = """
import numpy as np, jax.numpy as jnp
import brainevent as be
A = be.CSR.fromdense(np.float32([[1, 2], [0, 3]]), backend='numba')
try:
    jnp.ones(2) @ A
except be.KernelNotAvailableError as error:
    print(error)
"""


@pytest.fixture
def broken_numba(tmp_path):
    """A folder that hides numba behind one that fails."""
    package = tmp_path / 'broken' / 'numba'
    package.mkdir(parents=True)
    (package / '__init__.py').write_text("raise ImportError('numba needs an older numpy')\n")
    return str(package.parent)


def test_a_numba_that_fails(folder, child, broken_numba):
    told = child(PRODUCT, cache_dir=folder, first=broken_numba).output()
    assert '[1. 5.]' in told and told.count("backend 'numba' is not available") == 1
    assert 'numba needs an older numpy' in told and "Using 'jax_raw' instead" in told
    told = child(DEMAND, cache_dir=folder, first=broken_numba).output()
    assert 'numba needs an older numpy' in told
    child(PRODUCT, cache_dir=folder).output()  # now the machine code is on disk
    told = child(PRODUCT, cache_dir=folder, first=broken_numba).output()
    assert told.splitlines() == ['[1. 5.]', '[] False']


def test_a_numba_that_ends_the_program(folder, child, broken_numba):
    package = Path(broken_numba) / 'numba' / '__init__.py'
    package.write_text("raise SystemExit('no numba today')\n")
    told = child(PRODUCT, cache_dir=folder, first=broken_numba).output()
    assert '[1. 5.]' in told and 'no numba today' in told


def test_the_doctor_names_it(child, broken_numba):
    code = 'from brainevent._commands.doctor import run; raise SystemExit(run(None) != 1)'
    told = child(code, first=broken_numba).output()
    assert 'trouble: numba is the default on cpu, but numba cannot be imported' in told
