"""Tile, sweep and march as flat functions for numba's own compiler: see `stock_numba`.

At most twelve arrays each, no tuples, no slices, calls of calls at most two deep; vectors by `circuitsim._vectors` and
the tile's intrinsics, which rest on `numba.extending` alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from circuitsim import _vectors as vec
from circuitsim.layered import steps
from circuitsim.layered.layout import BLOCK, GROUP, LANES, PANEL, PARTS
from circuitsim.solvers.laplacian import tile
from circuitsim.solvers.laplacian.factor import BLOCK as ELIMINATED
from circuitsim.solvers.laplacian.factor import TOGETHER, total
from circuitsim.time_domain import loop, roots, windows
from circuitsim.time_domain.decays import LEFT, OF_NODES
from circuitsim.time_domain.part_states import RESOLVED, STATE
from circuitsim.time_domain.roots import DEPTH, HALVES, NODES, ORDERS, POINTS, SHARES, TO_COEFFICIENTS, TO_LEFT

FLAT: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
EXACT: dict[str, Any] = {**FLAT, "fastmath": False}
place = np.uint64
"""An index without numba's test whether it counts from the end, which keeps LLVM from vectorising a loop."""


# ---------------------------------------------------------------- the tile: factor of a Laplacian by panels
@njit(**FLAT)
def multiply(values, offset, height, depth, row, across, pivots, first, packed, work):
    """Columns of work: rows of a panel from ``row`` on times its weights in the first ``across`` of these rows."""
    tall, room, put = height - row, height - row + tile.OVERREAD, 0
    for j in range(0, across, tile.ACROSS):
        base, begin = offset + row + j, put
        for k in range(first, first + depth):
            for t in range(tile.ACROSS):
                packed[place(put + t)] = values[place(base + t)] * pivots[place(k)] if j + t < across else 0.0
            put, base = put + tile.ACROSS, base + height
        i, a = j, offset + row
        while i + tile.LANES * tile.DOWN <= tall:
            tile._tall_tile(values, a + i, height, depth, packed, begin, work, room * j + i, room)
            i += tile.LANES * tile.DOWN
        while i < tall:
            tile._short_tile(values, a + i, height, depth, packed, begin, work, room * j + i, room)
            i += tile.LANES


FIRST, ROW, OFFSET, UPDATE, EDGE = range(5)
TARGET, LOW, HELD = range(3)


@njit(**FLAT)
def factor(panels, updates, entries, held, active, weight, values, pivots, packed, work):
    """`circuitsim.solvers.laplacian.factor.factor_active`; tables of integers have a row a panel, update or entry."""
    for s in range(active.size):
        if active[s]:
            values[panels[s, OFFSET] : panels[s + 1, OFFSET]] = 0.0
            for q in range(panels[s, EDGE], panels[s + 1, EDGE]):
                values[place(entries[q, 1])] += weight[place(entries[q, 0])]
    for s in range(active.size):
        first, offset = panels[s, FIRST], panels[s, OFFSET]
        height, width = panels[s + 1, ROW] - panels[s, ROW], panels[s + 1, FIRST] - first
        for begin in range(0, width if active[s] else 0, ELIMINATED):
            end, tall = min(begin + ELIMINATED, width), height - begin
            if begin > 0:
                multiply(values, offset, height, begin, begin, end - begin, pivots, first, packed, work)
            for j in range(end - begin if begin > 0 else 0):
                to, added = offset + (begin + j) * height + begin, j * (tall + tile.OVERREAD)
                for i in range(j + 1, tall):
                    values[place(to + i)] += work[place(added + i)]
            for k in range(begin, end):
                column = offset + k * height
                for j in range(begin, k):
                    packed[j - begin] = values[offset + j * height + k] * pivots[first + j]
                for i in range(k + 1, height if k > begin else 0, tile.LANES):
                    tile.column_sum(values, offset + begin * height + i, height, k - begin, packed, 0, work, i)
                if k > begin:
                    for i in range(k + 1, height):
                        values[place(column + i)] += work[place(i)]
                p = total(values, place(column + k + 1), place(column + height))
                pivots[first + k] = p
                if p != 0.0:
                    for i in range(column + k + 1, column + height):
                        values[place(i)] /= p
        u, last = panels[s, UPDATE], panels[s + 1, UPDATE]
        while u < last and not active[updates[u, TARGET]]:
            u += 1
        while u < last:
            row, below, v = updates[u, LOW], updates[u, LOW], u
            while v < last:
                end = updates[v + 1, LOW] if v + 1 < last else height - 1
                if v > u and end - row > TOGETHER:
                    break
                below, v = end, v + 1
            room = height - row + tile.OVERREAD
            multiply(values, offset, height, width, row, below - row, pivots, first, packed, work)
            while u < v:
                t, added = updates[u, TARGET], (updates[u, LOW] - row) * (room + 1)
                across = (updates[u + 1, LOW] if u + 1 < v else below) - updates[u, LOW]
                base, above = panels[t, OFFSET], panels[t + 1, ROW] - panels[t, ROW]
                h, tall = updates[u, HELD], updates[u + 1, HELD] - updates[u, HELD]
                together = held[h + tall - 1] - held[h] == tall - 1
                for j in range(across):
                    column = base + held[h + j] * above
                    if together:
                        for i in range(j + 1, tall):
                            values[place(column + held[h] + i)] += work[place(added + i)]
                    else:
                        for i in range(j + 1, tall):
                            values[place(column + held[place(h + i)])] += work[place(added + i)]
                    added += room
                u += 1


# ---------------------------------------------------------------- the sweep: coordinate descent in a layered network
UNITS, WIDTH, AT, MATRIX, STRIDE, ROWS, COLUMNS = range(7)


@njit(**FLAT)
def odd_rows(part, layers, blocks, inner, v, sums, inverse, low, high, parcel, lanes, phase, samples, measured):
    """`circuitsim.layered.steps.sweep_part`; the largest move is returned."""
    last, n = layers.shape[0] - 1, low.size
    mine, cell, zero = part * samples * n, samples // 4 * 16 * LANES, vec.splat(v.dtype.type(0), LANES)
    for layer in range(2, last + 1, 2):
        for b in range(samples):
            at = mine + b * n + layers[layer, AT]
            for k in range(at, at + layers[layer, WIDTH], LANES):
                vec.store(parcel, k, zero)
    moves, first = vec.splat(v.dtype.type(0), BLOCK), blocks.shape[0] * part // PARTS
    end = blocks.shape[0] * (part + 1) // PARTS
    while first < end:
        layer, stop = blocks[first, 0], first + 1
        while stop < min(end, first + GROUP) and blocks[stop, 0] == layer:
            stop += 1
        for way in range(3):
            if way == 1:
                for block in range(first, stop):
                    unit, place = layers[layer, AT] + blocks[block, 1], (part * GROUP + block - first) * cell
                    for b in range(0, samples, 4):
                        steps.collect(lanes, place + b * 4 * LANES, n, sums, b * n + unit)
                    for b in range(samples):
                        counted = measured == steps.ALL or (measured != steps.NONE and layer < last)
                        at = phase[b // 4] * n + unit
                        moves = steps.clip(sums, v, inverse, low, high, at, unit, b * n + unit, moves, counted, BLOCK)
                continue
            for upper in range(max(layer, 2), min(layer + 2, last + 1)):
                if layers[upper, ROWS] != layer:
                    continue
                stride, columns = layers[upper, STRIDE], layers[layers[upper, COLUMNS], AT]
                for start in range(0, stride, PANEL):
                    length = min(PANEL, stride - start)
                    for b in range(0, samples, 4):
                        for block in range(first, stop):
                            g = layers[upper, MATRIX] + blocks[block, 1] * stride + BLOCK * start
                            other, unit = b * n + columns + start, b * n + layers[layer, AT] + blocks[block, 1]
                            place = (part * GROUP + block - first) * cell + b * 4 * LANES
                            if way == 0:
                                steps.gather(inner, g, length, v, other, n, lanes, place)
                            else:
                                steps.scatter(inner, g, length, v, unit, n, parcel, mine + other)
        first = stop
    return vec.largest(moves)


@njit(**FLAT)
def sweep(layers, blocks, inner, base, v, sums, inverse, low, high, parcel, lanes, phase, samples, measured):
    """`circuitsim.layered.steps.sweep` in one thread."""
    last, n, most = layers.shape[0] - 1, low.size, inner.dtype.type(0)
    stride, before = layers[last, STRIDE], layers[last - 1, AT]
    for parity in range(1, -1, -1):
        for layer in range(2 - parity, last + 1, 2):
            for b in range(samples):
                at = b * n + layers[layer, AT]
                for k in range(at, at + layers[layer, WIDTH], LANES):
                    vec.store(sums, k, vec.load(base, k, LANES))
        if last % 2 == 0:
            for row in range(0, layers[last, UNITS], BLOCK):
                g = layers[last, MATRIX] + row * stride
                for b in range(0, samples, 4):
                    hidden, unit = b * n + before, b * n + layers[last, AT] + row
                    if parity:
                        steps.scatter(inner, g, stride, v, unit, n, sums, hidden)
                    else:
                        steps.gather(inner, g, stride, v, hidden, n, lanes, 0)
                        steps.collect(lanes, 0, n, sums, unit)
        if parity and last > 2:
            for part in range(PARTS):
                given = inner, v, sums, inverse, low, high, parcel, lanes, phase, samples, measured
                most = max(most, odd_rows(part, layers, blocks, *given))
            continue
        moves = vec.splat(v.dtype.type(0), LANES)
        for layer in range(2 - parity, last + 1, 2):
            for b in range(samples):
                place = phase[b // 4] * n
                for k in range(layers[layer, AT], layers[layer, AT] + layers[layer, WIDTH], LANES):
                    o = b * n + k
                    if not parity and layer < last:
                        s = vec.load(sums, o, LANES)
                        for part in range(PARTS):
                            s = vec.add(s, vec.load(parcel, part * samples * n + o, LANES))
                        vec.store(sums, o, s)
                    count = parity and measured != steps.NONE
                    moves = steps.clip(sums, v, inverse, low, high, place + k, k, o, moves, count, LANES)
        if parity:
            most = vec.largest(moves)
    return most


# ---------------------------------------------------------------- the march: one window and its first event
@njit(**EXACT)
def clenshaw(c, row, n, x):
    """An interpolant at x."""
    b1, b2 = 0.0, 0.0
    for k in range(n - 1, 0, -1):
        b1, b2 = c[row, k] + 2.0 * x * b1 - b2, b1
    return c[row, 0] + x * b1 - b2


@njit(**EXACT)
def halve(c, row, n, side, to):
    """The coefficients on the left half (``side`` 0) or the right one."""
    for k in range(POINTS):
        c[to, k] = 0.0
    for j in range(n):
        for k in range(j + 1):
            c[to, k] += HALVES[side, j, k] * c[row, j]


@njit(**EXACT)
def first_zero(c, many, limit):
    """`circuitsim.time_domain.roots.first_zero` of the interpolant in the first row of ``c``."""
    depth, place = 0, 0
    while True:
        width, n, greatest = 0.5**depth, POINTS, 0.0
        left = place * width
        if left >= limit:
            return np.inf
        for k in range(POINTS):
            greatest = max(greatest, abs(c[depth, k]))
        while n > 1 and abs(c[depth, n - 1]) <= 1e-17 * greatest:
            n -= 1
        many[depth], rest = n, 0.0
        for k in range(1, n):
            rest += abs(c[depth, k])
        if abs(c[depth, 0]) > rest:
            if c[depth, 0] < 0.0:
                return left
        else:
            after, second, rest = 0.0, 0.0, 0.0
            for k in range(n - 1, 0, -1):
                after, second = second + 2.0 * k * c[depth, k], after
                rest += abs(after) if k > 1 else 0.0
            monotone = n < 2 or 0.5 * abs(after) > rest
            if not monotone and depth < DEPTH:
                halve(c, depth, n, 0, depth + 1)
                depth, place = depth + 1, 2 * place
                continue
            low, high = -1.0, 1.0
            above, below, side = clenshaw(c, depth, n, low), clenshaw(c, depth, n, high), 0
            if below < 0.0:
                if above <= 0.0 or not monotone:
                    return left
                if limit < left + width and clenshaw(c, depth, n, 2.0 * (limit - left) / width - 1.0) > 0.0:
                    return np.inf
                for _ in range(60):
                    x = (low * below - high * above) / (below - above)
                    if not low < x < high:
                        x = 0.5 * (low + high)
                    y = clenshaw(c, depth, n, x)
                    if abs(y) <= 1e-16 * abs(c[depth, 0]) or high - low <= 4e-16:
                        low = high = x
                        break
                    if y > 0.0:
                        low, above, below, side = x, y, below * (0.5 if side > 0 else 1.0), 1
                    else:
                        high, below, above, side = x, y, above * (0.5 if side < 0 else 1.0), -1
                return left + width * 0.5 * (1.0 + 0.5 * (low + high))
        while place % 2 == 1:
            depth, place = depth - 1, place // 2
        if depth == 0:
            return np.inf
        place += 1
        halve(c, depth - 1, many[depth - 1], 1, depth)


@njit(**EXACT)
def state_after(system, m, rate, time, z, row, out):
    """e^{A t} z by Taylor's series, in the first row of ``out``; the rows after it are memory."""
    n, many = z.shape[1], max(1.0, math.ceil(rate * abs(time)))
    for i in range(n):
        out[0, i] = z[row, i]
    for _ in range(int(many)):
        for i in range(n):
            out[1, i] = out[0, i]
        for k in range(1, 20):
            greatest = 0.0
            for i in range(n):
                found = 0.0
                for j in range(n):
                    found += system[m, i, j] * out[1, j]
                out[2, i] = time / many / k * found
                greatest = max(greatest, abs(out[2, i]))
            if greatest == 0.0:
                break
            for i in range(n):
                out[1, i] = out[2, i]
                out[0, i] += out[2, i]


@njit(**EXACT)
def cross(
    inside,
    window,
    system,
    slack,
    state,
    nodes,
    series,
    orders,
    tied,
    c,
    many,
    room,
    now,
    left,
    rate,
    m,
    power,
    at,
):
    """The longest resolved window of a mode from here, and its first event (time, index, error; power of two of its
    length); of ``state`` the rows are z, its size in this mode, its size, and memory; the last column of ``series`` is
    the waveforms' size. ``now``: the time; ``left``: of the run; ``rate``: the largest."""
    n, d = state.shape[1], orders.size
    least, good, bad, step, resolved = at - windows.LENGTHS, at - windows.LENGTHS, power + 1, 1, False
    while not (resolved and power + 1 == bad):
        if good > least or step > 1:
            power = (good + bad) // 2 if good > least else max(power - step // 2, min(least + 1, bad - 1))
        if power <= least:
            return loop.FAST, power, 0.0, -1, 0.0
        w, resolved = window[m, at - power], True
        if w < 0:
            return loop.WINDOW, power, 0.0, -1, 0.0
        for p in range(POINTS):
            for i in range(n):
                nodes[p, i] = 0.0
        for j in range(n):
            if state[0, j] != 0.0:
                for p in range(POINTS):
                    for i in range(n):
                        nodes[p, i] += inside[w, j, p, i] * state[0, j]
        for i in range(n):
            peak, last, other, gap = abs(state[0, i]), 0.0, 0.0, -state[0, i]
            for p in range(POINTS):
                peak = max(peak, abs(nodes[p, i]))
                last += TO_COEFFICIENTS[POINTS - 1, p] * nodes[p, i]
                other += TO_COEFFICIENTS[POINTS - 2, p] * nodes[p, i]
                gap += TO_LEFT[p] * nodes[p, i]
            state[3, i] = peak
            resolved &= max(abs(last), abs(other), LEFT * abs(gap)) <= max(RESOLVED * peak, STATE * state[1, i])
        for k in range(d if resolved else 0):
            size, wide, gap = 0.0, 0.0, 0.0
            for i in range(n):
                weight = abs(slack[m, i, k])
                size += weight * max(state[3, i], min(state[2, i], state[1, i]))
                wide += weight * max(state[3, i], state[1, i])
                gap -= slack[m, i, k] * state[0, i]
            for j in range(POINTS):
                series[k, j] = 0.0
            for p in range(POINTS):
                value = 0.0
                for i in range(n):
                    value += slack[m, i, k] * nodes[p, i]
                gap += TO_LEFT[p] * value
                for j in range(POINTS):
                    series[k, j] += OF_NODES[p, j] * value
            series[k, POINTS] = size
            last = max(abs(series[k, POINTS - 1]), abs(series[k, POINTS - 2]))
            resolved &= max(last, LEFT * abs(gap)) <= RESOLVED * wide
        good = power if resolved else good
        bad, step = (bad, step) if resolved else (power, 2 * step)
    length = math.ldexp(1.0, power)
    share, event = np.inf, -1
    for k in range(d):
        value, whole = 0.0, 0.0
        for i in range(n):
            value += slack[m, i, k] * state[0, i]
        if orders[k] > 0 and not tied[k] and value > roots.ZERO * series[k, POINTS]:
            orders[k] = 0
        for j in range(POINTS):
            whole += abs(series[k, j])
            c[0, j] = series[k, j]
        if whole <= roots.ZERO * series[k, POINTS]:
            continue
        if orders[k] > ORDERS:
            c[0, 0] += roots.VALUE * series[k, POINTS]
        elif orders[k] > 0:
            for j in range(POINTS):
                c[0, j] = 0.0
            for p in range(POINTS):
                x = 0.0
                for j in range(POINTS):
                    x += roots.TO_NODES[p, j] * series[k, j]
                for _ in range(orders[k]):
                    x /= SHARES[p]
                for j in range(POINTS):
                    c[0, j] += TO_COEFFICIENTS[j, p] * x
        found = first_zero(c, many, share)
        if 0.0 < found < share:
            share, event = found, k
    time, error = share * length, 0.0
    if not time < min(length, left):
        return loop.GOING, power, min(length, left), -1, 0.0
    for _ in range(3):
        p, x, row = 0, 2.0 * time / length - 1.0, -1
        while p < POINTS and NODES[p] < x:
            p += 1
        after = 0.5 * length * (1.0 + NODES[min(p, POINTS - 1)])
        before = 0.5 * length * (1.0 + NODES[p - 1]) if p > 0 else 0.0
        ahead = p < POINTS and after - time < time - before and rate * (after - time) < 1.0
        row = p if ahead else p - 1
        if row >= 0:
            state_after(system, m, rate, time - (after if ahead else before), nodes, row, room)
        else:
            state_after(system, m, rate, time, state, 0, room)
        value, slope = 0.0, 0.0
        for i in range(n):
            value += slack[m, i, event] * room[0, i]
            for j in range(n):
                slope += slack[m, i, event] * system[m, i, j] * room[0, j]
        if slope >= 0.0:
            break
        change = -value / slope
        error = max(-1e-15 * series[event, POINTS] / slope, 1e-16 * (now + time))
        if not abs(change) <= 1e-3 * time:
            break
        time += change
        if abs(change) <= 1e-15 * (now + time) or abs(change) * rate <= windows.QUADRATIC:
            break
    return loop.GOING, power, time, event, error
