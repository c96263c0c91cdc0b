# SPDX-License-Identifier: Apache-2.0
"""Touch the worm: which cells of the *C. elegans* connectome answer?

    python examples/celegans.py

The same network is run twice, once with the touch receptors of the head left alone. What differs is
the answer. The wiring is real, the constants are illustrative (see
``brainevent/demo/celegans.py``).
"""

import dataclasses

import numpy as np

from brainevent.demo import CElegans, simulate
from brainevent.demo.celegans import load_wiring


def main() -> None:
    worm = CElegans.draw(seed=0)
    numb = dataclasses.replace(worm, head=0.0 * worm.head)
    touched, untouched = (simulate(w, milliseconds=400.0, seed=0) for w in (worm, numb))

    print(f'{"cells":<12} {"touched":>9} {"untouched":>9}  (spikes per cell in 400 ms)')
    for name, cells in worm.populations.items():
        mean, without = touched.counts[cells].mean(), untouched.counts[cells].mean()
        print(f'{name:<12} {mean:>9.2f} {without:>9.2f}')

    difference = touched.counts - untouched.counts
    names = load_wiring().cells
    print('most changed:', ', '.join(names[i] for i in np.argsort(-np.abs(difference))[:12]))


if __name__ == '__main__':
    main()
