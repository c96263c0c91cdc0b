# SPDX-License-Identifier: Apache-2.0
"""Names of earlier releases: what they are called now, or what to use instead."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from brainevent._error import explain

__all__ = ['GONE', 'RENAMED', 'lookup']


class Renamed(NamedTuple):
    """The name of today, and in what it behaves otherwise; None if in nothing."""

    name: str
    differs: str | None = None


RENAMED: dict[str, Renamed] = {
    'JITCHomoC': Renamed('JITCScalarC'),
    'JITCHomoR': Renamed('JITCScalarR'),
}
"""Names that go on working here. Others do so as aliases in the file of what they name."""

_TAGS = 'get_registry(), or get_primitives_by_tags({...})'
_PACKED = 'the product without the prefix: it takes encoded events as they are'
_NUMBER = 'FixedNumPerPre or FixedNumPerPost'
_HOOK = 'XLACustomKernel: its method def_{}_kernel registers such a kernel'

GONE: dict[str, str] = {
    'ALL_PRIMITIVES': _TAGS,
    'BaseArray': 'BinaryArray, which has the operators of an array, or jax.numpy itself',
    'BinaryArrayIndex': 'BinaryArray: products find the active elements by themselves',
    'BlockCSR': 'CSR, or Dense where blocks are full',
    'BlockELL': 'FixedNumPerPre, or Dense where blocks are full',
    'CscLayout': _NUMBER,
    'EllLayout': _NUMBER,
    'GPUKernelChoice': 'XLACustomKernel: its method def_kernel takes one kernel a backend',
    'LFSR113RNG': 'PallasLFSR113RNG',
    'LFSR128RNG': 'PallasLFSR128RNG',
    'LFSR88RNG': 'PallasLFSR88RNG',
    'LFSRRNG': 'PallasLFSRRNG',
    'MaskedFloatIndex': 'MaskedFloat: products find the active elements by themselves',
    'bitpack_binary_fcnmm': _PACKED,
    'bitpack_binary_fcnmm_p': _PACKED,
    'bitpack_binary_fcnmv': _PACKED,
    'bitpack_binary_fcnmv_p': _PACKED,
    'compact_binary_fcnmm': _PACKED,
    'compact_binary_fcnmm_p': _PACKED,
    'compact_binary_fcnmv': _PACKED,
    'compact_binary_fcnmv_p': _PACKED,
    'get_primitive_info': _TAGS,
    'get_primitives_by_category': _TAGS,
    'nn': 'layers of brainstate.nn, such as EventLinear, EventFixedNumConn, EventFixedProb',
    'pallas_kernel': _HOOK.format('pallas'),
    'pararnn': 'jax.lax.scan, or jax.lax.associative_scan for linear recurrences',
    'warp_kernel': _HOOK.format('warp'),
}
"""Names without a successor, and what does their work."""


def lookup(name: str, names: Mapping[str, Any]) -> Any:
    """Return what a name of an earlier release stands for among the names of today.

    Raises
    ------
    AttributeError
        If it is none, or one that is gone; then with advice.
    ImportError
        The same, if ``from brainevent import name`` is at work, which hides an AttributeError
        behind a text of its own.
    """
    renamed = RENAMED.get(name)
    if renamed is not None and renamed.name in names:
        if renamed.differs is not None:
            text = f'brainevent.{name} is now {renamed.name}, and differs: {renamed.differs}'
            warnings.warn(text, DeprecationWarning, stacklevel=3)
        return names[renamed.name]
    text = _advice(name, names)
    importer = sys._getframe(2).f_code.co_name  # under lookup and the `__getattr__` of the module
    if text is not None and importer == '_handle_fromlist' and not _is_module(name):
        raise ImportError(text, name=f'brainevent.{name}')
    plain = f"module 'brainevent' has no attribute {name!r}"
    raise AttributeError(text or plain, name=name)


def _advice(name: str, names: Mapping[str, Any]) -> str | None:
    """Return what is known about a name that does not exist."""
    if name in GONE:
        return explain(
            'brainevent',
            f'there is no `{name}` any more.',
            expected='a name of `dir(brainevent)`',
            got=name,
            remedy=f'use {GONE[name]}',
        )
    near = [] if name.startswith('_') else _near(name, names['__all__'])
    if not near:
        return None
    return f"module 'brainevent' has no attribute {name!r}; did you mean {near[0]!r}?"


def _near(name: str, candidates: Sequence[str]) -> list[str]:
    """Return the name that was probably meant, in a list; empty if none is near."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, 0.75)
    return [by_lower[lower] for lower in found]


def _is_module(name: str) -> bool:
    """Return whether an import finds a module of the package; it looks for one last."""
    return importlib.util.find_spec(f'brainevent.{name}') is not None
