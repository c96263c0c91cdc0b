# SPDX-License-Identifier: Apache-2.0
"""Types of arrays as the warp package names them, for authors of its kernels."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from brainevent._error import DtypeError, ShapeError, expect, explain
from brainevent._keywords import also_named

__all__ = ['jaxinfo_to_warpinfo', 'jaxtype_to_warptype']

# The two packages share these names but for the boolean, which is 'bool' in both.
_SHARED = frozenset(
    ('bool', 'float16', 'float32', 'float64')
    + tuple(f'{sign}int{bits}' for sign in ('', 'u') for bits in (8, 16, 32, 64))
)


class WarpTypeError(DtypeError, ValueError):
    """Warp has no type for this dtype."""


def jaxtype_to_warptype(dtype: Any) -> Any:
    """Return the type of warp for a dtype.

    Parameters
    ----------
    dtype : dtype_like

    Returns
    -------
    type of the warp package
        Such as ``warp.float32``.

    Raises
    ------
    ImportError
        If warp is not installed.
    ValueError
        If warp has no such type.
    """
    warp = _warp('jaxtype_to_warptype')
    name = np.dtype(dtype).name
    expect(
        name in _SHARED,
        WarpTypeError,
        'jaxtype_to_warptype',
        f'warp has no type for {name}.',
        expected=lambda: 'one of ' + ', '.join(sorted(_SHARED)),
        got=name,
    )
    return getattr(warp, name)


@also_named(struct='jax_info')
def jaxinfo_to_warpinfo(jax_info: Any) -> Any:
    """Return the type of a warp array with the dtype and number of axes of a JAX one.

    Parameters
    ----------
    jax_info : jax.ShapeDtypeStruct or Array

    Returns
    -------
    type of the warp package
        As ``warp.array(dtype=..., ndim=...)`` makes it.

    Raises
    ------
    ImportError
        If warp is not installed.
    ValueError
        If warp has no such type, or if there are no axes.
    """
    warp = _warp('jaxinfo_to_warpinfo')
    expect(
        len(jax_info.shape) > 0,
        ShapeError,
        'jaxinfo_to_warpinfo',
        'a scalar is no array to warp.',
        expected='at least one axis',
        got=lambda: f'shape {jax_info.shape}',
        remedy='reshape it to one element',
    )
    return warp.array(dtype=jaxtype_to_warptype(jax_info.dtype), ndim=len(jax_info.shape))


def _warp(where: str) -> Any:
    """Import warp, which only authors of its kernels need."""
    try:
        return importlib.import_module('warp')
    except ImportError as cause:
        raise ImportError(
            explain(
                where,
                'warp is not installed.',
                expected='the package warp-lang',
                got=str(cause),
                remedy='pip install warp-lang',
            )
        ) from cause
