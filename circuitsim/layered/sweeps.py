"""Sweeps: every odd layer takes its minimum given the even ones, then every even layer given the odd ones.

States are (samples, units) in one flat array, samples in groups of four. A unit's minimum is its numerator Σ g v + b over
its conductance Σ g, moved back into its bounds (Scellier 2024, Theorem 2). A block of four rows of an inner matrix is read
once: products with the even layers, the rows' new states, and the products of those for the even layers.
"""

from __future__ import annotations

from numba import prange

from circuitsim.layered.layout import BLOCK, LANES, PARTS
from circuitsim.layered.vectors import add, fma, kernel, load, maximum, minimum, mul, splat, store, total


@kernel()
def gather(inner, g, stride, v, o, total_units, sums, s):
    """Four rows times four samples: ``sums[s + i · total_units + r] += Σ_k G[r, k] v_i[k]``.

    ``g`` is the place of the block of rows, ``o`` that of the first sample's columns, ``s`` that of its first row unit.
    """
    zero = splat(inner.dtype.type(0), LANES)
    a00 = a01 = a02 = a03 = a10 = a11 = a12 = a13 = zero
    a20 = a21 = a22 = a23 = a30 = a31 = a32 = a33 = zero
    o1, o2, o3 = o + total_units, o + 2 * total_units, o + 3 * total_units
    for k in range(0, stride, LANES):
        w0 = load(inner, g + 4 * k, LANES)
        w1 = load(inner, g + 4 * k + LANES, LANES)
        w2 = load(inner, g + 4 * k + 2 * LANES, LANES)
        w3 = load(inner, g + 4 * k + 3 * LANES, LANES)
        x = load(v, o + k, LANES)
        a00 = fma(w0, x, a00)
        a01 = fma(w1, x, a01)
        a02 = fma(w2, x, a02)
        a03 = fma(w3, x, a03)
        x = load(v, o1 + k, LANES)
        a10 = fma(w0, x, a10)
        a11 = fma(w1, x, a11)
        a12 = fma(w2, x, a12)
        a13 = fma(w3, x, a13)
        x = load(v, o2 + k, LANES)
        a20 = fma(w0, x, a20)
        a21 = fma(w1, x, a21)
        a22 = fma(w2, x, a22)
        a23 = fma(w3, x, a23)
        x = load(v, o3 + k, LANES)
        a30 = fma(w0, x, a30)
        a31 = fma(w1, x, a31)
        a32 = fma(w2, x, a32)
        a33 = fma(w3, x, a33)
    s1, s2, s3 = s + total_units, s + 2 * total_units, s + 3 * total_units
    sums[s] += total(a00)
    sums[s + 1] += total(a01)
    sums[s + 2] += total(a02)
    sums[s + 3] += total(a03)
    sums[s1] += total(a10)
    sums[s1 + 1] += total(a11)
    sums[s1 + 2] += total(a12)
    sums[s1 + 3] += total(a13)
    sums[s2] += total(a20)
    sums[s2 + 1] += total(a21)
    sums[s2 + 2] += total(a22)
    sums[s2 + 3] += total(a23)
    sums[s3] += total(a30)
    sums[s3 + 1] += total(a31)
    sums[s3 + 2] += total(a32)
    sums[s3 + 3] += total(a33)


@kernel()
def scatter(inner, g, stride, v, r, total_units, sums, s):
    """Four rows times four samples, the other way: ``sums[s + i · total_units + k] += Σ_r G[r, k] v_i[r]``."""
    r1, r2, r3 = r + total_units, r + 2 * total_units, r + 3 * total_units
    x00, x01, x02, x03 = splat(v[r], LANES), splat(v[r + 1], LANES), splat(v[r + 2], LANES), splat(v[r + 3], LANES)
    x10, x11, x12, x13 = splat(v[r1], LANES), splat(v[r1 + 1], LANES), splat(v[r1 + 2], LANES), splat(v[r1 + 3], LANES)
    x20, x21, x22, x23 = splat(v[r2], LANES), splat(v[r2 + 1], LANES), splat(v[r2 + 2], LANES), splat(v[r2 + 3], LANES)
    x30, x31, x32, x33 = splat(v[r3], LANES), splat(v[r3 + 1], LANES), splat(v[r3 + 2], LANES), splat(v[r3 + 3], LANES)
    s1, s2, s3 = s + total_units, s + 2 * total_units, s + 3 * total_units
    for k in range(0, stride, LANES):
        w0 = load(inner, g + 4 * k, LANES)
        w1 = load(inner, g + 4 * k + LANES, LANES)
        w2 = load(inner, g + 4 * k + 2 * LANES, LANES)
        w3 = load(inner, g + 4 * k + 3 * LANES, LANES)
        store(sums, s + k, fma(w3, x03, fma(w2, x02, fma(w1, x01, fma(w0, x00, load(sums, s + k, LANES))))))
        store(sums, s1 + k, fma(w3, x13, fma(w2, x12, fma(w1, x11, fma(w0, x10, load(sums, s1 + k, LANES))))))
        store(sums, s2 + k, fma(w3, x23, fma(w2, x22, fma(w1, x21, fma(w0, x20, load(sums, s2 + k, LANES))))))
        store(sums, s3 + k, fma(w3, x33, fma(w2, x32, fma(w1, x31, fma(w0, x30, load(sums, s3 + k, LANES))))))


@kernel()
def settle(sums, v, inverse, low, high, place, first, count, o):
    """New states of ``count`` units (a multiple of LANES) of one sample, from their numerators.

    ``first`` is the first unit, ``place`` its entry in ``inverse``, ``o`` that in the sample's states and numerators.
    """
    for k in range(0, count, LANES):
        p = mul(load(sums, o + k, LANES), load(inverse, place + k, LANES))
        store(v, o + k, minimum(maximum(p, load(low, first + k, LANES)), load(high, first + k, LANES)))


@kernel()
def settle_measured(sums, v, inverse, low, high, place, first, count, o, largest):
    """`settle` unit by unit, with the largest relative move."""
    for k in range(count):
        p = sums[o + k] * inverse[place + k]
        new = min(max(p, low[first + k]), high[first + k])
        # Where both are zero there was no move: not 0/0.
        scale = abs(p) + abs(v[o + k])
        if abs(new - v[o + k]) > largest * scale:
            largest = abs(new - v[o + k]) / scale
        v[o + k] = new
    return largest


@kernel()
def sweep_part(part, layout, inner, v, sums, inverse, low, high, partial, moved, samples, phase):
    """One share of the odd rows: gather, settle, scatter into ``partial[part]``; the largest relative move goes to `moved`.

    ``phase[b // 4] · total`` is where the inverse conductances of sample b begin (they differ in the outputs only).
    """
    n, last = layout.total, layout.units.size - 1
    mine = part * samples * n
    for layer in range(2, layout.units.size, 2):
        for b in range(samples):
            at = mine + b * n + layout.at[layer]
            for k in range(layout.width[layer]):
                partial[at + k] = 0
    moved[part] = 0
    for block in range(layout.parts[part], layout.parts[part + 1]):
        layer, row = layout.blocks[block]
        unit = layout.at[layer] + row
        for upper in range(layer, layer + 2):
            if 2 <= upper <= last and layout.row_layer[upper] == layer:
                g = layout.matrix[upper] + row * layout.stride[upper]
                other = layout.at[layout.column_layer[upper]]
                for b in range(0, samples, 4):
                    gather(inner, g, layout.stride[upper], v, b * n + other, n, sums, b * n + unit)
        for b in range(samples):
            place = phase[b // 4] * n + unit
            change = settle_measured(sums, v, inverse, low, high, place, unit, BLOCK, b * n + unit, moved[part])
            # A nudge moves the outputs at once: that is no residual.
            if layer < last or phase[b // 4] == 0:
                moved[part] = change
        for upper in range(layer, layer + 2):
            if 2 <= upper <= last and layout.row_layer[upper] == layer:
                g = layout.matrix[upper] + row * layout.stride[upper]
                other = layout.at[layout.column_layer[upper]]
                for b in range(0, samples, 4):
                    scatter(inner, g, layout.stride[upper], v, b * n + unit, n, partial, mine + b * n + other)


@kernel()
def all_parts(layout, inner, v, sums, inverse, low, high, partial, moved, samples, phase):
    """`sweep_part` on every share, one after the other."""
    for part in range(PARTS):
        sweep_part(part, layout, inner, v, sums, inverse, low, high, partial, moved, samples, phase)


@kernel(parallel=True)
def all_parts_in_parallel(layout, inner, v, sums, inverse, low, high, partial, moved, samples, phase):
    """`sweep_part` on every share, among threads."""
    for part in prange(PARTS):
        sweep_part(part, layout, inner, v, sums, inverse, low, high, partial, moved, samples, phase)


@kernel()
def reset(layout, base, sums, samples, parity):
    """Numerators of all layers of one parity as they are without the other layers."""
    n = layout.total
    for layer in range(2 - parity, layout.units.size, 2):
        for b in range(samples):
            at = b * n + layout.at[layer]
            for k in range(layout.width[layer]):
                sums[at + k] = base[at + k]


@kernel()
def outputs_to_hidden(layout, inner, v, sums, samples):
    """The outputs' share in the numerators of the layer before them."""
    n, last = layout.total, layout.units.size - 1
    stride = layout.stride[last]
    for row in range(0, layout.units[last], BLOCK):
        for b in range(0, samples, 4):
            scatter(
                inner, layout.matrix[last] + row * stride, stride,
                v, b * n + layout.at[last] + row, n, sums, b * n + layout.at[last - 1],
            )  # fmt: skip


@kernel()
def hidden_to_outputs(layout, inner, v, sums, samples):
    """The last hidden layer's share in the numerators of the outputs."""
    n, last = layout.total, layout.units.size - 1
    stride = layout.stride[last]
    for row in range(0, layout.units[last], BLOCK):
        for b in range(0, samples, 4):
            gather(
                inner, layout.matrix[last] + row * stride, stride,
                v, b * n + layout.at[last - 1], n, sums, b * n + layout.at[last] + row,
            )  # fmt: skip


@kernel()
def sweep(layout, inner, base, v, sums, inverse, low, high, partial, moved, samples, phase, threads, measured):
    """One sweep; returns the largest move of an odd unit, relative to |p| + |v| (outputs that are nudged left out).

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
        Which of these a group of samples takes.
    partial : (PARTS · samples · total,) ndarray, moved : (PARTS,) ndarray
        Working memory of the shares.
    measured : bool
        With one hidden layer, whether the returned number is wanted (it costs divisions); 0 otherwise.
    """
    n, last = layout.total, layout.units.size - 1
    reset(layout, base, sums, samples, 1)
    if last % 2 == 0:
        outputs_to_hidden(layout, inner, v, sums, samples)
    largest = inner.dtype.type(0)
    if last == 2:
        first, count = layout.at[1], layout.width[1]
        for b in range(samples):
            place = phase[b // 4] * n + first
            if measured:
                largest = settle_measured(sums, v, inverse, low, high, place, first, count, b * n + first, largest)
            else:
                settle(sums, v, inverse, low, high, place, first, count, b * n + first)
    else:
        if threads is not None:
            all_parts_in_parallel(layout, inner, v, sums, inverse, low, high, partial, moved, samples, phase)
        else:
            all_parts(layout, inner, v, sums, inverse, low, high, partial, moved, samples, phase)
        for part in range(PARTS):
            largest = max(largest, moved[part])
    reset(layout, base, sums, samples, 0)
    if last % 2 == 0:
        hidden_to_outputs(layout, inner, v, sums, samples)
    for layer in range(2, last + 1, 2):
        first = layout.at[layer]
        for b in range(samples):
            o = b * n + first
            if layer < last:
                for k in range(0, layout.width[layer], LANES):
                    s = load(sums, o + k, LANES)
                    for part in range(PARTS):
                        s = add(s, load(partial, part * samples * n + o + k, LANES))
                    store(sums, o + k, s)
            settle(sums, v, inverse, low, high, phase[b // 4] * n + first, first, layout.width[layer], o)
    return largest
