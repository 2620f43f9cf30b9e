"""Expansion of devices (`circuitsim.models`) into elementary elements, for the solvers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.elements import BY_LETTER
from circuitsim.circuit.laws import CurrentControl, Law
from circuitsim.errors import NoSteadyStateError
from circuitsim.models import Device, Part

if TYPE_CHECKING:
    Columns = tuple[array[int], array[int], array[int], array[float]]
    """Kind, first node, second node and value of all elements."""


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
    """

    circuit: Circuit
    parts: dict[int, tuple[int, ...]]
    owner: dict[str, str]
    hidden: set[str]

    def values(self, k: int, device: Device) -> dict[str, float]:
        """The values (Ω, V, A) of the parts of device ``k`` with other parameters, by part."""
        names = self.circuit.names
        return {names[e]: p.value for e, p in zip(self.parts[k], device.expand()) if p.value is not None}

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
        return Expansion(circuit, {}, {}, set())
    columns = _copied(circuit)
    kind, first, second, _ = columns
    names, nodes = [str(n) for n in circuit.names], [str(n) for n in circuit.node_names]
    mark = _mark(circuit)
    parts: dict[int, tuple[int, ...]] = {}
    owner: dict[str, str] = {}
    hidden: set[str] = set()
    for k, device in circuit.devices.items():
        name, places = names[k], []
        inside = dict(zip(device.model.terminals, (first[k], second[k])))
        for number, part in enumerate(device.expand()):
            ends = [_inner(node, inside, f"{name}{mark}", nodes, hidden) for node in (part.first, part.second)]
            places.append(_placed(k if number == 0 else len(kind), part, ends, columns))
            _name(names, places[-1], f"{name}{mark}{part.name}")
            owner[names[places[-1]]] = name
        parts[k] = tuple(places)
    laws = {k: _of_parts(law, circuit, parts) for k, law in circuit.laws.items()}
    return Expansion(Circuit.from_columns(circuit.title, columns, names, nodes, laws=laws), parts, owner, hidden)


def _of_parts(law: Law, circuit: Circuit, parts: dict[int, tuple[int, ...]]) -> Law:
    """The law with the current of a device replaced by the sum of its parts' currents at the first terminal."""
    currents: list[CurrentControl] = []
    for control in law.currents:
        device = circuit.devices.get(control.element)
        if device is None:
            currents.append(control)
        else:
            inside = parts[control.element]
            currents += [
                CurrentControl(sign * control.coefficient, inside[p]) for p, sign in device.entering(device.expand())
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

    if circuit.devices:
        circuit = expanded(circuit).circuit
    return without_amplifiers(circuit).circuit if circuit.amplified else circuit


def _inner(node: str, inside: dict[str, int], prefix: str, nodes: list[str], hidden: set[str]) -> int:
    """Number of a terminal or internal node, which is added if new."""
    if node not in inside:
        inside[node] = len(nodes)
        nodes.append(f"{prefix}{node}")
        hidden.add(nodes[-1])
    return inside[node]


def _copied(circuit: Circuit) -> Columns:
    kind, first, second, value = circuit.columns()
    return kind[:], first[:], second[:], value[:]


def _placed(k: int, part: Part, ends: list[int], columns: Columns) -> int:
    """Write a part to row ``k`` of the columns, or append it."""
    kind, first, second, value = columns
    if k == len(kind):
        for column in (kind, first, second):
            column.append(0)
        value.append(math.nan)
    kind[k], first[k], second[k] = BY_LETTER[part.letter], ends[0], ends[1]
    value[k] = math.nan if part.value is None else part.value
    return k


def _name(names: list[str], k: int, name: str) -> None:
    if k == len(names):
        names.append(name)
    else:
        names[k] = name


def _mark(circuit: Circuit) -> str:
    """Separator of a device's and its part's name: more consecutive colons than in any name of the circuit."""
    mark = ":"
    while any(mark in str(name) for names in (circuit.names, circuit.node_names) for name in names):
        mark += ":"
    return mark
