# SPDX-License-Identifier: Apache-2.0
"""Types of warp, looked up in a stand-in for that package."""

import sys
import types

import jax
import jax.numpy as jnp
import pytest

import brainevent as be


@pytest.fixture
def warp(monkeypatch):
    names = ['bool', 'float16', 'float32', 'float64', 'int8', 'uint8', 'int32', 'uint64']
    module = types.ModuleType('warp')
    for name in names:
        setattr(module, name, f'warp.{name}')
    module.array = lambda *, dtype, ndim: (dtype, ndim)
    monkeypatch.setitem(sys.modules, 'warp', module)
    return module


@pytest.mark.parametrize('dtype', ['bool', 'float16', 'float32', 'int8', 'uint8', jnp.int32])
def test_types_have_their_names(dtype, warp):
    name = jnp.dtype(dtype).name
    assert be.jaxtype_to_warptype(dtype) == getattr(warp, name)


@pytest.mark.parametrize('dtype', ['bfloat16', 'complex64', 'float8_e5m2', 'int4'])
def test_types_that_warp_lacks_are_refused(dtype, warp):
    with pytest.raises(ValueError, match=f'warp has no type for {dtype}'):
        be.jaxtype_to_warptype(jnp.dtype(dtype))


def test_arrays_have_a_type_and_axes(warp):
    struct = jax.ShapeDtypeStruct((3, 4), jnp.float32)
    assert be.jaxinfo_to_warpinfo(struct) == ('warp.float32', 2)
    with pytest.raises(be.ShapeError, match='at least one axis'):
        be.jaxinfo_to_warpinfo(jax.ShapeDtypeStruct((), jnp.float32))


def test_without_warp_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'warp', None)
    for call in (be.jaxtype_to_warptype, be.jaxinfo_to_warpinfo):
        with pytest.raises(ImportError, match='pip install warp-lang'):
            call('float32')
