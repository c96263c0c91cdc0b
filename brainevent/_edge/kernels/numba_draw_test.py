# SPDX-License-Identifier: Apache-2.0
"""Native draws in single precision, held against double."""

import jax
import jax.numpy as jnp
import numpy as np

import brainevent as be


def _normals(dtype):
    numbers = (jnp.asarray(0.0, dtype), jnp.asarray(1.0, dtype), 0.9, 42)
    return np.asarray(be.JITCNormalR(numbers, shape=(1500, 1500), backend='numba').todense())


def test_single_normals_are_exact_to_their_last_digits_tails_included():
    with jax.enable_x64(True):
        want = _normals(jnp.float64)
    got = _normals(jnp.float32)
    np.testing.assert_array_equal(got != 0, want != 0)
    assert np.abs(want).max() > 4.5
    np.testing.assert_allclose(got, want, rtol=6e-7, atol=6e-9)
