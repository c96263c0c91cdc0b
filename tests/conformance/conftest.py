# SPDX-License-Identifier: Apache-2.0
"""Compiled programs are let go from time to time: every case makes its own."""

import itertools

import jax
import pytest

_case = itertools.count(1)


@pytest.fixture(autouse=True)
def forget_programs():
    yield
    if next(_case) % 60 == 0:
        jax.clear_caches()
