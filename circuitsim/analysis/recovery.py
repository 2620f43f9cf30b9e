"""From node voltages to every branch current, where currents are unique and where they are a choice.

Resistors and current sources know their currents. What is then missing at the nodes flows through the voltage
constraints and those diodes whose ends are equal. Where these close no loop the currents are unique (leaf elimination);
where they do, the choice made is the one of least norm: what wires of equal, vanishing resistance would carry, found as
the operating point of exactly that circuit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.loops import least_norm_currents
from circuitsim.circuit.elements import DIODE
from circuitsim.compact.loops import PASSES
from circuitsim.errors import ConvergenceError
from circuitsim.kernels import COMPILED, kernel
from circuitsim.program import Structure
from circuitsim.program.blocks import block_labels
from circuitsim.program.circulation import unchangeable
from circuitsim.program.components import component_labels
from circuitsim.program.flow import NOISE, forest_flow, spanning_forest


class Branches(NamedTuple):
    """Branch currents.

    Attributes
    ----------
    current : (m,) float array
        A, SPICE signs.
    unique : (m,) bool array
        False where the current is one valid choice among others.
    carries : (m,) bool array
        Diodes with a current that is more than rounding.
    """

    current: np.ndarray
    unique: np.ndarray
    carries: np.ndarray


class _Flow(NamedTuple):
    """The flow problem left at the nodes: edges first → second, which of them are one-way, what each node sheds."""

    n_nodes: int
    first: np.ndarray
    second: np.ndarray
    one_way: np.ndarray
    need: np.ndarray
    scale: np.ndarray


def recover(
    structure: Structure,
    value: np.ndarray,
    voltages: np.ndarray,
    tight: float,
    idle: np.ndarray | None = None,
    strict: bool = False,
) -> Branches:
    """All branch currents at the given node voltages.

    Parameters
    ----------
    structure : Structure
    value : (m,) float array
        Element values, Ω, V, A.
    voltages : (n_nodes,) float array
        Node potentials, V.
    tight : float
        A diode can carry current where its ends differ by at most this share of the larger of them.
    idle : (m,) bool array, optional
        Diodes that need not carry anything, as the solver found. Where a drop is below what a double can tell, their
        ends look equal too; they carry something only where a loop of equal ends leaves a choice.
    strict : bool
        Not even there.
    """
    kind, first, second, _, n_nodes = structure.arrays
    idle = np.zeros(kind.size, dtype=bool) if idle is None else idle
    d = structure.diodes
    va, vc = voltages[first[d]], voltages[second[d]]
    closed = va - vc >= -tight * np.maximum(np.abs(va), np.abs(vc))
    if strict:
        closed &= ~idle[d]
    edges = np.sort(np.concatenate([structure.voltage_edges, d[closed]]))
    # Only the nodes that these edges touch, often few, have anything left to settle.
    touched = np.zeros(n_nodes, dtype=bool)
    touched[first[edges]] = touched[second[edges]] = True
    current, need, scale = _known_currents(structure, value, voltages, touched)
    nodes = np.flatnonzero(touched)
    number = np.empty(n_nodes, dtype=np.int64)
    number[nodes] = np.arange(nodes.size)
    flow = _Flow(
        nodes.size, number[first[edges]], number[second[edges]], kind[edges] == DIODE, need[nodes], scale[nodes]
    )
    carried, unique, noise = _settle_flow(flow, idle[edges])
    current[edges] = carried
    all_unique = np.ones(kind.size, dtype=bool)
    all_unique[edges] = unique
    carries = np.zeros(kind.size, dtype=bool)
    carries[edges] = flow.one_way & (carried > NOISE * noise)
    return Branches(current, all_unique, carries)


def _known_currents(
    structure: Structure, value: np.ndarray, voltages: np.ndarray, touched: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Currents of resistors and current sources (m,), what the others have to carry away from each node, its scale.

    The latter two only count at the nodes ``touched``.
    """
    kind, first, second, _, n_nodes = structure.arrays
    current = np.zeros(kind.size)
    r, sources = structure.resistors, structure.currents
    if kind.size > COMPILED:
        need, scale = np.zeros(n_nodes), np.zeros(n_nodes)
        kernel(_collect, kind.size)(r, sources, first, second, value, voltages, touched, current, need, scale)
        return current, need, scale
    current[r] = (voltages[first[r]] - voltages[second[r]]) / value[r]
    current[sources] = value[sources]
    size = np.abs(current)
    size[r] = (np.abs(voltages[first[r]]) + np.abs(voltages[second[r]])) / value[r]
    inward = np.bincount(second, current, n_nodes) - np.bincount(first, current, n_nodes)
    return current, inward, np.bincount(second, size, n_nodes) + np.bincount(first, size, n_nodes)


def _collect(resistors, sources, first, second, value, v, touched, current, need, scale):
    for e in resistors:
        a, b = first[e], second[e]
        amount = (v[a] - v[b]) / value[e]
        current[e] = amount
        if not (touched[a] or touched[b]):
            continue
        size = (abs(v[a]) + abs(v[b])) / value[e]
        need[a] -= amount
        need[b] += amount
        scale[a] += size
        scale[b] += size
    for e in sources:
        a, b, amount = first[e], second[e], value[e]
        current[e] = amount
        need[a] -= amount
        need[b] += amount
        scale[a] += abs(amount)
        scale[b] += abs(amount)


def _settle_flow(flow: _Flow, idle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Currents of the edges, whether each is unique, and the scale of its rounding.

    A bridge carries what its side needs, whatever loops there are elsewhere; only edges on loops leave a choice. What
    circulates in a self-loop is nobody's business: 0.
    """
    m, n = flow.first.size, flow.n_nodes
    carried, noise = np.zeros(m), np.zeros(m)
    proper = flow.first != flow.second
    bridge = proper.copy()
    edges = np.flatnonzero(proper)
    label = block_labels(n, flow.first[edges], flow.second[edges])
    bridge[edges] = np.bincount(label)[label] == 1 if edges.size else False
    active = proper & ~(bridge & idle)
    while True:
        kept = spanning_forest(n - 1, flow.first, flow.second, np.flatnonzero(active))
        carried[kept], noise[kept] = forest_flow(n - 1, flow.first[kept], flow.second[kept], flow.need, flow.scale)
        # A diode's negative rounding is zero, and its two sides settle on their own.
        rounding = active & bridge & flow.one_way & (carried < 0.0) & (carried >= -NOISE * noise)
        if not rounding.any():
            break
        active &= ~rounding
        carried[rounding] = 0.0
    carried[~bridge] = 0.0
    unique = bridge.copy()
    inside = np.flatnonzero(proper & ~bridge)
    if inside.size:
        shed = np.bincount(flow.first, carried, n) - np.bincount(flow.second, carried, n)
        nodes, ends = np.unique(np.concatenate([flow.first[inside], flow.second[inside]]), return_inverse=True)
        first, second = ends[: inside.size], ends[inside.size :]
        local = _Flow(nodes.size, first, second, flow.one_way[inside], (flow.need - shed)[nodes], flow.scale[nodes])
        _, part = np.unique(component_labels(nodes.size, first, second), return_inverse=True)
        carried[inside], noise[inside] = _least_norm_flow(local, part)
        # A diode's current may fall only where there is one.
        falls = ~local.one_way | (carried[inside] > NOISE * noise[inside])
        unique[inside] = unchangeable(local.n_nodes, first, second, falls)
    return carried, unique, noise


def _least_norm_flow(flow: _Flow, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Currents of least norm on parts with loops, one-way edges ≥ 0, and the scale of their rounding.

    One pass settles what it can resolve; the next ones what is left over, down to what each node can tell from its own
    rounding: a loop that carries a megaampere may have to feed a picoampere somewhere. Where no such currents exist
    (the voltages are no operating point) a spanning forest's currents come back, and the certificate says so.
    """
    n, m = flow.n_nodes, flow.first.size
    scale = np.maximum(flow.scale, np.abs(flow.need))
    largest = np.lexsort((np.arange(n), -scale, part))
    roots = largest[np.searchsorted(part[largest], np.arange(part.max() + 1))]
    noise = scale[roots][part[flow.first]]
    need = np.where(np.abs(flow.need) <= NOISE * flow.scale, 0.0, flow.need)
    carried = np.zeros(m)
    for _ in range(PASSES):
        rest = need - (np.bincount(flow.first, carried, n) - np.bincount(flow.second, carried, n))
        size = np.abs(carried)
        through = np.bincount(flow.first, size, n) + np.bincount(flow.second, size, n)
        rest[np.abs(rest) <= 10.0 * NOISE * np.maximum(through, np.abs(need))] = 0.0
        rest[roots] = 0.0
        if not rest.any():
            break
        try:
            one_way = flow.one_way & (carried <= 0.0)
            carried += least_norm_currents(flow.first, flow.second, one_way, rest, part, roots)
        except ConvergenceError:
            kept = spanning_forest(n - 1, flow.first, flow.second, np.arange(m))
            carried = np.zeros(m)
            carried[kept], _ = forest_flow(n - 1, flow.first[kept], flow.second[kept], need, flow.scale)
            return carried, noise
    return carried, noise
