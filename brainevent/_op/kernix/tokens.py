# SPDX-License-Identifier: Apache-2.0
"""Tokens: the words that say what each parameter of a kernel function is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brainevent._error import KernelSignatureError, expect, explain

# dtype of an attribute or array -> its C++ type, and its name in BE::DType
DTYPES = {
    'bool': ('bool', 'Bool'),
    'int8': ('int8_t', 'Int8'),
    'int16': ('int16_t', 'Int16'),
    'int32': ('int32_t', 'Int32'),
    'int64': ('int64_t', 'Int64'),
    'uint8': ('uint8_t', 'UInt8'),
    'uint16': ('uint16_t', 'UInt16'),
    'uint32': ('uint32_t', 'UInt32'),
    'uint64': ('uint64_t', 'UInt64'),
    'float16': ('BE::float16_t', 'Float16'),
    'bfloat16': ('BE::bfloat16_t', 'BFloat16'),
    'float32': ('float', 'Float32'),
    'float64': ('double', 'Float64'),
    'complex64': ('BE::complex64_t', 'Complex64'),
    'complex128': ('BE::complex128_t', 'Complex128'),
}
_ALIASES = {'args': 'arg', 'rets': 'ret', 'attrs': 'attr', 'ctx.stream': 'stream'}
_OPERAND = re.compile(r'(args?|rets?)(?::(\w+))?(?:\[([0-8])\])?')  # BE::Tensor knows 8
_ATTRIBUTE = re.compile(r'(attrs?)\.([A-Za-z_]\w*)(?::(\w+))?', re.ASCII)
RESERVED = ('outs', 'vmap_method', 'input_output_aliases')
"""What a call says by keyword besides attributes."""


@dataclass(frozen=True)
class Token:
    """What one parameter is.

    Attributes
    ----------
    kind : {'arg', 'ret', 'attr', 'stream'}
    name : str
        Of an attribute; of an array, only for messages.
    dtype : str or None
        None is any dtype for an array, and not known yet for an attribute.
    ndim : int or None
        Of an array; None is any.
    fit : str or None
        Of an attribute: the narrower dtype of its parameter, which a number has to fit.
    """

    kind: str
    name: str = ''
    dtype: str | None = None
    ndim: int | None = None
    fit: str | None = None

    def __str__(self) -> str:
        name = f'.{self.name}' if self.kind == 'attr' else ''
        dtype = f':{self.dtype}' if self.dtype else ''
        ndim = '' if self.ndim is None else f'[{self.ndim}]'
        return f'{self.kind}{name}{dtype}{ndim}'


def read_token(text: str, where: str) -> Token:
    """Read one token, in any spelling."""
    told = text if isinstance(text, str) else ''
    operand = _OPERAND.fullmatch(told)
    attribute = _ATTRIBUTE.fullmatch(told)
    token = None
    if operand is not None:
        ndim = None if operand[3] is None else int(operand[3])
        token = Token(_ALIASES.get(operand[1], operand[1]), '', operand[2], ndim)
    elif attribute is not None:
        token = Token('attr', attribute[2], attribute[3])
    elif text in ('stream', 'ctx.stream'):
        token = Token('stream')
    if token is None or (token.dtype is not None and token.dtype not in DTYPES):
        raise KernelSignatureError(
            explain(
                where,
                'a token that is not known.',
                expected='arg, ret, stream, attr.NAME, with :DTYPE and [NDIM], 0 to 8, where they '
                f'are wanted; dtypes are {", ".join(DTYPES)}',
                got=repr(text),
            )
        )
    return token


def normalize_tokens(tokens: Iterable[str]) -> list[str]:
    """Return tokens in their one spelling.

    Parameters
    ----------
    tokens : iterable of str
        ``arg``, ``ret``, ``stream``, ``attr.NAME``, or the longer spellings ``args``, ``rets``,
        ``ctx.stream``, ``attrs.NAME``. Arrays and attributes may carry a dtype, ``arg:float32``,
        arrays a number of dimensions, ``arg:float32[2]`` or ``arg[2]``.

    Returns
    -------
    list of str

    Raises
    ------
    KernelError
        If a token is none of these.

    Examples
    --------
    >>> normalize_tokens(['args', 'rets:float32[1]', 'ctx.stream', 'attrs.n:int32'])
    ['arg', 'ret:float32[1]', 'stream', 'attr.n:int32']
    """
    words = tokens.split() if isinstance(tokens, str) else tokens
    return [str(read_token(word, 'normalize_tokens')) for word in words]


def check_tokens(tokens: Sequence[Token], where: str) -> None:
    """Refuse a list that no function can have."""
    attributes = [token.name for token in tokens if token.kind == 'attr']
    for ok, what, remedy in (
        (
            any(token.kind == 'ret' for token in tokens),
            'the function has no result.',
            'a kernel is called for what it writes: give it a Tensor that is not const',
        ),
        (
            sum(token.kind == 'stream' for token in tokens) <= 1,
            'more than one stream.',
            'a call runs on one stream',
        ),
        (
            len(set(attributes)) == len(attributes),
            'two attributes of one name.',
            'attributes are told apart by name',
        ),
        (
            not set(attributes) & set(RESERVED),
            'an attribute has a name that a call needs for itself.',
            f'rename it: {", ".join(RESERVED)} are arguments of every call',
        ),
    ):
        expect(
            ok,
            KernelSignatureError,
            where,
            what,
            expected='at least one ret, at most one stream, and names that differ and are free',
            got=lambda: ' '.join(map(str, tokens)) or 'no parameters',
            remedy=remedy,
        )
