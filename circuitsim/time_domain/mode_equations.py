"""Kernel: all equations of a mode, from its normal tree and what all modes have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.mode_kernels import fill, mismatches
from circuitsim.time_domain.trees import FIXED, FREE, C, L, R


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
    """

    storing: np.ndarray
    sources: np.ndarray
    system: np.ndarray
    rows: np.ndarray
    value: np.ndarray
    coupling: np.ndarray


def equations(net, role, roles, of, shared, waves, dependent, checks):
    """The equations of a mode.

    Parameters
    ----------
    net : Wiring
    role : (m,) int array
    roles : tuple of int
        Of voltage sources, conducting diodes, capacitors, blocking diodes.
    of : Given
    shared : tuple of two arrays
        Matrices of least squares for potentials and loop currents, empty where no current source is in the tree, no
        voltage source outside of it.
    waves, dependent, checks
        Filled in; see `circuitsim.time_domain.modes.Mode`, `checks` are its last four.
    """
    s, n, m = of.system.shape[0], waves.system.shape[0], role.size
    k, first, coil = n - s, net.tree[C], net.rest[L]
    rate = np.zeros(waves.voltage.shape, waves.voltage.dtype)
    many = net.tree[R] - first
    waves.system[k:, k:] = of.system
    for j in range(of.sources.size):
        e = of.sources[j]
        for c in range(s):
            if role[e] == roles[0]:
                waves.voltage[e, k + c] = of.rows[j, c]
            else:
                waves.current[e, k + c] = of.rows[j, c]
            for i in range(s):
                rate[e, k + c] += of.rows[j, i] * of.system[i, c]
    for j in range(k):
        if j < many:
            waves.voltage[net.twigs[first + j], j] = 1.0
        else:
            waves.current[net.links[coil + j - many], j] = 1.0
    blocks, conducts = np.empty(m, np.bool_), np.empty(m, np.bool_)
    for e in range(m):
        conducts[e], blocks[e] = role[e] == roles[1], role[e] == roles[3]
    fill(net, of.value, of.coupling, rate, (blocks, shared[0]), (conducts, shared[1]), waves)
    loops, cuts, own_loops, own_cuts = checks
    q = of.storing.size
    given = np.zeros((m, s), waves.voltage.dtype)
    both = np.zeros((m, q + s), waves.voltage.dtype)
    for j in range(of.sources.size):
        for c in range(s):
            given[of.sources[j], c] = both[of.sources[j], q + c] = of.rows[j, c]
    mismatches(net, given, FIXED, FREE, own_loops, own_cuts)
    for j in range(q):
        e = of.storing[j]
        both[e, j] = 1.0
        for c in range(n):
            dependent[e, c] = waves.voltage[e, c] if role[e] == roles[2] else waves.current[e, c]
    mismatches(net, both, C, L, loops, cuts)
