# SPDX-License-Identifier: Apache-2.0
"""Just-in-time connectivity as functions of loose parameters, for those who keep no matrix object.

`jits`, `jitn` and `jitu` stand for constant, normal and uniform weights. They make the matrix
dense; with ``mv`` and ``mm`` they multiply a vector or a matrix, with ``binary_`` in front they
count events, and with ``mv_dt2t`` behind they give a value for every edge.
"""

from typing import Any

from brainevent._docstring import BATCH, EVENT_BATCH, EVENTS, PRODUCT_BATCH, like
from brainevent._edge import Event, unwrap
from brainevent._format.drawn import JITN, JITS, JITU
from brainevent._format.jitc import JITCMatrix, JITCNormalR, JITCScalarR, JITCUniformR

__all__ = [
    'binary_jitnmm',
    'binary_jitnmm_p',
    'binary_jitnmv',
    'binary_jitnmv_p',
    'binary_jitsmm',
    'binary_jitsmm_p',
    'binary_jitsmv',
    'binary_jitsmv_p',
    'binary_jitumm',
    'binary_jitumm_p',
    'binary_jitumv',
    'binary_jitumv_p',
    'jitn',
    'jitn_p',
    'jitnmm',
    'jitnmm_p',
    'jitnmv',
    'jitnmv_dt2t',
    'jitnmv_p',
    'jits',
    'jits_p',
    'jitsmm',
    'jitsmm_p',
    'jitsmv',
    'jitsmv_dt2t',
    'jitsmv_p',
    'jitu',
    'jitu_p',
    'jitumm',
    'jitumm_p',
    'jitumv',
    'jitumv_dt2t',
    'jitumv_p',
]

jitsmv_p, jitsmm_p = JITS.primitives(Event.REAL)
binary_jitsmv_p, binary_jitsmm_p = JITS.primitives(Event.BINARY)
jitnmv_p, jitnmm_p = JITN.primitives(Event.REAL)
binary_jitnmv_p, binary_jitnmm_p = JITN.primitives(Event.BINARY)
jitumv_p, jitumm_p = JITU.primitives(Event.REAL)
binary_jitumv_p, binary_jitumm_p = JITU.primitives(Event.BINARY)
jits_p, jitn_p, jitu_p = JITS.dense.op, JITN.dense.op, JITU.dense.op


def _multiply(
    where: str,
    kind: type[JITCMatrix],
    weights: tuple[Any, ...],
    prob: Any,
    x: Any,
    seed: Any,
    event: Event,
    *,
    transpose: bool,
    **options: Any,
) -> Any:
    """Multiply the matrix of these parameters, or its transpose, by a vector or a matrix."""
    matrix = kind._make(where, weights, prob, seed, **options)
    value, own = unwrap(x)
    product = matrix.products(
        where,
        matrix.params,
        matrix.arrays,
        value,
        shape=matrix.layout_shape,
        transpose=bool(transpose) is not matrix.flipped,
        event=own if event is Event.REAL else event,
        backend=matrix.backend,
        checked=True,
    )
    return matrix._shown(product)


def _dense(
    where: str,
    kind: type[JITCMatrix],
    weights: tuple[Any, ...],
    prob: Any,
    seed: Any,
    *,
    transpose: bool,
    **options: Any,
) -> Any:
    """Make the matrix of these parameters, or its transpose, dense."""
    matrix = kind._make(where, weights, prob, seed, **options)
    return (matrix.T if transpose else matrix).todense()


def _scale(
    where: str,
    kind: type[JITCMatrix],
    weights: tuple[Any, ...],
    prob: Any,
    y: Any,
    seed: Any,
    nse: int | None,
    *,
    transpose: bool,
    **options: Any,
) -> Any:
    """Multiply the weight of every edge, row by row, by the vector at one of its ends."""
    matrix = kind._make(where, weights, prob, seed, **options).tocsr(nse)
    return (matrix.dt2t_transposed if transpose else matrix.dt2t)(y, matrix.data)


def jits(
    weight: Any, prob: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Make a drawn matrix with constant weights dense.

    Parameters
    ----------
    weight : number or Quantity
        Of every edge.
    prob : float
        Probability of each edge, from 0 to 1.
    seed : int
        Any whole number. None draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Return the transpose, of shape ``shape[::-1]``.
    corder : bool
        True: edges are drawn along columns, False: along rows, which is another matrix.
    backend : str, optional
        Demand a backend.
    matrix_mode : object
        Accepted and not used.

    Returns
    -------
    Array or Quantity, shape ``shape``, or its reverse with ``transpose``

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If a parameter does not fit.

    Examples
    --------
    >>> import brainevent
    >>> brainevent.jits(1.5, 0.5, 42, shape=(3, 4)).round(2)
    Array([[1.5, 0. , 1.5, 0. ],
           [1.5, 0. , 1.5, 0. ],
           [0. , 0. , 0. , 1.5]], dtype=float32)
    """
    return _dense(
        'jits', JITCScalarR, (weight,), prob, seed,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


def jitsmv(
    weight: Any, prob: Any, vector: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with constant weights by a vector.

    Parameters
    ----------
    weight : number or Quantity
        Of every edge.
    prob : float
        Probability of each edge, from 0 to 1.
    vector : Array or Quantity, shape (shape[1],), or (shape[0],) with ``transpose``
        Multiplied by value; a bool counts 0 or 1.
    seed : int
        Any whole number. None draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Multiply by the transpose.
    corder : bool
        True: edges are drawn along columns, False: along rows, which is another matrix.
    backend : str, optional
        Demand a backend.
    matrix_mode : object
        Accepted and not used.

    Returns
    -------
    Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
        In the product of both units and the common dtype.

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If an operand does not fit.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> brainevent.jitsmv(1.5, 0.5, jnp.ones(4), 42, shape=(3, 4)).round(2)
    Array([3. , 3. , 1.5], dtype=float32)
    """
    return _multiply(
        'jitsmv', JITCScalarR, (weight,), prob, vector, seed, Event.REAL,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitsmv, PRODUCT_BATCH, B=BATCH)
def jitsmm(
    weight: Any, prob: Any, B: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with constant weights by a matrix ``B`` of shape ``(k, n)``.

    Like `jitsmv` for every column of ``B``; see there for the other parameters.
    """
    return _multiply(
        'jitsmm', JITCScalarR, (weight,), prob, B, seed, Event.REAL,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitsmv, vector=EVENTS)
def binary_jitsmv(
    weight: Any, prob: Any, vector: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with constant weights by an event vector.

    Like `jitsmv`, but an element of ``vector`` counts exactly one when it is True or greater than
    zero, and nothing otherwise. Silent elements are passed over where edges are drawn along the
    input: with ``corder=True``, or with ``transpose`` and ``corder=False``.
    """
    return _multiply(
        'binary_jitsmv', JITCScalarR, (weight,), prob, vector, seed, Event.BINARY,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(binary_jitsmv, PRODUCT_BATCH, B=EVENT_BATCH)
def binary_jitsmm(
    weight: Any, prob: Any, B: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with constant weights by events in a ``(k, n)`` matrix ``B``.

    Like `binary_jitsmv` for every column of ``B``.
    """
    return _multiply(
        'binary_jitsmm', JITCScalarR, (weight,), prob, B, seed, Event.BINARY,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitsmv)
def jitsmv_dt2t(
    weight: Any, prob: Any, y: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
    nse: int | None = None,
) -> Any:  # fmt: skip
    """Multiply the weight of every edge of a drawn matrix by ``y`` at the edge's row.

    Parameters
    ----------
    weight, prob, seed, shape, corder, backend
        As for `jitsmv`.
    y : Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
    transpose : bool
        Take ``y`` at the edge's column.
    nse : int, optional
        Room for edges, needed where ``prob`` or ``seed`` are traced; what is left over is zero.

    Returns
    -------
    Array or Quantity, shape (edges,)
        Row by row, in the product of both units.
    """
    return _scale(
        'jitsmv_dt2t', JITCScalarR, (weight,), prob, y, seed, nse,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


def jitn(
    w_loc: Any, w_scale: Any, prob: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Make a drawn matrix with normal weights dense.

    Parameters
    ----------
    w_loc, w_scale : number or Quantity
        Mean and standard deviation of the weights, in one unit.
    prob : float
        Probability of each edge, from 0 to 1.
    seed : int
        Any whole number. None draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Return the transpose, of shape ``shape[::-1]``.
    corder : bool
        True: edges are drawn along columns, False: along rows, which is another matrix.
    backend : str, optional
        Demand a backend.
    matrix_mode : object
        Accepted and not used.

    Returns
    -------
    Array or Quantity, shape ``shape``, or its reverse with ``transpose``

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If a parameter does not fit.

    Examples
    --------
    >>> import brainevent
    >>> brainevent.jitn(0.0, 1.0, 0.5, 42, shape=(3, 4)).round(2)
    Array([[ 0.83      ,  0.        , -1.18      ,  0.        ],
           [-0.26999998,  0.        ,  1.51      ,  0.        ],
           [ 0.        ,  0.        ,  0.        , -1.4599999 ]],      dtype=float32)
    """
    return _dense(
        'jitn', JITCNormalR, (w_loc, w_scale), prob, seed,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


def jitnmv(
    w_loc: Any, w_scale: Any, prob: Any, vector: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with normal weights by a vector.

    Parameters
    ----------
    w_loc, w_scale : number or Quantity
        Mean and standard deviation of the weights, in one unit.
    prob : float
        Probability of each edge, from 0 to 1.
    vector : Array or Quantity, shape (shape[1],), or (shape[0],) with ``transpose``
        Multiplied by value; a bool counts 0 or 1.
    seed : int
        Any whole number. None draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Multiply by the transpose.
    corder : bool
        True: edges are drawn along columns, False: along rows, which is another matrix.
    backend : str, optional
        Demand a backend.
    matrix_mode : object
        Accepted and not used.

    Returns
    -------
    Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
        In the product of both units and the common dtype.

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If an operand does not fit.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> brainevent.jitnmv(0.0, 1.0, 0.5, jnp.ones(4), 42, shape=(3, 4)).round(2)
    Array([-0.35     ,  1.24     , -1.4599999], dtype=float32)
    """
    return _multiply(
        'jitnmv', JITCNormalR, (w_loc, w_scale), prob, vector, seed, Event.REAL,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitnmv, PRODUCT_BATCH, B=BATCH)
def jitnmm(
    w_loc: Any, w_scale: Any, prob: Any, B: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with normal weights by a matrix ``B`` of shape ``(k, n)``.

    Like `jitnmv` for every column of ``B``; see there for the other parameters.
    """
    return _multiply(
        'jitnmm', JITCNormalR, (w_loc, w_scale), prob, B, seed, Event.REAL,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitnmv, vector=EVENTS)
def binary_jitnmv(
    w_loc: Any, w_scale: Any, prob: Any, vector: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with normal weights by an event vector.

    Like `jitnmv`, but an element of ``vector`` counts exactly one when it is True or greater than
    zero, and nothing otherwise. Silent elements are passed over where edges are drawn along the
    input: with ``corder=True``, or with ``transpose`` and ``corder=False``.
    """
    return _multiply(
        'binary_jitnmv', JITCNormalR, (w_loc, w_scale), prob, vector, seed, Event.BINARY,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(binary_jitnmv, PRODUCT_BATCH, B=EVENT_BATCH)
def binary_jitnmm(
    w_loc: Any, w_scale: Any, prob: Any, B: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with normal weights by events in a ``(k, n)`` matrix ``B``.

    Like `binary_jitnmv` for every column of ``B``.
    """
    return _multiply(
        'binary_jitnmm', JITCNormalR, (w_loc, w_scale), prob, B, seed, Event.BINARY,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitnmv)
def jitnmv_dt2t(
    w_loc: Any, w_scale: Any, prob: Any, y: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
    nse: int | None = None,
) -> Any:  # fmt: skip
    """Multiply the weight of every edge of a drawn matrix by ``y`` at the edge's row.

    Parameters
    ----------
    w_loc, w_scale, prob, seed, shape, corder, backend
        As for `jitnmv`.
    y : Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
    transpose : bool
        Take ``y`` at the edge's column.
    nse : int, optional
        Room for edges, needed where ``prob`` or ``seed`` are traced; what is left over is zero.

    Returns
    -------
    Array or Quantity, shape (edges,)
        Row by row, in the product of both units.
    """
    return _scale(
        'jitnmv_dt2t', JITCNormalR, (w_loc, w_scale), prob, y, seed, nse,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


def jitu(
    w_low: Any, w_high: Any, prob: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Make a drawn matrix with uniform weights dense.

    Parameters
    ----------
    w_low, w_high : number or Quantity
        Ends of the weights, in one unit.
    prob : float
        Probability of each edge, from 0 to 1.
    seed : int
        Any whole number. None draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Return the transpose, of shape ``shape[::-1]``.
    corder : bool
        True: edges are drawn along columns, False: along rows, which is another matrix.
    backend : str, optional
        Demand a backend.
    matrix_mode : object
        Accepted and not used.

    Returns
    -------
    Array or Quantity, shape ``shape``, or its reverse with ``transpose``

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If a parameter does not fit.

    Examples
    --------
    >>> import brainevent
    >>> brainevent.jitu(1.0, 2.0, 0.5, 42, shape=(3, 4)).round(2)
    Array([[1.8      , 0.       , 1.12     , 0.       ],
           [1.39     , 0.       , 1.93     , 0.       ],
           [0.       , 0.       , 0.       , 1.0699999]], dtype=float32)
    """
    return _dense(
        'jitu', JITCUniformR, (w_low, w_high), prob, seed,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


def jitumv(
    w_low: Any, w_high: Any, prob: Any, vector: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with uniform weights by a vector.

    Parameters
    ----------
    w_low, w_high : number or Quantity
        Ends of the weights, in one unit.
    prob : float
        Probability of each edge, from 0 to 1.
    vector : Array or Quantity, shape (shape[1],), or (shape[0],) with ``transpose``
        Multiplied by value; a bool counts 0 or 1.
    seed : int
        Any whole number. None draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns.
    transpose : bool
        Multiply by the transpose.
    corder : bool
        True: edges are drawn along columns, False: along rows, which is another matrix.
    backend : str, optional
        Demand a backend.
    matrix_mode : object
        Accepted and not used.

    Returns
    -------
    Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
        In the product of both units and the common dtype.

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If an operand does not fit.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> brainevent.jitumv(1.0, 2.0, 0.5, jnp.ones(4), 42, shape=(3, 4)).round(2)
    Array([2.9199998, 3.33     , 1.0699999], dtype=float32)
    """
    return _multiply(
        'jitumv', JITCUniformR, (w_low, w_high), prob, vector, seed, Event.REAL,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitumv, PRODUCT_BATCH, B=BATCH)
def jitumm(
    w_low: Any, w_high: Any, prob: Any, B: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with uniform weights by a matrix ``B`` of shape ``(k, n)``.

    Like `jitumv` for every column of ``B``; see there for the other parameters.
    """
    return _multiply(
        'jitumm', JITCUniformR, (w_low, w_high), prob, B, seed, Event.REAL,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitumv, vector=EVENTS)
def binary_jitumv(
    w_low: Any, w_high: Any, prob: Any, vector: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with uniform weights by an event vector.

    Like `jitumv`, but an element of ``vector`` counts exactly one when it is True or greater than
    zero, and nothing otherwise. Silent elements are passed over where edges are drawn along the
    input: with ``corder=True``, or with ``transpose`` and ``corder=False``.
    """
    return _multiply(
        'binary_jitumv', JITCUniformR, (w_low, w_high), prob, vector, seed, Event.BINARY,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(binary_jitumv, PRODUCT_BATCH, B=EVENT_BATCH)
def binary_jitumm(
    w_low: Any, w_high: Any, prob: Any, B: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
) -> Any:  # fmt: skip
    """Multiply a drawn matrix with uniform weights by events in a ``(k, n)`` matrix ``B``.

    Like `binary_jitumv` for every column of ``B``.
    """
    return _multiply(
        'binary_jitumm', JITCUniformR, (w_low, w_high), prob, B, seed, Event.BINARY,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip


@like(jitumv)
def jitumv_dt2t(
    w_low: Any, w_high: Any, prob: Any, y: Any, seed: Any = None, *, shape: Any,
    transpose: bool = False, corder: bool = True, backend: str | None = None,
    matrix_mode: Any = None,
    nse: int | None = None,
) -> Any:  # fmt: skip
    """Multiply the weight of every edge of a drawn matrix by ``y`` at the edge's row.

    Parameters
    ----------
    w_low, w_high, prob, seed, shape, corder, backend
        As for `jitumv`.
    y : Array or Quantity, shape (shape[0],), or (shape[1],) with ``transpose``
    transpose : bool
        Take ``y`` at the edge's column.
    nse : int, optional
        Room for edges, needed where ``prob`` or ``seed`` are traced; what is left over is zero.

    Returns
    -------
    Array or Quantity, shape (edges,)
        Row by row, in the product of both units.
    """
    return _scale(
        'jitumv_dt2t', JITCUniformR, (w_low, w_high), prob, y, seed, nse,
        shape=shape, transpose=transpose, corder=corder, backend=backend,
    )  # fmt: skip
