# SPDX-License-Identifier: Apache-2.0
"""Reading C++: what is code, what is not, and where."""

import pytest

from brainevent._op.kernix.cpptext import Part, Source, blank, includes, switched_off


def source_of(text):
    return Source([Part('<test>', text)])


@pytest.mark.parametrize(
    ('text', 'kept'),
    [
        ('a // b\nc', 'a     \nc'),
        ('a /* b\n c */ d', 'a     \n      d'),
        ('a // b \\\n still b\nc', 'a       \n        \nc'),
        ('f("// no", x)', 'f(       , x)'),
        (r'"a\"b" c', '       c'),
        ("'\"' c", '    c'),
        ("1'000 + '2' c", "1'000 +     c"),
        ('R"x(" // )")x" c', '               c'),
        ('SURE"(a" c', 'SURE     c'),
        ('a / b * c', 'a / b * c'),
        ('/* never ends', '             '),
    ],
)
def test_comments_and_literals_become_spaces(text, kept):
    clear, _ = blank(text)
    assert clear == kept
    assert len(clear) == len(text)


def test_literals_are_kept_if_asked():
    assert blank('#include "x.h" // y', literals=False)[0].rstrip() == '#include "x.h"'


def test_only_real_line_comments_are_listed():
    _, comments = blank('"// one" /* // two */ // three\nR"(// four)"')
    assert [c.text for c in comments] == ['// three']


@pytest.mark.parametrize(
    ('code', 'off'),
    [
        ('#if 0\na\n#endif\nb', 'a'),
        ('#if 0\na\n#else\nb\n#endif\n', 'a'),
        ('#if 1\na\n#elif 0\nb\n#endif\n', ''),
        ('#if 0\n#if 1\na\n#endif\nc\n#endif\nb', '#if 1\na\n#endif\nc'),
        ('# if  0 \na\n', ''),
        ('#ifdef X\na\n#endif', ''),
    ],
)
def test_lines_that_are_switched_off(code, off):
    found = '\n'.join(code[a:b].strip() for a, b in switched_off(code))
    assert off in found
    assert bool(found) == bool(off)


def test_places_count_lines_of_each_part():
    source = Source([Part('a.cu', 'one\ntwo'), Part('b.cu', 'three\nfour')])
    for word, place in (
        ('one', 'a.cu:1'),
        ('two', 'a.cu:2'),
        ('three', 'b.cu:1'),
        ('four', 'b.cu:2'),
    ):
        assert source.place(source.text.index(word)) == place


def test_arguments_are_split_at_their_own_commas():
    source = source_of('f(A<int, 2> a, int (b)(int, int), c = {1, 2}) g')
    found, end = source.arguments(2)
    assert [p.text for p in found] == ['A<int, 2> a', 'int (b)(int, int)', 'c = {1, 2}']
    assert source.code[end:] == ' g'
    assert source_of('f()').arguments(2)[0] == []
    assert source_of('f( void )').arguments(2)[0] == []


def test_a_macro_is_written_out():
    source = source_of('#define MAKE(N, T) \\\n  void N ## _x(T a)\n// here\nMAKE(f, int)')
    assert source.made_by_macro(source.text.index('here') + 4).strip() == 'void f_x(int a)'
    assert source.made_by_macro(len(source.text)) is None
    assert source_of('// here\nMAKE(f, int)').made_by_macro(7) is None


def test_includes():
    text = """
#include "a.h"   // yes
#  include <b/c.h>
// #include "no.h"
/* #include "no.h" */
const char* s = "\\n#include <no.h>";
#if __has_include("d.h")
#include NAMED
"""
    assert includes(text) == (('"', 'a.h'), ('<', 'b/c.h'), ('"', 'd.h'), ('', ''))
