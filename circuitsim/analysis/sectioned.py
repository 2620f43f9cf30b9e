"""Circuits with an acyclic control graph: the states of the diodes, section by section with the convex solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import VOLTAGE
from circuitsim.circuit.laws import Quantity
from circuitsim.controlled.sections import Hold, Section, Sections
from circuitsim.errors import NoSteadyStateError, Problem

Solve = Callable[[Circuit], OperatingPoint]

CARRIES = 1e-12
"""A current in a loop that is not unique and below this fraction of the largest is rounding."""


class Sectioned(NamedTuple):
    """The sections' operating points.

    Attributes
    ----------
    currents : (m,) float array
        Of their elements, A.
    intervals : dict
        See `OperatingPoint`.
    floating : tuple of Problem
        Warnings about parts without a path to ground.
    unique : bool
        Whether voltages relative to such parts' references and all currents are unique.
    """

    currents: np.ndarray
    intervals: dict[str, tuple[float | None, float | None]]
    floating: tuple[Problem, ...]
    unique: bool


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


def sectioned(circuit: Circuit, found: Sections, solve: Solve) -> Sectioned | None:
    """The operating points of all sections in turn; None where one has none, but another choice in an earlier one may
    leave it one.

    Raises
    ------
    NoSteadyStateError
        A section has no steady state.
    """
    kind, _, _, given, n = circuit.arrays()
    voltages, currents, names, laws = np.zeros(n), np.zeros(kind.size), circuit.node_names, circuit.laws
    intervals, floating, unique = dict[str, tuple[float | None, float | None]](), list[Problem](), True

    def value(k: int) -> float:
        """The value of an element, by its equation if it is controlled."""
        own, law = float(given[k]), laws.get(k)
        if law is None:
            return own
        terms = [c * (voltages[p] - voltages[m]) for c, p, m in law.voltages]
        terms += [c * currents[e] for c, e in law.currents]
        return law.constant + (1.0 if math.isnan(own) else own) * math.fsum(terms)

    for step in found.steps:
        if isinstance(step, Hold):
            volts = value(step.element) if kind[step.element] == VOLTAGE or step.element in laws else 0.0
            voltages[step.node] = voltages[step.other] + step.sign * volts
            continue
        try:
            point = solve(section_circuit(circuit, step, value, lambda node: float(voltages[node]))[0])
        except NoSteadyStateError as error:
            if intervals or not unique:
                return None
            known = [name for name in error.elements if name in circuit]
            raise type(error)(str(error), known, error.nodes) from None
        voltages[step.nodes] = [point[names[node]] for node in step.nodes.tolist()]
        own = point.currents * (point.unique | (np.abs(point.currents) > CARRIES * np.abs(point.currents).max()))
        currents[step.elements] = own[: step.elements.size]
        inside = {names[node] for node in step.nodes.tolist()}
        intervals |= {name: ends for name, ends in point.intervals.items() if name in inside}
        floating += [problem for problem in point.warnings if problem.kind == "floating"]
        unique = unique and bool(point.unique.all())
    # The potential of a part not tied to ground is relative to its reference; that of a part tied by controlled
    # currents alone is not.
    references = {names[k] for k in found.references}
    loose = tuple(problem for problem in floating if problem.names[0] not in references)
    return Sectioned(currents, intervals, loose, unique and not intervals and not loose)


__all__ = ["Sectioned", "outside", "section_circuit", "sectioned"]
