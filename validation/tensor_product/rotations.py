# SPDX-License-Identifier: Apache-2.0
"""Rotations, and how real spherical harmonics turn with them; found from the harmonics alone."""

import functools
from math import factorial, pi, sqrt

import numpy as np
from scipy.special import lpmv


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """Draw a rotation of space, uniformly."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def harmonics(l: int, points: np.ndarray) -> np.ndarray:  # noqa: E741
    """Evaluate the real spherical harmonics of one degree at points of the unit sphere."""
    x, y, z = points.T
    angle = np.arctan2(y, x)
    columns = []
    for m in range(-l, l + 1):
        n = abs(m)
        size = sqrt((2 * l + 1) / (4 * pi) * factorial(l - n) / factorial(l + n))
        turn = 1 if m == 0 else sqrt(2) * (np.cos(n * angle) if m > 0 else np.sin(n * angle))
        columns.append((-1) ** n * size * lpmv(n, l, z) * turn)
    return np.stack(columns, axis=1)


def turned(l: int, rotation: np.ndarray) -> np.ndarray:  # noqa: E741
    """Return ``D`` with ``harmonics(l, R p) = D harmonics(l, p)`` for every point."""
    points = _points()
    before, after = harmonics(l, points), harmonics(l, points @ rotation.T)
    return np.linalg.lstsq(before, after, rcond=None)[0].T


@functools.cache
def _points() -> np.ndarray:
    points = np.random.default_rng(0).normal(size=(200, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)
