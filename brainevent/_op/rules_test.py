# SPDX-License-Identifier: Apache-2.0
"""Rules: arity and shape of derivatives, symbolic zeros, sequential batches."""

import functools
import inspect

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._compat import Primitive, is_undefined
from brainevent._error import ShapeError
from brainevent._op import XLACustomKernel, defjvp, general_batching_rule, rules

pytestmark = pytest.mark.usefixtures('on_cpu')
SDS = jax.ShapeDtypeStruct
X, Y = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32) + 4


def product(*rules, name='rules_product'):
    """An operator x, y -> [x y, x + y]."""
    op = XLACustomKernel(name)
    op.def_kernel('jax_raw', 'cpu', lambda **_: lambda x, y: [x * y, x + y])
    if rules:
        op.def_jvp_rule2(*rules)
    return op, lambda x, y: op(x, y, outs=[SDS(x.shape, x.dtype)] * 2)


def rule_x(d, x, y, **_):
    return [d * y, d]


def rule_y(d, x, y, **_):
    return [d * x, d]


def test_rules_of_all_inputs_add_up():
    _, f = product(rule_x, rule_y)
    out, tangent = jax.jvp(f, (X, Y), (X, Y))
    np.testing.assert_allclose(out[0], X * Y)
    np.testing.assert_allclose(tangent[0], 2 * X * Y)
    np.testing.assert_allclose(tangent[1], X + Y)


def test_none_means_no_derivative():
    _, f = product(rule_x, None)
    np.testing.assert_array_equal(jax.grad(lambda y: f(X, y)[0].sum())(Y), np.zeros(3))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x, Y)[0].sum())(X), Y)


def test_a_rule_may_give_none_for_a_result():
    _, f = product(lambda d, x, y, **_: (d * y, None), None)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x, Y)[1].sum())(X), np.zeros(3))


def test_a_rule_is_not_called_for_a_symbolic_zero():
    def never(*args, **kwargs):
        raise AssertionError('called')

    _, f = product(rule_x, never)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x, Y)[0].sum())(X), Y)


def test_a_missing_rule_never_drops_a_gradient():
    """Rules were paired with zip, which stops at the shorter side: the gradient was wrong."""
    _, f = product(lambda d, *primals, **_: [d, d])
    with pytest.raises(ValueError) as caught:
        jax.grad(lambda y: f(X, y)[0].sum())(Y)
    assert str(caught.value) == (
        'defjvp(rules_product): the number of rules is not the number of inputs.\n'
        '    expected: 2 rules, one for each input\n'
        '    got:      1 rules\n'
        '    remedy:   give None for an input without derivative'
    )


def test_a_missing_rule_is_seen_at_registration_if_the_signature_shows_it():
    with pytest.raises(ValueError, match='expected: 2 rules, because a rule takes a tangent and 2'):
        product(rule_x)
    with pytest.raises(TypeError, match='a rule is not callable'):
        product(3, None, name='rules_not_callable')


def test_a_bare_array_is_not_cut_into_tangents():
    """A bare array was iterated along its leading axis."""
    _, f = product(lambda d, x, y, **_: d * y, None)
    with pytest.raises(TypeError, match='a rule did not return a sequence'):
        jax.grad(lambda x: f(x, Y)[0].sum())(X)


def test_a_bare_array_is_the_tangent_of_a_single_result():
    op = XLACustomKernel('rules_bare')
    op.def_kernel('jax_raw', 'cpu', lambda **_: lambda x: [x * x])
    rules.defjvp(op, lambda dx, x, **_: 2 * x * dx)
    (y,), (dy,) = jax.jvp(
        lambda x: op(x, outs=[jax.ShapeDtypeStruct(x.shape, x.dtype)]), (X,), (jnp.ones_like(X),)
    )
    np.testing.assert_allclose(dy, 2 * X)


def test_a_batching_rule_without_a_batch_runs_once():
    result, axis = rules.general_batching_rule(jax.lax.neg_p, (X,), (None,))
    np.testing.assert_array_equal(result, -X)
    assert axis is None


@pytest.mark.parametrize(
    ('answer', 'error', 'text'),
    [
        (lambda d: [d], ValueError, 'wrong number of tangents'),
        (lambda d: [d, d[:2]], ValueError, 'tangent 1 has the wrong shape'),
        (lambda d: [d.astype(jnp.float16), d], TypeError, 'tangent 0 has the wrong dtype'),
    ],
)
def test_tangents_fit_the_results(answer, error, text):
    _, f = product(lambda d, x, y, **_: answer(d), None)
    with pytest.raises(error, match=text):
        jax.jvp(lambda x: f(x, Y), (X,), (X,))


def test_integer_inputs_and_results_have_no_tangent():
    op = XLACustomKernel('rules_integers')
    op.def_kernel('jax_raw', 'cpu', lambda **_: lambda i, x: [i + 1, x * i.astype(x.dtype)])

    def never(*args, **kwargs):
        raise AssertionError('called')

    op.def_jvp_rule2(never, lambda d, i, x, **_: [jnp.zeros(3, jnp.int32), d * i.astype(d.dtype)])
    i = np.arange(3, dtype=np.int32)
    outs = [SDS((3,), jnp.int32), SDS((3,), jnp.float32)]
    np.testing.assert_array_equal(jax.grad(lambda x: op(i, x, outs=outs)[1].sum())(X), i)
    out, tangents = jax.jvp(
        lambda i, x: op(i, x, outs=outs), (i, X), (np.zeros(3, jax.dtypes.float0), X)
    )
    assert tangents[0].dtype == jax.dtypes.float0
    np.testing.assert_array_equal(tangents[1], X * i)


def test_defjvp_serves_plain_primitives():
    one = Primitive('rules_plain')
    one.def_impl(lambda x: x * 3)
    one.def_abstract_eval(lambda x: x)
    defjvp(one, lambda d, x: [d * 3])
    out, tangent = jax.jvp(one.bind, (X,), (Y,))
    np.testing.assert_array_equal(out, X * 3)
    np.testing.assert_array_equal(tangent, Y * 3)


def linear(transpose):
    """An operator that is linear in x, with the transpose rule under test."""
    op = XLACustomKernel('rules_linear')
    op.def_kernel('jax_raw', 'cpu', lambda **_: lambda w, x: [w * x, x])
    op.def_jvp_rule2(None, lambda d, w, x, **params: op(w, d, **params))
    op.def_transpose_rule(transpose)
    return lambda w, x: op(w, x, outs=[SDS((3,), jnp.float32)] * 2)


def test_a_transpose_rule_sees_arrays():
    def transpose(cts, w, x, *, outs, backend):
        assert all(isinstance(ct, jax.Array) for ct in cts)
        assert is_undefined(x) and not is_undefined(w)
        assert len(outs) == 2 and backend is None
        return None, cts[0] * w + cts[1]

    f = linear(transpose)
    np.testing.assert_array_equal(jax.grad(lambda x: f(Y, x)[0].sum())(X), Y)
    np.testing.assert_array_equal(jax.vjp(lambda x: f(Y, x), X)[1]([X, X])[0], X * Y + X)


@pytest.mark.parametrize(
    ('answer', 'error', 'text'),
    [
        (lambda ct: ct, TypeError, 'the rule did not return a sequence'),
        (lambda ct: [ct], ValueError, 'wrong number of cotangents'),
        (lambda ct: [None, ct[:1]], ValueError, 'cotangent 1 has the wrong shape'),
    ],
)
def test_cotangents_fit_the_operands(answer, error, text):
    f = linear(lambda cts, w, x, **_: answer(cts[0]))
    with pytest.raises(error, match=text):
        jax.grad(lambda x: f(Y, x)[0].sum())(X)


def test_raw_rules_get_the_parameters_their_author_knows():
    op, f = product()
    seen = []

    def jvp(primals, tangents, **params):
        seen.append(params)
        return op(*primals, **params), op(*tangents, **params)

    op.def_jvp_rule(jvp)
    jax.jvp(f, (X, Y), (X, Y))
    assert seen == [{'outs': [SDS((3,), jnp.float32)] * 2, 'backend': None}]


def test_general_batching_of_any_axes():
    op, f = product(rule_x, rule_y)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    got = jax.vmap(f, in_axes=(1, None))(x, Y)
    np.testing.assert_allclose(got[0], x.T * Y)
    got = jax.vmap(f, in_axes=(1, 0))(x, x.T)
    np.testing.assert_allclose(got[1], 2 * x.T)
    grads = jax.vmap(jax.grad(lambda x, y: f(x, y)[0].sum(), 1), in_axes=(1, None))(x, Y)
    np.testing.assert_allclose(grads, x.T)
    results, axes = general_batching_rule(op, (x, Y), (1, None), outs=[SDS((3,), jnp.float32)] * 2)
    np.testing.assert_allclose(results[0], x.T * Y)
    assert axes == [0, 0]


def test_an_empty_batch_is_empty():
    _, f = product()
    nothing = np.zeros((0, 3), np.float32)
    assert jax.vmap(f)(nothing, nothing)[0].shape == (0, 3)


def test_register_general_batching_restores_it():
    op, f = product()
    op.def_batching_rule(lambda *args, **kwargs: 1 / 0)
    op.register_general_batching()
    np.testing.assert_allclose(jax.vmap(f)(X[None], Y[None])[0], X[None] * Y)


def _taking(t, a, b=1, *, k=2):
    return t, a, b, k


@pytest.mark.parametrize(
    'rule',
    [
        _taking,
        lambda t, x: t * x,
        functools.partial(_taking, 1),
        functools.partial(_taking, b=2),
        functools.partial(_taking, a=2),
        functools.partial(functools.partial(_taking, k=1), 5),
    ],
)
def test_places_are_counted_as_inspect_counts_them(rule):
    free = [
        p
        for p in inspect.signature(rule).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    assert rules._places(rule) == (sum(p.default is p.empty for p in free), len(free))


@pytest.mark.parametrize('rule', [max, lambda t, *rest: t, functools.wraps(max)(lambda *a: a)])
def test_any_number_of_places(rule):
    assert rules._places(rule) is None


def test_inputs_and_axes_of_a_batching_rule_are_counted():
    for args, axes in (((), ()), ((X, X), (0,))):
        with pytest.raises(ShapeError, match='number of axes'):
            general_batching_rule(jax.lax.add_p, args, axes)


def test_tangents_are_arrays_of_jax_without_unit():
    op = XLACustomKernel('rules_numpy')
    op.def_kernel('jax_raw', 'cpu', lambda **_: lambda x: [2 * x])
    out = [jax.ShapeDtypeStruct(X.shape, X.dtype)]
    defjvp(op, lambda dx, x, **_: np.full(3, 2.0))
    (tangent,) = jax.jvp(lambda x: op(x, outs=out), (jnp.asarray(X),), (jnp.ones(3),))[1]
    assert tangent.dtype == jnp.float32
    defjvp(op, lambda dx, x, **_: [2 * dx * u.mV])
    with pytest.raises(TypeError, match='a tangent has a unit'):
        jax.jvp(lambda x: op(x, outs=out), (jnp.asarray(X),), (jnp.ones(3),))
