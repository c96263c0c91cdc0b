# SPDX-License-Identifier: Apache-2.0
"""Error tree: every error the package raises, and the one builder of their texts."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import brainunit as u
import jax

__all__ = [
    'BrainEventError',
    'MathError',
    'UnsupportedOperationError',
    'BenchmarkDataFnNotProvidedError',
    'ShapeError',
    'DtypeError',
    'IndexRangeError',
    'UnitError',
    'OptionError',
    'FrozenError',
    'KernelError',
    'BackendError',
    'KernelFallbackExhaustedError',
    'KernelNotAvailableError',
    'KernelCompilationError',
    'CompilationError',
    'HostCompilerIncompatibleError',
    'KernelExecutionError',
    'CUDANotInstalledError',
    'KernelToolchainError',
    'NvccNotFoundError',
    'HostCompilerNotFoundError',
    'HeaderNotFoundError',
    'GpuArchDetectionError',
    'UnsupportedArchError',
    'KernelRegistrationError',
    'KernelSignatureError',
    'KernelLoadError',
    'BackendWarning',
]


class BackendWarning(UserWarning):
    """A preferred backend was passed over, and why."""


class BrainEventError(Exception):
    """Root of every error raised by brainevent."""


class MathError(BrainEventError, ArithmeticError):
    """A value is outside the domain in which the result is defined."""


class UnsupportedOperationError(BrainEventError, NotImplementedError):
    """The operation has no meaning for this kind of matrix or array."""


class BenchmarkDataFnNotProvidedError(BrainEventError, ValueError):
    """An operator was asked for a benchmark but knows no benchmark data."""


class ShapeError(BrainEventError, ValueError):
    """A shape, length or rank does not fit the call."""


class DtypeError(BrainEventError, TypeError):
    """A dtype, or the type of an argument, is not accepted."""


class IndexRangeError(BrainEventError, ValueError, IndexError):
    """An index points outside the matrix."""


class UnitError(BrainEventError, TypeError, u.UnitMismatchError):  # type: ignore[misc]
    """Physical units are missing, unwanted, or do not match."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # what a handler of brainunit reads; the units stand in the message
        self.desc, self.units = message, ()


class OptionError(BrainEventError, ValueError):
    """An argument is none of the values the call accepts."""


class FrozenError(BrainEventError, AttributeError):
    """A value was to be changed in place."""


class KernelError(BrainEventError, RuntimeError):
    """Root of everything that concerns kernels and the ways to build them."""


class BackendError(KernelError, ValueError):
    """The name of a platform or a backend is not known."""


class KernelFallbackExhaustedError(KernelError, NotImplementedError):
    """No kernel of the operator can serve this call on this platform."""


class KernelNotAvailableError(KernelFallbackExhaustedError, ValueError):
    """The backend asked for by name cannot serve this call."""


class KernelCompilationError(KernelError):
    """A kernel could not be made; the reason is chained as ``__cause__``."""


class CompilationError(KernelCompilationError):
    """A compiler refused the source.

    Parameters
    ----------
    message : str
        What failed.
    compiler_output : str
        Everything the compiler printed.
    command : str
        The command line.
    stage : str
        The step of the build, such as ``'compile'`` or ``'link'``.
    source : str
        The text that was compiled, for `dump`.
    """

    def __init__(
        self,
        message: str,
        compiler_output: str = '',
        command: str = '',
        stage: str = 'compile',
        *,
        source: str = '',
    ) -> None:
        super().__init__(message)
        self.compiler_output = compiler_output
        self.command = command
        self.stage = stage
        self.source = source

    def dump(self, file: TextIO | None = None) -> None:
        """Print the source with line numbers, the command and the compiler's output.

        Parameters
        ----------
        file : text file, optional
            Where to print; standard error if not given.
        """
        file = sys.stderr if file is None else file
        for number, line in enumerate(self.source.splitlines(), 1):
            print(f'{number:5d}  {line}', file=file)
        print(self.command, self.compiler_output, sep='\n', file=file)


class HostCompilerIncompatibleError(CompilationError):
    """The CUDA compiler does not accept the host compiler it found."""


class KernelExecutionError(KernelError):
    """A kernel failed while it ran."""


class CUDANotInstalledError(KernelError, ImportError):
    """The CUDA runtime libraries are missing."""


class KernelToolchainError(KernelError):
    """A tool needed to build a kernel is missing or unusable."""


class NvccNotFoundError(KernelToolchainError, FileNotFoundError):
    """No CUDA compiler was found."""


class HostCompilerNotFoundError(KernelToolchainError, FileNotFoundError):
    """No C++ compiler was found."""


class HeaderNotFoundError(KernelToolchainError, FileNotFoundError):
    """A header needed by every kernel was not found."""


class GpuArchDetectionError(KernelToolchainError):
    """The compute capability of the GPU could not be found out."""


class UnsupportedArchError(KernelToolchainError, ValueError):
    """The compiler does not know the GPU architecture asked for.

    Parameters
    ----------
    message : str
        What failed.
    compiler_output, command, stage : str
        As for `CompilationError`.
    """

    def __init__(
        self, message: str, *, compiler_output: str = '', command: str = '', stage: str = 'compile'
    ) -> None:
        super().__init__(message)
        self.compiler_output = compiler_output
        self.command = command
        self.stage = stage


class KernelRegistrationError(KernelError, ValueError):
    """A name is taken by other content, or a registration is malformed."""


class KernelSignatureError(KernelError, TypeError):
    """A kernel is not of the kind, or takes not the operands, that a call needs."""


class KernelLoadError(KernelError, OSError):
    """A built kernel could not be loaded into the process."""


def explain(where: str, what: str, *, expected: Any, got: Any, remedy: Any = None) -> str:
    """Build the text of an error: what happened in which call, expected, got, remedy."""
    lines = [f'{where}: {what}', f'    expected: {_said(expected)}', f'    got:      {_said(got)}']
    if remedy is not None:
        lines.append(f'    remedy:   {_said(remedy)}')
    return '\n'.join(lines)


def expect(
    ok: Any,
    error_type: Callable[[str], Exception],
    where: str,
    what: str,
    *,
    expected: Any,
    got: Any,
    remedy: Any = None,
) -> None:
    """Raise ``error_type`` with the full text unless ``ok``; callables are asked only then."""
    if not ok:
        raise error_type(explain(where, what, expected=expected, got=got, remedy=remedy))


def listed(names: Any) -> str:
    """Names as they stand in a sentence, or 'none'."""
    return ', '.join(repr(name) for name in names) or 'none'


def warn(text: str, category: type[Warning] = BackendWarning) -> None:
    """Warn at the line of the first caller outside this package and JAX."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


_INSIDE = tuple(os.path.dirname(path) + os.sep for path in (__file__, jax.__file__))


def _said(part: Any) -> str:
    return str(part() if callable(part) else part)
