# SPDX-License-Identifier: Apache-2.0
"""What launches and shared variables become, and that every line stays where it is."""

import re
import textwrap

import pytest

from tests.cuda_emulator import convert


def _same_lines(text):
    made = convert.convert(text)
    assert made.count('\n') == text.count('\n')
    return made


@pytest.mark.parametrize(
    ('text', 'made'),
    [
        (
            'k<<<g, 32>>>(x, 3);',
            'cuemu::launch("k", cuemu::Configuration(g, 32), '
            '[=](auto... cuemu_x) { k(cuemu_x...); }, x, 3);',
        ),
        (
            'if (a) ns::k<T, (2 > 1), f<3>()><<<dim3(1, 2), b[0], 4 >> 1, s>>>();',
            'if (a) cuemu::launch("ns::k<T, (2 > 1), f<3>()>", '
            'cuemu::Configuration(dim3(1, 2), b[0], 4 >> 1, s), '
            '[=](auto... cuemu_x) { ns::k<T, (2 > 1), f<3>()>(cuemu_x...); });',
        ),
        ('__shared__ float s[32][N + 1];',
         'auto& s = cuemu::shared<float[32][N + 1]>("s", [] {});'),
        ('__shared__ alignas(16) Pair<A, B> one, more[4];',
         'auto& one = cuemu::shared<Pair<A, B>>("one", [] {}); '
         'auto& more = cuemu::shared<Pair<A, B>[4]>("more", [] {});'),
        ('static __shared__ unsigned int n;',
         'auto& n = cuemu::shared<unsigned int>("n", [] {});'),
        ('volatile __shared__ int v[2];',
         'auto& v = cuemu::shared<volatile int[2]>("v", [] {});'),
        ('extern __shared__ __align__(sizeof(T)) unsigned char raw[];',
         'unsigned char* raw = cuemu::dynamic_shared<unsigned char>();'),
    ],
)  # fmt: skip
def test_becomes(text, made):
    assert _same_lines(f'void f() {{ {text} }}') == f'void f() {{ {made} }}'


def test_launch_through_a_value_or_a_bracket():
    assert '{ kernels[i](cuemu_x...); }' in convert.convert('void f() { kernels[i]<<<1, 2>>>(); }')
    assert '{ (a ? k : l)(cuemu_x...); }' in convert.convert('void f(){(a ? k : l)<<<1, 2>>>(); }')


@pytest.mark.parametrize(
    'text',
    [
        '// k<<<1, 2>>>(x);',
        '/* __shared__ float s[2]; */',
        'const char* s = "k<<<1, 2>>>(x);";',
        'const char* s = R"(k<<<1, 2>>>(x);)";',
        "int n = 1'000; char c = '\"'; int m = 2'000;",
        'auto f = &operator<<<int>;',
        '#define SHARED_MEMORY shared',
    ],
)
def test_is_left_alone(text):
    assert convert.convert(text) == text


def test_lines_stay_where_they_are():
    made = _same_lines(
        textwrap.dedent(
            """
            #define GO(KERNEL, ...) \\
              KERNEL \\
                <<<1,  \\
                   2>>> \\
                (__VA_ARGS__)
            void f() {
              k<int,
                3>
                <<<1,
                   2>>>
                (a,
                 b);
              __shared__
                  float s[3],
                        t[4];
              last();
            }
            """
        )
    )
    assert made.splitlines()[-2].strip() == 'last();'
    define = re.search(r'#define.*?[^\\]\n', made, re.DOTALL)[0]
    assert 'cuemu::launch' in define and define.endswith('__VA_ARGS__)\n')


def test_dynamic_memory_outside_functions():
    text = 'extern "C" {\nnamespace a::b {\nextern __shared__ int s[];\n}\n}\nvoid f() { g(s); }'
    assert 'static int* const s = cuemu::dynamic_shared<int>();' in _same_lines(text)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('void f() {\n  k<<<1, 2>>>;\n}', 'kernel:2: no arguments after <<<...>>>'),
        ('void f() { k<<<1, 2(x); }', 'kernel:1: <<< is never closed'),
        ('void f() { <<<1, 2>>>(x); }', 'kernel:1: no kernel before <<<'),
        ('void f() { k<<<1, 2>>>(x; }', 'kernel:1: ( is never closed'),
        ('#line 7 "/a/b.cuh"\n__shared__ int n;', 'b.cuh:7: __shared__ int n outside functions'),
        (
            '\n#line 7 "b.cuh"\n\nvoid f() { extern __shared__ int n; }',
            'b.cuh:8: extern __shared__',
        ),
        ('void f() { __shared__ int; }', 'kernel:1: __shared__ int is not understood'),
    ],
)
def test_what_is_not_understood_names_its_place(text, message):
    with pytest.raises(convert.ConversionError, match=re.escape(message)):
        convert.convert(text)


def test_headers_are_converted_once_and_name_their_origin(tmp_path):
    house, made = tmp_path / 'house', tmp_path / 'made'
    (house / 'deep').mkdir(parents=True)
    made.mkdir()
    (house / 'a.cuh').write_text(
        '#pragma once\n#include "deep/b.cuh"\nvoid f() { k<<<1, 2>>>(); }\n'
    )
    (house / 'deep' / 'b.cuh').write_text(
        '#pragma once\n#include "../a.cuh"\n__global__ void k();\n'
    )
    text = '#include <a.cuh>\n// #include "a.cuh"\n#include <system.h>\n  #  include "deep/b.cuh"\n'
    unit = convert.Unit([str(house)], made)
    lines = unit.convert(text).splitlines()
    assert re.fullmatch(rf'#include "{made}/a-\w+\.cuh"', lines[0])
    assert lines[1:3] == text.splitlines()[1:3]
    assert re.fullmatch(rf'  #  include "{made}/b-\w+\.cuh"', lines[3])
    (a,) = made.glob('a-*.cuh')
    first, _, include, launch = a.read_text().splitlines()
    assert first == f'#line 1 "{house}/a.cuh"'
    assert include == lines[3].strip().replace('#  i', '#i')
    assert 'cuemu::launch' in launch
