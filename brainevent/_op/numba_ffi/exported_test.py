# SPDX-License-Identifier: Apache-2.0
"""Exported programs run where their kernels were never made, and say so where they cannot."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest
from jax import export

from brainevent._error import KernelLoadError
from brainevent._op.numba_ffi import load, native
from brainevent._op.numba_ffi.bridge import numba_kernel
from brainevent._op.numba_ffi.exported import AUTOMATIC, export_checks, register_exported

HEX = '0123456789abcdef' * 2
X = jnp.arange(3.0)
SHAPE = jax.ShapeDtypeStruct((3,), jnp.float32)
HERE = 'brainevent._op.numba_ffi.native_test'

PROCESS = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax import export
import brainevent

x = jnp.arange(3.0)
for name, want in ('house', [0, 5, 10]), ('users', [15, 20, 25]):
    program = export.deserialize(open(f'{sys.argv[1]}/{name}', 'rb').read())
    try:
        for call in program.call, jax.jit(lambda x: program.call(x) + 0):
            assert list(np.asarray(call(x))) == want
        print(name, 'runs', 'numba' in sys.modules)
    except brainevent.KernelLoadError as error:
        print(name, 'says', 'BRAINEVENT_CACHE_DIR' in str(error))
"""


def house(x):
    return native.call(native.Recipe(HERE, 'multiplied', (5,)), [x], [SHAPE])[0]


@numba.njit
def users(x, out):
    if x[0] < 0:
        raise ValueError('negative', x[0])
    for i in range(out.size):
        out[i] = x[i] + 3


def test_program_runs_in_another_process(folder, child, tmp_path, monkeypatch):
    pytest.importorskip('flatbuffers', reason='jax.export writes with flatbuffers')
    monkeypatch.setattr(load, '_loaded', {})  # so that all is stored in this folder
    monkeypatch.setattr(jax.ffi, 'register_ffi_target', lambda *args, **kwargs: None)
    f = numba_kernel(users, SHAPE)
    for name, function in ('house', house), ('users', lambda x: house(f(x))):
        (tmp_path / name).write_bytes(exported(jax.jit(function)).serialize())
    warm, cold = (
        child(PROCESS, tmp_path, cache_dir=where) for where in (folder, tmp_path / 'empty')
    )
    assert warm.output() == 'house runs False\nusers runs True\n'
    assert cold.output() == 'house runs True\nusers says True\n'


def exported(f):
    return export.export(f, disabled_checks=export_checks(f, X))(X)


def kernel_of(body):
    return jax.jit(numba_kernel(numba.njit(body), SHAPE))


def test_program_runs_again_in_this_process(folder):
    def body(x, out):
        for i in range(3):
            out[i] = x[i] + 7

    program = exported(kernel_of(body))
    assert len(register_exported(program)) == 1
    np.testing.assert_array_equal(program.call(X), X + 7)
    np.testing.assert_array_equal(exported(jax.jit(program.call)).call(X), X + 7)


def test_jax_calls_us_before_it_compiles_a_program():
    assert AUTOMATIC


def test_kernel_without_content_stays_in_its_process(folder, monkeypatch):
    scope = type('Scope', (), {'k': 3})  # numba cannot read it, so nothing can

    def body(x, out):
        for i in range(3):
            out[i] = x[i]
        if False:
            out[0] = scope

    program = exported(kernel_of(body))
    np.testing.assert_array_equal(program.call(X), X)
    (target,) = register_exported(program)
    monkeypatch.delitem(load._loaded, target)
    with pytest.raises(KernelLoadError, match='belongs to the process that made it'):
        register_exported(program)


def fake(*strings):
    return SimpleNamespace(mlir_module_serialized='\0'.join([*strings, '']).encode())


def test_kernel_that_is_nowhere_is_named(folder):
    with pytest.raises(KernelLoadError) as caught:
        register_exported(fake(f'brainevent_numba_ffi_{HEX}'))
    assert str(caught.value) == (
        'exported program: a kernel of the program is not known here.\n'
        f'    expected: kernel brainevent_numba_ffi_{HEX}\n'
        f'    got:      no machine code of it for this machine in {folder}\n'
        '    remedy:   call the same numba_kernel once in this process, or set '
        'BRAINEVENT_CACHE_DIR to the cache folder of the process that exported'
    )


@pytest.mark.parametrize(
    'text',
    [
        "(('os', 'system', ('true',)), (), (), 1)",  # not its name
        "(('brainevent._op', 'nothing', ()), (), (), 1)",
        "(('some.module', 'f', ('x_unique_1',)), (), (), 1)",
        '__import__("os")',
        '(1, 2',
        '7',
    ],
)
def test_order_that_does_not_lead_to_the_name_is_not_believed(folder, text):
    names = f'brainevent.multiplied.{HEX}', native.ORDER_MARK + text
    with pytest.raises(KernelLoadError, match='another version of brainevent'):
        register_exported(fake(*names))


def test_other_names_are_left_alone(folder):
    assert register_exported(fake('brainevent.short.0123', f'other.{HEX}', f'{HEX}')) == ()


def test_checks_name_every_kernel_once(folder):
    (check,) = export_checks(lambda x: house(house(x)), X)
    assert check.is_custom_call().startswith('brainevent.multiplied.')
