# SPDX-License-Identifier: Apache-2.0
"""nvcc: which one, for which GPUs, its refusals, and the emulator in its place."""

import subprocess

import pytest

from brainevent import config
from brainevent._error import (
    CompilationError,
    GpuArchDetectionError,
    HostCompilerIncompatibleError,
    KernelToolchainError,
    NvccNotFoundError,
    OptionError,
    UnsupportedArchError,
)
from brainevent._op.backends import get_backend_record
from brainevent._op.kernix import nvcc
from brainevent._op.kernix.toolchain import Options


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    """Start from a machine on which nothing is set and nothing is installed."""
    for variable in (
        'BRAINEVENT_NVCC_PATH', 'BRAINEVENT_NVCC_PREFER', 'BRAINEVENT_COMPUTE_CAPABILITIES',
        'BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER', 'BRAINEVENT_CUDA_EMULATOR',
        'CUDA_HOME', 'CUDA_PATH', 'CXX', 'CONDA_PREFIX', 'NVCC_CCBIN',
    ):  # fmt: skip
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / 'bin').mkdir()
    monkeypatch.setenv('PATH', str(tmp_path / 'bin'))
    monkeypatch.setattr(nvcc, '_pip_nvcc', lambda: None)
    monkeypatch.setattr(nvcc, '_DEFAULT_PLACE', str(tmp_path / 'nowhere'))
    monkeypatch.setattr(nvcc, 'cuda_devices', lambda: [])


@pytest.fixture
def program(tmp_path):
    """Return a function that makes a program of a shell script."""

    def make(name, script='exit 0'):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\n{script}\n')
        file.chmod(0o755)
        return str(file)

    return make


# --- which nvcc ---------------------------------------------------------------------------------


def test_the_order_of_places(program, tmp_path, monkeypatch):
    usual = program('usual/bin/nvcc')
    monkeypatch.setattr(nvcc, '_DEFAULT_PLACE', str(tmp_path / 'usual'))
    assert nvcc.find_nvcc() == usual
    system = program('bin/nvcc')
    assert nvcc.find_nvcc() == system
    pip = program('pip/nvcc')
    monkeypatch.setattr(nvcc, '_pip_nvcc', lambda: pip)
    assert nvcc.find_nvcc() == pip
    for variable in ('CUDA_PATH', 'CUDA_HOME'):
        home = program(f'{variable}/bin/nvcc')
        monkeypatch.setenv(variable, str(tmp_path / variable))
        assert nvcc.find_nvcc() == home
    named = program('named/nvcc')
    monkeypatch.setenv('BRAINEVENT_NVCC_PATH', named)
    assert nvcc.find_nvcc() == named
    monkeypatch.setenv('BRAINEVENT_NVCC_PATH', str(tmp_path / 'named'))
    assert nvcc.find_nvcc() == named


def test_the_system_first_if_asked(program, monkeypatch):
    pip, system = program('pip/nvcc'), program('bin/nvcc')
    monkeypatch.setattr(nvcc, '_pip_nvcc', lambda: pip)
    monkeypatch.setenv('BRAINEVENT_NVCC_PREFER', 'system')
    assert nvcc.find_nvcc() == system
    config.prefer_system_nvcc(False)
    assert nvcc.find_nvcc() == pip
    config.prefer_system_nvcc(True)
    monkeypatch.setenv('BRAINEVENT_NVCC_PREFER', 'pip')
    assert nvcc.find_nvcc() == system


def test_a_preference_that_is_none(monkeypatch):
    monkeypatch.setenv('BRAINEVENT_NVCC_PREFER', 'newest')
    with pytest.raises(OptionError, match="'system' or 'pip'"):
        nvcc.find_nvcc()


def test_the_compiler_of_pip(tmp_path, monkeypatch):
    monkeypatch.undo()
    for version in ('cu12', 'cu13'):
        file = tmp_path / 'nvidia' / version / 'bin' / 'nvcc'
        file.parent.mkdir(parents=True)
        (file.parent / 'nvcc.profile').touch()
        file.touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert nvcc._pip_nvcc() == str(file)


def test_no_compiler_tells_where_was_looked(monkeypatch):
    with pytest.raises(NvccNotFoundError) as caught:
        nvcc.find_nvcc()
    text = str(caught.value)
    assert text.startswith('CUDA compiler [E-NVCC]: nvcc was not found.')
    for place in ('CUDA_HOME: not set', 'pip: ', 'PATH: nvcc', 'the usual place: '):
        assert place in text
    monkeypatch.setenv('BRAINEVENT_NVCC_PATH', '/no/such/nvcc')
    with pytest.raises(NvccNotFoundError, match='BRAINEVENT_NVCC_PATH: /no/such/nvcc'):
        nvcc.find_nvcc()


def test_the_backend_says_what_is_missing(program):
    record = get_backend_record('cuda_raw')
    record._ready = False
    assert record.missing().startswith("nvcc was not found (pip install 'jax[cuda13]'")
    program('bin/nvcc')
    assert record.missing().startswith('a C++ compiler for nvcc was not found')
    program('bin/g++')
    assert record.missing() is None
    record._ready = False


def test_the_emulator_needs_no_nvcc(monkeypatch, tmp_path):
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', str(tmp_path))
    assert nvcc.missing_cuda() is True


# --- which GPUs ---------------------------------------------------------------------------------


class Device:
    def __init__(self, capability):
        self.compute_capability = capability


def test_architectures_in_order(program, monkeypatch):
    program('bin/nvidia-smi', 'echo 7.5; echo 8.6; echo 8.6')
    assert nvcc.architectures() == ('sm_75', 'sm_86')
    devices = [Device('9.0'), Device('8.0'), Device('9.0')]
    monkeypatch.setattr(nvcc, 'cuda_devices', lambda: devices)
    assert nvcc.architectures() == ('sm_80', 'sm_90')
    monkeypatch.setenv('BRAINEVENT_COMPUTE_CAPABILITIES', '10.0')
    assert nvcc.architectures() == ('sm_100',)
    config.set_compute_capability('12.0,9.0a')
    assert nvcc.architectures() == ('sm_120', 'sm_90a')
    assert nvcc.architectures('8.9') == ('sm_89',)


def test_no_gpu():
    with pytest.raises(GpuArchDetectionError) as caught:
        nvcc.architectures()
    assert 'compute_capability="9.0"' in str(caught.value)


def test_what_is_no_architecture():
    with pytest.raises(UnsupportedArchError, match="'newest'"):
        nvcc.architectures('newest')


# --- what it is asked, what it refuses ----------------------------------------------------------


def compile_with(script, program, tmp_path, **options):
    program('bin/g++', 'echo "g++ (Debian) 99.1"')
    program('bin/dirname', 'exec /usr/bin/dirname "$@"')
    chain = nvcc.Nvcc(('sm_80', 'sm_90a'), program('bin/nvcc', script))
    chain.compile('int x;', tmp_path, tmp_path / 'out.so', Options('name', **options))
    return chain


def test_the_command(program, tmp_path):
    script = 'echo "$@" > "$(dirname "$0")/asked"'
    given = {'flags': ('-DX=1',), 'link_flags': ('-lcublas',), 'fast_math': True}
    chain = compile_with(script, program, tmp_path, include_dirs=('/inc',), **given)
    assert (tmp_path / 'bin' / 'asked').read_text().split() == [
        *('-std=c++17', '-shared', '-lineinfo', '-O3', '-ccbin', str(tmp_path / 'bin' / 'g++')),
        *('-Xcompiler', '-fPIC,-fvisibility=hidden'),
        '-gencode=arch=compute_80,code=sm_80',
        '-gencode=arch=compute_90a,code=sm_90a',
        *('--use_fast_math', '-I/inc', '-DX=1', str(tmp_path / 'name.cu')),
        *('-o', str(tmp_path / 'out.so'), '-lcublas'),
    ]
    assert {'sm_80', 'sm_90a', 'g++ (Debian) 99.1'} <= set(chain.identity())


REFUSES_HOST = """
echo 'In file included from <command-line>:' >&2
echo '/usr/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 15 are not supported! The nvcc flag '"'-allow-unsupported-compiler'"' can be used to override this version check' >&2
exit 1
"""  # noqa: E501 - the compiler's own words


def test_an_unsupported_host_compiler(program, tmp_path, monkeypatch):
    with pytest.raises(HostCompilerIncompatibleError) as caught:
        compile_with(REFUSES_HOST, program, tmp_path)
    text = str(caught.value)
    assert text.startswith('nvcc [E-HOST]: the CUDA compiler does not accept the C++ compiler.')
    assert 'g++ (Debian) 99.1' in text
    assert 'unsupported GNU version!' in text
    assert 'BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER=1' in text
    assert 'host_config.h' in caught.value.compiler_output
    monkeypatch.setenv('BRAINEVENT_ALLOW_UNSUPPORTED_COMPILER', '1')
    script = 'case "$*" in *-allow-unsupported-compiler*) exit 0;; esac; exit 1'
    compile_with(script, program, tmp_path)


def test_an_unknown_architecture(program, tmp_path):
    script = 'echo "nvcc fatal   : Unsupported gpu architecture \'compute_80\'" >&2; exit 1'
    with pytest.raises(UnsupportedArchError) as caught:
        compile_with(script, program, tmp_path)
    text = str(caught.value)
    assert text.startswith('nvcc [E-ARCH]: the CUDA compiler does not know the GPU architecture.')
    assert 'sm_80, sm_90a' in text
    assert "Unsupported gpu architecture 'compute_80'" in text
    assert caught.value.command


def test_other_refusals_are_about_the_source(program, tmp_path):
    with pytest.raises(CompilationError, match='E-COMPILE'):
        compile_with('echo "x.cu(3): error: no"; exit 2', program, tmp_path)


@pytest.mark.parametrize(('named', 'host'), [('ccache g++', 'g++'), ('g++ -m64', 'g++')])
def test_the_host_of_several_words(program, tmp_path, monkeypatch, named, host):
    program('bin/ccache')
    program('bin/g++')
    monkeypatch.setenv('CXX', named)
    assert nvcc.Nvcc(('sm_90',), 'nvcc').host == str(tmp_path / 'bin' / host)
    monkeypatch.setenv('NVCC_CCBIN', '/other/g++')
    assert nvcc.Nvcc(('sm_90',), 'nvcc').host == '/other/g++'


# --- the emulator -------------------------------------------------------------------------------


def emulator(folder, name):
    folder.mkdir()
    (folder / 'toolchain.py').write_text(f'def toolchain():\n    return {name!r}\n')
    return str(folder)


def test_the_emulator_is_asked_for_anew_each_time(program, tmp_path, monkeypatch):
    program('bin/nvcc')
    program('bin/g++')
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', emulator(tmp_path / 'a', 'first'))
    assert nvcc.cuda_toolchain() == 'first'
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', emulator(tmp_path / 'b', 'second'))
    assert nvcc.cuda_toolchain() == 'second'
    monkeypatch.delenv('BRAINEVENT_CUDA_EMULATOR')
    assert nvcc.cuda_toolchain('9.0').architectures == ('sm_90',)


def test_a_folder_without_emulator(tmp_path, monkeypatch):
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', str(tmp_path))
    with pytest.raises(KernelToolchainError, match=r'a folder with a file toolchain\.py'):
        nvcc.cuda_toolchain()


def test_nvidia_smi_that_hangs_or_fails_is_nothing(program, monkeypatch):
    program('bin/nvidia-smi', 'echo NVIDIA-SMI has failed; exit 9')
    assert nvcc._smi_capabilities() == []

    def hangs(*_, **__):
        raise subprocess.TimeoutExpired('nvidia-smi', 30)

    monkeypatch.setattr(nvcc.subprocess, 'run', hangs)
    assert nvcc._smi_capabilities() == []
