# SPDX-License-Identifier: Apache-2.0
"""The table of promised names, and the small matrices that its checks are about."""

import numpy as np

import brainevent as be

CHECKS = {}
"""From each name to a check, which gets the name and what it stands for."""

ROWS, COLS = SHAPE = (4, 5)
_rng = np.random.default_rng(3)
DENSE = np.where(_rng.random(SHAPE) < 0.6, _rng.uniform(0.5, 1.5, SHAPE), 0).astype(np.float32)
FILL = _rng.integers(0, COLS, (ROWS, 3)).astype(np.int32)  # three synapses of every row
FILL_W = _rng.uniform(0.5, 1.5, FILL.shape).astype(np.float32)
FILL_DENSE = np.zeros(SHAPE, np.float32)
np.add.at(FILL_DENSE, (np.arange(ROWS)[:, None], FILL), FILL_W)
ROW_X = np.array([0.0, 2.5, -1.0, 1.0], np.float32)
COL_X = np.array([1.0, 0.0, 3.0, np.nan, 0.5], np.float32)
SPIKES = {True: (ROW_X > 0).astype(np.float32), False: (COL_X > 0).astype(np.float32)}
PRE_TRACE, POST_TRACE = np.arange(1.0, 5, dtype=np.float32), np.arange(1.0, 6, dtype=np.float32)


def check(*names):
    """Enter a check for some names; it gets one name and what that stands for."""

    def enter(function):
        CHECKS.update(dict.fromkeys(names, function))
        return function

    return enter


def near(got, want, tolerance=1e-5):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def crossed(prefix, *middles):
    return [f'{prefix}{m}{rank}' for m in middles for rank in ('mv', 'mm')]


def registered(primitive):
    assert isinstance(primitive, be.XLACustomKernel)
    assert be.get_registry()[primitive.name] is primitive
    for platform in ('cpu', 'gpu', 'tpu'):
        assert 'jax_raw' in primitive.available_backends(platform)
