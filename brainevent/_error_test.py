# SPDX-License-Identifier: Apache-2.0
"""Errors: the tree, the built-ins they also are, and the shape of their texts."""

import io
import pickle
import warnings

import pytest

from brainevent import _error, errors


@pytest.mark.parametrize(
    ('name', 'parents'),
    [
        ('MathError', ('BrainEventError', ArithmeticError)),
        ('UnsupportedOperationError', ('BrainEventError', NotImplementedError)),
        ('BenchmarkDataFnNotProvidedError', ('BrainEventError', ValueError)),
        ('ShapeError', ('BrainEventError', ValueError)),
        ('DtypeError', ('BrainEventError', TypeError)),
        ('IndexRangeError', ('BrainEventError', ValueError, IndexError)),
        ('UnitError', ('BrainEventError', TypeError)),
        ('OptionError', ('BrainEventError', ValueError)),
        ('FrozenError', ('BrainEventError', AttributeError)),
        ('KernelError', ('BrainEventError', RuntimeError)),
        ('BackendError', ('KernelError', ValueError)),
        ('KernelFallbackExhaustedError', ('KernelError', NotImplementedError)),
        ('KernelNotAvailableError', ('KernelFallbackExhaustedError', ValueError)),
        ('KernelCompilationError', ('KernelError',)),
        ('CompilationError', ('KernelCompilationError',)),
        ('HostCompilerIncompatibleError', ('CompilationError',)),
        ('KernelExecutionError', ('KernelError',)),
        ('CUDANotInstalledError', ('KernelError', ImportError)),
        ('KernelToolchainError', ('KernelError',)),
        ('NvccNotFoundError', ('KernelToolchainError', FileNotFoundError)),
        ('HostCompilerNotFoundError', ('KernelToolchainError', FileNotFoundError)),
        ('HeaderNotFoundError', ('KernelToolchainError', FileNotFoundError)),
        ('GpuArchDetectionError', ('KernelToolchainError',)),
        ('UnsupportedArchError', ('KernelToolchainError', ValueError)),
        ('KernelRegistrationError', ('KernelError', ValueError)),
        ('KernelLoadError', ('KernelError', OSError)),
    ],
)
def test_tree(name, parents):
    error = getattr(errors, name)
    for parent in parents:
        assert issubclass(error, getattr(errors, parent) if isinstance(parent, str) else parent)
    copy = pickle.loads(pickle.dumps(error('the text')))
    assert type(copy) is error
    assert str(copy) == 'the text'


def test_every_error_stands_in_the_table_of_the_docstring():
    assert [name for name in errors.__all__ if name not in errors.__doc__] == []


def test_text():
    text = _error.explain(
        'csrmv',
        '`v` does not fit `shape`.',
        expected='shape (5,)',
        got='shape (7,)',
        remedy='pass transpose=True',
    )
    assert text == (
        'csrmv: `v` does not fit `shape`.\n'
        '    expected: shape (5,)\n'
        '    got:      shape (7,)\n'
        '    remedy:   pass transpose=True'
    )


def test_expect_asks_callables_only_on_failure():
    def never():
        raise AssertionError('asked on the happy path')

    _error.expect(True, errors.ShapeError, 'f', 'x', expected=never, got=never, remedy=never)
    with pytest.raises(errors.ShapeError, match='expected: 1\n    got:      2'):
        _error.expect(False, errors.ShapeError, 'f', 'x', expected=lambda: 1, got=lambda: 2)


def test_compilation_error_keeps_and_dumps_its_source():
    error = errors.CompilationError('no', 'line 2: bad', 'nvcc x.cu', source='int a;\nbad')
    assert (error.stage, error.command, error.compiler_output) == (
        'compile',
        'nvcc x.cu',
        'line 2: bad',
    )
    out = io.StringIO()
    error.dump(out)
    assert out.getvalue() == '    1  int a;\n    2  bad\nnvcc x.cu\nline 2: bad\n'
    again = pickle.loads(pickle.dumps(error))
    assert (again.command, again.source) == (error.command, error.source)


def test_unsupported_arch_takes_its_details_by_keyword():
    error = errors.UnsupportedArchError('no', compiler_output='o', command='c', stage='probe')
    assert (error.compiler_output, error.command, error.stage) == ('o', 'c', 'probe')


def test_a_warning_points_outside_the_package():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        exec(compile('\nwarn("mind this")', 'user.py', 'exec'), {'warn': _error.warn})
    (one,) = caught
    assert (one.category, one.filename, one.lineno) == (errors.BackendWarning, 'user.py', 2)
