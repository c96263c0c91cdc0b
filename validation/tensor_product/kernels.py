# SPDX-License-Identifier: Apache-2.0
"""Kernels of the tensor product: loops over the samples and terms, in numba; CUDA in product.cu.

Every kernel adds term after term to its outputs. Nobody clears the memory of an output before a
kernel is called, so each kernel does so first: what was in it belongs to somebody else.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

import brainevent as be


@numba.njit
def forward(places, c, x, y, w, z):  # type: ignore[no-untyped-def]
    """Write ``z``."""
    z[:] = 0
    for b in range(x.shape[0]):
        row = b if w.shape[0] > 1 else 0
        for t in range(c.size):
            i, j, k, n = places[0, t], places[1, t], places[2, t], places[3, t]
            z[b, n] += c[t] * x[b, i] * y[b, j] * w[row, k]


@numba.njit
def backward(places, c, x, y, w, g, gx, gy, gw):  # type: ignore[no-untyped-def]
    """Write the gradients of Q with respect to x, y and w."""
    gx[:] = 0
    gy[:] = 0
    gw[:] = 0
    for b in range(x.shape[0]):
        row = b if w.shape[0] > 1 else 0
        for t in range(c.size):
            i, j, k, n = places[0, t], places[1, t], places[2, t], places[3, t]
            cg = c[t] * g[b, n]
            gx[b, i] += cg * y[b, j] * w[row, k]
            gy[b, j] += cg * x[b, i] * w[row, k]
            gw[row, k] += cg * x[b, i] * y[b, j]


@numba.njit
def double_backward(places, c, x, y, w, g, dx, dy, dw, gx, gy, gw, gg):  # type: ignore[no-untyped-def]
    """Write the gradients of D with respect to x, y, w and g."""
    gx[:] = 0
    gy[:] = 0
    gw[:] = 0
    gg[:] = 0
    for b in range(x.shape[0]):
        row = b if w.shape[0] > 1 else 0
        for t in range(c.size):
            i, j, k, n = places[0, t], places[1, t], places[2, t], places[3, t]
            cg = c[t] * g[b, n]
            gx[b, i] += cg * (dy[b, j] * w[row, k] + y[b, j] * dw[row, k])
            gy[b, j] += cg * (dx[b, i] * w[row, k] + x[b, i] * dw[row, k])
            gw[row, k] += cg * (dx[b, i] * y[b, j] + x[b, i] * dy[b, j])
            through = dx[b, i] * y[b, j] * w[row, k] + x[b, i] * dy[b, j] * w[row, k]
            gg[b, n] += c[t] * (through + x[b, i] * y[b, j] * dw[row, k])


KERNELS = {'forward': forward, 'backward': backward, 'double_backward': double_backward}


def numba_generator(name: str) -> Callable[..., Any]:
    """Make the kernel generator of an operator."""
    return lambda *, outs: be.numba_kernel(KERNELS[name], outs)


def cuda_generator(name: str) -> Callable[..., Any]:
    """Make the kernel generator of an operator; nothing is compiled before it is called."""
    source = Path(__file__).with_name('product.cu')
    return lambda *, outs: be.load_cuda_file(source, auto_register=False).kernel(name)(outs=outs)
