# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: records of every backend, failures kept, tables and files."""

import json
import math
import sys

import brainunit as u
import jax
import numpy as np
import pytest

from brainevent import errors
from brainevent._op import (
    BenchmarkConfig,
    BenchmarkRecord,
    BenchmarkResult,
    XLACustomKernel,
    benchmark_function,
)


@pytest.fixture
def op():
    """An operator with a good, a wrong and a broken backend."""
    op = XLACustomKernel('benchmark_op')
    op.def_kernel('good', 'cpu', lambda *, c, outs: lambda x: [x * c])
    op.def_kernel('wrong', 'cpu', lambda *, c, outs: lambda x: [x * c + 1])
    op.def_kernel('broken', 'cpu', lambda **_: 1 / 0)
    op.def_call(
        lambda x, c=1.0, backend=None: op(
            x, c=c, backend=backend, outs=[jax.ShapeDtypeStruct(x.shape, x.dtype)]
        )[0]
    )
    op.def_benchmark_data(
        lambda *, platform: [
            BenchmarkConfig(f'n={n}', (np.arange(n, dtype=np.float32),), {'c': 2.0}, {'n': n})
            for n in (4, 8)
        ]
    )
    return op


def record(backend, mean, label='a', success=True, **data):
    return BenchmarkRecord(
        'cpu',
        backend,
        label,
        mean,
        0.5,
        mean,
        1e3 / mean,
        success,
        None if success else 'no',
        {'transpose': False},
        data,
    )


RECORDS = [
    record('numba', 2.0, n=10),
    record('jax_raw', 4.0, n=10),
    record('numba', 3.0, 'b', n=9),
    record('jax_raw', 1.5, 'b', n=9),
    record('broken', math.nan, 'b', success=False, n=9),
]


def test_every_backend_gets_a_record_for_every_configuration(op, capsys):
    result = op.benchmark(platform='cpu', n_warmup=1, n_runs=2)
    assert [(r.backend, r.label) for r in result.records] == [
        (b, n) for n in ('n=4', 'n=8') for b in ('good', 'wrong', 'broken')
    ]
    good, _, broken = result.records[:3]
    assert good.success and good.error is None and good.mean_ms > 0
    assert good.throughput == pytest.approx(1e3 / good.mean_ms)
    assert (good.kernel_kwargs, good.data_kwargs) == ({'c': 2.0}, {'n': 4})
    assert not broken.success and math.isnan(broken.mean_ms) and broken.throughput is None
    assert 'ZeroDivisionError' in broken.error
    assert result.primitive_name == 'benchmark_op'
    assert "n=4: result 0 of 'wrong' and 'good' differ by 1.0" in capsys.readouterr().out


def test_benchmark_options(op, capsys):
    with pytest.raises(errors.KernelCompilationError):
        op.benchmark(platform='cpu', n_runs=1, catch_errors=False)
    result = op.benchmark(
        platform='cpu',
        n_runs=1,
        n_batch_per_run=2,
        backends=['wrong', 'good'],
        compare_results=False,
        verbose=True,
    )
    assert [r.backend for r in result.records[:2]] == ['wrong', 'good']
    printed = capsys.readouterr().out
    assert 'benchmark_op n=4 wrong' in printed and 'differ' not in printed
    with pytest.raises(ValueError, match='unknown platform'):
        op.benchmark(platform='npu')


def test_an_operator_must_know_what_to_measure():
    op = XLACustomKernel('benchmark_nothing')
    with pytest.raises(errors.BenchmarkDataFnNotProvidedError, match='`def_call\\(fn\\)` before'):
        op.benchmark(platform='cpu')
    op.def_call(len)
    with pytest.raises(errors.BenchmarkDataFnNotProvidedError, match='`def_benchmark_data'):
        op.benchmark(platform='cpu')


def test_benchmark_function_counts_its_calls():
    calls = []
    mean, std, low, high, output = benchmark_function(
        lambda a, b: calls.append(1) or a + b, 2, 3, 4, (1, 2)
    )
    assert len(calls) == 2 + 3 * 4
    assert 0 <= low <= mean <= high and std >= 0
    assert output == 3
    with pytest.raises(ValueError, match='`n_runs`'):
        benchmark_function(len, 1, 0)


def test_put_args_moves_arrays_and_leaves_the_rest(cpu):
    config = BenchmarkConfig('x', (np.ones(2), {'k': 3}, None))
    array, other, nothing = config.put_args(cpu)
    assert isinstance(array, jax.Array) and array.devices() == {cpu}
    assert (other, nothing) == ({'k': 3}, None)
    assert (config.kernel_kwargs, config.data_kwargs) == ({}, {})


def test_fastest():
    result = BenchmarkResult(RECORDS)
    assert result.fastest().backend == 'jax_raw'
    assert result.fastest('a').backend == 'numba'
    assert result.fastest('none') is None


@pytest.mark.parametrize('format', ['json', 'csv', 'pkl'])
def test_files_give_back_what_was_saved(tmp_path, format):
    result = BenchmarkResult(RECORDS[:4], 'op')
    result.save(tmp_path / 'records', format=format)
    again = BenchmarkResult.load(str(tmp_path / 'records'))
    assert again == result
    assert again.to_dict() == result.to_dict()


def test_a_file_format_is_checked(tmp_path):
    with pytest.raises(ValueError, match="one of 'json', 'csv', 'pkl'"):
        BenchmarkResult([]).save(tmp_path / 'x', format='xml')
    BenchmarkResult([], 'p').save(tmp_path / 'x')
    assert json.loads((tmp_path / 'x').read_text()) == {'primitive_name': 'p', 'records': []}


def test_plain_table(capsys):
    BenchmarkResult(RECORDS, 'op').print(speedup_vs='jax_raw', sort_by='mean_ms')
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'op: 5 records'
    assert lines[1].split() == [
        'platform',
        'backend',
        'label',
        'transpose',
        'n',
        'mean_ms',
        'std_ms',
        'min_ms',
        'throughput',
        '(1/s)',
        'error',
        'speedup',
    ]
    assert lines[3].split() == [
        'cpu',
        'jax_raw',
        'b',
        'False',
        '9',
        '1.5',
        '*',
        '0.5',
        '1.5',
        '666.7',
        '-',
        '1.00x',
    ]
    assert lines[4].split()[-1] == '2.00x'


def test_compared_columns(capsys):
    BenchmarkResult(RECORDS, 'op').print(
        compare_by='backend', vary_by='n', sort_by='n', order_by='backend', speedup_vs='jax_raw'
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ['n', 'broken', '(ms)', 'jax_raw', '(ms)', 'numba', '(ms)']
    assert lines[3] == ['9', 'nan', '(-)', '1.5', '*', '(1.00x)', '3', '(0.50x)']
    assert lines[4] == ['10', '-', '4', '(1.00x)', '2', '*', '(2.00x)']


def test_a_terminal_gets_a_table_of_rich(monkeypatch, capsys):
    rich = pytest.importorskip('rich')
    console = pytest.importorskip('rich.console').Console(force_terminal=True, width=120)
    monkeypatch.setattr(rich, 'get_console', lambda: console)
    BenchmarkResult(RECORDS, 'op').print(compare_by='backend')
    out = capsys.readouterr().out
    assert '\x1b[1;32m2 *' in out  # the best in bold green
    assert '┃' in out


def test_a_table_is_plain_without_rich(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'rich', None)
    BenchmarkResult(RECORDS, 'op').print(compare_by='backend')
    assert 'label  numba' in capsys.readouterr().out


def test_groups(capsys):
    BenchmarkResult(RECORDS).print(group_by='label', highlight_best=False)
    printed = capsys.readouterr().out
    assert 'label=a\n' in printed and 'label=b\n' in printed and '*' not in printed


def test_an_empty_result_prints(capsys):
    BenchmarkResult([]).print()
    assert capsys.readouterr().out == 'benchmark: 0 records\n'


@pytest.mark.parametrize('kind', ['line', 'scatter', 'bar'])
def test_plot(kind):
    matplotlib = pytest.importorskip('matplotlib')
    matplotlib.use('Agg')
    figure = pytest.importorskip('matplotlib.figure').Figure()
    ax = figure.add_subplot()
    assert BenchmarkResult(RECORDS).plot(ax, kind=kind, style='label') is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ('n', 'mean_ms')
    assert len(ax.get_legend().get_texts()) == 4
    with pytest.raises(ValueError, match="'line', 'scatter' or 'bar'"):
        BenchmarkResult(RECORDS).plot(kind='pie')


def test_results_with_units_and_trees_are_compared(op, capsys):
    op.def_call(lambda x, c=1.0, backend=None: {'y': (x + float(backend == 'wrong')) * u.mV})
    op.benchmark(platform='cpu', n_runs=1, backends=['good', 'wrong'])
    assert "result 0 of 'wrong' and 'good' differ by 1.0" in capsys.readouterr().out
    op.def_call(lambda x, c=1.0, backend=None: x[:2] if backend == 'wrong' else x)
    op.benchmark(platform='cpu', n_runs=1, backends=['good', 'wrong'])
    assert "result 0 of 'wrong' and 'good' differ in shape" in capsys.readouterr().out
