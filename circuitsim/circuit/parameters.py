"""The parameters of a circuit by name, for sweeps, tolerances, designs, fits and gradients.

``R1`` is the value of an element, ``D1.vfwd`` a parameter of a device, ``S1.vt`` a parameter of a switch, ``k(L1,L2)``
a coupling factor, ``C1.ic`` an initial value, ``v(out)`` an initial node voltage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from fnmatch import fnmatchcase
from typing import NamedTuple

from circuitsim.circuit.circuit import Circuit
from circuitsim.circuit.dynamics import NONE, SwitchLaw
from circuitsim.circuit.elements import ELEMENTS

SWITCH = ("vt", "vh", "ron", "roff")
"""Parameters of a switch: threshold and hysteresis, V or A; on and off resistance, Ω."""
COUPLING = re.compile(r"k\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)", re.IGNORECASE)
HELD = re.compile(r"v\(\s*([^\s,()]+)\s*\)", re.IGNORECASE)


class Sort(Enum):
    """The kind of a parameter."""

    ELEMENT = "value of an element"
    DEVICE = "parameter of a device"
    SWITCH = "number of a switch"
    COUPLING = "coupling factor"
    INITIAL = "initial value"
    HELD = "held node"


class Parameter(NamedTuple):
    """A number of a circuit.

    Attributes
    ----------
    name : str
        As the circuit writes it.
    sort : Sort
    elements : tuple of int
        The element, or the two coupled inductors; none for a held node.
    key : str
        Parameter of a device or switch, in lower case; name of a held node, as given.
    value : float
        nan if the circuit states none.
    unit : str
        Ω, V, A …; empty for pure numbers.
    """

    name: str
    sort: Sort
    elements: tuple[int, ...]
    key: str
    value: float
    unit: str

    @property
    def plain(self) -> bool:
        """Whether `Circuit.with_values` accepts it."""
        return self.sort in (Sort.ELEMENT, Sort.DEVICE)


def parameter(circuit: Circuit, name: str, switches: Mapping[int, SwitchLaw] = NONE) -> Parameter | None:
    """The parameter with a name, or None.

    Parameters
    ----------
    circuit : Circuit
    name : str
        Case does not matter.
    switches : mapping of int to SwitchLaw, optional
        Switches with known parameters.
    """
    name = name.strip()
    if name in circuit and circuit.element_index(name) not in circuit.devices:
        k = circuit.element_index(name)
        codes, _, _, values = circuit.columns()
        return Parameter(circuit.names[k], Sort.ELEMENT, (k,), "", float(values[k]), ELEMENTS[codes[k]].unit)
    place = circuit.device_parameter(name)
    if place is not None:
        k, key = place
        device = circuit.devices[k]
        row = device.model.parameter_called(key)
        value = device.parameters().get(key, math.nan)
        return Parameter(f"{circuit.names[k]}.{key}", Sort.DEVICE, (k,), key, value, row.unit if row else "")
    couple = COUPLING.fullmatch(name)
    if couple is not None and couple[1] in circuit and couple[2] in circuit:
        return Parameter(name, Sort.COUPLING, (*map(circuit.element_index, couple.groups()),), "", math.nan, "")
    if (holds := HELD.fullmatch(name)) is not None:
        return Parameter(name, Sort.HELD, (), holds[1], math.nan, "V")
    element, _, key = name.rpartition(".")
    sort = {"ic": Sort.INITIAL, **dict.fromkeys(SWITCH, Sort.SWITCH)}.get(key := key.lower())
    if sort is None or element not in circuit:
        return None
    k = circuit.element_index(element)
    value = switches[k].numbers[key] if k in switches and sort is Sort.SWITCH else math.nan
    return Parameter(f"{circuit.names[k]}.{key}", sort, (k,), key, float(value), "Ω" if key in SWITCH[2:] else "")


def parameter_values(circuit: Circuit) -> dict[str, float]:
    """All element values and device parameters by name, in the order of the elements."""
    found = dict[str, float]()
    codes, _, _, values = circuit.columns()
    for k, (name, code) in enumerate(zip(circuit.names, codes)):
        if k in circuit.devices:
            found |= {f"{name}.{key}": value for key, value in circuit.devices[k].parameters().items()}
        elif ELEMENTS[code].parameter:
            found[name] = values[k]
    return found


def matching(circuit: Circuit, pattern: str, known: Iterable[str]) -> list[str]:
    """Known names that match a pattern with wildcards ``*`` and ``?``; ``R*`` means elements, for parameters of devices
    contain a dot."""
    own = pattern.lower().replace("[", "[[]")
    return [name for name in known if fnmatchcase(name.lower(), own) and ("." in own or name in circuit)]


__all__ = ["COUPLING", "HELD", "SWITCH", "Parameter", "Sort", "matching", "parameter", "parameter_values"]
