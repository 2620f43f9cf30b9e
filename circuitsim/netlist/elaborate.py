"""Scopes to the elements of a circuit: expands sub-circuits, evaluates parameters, applies multipliers, and evaluates
in each call what cards and models state: values, switches, devices, and sources that depend on time or on others.
"""

from __future__ import annotations

import cmath
import math
from itertools import combinations
from typing import Any

from circuitsim.circuit.dynamics import SwitchLaw
from circuitsim.circuit.elements import (
    AFFINE_CURRENT,
    AMPLIFIER,
    BY_CURRENT_F,
    BY_VOLTAGE_G,
    CURRENT,
    DIODE,
    ELEMENTS,
    RESISTOR,
    VOLTAGE,
    device_code,
)
from circuitsim.circuit.laws import Law, Quantity, VoltageControl
from circuitsim.circuit.table import index_of
from circuitsim.errors import Location
from circuitsim.models import Device, Multiplier
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.cards import CardError, Reporter
from circuitsim.netlist.definitions import AMPLIFIER_NAME, DEFAULT_GAIN, GAIN
from circuitsim.netlist.expression import NAME, Code, Environment, Evaluator, ExpressionError
from circuitsim.netlist.functional import FollowingSources, Formula
from circuitsim.netlist.functions import SIGMAS, Distribution, Draws, Waveform, checked_waveform
from circuitsim.netlist.link import Linker
from circuitsim.netlist.parts import COUNTS
from circuitsim.netlist.reader import DeckReader
from circuitsim.netlist.scope import (
    CARD_MODELS,
    IN_FILE,
    SWITCH,
    TOLERANCES,
    Call,
    Columns,
    Count,
    DeviceUse,
    ElementCard,
    Frame,
    Model,
    Placed,
    Scope,
    SwitchControl,
    Temperatures,
    Value,
    checked,
    checked_temperature,
    element_value,
    factor_of,
    percent,
    positive,
)
from circuitsim.units import SMALLEST, exact, short

TOLERANCE_LAWS = {
    "": (Distribution.UNIFORM, 1.0),
    "uniform": (Distribution.UNIFORM, 1.0),
    "gauss": (Distribution.NORMAL, SIGMAS),
}
"""Suffix after the slash → distribution, and ratio of its largest deviation to the stated percentage."""

OF_CURRENT = frozenset((CURRENT, BY_VOLTAGE_G, BY_CURRENT_F, AFFINE_CURRENT))
"""Kinds of current sources."""

GRADUAL = (
    "a switch with negative hysteresis (%s) switches abruptly at its threshold; in LTspice its resistance changes "
    "gradually"
)
"""Warning of such models."""


Numbers = dict[str, float]
"""Values by name: of a card, of a model, of parameters."""


class Origins:
    """File and line of each element, stored as columns; ``get`` as in a dictionary."""

    def __init__(self, columns: Columns) -> None:
        self._lines, self._files = columns.lines, columns.files

    def get(self, k: int) -> Location | None:
        """File and line of element ``k``."""
        if not 0 <= k < len(self._lines):
            return None
        number, line = divmod(self._lines[k], IN_FILE)
        return Location(self._files[number], line)


class ElementColumns(Columns):
    """The circuit under construction.

    Attributes
    ----------
    sources : list of Placed
        Sources that may be controlled.
    """

    def __init__(self, reader: DeckReader) -> None:
        super().__init__()
        self.devices: dict[int, Device] = {}
        self.laws: dict[int, Law] = {}
        self.sources: list[tuple[Placed, Formula]] = []
        self.node_names = reader.top.node_names.copy()
        self.nodes = index_of(self.node_names, {"gnd": 0})
        for name in reader.globals.values():
            self.node(name)

    def columns(self) -> tuple[Any, ...]:
        """Kinds, first and second nodes, and values."""
        return self.kind, self.first, self.second, self.value


class Elaborator:
    """Expands a linked deck; one for each set of parameters.

    Attributes
    ----------
    out : ElementColumns
    following : FollowingSources
        Data for transient and AC analysis.
    variants : list of int
        Numbers of the variants chosen by calls of sub-circuits with conditions, in order of the calls.
    """

    def __init__(
        self,
        reporter: Reporter,
        linker: Linker,
        environment: Environment,
        temperatures: Temperatures,
        all_controlled: bool = False,
        frozen: bool = True,
    ) -> None:
        self.reporter, self.linker, self.reader = reporter, linker, linker.reader
        self.temperatures, self.all_controlled, self.frozen = temperatures, all_controlled, frozen
        self.top, self.environment = self.reader.top, environment
        self.draws = Draws()
        self.evaluator = Evaluator(temperatures.constants(), draws=self.draws)
        self.out = ElementColumns(self.reader)
        self.known: dict[Any, Device] = {}
        self.variants: list[int] = []
        self.following = FollowingSources(self.evaluator.constants, self.names)

    def names(self) -> Numbers:
        """The constants and the deck's own parameters, by name in lower case."""
        values = {name: self.evaluator.value(value, self.environment) for name, value in self.top.parameters.items()}
        known = {**self.evaluator.constants, **values, **self.environment.values}
        return {name: float(value) for name, value in known.items()}

    def expand(self, frame: Frame) -> None:
        """Append all elements of a call; errors go to the reporter."""
        scope, position = frame.scope, 0
        for coupling in scope.couplings:
            with self.reporter.at(coupling.inductors[0].card, (), frame.callers):
                factor = self.number(coupling.factor, frame)
                if not abs(factor) <= 1.0:
                    message = f"the coupling factor is {factor:g}: it must lie between -1 and 1"
                    raise CardError(message, coupling.inductors[0], kind="range")
                names = [token.word for token in coupling.inductors]
                inductors = [frame.prefix + scope.names[scope.index[name]] for name in names if name in scope.index]
                self.following.couplings.update(dict.fromkeys(combinations(inductors, 2), factor))
        for call, target in zip(scope.calls, self.linker.targets[scope]):
            self.emit(frame, position, call.position)
            position = call.position
            if target is not None and target.name == AMPLIFIER_NAME:
                self.amplifier(frame, call)
            elif target is not None and (inner := self.enter(frame, call, target)) is not None:
                self.expand(inner)
        self.emit(frame, position, len(scope.kind))

    def check_names(self) -> None:
        """Check flattened names, which may collide where a call's name has a dot: x1.x2, and x2 inside x1."""
        dotted = [call for scope in self.linker.scopes for call in scope.calls if "." in call.name]
        if not dotted:
            return
        seen: set[str] = set()
        for name in self.out.names:
            if name.lower() in seen:
                self.reporter.error(
                    "duplicate",
                    f"the flattened name {short(name)} occurs twice",
                    dotted[0].card,
                    "remove the dot from the call's name",
                    [name],
                )
                return
            seen.add(name.lower())

    def enter(self, frame: Frame, call: Call, target: Scope) -> Frame | None:
        """The frame of a call; None for an error, which is reported."""
        name = frame.prefix + call.name
        with self.reporter.at(call.card, [name], frame.callers):
            multiplier = frame.multiplier
            passed = dict(call.passed)
            if "m" in passed and not target.is_parameter("m"):
                own = self.number(passed.pop("m"), frame)
                positive(call.name, "m", own, call.keys["m"])
                multiplier *= own
                if not SMALLEST <= multiplier < math.inf:
                    raise CardError(
                        f"{short(name)}: the product of the calls' multipliers m exceeds the range of a double",
                        call.keys["m"],
                        kind="number",
                    )
            target = self.variant(frame, call, target, passed)
            environment = Environment(target.parameters, target.defaults, parent=frame.environment, passed=passed)
            self.warn_scope(frame, call, target, environment)
            nodes = [-1] * len(target.node_names)
            nodes[0] = 0
            for port, node in zip(target.ports, call.nodes):
                nodes[port] = frame.node(node)
            for k, inner in enumerate(target.node_names):
                if nodes[k] < 0:
                    nodes[k] = self.out.node(inner if inner.lower() in self.reader.globals else f"{name}.{inner}")
            return Frame(target, environment, f"{name}.", nodes, multiplier, call, frame)
        return None

    def variant(self, frame: Frame, call: Call, target: Scope, passed: dict[str, Value]) -> Scope:
        """The variant of a sub-circuit for the values of this call.

        Raises
        ------
        CardError
            There is none.
        """
        if not target.variants:
            return target
        for number, one in enumerate(target.variants):
            inside = Environment(one.parameters, one.defaults, parent=frame.environment, passed=passed)
            if all(bool(self.evaluator.value(code, inside)) is holds for code, holds in one.choices):
                self.variants.append(number)
                return one
        raise CardError(
            f"{short(call.name)}: .if of {short(target.name)} depends on what its own branches define",
            call.target,
            "put .param before .if",
            "parameter",
        )

    def amplifier(self, frame: Frame, call: Call) -> None:
        """Append the amplifier of ``call``; amplifiers in parallel are one."""
        name = frame.prefix + call.name
        gain = 1.0
        with self.reporter.at(call.card, [name], frame.callers):
            if "m" in call.passed:
                raise CardError(
                    f"{short(name)}: amplifiers take no multiplier m",
                    call.keys["m"],
                    "remove it: several in parallel act as one",
                    "parameter",
                )
            gain = self.number(call.passed.get(GAIN, DEFAULT_GAIN), frame)
            gain = checked(AMPLIFIER, name, gain, call.keys.get(GAIN, call.card))
        first, second = map(frame.node, call.nodes)
        self.out.element(AMPLIFIER, name, first, second, gain, call.card)

    def warn_scope(self, frame: Frame, call: Call, target: Scope, inside: Environment) -> None:
        """Warn if a passed expression reads a name that has another value in the sub-circuit."""
        for key, value in call.passed.items():
            if not isinstance(value, Code):
                continue
            for name in value.names:
                both = name != key and (name in call.passed or target.is_parameter(name))
                if not both or frame.environment.owner(name) is None:
                    continue
                try:
                    there, here = (self.evaluator.read(name, 0, value, own) for own in (inside, frame.environment))
                except ExpressionError:
                    continue  # reported where the parameter is used
                if there != here:
                    self.reporter.warning(
                        "parameter-scope",
                        f"{short(call.name)}: {short(key)} uses the caller's {short(name)} ({exact(here)}); "
                        f"ngspice may use that of {short(target.name)} ({exact(there)})",
                        call.keys[key],
                        "rename one of them",
                        [call.name],
                    )

    def emit(self, frame: Frame, start: int, stop: int) -> None:
        """Append the elements ``start`` to ``stop`` of a scope, within this call."""
        if start == stop:
            return
        scope, out, offset, nodes = frame.scope, self.out, len(self.out.kind) - start, frame.nodes
        out.value.extend(scope.value[start:stop])
        for grown, column in ((out.kind, scope.kind), (out.lines, scope.lines)):
            grown.extend(column[start:stop])
        for grown, column in ((out.first, scope.first), (out.second, scope.second)):
            ends = column[start:stop]
            grown.extend(ends if nodes is None else map(nodes.__getitem__, ends))
        out.names.extend([frame.prefix + name for name in scope.names[start:stop]])
        out.files |= scope.files
        devices, m = self.linker.devices.get(scope, {}), frame.multiplier
        some = (k for k in range(start, stop) if m != 1.0 or k in scope.stated or k in devices)
        placed = [Placed(frame, k, k + offset) for k in some]
        for own in placed:
            if own.k in scope.stated:
                self.element(own)
        for own in placed:
            if own.k in devices:
                self.device(own)
        for own in placed:
            share, at = own.stated.tolerance, own.position
            if own.stated.initial is not None and at not in self.following.initials:
                message = "ic has no effect on a diode without a charge (%s)"
                self.reporter.gather("no-effect", message, own.stated.at, own.name)
            if share is not None:
                self.draws.tolerance(at, own.name, abs(out.value[at]), share, Distribution.UNIFORM)
            if m != 1.0 and own.stated.source is None:
                out.value[at] = self.scaled(own, out.value[at], m)
                self.draws.scaled(at, self.scaled(own, 1.0, m))
                factor = self.scaled(own, self.following.factors.get(at, 1.0), m)
                if factor != 1.0:
                    self.following.factors[at] = factor

    def element(self, own: Placed) -> None:
        """Apply the card of an element."""
        found, stated, frame, position = self.following, own.stated, own.frame, own.position
        with self.reporter.at(stated.at.card, [own.name], frame.callers):
            if stated.source is not None:
                formula = Formula(stated.source.law, stated.source.kind, frame, self.cells(own))
                self.out.sources.append((own, formula))
                if stated.source.fixable:
                    found.formulas[position] = formula
                return
            if own.kind != DIODE:
                self.out.value[position] = self.element_value(own)
            if stated.switch is not None and (law := self.switch(own, stated.switch)) is not None:
                found.switches[position] = law
            if stated.initial is not None and own.kind != DIODE:
                found.initials[position] = self.number(stated.initial, frame)
            if stated.phasor is not None:
                magnitude, phase = (self.number(value, frame) for value in stated.phasor)
                found.phasors[position] = cmath.rect(magnitude * self.cells(own), math.radians(phase))
            if stated.wave is not None:
                found.waves[position] = self.waveform(frame, stated.wave)._replace(factor=self.cells(own))

    def numbers(self, own: Placed) -> Numbers:
        """The further numbers on the card of an element."""
        found = self.evaluated(own.stated.numbers, own.frame.environment)
        if "temp" in found:
            checked_temperature(found["temp"], own.stated.numbers["temp"].at)
        return found

    def evaluated(self, counts: dict[str, Count], environment: Environment) -> Numbers:
        """The values of several numbers."""
        return {word: self.evaluator.value(count.value, environment) for word, count in counts.items()}

    def cells(self, own: Placed) -> float:
        """The number of equal current sources in parallel, times the temperature factor of a controlled source."""
        stated, frame = own.stated, own.frame
        found = frame.multiplier * self.number(stated.multiplier, frame) if own.kind in OF_CURRENT else 1.0
        if stated.source is not None and stated.numbers:
            found *= factor_of(self.numbers(own), {}, self.temperatures)
        return found

    def waveform(self, frame: Frame, wave: Waveform) -> Waveform:
        """The time function with its numbers evaluated in this call."""
        repeat = None if wave.repeat is None else self.number(wave.repeat, frame)
        numbers = tuple(self.number(v, frame) for v in wave.numbers)
        return wave._replace(numbers=numbers, repeat=repeat, delay=self.number(wave.delay, frame))

    def element_value(self, own: Placed) -> float:
        """Evaluate the value of an element; on an error, which is reported, zero."""
        name, stated, position, draws = own.name, own.stated, own.position, self.draws
        before = len(draws.waiting)
        try:
            value, factor = self.one(own)
            if value < 0.0 and own.kind == RESISTOR and stated.model is None and not stated.numbers:
                return self.negative(own, value)
            value = checked(own.kind, name, value, stated.at) + 0.0
            self.smell_of_mega(own)
            if stated.multiplier != 1.0:
                m = self.number(stated.multiplier, own.frame)
                positive(name, "m", m, stated.at)
                value, factor = (self.scaled(own, number, m) for number in (value, factor))
            if factor != 1.0:
                self.following.factors[position] = factor
            draws.taken(position, name, value, before)
            self.model_tolerances(own, value)
            return value
        except CardError as error:
            _name(error, stated, name)
            self.reporter.failure(error, stated.at.card, [name], own.frame.callers())
        return 0.0

    def negative(self, own: Placed, value: float) -> float:
        """Replace a negative resistance by a current source controlled by its own voltage: passive circuits have
        none."""
        out, at = self.out, own.position
        cells = own.frame.multiplier * self.number(own.stated.multiplier, own.frame)
        control = VoltageControl(cells / value, out.first[at], out.second[at])
        out.kind[at], out.laws[at] = AFFINE_CURRENT, Law(Quantity.CURRENT, 0.0, (control,), ())
        self.reporter.gather(
            "altered", "a negative resistance is read as a controlled source (%s)", own.stated.at, own.name
        )
        return math.nan

    def model_tolerances(self, own: Placed, value: float) -> None:
        """``DEV=5%`` and ``LOT=5%`` of a passive element's model: per element, and common to all that name the
        model."""
        if (model := self.model(own)) is None:
            return
        for key, token in model.pairs:
            word, _, law = key.word.partition("/")
            if word not in TOLERANCES:
                continue
            amount, draws = percent(token.text), self.draws
            if amount is None or law not in TOLERANCE_LAWS:
                raise CardError(
                    f"model {short(model.name)}: {short(key.text)}={short(token.text)} is not a tolerance",
                    own.stated.at,
                    "write DEV=5%, LOT=5% or DEV/GAUSS=2%",
                )
            distribution, sigmas = TOLERANCE_LAWS[law]
            if word == "dev":
                draws.tolerance(own.position, own.name, abs(value), sigmas * amount, distribution)
            else:
                draws.lot(
                    id(model.card), f"{model.name} (lot)", own.position, abs(value), sigmas * amount, distribution
                )

    def one(self, own: Placed) -> tuple[float, float]:
        """The value of one element (without ``m``), and its ratio to the value on the card."""
        stated, frame, name, letter = own.stated, own.frame, own.name, own.letter
        if stated.value is None and stated.wave is not None:
            return checked_waveform(self.waveform(frame, stated.wave), stated.at), 1.0
        model = self.model(own)
        value = None if stated.value is None or (model and stated.bare) else self.number(stated.value, frame)
        if value is not None and model is None and not stated.numbers:
            return value, 1.0
        numbers = self.numbers(own)
        values = {} if model is None else self.model_values(frame, model, letter)
        if model is not None and value is not None and "r" in self.stepped(model, letter):
            value *= values.pop("r")  # as in PSpice and Xyce
        if value is not None and letter == "R":
            value = checked(RESISTOR, name, value, stated.at)
            self.warn_of_product(own, value, values)
        try:
            return element_value(letter, value, numbers, values, self.temperatures)
        except ValueError as error:
            raise CardError(f"{short(name)}: {error}", stated.at, "see docs/netlist.md", "range") from None

    def model(self, own: Placed) -> Model | None:
        """The model named by a passive element; None where the name is a parameter's.

        Raises
        ------
        CardError
            It does not exist, or has another type.
        """
        use, name = own.stated.model, short(own.name)
        if use is None:
            return None
        model, types = own.frame.scope.found("models", use.word), CARD_MODELS[own.letter].types
        if model is None:
            if own.stated.bare:
                return None
            raise CardError(
                f"{name}: no model is called {short(use.text)!r}",
                use,
                f"define it: .model {short(use.text)} {types[0]}, or write one value",
                "model",
            )
        if model.type not in types:
            raise CardError(
                f"{name}: model {short(model.name)} is of type {short(model.type)}, not {types[0]}",
                use,
                f"it needs a model of type {types[0]}",
                "model",
            )
        return model

    def warn_of_product(self, own: Placed, value: float, model: Numbers) -> None:
        """Warn of a resistor with a resistance on both card and model, on which programs differ."""
        other, use = model.get("r", 1.0), own.stated.model
        if other not in (1.0, value) and use is not None:
            self.reporter.gather(
                "model-value",
                f"card and model {short(use.text)} ({exact(other)} Ω) both state a resistance: the "
                "card's is used, as in ngspice; Xyce and PSpice multiply them (%s)",
                use,
                own.name,
                "leave one of them out",
            )

    def model_values(self, frame: Frame, model: Model, letter: str) -> Numbers:
        """The values on the card of a passive element's model, evaluated in its defining scope."""
        found = self.evaluated(self.linker.passive(model), frame.defining(model.scope))
        return found | self.stepped(model, letter)

    def stepped(self, model: Model, letter: str) -> Numbers:
        """The parameters of a model that are stepped (``.step RMOD(R) …``)."""
        values = self.environment.values
        stated = CARD_MODELS[letter].parameters.items() if values else ()
        keys = [(name, f"{model.name.lower()}:{word}") for word, name in stated]
        return {name: values[key] for name, key in keys if key in values}

    def smell_of_mega(self, own: Placed) -> None:
        """Warn of a resistance by a parameter with a capital M (milli), where mega may be meant."""
        value, environment = own.stated.value, own.frame.environment
        if own.kind != RESISTOR or not isinstance(value, Code) or value.tree.kind != NAME:
            return
        name = next(iter(value.names))
        owner = environment.owner(name)
        found = owner.binding(name) if owner is not None else None
        if found is not None and isinstance(found[0], Code) and found[0].mega:
            digits, shown = found[0].mega.split("M")[0], short(own.frame.scope.names[own.k])
            self.reporter.warning(
                "mega",
                f"{short(found[0].mega)} is {digits} milliohm on {shown}: M is milli in SPICE",
                found[0],
                f"write {digits}MEG for mega, {digits}m if milli is meant",
            )

    def switch(self, own: Placed, control: SwitchControl) -> SwitchLaw | None:
        """The law of a switch; None where its model is missing, which is reported elsewhere."""
        frame, name = own.frame, own.name
        try:
            model = self.model(own)
        except CardError:
            return None
        if model is None:
            return None
        stated = self.model_values(frame, model, own.letter)
        numbers = {word: stated.get(word, default) for word, default in SWITCH.items()}
        numbers |= {"ron": numbers["ron"] / frame.multiplier, "roff": numbers["roff"] / frame.multiplier}
        if numbers["vh"] < 0.0:
            self.reporter.gather("hysteresis", GRADUAL, own.stated.at.card, name, "write vh=0")
        if control.source is None:
            first, second = map(frame.node, control.nodes)
            return SwitchLaw((first, second), numbers, control.closed)
        place = frame.scope.index.get(control.source.word)
        if place is None or frame.scope.kind[place] != VOLTAGE:
            self.reporter.error(
                "controlled",
                f"{short(name)}: {short(control.source.text)!r} is not a voltage source",
                control.source,
                "the current of a voltage source controls it",
                [name],
            )
            return None
        return SwitchLaw(frame.prefix + frame.scope.names[place], numbers, control.closed)

    def device(self, own: Placed) -> None:
        """Turn an element into the device of its model."""
        frame, name, scope = own.frame, own.name, own.frame.scope
        use, counts = self.linker.devices[scope][own.k], Numbers()
        stated, card = own.stated, use.model.card
        try:
            card = stated.at.card if stated.numbers else card
            numbers = self.numbers(own)
            for word in filter(numbers.__contains__, COUNTS):
                counts[word] = numbers[word]
                positive(name, word, numbers[word], stated.numbers[word].at)
            if frame.multiplier != 1.0:
                counts["m"] = counts.get("m", 1.0) * frame.multiplier
            card, values = use.model.card, self.values(use, frame)
            if use.row.thermal:
                own_values = {"temp": self.temperatures.of(numbers), "pj": numbers.get("pj", 0.0)}
                values = {**own_values, "tnom": self.temperatures.nominal, **values}
            device = self.out.devices[own.position] = self.made(use, values, counts)
            self.out.kind[own.position] = device_code(device)
            if stated.initial is not None and isinstance(device, SmoothDevice) and device.stores():
                self.following.initials[own.position] = self.number(stated.initial, frame)
        except CardError as error:
            self.reporter.failure(error, card, [name], frame.callers())

    def values(self, use: DeviceUse, frame: Frame) -> Numbers:
        """The values of a model card in its defining scope, within this call."""
        found = self.evaluated(use.values, frame.defining(use.model.scope))
        for name, number in found.items():
            parameter = use.row.parameter_called(name)
            wrong = parameter.wrong(number) if parameter is not None else ""
            if wrong:
                raise CardError(f"model {short(use.model.name)}: {wrong}", use.values[name].at, kind="range")
        return found

    def made(self, use: DeviceUse, values: Numbers, counts: Numbers) -> Device:
        """The device for these values; equal devices are shared."""
        assert use.row.device is not None
        key = id(use), tuple(values.items()), tuple(counts.items())
        if key not in self.known:
            try:
                self.known[key] = use.row.device(label=use.model.name, **values, **counts)
            except ValueError as error:
                raise CardError(f"model {short(use.model.name)}: {error}", use.model.card, kind="range") from None
        return self.known[key]

    def number(self, value: Value, frame: Frame) -> float:
        return self.evaluator.value(value, frame.environment)

    def scaled(self, own: Placed, value: float, m: float) -> float:
        """``value`` of ``m`` equal elements in parallel."""
        row = ELEMENTS[own.kind]
        if row.multiplier is Multiplier.UNCHANGED:
            return value
        result = value / m if row.multiplier is Multiplier.DIVIDES else value * m
        if math.isinf(result) or (abs(result) < SMALLEST and value != 0):
            card = (own.stated.at or own.frame.call).card
            self.reporter.error(
                "number",
                f"{short(own.name)}: {exact(value)} {row.unit} with m={exact(m)} is out of a double's range",
                card,
                "",
                [own.name],
                own.frame.callers(),
            )
            return 0.0
        return result


def _name(error: CardError, stated: ElementCard, name: str) -> None:
    """Turn the error of a bare word that is not a parameter into one about the value."""
    value, at, where = stated.value, stated.at, error.at
    bare = where is not None and (where.card, where.offset) == (at.card, at.offset)
    if error.kind == "parameter" and bare and isinstance(value, Code) and at.card.text[at.offset - 1] not in "{'":
        word = next(iter(value.names))
        error.message = f"{short(name)}: {short(word)!r} is neither a number nor a parameter nor a model"
        error.hint = f"write a value such as 4.7k, or define it: .param {short(word)}=…"
