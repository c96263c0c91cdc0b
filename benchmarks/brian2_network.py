# SPDX-License-Identifier: Apache-2.0
"""The COBA and CUBA networks of Brette et al. 2007 in Brian2, as generated and compiled C++.

usage: brian2_network.py {coba,cuba} NEURONS SECONDS

Needs an environment with ``brian2`` and a C++ compiler. Prints JSON: microseconds a step of the
compiled program's run, and the mean firing rate.
"""

import json
import os
import sys
import tempfile
import time

from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    Synapses,
    defaultclock,
    device,
    ms,
    mV,
    second,
    seed,
    set_device,
)

CONTACTS = 80
THRESHOLD, RESET = -50 * mV, -60 * mV

# Conductances are relative to the leak of 10 nS.
COBA = {
    'equations': """
        dv/dt = (ge * (0 * mV - v) + gi * (-80 * mV - v) - (v + 60 * mV) + 20 * mV) / (20 * ms)
            : volt (unless refractory)
        dge/dt = -ge / (5 * ms) : 1
        dgi/dt = -gi / (10 * ms) : 1""",
    'weights': (6 / 10, 67 / 10),
    'method': 'exponential_euler',
}
CUBA = {
    'equations': """
        dv/dt = (ge + gi - (v + 49 * mV)) / (20 * ms) : volt (unless refractory)
        dge/dt = -ge / (5 * ms) : volt
        dgi/dt = -gi / (10 * ms) : volt""",
    'weights': (60 * 0.27 / 10 * mV, -20 * 4.5 / 10 * mV),
    'method': 'exact',
}


def main() -> None:
    """Build, compile, run, and time the run alone."""
    model = {'coba': COBA, 'cuba': CUBA}[sys.argv[1]]
    n, seconds = int(sys.argv[2]), float(sys.argv[3])
    set_device('cpp_standalone', build_on_run=False)
    defaultclock.dt = 0.1 * ms
    seed(1)
    neurons = NeuronGroup(
        n,
        model['equations'],
        threshold='v > THRESHOLD',
        reset='v = RESET',
        refractory=5 * ms,
        method=model['method'],
        namespace={'THRESHOLD': THRESHOLD, 'RESET': RESET},
    )
    neurons.v = 'RESET + rand() * (THRESHOLD - RESET)'
    if model is COBA:
        neurons.ge, neurons.gi = 'randn() * 1.5 + 4', 'randn() * 12 + 20'
    cut = int(0.8 * n)
    groups = []
    for part, target, weight in zip(
        (neurons[:cut], neurons[cut:]), ('ge', 'gi'), model['weights'], strict=True
    ):
        synapses = Synapses(part, neurons, on_pre=f'{target} += w', namespace={'w': weight})
        synapses.connect(p=CONTACTS / n)
        groups.append(synapses)
    spikes = SpikeMonitor(neurons, record=False)
    Network(neurons, spikes, *groups).run(seconds * second)
    with tempfile.TemporaryDirectory(prefix='brian2_') as folder:
        out = os.dup(1)
        os.dup2(2, 1)  # the build's own chatter stays off the result
        device.build(directory=folder, run=False, compile=True)
        start = time.perf_counter()
        device.run()
        spent = time.perf_counter() - start
        os.dup2(out, 1)
        rate = spikes.num_spikes / n / seconds
    print(json.dumps({'us': spent / (seconds / 1e-4) * 1e6, 'rate': float(rate)}))


if __name__ == '__main__':
    main()
