"""The error of a foreign answer: node voltages of any solver, branch currents by Kirchhoff's laws, our certificate."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.solve import solve
from circuitsim.certificate import EQUATIONS
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.errors import CircuitError
from circuitsim.program import Structure, analyse
from circuitsim.program.blocks import block_labels
from circuitsim.program.components import component_labels
from circuitsim.program.flow import forest_flow, spanning_forest

SLACKS = (1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2)
"""How far apart the ends of a conducting diode may be, tried in turn; the answer is judged by the kindest."""
MOVES = (1e-12, 1e-10, 1e-9)
"""How far apart, in shares of the largest potential, ends may be that are made equal: no farther than the tolerance of
the answer."""
EQUAL = 1e-12
"""Ends that were made equal differ by less than this share of their potentials."""
LEAK = 1e15
"""Resistance, Ω, that takes what 1 Ω wires of a loop cannot carry: the imbalance of an approximate answer."""


class Verified(NamedTuple):
    """Worst relative violation of the circuit's equations, and which equation that is."""

    error: float
    equation: str


def verified_error(circuit: Circuit, voltages: np.ndarray, good: float = 0.0) -> Verified:
    """The certificate's worst relative violation at some node voltages.

    Which diodes conduct is not known of a foreign answer, and where one does its ends are hardly ever equal to the last
    bit, which at zero volts is all that a local scale allows. So the most favourable reading counts: ends of diodes
    that are closer than some share of their own potentials count as equal (`SLACKS`), or are made equal where they are
    closer than a small share of the largest potential of all (`MOVES`); what makes the answer look best is taken.

    Parameters
    ----------
    circuit : Circuit
    voltages : (n_nodes,) float array
        The answer, V; any constant may be added.
    good : float
        Stop looking for a better slack at this error.
    """
    structure, value = analyse(circuit), circuit.arrays().value
    best = Verified(float("inf"), "not finite")
    if voltages.shape != (structure.arrays.n_nodes,) or not np.isfinite(voltages).all():
        return best
    voltages = voltages - voltages[0]
    views = itertools.chain(
        ((voltages, slack) for slack in SLACKS),
        ((_with_equal_ends(structure, voltages, move), EQUAL) for move in MOVES),
    )
    for answer, tight in views:
        best = min(best, _judged(structure, value, answer, tight))
        if best.error <= good:
            break
    return best


def _judged(structure: Structure, value: np.ndarray, voltages: np.ndarray, tight: float) -> Verified:
    """The certificate's word on an answer if diodes with ends as close as ``tight`` may conduct."""
    kind, first, second, resistance_pattern, n_nodes = structure.arrays
    worst, relative = np.empty(len(EQUATIONS)), np.empty(len(EQUATIONS))
    with np.errstate(all="ignore"):
        current = _currents(structure, value, voltages, tight)
        small_kernel("worst_violations", n_nodes)(
            kind,
            first,
            second,
            resistance_pattern,
            value,
            voltages,
            np.zeros(n_nodes),
            np.zeros(n_nodes, dtype=bool),
            current,
            np.empty((2, n_nodes)),
            worst,
            relative,
        )
    k = int(np.argmax(relative))
    return Verified(float(relative[k]), EQUATIONS[k])


def _currents(structure: Structure, value: np.ndarray, voltages: np.ndarray, tight: float) -> np.ndarray:
    """Branch currents (m,), A, at node potentials: Ohm's law in resistors, Kirchhoff's current law elsewhere.

    Sources, shorts and diodes with ends as close as ``tight`` carry what is missing at the nodes, by leaf elimination
    on a spanning forest; those off the forest carry what wires of 1 Ω would.
    """
    kind, first, second, _, n_nodes = structure.arrays
    current = np.where(kind == CURRENT, value, 0.0)
    r, d = structure.resistors, structure.diodes
    current[r] = (voltages[first[r]] - voltages[second[r]]) / value[r]
    at_anode, at_cathode = voltages[first[d]], voltages[second[d]]
    closed = at_anode - at_cathode >= -tight * np.maximum(np.abs(at_anode), np.abs(at_cathode))
    edges = np.concatenate([structure.voltage_edges, d[closed]])
    edges = edges[first[edges] != second[edges]]
    tree = spanning_forest(n_nodes - 1, first, second, edges)
    if tree.size < edges.size:
        shared = _shared(first[edges], second[edges], kind[edges] == DIODE, _missing(structure, current))
        tree = spanning_forest(n_nodes - 1, first, second, edges[np.argsort(-np.abs(shared), kind="stable")])
        current[edges] = shared
        current[tree] = 0.0
    size = np.bincount(first, np.abs(current), n_nodes) + np.bincount(second, np.abs(current), n_nodes)
    missing = _missing(structure, current)
    current[tree] = forest_flow(n_nodes - 1, first[tree], second[tree], missing, size)
    return current


def _missing(structure: Structure, current: np.ndarray) -> np.ndarray:
    """Net current into each node (n_nodes,), A."""
    _, first, second, _, n_nodes = structure.arrays
    return np.bincount(second, current, n_nodes) - np.bincount(first, current, n_nodes)


def _shared(first: np.ndarray, second: np.ndarray, one_way: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Currents (e,), A, of edges of 1 Ω that carry ``missing`` (n_nodes,), A, away; one-way edges have a diode each.

    Zero where they cannot be found.
    """
    nodes, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
    m, n, d = first.size, nodes.size, np.flatnonzero(one_way)
    # Node 0 is a ground of its own; behind the resistor of a one-way edge its diode begins at a node of its own.
    first, second, middle = ends[:m] + 1, ends[m:] + 1, np.arange(d.size) + n + 1
    every, ground = np.arange(n) + 1, np.zeros(n, dtype=np.int64)
    behind = second.copy()
    behind[d] = middle
    kind = np.repeat(np.array([RESISTOR, DIODE, RESISTOR, CURRENT], dtype=np.int8), [m, d.size, n, n])
    value = np.concatenate([np.ones(m), np.full(d.size, np.nan), np.full(n, LEAK), missing[nodes]])
    a, c = np.concatenate([first, middle, every, ground]), np.concatenate([behind, second[d], ground, every])
    try:
        return solve(Circuit.from_arrays(kind, a, c, value, n + d.size + 1), tolerance=1e-6).currents[:m]
    except CircuitError:
        return np.zeros(m)


def _with_equal_ends(structure: Structure, voltages: np.ndarray, move: float) -> np.ndarray:
    """The answer with diodes and idle resistors shorted whose ends differ by at most ``move`` of the largest potential.

    Idle are resistors on no loop of conducting elements: Kirchhoff's current law leaves them no current. Nodes so
    joined take the potential of one that sources hold against ground, or else their mean.
    """
    first, second, n_nodes = structure.arrays.first, structure.arrays.second, structure.arrays.n_nodes
    close = np.abs(voltages[first] - voltages[second]) <= move * np.abs(voltages).max(initial=0.0)
    d, r = structure.diodes[close[structure.diodes]], structure.resistors
    edges = np.concatenate([r, structure.voltage_edges, structure.currents, d])
    label = block_labels(n_nodes, first[edges], second[edges])
    idle = np.bincount(label + 1)[label[: r.size] + 1] == 1
    edges = np.concatenate([d, r[close[r] & idle]])
    group = component_labels(n_nodes, first[edges], second[edges])
    common = np.bincount(group, voltages, n_nodes) / np.maximum(np.bincount(group, minlength=n_nodes), 1)
    held = np.flatnonzero(structure.coordinate >= structure.n)[::-1]
    common[group[held]] = voltages[held]
    return common[group]


def distance(voltages: np.ndarray, exact: np.ndarray) -> float:
    """Largest |Δv| against the largest |v| of the circuit: a kinder, circuit-wide measure."""
    scale = float(np.abs(exact).max(initial=0.0))
    gap = np.abs((voltages - voltages[0]) - (exact - exact[0])).max(initial=0.0)
    return float(gap / scale) if scale else float(gap)
