# SPDX-License-Identifier: Apache-2.0
"""Schedule settings of an earlier release: the names are kept, and say that they tune nothing.

The CUDA kernels of this package choose their launch from the sizes of a call.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from brainevent._error import OptionError, expect, explain, warn

__all__ = ['HybridConfig', 'get_hybrid_config', 'init_csr_config']

ENVIRONMENT = 'BRAINEVENT_CSR_HYBRID_CONFIG'


@dataclass(frozen=True)
class HybridConfig:
    """How products of compressed rows were scheduled on a GPU. Kept for its name; tunes nothing.

    Parameters
    ----------
    block_size, fixed_scatter_blocks, tpr_threshold, task_nnz : int
        Positive.
    benchmark_records : tuple
        Measurements that led to the choice.

    Raises
    ------
    OptionError
        If a number is not positive (also a ``ValueError``).

    Examples
    --------
    >>> import brainevent
    >>> brainevent.HybridConfig(block_size=128).task_nnz
    4096
    """

    block_size: int = 256
    fixed_scatter_blocks: int = 2048
    tpr_threshold: int = 128
    task_nnz: int = 4096
    benchmark_records: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what could not schedule anything."""
        for name in _NUMBERS:
            value = getattr(self, name)
            expect(
                isinstance(value, int) and not isinstance(value, bool) and value > 0,
                OptionError,
                'HybridConfig',
                f'`{name}` is not a positive number.',
                expected='an integer of at least 1',
                got=lambda value=value: repr(value),
            )


_NUMBERS = tuple(f.name for f in fields(HybridConfig) if f.name != 'benchmark_records')


def get_hybrid_config() -> HybridConfig:
    """Return the settings from the environment, or the defaults. They tune nothing.

    ``BRAINEVENT_CSR_HYBRID_CONFIG`` may hold them as a JSON object; a warning then says that they
    have no effect.

    Returns
    -------
    HybridConfig

    Raises
    ------
    OptionError
        If the variable holds anything else (also a ``ValueError``).

    Examples
    --------
    >>> import brainevent
    >>> brainevent.get_hybrid_config()
    HybridConfig(block_size=256, fixed_scatter_blocks=2048, tpr_threshold=128, task_nnz=4096)
    """
    return _read(os.environ.get(ENVIRONMENT, ''))


@functools.lru_cache(maxsize=8)
def _read(text: str) -> HybridConfig:
    """Read settings and warn that they are inert, once for each text."""
    if not text.strip():
        return HybridConfig()
    try:
        found = json.loads(text)
        settings = HybridConfig(**found)
    except (ValueError, TypeError) as cause:
        raise OptionError(
            explain(
                'get_hybrid_config',
                f'{ENVIRONMENT} does not hold settings.',
                expected='a JSON object with some of ' + ', '.join(_NUMBERS),
                got=text,
                remedy=f'unset {ENVIRONMENT}: it has no effect',
            )
        ) from cause
    _say_inert('get_hybrid_config', f'{ENVIRONMENT}={text}')
    return settings


def init_csr_config(
    *,
    save: bool = True,
    device_kind: str | None = None,
    candidates: Sequence[HybridConfig] = (),
    **benchmark_kwargs: Any,
) -> HybridConfig:
    """Return the settings in force, and warn that there is nothing to tune.

    Nothing is measured and nothing is saved.

    Parameters
    ----------
    save, device_kind, candidates, **benchmark_kwargs
        Accepted and not used.

    Returns
    -------
    HybridConfig

    Examples
    --------
    >>> import brainevent, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')
    ...     brainevent.init_csr_config().block_size
    256
    """
    del save, device_kind, candidates, benchmark_kwargs
    _say_inert('init_csr_config', 'a call that would measure schedules')
    return get_hybrid_config()


def _say_inert(where: str, got: str) -> None:
    warn(
        explain(
            where,
            'there is no schedule to tune.',
            expected='nothing: CUDA kernels choose their launch from the sizes of a call',
            got=got,
            remedy='leave it out, and measure with `brainevent benchmark-performance`',
        ),
        UserWarning,
    )
