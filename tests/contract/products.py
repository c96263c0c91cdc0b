# SPDX-License-Identifier: Apache-2.0
"""Events, matrices and products (§1 to §6 and §18 of the contract)."""

import brainunit as u
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from tests.contract.table import (
    COL_X,
    DENSE,
    FILL,
    FILL_DENSE,
    FILL_W,
    ROW_X,
    ROWS,
    SHAPE,
    SPIKES,
    _rng,
    check,
    crossed,
    near,
    registered,
)

# ---- §1 events ----------------------------------------------------------------------------------


@check('BinaryArray', 'EventArray', 'BitPackedBinary')
def _(name, kind):
    events = kind(ROW_X)
    near(events @ DENSE, SPIKES[True] @ DENSE)
    near(kind(np.nan_to_num(COL_X)) @ be.CSR.fromdense(DENSE).T, DENSE @ SPIKES[False])
    near(DENSE @ kind(COL_X > 0), DENSE @ SPIKES[False])
    assert events.shape == (ROWS,) and isinstance(events, be.EventRepresentation)


@check('MaskedFloat')
def _(name, kind):
    near(kind(ROW_X) @ DENSE, ROW_X @ DENSE)


@check('EventRepresentation')
def _(name, kind):
    events = be.BinaryArray(ROW_X)
    assert isinstance(events, kind)
    near(events.with_value(COL_X).value, COL_X)
    near(np.asarray(events), ROW_X)
    assert (len(events), events.ndim, events.size) == (ROWS, 1, ROWS)


@check('CompactBinary')
def _(name, kind):
    events = kind.from_array(ROW_X > 0)
    near(events.to_dense(), SPIKES[True])
    assert events.n_active[0] == 2 and events.active_ids[:2].tolist() == [1, 3]
    assert events.n_orig == ROWS and events.bit_width == 32


@check('bitpack')
def _(name, bitpack):
    bits = _rng.random((2, 40)) < 0.5
    words = np.asarray(bitpack(jnp.asarray(bits), -1))
    assert words.shape == (2, 2) and words.dtype == np.uint32
    unpacked = words[:, :, None] >> np.arange(32, dtype=np.uint32) & 1
    assert (unpacked.reshape(2, 64)[:, :40] == bits).all()
    assert bitpack(jnp.asarray(bits), 0).shape == (1, 40)


# ---- §2, §3, §5, §6, §18 matrices ----------------------------------------------------------------


@check('CSR', 'CSC', 'COO', 'Dense', 'FixedNumPerPre', 'FixedNumPerPost')
def _(name, kind):
    dense = FILL_DENSE if name.startswith('Fixed') else DENSE
    if name == 'FixedNumPerPre':
        matrix = kind((FILL_W, FILL), shape=SHAPE)
    elif name == 'FixedNumPerPost':
        matrix, dense = kind((FILL_W, FILL), shape=SHAPE[::-1]), dense.T
    else:
        matrix = kind.fromdense(dense)
    assert isinstance(matrix, be.DataRepresentation) and matrix.shape == dense.shape
    x, y = np.arange(dense.shape[1], dtype=np.float32), np.arange(dense.shape[0], dtype=np.float32)
    near(matrix.todense(), dense)
    near(matrix @ x, dense @ x)
    near(y @ matrix, y @ dense)
    near(be.BinaryArray(y) @ matrix, (y > 0) @ dense)
    near(matrix.T.todense(), dense.T)
    near((matrix * 2).todense(), dense * 2)
    near(matrix.with_data(matrix.data * 3).todense(), dense * 3)
    near(matrix[1], dense[1])
    for form in (matrix.tocsr(), matrix.tocsc(), matrix.tocoo()):
        near(form.todense(), dense)


@check('FixedPostNumConn', 'FixedPreNumConn', 'FixedNumConn')
def _(name, kind):
    today = {'FixedPostNumConn': be.FixedNumPerPre, 'FixedPreNumConn': be.FixedNumPerPost}
    assert kind is today.get(name, kind)
    assert issubclass(be.FixedNumPerPre, be.FixedNumConn)


@check('DataRepresentation')
def _(name, kind):
    class Mine(kind):
        def todense(self):
            return self.dense

    mine = Mine((DENSE,), shape=SHAPE)
    mine.register_buffer('kept', 1)
    assert mine.buffers == {'kept': 1} and isinstance(mine, u.sparse.SparseMatrix)
    with pytest.raises(NotImplementedError):
        mine.tocsr()


# ---- §4, §5, §6, §18 products --------------------------------------------------------------------


def parts(name):
    """Return arguments in front of the input, keywords, and the dense matrix, for a function."""
    if 'dense' in name:
        return (DENSE,), {}, DENSE
    if 'fcn' in name:
        return (FILL_W, FILL), {'shape': SHAPE}, FILL_DENSE
    if 'coo' in name:
        row, col = np.nonzero(DENSE)
        return (DENSE[row, col], row, col), {'shape': SHAPE}, DENSE
    csr = be.CSR.fromdense(DENSE)
    if 'indexed' not in name:
        return (csr.data, csr.indices, csr.indptr), {'shape': SHAPE}, DENSE
    perm = np.arange(csr.nse)[::-1]
    return (csr.data[perm], csr.indices, csr.indptr, perm), {'shape': SHAPE}, DENSE


def multiplied(name, call):
    args, options, dense = parts(name)
    for transpose in (False, True):
        x = np.nan_to_num(ROW_X if transpose else COL_X)
        counted = (x > 0) if name.startswith('binary_') else x
        matrix = dense.T if transpose else dense
        options = {**options, 'transpose': transpose}
        if 'mm' not in name:
            near(call(*args, x, **options), matrix @ counted)
        else:
            B, counted = np.stack([x, -x], 1), np.stack([counted, -x > 0], 1)
            if not name.startswith('binary_'):
                counted = B
            near(call(*args, B, **options), matrix @ counted)


PRODUCTS = [
    *crossed('', 'csr', 'coo', 'fcn'),
    *crossed('binary_', 'csr', 'coo', 'fcn', 'dense'),
    'binary_csrmv_indexed', 'binary_csrmm_indexed',
]  # fmt: skip


@check(*PRODUCTS)
def _(name, function):
    multiplied(name, function)


@check(*(f'{name}_p' for name in PRODUCTS if name not in ('fcnmv', 'fcnmm')))
def _(name, primitive):
    registered(primitive)

    def call(*args, shape=SHAPE, **options):
        *structure, x = args
        if 'indexed' in name:
            data, indices, indptr, perm, x = args
            structure = (data, indices, indptr, perm)
        if 'dense' in name:
            structure = (np.ravel(DENSE),)
        if 'fcn' in name:
            structure = (np.ravel(FILL_W), FILL)
        return primitive.call(*structure, x, shape=shape, **options)

    multiplied(name.removesuffix('_p'), call)
