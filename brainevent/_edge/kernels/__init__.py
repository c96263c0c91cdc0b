# SPDX-License-Identifier: Apache-2.0
"""Kernels of the operators on edges, one backend a file; importing a file registers it.

The first kernel registered on a platform is its default: native code before the reference.
"""

from brainevent._edge.kernels import numba_cpu as numba_cpu  # noqa: I001 -- order is preference
from brainevent._edge.kernels import jax_raw as jax_raw
from brainevent._edge.kernels import update as update
from brainevent._edge.kernels import dense as dense
from brainevent._edge.kernels import drawn as drawn
from brainevent._edge.kernels import jax_drawn as jax_drawn
from brainevent._edge.kernels import scale as scale
from brainevent._edge.kernels import pick as pick
from brainevent._edge.kernels import cuda_raw as cuda_raw
from brainevent._edge.kernels import cuda_libraries as cuda_libraries
from brainevent._edge.kernels import cuda_drawn as cuda_drawn
from brainevent._edge.kernels import listed as listed
