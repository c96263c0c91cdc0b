# SPDX-License-Identifier: Apache-2.0
"""The cache of libraries: built once, whole or not there, whatever happens to disk and builders."""

import errno
import json
import os
import random
import shutil
import stat
import threading
import warnings
from pathlib import Path

import pytest

from brainevent._error import CompilationError, KernelError, KernelToolchainError
from brainevent._op import cache
from brainevent._op.kernix import build as building
from brainevent._op.kernix import toolchain
from brainevent._op.kernix.build import Job, build
from brainevent._op.kernix.cpptext import Part, Source
from brainevent._op.kernix.keys import Keys
from brainevent._op.kernix.toolchain import Options

KEY = 'ab' * 16


@pytest.fixture
def job(toy, folder):
    """Return a function that makes jobs for a toolchain that writes capitals."""

    def make(key=KEY, text='code', **changes):
        keys = Keys(key, {}, {'said': 'in words'})
        source = Source([Part('<toy>', text)])
        fields = {'toolchain': toy(), 'options': Options('toy', timeout=20.0), **changes}
        return Job('toy', source, '\nwrapper\n', '.cpp', keys, **fields)

    return make


def test_a_library_is_built_once(job, folder):
    first, second = job(), job()
    path = build(first)
    assert path == folder / f'toy-{KEY[:16]}' / f'toy{toolchain.so_suffix()}'
    assert build(second) == path
    assert (first.toolchain.calls, second.toolchain.calls) == (1, 0)
    assert 'CODE\n#LINE' in path.read_text()
    entry = {p.name for p in path.parent.iterdir()}
    assert entry == {path.name, 'toy.json', 'toy.cpp', '.lock'}
    assert not list(folder.glob('.build-*'))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_went_in_is_kept_in_words(job):
    entry = build(job()).parent
    assert json.loads((entry / 'toy.json').read_text())['inputs'] == {'said': 'in words'}
    assert (entry / 'toy.cpp').read_text() == 'code\n\nwrapper\n'


def test_lines_of_the_kept_source_are_those_of_the_messages(job, folder, tmp_path):
    file = tmp_path / 'b "quoted".cu'
    parts = [
        Part('<toy>', 'one\ntwo'),
        Part(str(file), 'three', is_file=True),
        Part('<toy>', 'four'),
    ]
    made = job()
    made = Job('toy', Source(parts), 'wrapper', '.cu', made.keys, made.toolchain, made.options)
    unit = made.unit(Path('kept'))
    assert unit == (
        '#line 1 "kept"\none\ntwo\n'
        f'#line 1 {json.dumps(str(file))}\nthree\n'
        '#line 4 "kept"\nfour\n'
        '#line 5 "kept"\nwrapper'
    )
    assert made.kept().splitlines()[3:] == ['four', 'wrapper']


def test_forced(job):
    build(job())
    again = job(force=True)
    build(again)
    assert again.toolchain.calls == 1


def test_another_key_with_the_same_beginning_is_another_library(job):
    build(job())
    other = job(KEY[:16] + 'cd' * 8)
    build(other)
    assert other.toolchain.calls == 1


DAMAGES = {
    'empty': lambda library, record: library.write_bytes(b''),
    'torn': lambda library, record: library.write_bytes(library.read_bytes()[:7]),
    'other content': lambda library, record: library.write_text('OTHER'),
    'gone': lambda library, record: library.unlink(),
    'record torn': lambda library, record: record.write_bytes(record.read_bytes()[:20]),
    'record gone': lambda library, record: record.unlink(),
    'record is noise': lambda library, record: record.write_text('[1]'),
    'record is no text': lambda library, record: record.write_bytes(b'\xff\xfe\x00'),
    'unreadable': lambda library, record: (library.unlink(), library.symlink_to(library)),
}


@pytest.mark.parametrize('damage', DAMAGES)
def test_a_damaged_entry_is_built_anew(job, damage):
    path = build(job())
    DAMAGES[damage](path, path.parent / 'toy.json')
    again = job()
    assert build(again) == path
    assert again.toolchain.calls == 1
    assert build(job(toolchain=None)) == path  # whole again: nothing is compiled


def tamper(rng, files):
    """Do to the files of a cache whatever can happen to files."""
    one, other = rng.sample(files, 2)
    content = one.read_bytes() if one.is_file() else b''
    at = rng.randrange(len(content) + 1)
    how = rng.choice(['cut', 'flip', 'insert', 'swap', 'copy', 'foreign', 'link', 'folder', 'pipe'])
    if how == 'swap' and one.is_file() and other.is_file():
        other.replace(one.with_suffix('.aside'))
        one.replace(other)
        one.with_suffix('.aside').replace(one)
        return
    shutil.rmtree(one) if one.is_dir() else one.unlink(missing_ok=True)
    if how in ('cut', 'flip', 'insert', 'foreign'):
        changed = bytes([content[at] ^ 1]) if how == 'flip' and at < len(content) else b'x'
        rest = {'cut': b'', 'flip': content[at + 1 :], 'insert': content[at:]}.get(how)
        one.write_bytes(os.urandom(64) if rest is None else content[:at] + changed + rest)
    elif how == 'copy' and other.is_file():
        shutil.copy(other, one)
    elif how == 'link':
        one.symlink_to(other)
    elif how == 'folder':
        one.mkdir()
    elif how == 'pipe' and hasattr(os, 'mkfifo'):
        os.mkfifo(one)


def test_whatever_happened_to_the_folder_the_code_is_what_was_asked_for(job, folder):
    """Two libraries lie side by side, so that files of one can be taken for the other's."""
    keys = {'ab' * 16: 'first', 'cd' * 16: 'second'}
    jobs = {key: (lambda key=key, text=text: job(key, text)) for key, text in keys.items()}
    for key in keys:
        build(jobs[key]())
    files = [
        folder / f'toy-{key[:16]}' / name
        for key in keys
        for name in (f'toy{toolchain.so_suffix()}', 'toy.json', 'toy.cpp')
    ]
    rng, rebuilt = random.Random(0), 0
    for _ in range(150):
        for _ in range(rng.randrange(1, 4)):
            tamper(rng, files)
        unusable = False
        for key, text in keys.items():
            made = jobs[key]()
            path, _ = warned(lambda made=made: build(made))
            assert text.upper() in path.read_text()
            rebuilt += made.toolchain.calls
            again = jobs[key]()
            path, _ = warned(lambda again=again: build(again))
            assert text.upper() in path.read_text()
            unusable |= private(path)
        if unusable:  # a folder in a file's place is nobody's to remove
            shutil.rmtree(folder)
            cache.clear_cache()
            for make in jobs.values():
                build(make())
    assert rebuilt > 100


@pytest.mark.skipif(not hasattr(os, 'getuid') or os.getuid() == 0, reason='root may read all')
@pytest.mark.parametrize('name', ['toy.json', f'toy{toolchain.so_suffix()}'])
def test_a_file_that_cannot_be_read_is_built_anew(job, name):
    path = build(job())
    (path.parent / name).chmod(0)
    again = job()
    assert build(again) == path
    assert again.toolchain.calls == 1


def test_a_file_of_another_user_is_built_anew(job, monkeypatch):
    build(job())
    monkeypatch.setattr(cache, 'is_own', lambda status: False)
    again = job()
    build(again)
    assert again.toolchain.calls == 1


@pytest.mark.parametrize('suffix', ['.so', '.dylib', '.dll'])
def test_the_suffix_is_the_systems(job, monkeypatch, suffix):
    system = {'.so': 'linux', '.dylib': 'darwin', '.dll': 'win32'}[suffix]
    monkeypatch.setattr(toolchain.sys, 'platform', system)
    assert build(job()).name == f'toy{suffix}'
    again = job()
    assert build(again).name == f'toy{suffix}'
    assert again.toolchain.calls == 0


# --- places that cannot be used -----------------------------------------------------------------


def warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter('always')
        result = call()
    return result, [str(w.message) for w in found]


def private(path):
    return cache._private is not None and cache._private in path.parents


def test_a_full_disk_means_a_private_folder_and_one_warning(job, folder, monkeypatch):
    def full(source, target):
        if folder in Path(target).parents:
            raise OSError(errno.ENOSPC, 'No space left on device')
        return shutil.move(source, target)

    monkeypatch.setattr(building.os, 'replace', full)
    path, told = warned(lambda: build(job()))
    assert private(path)
    assert len(told) == 1
    assert 'No space left' in told[0]
    again, told = warned(lambda: build(job()))
    assert again == path
    assert not told
    assert not list(folder.glob('.build-*'))


def test_a_compiler_without_space_is_a_full_disk(job, folder, monkeypatch):
    class Full:
        platform = 'cpu'

        def compile(self, source, where, output, options):
            if folder in where.parents:
                raise CompilationError('failed', 'fatal error: x.o: No space left on device')
            output.write_text('library')

    path, told = warned(lambda: build(job(toolchain=Full())))
    assert private(path)
    assert len(told) == 1


def test_no_space_anywhere(job, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(building.os, 'replace', full)
    with pytest.raises(KernelError, match='there is no place') as caught:
        warned(lambda: build(job()))
    assert cache.ENVIRONMENT in str(caught.value)


def test_a_folder_that_cannot_be_made_means_a_private_one(job, folder):
    folder.write_text('in the way')
    path, told = warned(lambda: build(job()))
    assert folder not in path.parents
    assert path.exists()
    assert len(told) == 1


def test_an_entry_that_cannot_be_written_means_a_private_one(job, folder):
    folder.mkdir()
    (folder / f'toy-{KEY[:16]}').write_text('in the way')
    path, told = warned(lambda: build(job()))
    assert private(path)
    assert len(told) == 1


def test_a_cache_that_is_removed_by_hand_is_made_anew(job, folder):
    build(job())
    shutil.rmtree(folder)
    path, told = warned(lambda: build(job()))
    assert folder in path.parents
    assert not told


def test_a_compiler_that_makes_nothing_is_said_so(job, toy, monkeypatch):
    monkeypatch.setattr(toy, 'compile', lambda *given: None)
    with pytest.raises(KernelToolchainError, match='made no library'):
        build(job())


def test_a_refused_source_leaves_no_trap(job, folder):
    class Refuses:
        platform = 'cpu'

        def compile(self, source, where, output, options):
            raise CompilationError('no')

    with pytest.raises(CompilationError):
        build(job(toolchain=Refuses()))
    assert not list(folder.glob('.build-*'))
    again = job()
    build(again)
    assert again.toolchain.calls == 1


def test_the_build_directory_keeps_what_the_compiler_leaves(job, tmp_path):
    made = job(build_directory=tmp_path / 'see' / 'here')
    path = build(made)
    assert made.toolchain.seen[1] == tmp_path / 'see' / 'here'
    assert (tmp_path / 'see' / 'here' / path.name).read_bytes() == path.read_bytes()


# --- several at once ----------------------------------------------------------------------------


class Slow:
    """Takes a while, and notes every start."""

    platform = 'cpu'

    def __init__(self, log):
        self.log = log

    def compile(self, source, folder, output, options):
        with open(self.log, 'a') as log:
            log.write(f'{os.getpid()}\n')
        threading.Event().wait(0.4)
        output.write_text(source)


def test_threads_build_once(job, tmp_path):
    log, found = tmp_path / 'log', []
    threads = [
        threading.Thread(target=lambda: found.append(build(job(toolchain=Slow(log)))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(found)) == 1 and len(found) == 4
    assert len(log.read_text().split()) == 1


def test_a_lock_that_is_never_given_back_is_waited_for_so_long(job, folder):
    made = job(options=Options('toy', timeout=0.2))
    entry = made.entry(folder)
    with building._locked(cache.folder() and entry, 1.0):
        build(made)
    assert made.toolchain.calls == 1


def test_a_file_system_without_locks(job, monkeypatch):
    def none(handle, how):
        raise OSError(errno.ENOLCK, 'No locks available')

    monkeypatch.setattr(building.fcntl, 'flock', none)
    build(job())
    monkeypatch.setattr(building, 'fcntl', None)
    assert build(job(toolchain=None)).exists()


def test_an_entry_cleared_while_it_is_built(job):
    class Cleared:
        platform = 'cpu'

        def compile(self, source, folder, output, options):
            assert cache.clear_cache('toy') == 1
            output.write_text('library')

    assert build(job(toolchain=Cleared())).read_text() == 'library'


PROCESSES = """
import os, signal, sys, time, warnings
from pathlib import Path
from brainevent._op.kernix.build import Job, build
from brainevent._op.kernix.cpptext import Part, Source
from brainevent._op.kernix.keys import Keys
from brainevent._op.kernix.toolchain import Options

log = Path(sys.argv[1])

class Slow:
    platform = 'cpu'
    def compile(self, source, folder, output, options):
        with open(log, 'a') as file:
            file.write(f'{os.getpid()}\\n')
        time.sleep(60.0 if log.read_text().split()[0] == str(os.getpid()) else 0.3)
        output.write_text(source)

job = Job('toy', Source([Part('<toy>', 'code')]), '', '.cpp', Keys('ab' * 16, {}, {}), Slow(),
          Options('toy', timeout=60.0))
warnings.simplefilter('ignore')
crew = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        path = build(job)
        os._exit(0 if 'code' in path.read_text() else 1)
    crew.append(child)
while not (log.exists() and log.read_text().endswith('\\n')):
    time.sleep(0.01)
first = int(log.read_text().split()[0])
os.kill(first, signal.SIGKILL)
ends = {child: os.waitpid(child, 0)[1] for child in crew}
assert ends.pop(first) == signal.SIGKILL
assert set(ends.values()) == {0}, ends
print(len(log.read_text().split()))
"""


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs processes that are cheap to start')
def test_of_eight_processes_one_is_killed_and_one_builds(child, tmp_path):
    output = child(PROCESSES, tmp_path / 'log', cache_dir=tmp_path / 'kernels').output()
    assert int(output) == 2  # the killed one, and one in its place
