# SPDX-License-Identifier: Apache-2.0
"""Exported programs run in a process that never saw the source."""

import jax
import numpy as np
import pytest

import brainevent as be
from brainevent._op import cache
from brainevent._op.kernix import runtime
from brainevent._op.kernix.exported import register_compiled

CODE = """
import sys
import numpy as np
from jax import export
import brainevent
program = export.deserialize(bytearray(open(sys.argv[1], 'rb').read()))
print(program.call(np.array([1, 2], np.float32)).tolist())
"""
SOURCE = """
#include "brainevent/common.h"
// @BE thrice
void thrice(const BE::Tensor x, BE::Tensor y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 3 * x.data_ptr<float>()[i];
}
"""


@pytest.fixture
def program(folder, compiler, monkeypatch):
    """Export a call of a compiled function, whose library is in a cache of its own."""
    monkeypatch.setattr(runtime, '_libraries', {})
    module = be.load_cpp_inline('kx_export', SOURCE, auto_register=False, optimization_level=0)
    thrice = module['thrice']
    check = jax.export.DisabledSafetyCheck.custom_call(thrice.target)
    x = jax.ShapeDtypeStruct((2,), np.float32)
    jitted = jax.jit(lambda x: thrice(x, outs=x))
    return jax.export.export(jitted, disabled_checks=[check])(x)


def test_in_another_process(program, folder, child, tmp_path):
    (tmp_path / 'program').write_bytes(program.serialize())
    output = child(CODE, tmp_path / 'program', cache_dir=folder).output()
    assert output.strip() == '[3.0, 6.0]'


def test_without_the_library(program, monkeypatch):
    monkeypatch.setattr(runtime, '_targets', {})
    cache.clear_cache()
    with pytest.raises(be.KernelLoadError, match=r'brainevent_kernix\.thrice\.') as caught:
        program.call(np.ones(2, np.float32))
    assert cache.ENVIRONMENT in str(caught.value)


def test_entries_of_no_use_are_passed_over(program, folder, monkeypatch):
    monkeypatch.setattr(runtime, '_targets', {})
    told = []
    monkeypatch.setattr(jax.ffi, 'register_ffi_target', lambda name, *_, **__: told.append(name))
    (entry,) = folder.glob('kx_export-*')
    for name, text in (
        ('a-0', '{'),
        ('a-1', '[]'),
        ('a-2', entry.joinpath('kx_export.json').read_text()),
    ):
        (folder / name).mkdir()
        (folder / name / 'a.json').write_text(text)
    assert register_compiled(program) == tuple(told)
    assert len(told) == 1
