"""Roles of circuit elements in learning: inputs, outputs and trainable values.

Roles are comment directives in a deck, which every SPICE program still runs:

    *! input V1 V2 Ibias             sources that take the values of a sample
    *! output v(out) v(p,q) x        node pairs that are read (against ground where one node is given)
    *! trainable R* min=1k max=1MEG  resistors (bounds in ohm) and current sources (bounds in ampere) that may change
    *! trainable D*.is min=1f max=1u parameters of devices (bounds in their unit) that may change
    *! trainable C1 L* S1.vt         on waveforms also capacitors, inductors and numbers of switches

Names may hold the wildcards ``*`` and ``?``; case does not matter. A later ``trainable`` line replaces the bounds of
the elements it names. The default bounds of a resistor or a device parameter are a thousandth of the smallest and a
thousand times the largest value on its line; a current source is unbounded.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.dynamics import SwitchLaw
from circuitsim.circuit.elements import CAPACITOR, CURRENT, ELEMENTS, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import same_shape
from circuitsim.circuit.parameters import Parameter, Sort, matching, parameter, parameter_values
from circuitsim.errors import NetlistError, Problem, TopologyError, UsageError, similar
from circuitsim.models import Device
from circuitsim.netlist.deck import Deck
from circuitsim.units import NumberError, parse, short

SPAN = 1e3
"""Default bounds as a factor relative to the values as written."""


class _Number(NamedTuple):
    """A trainable number; on one line numbers of one ``group`` have the same bounds.

    Attributes
    ----------
    own : Parameter
    group : str or int
    least : float
        Lower limit of default bounds.
    free : bool
        Whether default bounds are infinite.
    positive : bool
        Whether both bounds must be positive.
    """

    own: Parameter
    group: str | int
    least: float = -math.inf
    free: bool = False
    positive: bool = False


def _check_corners(circuit: Circuit, k: int, bounds: Mapping[str, tuple[float, float]], word: str) -> None:
    """Refuse bounds at which the device is invalid or consists of other elements."""
    device = circuit.devices[k]
    for corner in itertools.product(*bounds.values()):
        there = ", ".join(f"{name} = {value:g}" for name, value in zip(bounds, corner))
        stated = f"{circuit.names[k]} with {there}"
        try:
            other = type(device)(label=device.label, **(device.values() | dict(zip(bounds, corner))))
        except ValueError as error:
            raise _Wrong(f"{stated}: {error}; state narrower bounds, min= and max=", word) from None
        if not same_shape(device, other) or _shorts(device) != _shorts(other):
            raise _Wrong(
                f"{stated} consists of other elements: state bounds (min=, max=) that keep each resistance above zero",
                word,
            )


def _shorts(device: Device) -> list[bool]:
    """Which of its parts are resistances of 0 Ω."""
    return [part.letter == "R" and part.value == 0.0 for part in device.expand()]


TRAINABLE = (RESISTOR, CURRENT, CAPACITOR, INDUCTOR)
"""Kinds of trainable elements; the last two only on waveforms."""

_TRAINED = (
    "resistors, current sources and parameters of devices (D1.vfwd) can be trained, on waveforms also capacitors, "
    "inductors and numbers of switches (S1.vt)"
)

_OUTPUT = re.compile(r"v\s*\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)|[^\s,]+", re.IGNORECASE)
_WORD = re.compile(r"[^\s,=]+(?:\s*=\s*[^\s,]+)?")


class Adjustable(NamedTuple):
    """A trainable element or device parameter.

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
        """Itself, if inputs, outputs and trainable elements are all present.

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
    """An error in one word of a directive; without a word, the directive itself is unknown."""

    def __init__(self, message: str, word: str = "", hint: str = "", names: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message, self.word, self.hint, self.names = message, word, hint, tuple(names)


def read_roles(deck: Deck) -> tuple[Roles, tuple[Problem, ...]]:
    """The roles in a deck, and warnings about unknown directives.

    Raises
    ------
    NetlistError
        All errors of its directives, each with file, line and column.
    """
    errors: list[Problem] = []
    warnings: list[Problem] = []
    collected = _Collected(deck.operating_circuit, deck.following.switches)
    for directive in deck.directives:
        try:
            collected.take(directive.text)
        except _Wrong as wrong:
            place, start = directive.location, directive.location.text.find(wrong.word, directive.location.column - 1)
            if wrong.word and start >= 0:
                place = place._replace(column=start + 1)
            found = Problem("directive", wrong.message, place, wrong.hint, wrong.names)
            (errors if wrong.word else warnings).append(found)
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
        Unknown name, unsuitable element, or invalid bounds.
    """
    given = {"input": inputs, "output": outputs, "trainable": trainable}
    collected = _Collected(circuit, switches)
    lines = [line for line in (base.lines if base else ()) if given.get(line.split()[0]) is None]
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


class _Collected:
    """Collects roles from directives."""

    def __init__(self, circuit: Circuit, switches: Mapping[int, SwitchLaw]) -> None:
        self.circuit, self.switches = circuit, switches
        self.inputs: dict[int, None] = {}
        self.outputs: dict[tuple[int, int], None] = {}
        self.bounds: dict[int, dict[str, tuple[float, float]]] = {}
        self.lines: list[str] = []

    def take(self, text: str) -> None:
        """One directive."""
        word, _, body = text.strip().partition(" ")
        known: dict[str, Callable[[str], None]] = {
            "input": self._inputs,
            "output": self._outputs,
            "trainable": self._trainable,
        }
        kind = word.lower().removesuffix("s")
        if kind not in known:
            hint = similar(kind, known, "use input, output or trainable")
            raise _Wrong(f"{short(word)!r} is not a directive; the line is ignored", "", hint)
        if not body.strip():
            raise _Wrong(f"{kind} names nothing", word, "name at least one, as in 'input V1'")
        known[kind](body)
        self.lines.append(" ".join([kind, *body.split()]))

    def roles(self) -> Roles:
        """The result."""
        names, nodes = self.circuit.names, self.circuit.node_names
        return Roles(
            tuple(names[k] for k in self.inputs),
            tuple((nodes[p], nodes[q]) for p, q in self.outputs),
            tuple(
                Adjustable(".".join(filter(None, (names[k], key))), *ends)
                for k, inside in sorted(self.bounds.items())
                for key, ends in sorted(inside.items())
            ),
            tuple(self.lines),
        )

    def _inputs(self, body: str) -> None:
        for word in _WORD.findall(body):
            for k in self._elements(word, (VOLTAGE, CURRENT), "inputs are voltage or current sources"):
                if k in self.bounds:
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
        for word in _WORD.findall(body):
            name, equals, value = (part.strip() for part in word.partition("="))
            if not equals:
                words.append(word)
                continue
            if name.lower() not in ("min", "max"):
                raise _Wrong(f"{short(name)!r} is not an option of trainable", word, "use min= and max=")
            try:
                options[name.lower()] = parse(value)
            except NumberError as error:
                raise _Wrong(str(error), word, error.hint) from None
        first = body.split()[0]
        if not words:
            raise _Wrong("trainable names no element", first, "name at least one, as in 'trainable R*'")
        groups: dict[str | int, dict[str, _Number]] = {}
        for number in (number for word in words for number in self._numbers(word)):
            groups.setdefault(number.group, {})[number.own.name] = number
        for group in groups.values():
            self._bound(list(group.values()), options, first)
        for k in dict.fromkeys(number.own.elements[0] for group in groups.values() for number in group.values()):
            if k in self.circuit.devices:
                _check_corners(self.circuit, k, self.bounds[k], first)

    def _numbers(self, word: str) -> list[_Number]:
        """The numbers named by a word of a trainable line.

        Devices that do not state a parameter, on the card or in the model, are left out, and what acts over time alone,
        where others affect the operating point.
        """
        circuit, kind, found = self.circuit, self.circuit.columns()[0], list[_Number]()
        for own in filter(None, (parameter(circuit, name, self.switches) for name in self._names(word))):
            name, k = own.name, own.elements[0] if own.elements else -1
            if own.sort is Sort.DEVICE and own.value == own.value:
                model = circuit.devices[k].model
                row = model.parameter_called(own.key)
                if row is None or not row.trainable:
                    what = f"there is no rule for the {own.key} of a {model.name}"
                    raise _Wrong(f"{name} cannot be trained: {what}", name)
                found.append(_Number(own, own.key, row.minimum))
            elif own.sort is Sort.SWITCH and k in self.switches:
                found.append(_Number(own, name, free=own.value <= 0.0))
            elif own.sort is Sort.ELEMENT and kind[k] in TRAINABLE:
                free = kind[k] == CURRENT
                found.append(_Number(own, kind[k], free=free, positive=not free))
        for name, k in [(one.own.name, one.own.elements[0]) for one in found if one.own.sort is Sort.ELEMENT]:
            if k in self.inputs:
                raise _Wrong(f"{name} cannot be an input and trainable", word)
            if kind[k] == RESISTOR and circuit.columns()[3][k] == 0.0:
                raise _Wrong(f"{name} has 0 Ω: a short has no conductance to train", word, "give it a resistance")
        if not found:
            self._elements(word, TRAINABLE, _TRAINED)
        return [one for one in found if one.group not in (CAPACITOR, INDUCTOR)] or found

    def _names(self, word: str) -> list[str]:
        """The names that match a word."""
        wild = word not in self.circuit and not {*"*?"}.isdisjoint(word)
        return matching(self.circuit, word, parameter_values(self.circuit)) if wild else [word]

    def _bound(self, numbers: Sequence[_Number], options: Mapping[str, float], word: str) -> None:
        """Bounds of the numbers of one group: as stated, or `SPAN` beyond the smallest and the largest value."""
        values, one, own = [number.own.value for number in numbers], numbers[0], numbers[0].own
        low, high = (-math.inf, math.inf) if one.free else (max(min(values) / SPAN, one.least), max(values) * SPAN)
        if min(values) <= 0.0 and not one.free and not {"min", "max"} <= set(options):
            raise _Wrong(f"{own.name} is {own.value:g}: state its bounds, min= and max=", word)
        low, high = options.get("min", low), options.get("max", high)
        if not low < high or (one.positive and low <= 0.0):
            hint = "min must be below max" + ", and above 0" * one.positive
            raise _Wrong(f"invalid bounds {low:g} and {high:g} {own.unit}", word, hint)
        for own in (number.own for number in numbers):
            if not low <= own.value <= high:
                raise _Wrong(
                    f"{own.name} has {own.value:g} {own.unit}, outside its bounds {low:g} … {high:g} {own.unit}",
                    word,
                    "widen the bounds or change its value",
                    [own.name],
                )
            self.bounds.setdefault(own.elements[0], {})[own.key] = low, high

    def _elements(self, word: str, kinds: tuple[int, ...], what: str) -> list[int]:
        """Elements called ``word``, or those of ``kinds`` that match it."""
        circuit, kind = self.circuit, self.circuit.columns()[0]
        if word in circuit or not {*"*?"} & {*word}:
            try:
                k = circuit.element_index(word)
            except TopologyError as error:
                raise _Wrong(str(error), word) from None
            if kind[k] not in kinds:
                row = ELEMENTS[kind[k]]
                raise _Wrong(f"{circuit.names[k]} is a {row.name}; {what}", word, names=[circuit.names[k]])
            return [k]
        found = [k for k, name in enumerate(circuit.names) if kind[k] in kinds and matching(circuit, word, [name])]
        if not found:
            raise _Wrong(f"no element matches {short(word)!r}", word, what)
        return found
