"""Cards of controlled sources for a written deck."""

from __future__ import annotations

from collections.abc import Sequence

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import NULLOR, RESISTOR
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.units import exact

FINITE = 1e9
"""Gain with which an ideal op-amp is written: ngspice has none."""


def letter(circuit: Circuit, k: int) -> str:
    """The letter with which controlled element ``k`` is written: that of its name, if it can be."""
    law = circuit.laws[k]
    if circuit.columns()[0][k] == NULLOR:
        return "E"
    voltage = law.quantity is Quantity.VOLTAGE
    own = circuit.names[k][:1].upper()
    by_voltage = not law.currents
    by_current = not law.voltages and all(circuit.columns()[0][c.element] != RESISTOR for c in law.currents)
    possible = "B" + ("E" if voltage else "G") * by_voltage
    possible += ("H" if voltage else "F") * (by_current and not by_voltage)
    return own if own in possible else possible[-1]


def lines(circuit: Circuit, k: int, names: Sequence[str], nodes: Sequence[str]) -> list[str]:
    """The card of controlled element ``k``, with a comment where ngspice has no such element."""
    kind, first, second, values = circuit.columns()
    law, name = circuit.laws[k], names[k]
    head = f"{name} {nodes[first[k]]} {nodes[second[k]]}"
    if kind[k] == NULLOR:
        _, plus, minus = law.voltages[0]
        comment = f"* {name} is an ideal op-amp: in circuitsim {head} OPAMP {nodes[plus]} {nodes[minus]}"
        return [comment, f"{head} {nodes[plus]} {nodes[minus]} {exact(FINITE)}"]
    gain = 1.0 if values[k] != values[k] else values[k]
    which = name[:1].upper()
    if which == "B":
        word = "V" if law.quantity is Quantity.VOLTAGE else "I"
        return [f"{head} {word}={_expression(circuit, law, gain, names, nodes)}"]
    controls = [f"{nodes[p]} {nodes[m]}" for _, p, m in law.voltages] + [names[c.element] for c in law.currents]
    shares = [c.coefficient for c in law.voltages] + [c.coefficient for c in law.currents]
    if len(controls) == 1 and law.constant == 0.0 and values[k] == values[k] and shares == [1.0]:
        return [f"{head} {controls[0]} {exact(gain)}"]
    terms = [exact(x) for x in (law.constant, *(gain * share for share in shares))]
    return [f"{head} POLY({len(controls)}) {' '.join(controls)} {' '.join(terms)}"]


def _expression(circuit: Circuit, law: Law, gain: float, names: Sequence[str], nodes: Sequence[str]) -> str:
    """The law as an expression; currents of resistors as their voltages."""
    kind, first, second, values = circuit.columns()
    terms = [exact(law.constant)]
    for c, plus, minus in law.voltages:
        terms.append(f"({exact(gain * c)})*v({nodes[plus]},{nodes[minus]})")
    for c, k in law.currents:
        if kind[k] == RESISTOR and values[k] > 0.0:
            terms.append(f"({exact(gain * c / values[k])})*v({nodes[first[k]]},{nodes[second[k]]})")
        else:
            terms.append(f"({exact(gain * c)})*i({names[k]})")
    return " + ".join(terms)
