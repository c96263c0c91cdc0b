# SPDX-License-Identifier: Apache-2.0
"""Which kernel serves a call; clearing JAX's caches when the answer changes.

Tables are never changed in place: a new dictionary takes the place of the old one, so that a call
being lowered in another thread reads either the old table or the new one, and needs no lock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax

from brainevent import config
from brainevent._error import (
    BackendError,
    DtypeError,
    KernelFallbackExhaustedError,
    KernelNotAvailableError,
    expect,
    explain,
    listed,
    warn,
)
from brainevent._op.backends import (
    backend_platforms,
    cuda_is_emulated,
    ensure_backend,
    get_backend_record,
)
from brainevent._typing import KernelGenerator, Supports

__all__ = ['KernelEntry', 'KernelTable', 'Prefer', 'effective_change', 'soften']


@dataclass(frozen=True)
class Prefer:
    """A backend that is taken if it can serve, and passed over without a word if it cannot.

    Derivative rules use it to hand on the caller's choice: a backend that knows only the forward
    operator must not make the backward pass fail.

    Parameters
    ----------
    backend : str
    """

    backend: str


Ask = str | Prefer | None


def soften(backend: Ask) -> Prefer | None:
    """Turn the demand of a caller into the preference of a derivative rule.

    Parameters
    ----------
    backend : str, Prefer or None

    Returns
    -------
    Prefer or None

    Examples
    --------
    >>> from brainevent._op.selection import soften
    >>> soften('numba')
    Prefer(backend='numba')
    >>> soften(None) is None
    True
    """
    return Prefer(backend) if isinstance(backend, str) else backend


@dataclass(frozen=True, eq=False)
class KernelEntry:
    """One registered kernel.

    Parameters
    ----------
    backend, platform : str
    kernel_generator : callable
        ``kernel_generator(**static, outs=outs)`` returns a function of the arrays.
    supports : callable, optional
        ``supports(**static, outs=outs)`` returns True, or the reason why not.
    asdefault : bool
        Whether it becomes the operator's default where it is registered.
    """

    backend: str
    platform: str
    kernel_generator: KernelGenerator
    supports: Supports | None = None
    asdefault: bool = False

    def check(self, where: str) -> KernelEntry:
        """Return the entry itself, or raise an error about what is wrong with it."""
        for what, value in (('backend', self.backend), ('platform', self.platform)):
            expect(
                isinstance(value, str),
                DtypeError,
                where,
                f'`{what}` is not a name.',
                expected='a string',
                got=lambda value=value: repr(value),
            )
        kernels = (('kg', self.kernel_generator), ('supports', self.supports or callable))
        for what, function in kernels:
            expect(
                callable(function),
                DtypeError,
                where,
                f'`{what}` is not callable.',
                expected='a function',
                got=lambda function=function: repr(function),
            )
        expect(
            self.backend,
            BackendError,
            where,
            'the name of the backend is empty.',
            expected='a name',
            got=repr(self.backend),
        )
        config.check_platform(where, self.platform)
        return self

    def refusal(self, static: dict[str, Any]) -> str | None:
        """Return why the kernel does not serve these static parameters, or None."""
        answer = True if self.supports is None else self.supports(**static)
        if answer is True:
            return None
        return answer if isinstance(answer, str) else 'its `supports` says no'


# Who asks for a backend. A rule's preference is passed over in silence, the others are not.
_CALL, _RULE, _TABLE = 'the call', 'a rule', 'the operator'

Request = tuple[str, Ask, config.Scope | None]


class KernelTable:
    """The kernels of one operator by platform and backend, and its defaults."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[str, dict[str, tuple[KernelEntry, ...]]] = {}
        self.defaults: dict[str, str] = {}
        self.requests: set[Request] = set()

    def of(self, platform: str) -> dict[str, tuple[KernelEntry, ...]]:
        """Return the kernels for a platform by backend.

        While CUDA kernels are emulated, those for the GPU serve calls on the CPU too.
        """
        own = self.entries.get(platform, {})
        if platform != 'cpu' or not cuda_is_emulated():
            return own
        emulated = self.entries.get('gpu', {}).get('cuda_raw')
        return {**own, 'cuda_raw': emulated} if emulated and 'cuda_raw' not in own else own

    def backends(self, platform: str) -> list[str]:
        """Return the registered backends in order of registration."""
        return list(self.of(platform))

    def platforms(self) -> list[str]:
        """Return the platforms with at least one kernel."""
        return [platform for platform, of in self.entries.items() if of]

    def add(self, *entries: KernelEntry) -> None:
        """Register kernels. One without ``supports`` takes the place of the backend's others."""
        for entry in entries:
            ensure_backend(entry.backend, entry.platform)
        with effective_change():
            tables = {platform: dict(of) for platform, of in self.entries.items()}
            defaults = dict(self.defaults)
            for entry in entries:
                of = tables.setdefault(entry.platform, {})
                kept = of.get(entry.backend, ()) if entry.supports is not None else ()
                of[entry.backend] = (entry, *kept)
                if entry.asdefault or entry.platform not in defaults:
                    defaults[entry.platform] = entry.backend
            self.entries, self.defaults = tables, defaults

    def set_default(self, platform: str, backend: str) -> None:
        """Choose the operator's own default."""
        where = f'{self.name}.set_default'
        config.check_platform(where, platform)
        expect(
            backend in self.of(platform),
            BackendError,
            where,
            f'no kernel {backend!r} on platform {platform!r}.',
            expected=lambda: 'one of ' + listed(self.backends(platform)),
            got=repr(backend),
        )
        with effective_change():
            self.defaults = {**self.defaults, platform: backend}

    def wishes(self, request: Request) -> list[tuple[str, str]]:
        """Return the backends in the order in which they are asked, with who asks for each."""
        platform, ask, scope = request
        if isinstance(ask, str):
            return [(ask, _CALL)]
        asked = [
            (ask.backend if ask else None, _RULE),
            (dict(scope or ()).get(platform), '`use_backend`'),
            (config.get_backend(platform), '`config.set_backend`'),
            (self.defaults.get(platform), _TABLE),
            *((backend, _TABLE) for backend in self.of(platform)),
        ]
        first: dict[str, str] = {}
        for backend, who in asked:
            if backend is not None:
                first.setdefault(backend, who)
        return list(first.items())

    def reach(self, request: Request) -> tuple[KernelEntry, ...]:
        """Return the kernels that may serve a request: all up to the first that serves every call.

        This is what `effective_change` compares. It needs no static parameters, so that one
        request stands for every call with the same choice of backend.
        """
        of = self.of(request[0])
        reached: list[KernelEntry] = []
        for backend, _ in self.wishes(request):
            ready = _missing(backend) is None
            for entry in of.get(backend, ()):
                reached.append(entry)
                if ready and entry.supports is None:
                    return tuple(reached)
        return tuple(reached)

    def choose(
        self, request: Request, static: dict[str, Any], broken: dict[str, str] | None = None
    ) -> KernelEntry:
        """Return the kernel that serves the call, or raise an error that says what could.

        ``broken`` are backends whose compiler was found to fail, each with the reason.
        """
        broken = broken or {}
        self.requests.add(request)
        _tables.setdefault(id(self), self)
        of = self.of(request[0])
        passed: list[tuple[str, str, str]] = []
        for backend, who in self.wishes(request):
            entry, why = _serve(backend, of.get(backend, ()), static)
            if backend in broken:
                entry, why = None, broken[backend]
            if entry is not None:
                for one in passed:
                    self._tell(*one, platform=request[0], taken=backend, broken=broken)
                return entry
            passed.append((backend, who, why))
        raise self._exhausted(request, {backend: why for backend, _, why in passed if why})

    def _tell(
        self, backend: str, who: str, why: str, *, platform: str, taken: str, broken: dict[str, str]
    ) -> None:
        """Warn once that a backend was passed over, and why."""
        if who == _RULE:
            return
        if not why:
            text = f'{self.name} has no kernel {backend!r} for {platform!r}, which {who} asks for'
        elif backend in broken or _missing(backend) is not None:
            # What is missing concerns the machine: one warning, not one for each operator.
            text = f'backend {backend!r} is not available: {why}'
        else:
            text = f'{self.name}: the {backend!r} kernel does not serve this call: {why}'
        if text not in _warned:
            warn(f'{text}. Using {taken!r} instead.')
            _warned.add(text)  # not before: under an error filter every call must raise

    def _exhausted(self, request: Request, refusals: dict[str, str]) -> Exception:
        """Build the error for a request that nothing can serve."""
        platform, ask, _ = request
        has = self.backends(platform)
        if isinstance(ask, str):
            why = refusals.get(ask, f'it is not registered for platform {platform!r}')
            usable = [name for name in has if name != ask and _missing(name) is None]
            return KernelNotAvailableError(
                explain(
                    self.name,
                    f'backend {ask!r} is not available on platform {platform!r}: {why}.',
                    expected='one of ' + listed(usable),
                    got=f'backend={ask!r}',
                    remedy='leave `backend` out, or pass one of these',
                )
            )
        if refusals:
            reasons = '; '.join(f'{name}: {why}' for name, why in refusals.items())
            return KernelFallbackExhaustedError(
                explain(
                    self.name,
                    f'no kernel can serve this call on platform {platform!r}.',
                    expected='a kernel that accepts the call',
                    got=reasons,
                    remedy='mend one of these, or register another kernel with `def_kernel`',
                )
            )
        there = {name: self.backends(name) for name in self.platforms()}
        return KernelFallbackExhaustedError(
            explain(
                self.name,
                f'no kernel is registered for platform {platform!r}.',
                expected='a call on a platform with kernels: '
                + (
                    ', '.join(f'{name!r} ({listed(of)})' for name, of in there.items())
                    or 'none yet'
                ),
                got=f'platform {platform!r}',
                remedy='move the inputs there with `jax.device_put`, or register a kernel with '
                f'`def_kernel(backend, {platform!r}, generator)`',
            )
        )


def check_ask(where: str, backend: Any) -> None:
    """Refuse what cannot be a choice of backend, at the call and before anything is traced."""
    if backend is None or isinstance(backend, Prefer) or (isinstance(backend, str) and backend):
        return
    expect(
        isinstance(backend, str),
        DtypeError,
        where,
        '`backend` is not a name.',
        expected='a string, or None for the default',
        got=lambda: f'{backend!r}',
    )
    raise BackendError(
        explain(
            where,
            'the name of the backend is empty.',
            expected='the name of a backend, or None for the default',
            got="backend=''",
        )
    )


@contextlib.contextmanager
def effective_change() -> Iterator[None]:
    """Surround every change of the tables; clear JAX's caches if a kernel in use changed.

    Compared are the requests that were ever lowered, per operator, choice of backend and
    platform. A table that nobody called yet can change at no cost.
    """
    with config.settings_lock():
        before = _picture()
        yield
        after = _picture()
    # Outside the lock: clearing runs finalisers, and other threads may wait for both locks.
    if any(after[key] != reach for key, reach in before.items()):
        jax.clear_caches()


def _picture() -> dict[tuple[int, Request], tuple[KernelEntry, ...]]:
    return {
        (number, request): table.reach(request)
        for number, table in list(_tables.items())
        for request in list(table.requests)
    }


# Tables of operators that were lowered. They live as long as the operator's primitive: for ever.
_tables: dict[int, KernelTable] = {}
_warned: set[str] = set()


def _serve(
    backend: str, entries: tuple[KernelEntry, ...], static: dict[str, Any]
) -> tuple[KernelEntry | None, str]:
    """Return the latest kernel that accepts the call, else the reasons ('' if there is none)."""
    why = _missing(backend) if entries else ''
    if why is not None:
        return None, why
    reasons: dict[str, None] = {}
    for entry in entries:
        reason = entry.refusal(static)
        if reason is None:
            return entry, ''
        reasons[reason] = None
    return None, '; '.join(reasons)


def _missing(backend: str) -> str | None:
    record = get_backend_record(backend)
    return None if record is None else record.missing()


config.connect(known=backend_platforms, guard=effective_change)
