# SPDX-License-Identifier: Apache-2.0
"""One small matrix for each layout, together with a plain list of its edges to judge it by.

A new layout enters the conformance suite with one entry in `MAKERS`: a function of a random
generator, a shape and a wish for a number of edges. Edges repeat and come in any order where a
layout allows it, and the first row is empty where it can be.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.drawn_model import drawn_edges


@dataclass(frozen=True)
class Example:
    """Structure arrays, and row and column of every edge in the order of the weights.

    ``basis`` is for weights that are not stored: what each parameter adds to each edge. ``keys``
    are those of drawn edges, from which it follows.
    """

    arrays: tuple[np.ndarray, ...]
    row: np.ndarray
    col: np.ndarray
    basis: np.ndarray | None = None
    keys: tuple[np.ndarray, np.ndarray] | None = None

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


def _by(near, far, lines):
    """List edges by their near end: the far ends, the offsets, and where the weights are."""
    tag = np.argsort(near, kind='stable').astype(np.int32)
    return far[tag], _offsets(near, lines), tag


def _csr_mirror(rng, shape, edges):
    rows = _csr(rng, shape, edges)
    mirror = _by(rows.col, rows.row, shape[1])
    return Example(rows.arrays + mirror, rows.row, rows.col)


def _csr_tagged(rng, shape, edges):
    row, col = _random_edges(rng, shape, edges)
    return Example(_by(row, col, shape[0]), row, col)


def _coo(rng, shape, edges):
    row, col = _random_edges(rng, shape, edges)
    return Example((row, col), row, col)


def _coo_mirror(rng, shape, edges):
    row, col = _random_edges(rng, shape, edges)
    mirror = _by(row, col, shape[0]) + _by(col, row, shape[1])
    return Example((row, col, *mirror), row, col)


def _fcn(rng, shape, edges):
    width = 0 if 0 in shape else max(1, edges // shape[0])
    indices = rng.integers(0, max(shape[1], 1), (shape[0], width)).astype(np.int32)
    row = np.repeat(np.arange(shape[0], dtype=np.int32), width)
    return Example((indices,), row, indices.reshape(-1))


def _fcn_mirror(rng, shape, edges):
    table = _fcn(rng, shape, edges)
    mirror = _by(table.col, table.row, shape[1])
    return Example(table.arrays + mirror, table.row, table.col)


def _dense(rng, shape, edges):
    row, col = np.indices(shape, np.int32).reshape(2, -1)
    return Example((), row, col)


def _drawn(rng, shape, edges):
    """Let the model draw, in NumPy; seeds differ, the probability is what it takes."""
    prob = np.float32([min(1.0, edges / max(math.prod(shape), 1))])
    seed = rng.integers(0, 2**32, 2, np.uint32)
    row, col, *keys = drawn_edges(prob, seed, shape)
    return Example((prob, seed), row, col, keys=tuple(keys))


MAKERS: dict[str, Callable[..., Example]] = {
    'csr': _csr,
    'csr_mirror': _csr_mirror,
    'csr_tagged': _csr_tagged,
    'coo': _coo,
    'coo_mirror': _coo_mirror,
    'fcn': _fcn,
    'fcn_mirror': _fcn_mirror,
    'dense': _dense,
    'drawn': _drawn,
}


def example(layout, seed, shape, edges):
    """Make an example of a layout, the same for the same arguments."""
    return MAKERS[layout](np.random.default_rng(seed), shape, edges)
