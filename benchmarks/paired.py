# SPDX-License-Identifier: Apache-2.0
"""Time the same cases in two environments in turn (A B A B ...) and print the ratio B/A.

usage: paired.py A=PYTHON[@FOLDER] [B=PYTHON[@FOLDER]] [--rounds N] [--json FILE] [--cases CASE ...]

Each environment holds one package named ``brainevent``. A case may be written ``CASEA~CASEB`` to
give the sides different work, such as ours against scipy's. ``ns/edge`` is A's time for each
synapse that takes part, to be held against ``limits.py``.
"""

import json
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

import sides

CASES = (
    'scan_sW:n=100:k=10:rate=.02',
    'scan_sW:n=1000:k=100:rate=.01',
    'scan_sW:n=4000:k=80:rate=.01',
    'scan_sW:n=4000:k=80:rate=.01:w=homo',
    'scan_sW:n=20000:k=400:rate=.01:steps=20',
    'scan_sW:n=100000:k=200:rate=.002:steps=20',
    'scan_sW:n=100000:k=200:rate=.02:steps=20',
    'scan_sW:n=100000:k=200:rate=.02:steps=20:w=homo',
    'scan_compact:n=100000:k=200:rate=.001:steps=20~scan_sW:n=100000:k=200:rate=.001:steps=20',
    'scan_compacting:n=100000:k=200:rate=.001:steps=20~scan_sW:n=100000:k=200:rate=.001:steps=20',
    'scan_Ws:n=4000:k=80:rate=.01',
    'scan_Ws:n=100000:k=200:rate=.002:steps=5',
    'mirror:n=100000:k=200',
    'mv:n=4000:k=80',
    'mv:n=100000:k=200',
    'vm:n=100000:k=200',
    'mv:n=100000:k=200~scipy_mv:n=100000:k=200',
    'vm:n=100000:k=200~scipy_vm:n=100000:k=200',
    'mv:n=20000:k=400~bcoo_mv:n=20000:k=400',
    'eager_sW:n=4000:k=80:rate=.01',
    'mm_event:n=4000:k=80:rate=.01:b=32',
    'vmap_event:n=4000:k=80:rate=.01:b=32',
    'mm:n=4000:k=80:b=32',
    'fcn_pre:n=4000:k=80:rate=.01',
    'fcn_post:n=4000:k=80:rate=.01',
    'fcn_pre:n=100000:k=200:rate=.01:steps=20',
    'grad_w:n=4000:k=80',
    'plast_pre:n=4000:k=80:rate=.01',
    'plast_post:n=4000:k=80:rate=.01',
    'plast_pre:n=20000:k=400:rate=.01:steps=10',
    'plast_pre:n=20000:k=400:rate=.01:steps=10:clip=no',
    'plast_post:n=20000:k=400:rate=.01:steps=10:clip=no',
    'jitc_event:n=4000:k=80:rate=.01',
    'jitc_event:n=4000:k=80:rate=.01~jitc_stored:n=4000:k=80:rate=.01',
    'jitc_event:n=100000:k=200:rate=.01:steps=5',
    'jitc_mv:n=20000:k=400',
    'jitc_mv:n=20000:k=400:w=normal',
    'jitc_mv:n=20000:k=400:w=uniform',
)

REPEATS = 3  # within a round; the worker answers with their median


class Worker:
    """A side whose worker stays alive, so that a case is built once for all rounds."""

    def __init__(self, side: sides.Side) -> None:
        self.process = subprocess.Popen(
            **side.command('worker.py'), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, case: str) -> dict:
        """Time one case once more."""
        question = json.dumps({'case': case, 'reps': REPEATS})
        try:
            self.process.stdin.write(f'{question}\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            return {'error': 'the worker died'}
        return json.loads(self.process.stdout.readline() or '{"error": "the worker died"}')

    def close(self) -> None:
        """End the worker by ending its input."""
        self.process.stdin.close()
        self.process.wait()


def measure(workers: list[Worker], case: str, rounds: int) -> dict:
    """Time one case on every side in turn; the first error ends it."""
    pair = case.split('~')
    answers: list[list[dict]] = [[] for _ in workers]
    for _ in range(rounds):
        for worker, mine, found in zip(workers, (pair[0], pair[-1]), answers, strict=False):
            found.append(worker.ask(mine))
        failed = [a[-1]['error'] for a in answers if 'error' in a[-1]]
        if failed:
            return {'case': case, 'error': '; '.join(failed)}
    times = [[a['us'] for a in found] for found in answers]
    row = {
        'case': case,
        'us': [statistics.median(t) for t in times],
        'first_s': [found[0]['first_s'] for found in answers],
        'ns_per_edge': statistics.median(times[0]) * 1e3 / max(answers[0][0]['edges'], 1),
    }
    if len(times) == 2:
        row['ratio'] = statistics.median(b / a for a, b in zip(*times, strict=True))
    return row


def table(rows: Iterator[dict]) -> Iterator[str]:
    """Give the lines of a Markdown table, as they come."""
    yield '| case | A us | B us | B/A | A ns/edge | first call s |'
    yield '|---|---|---|---|---|---|'
    for row in rows:
        if 'error' in row:
            yield f'| `{row["case"]}` | {row["error"]} | | | | |'
            continue
        a, *b = (f'{t:.1f}' for t in row['us'])
        first = ', '.join(f'{s:.2f}' for s in row['first_s'])
        ratio = f'{row["ratio"]:.2f}' if b else ''
        other = b[0] if b else ''
        yield f'| `{row["case"]}` | {a} | {other} | {ratio} | {row["ns_per_edge"]:.2f} | {first} |'


def main() -> None:
    """Print one line for each case."""
    parser = sides.parser(__doc__.splitlines()[0], rounds=5)
    parser.add_argument('--json', type=Path, help='write all figures to this file')
    parser.add_argument('--cases', nargs='+', default=CASES)
    options = parser.parse_args()
    if not 1 <= len(options.sides) <= 2:
        parser.error('give one side or two')
    workers = [Worker(side) for side in options.sides]
    rows = []

    def measured() -> Iterator[dict]:
        for case in options.cases:
            rows.append(measure(workers, case, options.rounds))
            yield rows[-1]

    for line in table(measured()):
        print(line, flush=True)
    for worker in workers:
        worker.close()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
    main()
