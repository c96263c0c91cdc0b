# SPDX-License-Identifier: Apache-2.0
"""Event arrays: what users wrap a vector in, so that ``@`` counts its events."""

from brainevent._event.arrays import BinaryArray, EventArray, EventRepresentation, MaskedFloat

__all__ = ['BinaryArray', 'EventArray', 'EventRepresentation', 'MaskedFloat']
