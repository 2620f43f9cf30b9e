"""Scopes to a `Circuit`: sub-circuits expanded, parameters evaluated, multipliers folded in, sources that follow time
or others bound.
"""

from __future__ import annotations

import cmath
import math
from array import array
from bisect import bisect_left
from functools import partial
from itertools import combinations, takewhile
from operator import itemgetter
from typing import Any

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import AMPLIFIER, DIODE
from circuitsim.errors import NetlistError
from circuitsim.netlist import controlled_laws
from circuitsim.netlist.definitions import AMPLIFIER_SCOPE, DEFAULT_GAIN, GAIN
from circuitsim.netlist.deviations import Distribution
from circuitsim.netlist.evaluate import Environment
from circuitsim.netlist.expansion import Expansion, Origins
from circuitsim.netlist.expression import NAME, Code, ExpressionError
from circuitsim.netlist.functional import Formula
from circuitsim.netlist.link import ambiguous_names
from circuitsim.netlist.physical import checked, positive
from circuitsim.netlist.scope import Call, Frame, Scope, Value
from circuitsim.netlist.tokens import CardError
from circuitsim.units import SMALLEST, exact, short


def bisected(places: list[int], start: int, stop: int) -> list[int]:
    """Those of the sorted ``places`` from ``start`` to before ``stop``."""
    return places[bisect_left(places, start) : bisect_left(places, stop)]


def extended(column: array[Any], piece: array[Any]) -> array[Any]:
    """``column`` with ``piece`` behind it; the piece itself where it is the first."""
    if not column:
        return piece
    column.extend(piece)
    return column


class Elaborator(Expansion):
    """Expands a linked deck; once for each set of parameters."""

    def circuit(self, title: str) -> Circuit:
        """The elaborated circuit; errors go to the reporter."""
        self.stack: list[Frame] = [self.frame(self.top, self.environment, "", None, 1.0, None, None)]
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
        origins = Origins(out.lines, out.spans)
        circuit = Circuit.from_columns(title, out.columns(), out.names, out.node_names, origins, out.devices, laws)
        if not self.formulas:
            return circuit
        try:
            return circuit.with_values(self.following(circuit).values({}))
        except NetlistError as error:
            for problem in error.problems:
                self.reporter.place_error(problem, next(iter(self.formulas.values())).code.card)
            return circuit

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
        first = max(bisect_left(scope.spans, start + 1, key=itemgetter(0)) - 1, 0)
        for at, source in takewhile(lambda span: span[0] < stop, scope.spans[first:]):
            out.at(source, max(at, start) + offset)
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
            if stated.source.fixable:
                with report():
                    factor = controlled_laws.cells(self, frame, stated)
                    self.formulas[position] = Formula(stated.source.law, frame, factor)
            return
        if scope.kind[k] != DIODE:
            self.out.value[position] = self.element_value(frame, k, stated, position)
        if stated.switch is not None:
            with report():
                if (law := self.switch(frame, k, stated.switch)) is not None:
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
