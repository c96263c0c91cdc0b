# SPDX-License-Identifier: Apache-2.0
"""Every example runs, and does what it says."""

import importlib.util
import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / 'examples'


@pytest.fixture
def example(request, tmp_path, monkeypatch):
    """Import an example by name, in a folder of its own for what it saves."""
    monkeypatch.chdir(tmp_path)

    def load(name):
        spec = importlib.util.spec_from_file_location(f'example_{name}', FOLDER / f'{name}.py')
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_no_example_is_left_out():
    tested = {name.removeprefix('test_') for name in globals() if name.startswith('test_')}
    assert {path.stem for path in FOLDER.glob('*.py')} <= tested


def test_coba_cuba(example, capsys):
    example('coba_cuba').main(500)
    out = capsys.readouterr().out
    assert 'COBA excitatory' in out and 'CUBA inhibitory' in out


def test_celegans(example, capsys):
    example('celegans').main()
    out = capsys.readouterr().out
    assert 'motor' in out and 'most changed: ' in out


def test_gradients(example):
    assert example('gradients').main(30) > 0.9


def test_kernel_author(example, capsys):
    pytest.importorskip('numba')
    example('kernel_author').main()
    numba, jax_raw = (line.split(': ')[1] for line in capsys.readouterr().out.splitlines()[1:3])
    assert numba == jax_raw


def test_drawn_third_party(example, capsys):
    pytest.importorskip('numba')
    example('drawn_third_party').main(500)
    out = capsys.readouterr().out
    assert 'width 0.50' in out and 'backends agree: True' in out


def test_inline_kernel(example, capsys):
    if not any(map(shutil.which, ('g++', 'c++', 'clang++'))):
        pytest.skip('the example needs a C++ compiler')
    example('inline_kernel').main()
    cpp, jax_raw, *_, refusal = capsys.readouterr().out.splitlines()
    assert cpp.removeprefix('cpp') == jax_raw.removeprefix('jax_raw')
    assert 'spikes are float32[50], not (time, neurons)' in refusal
