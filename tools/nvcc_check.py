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
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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


def compile_unit(name: str, text: str, architectures: tuple[str, ...], folder: Path) -> list[str]:
    """Return what is wrong with a unit."""
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
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode:
        return [f'{name}: nvcc refused it\n{said[-3000:]}']
    wrong = [f'{name}: {line.strip()}' for line in said.splitlines() if _is_costly(line)]
    return wrong + [f'{name}: {fault}' for fault in _driven(library, specs)]


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
    start, wrong = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        jobs = [pool.submit(compile_unit, n, t, architectures, folder) for n, t in units.items()]
        for job in jobs:
            for fault in job.result():
                wrong += 1
                print(fault, flush=True)
    seconds = time.perf_counter() - start
    print(f'{len(units)} units for sm_{", sm_".join(architectures)} and PTX in {seconds:.0f} s: '
          f'{wrong} faults')  # fmt: skip
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
