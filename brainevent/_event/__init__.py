# SPDX-License-Identifier: Apache-2.0
"""Event arrays: what users wrap a vector in, so that ``@`` counts its events."""

from brainevent._event.arrays import (
    BinaryArray,
    BitPackedBinary,
    EventArray,
    EventRepresentation,
    MaskedFloat,
)
from brainevent._event.bitpack import bitpack
from brainevent._event.compact import CompactBinary

__all__ = [
    'BinaryArray',
    'BitPackedBinary',
    'CompactBinary',
    'EventArray',
    'EventRepresentation',
    'MaskedFloat',
    'bitpack',
]
