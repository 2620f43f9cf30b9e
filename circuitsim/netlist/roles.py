"""What each part of a circuit is there for when it learns: inputs, outputs, and what may change.

Roles are comment directives in a deck, which every SPICE program still runs:

    *! input V1 V2 Ibias             sources that take the values of a sample
    *! output v(out) v(p,q) x        node pairs that are read (against ground where one node is given)
    *! trainable R* min=1k max=1MEG  resistors (bounds in ohm) and current sources (bounds in ampere) that may change
    *! trainable D*.is min=1f max=1u parameters of devices (bounds in their unit) that may change
    *! trainable C1 L* S1.vt         on waveforms also capacitors, inductors and numbers of switches

Names may hold the wildcards ``*`` and ``?``; case does not matter. A later ``trainable`` line replaces the bounds of
the elements it names. Without bounds a resistor may go from a thousandth of the least resistance on its line to a
thousand times the largest, and so may a parameter of a device; a current source may go anywhere.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.dynamics import SwitchLaw
from circuitsim.circuit.elements import CAPACITOR, CURRENT, ELEMENTS, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import same_shape
from circuitsim.circuit.parameters import Parameter, Sort, parameter
from circuitsim.errors import Location, NetlistError, Problem, TopologyError, UsageError
from circuitsim.models import Device
from circuitsim.units import NumberError, parse, short

if TYPE_CHECKING:
    from circuitsim.netlist.deck import Deck

SPAN = 1e3
"""Factor beyond the values as written that is allowed where a line states no bounds."""

Place = tuple[int, str]
"""A device's place in the circuit and the name of its parameter; of an element without one the name is empty."""

Bounds = Mapping[Place, tuple[float, float]]


def full_name(element: str, parameter: str) -> str:
    """``D1.vfwd``; of an element's own value its name."""
    return f"{element}.{parameter}" if parameter else element


def matching_parameters(circuit: Circuit, word: str) -> list[Place]:
    """The parameters of devices that a word such as ``D*.vfwd`` names; none where it is the name of an element.

    Devices whose cards do not state the parameter, and whose model has no value for it, are left out.
    """
    head, dot, tail = word.rpartition(".")
    if not dot or word in circuit:
        return []
    pattern = re.compile(re.escape(head).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE)
    found = []
    for k, device in circuit.devices.items():
        row = device.model.parameter_called(tail)
        if row is not None and getattr(device, row.name) is not None and pattern.fullmatch(circuit.names[k]):
            found.append((k, row.name))
    return found


def law_bounds(
    circuit: Circuit, places: Sequence[Place], options: Mapping[str, float], others: Bounds
) -> dict[Place, tuple[float, float]]:
    """Bounds of parameters, from ``min`` and ``max`` or `SPAN` beyond the least and the largest of the values.

    Parameters
    ----------
    circuit : Circuit
    places : sequence of (int, str)
        The parameters, all of one line.
    options : mapping of str to float
        ``min``, ``max``, where they are stated.
    others : mapping
        Bounds of other parameters of the same devices.

    Raises
    ------
    ValueError
        A parameter without a rule of learning, or bounds that are none, leave out the value, or make another device.
    """
    found = dict(others)
    for name in dict.fromkeys(name for _, name in places):
        own = [k for k, parameter in places if parameter == name]
        values = [float(getattr(circuit.devices[k], name)) for k in own]
        for k, value in zip(own, values):
            row = circuit.devices[k].model.parameter_called(name)
            called = full_name(circuit.names[k], name)
            if row is None or not row.trainable:
                kind = circuit.devices[k].model.name
                raise ValueError(f"{called} cannot be trained: there is no rule for the {name} of a {kind}")
            if value <= 0.0 and not {"min", "max"} <= set(options):
                raise ValueError(f"{called} is {value:g}: state its bounds, min= and max=")
            low = options.get("min", max(min(values) / SPAN, row.minimum))
            high = options.get("max", max(values) * SPAN)
            if not low <= value <= high or not low < high or not math.isfinite(high):
                raise ValueError(f"{called} is {value:g} {row.unit}, and its bounds {low:g} … {high:g} are to hold it")
            found[k, name] = low, high
    for k in dict.fromkeys(k for k, _ in places):
        _check_corners(circuit, k, {name: ends for (place, name), ends in found.items() if place == k and name})
    return {place: found[place] for place in places}


def _check_corners(circuit: Circuit, k: int, bounds: Mapping[str, tuple[float, float]]) -> None:
    """Refuse bounds at which the device is none, or consists of other elements."""
    device = circuit.devices[k]
    for corner in itertools.product(*bounds.values()):
        stated = ", ".join(f"{name} = {value:g}" for name, value in zip(bounds, corner))
        try:
            there = type(device)(label=device.label, **(device.values() | dict(zip(bounds, corner))))
        except ValueError as error:
            wrong = f"{circuit.names[k]} with {stated}: {error}; state narrower bounds, min= and max="
            raise ValueError(wrong) from None
        if not same_shape(device, there) or _shorts(device) != _shorts(there):
            raise ValueError(
                f"{circuit.names[k]} with {stated} consists of other elements: state bounds, min= and max=, that leave "
                "each resistance above zero, or leave it out"
            )


def _shorts(device: Device) -> list[bool]:
    """Which of its parts are resistances of 0 Ω."""
    return [part.letter == "R" and part.value == 0.0 for part in device.expand()]


TRAINABLE = (RESISTOR, CURRENT, CAPACITOR, INDUCTOR)
"""Kinds of elements that may change; the last two on waveforms alone."""

_OUTPUT = re.compile(r"v\s*\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)|[^\s,]+", re.IGNORECASE)
_WORD = re.compile(r"[^\s,=]+(?:\s*=\s*[^\s,]+)?")
_PLURAL = {"inputs": "input", "outputs": "output", "trainables": "trainable"}


class Adjustable(NamedTuple):
    """An element or a parameter of a device that may change.

    Attributes
    ----------
    name : str
        A resistor or a current source, as first written; ``D1.vfwd``; on waveforms a capacitor, an inductor, ``S1.vt``.
    minimum, maximum : float
        Bounds of its value: Ω, F, H (positive), A (may be infinite), or the parameter's unit.
    """

    name: str
    minimum: float
    maximum: float


class Roles(NamedTuple):
    """Inputs, outputs and adjustable elements of a circuit, by name; see the module for their syntax in decks.

    Attributes
    ----------
    inputs : tuple of str
        Voltage and current sources.
    outputs : tuple of (str, str)
        Node pairs (p, q): the output is v(p) − v(q), V. Ground is ``"0"``.
    trainable : tuple of Adjustable
        In the order of the circuit's elements.
    lines : tuple of str
        The equivalent directives, without ``*!``.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    trainable: tuple[Adjustable, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def output_names(self) -> list[str]:
        """``v(p)`` or ``v(p,q)`` for each output."""
        return [f"v({p})" if q == "0" else f"v({p},{q})" for p, q in self.outputs]

    def require(self) -> Roles:
        """Itself, if it names inputs, outputs and something to train.

        Raises
        ------
        UsageError
            One of them is missing.
        """
        examples = {"input": "V1 V2", "output": "v(out)", "trainable": "R* min=1k max=1MEG"}
        for (word, example), found in zip(examples.items(), self[:3]):
            if not found:
                option = word if word == "trainable" else f"{word}s"
                raise UsageError(
                    f"the circuit has no {option}: write '*! {word} {example}' into the deck, or --{option} '{example}'"
                )
        return self


class _Wrong(Exception):
    """Something wrong with one word of a directive."""

    def __init__(self, message: str, word: str = "", hint: str = "", names: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message, self.word, self.hint, self.names = message, word, hint, tuple(names)


def read_roles(deck: Deck) -> tuple[Roles, tuple[Problem, ...]]:
    """The roles in a deck, and warnings about unknown directives.

    Raises
    ------
    NetlistError
        Everything that is wrong with its directives, each with file, line and column.
    """
    errors: list[Problem] = []
    warnings: list[Problem] = []
    collected = _Collected(deck.operating_circuit, deck.following.switches)
    for directive in deck.directives:
        try:
            collected.take(directive.text)
        except _Unknown as unknown:
            warnings.append(Problem("directive", unknown.message, directive.location, unknown.hint))
        except _Wrong as wrong:
            place = _at(directive.location, wrong.word)
            errors.append(Problem("directive", wrong.message, place, wrong.hint, wrong.names))
    if errors:
        raise NetlistError(errors)
    return collected.roles(), tuple(warnings)


def make_roles(
    circuit: Circuit,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    trainable: str | Sequence[str] | None = None,
    base: Roles | None = None,
    switches: Mapping[int, SwitchLaw] = MappingProxyType({}),
) -> Roles:
    """Roles from text, in the syntax of the directives; missing ones are taken from ``base``.

    Parameters
    ----------
    circuit : Circuit
    inputs, outputs : str or sequence of str
        ``"V1 V2"``; ``"v(out) v(p,q)"``.
    trainable : str or sequence of str
        ``"R* min=1k max=1MEG"``, or several such lines.
    base : Roles, optional
        The deck's own roles.
    switches : mapping of int to SwitchLaw
        Of the deck, whose numbers may change.

    Raises
    ------
    UsageError
        A name that the circuit does not have, an element that cannot play the role, bounds that are none.
    """
    given = {"input": inputs, "output": outputs, "trainable": trainable}
    collected = _Collected(circuit, switches)
    lines = [
        line for line in (base.lines if base else ()) if given[_PLURAL.get(w := line.split()[0].lower(), w)] is None
    ]
    for word, text in given.items():
        if text is not None:
            texts = [text] if isinstance(text, str) else list(text)
            lines += [f"{word} {part}" for part in (texts if word == "trainable" else [" ".join(texts)])]
    for line in lines:
        try:
            collected.take(line)
        except _Wrong as wrong:
            raise UsageError(f"{line.split()[0]}: {wrong.message}" + (f"; {wrong.hint}" * bool(wrong.hint))) from None
    return collected.roles()


class _Unknown(_Wrong):
    """A directive that begins with no known word."""


class _Collected:
    """Roles while directives come in."""

    def __init__(self, circuit: Circuit, switches: Mapping[int, SwitchLaw]) -> None:
        self.circuit, self.switches = circuit, switches
        self.inputs: dict[int, None] = {}
        self.outputs: dict[tuple[int, int], None] = {}
        self.bounds: dict[tuple[int, str], tuple[float, float]] = {}
        self.lines: list[str] = []

    def take(self, text: str) -> None:
        """One directive."""
        word, _, body = text.strip().partition(" ")
        known: dict[str, Callable[[str], None]] = {
            "input": self._inputs,
            "output": self._outputs,
            "trainable": self._trainable,
        }
        kind = _PLURAL.get(word.lower(), word.lower())
        if kind not in known:
            near = difflib.get_close_matches(kind, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "input, output and trainable are known"
            raise _Unknown(f"{short(word)!r} is no directive; the line has no effect", word, hint)
        if not body.strip():
            raise _Wrong(f"{kind} names nothing", word, "name at least one, as in 'input V1'")
        known[kind](body)
        self.lines.append(" ".join([kind, *body.split()]))

    def roles(self) -> Roles:
        """What was collected."""
        names, nodes = self.circuit.names, self.circuit.node_names
        # To make all names takes a quarter of the time of making each at its index.
        called = list(names) if 4 * len(self.bounds) > len(names) else names
        return Roles(
            tuple(names[k] for k in self.inputs),
            tuple((nodes[p], nodes[q]) for p, q in self.outputs),
            tuple(
                Adjustable(full_name(called[k], parameter), low, high)
                for (k, parameter), (low, high) in sorted(self.bounds.items())
            ),
            tuple(self.lines),
        )

    def _inputs(self, body: str) -> None:
        for word in _words(body):
            for k in self._elements(word, (VOLTAGE, CURRENT), "inputs are voltage or current sources"):
                if (k, "") in self.bounds:
                    raise _Wrong(f"{self.circuit.names[k]} cannot be an input and trainable", word)
                self.inputs[k] = None

    def _outputs(self, body: str) -> None:
        at = 0
        while found := _OUTPUT.search(body, at):
            at = found.end()
            word = found.group()
            first, second = (found.group(1), found.group(2)) if found.group(1) else (word, None)
            try:
                pair = self.circuit.node_index(first), self.circuit.node_index(second) if second else GROUND
            except TopologyError as error:
                raise _Wrong(str(error), word, "an output is v(node), v(a,b) or a node") from None
            if pair[0] == pair[1]:
                raise _Wrong(f"{word} is always 0 V", word, "name two different nodes")
            if pair in self.outputs:
                raise _Wrong(f"{word} is an output twice", word)
            self.outputs[pair] = None

    def _trainable(self, body: str) -> None:
        options, words = {}, []
        for word in _words(body):
            name, equals, value = (part.strip() for part in word.partition("="))
            if not equals:
                words.append(word)
                continue
            if name.lower() not in ("min", "max"):
                raise _Wrong(f"{short(name)!r} is no option of trainable", word, "min= and max= are known")
            options[name.lower()] = _number(value, word)
        if not words:
            raise _Wrong("trainable names no element", body.split()[0], "name at least one, as in 'trainable R*'")
        found: dict[int, None] = {}
        laws: dict[tuple[int, str], None] = {}
        for word in words:
            parameters = matching_parameters(self.circuit, word)
            if parameters:
                laws.update(dict.fromkeys(parameters))
                continue
            what = (
                "resistors, current sources and parameters of devices (D1.vfwd) can be trained, on waveforms also "
                "capacitors, inductors and numbers of switches (S1.vt)"
            )
            number = parameter(self.circuit, word, self.switches)
            if number is not None and number.sort is Sort.SWITCH and number.elements[0] in self.switches:
                self._number(number, options)
                continue
            # A pattern takes what acts at the operating point, if there is any such element.
            pattern = set("*?") & set(word) and word not in self.circuit
            at_rest = self._matches(word, (RESISTOR, CURRENT)) if pattern else []
            found.update(dict.fromkeys(at_rest or self._elements(word, TRAINABLE, what)))
        self._bound(found, options, body)
        try:
            self.bounds.update(law_bounds(self.circuit, list(laws), options, self.bounds))
        except ValueError as error:
            raise _Wrong(str(error), words[-1]) from None

    def _number(self, own: Parameter, options: dict[str, float]) -> None:
        """The bounds of one number of a switch."""
        word, value = own.name, own.value
        low, high = _defaults([value], RESISTOR if value > 0.0 else CURRENT)
        low, high = options.get("min", low), options.get("max", high)
        if not low < high or not low <= value <= high:
            raise _Wrong(f"{word} is {value:g}, its bounds are {low:g} and {high:g}", word, "min=… max=… around it")
        self.bounds[own.elements[0], own.key] = low, high

    def _bound(self, found: Iterable[int], options: dict[str, float], body: str) -> None:
        kind, _, _, value = self.circuit.columns()
        word = body.split()[0]
        by_kind: dict[int, list[int]] = {code: [] for code in TRAINABLE}
        for k in found:
            by_kind[kind[k]].append(k)
        for code, chosen in by_kind.items():
            if not chosen:
                continue
            values = [value[k] for k in chosen]
            self._check_chosen(chosen, values, code == RESISTOR, word)
            low, high = _defaults(values, code)
            low, high = options.get("min", low), options.get("max", high)
            unit = ELEMENTS[code].unit
            if not low < high or (code != CURRENT and low <= 0.0):
                raise _Wrong(
                    f"the bounds {low:g} and {high:g} {unit} are none",
                    word,
                    "min must be below max" + ", and above 0" * (code != CURRENT),
                )
            outside = next((k for k, own in zip(chosen, values) if not low <= own <= high), None)
            if outside is not None:
                name = self.circuit.names[outside]
                raise _Wrong(
                    f"{name} has {value[outside]:g} {unit}, outside its bounds {low:g} … {high:g} {unit}",
                    word,
                    "widen the bounds or change its value",
                    [name],
                )
            self.bounds.update(dict.fromkeys(((k, "") for k in chosen), (low, high)))

    def _check_chosen(self, chosen: Sequence[int], values: Sequence[float], resistors: bool, word: str) -> None:
        """Refuse to train inputs and shorts."""
        both = next((k for k in chosen if k in self.inputs), None)
        if both is not None:
            raise _Wrong(f"{self.circuit.names[both]} cannot be an input and trainable", word)
        if resistors and 0.0 in values:
            name = self.circuit.names[chosen[values.index(0.0)]]
            raise _Wrong(f"{name} has 0 Ω: a short has no conductance to train", word, "give it a resistance")

    def _elements(self, word: str, kinds: tuple[int, ...], what: str) -> list[int]:
        """Elements called ``word``, or those of ``kinds`` that match it."""
        circuit = self.circuit
        kind = circuit.columns()[0]
        if word in circuit:
            k = circuit.element_index(word)
            if kind[k] not in kinds:
                row = ELEMENTS[kind[k]]
                raise _Wrong(f"{circuit.names[k]} is a {row.name}; {what}", word, names=[circuit.names[k]])
            return [k]
        if not set("*?") & set(word):
            try:
                circuit.element_index(word)
            except TopologyError as error:
                raise _Wrong(str(error), word) from None
        found = self._matches(word, kinds)
        if not found:
            raise _Wrong(f"no element matches {short(word)!r}", word, what)
        return found

    def _matches(self, word: str, kinds: tuple[int, ...]) -> list[int]:
        """Elements of ``kinds`` that a pattern matches."""
        kind = self.circuit.columns()[0]
        pattern = re.compile(re.escape(word).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE)
        matches = pattern.fullmatch
        return [k for k, (code, name) in enumerate(zip(kind, self.circuit.names)) if code in kinds and matches(name)]


def _words(body: str) -> list[str]:
    return _WORD.findall(body)


def _number(text: str, word: str) -> float:
    try:
        return parse(text)
    except NumberError as error:
        raise _Wrong(str(error), word, error.hint) from None


def _defaults(values: list[float], code: int) -> tuple[float, float]:
    return (min(values) / SPAN, max(values) * SPAN) if code != CURRENT else (-math.inf, math.inf)


def _at(place: Location, word: str) -> Location:
    """The place of ``word`` in the line of a directive."""
    start = place.text.find(word, place.column - 1) if word else -1
    return place if start < 0 else Location(place.file, place.line, start + 1, place.text, place.callers)
