# SPDX-License-Identifier: Apache-2.0
"""A library in the cache serves where there is no compiler."""

import pytest

from brainevent._op.kernix.toolchain import so_suffix

LIBRARY = """
import numpy as np, jax
import brainevent as be
SOURCE = '''
#include "brainevent/common.h"
// @BE thrice
void thrice(const BE::Tensor x, BE::Tensor y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 3 * x.data_ptr<float>()[i];
}
'''
x = np.float32([1, 2])
like = jax.ShapeDtypeStruct((2,), np.float32)
module = be.load_cpp_inline('thrices', SOURCE, optimization_level=0)
print(module.function('thrice')(x, outs=like))
"""
OTHER = LIBRARY.replace('= 3 *', '= 4 *') + "print('compiled')"


@pytest.mark.usefixtures('compiler')
def test_a_library_without_a_compiler(folder, child, tmp_path):
    assert child(LIBRARY, cache_dir=folder).output().strip() == '[3. 6.]'
    none = {'PATH': str(tmp_path), 'CXX': None, 'CONDA_PREFIX': None}
    assert child(LIBRARY, cache_dir=folder, **none).output().strip() == '[3. 6.]'
    with pytest.raises(AssertionError, match=r'HostCompilerNotFoundError.*no C\+\+ compiler'):
        child(OTHER, cache_dir=folder, **none).output()
    (library,) = folder.glob(f'thrices-*/*{so_suffix()}')
    library.write_bytes(b'torn')
    with pytest.raises(AssertionError, match='HostCompilerNotFoundError'):
        child(LIBRARY, cache_dir=folder, **none).output()
