"""The temperatures of a deck: ``.temp``, ``.options temp= tnom=``; what a model or an expression receives of them.

As in ngspice: 27 °C where nothing is stated, ``set temp`` of a ``.control`` block before ``.temp`` before
``.options temp``, the last card of each. A ``.temp`` card with several values is a sweep (`circuitsim.analysis.sweep`);
the operating point is that of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from circuitsim.models.base import ROOM
from circuitsim.netlist.cards import Card
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.functions import CONSTANTS
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Scope
from circuitsim.netlist.tokens import MARK, CardError, Token, tokens
from circuitsim.netlist.values import value_of
from circuitsim.units import exact

BOLTZMANN, CHARGE = 1.380649e-23, 1.602176634e-19
"""J/K and C, exact since 2019."""

ABSOLUTE_ZERO = -273.15
"""°C."""


class Temperatures(NamedTuple):
    """Temperatures of a deck.

    Attributes
    ----------
    ambient : float
        Of every element that states none of its own (``temp=``, or ``dtemp=`` above this one), °C.
    nominal : float
        That at which the values on cards hold, unless a model states its own (``tnom=``), °C.
    """

    ambient: float = ROOM
    nominal: float = ROOM

    def constants(self) -> dict[str, float]:
        """The constants of expressions at this temperature: ``temper`` and ``temp`` in °C, ``vt`` = kT/q in V."""
        thermal = BOLTZMANN * (self.ambient - ABSOLUTE_ZERO) / CHARGE
        return {**CONSTANTS, "temper": self.ambient, "temp": self.ambient, "vt": thermal}

    def of(self, own: Mapping[str, float]) -> float:
        """The temperature (°C) of an element with these values on its card: ``temp``, else ambient and ``dtemp``."""
        return own["temp"] if "temp" in own else self.ambient + own.get("dtemp", 0.0)


DEFAULT = Temperatures()
"""Of a deck that states none."""


def checked_temperature(value: float, offset: int) -> float:
    """``value`` in °C, above absolute zero.

    Raises
    ------
    CardError
    """
    if value < ABSOLUTE_ZERO:
        raise CardError("range", f"{exact(value)} °C is below absolute zero", offset, "temperatures are in °C")
    return value


def temperatures_of(
    cards: Iterable[Card],
    options: Mapping[str, tuple[Card, Token]],
    top: Scope,
    overrides: Mapping[str, float],
    reporter: Reporter,
) -> Temperatures:
    """The temperatures that a deck states; what is wrong with them is reported.

    Parameters
    ----------
    cards : iterable of Card
        Its ``.temp`` cards.
    options : dict
        Its options by name, with the card and the value's token.
    top : Scope
    overrides : dict of str to float
        Parameters with other values than written.
    """
    environment = Environment(None, {}, (top.parameters, top.defaults))
    environment.values.update(overrides)
    stated = {key: options[key] for key in ("temp", "tnom") if key in options}
    for card in cards:
        try:
            words = [token for token in tokens(card, card.start + len(".temp")) if token.kind != MARK]
        except CardError:
            continue  # reported with the other analyses
        if words:
            stated["temp"] = card, words[0]
    if "set temp" in options:
        stated["temp"] = options["set temp"]
    found = {}
    for key, (card, token) in stated.items():
        with reporter.at(card):
            value = value_of(token, card, top)
            value = Evaluator().value(value, environment)
            found[key] = checked_temperature(value, token.offset)
    return Temperatures(found.get("temp", ROOM), found.get("tnom", ROOM))
