# SPDX-License-Identifier: Apache-2.0
"""Imports go down the floors only, and ``import brainevent`` is light, quiet and clean."""

import ast
import graphlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / 'brainevent'

# A lower room never knows the name of a higher one; what is not listed stands on the top floor.
FLOORS = {
    '_error': 1,
    '_docstring': 1,
    '_keywords': 1,
    '_pytree': 1,
    '_typing': 1,
    '_compat': 1,
    '_version': 1,
    'config': 1,
    'errors': 1,
    '_op': 2,
    '_edge': 3,
    '_format': 4,
    '_event': 5,
}
TOP = 6

# What may be imported inside a function: optional requirements, and what only kernels need.
OPTIONAL = {
    'llvmlite',
    'matplotlib',
    'numba',
    'pandas',
    'rich',
    'scipy',
    'tqdm',
    'warp',
}

INTERNALS = ('jax._src', 'jax.interpreters', 'jax.extend', 'jaxlib')

LAZY = sorted(OPTIONAL | {'brainpy', 'brainstate', 'braintools', 'braincell', 'pytest'})


def _is_test(path):
    return path.name.endswith('_test.py') or path.name == 'conftest.py'


def _module(path):
    parts = path.relative_to(ROOT).with_suffix('').parts
    return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


MODULES = {_module(p): p for p in sorted(PACKAGE.rglob('*.py')) if not _is_test(p)}


def _imported(module, node):
    """Full names of the modules that one import statement asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ''
    if node.level:
        is_package = MODULES[module].name == '__init__.py'
        parts = module.split('.')
        parts = parts[: len(parts) - node.level + is_package]
        base = '.'.join([*parts, base] if base else parts)
    names = [f'{base}.{alias.name}' for alias in node.names]
    return [name if name in MODULES else base for name in names]


def _is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith('TYPE_CHECKING')


def _imports(module):
    """Yield ``(name, line, inside a function, only for type checkers)`` for each import."""

    def visit(node, local, typing):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                for name in _imported(module, child):
                    yield name, child.lineno, local, typing
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from visit(child, local or inside, typing or _is_type_checking(child))

    yield from visit(ast.parse(MODULES[module].read_text(encoding='utf-8')), False, False)


IMPORTS = {module: list(_imports(module)) for module in MODULES}


def _floor(module):
    parts = module.split('.')
    return FLOORS.get(parts[1], TOP) if len(parts) > 1 else TOP


def test_imports_go_down_the_floors():
    upward = [
        f'{module}:{line} imports {name}'
        for module, imports in IMPORTS.items()
        for name, line, _, _ in imports
        if name.split('.')[0] == 'brainevent' and _floor(name) > _floor(module)
    ]
    assert not upward, '\n'.join(upward)


def test_no_two_modules_import_each_other():
    graph = {
        module: {n for n, _, _, typing in imports if n in MODULES and n != module and not typing}
        for module, imports in IMPORTS.items()
    }
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(' -> '.join(error.args[1]))


def test_jax_internals_stay_in_one_file():
    outside = [
        f'{module}:{line} imports {name}'
        for module, imports in IMPORTS.items()
        for name, line, _, _ in imports
        if name.startswith(INTERNALS) and module != 'brainevent._compat'
    ]
    assert not outside, '\n'.join(outside)


def _is_optional(name):
    """Tell whether a module is an optional one, or one of ours that cannot be had without it."""
    if name not in MODULES:
        return name.split('.')[0] in OPTIONAL
    return any(_is_optional(n) for n, _, local, typing in IMPORTS[name] if not (local or typing))


def test_only_optional_modules_are_imported_inside_functions():
    hidden = [
        f'{module}:{line} imports {name}'
        for module, imports in IMPORTS.items()
        for name, line, local, _ in imports
        if local and not _is_optional(name)
    ]
    assert not hidden, '\n'.join(hidden)


def _run(code, *flags, **env):
    """Run code in a fresh process that sees this repository; return what it prints, as JSON."""
    done = subprocess.run(
        [sys.executable, *flags, '-c', code],
        cwd=ROOT,
        env={
            **os.environ,
            'PYTHONDONTWRITEBYTECODE': '1',
            'BRAINEVENT_COMPILE_NOTICE': '0',
            **env,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return json.loads(done.stdout)


BASE = 'import json, sys; import jax, jax.numpy, brainunit; before = set(sys.modules); '


def test_import_brings_in_no_optional_module():
    new = _run(
        f'{BASE}import brainevent; '
        'print(json.dumps(sorted({n.split(".")[0] for n in set(sys.modules) - before})))'
    )
    assert 'brainevent' in new
    assert not set(new) & set(LAZY)


def test_import_starts_no_backend():
    # With a platform that does not exist the first use of a backend raises.
    code = (
        'import json, brainevent, jax\n'
        'try: jax.devices()\n'
        'except RuntimeError: print(json.dumps("raises"))\n'
    )
    assert _run(code, JAX_PLATFORMS='none_such') == 'raises'


WATCH = """
def hook(event, args):
    if event == 'open' and isinstance(args[0], (str, bytes)):
        writes = bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        opened.append((os.fsdecode(args[0]), writes))
    elif event in {'os.mkdir', 'os.remove', 'os.rename', 'os.chmod', 'subprocess.Popen',
                   'socket.connect', 'os.system', 'ctypes.dlopen'}:
        acts.append((event, str(args[:1])))
"""


def test_import_touches_nothing_outside_the_package():
    code = (
        f'{BASE}import os; opened, acts = [], []\n{WATCH}\n'
        'sys.addaudithook(hook); import brainevent; n = len(opened); m = len(acts)\n'
        'print(json.dumps([opened[:n], acts[:m]]))'
    )
    opened, acts = _run(code)
    installed = (str(ROOT), *{str(Path(p).resolve()) for p in sys.path if p})
    assert not [path for path, writes in opened if writes]
    outside = [path for path, _ in opened if not os.path.realpath(path).startswith(installed)]
    assert not outside
    assert not acts


def test_import_and_a_product_need_no_writable_home(tmp_path):
    (tmp_path / 'file').touch()
    nowhere = str(tmp_path / 'file' / 'home')  # a folder under a file can never be made
    code = (
        'import warnings; warnings.simplefilter("ignore")\n'
        'import json, numpy as np, brainevent as be\n'
        'A = be.CSR.fromdense(np.eye(2, dtype=np.float32))\n'
        'print(json.dumps((be.BinaryArray(np.array([True, False])) @ A).tolist()))'
    )
    # matplotlib, which brainunit imports where it is there, complains about a home like that.
    env = {'HOME': nowhere, 'XDG_CACHE_HOME': nowhere, 'MPLCONFIGDIR': str(tmp_path)}
    assert _run(code, **env) == [1.0, 0.0]


def test_errors_survive_optimised_python():
    code = (
        'import json, numpy as np, brainevent as be\n'
        'try:\n'
        '    be.csrmv(np.ones(2, np.float32), np.array([0, 1]), np.array([0, 1, 2]),\n'
        '             np.ones(3, np.float32), shape=(2, 2))\n'
        'except be.BrainEventError as error: print(json.dumps(isinstance(error, ValueError)))\n'
    )
    assert _run(code, '-O') is True


def test_every_public_name_resolves_once():
    import brainevent

    assert len(set(brainevent.__all__)) == len(brainevent.__all__)
    missing = [name for name in brainevent.__all__ if not hasattr(brainevent, name)]
    assert not missing
    assert set(brainevent.__all__) <= set(dir(brainevent))


def test_the_version_satisfies_the_clients():
    import brainevent

    assert tuple(map(int, brainevent.__version__.split('.')[:2])) >= (0, 9)


def _texts():
    folders = ('brainevent', 'tests', 'validation', 'examples', 'benchmarks', 'tools', 'docs')
    paths = [p for folder in folders for p in (ROOT / folder).rglob('*')]
    paths += [p for p in ROOT.iterdir() if p.name != '.git']
    suffixes = {'.py', '.md', '.toml', '.yml', '.yaml', '.csv', '.cuh', '.h', '.cu', '.txt', ''}
    return [p for p in paths if p.is_file() and p.suffix in suffixes]


def test_no_absolute_path_in_the_tree():
    patterns = [r'/(?:home|Users)/\w', r'[A-Z]:\\\\?Users\\']
    if len(ROOT.parts) > 2 and ROOT.parent.name not in {'tmp', 'src', 'build'}:
        patterns.append(re.escape(f'{ROOT.parent}/'))
    absolute = re.compile('|'.join(patterns))
    found = [
        f'{path.relative_to(ROOT)}:{number}: {line.strip()}'
        for path in _texts()
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1)
        if absolute.search(line) and 'patterns' not in line
    ]
    assert not found, '\n'.join(found)
