"""Laws of controlled sources in each call: coefficients evaluated, names of nodes and elements resolved."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.circuit.elements import (
    AFFINE_CURRENT,
    AFFINE_VOLTAGE,
    BY_CURRENT_F,
    BY_CURRENT_H,
    BY_VOLTAGE_E,
    BY_VOLTAGE_G,
    CAPACITOR,
    NULLOR,
    device_code,
)
from circuitsim.circuit.laws import CurrentControl, Law, Quantity, VoltageControl
from circuitsim.models.formula_law import FormulaLaw
from circuitsim.netlist.affine import Reference, affine_value
from circuitsim.netlist.cards import Card
from circuitsim.netlist.controlled import Control, Controlled
from circuitsim.netlist.expression import ExpressionError
from circuitsim.netlist.fixed import fixed_formulas
from circuitsim.netlist.own_voltage import tape_of
from circuitsim.netlist.physical import resistance_factor
from circuitsim.netlist.ramps import Affine, built
from circuitsim.netlist.tokens import CardError
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.circuit import Circuit
    from circuitsim.netlist.elaborate import Elaborator

_QUANTITY = {
    BY_VOLTAGE_E: Quantity.VOLTAGE, BY_VOLTAGE_G: Quantity.CURRENT, BY_CURRENT_F: Quantity.CURRENT,
    BY_CURRENT_H: Quantity.VOLTAGE, AFFINE_VOLTAGE: Quantity.VOLTAGE, AFFINE_CURRENT: Quantity.CURRENT,
    NULLOR: Quantity.NEITHER,
}  # fmt: skip


class PendingLaw(NamedTuple):
    """A law whose controlling elements are still names; the place of its card for errors.

    A control node −1 − n stands for ramp n; ``ramps`` holds u of each, a law with its names.
    """

    law: Law
    names: tuple[str, ...]
    card: Card
    offset: int
    own: str
    code: int
    value: float
    ramps: tuple[tuple[Law, tuple[str, ...]], ...] = ()


class Alternative(NamedTuple):
    """What a formula is if no sources fix it: a law, or a call that reports why it is none."""

    law: PendingLaw | FormulaLaw | None
    report: Callable[[], None]


def _nothing() -> None:
    """No report: there is a law."""


def elaborate(elaborator: Elaborator, frame: Any, k: int, position: int) -> None:
    """The law of element ``k`` of a scope, at ``position`` of the circuit; errors are reported."""
    spec, name = frame.scope.controlled[k], frame.prefix + frame.scope.names[k]
    reporter, callers, found = elaborator.reporter, elaborator.callers(), None
    report: Callable[[], None] = _nothing
    try:
        found = _law_or_device(elaborator, frame, spec, name, position)
    except ExpressionError as error:
        error.message = f"{short(name)}: {error.message}"
        report = partial(reporter.expression, error, spec.card, [name], callers)
    except CardError as error:
        say = partial(reporter.error, error.kind, error.message, spec.card)
        report = partial(say, error.offset, error.hint, [name], callers)
    if k in frame.scope.formulas:
        elaborator.out.alternatives[position] = Alternative(found, report)
    elif found is None:
        report()
    else:
        _put(elaborator.out, position, found)


def decide_formulas(elaborator: Elaborator, circuit: Circuit) -> None:
    """Formulas that sources do not fix become controlled sources, or errors; all affine ones, if asked for."""
    out, formulas = elaborator.out, elaborator.followers.formulas
    known = fixed_formulas(elaborator.following(circuit)) if out.alternatives else set()
    for position, (law, report) in out.alternatives.items():
        stays = position in known and not (elaborator.all_controlled and law is not None)
        if stays or position not in formulas:
            continue
        del formulas[position]
        if law is None:
            report()
        else:
            _put(out, position, law)


def _put(out: Any, position: int, found: PendingLaw | FormulaLaw) -> None:
    """Make an element a controlled source or a device."""
    if isinstance(found, FormulaLaw):
        out.kind[position], out.value[position], out.devices[position] = device_code(found), math.nan, found
    else:
        out.kind[position], out.value[position], out.pending[position] = found.code, found.value, found


def _law_or_device(
    elaborator: Elaborator, frame: Any, spec: Controlled, name: str, position: int
) -> PendingLaw | FormulaLaw:
    """A law; where a formula of a current is no sum of ramps and reads the source's own voltage alone, a device."""
    try:
        return _law(elaborator, frame, spec, name)
    except ExpressionError as error:
        out, expression = elaborator.out, spec.expression
        if error.kind != "unsupported" or expression is None or spec.code != AFFINE_CURRENT:
            raise
        ends = out.first[position], out.second[position], ""
        places = [_places(control, frame) for control in expression.controls]
        if ends[0] == ends[1] or not all(place in (ends, (ends[1], ends[0], "")) for place in places):
            raise
    signs = [1.0 if place == ends else -1.0 for place in places]
    tape = tape_of(expression.code, signs, frame.environment, elaborator.evaluator)
    try:
        return FormulaLaw(tape, cells(elaborator, frame, spec))
    except ValueError as wrong:
        raise CardError("range", f"{short(name)}: {wrong}", spec.offset) from None


def _law(elaborator: Elaborator, frame: Any, spec: Controlled, name: str) -> PendingLaw:
    """The law with global nodes, and the element's value (nan: none)."""
    quantity, count = _QUANTITY[spec.code], cells(elaborator, frame, spec)
    if spec.expression is not None:
        found, kinked = affine_value(spec.expression.code, frame.environment, elaborator.evaluator)
        fixed, terms = found.constant, _terms(spec, found)
        ramps = tuple(_with_names(Quantity.VOLTAGE, u.constant, _terms(spec, u), 1.0, frame) for u in kinked)
    else:
        fixed = elaborator.number(spec.constant, frame)
        terms = [(elaborator.number(c.coefficient, frame), c) for c in spec.controls]
        ramps = ()
    value = math.nan
    if spec.gain is not None:
        value = elaborator.number(spec.gain, frame) * count
        count = 1.0
    made, names = _with_names(quantity, fixed, terms, count, frame)
    laws = [made, *(law for law, _ in ramps)]
    numbers = [c for law in laws for c in (law.constant, *(x[0] for x in law.voltages), *(x[0] for x in law.currents))]
    if not all(map(math.isfinite, numbers)) or math.isinf(value):
        raise CardError("number", f"{short(name)}: a coefficient is out of a double's range", spec.offset)
    return PendingLaw(made, names, spec.card, spec.offset, name, spec.code, value, ramps)


def cells(elaborator: Elaborator, frame: Any, spec: Controlled) -> float:
    """How many sources in parallel, times the factor of the temperature."""
    current = _QUANTITY[spec.code] is Quantity.CURRENT
    found = elaborator.number(spec.multiplier, frame) * frame.multiplier if current else 1.0
    if spec.details:
        own = {word: elaborator.number(value, frame) for word, value in spec.details.items()}
        found *= resistance_factor(own, {}, elaborator.temperatures)
    return found


def _terms(spec: Controlled, value: Affine) -> list[tuple[float, Control | Reference]]:
    """Coefficients and what they multiply; control nodes −1 − n of ramp n."""
    assert spec.expression is not None
    return [
        (c, spec.expression.controls[n] if n >= 0 else Control(1.0, n)) for n, c in sorted(value.coefficients.items())
    ]


def _with_names(
    quantity: Quantity, fixed: float, terms: list[tuple[float, Control | Reference]], count: float, frame: Any
) -> tuple[Law, tuple[str, ...]]:
    """``count`` times constant and terms as a law with global nodes, and the names of its controlling elements."""
    voltages, currents, names = [], [], []
    for coefficient, control in terms:
        plus, minus, element_name = _places(control, frame)
        if element_name:
            currents.append(CurrentControl(coefficient * count, -1))
            names.append(frame.prefix + element_name)
        else:
            voltages.append(VoltageControl(coefficient * count, plus, minus))
    return Law(quantity, fixed * count, tuple(voltages), tuple(currents)), tuple(names)


def _places(control: Control | Reference, frame: Any) -> tuple[int, int, str]:
    """Global nodes of a control, or the name of its element."""
    if isinstance(control, Control):
        if control.element:
            return 0, 0, control.element
        if control.plus < 0:
            return control.plus, 0, ""
        local = control.plus, control.minus
    elif control.current:
        return 0, 0, control.first
    else:
        local = frame.scope.nodes[control.first.lower()], frame.scope.nodes[control.second.lower() or "0"]
    plus, minus = (node if frame.nodes is None else frame.nodes[node] for node in local)
    return plus, minus, ""


def resolved(elaborator: Elaborator) -> dict[int, Law]:
    """The laws, ramps as elements, with the positions of what controls them; what is missing is reported."""
    out = elaborator.out
    if not out.pending:
        return {}
    built(elaborator)
    place = {name.lower(): k for k, name in enumerate(out.names)}
    touched = {0, *out.first, *out.second}
    laws = {}
    for position, (law, names, card, offset, own, *_) in sorted(out.pending.items(), key=lambda item: item[0]):
        fail = elaborator.reporter.error
        for name in names:
            k = place.get(name.lower())
            if k is None:
                fail("control", f"{short(own)}: no element is called {short(name)!r}", card, offset,
                     "name an element of the same sub-circuit", [own])  # fmt: skip
            elif out.kind[k] == CAPACITOR:
                fail("control", f"{short(own)}: the capacitor {short(name)} carries no current at the operating point",
                     card, offset, "sense the current with a source of 0 V", [own])  # fmt: skip
        for _, *nodes in law.voltages:
            for node in nodes:
                if node not in touched:
                    fail("control", f"{short(own)}: no element touches its control node {short(out.node_names[node])}",
                         card, offset, "check the node's name", [own])  # fmt: skip
        found = [CurrentControl(c, place.get(name.lower(), 0)) for (c, _), name in zip(law.currents, names)]
        laws[position] = law._replace(currents=tuple(found))
    return laws


__all__ = ["Alternative", "PendingLaw", "cells", "decide_formulas", "elaborate", "resolved"]
