# SPDX-License-Identifier: Apache-2.0
"""Every Python block of the README and the documentation runs, and shows the result it claims.

The blocks of a page share one namespace, as a reader would type them. An expression followed by
``# -> text`` must have that text as its ``repr``; a block that opens with ``# raises NAME`` must
end in that error, whose message is the text block that follows, if one does.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / 'README.md',
    ROOT / 'CONTRIBUTING.md',
    ROOT / 'tests' / 'README.md',
    *sorted((ROOT / 'docs').glob('*.md')),
]
BLOCK = re.compile(r'^```python\n(.*?)^```\n(?:\n```text\n(.*?)\n```)?', re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\]\((?!https?:|#)([^)#]+)[^)]*\)')
NEEDS = {'compiling-kernels.md': ('g++', 'c++', 'clang++')}  # one of these programs
ALONE = ('CONTRIBUTING.md',)  # adds kernels to operators of the package: in a process of its own
CLAIM = re.compile(r'# -> (.*)$')
RAISES = re.compile(r'# raises (\w+)')


def _blocks(text):
    """Yield ``(line number, code, text that follows or None)`` for each Python block."""
    for match in BLOCK.finditer(text):
        yield text[: match.start(1)].count('\n') + 1, match[1], match[2]


def _show(value):
    return re.sub(r'\s+', ' ', repr(value))


def _execute(code, filename, line, names):
    """Run one block statement by statement; check the results it claims."""
    lines = code.splitlines()
    for statement in ast.increment_lineno(ast.parse(code), line - 1).body:
        claim = CLAIM.search(lines[statement.end_lineno - line])
        if claim and isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), filename, 'eval'), names)
            assert _show(value) == claim[1].strip(), f'{filename}:{statement.lineno}'
        else:
            exec(compile(ast.Module([statement], []), filename, 'exec'), names)


def run_page(text, filename):
    """Run all Python blocks of one page's text."""
    names = {'__name__': '__page__'}
    for line, code, message in _blocks(text):
        raises = RAISES.match(code)
        if raises is None:
            _execute(code, filename, line, names)
            continue
        with pytest.raises(Exception) as caught:
            _execute(code, filename, line, names)
        assert raises[1] in {t.__name__ for t in type(caught.value).__mro__}, f'{filename}:{line}'
        assert message in {None, str(caught.value)}, f'{filename}:{line}'


@pytest.mark.parametrize('page', PAGES, ids=lambda p: p.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    if page.name in NEEDS and not any(map(shutil.which, NEEDS[page.name])):
        pytest.skip(f'{page.name} needs one of {NEEDS[page.name]}')
    monkeypatch.chdir(tmp_path)
    if page.name in ALONE:
        text = page.read_text(encoding='utf-8')
        code = f'from tests.docs_test import run_page; run_page({text!r}, {page.name!r})'
        env = {**os.environ, 'PYTHONPATH': str(ROOT), 'JAX_PLATFORMS': 'cpu'}
        command = [sys.executable, '-c', code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return
    run_page(page.read_text(encoding='utf-8'), str(page.relative_to(ROOT)))


@pytest.mark.parametrize('page', PAGES, ids=lambda p: p.name)
def test_the_links_of_a_page_lead_somewhere(page):
    links = LINK.findall(page.read_text(encoding='utf-8'))
    broken = [link for link in links if not (page.parent / link).exists()]
    assert not broken


def test_a_wrong_claim_is_found():
    with pytest.raises(AssertionError, match='page.md:3'):
        run_page('text\n```python\n1 + 1  # -> 3\n```\n', 'page.md')


def test_a_missing_error_is_found():
    page = '```python\n# raises ValueError\nraise ValueError("what")\n```\n\n```text\nwhat\n```\n'
    run_page(page, 'page.md')
    with pytest.raises(AssertionError, match='page.md:2'):
        run_page(page.replace('text\nwhat', 'text\nwhy'), 'page.md')
    with pytest.raises(pytest.fail.Exception):
        run_page('```python\n# raises ValueError\nint("1")\n```\n', 'page.md')


def test_the_readme_has_one_line_for_each_of_its_two_commands():
    lines = (ROOT / 'README.md').read_text(encoding='utf-8').splitlines()
    for extra, ending in (('plot', 'brainevent demo coba'), ('testing', 'pytest -q -n 2')):
        found = [line for line in lines if f"pip install -q '.[{extra}]'" in line]
        assert len(found) == 1
        assert found[0].startswith('python3 -m venv .venv && ')
        assert found[0].endswith(ending)
