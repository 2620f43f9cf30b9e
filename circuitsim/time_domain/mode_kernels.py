"""Kernels: the linear system at one set of conducting diodes, from a normal tree.

Branches are sorted by role, so the classes (sources and conducting diodes; capacitors; resistors; inductors; blocking
diodes and current sources) are ranges of the tree and of its links. The same for real and complex numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.quotients import quotient
from circuitsim.time_domain.trees import FIXED, FREE, C, L, R

CANCELLED = 1e-15
"""Share of the magnitudes in a sum below which it is zero."""


class Waves(NamedTuple):
    """Branch voltages and currents as rows over z = (states, states of the sources), and the system matrix."""

    voltage: np.ndarray
    current: np.ndarray
    system: np.ndarray


def solved(matrix, right):
    """``right`` becomes the solution for a symmetric positive definite ``matrix``, which is overwritten (LDLᵀ)."""
    n, columns = right.shape
    for j in range(n):
        for i in range(j + 1, n):
            if matrix[i, j] != 0.0:
                share = quotient(matrix[i, j], matrix[j, j])
                for k in range(j + 1, i + 1):
                    matrix[i, k] -= share * matrix[k, j]
                for c in range(columns):
                    right[i, c] -= share * right[j, c]
    for j in range(n - 1, -1, -1):
        for c in range(columns):
            right[j, c] = quotient(right[j, c], matrix[j, j])
        for i in range(j):
            share = matrix[j, i]
            if share != 0.0:
                for c in range(columns):
                    right[i, c] -= share * right[j, c]


def gram(net, first, last, begin, end, weight, matrix):
    """Add F w Fᵀ of a range of the tree and a range of the links with these weights."""
    for k in range(begin, end):
        for i in range(first, last):
            if net.cut[i, k] != 0.0:
                for j in range(first, last):
                    matrix[i - first, j - first] += net.cut[i, k] * weight[k - begin] * net.cut[j, k]


def across(net, first, last, k, waves, out):
    """Add the voltages of a range of the tree to those of link ``k``."""
    for t in range(first, last):
        sign = net.cut[t, k]
        if sign != 0.0:
            for c in range(out.size):
                out[c] += sign * waves[net.twigs[t], c]


def between(net, last, k, waves, out):
    """Fill in the voltage of link ``k`` from those of the tree before ``last``.

    What is left over where the terms of a sum cancel is zero: the sign of a diode's voltage would be that of rounding.
    Derivatives, the imaginary parts, stay.
    """
    size = np.zeros(out.size)
    out[:] = 0.0
    for t in range(last):
        if net.cut[t, k] != 0.0:
            for c in range(out.size):
                size[c] += abs(waves[net.twigs[t], c])
    across(net, 0, last, k, waves, out)
    for c in range(out.size):
        if abs(out[c].real) <= CANCELLED * size[c]:
            out[c] -= out[c].real


def into(net, t, begin, end, waves, out):
    """Add the currents of a range of links to those into the cut of branch ``t`` of the tree."""
    for k in range(begin, end):
        sign = net.cut[t, k]
        if sign != 0.0:
            for c in range(out.size):
                out[c] += sign * waves[net.links[k], c]


def resistors(net, value, waves):
    """Potentials of the tree's resistors from the currents into their cuts."""
    n, tree, rest = waves.system.shape[0], net.tree, net.rest
    t0, t1, l0, l1 = tree[R], tree[R + 1], rest[R], rest[R + 1]
    conductance = np.zeros(l1 - l0, waves.voltage.dtype)
    for k in range(l0, l1):
        conductance[k - l0] = quotient(1.0, value[net.links[k]])
    matrix = np.zeros((t1 - t0, t1 - t0), waves.voltage.dtype)
    right = np.zeros((t1 - t0, n), waves.voltage.dtype)
    drive = np.zeros((l1 - l0, n), waves.voltage.dtype)
    for k in range(l0, l1):
        across(net, 0, t0, k, waves.voltage, drive[k - l0])
    for t in range(t0, t1):
        matrix[t - t0, t - t0] = quotient(1.0, value[net.twigs[t]])
        into(net, t, rest[L], rest[L + 1], waves.current, right[t - t0])
        into(net, t, rest[FREE], rest[FREE + 1], waves.current, right[t - t0])
        for k in range(l0, l1):
            if net.cut[t, k] != 0.0:
                for c in range(n):
                    right[t - t0, c] += net.cut[t, k] * conductance[k - l0] * drive[k - l0, c]
    gram(net, t0, t1, l0, l1, conductance, matrix)
    solved(matrix, right)
    for t in range(t0, t1):
        for c in range(n):
            waves.voltage[net.twigs[t], c] = -right[t - t0, c]
            waves.current[net.twigs[t], c] = quotient(-right[t - t0, c], value[net.twigs[t]])
    for k in range(l0, l1):
        across(net, t0, t1, k, waves.voltage, drive[k - l0])
        for c in range(n):
            waves.voltage[net.links[k], c] = drive[k - l0, c]
            waves.current[net.links[k], c] = conductance[k - l0] * drive[k - l0, c]


def capacitors(net, value, rate, waves):
    """Charges of the tree's capacitors with those in loops of capacitors and sources."""
    n, tree, rest = waves.system.shape[0], net.tree, net.rest
    t0, t1, l0, l1 = tree[C], tree[C + 1], rest[C], rest[C + 1]
    matrix = np.zeros((t1 - t0, t1 - t0), waves.voltage.dtype)
    slope = np.zeros((t1 - t0, n), waves.voltage.dtype)
    drift = np.zeros((l1 - l0, n), waves.voltage.dtype)
    for k in range(l0, l1):
        across(net, 0, t0, k, rate, drift[k - l0])
    for t in range(t0, t1):
        matrix[t - t0, t - t0] = value[net.twigs[t]]
        into(net, t, rest[R], rest[FREE + 1], waves.current, slope[t - t0])
        for k in range(l0, l1):
            if net.cut[t, k] != 0.0:
                for c in range(n):
                    slope[t - t0, c] += net.cut[t, k] * value[net.links[k]] * drift[k - l0, c]
    gram(net, t0, t1, l0, l1, value[net.links[l0:l1]], matrix)
    solved(matrix, slope)
    for t in range(t0, t1):
        for c in range(n):
            waves.system[t - t0, c] = -slope[t - t0, c]
            waves.current[net.twigs[t], c] = -value[net.twigs[t]] * slope[t - t0, c]
    for k in range(l0, l1):
        for t in range(t0, t1):
            if net.cut[t, k] != 0.0:
                for c in range(n):
                    drift[k - l0, c] -= net.cut[t, k] * slope[t - t0, c]
        for c in range(n):
            waves.current[net.links[k], c] = value[net.links[k]] * drift[k - l0, c]


def in_loops(net, waves):
    """Voltages of the capacitors in loops of capacitors and sources."""
    for k in range(net.rest[C], net.rest[C + 1]):
        across(net, 0, net.tree[C + 1], k, waves.voltage, waves.voltage[net.links[k]])


def sums_of_currents(net, given):
    """Currents of the inductors outside the tree (c,) from state currents and the sources' states, and back: matrices
    (2, c, c) and (2, c, s).

    Where inductors and current sources meet in the cut of a resistor of the tree, the sum of their currents, which is
    that of the resistor but for other links, is a state in place of one of them: in a large resistance it is many
    digits smaller than they are. Large resistances come first. ``given`` (m, s) are the values of current sources over
    the sources' states, 0 for all other elements.
    """
    l0, count, s = net.rest[L], net.rest[L + 1] - net.rest[L], given.shape[1]
    found, taken, row = np.zeros((2, count, count)), np.zeros(count, np.bool_), np.empty(count)
    of_sources, driven = np.zeros((2, count, s)), np.empty(s)
    for k in range(count):
        found[0, k, k] = found[1, k, k] = 1.0
    for t in range(net.tree[R + 1] - 1, net.tree[R] - 1, -1):
        # The cut over the states so far: all entries are −1, 0 or 1, as those of the cut-set matrix, or turns ratios.
        p = -1
        for j in range(count):
            row[j], size = 0.0, 0.0
            for k in range(count):
                row[j] += net.cut[t, l0 + k] * found[0, k, j]
                size += abs(net.cut[t, l0 + k] * found[0, k, j])
            row[j] = row[j] if abs(row[j]) > CANCELLED * size else 0.0
            if row[j] != 0.0 and not taken[j] and (p < 0 or abs(row[j]) >= abs(row[p])):
                p = j
        if p < 0:
            continue
        taken[p] = True
        for c in range(s):
            driven[c] = 0.0
        for k in range(net.rest[FREE], net.rest[FREE + 1]):
            if net.cut[t, k] != 0.0:
                for c in range(s):
                    driven[c] += net.cut[t, k] * given[net.links[k], c]
        for c in range(s):
            of_sources[1, p, c] = driven[c]
            for k in range(count):
                driven[c] += net.cut[t, l0 + k] * of_sources[0, k, c]
        for k in range(count):
            of_sum = found[0, k, p] / row[p]
            for j in range(count):
                found[0, k, j] -= of_sum * row[j]
            for c in range(s):
                of_sources[0, k, c] -= of_sum * driven[c]
            found[0, k, p] = of_sum
            found[1, p, k] = net.cut[t, l0 + k]
    return found, of_sources


def inductors(net, value, coupling, rate, back, waves):
    """Fluxes of the inductors outside the tree with those in cuts of inductors and sources.

    ``back`` gives the slopes of the states from those of their currents and the sources' states (`sums_of_currents`).
    """
    n, tree, rest = waves.system.shape[0], net.tree, net.rest
    t0, l0, k0 = tree[L], rest[L], tree[C + 1] - tree[C]
    inside, outside = tree[L + 1] - t0, rest[L + 1] - l0
    coils = np.empty(outside + inside, np.int64)
    onto = np.zeros((outside + inside, outside), waves.voltage.dtype)
    drift = np.zeros((outside + inside, n), waves.voltage.dtype)
    push = np.zeros((outside, n), waves.voltage.dtype)
    for k in range(outside):
        coils[k] = net.links[l0 + k]
        onto[k, k] = 1.0
        across(net, 0, t0, l0 + k, waves.voltage, push[k])
    for t in range(inside):
        coils[outside + t] = net.twigs[t0 + t]
        for k in range(outside):
            onto[outside + t, k] = -net.cut[t0 + t, l0 + k]
        into(net, t0 + t, rest[FREE], rest[FREE + 1], rate, drift[outside + t])
        for c in range(n):
            drift[outside + t, c] = -drift[outside + t, c]
    inductance = np.zeros((coils.size, coils.size), waves.voltage.dtype)
    for a in range(coils.size):
        for b in range(coils.size):
            inductance[a, b] = coupling[coils[a], coils[b]] if coupling.size else 0.0
        inductance[a, a] += value[coils[a]]
    image = times(inductance, onto)
    matrix = times(onto.T, image)
    missing = times(image.T, drift)
    for k in range(outside):
        for c in range(n):
            push[k, c] -= missing[k, c]
    solved(matrix, push)
    for k in range(outside):
        for j in range(outside):
            if back[0][k, j] != 0.0:
                for c in range(n):
                    waves.system[k0 + k, c] += back[0][k, j] * push[j, c]
        for c in range(back[1].shape[1]):
            waves.system[k0 + k, n - back[1].shape[1] + c] += back[1][k, c]
    drift += times(onto, push)
    flux = times(inductance, drift)
    for a in range(coils.size):
        for c in range(n):
            waves.voltage[coils[a], c] = flux[a, c]
        if a >= outside:
            into(net, t0 + a - outside, l0, rest[FREE + 1], waves.current, waves.current[coils[a]])
            for c in range(n):
                waves.current[coils[a], c] = -waves.current[coils[a], c]


def times(a, b):
    """The product of two matrices."""
    out = np.zeros((a.shape[0], b.shape[1]), b.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += a[i, k] * b[k, j]
    return out


def blocking(net, counts, given, waves):
    """Floating parts: equal infinitesimal conductances of blocking diodes choose their potentials.

    ``counts`` (m,) says which branches are such diodes; ``given`` is empty where all free branches of the tree are,
    else the matrix of least squares.
    """
    n, tree, rest = waves.system.shape[0], net.tree, net.rest
    t0, t1, l0, l1 = tree[FREE], tree[FREE + 1], rest[FREE], rest[FREE + 1]
    gap = np.zeros((l1 - l0, n), waves.voltage.dtype)
    for k in range(l0, l1):
        between(net, t0, k, waves.voltage, gap[k - l0])
    weight = np.zeros(l1 - l0)
    for k in range(l0, l1):
        weight[k - l0] = 1.0 if counts[net.links[k]] else 0.0
    chosen = chosen_by(net, weight, gap, given)
    for t in range(t0, t1):
        for c in range(n):
            waves.voltage[net.twigs[t], c] = -chosen[t - t0, c]
    for k in range(l0, l1):
        between(net, t1, k, waves.voltage, gap[k - l0])
        for c in range(n):
            waves.voltage[net.links[k], c] = gap[k - l0, c]


def chosen_by(net, weight, gap, given):
    """The least-squares potentials of the free branches of the tree."""
    t0, t1, l0, l1 = net.tree[FREE], net.tree[FREE + 1], net.rest[FREE], net.rest[FREE + 1]
    found = np.zeros((t1 - t0, gap.shape[1]), gap.dtype)
    for t in range(t1 - t0):
        for k in range(l1 - l0):
            share = given[t, k] if given.size else net.cut[t0 + t, l0 + k] * weight[k]
            if share != 0.0:
                for c in range(gap.shape[1]):
                    found[t, c] += share * gap[k, c]
    if not given.size:
        matrix = np.eye(t1 - t0)
        gram(net, t0, t1, l0, l1, weight, matrix)
        twice_solved(matrix, found)
    return found


def twice_solved(matrix, right):
    """As `solved`, with one step of refinement; ``matrix`` is real."""
    n, columns = right.shape
    factor, found = matrix.copy(), right.copy()
    solved(factor, found)
    for i in range(n):
        for j in range(n):
            if matrix[i, j] != 0.0:
                for c in range(columns):
                    right[i, c] -= matrix[i, j] * found[j, c]
    solved(matrix, right)
    right += found


def conducting(net, counts, given, waves):
    """Loops of conducting diodes: equal infinitesimal resistances share the current; ``given`` as in `blocking`."""
    n, tree, rest = waves.system.shape[0], net.tree, net.rest
    t1, l1 = tree[FIXED + 1], rest[FIXED + 1]
    carried = np.zeros((t1, n), waves.voltage.dtype)
    for t in range(t1):
        into(net, t, l1, rest[FREE + 1], waves.current, carried[t])
    shared = np.zeros((l1, n), waves.voltage.dtype)
    for k in range(l1):
        for t in range(t1):
            share = given[k, t] if given.size else (net.cut[t, k] if counts[net.twigs[t]] else 0.0)
            if share != 0.0:
                for c in range(n):
                    shared[k, c] -= share * carried[t, c]
    if not given.size and l1:
        matrix = np.eye(l1)
        for t in range(t1):
            if counts[net.twigs[t]]:
                for i in range(l1):
                    for j in range(l1):
                        matrix[i, j] += net.cut[t, i] * net.cut[t, j]
        twice_solved(matrix, shared)
    for k in range(l1):
        for c in range(n):
            waves.current[net.links[k], c] = shared[k, c]
    for t in range(t1):
        into(net, t, 0, l1, waves.current, carried[t])
        for c in range(n):
            waves.current[net.twigs[t], c] = -carried[t, c]


def mismatches(net, given, last, first, loops, cuts):
    """Fill in what no finite current and voltage meets: of loops of classes up to ``last``, cuts from ``first`` on."""
    t1, l1, n = net.tree[last + 1], net.rest[last + 1], given.shape[1]
    gap = np.zeros((l1, n), given.dtype)
    for k in range(l1):
        across(net, 0, t1, k, given, gap[k])
        for c in range(n):
            gap[k, c] -= given[net.links[k], c]
    matrix = np.eye(l1)
    for t in range(t1):
        for i in range(l1):
            if net.cut[t, i] != 0.0:
                for j in range(l1):
                    matrix[i, j] += net.cut[t, i] * net.cut[t, j]
    twice_solved(matrix, gap)
    for k in range(l1):
        for c in range(n):
            loops[net.links[k], c] = gap[k, c]
    for t in range(t1):
        e = net.twigs[t]
        into(net, t, 0, l1, loops, loops[e])
        for c in range(n):
            loops[e, c] = -loops[e, c]
    t0, t2, l0, l2 = net.tree[first], net.tree[FREE + 1], net.rest[first], net.rest[FREE + 1]
    short = np.zeros((t2 - t0, n), given.dtype)
    for t in range(t0, t2):
        for c in range(n):
            short[t - t0, c] = -given[net.twigs[t], c]
        for k in range(l0, l2):
            if net.cut[t, k] != 0.0:
                for c in range(n):
                    short[t - t0, c] -= net.cut[t, k] * given[net.links[k], c]
    matrix = np.eye(t2 - t0)
    gram(net, t0, t2, l0, l2, np.ones(l2 - l0), matrix)
    twice_solved(matrix, short)
    for t in range(t0, t2):
        for c in range(n):
            cuts[net.twigs[t], c] = short[t - t0, c]
    for k in range(l0, l2):
        across(net, t0, t2, k, cuts, cuts[net.links[k]])


def fill(net, value, coupling, rate, back, by_voltage, by_current, waves, complete):
    """Voltages, currents and slopes of the states; sources, capacitors of the tree and inductors outside are given.
    Where not ``complete`` voltages alone, of a circuit without inductors."""
    resistors(net, value, waves)
    in_loops(net, waves)
    if complete:
        capacitors(net, value, rate, waves)
        inductors(net, value, coupling, rate, back, waves)
    blocking(net, by_voltage[0], by_voltage[1], waves)
    if complete:
        conducting(net, by_current[0], by_current[1], waves)
