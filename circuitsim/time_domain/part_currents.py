"""Kernels: branch currents of a mode over its decaying parts, by Kirchhoff's current law along its tree."""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.decaying_parts import forward, rooted
from circuitsim.time_domain.mode_kernels import CANCELLED, across, conducting, into
from circuitsim.time_domain.trees import FREE, C, R


def over_parts(rows, parting, many, out):
    """Sums over the states of the sources and the mode's as sums over the changes of w and of the decaying parts: a
    row a state or a part, a column a sum.

    What is left over where the terms of a sum cancel is zero: the errors of the parts do not cover it, so the sign of a
    diode's current would be the sign of rounding.
    """
    s, size = parting.along.shape[1], np.empty(out.shape[1])
    for j in range(s + many):
        for e in range(size.size):
            out[j, e] = rows[j, e] if j < s else 0.0
            size[e] = abs(out[j, e])
        for i in range(parting.along.shape[0]):
            weight = parting.along[i, j] if j < s else parting.shape[i, j - s]
            if weight != 0.0:
                for e in range(size.size):
                    out[j, e] += rows[s + i, e] * weight
                    size[e] += abs(rows[s + i, e] * weight)
        for e in range(size.size):
            if abs(out[j, e]) <= CANCELLED * size[e]:
                out[j, e] = 0.0


def link_flows(net, value, voltage, current, flow, root):
    """Fill in L⁻¹ d, d the voltages that capacitors and sources put on the resistors outside the tree, and L, where
    L Lᵀ are the resistances that their currents meet: these currents are L⁻ᵀ L⁻¹ d.

    Parameters
    ----------
    net : Wiring
    value : (m,) float array
    voltage, current : (m, n) float arrays
        Of capacitors, sources and current sources over the states and those of the sources.
    flow : (l, n) float array
    root : (l, l) float array
    """
    l0, l1 = net.rest[R], net.rest[R + 1]
    for k in range(l0, l1):
        across(net, 0, net.tree[R], k, voltage, flow[k - l0])
        root[k - l0, k - l0] += value[net.links[k]]
    gap = np.zeros(flow.shape[1])
    for t in range(net.tree[R], net.tree[R + 1]):
        ohms = value[net.twigs[t]]
        for j in range(gap.size):
            gap[j] = 0.0
        into(net, t, net.rest[FREE], net.links.size, current, gap)
        for k in range(l0, l1):
            if net.cut[t, k] != 0.0:
                for j in range(gap.size):
                    flow[k - l0, j] -= net.cut[t, k] * ohms * gap[j]
                for i in range(l0, l1):
                    root[k - l0, i - l0] += net.cut[t, k] * ohms * net.cut[t, i]
    rooted(root)
    forward(root, flow)


def part_currents(net, value, own, system, parting, conducts, shared, waves):
    """Fill in the currents of capacitors, sources and conducting diodes over w and the decaying parts.

    Parameters
    ----------
    net : Wiring
    value : (m,) float array
    own : (m, k + s) float array
        Voltages of capacitors over the states and those of the sources.
    system : (s, s) float array
        Generator of the sources' states.
    parting : Parting
    conducts, shared
        See `circuitsim.time_domain.mode_kernels.conducting`.
    waves : Waves
        Currents of current sources and of resistors outside the tree are there.
    """
    (k, s), current = parting.slope.shape, waves.current
    for link in range(net.rest[C], net.rest[R]):
        e = net.links[link]
        for i in range(s):
            for j in range(s):
                current[e, j] += value[e] * own[e, k + i] * system[i, j]
        for i in range(k):
            weight = value[e] * own[e, i]
            if weight != 0.0:
                for j in range(s):
                    current[e, j] += weight * parting.slope[i, j]
                for p in range(current.shape[1] - s):
                    current[e, s + p] -= weight * parting.shape[i, p] * parting.rate[p]
    for t in range(net.tree[C], net.tree[R + 1]):
        e = net.twigs[t]
        for j in range(current.shape[1]):
            current[e, j] = 0.0
        into(net, t, net.rest[C], net.links.size, current, current[e])
        for j in range(current.shape[1]):
            current[e, j] = -current[e, j]
    conducting(net, conducts, shared, waves)
