# SPDX-License-Identifier: Apache-2.0
"""``brainevent benchmark-performance``: measure operators with every backend of a platform."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import jax

import brainevent as be

__all__ = ['best_backend', 'run']


def run(args: argparse.Namespace) -> int:
    """Carry out the command.

    Parameters
    ----------
    args : argparse.Namespace
        The parsed arguments.

    Returns
    -------
    int
        Exit status: 1 if no operator carries the tags, or if nothing could be measured.

    Raises
    ------
    argparse.ArgumentError
        If this machine does not have the platform.
    """
    platform = args.platform or jax.default_backend()
    device = _device(platform)
    tags = {tag.strip() for tag in args.data.split(',') if tag.strip()}
    chosen = be.get_primitives_by_tags(tags)
    if not chosen:
        known = sorted(set().union(*(op.tags for op in be.get_registry().values())))
        print(
            f'no operator carries all of {sorted(tags)}; tags: {", ".join(known)}', file=sys.stderr
        )
        return 1
    print(
        f'{len(chosen)} operators on {device.device_kind} ({platform}): mean time of a call in ms'
    )
    print('* marks the fastest backend')
    results = {}
    for name in sorted(chosen):
        result = _measure(chosen[name], platform, args)
        if result is not None:
            results[name] = result
            _show(result)
    if args.output is not None:
        args.output.write_text(json.dumps(_report(platform, device, args, results), indent=1))
        print(f'saved {args.output}')
    return 0 if any(record.success for r in results.values() for record in r.records) else 1


def best_backend(result: be.BenchmarkResult) -> str | None:
    """Return the backend that did all configurations of an operator in the least time, or None.

    Parameters
    ----------
    result : BenchmarkResult

    Returns
    -------
    str or None
        Only a backend that did as many configurations as any other counts.
    """
    times: dict[str, list[float]] = {}
    for record in result.records:
        if record.success:
            times.setdefault(record.backend, []).append(record.mean_ms)
    most = max(map(len, times.values()), default=0)
    complete = {name: sum(each) for name, each in times.items() if len(each) == most}
    return min(complete, key=complete.__getitem__, default=None)


def _measure(op: Any, platform: str, args: argparse.Namespace) -> be.BenchmarkResult | None:
    try:
        return op.benchmark(  # type: ignore[no-any-return]
            platform=platform, n_warmup=args.n_warmup, n_runs=args.n_runs
        )
    except be.BenchmarkDataFnNotProvidedError:
        print(f'{op.name}: no data to measure it with')
        return None


def _show(result: be.BenchmarkResult) -> None:
    result.print(compare_by='backend')
    for record in result.records:
        if record.error is not None:
            print(f'  {record.label}, {record.backend}: {record.error}')


def _report(
    platform: str, device: Any, args: argparse.Namespace, results: dict[str, be.BenchmarkResult]
) -> Any:
    report = {
        'platform': platform,
        'device': device.device_kind,
        'brainevent': be.__version__,
        'jax': jax.__version__,
        'n_warmup': args.n_warmup,
        'n_runs': args.n_runs,
        'results': {name: result.to_dict()['records'] for name, result in results.items()},
        'best': {name: best_backend(result) for name, result in results.items()},
    }
    # What failed has no time; JSON has no word for that but null.
    return json.loads(json.dumps(report, default=str), parse_constant=lambda _: None)


def _device(platform: str) -> Any:
    try:
        return jax.devices(platform)[0]
    except RuntimeError as error:
        there = jax.default_backend()
        raise argparse.ArgumentError(
            None, f'--platform {platform}: this machine has none that JAX shows; it has {there}'
        ) from error
