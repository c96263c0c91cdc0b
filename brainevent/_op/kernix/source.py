# SPDX-License-Identifier: Apache-2.0
"""From ``// @BE`` comments and C++ signatures to what each kernel function takes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from brainevent._error import KernelError, KernelSignatureError, expect, explain
from brainevent._op.kernix.cpptext import Parameter, Source
from brainevent._op.kernix.loaders import Functions
from brainevent._op.kernix.tokens import Token, check_tokens, read_token

_ANNOTATION = re.compile(r'//+[ \t]*@BE\b[ \t]*(\S*)[ \t]*(.*)', re.DOTALL)
_IDENTIFIER = re.compile(r'[A-Za-z_]\w*', re.ASCII)
_QUALIFIERS = {'const', 'volatile', 'struct', 'class', 'typename', 'register', '__restrict__'}
_LONG = 'int32' if sys.platform == 'win32' else 'int64'
_SCALARS = {
    'bool': 'bool',
    'char': 'int8',
    'signed char': 'int8',
    'unsigned char': 'uint8',
    'short': 'int16',
    'unsigned short': 'uint16',
    'int': 'int32',
    'unsigned': 'uint32',
    'long': _LONG,
    'unsigned long': 'u' + _LONG,
    'long long': 'int64',
    'unsigned long long': 'uint64',
    'size_t': 'uint64' if sys.maxsize > 2**32 else 'uint32',
    'ptrdiff_t': 'int64' if sys.maxsize > 2**32 else 'int32',
    'float': 'float32',
    'double': 'float64',
    'float16_t': 'float16',
    'bfloat16_t': 'bfloat16',
    'complex64_t': 'complex64',
    'complex128_t': 'complex128',
    'complex<float>': 'complex64',
    'complex<double>': 'complex128',
    **{f'{sign}int{bits}_t': f'{sign}int{bits}' for sign in ('', 'u') for bits in (8, 16, 32, 64)},
}
_STREAM_TYPES = ('cudaStream_t', 'CUstream')
_INEXACT = {(taken, given) for taken in ('float64', 'complex128') for given in ('int64', 'uint64')}
_HALVES = ('float16', 'bfloat16')  # they travel as the bits of a uint16


@dataclass(frozen=True)
class FunctionSpec:
    """One kernel function: its name and what its parameters are, in order."""

    name: str
    tokens: tuple[Token, ...]

    def of(self, kind: str) -> tuple[Token, ...]:
        """Return the parameters of one kind."""
        return tuple(token for token in self.tokens if token.kind == kind)

    def __str__(self) -> str:
        return ' '.join((self.name, *map(str, self.tokens)))


def read_functions(source: Source, functions: Functions, where: str) -> tuple[FunctionSpec, ...]:
    """Return the functions that a source offers to JAX.

    Parameters
    ----------
    source : Source
    functions : mapping, sequence or None
        Tokens by name; or names, whose tokens are read from the C++ signature; None reads the
        ``// @BE`` comments.
    where : str
        The call, for messages.

    Raises
    ------
    KernelError
        If there is none, or one that cannot be called.
    """
    wanted = _annotated(source) if functions is None else _given(functions, where)
    expect(
        wanted,
        KernelError,
        where,
        'there is no function to call.',
        expected='a comment `// @BE name` above each function that JAX shall call',
        got='no such comment outside comments, strings and switched-off lines'
        if functions is None
        else 'an empty `functions`',
        remedy='add the comment, or pass functions=["name"]',
    )
    return tuple(_resolve(source, name, *request, where) for name, request in wanted.items())


Request = tuple[Sequence[str] | None, int | None]
"""Tokens if they are said, and where the annotation ends if there is one."""


def _annotated(source: Source) -> dict[str, Request]:
    found: dict[str, Request] = {}
    for comment in source.comments:
        match = _ANNOTATION.match(comment.text)
        if match is None:
            continue
        name, place = match[1], source.place(comment.start)
        _expect_name(name, place)
        expect(
            name not in found,
            KernelError,
            place,
            f'the function {name!r} is annotated twice.',
            expected='one comment `// @BE` a function',
            got=comment.text.strip(),
        )
        words = re.sub(r'\\\r?\n[ \t]*/*', ' ', match[2]).split()
        found[name] = (words or None, comment.end)
    return found


def _given(
    functions: Mapping[str, Sequence[str]] | Sequence[str], where: str
) -> dict[str, Request]:
    pairs = functions.items() if isinstance(functions, Mapping) else None
    found: dict[str, Request] = {}
    for name, tokens in pairs or ((name, None) for name in _several(functions, where)):
        _expect_name(name, where)
        found[name] = (_several(tokens or (), where) or None, None)
    return found


def _several(words: Any, where: str) -> list[Any]:
    """Return names or tokens, of a list or of one text."""
    expect(
        isinstance(words, Iterable),
        KernelSignatureError,
        where,
        '`functions` cannot be read.',
        expected='names, or a dict of names to tokens: {"name": ["arg", "ret"]}',
        got=lambda: repr(words),
    )
    return words.split() if isinstance(words, str) else list(words)


def _expect_name(name: object, where: str) -> None:
    expect(
        isinstance(name, str) and _IDENTIFIER.fullmatch(name),
        KernelSignatureError,
        where,
        'the name of a function is missing or malformed.',
        expected='a C identifier',
        got=lambda: repr(name),
    )


def _resolve(
    source: Source, name: str, words: Sequence[str] | None, after: int | None, where: str
) -> FunctionSpec:
    """Bring together what is said about a function and how it is declared."""
    signature = _signature(source, name, after)
    place = f'{where}, function {name!r}'
    if words is None:
        expect(
            signature is not None,
            KernelSignatureError,
            place,
            'its C++ signature was not found.',
            expected=f'`void {name}(...)` outside comments, strings and switched-off lines',
            got=lambda: source.place(after) if after is not None else 'no such text',
            remedy='correct the name, or say what the parameters are: `// @BE name arg ret`',
        )
        assert signature is not None
        tokens = [_inferred(source, parameter, place) for parameter in signature]
    else:
        tokens = [read_token(word, place) for word in words]
        tokens = _completed(source, tokens, signature, place)
    check_tokens(tokens, place)
    return FunctionSpec(name, tuple(tokens))


# --- signatures -------------------------------------------------------------------------------


def _signature(source: Source, name: str, after: int | None) -> list[Parameter] | None:
    """Return the parameters of ``void name(...)``, the one after its annotation first."""
    matches = source.functions.get(name, [])
    if not matches:
        return _from_macro(source, name, after)
    following = next((m for m in matches if after is not None and m.start() >= after), None)
    if following and re.fullmatch(r'[\s\w\[\]]*', source.code[after : following.start()]):
        matches = [following]  # directly under its annotation
    before = source.code[max(0, matches[0].start() - 500) : matches[0].start()]
    expect(
        not re.search(r'\btemplate\s*<[^;{}()]*>[\s\w\[\]]*\Z', before),
        KernelSignatureError,
        source.place(matches[0].start()),
        f'the function {name!r} is a template.',
        expected='a function',
        got='template <...>',
        remedy='annotate a function that calls it with given types',
    )
    found = _declared(source, matches, name)
    kinds = {tuple(_words(parameter.text)[0] for parameter in one) for one in found}
    expect(
        len(kinds) == 1,
        KernelSignatureError,
        source.place(matches[-1].start()),
        f'the function {name!r} is overloaded.',
        expected='one signature a name',
        got=lambda: ', '.join(source.place(match.start()) for match in matches),
        remedy='annotate the one that is meant directly above it, or rename the others',
    )
    return found[-1]


def _declared(source: Source, matches: Sequence[re.Match[str]], name: str) -> list[list[Parameter]]:
    """Return the parameters of each declaration; what stands inside another one is none."""
    found, behind = [], 0
    for match in matches:
        if match.start() < behind:
            continue
        parameters, end = source.arguments(match.end())
        if end is None:
            raise _unclosed(name, source.place(match.start()))
        found.append(parameters)
        behind = end
    return found


def _unclosed(name: str, place: str) -> KernelSignatureError:
    return KernelSignatureError(
        explain(
            place,
            f'the parameters of {name!r} never end.',
            expected=f'`void {name}(...)`, where each bracket that opens is closed',
            got='the end of the source',
            remedy='close the brackets; default values are better left out',
        )
    )


def _from_macro(source: Source, name: str, after: int | None) -> list[Parameter] | None:
    """Look for the function in the macro that stands under its annotation."""
    made = None if after is None else source.made_by_macro(after)
    match = re.search(rf'\bvoid\s+{name}\s*\(', made or '')
    if made is None or match is None or after is None:
        return None
    found, end = source.arguments(match.end(), made)
    if end is None:
        raise _unclosed(name, source.place(after))
    return [Parameter(parameter.text, after) for parameter in found]


def _words(text: str) -> tuple[str, str, bool, str]:
    """Split a parameter: its type in one spelling, its name, is it const, and * or & signs."""
    text = ' '.join(text.split('=')[0].split())  # long runs of space take long to search
    is_const = re.search(r'\bconst\b', text) is not None
    signs = ''.join(re.findall(r'[*&]|\[[^][]*\]', text))
    bare = ' '.join(re.sub(r'\[[^][]*\]|[*&]', ' ', text).split()).replace(' ::', '::')
    bare = bare.replace(':: ', '::')
    bare = re.sub(r' *([<>]) *', r'\1', re.sub(r'\b\w+::|::', '', bare)).replace('>', '> ')
    words = [word for word in bare.split() if word not in _QUALIFIERS]
    name = ''
    if len(words) > 1 and _IDENTIFIER.fullmatch(words[-1]) and not _is_type(' '.join(words)):
        name = words.pop()
    return _type(words), name, is_const, signs


def _type(words: list[str]) -> str:
    """Return a type in one spelling: ``long unsigned int`` is ``unsigned long``."""
    counted = sorted(words)
    if counted and set(counted) <= {'unsigned', 'signed', 'short', 'long', 'int', 'char'}:
        sign = [w for w in ('unsigned', 'signed') if w in counted]
        size = ['char'] * ('char' in counted) + ['short'] * ('short' in counted)
        size += ['long'] * counted.count('long')
        sign = sign if sign != ['signed'] or size == ['char'] else []
        return ' '.join([*sign, *size]) or 'int'
    return ' '.join(words)


def _is_type(text: str) -> bool:
    return _type(text.split()) in _SCALARS


def _inferred(source: Source, parameter: Parameter, where: str) -> Token:
    """Say what a parameter is by its type."""
    kind, name, is_const, signs = _words(parameter.text)
    if kind == 'Tensor' and signs in ('', '&'):
        return Token('arg' if is_const else 'ret', name)
    if (kind in _STREAM_TYPES and not signs) or (kind, name, signs) == ('int64_t', 'stream', ''):
        return Token('stream', name)
    by_value = signs == '' or (signs == '&' and is_const)
    expect(
        kind in _SCALARS and by_value and name,
        KernelSignatureError,
        source.place(parameter.at),
        f'{where.rpartition(", ")[2]}: the parameter `{parameter.text}` cannot be passed.',
        expected='BE::Tensor, a number that has a name, or `int64_t stream`',
        got='a pointer' if '*' in signs or '[' in signs else f'the type `{kind}`',
        remedy='take a BE::Tensor and ask it for data_ptr<T>() and size(i)',
    )
    return Token('attr', name, _SCALARS[kind])


def _completed(
    source: Source, tokens: list[Token], signature: list[Parameter] | None, where: str
) -> list[Token]:
    """Give the tokens of an annotation the names and types of the C++ parameters."""
    if signature is None:
        for token in tokens:
            expect(
                token.kind != 'attr' or token.dtype is not None,
                KernelSignatureError,
                where,
                f'the type of the attribute {token.name!r} is not known.',
                expected='the C++ signature in the source, or a type',
                got=token,
                remedy=f'write attr.{token.name}:float32, or whatever it is',
            )
        return tokens
    expect(
        len(tokens) == len(signature),
        KernelSignatureError,
        where,
        'not one token a parameter.',
        expected=lambda: f'{len(signature)} tokens, for ({", ".join(p.text for p in signature)})',
        got=lambda: ' '.join(map(str, tokens)) or 'none',
        remedy='list arg, ret, attr.NAME, stream in the order of the parameters, or leave all out',
    )
    return [_checked(source, t, p, where) for t, p in zip(tokens, signature, strict=True)]


def _checked(source: Source, token: Token, parameter: Parameter, where: str) -> Token:
    """Complete one token, or say that it is none of its parameter's."""
    kind, name, is_const, _ = _words(parameter.text)
    is_tensor = kind == 'Tensor'
    expect(
        is_tensor == (token.kind in ('arg', 'ret')),
        KernelSignatureError,
        source.place(parameter.at),
        f'{where.rpartition(", ")[2]}: the token `{token}` is not for `{parameter.text}`.',
        expected='arg or ret for a Tensor, attr.NAME for a number, stream for the stream',
        got=token,
    )
    if is_tensor:
        expect(
            is_const == (token.kind == 'arg'),
            KernelSignatureError,
            source.place(parameter.at),
            f'{where.rpartition(", ")[2]}: the token `{token}` contradicts `{parameter.text}`.',
            expected='arg for a const Tensor, which is only read; ret for one that is written',
            got=token,
            remedy='JAX arrays do not change: add or remove `const`, or exchange the tokens',
        )
        return replace(token, name=name)
    if token.kind == 'stream':
        return token
    if token.dtype is None:
        return replace(_inferred(source, parameter, where), name=token.name)
    taken = _SCALARS.get(kind, token.dtype)  # who names a type of their own knows what it holds
    cut = token.dtype[0] in 'iu' and taken[0] in 'iufb' and not _holds(taken, token.dtype)
    if cut and taken not in _HALVES or (token.dtype, taken) == ('float64', 'float32'):
        return replace(token, fit=taken)  # it depends on the number
    expect(
        _holds(taken, token.dtype),
        KernelSignatureError,
        source.place(parameter.at),
        f'{where.rpartition(", ")[2]}: `{parameter.text}` does not take a {token.dtype}.',
        expected=f'attr.{token.name}:{taken}',
        got=token,
        remedy='C++ would take another number without a word: let token and parameter agree',
    )
    return token


def _holds(taken: str, given: str) -> bool:
    """Tell whether a C++ type takes every value of another one as it is."""
    if taken in _HALVES or given in _HALVES:
        return taken == given or (taken, given in _HALVES) == ('uint16', True)
    return np.can_cast(given, taken) and (taken, given) not in _INEXACT
