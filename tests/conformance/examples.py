# SPDX-License-Identifier: Apache-2.0
"""One small matrix for each layout, together with a plain list of its edges to judge it by.

A new layout enters the conformance suite with one entry in `MAKERS`: a function of a random
generator, a shape and a wish for a number of edges. Edges repeat and come in any order where a
layout allows it, and the first row is empty where it can be.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Example:
    """Structure arrays, and row and column of every edge in the order of the weights.

    ``basis`` is for weights that are not stored: what each parameter adds to each edge.
    """

    arrays: tuple[np.ndarray, ...]
    row: np.ndarray
    col: np.ndarray
    basis: np.ndarray | None = None

    @property
    def edges(self):
        return self.row.size


def _random_edges(rng, shape, edges):
    """Draw edges with replacement; none in row 0 of a matrix with more rows."""
    if 0 in shape:
        edges = 0
    low = 1 if shape[0] > 1 else 0
    row = rng.integers(low, max(shape[0], 1), edges).astype(np.int32)
    col = rng.integers(0, max(shape[1], 1), edges).astype(np.int32)
    return row, col


def _offsets(lines, count):
    return np.searchsorted(np.sort(lines), np.arange(count + 1)).astype(np.int32)


def _csr(rng, shape, edges):
    row, col = _random_edges(rng, shape, edges)
    row = np.sort(row)
    return Example((col, _offsets(row, shape[0])), row, col)


def _csr_mirror(rng, shape, edges):
    rows = _csr(rng, shape, edges)
    tag = np.argsort(rows.col, kind='stable').astype(np.int32)
    mirror = (rows.row[tag], _offsets(rows.col, shape[1]), tag)
    return Example(rows.arrays + mirror, rows.row, rows.col)


MAKERS: dict[str, Callable[..., Example]] = {
    'csr': _csr,
    'csr_mirror': _csr_mirror,
}


def example(layout, seed, shape, edges):
    """Make an example of a layout, the same for the same arguments."""
    return MAKERS[layout](np.random.default_rng(seed), shape, edges)
