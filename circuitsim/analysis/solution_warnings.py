"""Warnings about a solution: components without ground, nonunique potentials and currents, branches.

With controlled sources there may be several operating points, and a branch of them may end.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT
from circuitsim.errors import Problem, some
from circuitsim.program import Structure
from circuitsim.program.components import component_labels

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
    """The warning that smooth devices, ``elements``, carry more than `IMPLAUSIBLE`."""
    found = [k for k in elements.tolist() if abs(currents[k]) > IMPLAUSIBLE]
    if not found:
        return []
    most = max(found, key=lambda k: abs(float(currents[k])))
    message = f"{circuit.names[most]} carries {currents[most]:.2g} A at {drops[most]:.6g} V"
    hint = "give its model a series resistance (RS), or put a resistor in series"
    return [Problem("implausible-current", message, hint=hint, names=[circuit.names[k] for k in found])]


BY_KIND = {"floating": floating, "nonunique-potential": nonunique_potential, "nonunique-current": nonunique_current}
"""Functions that make a warning of each kind from names."""


def _part_nodes(structure: Structure, reference: int) -> list[str]:
    kind, first, second, _, n_nodes = structure.arrays
    carries = (kind != CURRENT) & (kind != CAPACITOR)
    part = component_labels(n_nodes, first[carries], second[carries])
    return [structure.named.node_names[k] for k in np.flatnonzero(part == part[reference]).tolist()]


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
    if (away[own] > SAME * away.max()).any():
        away = np.where(own, away, 0.0)
    k = int(np.argmax(away))
    name = point.circuit.node_names[k]
    return Problem(
        "several",
        f"there are several operating points: v({name}) is {point.voltages[k]:.6g} V here and "
        f"{other.voltages[k]:.6g} V in another",
        hint="start= (or a sweep) chooses the branch",
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
