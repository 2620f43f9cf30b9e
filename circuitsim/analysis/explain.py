"""The method chosen for a circuit, and why: the text of ``--explain``."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit.expansion import elementary
from circuitsim.controlled.stand_in import stand_in
from circuitsim.program import analyse


def explain(point: OperatingPoint) -> list[str]:
    """Text lines: the circuit in the solver's terms, the method with its reason, the work.

    Parameters
    ----------
    point : OperatingPoint
        From any method.
    """
    if point.elementary is not None:
        head = f"devices: {len(point.circuit.devices)}, solved as their elementary elements"
        return [head, *explain(point.elementary)]
    structure = analyse(elementary(stand_in(point.circuit)))
    kind, first, second, _, n_nodes = structure.arrays
    held = structure.coordinate >= structure.n
    diodes = structure.diodes
    at_held = held[first[diodes]] | held[second[diodes]]
    conducting = point.currents[diodes] > 0.0
    free = conducting & ~at_held
    info = dict(point.solver)
    name, why, linear = info.pop("name"), info.pop("why", ""), info.pop("linear", None)
    work = ", ".join(f"{count} {what}" for what, count in info.items())
    return [
        f"circuit: {n_nodes} nodes, {kind.size} elements; {structure.n} unknown node voltages after sources and shorts "
        "join nodes",
        f"diodes: {diodes.size}, {int(np.count_nonzero(at_held))} of them with an end at a fixed voltage; "
        f"{int(conducting.sum())} conduct, {int(free.sum())} of these between free nodes",
        f"method: {name} ({why})" + (f"; its linear circuits by {linear}" if linear else ""),
        f"work: {work or 'not counted'}",
    ]
