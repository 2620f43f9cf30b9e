"""Whole training steps, compiled: all mini-batches of a call without returning to Python.

A step (Scellier 2024, App. F): free sweeps from where the last mini-batch ended, sweeps nudged by −β and +β from the
free state, both at once, contrastive gradient, stochastic gradient descent, conductances back to zero or more. The step
of the first layer is deferred and made during the products with the next mini-batch (`tiles`).
"""

from __future__ import annotations

from numba import prange

from circuitsim._vectors import (
    add,
    div,
    fma,
    kernel,
    load,
    maximum,
    minimum,
    mul,
    smallest,
    splat,
    store,
    sub,
    total,
)
from circuitsim.layered.layout import BLOCK, LANES
from circuitsim.layered.sweeps import ALL, HIDDEN, NONE, sweep
from circuitsim.layered.tiles import all_tiles, all_tiles_in_parallel, fetch, nonzero_inputs

OK, ZERO_CONDUCTANCE, NEGATIVE_CONDUCTANCE = 0, 1, 2
"""Status of `train`: all steps done; a unit of zero conductance; an output of negative conductance at −β."""

WORTH_THREADS = 300_000
"""Least number of conductances of the first layer that is shared among threads: for fewer, the start of the threads and
the traffic between their caches cost more than half of a pass."""


@kernel()
def advance(memory, layout, samples, nonzero, threads):
    """Make the pending step of the first layer, sum it, multiply it with the ``nonzero`` pixels in ``slot[1]``."""
    m = memory
    run = (m.slot[0], m.pixels[0], m.slot[1], m.pixels[1], m.shift, m.drop, m.levels[255], m.tile_sums, m.product)
    if threads is not None and m.tiles.size >= WORTH_THREADS:
        all_tiles_in_parallel(m.tiles, layout.width[1], samples, *run)
    else:
        all_tiles(m.tiles, layout.width[1], samples, *run)
    for j in range(m.slot.shape[1]):
        m.slot[0, j] = m.slot[1, j]
    for i in range(nonzero * samples):
        m.pixels[0, i] = m.pixels[1, i]


@kernel()
def update_part(part, memory, layout, rates, samples):
    """One share of the inner matrices: g ← max(0, g − rate Σ_b (d_j − d_k)(m_j − m_k)), and their sums for each unit.

    d is the difference of the two nudged states over 2β and the number of samples, m their mean: the product of the two
    differences is that of the squares (Scellier 2024, Eq. 29) without its cancellation.
    """
    n, inner, diff, mean, partial = layout.total, memory.inner, memory.diff, memory.mean, memory.partial
    zero = splat(inner.dtype.type(0), LANES)
    mine = part * n
    partial[mine : mine + n] = 0
    for block in range(layout.update_parts[part], layout.update_parts[part + 1]):
        matrix, start = layout.updates[block]
        unit = layout.at[layout.row_layer[matrix]] + start
        columns = layout.at[layout.column_layer[matrix]]
        minus = splat(-rates[matrix], LANES)
        # Rows and columns of padding have to stay zero.
        k0, k1 = splat(memory.mask[unit], LANES), splat(memory.mask[unit + 1], LANES)
        k2, k3 = splat(memory.mask[unit + 2], LANES), splat(memory.mask[unit + 3], LANES)
        s0, s1, s2, s3 = zero, zero, zero, zero
        for k in range(0, layout.stride[matrix], LANES):
            a0, a1, a2, a3 = zero, zero, zero, zero
            for o in range(0, samples * n, n):
                d, m = load(diff, o + columns + k, LANES), load(mean, o + columns + k, LANES)
                r = o + unit
                a0 = fma(sub(splat(diff[r], LANES), d), sub(splat(mean[r], LANES), m), a0)
                a1 = fma(sub(splat(diff[r + 1], LANES), d), sub(splat(mean[r + 1], LANES), m), a1)
                a2 = fma(sub(splat(diff[r + 2], LANES), d), sub(splat(mean[r + 2], LANES), m), a2)
                a3 = fma(sub(splat(diff[r + 3], LANES), d), sub(splat(mean[r + 3], LANES), m), a3)
            g = layout.matrix[matrix] + start * layout.stride[matrix] + BLOCK * k
            column_mask = load(memory.mask, columns + k, LANES)
            w0 = mul(maximum(fma(minus, a0, load(inner, g, LANES)), zero), mul(k0, column_mask))
            w1 = mul(maximum(fma(minus, a1, load(inner, g + LANES, LANES)), zero), mul(k1, column_mask))
            w2 = mul(maximum(fma(minus, a2, load(inner, g + 2 * LANES, LANES)), zero), mul(k2, column_mask))
            w3 = mul(maximum(fma(minus, a3, load(inner, g + 3 * LANES, LANES)), zero), mul(k3, column_mask))
            store(inner, g, w0)
            store(inner, g + LANES, w1)
            store(inner, g + 2 * LANES, w2)
            store(inner, g + 3 * LANES, w3)
            s0, s1, s2, s3 = add(s0, w0), add(s1, w1), add(s2, w2), add(s3, w3)
            at = mine + columns + k
            store(partial, at, add(load(partial, at, LANES), add(add(w0, w1), add(w2, w3))))
        partial[mine + unit] += total(s0)
        partial[mine + unit + 1] += total(s1)
        partial[mine + unit + 2] += total(s2)
        partial[mine + unit + 3] += total(s3)


@kernel()
def all_updates(memory, layout, rates, samples):
    """`update_part` on every share, one after the other."""
    for part in range(layout.update_parts.size - 1):
        update_part(part, memory, layout, rates, samples)


@kernel(parallel=True)
def all_updates_in_parallel(memory, layout, rates, samples):
    """`update_part` on every share, among threads."""
    for part in prange(layout.update_parts.size - 1):
        update_part(part, memory, layout, rates, samples)


@kernel()
def update_inner(memory, layout, rates, samples, threads):
    """The step of the inner matrices from `diff` and `mean`, and their sums for each unit."""
    m, n = memory, layout.total
    parts = layout.update_parts.size - 1
    if threads is not None and parts > 1:
        all_updates_in_parallel(m, layout, rates, samples)
    else:
        all_updates(m, layout, rates, samples)
    for k in range(0, n, LANES):
        s = splat(m.load.dtype.type(0), LANES)
        for part in range(parts):
            s = add(s, load(m.partial, part * n + k, LANES))
        store(m.load, k, s)


@kernel()
def update(memory, layout, rates, bias_rates, samples, threads):
    """The step from `diff` and `mean`: inner matrices and biases now, the first layer's deferred (`shift`, `drop`)."""
    m, n, width = memory, layout.total, layout.width[1]
    update_inner(m, layout, rates, samples, threads)
    for layer in range(1, layout.units.size):
        rate = splat(bias_rates[layer], LANES)
        for k in range(layout.at[layer], layout.at[layer] + layout.width[layer], LANES):
            bias = load(m.bias, k, LANES)
            for b in range(samples):
                bias = fma(rate, load(m.diff, b * n + k, LANES), bias)
            store(m.bias, k, bias)
    rate, input_rate = splat(rates[1], LANES), splat(rates[1] * rates[0], LANES)
    for k in range(0, width, LANES):
        drop = splat(m.drop.dtype.type(0), LANES)
        for b in range(samples):
            d, o = load(m.diff, b * n + layout.at[1] + k, LANES), b * n + layout.at[1] + k
            store(m.shift, b * width + k, mul(input_rate, d))
            drop = fma(mul(rate, d), load(m.mean, o, LANES), drop)
        store(m.drop, k, drop)


@kernel()
def conductances(memory, layout, beta, lower):
    """Fill ``inverse`` for the free state, −β and +β; returns status, layer and unit, as `first_failing_unit`."""
    n, last = layout.total, layout.units.size - 1
    m, one, zero = memory, splat(memory.load.dtype.type(1), LANES), splat(memory.load.dtype.type(0), LANES)
    least, finite = one, zero
    for layer in range(1, last + 1):
        strength = splat(beta if layer == last else memory.load.dtype.type(0), LANES)
        for k in range(0, layout.width[layer], LANES):
            at = layout.at[layer] + k
            g, mask = load(m.load, at, LANES), load(m.mask, at, LANES)
            if layer == 1:
                g = add(g, load(m.tile_sums, k, LANES))
            # Units of padding count as one siemens here, and end with an inverse of zero.
            g = add(g, sub(one, mask))
            nudge = mul(mask, strength)
            below = sub(g, nudge) if lower else g
            # The minimum ignores NaN; the sum does not.
            least, finite = minimum(least, below), add(finite, mul(zero, below))
            store(m.inverse, at, div(mask, g))
            store(m.inverse, n + at, div(mask, below) if lower else zero)
            store(m.inverse, 2 * n + at, div(mask, add(g, nudge)))
    if smallest(least) > 0 and total(finite) == 0:
        return OK, 0, 0
    return first_failing_unit(memory, layout, beta, lower)


@kernel()
def first_failing_unit(memory, layout, beta, lower):
    """Status, layer and number of the first unit without positive conductance; (OK, 0, 0) without one."""
    last = layout.units.size - 1
    for layer in range(1, last + 1):
        for k in range(layout.units[layer]):
            g = memory.load[layout.at[layer] + k] + (memory.tile_sums[k] if layer == 1 else 0)
            if not g > 0:
                return ZERO_CONDUCTANCE, layer, k
            if lower and layer == last and not g - beta > 0:
                return NEGATIVE_CONDUCTANCE, layer, k
    return OK, 0, 0


@kernel()
def relax(memory, layout, v, base, samples, phase, sweeps, tolerance, threads, first_measured):
    """So many sweeps, or until a tolerance is met; returns the hidden units' largest relative move in the first one.

    The moves of a sweep's odd layers measure the convergence of the state before it, provided that its even layers
    were computed with the same inputs and nudges: not in the first sweep.
    """
    first = memory.inner.dtype.type(0)
    for s in range(sweeps):
        measured = first_measured if s == 0 else ALL if tolerance > 0 else NONE
        moved = sweep(
            layout,
            memory.inner,
            base,
            v,
            memory.sums,
            memory.inverse,
            memory.low,
            memory.high,
            memory.partial,
            memory.lanes,
            memory.moved,
            samples,
            phase,
            threads,
            measured,
        )
        if s == 0:
            first = moved
        elif measured == ALL and moved <= tolerance:
            break
    return first


@kernel()
def factor_of(weight, row):
    """The factor on a sample's loss; 1 where there are no weights."""
    return weight[row] if weight.size else 1.0


@kernel()
def score(memory, layout, labels, rows, count, weight):
    """Mean of ½ Σ (v_o − y_o)², weighted, and share of wrong answers, at the free state."""
    n, last = layout.total, layout.units.size - 1
    cost, wrong = 0.0, 0
    for b in range(count):
        o = b * n + layout.at[last]
        best, factor = 0, factor_of(weight, rows[b])
        for k in range(layout.units[last]):
            error = memory.free[o + k] - (1.0 if k == labels[rows[b]] else 0.0)
            cost += 0.5 * error * error * factor
            if memory.free[o + k] > memory.free[o + best]:
                best = k
        wrong += best != labels[rows[b]]
    return cost / count, wrong / count


@kernel()
def begin(memory, layout, rule, images, rows, count, threads):
    """The next mini-batch's pixels through the first layer, and what all numerators are without neighbours."""
    m, n, samples, width = memory, layout.total, rule.samples, layout.width[1]
    nonzero = nonzero_inputs(images, rows, count, samples, m.levels, m.slot[1], m.pixels[1], m.where)
    advance(m, layout, samples, nonzero, threads)
    gain = splat(m.bias.dtype.type(rule.gain), LANES)
    for b in range(samples):
        for k in range(0, n, LANES):
            store(m.base, b * n + k, load(m.bias, k, LANES))
        o = b * n + layout.at[1]
        for k in range(0, width, LANES):
            store(m.base, o + k, fma(gain, load(m.product, b * width + k, LANES), load(m.base, o + k, LANES)))


@kernel()
def nudge(memory, layout, rule, labels, rows, count, threads):
    """The states at −β (first half of ``nudged``) and +β (second); returns the relative residual of the free state."""
    m, n, samples = memory, layout.total, rule.samples
    size, last = samples * n, layout.units.size - 1
    beta = m.bias.dtype.type(rule.beta)
    for i in range(size):
        m.nudged[i] = m.free[i]
        m.nudged[size + i] = m.free[i]
        m.base[size + i] = m.base[i]
    for b in range(count):
        o = b * n + layout.at[last] + labels[rows[b]]
        m.base[o] -= beta
        m.base[size + o] += beta
    first = 0 if rule.lower else size
    stop = 2 * size if rule.upper else size
    groups = (stop - first) // n // 4
    phase = m.phase[1]
    for group in range(groups):
        phase[group] = 1 if rule.lower and group < samples // 4 else 2
    return relax(
        m,
        layout,
        m.nudged[first:stop],
        m.base[first:stop],
        4 * groups,
        phase,
        rule.nudged_sweeps,
        rule.tolerance,
        threads,
        HIDDEN,
    )


@kernel()
def kinks(memory, layout, count):
    """Hidden units, over all samples, whose diode changes between the free state and those at −β and +β."""
    m, n, size, changes = memory, layout.total, memory.nudged.size // 2, 0
    for b in range(count):
        for k in range(b * n, b * n + layout.at[-1]):
            free = m.free[k] == 0
            changes += (free != (m.nudged[k] == 0)) | (free != (m.nudged[size + k] == 0))
    return changes


@kernel()
def contrast(memory, layout, rule, rows, count, weight):
    """``diff``, weighted, and ``mean`` of the two states, and where the next mini-batch starts."""
    m, size = memory, rule.samples * layout.total
    width = rule.beta * (int(rule.lower) + int(rule.upper))
    half = m.bias.dtype.type(0.5)
    for b in range(count):
        scale = m.bias.dtype.type(factor_of(weight, rows[b]) / (width * count))
        for i in range(b * layout.total, (b + 1) * layout.total):
            minus, plus = m.nudged[i], m.nudged[size + i]
            m.diff[i] = (plus - minus) * scale
            m.mean[i] = (plus + minus) * half
            m.free[i] = plus if rule.upper else minus
    m.diff[count * layout.total : size] = 0
    m.mean[count * layout.total : size] = 0
    m.free[count * layout.total : size] = 0


@kernel()
def train(memory, layout, rule, rates, bias_rates, images, labels, weight, rows, batch, metrics, changed, threads):
    """Steps on mini-batches of ``batch`` rows in order; the last may be smaller.

    Parameters
    ----------
    rates, bias_rates : (L + 1,) ndarray
        Learning rates of the layers' matrices and biases; ``rates[0]`` is the input's gain.
    images : Images, labels : (N,) ndarray of int64
    weight : (N,) or (0,) ndarray
        Factor on each sample's loss; none: 1.
    rows : (n,) ndarray of int64
        Which images, in which order.
    metrics : (steps, 4) ndarray
        Written: cost and share of wrong answers at the free state, its relative residual, and `kinks` as a share.
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
        update_inner(memory, layout, rates, rule.samples, threads)
    for i in range(len(metrics)):
        some = rows[i * batch : (i + 1) * batch]
        count = some.size
        begin(memory, layout, rule, images, some, count, threads)
        fetch(images, rows[(i + 1) * batch : (i + 2) * batch])
        status, layer, unit = conductances(memory, layout, memory.bias.dtype.type(rule.beta), rule.lower)
        if status != OK:
            return i, status, layer, unit
        relax(
            memory,
            layout,
            memory.free,
            memory.base[:size],
            rule.samples,
            memory.phase[0],
            rule.sweeps,
            rule.tolerance,
            threads,
            NONE,
        )
        metrics[i, 0], metrics[i, 1] = score(memory, layout, labels, some, count, weight)
        metrics[i, 2] = nudge(memory, layout, rule, labels, some, count, threads)
        metrics[i, 3] = kinks(memory, layout, count) / (count * bounded)
        contrast(memory, layout, rule, some, count, weight)
        update(memory, layout, rates, bias_rates, rule.samples, threads)
    return len(metrics), OK, 0, 0
