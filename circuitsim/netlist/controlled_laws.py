"""Constitutive relations of controlled sources in each sub-circuit call, names of nodes and elements resolved.

A source is independent if other sources fix everything its formula reads; affine or piecewise linear in voltages and
currents; or a device, if the formula of a current reads only the source's own voltage, or that of a voltage only its
own current (then it is a tape of operations, `circuitsim.models.formula_law`). All others are refused.
Affine expressions are constant + Σ coefficient · control, in voltages v(a,b) and currents i(name). Coefficients may be
any expressions of parameters; max, min, abs, limit, table and uramp are sums of ramps max(0, u) of affine values u. Any
other operation on a control (a product of two, a function) is refused with its name.

A ramp is a control like a voltage, and u may contain earlier ramps, so nested expressions need no special treatment. In
the circuit it is a voltage source u in series with an ideal diode and a resistor to ground: the exact methods apply.

A condition is a comparison u > 0 of an affine value. If its two values differ by a function d of u alone with
d(0) = 0, the choice is the second value + d(max(0, u)): a sum of ramps. Other choices are discontinuous and refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from circuitsim.errors import NetlistError
from circuitsim.models import Device
from circuitsim.models import formula_operations as f
from circuitsim.models.formula_law import FormulaLaw, FormulaVoltage
from circuitsim.models.formula_operations import Tape
from circuitsim.netlist import limits
from circuitsim.netlist.cards import CardError
from circuitsim.netlist.elaborate import OF_CURRENT, Elaborator, Origins
from circuitsim.netlist.expression import UNKNOWN, Code, Domain, Environment, Evaluator, ExpressionError, Signal
from circuitsim.netlist.functional import Formula, Moment
from circuitsim.netlist.functions import (
    FUNCTIONS,
    NOT,
    OPERATORS,
    TRUTH,
    Affine,
    Entry,
    OfTape,
    Ramps,
    Steps,
    joined,
    tape_of,
)
from circuitsim.netlist.scope import ControlledSource, Frame, Placed
from circuitsim.units import short

MEET = 1e-12
"""Largest relative difference of two values at the threshold that counts as rounding of the deck's numbers."""


def _clear(value: Affine) -> dict[int, float]:
    return {key: c for key, c in value.terms.items() if c}


def _cleared(value: Affine, *parts: Affine) -> Affine:
    """``value`` without coefficients that are rounding relative to those of its parts."""
    kept = {
        key: c for key, c in value.terms.items() if abs(c) > MEET * max(abs(part.terms.get(key, 0.0)) for part in parts)
    }
    return Affine(value, kept)


class PiecewiseLinear(NamedTuple):
    """The value of an expression, the arguments of its ramps, the voltages and currents by number, and the gain if the
    element's value is one (nan: none)."""

    value: Affine
    ramps: list[Affine]
    controls: list[Signal]
    gain: float = math.nan


def affine_value(
    code: Code, environment: Environment, evaluator: Evaluator, fixed: Mapping[Signal, float]
) -> PiecewiseLinear:
    """The value of an expression.

    Raises
    ------
    ExpressionError
        It is not continuous and piecewise linear in voltages and currents, or has no value.
    """
    try:
        return evaluator.value(code, environment, _PiecewiseLinear(evaluator, fixed, apart=False))
    except ExpressionError as error:
        if error.kind != "unsupported" or not any(signal.second for signal in code.signals):
            raise
    return evaluator.value(code, environment, _PiecewiseLinear(evaluator, fixed, apart=True))


class _PiecewiseLinear(Ramps, Domain):
    """Affine values, and numbers chosen by conditions on these; with ``apart``, v(a,b) is v(a) − v(b), which a
    condition may compare with v(a)."""

    symbols = (Affine, Steps)

    def __init__(self, evaluator: Evaluator, fixed: Mapping[Signal, float], apart: bool) -> None:
        super().__init__()
        self.evaluator, self.fixed, self.apart = evaluator, fixed, apart
        self.controls: list[Signal] = []
        self.numbers: dict[Signal, int] = {}

    def whole(self, value: Any) -> PiecewiseLinear:
        """The value of the expression as an affine one."""
        with _continuous():
            return PiecewiseLinear(self.affine(value), self.values, self.controls)

    def refused(self, what: str) -> ExpressionError:
        """The error for an expression that is not piecewise linear."""
        return ExpressionError(
            f"{what} of voltages or currents is not affine in them",
            hint="use sums, products with numbers, max, min, abs, limit, table or a continuous if(); "
            "model other nonlinearities with diodes",
            kind="unsupported",
        )

    def signal(self, signal: Signal) -> Affine:
        """A voltage or current."""
        if self.apart and signal.second:
            ends = (self.signal(Signal("v", node)) for node in (signal.first, signal.second))
            return next(ends) - next(ends)
        second = (signal.second or "").lower()
        key = Signal(signal.kind, signal.first.lower(), "" if second in ("0", "gnd") else second)
        if key not in self.numbers:
            self.numbers[key] = len(self.controls)
            self.controls.append(signal._replace(second=key.second and signal.second))
        return Affine(0.0, {self.numbers[key]: 1.0})

    def need_condition(self, value: Any) -> None:
        """Refuse a voltage or current in place of a condition."""
        if isinstance(value, Affine):
            raise ExpressionError(
                "a voltage or current is not a condition", hint="compare it: v(a) > 0 ? … : …", kind="unsupported"
            )

    def either(self, condition: Any, yes: Any, no: Any) -> Any:
        """``yes`` where the condition is not zero, else ``no``."""
        self.need_condition(condition)
        with _continuous():
            return self.chosen(condition, lambda number: yes if number else no)

    def apply(self, name: str, values: Sequence[Any]) -> Any:
        """Apply an operator or function: to each number that conditions choose, otherwise by the table."""
        at = next((k for k, value in enumerate(values) if isinstance(value, Steps)), None)
        if at is not None:
            with _continuous():
                return self.chosen(values[at], lambda one: self.apply(name, (*values[:at], one, *values[at + 1 :])))
        if not any(isinstance(value, Affine) for value in values):
            return self.evaluator.apply(name, values)
        if name in (NOT, TRUTH):
            self.need_condition(values[0])
        if name == "/" and not isinstance(values[1], Affine):
            return values[0] * self.evaluator.apply(name, (1.0, values[1]))
        try:
            made = FUNCTIONS[name].ramps
            found = None if made is None else made(self, *values)
        except ValueError as error:
            raise ExpressionError(f"{name}(): {error}", kind="unsupported") from None
        if found is None:
            raise self.refused(_WORDS.get(name, f"{name!r}" if name in OPERATORS else f"{name}()"))
        return found

    def chosen(self, steps: Any, value: Callable[[float], Any]) -> Any:
        """``value(number)`` for the number that holds.

        Raises
        ------
        ValueError
            It is discontinuous, or there are too many conditions.
        """
        if not isinstance(steps, Steps):
            return value(steps)
        yes, no = self.chosen(steps.yes, value), self.chosen(steps.no, value)
        if isinstance(yes, Affine) or isinstance(no, Affine):
            return self.joined(steps.test, self.affine(yes), self.affine(no))
        if yes == no:
            return yes
        size = 1 + sum(one.size for one in (yes, no) if isinstance(one, Steps))
        if size > limits.CONDITIONS:
            raise ValueError(f"more than {limits.CONDITIONS} conditions in one expression")
        return Steps(steps.test, yes, no, size)

    def affine(self, value: Any) -> Affine:
        """A value as an affine one; steps have none, since they jump."""
        if isinstance(value, Steps):
            return self.joined(value.test, self.affine(value.yes), self.affine(value.no))
        return value if isinstance(value, Affine) else Affine(value, {})

    def joined(self, test: Affine, yes: Affine, no: Affine) -> Affine:
        """``yes`` where ``test`` > 0, else ``no``."""
        if not _clear(yes):  # a constant is exact where it applies
            test, yes, no = test * -1.0, no, yes
        difference = _cleared(yes - no, yes, no)
        jump = self.along(difference, test, 0.0)
        slope = max(map(abs, difference.terms.values()), default=0.0) / max(map(abs, test.terms.values()))
        size = sum(map(abs, map(float, (yes, no)))) + slope * abs(float(test))
        if not isinstance(jump, float) or abs(jump) > MEET * size:
            raise ValueError(self.place(test, yes, no))
        change = self.along(difference, test, self.ramp(test)) if difference.terms else 0.0
        return no + change - (jump if difference.terms else 0.0)

    def along(self, value: Affine, test: Affine, instead: Affine | float, before: int | None = None) -> Any:
        """``value`` with ``instead`` in place of ``test``; None where it is not a function of ``test`` alone.

        Arguments of ramps may read the ramps ``before`` them.
        """
        pivot = max(test.terms, key=lambda key: abs(test.terms[key]))
        share = value.terms.get(pivot, 0.0) / test.terms[pivot]
        rest = _cleared(value + test * -share, value, test * share)
        found: Any = instead * share + float(rest)
        for key, coefficient in rest.terms.items():
            ramp = -1 - key
            if ramp < 0 or (before is not None and ramp >= before):
                return None
            inside = self.along(self.values[ramp], test, instead, ramp)
            if inside is None:
                return None
            found += (self.ramp(inside) if isinstance(inside, Affine) else max(inside, 0.0)) * coefficient
        return found

    def place(self, test: Affine, yes: Affine, no: Affine) -> str:
        """Description of a discontinuity: its place and both values."""
        terms = sorted(_clear(test).items())
        if any(key < 0 for key, _ in terms):
            where = "where its condition changes"
        elif len(terms) == 1:
            where = f"at {self.controls[terms[0][0]].text} = {0.0 - float(test) / terms[0][1]:.6g}"
        else:
            both = " + ".join(f"{c:.6g}*{self.controls[key].text}" for key, c in terms)
            where = f"where {both.replace('+ -', '- ')} = {0.0 - float(test):.6g}"
        ends = sorted((self.along(one, test, 0.0) for one in (yes, no)), key=lambda end: (end is None, end))
        if None in ends:
            return f"the value jumps {where}"
        return f"the value jumps by {ends[1] - ends[0]:.6g} {where} (between {ends[0]:.6g} and {ends[1]:.6g})"


@contextmanager
def _continuous() -> Iterator[None]:
    """Errors of choices."""
    try:
        yield
    except ValueError as error:
        raise ExpressionError(str(error), hint=_CONTINUOUS, kind="unsupported") from None


_CONTINUOUS = "both values must meet at the threshold, as in if(v(a) > 1, v(a) - 1, 0)"

_WORDS = {"*": "the product", "/": "a quotient by", "**": "a power"}


VOLTS = 1024.0
"""Node voltage of a ramp, V, per unit of the ramp: reduces the effect of its diode's drop in other programs."""

OHMS = 1e6
"""Resistance of a ramp's load."""


def times(tape: Tape, factor: float) -> Tape:
    """The tape of a multiple."""
    return tape if factor == 1.0 else (*tape, (f.CONSTANT, factor), (f.MULTIPLY, 0.0))


class _OfFormulas(Domain):
    """Tapes of a voltage; ``signs`` gives the sign of each control."""

    symbols = (OfTape,)

    def __init__(self, signs: dict[Signal, float], fixed: Mapping[Signal, float]) -> None:
        self.signs, self.fixed = signs, fixed

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
        """The error for an operation that tapes do not have."""
        return ExpressionError(
            f"{what} is not supported in a formula of the source's own voltage",
            hint="docs/elements.md lists the supported operations",
            kind="unsupported",
        )

    def either(self, condition: Any, yes: Entry, no: Entry) -> OfTape:
        """``yes`` where the condition holds, else ``no``."""
        self.need_condition(condition)
        if (yes, no) == (1.0, 0.0):
            return condition
        holds = all(way.condition if isinstance(way, OfTape) else way in (0.0, 1.0) for way in (yes, no))
        return _bounded(joined(f.CHOOSE, condition, yes, no, condition=holds))

    def apply(self, name: str, values: Sequence[Any]) -> OfTape:
        """An operator or function that has operations."""
        if name in (NOT, TRUTH):
            self.need_condition(values[0])
        try:
            made = FUNCTIONS[name].on_tape(values)
        except ValueError:
            made = None
        if made is None:
            raise self.refused(f"{name!r}" if name in OPERATORS else f"{name}()")
        return _bounded(made)


def _bounded(formula: OfTape) -> OfTape:
    """The formula itself, unless it is too long."""
    if len(formula.tape) > f.LONGEST:
        raise ExpressionError(f"the formula has more than {f.LONGEST} operations", hint="simplify it", kind="limit")
    return formula


PLAIN = frozenset((BY_VOLTAGE_E, BY_VOLTAGE_G, BY_CURRENT_F, BY_CURRENT_H))
"""Kinds of elements with a plain gain."""


def _quantity(kind: int) -> Quantity:
    """The quantity that a kind of controlled element sets."""
    return Quantity.NEITHER if kind == NULLOR else Quantity.CURRENT if kind in OF_CURRENT else Quantity.VOLTAGE


def circuit_of(elaborator: Elaborator, title: str) -> Circuit:
    """The circuit of an expanded deck; errors go to its reporter."""
    elaborator.expand(Frame(elaborator.top, elaborator.environment))
    for name, value in elaborator.environment.values.items() if elaborator.following.formulas else ():
        elaborator.draws.elsewhere(name, value)
    laws, out = classify(elaborator, title), elaborator.out
    for (name, _), at in elaborator.draws.cards.items():
        elaborator.reporter.gather(
            "nominal",
            "random functions take their nominal values (%s); circuitsim montecarlo samples them",
            at,
            f"{name}()",
        )
    elaborator.check_names()
    circuit = Circuit.from_columns(title, out.columns(), out.names, out.node_names, Origins(out), out.devices, laws)
    if not elaborator.following.formulas:
        return circuit
    try:
        return circuit.with_values(elaborator.following.of(circuit).values({}))
    except NetlistError as error:
        for problem in error.problems:
            elaborator.reporter.place_error(problem, next(iter(elaborator.following.formulas.values())).code.card)
        return circuit


def classify(elaborator: Elaborator, title: str) -> dict[int, Law]:
    """Classify all controlled elements of an expanded deck, by position: devices are recorded, errors reported; the
    remaining formulas are those of independent sources.

    With ``all_controlled`` every affine formula is a controlled source.
    """
    out, formulas, found = elaborator.out, elaborator.following.formulas, []
    sources = _Sources(elaborator, title)
    for own in out.sources:
        made, wrong, position = None, None, own.position
        try:
            made = sources.one(own)
        except CardError as error:
            wrong = error
        if position in sources.fixed and (wrong is not None or not elaborator.all_controlled):
            continue
        formulas.pop(position, None)
        if isinstance(wrong, ExpressionError):
            wrong.message = f"{short(own.name)}: {wrong.message}"
        if wrong is not None:
            elaborator.reporter.failure(wrong, own.stated.at.card, [own.name], own.frame.callers())
        elif made is not None:
            found.append((own, made))
    for own, made in found:
        at = own.position
        if isinstance(made, Device):
            out.kind[at], out.value[at], out.devices[at] = device_code(made), math.nan, made
        else:
            out.laws[at] = sources.law(own, made)
    return dict(sorted(out.laws.items()))


class _Sources:
    """The sources of an expanded deck that may be controlled.

    Attributes
    ----------
    circuit : Circuit
        The circuit without their equations.
    """

    def __init__(self, elaborator: Elaborator, title: str) -> None:
        self.elaborator, self.out = elaborator, elaborator.out
        self.circuit = Circuit.from_columns(title, self.out.columns(), self.out.names, self.out.node_names)

        self.following = elaborator.following.of(self.circuit)

    @cached_property
    def fixed(self) -> set[int]:
        """Positions of the formulas determined by sources."""
        return self.following.fixed()

    @cached_property
    def ends(self) -> Counter[int]:
        """Degree of each node."""
        return Counter((*self.out.first, *self.out.second))

    @cached_property
    def taken(self) -> set[str]:
        """Names of elements and nodes, in lower case."""
        return {name.lower() for name in (*self.out.names, *self.out.nodes)}

    def one(self, own: Placed) -> PiecewiseLinear | Device:
        """The equation or device of a source, with the values of signals fixed by other sources if necessary.

        Raises
        ------
        CardError
            It is neither.
        """
        source = own.stated.source
        assert source is not None
        try:
            return self.of(own, source, {})
        except ExpressionError as error:
            fixed = self.fixed_signals(source.law, own.frame) if error.kind == "unsupported" else {}
            if own.position in self.fixed or not fixed:
                raise
            made = self.of(own, source, fixed)
        for signal in list(fixed):  # those with a gain that is any voltage or current still vary
            rest = {other: value for other, value in fixed.items() if other != signal}
            with suppress(ExpressionError):
                made, fixed = self.of(own, source, rest), rest
        formula = Formula(source.law, own.frame, self.elaborator.cells(own), tuple(fixed))
        self.elaborator.following.frozen[own.position] = formula
        return made

    def fixed_signals(self, law: Code, frame: Frame) -> dict[Signal, float]:
        """The voltages and currents in an expression that sources fix, with their values, V and A."""
        formula, moment = Formula(law, frame), Moment(self.following, {}, 0.0)
        varying = {None, *self.following.formulas} - self.fixed
        return {
            signal: moment.signal(signal, formula)
            for signal in law.signals
            if signal.kind in UNKNOWN and not self.following.sources_of(formula, signal) & varying
        }

    def of(self, own: Placed, source: ControlledSource, fixed: Mapping[Signal, float]) -> PiecewiseLinear | Device:
        """A law, or where an expression is not a sum of ramps a device, with the values of ``fixed`` signals; raises as
        `one`."""
        evaluator, frame, stated, name = self.elaborator.evaluator, own.frame, own.stated, short(own.name)
        count, environment = self.elaborator.cells(own), frame.environment
        try:
            found = affine_value(source.law, environment, evaluator, fixed)
        except ExpressionError as error:
            signs = self.signs(own, source, fixed) if error.kind == "unsupported" else None
            if signs is None:
                raise
        else:
            value, gain = found.value * count, math.nan
            if not all(math.isfinite(c) for one in (value, *found.ramps) for c in (float(one), *one.terms.values())):
                raise CardError(f"{name}: a coefficient is out of a double's range", stated.at, kind="number")
            if source.kind in PLAIN:
                control, gain = next(iter(value.terms.items()))
                value = Affine(0.0, {control: 1.0})
            return found._replace(value=value, gain=gain)
        tape = evaluator.value(source.law, environment, _OfFormulas(signs, fixed))
        try:
            if source.kind == AFFINE_CURRENT:
                return FormulaLaw(tape, count)
            m = self.elaborator.number(stated.multiplier, frame) * frame.multiplier
            return FormulaVoltage(times(tape, count), m)
        except ValueError as wrong:
            raise CardError(f"{name}: {wrong}", stated.at, kind="range") from None

    def signs(self, own: Placed, source: ControlledSource, fixed: Collection[Signal]) -> dict[Signal, float] | None:
        """1 for each voltage that is the source's own, −1 for its negative; likewise for the current of a voltage
        source, also if measured by a source in series. None if another voltage or current occurs."""
        found = {}
        _, first, second, _ = self.circuit.columns()
        nodes = first[own.position], second[own.position]
        for signal in source.law.signals:
            if signal.kind not in UNKNOWN or signal in fixed:
                continue
            ends: tuple[int, ...] = ()
            if source.kind == AFFINE_VOLTAGE and signal.kind == "i":
                ends = self.in_series(own.frame.prefix + signal.first, own.name, nodes)
            elif source.kind == AFFINE_CURRENT and signal.kind == "v" and nodes[0] != nodes[1]:
                ends = nodes_of(signal, own.frame)
            if ends not in (nodes, nodes[::-1]):
                return None
            found[signal] = 1.0 if ends == nodes else -1.0
        return found

    def in_series(self, sense: str, name: str, own: tuple[int, int]) -> tuple[int, ...]:
        """The terminals of a source, oriented as the current of ``sense``: of itself, or of a voltage source in series
        that shares a node with it alone; empty for any other."""
        if sense.lower() == name.lower():
            return own
        kind, first, second, _ = self.circuit.columns()
        k = self.circuit.element_index(sense) if sense in self.circuit else -1
        shared = [node for node in {first[k], second[k]} & {*own} if node and self.ends[node] == 2] if k >= 0 else []
        if not shared or kind[k] != VOLTAGE:
            return ()
        return own if (second[k] == shared[0]) == (own[0] == shared[0]) else own[::-1]

    def law(self, own: Placed, made: PiecewiseLinear) -> Law:
        """The equation of an element, whose ramps are appended as elements; missing controls are reported."""
        source, out = own.stated.source, self.out
        assert source is not None
        out.kind[own.position], out.value[own.position] = source.kind, made.gain
        value, ramps, controls, _ = made
        place = cache(lambda n: self.control(controls[n], own))
        nodes: list[int] = []
        for u in ramps:
            nodes.append(self.ramp(own, _law(Quantity.VOLTAGE, u, place, nodes, VOLTS), len(nodes) + 1))
        return _law(_quantity(source.kind), value, place, nodes)

    def control(self, signal: Signal, own: Placed) -> tuple[int, ...]:
        """The two nodes of a voltage, or the position of a current's element; missing ones are reported."""
        name = short(own.name)
        fail = partial(self.elaborator.reporter.error, "control", at=own.stated.at, names=[own.name])
        if signal.kind == "v":
            ends = nodes_of(signal, own.frame)
            for node in ends:
                if node and node not in self.ends:
                    fail(
                        f"{name}: no element touches its control node {short(self.out.node_names[node])}",
                        hint="check the node's name",
                    )
            return ends
        element = own.frame.prefix + signal.first
        if element not in self.circuit:
            fail(f"{name}: no element is called {short(element)!r}", hint="name an element of the same sub-circuit")
            return (0,)
        k = self.circuit.element_index(element)
        if self.out.kind[k] == CAPACITOR:
            fail(
                f"{name}: the capacitor {short(element)} carries no current at the operating point",
                hint="sense the current with a source of 0 V",
            )
        return (k,)

    def ramp(self, owner: Placed, law: Law, number: int) -> int:
        """Append source, diode and resistor of one ramp; returns the node whose voltage it is."""
        out, stem = self.out, f"{owner.name}."
        while any(f"{stem}{letter}{number}".lower() in self.taken for letter in "bdruy"):
            stem += "."
        inside, output = out.node(f"{stem}u{number}"), out.node(f"{stem}y{number}")
        out.laws[len(out.kind)] = law
        for letter, code, ends, value in (
            ("B", AFFINE_VOLTAGE, (inside, 0), math.nan),
            ("D", DIODE, (inside, output), math.nan),
            ("R", RESISTOR, (output, 0), OHMS),
        ):
            out.element(code, f"{stem}{letter}{number}", *ends, value, owner.stated.at.card)
            self.taken.add(f"{stem}{letter}{number}".lower())
        return output


def nodes_of(signal: Signal, frame: Frame) -> tuple[int, int]:
    """The nodes of a voltage."""
    first, second = (frame.node(frame.scope.nodes[name.lower() or "0"]) for name in (signal.first, signal.second or ""))
    return first, second


def _law(
    quantity: Quantity,
    value: Affine,
    place: Callable[[int], tuple[int, ...]],
    nodes: Sequence[int],
    factor: float = 1.0,
) -> Law:
    """The equation of ``factor`` times a value, given the positions of its controls and the nodes of its ramps."""
    voltages, currents = [], []
    for n, coefficient in sorted(value.terms.items()):
        control = place(n) if n >= 0 else (nodes[-1 - n], 0)
        if len(control) == 1:
            currents.append(CurrentControl(coefficient * factor, *control))
        else:
            voltages.append(VoltageControl(coefficient * factor / (1.0 if n >= 0 else VOLTS), *control))
    return Law(quantity, float(value) * factor, tuple(voltages), tuple(currents))
