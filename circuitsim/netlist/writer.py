"""`Circuit` to SPICE text that ngspice runs and that reads back as the same circuit: elements, roles, and data for
transient and AC analysis.

Devices without a model in ngspice are written as resistors, steep diodes and sources, or as a formula.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from circuitsim.arguments import instance
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.elements import CURRENT, DIODE, ELEMENTS, NULLOR, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Quantity
from circuitsim.circuit.source import analysis
from circuitsim.errors import TopologyError, UsageError
from circuitsim.models import Device
from circuitsim.models.formula_law import OfFormula
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.models.smooth import WithoutModel
from circuitsim.netlist.deck import (
    STARTUP,
    Analysis,
    DcSweep,
    Deck,
    FourierCard,
    InitialValues,
    MeasurementRequest,
    Output,
    Range,
    SensitivityRequest,
    SmallSignal,
    Spacing,
    Step,
    Temperature,
    TransferRequest,
    Transient,
)
from circuitsim.netlist.definitions import AMPLIFIER_DEFINITION, IDEAL_MODEL
from circuitsim.netlist.expression import CALL
from circuitsim.netlist.functions import Waveform
from circuitsim.netlist.roles import Roles
from circuitsim.units import exact, short

FINITE = 1e9
"""Gain of an ideal op-amp as written; ngspice has none."""

WIDTH = 100
"""Maximum length of a line, characters."""

MODEL = f".model {IDEAL_MODEL} D(is=1e-12 n=0.01)"
"""A diode with a forward drop of about 6 mV at 5 mA: as close to ideal as ngspice converges with."""

IGNORED = {"bv": ("tbv1", "tbv2"), "ikf": ("tikf", "")}
"""Values of junction diodes whose temperature coefficients ngspice ignores."""

# Characters that ngspice 39 accepts in a name, found by trial; @ and $ are excluded, they have other meanings
# elsewhere.
_LEGAL = re.compile(r"[A-Za-z0-9_.:\[\]<>#%!~/|^+*?-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.:\[\]<>#%!~/|^+*?-]")
_RESERVED = frozenset(("time", "temper", "hertz", "params:", "params"))
_CARD_LIKE = re.compile(r"\s*(?:\.|[rvidlc]\w*\s+\S+\s+\S+\s+[+-]?\.?[0-9]\S*\s*$)", re.I)
_QUANTITY = re.compile(r"\b([vip])\(([^()]*)\)", re.IGNORECASE)


@analysis(roles=instance("roles, made by circuitsim.netlist.roles", Roles))
def text_of(
    circuit: Circuit,
    roles: Roles | None = None,
    deck: Deck | None = None,
    switches: Mapping[int, Mapping[str, float]] | None = None,
    ngspice: bool = False,
    strict: bool = False,
    lenient: bool = False,
) -> str:
    """A circuit as a flat SPICE deck, with all data for transient and AC analysis, and the analyses of its deck.

    Parameters
    ----------
    circuit : Circuit
    roles : Roles, optional
        Written as comment directives.
    deck : Deck, optional
        The circuit's deck, where its values differ from the deck's; a deck is its own.
    switches : dict of int to dict of str to float, optional
        ``vt``, ``vh``, ``ron``, ``roff`` by position; by default those of the deck.
    ngspice : bool
        Write devices without a model in ngspice as equivalent elements.
    strict : bool
        Refuse analyses that ngspice does not read.
    lenient : bool
        Write analyses that a flat deck cannot have as comments.

    Raises
    ------
    UsageError
        Something that no card can express.
    """
    found = _Writer(circuit, circuit if isinstance(circuit, Deck) else deck, strict, lenient, ngspice)
    if switches is not None:
        found.switches = dict(switches)
    return found.text(roles)


class Names:
    """Distinct legal names for arbitrary names; legal ones are unchanged."""

    def __init__(self, names: Sequence[str], wanted: Iterable[str]) -> None:
        pairs = [(name, new, name == new and is_legal(name)) for name, new in zip(names, wanted)]
        self.taken = {name.lower() for name, _, same in pairs if same}
        self.changed: list[tuple[str, str]] = []
        self.written = [name if same else self.legal(name, new) for name, new, same in pairs]

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
    """Whether ngspice accepts ``name`` unchanged."""
    return bool(_LEGAL.fullmatch(name)) and "//" not in name and name.lower() not in _RESERVED


def safe_title(title: str) -> str:
    """``title`` on one line that neither program reads as a card."""
    line = "".join(c if c.isprintable() else " " for c in title).strip().rstrip("\\")
    return f"* {line}" if _CARD_LIKE.match(line) else line


def with_letter(name: str, letter: str) -> str:
    """``name`` prefixed by the letter of its kind; ``x1.r1`` becomes ``R.x1.r1``, as ngspice flattens it."""
    if name[:1] in (letter, letter.lower()):
        return name
    return f"{letter}.{name}" if "." in name else f"{letter}{name}"


def printable(name: str) -> str:
    """``name`` for a comment."""
    return short("".join(c if c.isprintable() else "?" for c in name).replace(";", ","), 80)


def _wrapped(word: str, names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) < WIDTH:
            lines[-1] += f" {name}"
        else:
            lines.append(f"{word} {name}")
    return lines


def _function(wave: Waveform, current: bool) -> str:
    """A time function."""
    inner = " ".join(exact(number) for number in wave.numbers)
    more = "" if wave.repeat is None else f" r={exact(wave.repeat)}"
    more += f" td={exact(wave.delay)}" if wave.delay else ""
    more += f" m={exact(wave.factor)}" if current and wave.factor != 1.0 else ""
    return f"{wave.name.upper()}({inner}){more}"


class _Writer:
    """Writer of one circuit.

    Attributes
    ----------
    kind, first, second, value : sequence
        The columns of the circuit.
    following : Dynamics
        Data for transient and AC analysis.
    letters, names, nodes : list of str
        The letters of elements, and the written names of elements and nodes.
    comments : list of str
        Renamed names.
    meters : dict of int to (str, str)
        By position of an element whose current ngspice cannot print: a source of 0 V in series, the node between.
    models : list of str
        The ``.model`` cards of devices.
    idle : dict of str to str
        Model parameters besides the I–V curve, by model name in lower case.
    """

    def __init__(self, circuit: Circuit, deck: Deck | None, strict: bool, lenient: bool, ngspice: bool) -> None:
        self.circuit, self.deck, self.strict, self.lenient, self.ngspice = circuit, deck, strict, lenient, ngspice
        self.meters: dict[int, tuple[str, str]] = {}
        # Diode model parameters for transient analysis are written with the I–V curve.
        self.idle = {} if deck is None else deck.idle_parameters()
        self.models, self.named_models = list[str](), dict[tuple[object, ...], str]()
        self.own_models = Names([IDEAL_MODEL], [IDEAL_MODEL])
        self.kind, self.first, self.second, self.value = circuit.columns()
        self.analyses: tuple[Analysis, ...] = () if deck is None else deck.analyses
        self.following: Any = (circuit.dynamics or Dynamics()) if deck is None else deck.following
        self.switches: dict[int, Mapping[str, float]] = {k: law.numbers for k, law in self.following.switches.items()}
        for k, wave in self.following.waves.items():
            if not isinstance(wave, Waveform):
                raise UsageError(f"{circuit.names[k]}: {type(wave).__name__} of Python cannot be written as a card")
        nodes, names = [str(name) for name in circuit.node_names], [str(name) for name in circuit.names]
        nodes[GROUND] = "0"
        self.letters = list(map(self.letter, range(len(circuit))))
        self.own_nodes = Names(nodes, [name if is_legal(name) else f"n_{name}" for name in nodes])
        self.own_names = Names(names, map(with_letter, names, self.letters))
        self.nodes, self.names = self.own_nodes.written, self.own_names.written
        self.comments = [f"* node {printable(old)} is written {made}" for old, made in self.own_nodes.changed]
        self.comments += [
            f"* {printable(old)} is written {made}"
            for old, made in self.own_names.changed
            if made[1:].lstrip(".") != old
        ]

    def letter(self, k: int) -> str:
        """The letter of element ``k``; for a controlled one that of its name, if possible."""
        circuit, code, own = self.circuit, self.kind[k], str(self.circuit.names[k])[:1].upper()
        if k in self.following.switches:
            return "W" if isinstance(self.following.switches[k].control, str) else "S"
        if self.as_written(k):
            return own
        if code == NULLOR:
            return "E"
        if k not in circuit.laws:
            return ELEMENTS[VOLTAGE if code == RESISTOR and self.value[k] == 0 else code].letter
        law = circuit.laws[k]
        voltage, by_voltage = law.quantity is Quantity.VOLTAGE, bool(law.voltages) and not law.currents
        by_current = bool(law.currents) and all(self.kind[c.element] != RESISTOR for c in law.currents)
        possible = "B" + ("E" if voltage else "G") * by_voltage
        possible += ("H" if voltage else "F") * (by_current and not law.voltages)
        return own if own in possible else possible[-1]

    def as_written(self, k: int) -> bool:
        """Whether element ``k`` is a source by a formula that is not affine, whose card is kept."""
        following, source = self.following, self.kind[k] in (VOLTAGE, CURRENT) and k not in self.circuit.laws
        return k in following.frozen or (source and k in following.formulas)

    def text(self, roles: Roles | None) -> str:
        """The deck."""
        circuit, closing = self.circuit, self.closing()
        cards = [card for k in range(len(circuit)) for card in self.cards(k)]
        if any(card.endswith(f" {IDEAL_MODEL}") for card in cards):
            cards.append(MODEL)
        definition = AMPLIFIER_DEFINITION.splitlines() * bool(circuit.amplified)
        lines = [safe_title(circuit.title), *self.comments, *([] if roles is None else self.directives(roles))]
        lines += [*cards, *self.models, *definition, *(closing or [".op"]), ".end", ""]
        return "\n".join(lines)

    def ends(self, k: int) -> tuple[str, str, str]:
        """The name of an element and those of its nodes."""
        first = self.meters[k][1] if k in self.meters else self.nodes[self.first[k]]
        return self.names[k], first, self.nodes[self.second[k]]

    def element(self, name: str) -> str:
        """The written name of an element, or of a parameter of one."""
        if name in self.circuit:
            return self.names[self.circuit.element_index(name)]
        element, dot, number = name.rpartition(".")
        return f"{self.element(element)}.{number}" if dot and element in self.circuit else name

    def node(self, name: str) -> str:
        """The written name of a node."""
        try:
            return self.nodes[self.circuit.node_index(name)]
        except TopologyError:
            return name

    def quantities(self, text: str) -> str:
        """A text with its quantities v(a,b), i(R1) and p(R1) renamed; for ngspice with currents of sources alone."""

        def renamed(found: re.Match[str]) -> str:
            name = found[2].strip().replace(":", ".")
            if self.ngspice and found[1].lower() != "v" and name in self.circuit:
                k = self.circuit.element_index(name)
                current, across = (
                    f"i({self.metered(k)})",
                    f"v({self.nodes[self.first[k]]},{self.nodes[self.second[k]]})",
                )
                power = f"{across.replace(',0)', ')')}*{current}"
                alone = found[0] in text.split()
                return current if found[1].lower() == "i" else f"par('{power}')" if alone else f"({power})"
            called = self.node if found[1].lower() == "v" else self.element
            return f"{found[1]}({','.join(called(part.strip().replace(':', '.')) for part in found[2].split(','))})"

        return _QUANTITY.sub(renamed, text)

    def metered(self, k: int) -> str:
        """The name of a source through which the current of element ``k`` flows, for ngspice; else its own."""
        law, name = self.circuit.laws.get(k), self.names[k]
        if self.as_written(k) or self.letters[k] in "VLEHX" or (law is not None and law.quantity is Quantity.VOLTAGE):
            return name
        if k not in self.meters:
            wanted = f"{name}.current"
            self.meters[k] = self.own_names.legal(wanted, f"V{wanted}"), self.own_nodes.legal(wanted, wanted)
        return self.meters[k][0]

    # ------------------------------------------------------------------ elements
    def cards(self, k: int) -> list[str]:
        """The cards of element ``k``: its own, or those of what stands for it; a source that measures its current."""
        circuit, following, device = self.circuit, self.following, self.circuit.devices.get(k)
        found = [f"{self.meters[k][0]} {self.nodes[self.first[k]]} {self.meters[k][1]} 0"] if k in self.meters else []
        if self.as_written(k):
            return [*found, self.formula(k)]
        if k in circuit.laws:
            return found + self.controlled(k)
        if device is not None and device.model.dialect and self.ngspice:
            return found + self.portable(device, k)
        name, first, second = self.ends(k)
        value, row = exact(self.value[k]), ELEMENTS[self.kind[k]] if device is None else device.model
        card = row.spice
        if k in following.switches:
            law = following.switches[k]
            by = (
                self.element(law.control)
                if isinstance(law.control, str)
                else " ".join(map(self.nodes.__getitem__, law.control))
            )
            value = f"{by} switch{k}{' ON' * law.closed}"
        elif isinstance(device, OfFormula):
            value = device.formula(name, first, second)
        elif device is not None:
            counts = (f"{word}={exact(count)}" for word, count in device.counts().items())
            value = " ".join([self.model(device), *counts])
        elif self.kind[k] == DIODE:
            card += f" {IDEAL_MODEL}"
        elif self.kind[k] in (VOLTAGE, CURRENT):
            value = self.source(k)
        if k in following.initials:
            value += f" ic={exact(following.initials[k])}"
        return [*found, card.format(name=name, first=first, second=second, value=value)]

    def model(self, device: Device) -> str:
        """The name of the ``.model`` card of a device, one for each set of parameters."""
        stated = device.parameters()
        if self.ngspice and isinstance(device, JunctionDiode):
            for value, words in IGNORED.items():
                linear, square = (stated.pop(word, 0.0) for word in words)
                if value in stated:
                    stated[value] = device.by_temperature(stated[value], linear, square)
        key = type(device), device.label, *stated.items()
        if key not in self.named_models:
            wanted = device.label or f"{device.model.letter}model"
            self.named_models[key] = name = self.own_models.legal(wanted, wanted)
            listed = " ".join(f"{parameter}={exact(value)}" for parameter, value in stated.items())
            listed += self.idle.get(device.label.lower(), "")
            if device.model.dialect:
                self.models.append(f"* {name} is {device.model.dialect}")
            self.models.append(f".model {name} {device.model.card_type}({listed})")
        return self.named_models[key]

    def source(self, k: int) -> str:
        """The value, amplitude and time function of an independent source."""
        value, wave, phasor = self.value[k], self.following.waves.get(k), self.following.phasors.get(k)
        if wave is None and any(isinstance(card, Transient) and card.startup for card in self.analyses):
            return f"PWL(0 0 {exact(STARTUP)} {exact(value)})"
        factor, words = (1.0, [exact(value)]) if wave is None else (wave.factor, [])
        if wave is not None and value != wave.dc:
            words.append(f"DC {exact(value / factor)}")
        if phasor is not None:
            size, angle = cmath.polar(phasor / factor)
            words.append(f"AC {exact(size)} {math.degrees(angle):.15g}")
        return " ".join(words if wave is None else [*words, _function(wave, self.kind[k] == CURRENT)])

    def controlled(self, k: int) -> list[str]:
        """The card of controlled element ``k``, with a comment where ngspice has no such element."""
        law, name, head, nodes = self.circuit.laws[k], self.names[k], " ".join(self.ends(k)), self.nodes
        if self.kind[k] == NULLOR:
            _, plus, minus = law.voltages[0]
            return [
                f"* {name} is an ideal op-amp: in circuitsim {head} OPAMP {nodes[plus]} {nodes[minus]}",
                f"{head} {nodes[plus]} {nodes[minus]} {exact(FINITE)}",
            ]
        valued = self.value[k] == self.value[k]
        gain = self.value[k] if valued else 1.0
        if name[:1].upper() == "B":
            terms = [exact(law.constant)]
            terms += [f"({exact(gain * c)})*v({nodes[plus]},{nodes[minus]})" for c, plus, minus in law.voltages]
            for c, j in law.currents:  # that of a resistor as its voltage
                across = self.kind[j] == RESISTOR and self.value[j] > 0.0
                share = exact(gain * c / self.value[j] if across else gain * c)
                terms.append(f"({share})*{'v({1},{2})' if across else 'i({0})'}".format(*self.ends(j)))
            return [f"{head} {'V' if law.quantity is Quantity.VOLTAGE else 'I'}={' + '.join(terms)}"]
        controls = [f"{nodes[p]} {nodes[m]}" for _, p, m in law.voltages]
        controls += [self.names[c.element] for c in law.currents]
        shares = [c[0] for c in (*law.voltages, *law.currents)]
        if len(controls) == 1 and law.constant == 0.0 and valued and shares == [1.0]:
            return [f"{head} {controls[0]} {exact(gain)}"]
        terms = [exact(x) for x in (law.constant, *(gain * share for share in shares))]
        return [f"{head} POLY({len(controls)}) {' '.join(controls)} {' '.join(terms)}"]

    def portable(self, device: Device, k: int) -> list[str]:
        """The cards of a device for ngspice: its parts, or a formula after the series resistance."""
        name, first, second = self.ends(k)
        elements, nodes, cards = self.own_names, self.own_nodes, list[str]()
        if isinstance(device, WithoutModel):
            series = device.row()[0]
            if series > 0.0:
                inner = nodes.legal(name, f"{name}.junction")
                cards.append(f"{elements.legal(name, f'R{name}.series')} {first} {inner} {exact(series)}")
                first = inner
            volts = f"(v({first},{second}))"
            if "0" in (first, second):
                volts = f"(v({first}))" if second == "0" else f"(-v({second}))"
            own = elements.legal(name, f"B{name}")
            return [*cards, f"{own} {first} {second} I={device.junction_text(volts)}"]
        inside = dict(zip(device.model.terminals, (first, second)))
        for part in device.expand():
            for node in (part.first, part.second):
                if node not in inside:
                    inside[node] = nodes.legal(node, f"{name}.{node}")
            letter = "V" if part.letter == "R" and part.value == 0.0 else part.letter  # ngspice would take 1 mΩ
            own = elements.legal(part.name, f"{letter}{name}.{part.name}")
            value = IDEAL_MODEL if part.value is None else exact(part.value)
            cards.append(f"{own} {inside[part.first]} {inside[part.second]} {value}")
        return cards

    def formula(self, k: int) -> str:
        """The card of a source by a formula that is not affine: as it was written, if that means the same.

        Raises
        ------
        UsageError
            It is in a sub-circuit, or reads parameters, functions of the deck, or renamed quantities.
        """
        circuit, names = self.circuit, self.names
        found = (self.following.frozen if k in self.following.frozen else self.following.formulas)[k]
        code, used = found.code, {self.first[k], self.second[k]}
        card = " ".join(code.card.text.split())
        same = card.split()[0].lower() == circuit.names[k].lower() == names[k].lower() and not code.names
        for signal in code.signals:
            if signal.kind == "v":
                used |= {*found.ends(signal, circuit)}
            elif signal.kind != "time":
                j = circuit.element_index(found.element(signal.first))
                same = same and names[j].lower() == circuit.names[j].lower()
        same = same and all(self.nodes[node].lower() == circuit.node_names[node].lower() for node in used)
        own = [node.argument for node in code.nodes() if node.kind == CALL]
        if not same or any(code.scope.found("functions", name) is not None for name in own):
            raise UsageError(
                f"{circuit.names[k]} has a non-affine formula in a sub-circuit or with parameters or functions: "
                "a flat deck cannot express it; write its numbers into the formula, at the top level"
            )
        return card

    # ------------------------------------------------------------------ roles and analyses
    def directives(self, roles: Roles) -> list[str]:
        """The directives that give ``roles`` again: as they were, if all names are; otherwise name by name."""
        lines = [*roles.lines]
        if self.own_names.changed or self.own_nodes.changed:
            inputs = map(self.element, roles.inputs)
            outputs = ((self.node(p), self.node(q)) for p, q in roles.outputs)
            lines = _wrapped("input", [*inputs]) + _wrapped("output", Roles(outputs=(*outputs,)).output_names)
            groups: dict[tuple[float, float], list[str]] = {}
            for name, low, high in roles.trainable:
                groups.setdefault((low, high), []).append(self.element(name))
            for bounds, members in groups.items():
                ends = [f"{word}={exact(end)}" for word, end in zip(("min", "max"), bounds) if math.isfinite(end)]
                lines += [" ".join([line, *ends]) for line in _wrapped("trainable", members)]
        return [f"*! {line}" for line in lines]

    def closing(self) -> list[str]:
        """Models of switches, couplings and analyses."""
        lines = []
        for k, law in self.following.switches.items():
            numbers = {word: exact(number) for word, number in self.switches[k].items()}
            model, (at, wide) = ("CSW", ("it", "ih")) if isinstance(law.control, str) else ("SW", ("vt", "vh"))
            threshold = f"{at}={numbers['vt']} {wide}={numbers['vh']}"
            lines.append(f".model switch{k} {model}({threshold} ron={numbers['ron']} roff={numbers['roff']})")
        for number, ((first, second), factor) in enumerate(self.following.couplings.items(), start=1):
            lines.append(f"Kpair{number} {self.element(first)} {self.element(second)} {exact(factor)}")
        for card in self.analyses:
            try:
                lines.append(self.analysis(card))
            except UsageError as error:
                if not self.lenient:
                    raise
                lines.append(f"* {error}")
        return lines

    def analysis(self, card: Analysis) -> str:
        """The card of an analysis, a measurement or an output.

        Raises
        ------
        UsageError
            It varies something that a flat deck does not have.
        """
        match card:
            case InitialValues(voltages, currents):
                words = [f"v({self.node(node)})={exact(v)}" for node, v in voltages.items()]
                words += [f"i({self.element(inductor)})={exact(i)}" for inductor, i in currents.items()]
            case Transient(step, stop, start):
                words = [
                    *map(exact, (step, stop, start, card.longest)[: 4 if card.longest else 3]),
                    *["uic"] * card.uic,
                ]
            case MeasurementRequest(text, _, analysis):
                words = [analysis, self.quantities(text)]
            case FourierCard(text):
                words = [self.quantities(text)]
            case SmallSignal(spacing, points, frequencies):
                if self.strict and spacing is Spacing.LIST:
                    raise UsageError(
                        ".ac list is not read by ngspice: write dec, oct or lin, or convert without --ngspice"
                    )
                words = [spacing.value, *[str(points)] * (spacing is not Spacing.LIST), *map(exact, frequencies)]
            case Output(_, analysis, requests):
                words = [*filter(None, [analysis]), *map(self.quantities, requests)]
                if self.ngspice:
                    words = [f"par('{word[1:-1]}')" if word.startswith("{") else word for word in words]
            case TransferRequest(output, source):
                words = [self.quantities(output), self.element(source)]
            case SensitivityRequest(outputs):
                words = [*map(self.quantities, outputs)]
            case DcSweep(sweeps):
                words = [self.varied(one, ".dc") for one in sweeps]
            case Step(sweep):
                words = [self.varied(sweep, ".step")]
            case Temperature(values):
                if len(values) > 1:
                    raise UsageError(
                        ".temp of several temperatures: a flat deck has its values at one; keep one of them"
                    )
                return f"* at {values[0]:g} °C"
            case _:
                words = []
        return " ".join([f".{card.card}", *words])

    def varied(self, one: Range, word: str) -> str:
        """The values of an element on a ``.dc`` or ``.step`` card."""
        plain = one.vary == one.name and one.name in self.circuit
        if not plain or (self.strict and word == ".step"):
            what = "ngspice has no .step" if plain else "a flat deck has no parameters"
            raise UsageError(f"{word} {one.name} cannot be written: {what}; run it here, or remove the card")
        k = self.circuit.element_index(one.name)
        wave = self.following.waves.get(k)  # its m= is on the written card, too
        factor = self.following.factors.get(k, 1.0) / (1.0 if wave is None else wave.factor)
        if not one.steps and self.strict:
            raise UsageError(
                f"{word} {one.name} has unequal steps, which ngspice cannot read; convert without --ngspice"
            )
        numbers = " ".join(exact(factor * x) for x in one.steps or one.values)
        return f"{self.names[k]} {'' if one.steps else 'list '}{numbers}"
