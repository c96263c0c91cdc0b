# SPDX-License-Identifier: Apache-2.0
"""The doctor: what can run here, and what a backend lacks."""

import jax

import brainevent as be
import brainevent_cli as _cli
from brainevent._commands import doctor
from brainevent._op import backends


def test_the_doctor_finds_nothing(capsys):
    assert _cli.main(['doctor']) == 0
    out = capsys.readouterr().out
    lines = {tuple(line.split(maxsplit=2)[:2]): line for line in out.splitlines()}
    assert lines['jax', jax.__version__]
    assert 'ready; ' in lines['cpu', 'jax_raw']
    assert be.get_cache_dir() in out
    assert out.endswith('all is well\n')


def test_the_doctor_says_what_a_default_backend_lacks(monkeypatch, capsys):
    default = be.binary_csrmv_p.get_default(jax.default_backend())
    platforms = backends.backend_platforms()[default]
    be.register_backend(be.Backend(default, platforms, lambda: 'it is at lunch', 'wait'))
    assert doctor.run(None) == 1
    out = capsys.readouterr().out
    assert 'not available: it is at lunch (wait); ' in out
    assert f'trouble: {default} is the default on' in out
