"""Kernels: an operating point block by block, for blocks with one operating point each whatever their sources are.

The blocks are walked through once, each behind those that it depends on. A block is a small dense system whose inverse
is at hand with a resistance in series with each of its diodes; what the ports of the diodes add (`controlled.ports`)
follows from their states, and the states of a block need no other block behind it. So a diode that changes state costs
a system of as many equations as its block has diodes. Solutions are refined with residuals in pairs of doubles.
"""

from __future__ import annotations

import numpy as np

TOGETHER = 12
"""Rounds in which all diodes in a wrong state change at once; then one a round, the first (Murty 1974: ends for
P-matrices)."""

WRONG = 1e-11
"""A current or voltage of the wrong sign counts above this share of its terms."""

CORRECTIONS = 12
"""Most corrections of one solution."""

CHANGES = 8
"""Most changes of states after refinement."""

CANCELLED = 2.0**-40
"""An unknown below this share of its terms is rounding, or small enough to be left to the next correction: zero."""

POOR = 1e-3
"""A first correction above this share of the solution: the inverses are too inexact."""


def solve_blocks(plan, right, guess, fine, high, low, conducting, lead, work, ports):
    """Refined unknowns, in the order of the plan, and the states of the diodes; False where that did not succeed.

    Parameters
    ----------
    plan : BlockPlan
    right : (size,) float array
        Right-hand side; zero in the rows of diodes.
    guess : (d,) bool array
        States to begin with; they decide nothing but the number of rounds.
    fine : float
        A correction below this share of every unknown, before or by the next one, ends the refinement.
    high, low : (size,) float arrays
        Filled: the unknowns as unevaluated sums.
    conducting : (d,) bool array
        Filled.
    lead : (size,) int array
    work : (3, size) float array
    ports : (most + 4, most + 1) float array
        ``most`` is the largest number of diodes of a block.
    """
    change, residual, local = work[0], work[1], work[2]
    for d in range(guess.size):
        conducting[d] = guess[d]
    low[:] = 0.0
    if not sweep(plan, right, True, high, conducting, local, ports):
        return False
    for _ in range(CHANGES):
        if not refined(plan, right, fine, high, low, conducting, change, residual, local, ports):
            return False
        if not changed(plan, high, conducting):
            break
    join(plan, conducting, high, low, lead)
    return True


def join(plan, conducting, high, low, lead):
    """Give nodes that conducting diodes join one potential, that of the first of them; ground comes before all."""
    for k in range(lead.size):
        lead[k] = k
    for d in range(conducting.size):
        if conducting[d]:
            a, b = leader(lead, plan.plus[d]), leader(lead, plan.minus[d])
            if a < b:
                lead[b] = a
            elif b < a:
                lead[a] = b
    for d in range(conducting.size):
        if conducting[d]:
            for k in (plan.plus[d], plan.minus[d]):
                if k >= 0:
                    first = leader(lead, k)
                    high[k], low[k] = at(high, first), at(low, first)


def leader(lead, k):
    """The first place of those joined with ``k``."""
    while k >= 0 and lead[k] != k:
        k = lead[k]
    return k


def refined(plan, right, fine, high, low, conducting, change, residual, local, ports):
    """Correct the unknowns of given states; False where they are no solution to begin with."""
    before = first = np.inf
    for turn in range(CORRECTIONS):
        residuals(plan, right, high, low, conducting, residual)
        if not sweep(plan, residual, False, change, conducting, local, ports):
            return False
        most, largest, share = 0.0, 0.0, 0.0
        for k in range(high.size):
            size, x = abs(change[k]), abs(high[k])
            most, largest = max(most, x), max(largest, size)
            if size > share * x:
                share = size / max(x, 1e-300)
            # high + low + change as a pair
            total = high[k] + change[k]
            part = total - high[k]
            error = (high[k] - (total - part)) + (change[k] - part) + low[k]
            high[k] = total + error
            low[k] = error - (high[k] - total)
        if not largest < np.inf:
            return False
        if turn == 0:
            first = share
            if largest > POOR * most:
                return False
        if share <= fine or share * first <= fine or (turn > 3 and share >= before):
            break
        before = share
    return True


def changed(plan, high, conducting):
    """Change the diodes whose refined current or voltage has the wrong sign; whether there are any."""
    any_wrong = False
    for d in range(conducting.size):
        if conducting[d]:
            wrong = high[plan.own[d]] < 0.0
        else:
            wrong = at(high, plan.plus[d]) - at(high, plan.minus[d]) > 0.0
        if wrong:
            conducting[d] = not conducting[d]
            any_wrong = True
    return any_wrong


def at(x, k):
    """Unknown ``k``; −1 is ground."""
    return x[k] if k >= 0 else 0.0


def residuals(plan, right, high, low, conducting, residual):
    """right − matrix · (high + low) for given states, in pairs of doubles."""
    split = 134217729.0
    for row in range(residual.size):
        d = plan.diode_of[row]
        if d >= 0:
            own, plus, minus = plan.own[d], plan.plus[d], plan.minus[d]
            if conducting[d]:
                a, b = at(high, plus), at(high, minus)
                residual[row] = -((a - b) + (at(low, plus) - at(low, minus)))
            else:
                residual[row] = -(high[own] + low[own])
            continue
        total, rest = right[row], 0.0
        for t in range(plan.ends[row], plan.ends[row + 1]):
            a, x = -plan.value[t], high[plan.column[t]]
            product = a * x
            whole = split * x
            x_high = whole - (whole - x)
            x_rest = x - x_high
            a_high = -plan.value_high[t]
            a_rest = a - a_high
            error = ((a_high * x_high - product) + a_high * x_rest + a_rest * x_high) + a_rest * x_rest
            new = total + product
            part = new - total
            rest += (total - (new - part)) + (product - part) + error + a * low[plan.column[t]]
            total = new
        residual[row] = total + rest


def sweep(plan, right, free, x, conducting, local, ports):
    """Unknowns for a right-hand side, block by block; with ``free`` states of the diodes, too.

    The right-hand side of a diode's row is its voltage if it conducts, else its current; zero with ``free`` states.
    False where states were not found, or leave a block singular.
    """
    x[:] = 0.0
    for block in range(plan.block_ends.size - 1):
        start, end = plan.block_ends[block], plan.block_ends[block + 1]
        size = end - start
        for row in range(start, end):
            total = right[row] if plan.diode_of[row] < 0 else 0.0
            for t in range(plan.ends[row], plan.ends[row + 1]):
                if plan.column[t] < start:
                    total -= plan.value[t] * x[plan.column[t]]
            local[row - start] = total
        first = plan.inverse_at[block]
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += plan.inverse[first + i * size + j] * local[j]
            x[start + i] = total
        begin, stop = plan.diode_ends[block], plan.diode_ends[block + 1]
        if begin < stop:
            if not load_ports(plan, block, right, free, x, conducting, ports):
                return False
            for d in range(begin, stop):
                row, z = plan.row_of[d] - start, ports[0, d - begin]
                total = local[row] + z
                local[row] = total if abs(total) > CANCELLED * abs(z) else 0.0
        for i in range(size):
            total = terms = 0.0
            for j in range(size):
                term = plan.inverse[first + i * size + j] * local[j]
                total += term
                terms += abs(term)
            x[start + i] = total if abs(total) > CANCELLED * terms else 0.0
    return True


def load_ports(plan, block, right, free, x, conducting, ports):
    """z of the ports of a block, into the first row of ``ports``; with ``free`` states those of its diodes, too."""
    begin, stop = plan.diode_ends[block], plan.diode_ends[block + 1]
    count, matrices = stop - begin, plan.matrices_at[block]
    for d in range(begin, stop):
        ports[1, d - begin] = at(x, plan.plus[d]) - at(x, plan.minus[d])
        ports[2, d - begin] = plan.load[d] * x[plan.own[d]]
    if count == 1:
        v0, i0, p, q = ports[1, 0], ports[2, 0], plan.p[matrices], plan.q[matrices]
        if free:
            conducting[begin] = p * i0 > q * v0
        wanted = 0.0 if free else right[plan.row_of[begin]]
        ports[0, 0] = (wanted - v0) / p if conducting[begin] else (plan.load[begin] * wanted - i0) / q
        return True
    for turn in range(TOGETHER + 60 * count):
        for d in range(count):
            wanted = 0.0 if free else right[plan.row_of[begin + d]]
            conducts = conducting[begin + d]
            ports[4 + d, count] = wanted - ports[1, d] if conducts else plan.load[begin + d] * wanted - ports[2, d]
            for e in range(count):
                place = matrices + d * count + e
                ports[4 + d, e] = plan.p[place] if conducts else plan.q[place]
        if not eliminated(ports, count):
            return False
        if not free:
            return True
        wrong = 0
        for d in range(count):
            other = ports[2, d] if conducting[begin + d] else ports[1, d]
            size = abs(other)
            for e in range(count):
                place = matrices + d * count + e
                term = (plan.q[place] if conducting[begin + d] else plan.p[place]) * ports[0, e]
                other += term
                size += abs(term)
            bad = other < -WRONG * size if conducting[begin + d] else other > WRONG * size
            if bad and (turn < TOGETHER or wrong == 0):
                ports[3, d] = 1.0
                wrong += 1
            else:
                ports[3, d] = 0.0
        if wrong == 0:
            return True
        for d in range(count):
            if ports[3, d] != 0.0:
                conducting[begin + d] = not conducting[begin + d]
    return False


def eliminated(ports, count):
    """Solve the system in rows 4 and on of ``ports`` (its last column is the right-hand side) into the first row;
    False where it is singular."""
    for k in range(count):
        pivot = k
        for r in range(k + 1, count):
            if abs(ports[4 + r, k]) > abs(ports[4 + pivot, k]):
                pivot = r
        if ports[4 + pivot, k] == 0.0:
            return False
        for c in range(k, count + 1):
            kept = ports[4 + k, c]
            ports[4 + k, c] = ports[4 + pivot, c]
            ports[4 + pivot, c] = kept
        for r in range(k + 1, count):
            factor = ports[4 + r, k] / ports[4 + k, k]
            if factor != 0.0:
                for c in range(k + 1, count + 1):
                    ports[4 + r, c] -= factor * ports[4 + k, c]
    for k in range(count - 1, -1, -1):
        total = ports[4 + k, count]
        for c in range(k + 1, count):
            total -= ports[4 + k, c] * ports[0, c]
        ports[0, k] = total / ports[4 + k, k]
    return True
