# SPDX-License-Identifier: Apache-2.0
"""Compiler backends: a text in, a library out."""

import ctypes

import pytest

import brainevent as be
from brainevent._op.kernix import compilers

TEXT = 'extern "C" __attribute__((visibility("default"))) int answer() { return ANSWER; }'


@pytest.mark.usefixtures('compiler')
def test_cpp(tmp_path):
    path = be.CPPBackend().compile_source(
        TEXT, tmp_path / 'lib.so', tmp_path / 'scraps', extra_cflags=['-DANSWER=42']
    )
    assert path == str(tmp_path / 'lib.so')
    assert ctypes.CDLL(path).answer() == 42
    assert (tmp_path / 'scraps' / 'lib.cpp').exists()
    with pytest.raises(be.CompilationError):
        be.CPPBackend().compile_source(TEXT, tmp_path / 'lib.so', tmp_path)
    with pytest.raises(TypeError):
        be.CPPBackend().compile_source(TEXT, tmp_path / 'lib.so', tmp_path, no_such_option=1)


def test_a_toolchain_of_ones_own(tmp_path, toy):
    mine = toy()
    be.CUDABackend(mine).compile_source(
        'text', tmp_path / 'lib.so', tmp_path, extra_cuda_cflags=['-a'], optimization_level=1
    )
    assert (tmp_path / 'lib.so').read_text() == 'TEXT'
    assert (mine.seen[2].flags, mine.seen[2].optimization) == (('-a',), 1)


def test_cuda_by_default(tmp_path, toy, monkeypatch):
    asked = []
    tools = compilers._module('nvcc')
    monkeypatch.setattr(tools, 'cuda_toolchain', lambda archs: asked.append(archs) or toy())
    be.CUDABackend().compile_source('text', tmp_path / 'lib.so', tmp_path, gpu_arch='sm_90')
    assert asked == ['sm_90']


def test_hip(tmp_path):
    with pytest.raises(NotImplementedError, match='HIP is not supported'):
        be.HIPBackend().compile_source('text', tmp_path / 'lib.so', tmp_path)


def test_what_a_backend_must_have():
    with pytest.raises(TypeError):
        be.CompilerBackend()
    names = [b.platform_name for b in (be.CPPBackend, be.CUDABackend, be.HIPBackend)]
    assert names == ['cpu', 'CUDA', 'ROCM']
