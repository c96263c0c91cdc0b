# SPDX-License-Identifier: Apache-2.0
"""What a drawn matrix must be, by the text of `brainevent._edge.random` run on NumPy."""

import numpy as np

from brainevent._edge import random


def drawn_edges(prob, seed, shape):
    """List row, column and key (upper and lower words) of all edges, row by row."""
    m, n = shape
    line = np.arange(m, dtype=np.uint32)
    rule = random.Rule(*(np.repeat(x, m) for x in random.rule_of(prob.view(np.uint32))))
    stream = random.stream_key((np.repeat(seed[:1], m), np.repeat(seed[1:], m)), line)
    found = []
    for block in range(int(random.blocks(rule, np.uint32(n)).max(initial=0))):
        state = random.block_key(stream, np.full(m, block, np.uint32))
        place = np.full(m, block, np.uint32) << rule.width
        last = np.minimum(place + (np.uint32(1) << rule.width), np.uint32(n))
        while True:
            state, key = random.next_key(state)
            place = place + random.gap(rule, key)
            there = place < last
            if not there.any():
                break
            found.append([part[there] for part in (line, place, *key)])
            place = np.where(there, place + np.uint32(1), last)
    none = [np.zeros(0, np.uint32)] * 4
    row, col, high, low = (np.concatenate(part) for part in zip(none, *found, strict=True))
    order = np.lexsort((col, row))
    return row[order].astype(np.int32), col[order].astype(np.int32), high[order], low[order]
