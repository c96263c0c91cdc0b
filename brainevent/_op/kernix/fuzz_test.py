# SPDX-License-Identifier: Apache-2.0
"""The reader of annotations and signatures survives anything: typed errors, and it always ends."""

import contextlib
import signal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brainevent._error import KernelError
from brainevent._op.kernix.conftest import SHARED
from brainevent._op.kernix.cpptext import Part, Source, includes
from brainevent._op.kernix.source import read_functions
from brainevent._op.kernix.tokens import normalize_tokens, read_token
from brainevent._op.kernix.wrapper import wrapper_text

QUICK, THOROUGH, PATIENCE = 200, 6_000, 60  # examples; seconds before a hang is called one

CUDA = r"""
#include "brainevent/common.h"
#define BY(T, N) T(N)
#define MADE(NAME, T) void NAME(const BE::Tensor x, BE::Tensor y, T by, int64_t stream) { \
  run<<<BE::blocks_for(x.numel(), 256), 256, 0, cudaStream_t(stream)>>>(x, y, by); }
template <class T> __global__ void run(const T* x, T* y, T by) { y[threadIdx.x] = x[0] + by; }
#if 0
// @BE old
void old(const BE::Tensor x, BE::Tensor y);
#else
// @BE made
MADE(made, float)
#endif
/* // @BE not_this */ const char* text = R"x( // @BE nor_this )" )x" "// @BE nor \" that";
// @BE scale arg:float32[2] \
//    ret:float32[1] attr.n:int32 stream
extern "C" void scale(BE::Tensor const& x, BE::Tensor& y, const int32_t n, cudaStream_t s) {}
"""
WORDS = [
    *'(){}[]<>,;:*&#=\\"\'/\n\t .0',
    *(
        '//',
        '/*',
        '*/',
        '\\\n',
        '\\\r\n',
        '::',
        '->',
        '>>',
        '<<<',
        '...',
        '##',
        "1'000",
        '\0',
        '\r',
    ),
    *('R"(', ')"', 'R"x(', ')x"', 'u8R"', "L'", '\ufeff', 'é', '日本', '\u2028', '\x85', '\ud800'),
    *('// @BE ', '// @BE f', '//@BE g arg ret', '/// @BE f ret attr.n', '@BE', '//\\\n@BE f'),
    *('void ', 'void f(', 'void g(', 'f(', 'MADE(f', 'f', 'g', 'x', 'y'),
    *('const ', 'volatile', 'unsigned ', 'long ', 'int ', 'float ', 'double', 'char', 'bool '),
    *('BE::Tensor x', 'const BE::Tensor& x', 'Tensor', 'std::complex<float> z', 'size_t n'),
    *('int64_t stream', 'cudaStream_t s', 'std::vector<std::pair<int, int>> v', '= {1, 2}'),
    *('template <class T>', 'extern "C"', 'static inline', '__global__', '[[maybe_unused]]'),
    *('#if 0\n', '#if 1\n', '#ifdef X\n', '#else\n', '#elif 0\n', '#endif\n', '#include "x.h"\n'),
    *('#include <x>\n', '#include X\n', '#define MADE(f) void f(BE::Tensor y)\n', '#define M(a'),
    *('arg', 'ret', 'rets', 'stream', 'ctx.stream', 'attr.n', 'attrs.n:int8', 'attr.outs'),
    *('arg:float32[2]', 'ret:bfloat16', 'arg[99999999999]', 'attr.:', 'arg:nothing', 'ret[٣]'),
]


@contextlib.contextmanager
def ends():
    """Call a hang a failure; what is read here takes a fraction of a second."""

    def tell(*_):
        raise TimeoutError('the reader does not end')

    if not hasattr(signal, 'setitimer'):
        yield
        return
    before = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read(text, functions=None):
    """Read a source; return its functions, or None if it is refused as it should be."""
    with ends():
        includes(text)
        source = Source([Part('<one>', text), Part('<two>', '// the end')])
        for comment in source.comments:
            assert source.text[comment.start : comment.end] == comment.text
        assert len(source.code) == len(source.text)
        try:
            specs = read_functions(source, functions, 'fuzz')
        except KernelError as error:
            assert 'expected:' in str(error)
            return None
        wrapper_text(specs, graph=True)
    assert specs
    for spec in specs:
        assert spec.name.isascii() and spec.name.isidentifier()
        assert spec.of('ret') and len(spec.of('stream')) <= 1
        words = [str(token) for token in spec.tokens]
        assert normalize_tokens(words) == words
    return specs


soups = st.lists(st.sampled_from(WORDS), max_size=40).map(''.join)
functions = st.none() | st.just(['f', 'g']) | st.just({'f': 'arg ret', 'g': None, 'h': ['ret']})


@st.composite
def mutated(draw):
    """Draw a source that once was right: parts of it cut out, doubled, moved, or overwritten."""
    text = draw(st.sampled_from([SHARED, CUDA, CUDA + SHARED]))
    for _ in range(draw(st.integers(1, 6))):
        at, to = sorted(draw(st.integers(0, len(text))) for _ in range(2))
        to = min(to, at + draw(st.sampled_from([1, 3, 10, 50, len(text)])))
        piece = draw(st.sampled_from(['', text[at:to] * 2, text[at:to][::-1]]) | soups)
        text = text[:at] + piece + text[to:]
    return text


def fuzzed(count):
    return settings(
        deadline=None, derandomize=True, max_examples=count, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def check_soup(text, functions):
    read(text, functions)


def check_mutated(text, functions):
    read(text, functions)


def check_anything(text, word):
    read(text)
    read(f'// @BE f\nvoid f({text}')
    read(f'// @BE {text}\nvoid f(BE::Tensor y)')
    with contextlib.suppress(KernelError):
        read_token(word, 'fuzz')


ANYTHING = st.text(st.characters(), max_size=200)
TESTS = [
    (check_soup, (soups, functions)),
    (check_mutated, (mutated(), functions)),
    (check_anything, (ANYTHING, st.sampled_from(WORDS) | st.text(max_size=30) | st.integers())),
]


@pytest.mark.parametrize(('check', 'drawn'), TESTS, ids=lambda x: getattr(x, '__name__', ''))
def test_anything_is_read_or_refused(check, drawn):
    fuzzed(QUICK)(given(*drawn)(check))()


@pytest.mark.slow
@pytest.mark.parametrize(('check', 'drawn'), TESTS, ids=lambda x: getattr(x, '__name__', ''))
def test_anything_is_read_or_refused_for_long(check, drawn):
    fuzzed(THOROUGH)(given(*drawn)(check))()


def test_what_the_fuzzer_starts_from_is_right():
    assert [str(spec) for spec in read(CUDA)] == [
        'made arg ret attr.by:float32 stream',
        'scale arg:float32[2] ret:float32[1] attr.n:int32 stream',
    ]
    assert [spec.name for spec in read(CUDA + SHARED.replace('scale', 'scaled'))][2] == 'scaled'


LONG = {
    'word': lambda k: 'w' * k,
    'spaces': lambda k: ' ' * k,
    'lines': lambda k: '\n' * k,
    'brackets': lambda k: '([{<' * k,
    'square brackets': lambda k: '[' * k + ')' * k,
    'pointers': lambda k: '*' * k,
    'colons': lambda k: 'a::' * k,
    'slashes': lambda k: '/' * k,
    'comments': lambda k: '/*' * k,
    'lines of comment': lambda k: '// @BE f\n' * k,
    'annotated': lambda k: '\n'.join(
        f'// @BE f{i}\nvoid f{i}(BE::Tensor y);' for i in range(k // 100)
    ),
    'annotated macros': lambda k: '\n'.join(f'// @BE f{i}\nM(f{i})' for i in range(k // 100)),
    'quotes': lambda k: '"' * k,
    'raw strings': lambda k: 'R"x(' * k,
    'backslashes': lambda k: '\\' * k,
    'continued': lambda k: '\\\n' * k,
    'conditions': lambda k: '#if 0\n' * k,
    'conditions closed': lambda k: '#if 0\n// @BE f\n#endif\n' * (k // 4),
    'defines': lambda k: '#define M(a\n' * k,
    'pasted': lambda k: f'#define M(f) void f({" " * k}BE::Tensor y)\n// @BE f\nM(f)',
    'includes': lambda k: '#include "x.h"\n' * k,
    'overloads': lambda k: 'void f(BE::Tensor y) {}\n' * k,
    'overloads open': lambda k: 'void f(' * k,
    'overloads nested': lambda k: 'void f(' * k + ')' * k,
    'parameters': lambda k: 'BE::Tensor y, ' * k,
    'digits': lambda k: '1e' * k,
    'templates': lambda k: 'template <' * k,
    'comparisons': lambda k: 'a < b > c, ' * k,
    'zeros': lambda k: '\0' * k,
    'beyond ASCII': lambda k: '日' * k,
}


def check_long(text):
    read(text)
    read(f'// @BE f\n{text}\nvoid f(BE::Tensor y)')
    read(f'// @BE f\nvoid f(const BE::Tensor {text}, BE::Tensor y)')
    read(f'// @BE f arg ret{text}\nvoid f(const BE::Tensor x, BE::Tensor y)')


@pytest.mark.parametrize('what', LONG)
def test_long_texts_end(what):
    check_long(LONG[what](10_000))


@pytest.mark.slow
@pytest.mark.parametrize('what', LONG)
def test_very_long_texts_end(what):
    """Twice as long takes twice as long: squared, these would take hours."""
    check_long(LONG[what](300_000))
