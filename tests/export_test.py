# SPDX-License-Identifier: Apache-2.0
"""Programs that take matrices and events are saved and loaded, here and in another process."""

import subprocess
import sys

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import brainevent as be
from brainevent.extend import pytree

D = np.float32([[1, 0, 2], [0, 3, 0]])
ON = jnp.array([True, False])
MATRICES = {
    'CSR': lambda: be.CSR.fromdense(D),
    'CSC': lambda: be.CSC.fromdense(D),
    'COO': lambda: be.COO.fromdense(D),
    'Dense': lambda: be.Dense(D),
    'FixedNumPerPre': lambda: be.FixedNumPerPre.fromdense(D, num_conn=2),
    'FixedNumPerPost': lambda: be.FixedNumPerPre.fromdense(D.T, num_conn=1).T,
    'CSR with a mirror': lambda: be.CSR.fromdense(D).with_mirror(),
    'CSR in a unit': lambda: be.CSR.fromdense(D * u.mV * u.siemens / u.second**0.5),
    'CSR of numba': lambda: be.CSR.fromdense(D, backend='numba'),
    'CSR with a buffer': lambda: be.CSR.fromdense(D, buffers={'delay': jnp.arange(3)}),
    **{
        f'JITC{kind}{letter}': lambda kind=kind, letter=letter: getattr(be, f'JITC{kind}{letter}')(
            *((0.5,) if kind == 'Scalar' else (0.5, 1.5)), 0.5, 3, shape=(2, 3), corder=True
        )
        for kind in ('Scalar', 'Normal', 'Uniform')
        for letter in 'RC'
    },
}
EVENTS = {
    'BinaryArray': lambda: be.BinaryArray(ON),
    'MaskedFloat': lambda: be.MaskedFloat(jnp.array([0.5, 0.0])),
    'BitPackedBinary': lambda: be.BinaryArray(ON).bitpack(),
    'CompactBinary': lambda: be.CompactBinary.from_array(ON),
}


def saved(fun, *args):
    fun = jax.jit(fun)
    program = export.export(fun, disabled_checks=be.export_checks(fun, *args))(*args)
    return program.serialize()


@pytest.mark.parametrize('name', MATRICES)
def test_matrices_go_in_and_out(name):
    A = MATRICES[name]()
    program = export.deserialize(saved(lambda x, A: (x @ A, 2 * A), jnp.ones(2), A))
    y, B = program.call(jnp.ones(2), A)
    assert type(B) is type(A) and jax.tree.structure(B) == jax.tree.structure(A)
    assert u.math.allclose(y, jnp.ones(2) @ A)
    assert u.math.allclose(B.todense(), 2 * A.todense())


@pytest.mark.parametrize('name', EVENTS)
def test_events_go_in_and_out(name):
    A, events = be.CSR.fromdense(D), EVENTS[name]()
    program = export.deserialize(saved(lambda e, A: (e @ A, e), events, A))
    y, same = program.call(events, A)
    np.testing.assert_array_equal(y, events @ A)
    assert jax.tree.structure(same) == jax.tree.structure(events)


def test_another_structure_is_refused():
    program = export.deserialize(saved(lambda A: A.todense(), be.CSR.fromdense(D)))
    with pytest.raises(ValueError, match='CSR'):
        program.call(be.CSC.fromdense(D))


def test_generators_go_in_and_out():
    rng = be.PallasLFSR88RNG(3)
    program = export.deserialize(saved(lambda r: (r.randint(), r), rng))
    number, moved = program.call(rng)
    assert number == be.PallasLFSR88RNG(3).randint()
    assert isinstance(moved, be.PallasLFSR88RNG)


WITHOUT = """
import sys
from jax import export
try:
    export.deserialize(bytearray(open(sys.argv[1], 'rb').read()))
except ValueError as error:
    print(error)
"""
WITH = """
import sys
import numpy as np
from jax import export
import brainevent as be
program = export.deserialize(bytearray(open(sys.argv[1], 'rb').read()))
A = be.CSR.fromdense(np.float32([[1, 0, 2], [0, 3, 0]]))
print(program.call(np.ones(2, np.float32), A))
"""


def test_in_another_process(tmp_path):
    file = tmp_path / 'program'
    file.write_bytes(saved(lambda x, A: x @ A, jnp.ones(2), be.CSR.fromdense(D)))

    def run(code):
        command = [sys.executable, '-c', code, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert 'brainevent.CSR (import brainevent before loading)' in run(WITHOUT)
    assert run(WITH).strip() == '[1. 3. 2.]'


def test_an_open_batch_of_ids():
    ids = jax.ShapeDtypeStruct(export.symbolic_shape('b'), 'int32')
    for A in (be.CSR.fromdense(D), be.JITCNormalR((1.0, 0.5, 0.6, 3), shape=(2, 3))):
        for pick in (lambda i, A=A: A[i], lambda i, A=A: A[i, 0], lambda i, A=A: A[i, i]):
            fun = jax.jit(pick)
            program = export.export(fun, disabled_checks=be.export_checks(fun, ids))(ids)
            np.testing.assert_allclose(
                program.call(jnp.array([1, 0, 1])), pick(jnp.array([1, 0, 1]))
            )


@pytree
class Doubled(be.JITCMatrix):
    family, names = be.JITCScalarR.family, ('weight',)


def test_a_class_of_ones_own():
    A = Doubled((2.0, 0.5, 3), shape=(2, 3))
    data = saved(lambda x, A: x @ A, jnp.ones(2), A)
    np.testing.assert_array_equal(export.deserialize(data).call(jnp.ones(2), A), jnp.ones(2) @ A)
    assert b'Doubled (import ' in bytes(data)


def test_checks_follow_the_platform():
    A = be.CSR.fromdense(D, backend='jax_raw')
    assert be.export_checks(lambda x: x @ A, jnp.ones(2), platforms=['cuda', 'tpu']) == []
