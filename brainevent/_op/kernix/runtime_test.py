# SPDX-License-Identifier: Apache-2.0
"""Names and libraries of the process: one name, one content, on every platform."""

from pathlib import Path

import jax
import pytest

from brainevent._error import KernelLoadError, KernelRegistrationError, OptionError
from brainevent._op.kernix import runtime


@pytest.fixture
def xla(monkeypatch):
    """Record what is told to XLA, and tell it nothing."""
    told = []
    monkeypatch.setattr(runtime, '_targets', {})
    monkeypatch.setattr(
        jax.ffi,
        'register_ffi_target',
        lambda name, capsule, platform: told.append((name, capsule, platform)),
    )
    monkeypatch.setattr(runtime, 'cuda_devices', lambda: told.append('asked for devices'))
    return told


def test_identical_content_is_no_op(xla):
    for _ in range(2):
        runtime.register({'m.f': ('capsule', 'content')}, 'cpu', None)
    assert xla == [('m.f', 'capsule', 'cpu')]


@pytest.mark.parametrize('platform', ['cpu', 'CUDA'])
def test_changed_content_is_refused_on_every_platform(xla, platform):
    runtime.register({'m.f': ('capsule', 'content')}, platform, None)
    with pytest.raises(KernelRegistrationError) as caught:
        runtime.register({'m.g': ('capsule', 'new'), 'm.f': ('capsule', 'changed')}, platform, None)
    assert str(caught.value).startswith('m.f: the name stands for other code already')
    for remedy in ('name=', 'target_prefix=', 'auto_register=False', 'module.function'):
        assert remedy in str(caught.value)
    assert runtime.list_registered_targets() == ['m.f']  # all or none


def test_platforms_have_names_of_their_own(xla):
    runtime.register({'m.f': ('capsule', 'one')}, 'cpu', None)
    runtime.register({'m.f': ('capsule', 'two')}, 'CUDA', None)
    assert runtime.list_registered_targets() == ['m.f']


def test_devices_are_asked_for_before_cuda_is_told(xla):
    runtime.register({'m.f': ('capsule', 'content')}, 'CUDA', None)
    assert xla == ['asked for devices', ('m.f', 'capsule', 'CUDA')]


def test_names_of_the_house_are_not_listed(xla):
    runtime.register({'b': (0, '1'), 'a': (0, '2'), f'{runtime.OWN}f.0': (0, '3')}, 'cpu', None)
    assert runtime.list_registered_targets() == ['a', 'b']


@pytest.mark.parametrize('said', ['CUDA', 'cuda', 'gpu', 'GPU'])
def test_cuda_has_one_spelling(said):
    assert runtime.ffi_platform(said, 'test') == 'CUDA'


@pytest.mark.parametrize('said', ['tpu', '', None])
def test_unknown_platforms(said):
    with pytest.raises(OptionError, match="'cpu', 'CUDA'"):
        runtime.ffi_platform(said, 'test')


def test_a_file_that_is_no_library(tmp_path):
    file = tmp_path / 'broken.so'
    file.write_text('not a library')
    with pytest.raises(KernelLoadError) as caught:
        runtime.open_library(file, 'key of a broken library')
    assert str(caught.value).startswith(f'{file}: the library cannot be loaded [E-LOAD].')
    assert runtime.loaded_path('key of a broken library') is None


@pytest.mark.parametrize(
    'symbol',
    ['_ZTVN10__cxxabiv117__class_type_infoE', '_ZNSs4sizeEv', '_Znwm', '__gxx_personality_v0'],
)
def test_a_library_without_the_cpp_library_blames_the_c_driver(tmp_path, monkeypatch, symbol):
    def refuse(path):
        raise OSError(f'{path}: undefined symbol: {symbol}')

    monkeypatch.setattr(runtime.ctypes, 'CDLL', refuse)
    (tmp_path / 'm.so').write_text('')
    with pytest.raises(KernelLoadError, match=r'remedy:   CXX must name a C\+\+ compiler \(g\+\+,'):
        runtime.open_library(tmp_path / 'm.so', 'key of a C driver')
    symbol = 'cublasCreate_v2'
    with pytest.raises(KernelLoadError, match='remedy:   see the link flags'):
        runtime.open_library(tmp_path / 'm.so', 'key of a C driver')


def test_a_torn_library_does_not_end_the_process(shared, tmp_path):
    whole = Path(shared.path).read_bytes()
    for size in (0, 10, 64, 1000, len(whole) // 2, len(whole) - 1):
        file = tmp_path / f'torn{size}.so'
        file.write_bytes(whole[:size])
        with pytest.raises(KernelLoadError):
            runtime.open_library(file, f'torn {size}')


def test_no_gpu_means_no_devices():
    assert runtime.cuda_devices() == []
