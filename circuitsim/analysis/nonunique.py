"""Nonunique node voltages: which nodes are indeterminate, and their ranges at equal energy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit import GROUND
from circuitsim.errors import ConvergenceError
from circuitsim.program import Structure
from circuitsim.program.components import component_labels
from circuitsim.program.existence import bellman_ford

Ranges = dict[int, tuple[float, float]]
"""Smallest and largest potential of nodes, V (±inf where unbounded)."""


class Level(NamedTuple):
    """Devices on flat segments of their curves: the voltage between two nodes may be anything from ``low`` to ``high``
    at the same current.

    Attributes
    ----------
    slope : (k,) int array
        Resistors of their companion models, used as positions only.
    first, second : (k,) int arrays
    low, high : (k,) float arrays
        V.
    """

    slope: np.ndarray
    first: np.ndarray
    second: np.ndarray
    low: np.ndarray
    high: np.ndarray


def nonunique_potentials(structure: Structure, voltages: np.ndarray, carries: np.ndarray) -> Ranges:
    """Range of each node's potential over all steady states, for nodes whose potential is not unique.

    Parts joined by resistors, sources and diodes that carry current move together; between parts each blocking diode
    leaves its reverse voltage as slack. Nodes of a part without ground are relative to its reference.

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
    group = _groups(structure, np.flatnonzero(carries), structure.resistors)
    loose = _loose(structure, group)
    return _ranges(loose, group, voltages, _rooms(structure, group, voltages)) if loose.size else {}


def released_potentials(
    structure: Structure, voltages: np.ndarray, carries: np.ndarray, level: Level
) -> tuple[np.ndarray, Ranges]:
    """As `nonunique_potentials`, with the slack of devices on flat segments; also potentials (n_nodes,) feasible for
    all these devices and the diodes: those given, or others where they are infeasible.

    Raises
    ------
    ConvergenceError
        There are none.
    """
    resistors = np.setdiff1d(structure.resistors, level.slope)
    group = _groups(structure, np.flatnonzero(carries), resistors)
    loose = _loose(structure, group)
    if not loose.size:
        return voltages, {}
    voltages = voltages + _shift(group, _rooms(structure, group, voltages, level))[group]
    return voltages, _ranges(loose, group, voltages, _rooms(structure, group, voltages, level))


Rooms = list[tuple[int, int, float]]
"""Two parts, and the slack of the first relative to the second, V: negative if it must fall. Part −1 is fixed."""


def _groups(structure: Structure, carries: np.ndarray, resistors: np.ndarray) -> np.ndarray:
    """The part of each node (n_nodes,), −1 if it is fixed."""
    first, second, n_nodes = structure.arrays.first, structure.arrays.second, structure.arrays.n_nodes
    rigid = np.concatenate([resistors, structure.voltage_edges, carries])
    group = component_labels(n_nodes, first[rigid], second[rigid])
    # A reference acts as ground in its part: nothing joins the two, so they share a label.
    fixed = np.zeros(n_nodes, dtype=bool)
    fixed[group[GROUND]] = True
    fixed[group[structure.references]] = True
    return np.where(fixed[group], -1, group)


def _loose(structure: Structure, group: np.ndarray) -> np.ndarray:
    """Nodes in parts that are not fixed."""
    touched = np.zeros(group.size, dtype=bool)
    touched[structure.arrays.first] = touched[structure.arrays.second] = True
    return np.flatnonzero(touched & (group >= 0))


def _rooms(structure: Structure, group: np.ndarray, voltages: np.ndarray, level: Level | None = None) -> Rooms:
    """The slacks of diodes and of devices on flat segments."""
    d = structure.diodes
    first, second = structure.arrays.first[d], structure.arrays.second[d]
    rooms = [(group[first], group[second], voltages[second] - voltages[first])]
    if level is not None:
        one, other, drop = group[level.first], group[level.second], voltages[level.first] - voltages[level.second]
        rooms += [(one, other, level.high - drop), (other, one, drop - level.low)]
    listed = [row for part in rooms for row in zip(*(x.tolist() for x in part))]
    return [(a, b, room) for a, b, room in listed if a != b and room < np.inf]


def _ranges(loose: np.ndarray, group: np.ndarray, voltages: np.ndarray, rooms: Rooms) -> Ranges:
    """How far each part may rise and fall relative to the fixed ones."""
    import networkx

    up = networkx.DiGraph()
    up.add_nodes_from([-1, *np.unique(group[loose]).tolist()])
    for a, b, room in rooms:
        room = max(room, 0.0)
        if room < up.get_edge_data(b, a, {"weight": np.inf})["weight"]:
            up.add_edge(b, a, weight=room)
    rise = networkx.single_source_dijkstra_path_length(up, -1)
    fall = networkx.single_source_dijkstra_path_length(up.reverse(copy=False), -1)
    found = {}
    for k in loose.tolist():
        lo, hi = fall.get(int(group[k]), np.inf), rise.get(int(group[k]), np.inf)
        if lo > 0.0 or hi > 0.0:
            found[k] = (float(voltages[k] - lo), float(voltages[k] + hi))
    return found


def _shift(group: np.ndarray, rooms: Rooms) -> np.ndarray:
    """Shifts of each part's potentials, V, zero for the last one, which is fixed."""
    a, b, room = np.array(rooms).reshape(-1, 3).T
    last = int(group.max()) + 1
    tail, head = (np.where(end < 0.0, last, end).astype(np.int64) for end in (a, b))
    shift, cycle = bellman_ford(last, tail, head, room)
    if cycle is None:
        return shift - shift[-1]
    raise ConvergenceError("flat segments and blocking diodes allow no node voltages for the currents found")
