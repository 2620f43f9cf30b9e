"""Expansion of devices (`circuitsim.models`) into elementary elements, for the solvers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.elements import BY_LETTER, CURRENT, VOLTAGE
from circuitsim.circuit.laws import CurrentControl, Law, Quantity
from circuitsim.errors import NoSteadyStateError
from circuitsim.models import Device

if TYPE_CHECKING:
    import numpy as np


class Expansion(NamedTuple):
    """A circuit of elementary elements, equivalent to one with devices.

    Attributes
    ----------
    circuit : Circuit
        Nodes and elements keep their positions; a device's first part takes its position, the other parts and internal
        nodes follow at the end.
    parts : dict of int to tuple of int
        Parts of each device, by its position in the original.
    owner : dict of str to str
        Name of a part → the device's name.
    hidden : set of str
        Names of the devices' internal nodes.
    carriers : dict of int to list of (int, float)
        Parts at the first terminal of each device, with the signs of their currents into it.
    """

    circuit: Circuit
    parts: dict[int, tuple[int, ...]]
    owner: dict[str, str]
    hidden: set[str]
    carriers: dict[int, list[tuple[int, float]]]

    def values(self, k: int, device: Device) -> dict[str, float]:
        """The values (Ω, V, A) of the parts of device ``k`` with other parameters, by part."""
        names = self.circuit.names
        return {names[e]: p.value for e, p in zip(self.parts[k], device.expand()) if p.value is not None}

    def entering(self, currents: np.ndarray, m: int) -> np.ndarray:
        """The currents (m, …) of the ``m`` original elements, of devices into their first terminal, from those of the
        elementary ones."""
        found = currents[:m].copy()
        for k, carriers in self.carriers.items():
            found[k] = sum(sign * currents[part] for part, sign in carriers)
        return found

    def original(self, names: Iterable[str]) -> list[str]:
        """Names with devices in place of their parts, each once, without internal nodes."""
        return list(dict.fromkeys(self.owner.get(name, name) for name in names if name not in self.hidden))

    def restated(self, error: NoSteadyStateError) -> NoSteadyStateError:
        """The error with its witness in terms of devices; its message names their parts."""
        return type(error)(str(error), self.original(error.elements), self.original(error.nodes))


def same_shape(a: Device, b: Device) -> bool:
    """Whether two devices have the same parts except for their values."""
    return [p[:4] for p in a.expand()] == [p[:4] for p in b.expand()]


def expanded(circuit: Circuit) -> Expansion:
    """Replace every device by its parts; a circuit without devices is its own expansion."""
    if not circuit.devices:
        return Expansion(circuit, {}, {}, set(), {})
    kind, first, second, value = (column[:] for column in circuit.columns())
    names, nodes = [*circuit.names], [*circuit.node_names]
    columns: tuple[Any, ...] = kind, first, second, value, names
    mark = _mark(circuit)
    parts: dict[int, tuple[int, ...]] = {}
    owner: dict[str, str] = {}
    hidden: set[str] = set()
    carriers: dict[int, list[tuple[int, float]]] = {}
    for k, device in circuit.devices.items():
        name, places = names[k], list[int]()
        inside = dict(zip(device.model.terminals, (first[k], second[k])))
        every = device.expand()
        for part in every:
            for node in (part.first, part.second):
                if node not in inside:
                    inside[node] = len(nodes)
                    nodes.append(f"{name}{mark}{node}")
                    hidden.add(nodes[-1])
            ends, number = (inside[part.first], inside[part.second]), math.nan if part.value is None else part.value
            places.append(len(kind) if places else k)
            for column, entry in zip(columns, (BY_LETTER[part.letter], *ends, number, f"{name}{mark}{part.name}")):
                if places[-1] == k:
                    column[k] = entry
                else:
                    column.append(entry)
            owner[names[places[-1]]] = name
        parts[k] = tuple(places)
        carriers[k] = [(places[p], sign) for p, sign in device.entering(every)]
    laws = {k: _of_parts(law, carriers) for k, law in circuit.laws.items()}
    made = Circuit.from_columns(circuit.title, columns[:4], names, nodes, laws=laws)
    return Expansion(made, parts, owner, hidden, carriers)


def _of_parts(law: Law, carriers: dict[int, list[tuple[int, float]]]) -> Law:
    """The law with the current of a device replaced by the sum of its parts' currents at the first terminal."""
    currents = [
        CurrentControl(sign * control.coefficient, part)
        for control in law.currents
        for part, sign in carriers.get(control.element, [(control.element, 1.0)])
    ]
    return law._replace(currents=tuple(currents))


def elementary(circuit: Circuit) -> Circuit:
    """The circuit for the solvers: without devices and amplifiers.

    Raises
    ------
    AmplifierError
        As `circuitsim.circuit.amplifiers.without_amplifiers`.
    """
    from circuitsim.circuit.amplifiers import without_amplifiers

    circuit = expanded(circuit).circuit
    return without_amplifiers(circuit).circuit if circuit.amplified else circuit


def _mark(circuit: Circuit) -> str:
    """Separator of a device's and its part's name: more consecutive colons than in any name of the circuit."""
    mark = ":"
    while any(mark in str(name) for names in (circuit.names, circuit.node_names) for name in names):
        mark += ":"
    return mark


def stand_in(circuit: Circuit) -> Circuit:
    """The circuit with an independent source for each controlled one (1 V, 1 A); itself where there is none.

    For questions of topology (components, loops of sources, isolated nodes), not of values.
    """
    if not circuit.laws:
        return circuit
    kind, first, second, value, n = circuit.arrays()
    kind, value = kind.copy(), value.copy()
    for k, law in circuit.laws.items():
        kind[k], value[k] = CURRENT if law.quantity is Quantity.CURRENT else VOLTAGE, 1.0
    return Circuit.from_arrays(kind, first, second, value, n, circuit.title, circuit.names, circuit.node_names)
