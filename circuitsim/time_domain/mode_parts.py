"""Kernels: the decaying parts of one mode of a circuit without inductors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.decaying_parts import backward, decompose
from circuitsim.time_domain.mode_kernels import times
from circuitsim.time_domain.part_currents import link_flows, part_currents
from circuitsim.time_domain.trees import CURRENT, FREE, C, L, R


class Parting(NamedTuple):
    """The decaying parts of one mode.

    Attributes
    ----------
    rate : (c,) float array
    start : (c, s + k) float array
        y as sums over the states of the sources and the states.
    lift : (c, r) float array
        y as sums over the currents of `resistors`.
    weight : (r,) float array
        Square roots of the loop resistances of these currents, √Ω: `lift` has their rounding over √λ.
    drive : (c, s) float array
    shape, along : (k, c), (k, s) float arrays
        Changes of the states as sums over those of y and w.
    slope : (k, s) float array
        Slopes of the states as sums over w; those over y are −λ shape.
    current : (m, s + c) float array
        Branch currents as sums over w and y.
    value : (m,) float array
        Ω or F.
    resistors : (r,) int array
        Those outside the tree.
    """

    rate: np.ndarray
    start: np.ndarray
    lift: np.ndarray
    weight: np.ndarray
    drive: np.ndarray
    shape: np.ndarray
    along: np.ndarray
    slope: np.ndarray
    current: np.ndarray
    value: np.ndarray
    resistors: np.ndarray


def of_capacitors(net, role, of, value, shared, waves, dependent):
    """The decaying parts of a mode.

    Computed from the currents of the resistors outside the tree: they are independent, so each has the digits of its
    own size; Kirchhoff's current law gives all others.

    Parameters
    ----------
    net : Wiring
    role : (m,) int array
    of : Given
    value : (m,) float array
        Ω, F.
    shared : float array
        As in `circuitsim.time_domain.mode_kernels.loops_of_diodes`.
    waves : Waves
    dependent : (m, s + k) float array
        See `circuitsim.time_domain.modes.Mode`.
    """
    m, n, s = role.size, waves.system.shape[0], of.system.shape[0]
    k, first = n - s, net.tree[C]
    own = net.links[net.rest[R] : net.rest[L]]
    flow, root = np.zeros((own.size, n)), np.zeros((own.size, own.size))
    link_flows(net, value, waves.voltage, waves.current, flow, root)
    # Current sources change the charges.
    push = np.zeros((k, s))
    for link in range(net.rest[FREE], net.links.size):
        for t in range(first, net.tree[R]):
            if net.cut[t, link] != 0.0:
                for c in range(s):
                    push[t - first, c] -= net.cut[t, link] * waves.current[net.links[link], c]
    over, farads = dependent[of.storing], value[of.storing]
    rate, start, by_flow, drive, shape, along, slope, flows = decompose(over, flow, farads, push, of.system)
    many, current, weight = rate.size, np.zeros((m, s + rate.size)), np.empty(own.size)
    backward(root, flows)
    for r in range(own.size):
        weight[r] = root[r, r]
        for c in range(s + many):
            current[own[r], c] = flows[r, c]
    for e in of.sources:
        if role[e] == CURRENT:
            for c in range(s):
                current[e, c] = waves.current[e, c]
    parts = Parting(rate, start, times(by_flow, root.T), weight, drive, shape, along, slope, current, value, own)
    part_currents(net, role, value, dependent, of.system, parts, shared, current)
    return parts
