# SPDX-License-Identifier: Apache-2.0
"""The budgets of the house hold, and the tool that measures them counts what it says."""

import pytest

from tools import budgets

TEXT = '''\
"""A docstring
of two lines."""
import os  # noqa

# a comment

def outer(a,
          b):
    """One line."""
    text = """not
    a docstring"""

    def inner():
        return a  # trailing comments do not make a line twice

    return inner


class Thing:
    """Also documented."""

    @property
    def value(self):
        """Read it."""
        return os.name
'''


@pytest.fixture(scope='module')
def source():
    return budgets.read('x.py', TEXT)


def test_the_repository_keeps_its_budgets(pytestconfig):
    summary, broken = budgets.check(pytestconfig.rootpath)
    assert not broken, '\n'.join([summary, *broken])


def test_docstrings_comments_and_blank_lines_are_no_code(source):
    assert list(source.code) == [3, 7, 8, 10, 11, 13, 14, 16, 19, 22, 23, 25]


def test_a_function_is_measured_without_its_docstring(source):
    assert source.functions == {'outer:7': 7, 'outer.inner:13': 2, 'Thing.value:23': 3}


def test_imports_are_known(source):
    assert source.imports == {3}


def _lines(prefix, count):
    return ''.join(f'{prefix}{i} = {i}\n' for i in range(count))


def test_a_run_in_two_files_is_repeated_in_both():
    shared = _lines('same', 6)
    sources = [
        budgets.read('a.py', _lines('a', 3) + shared),
        budgets.read('b.py', '# comment\n' + shared + _lines('b', 3)),
    ]
    assert budgets.repeated(sources) == {'a.py': set(range(4, 10)), 'b.py': set(range(2, 8))}


def test_a_run_may_be_broken_by_comments_and_indentation():
    block = ''.join(f'    x{i} = {i}\n' for i in range(6))
    first = 'def f():\n' + block
    second = 'def g():\n' + '    # why\n\n'.join(block.splitlines(keepends=True))
    marked = budgets.repeated([budgets.read('a.py', first), budgets.read('b.py', second)])
    assert {name: len(lines) for name, lines in marked.items()} == {'a.py': 6, 'b.py': 6}


def test_five_equal_lines_are_allowed_and_imports_do_not_count():
    imports = ''.join(f'import m{i}\n' for i in range(6))
    sources = [
        budgets.read(name, imports + _lines('same', 5) + _lines(name[0], 5))
        for name in ('a.py', 'b.py')
    ]
    assert budgets.repeated(sources) == {}


def test_a_repetition_inside_one_file_is_found():
    text = _lines('same', 6) + 'y = 1\n' + _lines('same', 6)
    assert len(budgets.repeated([budgets.read('a.py', text)])['a.py']) == 12


def test_what_is_too_long_is_named(tmp_path):
    folder = tmp_path / 'brainevent'
    folder.mkdir()
    body = ''.join(f'    x{i} = {i}\n' for i in range(budgets.FUNCTION))
    (folder / 'long.py').write_text('def f():\n' + body + _lines('y', budgets.FILE))
    (folder / 'long_test.py').write_text('def test_f():\n' + body)
    summary, broken = budgets.check(tmp_path)
    assert summary == 'brainevent: 1 files, 451 lines of code, 0 of them repeated (0.0%)'
    assert broken == [
        'brainevent/long.py: 451 lines of code, at most 400',
        'brainevent/long.py: f:1 has 51 lines of code, at most 50',
        'brainevent/long_test.py: test_f:1 has 51 lines of code, at most 50',
    ]


def test_the_command_fails_when_a_budget_is_broken(tmp_path, capsys):
    (tmp_path / 'brainevent').mkdir()
    assert budgets.main([str(tmp_path)]) == 0
    (tmp_path / 'brainevent' / 'long.py').write_text(_lines('y', budgets.FILE + 1))
    assert budgets.main([str(tmp_path)]) == 1
    assert 'at most 400' in capsys.readouterr().out
