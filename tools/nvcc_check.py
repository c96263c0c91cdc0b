# SPDX-License-Identifier: Apache-2.0
"""Compile the CUDA kernels with NVIDIA's compiler as strictly as it goes; no GPU is needed.

Every unit is built for several architectures and as PTX, with warnings as errors. A kernel that
spills registers, keeps arrays in local memory or takes more registers than a full block leaves is
a failure. The handlers of the built libraries are then driven by hand, without a driver.

usage: python tools/nvcc_check.py [--quick] [PATTERN]
"""

from __future__ import annotations

import ctypes
import fnmatch
import itertools
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from brainevent import NvccNotFoundError
from brainevent._edge.kernels.cuda_units import SOURCES
from brainevent._op.kernix.cpptext import Part, Source
from brainevent._op.kernix.nvcc import find_nvcc
from brainevent._op.kernix.source import FunctionSpec, read_functions
from brainevent._op.kernix.toolchain import include_dirs
from brainevent._op.kernix.wrapper import wrapper_text
from tests.cuda import drive
from tools.cuda_units import every_unit

ARCHITECTURES = ('80', '90', '100')
# One unit of each operator and each walk, and one of each kind of number.
QUICK = (
    'product_Compressed_half', 'product_Pairs_complex', 'sample_Tagged_float',
    'update_Table_double', 'scale_Full_whole', 'pick_Compressed_float',
)  # fmt: skip
REGISTERS = 96  # 65,536 of a multiprocessor serve two blocks of 256 threads and more


class Built(NamedTuple):
    """What came of a unit."""

    seconds: float
    registers: int
    wrong: list[str]


def compile_unit(name: str, text: str, architectures: tuple[str, ...], folder: Path) -> Built:
    """Build a unit, and find what is wrong with it."""
    source = Source([Part(f'<{name}>', text)])
    specs = read_functions(source, None, name)
    file, library = folder / f'{name}.cu', folder / f'{name}.so'
    file.write_text(f'{text}\n{wrapper_text(specs, True)}', encoding='utf-8')
    targets = [f'-gencode=arch=compute_{a},code=sm_{a}' for a in architectures]
    targets.append(f'-gencode=arch=compute_{architectures[0]},code=compute_{architectures[0]}')
    command = [
        find_nvcc(), '-std=c++17', '-O3', '-shared', '-Xcompiler', '-fPIC,-Wall,-Wextra',
        '-Werror', 'all-warnings', '-Xptxas', '-v,-warn-spills,-warn-lmem-usage', *targets,
        *(f'-I{include}' for include in include_dirs([str(SOURCES)])),
        str(file), '-o', str(library),
    ]  # fmt: skip
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds, said = time.perf_counter() - start, done.stdout + done.stderr
    registers = max(map(int, re.findall(r'Used (\d+) registers', said)), default=0)
    if done.returncode:
        return Built(seconds, registers, [f'{name}: nvcc refused it\n{said[-3000:]}'])
    wrong = [f'{name}: {line.strip()}' for line in said.splitlines() if _is_costly(line)]
    wrong += [f'{name}: {fault}' for fault in _driven(library, specs)]
    return Built(seconds, registers, wrong)


def report(built: dict[str, Built]) -> None:
    """Print for every operator how many units it has, how long they take and what they need."""
    print(
        '| operator | units | seconds each: median, most | registers at most |\n|---|---|---|---|'
    )
    for operator, of in itertools.groupby(sorted(built), lambda name: name.partition('_')[0]):
        units = [built[name] for name in of]
        seconds = sorted(unit.seconds for unit in units)
        print(f'| {operator} | {len(units)} | {seconds[len(units) // 2]:.0f}, {seconds[-1]:.0f} '
              f'| {max(unit.registers for unit in units)} |')  # fmt: skip


def _driven(library: Path, specs: Iterable[FunctionSpec]) -> list[str]:
    """Ask every handler what it is, and call it with too few operands and without a driver."""
    loaded, wrong = ctypes.CDLL(str(library)), []
    for spec in specs:
        handler = drive.handler(loaded, spec.name)
        if drive.metadata(handler) != ((0, 1), 1):
            wrong.append(f'{spec.name}: version and traits are {drive.metadata(handler)}')
        if 'wrong number of operands' not in str(drive.call(handler, [], [])):
            wrong.append(f'{spec.name}: takes a call without operands')
        said = drive.call(handler, *_operands(spec), no_stream='no stream')
        if said != 'no stream':
            wrong.append(f'{spec.name}: says {said} where there is no stream')
    return wrong


def _operands(spec: FunctionSpec) -> tuple[list[Any], list[Any], dict[str, Any]]:
    def arrays(kind: str) -> list[Any]:
        return [np.zeros(4, np.float32) for _ in spec.of(kind)]

    attributes = {t.name: np.dtype(t.dtype).type(0) for t in spec.of('attr')}
    return arrays('arg'), arrays('ret'), attributes


def _is_costly(line: str) -> bool:
    """Tell whether a line of the report speaks of spills, local memory, or many registers."""
    numbers = re.findall(r'(\d+) bytes (?:stack frame|spill stores|spill loads)', line)
    used = re.search(r'Used (\d+) registers', line)
    return any(n != '0' for n in numbers) or bool(used and int(used[1]) > REGISTERS)


def main(arguments: list[str]) -> int:
    """Compile two units at a time and print what is wrong."""
    try:
        find_nvcc()
    except NvccNotFoundError:
        print('nvcc is not installed: CUDA kernels are not compiled here')
        return 0
    quick = '--quick' in arguments
    patterns = [a for a in arguments if a != '--quick'] or ['*']
    units = {
        name: text
        for name, text in every_unit().items()
        if (name in QUICK if quick else any(fnmatch.fnmatch(name, p) for p in patterns))
    }
    architectures = ('90',) if quick else ARCHITECTURES
    start, built = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        jobs = {n: pool.submit(compile_unit, n, t, architectures, folder) for n, t in units.items()}
        for unit, job in jobs.items():
            built[unit] = job.result()
            for fault in built[unit].wrong:
                print(fault, flush=True)
    report(built)
    wrong = sum(len(unit.wrong) for unit in built.values())
    seconds = time.perf_counter() - start
    print(f'{len(units)} units for sm_{", sm_".join(architectures)} and PTX in {seconds:.0f} s: '
          f'{wrong} faults')  # fmt: skip
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
