"""Constitutive relations of controlled sources in each sub-circuit call, names of nodes and elements resolved.

A source is independent if other sources fix everything its formula reads; affine or piecewise linear in voltages and
currents; or a device, if the formula of a current reads only the source's own voltage, or that of a voltage only its
own current (then it is a tape of operations, `circuitsim.models.formula_law`). Any other formula must read nothing that
depends on it (`circuitsim.netlist.functional`): it has a value once the circuit before it is solved. The rest is
refused.

Affine expressions may contain ramps max(0, u) (`circuitsim.netlist.symbolic`). In the circuit a ramp is a voltage
source u in series with an ideal diode and a resistor to ground: the exact methods apply.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import (
    AFFINE_CURRENT,
    AFFINE_VOLTAGE,
    BY_CURRENT_F,
    BY_CURRENT_H,
    BY_VOLTAGE_E,
    BY_VOLTAGE_G,
    CAPACITOR,
    CURRENT,
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
from circuitsim.netlist.cards import CardError, order
from circuitsim.netlist.elaborate import OF_CURRENT, Elaborator, Origins
from circuitsim.netlist.expression import UNKNOWN, ExpressionError, Signal
from circuitsim.netlist.functional import Formula, Moment
from circuitsim.netlist.scope import Frame, Placed
from circuitsim.netlist.symbolic import Affine, PiecewiseLinear, TapeDomain, affine_value
from circuitsim.units import short

VOLTS = 1024.0
"""Node voltage of a ramp, V, per unit of the ramp: reduces the effect of its diode's drop in other programs."""

OHMS = 1e6
"""Resistance of a ramp's load."""


PLAIN = frozenset((BY_VOLTAGE_E, BY_VOLTAGE_G, BY_CURRENT_F, BY_CURRENT_H))
"""Kinds of elements with a plain gain."""


def circuit_of(elaborator: Elaborator, title: str) -> Circuit:
    """The circuit of an expanded deck; errors go to its reporter."""
    elaborator.expand(Frame(elaborator.top, elaborator.environment))
    (laws, others), out = classify(elaborator, title), elaborator.out
    for name, value in elaborator.environment.values.items() if elaborator.following.formulas else ():
        elaborator.draws.elsewhere(name, value)
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
    following = elaborator.following.of(circuit)
    for own, error in () if elaborator.reporter.failed else others:
        if own.position not in following.level:
            error.message += ", and what it reads depends on it"
            elaborator.reporter.failure(error, own.stated.at.card, [own.name], own.frame.callers())
    try:
        return circuit.with_values(following.values({}))
    except NetlistError as error:
        for problem in error.problems:
            card = next(iter(elaborator.following.formulas.values())).code.card
            elaborator.reporter.add(problem, order(card), error=True)
        return circuit


def classify(elaborator: Elaborator, title: str) -> tuple[dict[int, Law], list[tuple[Placed, CardError]]]:
    """Classify all controlled elements of an expanded deck, by position: devices are recorded, errors reported; the
    remaining formulas are those of independent sources.

    With ``all_controlled`` every affine formula is a controlled source; with ``frozen`` those are too that are affine
    with the values of sources. The second result: the sources that are neither, with the errors to report where they
    are in a loop of controls.
    """
    out, following, sources = elaborator.out, elaborator.following, _Sources(elaborator, title)
    others: list[tuple[Placed, CardError]] = []
    for own, formula in out.sources:
        at, fixed = own.position, own.position in sources.following.fixed
        try:
            if fixed and not elaborator.all_controlled:
                elaborator.evaluator.need(formula.code, formula.frame.environment)  # its parameters may be random
                continue
            made = sources.one(own, formula)
        except CardError as error:
            if fixed:
                continue
            if isinstance(error, ExpressionError):
                error.message = f"{short(own.name)}: {error.message}"
            if error.kind in ("unsupported", "range") or any(one.kind == "time" for one in formula.code.signals):
                out.kind[at], out.value[at] = (CURRENT if formula.kind in OF_CURRENT else VOLTAGE), 0.0
                following.formulas[at] = formula
                others.append((own, error))
                for signal in formula.code.signals:
                    if signal.kind in UNKNOWN:
                        sources.control(signal, own, formula)
                continue
            elaborator.reporter.failure(error, own.stated.at.card, [own.name], own.frame.callers())
        else:
            if isinstance(made, Device):
                out.kind[at], out.value[at], out.devices[at] = device_code(made), math.nan, made
            else:
                out.laws[at] = sources.law(own, formula, made)
        following.formulas.pop(at, None)
    return dict(sorted(out.laws.items())), others


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
    def ends(self) -> Counter[int]:
        """Degree of each node."""
        return Counter((*self.out.first, *self.out.second))

    @cached_property
    def taken(self) -> set[str]:
        """Names of elements and nodes, in lower case."""
        return {name.lower() for name in (*self.out.names, *self.out.nodes)}

    def one(self, own: Placed, formula: Formula) -> PiecewiseLinear | Device:
        """The equation or device of a source, with the values of signals fixed by other sources if necessary.

        Raises
        ------
        CardError
            It is neither.
        """
        try:
            return self.of(own, formula, {})
        except ExpressionError as error:
            held = self.elaborator.frozen and error.kind == "unsupported"
            fixed = self.fixed_signals(formula) if held else {}
            if own.position in self.following.fixed or not fixed:
                raise
        made = self.of(own, formula, fixed)
        for signal in list(fixed):  # those with a gain that is any voltage or current still vary
            rest = {other: value for other, value in fixed.items() if other != signal}
            with suppress(ExpressionError):
                made, fixed = self.of(own, formula, rest), rest
        self.elaborator.following.frozen[own.position] = formula._replace(fixed=tuple(fixed))
        return made

    def fixed_signals(self, formula: Formula) -> dict[Signal, float]:
        """The voltages and currents in an expression that sources fix, with their values, V and A."""
        moment, varying = Moment(self.following, {}), {None, *self.following.formulas} - self.following.fixed
        return {
            signal: moment.signal(signal, formula)
            for signal in formula.code.signals
            if signal.kind in UNKNOWN and not self.following.sources_of(formula, signal) & varying
        }

    def of(self, own: Placed, formula: Formula, fixed: Mapping[Signal, float]) -> PiecewiseLinear | Device:
        """A law, or where an expression is not a sum of ramps a device, with the values of ``fixed`` signals; raises as
        `one`."""
        evaluator, frame, stated, name = self.elaborator.evaluator, own.frame, own.stated, short(own.name)
        try:
            found = affine_value(formula.code, frame.environment, evaluator, fixed)
        except ExpressionError as error:
            signs = self.signs(own, formula, fixed) if error.kind == "unsupported" else None
            if signs is None:
                raise
        else:
            value, gain = found.value * formula.factor, math.nan
            if not all(math.isfinite(c) for one in (value, *found.ramps) for c in (float(one), *one.terms.values())):
                raise CardError(f"{name}: a coefficient is out of a double's range", stated.at, kind="number")
            if formula.kind in PLAIN:
                control, gain = next(iter(value.terms.items()))
                value = Affine(0.0, {control: 1.0})
            return found._replace(value=value, gain=gain)
        tape = evaluator.value(formula.code, frame.environment, TapeDomain(signs, fixed))
        try:
            if formula.kind == AFFINE_CURRENT:
                return FormulaLaw(tape, formula.factor)
            scaled = tape if formula.factor == 1.0 else (*tape, (f.CONSTANT, formula.factor), (f.MULTIPLY, 0.0))
            return FormulaVoltage(scaled, self.elaborator.number(stated.multiplier, frame) * frame.multiplier)
        except ValueError as wrong:
            raise CardError(f"{name}: {wrong}", stated.at, kind="range") from None

    def signs(self, own: Placed, formula: Formula, fixed: Collection[Signal]) -> dict[Signal, float] | None:
        """1 for each voltage that is the source's own, −1 for its negative; likewise for the current of a voltage
        source, also if measured by a source in series. None if another voltage or current occurs."""
        found = {}
        _, first, second, _ = self.circuit.columns()
        nodes = first[own.position], second[own.position]
        kinds = {AFFINE_VOLTAGE: "i", AFFINE_CURRENT: "v"}
        for signal in formula.code.signals:
            if signal.kind not in UNKNOWN or signal in fixed:
                continue
            ends: tuple[int, ...] = ()
            if signal.kind == kinds.get(formula.kind):
                ends = formula.ends(signal, self.circuit) if signal.kind == "v" else self.in_series(own, signal, nodes)
            if ends not in (nodes, nodes[::-1]) or (signal.kind == "v" and nodes[0] == nodes[1]):
                return None
            found[signal] = 1.0 if ends == nodes else -1.0
        return found

    def in_series(self, own: Placed, signal: Signal, nodes: tuple[int, int]) -> tuple[int, ...]:
        """The terminals of a source, oriented as the current of ``signal``: of itself, or of a voltage source in series
        that shares a node with it alone; empty for any other."""
        sense = own.frame.prefix + signal.first
        if sense.lower() == own.name.lower():
            return nodes
        kind, first, second, _ = self.circuit.columns()
        k = self.circuit.element_index(sense) if sense in self.circuit else -1
        shared = [node for node in {first[k], second[k]} & {*nodes} if node and self.ends[node] == 2] if k >= 0 else []
        if not shared or kind[k] != VOLTAGE:
            return ()
        return nodes if (second[k] == shared[0]) == (nodes[0] == shared[0]) else nodes[::-1]

    def law(self, own: Placed, formula: Formula, made: PiecewiseLinear) -> Law:
        """The equation of an element, whose ramps are appended as elements; missing controls are reported."""
        kind, (value, ramps, controls, gain) = formula.kind, made
        self.out.kind[own.position], self.out.value[own.position] = kind, gain
        place = cache(lambda n: self.control(controls[n], own, formula))
        nodes: list[int] = []
        for u in ramps:
            nodes.append(self.ramp(own, _law(Quantity.VOLTAGE, u, place, nodes, VOLTS), len(nodes) + 1))
        quantity = Quantity.CURRENT if kind in OF_CURRENT else Quantity.VOLTAGE
        return _law(Quantity.NEITHER if kind == NULLOR else quantity, value, place, nodes)

    def control(self, signal: Signal, own: Placed, formula: Formula) -> tuple[int, ...]:
        """The two nodes of a voltage, or the position of a current's element; missing ones are reported."""
        name = short(own.name)
        fail = partial(self.elaborator.reporter.error, "control", at=own.stated.at, names=[own.name])
        if signal.kind == "v":
            ends = formula.ends(signal, self.circuit)
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
