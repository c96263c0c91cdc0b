# SPDX-License-Identifier: Apache-2.0
"""Modules: functions of arrays, exact attributes, refusals at the boundary, kernels."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent import XLACustomKernel, list_registered_targets, register_ffi_target
from brainevent._error import (
    DtypeError,
    KernelError,
    KernelLoadError,
    KernelRegistrationError,
    KernelSignatureError,
    ShapeError,
)
from brainevent._op.kernix.module import CompiledModule, attribute_value
from brainevent._op.kernix.tokens import Token

X = np.arange(4, dtype=np.float32)
ALL = {
    'a': True, 'b': -3, 'd': -(2**40), 'e': 0.5, 'f': 2**33, 'g': 1.0, 'h': -2.0,
    'i': 1 - 2j, 'j': 3 + 4j,
}  # fmt: skip


def struct(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def failing(call, error=jax.errors.JaxRuntimeError):
    with pytest.raises(error) as caught:
        jax.block_until_ready(call())
    return str(caught.value)


# --- calls --------------------------------------------------------------------------------------


def test_a_function_is_a_function_of_arrays(shared):
    scale = shared.function('scale')
    assert scale(X, outs=struct(4), factor=2).tolist() == [0, 2, 4, 6]
    assert jax.jit(lambda x: scale(x, outs=x, factor=3))(X).tolist() == [0, 3, 6, 9]
    assert shared['scale'](X, outs=[struct(4)], factor=2)[0].tolist() == [0, 2, 4, 6]
    assert shared['scale'](X, outs={'y': struct(4)}, factor=2)['y'].tolist() == [0, 2, 4, 6]


def test_inside_loops_and_batches(shared):
    scale = shared['scale']

    def step(x, _):
        return scale(x, outs=struct(4), factor=2), None

    assert jax.lax.scan(step, X, length=3)[0].tolist() == [0, 8, 16, 24]
    batch = jnp.stack([X, X + 1])

    def call(x):
        return scale(x, outs=struct(4), factor=2, vmap_method='sequential')

    assert jax.vmap(call)(batch).tolist() == (2 * batch).tolist()
    with pytest.raises(NotImplementedError, match='vmap_method'):
        jax.vmap(lambda x: scale(x, outs=struct(4), factor=2))(batch)


def test_aliases(shared):
    scale = shared['scale']
    f = jax.jit(lambda x: scale(x, outs=x, factor=2, input_output_aliases={0: 0}))
    x = jnp.asarray(X)
    assert f(x).tolist() == [0, 2, 4, 6]
    assert x.tolist() == X.tolist()


def test_every_attribute_arrives_as_declared(shared):
    y = shared['every'](X, outs=struct(12), **ALL).tolist()
    bfloat16_minus_2, float16_1 = 0xC000, 0x3C00
    numbers = [1, -3, -(2.0**40), 0.5, 2.0**33, float16_1, bfloat16_minus_2]
    assert y == [*numbers, 1, -2, 3, 4, 0]


def test_the_same_through_jax_alone(shared):
    register_ffi_target('kernix_test.every', shared, 'every', platform='cpu')
    types = {
        'a': np.bool_, 'b': np.int8, 'd': np.int64, 'e': np.float64,
        'f': np.uint64,
    }  # fmt: skip
    attrs = {name: types[name](ALL[name]) for name in types}
    attrs |= {'g': np.uint16(1), 'h': np.uint16(2)}
    attrs |= {'i': np.array([1, -2], np.float32), 'j': np.array([3, 4], np.float64)}
    call = jax.ffi.ffi_call('kernix_test.every', struct(12))
    assert call(X, **attrs)[5:].tolist() == [1, 2, 1, -2, 3, 4, 0]
    text = failing(lambda: call(X, **attrs | {'e': np.float32(0.25)}))
    assert 'every: attribute `e` does not fit.' in text
    assert 'expected: float64\n    got:      float32' in text
    assert 'float32 array of 2' in failing(lambda: call(X, **attrs | {'i': np.float32(0)}))
    assert 'something that is not a number' in failing(lambda: call(X, **attrs | {'a': 'yes'}))
    missing = {name: value for name, value in attrs.items() if name != 'j'}
    assert 'nothing of that name' in failing(lambda: call(X, **missing))
    assert 'unknown attribute' in failing(lambda: call(X, **attrs, k=np.int32(1)))
    assert 'wrong number of operands' in failing(lambda: call(X, X, **attrs))


@pytest.mark.parametrize(
    ('dtype', 'value'),
    [
        ('int8', 200), ('int32', 2.5), ('uint8', -1), ('bool', 2), ('float32', 1j),
        ('float32', 'one'), ('float64', [1.0]), ('int32', None), ('int64', 2**70),
        ('float64', None), ('float32', '1'), ('float32', 1e300), ('float16', -65536.0),
        ('float64', 10**400), ('complex64', 1e300j), ('int32', float('nan')),
        ('int64', float('inf')), ('uint32', 2**32), ('int64', 2**63), ('uint64', 2**63),
        ('int16', np.int64(40_000)), ('bool', -1), ('int8', -129),
    ],
)  # fmt: skip
def test_values_that_a_type_does_not_hold(dtype, value):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        attribute_value(Token('attr', 'k', dtype), value)


def test_attributes_that_are_refused(shared):
    scale = shared['scale']
    text = failing(lambda: scale(X, outs=struct(4)), KernelSignatureError)
    assert text == (
        'scale: the attributes are not those of the function.\n'
        "    expected: 'factor'\n"
        '    got:      none'
    )
    failing(lambda: scale(X, outs=struct(4), factor=1, other=2), KernelSignatureError)
    for name, value in (('b', 200), ('b', -129), ('f', -1), ('d', 2**63), ('a', 2)):
        text = failing(
            lambda name=name, value=value: shared['every'](
                X, outs=struct(12), **ALL | {name: value}
            ),
            KernelSignatureError,
        )
        assert f'the attribute {name!r} cannot be passed' in text
        assert f'got:      {value}' in text
    traced = jax.jit(lambda k: scale(X, outs=struct(4), factor=k))
    text = failing(lambda: traced(2.0), KernelSignatureError)
    assert 'known when the call is traced' in text


@pytest.mark.parametrize(
    ('name', 'value', 'holds'),
    [
        ('a', -128, True), ('a', -129, False), ('a', 2**40, False), ('b', 2**31 - 1, True),
        ('b', -1, False), ('c', 2**31 - 1, True), ('c', 2**31, False), ('c', 2**63 - 1, False),
        ('d', 2**53, True), ('d', 2**53 + 1, False), ('e', 0.1, True),
        ('e', 1e300, False), ('e', float('inf'), True),
    ],
)  # fmt: skip
def test_a_parameter_narrower_than_its_token_takes_what_it_holds(shared, name, value, holds):
    """C++ would cut the number without a word."""
    attrs = {'a': 1, 'b': 2, 'c': 3, 'd': 4, 'e': 0.5} | {name: value}
    with jax.enable_x64(True):
        out = struct(5, dtype=jnp.float64)
        if holds:
            want = [np.float32(v) if k == 'e' else v for k, v in attrs.items()]
            assert shared['narrowing'](outs=out, **attrs).tolist() == want
        else:
            text = failing(lambda: shared['narrowing'](outs=out, **attrs))
            assert f'narrowing: attribute `{name}` does not fit.' in text
            assert f'got:      {value}' in text


# --- refusals at the boundary -------------------------------------------------------------------


def test_exceptions_of_the_function_are_errors_of_the_call(shared):
    fails = shared['fails']
    text = failing(lambda: fails(X, outs=struct(1), how=0))
    assert 'fails: how is 0 (check `how != 0` failed at ' in text
    file, line = re.search(r'failed at (.*):(\d+)\)', text).groups()
    assert 'BE_CHECK(how != 0)' in Path(file).read_text().splitlines()[int(line) - 1]
    assert 'fails: thrown' in failing(lambda: fails(X, outs=struct(1), how=1))
    assert 'fails: ?, which is no text' in failing(lambda: fails(X, outs=struct(1), how=3))
    assert 'says nothing about itself' in failing(lambda: fails(X, outs=struct(1), how=2))
    text = failing(lambda: shared['scale'](X, outs=struct(2, 3), factor=1))
    assert 'x is float32[4], y is float32[2, 3]' in text


def test_declared_dtypes_and_ranks_are_checked(shared):
    typed = shared['typed']
    x = np.ones((2, 3), np.float32)
    assert typed(x, outs=struct(2)).tolist() == [3, 3]
    text = failing(lambda: typed(x.astype(np.int32), outs=struct(2)), DtypeError)
    assert text == (
        'typed: operand 0 (`x`) has another dtype.\n    expected: float32\n    got:      int32'
    )
    text = failing(lambda: typed(x[0], outs=struct(2)), ShapeError)
    assert 'operand 0 (`x`) has another number of dimensions' in text
    failing(lambda: typed(x, outs=struct(2, dtype=jnp.int32)), DtypeError)
    failing(lambda: typed(outs=struct(2)), KernelSignatureError)
    failing(lambda: typed(x, outs=[struct(2), struct(2)]), KernelSignatureError)
    failing(lambda: typed(x, outs='float32'), DtypeError)


def test_the_library_checks_for_itself(shared):
    register_ffi_target('kernix_test.typed', shared, 'typed', platform='cpu')

    def call(x, out):
        return failing(lambda: jax.ffi.ffi_call('kernix_test.typed', out)(x))

    x = np.ones((2, 3), np.float32)
    assert (
        'INVALID_ARGUMENT: typed: argument 0 (`x`) does not fit.\n'
        '    expected: float32, 2 dimensions\n'
        '    got:      int32, 2 dimensions'
    ) in call(x.astype(np.int32), struct(2))
    assert 'got:      float32, 3 dimensions' in call(x[None], struct(2))
    assert 'result 0 (`y`) does not fit' in call(x, struct(2, 2))


def test_what_a_tensor_cannot_be(shared):
    kinds = shared['kinds']
    assert 'an unsupported dtype' in failing(lambda: kinds(outs=struct(2, dtype=jnp.float8_e5m2)))
    assert 'an unsupported dtype' in failing(lambda: kinds(outs=struct(2, dtype=jnp.int4)))
    assert 'at most 8 dimensions' in failing(lambda: kinds(outs=struct(*[1] * 9)))
    assert kinds(outs=struct(*[1] * 8)).shape == (1,) * 8


@pytest.mark.parametrize('dtype', ['bool', 'int8', 'uint16', 'float16', 'bfloat16', 'complex64'])
def test_every_dtype_has_its_size(shared, dtype):
    y = shared['kinds'](outs=struct(3, dtype=jnp.dtype(dtype)))
    assert set(np.asarray(y).view(np.uint8).tolist()) == {np.dtype(y.dtype).itemsize}


def test_dispatch_on_index_dtypes(shared):
    shifted = shared['shifted']
    x, i = np.array([5, 7], np.int32), np.array([1], np.int32)
    assert shifted(x, i, outs=struct(1, dtype=jnp.int32)).tolist() == [7]
    text = failing(lambda: shifted(x, i.astype(np.uint8), outs=struct(1, dtype=jnp.int32)))
    assert 'the column indices are uint8, this kernel takes int32' in text
    text = failing(lambda: shifted(X, i, outs=struct(1)))
    assert 'BE_DISPATCH_SIGNED_INDEX has no case for float32' in text


def test_no_elements(shared):
    assert shared['scale'](X[:0], outs=struct(0), factor=1).shape == (0,)


# --- modules ------------------------------------------------------------------------------------


def test_what_a_module_tells(shared):
    names = ['scale', 'typed', 'every', 'fails', 'kinds', 'shifted', 'narrowing']
    assert shared.function_names == names
    assert (shared.name, shared.platform, shared.ffi_platform) == ('kernix_shared', 'cpu', 'cpu')
    assert len(shared.content_hash) == 32
    assert shared.content_hash[:16] in shared.path
    assert repr(shared['scale']) == 'ModuleFunction(scale arg ret attr.factor:float32)'
    assert not shared.is_emulated


def test_an_unknown_function(shared):
    for call in (shared.get_handler, shared.function, shared.__getitem__, shared.kernel):
        with pytest.raises(KeyError) as caught:
            call('scal')
        assert isinstance(caught.value, KernelError)
        assert "no function 'scal'.\n    expected: 'scale', 'typed'" in str(caught.value)


def test_a_library_that_somebody_else_built(shared):
    bare = CompiledModule(shared.path, ['scale'])
    assert bare.function_names == ['scale']
    assert bare.content_hash != shared.content_hash
    y = bare['scale'](X, outs=struct(4), factor=np.float32(2))
    assert y.tolist() == [0, 2, 4, 6]
    with pytest.raises(KernelLoadError, match=r"no symbol 'be_gone' \[E-LOAD\]"):
        CompiledModule(shared.path, ['gone'])
    with pytest.raises(OSError):
        CompiledModule('/no/such/library.so', ['f'])


# --- names --------------------------------------------------------------------------------------


def test_registered_names(shared):
    register_ffi_target('kernix_test.scale', shared, 'scale', platform='cpu')
    register_ffi_target('kernix_test.scale', shared, 'scale', platform='cpu')
    assert 'kernix_test.scale' in list_registered_targets()
    for changes in ({}, {'replace': True}):
        with pytest.raises(KernelRegistrationError):
            register_ffi_target('kernix_test.scale', shared, 'typed', platform='cpu', **changes)
    with pytest.raises(KernelRegistrationError):
        register_ffi_target('kernix_test.scale', shared, 'scale', platform='cpu', content_id='x')
    with pytest.raises(KeyError):
        register_ffi_target('kernix_test.gone', shared, 'gone', platform='cpu')


@pytest.mark.parametrize('name', ['', ' ', 'a b', 'a\0b', 'a\n', '\t', '\ud800', None, 3, b'a'])
def test_names_that_no_target_can_have(shared, name):
    before = list_registered_targets()
    with pytest.raises(KernelRegistrationError, match='not a name for a target of XLA') as caught:
        register_ffi_target(name, shared, 'scale', platform='cpu')
    assert repr(name) in str(caught.value)
    assert list_registered_targets() == before


def test_names_of_the_house_are_its_own(shared):
    with pytest.raises(KernelRegistrationError, match="not beginning with 'brainevent_kernix.'"):
        register_ffi_target(shared['scale'].target, shared, 'typed', platform='cpu')


def test_a_cpu_library_is_not_registered_for_cuda(shared):
    with pytest.raises(KernelRegistrationError, match="expected: platform='cpu'"):
        register_ffi_target('kernix_test.cuda', shared, 'scale')


# --- kernels of operators -----------------------------------------------------------------------


@pytest.mark.usefixtures('on_cpu')
def test_a_function_is_a_kernel_of_an_operator(shared):
    op = XLACustomKernel('kernix_test_scale')
    op.def_kernel('cpp', 'cpu', shared.kernel('scale', vmap_method='sequential'))

    def call(x, factor):
        return op(x, outs=[struct(*x.shape)], factor=factor, unused='by this kernel')[0]

    op.def_jvp_rule2(lambda dx, x, *, factor, outs, **_: op(dx, outs=outs, factor=factor))
    op.def_transpose_rule(lambda cts, x, *, factor, **_: [call(cts[0], factor)])
    assert call(X, 2.0).tolist() == [0, 2, 4, 6]
    assert jax.jit(call, static_argnums=1)(X, 3.0).tolist() == [0, 3, 6, 9]
    assert jax.grad(lambda x: call(x, 2.0).sum())(X).tolist() == [2, 2, 2, 2]
    assert jax.vmap(lambda x: call(x, 2.0))(X.reshape(2, 2)).tolist() == [[0, 2], [4, 6]]
    assert op.available_backends('cpu') == ['cpp']
