# SPDX-License-Identifier: Apache-2.0
"""The host compiler: which one, what it is asked, and every way in which it can fail."""

import os
import signal
import subprocess
import time

import pytest

from brainevent._error import (
    CompilationError,
    HeaderNotFoundError,
    HostCompilerNotFoundError,
    KernelToolchainError,
    OptionError,
)
from brainevent._op.kernix import toolchain
from brainevent._op.kernix.toolchain import HostCxx, Options, find_host_compiler, run_compiler


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that makes a program of a shell script, alone on PATH if asked."""

    def make(name, script='exit 0', folder='bin', on_path=False):
        file = tmp_path / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\n{script}\n')
        file.chmod(0o755)
        if on_path:
            monkeypatch.setenv('PATH', str(file.parent))
        return file

    for variable in ('CXX', 'CONDA_PREFIX'):
        monkeypatch.delenv(variable, raising=False)
    return make


def run(program, tmp_path, timeout=20.0, **more):
    return run_compiler([str(program)], tmp_path, Options('mine', timeout=timeout, **more))


# --- which one ----------------------------------------------------------------------------------


def test_the_compiler_on_path(program):
    clang = program('clang++', on_path=True)
    assert find_host_compiler() == (str(clang),)
    gcc = program('g++')
    assert find_host_compiler() == (str(gcc),)


def test_a_compiler_that_is_named(program, monkeypatch):
    program('g++', on_path=True)
    mine = program('mine', folder='other')
    monkeypatch.setenv('CXX', f'{mine} -m32')
    assert find_host_compiler() == (str(mine), '-m32')


def test_the_compiler_of_conda_goes_first(program, tmp_path, monkeypatch):
    program('g++', on_path=True)
    conda = program('x86_64-conda-linux-gnu-c++', folder='conda/bin')
    monkeypatch.setenv('CONDA_PREFIX', str(tmp_path / 'conda'))
    assert find_host_compiler() == (str(conda),)


def test_no_compiler(program, tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(HostCompilerNotFoundError) as caught:
        HostCxx()
    assert str(caught.value) == (
        'host compiler [E-CXX]: no C++ compiler was found.\n'
        '    expected: a C++ compiler such as g++\n'
        '    got:      none of g++, c++, clang++ on PATH\n'
        '    remedy:   install g++ (apt install g++, conda install cxx-compiler), '
        'or set CXX to one'
    )


@pytest.mark.parametrize('named', ['"g++', "g++ '-O2", '""'])
def test_a_named_compiler_that_no_shell_understands(program, monkeypatch, named):
    program('g++')
    monkeypatch.setenv('CXX', named)
    with pytest.raises(HostCompilerNotFoundError) as caught:
        find_host_compiler()
    assert f'CXX={named}, not found' in str(caught.value)


def test_a_named_compiler_that_is_not_there_is_not_replaced(program, monkeypatch):
    program('g++', on_path=True)
    monkeypatch.setenv('CXX', 'no-such-compiler')
    with pytest.raises(HostCompilerNotFoundError, match='CXX=no-such-compiler, not found'):
        find_host_compiler()


# --- what it is asked ---------------------------------------------------------------------------


def test_the_command(program, tmp_path):
    mine = program('mine', 'echo "$@" > "$(dirname "$0")/asked"')
    options = Options(
        'name', ('/inc',), ('-DX=1',), ('-lm',), optimization=2, fast_math=True
    )  # fmt: skip
    HostCxx([str(mine)]).compile('int x;', tmp_path, tmp_path / 'out.so', options)
    assert (tmp_path / 'name.cpp').read_text() == 'int x;'
    assert (mine.parent / 'asked').read_text().split() == [
        *('-std=c++17', '-shared', '-fPIC', '-fvisibility=hidden', '-O2', '-ffast-math', '-I/inc'),
        *('-DX=1', str(tmp_path / 'name.cpp'), '-o', str(tmp_path / 'out.so'), '-lm'),
    ]


def test_identity(program, monkeypatch):
    mine = program('mine', 'echo "$0 $@ 1.0"')
    before = HostCxx([str(mine)]).identity()
    assert f'{mine} --version 1.0' in before
    assert f'{mine} -dumpmachine 1.0' in before
    monkeypatch.setenv('CPATH', '/some/where')
    assert set(HostCxx([str(mine)]).identity()) - set(before) == {'CPATH=/some/where'}


def test_a_compiler_that_was_replaced_is_asked_again(program):
    mine = program('mine', 'echo 1.0')
    assert toolchain.version([str(mine)]) == '1.0'
    time.sleep(0.02)
    program('mine', 'echo version 2.0')
    assert toolchain.version([str(mine)]) == 'version 2.0'


def test_a_question_that_failed_is_asked_again(program, tmp_path):
    mine = program('mine', f'test -e {tmp_path}/ready && echo 1.0')
    assert 'exit status 1' in toolchain.version([str(mine)])
    (tmp_path / 'ready').touch()
    assert toolchain.version([str(mine)]) == '1.0'


def test_native_flags_ask_what_the_processor_has(program, monkeypatch):
    program('g++', 'echo "$@"', on_path=True)
    assert toolchain.native(['-O3']) == ()
    (answer,) = toolchain.native(['-Xcompiler=-march=native'])
    assert '-march=native -dM' in answer


# --- how it can fail ----------------------------------------------------------------------------


def test_a_refusal_is_told_in_full(program, tmp_path):
    mine = program('mine', 'echo "mine.cpp:3: error: no"; echo again >&2; exit 1')
    with pytest.raises(CompilationError) as caught:
        run(mine, tmp_path)
    error = caught.value
    assert (error.compiler_output, error.command) == ('mine.cpp:3: error: no\nagain\n', str(mine))
    assert str(error) == (
        'mine [E-COMPILE]: the compiler refused the source.\n'
        '    expected: a translation unit that the compiler accepts\n'
        f'    got:      mine.cpp:3: error: no\nagain\n    command:  {mine}\n'
        '    remedy:   mend the source; the error has .dump(), which prints it with line numbers'
    )


def test_an_avalanche_is_shortened(program, tmp_path):
    mine = program('mine', 'for i in 1 2 3 4 5 6 7 8 9; do seq 100; done; exit 1')
    with pytest.raises(CompilationError, match='and 840 more lines') as caught:
        run(mine, tmp_path)
    assert caught.value.compiler_output.count('\n') == 900


def test_a_killed_compiler(program, tmp_path):
    mine = program('mine', 'kill -9 $$')
    with pytest.raises(CompilationError, match='killed by signal 9') as caught:
        run(mine, tmp_path)
    assert 'memory' in str(caught.value)


def test_a_compiler_out_of_time_ends_with_its_children(program, tmp_path):
    child = tmp_path / 'child'
    mine = program('mine', f'sleep 60 & echo $! > {child}; wait')
    with pytest.raises(CompilationError, match=r'stopped after 0\.5 s') as caught:
        run(mine, tmp_path, timeout=0.5)
    assert 'BRAINEVENT_COMPILE_TIMEOUT' in str(caught.value)
    for _ in range(100):
        if is_dead(int(child.read_text())):
            return
        time.sleep(0.05)
    os.kill(int(child.read_text()), signal.SIGKILL)
    pytest.fail('the child of the compiler is still there')


def is_dead(process):
    """Tell whether a process is gone, or a zombie that nobody has asked for."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    done = subprocess.run(['ps', '-o', 'stat=', str(process)], capture_output=True)
    return done.stdout.startswith(b'Z')


def test_a_program_that_cannot_be_started(program, tmp_path):
    mine = program('mine')
    mine.chmod(0o644)
    with pytest.raises(KernelToolchainError, match='cannot be started'):
        run(mine, tmp_path)


def test_scraps_of_the_compiler_stay_in_the_folder(program, tmp_path):
    mine = program('mine', 'touch "$TMPDIR/scrap"; pwd > "$TMPDIR/where"')
    run(mine, tmp_path)
    assert (tmp_path / 'scrap').exists()
    assert (tmp_path / 'where').read_text().strip() == os.getcwd()  # for relative flags


def test_verbose(program, tmp_path, capsys):
    run(program('mine', 'echo said'), tmp_path, verbose=True)
    assert capsys.readouterr().err == f'{program("mine")}\nsaid\n'


def test_debugging(program, monkeypatch, capsys):
    program('g++', on_path=True)
    find_host_compiler()
    assert capsys.readouterr().err == ''
    monkeypatch.setenv('BRAINEVENT_TOOLCHAIN_DEBUG', '1')
    find_host_compiler()
    assert 'host compiler g++: ' in capsys.readouterr().err


@pytest.mark.parametrize(('said', 'seconds'), [('', 600.0), ('5', 5.0), ('0.5', 0.5)])
def test_timeout(monkeypatch, said, seconds):
    monkeypatch.setenv('BRAINEVENT_COMPILE_TIMEOUT', said)
    assert toolchain.compile_timeout() == seconds


@pytest.mark.parametrize('said', ['0', '-1', 'soon', '1e3'])
def test_a_timeout_that_is_none(monkeypatch, said):
    monkeypatch.setenv('BRAINEVENT_COMPILE_TIMEOUT', said)
    with pytest.raises(OptionError, match='positive number of seconds'):
        toolchain.compile_timeout()


def test_a_missing_header_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(toolchain, 'HOUSE_INCLUDE', tmp_path)
    with pytest.raises(HeaderNotFoundError, match='brainevent/ffi.h'):
        toolchain.include_dirs()


def test_include_folders_of_the_user_come_first(tmp_path):
    mine, house, xla = toolchain.include_dirs([tmp_path])
    assert mine == str(tmp_path)
    assert house == str(toolchain.HOUSE_INCLUDE)
    assert 'jaxlib' in xla
