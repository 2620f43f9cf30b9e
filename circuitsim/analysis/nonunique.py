"""Potentials that nothing holds: which nodes may move, and how far, at the same energy."""

from __future__ import annotations

import numpy as np

from circuitsim.circuit import GROUND
from circuitsim.program import Structure
from circuitsim.program.components import component_labels


def nonunique_potentials(
    structure: Structure, voltages: np.ndarray, carries: np.ndarray
) -> dict[int, tuple[float, float]]:
    """Range of each node's potential over all steady states, V (±inf where open), for the nodes that have one.

    Parts joined by resistors, sources and diodes that carry current move together; between parts each diode that is off
    leaves its reverse voltage as room. Nodes of a part without ground are measured against its reference.

    Parameters
    ----------
    structure : Structure
    voltages : (n_nodes,) float array
        One steady state, V.
    carries : (m,) bool array
        The diodes that carry current.
    """
    if structure.derived.grounded:
        return {}
    loose, held, group = _loose(structure, carries)
    if not loose.size:
        return {}
    import networkx

    first, second, d = structure.arrays.first, structure.arrays.second, structure.diodes
    up = networkx.DiGraph()
    up.add_nodes_from(["held", *np.unique(group[loose]).tolist()])
    for a, c in zip(first[d].tolist(), second[d].tolist()):
        tail, head = ("held" if held[k] else int(group[k]) for k in (a, c))
        room = max(float(voltages[c] - voltages[a]), 0.0)
        # The anode's part can rise by this much relative to the cathode's.
        if tail != head and room < up.get_edge_data(head, tail, {"weight": np.inf})["weight"]:
            up.add_edge(head, tail, weight=room)
    rise = networkx.single_source_dijkstra_path_length(up, "held")
    fall = networkx.single_source_dijkstra_path_length(up.reverse(copy=False), "held")
    found = {}
    for k in loose.tolist():
        lo, hi = fall.get(int(group[k]), np.inf), rise.get(int(group[k]), np.inf)
        if lo > 0.0 or hi > 0.0:
            found[k] = (float(voltages[k] - lo), float(voltages[k] + hi))
    return found


def _loose(structure: Structure, carries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes that nothing holds while these diodes carry current; for each node whether it is held, and its part."""
    first, second, n_nodes = structure.arrays.first, structure.arrays.second, structure.arrays.n_nodes
    rigid = np.concatenate([structure.resistors, structure.voltage_edges, np.flatnonzero(carries)])
    group = component_labels(n_nodes, first[rigid], second[rigid])
    # A reference stands for ground in its part: nothing joins the two, so one label serves both.
    fixed = np.zeros(n_nodes, dtype=bool)
    fixed[group[GROUND]] = True
    fixed[group[structure.references]] = True
    held = fixed[group]
    touched = np.zeros(n_nodes, dtype=bool)
    touched[first] = touched[second] = True
    return np.flatnonzero(touched & ~held), held, group
