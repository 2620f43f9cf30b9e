"""Laws of controlled sources in each call: coefficients evaluated, names of nodes and elements resolved.

A source is one of these: independent, where other sources fix all that its formula reads; affine or piecewise linear in
voltages and currents; or a device, where a formula of a current reads the voltage of its own source alone, or one of a
voltage its own current alone: then it is a tape of operations (`circuitsim.models.formula_law`). Any other is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

from circuitsim.circuit import Circuit
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
from circuitsim.models import Device
from circuitsim.models import formula_operations as f
from circuitsim.models.formula_law import FormulaLaw, FormulaVoltage
from circuitsim.models.formula_operations import Tape
from circuitsim.netlist.affine import PiecewiseLinear, affine_value
from circuitsim.netlist.evaluate import Domain
from circuitsim.netlist.expansion import Expansion
from circuitsim.netlist.expression import NEGATE, NOT, PUSH, SIGNAL, TRUTH, UNKNOWN, Code, ExpressionError, Signal
from circuitsim.netlist.functional import FollowingSources, Formula, Moment
from circuitsim.netlist.functions import FUNCTIONS, OPERATORS, Affine, Entry, OfTape, joined, tape_of
from circuitsim.netlist.physical import factor_of
from circuitsim.netlist.scope import ElementCard, Frame
from circuitsim.netlist.tokens import CardError
from circuitsim.units import short

VOLTS = 1024.0
"""Volts of a ramp's node for each unit of the ramp: in other programs the drop of its diode counts for so much less."""

OHMS = 1e6
"""The resistor that a ramp's diode drives."""


def times(tape: Tape, factor: float) -> Tape:
    """The tape of a multiple."""
    return tape if factor == 1.0 else (*tape, (f.CONSTANT, factor), (f.MULTIPLY, 0.0))


class _OfFormulas(Domain):
    """Tapes of the voltage, whose sign each control has."""

    symbols = (OfTape,)

    def __init__(self, signs: dict[Signal, float]) -> None:
        self.signs = signs

    def whole(self, value: Entry) -> Tape:
        """The tape."""
        return tape_of(value)

    def signal(self, signal: Signal) -> OfTape:
        """The voltage or its negative."""
        own = OfTape(((f.VOLTAGE, 0.0),))
        return own if self.signs[signal] > 0.0 else joined(f.NEGATE, own)

    def need_condition(self, value: Any) -> None:
        """Refuse a number of the voltage in place of a condition."""
        if not value.condition:
            raise self.refused("a number as condition")

    def refused(self, what: str) -> ExpressionError:
        """The error for what there is no operation for."""
        message = f"{what} is not supported in a formula of the source's own voltage"
        return ExpressionError("unsupported", message, hint="docs/elements.md lists what is")

    def either(self, condition: Any, yes: Entry, no: Entry) -> OfTape:
        """``yes`` where the condition holds, else ``no``."""
        holds = all(way.condition if isinstance(way, OfTape) else way in (0.0, 1.0) for way in (yes, no))
        return _bounded(joined(f.CHOOSE, condition, yes, no, condition=holds))

    def apply(self, name: Any, values: Sequence[Any]) -> OfTape:
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


def _bounded(formula: OfTape) -> OfTape:
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


def cells(elaborator: Expansion, frame: Frame, stated: ElementCard) -> float:
    """How many sources in parallel, times the factor of the temperature."""
    assert stated.source is not None
    current = _QUANTITY[stated.source.kind] is Quantity.CURRENT
    found = elaborator.number(stated.multiplier, frame) * frame.multiplier if current else 1.0
    if stated.numbers:
        own = {word: elaborator.number(count.value, frame) for word, count in stated.numbers.items()}
        found *= factor_of(own, {}, elaborator.temperatures)
    return found


def classify(elaborator: Expansion, title: str) -> dict[int, Law]:
    """The laws of all controlled elements of an expanded deck, by position; devices are noted, what is wrong is
    reported, and the formulas that are left are those of independent sources.

    All affine formulas are controlled sources where the elaboration asks for that.
    """
    out, formulas, found = elaborator.out, elaborator.formulas, []
    sources = _Sources(elaborator, title)
    for frame, k, position in out.sources:
        stated, name = frame.scope.stated[k], out.names[position]
        made, wrong = None, None
        try:
            made = sources.one(frame, stated, name, position)
        except CardError as error:
            wrong = error
        if position in sources.fixed and (wrong is not None or not elaborator.all_controlled):
            continue
        formulas.pop(position, None)
        if isinstance(wrong, ExpressionError):
            wrong.message = f"{short(name)}: {wrong.message}"
        if wrong is not None:
            elaborator.reporter.failure(wrong, stated.card, [name], frame.callers())
        elif made is not None:
            found.append((frame, stated, position, made))
    for frame, stated, position, made in found:
        if isinstance(made, Device):
            out.kind[position], out.value[position], out.devices[position] = device_code(made), math.nan, made
        else:
            out.laws[position] = sources.law(frame, stated, position, made)
    return dict(sorted(out.laws.items()))


class _Values(NamedTuple):
    """An expression times a number of cells, and a gain that is the value of the element (nan: none)."""

    expression: PiecewiseLinear
    cells: float
    gain: float


class _Sources:
    """The sources of an expanded deck that others may control.

    Attributes
    ----------
    circuit : Circuit
        Their circuit, as far as it is known without their laws.
    """

    def __init__(self, elaborator: Expansion, title: str) -> None:
        self.elaborator, self.out = elaborator, elaborator.out
        self.circuit = Circuit.from_columns(title, self.out.columns(), self.out.names, self.out.node_names)

        self.following: FollowingSources = elaborator.following(self.circuit)

    @cached_property
    def fixed(self) -> set[int]:
        """Positions of the formulas that sources fix."""
        return self.following.fixed()

    @cached_property
    def ends(self) -> Counter[int]:
        """How many ends of elements each node has."""
        return Counter((*self.out.first, *self.out.second))

    @cached_property
    def taken(self) -> set[str]:
        """Names of elements and nodes, in lower case."""
        return {name.lower() for name in (*self.out.names, *self.out.nodes)}

    def one(self, frame: Frame, stated: ElementCard, name: str, position: int) -> _Values | Device:
        """A law or a device; where a formula is neither, that which it is with the values that sources fix.

        Raises
        ------
        CardError
            Neither.
        """
        source = stated.source
        assert source is not None
        try:
            return self.of(source.law, frame, stated, name, position)
        except ExpressionError as error:
            fixed = self.fixed_signals(source.law, frame) if error.kind == "unsupported" else {}
            if position in self.fixed or not fixed:
                raise
            made = self.of(_frozen(source.law, fixed), frame, stated, name, position)
        for signal in list(fixed):  # what enters as any voltage or current does still varies
            rest = {own: value for own, value in fixed.items() if own != signal}
            with suppress(ExpressionError):
                made, fixed = self.of(_frozen(source.law, rest), frame, stated, name, position), rest
        formula = Formula(source.law, frame, cells(self.elaborator, frame, stated), tuple(fixed))
        self.elaborator.frozen[position] = formula
        return made

    def fixed_signals(self, law: Code, frame: Frame) -> dict[Signal, float]:
        """The voltages and currents of an expression that sources fix, with their values, V and A."""
        found, known = {}, self.fixed
        formula, moment = Formula(law, frame), Moment(self.following, {}, 0.0)
        for signal in law.signals:
            if signal.kind in UNKNOWN:
                sources = self.following.sources_of(formula, signal)
                if sources is not None and all(k in known or k not in self.following.formulas for k in sources):
                    found[signal] = moment.signal(signal, formula)
        return found

    def of(self, law: Code, frame: Frame, stated: ElementCard, name: str, position: int) -> _Values | Device:
        """A law, or where an expression is no sum of ramps a device; raises as `one`."""
        source, evaluator = stated.source, self.elaborator.evaluator
        assert source is not None
        count, environment = cells(self.elaborator, frame, stated), frame.environment
        try:
            found = affine_value(law, environment, evaluator)
        except ExpressionError as error:
            signs = self.signs(frame, source.kind, law, name, position) if error.kind == "unsupported" else None
            if signs is None:
                raise
        else:
            gain = math.nan
            if source.gain is not None:
                gain, count = self.elaborator.number(source.gain, frame) * count, 1.0
            sums = [c for one in (found.value, *found.ramps) for c in (one.constant, *one.coefficients.values())]
            if not all(math.isfinite(c * count) for c in sums) or math.isinf(gain):
                raise CardError("number", f"{short(name)}: a coefficient is out of a double's range", stated.offset)
            return _Values(found, count, gain)
        tape = evaluator.symbolic(law, environment, _OfFormulas(signs))
        try:
            if source.kind == AFFINE_CURRENT:
                return FormulaLaw(tape, count)
            return FormulaVoltage(
                times(tape, count), self.elaborator.number(stated.multiplier, frame) * frame.multiplier
            )
        except ValueError as wrong:
            raise CardError("range", f"{short(name)}: {wrong}", stated.offset) from None

    def signs(self, frame: Frame, kind: int, law: Code, name: str, position: int) -> dict[Signal, float] | None:
        """1 for each voltage that is the source's own, −1 for its negative; likewise for its own current, also as that
        of a source in series, where it is a source of a voltage. None: some voltage or current is something else."""
        found = {}
        _, first, second, _ = self.circuit.columns()
        own = first[position], second[position]
        for signal in law.signals:
            if signal.kind not in UNKNOWN:
                continue
            ends: tuple[int, ...] = ()
            if kind == AFFINE_VOLTAGE and signal.kind == "i":
                ends = self.in_series(frame.prefix + signal.first, name, own)
            elif kind == AFFINE_CURRENT and signal.kind == "v" and own[0] != own[1]:
                ends = nodes_of(signal, frame)
            if ends not in (own, own[::-1]):
                return None
            found[signal] = 1.0 if ends == own else -1.0
        return found

    def in_series(self, sense: str, name: str, own: tuple[int, int]) -> tuple[int, ...]:
        """The ends of a source as the current of ``sense`` passes it: of itself, or of a voltage source that shares a
        node with it and with nothing else; none for any other."""
        if sense.lower() == name.lower():
            return own
        kind, first, second, _ = self.circuit.columns()
        k = self.circuit.element_index(sense) if sense in self.circuit else -1
        shared = [node for node in {first[k], second[k]} & {*own} if node and self.ends[node] == 2] if k >= 0 else []
        if not shared or kind[k] != VOLTAGE:
            return ()
        return own if (second[k] == shared[0]) == (own[0] == shared[0]) else own[::-1]

    def law(self, frame: Frame, stated: ElementCard, position: int, made: _Values) -> Law:
        """The law of an element, whose ramps are appended as elements; controls that are not there are reported."""
        source, name, out = stated.source, self.out.names[position], self.out
        assert source is not None
        out.kind[position], out.value[position] = source.kind, made.gain
        value, ramps, controls = made.expression
        place = cache(lambda n: self.control(controls[n], frame, stated, name))
        nodes: list[int] = []
        for u in ramps:
            nodes.append(self.ramp(name, stated, _law(Quantity.VOLTAGE, u, place, nodes, VOLTS), len(nodes) + 1))
        return _law(_QUANTITY[source.kind], value, place, nodes, made.cells)

    def control(self, signal: Signal, frame: Frame, stated: ElementCard, name: str) -> tuple[int, ...]:
        """The two nodes of a voltage, or the position of the element of a current; what is missing is reported."""
        fail = partial(self.elaborator.reporter.error, "control", card=stated.card, offset=stated.offset, names=[name])
        if signal.kind == "v":
            ends = nodes_of(signal, frame)
            for node in ends:
                if node and node not in self.ends:
                    wrong = f"{short(name)}: no element touches its control node {short(self.out.node_names[node])}"
                    fail(wrong, hint="check the node's name")
            return ends
        element = frame.prefix + signal.first
        if element not in self.circuit:
            hint = "name an element of the same sub-circuit"
            fail(f"{short(name)}: no element is called {short(element)!r}", hint=hint)
            return (0,)
        k = self.circuit.element_index(element)
        if self.out.kind[k] == CAPACITOR:
            wrong = f"{short(name)}: the capacitor {short(element)} carries no current at the operating point"
            fail(wrong, hint="sense the current with a source of 0 V")
        return (k,)

    def ramp(self, owner: str, stated: ElementCard, law: Law, number: int) -> int:
        """Source, diode and resistor of one ramp; the node whose voltage it is."""
        out, stem = self.out, f"{owner}."
        while any(f"{stem}{letter}{number}".lower() in self.taken for letter in "bdruy"):
            stem += "."
        inside, output = out.node(f"{stem}u{number}"), out.node(f"{stem}y{number}")
        out.laws[len(out.kind)] = law
        for letter, code, ends, value in (
            ("B", AFFINE_VOLTAGE, (inside, 0), math.nan),
            ("D", DIODE, (inside, output), math.nan),
            ("R", RESISTOR, (output, 0), OHMS),
        ):
            out.element(code, f"{stem}{letter}{number}", *ends, value, stated.card)
            self.taken.add(f"{stem}{letter}{number}".lower())
        return output


def _frozen(law: Code, fixed: Mapping[Signal, float]) -> Code:
    """The expression with numbers in place of some of its signals."""
    found = Code(law.card, law.scope, law.start)
    found.names, found.signals = law.names, [signal for signal in law.signals if signal not in fixed]
    found.program = [
        (PUSH, fixed[argument], at) if instruction == SIGNAL and argument in fixed else (instruction, argument, at)
        for instruction, argument, at in law.program
    ]
    return found


def nodes_of(signal: Signal, frame: Frame) -> tuple[int, int]:
    """The nodes of a voltage."""
    first, second = (frame.node(frame.scope.nodes[name.lower() or "0"]) for name in (signal.first, signal.second or ""))
    return first, second


def _law(
    quantity: Quantity,
    value: Affine,
    place: Callable[[int], tuple[int, ...]],
    nodes: Sequence[int],
    factor: float,
) -> Law:
    """``factor`` times a value, whose controls have these places and whose ramps these nodes, as a law."""
    voltages, currents = [], []
    for n, coefficient in sorted(value.coefficients.items()):
        control = place(n) if n >= 0 else (nodes[-1 - n], 0)
        if len(control) == 1:
            currents.append(CurrentControl(coefficient * factor, *control))
        else:
            voltages.append(VoltageControl(coefficient * factor / (1.0 if n >= 0 else VOLTS), *control))
    return Law(quantity, value.constant * factor, tuple(voltages), tuple(currents))
