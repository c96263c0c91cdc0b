# SPDX-License-Identifier: Apache-2.0
"""Registered values are attributes, and go through every transformation."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._format.given_test import every, make


@every
def test_a_buffer_is_an_attribute_that_survives(kind):
    A = make(kind)
    A.register_buffer('mask', jnp.arange(3.0))
    A.register_buffer('empty')
    assert A.empty is None
    ways = {
        'jit': jax.jit(lambda A: A)(A),
        'tree': jax.tree.map(lambda leaf: leaf, A),
        'scan': jax.lax.scan(lambda A, _: (A, None), A, length=2)[0],
        'cond': jax.lax.cond(True, lambda A: A, lambda A: A, A),
        'copy': copy.deepcopy(A),
        'pickle': pickle.loads(pickle.dumps(A)),
        'transpose': A.T,
    }
    for way, B in ways.items():
        np.testing.assert_array_equal(B.mask, jnp.arange(3.0), err_msg=way)
        assert set(B.buffers) == {'mask', 'empty'}, way
    assert jax.jit(lambda A: A.mask.sum())(A) == 3
    assert jax.jit(lambda A: A.with_params(*A.params).mask.sum())(A) == 3
    np.testing.assert_allclose(jax.jit(lambda A: A @ A.mask)(A), A @ jnp.arange(3.0), rtol=1e-6)


@every
def test_a_buffer_belongs_to_one_matrix(kind):
    A = make(kind, buffers={'mask': jnp.ones(2)}) if kind not in FROMDENSE else make(kind)
    A.register_buffer('mask', jnp.ones(2))
    B = A.with_params(*A.params)
    B.set_buffer('mask', jnp.zeros(2))
    B.register_buffer('more', 1.0)
    assert A.mask[0] == 1 and B.mask[0] == 0 and set(A.buffers) == {'mask'}


FROMDENSE = (be.CSR, be.CSC, be.COO, be.FixedNumPerPre, be.FixedNumPerPost)


@every
def test_names_that_are_taken_or_unknown_are_refused(kind):
    A = make(kind)
    for name in ('shape', 'backend', 'T', 'dtype', 'tree_flatten', '_buffers'):
        with pytest.raises(be.OptionError, match='attribute of that name'):
            A.register_buffer(name, 1.0)
    with pytest.raises(ValueError, match='unknown buffer'):
        A.set_buffer('mask', 1.0)
    with pytest.raises(AttributeError, match="has no attribute 'mask'"):
        A.mask  # noqa: B018
    with pytest.raises(be.FrozenError):
        A.mask = 1.0


def test_a_matrix_without_buffers_has_the_leaves_of_before():
    assert len(jax.tree.leaves(make(be.CSR))) == 3
    assert [str(path) for path, _ in jax.tree_util.tree_leaves_with_path(make(be.COO))] == [
        "(GetAttrKey(name='data'),)", "(GetAttrKey(name='row'),)", "(GetAttrKey(name='col'),)"
    ]  # fmt: skip
