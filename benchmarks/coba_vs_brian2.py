# SPDX-License-Identifier: Apache-2.0
"""A step of our balanced network against a step of Brian2's C++ program, in turn.

usage: coba_vs_brian2.py OURS=PYTHON[@FOLDER] BRIAN2=PYTHON [--neurons N ...] [--seconds S]

The second environment holds ``brian2`` and needs a C++ compiler. Both draw 80 contacts a neuron
from the same distribution, not the same contacts; the firing rates printed should be alike.
"""

import statistics

import sides


def main() -> None:
    """Print a line for each size."""
    parser = sides.parser(__doc__.splitlines()[0], rounds=3)
    parser.add_argument('--neurons', nargs='+', default=['4000', '40000'])
    parser.add_argument('--seconds', default='1')
    parser.add_argument('--model', choices=['coba', 'cuba'], default='coba')
    options = parser.parse_args()
    if len(options.sides) != 2:
        parser.error('give our side, then the one with brian2')
    print('| network | ours us/step | Brian2 us/step | ratio | rates Hz |')
    print('|---|---|---|---|---|')
    for neurons in options.neurons:
        arguments = (options.model, neurons, options.seconds)
        rounds = [
            [
                side.run(script, *arguments)
                for side, script in zip(
                    options.sides, ('network.py', 'brian2_network.py'), strict=True
                )
            ]
            for _ in range(options.rounds)
        ]
        ours, theirs = (statistics.median(r[i]['us'] for r in rounds) for i in (0, 1))
        ratio = statistics.median(b['us'] / a['us'] for a, b in rounds)
        rates = ', '.join(f'{r["rate"]:.1f}' for r in rounds[-1])
        print(
            f'| {options.model} {neurons} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} | {rates} |',
            flush=True,
        )


if __name__ == '__main__':
    main()
