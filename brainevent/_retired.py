# SPDX-License-Identifier: Apache-2.0
"""Names of earlier releases: what they are called now, or what to use instead."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
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
    """
    renamed = RENAMED.get(name)
    if renamed is not None and renamed.name in names:
        if renamed.differs is not None:
            text = f'brainevent.{name} is now {renamed.name}, and differs: {renamed.differs}'
            warnings.warn(text, DeprecationWarning, stacklevel=3)
        return names[renamed.name]
    if name in GONE:
        raise AttributeError(
            explain(
                'brainevent',
                f'there is no `{name}` any more.',
                expected='a name of `dir(brainevent)`',
                got=name,
                remedy=f'use {GONE[name]}',
            ),
            name=name,
        )
    raise AttributeError(f"module 'brainevent' has no attribute {name!r}", name=name)
