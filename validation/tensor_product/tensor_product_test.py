# SPDX-License-Identifier: Apache-2.0
"""Values and derivatives of the tensor product, in memory that is not clean.

Kernels here add to their outputs. XLA gives them whatever memory was free, so an output that is
not cleared shows what another operator left there, added to a right answer: seldom, and only in
programs with several operators. Claims, for shared weights in mode uvu and weights of each sample
in mode uvw:

1. Values equal an einsum over the Clebsch-Gordan coefficients, and turn with the operands.
2. First and second derivatives equal those of the einsum, which JAX differentiates.
3. Forward, backward and double backward operators have tangents and cotangents that are adjoint
   to each other: ``<ct, J t> = <J^T ct, t>``; with operators of several sizes in one process,
   interleaved and repeated, and memory filled with NaN in between.
4. Every kernel clears its outputs: given arrays full of NaN it computes the same.

Tolerance: float64, 1e-11 relative to the largest entry. Seeds are in the tests.
"""

import functools
import itertools
import os
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from validation.tensor_product import kernels, operators
from validation.tensor_product.clebsch_gordan import clebsch_gordan
from validation.tensor_product.operators import TensorProduct
from validation.tensor_product.rotations import random_rotation, turned
from validation.tensor_product.terms import paths, width

SIZES = {
    'small': ([(2, 0), (1, 1)], [(1, 0), (1, 1)], [(2, 0), (1, 1)], 3),
    'medium': ([(2, 0), (2, 1)], [(1, 1), (1, 2)], [(2, 1), (2, 2)], 2),
    'one sample': ([(1, 2)], [(2, 1)], [(1, 1), (1, 3)], 1),
}
MODES = ('uvu', 'uvw')
CASES = list(itertools.product(SIZES, MODES))
EMULATOR = Path(__file__).parents[2] / 'tests' / 'cuda_emulator'


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=['numba', 'cuda_raw'])
def backend(request, monkeypatch):
    """Run CPU kernels, and the CUDA kernels: on a GPU, else on the emulator."""
    on_gpu = request.param == 'cuda_raw' and jax.default_backend() == 'gpu'
    if request.param == 'cuda_raw' and not on_gpu:
        if not shutil.which(os.environ.get('CXX', 'g++')):
            pytest.skip('the emulator needs a C++ compiler')
        monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', str(EMULATOR))
    with jax.default_device(jax.devices('gpu' if on_gpu else 'cpu')[0]):
        yield request.param


@functools.cache
def product(size, mode):
    return TensorProduct(*SIZES[size][:3], mode)


def inputs(size, mode, seed=0):
    """x, y, w, g, and directions of the first three."""
    rng = np.random.default_rng(seed)
    batch, widths = SIZES[size][3], product(size, mode).widths
    rows = (batch, batch, batch if mode == 'uvw' else 1, batch)
    four = [jnp.asarray(rng.normal(size=shape)) for shape in zip(rows, widths, strict=True)]
    return [*four, *(jnp.asarray(rng.normal(size=x.shape)) for x in four[:3])]


def operator(size, mode, name, backend=None):
    """One of the three operators as a function of its operands alone, and how many it has."""
    made = product(size, mode)
    function = {'forward': made, 'backward': made.backward}.get(name, made.double_backward)
    counts = {'forward': 3, 'backward': 4, 'double_backward': 7}
    return functools.partial(function, backend=backend), counts[name]


@functools.cache
def dense(size, mode):
    """The tensor K of ``z[n] = sum K[i, j, k, n] x[i] y[j] w[k]``, from whole blocks."""
    left, right, out, _ = SIZES[size]
    k = np.zeros(product(size, mode).widths[:3] + (width(out),))
    spans = [[slice(*pair) for pair in itertools.pairwise(starts(e))] for e in (left, right, out)]
    rule = 'ijk,ua,vb,uc->uivjabck' if mode == 'uvu' else 'ijk,ua,vb,wc->uivjabcwk'
    for path in paths(left, right, out, mode):
        (mul, l1), (_, l2), (last, l3) = left[path.left], right[path.right], out[path.out]
        eyes = np.eye(mul), np.eye(path.shape[1]), np.eye(last)
        block = np.einsum(rule, clebsch_gordan(l1, l2, l3), *eyes)
        place = spans[0][path.left], spans[1][path.right], path.weights, spans[2][path.out]
        k[place] += block.reshape(k[place].shape)
    return k


def starts(irreps):
    return np.cumsum([0, *(width([entry]) for entry in irreps)])


def einsum(size, mode, x, y, w):
    """The same product, as one sum that JAX differentiates with rules of its own."""
    w = jnp.broadcast_to(w, (len(x), w.shape[1]))
    return jnp.einsum('bi,bj,bk,ijkn->bn', x, y, w, dense(size, mode))


def soil(*likes):
    """Fill memory of these sizes with NaN, and give it back."""
    for like in likes:
        held = [jnp.full(like.shape, jnp.nan, like.dtype) for _ in range(4)]
        jax.block_until_ready(held)
        for array in held:
            array.delete()


def close(got, wanted):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        scale = max(1.0, float(jnp.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * scale)


def inner(a, b):
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return sum(float(jnp.vdot(x, y)) for x, y in pairs)


@pytest.mark.parametrize(('size', 'mode'), CASES)
def test_values(size, mode):
    x, y, w, *_ = inputs(size, mode)
    soil(x, y, w)
    close(product(size, mode)(x, y, w), einsum(size, mode, x, y, w))
    close(jax.jit(product(size, mode))(x, y, w), einsum(size, mode, x, y, w))


@pytest.mark.parametrize(('size', 'mode'), CASES)
def test_the_result_turns_with_the_inputs(size, mode):
    x, y, w, *_ = inputs(size, mode, seed=1)
    rotation = random_rotation(np.random.default_rng(2))

    def turn(irreps, array):
        blocks = [np.kron(np.eye(mul), turned(n, rotation)) for mul, n in irreps]
        return array @ scipy.linalg.block_diag(*blocks).T

    left, right, out, _ = SIZES[size]
    multiply = product(size, mode)
    close(multiply(turn(left, x), turn(right, y), w), turn(out, multiply(x, y, w)))


@pytest.mark.parametrize(('size', 'mode'), [('small', 'uvu'), ('medium', 'uvw')])
def test_first_and_second_derivatives(size, mode):
    *four, g = inputs(size, mode, seed=3)[:4]
    four, directions = (*four, g), tuple(inputs(size, mode, seed=3)[4:])
    ours, reference = product(size, mode), functools.partial(einsum, size, mode)
    wanted = jax.jit(functools.partial(gradients, reference))(*four)
    close(jax.jit(functools.partial(gradients, ours))(*four), wanted)
    close(ours.backward(*four), wanted)
    wanted = jax.jit(functools.partial(second, reference))(*four, *directions)
    close(jax.jit(functools.partial(second, ours))(*four, *directions), wanted)
    close(ours.double_backward(*four, *directions), wanted)


def gradients(multiply, x, y, w, g):
    return list(jax.vjp(multiply, x, y, w)[1](g))


def second(multiply, x, y, w, g, *directions):
    def along(*four):
        pairs = zip(gradients(multiply, *four), directions, strict=True)
        return sum(jnp.vdot(a, b) for a, b in pairs)

    return list(jax.grad(along, argnums=(0, 1, 2, 3))(x, y, w, g))


@pytest.mark.parametrize('name', operators.OPERATORS)
def test_tangents_and_cotangents_are_adjoint_in_soiled_memory(name, backend):
    rounds = []
    for size, mode in (*CASES[1:4], CASES[5]):
        function, count = operator(size, mode, name, backend)
        primals = inputs(size, mode, seed=4)[:count]
        tangents = inputs(size, mode, seed=5)[:count]
        forward = jax.jit(functools.partial(jax.jvp, function))
        pull = jax.jit(lambda ct, *primals, function=function: jax.vjp(function, *primals)[1](ct))
        results = jax.jit(function)(*primals)
        cts = jax.tree.map(lambda z: np.cos(np.arange(z.size)).reshape(z.shape), results)
        rounds.append((forward, pull, primals, tangents, results, cts))
    for _ in range(3):
        for forward, pull, primals, tangents, results, cts in rounds:
            soil(*primals, *jax.tree.leaves(results))
            again, change = forward(tuple(primals), tuple(tangents))
            soil(*primals)
            pulled = pull(cts, *primals)
            close(again, results)
            lhs, rhs = inner(cts, change), inner(pulled, tangents)
            assert lhs == pytest.approx(rhs, rel=1e-11, abs=1e-11)
            assert abs(lhs) > 1e-3


@pytest.mark.parametrize('name', operators.OPERATORS)
def test_tangents_are_those_of_the_einsum(name):
    size, mode = 'medium', 'uvw'
    function, count = operator(size, mode, name)
    reference = functools.partial(einsum, size, mode)
    bare = {'backward': gradients, 'double_backward': second}.get(name)
    wanted = reference if bare is None else functools.partial(bare, reference)
    primals = tuple(inputs(size, mode, seed=6)[:count])
    every = inputs(size, mode, seed=7)[:count]
    ours, theirs = (jax.jit(functools.partial(jax.jvp, f)) for f in (function, wanted))
    for k in range(count):
        alone = tuple(t if n == k else jnp.zeros_like(t) for n, t in enumerate(every))
        close(ours(primals, alone), theirs(primals, alone))


@pytest.mark.parametrize('name', operators.OPERATORS)
@pytest.mark.parametrize('mode', MODES)
def test_kernels_clear_their_outputs(name, mode):
    function, count = operator('medium', mode, name)
    arrays = inputs('medium', mode, seed=8)[:count]
    results = jax.tree.leaves(function(*arrays))
    outputs = [np.full(z.shape, np.nan) for z in results]
    table = map(np.asarray, product('medium', mode).table('float64'))
    kernels.KERNELS[name](*table, *map(np.asarray, arrays), *outputs)
    close(outputs, results)


def test_a_batch_of_weight_sets():
    x, y, w, *_ = inputs('small', 'uvu')
    sets = jnp.stack([w, 2 * w, -w])
    out = jax.vmap(product('small', 'uvu'), (None, None, 0))(x, y, sets)
    close(out, jnp.stack([einsum('small', 'uvu', x, y, each) for each in sets]))


def test_operands_that_do_not_fit_are_refused():
    x, y, w, *_ = inputs('medium', 'uvw')
    for wrong in ((x[:, 1:], y, w), (x, y[:1], w), (x, y, w[0]), (x, y, w[:, :-1])):
        with pytest.raises(ValueError, match='does not fit'):
            product('medium', 'uvw')(*wrong)
