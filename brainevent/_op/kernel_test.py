# SPDX-License-Identifier: Apache-2.0
"""XLACustomKernel: calling, lowering errors, registration, transformations."""

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from brainevent import errors
from brainevent._compat import is_undefined
from brainevent._op import KernelEntry, XLACustomKernel

SDS = jax.ShapeDtypeStruct
OUT = SDS((3,), jnp.float32)


@pytest.fixture
def x(cpu):
    return jax.device_put(jnp.arange(3.0), cpu)


def make(kg, name='kernel_op'):
    op = XLACustomKernel(name)
    op.def_kernel('jax_raw', 'cpu', kg)
    return op


def causes(error):
    """The chain of causes; JAX puts one of its own in front."""
    while error.__cause__ is not None:
        error = error.__cause__
        yield error


@pytest.fixture
def scale():
    """An operator x -> [c x, x + c] with every rule."""
    op = make(lambda *, c, outs: lambda x: [c * x, x + c])
    op.def_jvp_rule2(lambda dx, x, *, c, **_: [c * dx, dx])
    return lambda x, c=2.0: op(x, c=c, outs=[SDS(x.shape, x.dtype)] * 2)


# --- calling --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'outs', [OUT, [OUT], (OUT, OUT), {'a': OUT, 'b': (OUT,)}, np.zeros(3, np.float32)]
)
def test_results_have_the_structure_of_outs(x, outs):
    op = make(lambda *, outs: lambda x: [x + i for i in range(len(jax.tree.leaves(outs)))])
    results = op(x, outs=outs)
    assert jax.tree.structure(results) == jax.tree.structure(outs)
    for i, leaf in enumerate(jax.tree.leaves(results)):
        np.testing.assert_array_equal(leaf, np.arange(3) + i)


def test_the_generator_gets_what_the_caller_gave(x):
    seen = []
    op = make(lambda **static: seen.append(static) or (lambda x: [x]))
    op(x, outs={'y': OUT}, flag=True, name='z', sizes=(1, 2))
    assert seen == [{'flag': True, 'name': 'z', 'sizes': (1, 2), 'outs': {'y': OUT}}]


def test_a_single_array_is_enough_for_a_single_result(x):
    np.testing.assert_array_equal(make(lambda **_: lambda x: x + 1)(x, outs=OUT), [1, 2, 3])


def test_dtypes_follow_the_x64_setting(x):
    op = make(lambda *, outs: lambda x: [x.astype(outs.dtype)])
    assert op(x, outs=SDS((3,), np.float64)).dtype == jnp.float32


def test_dtypes_follow_the_x64_setting_when_it_is_on(x, x64):
    op = make(lambda *, outs: lambda x: [x.astype(outs.dtype)])
    assert op(x, outs=SDS((3,), np.float64)).dtype == jnp.float64


def test_a_parameter_that_cannot_be_hashed_is_named(x):
    op = make(lambda **_: lambda x: [x])
    with pytest.raises(TypeError, match='the parameter `sizes` is not hashable'):
        op(x, outs=OUT, sizes=[1, 2])


def test_an_input_with_a_unit_is_refused(x):
    with pytest.raises(errors.UnitError, match='input 1 has a unit'):
        make(lambda **_: lambda x, y: [x])(x, x * u.mV, outs=OUT)


def test_an_input_that_is_no_array_is_refused(x):
    with pytest.raises(errors.DtypeError, match='input 0 is no array'):
        make(lambda **_: lambda x: [x])([1.0, 2.0], outs=OUT)


def test_an_input_may_offer_an_array(x):
    class Wrapped:
        def __jax_array__(self):
            return x

    np.testing.assert_array_equal(make(lambda **_: lambda x: [x])(Wrapped(), outs=OUT), x)


def test_outs_without_a_shape_are_refused(x):
    with pytest.raises(errors.DtypeError, match='`outs` holds something without a shape'):
        make(lambda **_: lambda x: [x])(x, outs=[3])


def test_a_shape_check_speaks_before_anything_is_lowered(x):
    def check(aval, *, outs, k):
        if outs[0].shape != aval.shape:
            raise errors.ShapeError(f'{k} {aval.shape}')

    op = make(lambda **_: lambda x: [x])
    op.def_shape_check(check)
    op(x, outs=[OUT], k=1)
    with pytest.raises(errors.ShapeError, match=r'1 \(3,\)'):
        jax.eval_shape(lambda x: op(x, outs=[SDS((4,), jnp.float32)], k=1), x)


# --- lowering -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('result', 'error', 'text'),
    [
        (lambda x: [x, x], ValueError, 'wrong number of results.\n    expected: 1'),
        (lambda x: [], ValueError, 'wrong number of results'),
        (lambda x: [x[:2]], ValueError, 'result 0 has another shape'),
        (lambda x: [x > 0], TypeError, 'result 0 has another dtype'),
    ],
)
def test_results_that_do_not_fit_outs_are_refused(x, result, error, text):
    with pytest.raises(error, match=text):
        make(lambda **_: result)(x, outs=[OUT])


@pytest.mark.parametrize('where', ['generator', 'kernel'])
def test_a_kernel_that_cannot_be_made_says_why_and_what_else_there_is(x, where):
    """A bare exception from deep inside used to be all the user saw."""

    def fail(*args, **kwargs):
        raise RuntimeError('no luck')

    op = make(fail if where == 'generator' else lambda **_: fail, 'kernel_broken')
    op.def_kernel('other', 'cpu', lambda **_: lambda x: [x])
    with pytest.raises(errors.KernelCompilationError) as caught:
        op(x, outs=OUT)
    assert str(caught.value) == (
        "kernel_broken: the 'jax_raw' kernel could not be made for 'cpu'.\n"
        '    expected: a kernel\n'
        '    got:      RuntimeError: no luck\n'
        "    remedy:   other backends are 'other': pass `backend='other'` to the call, or set "
        "`brainevent.config.set_backend('cpu', 'other')`"
    )
    assert any(type(cause) is RuntimeError for cause in causes(caught.value))
    np.testing.assert_array_equal(op(x, outs=OUT, backend='other'), x)


def test_a_compiler_error_keeps_its_type_and_gains_the_remedy(x):
    def fail(**_):
        raise errors.CompilationError('bad source', 'line 1', source='x')

    with pytest.raises(errors.CompilationError, match='bad source') as caught:
        make(fail)(x, outs=OUT)
    assert caught.value.__notes__[0] == "no other backend is registered for platform 'cpu'"


def test_a_missing_tool_is_a_compilation_failure(x):
    def fail(**_):
        raise errors.NvccNotFoundError('no nvcc')

    with pytest.raises(errors.KernelCompilationError, match='NvccNotFoundError: no nvcc'):
        make(fail)(x, outs=OUT)


def test_a_failed_call_can_be_repaired_by_registering(x):
    op = XLACustomKernel('kernel_late')
    jitted = jax.jit(lambda x: op(x, outs=OUT))
    with pytest.raises(errors.KernelFallbackExhaustedError):
        jitted(x)
    op.def_kernel('jax_raw', 'cpu', lambda **_: lambda x: [x + 1])
    np.testing.assert_array_equal(jitted(x), x + 1)


# --- registration ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('args', 'error', 'text'),
    [
        ((1, 'cpu', len), TypeError, '`backend` is not a name'),
        (('numba', None, len), TypeError, '`platform` is not a name'),
        (('numba', 'cpu', 1), TypeError, '`kg` is not callable'),
        (('numba', 'cpu', len, False, 1), TypeError, '`supports` is not callable'),
        (('', 'cpu', len), ValueError, 'the name of the backend is empty'),
        (('numba', 'npu', len), ValueError, "unknown platform 'npu'"),
    ],
)
def test_registration_checks_its_arguments(args, error, text):
    with pytest.raises(error, match=text):
        XLACustomKernel('kernel_arguments').def_kernel(*args)


def test_wrappers_name_backend_and_platform():
    op = XLACustomKernel('kernel_wrappers')
    kg = lambda **_: len  # noqa: E731
    op.def_numba_kernel(kg)
    op.def_cuda_raw_kernel(kg)
    op.def_warp_kernel(kg)
    op.def_triton_kernel(kg)
    op.def_numba_cuda_kernel(kg, asdefault=True)
    op.def_pallas_kernel('gpu', kg)
    op.def_pallas_kernel('tpu', kg)
    assert op.available_backends('cpu') == ['numba']
    assert op.available_backends('gpu') == ['cuda_raw', 'warp', 'triton', 'numba_cuda', 'pallas']
    assert op.available_backends('tpu') == ['pallas']
    assert op.defaults == {'cpu': 'numba', 'gpu': 'numba_cuda', 'tpu': 'pallas'}
    with pytest.raises(ValueError, match="pallas does not run on 'cpu'"):
        op.def_pallas_kernel('cpu', kg)


def test_reading_the_tables():
    op = make(lambda **_: len)
    op.defaults['cpu'] = 'changed'
    assert op.defaults == {'cpu': 'jax_raw'}
    assert (op.get_default('cpu'), op.get_default('gpu')) == ('jax_raw', None)
    assert op.available_backends('tpu') == []
    assert repr(op) == "XLACustomKernel('kernel_op')"
    assert KernelEntry('numba', 'cpu', len).backend == 'numba'


def test_the_name_is_a_name():
    with pytest.raises(TypeError, match='`name` is not a name'):
        XLACustomKernel('')


def test_call_and_tags():
    op = make(lambda **_: len)
    with pytest.raises(ValueError, match='no public function is known'):
        op.call(1)
    op.def_call(lambda a, b: a + b)
    assert op.call(1, b=2) == 3
    op.def_tags('csr', 'float', 'csr')
    op.tags.add('more')
    assert op.tags == {'csr', 'float'}


# --- transformations ------------------------------------------------------------------------


def test_every_transformation(scale, x):
    def f(x):
        return scale(x)[0].sum() + (scale(x)[1] ** 2).sum()

    grad = 2 + 2 * (x + 2)
    np.testing.assert_allclose(jax.grad(f)(x), grad)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), grad)
    np.testing.assert_allclose(jax.grad(jax.checkpoint(f))(x), grad)
    np.testing.assert_allclose(jax.jvp(f, (x,), (x,))[1], (grad * x).sum())
    np.testing.assert_allclose(jax.linearize(f, x)[1](x), (grad * x).sum())
    np.testing.assert_allclose(jax.hessian(f)(x), 2 * np.eye(3))
    np.testing.assert_allclose(jax.jacrev(jax.jacfwd(lambda x: scale(x)[1]))(x), np.zeros((3,) * 3))
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(jnp.stack([x, x])), np.stack([grad, grad]))
    assert jax.eval_shape(scale, x)[0] == OUT


def test_control_flow(scale, x):
    out = jax.lax.scan(lambda c, _: (scale(c)[0], c.sum()), x, length=3)
    np.testing.assert_allclose(out[0], 8 * x)
    np.testing.assert_allclose(out[1], [3, 6, 12])
    branch = jax.jit(lambda b: jax.lax.cond(b, lambda: scale(x)[0], lambda: scale(x)[1]))
    np.testing.assert_allclose(branch(True), 2 * x)
    np.testing.assert_allclose(branch(False), x + 2)
    np.testing.assert_allclose(
        jax.lax.while_loop(lambda c: c.sum() < 20, lambda c: scale(c)[0], x), 8 * x
    )


def test_nested_batches_are_slices(scale):
    x = jnp.arange(24.0).reshape(2, 3, 4)
    got = jax.vmap(jax.vmap(lambda x: scale(x)[0], in_axes=1, out_axes=1))(x)
    np.testing.assert_allclose(got, 2 * x)


@pytest.mark.parametrize('check', [False, True])
def test_shard_map(scale, cpu, check):
    mesh = jax.make_mesh((1,), ('i',), devices=[cpu], axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec('i')
    op = make(lambda **_: lambda x, y: [x * y], 'kernel_shard')
    op.def_jvp_rule2(lambda d, x, y, **k: op(d, y, **k), lambda d, x, y, **k: op(x, d, **k))
    op.def_transpose_rule(
        lambda ct, x, y, **k: (
            (*op(ct[0], y, **k), None) if is_undefined(x) else (None, *op(x, ct[0], **k))
        )
    )
    f = jax.shard_map(
        lambda x, y: op(x, y, outs=[SDS(x.shape, x.dtype)])[0],
        mesh=mesh,
        in_specs=(spec, jax.sharding.PartitionSpec()),
        out_specs=spec,
        check_vma=check,
    )
    x, y = jnp.arange(4.0), jnp.arange(4.0) + 1
    np.testing.assert_allclose(jax.jit(f)(x, y), x * y)
    gx, gy = jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(gx, y)
    np.testing.assert_allclose(gy, x)


def test_export_of_a_pure_kernel(scale, x):
    exported = export.export(jax.jit(lambda x: scale(x)[0]))(x)
    np.testing.assert_allclose(jax.jit(exported.call)(x), 2 * x)


def test_an_operator_without_rules_names_itself(x):
    op = make(lambda **_: lambda x: [x], 'kernel_without_rules')
    with pytest.raises(NotImplementedError, match='kernel_without_rules'):
        jax.grad(lambda x: op(x, outs=OUT).sum())(x)


def test_the_primitive_can_be_bound_with_what_a_rule_was_given(x):
    op = make(lambda **_: lambda x: [x + 1])
    op.def_batching_rule(
        lambda args, axes, **params: (
            op.primitive.bind(args[0], **{**params, 'outs': [SDS((2, 3), jnp.float32)]}),
            [0],
        )
    )
    got = jax.vmap(lambda x: op(x, outs=[OUT])[0])(jnp.stack([x, x]))
    np.testing.assert_array_equal(got, np.stack([x, x]) + 1)


def test_donation(scale, x):
    step = jax.jit(lambda x: scale(x)[0], donate_argnums=0)
    np.testing.assert_allclose(step(x + 0), 2 * x)
