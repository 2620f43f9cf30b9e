"""The element table: everything the program knows about a kind of element, one row a kind.

Reader, writer, ``check``, the convex program and the documentation all read this table, so that a new device is one
row here. Signs are SPICE's: an element's voltage is v(first) − v(second), its current flows from the first terminal
through the element to the second, its power (voltage × current) is what it absorbs.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple


class ElementKind(NamedTuple):
    """One row of the element table.

    Attributes
    ----------
    letter : str
        First letter of the element's SPICE name.
    name : str
        What people call it.
    terminals : tuple of str
        The names of its two terminals, in SPICE order.
    parameter, unit : str
        The quantity its value states and that quantity's unit; empty for an element without a value.
    minimum : float
        Smallest allowed value (inclusive); above zero where zero is not allowed.
    law : str
        Its branch equation at DC, with v and i in SPICE signs.
    energy : str
        Its term of the energy E(v) in watts (THEORY: Scellier 2024, Theorem 1); empty if it has none.
    constraint : str
        The constraint it puts on the potentials; empty if none.
    spice : str
        The text of its card, with the fields ``name``, ``first``, ``second``, ``value``.
    """

    letter: str
    name: str
    terminals: tuple[str, str]
    parameter: str
    unit: str
    minimum: float
    law: str
    energy: str
    constraint: str
    spice: str


RESISTOR, DIODE, VOLTAGE, CURRENT, INDUCTOR, CAPACITOR, AMPLIFIER = range(7)
"""Codes of the rows, as stored in the circuit's ``kind`` column."""

_ANY = -math.inf
_POSITIVE = sys.float_info.min

ELEMENTS: tuple[ElementKind, ...] = (
    ElementKind("R", "resistor", ("first", "second"), "resistance", "Ω", 0.0,
                "v = R i", "v²/(2R)", "v = 0 where R = 0", "{name} {first} {second} {value}"),
    ElementKind("D", "ideal diode", ("anode", "cathode"), "", "", _ANY,
                "v ≤ 0, i ≥ 0, v i = 0", "", "v ≤ 0", "{name} {first} {second}"),
    ElementKind("V", "voltage source", ("positive", "negative"), "voltage", "V", _ANY,
                "v = V", "", "v = V", "{name} {first} {second} {value}"),
    ElementKind("I", "current source", ("first", "second"), "current", "A", _ANY,
                "i = I", "I v", "", "{name} {first} {second} {value}"),
    ElementKind("L", "inductor", ("first", "second"), "inductance", "H", 0.0,
                "v = 0 (a short at DC)", "", "v = 0", "{name} {first} {second} {value}"),
    ElementKind("C", "capacitor", ("first", "second"), "capacitance", "F", 0.0,
                "i = 0 (open at DC)", "", "", "{name} {first} {second} {value}"),
    ElementKind("X", "bidirectional amplifier", ("left", "right"), "gain", "", _POSITIVE,
                "v_right = a v_left, i_right = a i_left", "", "v_right = a v_left",
                "{name} {first} {second} bidiramp gain={value}"),
)  # fmt: skip

BY_LETTER: dict[str, int] = {row.letter: code for code, row in enumerate(ELEMENTS)}
