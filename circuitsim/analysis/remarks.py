"""What a steady state leaves open, in words: parts without ground, free nodes, currents that are a choice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT
from circuitsim.errors import Problem
from circuitsim.program import Structure
from circuitsim.program.components import component_labels


def remarks(structure: Structure, free: Mapping[int, tuple[float, float]], unique: np.ndarray) -> list[Problem]:
    """Warnings about what the circuit leaves open: parts without ground, free nodes, currents that are a choice."""
    circuit = structure.named
    found = [floating(_part_nodes(structure, reference)) for reference in structure.references.tolist()]
    if free:
        found.append(free_potential([circuit.node_names[k] for k in free]))
    if not unique.all():
        found.append(choice(circuit, unique))
    return found


def choice(circuit: Circuit, unique: np.ndarray) -> Problem:
    """The warning that some currents (``unique`` (m,) False) are one choice among others."""
    return free_current([circuit.names[k] for k in np.flatnonzero(~unique).tolist()])


def floating(nodes: list[str]) -> Problem:
    """The warning that a part has no path to ground; the first of its nodes is the reference."""
    message = f"no path to ground from {_listed(nodes)}: potentials are relative to node {nodes[0]}"
    return Problem("floating", message, hint="connect a node of this part to ground (0)", names=nodes)


def free_potential(nodes: list[str]) -> Problem:
    """The warning that blocking diodes alone hold some nodes."""
    message = (
        f"nothing but blocking diodes holds {_listed(nodes)}: one consistent value each is shown, 'intervals' has the "
        "range"
    )
    return Problem("free-potential", message, names=nodes)


def free_current(names: list[str]) -> Problem:
    """The warning that the currents of some elements are one choice among others."""
    message = (
        f"the currents of {_listed(names)} are not unique (loops of sources, shorts or conducting diodes): the choice "
        "of least norm is shown"
    )
    return Problem("free-current", message, names=names)


BY_KIND = {"floating": floating, "free-potential": free_potential, "free-current": free_current}
"""What makes the warning of a kind, from names."""


def _part_nodes(structure: Structure, reference: int) -> list[str]:
    kind, first, second, _, n_nodes = structure.arrays
    carries = (kind != CURRENT) & (kind != CAPACITOR)
    part = component_labels(n_nodes, first[carries], second[carries])
    return [structure.named.node_names[k] for k in np.flatnonzero(part == part[reference]).tolist()]


def _listed(names: list[str], shown: int = 8) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
