# SPDX-License-Identifier: Apache-2.0
"""The pages about kernels leave nothing out: variables of the environment, and errors."""

import re
from pathlib import Path

from brainevent import errors
from brainevent._op.kernix import diagnostics, nvcc, toolchain

ROOT = Path(__file__).resolve().parent.parent
OURS = re.compile(r'\bBRAINEVENT_[A-Z_]*[A-Z]\b')
OTHERS = (*toolchain._ENVIRONMENT, *nvcc._ENVIRONMENT, *diagnostics.VARIABLES, 'XDG_CACHE_HOME')


def page(name):
    return (ROOT / 'docs' / name).read_text(encoding='utf-8')


def said_in_code():
    """Return every variable of this package that its code and the emulator's name."""
    files = [*ROOT.glob('brainevent/**/*.py'), *ROOT.glob('tests/cuda_emulator/**/*')]
    source = [f for f in files if f.suffix in ('.py', '.h', '.cc') and 'test' not in f.stem]
    return {name for f in source for name in OURS.findall(f.read_text(encoding='utf-8'))}


def test_every_variable_is_documented_and_no_other():
    rows = set(re.findall(r'^\| `(BRAINEVENT_\w+)` \|', page('environment.md'), re.MULTILINE))
    assert rows == said_in_code()
    assert not [name for name in OTHERS if f'`{name}`' not in page('environment.md')]


def test_every_error_about_kernels_has_a_way_out():
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.KernelError)
    ]
    assert len(kinds) > 10
    assert not [name for name in kinds if f'`{name}`' not in page('troubleshooting.md')]
