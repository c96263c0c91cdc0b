# SPDX-License-Identifier: Apache-2.0
"""Every public name stands on one page of the reference, and its docstring is complete."""

import inspect
import re
from pathlib import Path

import pytest

import brainevent as be

PAGES = sorted((Path(__file__).resolve().parent.parent / 'docs' / 'api').glob('*.md'))
ENTRY = re.compile(r'^(?:::: brainevent\.(\w+)|\| `(\w+)` \|.*)$', re.MULTILINE)
SECTION = re.compile(r'^(\w[\w ]*)\n-+\n', re.MULTILINE)
FUNCTIONS = sorted(n for n in be.__all__ if inspect.isfunction(getattr(be, n)))
CLASSES = sorted(
    n
    for n in be.__all__
    if inspect.isclass(getattr(be, n))
    and not issubclass(getattr(be, n), Exception)
    and '__init__' in vars(getattr(be, n))
    and not inspect.isabstract(getattr(be, n))
)
MADE_BY_FUNCTIONS = {  # documented by what makes them
    'ModuleFunction', 'NumbaKernel', 'NumbaCudaKernel', 'JITCMatrix', 'JITCScalarMatrix',
    'JITCNormalMatrix', 'JITCUniformMatrix',
}  # fmt: skip


def names_on(page):
    return [a or b for a, b in ENTRY.findall(page.read_text(encoding='utf-8'))]


def test_every_public_name_stands_on_one_page():
    found = [name for page in PAGES for name in names_on(page)]
    assert sorted(found) == sorted(be.__all__)


def described(text):
    """Return the names of the entries of a Parameters section."""
    parts = SECTION.split(inspect.cleandoc(text or ''))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    lines = [line for line in sections.get('Parameters', '').splitlines() if line[:1].strip()]
    names = {name.strip().lstrip('*') for line in lines for name in line.split(' : ')[0].split(',')}
    return names, sections


@pytest.mark.parametrize('name', FUNCTIONS)
def test_functions_describe_parameters_and_results(name):
    function = getattr(be, name)
    names, sections = described(function.__doc__)
    signature = inspect.signature(function)
    assert set(signature.parameters) <= names
    if signature.return_annotation not in (None, 'None'):
        assert 'Returns' in sections


@pytest.mark.parametrize('name', sorted(set(CLASSES) - MADE_BY_FUNCTIONS))
def test_classes_describe_what_they_are_made_of(name):
    names, _ = described(getattr(be, name).__doc__)
    wanted = [p for p in inspect.signature(getattr(be, name)).parameters if not p.startswith('_')]
    assert set(wanted) <= names
