# SPDX-License-Identifier: Apache-2.0
"""JAX internals: what the rest of the package relies on holds in this version of JAX."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from brainevent import _compat


def test_tracers_and_concrete_values():
    seen = []
    jax.make_jaxpr(lambda x: seen.append((_compat.is_tracer(x), _compat.is_concrete(x))))(1.0)
    jax.grad(lambda x: seen.append((_compat.is_tracer(x), _compat.is_concrete(x))) or x)(1.0)
    assert seen == [(True, False)] * 2
    for x in (1.0, np.ones(2), jnp.ones(2), True):
        assert (_compat.is_tracer(x), _compat.is_concrete(x)) == (False, True)
    assert not _compat.is_concrete(jax.ShapeDtypeStruct((2,), jnp.float32))


def test_zeros():
    zero = _compat.zero_tangent(jnp.ones(2, jnp.float16))
    assert _compat.is_zero(zero) and not _compat.is_trivial(zero)
    assert _compat.instantiate(zero).dtype == jnp.float16
    assert _compat.is_trivial(_compat.zero_tangent(jnp.ones(2, jnp.int32)))
    assert _compat.is_zero(np.zeros(2, jax.dtypes.float0))
    assert not _compat.is_zero(jnp.zeros(2))
    assert isinstance(_compat.instantiate(np.ones(2)), jax.Array)


def test_a_scope_is_part_of_the_key_of_jit():
    traced = []
    f = jax.jit(lambda x: traced.append(_compat.backend_scope.value) or x)
    f(1.0)
    with _compat.backend_scope((('cpu', 'numba'),)):
        f(1.0)
        f(1.0)
    f(1.0)
    assert traced == [None, (('cpu', 'numba'),)]


def test_importing_the_floor_starts_no_backend_and_no_numba():
    """A module-level array or a probe that imports is enough to start one."""
    code = (
        'import sys; import brainevent.errors, brainevent.config, brainevent._op; '
        'import jax._src.xla_bridge as xb; '
        "assert not xb._backends, xb._backends; assert 'numba' not in sys.modules"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
