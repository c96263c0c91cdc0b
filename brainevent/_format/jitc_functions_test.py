# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent import OptionError, ShapeError
from tests.drawn_model import drawn_edges

SHAPE, PROB, SEED = (11, 16), 0.4, 7
KINDS = {'s': ('Scalar', (1.5,)), 'n': ('Normal', (0.5, 2.0)), 'u': ('Uniform', (1.0, 3.0))}
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=16).astype(np.float32), RNG.normal(size=11).astype(np.float32)


def function(name):
    return getattr(be, name)


def near(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ('letter', 'corder'), [('s', False), ('s', True), ('n', True), ('u', False)]
)
def test_functions_and_classes_have_the_same_matrix(letter, corder):
    """All functions of constant weights, and some of the others, which are the same programs."""
    kind, params = KINDS[letter]
    A = function(f'JITC{kind}R')((*params, PROB, SEED), shape=SHAPE, corder=corder)
    D = np.asarray(A.todense())
    options = {'shape': SHAPE, 'corder': corder}
    call = function(f'jit{letter}')
    near(call(*params, PROB, SEED, **options), D)
    near(call(*params, PROB, SEED, transpose=True, matrix_mode='mm', **options), D.T)
    prefixes = (('', lambda x: x), ('binary_', lambda x: x > 0))
    for prefix, count in prefixes if letter == 's' else prefixes[:1]:
        mv, mm = (function(f'{prefix}jit{letter}{rank}') for rank in ('mv', 'mm'))
        near(mv(*params, PROB, X, SEED, **options), D @ count(X))
        near(mv(*params, PROB, Y, SEED, transpose=True, **options), D.T @ count(Y))
        if letter == 's':
            batch = np.stack([Y, -Y], 1)
            near(mm(*params, PROB, batch, SEED, transpose=True, **options), D.T @ count(batch))
    scaled = function(f'jit{letter}mv_dt2t')
    row, col = np.nonzero(D)
    near(scaled(*params, PROB, Y, SEED, **options), (D * Y[:, None])[row, col])
    near(scaled(*params, PROB, X, SEED, transpose=True, **options), (D * X)[row, col])


def test_streams_run_along_columns_unless_told_otherwise():
    row, col, *_ = drawn_edges(np.float32([PROB]), np.uint32([0, SEED]), SHAPE[::-1])
    want = np.zeros(SHAPE)
    want[col, row] = 1
    near(be.jits(1.0, PROB, SEED, shape=SHAPE), want)


def test_event_arrays_are_taken_for_what_they_are():
    want = be.binary_jitsmv(1.0, PROB, X, SEED, shape=SHAPE)
    near(be.jitsmv(1.0, PROB, be.BinaryArray(X), SEED, shape=SHAPE), want)


def test_derivatives_of_values_at_edges():
    D = np.asarray(be.jits(1.0, PROB, SEED, shape=SHAPE))
    loss = lambda w, y: be.jitsmv_dt2t(w, PROB, y, SEED, shape=SHAPE).sum()  # noqa: E731
    of_weight, of_vector = jax.grad(loss, (0, 1))(2.0, jnp.asarray(Y))
    near(of_weight, (D * Y[:, None]).sum())
    near(of_vector, 2 * D.sum(1))
    padded = jax.jit(lambda s: be.jitsmv_dt2t(2.0, PROB, Y, s, shape=SHAPE, nse=120))(SEED)
    near(padded[: int(D.sum())], be.jitsmv_dt2t(2.0, PROB, Y, SEED, shape=SHAPE))
    assert not padded[int(D.sum()) :].any()


def test_names_in_messages():
    with pytest.raises(OptionError, match='^jitnmv: `prob`'):
        be.jitnmv(1.0, 1.0, 2.0, X, 1, shape=SHAPE)
    with pytest.raises(OptionError, match='^jits: `seed` is missing'):
        jax.jit(lambda w: be.jits(w, 0.5, shape=SHAPE))(1.0)
    with pytest.raises(ShapeError, match='^binary_jitumv: the input does not fit'):
        be.binary_jitumv(1.0, 2.0, 0.5, Y, 1, shape=SHAPE)
    assert be.jitsmv(1.0, 0.5, X, shape=SHAPE).shape == (11,)


def test_primitives_by_name():
    for letter in KINDS:
        names = [f'{letter}', f'{letter}mv', f'{letter}mm']
        for name in [f'jit{n}' for n in names] + [f'binary_jit{n}' for n in names[1:]]:
            op = function(f'{name}_p')
            assert op.name == name and op.available_backends('cpu') == ['numba', 'jax_raw']
