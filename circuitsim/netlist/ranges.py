"""Values on cards against what the element table allows."""

from __future__ import annotations

from circuitsim.circuit.elements import ELEMENTS
from circuitsim.netlist.tokens import CardError
from circuitsim.units import exact, short


def positive(name: str, word: str, number: float, offset: int) -> None:
    """Refuse a count ``m=`` or ``n=`` that is not above zero.

    Raises
    ------
    CardError
    """
    if number <= 0:
        what = "multiplier m" if word == "m" else "number n in series"
        raise CardError(
            "range", f"{short(name)}: the {what} must be positive, not {exact(number)}", offset, "leave the card out"
        )


def checked(code: int, name: str, value: float, offset: int) -> float:
    """``value``, if the element table allows it.

    Raises
    ------
    CardError
        Below the table's minimum.
    """
    row = ELEMENTS[code]
    if value < row.minimum:
        wrong = "must be positive" if row.minimum > 0.0 else "must not be negative"
        amount = f"{exact(value)} {row.unit}".strip()
        raise CardError(
            "range",
            f"{short(name)}: the {row.parameter} {wrong} ({amount})",
            offset,
            "a passive circuit has no negative " + row.parameter if row.unit else "",
        )
    return value
