# SPDX-License-Identifier: Apache-2.0
"""Ways to look at benchmark records: tables of text, and a figure."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

__all__ = ['draw', 'flat_row', 'show_tables']

Row = dict[str, Any]
Names = str | Sequence[str] | None
Lines = list[list[str]]  # the cells of a table, its head first

_COLUMNS = ('platform', 'backend', 'label', 'mean_ms', 'std_ms', 'min_ms', 'throughput', 'error')


def flat_row(record: Any) -> Row:
    """Return the fields of a record with its keyword arguments spread out beside them."""
    row = asdict(record)
    return {**row.pop('kernel_kwargs'), **row.pop('data_kwargs'), **row}


def show_tables(
    rows: list[Row],
    *,
    sort_by: Names,
    group_by: Names,
    compare_by: str | None,
    highlight_best: bool,
    order_by: Names,
    speedup_vs: str | None,
    vary_by: Names,
) -> None:
    """Print one table for each group of rows; see `BenchmarkResult.print`."""
    rows = _sorted(rows, order_by)
    groups = _names(group_by)
    seen: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        seen.setdefault(_said(row, groups), []).append(row)
    for values, group in seen.items():
        if groups:
            print(', '.join(f'{n}={v}' for n, v in zip(groups, values, strict=True)))
        group = _sorted(group, sort_by)
        best = _best(group) if highlight_best else set()
        if compare_by is None:
            lines = _plain(group, best, speedup_vs)
        else:
            lines = _pivot(group, best, compare_by, _names(vary_by) or ('label',), speedup_vs)
        _print(lines)


def draw(
    rows: list[Row],
    ax: Any,
    *,
    x: str,
    y: str,
    hue: str,
    style: str | None,
    kind: str,
    show: bool,
    options: dict[str, Any],
) -> Any:
    """Draw one line, cloud or set of bars for each combination of ``hue`` and ``style``."""
    pyplot = importlib.import_module('matplotlib.pyplot')
    if ax is None:
        ax = pyplot.figure().add_subplot()
    names = tuple(dict.fromkeys(filter(None, (hue, style))))
    lines = groupby(sorted(rows, key=_key(names)), key=_key(names))
    hues, styles = (_numbering(rows, name) for name in (hue, style))
    for _, members in lines:
        group = sorted(members, key=_key((x,)))
        label = ', '.join(_said(group[0], names))
        colour = f'C{hues[_say(group[0].get(hue))] % 10}'
        xs, ys = [row.get(x) for row in group], [row.get(y) for row in group]
        looks = {'label': label, 'color': colour, **options}
        if kind == 'line':
            dashes = ('-', '--', ':', '-.')[styles[_say(group[0].get(style))] % 4] if style else '-'
            ax.plot(xs, ys, **{'linestyle': dashes, 'marker': 'o', **looks})
        else:
            (ax.scatter if kind == 'scatter' else ax.bar)(xs, ys, **looks)
    ax.set(xlabel=x, ylabel=y)
    ax.legend()
    if show:
        pyplot.show()
    return ax


def _plain(rows: list[Row], best: set[int], speedup_vs: str | None) -> Lines:
    """Return one line for each record."""
    spread = [name for row in rows for name in row if name not in (*_COLUMNS, 'success')]
    names = [*_COLUMNS[:3], *dict.fromkeys(spread), *_COLUMNS[3:]]
    names = [name for name in names if any(row.get(name) is not None for row in rows)]
    titles = [f'{name} (1/s)' if name == 'throughput' else name for name in names]
    lines = [[*titles, *(['speedup'] if speedup_vs else [])]]
    base = {row['label']: row['mean_ms'] for row in rows if row['backend'] == speedup_vs}
    for row in rows:
        cells = [_say(row.get(name)) for name in names]
        if id(row) in best:
            cells[names.index('mean_ms')] += ' *'
        if speedup_vs:
            cells.append(_ratio(base.get(row['label']), row['mean_ms']))
        lines.append(cells)
    return lines


def _pivot(
    rows: list[Row],
    best: set[int],
    compare_by: str,
    vary_by: tuple[str, ...],
    speedup_vs: str | None,
) -> Lines:
    """Return one line for each value of ``vary_by``, one column for each of ``compare_by``."""
    columns = list(dict.fromkeys(_say(row.get(compare_by)) for row in rows))
    table: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        table.setdefault(_said(row, vary_by), {})[_say(row.get(compare_by))] = row
    lines = [[*vary_by, *(f'{column} (ms)' for column in columns)]]
    for values, cells in table.items():
        base = cells.get(speedup_vs or '', {}).get('mean_ms')
        line = list(values)
        for column in columns:
            row = cells.get(column, {})
            text = _say(row.get('mean_ms')) + (' *' if id(row) in best else '')
            line.append(f'{text} ({_ratio(base, row["mean_ms"])})' if speedup_vs and row else text)
        lines.append(line)
    return lines


def _print(lines: Lines) -> None:
    """Print a table: by rich on a terminal or in a notebook, if it is there, else in plain text."""
    try:
        rich = importlib.import_module('rich')
        table = importlib.import_module('rich.table').Table(*lines[0])
        text = importlib.import_module('rich.text').Text
    except ImportError:
        print(_aligned(lines))
        return
    console = rich.get_console()
    if not (console.is_terminal or console.is_jupyter):
        print(_aligned(lines))
        return
    for line in lines[1:]:
        table.add_row(*(text(cell, 'bold green' if ' *' in cell else '') for cell in line))
    console.print(table)


def _aligned(lines: Lines) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[cell.ljust(w) for cell, w in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ['-' * width for width in widths])
    return '\n'.join('  '.join(line).rstrip() for line in padded)


def _best(rows: list[Row]) -> set[int]:
    """Identify the fastest successful row of each label."""
    fastest: dict[Any, Row] = {}
    for row in filter(lambda row: row['success'], rows):
        held = fastest.get(row['label'])
        if held is None or row['mean_ms'] < held['mean_ms']:
            fastest[row['label']] = row
    return {id(row) for row in fastest.values()}


def _ratio(base: float | None, value: float) -> str:
    return '-' if base is None or not value > 0 or math.isnan(base) else f'{base / value:.2f}x'


def _sorted(rows: list[Row], by: Names) -> list[Row]:
    return sorted(rows, key=_key(_names(by))) if by else rows


def _key(names: tuple[str, ...]) -> Callable[[Row], Any]:
    """Return a sorting key that holds numbers before everything else."""

    def key(row: Row) -> Any:
        values = [row.get(name) for name in names]
        return [(0, v, '') if isinstance(v, int | float) else (1, 0, _say(v)) for v in values]

    return key


def _numbering(rows: Iterable[Row], name: str | None) -> dict[str, int]:
    values = dict.fromkeys(_say(row.get(name)) for row in rows) if name else {}
    return {value: number for number, value in enumerate(values)}


def _said(row: Row, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_say(row.get(name)) for name in names)


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names or ())


def _say(value: Any) -> str:
    if value is None:
        return '-'
    text = f'{value:.4g}' if isinstance(value, float) else str(value)
    return text.splitlines()[0] if text else text
