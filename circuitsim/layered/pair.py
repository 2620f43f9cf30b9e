"""A sweep of a network with one hidden layer: both layers in one reading of the matrix between them.

The matrix is stored by outputs (`layout`), of which there are few. While `TILE` of its columns are in the nearest
cache, the outputs' potentials are added to the hidden units' numerators, the hidden states are updated, and their
products are added to the outputs' numerators.
"""

from __future__ import annotations

import numpy as np

from circuitsim._vectors import (
    add,
    div,
    fma,
    kernel,
    largest,
    load,
    magnitude,
    maximum,
    minimum,
    mul,
    splat,
    store,
    sub,
    total,
)
from circuitsim.layered.layout import BLOCK, LANES
from circuitsim.layered.tiles import TILE

NONE, HIDDEN, ALL = 0, 1, 2
"""Which units' moves a sweep measures."""

SMALLEST = float(np.finfo(np.float32).tiny)


@kernel()
def clipped(p, low, high, first):
    """Minima ``p`` moved back into the bounds of the units from ``first`` on."""
    return minimum(maximum(p, load(low, first, LANES)), load(high, first, LANES))


@kernel()
def larger(moves, new, old, p, smallest):
    """``moves`` or, where larger, |new − old| over |p| + |old|, lane by lane; ``smallest`` (> 0) makes 0/0 zero."""
    scale = maximum(add(magnitude(p), magnitude(old)), smallest)
    return maximum(moves, div(magnitude(sub(new, old)), scale))


@kernel()
def sweep_two(inner, g, rows, width, base, v, inverse, place, low, high, first, h, o, n, sums, moves, measured):
    """Two samples: the hidden units, and the lanes of the outputs' numerators, zero before, in ``sums``.

    ``g`` is the place of the matrix, of ``rows`` rows with padding, ``h`` and ``o`` that of the first sample's hidden
    units and outputs, ``n`` the distance to the second's, ``place`` that of the hidden units in ``inverse``, ``first``
    in ``low`` and ``high``.
    """
    i, p = h + n, o + n
    for k in range(0, width, TILE):
        a, b = load(base, h + k, LANES), load(base, h + k + LANES, LANES)
        c, d = load(base, i + k, LANES), load(base, i + k + LANES, LANES)
        at = g + BLOCK * k
        for block in range(0, rows, BLOCK):
            for r in range(BLOCK):
                w0, w1 = load(inner, at + r * LANES, LANES), load(inner, at + (BLOCK + r) * LANES, LANES)
                x, y = splat(v[o + block + r], LANES), splat(v[p + block + r], LANES)
                a, b, c, d = fma(w0, x, a), fma(w1, x, b), fma(w0, y, c), fma(w1, y, d)
            at += BLOCK * width
        r0, r1 = load(inverse, place + k, LANES), load(inverse, place + k + LANES, LANES)
        a, b, c, d = mul(a, r0), mul(b, r1), mul(c, r0), mul(d, r1)
        x0, x1 = clipped(a, low, high, first + k), clipped(b, low, high, first + k + LANES)
        y0, y1 = clipped(c, low, high, first + k), clipped(d, low, high, first + k + LANES)
        if measured:
            tiny = splat(v.dtype.type(SMALLEST), LANES)
            moves = larger(moves, x0, load(v, h + k, LANES), a, tiny)
            moves = larger(moves, x1, load(v, h + k + LANES, LANES), b, tiny)
            moves = larger(moves, y0, load(v, i + k, LANES), c, tiny)
            moves = larger(moves, y1, load(v, i + k + LANES, LANES), d, tiny)
        store(v, h + k, x0)
        store(v, h + k + LANES, x1)
        store(v, i + k, y0)
        store(v, i + k + LANES, y1)
        at = g + BLOCK * k
        for block in range(0, rows, BLOCK):
            for r in range(BLOCK):
                w0, w1 = load(inner, at + r * LANES, LANES), load(inner, at + (BLOCK + r) * LANES, LANES)
                s = 2 * (block + r) * LANES
                store(sums, s, fma(w1, x1, fma(w0, x0, load(sums, s, LANES))))
                store(sums, s + LANES, fma(w1, y1, fma(w0, y0, load(sums, s + LANES, LANES))))
            at += BLOCK * width
    return moves


@kernel()
def sweep_pair(layout, inner, base, v, inverse, low, high, lanes, samples, phase, measured):
    """`circuitsim.layered.sweeps.sweep` of a network with one hidden layer."""
    n, hidden, outputs = layout.total, layout.at[1], layout.at[2]
    rows = -(-layout.units[2] // BLOCK) * BLOCK
    zero = splat(inner.dtype.type(0), LANES)
    moves = zero
    for b in range(0, samples, 2):
        o, place = b * n + outputs, phase[b // 4] * n
        moves = sweep_two(
            inner,
            layout.matrix[2],
            rows,
            layout.width[1],
            base,
            v,
            inverse,
            place + hidden,
            low,
            high,
            hidden,
            b * n + hidden,
            o,
            n,
            lanes,
            moves,
            measured != NONE,
        )
        for k in range(rows):
            for i in range(2):
                at = o + i * n + k
                p = (base[at] + total(load(lanes, (2 * k + i) * LANES, LANES))) * inverse[place + outputs + k]
                v[at] = min(max(p, low[outputs + k]), high[outputs + k])
                store(lanes, (2 * k + i) * LANES, zero)
    return largest(moves)
