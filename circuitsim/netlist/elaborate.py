"""Scopes to a `Circuit`: sub-circuits expanded, parameters evaluated, multipliers folded in, sources that follow time
or others bound.
"""

from __future__ import annotations

import cmath
import math
from array import array
from bisect import bisect_left
from functools import partial
from itertools import combinations
from typing import Any

from circuitsim.circuit import Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.elements import AMPLIFIER, CURRENT, DIODE, ELEMENTS, device_code
from circuitsim.circuit.laws import Law
from circuitsim.circuit.table import index_of
from circuitsim.errors import NetlistError
from circuitsim.models import Device, Multiplier
from circuitsim.netlist import controlled_laws, switches
from circuitsim.netlist.amplifier import AMPLIFIER_SCOPE, DEFAULT_GAIN, GAIN
from circuitsim.netlist.attributes import checked, positive
from circuitsim.netlist.cards import Card
from circuitsim.netlist.deviations import Deviations, Distribution, Draws
from circuitsim.netlist.element_values import ElementValues
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.expression import NAME, Code, ExpressionError
from circuitsim.netlist.functional import FollowingSources, Formula
from circuitsim.netlist.link import Linker, ambiguous_names
from circuitsim.netlist.parts import COUNTS
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.protocols import Frame
from circuitsim.netlist.scope import Call, DeviceUse, ElementCard, Scope, Value, Wave
from circuitsim.netlist.source import Source
from circuitsim.netlist.temperature import DEFAULT, Temperatures, checked_temperature
from circuitsim.netlist.tokens import CardError
from circuitsim.netlist.waveform import Waveform
from circuitsim.units import SMALLEST, exact, short


class Origins:
    """File and line of each element, stored as columns; ``get`` as in a dictionary."""

    def __init__(self, lines: array[int], starts: list[int], files: list[str]) -> None:
        self._lines, self._starts, self._files = lines, starts, files

    def get(self, k: int) -> tuple[str, int] | None:
        """Where element ``k`` was written."""
        if not 0 <= k < len(self._lines):
            return None
        return self._files[bisect_left(self._starts, k + 1) - 1], self._lines[k]


def bisected(places: list[int], start: int, stop: int) -> list[int]:
    """Those of the sorted ``places`` from ``start`` to before ``stop``."""
    return places[bisect_left(places, start) : bisect_left(places, stop)]


def extended(column: array[Any], piece: array[Any]) -> array[Any]:
    """``column`` with ``piece`` behind it; the piece itself where it is the first."""
    if not column:
        return piece
    column.extend(piece)
    return column


class ElementColumns:
    """The growing circuit."""

    def __init__(self, top: Scope, global_names: dict[str, str]) -> None:
        self.kind, self.value = array("b"), array("d")
        self.first, self.second, self.lines = array("q"), array("q"), array("q")
        self.names: list[str] = []
        self.devices: dict[int, Device] = {}
        self.laws: dict[int, Law] = {}
        self.sources: list[tuple[Frame, int, int]] = []
        """Sources that others may control: the call, the number in its scope, the position."""
        self.factors: dict[int, float] = {}
        """Position → value over the value on the card, where they differ (``m=``, temperature)."""
        self.starts: list[int] = []
        self.files: list[str] = []
        self.node_names = top.node_names.copy()
        self.nodes = index_of(self.node_names, {"gnd": 0})
        for name in global_names.values():
            self.node(name)

    def node(self, name: str) -> int:
        """The node called ``name``, added if it is new (``x1.m`` written outside means the node m of x1)."""
        key = name.lower()
        found: int | None = self.nodes.get(key)
        if found is None:
            found = len(self.node_names)
            self.node_names.append(name)
            self.nodes[key] = found
        return found

    def columns(self) -> tuple[Any, ...]:
        """Kinds, first and second nodes, and values."""
        return self.kind, self.first, self.second, self.value

    def element(self, code: int, name: str, first: int, second: int, value: float, card: Card) -> int:
        """Append one element; returns its position."""
        position = len(self.kind)
        self.at(position, card.source.name)
        self.kind.append(code)
        self.first.append(first)
        self.second.append(second)
        self.value.append(value)
        self.names.append(name)
        self.lines.append(card.line)
        return position

    def at(self, position: int, file: str) -> None:
        """Note that elements come from ``file`` from this position on."""
        if not self.files or self.files[-1] != file:
            self.starts.append(position)
            self.files.append(file)


class Elaborator:
    """Expands a linked deck; once for each set of parameters."""

    def __init__(
        self,
        reporter: Reporter,
        linker: Linker,
        top: Scope,
        overrides: dict[str, float],
        global_names: dict[str, str],
        temperatures: Temperatures = DEFAULT,
        all_controlled: bool = False,
    ) -> None:
        self.reporter, self.linker, self.top = reporter, linker, top
        self.global_names = global_names
        self.temperatures, self.all_controlled = temperatures, all_controlled
        self.draws, self.deviations = Draws(), Deviations()
        self.evaluator = Evaluator(temperatures.constants(), draws=self.draws)
        self.environment = Environment(None, {}, (top.parameters, top.defaults))
        self.environment.values.update(overrides)
        self.out = ElementColumns(top, global_names)
        self.stack: list[Frame] = []
        self.known: dict[Any, Device] = {}
        self.variants: list[int] = []
        """Numbers of the variants that calls of sub-circuits with conditions chose, in the order of the calls."""
        self.element_values = ElementValues(self)
        self.dynamics = Dynamics()
        self.formulas: dict[int, Formula] = {}
        self.frozen: dict[int, Formula] = {}

    def circuit(self, title: str) -> Circuit:
        """The elaborated circuit; errors go to the reporter."""
        self.stack = [self.frame(self.top, self.environment, "", None, 1.0, None, None)]
        while self.stack:
            frame = self.stack[-1]
            number, position = frame.progress
            if number < len(frame.scope.calls):
                call = frame.scope.calls[number]
                self.emit(frame, position, call.position)
                frame.progress[:] = [number + 1, call.position]
                target = self.linker.targets[frame.scope][number]
                if target is AMPLIFIER_SCOPE:
                    self.amplifier(frame, call)
                elif target is not None:
                    self.enter(frame, number, call, target)
            else:
                self.emit(frame, position, len(frame.scope.kind))
                self.stack.pop()
        out = self.out
        if self.formulas:
            for name, value in self.environment.values.items():
                self.draws.elsewhere(name, value)
        laws = controlled_laws.classify(self, title)
        self.deviations = self.draws.found()
        for (name, _), (card, at) in self.draws.cards.items():
            self.reporter.gather(
                "nominal",
                "random functions are at their nominal values (%s): circuitsim montecarlo draws them",
                card,
                at,
                f"{name}()",
            )
        self.check_names()
        origins = Origins(out.lines, out.starts, out.files)
        circuit = Circuit.from_columns(title, out.columns(), out.names, out.node_names, origins, out.devices, laws)
        if not self.formulas:
            return circuit
        try:
            return circuit.with_values(self.following(circuit).values({}))
        except NetlistError as error:
            for problem in error.problems:
                self.reporter.place_error(problem, next(iter(self.formulas.values())).code.card)
            return circuit

    def following(self, circuit: Circuit) -> FollowingSources:
        """The sources of the elaborated circuit that follow time or other sources."""
        constants, factors = self.evaluator.constants, self.out.factors
        return FollowingSources(circuit, self.dynamics, self.formulas, self.frozen, constants, self.names, factors)

    def names(self) -> dict[str, float]:
        """The constants and the deck's own parameters, by name in lower case."""
        values = {name: self.evaluator.value(value, self.environment) for name, value in self.top.parameters.items()}
        known = {**self.evaluator.constants, **values, **self.environment.values}
        return {name: float(value) for name, value in known.items()}

    def check_names(self) -> None:
        """Flattened names may meet where a call's own name has a dot: x1.x2 beside an x2 inside x1."""
        dotted = [call for scope in self.linker.scopes for call in scope.calls if "." in call.name]
        if not dotted:
            return
        seen: set[str] = set()
        for name in self.out.names:
            if name.lower() in seen:
                self.reporter.error(
                    "duplicate",
                    f"the name {short(name)} is made twice",
                    dotted[0].card,
                    None,
                    "leave the dot out of the call's name",
                    [name],
                )
                return
            seen.add(name.lower())

    def frame(
        self,
        scope: Scope,
        environment: Environment,
        prefix: str,
        nodes: list[int] | None,
        m: float,
        call: Call | None,
        outer: Frame | None,
    ) -> Frame:
        devices = sorted(self.linker.devices.get(scope, ()))
        frame = Frame(scope, environment, prefix, nodes, m, call, outer, sorted(scope.stated), devices, [0, 0])
        for coupling in scope.couplings:
            with self.reporter.at(coupling.card, (), frame.callers):
                factor = self.number(coupling.factor, frame)
                names = [token.word for token in coupling.inductors]
                inductors = [prefix + scope.names[scope.index[name]] for name in names if name in scope.index]
                self.dynamics.couplings.update(dict.fromkeys(combinations(inductors, 2), factor))
        return frame

    def enter(self, frame: Frame, number: int, call: Call, target: Scope) -> None:
        """Begin to expand ``call``."""
        name = frame.prefix + call.name
        with self.reporter.at(call.card, [name], frame.callers):
            multiplier = frame.multiplier
            passed = dict(call.passed)
            if "m" in passed and not target.is_parameter("m"):
                own = self.number(passed.pop("m"), frame)
                positive(call.name, "m", own, call.offsets["m"])
                multiplier *= own
                if not SMALLEST <= multiplier < math.inf:
                    raise CardError(
                        "number",
                        f"{short(name)}: the multipliers m of the calls "
                        "multiply to more or less than a double can hold",
                        call.offsets["m"],
                    )
            target = self.variant(frame, call, target, passed)
            environment = Environment(frame.environment, passed, (target.parameters, target.defaults))
            if number in self.linker.ambiguous.get(frame.scope, ()):
                self.warn_scope(frame, call, target, environment)
            nodes = [-1] * len(target.node_names)
            nodes[0] = 0
            for port, node in zip(target.ports, call.nodes):
                nodes[port] = frame.node(node)
            for k, inner in enumerate(target.node_names):
                if nodes[k] < 0:
                    nodes[k] = self.out.node(inner if inner.lower() in self.global_names else f"{name}.{inner}")
            self.stack.append(self.frame(target, environment, f"{name}.", nodes, multiplier, call, frame))

    def variant(self, frame: Frame, call: Call, target: Scope, passed: dict[str, Value]) -> Scope:
        """The variant of a sub-circuit that the values of this call choose.

        Raises
        ------
        CardError
            They have none.
        """
        if not target.variants:
            return target
        for number, one in enumerate(target.variants):
            inside = Environment(frame.environment, passed, (one.parameters, one.defaults))
            if all(bool(self.evaluator.value(code, inside)) is holds for _, code, holds in one.choices):
                self.variants.append(number)
                return one
        raise CardError(
            "parameter",
            f"{short(call.name)}: .if of {short(target.name)} depends on what its own branches define",
            call.target_offset,
            "put .param before .if",
        )

    def amplifier(self, frame: Frame, call: Call) -> None:
        """Append the amplifier that ``call`` is; many in parallel are one."""
        name = frame.prefix + call.name
        gain = 1.0
        with self.reporter.at(call.card, [name], frame.callers):
            if "m" in call.passed:
                raise CardError(
                    "parameter",
                    f"{short(name)}: an amplifier has no multiplier m",
                    call.offsets["m"],
                    "leave it out: several in parallel are one",
                )
            gain = self.number(call.passed.get(GAIN, DEFAULT_GAIN), frame)
            gain = checked(AMPLIFIER, name, gain, call.offsets.get(GAIN, call.card.start))
        first, second = map(frame.node, call.nodes)
        self.out.element(AMPLIFIER, name, first, second, gain, call.card)

    def warn_scope(self, frame: Frame, call: Call, target: Scope, inside: Environment) -> None:
        """Warn where a passed expression reads a name that the sub-circuit has too, with another value."""
        for key, value in call.passed.items():
            for name in ambiguous_names(key, value, call, target):
                if frame.environment.owner(name) is None:
                    continue
                read = Code(call.card, frame.scope, call.offsets[key])
                read.program, read.names = [(NAME, name, read.start)], {name: read.start}
                try:
                    there, here = self.evaluator.value(read, inside), self.evaluator.value(read, frame.environment)
                except ExpressionError:
                    continue  # reported where the parameter is used
                if there != here:
                    self.reporter.warning(
                        "parameter-scope",
                        f"{short(call.name)}: in {short(key)} the caller's {short(name)} is meant "
                        f"({exact(here)}); ngspice may take that of {short(target.name)} ({exact(there)})",
                        call.card,
                        call.offsets[key],
                        "rename one of them",
                        [call.name],
                    )

    def emit(self, frame: Frame, start: int, stop: int) -> None:
        """Append the elements ``start`` to ``stop`` of a scope, within this call."""
        if start == stop:
            return
        scope, out, offset = frame.scope, self.out, len(self.out.kind) - start
        out.kind = extended(out.kind, scope.kind[start:stop])
        out.lines = extended(out.lines, scope.lines[start:stop])
        if frame.nodes is None:
            out.first = extended(out.first, scope.first[start:stop])
            out.second = extended(out.second, scope.second[start:stop])
            out.names.extend(scope.names[start:stop])
        else:
            node, prefix = frame.nodes.__getitem__, frame.prefix
            out.first.extend(map(node, scope.first[start:stop]))
            out.second.extend(map(node, scope.second[start:stop]))
            out.names.extend([prefix + name for name in scope.names[start:stop]])
        out.value = extended(out.value, scope.value[start:stop])
        self.spans(scope.spans, start, stop, offset)
        stated = bisected(frame.stated, start, stop)
        for k in stated:
            self.element(frame, k, k + offset)
        for k in bisected(frame.devices, start, stop):
            self.device(frame, k, k + offset)
        for k in stated:
            share = scope.stated[k].tolerance
            if share is not None:
                size = abs(out.value[k + offset])
                self.draws.tolerance(k + offset, frame.name(k), size, share, Distribution.UNIFORM)
        if frame.multiplier != 1.0:
            for k in range(start, stop):
                if k in scope.stated and scope.stated[k].source is not None:
                    continue
                out.value[k + offset] = self.scaled(frame, k, out.value[k + offset], frame.multiplier)
                self.draws.scaled(k + offset, self.scaled(frame, k, 1.0, frame.multiplier))
                factor = self.scaled(frame, k, out.factors.get(k + offset, 1.0), frame.multiplier)
                if factor != 1.0:
                    out.factors[k + offset] = factor

    def element(self, frame: Frame, k: int, position: int) -> None:
        """What the card of element ``k`` of a scope states, at ``position`` of the circuit."""
        scope, found = frame.scope, self.dynamics
        stated = scope.stated[k]
        report = partial(self.reporter.at, stated.card, [frame.name(k)], frame.callers)
        if stated.source is not None:
            self.out.sources.append((frame, k, position))
            if stated.source.formula is not None:
                with report():
                    factor = controlled_laws.cells(self, frame, stated)
                    self.formulas[position] = Formula(stated.source.formula, frame, factor)
            return
        if scope.kind[k] != DIODE:
            self.out.value[position] = self.element_values.value(frame, k, stated, position)
        if stated.switch is not None:
            with report():
                if (law := switches.law(self, frame, k, stated.switch)) is not None:
                    found.switches[position] = law
        if stated.initial is not None:
            with report():
                found.initials[position] = self.number(stated.initial, frame)
        if stated.phasor is not None:
            with report():
                magnitude, phase = (self.number(value, frame) for value in stated.phasor)
                magnitude *= self.cells(frame, k, stated)
                found.phasors[position] = cmath.rect(magnitude, math.radians(phase))
        if stated.wave is not None:
            with report():
                found.waves[position] = self.waveform(frame, stated.wave)._replace(factor=self.cells(frame, k, stated))

    def cells(self, frame: Frame, k: int, stated: ElementCard) -> float:
        """How many equal sources are in parallel, of which the currents add up."""
        return frame.multiplier * self.number(stated.multiplier, frame) if frame.scope.kind[k] == CURRENT else 1.0

    def waveform(self, frame: Frame, wave: Wave) -> Waveform:
        """The time function with its numbers evaluated in this call."""
        repeat = None if wave.repeat is None else self.number(wave.repeat, frame)
        numbers = tuple(self.number(v, frame) for v in wave.numbers)
        return Waveform(wave.name, numbers, repeat, self.number(wave.delay, frame))

    def spans(self, spans: list[tuple[int, Source]], start: int, stop: int, offset: int) -> None:
        """Note which files the elements ``start`` to ``stop`` come from."""
        k = max(bisect_left(spans, start + 1, key=lambda s: s[0]) - 1, 0)
        while k < len(spans) and spans[k][0] < stop:
            self.out.at(max(spans[k][0], start) + offset, spans[k][1].name)
            k += 1

    def device(self, frame: Frame, k: int, position: int) -> None:
        """Make element ``k`` of a scope, at ``position`` of the circuit, the device of its model."""
        use, name = self.linker.devices[frame.scope][k], frame.name(k)
        card, counted = use.model.card, frame.scope.stated[k].numbers if k in frame.scope.stated else {}
        counts, own = {}, {}
        try:
            for word, count in counted.items():
                card, number = count.card, self.number(count.value, frame)
                if word in COUNTS:
                    positive(name, word, number, count.offset)
                    counts[word] = number
                else:
                    own[word] = checked_temperature(number, count.offset) if word == "temp" else number
            if frame.multiplier != 1.0:
                counts["m"] = counts.get("m", 1.0) * frame.multiplier
            card, values = use.model.card, self.values(use, frame)
            if use.row.thermal:
                values = {"temp": self.temperatures.of(own), "tnom": self.temperatures.nominal, **values}
            self.out.devices[position] = self.made(use, values, counts)
            self.out.kind[position] = device_code(self.out.devices[position])
        except CardError as error:
            self.reporter.failure(error, card, [name], frame.callers())

    def values(self, use: DeviceUse, frame: Frame) -> dict[str, float]:
        """The values of a model card in its defining scope, within this call."""
        found, environment = {}, frame.defining(use.model.scope)
        for name, (offset, value) in use.values.items():
            found[name] = self.evaluator.value(value, environment)
            parameter = use.row.parameter_called(name)
            wrong = parameter.wrong(found[name]) if parameter is not None else ""
            if wrong:
                raise CardError("range", f"model {short(use.model.name)}: {wrong}", offset)
        return found

    def made(self, use: DeviceUse, values: dict[str, float], counts: dict[str, float]) -> Device:
        """The device of these values; equal ones are one object."""
        assert use.row.device is not None
        key = id(use), tuple(values.items()), tuple(counts.items())
        if key not in self.known:
            try:
                self.known[key] = use.row.device(label=use.model.name, **values, **counts)
            except ValueError as error:
                raise CardError("range", f"model {short(use.model.name)}: {error}", use.model.card.start) from None
        return self.known[key]

    def number(self, value: Value, frame: Frame) -> float:
        return self.evaluator.value(value, frame.environment)

    def scaled(self, frame: Frame, k: int, value: float, m: float) -> float:
        """``value`` of ``m`` equal elements in parallel."""
        code = frame.scope.kind[k]
        rule = ELEMENTS[code].multiplier
        if rule is Multiplier.UNCHANGED:
            return value
        result = value / m if rule is Multiplier.DIVIDES else value * m
        if math.isinf(result) or (abs(result) < SMALLEST and value != 0):
            name, row = frame.scope.names[k], ELEMENTS[code]
            card = frame.scope.stated[k].card if k in frame.scope.stated else (frame.call and frame.call.card)
            assert card is not None
            self.reporter.error(
                "number",
                f"{short(frame.prefix + name)}: {exact(value)} {row.unit} with m={exact(m)} is out of a double's range",
                card,
                None,
                "",
                [frame.prefix + name],
                frame.callers(),
            )
            return 0.0
        return result
