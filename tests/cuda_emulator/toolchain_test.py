# SPDX-License-Identifier: Apache-2.0
"""Building for the emulator: what decides a library, and what it says when it cannot build."""

import shutil

import numpy as np
import pytest

import brainevent
from brainevent import errors
from brainevent._op.kernix.toolchain import HostCxx, Options
from tests.cuda_emulator import control, toolchain

pytestmark = pytest.mark.skipif(control.missing() is not None, reason=str(control.missing()))


def test_mode_and_sources_decide_the_library():
    check, plain = toolchain.Emulator('check').identity(), toolchain.Emulator('plain').identity()
    assert check != plain
    assert set(check) - set(plain) == {'check'}


def test_mode_comes_from_the_environment():
    with control.environment(**{toolchain.MODE: None}):
        assert toolchain.toolchain().mode == 'check'
    with control.environment(**{toolchain.MODE: 'plain'}):
        assert toolchain.toolchain().mode == 'plain'
    with (
        control.environment(**{toolchain.MODE: 'fast'}),
        pytest.raises(errors.OptionError, match="got: +'fast'"),
    ):
        toolchain.toolchain()


@pytest.mark.parametrize(
    ('setting', 'value'),
    [
        ('SCHEDULE', 'sideways'), ('SCHEDULE', 'random:x'), ('SCHEDULE', 'random:'),
        ('SCHEDULE', 'forward:1'), ('SCHEDULE', 'preempt:-1'), ('SCHEDULE', 'Reverse'),
        ('LIMIT', 'many'), ('LIMIT', '0'), ('LIMIT', '-5'), ('LIMIT', '1e6'), ('LIMIT', '10k'),
        ('MODE', 'plain '),
    ],
)  # fmt: skip
def test_nonsense_in_the_environment_is_told_when_a_source_is_loaded(setting, value):
    variable = f'BRAINEVENT_CUDA_EMULATOR_{setting}'
    allowed = {
        'SCHEDULE': 'forward, reverse, random, random:SEED, preempt or preempt:SEED',
        'LIMIT': 'a positive number of memory accesses in one launch',
        'MODE': 'check or plain',
    }
    with (
        control.emulated(),
        control.environment(**{variable: value}),
        pytest.raises(errors.OptionError) as caught,
    ):
        brainevent.load_cuda_inline('emulator_settings', SOURCE, auto_register=False)
    text = str(caught.value)
    assert text.startswith(variable)
    assert f'expected: {allowed[setting]}\n    got:      {value!r}' in text


@pytest.mark.parametrize(
    'value', ['forward', 'reverse', 'random', 'random:7', 'preempt', 'preempt:0', '']
)
def test_schedules_and_limits_that_there_are(value):
    for limit in ('1', '300000', '99999999999999999999', ''):
        with control.schedule(value), control.environment(BRAINEVENT_CUDA_EMULATOR_LIMIT=limit):
            assert toolchain.toolchain().mode


def test_another_compiler_than_gcc_is_passed_over(tmp_path):
    clang = tmp_path / 'clang++'
    clang.write_text('#!/bin/sh\necho clang version 18\n')
    clang.chmod(0o755)
    with control.environment(CXX=str(clang)):
        assert HostCxx().command == (str(clang),)
        assert toolchain.Emulator().command == (shutil.which('g++'),)
        with (
            control.environment(PATH=str(tmp_path)),
            pytest.raises(errors.HostCompilerNotFoundError, match='g\\+\\+ on PATH'),
        ):
            toolchain.Emulator()


def test_flags_of_nvcc_that_mean_nothing_to_gcc_are_dropped():
    flags = ('-DN=3', '-D', 'M', '--use_fast_math', '-Xcompiler', '-O2', '-lineinfo', '-I/a')
    assert toolchain._for_host(flags) == ['-DN=3', '-D', 'M', '-I/a']


def test_what_the_text_pass_refuses_is_a_compilation_error(tmp_path):
    source = '#line 5 "mine.cu"\nvoid f() { k<<<1, 2>>>; }\n'
    with pytest.raises(errors.CompilationError) as caught:
        toolchain.Emulator().compile(source, tmp_path, tmp_path / 'm.so', Options('m'))
    assert 'mine.cu:5: no arguments after <<<...>>>' in str(caught.value)


def test_runtime_is_built_where_the_cache_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / 'file').write_text('')
    monkeypatch.setattr(toolchain, 'get_cache_dir', lambda: str(tmp_path / 'file' / 'cache'))
    built = []

    def compiler(command, folder, options):
        built.append(command)
        (folder / 'runtime.o').write_text('')

    monkeypatch.setattr(toolchain, 'run_compiler', compiler)
    made = toolchain.Emulator()._runtime(tmp_path, Options('m'))
    assert str(toolchain._HERE / 'runtime' / 'all.cc') in built[0]
    assert made == tmp_path / 'runtime.o' and made.is_file()


SOURCE = """
#include <brainevent/common.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
// @BE scale
void scale(const BE::Tensor x, BE::Tensor y, int64_t stream) {
  int n = (int)x.numel();
  auto s = (cudaStream_t)stream;
  twice<<<(n + 31) / 32, 32, 0, s>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
"""


def test_a_setting_that_does_not_exist_is_a_finding_at_the_next_launch():
    with control.emulated('plain'):
        module = brainevent.load_cuda_inline('emulator_schedule', SOURCE, auto_register=False)
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(module.function('scale')(x, outs=x), [2, 2, 2])
    with (
        control.schedule('sideways'),
        pytest.raises(Exception, match='SCHEDULE is sideways: forward, reverse'),
    ):
        np.asarray(module.function('scale')(x, outs=x))
    for setting, value in (('SCHEDULE', 'random:x'), ('SCHEDULE', 'reverse:2'), ('LIMIT', 'few')):
        with (
            control.environment(**{f'BRAINEVENT_CUDA_EMULATOR_{setting}': value}),
            pytest.raises(Exception, match=f'{setting} is {value}: '),
        ):
            np.asarray(module.function('scale')(x, outs=x))
