# SPDX-License-Identifier: Apache-2.0
"""No rows, no columns, no edges, no vectors in a batch, nobody in a ``vmap``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._edge import Event
from tests.conformance.grid import (
    STEMS,
    Case,
    Operands,
    backends,
    close,
    quick_jit,
    thinned,
    weight_kinds,
)

SHAPES = ((0, 4), (3, 0), (0, 0), (3, 4), (1, 1))


def _cases():
    return [
        Case(stem, backend, event, transpose, 'vector', weight_kinds(stem)[0])
        for stem in STEMS
        for backend in backends(stem)
        for event in Event
        for transpose in (False, True)
    ]


def _variants(case):
    """Return calls that have nothing to do: shape, rank, weights, edges and batch."""
    found = []
    for shape in SHAPES:
        for rank, batch in (
            ('vector', 1),
            ('columns', 2),
            ('rows', 2),
            ('columns', 0),
            ('rows', 0),
        ):
            for weights in weight_kinds(case.stem):
                found.append((shape, rank, batch, weights))
    return found


@pytest.mark.parametrize('case', thinned(_cases(), 5))
def test_nothing_gives_zeros(case):
    check_nothing(case)


def check_nothing(case):
    operands = []
    for shape, rank, batch, weights in _variants(case):
        variant = Case(
            case.stem, case.backend, case.event, case.transpose, rank, weights, case.dtype
        )
        operands.append(Operands(variant, shape, 0, batch))

    def gradients(f, arrays, params, x):
        return jax.value_and_grad(lambda p, x: f(p, arrays, x).sum(), (0, 1))(params, x)

    @quick_jit
    def run(inputs):
        return [
            (ops.case.call(ops.shape)(params, ops.arrays, x),
             gradients(ops.case.call(ops.shape), ops.arrays, params, x))
            for ops, (params, x) in zip(operands, inputs, strict=True)
        ]  # fmt: skip

    inputs = [(ops.params(), ops.input()) for ops in operands]
    for ops, (params, x), (value, (total, grads)) in zip(
        operands, inputs, run(inputs), strict=True
    ):
        what = f'{ops.shape}, {ops.case.rank} {ops.batch}, {ops.case.weights}'
        want = ops.value(params, x)
        close(case, value, want, what)
        close(case, total, want.sum(), what)
        assert jax.tree.map(jnp.shape, grads) == jax.tree.map(jnp.shape, (params, x)), what
        assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads)), what


@pytest.mark.parametrize('case', thinned(_cases(), 5))
def test_vmap_over_nobody(case):
    ops, f = Operands(case), case.call()
    params, x = ops.params(), ops.input()

    @quick_jit
    def run(nobody, crowds, params, x):
        return (
            jax.vmap(f, (None, None, 0))(params, ops.arrays, nobody),
            jax.vmap(f, (0, None, None))(crowds, ops.arrays, x),
            jax.vmap(f, (0, None, 0))(crowds, ops.arrays, nobody),
        )

    crowds = jax.tree.map(lambda p: jnp.zeros((0, *p.shape), p.dtype), params)
    for got in run(jnp.zeros((0, *x.shape), x.dtype), crowds, params, x):
        assert got.shape == (0, ops.form.n_out)
