# SPDX-License-Identifier: Apache-2.0
"""Settings for every test: the CPU unless another platform is asked for, and doctest names."""

import os

os.environ.setdefault('JAX_PLATFORMS', 'cpu')

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _names_in_doctests(doctest_namespace):
    doctest_namespace.update(jax=jax, jnp=jnp, np=np)
