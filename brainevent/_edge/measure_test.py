# SPDX-License-Identifier: Apache-2.0
"""Every operator on edges knows what to measure, and can be called with it."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import brainevent as be
from brainevent._edge import measure
from brainevent._edge.operator import EdgeOperator
from brainevent._edge.pick import picks_of
from brainevent._edge.scale import scales_of
from brainevent._format import examples
from brainevent._format.compressed import CSR_PRODUCTS
from brainevent._format.ell import FCN_PRODUCTS


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Measure with matrices that are made at once."""
    monkeypatch.setattr(examples, 'NEURONS', 40)
    monkeypatch.setattr(examples, 'SYNAPSES', 5)
    monkeypatch.setattr(examples, 'DENSE_NEURONS', 12)
    measure._drawn.cache_clear()
    yield
    measure._drawn.cache_clear()


# In a process of its own, where nobody but the house has made operators.
EVERY_OPERATOR = """
import brainevent as be
from brainevent._format import examples

examples.NEURONS, examples.SYNAPSES, examples.DENSE_NEURONS = 40, 5, 12
for name, op in be.get_registry().items():
    configs = op._benchmark_data(platform='cpu')
    print(name, len(configs), all(config.data_kwargs['neurons'] for config in configs))
"""


def test_every_operator_of_the_house_can_be_measured():
    done = subprocess.run(
        [sys.executable, '-c', EVERY_OPERATOR], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) > 100
    assert not [name for name, count, all_named in lines if count == '0' or all_named != 'True']


KINDS = (
    'csr_mirrormm', 'binary_csrmv', 'masked_coomm', 'densemm_sample', 'csrmm_dt2t', 'fcnmv_dt2t',
    'update_dense_on_binary_post', 'update_csr_on_binary_pre_clipped', 'csr_slice_rows',
    'csr_elements_grad', 'coo_mirror_index',
)  # fmt: skip


@pytest.mark.parametrize('name', KINDS)
def test_operands_and_call_fit_each_other(name):
    for of in (scales_of, picks_of):
        of(CSR_PRODUCTS), of(FCN_PRODUCTS)
    measure.STRUCTURES['coo_mirror']()
    op = {op.name: op for op in measure.uses()}[name]
    for config in op._benchmark_data(platform='cpu'):
        call = functools.partial(op.call, **config.kernel_kwargs)
        assert all(out.size for out in jax.tree.leaves(jax.eval_shape(call, *config.args)))


@pytest.mark.parametrize('transpose', [False, True])
def test_a_call_is_that_of_the_public_function(transpose):
    straight, transposed = be.csrmv_p._benchmark_data(platform='cpu')
    config = transposed if transpose else straight
    assert config.kernel_kwargs == {'shape': (40, 40), 'transpose': transpose}
    np.testing.assert_array_equal(
        be.csrmv_p.call(*config.args, **config.kernel_kwargs, backend='jax_raw'),
        be.csrmv(*config.args, **config.kernel_kwargs, backend='jax_raw'),
    )


def test_a_call_takes_what_the_public_function_takes():
    got = be.binary_csrmv_p.call(
        [2.0], [0, 1], np.array([0, 2]), jnp.array([1.0, -1.0]), shape=[1, 2], backend='jax_raw'
    )
    assert got.tolist() == [2.0]


def test_an_update_goes_from_rows_or_from_columns():
    (pre,) = be.update_csr_on_binary_pre_p._benchmark_data(platform='cpu')
    (post,) = be.update_coo_on_binary_post_p._benchmark_data(platform='cpu')
    assert (pre.kernel_kwargs['transpose'], post.kernel_kwargs['transpose']) == (True, False)
    np.testing.assert_allclose(
        be.update_csr_on_binary_pre_p.call(*pre.args, shape=(40, 40), backend='jax_raw'),
        be.update_csr_on_binary_pre(*pre.args, shape=(40, 40), backend='jax_raw'),
    )


def test_records_say_what_was_measured(capsys):
    result = be.fcnmv_p.benchmark(platform='cpu', n_warmup=1, n_runs=1, backends=['jax_raw'])
    assert [r.label for r in result.records] == ['straight', 'transposed']
    assert all(r.success for r in result.records)
    assert result.records[0].data_kwargs == {'neurons': 40, 'synapses': 5, 'active': 1.0}
    assert not capsys.readouterr().out


def test_a_layout_without_an_example_says_what_is_missing():
    op = be.XLACustomKernel('measured_nowhere')
    EdgeOperator('measured').attach(op, None)
    with pytest.raises(be.BenchmarkDataFnNotProvidedError, match='def_benchmark_data') as caught:
        op.benchmark(platform='cpu')
    assert 'STRUCTURES' in str(caught.value)
