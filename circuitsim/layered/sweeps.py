"""Sweeps: every odd layer takes its minimum given the even ones, then every even layer given the odd ones.

States are (samples, units) in one flat array, samples in groups of four. A unit's minimum is its numerator Σ g v + b
over its conductance Σ g, moved back into its bounds (Scellier 2024, Theorem 2). A block of four rows of an inner matrix
comes from memory once: products with the even layers, the rows' new states, products of those for the even layers.
"""

from __future__ import annotations

import numpy as np
from numba import prange

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
from circuitsim.layered.layout import BLOCK, GROUP, LANES, PANEL, PARTS

NONE, HIDDEN, ALL = 0, 1, 2
"""Which units' moves a sweep measures."""

SMALLEST = float(np.finfo(np.float32).tiny)


@kernel()
def larger(moves, new, old, p, smallest):
    """``moves`` or, where larger, |new − old| over |p| + |old|, lane by lane; ``smallest`` (> 0) makes 0/0 zero."""
    scale = maximum(add(magnitude(p), magnitude(old)), smallest)
    return maximum(moves, div(magnitude(sub(new, old)), scale))


@kernel()
def gather(inner, g, length, v, o, n, sums, s):
    """Four rows times four samples: 16 vectors from ``sums[s]`` on, sample by sample, take up Σ_k G[r, k] v_i[k].

    ``g`` is the place of the rows' first columns, ``length`` their number, ``o`` that of the first sample's states,
    ``n`` the distance to the next sample's. The sum over the lanes of each vector is left to `collect`.
    """
    a00, a01 = load(sums, s, LANES), load(sums, s + LANES, LANES)
    a02, a03 = load(sums, s + 2 * LANES, LANES), load(sums, s + 3 * LANES, LANES)
    a10, a11 = load(sums, s + 4 * LANES, LANES), load(sums, s + 5 * LANES, LANES)
    a12, a13 = load(sums, s + 6 * LANES, LANES), load(sums, s + 7 * LANES, LANES)
    a20, a21 = load(sums, s + 8 * LANES, LANES), load(sums, s + 9 * LANES, LANES)
    a22, a23 = load(sums, s + 10 * LANES, LANES), load(sums, s + 11 * LANES, LANES)
    a30, a31 = load(sums, s + 12 * LANES, LANES), load(sums, s + 13 * LANES, LANES)
    a32, a33 = load(sums, s + 14 * LANES, LANES), load(sums, s + 15 * LANES, LANES)
    o1, o2, o3 = o + n, o + 2 * n, o + 3 * n
    for k in range(0, length, LANES):
        w0 = load(inner, g + 4 * k, LANES)
        w1 = load(inner, g + 4 * k + LANES, LANES)
        w2 = load(inner, g + 4 * k + 2 * LANES, LANES)
        w3 = load(inner, g + 4 * k + 3 * LANES, LANES)
        x = load(v, o + k, LANES)
        a00, a01, a02, a03 = fma(w0, x, a00), fma(w1, x, a01), fma(w2, x, a02), fma(w3, x, a03)
        x = load(v, o1 + k, LANES)
        a10, a11, a12, a13 = fma(w0, x, a10), fma(w1, x, a11), fma(w2, x, a12), fma(w3, x, a13)
        x = load(v, o2 + k, LANES)
        a20, a21, a22, a23 = fma(w0, x, a20), fma(w1, x, a21), fma(w2, x, a22), fma(w3, x, a23)
        x = load(v, o3 + k, LANES)
        a30, a31, a32, a33 = fma(w0, x, a30), fma(w1, x, a31), fma(w2, x, a32), fma(w3, x, a33)
    store(sums, s, a00)
    store(sums, s + LANES, a01)
    store(sums, s + 2 * LANES, a02)
    store(sums, s + 3 * LANES, a03)
    store(sums, s + 4 * LANES, a10)
    store(sums, s + 5 * LANES, a11)
    store(sums, s + 6 * LANES, a12)
    store(sums, s + 7 * LANES, a13)
    store(sums, s + 8 * LANES, a20)
    store(sums, s + 9 * LANES, a21)
    store(sums, s + 10 * LANES, a22)
    store(sums, s + 11 * LANES, a23)
    store(sums, s + 12 * LANES, a30)
    store(sums, s + 13 * LANES, a31)
    store(sums, s + 14 * LANES, a32)
    store(sums, s + 15 * LANES, a33)


@kernel()
def collect(lanes, s, n, sums, o):
    """Add the lanes of the 16 vectors of `gather` to the numerators of four units of four samples; clear them."""
    zero = splat(lanes.dtype.type(0), LANES)
    for i in range(4):
        for r in range(BLOCK):
            at = s + (i * BLOCK + r) * LANES
            sums[o + i * n + r] += total(load(lanes, at, LANES))
            store(lanes, at, zero)


@kernel()
def scatter(inner, g, length, v, r, n, sums, s):
    """Four rows times four samples, transposed: ``sums[s + i n + k] += Σ_r G[r, k] v_i[r]``."""
    r1, r2, r3 = r + n, r + 2 * n, r + 3 * n
    x00, x01, x02, x03 = splat(v[r], LANES), splat(v[r + 1], LANES), splat(v[r + 2], LANES), splat(v[r + 3], LANES)
    x10, x11, x12, x13 = splat(v[r1], LANES), splat(v[r1 + 1], LANES), splat(v[r1 + 2], LANES), splat(v[r1 + 3], LANES)
    x20, x21, x22, x23 = splat(v[r2], LANES), splat(v[r2 + 1], LANES), splat(v[r2 + 2], LANES), splat(v[r2 + 3], LANES)
    x30, x31, x32, x33 = splat(v[r3], LANES), splat(v[r3 + 1], LANES), splat(v[r3 + 2], LANES), splat(v[r3 + 3], LANES)
    s1, s2, s3 = s + n, s + 2 * n, s + 3 * n
    for k in range(0, length, LANES):
        w0 = load(inner, g + 4 * k, LANES)
        w1 = load(inner, g + 4 * k + LANES, LANES)
        w2 = load(inner, g + 4 * k + 2 * LANES, LANES)
        w3 = load(inner, g + 4 * k + 3 * LANES, LANES)
        store(sums, s + k, fma(w3, x03, fma(w2, x02, fma(w1, x01, fma(w0, x00, load(sums, s + k, LANES))))))
        store(sums, s1 + k, fma(w3, x13, fma(w2, x12, fma(w1, x11, fma(w0, x10, load(sums, s1 + k, LANES))))))
        store(sums, s2 + k, fma(w3, x23, fma(w2, x22, fma(w1, x21, fma(w0, x20, load(sums, s2 + k, LANES))))))
        store(sums, s3 + k, fma(w3, x33, fma(w2, x32, fma(w1, x31, fma(w0, x30, load(sums, s3 + k, LANES))))))


@kernel()
def clip(sums, v, inverse, low, high, place, first, o, moves, measured, lanes):
    """New states of ``lanes`` units of one sample, from their numerators; the largest relative moves are returned.

    ``first`` is the first unit, ``place`` its entry in ``inverse``, ``o`` that in the sample's states and numerators.
    """
    p = mul(load(sums, o, lanes), load(inverse, place, lanes))
    new = minimum(maximum(p, load(low, first, lanes)), load(high, first, lanes))
    if measured:
        moves = larger(moves, new, load(v, o, lanes), p, splat(v.dtype.type(SMALLEST), lanes))
    store(v, o, new)
    return moves


@kernel()
def clip_layer(layer, layout, v, sums, inverse, low, high, samples, phase, measured):
    """New states of a layer's units; returns the largest relative move."""
    n, first, moves = layout.total, layout.at[layer], splat(v.dtype.type(0), LANES)
    for b in range(samples):
        place = phase[b // 4] * n + first
        for k in range(0, layout.width[layer], LANES):
            o = b * n + first + k
            moves = clip(sums, v, inverse, low, high, place + k, first + k, o, moves, measured, LANES)
    return largest(moves)


@kernel()
def sweep_part(part, layout, inner, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, measured):
    """One share of the odd rows: gather, clip, scatter into ``partial[part]``; the largest move goes to `moved`.

    ``phase[b // 4] · total`` is where the inverse conductances of sample b begin (they differ in the outputs only).
    A few blocks at a time go through panels of `PANEL` columns: the panel's states and sums stay in the nearest cache,
    the blocks in the next one until they are read a second time.
    """
    n, last, zero = layout.total, layout.units.size - 1, splat(v.dtype.type(0), LANES)
    mine, cell = part * samples * n, samples // 4 * 16 * LANES
    for layer in range(2, layout.units.size, 2):
        for b in range(samples):
            at = mine + b * n + layout.at[layer]
            for k in range(at, at + layout.width[layer], LANES):
                store(partial, k, zero)
    moves = splat(v.dtype.type(0), BLOCK)
    first, end = layout.parts[part], layout.parts[part + 1]
    while first < end:
        layer, stop = layout.blocks[first, 0], first + 1
        while stop < min(end, first + GROUP) and layout.blocks[stop, 0] == layer:
            stop += 1
        for upper in range(layer, layer + 2):
            if 2 <= upper <= last and layout.row_layer[upper] == layer:
                stride, columns = layout.stride[upper], layout.at[layout.column_layer[upper]]
                for start in range(0, stride, PANEL):
                    length = min(PANEL, stride - start)
                    for b in range(0, samples, 4):
                        for block in range(first, stop):
                            g = layout.matrix[upper] + layout.blocks[block, 1] * stride + BLOCK * start
                            place = (part * GROUP + block - first) * cell
                            gather(inner, g, length, v, b * n + columns + start, n, lanes, place + b * 4 * LANES)
        for block in range(first, stop):
            unit, place = layout.at[layer] + layout.blocks[block, 1], (part * GROUP + block - first) * cell
            for b in range(0, samples, 4):
                collect(lanes, place + b * 4 * LANES, n, sums, b * n + unit)
            for b in range(samples):
                at = phase[b // 4] * n + unit
                counted = measured == ALL or (measured == HIDDEN and layer < last)
                moves = clip(sums, v, inverse, low, high, at, unit, b * n + unit, moves, counted, BLOCK)
        for upper in range(layer, layer + 2):
            if 2 <= upper <= last and layout.row_layer[upper] == layer:
                stride, columns = layout.stride[upper], layout.at[layout.column_layer[upper]]
                for start in range(0, stride, PANEL):
                    length = min(PANEL, stride - start)
                    for b in range(0, samples, 4):
                        for block in range(first, stop):
                            row = layout.blocks[block, 1]
                            g = layout.matrix[upper] + row * stride + BLOCK * start
                            unit = b * n + layout.at[layer] + row
                            scatter(inner, g, length, v, unit, n, partial, mine + b * n + columns + start)
        first = stop
    moved[part] = largest(moves)


@kernel()
def all_parts(layout, inner, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, measured):
    """`sweep_part` on every share, one after the other."""
    for part in range(PARTS):
        sweep_part(part, layout, inner, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, measured)


@kernel(parallel=True)
def all_parts_in_parallel(layout, inner, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, measured):
    """`sweep_part` on every share, among threads."""
    for part in prange(PARTS):
        sweep_part(part, layout, inner, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, measured)


@kernel()
def reset(layout, base, sums, samples, parity):
    """Numerators of all layers of one parity as they are without the other layers."""
    n = layout.total
    for layer in range(2 - parity, layout.units.size, 2):
        for b in range(samples):
            at = b * n + layout.at[layer]
            for k in range(at, at + layout.width[layer], LANES):
                store(sums, k, load(base, k, LANES))


@kernel()
def outputs_to_hidden(layout, inner, v, sums, samples):
    """The outputs' share in the numerators of the layer before them."""
    n, last = layout.total, layout.units.size - 1
    stride = layout.stride[last]
    for row in range(0, layout.units[last], BLOCK):
        for b in range(0, samples, 4):
            scatter(
                inner,
                layout.matrix[last] + row * stride,
                stride,
                v,
                b * n + layout.at[last] + row,
                n,
                sums,
                b * n + layout.at[last - 1],
            )


@kernel()
def hidden_to_outputs(layout, inner, v, sums, lanes, samples):
    """The last hidden layer's share in the numerators of the outputs."""
    n, last = layout.total, layout.units.size - 1
    stride = layout.stride[last]
    for row in range(0, layout.units[last], BLOCK):
        for b in range(0, samples, 4):
            gather(
                inner,
                layout.matrix[last] + row * stride,
                stride,
                v,
                b * n + layout.at[last - 1],
                n,
                lanes,
                0,
            )
            collect(lanes, 0, n, sums, b * n + layout.at[last] + row)


@kernel()
def sweep(layout, inner, base, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, threads, measured):
    """One sweep; returns the largest move of an odd unit, relative to |p| + |v|.

    A move |v_new − v| of a free unit is its net current over its conductance, and conductance · (|p| + |v|) is at most
    Σ g (|v_k| + |v_j|) + |b|: the returned number bounds the residual of the state before, in its local scale.

    Parameters
    ----------
    base : (samples · total,) ndarray
        What each numerator is without the neighbours: biases, input currents, nudges.
    v, sums : (samples · total,) ndarray
        States, in place; working memory.
    inverse : (3 · total,) ndarray
        One over the conductance of each unit, 0 for padding; once for each phase.
    phase : (samples / 4,) ndarray of int
        Index of the phase of each group of samples.
    partial : (PARTS · samples · total,) ndarray, lanes : (PARTS · GROUP · samples · 4 · LANES,) ndarray
        Working memory of the shares; ``lanes`` is zero before and after.
    moved : (PARTS,) ndarray
        The same, of their largest moves.
    measured : {NONE, HIDDEN, ALL}
        Units of the returned number, which costs divisions. A nudge moves the outputs at once, independently of the
        error of the state before it.
    """
    n, last = layout.total, layout.units.size - 1
    reset(layout, base, sums, samples, 1)
    if last % 2 == 0:
        outputs_to_hidden(layout, inner, v, sums, samples)
    given = (layout, inner, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, measured)
    if last == 2:
        # The only hidden layer has no rows of a matrix.
        most = clip_layer(1, layout, v, sums, inverse, low, high, samples, phase, measured != NONE)
    else:
        if threads is not None and layout.update_parts.size > 2:
            all_parts_in_parallel(*given)
        else:
            all_parts(*given)
        most = inner.dtype.type(0)
        for part in range(PARTS):
            most = max(most, moved[part])
    reset(layout, base, sums, samples, 0)
    if last % 2 == 0:
        hidden_to_outputs(layout, inner, v, sums, lanes, samples)
    for layer in range(2, last + 1, 2):
        if layer < last:
            for b in range(samples):
                o = b * n + layout.at[layer]
                for k in range(0, layout.width[layer], LANES):
                    s = load(sums, o + k, LANES)
                    for part in range(PARTS):
                        s = add(s, load(partial, part * samples * n + o + k, LANES))
                    store(sums, o + k, s)
        clip_layer(layer, layout, v, sums, inverse, low, high, samples, phase, False)
    return most
