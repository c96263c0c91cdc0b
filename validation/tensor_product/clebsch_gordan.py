# SPDX-License-Identifier: Apache-2.0
"""Clebsch-Gordan coefficients of real spherical harmonics: how two vectors multiply to a third.

``C[i, j, k]`` is the only way, up to a factor, to make of an ``x`` that rotates as the harmonics
of degree ``l1``, and a ``y`` of degree ``l2``, something of degree ``l3`` that rotates with them:
``z[k] = sum over i, j of C[i, j, k] x[i] y[j]``.
"""

import functools
from math import factorial, sqrt

import numpy as np


@functools.cache
def clebsch_gordan(l1: int, l2: int, l3: int) -> np.ndarray:
    """Return ``C``, shape ``(2 l1 + 1, 2 l2 + 1, 2 l3 + 1)``, in the real basis.

    Its columns are orthonormal: the sum over ``i, j`` of ``C[i, j, k] C[i, j, n]`` is 1 where
    ``k == n``, else 0. Zero unless ``|l1 - l2| <= l3 <= l1 + l2``.
    """
    c = np.zeros((2 * l1 + 1, 2 * l2 + 1, 2 * l3 + 1))
    for m1 in range(-l1, l1 + 1):
        for m2 in range(-l2, l2 + 1):
            if abs(m1 + m2) <= l3:
                c[l1 + m1, l2 + m2, l3 + m1 + m2] = _racah(l1, m1, l2, m2, l3)
    real = np.einsum('ai,bj,ck,ijk->abc', _basis(l1), _basis(l2), _basis(l3).conj(), c)
    # the phase is 1 for an even sum of degrees, i for an odd one
    return real.real if (l1 + l2 + l3) % 2 == 0 else real.imag


def _racah(j1: int, m1: int, j2: int, m2: int, j: int) -> float:
    """Return ``<j1 m1 j2 m2 | j m1+m2>``, by Racah (1942), Phys Rev 62:438, equation 16."""
    m = m1 + m2
    if not abs(j1 - j2) <= j <= j1 + j2:
        return 0.0
    f = factorial
    size = (
        (2 * j + 1) * f(j + j1 - j2) * f(j - j1 + j2) * f(j1 + j2 - j) / f(j1 + j2 + j + 1)
        * f(j + m) * f(j - m) * f(j1 - m1) * f(j1 + m1) * f(j2 - m2) * f(j2 + m2)
    )  # fmt: skip
    total = 0.0
    for k in range(j1 + j2 - j + 1):
        below = (k, j1 + j2 - j - k, j1 - m1 - k, j2 + m2 - k, j - j2 + m1 + k, j - j1 - m2 + k)
        if min(below) >= 0:
            total += (-1) ** k / np.prod([float(f(n)) for n in below])
    return sqrt(size) * total


def _basis(l: int) -> np.ndarray:  # noqa: E741
    """Return the real harmonics (rows: sine of m, ..., 1, ..., cosine of m) in the complex ones."""
    u = np.zeros((2 * l + 1, 2 * l + 1), complex)
    u[l, l] = 1
    for m in range(1, l + 1):
        sign = (-1) ** m
        u[l + m, [l + m, l - m]] = sign / sqrt(2), 1 / sqrt(2)
        u[l - m, [l + m, l - m]] = -1j * sign / sqrt(2), 1j / sqrt(2)
    return u
