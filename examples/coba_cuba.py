# SPDX-License-Identifier: Apache-2.0
"""The balanced networks of Brette et al. 2007: build, simulate, measure, draw.

    python examples/coba_cuba.py [neurons]

The equations are in ``brainevent/demo/networks.py``, and are the whole model: a step is a dozen
lines of brainunit and two products, ``BinaryArray(spikes) @ connections``.
"""

import sys

from brainevent.demo import COBA, CUBA, draw_raster, simulate


def main(neurons: int = 4000) -> None:
    for kind in (COBA, CUBA):
        network = kind.draw(neurons, seed=0)
        result = simulate(network, milliseconds=1000.0, seed=0)
        for population in network.populations:
            print(
                f'{network.name} {population}: {result.rate(population):.1f} Hz, '
                f'ISI CV {result.isi_cv(population):.2f}'
            )
        print(
            f'{network.name}: {result.run_seconds / result.steps * 1e6:.1f} us a step, '
            f'{result.synaptic_events / result.run_seconds:,.0f} synaptic events per second'
        )
        try:
            print(f'{network.name}: {draw_raster(result, f"{network.name.lower()}.png")}')
        except ImportError as error:
            print(f"no raster: {error} (pip install 'brainevent[plot]')")


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))
