"""Values of resistors and capacitors from what their cards and models state: size, scale and temperature.

As ngspice 39 computes them (tested against it)::

    R = stated value, else RSH (L − 2 SHORT)/(W − 2 NARROW), else R of the model
    R(T) = R (1 + TC1 ΔT + TC2 ΔT²), or R · 1.01^(TCE ΔT) where the card or the model states TCE;  ΔT = T − TNOM

What the card states has precedence over the model's. A capacitor is open at DC: its value is only kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from circuitsim.netlist.temperature import Temperatures

SIZE = 10e-6
"""Length and width of a resistor where neither card nor model states them, m."""

OWN = frozenset(("tc", "tc1", "tc2", "tce", "temp", "dtemp", "scale", "l", "w"))
"""Numbers of a resistor's, capacitor's or inductor's card beside its value."""

TYPES = {"R": ("R", "RES"), "C": ("C", "CAP"), "L": ("L", "IND")}
"""Types of the ``.model`` cards that elements with these letters take."""

ACTING = {
    "R": frozenset(("r", "res", "rsh", "narrow", "short", "dw", "dlr", "defw", "w", "l", "tc1", "tc2", "tce", "tnom",
                    "t_measured")),
    "C": frozenset(("cap", "c", "cj", "cjsw", "narrow", "short", "defw", "defl")),
    "L": frozenset(("ind", "l")),
}  # fmt: skip
"""Parameters of these models that are read."""

IDLE = frozenset(("kf", "af", "lf", "wf", "ef", "bv_max", "noise", "level", "temp"))
"""Parameters of these models without effect on any steady state."""


def resistance(
    stated: float | None, own: Mapping[str, float], model: Mapping[str, float], temperatures: Temperatures
) -> float:
    """The resistance of one element, Ω.

    Parameters
    ----------
    stated : float or None
        Value on its card, Ω, at the nominal temperature.
    own, model : mapping of str to float
        Other numbers of its card (`OWN`) and of its model (`ACTING`), by name.
    temperatures : Temperatures

    Raises
    ------
    ValueError
        Nothing states its value, or the temperature takes it to zero or below; the message is for the user.
    """
    base = nominal_resistance(stated, own, model)
    temperature = temperatures.of(own)
    rise = temperature - model.get("tnom", model.get("t_measured", temperatures.nominal))
    factor = thermal_factor(own, model, rise)
    if base > 0.0 and factor <= 0.0:
        raise ValueError(f"its temperature coefficients make the resistance {base * factor:g} Ω at {temperature:g} °C")
    return base * factor * own.get("scale", 1.0)


def nominal_resistance(stated: float | None, own: Mapping[str, float], model: Mapping[str, float]) -> float:
    """The resistance before scale and temperature, Ω; raises as `resistance`."""
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


def thermal_factor(own: Mapping[str, float], model: Mapping[str, float], rise: float) -> float:
    """Resistance over its value at the nominal temperature, ``rise`` kelvins above it."""
    if "tce" in own or "tce" in model:
        return float(1.01 ** (own.get("tce", model.get("tce", 0.0)) * rise))
    linear = own.get("tc", own.get("tc1", model.get("tc1", 0.0)))
    square = own.get("tc2", model.get("tc2", 0.0))
    return 1.0 + (square * rise + linear) * rise


def capacitance(stated: float | None, own: Mapping[str, float], model: Mapping[str, float]) -> float:
    """The capacitance of one element at the nominal temperature, F; 0 where nothing states it."""
    if stated is None:
        stated = model.get("cap", model.get("c"))
    if stated is None:
        long = own.get("l", model.get("defl", 0.0)) - model.get("short", 0.0)
        wide = own.get("w", model.get("defw", SIZE)) - model.get("narrow", 0.0)
        stated = model.get("cj", 0.0) * wide * long + 2.0 * model.get("cjsw", 0.0) * (wide + long)
    return stated * own.get("scale", 1.0)
