# SPDX-License-Identifier: Apache-2.0
"""The door of the command line: help, version, wrong commands, interrupts."""

import subprocess
import sys

import pytest

import brainevent
from brainevent import _cli


def test_no_command_prints_help_and_succeeds(capsys):
    assert _cli.main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith('usage: brainevent')
    assert all(command.name in out and command.help in out for command in _cli.COMMANDS)


@pytest.mark.parametrize('argv', [['--help'], *[[c.name, '--help'] for c in _cli.COMMANDS]])
def test_help_is_offered_everywhere(argv, capsys):
    with pytest.raises(SystemExit) as info:
        _cli.main(argv)
    assert info.value.code == 0
    assert capsys.readouterr().out.startswith('usage: brainevent')


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit):
        _cli.main(['--version'])
    assert capsys.readouterr().out.strip() == f'brainevent {brainevent.__version__}'


def test_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as info:
        _cli.main(['bake'])
    assert info.value.code == 2
    assert "invalid choice: 'bake'" in capsys.readouterr().err


def test_interrupt_is_no_traceback(monkeypatch, capsys):
    def interrupt(args):
        raise KeyboardInterrupt

    entry = _cli.COMMANDS[0]._replace(run=interrupt)
    monkeypatch.setattr(_cli, 'COMMANDS', (entry,))
    assert _cli.main([entry.name]) == 130
    assert capsys.readouterr().err == 'interrupted\n'


def test_a_reader_that_is_gone_is_not_a_traceback():
    code = 'import sys, brainevent._cli as cli; sys.exit(cli.main(["doctor"]))'
    tool = subprocess.Popen(
        [sys.executable, '-u', '-c', code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    tool.stdout.readline()
    tool.stdout.close()
    assert 'Traceback' not in tool.stderr.read()
    tool.stderr.close()
    tool.wait(timeout=240)


def test_module_is_the_command():
    out = subprocess.run(
        [sys.executable, '-m', 'brainevent', '--version'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.startswith('brainevent ')
