# SPDX-License-Identifier: Apache-2.0
"""Registry: names, tags, and two operators of one name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brainevent._op import (
    XLACustomKernel,
    get_all_primitive_names,
    get_primitives_by_tags,
    get_registry,
)

pytestmark = pytest.mark.usefixtures('on_cpu')


def test_names_and_tags():
    one, two = XLACustomKernel('registry_one'), XLACustomKernel('registry_two')
    one.def_tags('csr', 'binary')
    two.def_tags('csr', 'float')
    assert get_registry()['registry_one'] is one
    assert get_all_primitive_names() == sorted(get_registry())
    assert set(get_primitives_by_tags({'csr'})) >= {'registry_one', 'registry_two'}
    found = get_primitives_by_tags({'csr', 'binary'})
    assert 'registry_one' in found and 'registry_two' not in found
    assert 'registry_two' in get_primitives_by_tags('float')
    assert get_primitives_by_tags(['csr', 'no such tag']) == {}


def test_the_registry_is_a_copy():
    XLACustomKernel('registry_copy')
    get_registry().clear()
    assert 'registry_copy' in get_registry()


def test_a_second_operator_of_a_name_warns_and_leaves_the_first_usable():
    """The newcomer took the name in silence."""
    one = XLACustomKernel('registry_twice')
    with pytest.warns(UserWarning, match="'registry_twice' exists already") as caught:
        two = XLACustomKernel('registry_twice')
    assert caught[0].filename == __file__
    assert get_registry()['registry_twice'] is two
    out = jax.ShapeDtypeStruct((2,), jnp.float32)
    for number, op in enumerate([one, two]):
        op.def_kernel('jax_raw', 'cpu', lambda number=number, **_: lambda x: [x + number])
    for number, op in enumerate([one, two]):
        np.testing.assert_array_equal(op(np.zeros(2, np.float32), outs=out), [number] * 2)
