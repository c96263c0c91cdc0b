# SPDX-License-Identifier: Apache-2.0
"""Budgets: how long a file, a function and the package may be, and how much may stand twice.

A code line holds at least one token that is neither a comment nor part of a docstring. A line is
repeated when it lies in a run of at least ``RUN`` consecutive code lines (imports left out) that
stands in another place of the package too; every copy counts, the first one included.

usage: python tools/budgets.py [ROOT]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE, FUNCTION, PACKAGE, REPEATED, RUN = 400, 50, 18_900, 0.05, 6

PACKAGE_FOLDER = 'brainevent'
OTHER_FOLDERS = ('tests', 'validation', 'examples', 'benchmarks', 'tools')

_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Source:
    """One file: where its code lines are, and how long each of its functions is."""

    name: str
    code: dict[int, str]
    functions: dict[str, int]
    imports: frozenset[int]


def _span(node: ast.stmt | ast.expr) -> range:
    first = min([node.lineno, *(d.lineno for d in getattr(node, 'decorator_list', ()))])
    return range(first, (node.end_lineno or node.lineno) + 1)


def _docstring(node: ast.AST) -> ast.stmt | None:
    body = getattr(node, 'body', None)
    if not (isinstance(node, _DOCUMENTED) and body and isinstance(body[0], ast.Expr)):
        return None
    value = body[0].value
    return body[0] if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _functions(tree: ast.AST, prefix: str = '') -> Iterator[tuple[str, ast.stmt]]:
    """Every function with its dotted name, methods and nested ones included."""
    for node in ast.iter_child_nodes(tree):
        name = f'{prefix}{node.name}' if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) else ''
        if isinstance(node, _FUNCTIONS):
            yield name, node
        yield from _functions(node, f'{name}.' if name else prefix)


def read(name: str, text: str) -> Source:
    """Find the code lines, imports and functions of one file's text."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    silent = {i for n in nodes if (doc := _docstring(n)) is not None for i in _span(doc)}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= silent
    lines = text.splitlines()
    return Source(
        name=name,
        code={i: lines[i - 1].strip() for i in sorted(code)},
        functions={
            f'{qualname}:{node.lineno}': sum(i in code for i in _span(node))
            for qualname, node in _functions(tree)
        },
        imports=frozenset(i for n in nodes if isinstance(n, _IMPORTS) for i in _span(n)),
    )


def repeated(sources: list[Source]) -> dict[str, set[int]]:
    """For each file, the numbers of its code lines that stand in another place too."""
    places: dict[tuple[str, ...], list[tuple[str, list[int]]]] = defaultdict(list)
    for source in sources:
        kept = [(i, line) for i, line in source.code.items() if i not in source.imports]
        for start in range(len(kept) - RUN + 1):
            numbers, run = zip(*kept[start : start + RUN], strict=True)
            places[run].append((source.name, list(numbers)))
    marked: dict[str, set[int]] = defaultdict(set)
    for found in places.values():
        if len(found) > 1:
            for name, numbers in found:
                marked[name].update(numbers)
    return dict(marked)


def load(root: Path, folder: str) -> list[Source]:
    """Read every Python file under one folder of the repository."""
    return [
        read(path.relative_to(root).as_posix(), path.read_text(encoding='utf-8'))
        for path in sorted((root / folder).rglob('*.py'))
    ]


def is_test(name: str) -> bool:
    """Tell whether a file is a test or belongs to one."""
    last = name.rsplit('/', 1)[-1]
    return last == 'conftest.py' or last.startswith('test_') or last.endswith('_test.py')


def oversized(sources: list[Source]) -> Iterator[str]:
    """One line of text for each file and each function above its budget."""
    for source in sources:
        if len(source.code) > FILE:
            yield f'{source.name}: {len(source.code)} lines of code, at most {FILE}'
        for function, length in source.functions.items():
            if length > FUNCTION:
                yield f'{source.name}: {function} has {length} lines of code, at most {FUNCTION}'


def check(root: Path) -> tuple[str, list[str]]:
    """Measure the repository at ``root``: a summary, and one line for each budget broken."""
    house = load(root, PACKAGE_FOLDER)
    package = [s for s in house if not is_test(s.name)]
    total = sum(len(s.code) for s in package)
    twice = repeated(package)
    count = sum(map(len, twice.values()))
    share = count / max(total, 1)
    broken = list(oversized(house + [s for folder in OTHER_FOLDERS for s in load(root, folder)]))
    if total > PACKAGE:
        broken.append(f'{PACKAGE_FOLDER}: {total} lines of code, at most {PACKAGE}')
    if share > REPEATED:
        spans = ', '.join(f'{n}:{min(i)}-{max(i)} ({len(i)})' for n, i in sorted(twice.items()))
        broken.append(f'repeated lines: {share:.1%}, at most {REPEATED:.0%}: {spans}')
    summary = (
        f'{PACKAGE_FOLDER}: {len(package)} files, {total} lines of code, '
        f'{count} of them repeated ({share:.1%})'
    )
    return summary, broken


def main(arguments: list[str]) -> int:
    """Print the measurements; the exit status says whether a budget is broken."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    summary, broken = check(root)
    print(summary)
    for line in broken:
        print(line)
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
