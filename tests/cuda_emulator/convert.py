# SPDX-License-Identifier: Apache-2.0
"""The text pass: launches and shared variables, which g++ cannot parse, become calls.

================================================  =================================================
CUDA                                              C++ (see ``include/cuemu/launch.h``)
================================================  =================================================
``k<T, 4><<<grid, block, bytes, stream>>>(a)``    ``cuemu::launch("k<T, 4>", ..., a)``
``__shared__ float s[32][33];``                   ``auto& s = cuemu::shared<float[32][33]>(...);``
``extern __shared__ float s[];``                  ``float* s = cuemu::dynamic_shared<float>();``
================================================  =================================================

Line numbers are kept, so that findings and the compiler's messages lead to the CUDA text. The
headers that a text includes are converted as well; the rest of CUDA's vocabulary is headers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from brainevent._op.kernix.cpptext import blank

_OPENING, _CLOSING = '([{', ')]}'
_SPECIFIER = r'(?:extern|static|volatile|(?:alignas|__align__)\((?:[^()]|\([^()]*\))*\))'
_SHARED = re.compile(
    rf'(?P<head>(?:\b{_SPECIFIER}\s+)*)\b__shared__\s+(?P<more>(?:{_SPECIFIER}\s+)*)'
    r'(?P<rest>[^;=]+?);'
)
_NAMED = re.compile(r'(?P<type>.*?)(?P<name>\b\w+)\s*(?P<extents>(?:\[[^\]]*\]\s*)*)', re.DOTALL)
_NAMESPACE = re.compile(r'(?:\bnamespace\b[\s\w:]*|\bextern\s*)$')  # extern "C", blanked
_PRESUMED = re.compile(r'^#line[ \t]+(?P<line>\d+)[ \t]+"(?P<file>[^"]*)"', re.M)
_INCLUDE = re.compile(r'^(?P<before>[ \t]*#[ \t]*include[ \t]*)(?P<what>"[^"\n]+"|<[^>\n]+>)', re.M)


def convert(text: str) -> str:
    """Return CUDA C++ as C++ of the same lines."""
    return _shared_variables(_launches(text))


class ConversionError(SyntaxError):
    """A launch or a shared variable that the text pass does not understand."""


def _refuse(text: str, at: int, what: str) -> ConversionError:
    """Return an error that names the place as ``#line`` has it."""
    file, line = 'kernel', text.count('\n', 0, at) + 1
    for found in _PRESUMED.finditer(text, 0, at):
        file = Path(found['file']).name
        line = int(found['line']) + text.count('\n', found.end(), at) - 1
    return ConversionError(f'{file}:{line}: {what}')


def _after(text: str, start: int) -> int:
    """Return the index just after the bracket that closes the one at ``start``."""
    opening, closing = text[start], _CLOSING[_OPENING.index(text[start])]
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == opening) - (text[i] == closing)
        if depth == 0:
            return i + 1
    raise _refuse(text, start, f'{text[start]} is never closed')


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and (text[at].isspace() or text[at] == '\\'):
        at += 1
    return at


def _callee_start(text: str, end: int) -> int:
    """Return where the callee before ``text[end]`` starts: names, template arguments, brackets."""
    at = end
    while True:
        while at and (text[at - 1].isspace() or text[at - 1] == '\\'):
            at -= 1
        if at and text[at - 1] in '>)]':
            at = _before(text, at - 1)
            if text[at] == '(':
                return at
            continue
        start = at
        while start and re.match(r'[\w:#]', text[start - 1]):
            start -= 1
        if start == at:
            raise _refuse(text, end, 'no kernel before <<<')
        return start


def _before(text: str, at: int) -> int:
    """Return the index of the bracket that the closing one at ``at`` belongs to."""
    angles, rounds, last = 0, 0, at
    while True:
        c = text[at]
        rounds += (c in _CLOSING) - (c in _OPENING)
        if rounds == 0 and text[at - 1 : at + 1] != '->':
            angles += (c == '>') - (c == '<')
        if rounds == 0 and angles == 0:
            return at
        at -= 1
        if at < 0:
            raise _refuse(text, last, f'{text[last]} before <<< is never opened')


def _launches(text: str) -> str:
    pieces, position = [], 0
    seen, _ = blank(text)
    while (opening := seen.find('<<<', position)) >= 0:
        if re.search(r'\boperator\s*$', seen[:opening]):  # operator<< <T>
            pieces.append(text[position : opening + 3])
            position = opening + 3
            continue
        start = _callee_start(seen, opening)
        closing = opening + 3
        while seen[closing : closing + 3] != '>>>':
            if closing >= len(seen):
                raise _refuse(text, opening, '<<< is never closed')
            closing = _after(seen, closing) if seen[closing] in _OPENING else closing + 1
        bracket = _skip_space(seen, closing + 3)
        if seen[bracket : bracket + 1] != '(':
            raise _refuse(text, opening, 'no arguments after <<<...>>>')
        end = _after(seen, bracket)
        callee, configuration = text[start:opening], text[opening + 3 : closing]
        arguments, given = text[bracket + 1 : end - 1], seen[bracket + 1 : end - 1].strip(' \\\n\t')
        gap = '\\\n' * text.count('\n', closing, bracket)
        pieces += (
            text[position:start],
            f'cuemu::launch("{_as_name(callee)}", cuemu::Configuration({configuration}), '
            f'[=](auto... cuemu_x) {{ {callee}(cuemu_x...); }}{gap}',
            f', {arguments})' if given else f'{arguments})',
        )
        position = end
    return ''.join([*pieces, text[position:]])


def _as_name(callee: str) -> str:
    flat = re.sub(r'\s+', ' ', callee.replace('\\\n', ' ')).strip()
    return flat.replace('#', '').replace('\\', '').replace('"', "'")


def _shared_variables(text: str) -> str:
    pieces, position = [], 0
    seen, _ = blank(text)
    for found in _SHARED.finditer(seen):
        words = f'{found["head"]}{found["more"]}'
        rest = text[found.start('rest') : found.end('rest')]
        pieces.append(text[position : found.start()])
        if re.search(r'\bextern\b', words):
            pieces.append(_dynamic(rest, text, found.start()))
        else:
            volatile = 'volatile ' if 'volatile' in words else ''
            pieces.append(_static(volatile + rest, text, found.start()))
        lost = text.count('\n', found.start(), found.end()) - pieces[-1].count('\n')
        pieces.append('\\\n' * lost)
        position = found.end()
    return ''.join([*pieces, text[position:]])


def _dynamic(declaration: str, text: str, at: int) -> str:
    found = re.fullmatch(r'(?P<type>.+?)(?P<name>\b\w+)\s*\[\s*\]\s*', declaration, re.DOTALL)
    if not found:
        raise _refuse(text, at, f'extern __shared__ {declaration} is no array without a length')
    kind, name = found['type'].strip(), found['name']
    if _outside_functions(text, at):
        return f'static {kind}* const {name} = cuemu::dynamic_shared<{kind}>();'
    return f'{kind}* {name} = cuemu::dynamic_shared<{kind}>();'


def _static(declaration: str, text: str, at: int) -> str:
    first, *others = _split(declaration)
    found = _NAMED.fullmatch(first)
    kind = found['type'].strip() if found else ''
    if not kind:
        raise _refuse(text, at, f'__shared__ {declaration} is not understood')
    if _outside_functions(text, at):
        raise _refuse(
            text, at, f'__shared__ {declaration} outside functions: put it into the kernel'
        )
    made = []
    for one in (first[found.start('name') :], *others):
        part = _NAMED.fullmatch(one.strip())
        if not part or part['type']:
            raise _refuse(text, at, f'__shared__ {declaration} is not understood')
        name = part['name']
        made.append(f'auto& {name} = cuemu::shared<{kind}{part["extents"]}>("{name}", [] {{}});')
    return ' '.join(made)


def _split(declaration: str) -> Iterator[str]:
    """Split declarators at the commas that are in no bracket."""
    depth, start = 0, 0
    for i, c in enumerate(declaration):
        depth += (c in '<([') - (c in '>)]')
        if c == ',' and depth == 0:
            yield declaration[start:i]
            start = i + 1
    yield declaration[start:]


def _outside_functions(text: str, at: int) -> bool:
    """Tell whether all braces open at a place are those of namespaces."""
    seen, _ = blank(text)
    opened: list[int] = []
    for i in range(at):
        if seen[i] == '{':
            opened.append(i)
        elif seen[i] == '}' and opened:
            opened.pop()
    return all(_NAMESPACE.search(seen[max(0, i - 200) : i]) for i in opened)


class Unit:
    """One translation unit: its text, and the headers that it includes, converted into a folder.

    Parameters
    ----------
    include_dirs : sequence of str
        Searched in this order. Headers elsewhere, such as the system's, stay as they are.
    folder : Path
        Where converted headers go.
    """

    def __init__(self, include_dirs: Sequence[str], folder: Path) -> None:
        self.include_dirs = [Path(d) for d in include_dirs]
        self.folder = folder
        self._done: dict[Path, Path] = {}

    def convert(self, text: str, beside: Path | None = None) -> str:
        """Convert a text that may include headers, some of them from the folder it lies in."""
        seen, _ = blank(text)

        def include(found: re.Match[str]) -> str:
            header = None
            if seen[found.start('before') : found.end('before')].strip():  # in no comment
                header = self._find(found['what'], beside)
            if header is None:
                return found[0]
            return f'{found["before"]}"{self._converted(header)}"'

        return convert(_INCLUDE.sub(include, text))

    def _find(self, what: str, beside: Path | None) -> Path | None:
        folders = [beside] if beside and what[0] == '"' else []
        for folder in (*folders, *self.include_dirs):
            path = folder / what[1:-1]
            if path.is_file():
                return path.resolve()
        return None

    def _converted(self, header: Path) -> Path:
        if header not in self._done:
            key = hashlib.sha256(str(header).encode()).hexdigest()[:8]
            target = self.folder / f'{header.stem}-{key}{header.suffix}'
            self._done[header] = target  # before its text: headers may include each other
            named = f'#line 1 "{header}"\n{header.read_text(encoding="utf-8")}'
            target.write_text(self.convert(named, header.parent), encoding='utf-8')
        return self._done[header]
