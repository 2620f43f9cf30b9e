"""Values of resistors and capacitors from their cards and models: size, scale and temperature.

As ngspice 39 computes them (tested against it)::

    R = stated value, else RSH (L − 2 SHORT)/(W − 2 NARROW), else R of the model
    R(T) = R (1 + TC1 ΔT + TC2 ΔT²), or R · 1.01^(TCE ΔT) where the card or the model states TCE;  ΔT = T − TNOM

Capacitances and inductances have the same coefficients TC1 and TC2. Values on the card take precedence over the
model's.

As in ngspice: the default is 27 °C; ``set temp`` of a ``.control`` block takes precedence over ``.temp``, and that over
``.options temp``; the last card of each counts. A ``.temp`` card with several values is a sweep
(`circuitsim.analysis.sweep`); the operating point is that of the first.

Attributes that LTspice writes on R, L, C, V and I: parasitic elements act, ratings do not.

V1 a b 5 Rser=1          →  V1 V1.inner b 5,  V1.Rser a V1.inner 1
L1 a b 1m Rser=2 Cpar=8p →  L1 L1.inner b 1m, L1.Rser a L1.inner 2, L1.Cpar a b 8p
C1 a b 1u Rser=1 Lser=1n →  C1 C1.inner b 1u, C1.Lser C1.middle C1.inner 1n, C1.Rser a C1.middle 1

Values on cards are checked against the ranges in the element table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from circuitsim.circuit.elements import CAPACITOR, ELEMENTS, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.models.base import ROOM
from circuitsim.netlist.cards import CardError, Place, Token
from circuitsim.netlist.functions import CONSTANTS
from circuitsim.units import NumberError, exact, parse, short

BOLTZMANN, CHARGE = 1.380649e-23, 1.602176634e-19
"""J/K and C, exact since 2019."""

ABSOLUTE_ZERO = -273.15
"""°C."""


class Temperatures(NamedTuple):
    """Temperatures of a deck.

    Attributes
    ----------
    ambient : float
        Of all elements without their own (``temp=``, or ``dtemp=`` above this one), °C.
    nominal : float
        Temperature for which values on cards hold, unless a model states its own (``tnom=``), °C.
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


def checked_temperature(value: float, at: Place) -> float:
    """``value`` in °C, above absolute zero.

    Raises
    ------
    CardError
    """
    if value < ABSOLUTE_ZERO:
        raise CardError(f"{exact(value)} °C is below absolute zero", at, "temperatures are in °C", "range")
    return value


def positive(name: str, word: str, number: float, at: Place) -> None:
    """Refuse a count ``m=`` or ``n=`` that is not above zero.

    Raises
    ------
    CardError
    """
    if number <= 0:
        what = "multiplier m" if word == "m" else "number n in series"
        raise CardError(
            f"{short(name)}: the {what} must be positive, not {exact(number)}", at, "remove the card", "range"
        )


def checked(code: int, name: str, value: float, at: Place) -> float:
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
            f"{short(name)}: the {row.parameter} {wrong} ({amount})",
            at,
            "a passive circuit has no negative " + row.parameter if row.unit else "",
            "range",
        )
    return value


SERIES = {"rser": ("Rser", RESISTOR), "lser": ("Lser", INDUCTOR)}
"""Parasitic elements in series, starting at the element's first node: their names and kinds."""
PARALLEL = {"rpar": ("Rpar", RESISTOR), "cpar": ("Cpar", CAPACITOR)}
PARASITIC: dict[int, tuple[str, ...]] = {
    VOLTAGE: ("rser", "cpar"),
    INDUCTOR: ("rser", "rpar", "cpar"),
    CAPACITOR: ("rser", "lser", "rpar", "cpar"),
}
"""Attributes that are parasitic elements, by element."""


def percent(text: str) -> float | None:
    """``5%`` as 0.05; None for anything but a positive percentage."""
    try:
        amount = parse(text.removesuffix("%")) / 100.0
    except NumberError:
        return None
    return amount if amount > 0.0 and text.endswith("%") else None


def tolerance(token: Token) -> float | None:
    """``tol=`` (per cent, with or without its sign) as a fraction; None for zero.

    Raises
    ------
    CardError
        It is not a percentage.
    """
    amount = percent(token.text.removesuffix("%") + "%")
    if amount is None and token.text.strip("0.%"):
        raise CardError(f"tol={short(token.text)} is not a percentage", token, "write tol=5%")
    return amount


SIZE = 10e-6
"""Default length and width of a resistor, m."""

OWN = ("tc", "tc1", "tc2", "tce", "temp", "dtemp", "scale", "l", "w")
"""Numbers on the card of a resistor, capacitor or inductor in addition to its value."""


class CardModel(NamedTuple):
    """The ``.model`` cards of elements with one letter: their types, and the parameters that are read, as spelled →
    name."""

    types: tuple[str, ...]
    parameters: Mapping[str, str]


def _model(types: str, parameters: str) -> CardModel:
    """The row of a model whose parameters are ``name`` or ``spelling=name``."""
    pairs = (word.partition("=") for word in parameters.split())
    return CardModel(tuple(types.split()), {word: name or word for word, _, name in pairs})


MODELS = {
    "R": _model("R RES", "r res=r rsh narrow dw=narrow short dlr=short w defw=w l tc1 tc2 tce tnom t_measured=tnom"),
    "C": _model("C CAP", "cap c=cap cj cjsw narrow short defw defl tc1 tc2 tnom t_measured=tnom"),
    "L": _model("L IND", "ind l=ind tc1 tc2 tnom t_measured=tnom"),
    "S": _model("SW", "vt vh ron roff"),
    "W": _model("CSW", "it=vt ih=vh ron roff"),
}
"""By the letter of the elements."""


def letter_of(type_: str) -> str:
    """The letter of the elements that take models of this type; empty for other types."""
    return next((letter for letter, row in MODELS.items() if type_ in row.types), "")


TOLERANCES = frozenset(("dev", "lot"))
"""Words of a passive element's model that give tolerances."""


Numbers = Mapping[str, float]


def element_value(
    letter: str, stated: float | None, own: Numbers, model: Numbers, temperatures: Temperatures
) -> tuple[float, float]:
    """The value of a resistor (Ω), capacitor (F), inductor (H) or switch (Ω), and its ratio to the value on its card.

    Parameters
    ----------
    letter : str
        First letter of its card.
    stated : float or None
        Value on its card, at the nominal temperature.
    own, model : mapping of str to float
        Other numbers of its card (`OWN`) and of its model (`MODELS`), by name.
    temperatures : Temperatures

    Raises
    ------
    ValueError
        No resistance is given, or the temperature makes a value nonpositive; the message is for the user.
    """
    if letter not in _LAWS:
        key = "ron" if own["closed"] else "roff"
        return model.get(key, SWITCH[key]), 1.0
    law, what, unit = _LAWS[letter]
    base, factor = law(stated, own, model), factor_of(own, model, temperatures)
    if base > 0.0 and factor <= 0.0:
        where = f"at {temperatures.of(own):g} °C"
        raise ValueError(f"its temperature coefficients make the {what} {base * factor:g} {unit} {where}")
    return base * factor, factor


def factor_of(own: Numbers, model: Numbers, temperatures: Temperatures) -> float:
    """Ratio of a value to that on its card or model: scale and temperature."""
    rise = temperatures.of(own) - model.get("tnom", temperatures.nominal)
    if "tce" in own or "tce" in model:
        found = float(1.01 ** (own.get("tce", model.get("tce", 0.0)) * rise))
    else:
        linear = own.get("tc", own.get("tc1", model.get("tc1", 0.0)))
        found = 1.0 + (own.get("tc2", model.get("tc2", 0.0)) * rise + linear) * rise
    return found * own.get("scale", 1.0)


def _resistance(stated: float | None, own: Numbers, model: Numbers) -> float:
    """The resistance before scale and temperature, Ω; raises as `element_value`."""
    if stated is not None:
        return stated
    length = own.get("l", model.get("l", SIZE))
    width = own.get("w", model.get("w", SIZE))
    sheet = model.get("rsh", 0.0)
    if sheet * length * width > 0.0:
        long = length - 2.0 * model.get("short", 0.0)
        wide = width - 2.0 * model.get("narrow", 0.0)
        if long < 0.0 or wide <= 0.0:
            raise ValueError(f"SHORT and NARROW leave {long:g} m of its length and {wide:g} m of its width")
        return sheet * long / wide
    if "r" not in model:
        raise ValueError("neither its card nor its model states a resistance")
    return model["r"]


def _capacitance(stated: float | None, own: Numbers, model: Numbers) -> float:
    """The capacitance before scale and temperature, F; 0 by default."""
    if stated is None:
        stated = model.get("cap")
    if stated is None:
        long = own.get("l", model.get("defl", 0.0)) - model.get("short", 0.0)
        wide = own.get("w", model.get("defw", SIZE)) - model.get("narrow", 0.0)
        stated = model.get("cj", 0.0) * wide * long + 2.0 * model.get("cjsw", 0.0) * (wide + long)
    return stated


def _inductance(stated: float | None, _: Numbers, model: Numbers) -> float:
    """The inductance before scale and temperature, H; 0 by default."""
    return model.get("ind", 0.0) if stated is None else stated


SWITCH: Numbers = MappingProxyType({"vt": 0.0, "vh": 0.0, "ron": 1.0, "roff": 1e12})
"""Defaults of a switch model."""


_LAWS: dict[str, tuple[Callable[[float | None, Numbers, Numbers], float], str, str]] = {
    "R": (_resistance, "resistance", "Ω"),
    "C": (_capacitance, "capacitance", "F"),
    "L": (_inductance, "inductance", "H"),
}
"""First letter of a card → its value from the value and numbers on the card, and its model."""
