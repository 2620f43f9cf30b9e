"""Columns of a circuit, collected block by block, and the values most families share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE

DIODE_SHARE = 0.3
"""Share of the edges that carry a diode in parallel."""
LARGEST_CURRENT = 0.1
"""Bound of the random current sources, A."""


class Sheet:
    """A circuit under construction; ends are node numbers or arrays of them, 0 is ground."""

    def __init__(self, n_nodes: int = 1) -> None:
        self.n_nodes = n_nodes
        self._blocks: list[tuple[np.ndarray, ...]] = []

    def nodes(self, count: int) -> np.ndarray:
        """Numbers of ``count`` new nodes."""
        self.n_nodes += count
        return np.arange(self.n_nodes - count, self.n_nodes)

    def resistors(self, first: ArrayLike, second: ArrayLike, conductance: ArrayLike) -> None:
        """Resistors of the given conductances, S."""
        self._add(RESISTOR, first, second, 1.0 / np.asarray(conductance, dtype=float))

    def diodes(self, anode: ArrayLike, cathode: ArrayLike) -> None:
        """Ideal diodes."""
        self._add(DIODE, anode, cathode, np.nan)

    def voltages(self, positive: ArrayLike, negative: ArrayLike, voltage: ArrayLike) -> None:
        """Voltage sources, V."""
        self._add(VOLTAGE, positive, negative, voltage)

    def currents_into(self, node: ArrayLike, current: ArrayLike) -> None:
        """Current sources from ground into nodes, A."""
        self._add(CURRENT, 0, node, current)

    def circuit(self, family: str, seed: int) -> Circuit:
        """The finished circuit."""
        kind, first, second, value = (np.concatenate(column) for column in zip(*self._blocks))
        title = f"{family}, {self.n_nodes - 1} unknowns, seed {seed}"
        return Circuit.from_arrays(kind, first, second, value, self.n_nodes, title)

    def _add(self, kind: int, first: ArrayLike, second: ArrayLike, value: ArrayLike) -> None:
        columns = np.broadcast_arrays(np.int8(kind), first, second, np.asarray(value, dtype=float))
        self._blocks.append(tuple(np.atleast_1d(column) for column in columns))


def usual_conductances(rng: np.random.Generator, count: int) -> np.ndarray:
    """e^{0.5 N(0, 1)} S."""
    return np.exp(0.5 * rng.standard_normal(count))


def edges_with_diodes(
    sheet: Sheet, rng: np.random.Generator, first: np.ndarray, second: np.ndarray, conductance: np.ndarray
) -> None:
    """Resistive edges, of which `DIODE_SHARE` carry a diode of random direction in parallel."""
    sheet.resistors(first, second, conductance)
    chosen = rng.permutation(first.size)[: round(DIODE_SHARE * first.size)]
    swap = rng.random(chosen.size) < 0.5
    a, b = first[chosen], second[chosen]
    sheet.diodes(np.where(swap, b, a), np.where(swap, a, b))


def random_currents(sheet: Sheet, rng: np.random.Generator, nodes: np.ndarray, count: int) -> None:
    """``count`` sources (at least one) of at most `LARGEST_CURRENT` into different random nodes."""
    chosen = rng.permutation(nodes.size)[: max(1, count)]
    sheet.currents_into(nodes[chosen], rng.uniform(-LARGEST_CURRENT, LARGEST_CURRENT, chosen.size))


def driven(sheet: Sheet, inputs: np.ndarray, outputs: np.ndarray) -> None:
    """1 V through 1 S into each input, 1 S from each output to ground."""
    rail = sheet.nodes(1)
    sheet.voltages(rail, 0, 1.0)
    sheet.resistors(rail, inputs, np.ones(inputs.size))
    sheet.resistors(outputs, 0, np.ones(outputs.size))
