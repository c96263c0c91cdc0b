# SPDX-License-Identifier: Apache-2.0
"""Keys: all that changes the code changes the key (F3, F4, F10, F12), and nothing else does."""

from dataclasses import replace

import pytest

from brainevent._op.kernix import keys
from brainevent._op.kernix.source import FunctionSpec
from brainevent._op.kernix.tokens import Token
from brainevent._op.kernix.toolchain import Options, include_dirs

F = FunctionSpec('f', (Token('arg'), Token('ret')))
G = FunctionSpec('g', (Token('ret'),))
TEXT = '#include "mine.h"\nvoid f();\n'


@pytest.fixture
def make(tmp_path, toy):
    """Return a function that makes keys; what it is given replaces the defaults."""
    folder = tmp_path / 'include'
    folder.mkdir()
    (folder / 'mine.h').write_text('#include "deeper.h"\n')
    (folder / 'deeper.h').write_text('one')
    (folder / 'unused.h').write_text('one')

    def run(text=TEXT, specs=(F,), graph=True, words=(), folders=(), include=(folder,), **options):
        how = replace(Options('mine', include_dirs(include)), **options)
        return keys.make_keys(text, folders, specs, graph, toy(*words), how)

    run.folder = folder
    return run


CHANGES = {
    'source': {'text': TEXT + ' '},
    'functions': {'specs': (F, G)},
    'tokens': {'specs': (FunctionSpec('f', (Token('arg', dtype='int32'), Token('ret'))),)},
    'graph': {'graph': False},
    'compiler': {'words': ('version 2',)},
    'flag': {'flags': ('-DX=2',)},
    'link flag': {'link_flags': ('-lm',)},
    'optimization': {'optimization': 2},
    'fast math': {'fast_math': True},
}


def test_every_input_changes_the_key(make):
    made = {name: make(**change).key for name, change in CHANGES.items()}
    made['nothing'] = make().key
    assert len(set(made.values())) == len(made)
    assert make().key == make().key


def test_what_does_not_matter(make):
    same = make(verbose=True, timeout=5.0, source_name='other')
    assert same.key == make().key


def test_a_function_is_the_same_in_fewer_functions(make):
    one, both = make(), make(specs=(F, G))
    assert one.key != both.key
    assert one.functions['f'] == both.functions['f'] != both.functions['g']


def test_edited_headers_are_noticed(make):
    before = make()
    (make.folder / 'unused.h').write_text('two')
    assert make().key == before.key
    (make.folder / 'deeper.h').write_text('two')
    assert make().key != before.key
    assert any(path.endswith('brainevent/tensor.h') for path in before.inputs['headers'])
    assert any(path.endswith('xla/ffi/api/c_api.h') for path in before.inputs['headers'])


def test_a_header_that_comes_first_now_is_noticed(make, tmp_path):
    (tmp_path / 'first').mkdir()
    paths = (tmp_path / 'first', make.folder)
    before = make(include=paths)
    assert before.key == make().key
    (tmp_path / 'first' / 'mine.h').write_text('mine')
    assert make(include=paths).key != before.key


def test_the_same_headers_elsewhere_are_the_same(make, tmp_path):
    copy = tmp_path / 'copy'
    copy.mkdir()
    for path in make.folder.iterdir():
        (copy / path.name).write_text(path.read_text())
    assert make(include=(copy,)).key == make().key
    swapped = (copy / 'mine.h').read_text(), (copy / 'deeper.h').read_text()
    (copy / 'mine.h').write_text(swapped[1])
    (copy / 'deeper.h').write_text(swapped[0])
    assert make(include=(copy,)).key != make().key


@pytest.mark.parametrize('how', ['-I', '-I ', '-isystem ', '-include ', 'CPATH', 'beside'])
def test_headers_found_in_other_ways(make, monkeypatch, how):
    deeper = make.folder / 'deeper.h'
    given = {'include': ()}
    if how == 'CPATH':
        monkeypatch.setenv('CPATH', str(make.folder))
    elif how == 'beside':
        given['folders'] = (make.folder,)
    else:
        last = str(deeper if 'include' in how else make.folder)
        given['flags'] = tuple((how + last).split())
    before = make(**given)
    deeper.write_text('two')
    assert make(**given).key != before.key


def test_a_header_that_a_macro_names_can_be_any(make):
    text = '#define H "deeper.h"\n#include H\n'
    before = make(text)
    (make.folder / 'unused.h').write_text('two')
    assert make(text).key != before.key


def test_headers_with_names_that_no_file_can_have(make):
    for name in ('x' * 5000, 'a\0b', '.', '/', '日' * 200):
        make(f'#include "{name}"\n#include <{name}>\n')


def test_headers_that_include_each_other(make):
    (make.folder / 'deeper.h').write_text('#include "mine.h"\n#include "missing.h"\n')
    assert make().key == make().key


def test_native_code_is_of_one_processor(make, monkeypatch):
    monkeypatch.setattr(keys, 'native', lambda flags: ('features',) if flags else ())
    before = make(flags=('-march=native',))
    monkeypatch.setattr(keys, 'native', lambda flags: ('more features',) if flags else ())
    assert make(flags=('-march=native',)).key != before.key
