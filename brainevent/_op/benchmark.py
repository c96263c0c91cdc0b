# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: measure every backend of an operator on the same data, and keep the records."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from brainevent._error import (
    BenchmarkDataFnNotProvidedError,
    OptionError,
    expect,
    listed,
)
from brainevent._op.benchmark_view import draw, flat_row, show_tables

__all__ = ['BenchmarkConfig', 'BenchmarkRecord', 'BenchmarkResult', 'benchmark_function']


@dataclass(frozen=True)
class BenchmarkConfig:
    """One set of inputs to measure.

    Parameters
    ----------
    name : str
        Label in the records.
    args : tuple
        Arrays for the operator's public function.
    kernel_kwargs : dict
        Its keyword arguments, without ``backend``.
    data_kwargs : dict
        What describes the data, such as sizes and densities; kept in the records.
    """

    name: str
    args: tuple[Any, ...]
    kernel_kwargs: dict[str, Any] = field(default_factory=dict)
    data_kwargs: dict[str, Any] = field(default_factory=dict)

    def put_args(self, device: Any = None) -> tuple[Any, ...]:
        """Return the arguments on a device; what is not an array stays as it is.

        Parameters
        ----------
        device : jax.Device, optional
            JAX's default device if not given.

        Returns
        -------
        tuple
        """
        return jax.tree.map(  # type: ignore[no-any-return]
            lambda x: jax.device_put(x, device) if hasattr(x, 'dtype') else x, tuple(self.args)
        )


@dataclass(frozen=True)
class BenchmarkRecord:
    """One measurement: what ran where, and how long a call took.

    Parameters
    ----------
    platform, backend, label : str
        Where, how, and the name of the configuration.
    mean_ms, std_ms, min_ms : float
        Time of a call in milliseconds; NaN if it failed.
    throughput : float or None
        Calls in a second; None if it failed.
    success : bool
    error : str or None
        What went wrong.
    kernel_kwargs, data_kwargs : dict
        As in the configuration.
    """

    platform: str
    backend: str
    label: str
    mean_ms: float
    std_ms: float
    min_ms: float
    throughput: float | None
    success: bool
    error: str | None
    kernel_kwargs: dict[str, Any]
    data_kwargs: dict[str, Any]


@dataclass(slots=True)
class BenchmarkResult:
    """The records of a benchmark.

    Parameters
    ----------
    records : list of BenchmarkRecord
    primitive_name : str
    """

    records: list[BenchmarkRecord]
    primitive_name: str = ''

    def fastest(self, label: str | None = None) -> BenchmarkRecord | None:
        """Return the successful record with the smallest mean, or None.

        Parameters
        ----------
        label : str, optional
            Look only at this configuration.

        Returns
        -------
        BenchmarkRecord or None
        """
        good = [r for r in self.records if r.success and label in (None, r.label)]
        return min(good, key=lambda r: r.mean_ms, default=None)

    def print(
        self,
        sort_by: str | Sequence[str] | None = None,
        group_by: str | Sequence[str] | None = None,
        compare_by: str | None = None,
        highlight_best: bool = True,
        order_by: str | Sequence[str] | None = None,
        speedup_vs: str | None = None,
        vary_by: str | Sequence[str] | None = None,
    ) -> None:
        """Print the records as tables.

        A column is a field of the records, or a key of their ``kernel_kwargs`` or
        ``data_kwargs``.

        Parameters
        ----------
        sort_by : str or list of str, optional
            Sort the rows of a table by these columns.
        group_by : str or list of str, optional
            Print one table for each value of these columns.
        compare_by : str, optional
            Set the values of this column, such as ``'backend'``, side by side.
        highlight_best : bool
            Mark the fastest record of each label with a star.
        order_by : str or list of str, optional
            Sort all records by these columns first: the order of groups and compared columns.
        speedup_vs : str, optional
            Show how much faster each record is than this backend, or this value of
            ``compare_by``.
        vary_by : str or list of str, optional
            With ``compare_by``: columns that tell the rows apart; ``'label'`` if not given.
        """
        print(f'{self.primitive_name or "benchmark"}: {len(self.records)} records')
        show_tables(
            [flat_row(record) for record in self.records],
            sort_by=sort_by,
            group_by=group_by,
            compare_by=compare_by,
            highlight_best=highlight_best,
            order_by=order_by,
            speedup_vs=speedup_vs,
            vary_by=vary_by,
        )

    def plot(
        self,
        ax: Any = None,
        x: str | None = None,
        y: str = 'mean_ms',
        hue: str | None = None,
        style: str | None = None,
        kind: str = 'line',
        show: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Plot the successful records with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        x, y : str
            Columns; ``x`` is the first key of ``data_kwargs``, else the label, if not given.
        hue, style : str, optional
            Columns that tell lines apart by colour (the backend if not given) and by dashes.
        kind : {'line', 'scatter', 'bar'}
        show : bool
            Show the figure at once.
        **kwargs
            For the plotting function of matplotlib.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        expect(
            kind in ('line', 'scatter', 'bar'),
            OptionError,
            'BenchmarkResult.plot',
            f'unknown kind {kind!r}.',
            expected="'line', 'scatter' or 'bar'",
            got=repr(kind),
        )
        rows = [flat_row(record) for record in self.records if record.success]
        first = next((key for r in self.records for key in r.data_kwargs), 'label')
        return draw(
            rows,
            ax,
            x=x or first,
            y=y,
            hue=hue or 'backend',
            style=style,
            kind=kind,
            show=show,
            options=kwargs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists.

        Returns
        -------
        dict
        """
        return {
            'primitive_name': self.primitive_name,
            'records': [asdict(record) for record in self.records],
        }

    def save(self, path: str | Path, format: str = 'json') -> None:
        """Write the records to a file.

        Parameters
        ----------
        path : str or Path
        format : {'json', 'csv', 'pkl'}

        Raises
        ------
        ValueError
            If the format is not one of these.
        """
        expect(
            format in _WRITERS,
            OptionError,
            'BenchmarkResult.save',
            f'unknown format {format!r}.',
            expected=lambda: 'one of ' + listed(_WRITERS),
            got=repr(format),
        )
        Path(path).write_bytes(_WRITERS[format](self.to_dict()))

    @staticmethod
    def load(path: str | Path) -> BenchmarkResult:
        """Read what `save` wrote, whatever the format. Load pickles only from sources you trust.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        BenchmarkResult
        """
        content = Path(path).read_bytes()
        if content.startswith(b'\x80'):
            found = pickle.loads(content)
        elif content.startswith(b'{'):
            found = json.loads(content)
        else:
            found = _read_csv(content.decode())
        return BenchmarkResult(
            [BenchmarkRecord(**record) for record in found['records']], found['primitive_name']
        )


def benchmark_function(
    fn: Callable[..., Any],
    n_warmup: int,
    n_runs: int,
    n_batch_per_run: int = 1,
    data: tuple[Any, ...] = (),
) -> tuple[float, float, float, float, Any]:
    """Measure a function until its results are ready.

    Parameters
    ----------
    fn : callable
    n_warmup : int
        Calls that are not counted; at least one is made.
    n_runs : int
        Number of measurements.
    n_batch_per_run : int
        Calls in one measurement; the time is divided by it.
    data : tuple
        Arguments of ``fn``.

    Returns
    -------
    mean, std, min, max : float
        Seconds of a call.
    output
        What the last call returned.

    Raises
    ------
    ValueError
        If a number of calls is not positive.

    Examples
    --------
    >>> from brainevent._op.benchmark import benchmark_function
    >>> mean, std, low, high, output = benchmark_function(jnp.sin, 1, 3, data=(jnp.zeros(2),))
    >>> low <= mean <= high, output.shape
    (True, (2,))
    """
    for name, number in (('n_runs', n_runs), ('n_batch_per_run', n_batch_per_run)):
        expect(
            number >= 1,
            OptionError,
            'benchmark_function',
            f'`{name}` is not a number of calls.',
            expected='at least 1',
            got=number,
        )
    for _ in range(max(1, n_warmup)):
        output = jax.block_until_ready(fn(*data))
    seconds = []
    for _ in range(n_runs):
        start = time.perf_counter()
        for _ in range(n_batch_per_run):
            output = fn(*data)
        jax.block_until_ready(output)
        seconds.append((time.perf_counter() - start) / n_batch_per_run)
    mean, std = float(np.mean(seconds)), float(np.std(seconds))
    return mean, std, min(seconds), max(seconds), output


def run_benchmark(
    name: str,
    call: Callable[..., Any] | None,
    data: Callable[..., Iterable[BenchmarkConfig]] | None,
    platform: str,
    backends: Sequence[str],
    *,
    n_warmup: int,
    n_runs: int,
    n_batch_per_run: int,
    compare_results: bool,
    rtol: float,
    atol: float,
    verbose: bool,
    catch_errors: bool,
) -> BenchmarkResult:
    """Measure each backend on each configuration; see `XLACustomKernel.benchmark`."""
    for what, given in (('def_call', call), ('def_benchmark_data', data)):
        expect(
            given is not None,
            BenchmarkDataFnNotProvidedError,
            f'{name}.benchmark',
            'the operator does not know what to measure.',
            expected=f'`{what}(fn)` before `benchmark`',
            got='none',
        )
    assert call is not None and data is not None
    device = jax.devices(platform)[0]
    records = []
    for config in data(platform=platform):
        args = config.put_args(device)
        outputs: dict[str, Any] = {}
        for backend in backends:
            run = jax.jit(partial(call, **config.kernel_kwargs, backend=backend))
            try:
                times = benchmark_function(run, n_warmup, n_runs, n_batch_per_run, args)
                outputs[backend] = times[-1]
                record = _record(platform, backend, config, times)
            except Exception as error:
                if not catch_errors:
                    raise
                record = _record(platform, backend, config, None, error)
            records.append(record)
            if verbose:
                print(f'{name} {config.name} {backend}: {record.error or record.mean_ms}')
        if compare_results:
            _report_mismatches(f'{name} {config.name}', outputs, rtol, atol)
    return BenchmarkResult(records, name)


def _record(
    platform: str,
    backend: str,
    config: BenchmarkConfig,
    times: tuple[Any, ...] | None,
    error: Exception | None = None,
) -> BenchmarkRecord:
    """Turn seconds, or the failure, into a record."""
    mean, std, low = (1e3 * t for t in times[:3]) if times else (math.nan,) * 3
    return BenchmarkRecord(
        platform,
        backend,
        config.name,
        mean,
        std,
        low,
        throughput=1e3 / mean if times and mean > 0 else None,
        success=error is None,
        error=None if error is None else f'{type(error).__name__}: {error}',
        kernel_kwargs=dict(config.kernel_kwargs),
        data_kwargs=dict(config.data_kwargs),
    )


def _report_mismatches(title: str, outputs: dict[str, Any], rtol: float, atol: float) -> None:
    """Print where backends disagree with the first one."""
    (first, reference), *others = outputs.items() if outputs else [('', None)]
    for backend, output in others:
        pairs = zip(jax.tree.leaves(reference), jax.tree.leaves(output), strict=True)
        for position, (a, b) in enumerate(pairs):
            if jax.numpy.shape(a) != jax.numpy.shape(b):
                print(f'{title}: result {position} of {backend!r} and {first!r} differ in shape')
                continue
            a, b = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
            if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
                gap = np.max(np.abs(a - b))
                print(f'{title}: result {position} of {backend!r} and {first!r} differ by {gap}')


def _write_csv(content: dict[str, Any]) -> bytes:
    text = io.StringIO()
    names = ['primitive_name', *(f.name for f in fields(BenchmarkRecord))]
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    for record in content['records']:
        row = {'primitive_name': content['primitive_name'], **record}
        writer.writerow({key: json.dumps(value, default=str) for key, value in row.items()})
    return text.getvalue().encode()


def _read_csv(text: str) -> dict[str, Any]:
    rows = [
        {key: json.loads(value) for key, value in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]
    names = [row.pop('primitive_name') for row in rows]
    return {'primitive_name': names[0] if names else '', 'records': rows}


_WRITERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    'json': lambda content: json.dumps(content, indent=1, default=str).encode(),
    'csv': _write_csv,
    'pkl': pickle.dumps,
}
