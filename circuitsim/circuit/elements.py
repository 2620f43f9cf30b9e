"""The element table: the registered models (`circuitsim.models`) by their codes.

The reader, the writer, ``check``, the convex program and the documentation use this table. Signs are SPICE's: an
element's voltage is v(first) − v(second), its current flows from the first terminal through the element to the second,
and its power (voltage × current) is absorbed power.
"""

from __future__ import annotations

from circuitsim.models import ELEMENTARY, MODELS, Device, ElementModel
from circuitsim.models.controlled_sources import CONTROLLED

RESISTOR, DIODE, VOLTAGE, CURRENT, INDUCTOR, CAPACITOR, AMPLIFIER = range(ELEMENTARY)
"""Codes of the elementary rows, as stored in the circuit's ``kind`` column; devices have codes from `ELEMENTARY` on."""

ELEMENTS: tuple[ElementModel, ...] = MODELS

BY_LETTER: dict[str, int] = {row.letter: code for code, row in enumerate(ELEMENTS[:ELEMENTARY])}
"""Codes of the elementary rows."""


FIRST_CONTROLLED = ELEMENTS.index(CONTROLLED[0])
BY_VOLTAGE_E, BY_CURRENT_F, BY_VOLTAGE_G, BY_CURRENT_H, AFFINE_VOLTAGE, AFFINE_CURRENT, NULLOR = range(
    FIRST_CONTROLLED, FIRST_CONTROLLED + len(CONTROLLED)
)
"""Codes of controlled elements; their laws (`circuitsim.circuit.laws`) state their controls."""


def device_code(device: Device) -> int:
    """The code of a device's model."""
    return ELEMENTS.index(device.model)


def device_model(letter: str, card_type: str, names: frozenset[str]) -> ElementModel | None:
    """The device model of an element with this letter, whose ``.model`` card has this type and these parameter names
    (lower case); None for an elementary element.
    """
    return next((row for row in ELEMENTS[ELEMENTARY:] if row.takes(letter, card_type, names)), None)
