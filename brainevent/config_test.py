# SPDX-License-Identifier: Apache-2.0
"""Settings: validation, defaults, and when caches are cleared."""

import os
import threading

import jax
import pytest

import brainevent.errors as errors
from brainevent import config


@pytest.fixture
def clears(monkeypatch):
    """Count calls of jax.clear_caches."""
    calls = []
    monkeypatch.setattr(jax, 'clear_caches', lambda: calls.append(1))
    return calls


def test_a_platform_is_one_of_three():
    for call in (
        lambda: config.set_backend('cuda', 'jax_raw'),
        lambda: config.get_backend('npu'),
        lambda: config.use_backend('npu', 'jax_raw'),
    ):
        with pytest.raises(errors.BackendError, match="one of 'cpu', 'gpu', 'tpu'"):
            call()


@pytest.mark.parametrize('backend', ['', 'no_such', 3, b'numba'])
def test_a_backend_is_a_known_name(backend):
    for call in (lambda: config.set_backend('cpu', backend), lambda: config.use_backend(backend)):
        with pytest.raises(errors.BackendError, match="one of 'numba', 'jax_raw', 'cuda_raw'"):
            call()
    assert config.get_backend('cpu') is None


def test_set_get_clear():
    config.set_backend('cpu', 'numba')
    config.set_backend('gpu', 'jax_raw')
    assert (config.get_backend('cpu'), config.get_backend('gpu')) == ('numba', 'jax_raw')
    config.set_backend('cpu', None)
    assert config.get_backend('cpu') is None
    config.clear_backends()
    assert config.get_backend('gpu') is None


def test_scopes_nest_and_end():
    with config.use_backend('jax_raw'):
        assert dict(config.current_scope()) == dict.fromkeys(config.PLATFORMS, 'jax_raw')
        with config.use_backend('cpu', 'numba'):
            assert dict(config.current_scope())['cpu'] == 'numba'
            with config.use_backend(None):
                assert config.current_scope() is None
        assert dict(config.current_scope())['cpu'] == 'jax_raw'
    assert config.current_scope() is None


def test_one_scope_object_may_be_entered_again_inside_itself():
    scope = config.use_backend('cpu', 'numba')
    with scope, scope:
        assert config.current_scope() == (('cpu', 'numba'),)
    assert config.current_scope() is None


def test_a_scope_ends_with_an_exception():
    with pytest.raises(KeyError), config.use_backend('numba'):
        raise KeyError
    assert config.current_scope() is None


def test_a_scope_decorates_functions():
    @config.use_backend('numba')
    def inside():
        return config.current_scope()

    assert inside() == (('cpu', 'numba'),)
    assert config.current_scope() is None


def test_a_scope_belongs_to_its_thread():
    seen = []
    with config.use_backend('numba'):
        other = threading.Thread(target=lambda: seen.append(config.current_scope()))
        other.start()
        other.join()
    assert seen == [None]


def test_use_backend_takes_one_or_two_arguments():
    with pytest.raises(TypeError, match='use_backend'):
        config.use_backend()


def test_threads_of_a_cpu_kernel(clears):
    assert config.get_numba_parallel() is False
    assert config.get_numba_num_threads() is None
    assert config.cpu_threads() == os.cpu_count()
    config.set_numba_parallel(True, num_threads=3)
    assert (config.get_numba_parallel(), config.get_numba_num_threads()) == (True, 3)
    assert config.cpu_threads() == 3
    config.set_numba_parallel(False, num_threads=3)
    assert config.cpu_threads() == 1
    config.set_numba_parallel()
    assert (config.get_numba_parallel(), config.cpu_threads()) == (True, os.cpu_count())


def test_only_another_share_of_threads_clears_caches(clears):
    config.set_numba_parallel(True, num_threads=1)
    config.set_numba_parallel(False)
    assert len(clears) == (os.cpu_count() != 1)
    config.set_numba_parallel(True, num_threads=1)
    assert len(clears) == (os.cpu_count() != 1)


@pytest.mark.parametrize('number', [0, -1, 2.5, True, '2'])
def test_a_number_of_threads_is_positive(number):
    with pytest.raises(errors.OptionError, match='num_threads'):
        config.set_numba_parallel(True, num_threads=number)


def test_lfsr_algorithm():
    assert config.get_lfsr_algorithm() == 'lfsr88'
    config.set_lfsr_algorithm('lfsr128')
    assert config.get_lfsr_algorithm() == 'lfsr128'
    with pytest.raises(ValueError, match="one of 'lfsr88', 'lfsr113', 'lfsr128'"):
        config.set_lfsr_algorithm('mt19937')


@pytest.mark.parametrize(
    ('value', 'normal'),
    [
        ('8.6', ['sm_86']),
        ('86', ['sm_86']),
        ('sm_90a', ['sm_90a']),
        ('compute_75', ['sm_75']),
        ('8.6,9.0', ['sm_86', 'sm_90']),
        (['sm_80', '9.0a'], ['sm_80', 'sm_90a']),
        (['8.6', '8.6'], ['sm_86']),
        ('12.0', ['sm_120']),
        (8.6, ['sm_86']),
        ('', None),
        (None, None),
    ],
)
def test_compute_capability_is_normalised(value, normal):
    config.set_compute_capability(value)
    assert config.get_compute_capability() == normal


@pytest.mark.parametrize('value', ['9', 'abc', '8.6+PTX', '8.6 9.0', '8.66', ['sm_'], 9, [None]])
def test_compute_capability_is_refused(value):
    with pytest.raises(errors.UnsupportedArchError, match='GPU architecture'):
        config.set_compute_capability(value)
    assert config.get_compute_capability() is None


def test_the_list_of_capabilities_is_a_copy():
    config.set_compute_capability('8.6')
    config.get_compute_capability().append('sm_1')
    assert config.get_compute_capability() == ['sm_86']


def test_prefer_system_nvcc():
    assert config.get_prefer_system_nvcc() is None
    config.prefer_system_nvcc()
    assert config.get_prefer_system_nvcc() is True
    config.prefer_system_nvcc(False)
    assert config.get_prefer_system_nvcc() is False
