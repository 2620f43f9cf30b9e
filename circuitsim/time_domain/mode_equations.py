"""Kernel: all equations of a mode, from its normal tree and what all modes have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.mode_kernels import fill, mismatches, sums_of_currents, times
from circuitsim.time_domain.trees import (
    BLOCKING,
    CAPACITOR,
    CONDUCTING,
    CURRENT,
    FIXED,
    FREE,
    VOLTAGE,
    WINDING,
    C,
    L,
    R,
)


class Given(NamedTuple):
    """What all modes have in common.

    Attributes
    ----------
    storing : (q,) int array
        Capacitors and inductors.
    sources : (p,) int array
    system : (s, s) float array
        Generator of the sources' states.
    rows : (p, s) array
        Source values over these states.
    value : (m,) array
        Ω, F, H.
    coupling : (m, m) array
        Mutual inductances, H; (0, 0) where there are none.
    turns : (w, m) float array
        See `circuitsim.time_domain.modes.Parts`.
    """

    storing: np.ndarray
    sources: np.ndarray
    system: np.ndarray
    rows: np.ndarray
    value: np.ndarray
    coupling: np.ndarray
    turns: np.ndarray


def equations(net, role, of, shared, waves, dependent, checks, complete):
    """The equations of a mode.

    Parameters
    ----------
    net : Wiring
    role : (m,) int array
    of : Given
    shared : tuple of two arrays
        Matrices of least squares for potentials and loop currents, empty where no current source is in the tree, no
        voltage source outside of it.
    waves, dependent, checks
        Filled in; see `circuitsim.time_domain.modes.Mode`, `checks` are `source_loops` and `source_cuts`.
    complete : bool
        Whether currents and slopes of the states are needed.
    """
    s, n, m = of.system.shape[0], waves.system.shape[0], role.size
    k, first, coil = n - s, net.tree[C], net.rest[L]
    rate = np.zeros(waves.voltage.shape, waves.voltage.dtype)
    many = net.tree[R] - first
    waves.system[k:, k:] = of.system
    for j in range(of.sources.size):
        e = of.sources[j]
        for c in range(s):
            if role[e] == VOLTAGE:
                waves.voltage[e, k + c] = of.rows[j, c]
            else:
                waves.current[e, k + c] = of.rows[j, c]
            for i in range(s):
                rate[e, k + c] += of.rows[j, i] * of.system[i, c]
    for j in range(many):
        waves.voltage[net.twigs[first + j], j] = 1.0
    states, of_sources = states_of(net, role, of)
    for i in range(k - many):
        for j in range(k - many):
            waves.current[net.links[coil + i], many + j] = states[0, i, j]
        for c in range(s):
            waves.current[net.links[coil + i], k + c] = of_sources[0, i, c]
    back = states[1], times(of_sources[1], of.system)
    blocks, conducts = np.empty(m, np.bool_), np.empty(m, np.bool_)
    for e in range(m):
        conducts[e], blocks[e] = role[e] == CONDUCTING, role[e] == BLOCKING
    fill(net, of.value, of.coupling, rate, back, (blocks, shared[0]), (conducts, shared[1]), waves, complete)
    given = np.zeros((m, s), waves.voltage.dtype)
    for j in range(of.sources.size):
        for c in range(s):
            given[of.sources[j], c] = of.rows[j, c]
    mismatches(net, given, FIXED, FREE, checks[0], checks[1])
    for e in of.storing:
        for c in range(n):
            dependent[e, c] = waves.voltage[e, c] if role[e] == CAPACITOR else waves.current[e, c]
    if net.flows.shape[0]:
        windings(net, role, of.turns, waves)


def windings(net, role, turns, waves):
    """Voltages and currents of ideally coupled windings; inductors keep the rest of their states' currents."""
    w, m, n = -1, role.size, waves.system.shape[0]
    flows = times(net.flows, waves.current)
    for e in range(m):
        if role[e] != WINDING:
            continue
        w += 1
        for c in range(n):
            waves.current[e, c] = flows[w, c]
        for k in range(m):
            if turns[w, k] != 0.0:
                for c in range(n):
                    waves.voltage[e, c] += turns[w, k] * waves.voltage[k, c]
                    waves.current[k, c] -= turns[w, k] * flows[w, c]


def states_of(net, role, of):
    """The states that are currents: `circuitsim.time_domain.mode_kernels.sums_of_currents`. Derivatives of sources,
    imaginary parts, change no state's meaning."""
    given = np.zeros((role.size, of.system.shape[0]))
    for j in range(of.sources.size):
        if role[of.sources[j]] == CURRENT:
            for c in range(given.shape[1]):
                given[of.sources[j], c] = of.rows[j, c].real
    return sums_of_currents(net, given)
