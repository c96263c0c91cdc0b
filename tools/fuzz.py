# SPDX-License-Identifier: Apache-2.0
"""Compare random programs with dense ones for a given time.

    python tools/fuzz.py --minutes 60 --seed 1

Each round is a process of its own with a seed of its own, so that a crash is a failure like any
other and compiled programs do not pile up; every other round runs with 64-bit numbers. A failure
shows the smallest example that hypothesis finds. ``--round SEED`` repeats one round.
"""

import argparse
import collections
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ('programs', 'operations', 'broken')


def run_round(seed: int, examples: int, cases: tuple[str, ...] = CASES) -> int:
    """Run all cases with one seed in this process; return the number of failures."""
    import warnings

    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    sys.path.insert(0, str(ROOT))
    import tests.random_programs as rp
    from tests.properties_test import CHECKS

    def counting(check, count):
        def counted(case):
            count['all'] += 1
            check(case)

        return counted

    failures = 0
    for name in cases:
        count = collections.Counter()
        check = counting(CHECKS[name], count)
        run = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
            report_multiple_bugs=False,
        )(seeded(seed)(given(getattr(rp, name)())(check)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter('error')
                run()
        except BaseException as error:  # hypothesis raises groups, and exits of kernels count too
            if isinstance(error, KeyboardInterrupt):
                raise
            import traceback

            failures += 1
            print(f'FAILED {name}, seed {seed}')
            traceback.print_exc(limit=-6, file=sys.stdout)
        print(f'examples {name} {count["all"]}', flush=True)
    return failures


def run_child(seed: int, examples: int) -> tuple[bool, str]:
    """Run a round in a process of its own; return whether it passed, and its output."""
    env = os.environ | {'JAX_ENABLE_X64': str(seed % 2), 'PYTHONFAULTHANDLER': '1'}
    command = [sys.executable, __file__, '--round', str(seed), '--examples', str(examples)]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    output = done.stdout + (done.stderr[-4000:] if done.returncode < 0 else '')
    return done.returncode == 0, output


def main() -> int:
    """Run rounds until the time is over, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=10)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--examples', type=int, default=100, help='of each case in each round')
    parser.add_argument('--only', choices=CASES, help='one case instead of all')
    parser.add_argument('--round', type=int, help='run the round of this seed here, once')
    given = parser.parse_args()
    cases = CASES if given.only is None else (given.only,)
    if given.round is not None:
        return min(run_round(given.round, given.examples, cases), 1)
    total, failed, end = collections.Counter(), [], time.monotonic() + 60 * given.minutes
    seed = given.seed
    while time.monotonic() < end:
        passed, output = run_child(seed, given.examples)
        for line in output.splitlines():
            if line.startswith('examples '):
                total[line.split()[1]] += int(line.split()[2])
        if not passed:
            failed.append(seed)
            print(f'---- round {seed} failed ----\n{output}', flush=True)
        seed += 1
    counts = ', '.join(f'{n} {name}' for name, n in total.items())
    print(f'seeds {given.seed} to {seed - 1}: {counts}; {len(failed)} rounds failed: {failed}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
