"""Values of resistors and capacitors from what their cards and models state: size, scale and temperature.

As ngspice 39 computes them (tested against it)::

    R = stated value, else RSH (L − 2 SHORT)/(W − 2 NARROW), else R of the model
    R(T) = R (1 + TC1 ΔT + TC2 ΔT²), or R · 1.01^(TCE ΔT) where the card or the model states TCE;  ΔT = T − TNOM

Capacitances and inductances have the same coefficients TC1 and TC2. What the card states has precedence over the
model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from circuitsim.netlist.temperature import Temperatures

SIZE = 10e-6
"""Length and width of a resistor where neither card nor model states them, m."""

OWN = frozenset(("tc", "tc1", "tc2", "tce", "temp", "dtemp", "scale", "l", "w"))
"""Numbers of a resistor's, capacitor's or inductor's card beside its value."""

TYPES = {
    "R": ("R", "RES"),
    "C": ("C", "CAP"),
    "L": ("L", "IND"),
    "S": ("SW",),
    "W": ("CSW",),
}
"""Types of the ``.model`` cards that elements with these letters take."""

COEFFICIENTS = ("tc1", "tc2", "tnom", "t_measured")
"""Parameters of capacitances and inductances over temperature."""

ACTING = {
    "R": frozenset(
        ("r", "res", "rsh", "narrow", "short", "dw", "dlr", "defw", "w", "l", "tc1", "tc2", "tce", "tnom", "t_measured")
    ),
    "C": frozenset(("cap", "c", "cj", "cjsw", "narrow", "short", "defw", "defl", *COEFFICIENTS)),
    "L": frozenset(("ind", "l", *COEFFICIENTS)),
    "S": frozenset(("vt", "vh", "ron", "roff")),
    "W": frozenset(("it", "ih", "ron", "roff")),
}
"""Parameters of these models that are read."""

IDLE = frozenset(("kf", "af", "lf", "wf", "ef", "bv_max", "noise", "level", "temp"))
"""Parameters of these models without effect on any steady state."""

TOLERANCES = frozenset(("dev", "lot"))
"""Words of a passive element's model that state tolerances."""


def unread(letter: str, stated: Iterable[str], bare: Iterable[str]) -> list[str]:
    """What of a model's card has no meaning.

    Parameters
    ----------
    letter : str
        Of the elements that take it.
    stated, bare : iterable of str
        Its parameters with and without a value.
    """
    known = IDLE | ACTING[letter]
    wrong = [word for word in stated if word.lower() not in known and word.lower().partition("/")[0] not in TOLERANCES]
    return wrong + [word for word in bare if word.lower() not in IDLE]


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
        Other numbers of its card (`OWN`) and of its model (`ACTING`), by name.
    temperatures : Temperatures

    Raises
    ------
    ValueError
        Nothing states a resistance, or the temperature takes a value to zero or below; the message is for the user.
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
    """A value over what its card or model states: scale and temperature."""
    rise = temperatures.of(own) - model.get("tnom", model.get("t_measured", temperatures.nominal))
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
    width = own.get("w", model.get("defw", model.get("w", SIZE)))
    sheet = model.get("rsh", 0.0)
    if sheet * length * width > 0.0:
        long = length - 2.0 * model.get("short", model.get("dlr", 0.0))
        wide = width - 2.0 * model.get("narrow", model.get("dw", 0.0))
        if long < 0.0 or wide <= 0.0:
            raise ValueError(f"SHORT and NARROW leave {long:g} m of its length and {wide:g} m of its width")
        return sheet * long / wide
    for name in ("r", "res"):
        if name in model:
            return model[name]
    raise ValueError("neither its card nor its model states a resistance")


def _capacitance(stated: float | None, own: Numbers, model: Numbers) -> float:
    """The capacitance before scale and temperature, F; 0 where nothing states it."""
    if stated is None:
        stated = model.get("cap", model.get("c"))
    if stated is None:
        long = own.get("l", model.get("defl", 0.0)) - model.get("short", 0.0)
        wide = own.get("w", model.get("defw", SIZE)) - model.get("narrow", 0.0)
        stated = model.get("cj", 0.0) * wide * long + 2.0 * model.get("cjsw", 0.0) * (wide + long)
    return stated


def _inductance(stated: float | None, _: Numbers, model: Numbers) -> float:
    """The inductance before scale and temperature, H; 0 where nothing states it."""
    return model.get("ind", model.get("l", 0.0)) if stated is None else stated


SWITCH: Numbers = MappingProxyType({"vt": 0.0, "vh": 0.0, "ron": 1.0, "roff": 1e12})
"""What a model of a switch leaves out; of one that a current controls, ``it`` and ``ih`` are ``vt`` and ``vh``."""


_LAWS: dict[str, tuple[Callable[[float | None, Numbers, Numbers], float], str, str]] = {
    "R": (_resistance, "resistance", "Ω"),
    "C": (_capacitance, "capacitance", "F"),
    "L": (_inductance, "inductance", "H"),
}
"""First letter of a card → its value from what the card states, other numbers of the card, and its model."""
