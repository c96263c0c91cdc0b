# SPDX-License-Identifier: Apache-2.0
"""Every operation refuses a matrix whose leaves no longer fit its static shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be

M, N = 6, 4
D = np.arange(M * N, dtype=np.float32).reshape(M, N) * (np.indices((M, N)).sum(0) % 2)
TABLE = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [1, 3]])
WEIGHTS = np.arange(12, dtype=np.float32).reshape(M, 2) + 1

MATRICES = {
    'CSR': lambda: be.CSR.fromdense(D),
    'CSC': lambda: be.CSC.fromdense(D),
    'COO': lambda: be.COO.fromdense(D),
    'FixedNumPerPre': lambda: be.FixedNumPerPre((WEIGHTS, TABLE), shape=(M, N)),
    'FixedNumPerPost': lambda: be.FixedNumPerPost((WEIGHTS, TABLE), shape=(N, M)).T.T,
    'Dense': lambda: be.Dense(D),
    'CSR, mirror': lambda: be.CSR.fromdense(D).with_mirror(),
    'CSC, mirror': lambda: be.CSC.fromdense(D).with_mirror(),
    'COO, mirror': lambda: be.COO.fromdense(D).with_mirror(),
    'FixedNumPerPre, mirror': lambda: be.FixedNumPerPre(
        (WEIGHTS, TABLE), shape=(M, N)
    ).with_mirror(),
    'JITCScalarR': lambda: be.JITCScalarR((1.5, 0.5, 3), shape=(M, N)),
    'JITCNormalC': lambda: be.JITCNormalC((1.5, 0.5, 0.5, 3), shape=(M, N)),
    'JITCUniformR': lambda: be.JITCUniformR((0.5, 1.5, 0.5, 3), shape=(M, N)),
}

CHANGES = {
    'cut': lambda x: x[:2] if x.shape[0] > 2 else x[:0],
    'doubled': lambda x: jnp.concatenate([x, x]),
    'empty': lambda x: x[:0],
    'one more axis': lambda x: x[None].repeat(2, 0),
}


def spikes(n):
    return jnp.arange(n) % 2 == 0


def operations(A):
    """Return all that starts from a matrix, by name."""
    m, n = A.shape
    left, right = spikes(m), spikes(n)
    each = jnp.ones(jax.eval_shape(lambda: A.todense()).shape)
    ops = {
        'spikes @ A': lambda a: be.BinaryArray(left) @ a,
        'A @ spikes': lambda a: a @ be.BinaryArray(right),
        'masked @ A': lambda a: be.MaskedFloat(left.astype(jnp.float32)) @ a,
        'compact @ A': lambda a: be.CompactBinary.from_array(left) @ a,
        'A @ compact': lambda a: a @ be.CompactBinary.from_array(right),
        'packed @ A': lambda a: be.BinaryArray(left).bitpack() @ a,
        'x @ A': lambda a: jnp.ones(m) @ a,
        'A @ x': lambda a: a @ jnp.ones(n),
        'X @ A': lambda a: jnp.ones((3, m)) @ a,
        'A @ X': lambda a: a @ jnp.ones((n, 3)),
        'A.T @ x': lambda a: a.T @ jnp.ones(m),
        'todense': lambda a: a.todense(),
        'tocoo': lambda a: a.tocoo().todense(),
        'tocsr': lambda a: a.tocsr().todense(),
        'tocsc': lambda a: a.tocsc().todense(),
        'rows': lambda a: a[jnp.array([0, 1])],
        'columns': lambda a: a[:, jnp.array([0, 1])],
        'element': lambda a: a[1, 1],
        'slice_rows': lambda a: a.slice_rows([0, 1]),
        'A * 2': lambda a: (a * 2).todense(),
        'A + A': lambda a: (a + a).todense(),
        'A - dense': lambda a: a - each,
        '-A': lambda a: (-a).todense(),
        'traced': jax.jit(lambda a: be.BinaryArray(left) @ a),
    }
    if not isinstance(A, be.JITCMatrix):
        w = jax.eval_shape(lambda: A.data)
        ops |= {
            'update_on_pre': lambda a: a.update_on_pre(left, jnp.ones(n)),
            'update_on_post': lambda a: a.update_on_post(jnp.ones(m), right),
            'dt2t': lambda a: a.dt2t(jnp.ones(m), jnp.ones(w.shape)),
            'dt2t_transposed': lambda a: a.dt2t_transposed(jnp.ones(n), jnp.ones(w.shape)),
            'gradient': lambda a: jax.grad(lambda d: (a.with_data(d) @ jnp.ones(n)).sum())(
                jnp.ones(w.shape)
            ),
        }
    if isinstance(A, (be.CSR, be.CSC, be.COO)):
        ops |= {
            'with_mirror': lambda a: a.with_mirror() @ jnp.ones(n),
            'diag_add': lambda a: a.diag_add(1.0),
            'toscipy': lambda a: a.toscipy(),
            'tobcoo': lambda a: a.tobcoo(),
        }
    return ops


def changed(A, k, change):
    """Return a matrix in which one leaf has another length, as tree functions make it."""
    leaves, structure = jax.tree.flatten(A)
    leaves = [jnp.reshape(x, -1) if x.ndim == 0 else x for x in map(jnp.asarray, leaves)]
    return jax.tree.unflatten(structure, [*leaves[:k], change(leaves[k]), *leaves[k + 1 :]])


# these take weights of their own
OWN_WEIGHTS = ('gradient',)


@pytest.mark.parametrize('change', CHANGES)
@pytest.mark.parametrize('kind', MATRICES)
def test_every_operation_refuses_leaves_that_do_not_fit(kind, change):
    A = MATRICES[kind]()
    names = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_flatten_with_path(A)[0]]
    for k, leaf in enumerate(names):
        broken = changed(A, k, CHANGES[change])
        if leaf == '.data' and broken.data.size == 1 and not isinstance(A, be.Dense):
            continue  # one weight for all entries
        if leaf == '.seed' and broken.seed.shape == (2,):
            continue  # the two words of a seed
        for name, run in operations(A).items():
            if leaf == '.data' and name in OWN_WEIGHTS:
                continue
            with pytest.raises(be.BrainEventError, match='shape'):
                run(broken)
                pytest.fail(f'{name} with {leaf} {change} gave a result')


@pytest.mark.parametrize('kind', MATRICES)
def test_operations_of_a_sound_matrix_run(kind):
    A = MATRICES[kind]()
    for name, run in operations(A).items():
        if name not in ('toscipy', 'slice_rows'):  # values decide their result
            jax.eval_shape(run, A) if name == 'traced' else jax.eval_shape(lambda run=run: run(A))


@pytest.mark.parametrize('kind', MATRICES)
def test_all_leaves_cut_at_once(kind):
    A = MATRICES[kind]()
    broken = jax.tree.map(lambda x: jnp.reshape(x, -1)[:3] if jnp.ndim(x) < 2 else x[:3], A)
    if kind == 'COO':  # three edges of the same matrix
        rows, cols = np.nonzero(D)
        want = np.zeros_like(D)
        want[rows[:3], cols[:3]] = D[rows[:3], cols[:3]]
        np.testing.assert_array_equal(broken.todense(), want)
        np.testing.assert_array_equal(broken @ jnp.ones(N), want.sum(1))
    elif kind.startswith('JITC'):
        broken.todense()  # single numbers are whole
    else:
        with pytest.raises(be.ShapeError, match='leaves'):
            broken @ jnp.ones(A.shape[1])


@pytest.mark.parametrize('kind', ['CSR', 'FixedNumPerPre', 'Dense', 'JITCScalarR'])
def test_a_placeholder_is_named(kind):
    A = MATRICES[kind]()
    empty = jax.tree.map(lambda _: None, A)
    with pytest.raises(be.DtypeError, match='not an array'):
        empty @ jnp.ones(N)


def test_a_stack_is_refused_outside_vmap_and_works_inside():
    A = MATRICES['CSR']()
    stack = jax.vmap(lambda w: A.with_data(w))(jnp.stack([A.data, 2 * A.data]))
    with pytest.raises(be.ShapeError, match='vmap'):
        stack @ jnp.ones(N)
    got = jax.vmap(lambda a: a @ jnp.ones(N))(stack)
    np.testing.assert_allclose(got, np.stack([D.sum(1), 2 * D.sum(1)]))


def test_a_block_inside_shard_map_is_refused():
    A = be.CSR.fromdense(np.pad(D, ((0, 1), (0, 0))))  # eight offsets
    mesh = jax.make_mesh((1,), ('x',), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec('x')

    def block(a):
        half = jax.tree.map(lambda x: x[: x.shape[0] // 2], a)  # as one device of two has it
        return half @ jnp.ones(N)

    with pytest.raises(be.ShapeError, match='shard_map'):
        jax.shard_map(block, mesh=mesh, in_specs=spec, out_specs=spec)(A)


def test_weights_can_be_replaced_where_they_are_missing():
    A = MATRICES['CSR']()
    leaves, structure = jax.tree.flatten(A)
    bare = jax.tree.unflatten(structure, [None, *leaves[1:]])
    np.testing.assert_allclose(bare.with_data(A.data).todense(), D)


@pytest.mark.parametrize('kind', ['CSR', 'CSC', 'COO'])
@pytest.mark.parametrize('axes', [(-1, 1), (1, -1)])
def test_weights_with_an_axis_too_many(kind, axes):
    """Constructors take them for a list; a leaf of such a shape belongs to no matrix."""
    A = MATRICES[kind]()
    B = A.with_data(A.data.reshape(axes))
    assert B.data.shape == A.data.shape and A.with_data(jnp.ones((1, 1))).data.shape == (1,)
    leaves, structure = jax.tree.flatten(A)
    broken = jax.tree.unflatten(structure, [leaves[0].reshape(axes), *leaves[1:]])
    with pytest.raises(be.ShapeError, match='leaves'):
        _ = -broken
    with pytest.raises(be.ShapeError, match='leaves'):
        broken @ jnp.ones(N)


@pytest.mark.parametrize('cut', ['value', 'packed', 'n_active'])
def test_compact_events_whose_parts_do_not_fit(cut):
    events = be.CompactBinary.from_array(jnp.arange(M) % 2 == 0)
    paths, structure = jax.tree_util.tree_flatten_with_path(events)
    leaves = [x[:0] if cut in jax.tree_util.keystr(p) else x for p, x in paths]
    leaves = [
        jnp.zeros(5, x.dtype) if cut in jax.tree_util.keystr(p) else y
        for (p, x), y in zip(paths, leaves, strict=True)
    ]
    with pytest.raises(be.ShapeError, match=cut):
        jax.tree.unflatten(structure, leaves) @ MATRICES['CSR']()
