# SPDX-License-Identifier: Apache-2.0
"""The cache: shown and cleared, and nothing but what is ours."""

import pytest

import brainevent_cli as _cli
from brainevent._op import cache


def test_the_cache_is_shown_and_cleared(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cache, '_chosen', tmp_path / 'kernels')
    monkeypatch.setattr(cache, '_ready', None)
    assert _cli.main(['cache', 'show']) == 0
    assert capsys.readouterr().out == f'{tmp_path / "kernels"}: not made yet\n'
    cache.publish('one', b'x' * 2**20)
    (tmp_path / 'kernels' / 'mine.txt').write_text('mine')
    _cli.main(['cache', 'show'])
    assert capsys.readouterr().out.endswith(': 1 compiled kernels, 1.0 MiB\n')
    with pytest.raises(SystemExit) as info:
        _cli.main(['cache', 'clear', 'other'])
    assert info.value.code == 2
    assert _cli.main(['cache', 'clear']) == 0
    assert 'removed 1 compiled kernels' in capsys.readouterr().out
    assert [path.name for path in (tmp_path / 'kernels').iterdir()] == ['mine.txt']
    with pytest.raises(SystemExit) as info:
        _cli.main(['cache', 'show', 'name'])
    assert info.value.code == 2
    assert "'name' goes with clear only" in capsys.readouterr().err
