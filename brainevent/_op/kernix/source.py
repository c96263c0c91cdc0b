# SPDX-License-Identifier: Apache-2.0
"""From ``// @BE`` comments and C++ signatures to what each kernel function takes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brainevent._error import KernelError, KernelSignatureError, expect
from brainevent._op.kernix.cpptext import Parameter, Source
from brainevent._op.kernix.loaders import Functions
from brainevent._op.kernix.tokens import Token, check_tokens, read_token

_ANNOTATION = re.compile(r'//+[ \t]*@BE\b[ \t]*(\S*)[ \t]*(.*)', re.DOTALL)
_IDENTIFIER = re.compile(r'[A-Za-z_]\w*')
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
    if isinstance(functions, str):
        functions = functions.split()
    pairs = functions.items() if isinstance(functions, Mapping) else ((n, None) for n in functions)
    found: dict[str, Request] = {}
    for name, tokens in pairs:
        _expect_name(name, where)
        words = tokens.split() if isinstance(tokens, str) else tokens
        found[name] = (words or None, None)
    return found


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
    pattern = re.compile(rf'\bvoid\s+{name}\s*\(')
    matches = list(pattern.finditer(source.code))
    if not matches:
        return _from_macro(source, pattern, after)
    following = [match for match in matches if after is not None and match.start() >= after]
    if following and re.fullmatch(r'[\s\w\[\]]*', source.code[after : following[0].start()]):
        matches = following[:1]  # directly under its annotation
    before = source.code[: matches[0].start()]
    expect(
        not re.search(r'\btemplate\s*<[^;{}()]*>[\s\w\[\]]*\Z', before[-500:]),
        KernelSignatureError,
        source.place(matches[0].start()),
        f'the function {name!r} is a template.',
        expected='a function',
        got='template <...>',
        remedy='annotate a function that calls it with given types',
    )
    found = [source.arguments(match.end())[0] for match in matches]
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


def _from_macro(
    source: Source, pattern: re.Pattern[str], after: int | None
) -> list[Parameter] | None:
    """Look for the function in the macro that stands under its annotation."""
    made = None if after is None else source.made_by_macro(after)
    match = pattern.search(made or '')
    if made is None or match is None or after is None:
        return None
    found, _ = source.arguments(match.end(), made)
    return [Parameter(parameter.text, after) for parameter in found]


def _words(text: str) -> tuple[str, str, bool, str]:
    """Split a parameter: its type in one spelling, its name, is it const, and * or & signs."""
    text = text.split('=')[0]
    is_const = re.search(r'\bconst\b', text) is not None
    signs = ''.join(re.findall(r'[*&]|\[[^]]*\]', text))
    bare = re.sub(r'\[[^]]*\]|[*&]', ' ', text)
    bare = re.sub(r'\s*([<>])\s*', r'\1', re.sub(r'\w*\s*::\s*', '', bare)).replace('>', '> ')
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
        return replace(token, name=name)
    if token.kind == 'stream' or token.dtype is not None:
        return token
    return replace(_inferred(source, parameter, where), name=token.name)
