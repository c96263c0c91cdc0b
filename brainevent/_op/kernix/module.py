# SPDX-License-Identifier: Apache-2.0
"""CompiledModule: a loaded library, and its functions as functions of JAX arrays."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent import _compat
from brainevent._error import (
    DtypeError,
    KernelError,
    KernelRegistrationError,
    KernelSignatureError,
    ShapeError,
    expect,
    explain,
    listed,
)
from brainevent._op.ffi_naming import digest
from brainevent._op.kernix import runtime
from brainevent._op.kernix.runtime import PREFIX
from brainevent._op.kernix.tokens import Token

if TYPE_CHECKING:
    from brainevent._op.kernix.source import FunctionSpec


class UnknownFunctionError(KernelError, KeyError):
    """A module has no function of that name."""

    __str__ = Exception.__str__  # not KeyError's, which shows the repr of the text


@dataclass(frozen=True)
class Origin:
    """Where a module comes from: what the loader knows and a bare library does not tell."""

    name: str
    platform: str
    key: str
    contents: Mapping[str, str]
    specs: Mapping[str, FunctionSpec] = field(default_factory=dict)
    emulated: bool = False


class CompiledModule:
    """A compiled library, loaded into this process.

    Parameters
    ----------
    so_path : str or path-like
        The library. Loaders such as `load_cpp_inline` pass more than this.
    function_names : sequence of str
        The functions it offers to JAX.

    Attributes
    ----------
    path : str
    function_names : list of str
    content_hash : str
        The same for two modules that were made of the same source, options and compiler.
    name : str
    platform : {'cpu', 'gpu'}
        Where its functions run. CUDA sources that an emulator compiled run on the CPU.

    Raises
    ------
    KernelLoadError
        If the library cannot be loaded or does not have the functions (also an ``OSError``).

    See Also
    --------
    brainevent.load_cpp_inline, brainevent.load_cuda_inline
    """

    def __init__(
        self,
        so_path: str | os.PathLike[str],
        function_names: Sequence[str],
        *,
        _origin: Origin | None = None,
    ) -> None:
        self._path, self._function_names = str(so_path), list(function_names)
        self._origin = _origin or _bare(Path(so_path), self.function_names)
        library = runtime.open_library(Path(so_path), self._origin.key)
        self._handlers = {
            name: jax.ffi.pycapsule(runtime.symbol(library, PREFIX + name, self.path))
            for name in self.function_names
        }

    @property
    def path(self) -> str:
        """Path of the library."""
        return self._path

    @property
    def function_names(self) -> list[str]:
        """Names of the functions, in the order of the source."""
        return self._function_names

    @property
    def content_hash(self) -> str:
        """Hash of everything that decides what the library does."""
        return self._origin.key

    @property
    def name(self) -> str:
        """Name under which the module was loaded."""
        return self._origin.name

    @property
    def platform(self) -> str:
        """Platform on which the functions run, as operators spell it."""
        return 'gpu' if self._origin.platform == 'CUDA' else 'cpu'

    @property
    def ffi_platform(self) -> str:
        """Platform on which the functions run, as XLA's FFI spells it."""
        return self._origin.platform

    @property
    def is_emulated(self) -> bool:
        """Whether this is CUDA source that runs on the CPU."""
        return self._origin.emulated

    def __repr__(self) -> str:
        return f'CompiledModule({self.name!r}, {self.function_names})'

    def get_handler(self, name: str) -> Any:
        """Return the capsule of a function, as ``jax.ffi.register_ffi_target`` takes it.

        Parameters
        ----------
        name : str

        Raises
        ------
        KeyError
            If there is no such function.
        """
        self._expect(name)
        return self._handlers[name]

    def content_id(self, name: str) -> str:
        """Return the hash of one function: what its target names derive from."""
        self._expect(name)
        return self._origin.contents[name]

    def function(self, name: str) -> ModuleFunction:
        """Return a function as a function of JAX arrays; ``module[name]`` is the same.

        Parameters
        ----------
        name : str

        Returns
        -------
        ModuleFunction

        Raises
        ------
        KeyError
            If there is no such function.
        """
        self._expect(name)
        return ModuleFunction(self, name, self._origin.specs.get(name))

    __getitem__ = function

    def kernel(
        self,
        name: str,
        *,
        vmap_method: str | None = None,
        input_output_aliases: Mapping[int, int] | None = None,
    ) -> Callable[..., Any]:
        """Return a function as a kernel generator for `XLACustomKernel.def_kernel`.

        Static parameters of the operator that are attributes of the function reach it; others
        are for other kernels.

        Parameters
        ----------
        name : str
        vmap_method, input_output_aliases
            As for :meth:`ModuleFunction.__call__`.

        Returns
        -------
        callable

        Raises
        ------
        KeyError
            If there is no such function.
        """
        function = self.function(name)

        def generator(*, outs: Any, **static: Any) -> Callable[..., Any]:
            attrs = {key: value for key, value in static.items() if function.takes(key)}

            def kernel(*arrays: Any) -> Any:
                return function(
                    *arrays,
                    outs=outs,
                    vmap_method=vmap_method,
                    input_output_aliases=input_output_aliases,
                    **attrs,
                )

            return kernel

        return generator

    def _expect(self, name: str) -> None:
        expect(
            name in self._handlers,
            UnknownFunctionError,
            repr(self),
            f'no function {name!r}.',
            expected=lambda: listed(self.function_names),
            got=lambda: repr(name),
        )


class ModuleFunction:
    """A compiled function as a function of JAX arrays; made by :meth:`CompiledModule.function`.

    Its name within XLA derives from its content, so it runs the code of its own module, whatever
    was loaded under the same name before or after.
    """

    def __init__(self, module: CompiledModule, name: str, spec: FunctionSpec | None) -> None:
        self.module, self.name, self.spec = module, name, spec
        self.target = f'{runtime.OWN}{name}.{module.content_id(name)}'
        self._args: tuple[Token, ...] | None = spec.of('arg') if spec else None
        self._rets: tuple[Token, ...] | None = spec.of('ret') if spec else None
        self._attrs = {token.name: token for token in spec.of('attr')} if spec else None

    def __repr__(self) -> str:
        return f'ModuleFunction({self.spec or self.name})'

    def takes(self, attribute: str) -> bool:
        """Tell whether the function has an attribute of that name."""
        return self._attrs is None or attribute in self._attrs

    def __call__(
        self,
        /,
        *arrays: Any,
        outs: Any,
        vmap_method: str | None = None,
        input_output_aliases: Mapping[int, int] | None = None,
        **attrs: Any,
    ) -> Any:
        """Call the function, eagerly or inside `jax.jit`.

        Parameters
        ----------
        *arrays : Array
            Its operands in order.
        outs : pytree of jax.ShapeDtypeStruct
            Shapes and dtypes of the results, in order.
        vmap_method : str, optional
            As for `jax.ffi.ffi_call`; None: ``vmap`` raises.
        input_output_aliases : dict of int to int, optional
            Operand number to result number: the result starts as the operand's content.
        **attrs
            The numbers it takes, by name. They are converted to the types it declares.

        Returns
        -------
        pytree of Array
            Structured as ``outs``.

        Raises
        ------
        KernelSignatureError
            If the number of arrays or the names of attributes are not the function's.
        DtypeError, ShapeError
            If an array does not have the declared dtype or number of dimensions.
        """
        ready = [jnp.asarray(x) for x in arrays]
        flat, tree = jax.tree.flatten(outs)
        wanted = [_struct(out, self.name) for out in flat]
        _check_arrays(self.name, 'operand', ready, self._args)
        _check_arrays(self.name, 'result', wanted, self._rets)
        values = self._values(attrs)
        self.register()
        results = jax.ffi.ffi_call(
            self.target,
            wanted,
            vmap_method=vmap_method,
            input_output_aliases=dict(input_output_aliases or {}),
        )(*ready, **values)
        return jax.tree.unflatten(tree, results)

    def register(self) -> None:
        """Tell XLA the function's own name; a call does this by itself."""
        module = self.module
        if runtime.is_registered(self.target, module.ffi_platform):
            return  # the name derives from the content
        handler = module.get_handler(self.name), module.content_id(self.name)
        runtime.register({self.target: handler}, module.ffi_platform, module)

    def _values(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Convert attributes to the types that the function declares."""
        if self._attrs is None:
            return dict(attrs)
        expect(
            set(attrs) == set(self._attrs),
            KernelSignatureError,
            self.name,
            'the attributes are not those of the function.',
            expected=lambda: listed(self._attrs or ()),
            got=lambda: listed(attrs),
        )
        return {key: self._value(token, attrs[key]) for key, token in self._attrs.items()}

    def _value(self, token: Token, value: Any) -> Any:
        try:
            return attribute_value(token, value)
        except (TypeError, ValueError, OverflowError, jax.errors.JAXTypeError) as cause:
            raise KernelSignatureError(
                explain(
                    self.name,
                    f'the attribute {token.name!r} cannot be passed.',
                    expected=f'a number, known when the call is traced, that {token.dtype} holds'
                    + (f', {_LARGEST} at most' if token.dtype == 'uint64' else ''),
                    got=repr(value),
                    remedy='pass what changes from call to call as an array'
                    if _compat.is_tracer(value)
                    else 'declare a type that holds it: attr.NAME:DTYPE',
                )
            ) from cause


_LARGEST = 2**63 - 1  # JAX hands whole numbers on as signed ones, whatever their type


def attribute_value(token: Token, value: Any) -> Any:
    """Return an attribute as it travels: exact type, halves as bits, complex as two reals."""
    assert token.dtype is not None
    dtype = jnp.dtype(token.dtype)
    given = np.asarray(value)
    if given.ndim:
        raise TypeError('not a scalar')
    if given.dtype.kind in 'OSUmM' and not isinstance(value, int):
        raise TypeError('not a number')  # NumPy reads None as NaN, and text as what it spells
    if given.dtype.kind == 'c' and dtype.kind != 'c':
        raise TypeError('a complex number')
    if dtype.kind in 'iub':
        with np.errstate(invalid='ignore'):  # of NaN and infinities, which the next line refuses
            number = dtype.type(given[()])
        if number != given:
            raise ValueError('not a value of that type')
        if int(number) > _LARGEST:
            raise OverflowError('larger than JAX passes on')
    else:
        with np.errstate(over='ignore'):
            number = given.astype(dtype)[()]
        if np.isinf(number) and not np.isinf(given):
            raise OverflowError('too large')
    if token.dtype in ('float16', 'bfloat16'):
        return np.asarray(number).view(np.uint16)[()]
    if dtype.kind == 'c':
        return np.array([number.real, number.imag])
    return number


def register_ffi_target(
    target_name: str,
    module: CompiledModule,
    func_name: str,
    *,
    platform: str = 'CUDA',
    replace: bool = False,
    content_id: str | None = None,
) -> None:
    """Register a function of a module with XLA, for ``jax.ffi.ffi_call(target_name, ...)``.

    Parameters
    ----------
    target_name : str
    module : CompiledModule
    func_name : str
    platform : {'CUDA', 'cpu'}
        Where the module's functions run. While CUDA is emulated, ``'CUDA'`` means the CPU.
    replace : bool
        Accepted; the same content is no error anyway, and other content cannot replace it.
    content_id : str, optional
        What tells this content from others, instead of the module's own hash.

    Raises
    ------
    KeyError
        If the module has no such function.
    KernelRegistrationError
        If the name stands for other content, is empty, holds spaces or what cannot be printed, or
        if the module runs on another platform.
    """
    runtime.check_target_names([target_name], 'register_ffi_target')
    wanted = runtime.ffi_platform(platform, 'register_ffi_target')
    emulated = wanted == 'CUDA' and module.is_emulated
    expect(
        emulated or wanted == module.ffi_platform,
        KernelRegistrationError,
        f'register_ffi_target, {target_name!r}',
        'the module does not run on that platform.',
        expected=f'platform={module.ffi_platform!r}',
        got=f'platform={platform!r}',
    )
    content = content_id or module.content_id(func_name)
    handler = module.get_handler(func_name)
    runtime.register({target_name: (handler, content)}, module.ffi_platform, module)


def _bare(path: Path, names: Sequence[str]) -> Origin:
    """Describe a library that somebody else built."""
    try:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        content = str(path)  # the loader will say what is wrong with it
    key = digest('bare', content)
    return Origin(path.stem, 'cpu', key, {name: digest(key, name) for name in names})


def _struct(out: Any, where: str) -> jax.ShapeDtypeStruct:
    expect(
        hasattr(out, 'shape') and hasattr(out, 'dtype'),
        DtypeError,
        where,
        '`outs` holds something without a shape and a dtype.',
        expected='jax.ShapeDtypeStruct, or a pytree of them',
        got=lambda: repr(out),
    )
    return jax.ShapeDtypeStruct(out.shape, _compat.canonical_dtype(out.dtype))


def _check_arrays(
    where: str, what: str, arrays: Sequence[Any], tokens: tuple[Token, ...] | None
) -> None:
    if tokens is None:
        return
    expect(
        len(arrays) == len(tokens),
        KernelSignatureError,
        where,
        f'wrong number of {what}s.',
        expected=lambda: f'{len(tokens)}: ' + ', '.join(token.name for token in tokens),
        got=len(arrays),
    )
    for i, (x, token) in enumerate(zip(arrays, tokens, strict=True)):
        expect(
            token.dtype is None or x.dtype == token.dtype,
            DtypeError,
            where,
            f'{what} {i} (`{token.name}`) has another dtype.',
            expected=token.dtype,
            got=x.dtype,
        )
        expect(
            token.ndim is None or x.ndim == token.ndim,
            ShapeError,
            where,
            f'{what} {i} (`{token.name}`) has another number of dimensions.',
            expected=token.ndim,
            got=f'shape {x.shape}',
        )
