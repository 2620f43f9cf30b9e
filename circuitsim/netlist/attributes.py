"""Attributes that LTspice writes on R, L, C, V and I: parasitic elements act, ratings do not.

V1 a b 5 Rser=1          →  V1 V1.inner b 5,  V1.Rser a V1.inner 1
L1 a b 1m Rser=2 Cpar=8p →  L1 L1.inner b 1m, L1.Rser a L1.inner 2, L1.Cpar a b 8p
C1 a b 1u Rser=1 Lser=1n →  C1 C1.inner b 1u, C1.Lser C1.middle C1.inner 1n, C1.Rser a C1.middle 1

Values on cards are checked against what the element table allows.
"""

from __future__ import annotations

from circuitsim.circuit.elements import CAPACITOR, CURRENT, ELEMENTS, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.netlist.cards import Card
from circuitsim.netlist.scope import ElementCard, Scope, Value
from circuitsim.netlist.tokens import CardError, Words
from circuitsim.netlist.values import value_of
from circuitsim.units import NumberError, exact, parse, short


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


SERIES = {"rser": ("Rser", RESISTOR), "lser": ("Lser", INDUCTOR)}
"""Parasitic elements in series, from the element's first node on: their names and kinds."""
PARALLEL = {"rpar": ("Rpar", RESISTOR), "cpar": ("Cpar", CAPACITOR)}
ACTING: dict[int, tuple[str, ...]] = {
    VOLTAGE: ("rser", "cpar"),
    INDUCTOR: ("rser", "rpar", "cpar"),
    CAPACITOR: ("rser", "lser", "rpar", "cpar"),
}
"""Attributes that are elements of their own, by element."""

RATINGS = frozenset(("pwr", "irms", "vrms", "ipk", "mfg", "type", "pn", "cpar", "lser", "rlshunt", "load"))
NO_EFFECT: dict[int, frozenset[str]] = {
    RESISTOR: RATINGS,
    INDUCTOR: RATINGS,
    CAPACITOR: RATINGS | {"v"},
    VOLTAGE: RATINGS,
    CURRENT: RATINGS,
}
"""Attributes without effect, by element."""


def percent(text: str) -> float | None:
    """``5%`` as 0.05; None for what is no positive percentage."""
    try:
        amount = parse(text.removesuffix("%")) / 100.0
    except NumberError:
        return None
    return amount if amount > 0.0 and text.endswith("%") else None


def tolerance(sorted_: Words) -> float | None:
    """The share that ``tol=`` states, in per cent with its sign or without, taken from the card's pairs.

    Raises
    ------
    CardError
        It is no percentage.
    """
    stated = [token for _, token in sorted_.named(("tol",))]
    if not stated:
        return None
    text = stated[-1].text
    amount = percent(text if text.endswith("%") else f"{text}%")
    if amount is None and text.strip("0.%"):
        raise CardError("syntax", f"tol={short(text)} is no percentage", stated[-1].offset, "write tol=5%")
    return amount


def parasitics(scope: Scope, card: Card, code: int, sorted_: Words) -> dict[str, ElementCard]:
    """Take the acting attributes of a card from its pairs; those of zero are left out, but for a parallel resistor."""
    found: dict[str, ElementCard] = {}
    for key, token in sorted_.named(ACTING.get(code, ())):
        word = key.word
        value = value_of(token, card, scope)
        if value != 0.0 or word == "rpar":
            if isinstance(value, float):
                checked((SERIES | PARALLEL)[word][1], key.text, value, token.offset)
            found[word] = ElementCard(card, token.offset, value)
    return found


def initial(scope: Scope, card: Card, code: int, sorted_: Words) -> Value | None:
    """The value of ``ic=`` of a capacitor, V, or an inductor, A, taken from the card's pairs; None without one."""
    if code not in (CAPACITOR, INDUCTOR):
        return None
    found = [token for _, token in sorted_.named(("ic",))]
    return value_of(found[-1], card, scope) if found else None


def attach(
    scope: Scope, name: str, nodes: tuple[int, int], found: dict[str, ElementCard], multiplier: Value
) -> tuple[int, int]:
    """Add the parasitic elements of the element ``name``; returns the nodes of the element itself."""
    first, second = nodes
    found = {word: stated._replace(multiplier=multiplier) for word, stated in found.items()}
    series = [word for word in SERIES if word in found]
    for word, end in zip(series, ("middle", "inner")[2 - len(series) :]):
        suffix, code = SERIES[word]
        inner = scope.node(f"{name}.{end}")
        scope.state(code, f"{name}.{suffix}", first, inner, found[word])
        first = inner
    for word, (suffix, code) in PARALLEL.items():
        if word in found:
            scope.state(code, f"{name}.{suffix}", *nodes, found[word])
    return first, second
