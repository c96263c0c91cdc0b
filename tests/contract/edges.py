# SPDX-License-Identifier: Apache-2.0
"""Operators with a result for each edge, learning, drawn matrices, indices (§3 to §8, §18)."""

from functools import cache, partial

import jax.numpy as jnp
import numpy as np

import brainevent as be
from tests.conformance.grid import quick_jit
from tests.contract.products import parts
from tests.contract.table import (
    COL_X,
    COLS,
    DENSE,
    FILL,
    FILL_W,
    POST_TRACE,
    PRE_TRACE,
    ROW_X,
    ROWS,
    SHAPE,
    SPIKES,
    check,
    near,
    registered,
)

# ---- per edge ------------------------------------------------------------------------------------

SCALES = ['csrmv_dt2t', 'csrmm_dt2t', 'cscmv_dt2t', 'cscmm_dt2t', 'csrmv_yw2y']


def scaled(name, y, w, indices, lines, transpose):
    """Multiply each weight by ``y`` at its line, or at its other end."""
    ids = indices if transpose is not name.startswith('csc') else lines
    return w * (y[:, ids] if 'mm' in name else y[ids])


@check(*SCALES, 'csrmv_dt2t_p', 'csrmm_dt2t_p')
def _(name, function):
    call = function
    if name.endswith('_p'):
        registered(function)
        call = getattr(be, name.removesuffix('_p'))
    matrix = (be.CSC if name.startswith('csc') else be.CSR).fromdense(DENSE)
    lines = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    for transpose in (False, True):
        y = np.nan_to_num(COL_X if transpose else ROW_X)
        w = np.asarray(matrix.data)
        if 'mm' in name:
            y, w = np.stack([y, y + 1]), np.stack([w, w * 2])
        got = call(y, w, matrix.indices, matrix.indptr, shape=SHAPE, transpose=transpose)
        near(got, scaled(name, y, w, np.asarray(matrix.indices), lines, transpose))


@check('fcnmv_dt2t', 'fcnmm_dt2t')
def _(name, function):
    y, w = ROW_X, FILL_W
    if 'mm' in name:
        y, w = np.stack([y, y + 1]), np.stack([w, w * 2])
    near(function(w, FILL, y, shape=SHAPE, transpose=False), w * y[..., None])


@check('csr_slice_rows', 'csr_slice_rows_p')
def _(name, function):
    args, options, dense = parts('csr')
    near(be.csr_slice_rows(*args, np.array([2, 0]), **options), dense[[2, 0]])
    near(be.csr_slice_rows(*args, 1, **options), dense[1])
    if name.endswith('_p'):
        registered(function)


# ---- plasticity ----------------------------------------------------------------------------------


def learned(dense, present, post):
    """Update dense weights on spikes of rows or columns, and clip; without bounds too."""
    step = np.outer(PRE_TRACE, SPIKES[False]) if post else np.outer(SPIKES[True], POST_TRACE)
    return np.where(present, dense + step, 0)


def updates(*formats):
    return [f'update_{f}_on_binary_{side}' for f in formats for side in ('pre', 'post')]


EVENTS = {False: (ROW_X, POST_TRACE), True: (PRE_TRACE, COL_X)}


@check(
    *updates('csr', 'csc', 'coo', 'dense'),
    'csr_on_pre', 'csr2csc_on_post', 'dense_on_pre', 'dense_on_post', 'coo_on_pre', 'coo_on_post',
)  # fmt: skip
def _(name, function):
    post = name.endswith('post')
    options, w_max = {'shape': SHAPE}, 3.0
    if name.startswith(('update_dense', 'dense')):
        near(function(DENSE, *EVENTS[post], 0.0, w_max), np.clip(learned(DENSE, True, post), 0, 3))
        return
    if name.startswith(('update_csc', 'csc')):
        matrix = be.CSC.fromdense(DENSE)
        args, ids = (matrix.data, matrix.indices, matrix.indptr), np.nonzero(DENSE.T)[::-1]
    else:
        args, _, _ = parts(name)
        ids = np.nonzero(DENSE)
        if name in ('update_csr_on_binary_post', 'csr2csc_on_post'):
            turned = be.csr_to_csc_index(args[2], args[1], shape=SHAPE)
            args = (args[0], turned[1], turned[0], turned[2])
        if 'coo' in name:
            options = {}
    want = np.clip(learned(DENSE, DENSE != 0, post), 0, 3)[ids]
    near(function(*args, *EVENTS[post], 0.0, w_max, **options), want)


@check('update_fixed_post_conn_on_binary_pre', 'update_fixed_pre_conn_on_binary_post')
def _(name, function):
    post = name.endswith('post')
    spikes, trace = SPIKES[True], POST_TRACE
    want = np.minimum(FILL_W + spikes[:, None] * trace[FILL], 4)
    events = (trace, ROW_X) if post else (ROW_X, trace)  # rows of the table fire either way
    shape = SHAPE[::-1] if post else SHAPE
    near(function(FILL_W, FILL, *events, None, 4.0, shape=shape), want)


@check(
    *(f'{name}_p' for name in updates('csr', 'coo', 'dense')),
    'fcn_plasticity_row_p',
)  # fmt: skip
def _(name, primitive):
    registered(primitive)
    assert 'plasticity' in primitive.tags


# ---- §7 drawn connectivity -----------------------------------------------------------------------

PARAMS = {'s': (1.5,), 'n': (1.5, 0.1), 'u': (1.0, 2.0)}
FAMILY = {'s': 'Scalar', 'n': 'Normal', 'u': 'Uniform'}
DRAWN = {'shape': (30, 40)}


@cache
def drawn(family, **options):
    function = getattr(be, f'jit{family}')
    return np.asarray(quick_jit(lambda: function(*PARAMS[family], 0.3, 7, **DRAWN, **options))())


@check('jits', 'jitn', 'jitu')
def _(name, function):
    matrix = drawn(name[-1])
    assert 0.15 < (matrix != 0).mean() < 0.45
    assert abs(matrix[matrix != 0].mean() - 1.5) < 0.1
    near(drawn(name[-1], transpose=True), matrix.T)
    turned = drawn(name[-1], corder=False, transpose=True)
    near(turned, drawn(name[-1], corder=False).T)


@check(
    *(f'{prefix}jit{f}{rank}' for prefix in ('', 'binary_') for f in 'snu' for rank in ('mv', 'mm'))
)
def _(name, function):
    family, rows = name.removeprefix('binary_')[3], name.endswith('mm')
    matrix = drawn(family)
    # the directions of the other two weights are the same code: they take turns
    for transpose in (False, True) if family == 's' else (rows is (family == 'n'),):
        n = matrix.shape[not transpose]
        x = np.linspace(-1, 1, n * 2, dtype=np.float32).reshape(n, 2)[:, : 2 if rows else 1]
        counted = (x > 0).astype(np.float32) if name.startswith('binary_') else x
        call = partial(function, *PARAMS[family], 0.3, seed=7, **DRAWN, transpose=transpose)
        got = quick_jit(call)(x if rows else x[:, 0])
        want = (matrix.T if transpose else matrix) @ counted
        near(got, want if rows else want[:, 0], 1e-4)


@check('jitsmv_dt2t', 'jitnmv_dt2t', 'jitumv_dt2t')
def _(name, function):
    matrix, y = drawn(name[3]), np.linspace(1, 2, 30, dtype=np.float32)
    got = function(*PARAMS[name[3]], 0.3, y, 7, **DRAWN)
    near(got, (matrix * y[:, None])[matrix != 0], 1e-4)


@check(
    *(f'jit{f}_p' for f in 'snu'),
    *(f'{b}jit{f}{rank}_p' for b in ('', 'binary_') for f in 'snu' for rank in ('mv', 'mm')),
)
def _(name, primitive):
    registered(primitive)


@check(
    *(f'JITC{family}{side}' for family in FAMILY.values() for side in 'RC'),
)
def _(name, kind):
    family = {'S': 's', 'N': 'n', 'U': 'u'}[name[4]]
    matrix = kind((*PARAMS[family], 0.3, 7), **DRAWN, corder=True)
    assert isinstance(matrix, be.JITCMatrix)
    params = tuple(map(jnp.float32, PARAMS[family]))  # known, also where others are traced
    inside = quick_jit(lambda: kind((*params, 0.3, 7), **DRAWN, corder=True).todense())
    dense = np.asarray(inside())
    near(dense, drawn(family))
    near(quick_jit(lambda: (matrix * 2).todense())(), dense * 2)
    assert type(matrix.T) is getattr(be, name[:-1] + {'R': 'C', 'C': 'R'}[name[-1]])
    x, y = np.linspace(-1, 1, 40, dtype=np.float32), np.linspace(-1, 1, 30, dtype=np.float32)
    if name.endswith('R'):
        near(quick_jit(lambda y: be.BinaryArray(y) @ matrix)(y), (y > 0) @ dense, 1e-4)
    else:
        near(quick_jit(lambda x: matrix @ x)(x), dense @ x, 1e-4)


@check('JITCMatrix', 'JITCScalarMatrix', 'JITCHomoR', 'JITCHomoC')
def _(name, kind):
    if 'Homo' in name:
        assert kind is getattr(be, name.replace('Homo', 'Scalar'))
    else:
        assert issubclass(be.JITCScalarR, kind) and issubclass(be.JITCScalarC, kind)


# ---- §8 indices ----------------------------------------------------------------------------------


@check('csr_to_coo_index', 'coo_to_csc_index', 'coo2csr', 'csr_to_csc_index', 'csc_to_csr_index')
def _(name, function):
    row, col = np.nonzero(DENSE)
    ptr = np.searchsorted(row, np.arange(ROWS + 1))
    order = np.argsort(col, kind='stable')
    col_ptr = np.searchsorted(col[order], np.arange(COLS + 1))
    by_column = (col_ptr, row[order], order)
    got, want = {
        'csr_to_coo_index': lambda: (function(ptr, col), (row, col)),
        'coo_to_csc_index': lambda: (function(row, col, shape=SHAPE), by_column),
        'csr_to_csc_index': lambda: (function(ptr, col, shape=SHAPE), by_column),
        'coo2csr': lambda: (
            function(row[order], col[order], shape=SHAPE), (ptr, col, np.argsort(order))
        ),
        'csc_to_csr_index': lambda: (
            function(col_ptr, row[order], shape=SHAPE), (ptr, col, np.argsort(order))
        ),
    }[name]()  # fmt: skip
    for g, w in zip(got, want, strict=True):
        near(g, w)
