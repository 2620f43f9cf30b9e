"""Load lines of smooth devices: the rest of a circuit as each sees it, estimated from the elements at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, RESISTOR
from circuitsim.program.components import component_labels

if TYPE_CHECKING:
    from circuitsim.analysis.newton import Smooth, Solved


class Ports:
    """The rest of a circuit as seen from its smooth devices: resistances, from the elements at their ends.

    With all other nodes joined, the resistance between two nodes is 1/G + 1/G', with the sums G and G' of the
    conductances there: a lower bound (Rayleigh) where no other element joins the two. Nodes that sources,
    shorts and conducting diodes join are one.
    """

    def __init__(self, circuit: Circuit, smooth: Smooth) -> None:
        self._kind, self._first, self._second, _, self._count = circuit.arrays()
        self._ends = self._first[smooth.rest], self._second[smooth.rest]
        self._diodes = np.flatnonzero(self._kind == DIODE)
        self._resistors = np.flatnonzero(self._kind == RESISTOR)
        self._joined: tuple[bytes, np.ndarray] | None = None

    def resistances(self, column: np.ndarray, point: Solved, conductance: np.ndarray) -> np.ndarray:
        """In Ω, for values of all elements, a solution and the conductances of the tangents."""
        ohms = column[self._resistors]
        label = self._labels(ohms, point.currents[self._diodes] > 0.0)
        r = self._resistors[ohms > 0.0]
        a, b, g = label[self._first[r]], label[self._second[r]], 1.0 / ohms[ohms > 0.0]
        g[a == b] = 0.0
        total = np.bincount(a, g, self._count) + np.bincount(b, g, self._count)
        p, q = label[self._ends[0]], label[self._ends[1]]
        others = [np.maximum(total[node] - conductance, 1e-15 * total[node] + 1e-250) for node in (p, q)]
        return np.where(p == q, 0.0, 1.0 / others[0] + 1.0 / others[1])

    def _labels(self, ohms: np.ndarray, conducting: np.ndarray) -> np.ndarray:
        """The number of the joined node that each node belongs to."""
        joins = ~np.isin(self._kind, (RESISTOR, DIODE, CURRENT, CAPACITOR))
        joins[self._resistors[ohms == 0.0]] = True
        joins[self._diodes[conducting]] = True
        key = joins.tobytes()
        if self._joined is None or self._joined[0] != key:
            self._joined = key, component_labels(self._count, self._first[joins], self._second[joins])
        return self._joined[1]
