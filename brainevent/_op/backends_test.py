# SPDX-License-Identifier: Apache-2.0
"""Backend records: probes are lazy, never import, and are asked again until they agree."""

import sys

import pytest

from brainevent import errors
from brainevent._op import Backend, XLACustomKernel, get_backend_record, register_backend
from brainevent._op.backends import backend_platforms


def test_house_records():
    platforms = backend_platforms()
    assert platforms['numba'] == ('cpu',)
    assert platforms['jax_raw'] == ('cpu', 'gpu', 'tpu')
    assert platforms['cuda_raw'] == ('gpu',)
    assert platforms['pallas'] == ('gpu', 'tpu')
    assert {'numba_cuda', 'triton', 'warp', 'cublas', 'cusparse'} <= set(platforms)


def test_a_probe_is_asked_until_it_says_true():
    answers = ['not yet', False, True]
    record = register_backend(Backend('backends_lazy', ('cpu',), lambda: answers.pop(0), 'wait'))
    assert record.missing() == 'not yet (wait)'
    assert record.missing() == 'backends_lazy cannot run here (wait)'
    assert record.missing() is None
    assert record.missing() is None
    assert answers == []


def test_numba_blocked_counts_as_missing(monkeypatch):
    record = Backend('numba', ('cpu',), get_backend_record('numba').probe, 'pip install numba')
    monkeypatch.setitem(sys.modules, 'numba', None)
    assert record.missing() == "the package 'numba' is not installed (pip install numba)"


def test_a_module_without_a_spec_counts_as_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, 'warp', type(sys)('warp'))
    assert Backend('warp', ('gpu',), get_backend_record('warp').probe).missing() is None


def test_a_guest_brings_its_own_name():
    op = XLACustomKernel('backends_guest')
    op.def_kernel('guest', 'cpu', lambda **_: len)
    op.def_kernel('guest', 'tpu', lambda **_: len)
    assert get_backend_record('guest').platforms == ('cpu', 'tpu')
    assert get_backend_record('guest').missing() is None


def test_a_record_names_known_platforms():
    with pytest.raises(errors.BackendError, match="unknown platform 'npu'"):
        register_backend(Backend('backends_bad', ('npu',)))
