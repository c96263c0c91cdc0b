# SPDX-License-Identifier: Apache-2.0
"""Going through the lines of the input that are active, with memory asked for ahead of its use."""

import functools
from typing import Any

import numpy as np

from brainevent._edge.kernels.numba_parts import (
    AHEAD,
    CACHE_LINE,
    FETCH_EDGES,
    event_reader,
    inside,
    jit,
    line,
    silent,
    walk_towards,
)
from brainevent._edge.layout import Walk
from brainevent._op.numba_ffi import intrinsics as low


@functools.cache
def matrix_extents(transpose: bool) -> Any:
    """Make ``extents(x, y) -> (m, n)``: rows and columns, told by the operands."""
    if transpose:
        return jit(lambda x, y: (x.shape[0], y.shape[0]))
    return jit(lambda x, y: (y.shape[0], x.shape[0]))


def active_lines(event: str, visit: Any, fetch: Any) -> Any:
    """Make ``over(first, last, x, args)``, a loop over the active elements of a stretch.

    ``visit(i, following, element, args)`` is told the line after this one, -1 if there is none
    or none is known; ``fetch(i, args)`` asks for the memory of the first.
    """
    on, _ = event_reader(event)

    if event == 'BINARY':

        @jit
        def over(first, last, x, args):
            i, waiting = first, -1
            while i < last:
                skip = silent(x, i, last)
                if skip > 0:
                    i += skip
                    continue
                for k in range(i, min(i + 8, last)):
                    if x[k]:
                        if waiting >= 0:
                            visit(waiting, k, x[waiting], args)
                        else:
                            fetch(k, args)
                        waiting = k
                i += 8
            if waiting >= 0:
                visit(waiting, -1, x[waiting], args)
    else:

        @jit
        def over(first, last, x, args):
            for i in range(first, last):
                if on(x[i]):
                    visit(i, -1, x[i], args)

    return over


def _asker(walk: Walk, one: bool) -> Any:
    """Make ``ask(e, args)``: have the cache lines of an edge fetched."""
    ids, tags, weights = len(walk.streams) > 0, len(walk.streams) > 1, walk.direct and not one
    at, tag_at = (walk.streams + (0, 0))[:2]

    @jit
    def ask(e, args):
        if ids:
            low.prefetch(args[1][at], e)
        if tags:
            low.prefetch(args[1][tag_at], e)
        if weights:
            low.prefetch(args[0], e)

    return ask


def line_visitor(layout: str, transpose: bool, one: bool, four: Any, each: Any) -> tuple[Any, Any]:
    """Make ``visit`` and ``fetch`` of `active_lines`, for ``args`` of ``(w, s, m, n, reach, y,
    ...)``: go along a line, as far as it is within reach, four edges at a time.

    ``four(i, e, ids, element, args)`` takes four edges from ``e`` on, all of whose far ends are
    sound, ``each(first, last, i, element, args)`` any others. Active lines lie far apart, so each
    would begin with a miss. Its memory is asked for piece by piece along the line before it: all
    at once would fill the processor's few buffers for misses, and nothing goes on until they are
    served (20,000 neurons with 400 connections each: 1.2 against 1.8 ns an edge).
    """
    walk = walk_towards(layout, transpose, inward=True)
    path, ask, scattered = line(walk), _asker(walk, one), not walk.direct and not one
    span, far, tag = path.span, path.far, path.tag

    @jit
    def ahead(i, start, args):
        """Return how far the line to come is from here, and where it ends."""
        if i < 0:
            return 0, 0
        first, last = span(args[1], args[2], args[3], i, args[4][1])
        return first - start, min(last, first + FETCH_EDGES)

    @jit
    def fetch(i, args):
        first, end = ahead(i, 0, args)
        for e in range(first, end, CACHE_LINE):
            ask(e, args)

    @jit
    def ask_weights(i, first, args):
        for e in range(first, first + 4):
            low.prefetch(args[0], np.int64(tag(args[1], args[2], args[3], i, e)))

    @jit
    def visit(i, following, element, args):
        s, m, n, reach, out = args[1], args[2], args[3], args[4], args[5].shape[0]
        start, last = span(s, m, n, i, reach[1])
        shift, end = ahead(following, start, args)
        e = max(start, reach[0])
        while e + 4 <= last:
            e = low.nonnegative(e)
            if (e - start) & (CACHE_LINE - 4) == 0:
                ask(min(e + shift, end), args)
            if scattered:
                k, over = e + AHEAD, e + AHEAD + 4 - last
                if over <= 0:
                    ask_weights(i, k, args)
                elif start + shift + max(over, 4) <= end:
                    ask_weights(following, start + shift + max(over - 4, 0), args)
            j0, j1 = far(s, m, n, i, e), far(s, m, n, i, e + 1)
            j2, j3 = far(s, m, n, i, e + 2), far(s, m, n, i, e + 3)
            if inside(j0, out) & inside(j1, out) & inside(j2, out) & inside(j3, out):
                four(i, e, (j0, j1, j2, j3), element, args)
            else:
                each(e, e + 4, i, element, args)
            e += 4
        each(e, last, i, element, args)
        for k in range(last + shift, end, CACHE_LINE):
            ask(k, args)

    return visit, fetch
