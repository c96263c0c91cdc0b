# SPDX-License-Identifier: Apache-2.0
"""Reading C++ without a parser: where comments, literals and switched-off lines are, and calls."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

# Numbers and words are consumed whole, so that the ' of 1'000 and the R of "SURE" open nothing.
_LEXEME = re.compile(
    r"""
      (?P<line>//(?:\\\r?\n|[^\n])*)
    | (?P<block>/\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
    | (?P<string>"(?:[^"\\\n]|\\.)*"?)
    | (?P<char>'(?:[^'\\\n]|\\.)*'?)
    | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    | (?P<word>[A-Za-z_]\w*)
    """,
    re.DOTALL | re.VERBOSE,
)
_COMMENTS = ('line', 'block')
_LITERALS = ('raw', 'string', 'char')
_CONDITION = re.compile(r'^[ \t]*#[ \t]*(if(?:n?def)?|elif|else|endif)\b[ \t]*([^\n]*)', re.M)
_DIRECTIVE = re.compile(r'^[ \t]*#(?:\\\r?\n|[^\n])*', re.M)
_DEFINE = re.compile(
    r'^[ \t]*#[ \t]*define[ \t]+(\w+)\(((?:\\\r?\n|[^)\n])*)\)((?:\\\r?\n|[^\n])*)', re.M
)
_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*(?:include|import)(?:_next)?[ \t]*(?:(["<])([^">\n]+)[">]|(\S))|'
    r'__has_include[ \t]*\([ \t]*(["<])([^">\n]+)[">]',
    re.M,
)
_FUNCTION = re.compile(r'\bvoid\s+([A-Za-z_]\w*)\s*\(')
_BRACKET = re.compile(r'[](){}<>[,]')
_OPEN, _CLOSE = '([{<', ')]}>'


@dataclass(frozen=True)
class Part:
    """One file of the user's, whose ``label`` is its path; or a text with a name."""

    label: str
    text: str
    is_file: bool = False


@dataclass(frozen=True)
class Comment:
    """A line comment: where it starts and ends, and its text with the slashes."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C++ function as it is written, and where."""

    text: str
    at: int


class Source:
    """The texts of one translation unit, joined; positions count characters of the whole."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self.text = '\n'.join(part.text for part in parts)
        clear, comments = blank(self.text)
        off = switched_off(clear)
        self._clear = _erase(clear, off)
        self.comments = [c for c in comments if not _within(c.start, off)]
        self.code = _DIRECTIVE.sub(_spaces, self._clear)
        self._starts = [0]
        for part in parts:
            self._starts.append(self._starts[-1] + len(part.text) + 1)

    @functools.cached_property
    def functions(self) -> dict[str, list[re.Match[str]]]:
        """Where ``void name(`` stands, by name, up to behind the parenthesis."""
        found: dict[str, list[re.Match[str]]] = {}
        for match in _FUNCTION.finditer(self.code):
            found.setdefault(match[1], []).append(match)
        return found

    @functools.cached_property
    def _lines(self) -> list[int]:
        return [match.start() for match in re.finditer('\n', self.text)]

    def place(self, at: int) -> str:
        """Say where a position is, as compilers do: ``file:line``."""
        index = min(bisect_right(self._starts, at), len(self.parts)) - 1
        line = bisect_left(self._lines, at) - bisect_left(self._lines, self._starts[index]) + 1
        return f'{self.parts[index].label}:{line}'

    def arguments(self, at: int, code: str | None = None) -> tuple[list[Parameter], int | None]:
        """Split what stands in the parentheses opened before ``at``; and say where they end.

        They end nowhere, None, if a bracket is missing.
        """
        code = self.code if code is None else code
        depth, start, end, found = 1, at, None, []
        for match in _BRACKET.finditer(code, at):
            sign, i = match[0], match.start()
            if sign == '>' and (depth == 1 or code[i - 1] == '-'):
                continue  # an operator
            depth += (sign in _OPEN) - (sign in _CLOSE)
            if depth == 0 or (depth == 1 and sign == ','):
                found.append(_parameter(code, start, i))
                start = i + 1
            if depth == 0:
                end = i + 1
                break
        empty = len(found) == 1 and found[0].text in ('', 'void')
        return [] if empty else found, end

    def made_by_macro(self, at: int) -> str | None:
        """Return the text that a macro called right after ``at`` stands for, if there is one."""
        call = re.compile(r'\s*([A-Za-z_]\w*)\s*\(').match(self.code, at)
        if call is None:
            return None
        given = [argument.text for argument in self.arguments(call.end())[0]]
        for define in _DEFINE.finditer(self._clear):
            names = [name.strip() for name in define[2].split(',')]
            if define[1] == call[1] and len(names) == len(given):
                return _replaced(define[3], dict(zip(names, given, strict=True)))
        return None


def blank(text: str, literals: bool = True) -> tuple[str, list[Comment]]:
    """Replace comments, and literals if asked, by spaces; and list the line comments."""
    comments: list[Comment] = []

    def clear(match: re.Match[str]) -> str:
        kind = match.lastgroup if match.lastgroup != 'mark' else 'raw'
        if kind == 'line':
            comments.append(Comment(match.start(), match.end(), match[0]))
        hidden = kind in _COMMENTS or (literals and kind in _LITERALS)
        return _spaces(match) if hidden else match[0]

    return _LEXEME.sub(clear, text), comments


def switched_off(code: str) -> list[tuple[int, int]]:
    """Return the ranges between ``#if 0`` and its end or alternative, those inside others not."""
    ranges, stack, dead = [], [], 0  # of the open conditions: where a dead range began, or None
    for match in _CONDITION.finditer(code):
        kind = match[1]
        if kind.startswith('if'):
            off = kind == 'if' and match[2].strip() == '0'
            stack.append(match.end() if off else None)
            dead += off
        elif stack:
            began = stack.pop()
            dead -= began is not None
            if began is not None and not dead:
                ranges.append((began, match.start()))
            if kind != 'endif':
                stack.append(None)
    return ranges


@functools.lru_cache(maxsize=512)
def includes(text: str) -> tuple[tuple[str, str], ...]:
    """Return ``(quote, name)`` of each header asked for; one that a macro names has no name."""
    clear, _ = blank(text, literals=False)
    return tuple((m[1] or m[4] or '', m[2] or m[5] or '') for m in _INCLUDE.finditer(clear))


def _parameter(code: str, start: int, end: int) -> Parameter:
    text = code[start:end]
    return Parameter(text.strip(), start + len(text) - len(text.lstrip()))


def _replaced(body: str, values: dict[str, str]) -> str:
    """Put arguments into the body of a macro, as the preprocessor does."""
    body = ' '.join(re.sub(r'\\\r?\n', '\n', body).split())
    words = re.sub(r'[A-Za-z_]\w*', lambda m: values.get(m[0], m[0]), body)
    return re.sub(r' ?## ?', '', words)


def _within(at: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a place is in one of some ranges, which are in order and apart."""
    index = bisect_right(ranges, at, key=lambda one: one[0])
    return index > 0 and at < ranges[index - 1][1]


def _erase(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    kept, done = [], 0
    for start, end in ranges:
        kept += [text[done:start], re.sub(r'[^\n]', ' ', text[start:end])]
        done = end
    return ''.join([*kept, text[done:]])


def _spaces(match: re.Match[str]) -> str:
    return re.sub(r'[^\n]', ' ', match[0])
