# SPDX-License-Identifier: Apache-2.0
"""Fingerprints: every cause of other machine code changes them, and nothing else does."""

import collections
import enum
import functools
import math
import os
import sys
import threading
import types

import numba
import numpy as np
import pytest

from brainevent._op import ffi_naming
from brainevent._op.ffi_naming import fingerprint

KERNEL = 'def kernel(x, out):\n    for i in range(out.size):\n        out[i] = {body}\n'


def made(body='x[i]', options=None, head=KERNEL, **scope):
    """Make an `njit` function of source and globals, anew each time."""
    exec(head.format(body=body), scope)
    return numba.njit(**(options or {}))(scope['kernel'])


def closing(value):
    def kernel(x, out):
        out[0] = x[0] + value

    return numba.njit(kernel)


def helper(body):
    scope = {}
    exec(f'def helper(v):\n    return {body}\n', scope)
    return numba.njit(scope['helper'])


def module(**contents):
    made = types.ModuleType('settings')
    vars(made).update(contents)
    return made


def table(hot):
    values = np.zeros(100_000)
    values[50_000] = hot
    return values


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


Point = collections.namedtuple('Point', 'x y')
Tniop = collections.namedtuple('Tniop', 'y x')
TYPES = (np.dtype([('a', 'f4'), ('b', 'i4')]), np.dtype([('b', 'i4'), ('a', 'f4')]))

CHANGES = {
    'constant': (lambda: made('x[i] + 1'), lambda: made('x[i] + 2')),
    'kind of constant': (lambda: made('x[i] + 1'), lambda: made('x[i] + 1.0')),
    'sign of zero': (lambda: made('x[i] + 0.0'), lambda: made('x[i] + -0.0')),
    'constant in a set': (lambda: made('x[i] in {1, 2}'), lambda: made('x[i] in {1, 3}')),
    'operation': (lambda: made('x[i] + 1'), lambda: made('x[i] - 1')),
    'inner function': (
        lambda: made('x[i] + 1', head='def kernel(x, out):\n    f = lambda i: {body}\n'),
        lambda: made('x[i] + 2', head='def kernel(x, out):\n    f = lambda i: {body}\n'),
    ),
    'handler of an exception': (
        lambda: made(head='def kernel(x):\n  try:\n    x()\n  except ValueError:\n    pass\n'),
        lambda: made(
            head='def kernel(x):\n  x()\n  try:\n    pass\n  except ValueError:\n    pass\n'
        ),
    ),
    'default': (
        lambda: made(head='def kernel(x, out, k=1):\n    out[0] = k\n'),
        lambda: made(head='def kernel(x, out, k=2):\n    out[0] = k\n'),
    ),
    'keyword default': (
        lambda: made(head='def kernel(x, out, *, k=1):\n    out[0] = k\n'),
        lambda: made(head='def kernel(x, out, *, k=2):\n    out[0] = k\n'),
    ),
    'closed-over number': (lambda: closing(1.0), lambda: closing(2.0)),
    'kind of closed-over number': (lambda: closing(1), lambda: closing(True)),
    'closed-over dtype': (lambda: closing(TYPES[0]), lambda: closing(TYPES[1])),
    'closed-over named tuple': (lambda: closing(Point(1, 2)), lambda: closing(Tniop(1, 2))),
    'one element of a large array': (lambda: closing(table(0)), lambda: closing(table(1))),
    'shape of an array': (lambda: closing(np.zeros((2, 3))), lambda: closing(np.zeros((3, 2)))),
    'array or number': (lambda: closing(np.zeros(())), lambda: closing(np.float64(0))),
    'global number': (lambda: made('x[i] * K', K=1), lambda: made('x[i] * K', K=2)),
    'global list': (lambda: made('K[i]', K=[1, 2]), lambda: made('K[i]', K=[1, 3])),
    'global dictionary': (lambda: made('K[i]', K={1: 2}), lambda: made('K[i]', K={1: 3})),
    'global tuple': (lambda: made('K[i]', K=(1, (2,))), lambda: made('K[i]', K=(1, (3,)))),
    'member of an enumeration': (
        lambda: made('K', K=Colour.RED),
        lambda: made('K', K=Colour.BLUE),
    ),
    'values of an enumeration': (
        lambda: made('K.A', K=enum.Enum('K', {'A': 1})),
        lambda: made('K.A', K=enum.Enum('K', {'A': 2})),
    ),
    'value that a module holds': (
        lambda: made('mod.K', mod=module(K=1)),
        lambda: made('mod.K', mod=module(K=2)),
    ),
    'value that a module in a module holds': (
        lambda: made('mod.sub.K', mod=module(sub=module(K=1))),
        lambda: made('mod.sub.K', mod=module(sub=module(K=2))),
    ),
    'closed-over module': (lambda: reading(module(K=1)), lambda: reading(module(K=2))),
    'function of a library': (lambda: made('f(x[i])', f=np.sin), lambda: made('f(x[i])', f=np.cos)),
    'helper': (
        lambda: made('f(x[i])', f=helper('v + 1')),
        lambda: made('f(x[i])', f=helper('v + 2')),
    ),
    'helper in a module': (
        lambda: made('mod.f(x[i])', mod=module(f=helper('v + 1'))),
        lambda: made('mod.f(x[i])', mod=module(f=helper('v + 2'))),
    ),
    'global or builtin': (lambda: made('len(x)'), lambda: made('len(x)', len=helper('3'))),
}
OPTIONS = (
    {'fastmath': True},
    {'fastmath': {'nnan'}},
    {'fastmath': {'nnan', 'ninf'}},
    {'parallel': True},
    {'boundscheck': True},
    {'error_model': 'numpy'},
    {'inline': 'always'},
    {'locals': {'i': numba.int32}},
)


def reading(mod):
    def kernel(x, out):
        out[0] = mod.K

    return numba.njit(kernel)


@pytest.mark.parametrize('cause', CHANGES)
def test_another_kernel_has_another_name(cause):
    one, other = (make() for make in CHANGES[cause])
    assert fingerprint(one) and fingerprint(other)
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize('cause', CHANGES)
def test_the_same_kernel_made_again_has_the_same_name(cause):
    make, _ = CHANGES[cause]
    assert fingerprint(make()) == fingerprint(make())


def test_compile_options_are_part_of_the_kernel():
    names = [fingerprint(made(options=options)) for options in (None, *OPTIONS)]
    assert None not in names
    assert len(set(names)) == len(names)


def test_functions_that_call_each_other_end():
    scope = {}
    exec('def even(n):\n    return odd(n - 1)\ndef odd(n):\n    return even(n - 1)\n', scope)
    scope.update({name: numba.njit(scope[name]) for name in ('even', 'odd')})
    assert fingerprint(scope['even']) not in (None, fingerprint(scope['odd']))


def test_attribute_of_that_name_does_not_drag_a_global_in():
    assert fingerprint(made('x.size', size=threading.Lock())) == fingerprint(made('x.size'))


@enum.unique
class Plain(enum.Enum):
    A = 1


class Mine:
    K = 1

    def method(self):
        return 1


class Failure(Exception):
    pass


@numba.experimental.jitclass([('k', numba.int64)])
class Compiled:
    def __init__(self):
        self.k = 1


@pytest.mark.parametrize(
    'value',
    [
        threading.Lock(),
        object(),
        Mine,
        Mine(),
        Mine().method,
        [].append,
        functools.partial(math.sin, 1.0),
        Compiled,
        np.array([object()], object),
        np.ma.masked_array([1, 2]),
        collections.OrderedDict(a=1),
        numba.vectorize(lambda x: x),
        numba.typed.List([1]),
        (1, [Mine()]),
        {'key': Mine()},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_content_cannot_tell_has_no_name(value):
    assert fingerprint(value) is None
    assert fingerprint(closing(value)) is None


@pytest.mark.parametrize(
    'value',
    [None, ..., 1j, b'x', '\ud800', slice(1, 2), range(3), {1: 'a'}, frozenset('ab'), Colour, Plain]
    + [Point, Point(1, 2), Failure, ValueError, np.add, np.sin, math.sin, len, int, np.float32]
    + [np.linalg.norm, numba.float32, numba.prange, np.dtype('f4'), np.datetime64('2020', 'D')],
)
def test_what_content_can_tell_has_a_name(value):
    assert fingerprint(value) == fingerprint(value) is not None


def test_open_file_has_no_name(tmp_path):
    with open(tmp_path / 'file', 'w') as file:
        assert fingerprint(closing(file)) is None


def test_python_function_inside_a_compiled_one_has_no_name():
    # numba would run what somebody else registered for it, which nobody can read here
    assert fingerprint(made('f(x[i])', f=lambda v: v)) is None


def test_deep_nesting_gives_no_name_instead_of_an_error():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    assert fingerprint(nested) is None
    while nested:
        nested = nested.pop()


def test_user_module_called_like_one_of_python_is_read(monkeypatch):
    user = module(K=1)
    user.__name__, user.__file__ = 'colorsys', '/somewhere/else/colorsys.py'
    monkeypatch.setitem(sys.modules, 'colorsys', user)
    one = fingerprint(made('mod.K', mod=user))
    user.K = 2
    assert one != fingerprint(made('mod.K', mod=user))


def test_changed_global_changes_the_name():
    scope = {'K': 1}
    exec(KERNEL.format(body='x[i] + K'), scope)
    kernel = numba.njit(scope['kernel'])
    before = fingerprint(kernel)
    scope['K'] = 2
    assert fingerprint(kernel) != before


def test_helper_compiled_with_an_older_global_is_not_named_after_the_new_one():
    scope = {'K': 1}
    exec('def helper(v):\n    return v + K\n' + KERNEL.format(body='helper(x[i])'), scope)
    scope['helper'] = numba.njit(scope['helper'])
    kernel = numba.njit(scope['kernel'])
    first = fingerprint(kernel)
    assert scope['helper'](1) == 2  # compiled for integers: K is 1 for ever
    assert fingerprint(kernel) == first
    scope['K'] = 2
    assert scope['helper'](1) == 2
    assert fingerprint(kernel) is None


def test_helper_that_reads_nothing_may_have_been_called_before():
    f = helper('v + 1')
    assert f(1) == 2
    assert fingerprint(made('f(x[i])', f=f)) == fingerprint(made('f(x[i])', f=helper('v + 1')))


def test_kernel_with_explicit_signatures_was_compiled_with_the_globals_of_its_definition():
    scope = {'K': 1}
    exec('def kernel(x, out):\n    out[0] = K\n', scope)
    assert fingerprint(numba.njit('void(f4[:], f4[:])')(scope['kernel'])) is None


def test_recycled_id_does_not_name_two_things():
    names = [fingerprint((list(range(k)), list(range(k)))) for k in range(50)]
    assert len(set(names)) == 50


STABLE = """
import numba, numpy as np
from brainevent._op.ffi_naming import fingerprint, process_name
FLAGS, K = {'nnan', 'ninf', 'nsz', 'arcp', 'contract'}, ('a', frozenset('qwertz'))

@numba.njit
def helper(v):
    return v + len(K) + np.pi

@numba.njit(fastmath=FLAGS)
def kernel(x, out):
    for i in numba.prange(out.size):
        out[i] = helper(x[i]) if x[i] not in {1, 2, 3} else 0
    if out[0] < 0:
        raise ValueError('negative')

print(fingerprint(kernel), process_name('x'))
"""


def test_names_are_the_same_in_every_process(child):
    seed = '1' if os.environ.get('PYTHONHASHSEED') != '1' else '2'
    name, unique = child(STABLE, PYTHONHASHSEED=seed).output().split()
    scope = {'print': lambda *_: None}
    exec(STABLE, scope)
    assert fingerprint(scope['kernel']) == name
    assert unique != ffi_naming.process_name('x')
    assert unique.split('_')[-2] not in ffi_naming.process_name('x')


def test_unique_names_are_unique():
    names = {ffi_naming.process_name('x') for _ in range(100)}
    assert len(names) == 100
    assert all(str(os.getpid()) in name for name in names)


def test_parts_of_a_digest_do_not_run_into_each_other():
    assert ffi_naming.digest('ab', 'c') != ffi_naming.digest('a', 'bc')
    assert len(ffi_naming.digest()) == ffi_naming.WIDTH
