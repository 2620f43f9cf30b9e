"""Circuits with an acyclic control graph: section by section with the convex solver, exact."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solution_warnings import nonunique_currents, nonunique_potential
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.controlled.certificate import certify_controlled
from circuitsim.controlled.law_arrays import LawArrays
from circuitsim.controlled.sections import Hold, Section, Sections
from circuitsim.controlled.verdict import Uniqueness
from circuitsim.errors import NoSteadyStateError, Problem

Solve = Callable[[Circuit], OperatingPoint]


class _Whole:
    """Potentials, currents and drops, filled in section by section."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit, self.arrays = circuit, circuit.arrays()
        n, m = self.arrays.n_nodes, self.arrays.kind.size
        self.voltages, self.currents, self.drops = np.zeros(n), np.zeros(m), np.zeros(m)
        self.unique, self.known = np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
        self.intervals: dict[str, tuple[float | None, float | None]] = {}
        self.holds: list[Hold] = []
        self.floating: list[Problem] = []

    def demanded(self, k: int, law: Law) -> float:
        """The value that a controlled element's equation gives, from known quantities."""
        value = float(self.arrays.value[k])
        terms = [c * (self.voltages[p] - self.voltages[m]) for c, p, m in law.voltages]
        terms += [c * self.currents[e] for c, e in law.currents]
        return law.constant + (1.0 if math.isnan(value) else value) * math.fsum(terms)

    def hold(self, step: Hold) -> None:
        """A held node."""
        k, law = step.element, self.circuit.laws.get(step.element)
        is_source = self.arrays.kind[k] == VOLTAGE
        volts = self.demanded(k, law) if law is not None else (float(self.arrays.value[k]) if is_source else 0.0)
        self.voltages[step.node] = self.voltages[step.other] + step.sign * volts
        self.drops[k], self.known[k] = volts, True
        self.holds.append(step)

    def section(self, step: Section, solve: Solve) -> None:
        """A section, as a circuit of independent sources."""
        point = solve(section_circuit(self.circuit, step, self.value, lambda node: float(self.voltages[node]))[0])
        names = self.circuit.node_names
        for node in step.nodes.tolist():
            self.voltages[node] = point[names[node]]
        count = step.elements.size
        self.currents[step.elements] = point.currents[:count]
        self.drops[step.elements] = point.drops[:count]
        self.unique[step.elements] = point.unique[:count]
        self.known[step.elements] = True
        inside = {names[node] for node in step.nodes.tolist()}
        self.intervals |= {name: ends for name, ends in point.intervals.items() if name in inside}
        self.floating += [problem for problem in point.warnings if problem.kind == "floating"]

    def value(self, k: int) -> float:
        """The value of an element of a section, by its equation if it is controlled."""
        law = self.circuit.laws.get(k)
        return float(self.arrays.value[k]) if law is None else self.demanded(k, law)

    def warnings(self) -> list[Problem]:
        """Warnings about what the sections leave indeterminate."""
        found = list(self.floating)
        if self.intervals:
            found.append(nonunique_potential(list(self.intervals)))
        if not self.unique.all():
            found.append(nonunique_currents(self.circuit, self.unique))
        return found

    def held_currents(self) -> None:
        """Currents of the holding elements, from the outermost nodes to ground, by Kirchhoff's current law."""
        kind, first, second, value, _ = self.arrays
        held = {hold.element for hold in self.holds}
        between = ~self.known
        self.drops[between] = (self.voltages[first] - self.voltages[second])[between]
        source = kind == CURRENT
        self.currents[source] = value[source]
        for k, law in self.circuit.laws.items():
            if law.quantity is Quantity.CURRENT:
                self.currents[k] = self.demanded(k, law)
        ohmic = between & (kind == RESISTOR)  # held elements are known: none of these is a short
        self.currents[ohmic] = self.drops[ohmic] / value[ohmic]
        leaving: dict[int, list[float]] = {}
        for k in range(kind.size):
            if k not in held:
                leaving.setdefault(int(first[k]), []).append(float(self.currents[k]))
                leaving.setdefault(int(second[k]), []).append(-float(self.currents[k]))
        for hold in reversed(self.holds):
            # Kirchhoff's current law at the node gives the holder's current, with the sign of its direction.
            total = math.fsum(leaving.get(hold.node, ()))
            self.currents[hold.element] = -hold.sign * total
            leaving.setdefault(hold.other, []).append(total)


def section_circuit(
    circuit: Circuit, step: Section, value: Callable[[int], float], potential: Callable[[int], float]
) -> tuple[Circuit, list[int]]:
    """A section as a circuit of independent sources, and the held nodes around it: its elements at the given values,
    then sources that hold these nodes at the given potentials."""
    kind, first, second, _, _ = circuit.arrays()
    names, inside, made, around = circuit.node_names, set(step.nodes.tolist()), Circuit(), []
    for k in step.elements.tolist():
        law, ends = circuit.laws.get(k), (int(first[k]), int(second[k]))
        around += [node for node in ends if node not in inside and node != GROUND]
        letter = "RDVILC"[int(kind[k])] if law is None else ("I" if law.quantity is Quantity.CURRENT else "V")
        made.add(letter, circuit.names[k], names[ends[0]], names[ends[1]], None if letter == "D" else value(k))
    around = list(dict.fromkeys(around))
    for node in around:
        made.voltage_source(outside(names[node]), names[node], "0", potential(node))
    return made, around


def outside(node: str) -> str:
    """The name of the source that holds a node of another section; element names have no blanks."""
    return f"v({node}) of another section"


def sectioned(
    circuit: Circuit, found: Sections, solve: Solve, tolerance: float, laws: LawArrays
) -> OperatingPoint | None:
    """The operating point, or None if it is not certified or a diode lies between held nodes.

    Raises
    ------
    NoSteadyStateError
        A section has no steady state.
    """
    whole = _Whole(circuit)
    for step in found.steps:
        if isinstance(step, Hold):
            whole.hold(step)
            continue
        try:
            whole.section(step, solve)
        except NoSteadyStateError as error:
            if whole.intervals or not whole.unique.all():
                return None  # another choice in an earlier section may have one
            own = [name for name in error.elements if name in circuit]
            raise type(error)(str(error), own, error.nodes) from None
    whole.held_currents()
    held = {GROUND, *(hold.node for hold in whole.holds)}
    kind, first, second, _, _ = whole.arrays
    for k in np.flatnonzero(kind == DIODE).tolist():
        if int(first[k]) in held and int(second[k]) in held and whole.voltages[first[k]] >= whole.voltages[second[k]]:
            return None
    low = np.zeros(whole.voltages.size)
    certificate = certify_controlled(whole.arrays, laws, whole.voltages, whole.currents, whole.drops, tolerance, low)
    if not certificate.certified:
        return None
    info: dict[str, object] = {
        "name": "sections",
        "why": "the control graph has no loop: each section is convex",
        "iterations": 1,
        "sections": sum(isinstance(step, Section) for step in found.steps),
    }
    point = OperatingPoint(
        circuit,
        whole.voltages,
        whole.currents,
        whole.intervals,
        whole.unique,
        certificate,
        info,
        (*circuit.notes, *whole.warnings()),
        whole.drops,
    )
    # The potential of a part not tied to ground is relative to its reference; that of a part tied by controlled
    # currents alone is not.
    references = {circuit.node_names[k] for k in found.references}
    single = not whole.intervals and bool(whole.unique.all())
    single = single and all(problem.names[0] in references for problem in whole.floating)
    point.uniqueness = Uniqueness.UNIQUE if single else Uniqueness.UNKNOWN
    return point


__all__ = ["outside", "section_circuit", "sectioned"]
