"""`Circuit` to SPICE text that ngspice runs and that reads back to the same circuit: elements, roles, and what acts
over time.

Devices that ngspice has no model of are written as what it has: resistors, steep diodes and sources, or a formula.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, ELEMENTS, INDUCTOR, NULLOR, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.errors import TopologyError, UsageError
from circuitsim.models import ELEMENTARY, Device
from circuitsim.models.formula_law import OfFormula
from circuitsim.models.smooth import WithoutModel
from circuitsim.netlist.amplifier import DEFINITION
from circuitsim.netlist.deck import (
    STARTUP,
    Analysis,
    DcRange,
    DcSweep,
    Deck,
    FourierCard,
    InitialValues,
    MeasurementRequest,
    Output,
    SensitivityRequest,
    SmallSignal,
    Spacing,
    Step,
    TableRange,
    Target,
    Temperature,
    TransferRequest,
    Transient,
)
from circuitsim.netlist.definitions import IDEAL_MODEL
from circuitsim.netlist.expression import CALL
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.roles import Adjustable, Roles, make_roles
from circuitsim.netlist.waveform import Waveform
from circuitsim.units import exact, short

FINITE = 1e9
"""Gain with which an ideal op-amp is written: ngspice has none."""


def letter(circuit: Circuit, k: int) -> str:
    """The letter with which controlled element ``k`` is written: that of its name, if it can be."""
    law = circuit.laws[k]
    if circuit.columns()[0][k] == NULLOR:
        return "E"
    voltage = law.quantity is Quantity.VOLTAGE
    own = circuit.names[k][:1].upper()
    by_voltage = not law.currents
    by_current = not law.voltages and all(circuit.columns()[0][c.element] != RESISTOR for c in law.currents)
    possible = "B" + ("E" if voltage else "G") * by_voltage
    possible += ("H" if voltage else "F") * (by_current and not by_voltage)
    return own if own in possible else possible[-1]


class Written(NamedTuple):
    """A circuit, and what a deck calls its elements and nodes."""

    circuit: Circuit
    names: Sequence[str]
    nodes: Sequence[str]

    def head(self, k: int) -> str:
        """The name of an element and its nodes, with which its card begins."""
        _, first, second, _ = self.circuit.columns()
        return f"{self.names[k]} {self.nodes[first[k]]} {self.nodes[second[k]]}"

    def element(self, name: str) -> str:
        """An element's name."""
        return self.names[self.circuit.element_index(name)] if name in self.circuit else name

    def adjustable(self, name: str) -> str:
        """The name of an element, or of a number of one."""
        if name in self.circuit:
            return self.element(name)
        element, _, number = name.rpartition(".")
        return f"{self.element(element)}.{number}"

    def node(self, name: str) -> str:
        """A node's name."""
        try:
            return self.nodes[self.circuit.node_index(name)]
        except TopologyError:
            return name

    def text(self, text: str) -> str:
        """A text with v(a,b), i(R1) and p(R1)."""
        return _QUANTITY.sub(self._quantity, text)

    def _quantity(self, found: re.Match[str]) -> str:
        parts = [part.strip() for part in found[2].split(",")]
        if found[1].lower() == "v":
            parts = [self.node(part.replace(":", ".")) for part in parts]
        else:
            parts = [self.element(part.replace(":", ".")) for part in parts]
        return f"{found[1]}({','.join(parts)})"


def controlled_lines(written: Written, k: int) -> list[str]:
    """The card of controlled element ``k``, with a comment where ngspice has no such element."""
    circuit, names, nodes = written
    kind, _, _, values = circuit.columns()
    law, name, head = circuit.laws[k], names[k], written.head(k)
    if kind[k] == NULLOR:
        _, plus, minus = law.voltages[0]
        comment = f"* {name} is an ideal op-amp: in circuitsim {head} OPAMP {nodes[plus]} {nodes[minus]}"
        return [comment, f"{head} {nodes[plus]} {nodes[minus]} {exact(FINITE)}"]
    gain = 1.0 if values[k] != values[k] else values[k]
    which = name[:1].upper()
    if which == "B":
        word = "V" if law.quantity is Quantity.VOLTAGE else "I"
        return [f"{head} {word}={_expression(written, law, gain)}"]
    controls = [f"{nodes[p]} {nodes[m]}" for _, p, m in law.voltages] + [names[c.element] for c in law.currents]
    shares = [c.coefficient for c in law.voltages] + [c.coefficient for c in law.currents]
    if len(controls) == 1 and law.constant == 0.0 and values[k] == values[k] and shares == [1.0]:
        return [f"{head} {controls[0]} {exact(gain)}"]
    terms = [exact(x) for x in (law.constant, *(gain * share for share in shares))]
    return [f"{head} POLY({len(controls)}) {' '.join(controls)} {' '.join(terms)}"]


def _expression(written: Written, law: Law, gain: float) -> str:
    """The law as an expression; currents of resistors as their voltages."""
    circuit, names, nodes = written
    kind, first, second, values = circuit.columns()
    terms = [exact(law.constant)]
    for c, plus, minus in law.voltages:
        terms.append(f"({exact(gain * c)})*v({nodes[plus]},{nodes[minus]})")
    for c, k in law.currents:
        if kind[k] == RESISTOR and values[k] > 0.0:
            terms.append(f"({exact(gain * c / values[k])})*v({nodes[first[k]]},{nodes[second[k]]})")
        else:
            terms.append(f"({exact(gain * c)})*i({names[k]})")
    return " + ".join(terms)


def portable_lines(device: Device, name: str, first: str, second: str, elements: Names, nodes: Names) -> list[str]:
    """The cards of a device between two nodes.

    Parameters
    ----------
    name : str
        Of the device, as written.
    elements, nodes : Names
        The names in use, of elements and of nodes.
    """
    if isinstance(device, WithoutModel):
        return _formula(device, name, first, second, elements, nodes)
    inside = dict(zip(device.model.terminals, (first, second)))
    cards = []
    for part in device.expand():
        for node in (part.first, part.second):
            if node not in inside:
                inside[node] = nodes.legal(node, f"{name}.{node}")
        letter = "V" if part.letter == "R" and part.value == 0.0 else part.letter  # ngspice would take 1 mΩ
        own = elements.legal(part.name, f"{letter}{name}.{part.name}")
        value = IDEAL_MODEL if part.value is None else exact(part.value)
        cards.append(f"{own} {inside[part.first]} {inside[part.second]} {value}")
    return cards


def _formula(device: WithoutModel, name: str, first: str, second: str, elements: Names, nodes: Names) -> list[str]:
    """A source whose current is a formula of its own voltage, behind the resistance in series."""
    cards, series = [], device.row()[0]
    if series > 0.0:
        inner = nodes.legal(name, f"{name}.junction")
        cards.append(f"{elements.legal(name, f'R{name}.series')} {first} {inner} {exact(series)}")
        first = inner
    volts = f"(v({first},{second}))"
    if "0" in (first, second):
        volts = f"(v({first}))" if second == "0" else f"(-v({second}))"
    own = elements.legal(name, f"B{name}")
    return [*cards, f"{own} {first} {second} I={device.junction_text(volts)}"]


# What ngspice 39 takes in a name, found by trying each sign; @ and $ are left out, they mean something elsewhere.
_LEGAL = re.compile(r"[A-Za-z0-9_.:\[\]<>#%!~/|^+*?-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.:\[\]<>#%!~/|^+*?-]")
_RESERVED = frozenset(("time", "temper", "hertz", "params:", "params"))
_CARD_LIKE = re.compile(r"\s*(?:\.|[rvidlc]\w*\s+\S+\s+\S+\s+[+-]?\.?[0-9]\S*\s*$)", re.I)

MODEL = f".model {IDEAL_MODEL} D(is=1e-12 n=0.01)"
"""A diode with a forward drop of about 6 mV at 5 mA: as near to ideal as ngspice still converges with."""


class ModelCards:
    """The ``.model`` cards of devices, one for all with equal parameters.

    Parameters
    ----------
    idle : mapping of str to str
        What models state beside their law, by their names in lower case.

    Attributes
    ----------
    lines : list of str
        The cards.
    """

    def __init__(self, idle: Mapping[str, str]) -> None:
        self.idle = idle
        self.lines: list[str] = []
        self._names: dict[tuple[object, ...], str] = {}
        self._taken = Names([IDEAL_MODEL])

    def words(self, device: Device, name: str, first: str, second: str) -> str:
        """The fields behind the nodes on the card of an element ``name``: model and number of cells, or a formula."""
        if isinstance(device, OfFormula):
            return device.formula(name, first, second)
        stated = device.parameters()
        key = type(device), device.label, *stated.items()
        if key not in self._names:
            wanted = device.label or f"{device.model.letter}model"
            free = is_legal(wanted) and wanted.lower() not in self._taken.taken
            if free:
                self._taken.taken.add(wanted.lower())
            self._names[key] = name = wanted if free else self._taken.legal(wanted, wanted)
            listed = " ".join(f"{parameter}={exact(value)}" for parameter, value in stated.items())
            listed += self.idle.get(device.label.lower(), "")
            if device.model.dialect:
                self.lines.append(f"* {name} is {device.model.dialect}")
            self.lines.append(f".model {name} {device.model.card_type}({listed})")
        return " ".join([self._names[key], *(f"{word}={exact(count)}" for word, count in device.counts().items())])


class Names:
    """Distinct legal names for names of any kind; legal ones are unchanged."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = {name.lower() for name in taken}
        self.changed: list[tuple[str, str]] = []

    def legal(self, name: str, wanted: str) -> str:
        """``name`` itself if legal (checked before), or a new name made from ``wanted``."""
        base = _ILLEGAL.sub("_", wanted).replace("//", "/_")
        new, k = base, 2
        while new.lower() in self.taken:
            new, k = f"{base}_{k}", k + 1
        self.taken.add(new.lower())
        self.changed.append((name, new))
        return new


def is_legal(name: str) -> bool:
    """Whether ngspice takes ``name`` as it is."""
    return bool(_LEGAL.fullmatch(name)) and "//" not in name and name.lower() not in _RESERVED


def safe_title(title: str) -> str:
    """``title`` on one line that neither program takes for a card."""
    line = "".join(c if c.isprintable() else " " for c in title).strip().rstrip("\\")
    return f"* {line}" if _CARD_LIKE.match(line) else line


def node_names(circuit: Circuit) -> tuple[list[str], list[tuple[str, str]]]:
    """A legal name for each node, and those that had to be changed."""
    names = [str(name) for name in circuit.node_names]
    names[GROUND] = "0"
    good = [name for name in names if is_legal(name)]
    if len(good) == len(names):
        return names, []
    new = Names(good)
    return [name if is_legal(name) else new.legal(name, f"n_{name}") for name in names], new.changed


def element_names(circuit: Circuit) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """For each element the letter and the name it is written with, and the names that had to be changed."""
    letters = [row.letter for row in ELEMENTS]
    zero = ELEMENTS[VOLTAGE].letter
    written = [
        zero if code == RESISTOR and value == 0 else letters[code]
        for code, value in zip(circuit.columns()[0], circuit.columns()[3])
    ]
    for k in circuit.laws:
        written[k] = letter(circuit, k)
    for k in circuit.dynamics.formulas if circuit.dynamics is not None else ():
        written[k] = str(circuit.names[k])[:1].upper()  # its card is written as it was
    legal = [name[:1] in (letter, letter.lower()) and is_legal(name) for name, letter in zip(circuit.names, written)]
    new = Names(name for name, same in zip(circuit.names, legal) if same)
    names = [
        str(name) if same else new.legal(str(name), with_letter(str(name), letter))
        for name, letter, same in zip(circuit.names, written, legal)
    ]
    return written, names, new.changed


def with_letter(name: str, letter: str) -> str:
    """``name`` begun with the letter of its kind; ``x1.r1`` becomes ``R.x1.r1``, as ngspice flattens it."""
    if name[:1] in (letter, letter.lower()):
        return name
    return f"{letter}.{name}" if "." in name else f"{letter}{name}"


def text_of(circuit: Circuit, roles: Roles | None = None, timed: Timed | None = None, ngspice: bool = False) -> str:
    """The deck; see `circuitsim.netlist.dumps`. ``timed`` says what acts over time and frequency."""
    if timed is None:
        timed = of_circuit(circuit)
    nodes, changed = node_names(circuit)
    letters, names, renamed = element_names(circuit)
    written = Written(circuit, names, nodes)
    lines = [safe_title(circuit.title)]
    lines += [f"* node {printable(old)} is written {new}" for old, new in changed]
    lines += [f"* {printable(old)} is written {new}" for old, new in renamed if not plainly(old, new)]
    if roles is not None:
        lines += directives(roles, Written(circuit, names if timed is None else timed.names(names), nodes))
    cards = {row.letter: row.spice for row in ELEMENTS[:ELEMENTARY]}
    cards[ELEMENTS[DIODE].letter] += f" {IDEAL_MODEL}"
    kind, first, second, values = circuit.columns()
    models, own_names, own_nodes, ideal = (
        ModelCards({} if timed is None else timed.idle()),
        Names(names),
        Names(nodes),
        DIODE in kind,
    )
    for k, value in enumerate(values):
        if k in circuit.laws:
            lines += controlled_lines(written, k)
            continue
        own = None if timed is None else timed.card(k, written)
        if own is not None:
            lines.append(own)
            continue
        device = circuit.devices.get(k)
        card, last = cards.get(letters[k], ""), exact(value)
        if device is not None and device.model.dialect and ngspice:
            ends = nodes[first[k]], nodes[second[k]]
            lines += portable_lines(device, names[k], *ends, own_names, own_nodes)
            ideal = True
            continue
        if device is not None:
            card, last = device.model.spice, models.words(device, names[k], nodes[first[k]], nodes[second[k]])
        lines.append(card.format(name=names[k], first=nodes[first[k]], second=nodes[second[k]], value=last))
    if ideal:
        lines.append(MODEL)
    lines += models.lines
    if circuit.amplified:
        lines += DEFINITION.splitlines()
    lines += [*([".op"] if timed is None else timed.closing(written)), ".end", ""]
    return "\n".join(lines)


def plainly(old: str, new: str) -> bool:
    """Whether the new name only puts the element's letter before the old one."""
    return new[1:].lstrip(".") == old


def printable(name: str) -> str:
    """``name`` for a comment."""
    return short("".join(c if c.isprintable() else "?" for c in name).replace(";", ","), 80)


WIDTH = 100
"""Most letters of a line."""


def directives(roles: Roles, written: Written) -> list[str]:
    """The lines that give ``roles`` again in a deck whose elements and nodes have other names.

    The lines as they were, where they still mean the same; spelled out name by name elsewhere.

    Parameters
    ----------
    roles : Roles
        Of the circuit that is written.
    written : Written
    """
    circuit, names, nodes = written
    # A resistor may lie on its bound within rounding; only the matches of the patterns are used here.
    there = Circuit.from_columns("", circuit.columns(), list(names), list(nodes), devices=circuit.devices)
    renamed = Roles(
        tuple(map(written.element, roles.inputs)),
        tuple((written.node(p), written.node(q)) for p, q in roles.outputs),
        tuple(Adjustable(written.adjustable(a.name), *a[1:]) for a in roles.trainable),
    )
    try:
        same = make_roles(there, base=roles)[:3] == renamed[:3]
    except UsageError:
        same = False
    return [f"*! {line}" for line in (roles.lines if same else _spelled(renamed))]


def _spelled(roles: Roles) -> list[str]:
    """Roles name by name."""
    lines = _wrapped("input", roles.inputs)
    lines += _wrapped("output", roles.output_names)
    groups: dict[tuple[float, float], list[str]] = {}
    for name, low, high in roles.trainable:
        groups.setdefault((low, high), []).append(name)
    for (low, high), members in groups.items():
        options = [f"{word}={exact(bound)}" for word, bound in (("min", low), ("max", high)) if math.isfinite(bound)]
        lines += [" ".join([line, *options]) for line in _wrapped("trainable", members)]
    return lines


def _wrapped(word: str, names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) < WIDTH:
            lines[-1] += f" {name}"
        else:
            lines.append(f"{word} {name}")
    return lines


class Timed(NamedTuple):
    """A circuit whose values, or whose switches, may be others than in its deck.

    Attributes
    ----------
    deck : Deck or None
        None: what the circuit brings along, without analyses.
    circuit : Circuit
    switches : dict of int to dict of str to float
        ``vt``, ``vh``, ``ron``, ``roff`` by position.
    ngspice : bool
        What ngspice does not read is refused.
    lenient : bool
        An analysis that a flat deck does not have becomes a comment.
    """

    deck: Deck | None
    circuit: Circuit
    switches: dict[int, dict[str, float]]
    ngspice: bool = False
    lenient: bool = False

    @property
    def following(self) -> FollowingSources:
        """What acts over time and frequency."""
        found: FollowingSources = self.circuit.dynamics if self.deck is None else self.deck.following
        return found

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """Those of the deck."""
        return () if self.deck is None else self.deck.analyses

    def idle(self) -> dict[str, str]:
        """What models of diodes state for analyses over time, by their names in lower case."""
        return {} if self.deck is None else self.deck.idle_parameters()

    def turned_on(self, k: int) -> bool:
        """Whether an element is a constant source that ``startup`` turns on."""
        following = self.following
        moving = k in following.waves or k in following.formulas or k in self.circuit.laws
        constant = self.circuit.columns()[0][k] in (VOLTAGE, CURRENT) and not moving
        return constant and any(isinstance(card, Transient) and card.startup for card in self.analyses)

    def names(self, names: Sequence[str]) -> list[str]:
        """The elements' names in the text: those of switches have their own letter."""
        found = list(names)
        for k, law in self.following.switches.items():
            found[k] = with_letter(str(self.circuit.names[k]), "W" if isinstance(law.control, str) else "S")
        return found

    def card(self, k: int, written: Written) -> str | None:
        """The card of an element that acts over time; None where it is like any other."""
        following, names, nodes = self.following, written.names, written.nodes
        kind, first, second, value = self.circuit.columns()
        head = written.head(k)
        if k in following.switches:
            law, own = following.switches[k], self.names(names)[k]
            if isinstance(law.control, str):
                control = self.names(names)[self.circuit.element_index(law.control)]
            else:
                control = " ".join(nodes[node] for node in law.control)
            return f"{own} {nodes[first[k]]} {nodes[second[k]]} {control} switch{k}{' ON' * law.closed}"
        if self.turned_on(k):
            return f"{head} PWL(0 0 {exact(STARTUP)} {exact(value[k])})"
        if k in self.circuit.laws or kind[k] not in (VOLTAGE, CURRENT):
            pass
        elif k in following.formulas:
            return self.formula(k, written)
        elif k in following.waves or k in following.phasors:
            words = [head]
            wave = following.waves.get(k)
            if wave is None or value[k] != wave.dc:
                words.append(exact(value[k]) if wave is None else f"DC {exact(value[k] / wave.factor)}")
            if k in following.phasors:
                size, angle = cmath.polar(following.phasors[k] / (1.0 if wave is None else wave.factor))
                words.append(f"AC {exact(size)} {math.degrees(angle):.15g}")
            return " ".join(words if wave is None else [*words, _function(wave, kind[k] == CURRENT)])
        if kind[k] in (CAPACITOR, INDUCTOR) and k in following.initials:
            return f"{head} {exact(value[k])} ic={exact(following.initials[k])}"
        return None

    def formula(self, k: int, written: Written) -> str:
        """The card of a source given by a formula that is no law: as it was written, where it means the same.

        Raises
        ------
        UsageError
            It stands in a sub-circuit, or reads parameters, functions of the deck, or what has another name here.
        """
        circuit, names, nodes = written
        found = self.following.formulas[k]
        code, (_, first, second, _) = found.code, circuit.columns()
        card = " ".join(code.card.text.split())
        used = {first[k], second[k]}
        same = card.split()[0].lower() == circuit.names[k].lower() == names[k].lower() and not code.names
        for signal in code.signals:
            if signal.kind == "v":
                used |= {found.node(node, circuit) for node in (signal.first, signal.second or "0")}
            elif signal.kind != "time":
                j = circuit.element_index(found.element(signal.first))
                same = same and names[j].lower() == circuit.names[j].lower()
        same = same and all(nodes[node].lower() == circuit.node_names[node].lower() for node in used)
        own = [argument[0] for instruction, argument, _ in code.program if instruction == CALL]
        if not same or any(code.scope.find_function(name) is not None for name in own):
            raise UsageError(
                f"{circuit.names[k]} is a formula that is not affine, in a sub-circuit or with parameters or functions "
                "of the deck: a flat deck cannot hold it; write its numbers into the formula, at the top level"
            )
        return card

    def closing(self, written: Written) -> list[str]:
        """Models of switches, couplings and analyses."""
        lines = []
        for k, law in self.following.switches.items():
            numbers = self.switches[k]
            letter, (at, wide) = ("CSW", ("it", "ih")) if isinstance(law.control, str) else ("SW", ("vt", "vh"))
            lines.append(
                f".model switch{k} {letter}({at}={exact(numbers['vt'])} {wide}={exact(numbers['vh'])} "
                f"ron={exact(numbers['ron'])} roff={exact(numbers['roff'])})"
            )
        for number, ((first, second), factor) in enumerate(self.following.couplings.items(), start=1):
            lines.append(f"Kpair{number} {written.element(first)} {written.element(second)} {exact(factor)}")
        for card in self.analyses:
            if isinstance(card, InitialValues):
                held = [f"v({written.node(node)})={exact(v)}" for node, v in card.voltages.items()]
                held += [f"i({written.element(inductor)})={exact(i)}" for inductor, i in card.currents.items()]
                lines.append(f".ic {' '.join(held)}")
            else:
                try:
                    lines.append(self.analysis(card, written))
                except UsageError as error:
                    if not self.lenient:
                        raise
                    lines.append(f"* {error}")
        return lines or [".op"]

    def analysis(self, card: Analysis, called: Written) -> str:
        """The card of an analysis, a measurement or an output.

        Raises
        ------
        UsageError
            It varies what a flat deck does not have.
        """
        if isinstance(card, Transient):
            stated = card.step, card.stop, card.start, *([card.longest] if card.longest else [])
            return f".tran {' '.join(exact(time) for time in stated)}{' uic' * card.uic}"
        if isinstance(card, (MeasurementRequest, FourierCard)):
            word = f"meas {card.analysis}" if isinstance(card, MeasurementRequest) else card.card
            return f".{word} {called.text(card.text)}"
        if isinstance(card, SmallSignal):
            if self.ngspice and card.spacing is Spacing.LIST:
                raise UsageError(".ac list is not read by ngspice: write dec, oct or lin, or convert without --ngspice")
            points = [] if card.spacing is Spacing.LIST else [str(card.points)]
            return " ".join([".ac", card.spacing.value, *points, *map(exact, card.frequencies)])
        if isinstance(card, Output):
            return " ".join(filter(None, (f".{card.card}", card.analysis, *map(called.text, card.requests))))
        if isinstance(card, TransferRequest):
            return f".tf {called.text(card.output)} {called.element(card.source)}"
        if isinstance(card, SensitivityRequest):
            return f".sens {' '.join(map(called.text, card.outputs))}"
        if isinstance(card, DcSweep):
            return " ".join([".dc", *(self.varied(one, ".dc", called) for one in card.sweeps)])
        if isinstance(card, Step):
            return f".step {self.varied(card.sweep, '.step', called)}"
        if isinstance(card, Temperature):
            if len(card.values) > 1:
                raise UsageError(".temp of several temperatures: a flat deck has its values at one; leave one of them")
            return f"* at {card.values[0]:g} °C"
        return ".op"

    def varied(self, one: DcRange | TableRange, word: str, called: Written) -> str:
        """The values of an element on a ``.dc`` or ``.step`` card."""
        plain = isinstance(one, DcRange) and one.target is Target.ELEMENT and not one.elements
        if not plain or one.name not in self.circuit or (self.ngspice and word == ".step"):
            what = "and ngspice has no .step" if plain else "which a flat deck does not have: it has numbers"
            raise UsageError(f"{word} {one.name} cannot be written, {what}; run it here, or leave the card out")
        assert isinstance(one, DcRange)
        k = self.circuit.element_index(one.name)
        wave = self.following.waves.get(k)  # whose m= is on the written card, too
        factor = self.following.factors.get(k, 1.0) / (1.0 if wave is None else wave.factor)
        if one.step != 0.0:
            return f"{called.element(one.name)} {' '.join(exact(factor * x) for x in (one.start, one.stop, one.step))}"
        if self.ngspice:
            raise UsageError(f"{word} {one.name} has no equal steps, as ngspice needs them; convert without --ngspice")
        return f"{called.element(one.name)} list {' '.join(exact(factor * x) for x in one.values)}"


_QUANTITY = re.compile(r"\b([vip])\(([^()]*)\)", re.IGNORECASE)


def _function(wave: Waveform, current: bool) -> str:
    """A time function."""
    inner = " ".join(exact(number) for number in wave.numbers)
    more = "" if wave.repeat is None else f" r={exact(wave.repeat)}"
    more += f" td={exact(wave.delay)}" if wave.delay else ""
    more += f" m={exact(wave.factor)}" if current and wave.factor != 1.0 else ""
    return f"{wave.name.upper()}({inner}){more}"


def timed_text(timed: Timed, roles: Roles | None = None) -> str:
    """The deck as a flat SPICE deck with all that acts over time, and its analyses.

    Parameters
    ----------
    timed : Timed
    roles : Roles, optional
        Written as comment directives.
    """
    return text_of(timed.circuit, roles, timed, timed.ngspice)


def of_circuit(circuit: Circuit) -> Timed | None:
    """What a circuit states beside values, and of a deck its analyses; None where that is nothing.

    Raises
    ------
    UsageError
        A waveform that no card states.
    """
    dynamics, deck = circuit.dynamics, circuit if isinstance(circuit, Deck) else None
    if dynamics is None and (deck is None or not deck.analyses):
        return None
    switches = {} if dynamics is None else {k: one.numbers for k, one in dynamics.switches.items()}
    for k, wave in {} if dynamics is None else dynamics.waves.items():
        if not isinstance(wave, Waveform):
            raise UsageError(f"{circuit.names[k]}: {type(wave).__name__} of Python is not written as a card")
    return Timed(deck, circuit, switches)
