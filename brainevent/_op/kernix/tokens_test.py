# SPDX-License-Identifier: Apache-2.0
"""Tokens: every spelling is read, nothing else is."""

import pytest

from brainevent._error import KernelError, KernelSignatureError
from brainevent._op.kernix.tokens import DTYPES, Token, check_tokens, normalize_tokens, read_token


def test_spellings():
    assert normalize_tokens(['args', 'rets', 'ctx.stream', 'attrs.x']) == [
        'arg',
        'ret',
        'stream',
        'attr.x',
    ]
    assert normalize_tokens('arg ret') == ['arg', 'ret']
    assert normalize_tokens([]) == []


@pytest.mark.parametrize('text', ['arg:float32[2]', 'ret[0]', 'attr.n:int64', 'arg:bool'])
def test_normal_spelling_is_kept(text):
    assert str(read_token(text, 'test')) == text


@pytest.mark.parametrize('dtype', DTYPES)
def test_every_dtype_is_known(dtype):
    assert read_token(f'attr.x:{dtype}', 'test') == Token('attr', 'x', dtype)
    assert read_token(f'args:{dtype}[3]', 'test') == Token('arg', '', dtype, 3)


@pytest.mark.parametrize(
    'text', ['', 'x', 'arg.x', 'attr', 'attr.1x', 'attr.x:float', 'arg:int4', 'arg[-1]', 'ret[a]']
)
def test_what_is_no_token_is_named(text):
    with pytest.raises(KernelError) as caught:
        normalize_tokens(['arg', text])
    assert repr(text) in str(caught.value)
    assert 'bfloat16' in str(caught.value)


@pytest.mark.parametrize(
    ('words', 'what'),
    [
        (['arg'], 'no result'),
        (['ret', 'stream', 'stream'], 'more than one stream'),
        (['ret', 'attr.x:bool', 'attr.x:int32'], 'two attributes of one name'),
    ],
)
def test_lists_that_no_function_has(words, what):
    with pytest.raises(KernelError, match=what):
        check_tokens([read_token(word, 'test') for word in words], 'test')


def test_arrays_have_at_most_eight_axes():
    assert normalize_tokens(['arg[8]', 'ret:int8[0]']) == ['arg[8]', 'ret:int8[0]']
    for text in ('arg[9]', 'arg[10]', 'arg[٣]', 'arg[' + '9' * 5000 + ']', 'attr.é', 3, None):
        with pytest.raises(KernelSignatureError, match=r'\[NDIM\], 0 to 8'):
            normalize_tokens([text])


@pytest.mark.parametrize('name', ['outs', 'vmap_method', 'input_output_aliases'])
def test_attributes_do_not_take_the_names_of_a_call(name):
    tokens = [read_token(word, 'test') for word in ('arg', 'ret', f'attr.{name}:int32')]
    with pytest.raises(KernelSignatureError) as caught:
        check_tokens(tokens, 'test')
    assert str(caught.value).startswith(
        'test: an attribute has a name that a call needs for itself'
    )
    assert 'remedy:   rename it: outs, vmap_method, input_output_aliases are arg' in str(
        caught.value
    )
