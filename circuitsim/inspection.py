"""Checks of a circuit without solving it: structure, likely mistakes, existence of a steady state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import elementary, expanded, stand_in
from circuitsim.errors import NoSteadyStateError, Problem, some
from circuitsim.kernels import MANY, keep_memory
from circuitsim.program import Structure, analyse, check_bounded, feasible_program, quadratic_program
from circuitsim.program.components import component_labels, strong_labels


class Report(NamedTuple):
    """The structure of a circuit in numbers.

    Attributes
    ----------
    nodes : int
        Nodes that elements touch, ground included.
    elements : int
    kinds : dict of str to int
        Elements of each kind, by name.
    parts : int
        Groups of nodes without DC paths between them.
    floating : int
        Parts without ground.
    islands : int
        Groups of nodes joined by resistors and voltage sources; only diodes (and current sources) lead out of one.
    super_nodes : int
        Groups of two or more nodes joined by voltage sources and shorts: at most one unknown each.
    unknowns : int
        Node voltages to solve for.
    free_diodes : int
        Diodes between two node voltages to solve for (what plain coordinate descent cannot handle).
    voltage_loops : int
        Voltage sources and shorts that close a loop of voltage sources and shorts; their currents are not unique.
    """

    nodes: int
    elements: int
    kinds: dict[str, int]
    parts: int
    floating: int
    islands: int
    super_nodes: int
    unknowns: int
    free_diodes: int
    voltage_loops: int


def inspect_circuit(circuit: Circuit) -> tuple[Report, tuple[Problem, ...], NoSteadyStateError | None]:
    """Analyse a circuit without solving it: the report, likely mistakes, and why no steady state exists (None: one
    exists)."""
    if len(circuit) > MANY:
        keep_memory()
    expansion = expanded(circuit)
    structure = analyse(elementary(stand_in(expansion.circuit)))
    contradiction = None
    try:
        if circuit.laws:  # only a solution decides
            from circuitsim.analysis.controlled import prepared_controlled
            from circuitsim.certificate import TOLERANCE

            prepared_controlled(expansion.circuit, TOLERANCE).solve()
        else:
            with np.errstate(over="ignore", divide="ignore"):
                program, _ = feasible_program(structure, quadratic_program(structure, structure.arrays.value, False))
                check_bounded(structure, program)
    except NoSteadyStateError as error:
        contradiction = expansion.restated(error)
    lints = (*_dangling(circuit), *_pointless(circuit), *_floating(structure, circuit), *_diode_rings(structure))
    return _report(structure, circuit), lints, contradiction


def _groups(label: np.ndarray, touched: np.ndarray) -> int:
    """Number of components with a node that an element touches; the label is the smallest node."""
    return int(np.count_nonzero((label == np.arange(label.size)) & touched))


def _report(structure: Structure, circuit: Circuit) -> Report:
    _, first, second, _, n_nodes = structure.arrays
    touched = structure.touched
    joins = np.concatenate([structure.resistors, structure.voltage_edges])
    island = component_labels(n_nodes, first[joins], second[joins])
    sizes = np.bincount(structure.forest.root[touched], minlength=1)
    free = (structure.ends[:, structure.branches[1]] < structure.n).all(axis=0)
    return Report(
        int(touched[: len(circuit.node_names)].sum()),
        len(circuit),
        {row.name: n for row, n in circuit.count_models()},
        _groups(structure.part, touched),
        structure.references.size,
        _groups(island, touched),
        int((sizes > 1).sum()),
        structure.n,
        int(free.sum()),
        structure.forest.closing.size,
    )


def _dangling(circuit: Circuit) -> Iterator[Problem]:
    """Nodes with one terminal that control no source: often a misspelt name."""
    _, first, second, _, n_nodes = circuit.arrays()
    lonely = np.bincount(first, minlength=n_nodes) + np.bincount(second, minlength=n_nodes) == 1
    lonely[GROUND] = False
    for law in circuit.laws.values():
        for control in law.voltages:
            lonely[[control.plus, control.minus]] = False
    for switch in circuit.dynamics.switches.values() if circuit.dynamics is not None else ():
        if not isinstance(switch.control, str):
            lonely[list(switch.control)] = False
    for k in np.flatnonzero(lonely[first] | lonely[second]).tolist():
        for node in (int(first[k]), int(second[k])):
            if lonely[node]:
                name, element = circuit.node_names[node], circuit.names[k]
                message = f"node {name} is connected to {element} only: no current can flow there"
                hint = "check the spelling of the node's name"
                yield Problem("dangling", message, circuit.origin(k), hint, [name, element])


def _pointless(circuit: Circuit) -> Iterator[Problem]:
    """Elements with both terminals on one node."""
    _, first, second, _, _ = circuit.arrays()
    for k in np.flatnonzero(first == second).tolist():
        name, node = circuit.names[k], circuit.node_names[int(first[k])]
        message, hint = f"both ends of {name} are on node {node}", "is one of its nodes misspelt?"
        yield Problem("self-loop", message, circuit.origin(k), hint, [name])


def _floating(structure: Structure, circuit: Circuit) -> Iterator[Problem]:
    """Parts without a path to ground."""
    part = structure.part[: len(circuit.node_names)]
    for reference in structure.references.tolist():
        nodes = [circuit.node_names[k] for k in np.flatnonzero(part == part[reference]).tolist()]
        message = f"no path to ground from {some(nodes)}: voltages are relative to {circuit.node_names[reference]}"
        yield Problem("floating", message, None, "connect one of these nodes to ground (0)", nodes)


def _diode_rings(structure: Structure) -> Iterator[Problem]:
    """Loops of ideal diodes of one direction, which force their nodes to equal voltages.

    Around the loop, each diode voltage is at most 0 and their sum is 0, so each is 0. Nodes joined by elements of 0 V
    count as one, so an ammeter in the loop makes no difference.
    """
    circuit = structure.named
    kind, first, second, value, n_nodes = structure.arrays
    shorts = (kind == INDUCTOR) | (((kind == RESISTOR) | (kind == VOLTAGE)) & (value == 0.0))
    joined = component_labels(n_nodes, first[shorts], second[shorts])
    ends = np.concatenate([joined[first[structure.diodes]], joined[second[structure.diodes]]])
    touched, numbered = np.unique(ends, return_inverse=True)
    anode, cathode = numbered.reshape(2, -1)
    if not np.intersect1d(anode, cathode).size:  # spares small decks scipy
        return
    label = strong_labels(touched.size, anode, cathode)
    inside = (label[anode] == label[cathode]) & (anode != cathode)
    rings: dict[int, list[int]] = {}
    for ring, k in zip(label[anode[inside]].tolist(), structure.diodes[inside].tolist()):
        rings.setdefault(ring, []).append(k)
    for members in rings.values():
        names = [circuit.names[k] for k in members]
        nodes = [circuit.node_names[node] for node in sorted({int(end[k]) for k in members for end in (first, second)})]
        message = f"ideal diodes around a loop short nodes {some(nodes)}: {some(names)}"
        hint = "is a diode the wrong way round? Current passes an ideal diode at 0 V: such a loop is a wire"
        yield Problem("diode-ring", message, circuit.origin(members[0]), hint, [*names, *nodes])
