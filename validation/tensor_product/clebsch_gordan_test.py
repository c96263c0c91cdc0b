# SPDX-License-Identifier: Apache-2.0
"""The coefficients are the right ones: orthonormal, equivariant, and those of e3nn.

Claims, for all degrees up to 3:

1. Selection rule: they vanish unless the degrees form a triangle.
2. Orthonormality: the columns of ``C`` over pairs ``(i, j)``.
3. Equivariance under random rotations, whose action on harmonics is measured from the harmonics
   themselves, not from the coefficients. With 2 this determines them up to a sign.
4. Where e3nn_jax is installed: equal to its coefficients, up to sign and normalisation.

Tolerance: 1e-12 absolute; 1e-6 against e3nn_jax. Seed 0.
"""

import itertools

import numpy as np
import pytest

from validation.tensor_product.clebsch_gordan import clebsch_gordan
from validation.tensor_product.rotations import harmonics, random_rotation, turned

DEGREES = list(itertools.product(range(4), repeat=3))
TRIANGLES = [(a, b, c) for a, b, c in DEGREES if abs(a - b) <= c <= a + b]


def test_selection_rule():
    for degrees in sorted(set(DEGREES) - set(TRIANGLES)):
        assert not clebsch_gordan(*degrees).any()


def test_orthonormality():
    for degrees in TRIANGLES:
        c = clebsch_gordan(*degrees)
        gram = np.einsum('ijk,ijn->kn', c, c)
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12, err_msg=str(degrees))


def test_completeness():
    """All third degrees together are a basis of the products of two given ones."""
    for a, b in itertools.product(range(3), repeat=2):
        total = sum(
            np.einsum('ijk,mnk->ijmn', c, c)
            for c in (clebsch_gordan(a, b, n) for n in range(abs(a - b), a + b + 1))
        )
        size = (2 * a + 1) * (2 * b + 1)
        np.testing.assert_allclose(total.reshape(size, size), np.eye(size), atol=1e-12)


def test_equivariance():
    rng = np.random.default_rng(0)
    for _ in range(3):
        rotation = random_rotation(rng)
        d = [turned(n, rotation) for n in range(4)]
        for degrees in TRIANGLES:
            c = clebsch_gordan(*degrees)
            a, b, n = (d[degree] for degree in degrees)
            rotated = np.einsum('ijk,ip,jq->pqk', c, a, b)
            np.testing.assert_allclose(
                rotated, np.einsum('pqr,kr->pqk', c, n), atol=1e-12, err_msg=str(degrees)
            )


def test_rotations_are_what_they_claim():
    rotation = random_rotation(np.random.default_rng(1))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1)
    axes = np.eye(3)
    shown = harmonics(1, axes) * np.sqrt(4 * np.pi / 3)
    np.testing.assert_allclose(shown, axes[:, [1, 2, 0]], atol=1e-12)  # y, z, x


def test_vectors_multiply_as_everybody_knows():
    """Degrees 1, 1 to 0 is the scalar product, to 1 the cross product."""
    a, b = np.random.default_rng(2).normal(size=(2, 3))
    dot = np.einsum('ijk,i,j->k', clebsch_gordan(1, 1, 0), a, b)
    assert abs(dot[0]) == pytest.approx(abs(a @ b) / np.sqrt(3))
    cross = np.einsum('ijk,i,j->k', clebsch_gordan(1, 1, 1), a, b)
    np.testing.assert_allclose(np.abs(cross), np.abs(np.cross(a, b)) / np.sqrt(2), atol=1e-12)


@pytest.mark.filterwarnings('ignore')  # what other packages warn of when they are imported
def test_equal_to_e3nn():
    e3nn_jax = pytest.importorskip('e3nn_jax')
    for degrees in TRIANGLES:
        ours, theirs = clebsch_gordan(*degrees), np.asarray(e3nn_jax.clebsch_gordan(*degrees))
        theirs = theirs * np.sqrt((ours**2).sum() / (theirs**2).sum())
        sign = np.sign((ours * theirs).sum())
        np.testing.assert_allclose(theirs * sign, ours, atol=1e-6, err_msg=str(degrees))
