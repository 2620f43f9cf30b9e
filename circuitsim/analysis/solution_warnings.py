"""Warnings about a solution: components without ground, nonunique potentials and currents, branches.

With controlled sources there may be several operating points, and a branch of them may end.

Of nonunique node voltages they state which nodes are indeterminate, and the ranges at equal energy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit import GROUND, Circuit
from circuitsim.errors import ConvergenceError, Problem, some
from circuitsim.program import Structure
from circuitsim.program.components import component_labels
from circuitsim.program.existence import bellman_ford

IMPLAUSIBLE = 1e6
"""A current, A, that no real diode carries: the largest rectifiers withstand surges of about 1e5 A."""


def solution_warnings(
    structure: Structure, free: Mapping[int, tuple[float, float]], unique: np.ndarray
) -> list[Problem]:
    """Warnings about components without ground, nonunique potentials (``free``) and nonunique currents."""
    circuit = structure.named
    found = [floating(_part_nodes(structure, reference)) for reference in structure.references.tolist()]
    if free:
        found.append(nonunique_potential([circuit.node_names[k] for k in free]))
    if not unique.all():
        found.append(nonunique_currents(circuit, unique))
    return found


def nonunique_currents(circuit: Circuit, unique: np.ndarray) -> Problem:
    """The warning that some currents (``unique`` (m,) False) are not unique."""
    return nonunique_current([circuit.names[k] for k in np.flatnonzero(~unique).tolist()])


def floating(nodes: list[str]) -> Problem:
    """The warning that a part has no path to ground; the first of its nodes is the reference."""
    message = f"no path to ground from {some(nodes)}: voltages are relative to {nodes[0]}"
    return Problem("floating", message, hint="connect a node of this part to ground (0)", names=nodes)


def nonunique_potential(nodes: list[str]) -> Problem:
    """The warning that voltages of nodes held only by blocking diodes and flat segments are not unique."""
    message = (
        f"the voltages of {some(nodes)} are not unique (only blocking diodes or flat segments of tables hold them): "
        "one value is shown, 'intervals' has the range"
    )
    return Problem("nonunique-potential", message, names=nodes)


def nonunique_current(names: list[str]) -> Problem:
    """The warning that the currents of some elements are not unique."""
    message = (
        f"the currents of {some(names)} are not unique (loops of sources, shorts or conducting diodes): "
        "the least-norm currents are shown"
    )
    return Problem("nonunique-current", message, names=names)


def implausible_currents(
    circuit: Circuit, elements: np.ndarray, currents: np.ndarray, drops: np.ndarray
) -> list[Problem]:
    """The warning that smooth devices, ``elements``, with ``currents``, A, and ``drops``, V, carry more than
    `IMPLAUSIBLE`."""
    found = elements[np.abs(currents) > IMPLAUSIBLE].tolist()
    if not found:
        return []
    most = int(np.argmax(np.abs(currents)))
    message = f"{circuit.names[elements[most]]} carries {currents[most]:.2g} A at {drops[most]:.6g} V"
    hint = "give its model a series resistance (RS), or put a resistor in series"
    return [Problem("implausible-current", message, hint=hint, names=[circuit.names[k] for k in found])]


BY_KIND = {"floating": floating, "nonunique-potential": nonunique_potential, "nonunique-current": nonunique_current}
"""Functions that make a warning of each kind from names."""


def _part_nodes(structure: Structure, reference: int) -> list[str]:
    inside = structure.part == structure.part[reference]
    return [structure.named.node_names[k] for k in np.flatnonzero(inside).tolist()]


SAME = 1e-7
"""Relative difference below which two values are equal up to rounding."""


def listed(elements: list[str], nodes: list[str]) -> str:
    """Elements, or if there are none, nodes."""
    return some(elements) if elements else f"the nodes {some(nodes)}"


def same_point(a: OperatingPoint, b: OperatingPoint) -> bool:
    """Whether two operating points are equal up to rounding."""
    pairs = ((a.voltages, b.voltages), (a.currents, b.currents))
    return all(bool((np.abs(x - y) <= SAME * np.abs(x).max(initial=0.0)).all()) for x, y in pairs)


def several(point: OperatingPoint, other: OperatingPoint) -> Problem:
    """The warning of a second operating point, with the node that differs most, preferably one of the deck itself."""
    away = np.abs(point.voltages - other.voltages)
    own = np.array(["." not in name for name in point.circuit.node_names])
    if (away[own] > SAME * np.abs(other.voltages[own]).max()).any():
        away = np.where(own, away, 0.0)
    k = int(np.argmax(away))
    name = point.circuit.node_names[k]
    return Problem(
        "several",
        f"there are several operating points: v({name}) is {point.voltages[k]:.6g} V here and "
        f"{other.voltages[k]:.6g} V in another",
        hint=".ic, start= (--start FILE of solve) or a sweep chooses the branch",
        names=[name],
    )


def jump(names: list[str]) -> Problem:
    """The warning of a branch that has ended, with the diodes that changed there."""
    return Problem(
        "jump",
        f"the branch of operating points ended (diodes {some(names)}): the operating point jumped",
        names=names,
    )


def floating_control(names: list[str]) -> Problem:
    """The warning of controls by the potential of a part not tied to ground."""
    return Problem(
        "floating-control",
        f"{some(names)}: controlled by a node without a path to ground, whose voltage is undetermined",
        hint="connect that part to ground, with a large resistor say",
        names=names,
    )


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
    if structure.grounded:
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
    return np.flatnonzero(structure.touched & (group >= 0))


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
