"""Laws of controlled sources in each call: coefficients evaluated, names of nodes and elements resolved.

A formula of a current in the voltage of its own source, or of a voltage in its own current, is a tape of operations
(`circuitsim.models.formula_law`).
"""

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
    DIODE,
    NULLOR,
    RESISTOR,
    VOLTAGE,
    device_code,
)
from circuitsim.circuit.laws import CurrentControl, Law, Quantity, VoltageControl
from circuitsim.models import formula_operations as f
from circuitsim.models.formula_law import FormulaLaw, FormulaVoltage
from circuitsim.models.formula_operations import Tape
from circuitsim.netlist.affine import Behaviour, Reference, affine_value
from circuitsim.netlist.cards import Card
from circuitsim.netlist.controlled import Controlled
from circuitsim.netlist.evaluate import Domain
from circuitsim.netlist.expression import NEGATE, NOT, TRUTH, ExpressionError, Signal
from circuitsim.netlist.functions import FUNCTIONS, OPERATORS, Affine, Entry, Formula, joined, tape_of
from circuitsim.netlist.physical import factor_of
from circuitsim.netlist.tokens import CardError
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.circuit import Circuit
    from circuitsim.netlist.protocols import Elaboration


VOLTS = 1024.0
"""Volts of a ramp's node for each unit of the ramp: in other programs the drop of its diode counts for so much less."""

OHMS = 1e6
"""The resistor that a ramp's diode drives."""


def times(tape: Tape, factor: float) -> Tape:
    """The tape of a multiple."""
    return tape if factor == 1.0 else (*tape, (f.CONSTANT, factor), (f.MULTIPLY, 0.0))


def series_signs(circuit: Circuit, element: int, names: Sequence[str]) -> list[float] | None:
    """How the currents of an element and of sources in series with it go against its own: 1 or −1 each.

    Parameters
    ----------
    circuit : Circuit
        Complete.
    element : int
    names : sequence of str
        Of the element itself and of the sources.

    Returns
    -------
    list of float, or None
        None where some name is no voltage source that shares a node with the element and with nothing else.
    """
    kind, first, second, _ = circuit.columns()
    at: dict[int, list[int]] = {}
    for k, (a, b) in enumerate(zip(first, second)):
        for node in (a, b):
            at.setdefault(node, []).append(k)
    place = {name.lower(): k for k, name in enumerate(circuit.names)}
    signs = []
    for name in names:
        k = place.get(name.lower(), -1)
        if k == element:
            signs.append(1.0)
            continue
        shared = {first[k], second[k]} & {first[element], second[element]} - {0} if k >= 0 else set()
        alone = [node for node in shared if sorted(at[node]) == sorted((k, element))]
        if k < 0 or kind[k] != VOLTAGE or not alone:
            return None
        signs.append(1.0 if (second[k] == alone[0]) == (first[element] == alone[0]) else -1.0)
    return signs


class _OfFormulas(Domain):
    """Tapes of the voltage, whose sign each control has."""

    symbols = (Formula,)

    def __init__(self, parsed: Behaviour, signs: Sequence[float]) -> None:
        self.signs = {signal: signs[number] for signal, number in parsed.numbers.items()}

    def whole(self, value: Entry) -> Tape:
        """The tape."""
        return tape_of(value)

    def signal(self, signal: Signal) -> Formula:
        """The voltage or its negative."""
        own = Formula(((f.VOLTAGE, 0.0),))
        return own if self.signs[signal] > 0.0 else joined(f.NEGATE, own)

    def need_condition(self, value: Any) -> None:
        """Refuse a number of the voltage in place of a condition."""
        if not value.condition:
            raise self.refused("a number as condition")

    def refused(self, what: str) -> ExpressionError:
        """The error for what there is no operation for."""
        message = f"{what} is not supported in a formula of the source's own voltage"
        return ExpressionError("unsupported", message, hint="docs/elements.md lists what is")

    def either(self, condition: Any, yes: Entry, no: Entry) -> Formula:
        """``yes`` where the condition holds, else ``no``."""
        holds = all(way.condition if isinstance(way, Formula) else way in (0.0, 1.0) for way in (yes, no))
        return _bounded(joined(f.CHOOSE, condition, yes, no, condition=holds))

    def apply(self, name: Any, values: Sequence[Any]) -> Formula:
        """A sign, or an operator or function that has an operation."""
        if name == NEGATE:
            return joined(f.NEGATE, *values)
        if name in (NOT, TRUTH):
            self.need_condition(values[0])
            return joined(f.SUBTRACT, 1.0, *values, condition=True) if name == NOT else values[0]
        row = FUNCTIONS.get(name)
        made = row.tape(*values) if row and row.tape and row.takes(values) else None
        if made is None:
            raise self.refused(f"{name!r}" if name in OPERATORS else f"{name}()")
        return _bounded(made)


def _bounded(formula: Formula) -> Formula:
    """The formula itself, unless it is too long."""
    if len(formula.tape) > f.LONGEST:
        raise ExpressionError("limit", f"the formula has more than {f.LONGEST} operations", hint="simplify it")
    return formula


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
    spec, name = frame.scope.controlled[k], frame.name(k)
    found, report = _tried(elaborator, spec, name, partial(_law_or_device, elaborator, frame, spec, name, position))
    if k in frame.scope.formulas:
        in_series = None
        if found is None and spec.code == AFFINE_VOLTAGE:
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
    except CardError as error:
        if isinstance(error, ExpressionError):
            error.message = f"{short(name)}: {error.message}"
        return None, partial(reporter.failure, error, spec.card, [name], callers)


def _in_series(
    elaborator: Elaboration, frame: Any, spec: Controlled, position: int, callers: Any, circuit: Circuit
) -> tuple[Made | None, Callable[[], None]]:
    """As `_tried`: the device of a formula that reads the currents of sources in series with it, and nothing else."""
    name = elaborator.out.names[position]

    def make() -> Made:
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
    domain = _OfFormulas(spec.expression, signs)
    tape = elaborator.evaluator.symbolic(spec.expression.code, frame.environment, domain)
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
    found, kinked, controls = affine_value(spec.expression, frame.environment, elaborator.evaluator)
    ramps = tuple(_with_names(Quantity.VOLTAGE, controls, u, 1.0, frame) for u in kinked)
    value = math.nan
    if spec.gain is not None:
        value = elaborator.number(spec.gain, frame) * count
        count = 1.0
    made, names = _with_names(quantity, controls, found, count, frame)
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


def _with_names(
    quantity: Quantity, controls: Sequence[Reference], value: Affine, count: float, frame: Any
) -> tuple[Law, tuple[str, ...]]:
    """``count`` times a value as a law with global nodes, −1 − n of ramp n, and the names of its controlling
    elements."""
    voltages, currents, names = [], [], []
    for n, coefficient in sorted(value.coefficients.items()):
        plus, minus, element_name = _places(controls[n], frame) if n >= 0 else (n, 0, "")
        if element_name:
            currents.append(CurrentControl(coefficient * count, -1))
            names.append(frame.prefix + element_name)
        else:
            voltages.append(VoltageControl(coefficient * count, plus, minus))
    return Law(quantity, value.constant * count, tuple(voltages), tuple(currents)), tuple(names)


def _places(control: Reference, frame: Any) -> tuple[int, int, str]:
    """Global nodes of a control, or the name of its element."""
    if control.current:
        return 0, 0, control.first
    plus, minus = (frame.node(frame.scope.nodes[name.lower() or "0"]) for name in (control.first, control.second))
    return plus, minus, ""


def _built(elaborator: Elaboration) -> None:
    """Append the elements of all ramps, and put their nodes into the laws that read them."""
    out = elaborator.out
    with_ramps = sorted(k for k, pending in out.pending.items() if pending.ramps)
    taken = {name.lower() for name in out.names} if with_ramps else set()
    for position in with_ramps:
        pending = out.pending[position]
        nodes: list[int] = []
        for law, names in pending.ramps:
            nodes.append(_ramp(elaborator, pending, _placed(law, nodes, VOLTS), names, len(nodes) + 1, taken))
        out.pending[position] = pending._replace(law=_placed(pending.law, nodes, 1.0), ramps=())


def _placed(law: Law, nodes: list[int], factor: float) -> Law:
    """``factor`` times the law, with the nodes of ramps in place of their numbers."""
    voltages = [
        VoltageControl(c * factor, plus, minus)
        if plus >= 0
        else VoltageControl(c * factor / VOLTS, nodes[-1 - plus], 0)
        for c, plus, minus in law.voltages
    ]
    currents = tuple(control._replace(coefficient=control.coefficient * factor) for control in law.currents)
    return law._replace(constant=law.constant * factor, voltages=tuple(voltages), currents=currents)


def _ramp(
    elaborator: Elaboration, owner: PendingLaw, law: Law, names: tuple[str, ...], number: int, taken: set[str]
) -> int:
    """Source, diode and resistor of one ramp; the node whose voltage it is."""
    out = elaborator.out
    stem = f"{owner.own}."
    while any(f"{stem}{letter}{number}".lower() in taken for letter in "bdr") or any(
        f"{stem}{letter}{number}".lower() in out.nodes for letter in "uy"
    ):
        stem += "."
    inside, output = out.node(f"{stem}u{number}"), out.node(f"{stem}y{number}")
    source = len(out.kind)
    for letter, code, ends, value in (
        ("B", AFFINE_VOLTAGE, (inside, 0), math.nan),
        ("D", DIODE, (inside, output), math.nan),
        ("R", RESISTOR, (output, 0), OHMS),
    ):
        out.element(code, f"{stem}{letter}{number}", *ends, value, owner.card)
        taken.add(f"{stem}{letter}{number}".lower())
    law = law._replace(quantity=Quantity.VOLTAGE)
    out.pending[source] = owner._replace(
        law=law, names=names, own=f"{stem}B{number}", code=AFFINE_VOLTAGE, value=float("nan"), ramps=()
    )
    return output


def resolved(elaborator: Elaboration) -> dict[int, Law]:
    """The laws, ramps as elements, with the positions of what controls them; what is missing is reported."""
    out = elaborator.out
    if not out.pending:
        return {}
    _built(elaborator)
    place = {name.lower(): k for k, name in enumerate(out.names)}
    touched = {0, *out.first, *out.second}
    laws = {}
    for position, (law, names, card, offset, own, *_) in sorted(out.pending.items(), key=lambda item: item[0]):
        fail = partial(elaborator.reporter.error, "control", card=card, offset=offset, names=[own])
        for name in names:
            k = place.get(name.lower())
            if k is None:
                hint = "name an element of the same sub-circuit"
                fail(f"{short(own)}: no element is called {short(name)!r}", hint=hint)
            elif out.kind[k] == CAPACITOR:
                fail(
                    f"{short(own)}: the capacitor {short(name)} carries no current at the operating point",
                    hint="sense the current with a source of 0 V",
                )
        for _, *nodes in law.voltages:
            for node in nodes:
                if node not in touched:
                    fail(
                        f"{short(own)}: no element touches its control node {short(out.node_names[node])}",
                        hint="check the node's name",
                    )
        found = [CurrentControl(c, place.get(name.lower(), 0)) for (c, _), name in zip(law.currents, names)]
        laws[position] = law._replace(currents=tuple(found))
    return laws
