# SPDX-License-Identifier: Apache-2.0
"""The command line: help, version, wrong commands, interrupts, readers that are gone."""

import subprocess
import sys

import pytest

import brainevent
import brainevent_cli as _cli
from brainevent import config
from brainevent.demo import command


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

    monkeypatch.setattr(command, 'run', interrupt)
    assert _cli.main(['demo']) == 130
    assert capsys.readouterr().err == 'interrupted\n'


@pytest.mark.parametrize('argv', [['doctor'], ['--help'], ['cache', 'show'], ['demo', '--help']])
def test_a_reader_that_is_gone_is_not_a_traceback(argv):
    code = f'import sys, brainevent_cli as cli; sys.exit(cli.main({argv}))'
    tool = subprocess.Popen(
        [sys.executable, '-u', '-c', code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    tool.stdout.readline()
    tool.stdout.close()
    trouble = tool.stderr.read()
    assert 'Traceback' not in trouble and 'BrokenPipe' not in trouble
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


@pytest.mark.parametrize(
    'argv', [['--help'], ['--version'], [], ['bake'], *[[c.name, '--help'] for c in _cli.COMMANDS]]
)
def test_what_runs_nothing_loads_nothing(argv):
    code = (
        'import sys, brainevent_cli\n'
        'try:\n'
        f'    brainevent_cli.main({argv})\n'
        'finally:\n'
        '    print(sorted({"brainevent", "jax", "numpy"} & set(sys.modules)), file=sys.stderr)\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stderr.rstrip().endswith('[]')


def test_what_is_known_without_the_package_agrees_with_it():
    assert sorted(command.NETWORKS) == list(_cli.NETWORKS)
    assert _cli.PLATFORMS == config.PLATFORMS
    assert all(float(n.dt / command.ms) == _cli.SHORTEST_MS for n in command.NETWORKS.values())
    assert _cli._version() == brainevent.__version__
