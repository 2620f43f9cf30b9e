"""Kernels: how long a window may be until its series is resolved, from the rates of the decaying parts."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.time_domain.part_states import STATE
from circuitsim.time_domain.roots import POINTS

RESOLVED = 1e-12
"""Last coefficients of a resolved window against the largest."""
UNSEEN = 1e-17
"""The same against the magnitudes of which `STATE` is the error."""
FASTER, SLOPES = 2.0, 8
"""Least rate of a part, over the largest of the sources, for window lengths from rates alone, before any series; terms
of what the sources hold such a part at (`Decays.held`)."""
LAST = math.sqrt(2.0 / math.pi)
"""Last coefficients of e^{−a (1 + x)} times e to the power of their `decline`."""
MOST = 1e30
"""Largest excess of last coefficients."""


def decline(a):
    """−log of the last Chebyshev coefficients of e^{−a (1 + x)}, 2 e^{−a} I_n(a) by its expansion for large n, over
    `LAST`."""
    n = POINTS - 1.0
    r = math.sqrt(n * n + a * a)
    return n * math.asinh(n / a) - n * n / (r + a) + 0.5 * math.log(r)


def halvings(speed, excess):
    """How many halvings of a window, at least one, take the last coefficients of a part down by the factor ``excess``;
    ``speed`` is its rate times half the window."""
    count = 1
    if speed > 0.0:
        wanted = decline(speed) + math.log(min(excess, MOST))
        while decline(0.5**count * speed) < wanted:
            count += 1
    return count


def smallest_parts(decays, m, s, z, z_size, parts, least):
    """Fill in the least last coefficients (c,) of a part alone that are not resolved, in a state or in a waveform of
    events that is a sum of parts."""
    rows, of_states, many = decays.slack[m], decays.states[m], decays.many[m]
    for c in range(many):
        least[c] = np.inf
        for i in range(of_states.shape[1]):
            if of_states[s + c, i] != 0.0:
                least[c] = min(least[c], RESOLVED * z_size[s + i] / abs(of_states[s + c, i]))
    for d in range(rows.shape[1]):
        if not decays.slack_whole[m, d]:
            continue
        size, wrong = 0.0, 0.0
        for j in range(s + many):
            weight = abs(rows[j, d])
            size += weight * (max(z_size[j], abs(z[j])) if j < s else abs(parts.y[j - s]))
            wrong += weight * (z_size[j] if j < s else parts.error[j - s] / STATE)
        for c in range(many):
            if rows[s + c, d] != 0.0:
                least[c] = min(least[c], max(RESOLVED * size, UNSEEN * wrong) / abs(rows[s + c, d]))


def held_at(system, rate, drive, held):
    """Fill in, over the states w of the sources, what they hold a fast part with this rate and drive b at:
    b w / λ − b ẇ / λ² + …"""
    s = drive.size
    term = np.empty(s)
    for j in range(s):
        term[j] = drive[j] / rate
    for _ in range(SLOPES):
        later = np.zeros(s)
        for i in range(s):
            held[i] += term[i]
            for j in range(s):
                later[j] -= term[i] * system[i, j] / rate
        term = later


def too_long(fixed, decays, m, z, z_size, parts, half):
    """The `halvings` that single parts faster than the sources ask for, before any series is computed.

    The last coefficients are about those of e^{−λ t} times what a part is away from where the sources would hold it.
    """
    count, s, least = 0, fixed.system.shape[0], np.empty(parts.y.size)
    smallest_parts(decays, m, s, z, z_size, parts, least)
    for c in range(decays.many[m]):
        rate, away = decays.rate[m, c], parts.y[c]
        if rate <= FASTER * fixed.radius:
            continue
        for j in range(s):
            away -= decays.held[m, c, j] * z[j]
        last = POINTS * LAST * math.exp(-decline(rate * half)) * abs(away)
        if last > least[c]:
            count = max(count, halvings(rate * half, last / least[c] if least[c] > 0.0 else MOST))
    return count
