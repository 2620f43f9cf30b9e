"""Laws of controlled sources in each call: coefficients evaluated, names of nodes and elements resolved."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from circuitsim.models.formula_law import FormulaLaw, FormulaVoltage
from circuitsim.netlist.affine import Reference, affine_value
from circuitsim.netlist.cards import Card
from circuitsim.netlist.controlled import Control, Controlled
from circuitsim.netlist.expression import ExpressionError
from circuitsim.netlist.own_voltage import series_signs, tape_of, times
from circuitsim.netlist.physical import factor_of
from circuitsim.netlist.ramps import Affine, built
from circuitsim.netlist.tokens import CardError
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.circuit import Circuit
    from circuitsim.netlist.protocols import Elaboration

_QUANTITY = {
    BY_VOLTAGE_E: Quantity.VOLTAGE,
    BY_VOLTAGE_G: Quantity.CURRENT,
    BY_CURRENT_F: Quantity.CURRENT,
    BY_CURRENT_H: Quantity.VOLTAGE,
    AFFINE_VOLTAGE: Quantity.VOLTAGE,
    AFFINE_CURRENT: Quantity.CURRENT,
    NULLOR: Quantity.NEITHER,
}


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


Made = PendingLaw | FormulaLaw | FormulaVoltage


class Alternative(NamedTuple):
    """What a formula is if no sources fix it: a law, or a call that reports why it is none; and what it is in a
    complete circuit if it reads the currents of sources in series."""

    law: Made | None
    report: Callable[[], None]
    in_series: Callable[[Circuit], tuple[Made | None, Callable[[], None]]] | None = None


def _nothing() -> None:
    """No report: there is a law."""


def elaborate(elaborator: Elaboration, frame: Any, k: int, position: int) -> None:
    """The law of element ``k`` of a scope, at ``position`` of the circuit; errors are reported."""
    spec, name = frame.scope.controlled[k], frame.prefix + frame.scope.names[k]
    found, report = _tried(elaborator, spec, name, partial(_law_or_device, elaborator, frame, spec, name, position))
    if k in frame.scope.formulas:
        in_series = None
        if found is None and spec.code == AFFINE_VOLTAGE and spec.expression is not None:
            callers = elaborator.callers()
            in_series = partial(_in_series, elaborator, frame, spec, position, callers)
        elaborator.out.alternatives[position] = Alternative(found, report, in_series)
    elif found is None:
        report()
    else:
        _put(elaborator.out, position, found)


def _tried(
    elaborator: Elaboration, spec: Controlled, name: str, make: Callable[[], Made], callers: Any = None
) -> tuple[Made | None, Callable[[], None]]:
    """What ``make`` returns, or a call that reports why there is nothing."""
    reporter, callers = elaborator.reporter, elaborator.callers() if callers is None else callers
    try:
        return make(), _nothing
    except ExpressionError as error:
        error.message = f"{short(name)}: {error.message}"
        return None, partial(reporter.failure, error, spec.card, [name], callers)
    except CardError as error:
        return None, partial(reporter.failure, error, spec.card, [name], callers)


def _in_series(
    elaborator: Elaboration, frame: Any, spec: Controlled, position: int, callers: Any, circuit: Circuit
) -> tuple[Made | None, Callable[[], None]]:
    """As `_tried`: the device of a formula that reads the currents of sources in series with it, and nothing else."""
    name = elaborator.out.names[position]

    def make() -> Made:
        assert spec.expression is not None
        named = [frame.prefix + control.first if control.current else "" for control in spec.expression.controls]
        signs = series_signs(circuit, position, named)
        if signs is None:
            return _law(elaborator, frame, spec, name)
        return _device(elaborator, frame, spec, name, signs)

    return _tried(elaborator, spec, name, make, callers)


def decide_formulas(elaborator: Elaboration, circuit: Circuit) -> None:
    """Formulas that sources do not fix become controlled sources, devices, or errors; all affine ones, if asked for."""
    out, formulas = elaborator.out, elaborator.followers.formulas
    known = elaborator.following(circuit).fixed() if out.alternatives else set()
    for position, (law, report, in_series) in out.alternatives.items():
        stays = position in known and not (elaborator.all_controlled and law is not None)
        if stays or position not in formulas:
            continue
        del formulas[position]
        if law is None and in_series is not None:
            law, report = in_series(circuit)
        if law is None:
            report()
        else:
            _put(out, position, law)


def _put(out: Any, position: int, found: Made) -> None:
    """Make an element a controlled source or a device."""
    if not isinstance(found, PendingLaw):
        out.kind[position], out.value[position], out.devices[position] = device_code(found), math.nan, found
    else:
        out.kind[position], out.value[position], out.pending[position] = found.code, found.value, found


def _law_or_device(elaborator: Elaboration, frame: Any, spec: Controlled, name: str, position: int) -> Made:
    """A law; where a formula is no sum of ramps, and reads the source's own voltage alone or its own current alone, a
    device."""
    try:
        return _law(elaborator, frame, spec, name)
    except ExpressionError as error:
        signs = _own_signs(elaborator.out, frame, spec, name, position)
        if error.kind != "unsupported" or signs is None:
            raise
    return _device(elaborator, frame, spec, name, signs)


def _own_signs(out: Any, frame: Any, spec: Controlled, name: str, position: int) -> list[float] | None:
    """1 for each control that is the source's own voltage, −1 for its negative; likewise 1 for its own current where it
    is a source of a voltage. None: some control is something else."""
    if spec.expression is None:
        return None
    places = [_places(control, frame) for control in spec.expression.controls]
    if spec.code == AFFINE_VOLTAGE:
        own = all(place[2] and (frame.prefix + place[2]).lower() == name.lower() for place in places)
        return [1.0] * len(places) if own else None
    ends = out.first[position], out.second[position], ""
    if ends[0] == ends[1] or not all(place in (ends, (ends[1], ends[0], "")) for place in places):
        return None
    return [1.0 if place == ends else -1.0 for place in places]


def _device(
    elaborator: Elaboration, frame: Any, spec: Controlled, name: str, signs: list[float]
) -> FormulaLaw | FormulaVoltage:
    """The device of a formula."""
    assert spec.expression is not None
    tape = tape_of(spec.expression.code, signs, frame.environment, elaborator.evaluator)
    try:
        if spec.code == AFFINE_CURRENT:
            return FormulaLaw(tape, cells(elaborator, frame, spec))
        count = elaborator.number(spec.multiplier, frame) * frame.multiplier
        return FormulaVoltage(times(tape, cells(elaborator, frame, spec)), count)
    except ValueError as wrong:
        raise CardError("range", f"{short(name)}: {wrong}", spec.offset) from None


def _law(elaborator: Elaboration, frame: Any, spec: Controlled, name: str) -> PendingLaw:
    """The law with global nodes, and the element's value (nan: none)."""
    quantity, count = _QUANTITY[spec.code], cells(elaborator, frame, spec)
    if spec.expression is not None:
        found, kinked, controls = affine_value(spec.expression, frame.environment, elaborator.evaluator)
        fixed, terms = found.constant, _terms(controls, found)
        ramps = tuple(_with_names(Quantity.VOLTAGE, u.constant, _terms(controls, u), 1.0, frame) for u in kinked)
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


def cells(elaborator: Elaboration, frame: Any, spec: Controlled) -> float:
    """How many sources in parallel, times the factor of the temperature."""
    current = _QUANTITY[spec.code] is Quantity.CURRENT
    found = elaborator.number(spec.multiplier, frame) * frame.multiplier if current else 1.0
    if spec.details:
        own = {word: elaborator.number(value, frame) for word, value in spec.details.items()}
        found *= factor_of(own, {}, elaborator.temperatures)
    return found


def _terms(controls: Sequence[Reference], value: Affine) -> list[tuple[float, Control | Reference]]:
    """Coefficients and what they multiply; control nodes −1 − n of ramp n."""
    return [(c, controls[n] if n >= 0 else Control(1.0, n)) for n, c in sorted(value.coefficients.items())]


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


def resolved(elaborator: Elaboration) -> dict[int, Law]:
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
                fail(
                    "control",
                    f"{short(own)}: no element is called {short(name)!r}",
                    card,
                    offset,
                    "name an element of the same sub-circuit",
                    [own],
                )
            elif out.kind[k] == CAPACITOR:
                fail(
                    "control",
                    f"{short(own)}: the capacitor {short(name)} carries no current at the operating point",
                    card,
                    offset,
                    "sense the current with a source of 0 V",
                    [own],
                )
        for _, *nodes in law.voltages:
            for node in nodes:
                if node not in touched:
                    fail(
                        "control",
                        f"{short(own)}: no element touches its control node {short(out.node_names[node])}",
                        card,
                        offset,
                        "check the node's name",
                        [own],
                    )
        found = [CurrentControl(c, place.get(name.lower(), 0)) for (c, _), name in zip(law.currents, names)]
        laws[position] = law._replace(currents=tuple(found))
    return laws


__all__ = ["Alternative", "PendingLaw", "cells", "decide_formulas", "elaborate", "resolved"]
