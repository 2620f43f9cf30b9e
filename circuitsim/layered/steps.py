"""Whole training steps, compiled: all mini-batches of a call without returning to Python.

A step (Scellier 2024, App. F): free sweeps from where the last mini-batch ended, sweeps nudged by −β and +β from the
free state, both at once, contrastive gradient, stochastic gradient descent, conductances back to zero or more. The step
of the first layer is deferred and made during the products with the next mini-batch (`tiles`).

In a sweep every odd layer takes its minimum given the even ones, then every even layer given the odd ones.
States are (samples, units) in one flat array, samples in groups of four. A unit's minimum is its numerator Σ g v + b
over its conductance Σ g, clipped to its bounds (Scellier 2024, Theorem 2). A block of four rows of an inner matrix
is read from memory once: products with the even layers, the rows' new states, products of those for the even layers.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from circuitsim._vectors import (
    add,
    div,
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
)
from circuitsim.layered.network import BLOCK, LANES, PARTS, WORTH_SHARING
from circuitsim.layered.tiles import (
    TILE,
    add_totals,
    all_tiles_in_parallel,
    along,
    each,
    load_four,
    nonzero_inputs,
    splat_four,
    store_four,
    tile_pass,
)

NONE, HIDDEN, ALL = 0, 1, 2
"""Which units' moves a sweep measures."""

SMALLEST = float(np.finfo(np.float32).tiny)


@kernel()
def gather(inner, g, length, v, o, n, sums, s):
    """Four rows times four samples: ``sums[s + i n + r] += Σ_k G[r, k] v_i[k]``.

    ``g`` is the place of the rows' first columns, ``length`` their number, ``o`` that of the first sample's states,
    ``n`` the distance to the next sample's.
    """
    zero = splat(inner.dtype.type(0), LANES)
    a = b = c = d = zero, zero, zero, zero
    for k in range(0, length, LANES):
        rows = load_four(inner, g + k, length, LANES)
        w, x, y, z = load_four(v, o + k, n, LANES)
        a, b = each(rows, (w, w, w, w), a), each(rows, (x, x, x, x), b)
        c, d = each(rows, (y, y, y, y), c), each(rows, (z, z, z, z), d)
    add_totals(sums, s, a)
    add_totals(sums, s + n, b)
    add_totals(sums, s + 2 * n, c)
    add_totals(sums, s + 3 * n, d)


@kernel()
def scatter(inner, g, length, v, r, n, sums, s):
    """Four rows times four samples, transposed: ``sums[s + i n + k] += Σ_r G[r, k] v_i[r]``."""
    w, x = splat_four(v, r, LANES), splat_four(v, r + n, LANES)
    y, z = splat_four(v, r + 2 * n, LANES), splat_four(v, r + 3 * n, LANES)
    for k in range(0, length, LANES):
        rows = load_four(inner, g + k, length, LANES)
        a, b, c, d = load_four(sums, s + k, n, LANES)
        store_four(sums, s + k, n, (along(rows, w, a), along(rows, x, b), along(rows, y, c), along(rows, z, d)))


@kernel()
def clip(sums, v, problem, first, o, moves, measured, lanes):
    """New states of ``lanes`` units of one sample, from their numerators; the largest relative moves are returned.

    ``first`` is the first unit, ``o`` its place in the sample's states.
    """
    inverse, low, high = problem
    p = mul(load(sums, o, lanes), load(inverse, o, lanes))
    new = minimum(maximum(p, load(low, first, lanes)), load(high, first, lanes))
    if measured:
        old = load(v, o, lanes)
        # With the smallest number, 0/0 is 0.
        scale = maximum(add(magnitude(p), magnitude(old)), splat(v.dtype.type(SMALLEST), lanes))
        moves = maximum(moves, div(magnitude(sub(new, old)), scale))
    store(v, o, new)
    return moves


@kernel()
def clip_layer(layer, layout, sums, v, problem, samples, measured):
    """New states of a layer's units; returns the largest relative move."""
    first, moves = layout.at[layer], splat(v.dtype.type(0), LANES)
    for b in range(samples):
        for unit in range(first, first + layout.width[layer], LANES):
            moves = clip(sums, v, problem, unit, b * layout.total + unit, moves, measured, LANES)
    return largest(moves)


@kernel()
def sweep_part(part, memory, layout, v, problem, samples, measured):
    """One part of the odd rows: gather, clip, scatter into ``partial[part]``; the largest move goes to `moved`."""
    inner, sums, partial = memory.inner, memory.sums, memory.partial
    n, last, zero = layout.total, layout.units.size - 1, splat(v.dtype.type(0), LANES)
    mine = part * samples * n
    for layer in range(2, layout.units.size, 2):
        for b in range(samples):
            at = mine + b * n + layout.at[layer]
            for k in range(at, at + layout.width[layer], LANES):
                store(partial, k, zero)
    moves = splat(v.dtype.type(0), BLOCK)
    count = len(layout.blocks)
    for block in range(count * part // PARTS, count * (part + 1) // PARTS):
        layer, row = layout.blocks[block]
        unit = layout.at[layer] + row
        for matrix in range(2, last + 1):
            stride, columns = layout.stride[matrix], layout.at[layout.column_layer[matrix]]
            if layout.row_layer[matrix] == layer:
                for b in range(0, samples * n, 4 * n):
                    gather(inner, layout.matrix[matrix] + row * stride, stride, v, b + columns, n, sums, b + unit)
        for b in range(samples):
            counted = measured == ALL or (measured == HIDDEN and layer < last)
            moves = clip(sums, v, problem, unit, b * n + unit, moves, counted, BLOCK)
        for matrix in range(2, last + 1):
            stride, columns = layout.stride[matrix], mine + layout.at[layout.column_layer[matrix]]
            if layout.row_layer[matrix] == layer:
                for b in range(0, samples * n, 4 * n):
                    scatter(inner, layout.matrix[matrix] + row * stride, stride, v, b + unit, n, partial, b + columns)
    memory.moved[part] = largest(moves)


@kernel(parallel=True)
def all_parts_in_parallel(memory, layout, v, problem, samples, measured):
    """`sweep_part` on every share, among threads."""
    for part in prange(PARTS):
        sweep_part(part, memory, layout, v, problem, samples, measured)


@kernel()
def copy(source, out, to):
    """All values into ``out``, from ``to`` on."""
    for i in range(source.size):
        out[to + i] = source[i]


@kernel()
def copy_layers(layout, parity, samples, source, out, to):
    """The values of the odd (1) or the even layers (0) of all samples into ``out``, from ``to`` on."""
    n = layout.total
    for layer in range(2 - parity, layout.units.size, 2):
        for b in range(samples):
            first = b * n + layout.at[layer]
            for k in range(first, first + layout.width[layer], LANES):
                store(out, to + k, load(source, k, LANES))


@kernel()
def sweep(memory, layout, base, v, problem, samples, threads, measured):
    """One sweep; returns the largest move of an odd unit, relative to |p| + |v|.

    A move |v_new − v| of a free unit is its net current over its conductance, and conductance · (|p| + |v|) is at most
    Σ g (|v_k| + |v_j|) + |b|: the returned number bounds the residual of the state before, in its local scale.

    Parameters
    ----------
    base : (samples · total,) ndarray
        What each numerator is without the neighbours: biases, input currents, nudges.
    v : (samples · total,) ndarray
        States, in place.
    problem : (inverse, low, high)
        One over the conductance of each unit of each sample, 0 for padding; the units' bounds.
    measured : {NONE, HIDDEN, ALL}
        Units of the returned number, which costs divisions. A nudge moves the outputs at once, independently of the
        error of the state before it.
    """
    m, n, last = memory, layout.total, layout.units.size - 1
    stride, outputs = layout.stride[last], layout.at[last]
    copy(base[: samples * n], m.sums, 0)
    if last % 2 == 0:
        for row in range(0, layout.units[last], BLOCK):
            for b in range(0, samples * n, 4 * n):
                g = layout.matrix[last] + row * stride
                scatter(m.inner, g, stride, v, b + outputs + row, n, m.sums, b + layout.at[last - 1])
    if last == 2:
        m.moved[0] = clip_layer(1, layout, m.sums, v, problem, samples, measured != NONE)
    elif threads is not None and layout.size > WORTH_SHARING:
        all_parts_in_parallel(m, layout, v, problem, samples, measured)
    else:
        for part in range(PARTS):
            sweep_part(part, m, layout, v, problem, samples, measured)
    most = v.dtype.type(0)
    for part in range(PARTS):
        most = max(most, m.moved[part])
    if last % 2 == 0:
        for row in range(0, layout.units[last], BLOCK):
            for b in range(0, samples * n, 4 * n):
                g = layout.matrix[last] + row * stride
                gather(m.inner, g, stride, v, b + layout.at[last - 1], n, m.sums, b + outputs + row)
    for part in range(PARTS):
        for layer in range(2, last, 2):
            for b in range(samples):
                o = b * n + layout.at[layer]
                for k in range(o, o + layout.width[layer]):
                    m.sums[k] += m.partial[part * samples * n + k]
    for layer in range(2, last + 1, 2):
        clip_layer(layer, layout, m.sums, v, problem, samples, False)
    return most


OK, ZERO_CONDUCTANCE, NEGATIVE_CONDUCTANCE = 0, 1, 2
"""Status of `train`: all steps done; a unit of zero conductance; an output of negative conductance at −β."""

WORTH_THREADS = 300_000
"""Least number of conductances of the first layer that is shared among threads: for fewer, the start of the threads and
the traffic between their caches cost more than half of a pass."""


@kernel()
def advance(memory, layout, rule, nonzero, threads):
    """Make the pending step of the first layer, sum it, multiply it with the ``nonzero`` pixels in ``slot[1]``."""
    m, width = memory, layout.width[1]
    if threads is not None and m.tiles.size >= WORTH_THREADS:
        all_tiles_in_parallel(m, width, rule.samples)
    else:
        for column in range(0, width, TILE):
            tile_pass(column, m, width, rule.samples)
    copy(m.slot[1], m.slot[0], 0)
    copy(m.pixels[1, : nonzero * rule.samples], m.pixels[0], 0)


@kernel()
def less(four, a):
    """Four vectors, less one."""
    return sub(four[0], a), sub(four[1], a), sub(four[2], a), sub(four[3], a)


@kernel()
def update_part(part, memory, layout, rates):
    """One share of the inner matrices: g ← max(0, g − rate Σ_b (d_j − d_k)(m_j − m_k)), and their sums for each unit.

    The sum is over the rows of ``diff`` and ``mean``. With equilibrium propagation d is the difference of the two
    nudged states over 2β and the number of samples, m their mean: the product of the two differences is that of the
    squares (Scellier 2024, Eq. 29) without its cancellation.
    """
    n, inner, diff, mean, partial = layout.total, memory.inner, memory.diff, memory.mean, memory.partial
    zero = splat(inner.dtype.type(0), LANES)
    zeros, mine = (zero, zero, zero, zero), part * n
    partial[mine : mine + n] = 0
    count = len(layout.updates)
    for block in range(count * part // PARTS, count * (part + 1) // PARTS):
        matrix, start = layout.updates[block]
        unit = layout.at[layout.row_layer[matrix]] + start
        columns, stride = layout.at[layout.column_layer[matrix]], layout.stride[matrix]
        minus, one = splat(-rates[matrix - 1], LANES), splat(inner.dtype.type(1), LANES)
        # Rows and columns of padding have to stay zero.
        row_steps = each(splat_four(memory.mask, unit, LANES), (minus, minus, minus, minus), zeros)
        row_sums = zeros
        for k in range(0, stride, LANES):
            change = zeros
            for o in range(0, diff.size, n):
                d, m = load(diff, o + columns + k, LANES), load(mean, o + columns + k, LANES)
                change = each(
                    less(splat_four(diff, o + unit, LANES), d), less(splat_four(mean, o + unit, LANES), m), change
                )
            g = layout.matrix[matrix] + start * stride + k
            mask = load(memory.mask, columns + k, LANES)
            steps = each(row_steps, (mask, mask, mask, mask), zeros)
            w = each(steps, change, load_four(inner, g, stride, LANES))
            w = maximum(w[0], zero), maximum(w[1], zero), maximum(w[2], zero), maximum(w[3], zero)
            store_four(inner, g, stride, w)
            row_sums = each(w, (one, one, one, one), row_sums)
            at = mine + columns + k
            store(partial, at, add(load(partial, at, LANES), add(add(w[0], w[1]), add(w[2], w[3]))))
        add_totals(partial, mine + unit, row_sums)


@kernel(parallel=True)
def all_updates_in_parallel(memory, layout, rates):
    """`update_part` on every share, among threads."""
    for part in prange(PARTS):
        update_part(part, memory, layout, rates)


@kernel()
def update_inner(memory, layout, rates, threads):
    """The step of the inner matrices from `diff` and `mean`, and their sums for each unit."""
    m, n = memory, layout.total
    if threads is not None and layout.size > WORTH_SHARING:
        all_updates_in_parallel(m, layout, rates)
    else:
        for part in range(PARTS):
            update_part(part, m, layout, rates)
    m.load[:] = 0
    for part in range(PARTS):
        for k in range(n):
            m.load[k] += m.partial[part * n + k]


@kernel()
def update(memory, layout, rule, rates, bias_rates, threads):
    """The step from `diff` and `mean`: inner matrices and biases now, the first layer's deferred (`shift`, `drop`)."""
    m, n, samples, width = memory, layout.total, rule.samples, layout.width[1]
    update_inner(m, layout, rates, threads)
    for o in range(0, m.diff.size, n):
        for layer in range(1, layout.units.size):
            for k in range(layout.at[layer], layout.at[layer] + layout.width[layer]):
                m.bias[k] += bias_rates[layer - 1] * m.diff[o + k]
    input_rate = rates[0] * m.bias.dtype.type(rule.gain)
    m.shift[:], m.drop[:] = 0, 0
    for row in range(m.diff.size // n):
        o, shift = row * n + layout.at[1], row % samples * width
        for k in range(width):
            m.shift[shift + k] += input_rate * m.diff[o + k]
            m.drop[k] += rates[0] * m.diff[o + k] * m.mean[o + k]


@kernel()
def conductances(memory, layout, rule):
    """Fill ``inverse`` for the free state, −β and +β, that of padding stays zero; status and first failing unit."""
    m, n, last, beta = memory, layout.total, layout.units.size - 1, memory.bias.dtype.type(rule.beta)
    size = rule.samples * n
    for layer in range(1, last + 1):
        nudge = beta if layer == last else beta - beta
        for k in range(layout.units[layer]):
            at = layout.at[layer] + k
            g = m.load[at] + (m.tile_sums[k] if layer == 1 else 0)
            if not g > 0:
                return ZERO_CONDUCTANCE, layer, k
            below = g - nudge if rule.lower else g
            if not below > 0:
                return NEGATIVE_CONDUCTANCE, layer, k
            free, minus, plus = 1 / g, 1 / below, 1 / (g + nudge)
            for o in range(at, at + size, n):
                m.inverse[o], m.inverse[size + o], m.inverse[2 * size + o] = free, minus, plus
    return OK, 0, 0


@kernel()
def relax(memory, layout, v, base, problem, samples, sweeps, tolerance, threads, first_measured):
    """So many sweeps, or until a tolerance is met; returns the hidden units' largest relative move in the first one.

    The moves of a sweep's odd layers measure the convergence of the state before it, provided that its even layers
    were computed with the same inputs and nudges: not in the first sweep.
    """
    first = memory.inner.dtype.type(0)
    for s in range(sweeps):
        measured = first_measured if s == 0 else ALL if tolerance > 0 else NONE
        moved = sweep(memory, layout, base, v, problem, samples, threads, measured)
        if s == 0:
            first = moved
        elif measured == ALL and moved <= tolerance:
            break
    return first


@kernel()
def score(memory, layout, labels, weight):
    """Mean of ½ Σ (v_o − y_o)², weighted, and fraction of wrong answers, at the free state."""
    n, last = layout.total, layout.units.size - 1
    cost, wrong, count = 0.0, 0, labels.size
    for b in range(count):
        o, best = b * n + layout.at[last], 0
        for k in range(layout.units[last]):
            error = memory.free[o + k] - (1.0 if k == labels[b] else 0.0)
            cost += 0.5 * error * error * weight[b]
            if memory.free[o + k] > memory.free[o + best]:
                best = k
        wrong += best != labels[b]
    return cost / count, wrong / count


@kernel()
def begin(memory, layout, rule, images, threads):
    """Multiply the next mini-batch's pixels with the first layer; set ``base``: all numerators without neighbours."""
    m, n, samples, width = memory, layout.total, rule.samples, layout.width[1]
    nonzero = nonzero_inputs(images, samples, m.slot[1], m.pixels[1], m.where)
    advance(m, layout, rule, nonzero, threads)
    gain = m.bias.dtype.type(rule.gain)
    for b in range(samples):
        for k in range(n):
            m.base[b * n + k] = m.bias[k]
        for k in range(width):
            m.base[b * n + layout.at[1] + k] += gain * m.product[b * width + k]


@kernel()
def nudge(memory, layout, rule, labels, threads):
    """The states at −β (first half of ``nudged``) and +β (second); returns the relative residual of the free state."""
    m, n, samples = memory, layout.total, rule.samples
    size, last = samples * n, layout.units.size - 1
    beta = m.bias.dtype.type(rule.beta)
    copy(m.free, m.nudged, 0)
    copy(m.free, m.nudged, size)
    copy(m.base[:size], m.base, size)
    for b in range(labels.size):
        o = b * n + layout.at[last] + labels[b]
        m.base[o] -= beta
        m.base[size + o] += beta
    problem = m.inverse[size:], m.low, m.high
    return relax(m, layout, m.nudged, m.base, problem, 2 * samples, rule.nudged_sweeps, rule.tolerance, threads, HIDDEN)


@kernel()
def contrast(memory, layout, rule, weight):
    """``diff``, weighted, and ``mean`` of the two states, and where the next mini-batch starts.

    Returns
    -------
    int
        Hidden units, over all samples, whose diode changes between the free state and those that are used.
    """
    m, n, size, count, changes = memory, layout.total, rule.samples * layout.total, weight.size, 0
    width = rule.beta * (int(rule.lower) + int(rule.upper))
    half = m.bias.dtype.type(0.5)
    for b in range(count):
        scale = m.bias.dtype.type(weight[b] / (width * count))
        for i in range(b * n, (b + 1) * n):
            free = m.free[i]
            minus, plus = m.nudged[i] if rule.lower else free, m.nudged[size + i] if rule.upper else free
            m.diff[i] = (plus - minus) * scale
            m.mean[i] = (plus + minus) * half
            m.free[i] = plus if rule.upper else minus
            if i < b * n + layout.at[-1]:
                changes += ((free == 0) != (minus == 0)) | ((free == 0) != (plus == 0))
    m.diff[count * n : size] = 0
    m.mean[count * n : size] = 0
    return changes


@kernel()
def minus_slope(layout, states, labels, weight, out):
    """Minus the derivative of the loss by the outputs of states, zeros for all other units."""
    n, last = layout.total, layout.units.size - 1
    out[:] = 0
    for b in range(labels.size):
        o, factor = b * n + layout.at[last], weight[b] / labels.size
        for k in range(layout.units[last]):
            out[o + k] = ((1.0 if k == labels[b] else 0.0) - states[o + k]) * factor


@kernel()
def linearise(memory, layout, states, size, gains):
    """Fill ``gains`` with one over the conductance of units that are free at states, 0 for those at a bound."""
    n = layout.total
    for o in range(0, size, n):
        for k in range(n):
            gains[o + k] = memory.inverse[k] if memory.low[k] < states[o + k] < memory.high[k] else 0


@kernel()
def backpropagation(memory, layout, rule, labels, weight, threads):
    """``diff`` and ``mean`` of backpropagation through further sweeps from the free state, which counts as constant.

    Every sweep is differentiated at the state that it made: the published baseline of deep resistive networks, whose
    free phase has not converged. Groups 2k and 2k + 1 of ``mean`` are the states about which the odd and the even
    layers of sweep k (from 0) were minimised, those of ``diff`` minus the derivatives of the loss by these layers'
    currents. Reversed sweeps are sweeps of the linearised network: even layers of one sweep, odd ones of that sweep,
    even ones of the sweep before it.

    Returns
    -------
    float
        Relative residual of the free state.
    """
    m, size, samples, sweeps = memory, rule.samples * layout.total, rule.samples, rule.nudged_sweeps
    last, residual = layout.units.size - 1, m.bias.dtype.type(0)
    v, base, gains = m.nudged[:size], m.base[size:], m.inverse[size:]
    copy(m.free, v, 0)
    for at in range(0, 2 * sweeps * size, 2 * size):
        copy(v, m.mean, at)
        problem, measured = (m.inverse, m.low, m.high), ALL if at == 0 else NONE
        residual = max(residual, sweep(m, layout, m.base[:size], v, problem, samples, threads, measured))
        copy_layers(layout, 1, samples, v, m.mean, at)
        copy(v, m.mean, at + size)
    minus_slope(layout, v, labels, weight, base)
    m.diff[:] = 0
    v[:] = 0
    problem = gains, m.no_low, m.no_high
    linearise(m, layout, m.mean[(2 * sweeps - 1) * size :], size, gains)
    if last % 2 == 0:
        clip_layer(last, layout, base, v, problem, samples, False)
        copy_layers(layout, 0, samples, v, m.diff, (2 * sweeps - 1) * size)
        base[:] = 0
    for at in range(2 * (sweeps - 1) * size, -1, -2 * size):
        linearise(m, layout, m.mean[at:], size, gains)
        sweep(m, layout, base, v, problem, samples, threads, NONE)
        copy_layers(layout, 1, samples, v, m.diff, at)
        if at:
            copy_layers(layout, 0, samples, v, m.diff, at - size)
        base[:] = 0
    return residual


@kernel()
def train(memory, layout, rule, rates, bias_rates, images, labels, weight, batch, metrics, changed, threads):
    """Steps on mini-batches of ``batch`` samples in order; the last may be smaller.

    Parameters
    ----------
    rates, bias_rates : (L,) ndarray
        Learning rates of the layers' matrices and biases.
    images : (n, D) ndarray, labels : (n,) ndarray of int64
        In order.
    weight : (n,) ndarray of float64
        Factor on each sample's loss.
    metrics : (steps, 4) ndarray
        Written: cost and fraction of wrong answers at the free state, its relative residual, the share that
        `contrast` counts.
    changed : bool
        Whether the inner matrices were changed from outside, so that their sums are wrong.
    threads : None or True
        True shares the large matrices among numba's threads. None is another type: a program without threads need not
        compile what they run.

    Returns
    -------
    done, status, layer, unit : int
        Steps made, status, and the first failing unit.
    """
    size, bounded = rule.samples * layout.total, max(1, layout.units[1:-1].sum())
    if changed:
        # A step of zero, which sums.
        memory.diff[:] = 0
        memory.mean[:] = 0
        update_inner(memory, layout, rates, threads)
    for i in range(len(metrics)):
        some, factors = labels[i * batch : (i + 1) * batch], weight[i * batch : (i + 1) * batch]
        begin(memory, layout, rule, images[i * batch : (i + 1) * batch], threads)
        status, layer, unit = conductances(memory, layout, rule)
        if status != OK:
            return i, status, layer, unit
        v, problem, tolerance = memory.free, (memory.inverse, memory.low, memory.high), rule.tolerance
        relax(memory, layout, v, memory.base[:size], problem, rule.samples, rule.sweeps, tolerance, threads, NONE)
        metrics[i, 0], metrics[i, 1] = score(memory, layout, some, factors)
        if rule.backpropagates:
            metrics[i, 2] = backpropagation(memory, layout, rule, some, factors, threads)
        else:
            metrics[i, 2] = nudge(memory, layout, rule, some, threads)
            metrics[i, 3] = contrast(memory, layout, rule, factors) / (some.size * bounded)
        memory.free[some.size * layout.total :] = 0
        update(memory, layout, rule, rates, bias_rates, threads)
    return len(metrics), OK, 0, 0
