# SPDX-License-Identifier: Apache-2.0
"""Sorts on the host: stable, for any cut into ranges, and in memory that JAX takes over."""

import jax
import numpy as np
import pytest

from brainevent._format import host_sort


@pytest.mark.parametrize('dtype', ['int32', 'int64'])
@pytest.mark.parametrize('size', [0, 1, 7, 1000])
def test_the_order_is_that_of_a_stable_sort(size, dtype):
    keys = np.random.default_rng(size).integers(0, 20, size).astype(dtype)
    order = host_sort.stable_order(keys, 20)
    np.testing.assert_array_equal(order, np.argsort(keys, kind='stable'))


def test_jax_takes_results_over():
    x = np.arange(1000, dtype=np.float32)
    taken = host_sort.in_order(x, np.arange(1000)[::-1])
    assert jax.device_put(taken).unsafe_buffer_pointer() == taken.ctypes.data
    np.testing.assert_array_equal(taken, x[::-1])
