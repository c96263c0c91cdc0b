# SPDX-License-Identifier: Apache-2.0
"""What a drawn matrix must be, by the text of `brainevent._edge.random` run on NumPy."""

import json
from pathlib import Path

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


# ---- golden vectors: ``python -m tests.drawn_model`` writes them --------------------------------

FILE = Path(__file__).parent / 'golden' / 'drawn.json'
PROBS = (
    0.0,
    2.0**-57,
    2.0**-50,
    2.0**-40,
    1e-9,
    2.0**-23,
    1e-6,
    1e-4,
    0.0039,
    0.02,
    0.0625,
    0.1,
    0.25,
    0.5,
    0.9,
    0.999,
    0.999999,
    1.0,
)
MATRICES = (
    (0.3, 42, (6, 150)),
    (0.02, -1, (4, 5000)),
    (0.9, 2**40 + 7, (3, 200)),
    (1e-4, 0, (4, 2**16)),
    (1e-9, 6, (3, 2**31 - 1)),
    (3e-8, 6, (2, 2**31 - 1)),
)


def golden():
    """Return integers, and the bits of numbers, that every platform must give."""
    bits = np.array(PROBS, np.float32).view(np.uint32)
    rule = random.rule_of(bits)
    words = np.arange(64, dtype=np.uint32)
    keys = random.draw((words * np.uint32(0), words), words)
    rare = tuple(np.concatenate([a, b]) for a, b in zip(keys, EXTREMES, strict=True))
    gaps = [random.gap(random.Rule(*(x[k : k + 1] for x in rule)), rare) for k in range(bits.size)]
    return {
        'probability_bits': bits.tolist(),
        'rule': [x.tolist() for x in rule],
        'key': [x.tolist() for x in rare],
        'gap': [g.tolist() for g in gaps],
        'unit': random.unit(rare, np.float64).tolist(),
        'gauss': random.gauss(rare, np.float64).tolist(),
        'matrix': [_matrix(*m) for m in MATRICES],
    }


# Keys at the ends of what a draw can give.
EXTREMES = (
    np.array([0, 0, 2**32 - 1, 2**32 - 1, 2**31, 1], np.uint32),
    np.array([0, 1, 0, 2**32 - 1, 2**31, 2**31], np.uint32),
)


def _matrix(prob, seed, shape):
    words = random.seed_words(seed)
    row, col, high, low = drawn_edges(np.float32([prob]), words, shape)
    return {
        'probability': prob,
        'seed': words.tolist(),
        'shape': list(shape),
        'columns': [col[row == i].tolist() for i in range(shape[0])],
        'first_keys': [[int(k[row == i][0]) for k in (high, low)] for i in range(shape[0])],
    }


if __name__ == '__main__':
    FILE.write_text(json.dumps(golden()) + '\n', encoding='utf-8')
