# SPDX-License-Identifier: Apache-2.0
"""A tensor product as a list of terms: which entries of the operands multiply into which result.

Irreducible representations are written ``[(multiplicity, degree), ...]``; entry ``(mul, l)`` takes
``mul * (2 l + 1)`` numbers, one copy after the other. Two modes, named by the letters of an einsum
over the copies ``u`` of the first operand, ``v`` of the second and ``w`` of the result:

====  ==================================================  =======================================
uvu   ``z[u, k] = sum w[u, v]    C[i, j, k] x[u, i] y[v, j]``  copies of x pass through
uvw   ``z[w, k] = sum w[u, v, w] C[i, j, k] x[u, i] y[v, j]``  every copy mixes with every other
====  ==================================================  =======================================
"""

from dataclasses import dataclass

import numpy as np

from validation.tensor_product.clebsch_gordan import clebsch_gordan

Irreps = list[tuple[int, int]]


def width(irreps: Irreps) -> int:
    """Count the numbers that an operand holds."""
    return sum(mul * (2 * degree + 1) for mul, degree in irreps)


@dataclass(frozen=True)
class Path:
    """One entry of each operand multiplies: their places, and where its weights begin."""

    left: int
    right: int
    out: int
    weights: slice
    shape: tuple[int, ...]


def paths(left: Irreps, right: Irreps, out: Irreps, mode: str) -> list[Path]:
    """List the products that rotation allows."""
    found: list[Path] = []
    start = 0
    for a, (mul_a, la) in enumerate(left):
        for b, (mul_b, lb) in enumerate(right):
            for c, (mul_c, lc) in enumerate(out):
                fits = mode == 'uvw' or mul_a == mul_c
                if fits and abs(la - lb) <= lc <= la + lb:
                    shape = (mul_a, mul_b) if mode == 'uvu' else (mul_a, mul_b, mul_c)
                    stop = start + int(np.prod(shape))
                    found.append(Path(a, b, c, slice(start, stop), shape))
                    start = stop
    return found


def terms(left: Irreps, right: Irreps, out: Irreps, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Return places, shape ``(4, n)``, in x, y, w and z, and the coefficients, shape ``(n,)``."""
    starts = [
        np.cumsum([0, *(width([entry]) for entry in irreps)]) for irreps in (left, right, out)
    ]
    places, coefficients = [], []
    for path in paths(left, right, out, mode):
        degrees = left[path.left][1], right[path.right][1], out[path.out][1]
        c = clebsch_gordan(*degrees)
        for weight, copies in enumerate(np.ndindex(*path.shape), path.weights.start):
            u, v, r = (*copies, copies[0])[:3]
            first = [
                starts[side][entry] + copy * (2 * degree + 1)
                for side, (entry, copy, degree) in enumerate(
                    zip((path.left, path.right, path.out), (u, v, r), degrees, strict=True)
                )
            ]
            for i, j, k in np.argwhere(np.abs(c) > 1e-12):
                places.append((first[0] + i, first[1] + j, weight, first[2] + k))
                coefficients.append(c[i, j, k])
    return np.array(places, np.int32).reshape(-1, 4).T, np.array(coefficients)
