# SPDX-License-Identifier: Apache-2.0
"""The table of findings in the documentation is whole, and every test it names exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r'^\| (F\d+) \| (.+) \| (.+) \| ((?:`[^`]+`\s*)+)\|$')
NAMED = re.compile(r'`([\w/]+_test\.py)::(test_\w+)`')


def rows():
    """Return the cells of each row by the number of its finding."""
    text = (ROOT / 'docs' / 'findings.md').read_text(encoding='utf-8')
    lines = [line for line in text.splitlines() if line.startswith('| F')]
    found = [ROW.match(line) for line in lines]
    assert all(found), [line for line, row in zip(lines, found, strict=True) if not row]
    return [(row[1], NAMED.findall(row[4]), row[4].count('::')) for row in found]


def names_in(file):
    """Return the test functions of a file that are run every time: the slow ones are not."""
    tree = ast.parse((ROOT / file).read_text(encoding='utf-8'))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not any('slow' in ast.unparse(one) for one in node.decorator_list)
    }


def test_every_finding_has_its_row():
    assert [number for number, _, _ in rows()] == [f'F{k}' for k in range(1, 20)]


def test_every_test_that_is_named_exists():
    missing = []
    for number, named, written in rows():
        assert named and len(named) == written, f'{number}: a test is not written as file::test'
        missing += [f'{number}: {file}::{test}' for file, test in named
                    if not (ROOT / file).is_file() or test not in names_in(file)]  # fmt: skip
    assert not missing
