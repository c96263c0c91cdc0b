# SPDX-License-Identifier: Apache-2.0
"""Networks that show the operators at work, and what runs, measures and draws them.

``brainevent demo`` is this package on the command line. From Python:

>>> from brainevent import demo
>>> result = demo.simulate(demo.COBA.draw(400), milliseconds=20.0)
>>> result.steps, result.counts.shape
(200, (400,))
"""

from brainevent.demo.celegans import CElegans
from brainevent.demo.networks import COBA, CUBA, BalancedNetwork
from brainevent.demo.raster import draw_raster
from brainevent.demo.run import Network, Result, simulate

__all__ = [
    'COBA',
    'CUBA',
    'BalancedNetwork',
    'CElegans',
    'Network',
    'Result',
    'draw_raster',
    'simulate',
]
