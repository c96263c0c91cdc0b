# SPDX-License-Identifier: Apache-2.0
"""Hints of errors name what was meant, for every format."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse as jax_sparse

import brainevent as be

X = np.array([[0, 2, 1], [3, 0, 4]], np.float32)
STORED = (be.CSR, be.CSC, be.COO, be.Dense, be.FixedNumPerPre, be.FixedNumPerPost)
DRAWN = {
    be.JITCScalarR: (1.5, 0.5, 3),
    be.JITCScalarC: (1.5, 0.5, 3),
    be.JITCNormalR: (0.5, 1.5, 0.5, 3),
    be.JITCNormalC: (0.5, 1.5, 0.5, 3),
    be.JITCUniformR: (0.5, 1.5, 0.5, 3),
    be.JITCUniformC: (0.5, 1.5, 0.5, 3),
}
LISTED = (be.CSR, be.CSC, be.COO, be.FixedNumPerPre, be.FixedNumPerPost)


def make(kind, X=X, **options):
    if kind in DRAWN:
        return kind(DRAWN[kind], shape=X.shape, **options)
    conn = {be.FixedNumPerPre: 2, be.FixedNumPerPost: 2}.get(kind)
    return kind.fromdense(X, **options, **({'num_conn': conn} if conn else {}))


every = pytest.mark.parametrize('kind', [*STORED, *DRAWN])
stored = pytest.mark.parametrize('kind', STORED)


def foreign():
    scipy_sparse = pytest.importorskip('scipy.sparse')
    csr = scipy_sparse.csr_array(X.T)
    return [csr, csr.tocoo(), csr.tolil(), jax_sparse.BCOO.fromdense(X.T),
            jax_sparse.BCSR.fromdense(X.T), u.sparse.CSR.fromdense(X.T)]  # fmt: skip


# ---- constructors ---------------------------------------------------------------------------


@pytest.mark.parametrize('kind', LISTED)
@pytest.mark.parametrize('options', [{}, {'shape': (3, 2)}])
def test_a_constructor_that_is_given_a_sparse_matrix_names_fromscipy(kind, options):
    for other in foreign():
        with pytest.raises(be.DtypeError, match=f'{kind.__name__}.fromscipy'):
            kind(other, **options)
    with pytest.raises(be.DtypeError, match=f'{kind.__name__}.fromdense'):
        kind(X, shape=X.shape)


def test_dense_of_a_sparse_matrix_names_fromscipy():
    with pytest.raises(be.DtypeError, match='fromscipy'):
        be.Dense(foreign()[0])
    for other in foreign():
        np.testing.assert_array_equal(be.Dense.fromscipy(other).data, X.T)


@pytest.mark.parametrize('kind', [*LISTED, *DRAWN])
def test_a_missing_shape_is_named_with_the_class_of_the_user(kind):
    parts = {be.COO: (1.0, [0], [1]), be.CSR: (1.0, [0], [0, 1]), be.CSC: (1.0, [0], [0, 1])}
    given = DRAWN.get(kind) or parts.get(kind, (jnp.ones((1, 1)), jnp.zeros((1, 1), int)))
    with pytest.raises(TypeError) as caught:
        kind(given)
    assert str(caught.value).startswith(f'{kind.__name__}: `shape` is missing.')


@every
def test_an_unknown_backend_is_refused_by_the_first_product(kind):
    A = make(kind, backend='numbaa')
    with pytest.raises(be.BrainEventError, match='numbaa'):
        A @ be.BinaryArray(jnp.ones(A.shape[1], bool))
    assert make(kind, backend='jax_raw').backend == 'jax_raw'


# ---- operands -------------------------------------------------------------------------------


@every
def test_a_product_with_another_sparse_matrix_is_refused_with_a_hint(kind):
    A = make(kind)
    for other in foreign():
        with pytest.raises(be.UnsupportedOperationError, match='make one of them dense'):
            A @ other


@every
@pytest.mark.parametrize('wrap', [be.BinaryArray, be.MaskedFloat, lambda x: x])
def test_an_operator_has_no_advice_on_transpose(kind, wrap):
    A, s = make(kind), jnp.ones(7)
    for product in (lambda: wrap(s) @ A, lambda: A @ wrap(s), lambda: wrap(jnp.ones((7, 7))) @ A):
        with pytest.raises(be.ShapeError, match='one entry for each row in `x @ A`') as caught:
            product()
        assert 'transpose=' not in str(caught.value)
    with pytest.raises(be.ShapeError, match='exchange the sides'):
        wrap(jnp.ones(3)) @ A
    with pytest.raises(be.ShapeError, match='exchange the sides'):
        A @ wrap(jnp.ones(2))


def test_a_function_names_the_transpose_that_fits():
    A = make(be.CSR)
    parts = A.data, A.indices, A.indptr
    with pytest.raises(be.ShapeError, match='pass transpose=True'):
        be.csrmv(*parts, jnp.ones(2), shape=(2, 3))
    with pytest.raises(be.ShapeError, match='pass transpose=False'):
        be.csrmv(*parts, jnp.ones(3), shape=(2, 3), transpose=True)
    with pytest.raises(be.ShapeError, match='one entry for each column'):
        be.csrmv(*parts, jnp.ones(7), shape=(2, 3))


@every
def test_ids_of_spikes_are_recognised(kind):
    A, ids = make(kind), jnp.array([0, 2, 5, 9])
    for product in (lambda: be.BinaryArray(ids) @ A, lambda: A @ be.BinaryArray(ids)):
        with pytest.raises(be.ShapeError, match='CompactBinary.from_packed.*BinaryArray'):
            product()
    with pytest.raises(be.ShapeError) as caught:
        be.BinaryArray(ids > 0) @ A
    assert 'CompactBinary' not in str(caught.value)


@every
def test_a_matrix_can_be_a_static_argument(kind):
    A = make(kind)
    traces = []

    def product(A, x):
        traces.append(A)
        return A @ x

    fn = jax.jit(product, static_argnums=0)
    x = jnp.ones(A.shape[1])
    np.testing.assert_allclose(fn(A, x), A @ x, rtol=1e-6)
    np.testing.assert_allclose(fn(A, 2 * x), 2 * (A @ x), rtol=1e-6)
    assert len(traces) == 1


# ---- plasticity -----------------------------------------------------------------------------


@stored
@pytest.mark.parametrize('name', ['update_on_pre', 'update_on_post'])
@pytest.mark.parametrize('traced', [False, True])
@pytest.mark.parametrize('wrap', [be.BinaryArray, be.BitPackedBinary, be.CompactBinary.from_array])
def test_events_in_the_place_of_a_trace_are_refused(kind, name, traced, wrap):
    A = make(kind, np.eye(2, dtype=np.float32) + 1)
    s, trace = wrap(jnp.array([True, False])), jnp.array([0.5, 2.0])
    pairs = {'update_on_pre': [(s, s), (trace, s)], 'update_on_post': [(s, s), (s, trace)]}

    def update(A, *args):
        return getattr(A, name)(*args)

    for pair in pairs[name]:
        with pytest.raises(be.OptionError, match='the trace is an event array'):
            (jax.jit(update) if traced else update)(A, *pair)


# ---- units ----------------------------------------------------------------------------------


@stored
def test_a_unit_error_is_that_of_brainunit(kind):
    A = make(kind, X * u.mV)
    spikes, trace = be.BinaryArray([True, False]), jnp.ones(3)
    for call in (
        lambda: A.with_data(A.data.mantissa * u.mA),
        lambda: A.update_on_pre(spikes, trace * u.mA),
        lambda: A.update_on_pre(spikes, trace * u.mV, 0 * u.mA),
        lambda: A.update_on_pre(spikes, trace * u.mV, None, 1 * u.second),
    ):
        with pytest.raises(u.UnitMismatchError) as caught:
            call()
        assert isinstance(caught.value, be.UnitError)
        assert str(caught.value).startswith(kind.__name__)


@pytest.mark.parametrize('kind', list(DRAWN)[2:])
def test_units_of_drawn_parameters_are_checked_as_brainunit_does(kind):
    with pytest.raises(u.UnitMismatchError):
        kind((1 * u.mV, 1 * u.mA, 0.5, 1), shape=(2, 3))
    with pytest.raises(u.UnitMismatchError):
        kind((1.0, 2.0, 0.5 * u.mV, 1), shape=(2, 3))
