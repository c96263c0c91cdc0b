# SPDX-License-Identifier: Apache-2.0
"""Reading C++ without a parser: where comments, literals and switched-off lines are, and calls."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
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
_DEFINE = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)((?:\\\r?\n|[^\n])*)', re.M)
_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*(?:include|import)(?:_next)?[ \t]*(?:(["<])([^">\n]+)[">]|(\S))|'
    r'__has_include[ \t]*\([ \t]*(["<])([^">\n]+)[">]',
    re.M,
)
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
        self.comments = [c for c in comments if not any(a <= c.start < b for a, b in off)]
        self.code = _DIRECTIVE.sub(_spaces, self._clear)
        self._starts = [0]
        for part in parts:
            self._starts.append(self._starts[-1] + len(part.text) + 1)

    def place(self, at: int) -> str:
        """Say where a position is, as compilers do: ``file:line``."""
        index = min(bisect_right(self._starts, at), len(self.parts)) - 1
        line = self.text.count('\n', self._starts[index], at) + 1
        return f'{self.parts[index].label}:{line}'

    def arguments(self, at: int, code: str | None = None) -> tuple[list[Parameter], int]:
        """Split what stands in the parentheses opened before ``at``; and where they end."""
        code = self.code if code is None else code
        depth, start, end, found = 1, at, len(code), []
        for i in range(at, len(code)):
            depth += (code[i] in _OPEN) - (code[i] in _CLOSE)
            if depth == 0 or (depth == 1 and code[i] == ','):
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
    """Return the ranges between ``#if 0`` and its end or alternative."""
    ranges, stack = [], []  # of the open conditions: where a dead range began, or None
    for match in _CONDITION.finditer(code):
        kind = match[1]
        if kind.startswith('if'):
            dead = kind == 'if' and match[2].strip() == '0'
            stack.append(match.end() if dead else None)
        elif stack:
            began = stack.pop()
            if began is not None:
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
    body = re.sub(r'\\\r?\n', '\n', body)
    words = re.sub(r'[A-Za-z_]\w*', lambda m: values.get(m[0], m[0]), body)
    return re.sub(r'\s*##\s*', '', words)


def _erase(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    for start, end in ranges:
        text = text[:start] + re.sub(r'[^\n]', ' ', text[start:end]) + text[end:]
    return text


def _spaces(match: re.Match[str]) -> str:
    return re.sub(r'[^\n]', ' ', match[0])
