# SPDX-License-Identifier: Apache-2.0
"""XLACustomKernel: a JAX primitive with a table platform -> backend -> kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brainevent import _compat, config
from brainevent._error import (
    BackendError,
    BenchmarkDataFnNotProvidedError,
    BrainEventError,
    DtypeError,
    KernelCompilationError,
    KernelError,
    KernelFallbackExhaustedError,
    KernelNotAvailableError,
    ShapeError,
    UnitError,
    expect,
    explain,
    listed,
)
from brainevent._keywords import also_named
from brainevent._op import registry, rules
from brainevent._op.backends import CompilerMissing, get_backend_record
from brainevent._op.benchmark import BenchmarkResult, run_benchmark
from brainevent._op.selection import Ask, KernelEntry, KernelTable, check_ask
from brainevent._typing import Array, KernelGenerator, Rule, Supports

__all__ = ['KernelEntry', 'XLACustomKernel']


@dataclass(frozen=True)
class _Outs:
    """The results of a call in hashable form: a parameter of the primitive."""

    flat: tuple[jax.ShapeDtypeStruct, ...]
    tree: Any

    @classmethod
    def of(cls, where: str, outs: Any) -> _Outs:
        """Read any pytree of things with a shape and a dtype."""
        if isinstance(outs, _Outs):
            return outs
        flat, tree = jax.tree.flatten(outs)
        for leaf in flat:
            expect(
                hasattr(leaf, 'shape') and hasattr(leaf, 'dtype'),
                DtypeError,
                where,
                '`outs` holds something without a shape and a dtype.',
                expected='jax.ShapeDtypeStruct, or a pytree of them',
                got=lambda leaf=leaf: leaf,
            )
        return cls(tuple(map(_plain_struct, flat)), tree)

    def pytree(self) -> Any:
        """Return the structure the caller gave."""
        return jax.tree.unflatten(self.tree, self.flat)


def _plain_struct(leaf: Any) -> jax.ShapeDtypeStruct:
    """Return shape and dtype alone, the dtype as JAX stores it."""
    dtype = _compat.canonical_dtype(leaf.dtype)
    if type(leaf) is jax.ShapeDtypeStruct and leaf.dtype == dtype and leaf.sharding is None:
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, dtype)


class _OperatorPrimitive(_compat.Primitive):
    """A primitive that completes its parameters, so that rules may bind it with what they got."""

    multiple_results = True

    def bind(self, /, *arrays: Any, outs: Any, backend: Ask = None, **params: Any) -> Any:
        params.setdefault('scope_', config.current_scope())
        params.update(outs=_Outs.of(self.name, outs), backend=backend)
        return super().bind(*_compat.align_varying(arrays), **params)  # type: ignore[no-untyped-call]


class XLACustomKernel:
    """An operator with its own kernels, derivative and batching rules.

    Parameters
    ----------
    name : str
        Name of the primitive. A name in use gives a ``UserWarning``; both operators stay usable.
    doc : str, optional
        What the operator computes.

    Notes
    -----
    The backend of a call is chosen when it is lowered: per call, else `use_backend`, else
    `config.set_backend`, else the operator's default, else the first registered. Within a backend
    the kernel registered last whose ``supports`` accepts the call is taken.

    Examples
    --------
    >>> import brainevent
    >>> op = brainevent.XLACustomKernel('doc_shift')
    >>> op.def_kernel('jax_raw', 'cpu', lambda *, by, outs: lambda x: [x + by])
    >>> op(jnp.arange(3.), by=1, outs=[jax.ShapeDtypeStruct((3,), jnp.float32)])
    [Array([1., 2., 3.], dtype=float32)]
    """

    def __init__(self, name: str, doc: str | None = None) -> None:
        expect(
            isinstance(name, str) and name,
            DtypeError,
            'XLACustomKernel',
            '`name` is not a name.',
            expected='a non-empty string',
            got=lambda: repr(name),
        )
        self.name = name
        self.primitive = _OperatorPrimitive(name)
        self.__doc__ = doc or type(self).__doc__
        self._table = KernelTable(name)
        self._call: Callable[..., Any] | None = None
        self._tags: tuple[str, ...] = ()
        self._benchmark_data: Callable[..., Any] | None = None
        self._shape_check: Callable[..., None] | None = None
        self.primitive.def_impl(partial(_compat.apply_primitive, self.primitive))
        self.primitive.def_abstract_eval(self._abstract_eval)
        for platform in config.PLATFORMS:
            _compat.set_lowering(self.primitive, platform, partial(self._lower, platform))
        self.register_general_batching()
        registry.register(name, self)

    def __repr__(self) -> str:
        return f'XLACustomKernel({self.name!r})'

    # --- calling ----------------------------------------------------------------------------

    def __call__(self, *arrays: Any, outs: Any, backend: Ask = None, **static: Any) -> Any:
        """Bind the operator.

        Parameters
        ----------
        *arrays : Array
            Inputs, without units.
        outs : pytree of jax.ShapeDtypeStruct
            Shapes and dtypes of the results.
        backend : str, optional
            Demand a backend for this call.
        **static
            Hashable parameters, handed to the kernel generator.

        Returns
        -------
        pytree of Array
            Structured as ``outs``.

        Raises
        ------
        DtypeError
            If a parameter is not hashable or an input is not an array (also a ``TypeError``).
        KernelNotAvailableError
            If ``backend`` is given and cannot serve this call.
        KernelFallbackExhaustedError
            If no kernel can serve it.
        KernelCompilationError
            If the chosen kernel cannot be made.
        """
        check_ask(self.name, backend)
        if isinstance(backend, str):
            self._expect_registered(backend)
        for key, value in static.items():
            self._expect_hashable(key, value)
        spec = _Outs.of(self.name, outs)
        ready = [self._as_array(i, x) for i, x in enumerate(arrays)]
        results = self.primitive.bind(*ready, outs=spec, backend=backend, **static)
        return jax.tree.unflatten(spec.tree, results)

    def _expect_registered(self, backend: str) -> None:
        """Refuse a demand that no platform can serve before anything is traced."""
        has = dict.fromkeys(b for p in self._table.platforms() for b in self._table.backends(p))
        expect(
            backend in has,
            KernelNotAvailableError,
            self.name,
            f'backend {backend!r} is not available.',
            expected=lambda: 'one of ' + listed(has),
            got=f'backend={backend!r}',
            remedy='leave `backend` out, or pass one of these',
        )

    def _expect_hashable(self, key: str, value: Any) -> None:
        try:
            hash(value)
        except TypeError as error:
            raise DtypeError(
                explain(
                    self.name,
                    f'the parameter `{key}` is not hashable.',
                    expected='a hashable value such as a number, a string or a tuple',
                    got=type(value).__name__,
                    remedy='pass arrays by position, and tuples for lists',
                )
            ) from error

    def _as_array(self, position: int, x: Any) -> Any:
        """Return an input as JAX takes it, or refuse it."""
        if isinstance(x, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
            return x
        expect(
            not hasattr(x, 'mantissa'),
            UnitError,
            self.name,
            f'input {position} has a unit.',
            expected='an array without unit',
            got=lambda: getattr(x, 'unit', x),
            remedy='take the unit off before the call and put it on the result',
        )
        expect(
            hasattr(x, '__jax_array__'),
            DtypeError,
            self.name,
            f'input {position} is no array.',
            expected='an array',
            got=lambda: type(x).__name__,
            remedy='use jnp.asarray',
        )
        return jnp.asarray(x.__jax_array__())

    def _abstract_eval(self, *avals: Any, outs: _Outs, scope_: Any, **params: Any) -> list[Any]:
        if self._shape_check is not None:
            static = {key: value for key, value in params.items() if key != 'backend'}
            self._shape_check(*avals, outs=outs.pytree(), **static)
        return _compat.abstract_results(outs.flat, avals)

    # --- lowering ---------------------------------------------------------------------------

    def _lower(
        self,
        platform: str,
        ctx: Any,
        /,
        *values: Any,
        outs: _Outs,
        backend: Ask,
        scope_: Any,
        **static: Any,
    ) -> Any:
        params = {**static, 'outs': outs.pytree()}
        broken: dict[str, str] = {}
        while True:
            entry = self._table.choose((platform, backend, scope_), params, broken)
            try:
                return self._lower_entry(platform, ctx, entry, params, outs, values)
            except CompilerMissing as error:
                broken[entry.backend] = str(error)  # the next choice passes it over

    def _lower_entry(
        self, platform: str, ctx: Any, entry: KernelEntry, params: Any, outs: _Outs, values: Any
    ) -> Any:
        try:
            kernel = entry.kernel_generator(**params)
            return _compat.lower_traced(self._checked(entry, kernel, outs))(ctx, *values)
        except CompilerMissing:
            raise
        except (KernelCompilationError, KernelFallbackExhaustedError) as error:
            error.add_note(self._ways_out(entry))
            raise
        except Exception as error:
            if isinstance(error, BrainEventError) and not isinstance(error, KernelError):
                raise  # a refusal of the input, not a failure of the kernel
            raise KernelCompilationError(
                explain(
                    self.name,
                    f'the {entry.backend!r} kernel could not be made for {platform!r}.',
                    expected='a kernel',
                    got=f'{type(error).__name__}: {error}',
                    remedy=self._ways_out(entry),
                )
            ) from error

    def _checked(self, entry: KernelEntry, kernel: Any, outs: _Outs) -> Callable[..., Any]:
        """Return the kernel with its results checked against ``outs``."""
        where = f'{self.name}, backend {entry.backend!r}'

        def run(*arrays: Array) -> list[Any]:
            results = jax.tree.leaves(kernel(*_compat.replicated(arrays)))
            expect(
                len(results) == len(outs.flat),
                ShapeError,
                where,
                'wrong number of results.',
                expected=f'{len(outs.flat)}, as in `outs`',
                got=len(results),
            )
            for position, (result, out) in enumerate(zip(results, outs.flat, strict=True)):
                shape, dtype = jnp.shape(result), jnp.result_type(result)
                expect(
                    shape == out.shape,
                    ShapeError,
                    where,
                    f'result {position} has another shape.',
                    expected=f'shape {out.shape}, as in `outs`',
                    got=f'shape {shape}',
                )
                expect(
                    dtype == out.dtype,
                    DtypeError,
                    where,
                    f'result {position} has another dtype.',
                    expected=f'{out.dtype}, as in `outs`',
                    got=dtype,
                )
            return results

        return run

    def _ways_out(self, entry: KernelEntry) -> str:
        others = [b for b in self._table.backends(entry.platform) if b != entry.backend]
        if not others:
            return f'no other backend is registered for platform {entry.platform!r}'
        return (
            f'other backends are {listed(others)}: pass `backend={others[0]!r}` to the call, or '
            f'set `brainevent.config.set_backend({entry.platform!r}, {others[0]!r})`'
        )

    # --- kernels ----------------------------------------------------------------------------

    def def_kernel(
        self,
        backend: str,
        platform: str,
        kg: KernelGenerator,
        asdefault: bool = False,
        supports: Supports | None = None,
    ) -> None:
        """Register a kernel; it takes effect at once, in compiled functions too.

        Parameters
        ----------
        backend : str
            A known backend or a new name.
        platform : {'cpu', 'gpu', 'tpu'}
        kg : callable
            Kernel generator: ``kg(**static, outs=outs)`` returns a function of the arrays that
            returns the results in order.
        asdefault : bool
            Make it the operator's default; the first kernel of a platform is the default anyway.
        supports : callable, optional
            ``supports(**static, outs=outs)`` returns True, or the reason why this kernel does
            not serve the call. A kernel without it replaces those the backend had before.

        Raises
        ------
        DtypeError
            If an argument has the wrong type (also a ``TypeError``).
        BackendError
            If the platform is not known or a name is empty (also a ``ValueError``).
        """
        entry = KernelEntry(backend, platform, kg, supports, asdefault)
        self._table.add(entry.check(f'{self.name}.def_kernel'))

    def adopt(self, entries: Iterable[KernelEntry]) -> None:
        """Register kernels that were checked where they were made, all at once.

        Parameters
        ----------
        entries : iterable of KernelEntry
            In the order of registration.
        """
        self._table.add(*entries)

    def def_numba_kernel(self, kg: KernelGenerator, asdefault: bool = False) -> None:
        """Register a kernel for backend 'numba' on the CPU; see `def_kernel`."""
        self.def_kernel('numba', 'cpu', kg, asdefault)

    def def_cuda_raw_kernel(self, kg: KernelGenerator, asdefault: bool = False) -> None:
        """Register a kernel for backend 'cuda_raw' on the GPU; see `def_kernel`."""
        self.def_kernel('cuda_raw', 'gpu', kg, asdefault)

    def def_warp_kernel(self, kg: KernelGenerator, asdefault: bool = False) -> None:
        """Register a kernel for backend 'warp' on the GPU; see `def_kernel`."""
        self.def_kernel('warp', 'gpu', kg, asdefault)

    def def_triton_kernel(self, kg: KernelGenerator, asdefault: bool = False) -> None:
        """Register a kernel for backend 'triton' on the GPU; see `def_kernel`."""
        self.def_kernel('triton', 'gpu', kg, asdefault)

    def def_numba_cuda_kernel(self, kg: KernelGenerator, asdefault: bool = False) -> None:
        """Register a kernel for backend 'numba_cuda' on the GPU; see `def_kernel`."""
        self.def_kernel('numba_cuda', 'gpu', kg, asdefault)

    def def_pallas_kernel(
        self, platform: str, kg: KernelGenerator, asdefault: bool = False
    ) -> None:
        """Register a kernel for backend 'pallas' on 'gpu' or 'tpu'; see `def_kernel`."""
        expect(
            platform in ('gpu', 'tpu'),
            BackendError,
            f'{self.name}.def_pallas_kernel',
            f'pallas does not run on {platform!r}.',
            expected="'gpu' or 'tpu'",
            got=repr(platform),
        )
        self.def_kernel('pallas', platform, kg, asdefault)

    def available_backends(self, platform: str) -> list[str]:
        """Return the backends with a kernel for a platform, in order of registration.

        On the CPU, a backend whose requirement is missing is left out. What a GPU or TPU needs
        may not be judged from a machine without one, so there the list is what is registered.

        Parameters
        ----------
        platform : {'cpu', 'gpu', 'tpu'}

        Returns
        -------
        list of str
        """
        names = self._table.backends(platform)
        if platform != 'cpu':
            return names
        records = {name: get_backend_record(name) for name in names}
        return [name for name, record in records.items() if not record or not record.missing()]

    def set_default(self, platform: str, backend: str) -> None:
        """Choose the operator's default backend; compiled functions follow.

        Parameters
        ----------
        platform : {'cpu', 'gpu', 'tpu'}
        backend : str

        Raises
        ------
        BackendError
            If there is no such kernel (also a ``ValueError``).
        """
        self._table.set_default(platform, backend)

    def get_default(self, platform: str) -> str | None:
        """Return the operator's default backend on a platform, or None."""
        return self._table.defaults.get(platform)

    @property
    def defaults(self) -> dict[str, str]:
        """Default backend by platform; a copy."""
        return dict(self._table.defaults)

    # --- rules ------------------------------------------------------------------------------

    def within_scope(self, rule: Rule) -> Rule:
        """Run a rule with the parameters its author knows, under the call's own `use_backend`."""

        @wraps(rule)
        def run(*args: Any, outs: _Outs, scope_: Any, **params: Any) -> Any:
            with config.scoped(scope_):
                return rule(*args, outs=outs.pytree(), **params)

        return run

    @also_named(fn='fun')
    def def_jvp_rule(self, fun: Rule) -> None:
        """Register a raw forward rule ``fun(primals, tangents, **params)``.

        It returns the results and their tangents. Tangents may be symbolic zeros.
        """
        _compat.set_jvp(self.primitive, self.within_scope(fun))

    def def_jvp_rule2(self, *jvp_rules: Rule | None) -> None:
        """Register one forward rule for each input; see `defjvp`."""
        rules.defjvp(self, *jvp_rules)

    @also_named(fn='fun')
    def def_transpose_rule(self, fun: Rule) -> None:
        """Register a transpose rule ``fun(cotangents, *operands, **params)``.

        It returns one cotangent for each operand, None for those without. Cotangents are arrays;
        operands whose cotangent is wanted are undefined primals.
        """
        rule = rules.transposed(self.name, self.within_scope(fun))
        _compat.set_transpose(self.primitive, rule)

    @also_named(fn='fun')
    def def_batching_rule(self, fun: Rule) -> None:
        """Register a batching rule ``fun(args, axes, **params)`` returning results and axes."""
        _compat.set_batching(self.primitive, self.within_scope(fun))

    def register_general_batching(self) -> None:
        """Batch by running one element after the other; see `general_batching_rule`."""
        self.def_batching_rule(partial(rules.general_batching_rule, self.primitive))

    def def_shape_check(self, fn: Callable[..., None]) -> None:
        """Register ``fn(*avals, outs=outs, **static)``, which raises if shapes do not fit."""
        self._shape_check = fn

    # --- description ------------------------------------------------------------------------

    def def_call(self, fn: Callable[..., Any]) -> None:
        """Say which public function calls the operator."""
        self._call = fn

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the public function given to `def_call`; ValueError if there is none."""
        expect(
            self._call is not None,
            BenchmarkDataFnNotProvidedError,
            self.name,
            'no public function is known.',
            expected='`def_call(fn)` before `call`',
            got='none',
        )
        assert self._call is not None
        return self._call(*args, **kwargs)

    def def_tags(self, *tags: str) -> None:
        """Replace the words under which `get_primitives_by_tags` finds the operator."""
        self._tags = tuple(dict.fromkeys(tags))

    @property
    def tags(self) -> set[str]:
        """Tags of the operator; a copy."""
        return set(self._tags)

    def def_benchmark_data(self, fn: Callable[..., Sequence[Any]]) -> None:
        """Say which inputs to measure: ``fn(platform=...)`` returns a list of BenchmarkConfig."""
        self._benchmark_data = fn

    def benchmark(
        self,
        *,
        platform: str,
        n_warmup: int = 5,
        n_runs: int = 20,
        n_batch_per_run: int = 1,
        compare_results: bool = True,
        rtol: float = 1e-3,
        atol: float = 1e-3,
        verbose: bool = False,
        catch_errors: bool = True,
        backends: Sequence[str] | None = None,
    ) -> BenchmarkResult:
        """Measure the public function under every backend, on the data of `def_benchmark_data`.

        Parameters
        ----------
        platform : {'cpu', 'gpu', 'tpu'}
        n_warmup, n_runs, n_batch_per_run : int
            As in `benchmark_function`.
        compare_results : bool
            Print where backends differ by more than ``rtol`` and ``atol``.
        rtol, atol : float
        verbose : bool
            Print each time when it is known.
        catch_errors : bool
            Keep a failure as a record instead of raising it.
        backends : sequence of str, optional
            Those to measure; all available ones if not given.

        Returns
        -------
        BenchmarkResult

        Raises
        ------
        BenchmarkDataFnNotProvidedError
            Without `def_call` and `def_benchmark_data` before.
        """
        return run_benchmark(
            self.name,
            self._call,
            self._benchmark_data,
            config.check_platform(f'{self.name}.benchmark', platform),
            self.available_backends(platform) if backends is None else backends,
            n_warmup=n_warmup,
            n_runs=n_runs,
            n_batch_per_run=n_batch_per_run,
            compare_results=compare_results,
            rtol=rtol,
            atol=atol,
            verbose=verbose,
            catch_errors=catch_errors,
        )
