# SPDX-License-Identifier: Apache-2.0
"""A side is a Python environment that is measured from outside, in a process of its own.

A side is written ``NAME=PYTHON`` or ``NAME=PYTHON@FOLDER``; with a folder, that checkout is
imported instead of what is installed.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Tuning meant for one old OpenBLAS; it slows a current NumPy down.
_UNSET = ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE', 'PYTHONPATH')


class Side:
    """One environment: its interpreter, and the settings under which it runs scripts."""

    def __init__(self, text: str) -> None:
        self.name, _, place = text.partition('=')
        self.python, _, folder = place.partition('@')
        if not (self.name and self.python):
            raise argparse.ArgumentTypeError(f'{text!r} is not NAME=PYTHON[@FOLDER]')
        self.env = {k: v for k, v in os.environ.items() if k not in _UNSET}
        self.env |= {'JAX_PLATFORMS': 'cpu', 'PYTHONWARNINGS': 'ignore'}
        if folder:
            self.env['PYTHONPATH'] = str(Path(folder).resolve())

    def command(self, script: str, *arguments: str) -> dict:
        """Give the arguments of ``subprocess`` that run one of the scripts beside this file."""
        # From the root folder, so that no package in the working directory is picked up.
        return {
            'args': [self.python, str(HERE / script), *arguments],
            'env': self.env,
            'cwd': '/',
            'text': True,
            'stdout': subprocess.PIPE,
        }

    def run(self, script: str, *arguments: str) -> dict:
        """Run a script to its end; its last line of output is JSON."""
        done = subprocess.run(**self.command(script, *arguments), stdin=subprocess.DEVNULL)
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            raise SystemExit(f'{self.name}: {script} ended with status {done.returncode}')
        return json.loads(lines[-1])


def in_turn(sides: list[Side], rounds: int, script: str, *arguments: str) -> dict[str, dict]:
    """Run a script A B A B ...; give the median of each number it prints, for each side.

    Taking turns lets a machine that grows busier or hotter hit both sides alike.
    """
    answers: dict[str, list[dict]] = {side.name: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            answers[side.name].append(side.run(script, *arguments))
    return {
        name: {key: statistics.median(a[key] for a in found) for key in found[0]}
        for name, found in answers.items()
    }


def parser(description: str, rounds: int) -> argparse.ArgumentParser:
    """Make the parser of a script that compares sides."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument('sides', nargs='*', type=Side, metavar='NAME=PYTHON[@FOLDER]')
    made.add_argument('--rounds', type=int, default=rounds)
    return made
