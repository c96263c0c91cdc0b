# SPDX-License-Identifier: Apache-2.0
"""What functions a source offers: annotations, signatures, and refusals that say where."""

import pytest

from brainevent._error import KernelError, KernelSignatureError
from brainevent._op.kernix.cpptext import Part, Source
from brainevent._op.kernix.source import read_functions


def specs_of(text, functions=None):
    return read_functions(Source([Part('k.cu', text)]), functions, 'test')


def read(text, functions=None):
    return [str(spec) for spec in specs_of(text, functions)]


def one(parameters):
    return read(f'// @BE f\nvoid f({parameters}) {{}}')


def refused(text, functions=None, error=KernelSignatureError):
    with pytest.raises(error) as caught:
        read(text, functions)
    return str(caught.value)


@pytest.mark.parametrize(
    ('parameters', 'tokens'),
    [
        ('const BE::Tensor x, BE::Tensor y', 'arg ret'),
        ('const Tensor& x, Tensor & y', 'arg ret'),
        ('Tensor const x, BE::Tensor const &z, ::BE::Tensor y', 'arg arg ret'),
        ('const\n  BE :: Tensor\n x, BE::Tensor y', 'arg ret'),
        ('BE::Tensor', 'ret'),
        ('BE::Tensor y, int64_t stream', 'ret stream'),
        ('BE::Tensor y, cudaStream_t s', 'ret stream'),
        ('BE::Tensor y, int64_t other', 'ret attr.other:int64'),
        ('BE::Tensor y, bool a, char b', 'ret attr.a:bool attr.b:int8'),
        ('BE::Tensor y, short a, int b', 'ret attr.a:int16 attr.b:int32'),
        ('BE::Tensor y, std::uint8_t a, unsigned b', 'ret attr.a:uint8 attr.b:uint32'),
        ('BE::Tensor y, long long int a', 'ret attr.a:int64'),
        ('BE::Tensor y, long unsigned int long a', 'ret attr.a:uint64'),
        ('BE::Tensor y, signed char a, signed b', 'ret attr.a:int8 attr.b:int32'),
        ('BE::Tensor y, float a = 1.5f, const double& b', 'ret attr.a:float32 attr.b:float64'),
        ('BE::Tensor y, const std::complex< float > a', 'ret attr.a:complex64'),
        ('BE::Tensor y, std::complex<double> a', 'ret attr.a:complex128'),
        ('BE::Tensor y, BE::complex64_t a', 'ret attr.a:complex64'),
        ('BE::Tensor y, BE::bfloat16_t a', 'ret attr.a:bfloat16'),
    ],
)
def test_a_signature_says_what_parameters_are(parameters, tokens):
    assert one(parameters) == [f'f {tokens}']


def test_sizes_of_the_machine():
    assert one('BE::Tensor y, size_t n, std::ptrdiff_t m, long k') in (
        ['f ret attr.n:uint64 attr.m:int64 attr.k:int64'],
        ['f ret attr.n:uint64 attr.m:int64 attr.k:int32'],
    )


@pytest.mark.parametrize(
    ('parameter', 'got'),
    [
        ('float* out', 'a pointer'),
        ('const BE::Tensor* x', 'a pointer'),
        ('float out[3]', 'a pointer'),
        ('int& n', '`int`'),
        ('__half h', '`__half`'),
        ('std::vector<float> v', '`vector<float>`'),
        ('float', '`float`'),
        ('BE::Tensor&& x', '`Tensor`'),
    ],
)
def test_a_parameter_that_cannot_be_passed_is_named_with_its_line(parameter, got):
    text = refused(f'// @BE f\nvoid f(BE::Tensor y,\n       {parameter}) {{}}')
    assert text.startswith(
        f"k.cu:3: function 'f': the parameter `{parameter}` cannot be passed.\n"
        '    expected: BE::Tensor, a number that has a name, or `int64_t stream`\n'
    )
    assert got in text


def test_old_code_is_not_read():
    text = """
// void f(const BE::Tensor a, BE::Tensor b, float old)
/* void f(BE::Tensor a, double older);
   // @BE gone */
const char* s = "// @BE no\\nvoid f(BE::Tensor y, int oldest)";
#if 0
// @BE off
void f(BE::Tensor y, bool off);
#endif
#define DOC "void f(BE::Tensor y, int8_t doc)"
// @BE f
void f(const BE::Tensor x, BE::Tensor y) {}
"""
    assert read(text) == ['f arg ret']


def test_annotations_may_stand_anywhere():
    text = """
void g(BE::Tensor y) {}
void f(const BE::Tensor x, BE::Tensor y) {}   // @BE f
/// @BE g
"""
    assert read(text) == ['f arg ret', 'g ret']


def test_no_annotation():
    text = refused('void f(BE::Tensor y) {}  // see @BE f', error=KernelError)
    assert 'there is no function to call' in text
    assert 'functions=["name"]' in text
    assert 'an empty `functions`' in refused('', {}, KernelError)


def test_annotated_twice():
    text = refused('// @BE f\nvoid f(BE::Tensor y);\n// @BE f\n', error=KernelError)
    assert text.startswith("k.cu:3: the function 'f' is annotated twice.")


@pytest.mark.parametrize('comment', ['// @BE', '// @BE 2f', '// @BE f:g'])
def test_a_malformed_name(comment):
    assert 'missing or malformed' in refused(comment)


def test_explicit_tokens_get_names_and_types_of_the_signature():
    code = 'void f(const BE::Tensor x, BE::Tensor y, float a, int64_t s) {}'
    (spec,) = specs_of(f'// @BE f arg:float32[2] ret attr.k stream\n{code}')
    assert str(spec) == 'f arg:float32[2] ret attr.k:float32 stream'
    assert [token.name for token in spec.tokens] == ['x', 'y', 'k', '']


def test_tokens_that_contradict_const_are_refused():
    code = 'void f(BE::Tensor x, const BE::Tensor y);'
    for tokens in ('arg ret', 'ret ret', 'arg arg'):
        assert 'contradicts' in refused(f'// @BE f {tokens}\n{code}')
    assert read(f'// @BE f ret arg\n{code}') == ['f ret arg']


def test_tokens_that_do_not_fit_the_signature():
    code = 'void f(const BE::Tensor x, BE::Tensor y, float a) {}'
    text = refused(f'// @BE f arg ret\n{code}')
    assert '3 tokens, for (const BE::Tensor x, BE::Tensor y, float a)' in text
    text = refused(f'// @BE f arg ret arg\n{code}')
    assert text.startswith("k.cu:2: function 'f': the token `arg` is not for `float a`.")
    assert 'not for `BE::Tensor y`' in refused(f'// @BE f arg attr.x attr.a\n{code}')


@pytest.mark.parametrize(
    ('token', 'parameter'),
    [
        ('float32', 'int n'), ('complex64', 'float n'), ('complex128', 'BE::complex64_t n'),
        ('float16', 'float n'), ('uint16', 'BE::float16_t n'), ('bfloat16', 'BE::float16_t n'),
    ],
)  # fmt: skip
def test_a_token_of_another_kind_than_its_parameter_is_refused(token, parameter):
    text = f'// @BE f ret attr.n:{token}\nvoid f(BE::Tensor y, {parameter});'
    with pytest.raises(KernelSignatureError) as caught:
        read(text)
    assert f"function 'f': `{parameter}` does not take a {token}." in str(caught.value)
    assert 'let token and parameter agree' in str(caught.value)


@pytest.mark.parametrize(
    ('token', 'parameter'),
    [
        ('int32', 'int64_t n'), ('uint8', 'int n'), ('float32', 'double n'), ('int32', 'double n'),
        ('bool', 'int n'), ('bfloat16', 'uint16_t n'), ('float16', 'BE::float16_t n'),
        ('int64', 'my_index_t n'), ('int32', 'const int& n'), ('float64', 'float n'),
        ('int64', 'int n'), ('int8', 'bool n'),
    ],
)  # fmt: skip
def test_a_token_that_fits_its_parameter_is_believed(token, parameter):
    text = f'// @BE f ret attr.n:{token}\nvoid f(BE::Tensor y, {parameter});'
    assert read(text) == [f'f ret attr.n:{token}']


@pytest.mark.parametrize('name', ['outs', 'vmap_method'])
def test_parameters_do_not_take_the_names_of_a_call(name):
    with pytest.raises(KernelSignatureError, match='a call needs for itself'):
        read(f'// @BE f\nvoid f(BE::Tensor y, int {name});')


def test_brackets_that_never_close():
    for text in ('void f(BE::Tensor y', 'void f(BE::Tensor y, std::vector<int y) {}'):
        with pytest.raises(KernelSignatureError, match="k.cu:2: the parameters of 'f' never end"):
            read(f'// @BE f\n{text}')
    with pytest.raises(KernelSignatureError, match="the parameters of 'f' never end"):
        read('#define M(n) void n(BE::Tensor y\n// @BE f\nM(f)')


@pytest.mark.parametrize('functions', [3, {'f': 3}, [3], {3: 'ret'}, {'f': [3]}, {'f': b'ret'}])
def test_functions_that_are_none(functions):
    with pytest.raises(KernelSignatureError):
        read('void f(BE::Tensor y);', functions)


def test_tokens_on_the_next_line():
    assert read('// @BE f arg \\\n   ret\nvoid f(const BE::Tensor x, BE::Tensor y);') == [
        'f arg ret'
    ]


def test_a_function_that_is_not_there():
    assert '`void f(...)`' in refused('// @BE f\nint f(BE::Tensor y) { return 0; }')
    assert '`void g(...)`' in refused('void f(BE::Tensor y) {}', ['g'])
    assert read('// @BE f arg ret attr.k:float32') == ['f arg ret attr.k:float32']
    assert 'attr.k:float32' in refused('// @BE f arg ret attr.k')


def test_no_result():
    assert 'no result' in refused('// @BE f\nvoid f(const BE::Tensor x) {}')


def test_overloads():
    text = 'void f(const BE::Tensor x, float k) {}\nvoid f(const BE::Tensor x, BE::Tensor y) {}\n'
    assert 'overloaded' in refused(text, ['f'])
    assert read(text.replace('\nvoid', '\n// @BE f\nstatic inline void')) == ['f arg ret']
    declared = 'void f(BE::Tensor y);\n// @BE f\n\nvoid f(BE::Tensor out) {}'
    assert read(declared) == ['f ret']


def test_a_template_is_refused():
    text = refused('// @BE f\ntemplate <class T>\nstatic void f(BE::Tensor y) {}')
    assert text.startswith("k.cu:3: the function 'f' is a template.")


def test_functions_made_by_a_macro():
    text = """
#define DEFINE(NAME, T)                                   \\
  void NAME##_op(const BE::Tensor x, BE::Tensor y, T k) { \\
  }
// @BE a_op
DEFINE(a, float)
// @BE b_op
DEFINE(b, double)
"""
    assert read(text) == ['a_op arg ret attr.k:float32', 'b_op arg ret attr.k:float64']
    assert 'a_op' in refused(text.replace('DEFINE(a, float)', 'OTHER(a, float)'))


def test_functions_given_by_the_caller():
    text = 'void f(const BE::Tensor x, BE::Tensor y) {}\nvoid g(BE::Tensor y, float k) {}'
    assert read(text, ['f', 'g']) == ['f arg ret', 'g ret attr.k:float32']
    assert read(text, {'f': ['arg', 'ret:int32'], 'g': []}) == [
        'f arg ret:int32',
        'g ret attr.k:float32',
    ]
    assert read(text, 'f') == ['f arg ret']
    assert read(f'// @BE g\n{text}', ['f']) == ['f arg ret']
