"""Rayleigh's monotonicity: cases in which two operating points prove a worst case, however many resistors deviate.

With resistors, ideal diodes and sources of one kind, min E of the convex program grows with every conductance. Without
drops, min E is half of what the sources deliver, up to its sign: the total dissipation. With exactly one source that is
its own voltage times its current, so that its current (or voltage) is monotone too. Neither holds with sources of both
kinds, nor with forward drops, limiters or smooth devices (Braess's paradox).
"""

from __future__ import annotations

import enum

import numpy as np

from circuitsim.analysis.probes import Probe
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE

DISSIPATION = "dissipation"
"""Name of the power that all resistors dissipate."""


class Case(enum.Enum):
    """What is monotone, and why."""

    DISSIPATION = "Rayleigh: the total dissipation, with sources of one kind, in two solves"
    SOURCE = "Rayleigh: the port of the only source, in two solves"


def rayleigh(circuit: Circuit, resistors_only: bool, probe: Probe | None) -> Case | None:
    """The case of a quantity; ``probe`` None is the total dissipation.

    Parameters
    ----------
    circuit : Circuit
        Without devices.
    resistors_only : bool
        Whether only resistances deviate.
    """
    kind, first, second, value, _ = circuit.arrays()
    if not resistors_only or not np.isin(kind, (RESISTOR, DIODE, VOLTAGE, CURRENT)).all():
        return None
    sources = np.flatnonzero(((kind == VOLTAGE) | (kind == CURRENT)) & (value != 0.0))
    if probe is None:
        return Case.DISSIPATION if np.unique(kind[sources]).size <= 1 else None
    if sources.size != 1:
        return None
    k = int(sources[0])
    if probe.kind in ("i", "p") and circuit.element_index(probe.first) == k:
        return Case.SOURCE if probe.kind == "p" or kind[k] == VOLTAGE else None
    if probe.kind == "v" and kind[k] == CURRENT:
        ends = {circuit.node_index(probe.first), circuit.node_index(probe.second or "0")}
        return Case.SOURCE if ends == {int(first[k]), int(second[k])} else None
    return None


__all__ = ["DISSIPATION", "Case", "rayleigh"]
