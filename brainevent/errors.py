# SPDX-License-Identifier: Apache-2.0
"""Errors of brainevent, with the usual cause and remedy.

Every error derives from `BrainEventError` and also from the built-in exception that a reader
would catch without knowing the package.

=============================== ====================== =============================================
error                           also a                 cause, and what to do
=============================== ====================== =============================================
BrainEventError                 Exception              root of the tree
MathError                       ArithmeticError        value outside its domain; check the input
UnsupportedOperationError       NotImplementedError    no meaning for this matrix; often ``tocsr()``
BenchmarkDataFnNotProvidedError ValueError             call ``op.def_benchmark_data(fn)`` first
ShapeError                      ValueError             shapes do not fit; see expected and got
DtypeError                      TypeError              dtype or type not accepted; convert it
IndexRangeError                 ValueError, IndexError index outside the matrix; mend the structure
UnitError                       TypeError              units missing or unequal; convert them
OptionError                     ValueError             argument not accepted; use a listed value
FrozenError                     AttributeError         matrices are values; use ``with_data(...)``
KernelError                     RuntimeError           root of everything about kernels
BackendError                    ValueError             unknown platform or backend name; see list
KernelFallbackExhaustedError    NotImplementedError    no kernel serves here; move, or register one
KernelNotAvailableError         ValueError             backend asked for cannot serve; leave it open
KernelCompilationError          RuntimeError           kernel could not be made; see ``__cause__``
CompilationError                RuntimeError           compiler refused the source; see ``dump()``
HostCompilerIncompatibleError   RuntimeError           nvcc refuses the host compiler; set ``CXX``
KernelExecutionError            RuntimeError           kernel failed while running; see the text
CUDANotInstalledError           ImportError            CUDA libraries missing; install jax[cuda]
KernelToolchainError            RuntimeError           build tool missing; see the probe list
NvccNotFoundError               FileNotFoundError      no nvcc; set ``BRAINEVENT_NVCC_PATH``
HostCompilerNotFoundError       FileNotFoundError      no C++ compiler; install one or set ``CXX``
HeaderNotFoundError             FileNotFoundError      header missing; reinstall jaxlib, brainevent
GpuArchDetectionError           RuntimeError           unknown GPU; see ``set_compute_capability``
UnsupportedArchError            ValueError             nvcc older than the GPU; update it
KernelRegistrationError         ValueError             name taken by other content; choose another
KernelSignatureError            TypeError              kernel does not fit its operands; see text
KernelLoadError                 OSError                library not loadable; try ``clear_cache()``
=============================== ====================== =============================================

`BackendWarning` (a ``UserWarning``) is shown once for each preference that was passed over.
"""

from brainevent._error import *  # noqa: F403
from brainevent._error import __all__ as __all__
