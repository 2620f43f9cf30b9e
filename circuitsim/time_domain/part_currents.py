"""Kernels: branch currents of a mode over its decaying parts, by Kirchhoff's current law along its tree."""

from __future__ import annotations

import numpy as np

from circuitsim.time_domain.decaying_parts import forward, rooted
from circuitsim.time_domain.mode_kernels import CANCELLED, across, gram, into, loops_of_diodes, put_back, scaled
from circuitsim.time_domain.trees import FREE, C, L, R


def over_parts(rows, parting, many, out):
    """Convert sums over states to sums over the changes of w and the decaying parts: one row per state or part, one
    column per sum.

    The residual where the terms of a sum cancel is set to zero: the error bounds of the parts exclude it, so the sign
    of a diode's current would be that of rounding.
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


def of_parts(row, start, s, many, out):
    """Whether a sum over states depends on sources and decaying parts alone; the terms of the sources become exact."""
    for i in range(row.size - 1, -1, -1):
        left, size = row[i], abs(row[i])
        for p in range(many):
            term = out[s + p] * start[p, i]
            left -= term
            size += abs(term)
        small = abs(left) <= CANCELLED * size
        if i >= s and not small:
            return False
        if i < s:
            out[i] = 0.0 if small else left
    return True


def link_flows(net, value, voltage, current, flow, root):
    """Fill in L⁻¹ d and L, where d are the voltages of capacitors and sources across the resistors outside the tree and
    L Lᵀ are the loop resistances: the resistor currents are L⁻ᵀ L⁻¹ d.

    Parameters
    ----------
    net : Wiring
    value : (m,) float array
    voltage, current : (m, n) float arrays
        Of capacitors, sources and current sources over the states and those of the sources.
    flow : (l, n) float array
    root : (l, l) float array
    """
    cut, t0, t1, l0, l1 = net.cut, net.tree[R], net.tree[L], net.rest[R], net.rest[L]
    across(cut, 0, t0, l0, l1, voltage[net.twigs], 1.0, flow)
    ohms, gap = value[net.twigs[t0:t1]], np.zeros((t1, flow.shape[1]))
    into(cut, t0, t1, net.rest[FREE], net.links.size, current[net.links], 1.0, gap[t0:])
    scaled(gap[t0:], ohms, gap[t0:])
    across(cut, t0, t1, l0, l1, gap, -1.0, flow)
    for k in range(l1 - l0):
        root[k, k] += value[net.links[l0 + k]]
    gram(cut.T, l0, l1, t0, t1, ohms, root)
    rooted(root)
    forward(root, flow)


def part_currents(net, role, value, own, system, parting, shared, current):
    """Fill in the currents of capacitors, sources and conducting diodes over w and the decaying parts.

    Parameters
    ----------
    net : Wiring
    role : (m,) int array
    value : (m,) float array
    own : (m, s + k) float array
        Voltages of capacitors over the states of the sources and the states.
    system : (s, s) float array
        Generator of the sources' states.
    parting : Parting
    shared : array
        See `circuitsim.time_domain.mode_kernels.loops_of_diodes`.
    current : (m, s + c) float array
        Those of current sources and of resistors outside the tree are there.
    """
    k, s = parting.slope.shape
    through, i = current[net.links], current[net.twigs]
    for link in range(net.rest[C], net.rest[R]):
        e = net.links[link]
        for c in range(s):
            for j in range(s):
                through[link, j] += value[e] * own[e, c] * system[c, j]
        for c in range(k):
            weight = value[e] * own[e, s + c]
            if weight != 0.0:
                for j in range(s):
                    through[link, j] += weight * parting.slope[c, j]
                for p in range(through.shape[1] - s):
                    through[link, s + p] -= weight * parting.shape[c, p] * parting.rate[p]
    into(net.cut, net.tree[C], net.tree[L], net.rest[C], net.links.size, through, -1.0, i[net.tree[C] : net.tree[L]])
    loops_of_diodes(net, role, shared, i, through)
    put_back(net, i, through, current)
