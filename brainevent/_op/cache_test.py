# SPDX-License-Identifier: Apache-2.0
"""The cache folder: what was damaged, stolen or half written is a miss; nothing else is."""

import errno
import os
import shutil
import stat
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from brainevent._error import KernelError, OptionError
from brainevent._op import cache

BODY = bytes(range(256)) * 40


def test_published_is_fetched(folder):
    cache.publish('one', BODY)
    cache.publish('two', b'')
    assert cache.fetch('one') == BODY
    assert cache.fetch('two') == b''
    assert cache.fetch('three') is None
    assert {path.name for path in folder.iterdir()} == {'one', 'two'}  # named as they were called


def test_published_again_is_replaced(folder):
    cache.publish('one', b'old')
    cache.publish('one', BODY)
    assert cache.fetch('one') == BODY


def test_nothing_is_made_before_it_is_needed(folder):
    assert cache.get_cache_dir() == str(folder)
    assert not folder.exists()
    cache.fetch('one')
    assert not folder.exists()
    cache.publish('one', BODY)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize('damage', ['empty', 'torn', 'cut by one', 'longer', 'noise', 'one bit'])
def test_damaged_file_is_a_miss_and_is_replaced(folder, damage):
    cache.publish('one', BODY)
    file = folder / 'one'
    whole = file.read_bytes()
    file.write_bytes(
        {
            'empty': b'',
            'torn': whole[: len(whole) // 3],
            'cut by one': whole[:-1],
            'longer': whole + b'x',
            'noise': b'not ours',
            'one bit': whole[:-1] + bytes([whole[-1] ^ 1]),
        }[damage]
    )
    assert cache.fetch('one') is None
    cache.publish('one', BODY)
    assert cache.fetch('one') == BODY


def test_a_file_with_any_bit_changed_or_cut_anywhere_is_a_miss(folder):
    body = b'machine code'
    cache.publish('one', body)
    whole = (folder / 'one').read_bytes()
    for at in range(len(whole)):
        changed = whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        for damaged in (whole[:at], changed, whole[:at] + b'\0' + whole[at:]):
            (folder / 'one').write_bytes(damaged)
            assert cache.fetch('one') is None
    (folder / 'one').write_bytes(whole)
    assert cache.fetch('one') == body


def test_file_under_another_name_is_a_miss(folder):
    cache.publish('one', BODY)
    os.link(folder / 'one', folder / 'two')
    assert cache.fetch('two') is None


def test_folder_in_place_of_a_file_is_a_miss(folder):
    (folder / 'one').mkdir(parents=True)
    assert cache.fetch('one') is None


def test_file_of_another_user_is_a_miss(folder, monkeypatch):
    cache.publish('one', BODY)
    mine = os.getuid()
    monkeypatch.setattr(os, 'getuid', lambda: mine + 1)
    monkeypatch.setattr(cache, 'ROOT', mine + 2)
    assert cache.fetch('one') is None


def test_file_of_root_is_read_unless_others_can_write_it(folder, monkeypatch):
    cache.publish('one', BODY)
    mine = os.getuid()
    monkeypatch.setattr(os, 'getuid', lambda: mine + 1)
    monkeypatch.setattr(cache, 'ROOT', mine)
    assert cache.fetch('one') == BODY
    (folder / 'one').chmod(0o666)
    assert cache.fetch('one') is None


def cannot_be_written(folder, monkeypatch):
    """Make a folder read-only for everybody; root writes anywhere."""
    folder.chmod(0o500)
    access = os.access

    def judge(path, mode):
        return access(path, mode) and not (mode & os.W_OK and Path(path) == folder)

    monkeypatch.setattr(os, 'access', judge)


def test_a_folder_that_cannot_be_written_is_read(folder, tmp_path, monkeypatch):
    cache.publish('one', BODY)
    monkeypatch.setattr(cache, '_ready', None)  # as in another process
    cannot_be_written(folder, monkeypatch)
    assert not caught(lambda: cache.fetch('one')) and cache.fetch('one') == BODY
    told = caught(lambda: cache.publish('two', BODY))  # what is not there is kept elsewhere
    assert len(told) == 1 and 'not writable' in told[0]
    assert cache.fetch('two') == BODY and cache.fetch('one') == BODY
    assert not (folder / 'two').exists()
    cache.set_cache_dir(folder)  # by name, too
    assert cache.fetch('one') == BODY
    empty = tmp_path / 'empty'
    empty.mkdir()
    cannot_be_written(empty, monkeypatch)
    with pytest.raises(KernelError, match='kernels to read'):
        cache.set_cache_dir(empty)


def test_a_folder_that_was_removed_is_made_again(folder):
    cache.publish('one', BODY)
    shutil.rmtree(folder)
    assert cache.fetch('one') is None
    assert not caught(lambda: cache.publish('two', BODY))
    assert cache.fetch('two') == BODY and (folder / 'two').exists()


def caught(*calls):
    """Run calls and return the texts of their warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter('always')
        for call in calls:
            call()
    return [str(warning.message) for warning in found]


def assert_private_folder_is_used(wanted):
    told = caught(lambda: cache.publish('one', BODY), lambda: cache.publish('two', BODY))
    assert cache.fetch('one') == BODY
    used = Path(cache.get_cache_dir())
    assert used != wanted
    assert stat.S_IMODE(used.stat().st_mode) == 0o700
    assert len(told) == 1
    assert str(wanted) in told[0]
    assert cache.ENVIRONMENT in told[0]
    return told[0]


def test_folder_of_another_user_is_not_trusted(folder, monkeypatch):
    mine = os.getuid()
    monkeypatch.setattr(cache, 'is_own', lambda status: True)
    monkeypatch.setattr(os, 'getuid', lambda: mine + 1)
    monkeypatch.setattr(cache, 'ROOT', mine + 2)
    assert 'belongs to another user' in assert_private_folder_is_used(folder)


def test_file_in_place_of_the_folder_means_a_private_one(folder):
    folder.write_text('in the way')
    assert_private_folder_is_used(folder)


def test_folder_that_cannot_be_written_means_a_private_one(folder, monkeypatch):
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    assert 'not writable' in assert_private_folder_is_used(folder)


def test_no_place_at_all_means_no_cache(folder, monkeypatch):
    def nowhere(**_):
        raise FileNotFoundError('no usable temporary folder')

    folder.write_text('in the way')
    monkeypatch.setattr(tempfile, 'mkdtemp', nowhere)
    told = caught(lambda: cache.publish('one', BODY), lambda: cache.fetch('one'))
    assert len(told) == 1
    assert cache.fetch('one') is None


def test_full_disk_warns_once_and_leaves_nothing(folder, monkeypatch):
    class Full:
        def __init__(self, handle, mode):
            os.close(handle)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def write(self, data):
            raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(os, 'fdopen', Full)
    told = caught(lambda: cache.publish('one', BODY), lambda: cache.publish('two', BODY))
    assert len(told) == 1
    assert 'No space left' in told[0]
    assert list(folder.iterdir()) == []
    assert cache.fetch('one') is None


def test_left_overs_of_killed_writers_disturb_nobody_and_go_away(folder):
    folder.mkdir(mode=0o700)
    fresh, old = folder / '.build-fresh', folder / '.build-old'
    for file in (fresh, old):
        file.write_bytes(b'half')
    day_before_yesterday = time.time() - 2 * 24 * 3600
    os.utime(old, (day_before_yesterday, day_before_yesterday))
    cache.publish('one', BODY)
    assert cache.fetch('one') == BODY
    assert fresh.exists()
    assert not old.exists()


def test_chosen_folder(folder, tmp_path, monkeypatch):
    chosen = tmp_path / 'a' / 'b'
    cache.set_cache_dir(chosen)
    assert cache.get_cache_dir() == str(chosen)
    cache.publish('one', BODY)
    assert (chosen / 'one').exists()
    monkeypatch.chdir(tmp_path)
    cache.set_cache_dir('relative')
    monkeypatch.chdir('/')
    assert cache.get_cache_dir() == str(tmp_path / 'relative')


def test_folder_that_cannot_be_used_is_refused_and_changes_nothing(folder, tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(KernelError) as caught:
        cache.set_cache_dir(tmp_path / 'file' / 'under')
    assert str(caught.value).startswith('set_cache_dir: the folder cannot be used.')
    assert str(tmp_path / 'file' / 'under') in str(caught.value)
    assert cache.get_cache_dir() == str(folder)


def test_none_goes_back_to_the_default(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path / 'default'))
    cache.set_cache_dir(tmp_path / 'chosen')
    cache.publish('one', BODY)
    cache.set_cache_dir(None)
    assert cache.get_cache_dir() == str(tmp_path / 'default')
    assert cache.fetch('one') is None
    cache.publish('two', BODY)
    assert (tmp_path / 'default' / 'two').exists()


@pytest.mark.parametrize('path', ['', b'kernels', 3, False])
def test_what_is_no_folder_is_refused(folder, path):
    with pytest.raises(OptionError) as caught:
        cache.set_cache_dir(path)
    assert str(caught.value).startswith('set_cache_dir: not a folder.\n    expected: a path, or N')
    assert repr(path) in str(caught.value)
    assert cache.get_cache_dir() == str(folder)


def test_names_that_no_folder_can_have_are_refused(folder):
    for path in ('a\0b', 'x' * 5000, '~nobody_of_that_name/\0'):
        with pytest.raises(KernelError, match='the folder cannot be used'):
            cache.set_cache_dir(path)
    assert cache.get_cache_dir() == str(folder)


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path / 'named'))
    assert cache.default_dir() == tmp_path / 'named'
    monkeypatch.delenv(cache.ENVIRONMENT)
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'xdg'))
    assert cache.default_dir().parent == tmp_path / 'xdg' / 'brainevent'
    monkeypatch.setenv('XDG_CACHE_HOME', 'relative')  # the standard says: ignore it
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    assert cache.default_dir().parent == tmp_path / 'home' / '.cache' / 'brainevent'


def test_home_that_is_not_known_is_not_the_working_folder(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, 'expanduser', lambda path: path)
    monkeypatch.delenv(cache.ENVIRONMENT, raising=False)
    monkeypatch.delenv('XDG_CACHE_HOME', raising=False)
    monkeypatch.setattr(cache, '_chosen', None)
    monkeypatch.chdir(tmp_path)
    assert_private_folder_is_used(Path('~/.cache/brainevent'))
    assert not (tmp_path / '~').exists()


PUBLISHER = """
import sys
from brainevent._op import cache

def publish(letter):
    body = letter.encode() * 300_000
    for _ in range(100):
        cache.publish('one', body)
        found = cache.fetch('one')
        assert found is not None and len(set(found)) == 1 and len(found) == 300_000
"""


def test_two_processes_that_publish_at_once_never_show_half_a_file(folder, child):
    other = child(PUBLISHER + "publish('a')", cache_dir=folder)
    scope = {}
    exec(PUBLISHER, scope)
    while not (folder / 'one').exists():
        time.sleep(0.01)
        assert other.runs()
    scope['publish']('b')
    other.output()
    assert [path.name for path in folder.iterdir()] == ['one']


# --- clear_cache --------------------------------------------------------------------------------


def entry(folder, name, record=True):
    made = folder / f'{name}-{"0a" * 8}'
    made.mkdir(parents=True)
    (made / (f'{name}.json' if record else '.lock')).write_text('')
    return made


def test_clearing_removes_what_is_ours_and_nothing_else(folder):
    cache.publish('one', BODY)
    (folder / 'old').write_bytes(b'brainevent-cache-1\nof an older version')
    ours = [entry(folder, 'kernels'), entry(folder, 'half_built', record=False)]
    foreign = [folder / 'notes.txt', folder / 'photos', folder / f'looks-{"0a" * 8}']
    foreign[0].write_text('mine')
    foreign[1].mkdir()
    foreign[2].mkdir()
    (folder / f'link-{"0a" * 8}').symlink_to(foreign[1])
    assert cache.clear_cache() == 4
    assert not any(path.exists() for path in ours)
    assert all(path.exists() for path in foreign)
    assert cache.clear_cache() == 0
    assert cache.fetch('one') is None


def test_clearing_by_name(folder):
    cache.publish('one', BODY)
    kept, gone = entry(folder, 'kernels-2'), entry(folder, 'kernels')
    assert cache.clear_cache('kernels') == 1
    assert kept.exists() and not gone.exists()
    assert cache.fetch('one') == BODY


def test_clearing_makes_nothing(folder):
    assert cache.clear_cache() == 0
    assert not folder.exists()


@pytest.mark.parametrize('named', [' ', '\t'])
def test_a_blank_name_is_none(folder, monkeypatch, named):
    monkeypatch.setenv(cache.ENVIRONMENT, named)
    assert cache.default_dir().parent.name == 'brainevent'
    with pytest.raises(OptionError):
        cache.set_cache_dir(named)


def test_trouble_is_seen_before_anything_is_made(folder, monkeypatch, tmp_path):
    assert cache.trouble() is None and not folder.exists()
    (tmp_path / 'file').write_text('')
    monkeypatch.setattr(cache, '_chosen', tmp_path / 'file' / 'under')
    assert 'is not a folder' in cache.trouble()
    monkeypatch.setattr(cache, '_chosen', folder)
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    assert 'not writable' in cache.trouble()
