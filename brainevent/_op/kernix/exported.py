# SPDX-License-Identifier: Apache-2.0
"""Programs of ``jax.export`` that call compiled modules: found again on disk in another process.

Only the names that modules give to their own functions are found; they derive from content. A name
that a user chose is registered by loading the source under it before the program is called.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from brainevent import _compat
from brainevent._error import KernelLoadError, explain
from brainevent._op import cache
from brainevent._op.kernix import runtime
from brainevent._op.kernix.module import CompiledModule, Origin

_NAME = rb'brainevent_kernix\.(\w+)\.([0-9a-f]{32})(?![0-9a-f])'


def register_compiled(exported: Any) -> tuple[str, ...]:
    """Register the functions of compiled modules that a program calls.

    Parameters
    ----------
    exported : jax.export.Exported

    Returns
    -------
    tuple of str
        Their names.

    Raises
    ------
    KernelLoadError
        If the library of one is not in the cache folder (also an ``OSError``).
    """
    data: bytes = exported.mlir_module_serialized
    found = {(name.decode(), content.decode()) for name, content in re.findall(_NAME, data)}
    for name, content in sorted(found):
        target = f'{runtime.OWN}{name}.{content}'
        if not runtime.is_registered(target) and not _register_from_disk(name, content):
            raise KernelLoadError(
                explain(
                    'exported program',
                    'a compiled function of the program is not known here.',
                    expected=target,
                    got=f'no library with it in {cache.get_cache_dir()}',
                    remedy='load its source once in this process, or set '
                    f'{cache.ENVIRONMENT} to the cache folder of the process that exported',
                )
            )
    return tuple(f'{runtime.OWN}{name}.{content}' for name, content in sorted(found))


def _register_from_disk(name: str, content: str) -> bool:
    """Load the first library that has the function and can be loaded."""
    for entry, record in _records():
        if record.get('functions', {}).get(name) != content:
            continue
        stem = entry.name.rpartition('-')[0]
        path = importlib.import_module('brainevent._op.kernix.build').find(
            entry, stem, record['key']
        )
        if path is None:
            continue
        origin = Origin(stem, record['platform'], record['key'], record['functions'])
        try:
            module = CompiledModule(path, list(record['functions']), _origin=origin)
        except KernelLoadError:
            continue  # of another machine
        module.function(name).register()
        return True
    return False


def _records() -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in sorted(Path(cache.get_cache_dir()).glob('*-*/*.json')):
        try:
            record = json.loads(file.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(record, dict) and {'key', 'platform'} <= set(record):
            yield file.parent, record


_compat.before_exported_call(register_compiled, 'cpu', 'cuda')
