# SPDX-License-Identifier: Apache-2.0
"""Run every native operator on arrays that end where memory ends; a child of the guard test.

Each array is put in front of a page that cannot be read or written, so that one element too many
ends the process. Structure arrays hold a sound matrix, then anything; then each operand in turn
gets another length.
"""

import ctypes
import mmap
import sys
import zlib

import jax
import jax.numpy as jnp
import numpy as np

import brainevent as be
from brainevent._edge import LAYOUTS, measure
from brainevent._edge.mirror import mirror
from brainevent._edge.operator import Spec

LIBC, PAGE = ctypes.CDLL(None), mmap.PAGESIZE
measure.ACTIVE, measure.BATCH, measure.PICKED, measure.LISTED = 0.5, 16, 64, 16
SHAPES = ((64, 128), (63, 127))  # the lengths of vectors, or of offsets, are multiples of 64 bytes
LENGTHS = {
    'empty': lambda x: x[:0],
    'one': lambda x: x[:1],
    'half': lambda x: x[: x.shape[0] // 2],
    'one less': lambda x: x[:-1],
    'doubled': lambda x: np.concatenate([x, x]),
}
kept = []


def guarded(x):
    """Return an array that ends at the end of readable memory, where JAX takes it as it lies."""
    x = np.asarray(x)
    pages = max(-(-x.nbytes // PAGE), 1)
    memory = mmap.mmap(-1, (pages + 1) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert LIBC.mprotect(ctypes.c_void_p(start + pages * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    if x.nbytes % 64 or not x.nbytes:
        return jnp.asarray(x)
    view = np.frombuffer(memory, x.dtype, x.size, pages * PAGE - x.nbytes).reshape(x.shape)
    view[...] = x
    taken = jax.dlpack.from_dlpack(view)
    assert taken.unsafe_buffer_pointer() == view.ctypes.data, 'copied'
    kept.append((memory, view))
    return taken


def structures(shape):
    """Return structure arrays of a matrix of a shape, by the name of the layout."""
    (m, n), rng = shape, np.random.default_rng(0)
    edges = 16 * m // 2 * 2 - (16 * m // 2 * 2) % 16
    row = np.sort(rng.integers(0, m, edges)).astype(np.int32)
    col = rng.integers(0, n, edges).astype(np.int32)
    ptr = np.searchsorted(row, np.arange(m + 1)).astype(np.int32)
    tag = rng.permutation(edges).astype(np.int32)
    table = rng.integers(0, n, (m, 16)).astype(np.int32)
    made = {
        'csr': (col, ptr),
        'csr_tagged': (col, ptr, tag),
        'coo': (row, col),
        'fcn': (table,),
        'dense': (),
        'drawn': (np.array([0.3], np.float32), np.array([1, 2], np.uint32)),
    }
    for name in ('csr', 'coo', 'fcn'):
        arrays = tuple(map(jnp.asarray, made[name]))
        index = mirror(LAYOUTS[name], arrays, shape)
        made[f'{name}_mirror'] = (*made[name], *map(np.asarray, index))
    return made


def wild(x, rng):
    """Return an array of the same shape that holds anything an index can be."""
    if x.dtype.kind != 'i':
        return x
    ends = np.array([-(2**31), -1, 0, 1, 63, 64, 127, 128, 1023, 1024, 1025, 2**31 - 1], np.int32)
    return np.where(rng.random(x.shape) < 0.5, rng.choice(ends, x.shape), x).astype(x.dtype)


def cases(part, parts):
    """Yield operators in use, with their specification and operands."""
    for shape in SHAPES:
        made = structures(shape)
        for op, use in measure.uses().items():
            key = zlib.crc32(f'{op.name} {shape}'.encode())
            if use.layout.name not in made or key % parts != part:
                continue
            for transpose in use.directions:
                spec = Spec(use.layout, use.weight, shape, transpose, use.event)
                hand = measure.Hand(spec, made[use.layout.name])
                yield op, use, spec, tuple(map(np.asarray, use.operands(hand)))


def with_other_lengths(operands):
    """Yield operands of which one has another length."""
    for k, x in enumerate(operands):
        for length, change in LENGTHS.items():
            yield f'operand {k} {length}', (*operands[:k], change(x), *operands[k + 1 :])


def main(part, parts):
    _ = be.JITCScalarR((1.0, 0.5, 1), shape=(4, 4)).nse  # declares the listing of edges
    done, refused, rng = 0, 0, np.random.default_rng(part)
    for op, use, spec, operands in cases(part, parts):
        compiled = jax.jit(lambda *xs, use=use, spec=spec: use.run(spec, 'numba', xs))
        tries = [('sound', operands)]
        tries += [('wild', tuple(wild(x, rng) for x in operands)) for _ in range(3)]
        for what, given in (*tries, *with_other_lengths(operands)):
            try:
                jax.eval_shape(compiled, *given)
            except (be.BrainEventError, TypeError, ValueError):
                assert what not in ('sound', 'wild'), (op.name, what)
                refused += 1
                continue
            print('RUN', op.name, spec.shape, spec.transpose, what, flush=True)
            jax.block_until_ready(compiled(*map(guarded, given)))
            kept.clear()
            done += 1
    print('DONE', done, refused)


if __name__ == '__main__':
    main(int(sys.argv[1]), int(sys.argv[2]))
