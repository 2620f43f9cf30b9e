"""Attributes that LTspice writes on R, L, C, V and I: parasitic resistances act, ratings and other parasitics do not.

    V1 a b 5 Rser=1          →  V1 V1.inner b 5,  V1.Rser a V1.inner 1
    L1 a b 1m Rser=2 Rpar=8  →  L1 L1.inner b 1m, L1.Rser a L1.inner 2, L1.Rpar a b 8
    C1 a b 1u Rpar=1MEG      →  C1 a b 1u,        C1.Rpar a b 1MEG
"""

from __future__ import annotations

from typing import NamedTuple

from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.netlist.cards import Card
from circuitsim.netlist.ranges import checked
from circuitsim.netlist.scope import Scope, Special, Value
from circuitsim.netlist.tokens import CardError, Fields, Token
from circuitsim.netlist.values import constant, value_of
from circuitsim.units import NumberError, parse, short

SERIES, PARALLEL = "rser", "rpar"
ACTING: dict[int, tuple[str, ...]] = {
    VOLTAGE: (SERIES,), INDUCTOR: (SERIES, PARALLEL), CAPACITOR: (PARALLEL,),
}  # fmt: skip
"""Attributes that change the operating point, by element."""

RATINGS = frozenset(("pwr", "irms", "vrms", "ipk", "mfg", "type", "pn", "cpar", "lser", "rlshunt", "load"))
NO_EFFECT: dict[int, frozenset[str]] = {
    RESISTOR: RATINGS, INDUCTOR: RATINGS, CAPACITOR: RATINGS | {SERIES, "v"}, VOLTAGE: RATINGS,
    CURRENT: RATINGS,
}  # fmt: skip
"""Attributes without effect at DC, by element."""


def percent(text: str) -> float | None:
    """``5%`` as 0.05; None for what is no positive percentage."""
    try:
        amount = parse(text.removesuffix("%")) / 100.0
    except NumberError:
        return None
    return amount if amount > 0.0 and text.endswith("%") else None


def tolerance(sorted_: Fields) -> float | None:
    """The share that ``tol=`` states, in per cent with its sign or without, taken from the card's pairs.

    Raises
    ------
    CardError
        It is no percentage.
    """
    stated = [token for key, token in sorted_.pairs if key.text.lower() == "tol"]
    sorted_.pairs[:] = [(key, token) for key, token in sorted_.pairs if key.text.lower() != "tol"]
    if not stated:
        return None
    text = stated[-1].text
    amount = percent(text if text.endswith("%") else f"{text}%")
    if amount is None and text.strip("0.%"):
        raise CardError("syntax", f"tol={short(text)} is no percentage", stated[-1].offset, "write tol=5%")
    return amount


class Parasitic(NamedTuple):
    """A resistance in series with an element or in parallel to it."""

    offset: int
    value: Value


def parasitics(scope: Scope, card: Card, code: int, sorted_: Fields) -> dict[str, Parasitic]:
    """Take the acting attributes of a card from its pairs; series resistances of zero are left out."""
    found: dict[str, Parasitic] = {}
    others: list[tuple[Token, Token]] = []
    for key, token in sorted_.pairs:
        word = key.text.lower()
        if word not in ACTING.get(code, ()):
            others.append((key, token))
            continue
        value = constant(value_of(token, card, scope))
        if isinstance(value, float):
            checked(RESISTOR, key.text, value, token.offset)
        if value != 0.0 or word == PARALLEL:
            found[word] = Parasitic(token.offset, value)
    sorted_.pairs[:] = others
    return found


def initial(scope: Scope, card: Card, code: int, sorted_: Fields) -> Value | None:
    """The value of ``ic=`` of a capacitor, V, or an inductor, A, taken from the card's pairs; None without one."""
    if code not in (CAPACITOR, INDUCTOR):
        return None
    found = [token for key, token in sorted_.pairs if key.text.lower() == "ic"]
    sorted_.pairs[:] = [(key, token) for key, token in sorted_.pairs if key.text.lower() != "ic"]
    return constant(value_of(found[-1], card, scope)) if found else None


def attach(
    scope: Scope, card: Card, name: str, nodes: tuple[int, int], found: dict[str, Parasitic], multiplier: Value
) -> tuple[int, int]:
    """Add the parasitic resistors of the element ``name``; returns the nodes of the element itself."""
    first, second = nodes
    inner = first
    if SERIES in found:
        inner = scope.node(f"{name}.inner")
        _resistor(scope, card, f"{name}.Rser", (first, inner), found[SERIES], multiplier)
    if PARALLEL in found:
        _resistor(scope, card, f"{name}.Rpar", nodes, found[PARALLEL], multiplier)
    return inner, second


def _resistor(
    scope: Scope, card: Card, name: str, nodes: tuple[int, int], parasitic: Parasitic, multiplier: Value
) -> None:
    value = parasitic.value
    if isinstance(value, float) and multiplier == 1.0:
        scope.element(RESISTOR, name, *nodes, value, card)
        return
    position = scope.element(RESISTOR, name, *nodes, 0.0, card)
    scope.specials[position] = Special(card, parasitic.offset, value, multiplier)
