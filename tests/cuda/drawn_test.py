# SPDX-License-Identifier: Apache-2.0
"""Drawn matrices on CUDA are the golden ones, bit for bit, and their products those of the rest."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge.kernels import cuda_units
from brainevent._edge.materialise import list_edges
from brainevent._edge.random import exponential_table
from brainevent._format.drawn import DRAWN_LAYOUT, JITN, JITU
from tests.conformance.listed_test import DRAWN, check_drawn

pytestmark = pytest.mark.usefixtures('emulated')

GOLDEN = json.loads((Path(__file__).parents[1] / 'golden/drawn.json').read_text())
# A unit of its own shows the rule of a probability, and the gap, the numbers and the bits of a key.
PARTS = """
#include "drawn.cuh"
__global__ void parts(const uint32_t* bits, const uint32_t* key, const uint32_t* table, int rules,
                      int keys, uint32_t* rule, uint32_t* gap, float* unit, double* gauss) {
  for (int r = threadIdx.x; r < rules; r += blockDim.x) {
    const auto one = be::drawn::rule_of(bits[r], table);
    rule[r] = static_cast<uint32_t>(one.mantissa);
    rule[rules + r] = static_cast<uint32_t>(one.shift);
    rule[2 * rules + r] = static_cast<uint32_t>(one.width);
    rule[3 * rules + r] = static_cast<uint32_t>(one.rest);
    for (int k = 0; k < keys; k++) {
      const uint64_t whole = static_cast<uint64_t>(key[k]) << 32 | key[keys + k];
      const uint64_t most = uint64_t{1} << 31, far = one.shift ? one.gap(table, whole) : most;
      gap[r * keys + k] = static_cast<uint32_t>(far < most ? far : most);
    }
  }
  for (int k = threadIdx.x; k < keys; k += blockDim.x) {
    const uint64_t whole = static_cast<uint64_t>(key[k]) << 32 | key[keys + k];
    const float ends[2] = {0.0f, 1.0f};
    const BE::Tensor none;
    be::Uniform<float> uniform(none, 0);
    uniform.params = ends;
    unit[k] = uniform.at(static_cast<int64_t>(whole));
    gauss[k] = be::drawn::gauss<double>(whole, table);
  }
}
// @BE show arg arg arg ret ret ret ret stream
void show(const BE::Tensor bits, const BE::Tensor key, const BE::Tensor table, BE::Tensor rule,
          BE::Tensor gap, BE::Tensor unit, BE::Tensor gauss, int64_t stream) {
  parts<<<1, 64, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      bits.data_ptr<uint32_t>(), key.data_ptr<uint32_t>(), table.data_ptr<uint32_t>(),
      static_cast<int>(bits.numel()), static_cast<int>(key.numel() / 2), rule.data_ptr<uint32_t>(),
      gap.data_ptr<uint32_t>(), unit.data_ptr<float>(), gauss.data_ptr<double>());
}
"""


def _words(*path):
    value = GOLDEN
    for name in path:
        value = value[name]
    return np.array(value, np.uint32)


def test_rules_gaps_and_numbers_are_golden():
    module = be.load_cuda_inline(
        'drawn_parts',
        PARTS,
        extra_include_paths=[str(cuda_units.SOURCES)],
        auto_register=False,
    )
    bits, key = _words('probability_bits'), _words('key')
    with jax.enable_x64(True):
        shapes = [((4, bits.size), 'uint32'), ((bits.size, key.shape[1]), 'uint32')]
        shapes += [((key.shape[1],), 'float32'), ((key.shape[1],), 'float64')]
        rule, gap, unit, gauss = module.function('show')(
            bits, key, exponential_table(), outs=[jax.ShapeDtypeStruct(*s) for s in shapes]
        )
        np.testing.assert_array_equal(rule, _words('rule'))
        np.testing.assert_array_equal(gap, _words('gap'))
        np.testing.assert_allclose(unit, GOLDEN['unit'], rtol=1e-6)
        np.testing.assert_allclose(gauss, GOLDEN['gauss'], rtol=1e-12)


@pytest.mark.parametrize('case', GOLDEN['matrix'], ids=lambda c: f'{c["probability"]}')
def test_edges_are_golden(case):
    prob = jnp.asarray([case['probability']], jnp.float32)
    seed = jnp.asarray(np.array(case['seed'], np.uint32))
    wanted = case['columns']
    lengths = [len(row) for row in wanted]
    ptr = jnp.asarray(np.concatenate([[0], np.cumsum(lengths)]), jnp.int32)
    with be.use_backend('cpu', 'cuda_raw'):
        count, col, _, _ = jax.jit(
            lambda p, s, at: list_edges(
                DRAWN_LAYOUT, (p, s), at, tuple(case['shape']), sum(lengths)
            )
        )(prob, seed, ptr)
    assert count.tolist() == lengths
    assert col.tolist() == [j for row in wanted for j in row]


@pytest.mark.parametrize('family', [JITN, JITU], ids=['normal', 'uniform'])
@pytest.mark.parametrize('prob', [0.0, 0.004, 0.2, 0.97, 1.0])
def test_products_and_matrices_are_those_of_the_reference(family, prob):
    params = tuple(jnp.asarray([p], jnp.float32) for p in (0.5, 2.0))
    arrays = (jnp.asarray([prob], jnp.float32), jnp.asarray([0, 7], jnp.uint32))
    shape, rng = (70, 300), np.random.default_rng(0)

    def everything(backend):
        found = [family.dense(params, arrays, shape, backend)]
        for transpose in (False, True):
            x = jnp.asarray(rng.normal(size=shape[not transpose]), jnp.float32)
            how = {'shape': shape, 'transpose': transpose, 'backend': backend}
            found.append(family('drawn', params, arrays, x, **how))
            found.append(family('drawn', params, arrays, jnp.stack([x, -x], 1), **how))
        return found

    got = everything('cuda_raw')
    rng = np.random.default_rng(0)
    for a, b in zip(got, everything('jax_raw'), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize('kind', DRAWN)
def test_compacted_events(kind):
    check_drawn(kind, 'cuda_raw')
