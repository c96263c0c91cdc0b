# SPDX-License-Identifier: Apache-2.0
"""The drawn layout: rows are streams whose edges are drawn while they are used, stored nowhere.

Structure is a probability and a seed. How edges follow from them is told in
`brainevent._edge.random`. A matrix with streams along its columns is the transpose of one of these.
"""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete, is_tracer
from brainevent._edge import Draw, Layout, Products, Twin, random
from brainevent._edge.layout import rows_of
from brainevent._edge.materialise import Dense, list_edges
from brainevent._edge.operands import as_array, split_unit
from brainevent._edge.weight import CONSTANT, NORMAL, UNIFORM, Weight
from brainevent._error import DtypeError, OptionError, ShapeError, UnitError, expect, explain
from brainevent._typing import Array, Shape

__all__ = [
    'DRAWN_LAYOUT',
    'JITN',
    'JITS',
    'JITU',
    'Drawn',
    'counted',
    'drawn_layout',
    'listed',
    'own_prob',
    'own_room',
    'own_seed',
    'structure',
]

MOST = 2**31 - 1  # entries that a list of edges can have


class Drawn(Products):
    """Products of one drawn layout and weight, and the primitive that makes such a matrix dense.

    Parameters
    ----------
    layout : Layout
        Made by `drawn_layout`.
    weight : Weight
    stem : str
        Name of the primitive that makes it dense; ``mv`` and ``mm`` are put to it for products.
    """

    def __init__(self, layout: Layout, weight: Weight, stem: str) -> None:
        super().__init__(layout, weight, stem)
        self.dense = Dense(layout, weight, stem)


def drawn_layout(
    name: str,
    arrays: tuple[str, ...] = (),
    ranks: tuple[int, ...] = (),
    keep: Callable[..., Any] | None = None,
    check_shapes: Callable[[str, Any, Shape], None] | None = None,
    cuda: Twin | None = None,
) -> Layout:
    """Make a layout whose rows are drawn, thinned by a rule of its own if there is one.

    Parameters
    ----------
    name : str
        Identifies the layout.
    arrays : tuple of str
        Names of structure arrays that follow the probability and the seed.
    ranks : tuple of int
        Their numbers of axes.
    keep : callable, optional
        ``keep(s, i, j, word) -> bool``, whether an edge in row ``i`` and column ``j`` stays:
        ``s`` are the structure arrays that follow, ``word`` is a random number of 32 bits without
        sign, the edge's own. It gets arrays in JAX, and single numbers where numba compiles it;
        if it compares integers only, all platforms keep the same edges.
    check_shapes : callable, optional
        ``check_shapes(where, arrays, shape)`` raises if the arrays that follow do not fit.
    cuda : Twin, optional
        The CUDA C++ that draws the same edges.

    Returns
    -------
    Layout
    """

    def check(where: str, all_arrays: Any, shape: Shape) -> None:
        _check_shapes(where, all_arrays, shape)
        if check_shapes is not None:
            check_shapes(where, tuple(all_arrays[2:]), shape)

    layout: Layout

    def edges(all_arrays: tuple[Array, ...], shape: Shape) -> tuple[Array, Array]:
        return _edges(layout, all_arrays, shape)

    layout = Layout(
        name=name,
        arrays=('prob', 'seed', *arrays),
        ranks=(1, 1, *ranks),
        edges=edges,
        count=_bound,
        check_shapes=check,
        check_values=_check_values,
        draw=Draw(keep, cuda),
    )
    return layout


def _bound(arrays: tuple[Array, ...], shape: Shape) -> int:
    return shape[0] * shape[1]


def _edges(layout: Layout, arrays: tuple[Array, ...], shape: Shape) -> tuple[Array, Array]:
    """List all edges; what there is room for beyond them lies outside the matrix."""
    m, n = shape
    ptr, (_, col, *_) = listed(layout, arrays, (m, n), m * n, keys=False)
    outside = jnp.arange(m * n) >= ptr[-1]
    row = rows_of(ptr, m * n) if m * n else col
    return jnp.where(outside, m, row), jnp.where(outside, n, col)


def counted(layout: Layout, arrays: tuple[Array, ...], shape: tuple[int, int]) -> Array:
    """Return the number of edges of every row."""
    return list_edges(layout, arrays, jnp.zeros(shape[0] + 1, jnp.int32), shape, 0)[0]


def listed(
    layout: Layout,
    arrays: tuple[Array, ...],
    shape: tuple[int, int],
    size: int,
    keys: bool = True,
) -> tuple[Array, tuple[Array, ...]]:
    """Return where rows begin, `MOST` at most, and the list of edges up to a size."""
    count = counted(layout, arrays, shape).astype(jnp.uint32)
    total = jnp.cumsum(count, dtype=jnp.uint32)
    # a sum that wraps is below what was added last
    beyond = jax.lax.cummax(((total < count) | (total > MOST)).astype(jnp.int32))
    ends = jnp.where(beyond > 0, MOST, total.astype(jnp.int32))
    ptr = jnp.concatenate([jnp.zeros(1, jnp.int32), ends])
    return ptr, list_edges(layout, arrays, ptr, shape, size, keys)


def _check_shapes(where: str, arrays: Any, shape: Shape) -> None:
    prob, seed = arrays[:2]
    expect(
        prob.shape == (1,) and seed.shape == (2,),
        ShapeError,
        where,
        'the probability is not one number, or the seed not one.',
        expected='shapes (1,) and (2,): a float, and the upper and lower word of a seed',
        got=lambda: f'shapes {prob.shape} and {seed.shape}',
    )
    expect(
        max(shape) < 2**31,
        ShapeError,
        where,
        'an axis of a drawn matrix is too long.',
        expected='axes shorter than 2**31',
        got=lambda: f'shape {shape}',
    )


def _check_values(where: str, arrays: tuple[Array, ...], shape: Shape) -> None:
    prob = float(np.asarray(arrays[0]).reshape(()))
    expect(
        0.0 <= prob <= 1.0,
        OptionError,
        where,
        '`prob` is no probability.',
        expected='a number from 0 to 1',
        got=prob,
    )


# ---- probabilities and seeds as users give them --------------------------------------------------


def own_prob(where: str, prob: Any) -> Array:
    """Take over a probability: one number without unit, from 0 to 1 where it is known."""
    number, unit = split_unit(prob)
    expect(
        unit is None,
        UnitError,
        where,
        '`prob` has a unit.',
        expected='a plain number',
        got=lambda: f'unit {unit}',
    )
    given = isinstance(number, (int, float, np.number, np.ndarray)) and np.size(number) == 1
    if given and not np.iscomplexobj(number):
        _check_values(where, (number,), ())  # before it is rounded
    number = as_array(where, 'prob', number)
    expect(
        number.size == 1 and number.dtype.kind != 'c',
        ShapeError,
        where,
        '`prob` is not one real number.',
        expected='shape () or (1,)',
        got=lambda: f'{number.dtype} of shape {number.shape}',
    )
    if is_concrete(number):
        _check_values(where, (number,), ())
    return number


def own_seed(where: str, seed: Any) -> Array:
    """Take over a seed: a whole number, two words of 32 bits, or a key of JAX; None draws one."""
    if seed is None:
        seed = _fresh_seed(where)
    if not isinstance(seed, jax.Array):
        given = np.asarray(seed.__jax_array__() if hasattr(seed, '__jax_array__') else seed)
        if given.size == 1 and given.dtype.kind in 'iu' or isinstance(seed, int):
            value = int(given.reshape(()))
            expect(
                -(2**63) <= value < 2**64,
                OptionError,
                where,
                '`seed` needs more than 64 bits.',
                expected='a whole number from -2**63 to 2**64 - 1',
                got=value,
                remedy='take the seed modulo 2**64, if that is meant',
            )
            given = _fitting(value)
        _expect_whole(where, given.dtype, given.dtype.kind in 'iufbcV')
        with jax.ensure_compile_time_eval():
            seed = jnp.asarray(given)
    if jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        seed = jax.random.key_data(seed)
    _expect_whole(where, seed.dtype, jnp.issubdtype(seed.dtype, jnp.integer))
    expect(
        seed.size == 1 or (seed.shape == (2,) and seed.dtype == jnp.uint32),
        ShapeError,
        where,
        '`seed` is not one number.',
        expected='shape () or (1,), or (2,) for words of uint32',
        got=lambda: f'{seed.dtype} of shape {seed.shape}',
    )
    return seed


def _expect_whole(where: str, dtype: Any, ok: bool) -> None:
    expect(
        ok,
        DtypeError,
        where,
        '`seed` is no whole number.',
        expected='an int, an array of one, two words of uint32, or a key of JAX',
        got=lambda: dtype,
    )


def _fitting(value: int) -> Any:
    """Return a whole number as one of 32 bits, or as its upper and lower word."""
    return np.int32(value) if -(2**31) <= value < 2**31 else random.seed_words(value)


def own_room(where: str, nse: Any, count: int | None, shape: Shape, exact: bool) -> int:
    """Take over the length of a list of edges; ``count`` is how many there are, where known.

    Where it is not, too little room has to show in the result: by at least one weight that is NaN.
    """
    expect(
        count is not None or nse is not None,
        OptionError,
        where,
        'how many edges a traced matrix has is not known.',
        expected='room for so many entries',
        got='nse=None',
        remedy=f'pass nse=, {shape[0] * shape[1]} at most; with a mean of rows * columns * prob, '
        'mean + 6 * sqrt(mean) + 6 is too little once in 1e9 matrices',
    )
    expect(
        count is not None or not exact,
        DtypeError,
        where,
        'whole numbers cannot show that there was too little room.',
        expected='weights of a floating dtype, for a traced matrix',
        got='whole numbers',
        remedy='convert the weight to float',
    )
    least = 1 if count is None and 0 not in shape else count or 0
    room = least if nse is None else _whole(where, nse)
    expect(
        least <= room <= MOST,
        OptionError,
        where,
        'there is not room for all edges.' if room < least else 'the list of edges is too long.',
        expected=f'{least} to {MOST} entries',
        got=room,
    )
    return room


def _whole(where: str, nse: Any) -> int:
    try:
        return operator.index(nse)
    except TypeError as error:
        got = type(nse).__name__
        text = explain(where, '`nse` is not an int.', expected='a number of entries', got=got)
        raise DtypeError(text) from error


def _fresh_seed(where: str) -> int:
    expect(
        not is_tracer(jnp.zeros(())),
        OptionError,
        where,
        '`seed` is missing in a traced program, which would use one seed for all of its runs.',
        expected='a whole number, which may be traced',
        got='seed=None',
        remedy='draw it outside, or from a key: jax.random.randint(key, (), 0, 2**31 - 1)',
    )
    return int(np.random.randint(2**31 - 1))


def structure(prob: Array, seed: Array) -> tuple[Array, Array]:
    """Return structure arrays of the layout: a float32, and the words of the seed."""
    if prob.shape == (1,) and prob.dtype == jnp.float32 and seed.shape == (2,):
        return prob, seed
    if is_concrete(prob) and is_concrete(seed):
        with jax.ensure_compile_time_eval():  # known to a traced program, too
            return _structure(prob, seed)  # type: ignore[no-any-return]
    return _structure(prob, seed)  # type: ignore[no-any-return]


@jax.jit
def _structure(prob: Array, seed: Array) -> tuple[Array, Array]:
    words = seed if seed.shape == (2,) else random.seed_words(seed.reshape(()))
    return prob.reshape(1).astype(jnp.float32), words


DRAWN_LAYOUT = drawn_layout('drawn', cuda=Twin('be::Drawn', (0, 1, 2), '#include "drawn.cuh"'))

JITS = Drawn(DRAWN_LAYOUT, CONSTANT, 'jits')
JITN = Drawn(DRAWN_LAYOUT, NORMAL, 'jitn')
JITU = Drawn(DRAWN_LAYOUT, UNIFORM, 'jitu')
