# SPDX-License-Identifier: Apache-2.0
"""A layout from outside brings its own CUDA walk, and gets every product, gradient and batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent.extend import STORED, Event, Layout, Products, Twin, Walk

pytestmark = pytest.mark.usefixtures('emulated')

# Row i has two edges: to columns i and i + 1 (mod the number of columns).
RING = """
struct Ring {
  static constexpr int ARRAYS = 0;
  be::Extents extents;
  int64_t edges;

  Ring(const BE::Tensor*, const be::Call& call) : extents(call.extents()), edges(2 * call.rows) {}
  template <class F>
  __device__ __forceinline__ void visit(int64_t line, int lane, int lanes, F&& f) const {
    for (int e = lane; e < 2; e += lanes) f((line + e) % extents.others, 2 * line + e);
  }
  __device__ __forceinline__ void advance(const be::Levels&, int, int64_t) {}
  __device__ __forceinline__ void begin() {}
  int64_t mean() const { return 2; }
};
"""


def _edges(arrays, shape):
    e = jnp.arange(2 * shape[0], dtype=jnp.int32)
    return e // 2, (e // 2 + e % 2) % shape[1]


def _sound(where, arrays, shape):
    pass


@pytest.fixture(scope='module')
def ring():
    rows = Walk(
        span=lambda s, m, n, i: (2 * i, 2 * i + 2),
        far=lambda s, m, n, i, e: (i + e % 2) % n,
        tag=lambda s, m, n, i, e: e,
        cuda=Twin('Ring', (), RING),
    )
    layout = Layout(
        'cuda_test_ring', (), (), _edges, lambda arrays, shape: 2 * shape[0], _sound, _sound, rows
    )
    return Products(layout, STORED, 'cuda_test_ring')


@pytest.mark.parametrize('event', Event)
@pytest.mark.parametrize('transpose', [False, True])
def test_its_products_and_gradients_are_those_of_the_reference(ring, event, transpose):
    rng = np.random.default_rng(0)
    w = jnp.asarray(rng.normal(size=18), jnp.float32)
    x = jnp.asarray(rng.normal(size=9 if transpose else 7), jnp.float32)

    def everything(backend):
        def product(w, x):
            return ring(
                'ring', (w,), (), x,
                shape=(9, 7), transpose=transpose, event=event, backend=backend,
            )  # fmt: skip

        def loss(w, x):
            return (product(w, x) ** 2).sum()

        many = jax.vmap(product, (0, None))(jnp.stack([w, 2 * w]), x)
        return product(w, x), jax.grad(loss, (0, 1))(w, x), many

    got, want = everything('cuda_raw'), everything('jax_raw')
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), got, want)
