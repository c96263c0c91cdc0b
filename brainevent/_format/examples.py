# SPDX-License-Identifier: Apache-2.0
"""Matrices of a common size, one for each layout, to measure its operators with."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._edge.layout import LAYOUTS
from brainevent._edge.measure import STRUCTURES, Structure
from brainevent._edge.mirror import mirror
from brainevent._format.solving import sparse_solve_p
from brainevent._op import BenchmarkConfig

__all__ = ['DENSE_NEURONS', 'NEURONS', 'SYNAPSES']

NEURONS, SYNAPSES, DENSE_NEURONS = 4000, 80, 1000
"""Rows and columns, synapses of a row; rows and columns of a matrix that stores every entry."""


def _structure(*arrays: Any) -> Structure:
    ready = tuple(jnp.asarray(a) for a in arrays)
    return Structure((NEURONS, NEURONS), ready, {'neurons': NEURONS, 'synapses': SYNAPSES})


def _table() -> Any:
    """Draw the targets of every row."""
    return np.random.default_rng(0).integers(0, NEURONS, (NEURONS, SYNAPSES)).astype(np.int32)


def _fcn() -> Structure:
    return _structure(_table())


def _csr() -> Structure:
    offsets = np.arange(0, NEURONS * SYNAPSES + 1, SYNAPSES, dtype=np.int32)
    return _structure(_table().reshape(-1), offsets)


def _coo() -> Structure:
    order = np.random.default_rng(1).permutation(NEURONS * SYNAPSES)
    row = np.repeat(np.arange(NEURONS, dtype=np.int32), SYNAPSES)
    return _structure(row[order], _table().reshape(-1)[order])


def _csr_tagged() -> Structure:
    tag = np.random.default_rng(2).permutation(NEURONS * SYNAPSES).astype(np.int32)
    return _structure(*_csr().arrays, tag)


def _drawn() -> Structure:
    return _structure(np.float32([SYNAPSES / NEURONS]), np.uint32([0, 42]))


def _dense() -> Structure:
    return Structure((DENSE_NEURONS, DENSE_NEURONS), (), {'neurons': DENSE_NEURONS})


def _with_mirror(plain: str) -> Structure:
    base = STRUCTURES[plain]()
    return base._replace(arrays=(*base.arrays, *mirror(LAYOUTS[plain], base.arrays, base.shape)))


STRUCTURES.update(
    csr=_csr,
    coo=_coo,
    fcn=_fcn,
    dense=_dense,
    drawn=_drawn,
    csr_tagged=_csr_tagged,
    csr_mirror=lambda: _with_mirror('csr'),
    coo_mirror=lambda: _with_mirror('coo'),
    fcn_mirror=lambda: _with_mirror('fcn'),
)


# ---- the one operator that is none on edges ------------------------------------------------------


def _solve(data: Any, row: Any, col: Any, b: Any, *, backend: str | None = None) -> Any:
    out = jax.ShapeDtypeStruct(b.shape, b.dtype)
    return sparse_solve_p(data, row, col, b, outs=[out], transpose=False, levels=0, backend=backend)


def _cable(*, platform: str) -> list[BenchmarkConfig]:
    """Make the equations of a cable of compartments: each is connected to the next."""
    del platform
    here = np.arange(NEURONS, dtype=np.int32)
    row = np.concatenate([here, here[1:], here[:-1]])
    col = np.concatenate([here, here[:-1], here[1:]])
    data = np.where(row == col, 4, -1).astype(np.float32)
    b = np.ones((NEURONS, 1), np.float32)
    return [BenchmarkConfig('cable', (data, row, col, b), {}, {'neurons': NEURONS})]


sparse_solve_p.def_call(_solve)
sparse_solve_p.def_benchmark_data(_cable)
