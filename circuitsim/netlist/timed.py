"""What acts over time as text: time functions, switches, couplings, initial values, ``.tran`` and ``.meas``."""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, VOLTAGE
from circuitsim.errors import TopologyError, UsageError
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
from circuitsim.netlist.expression import CALL
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.waveform import STEADY, Waveform
from circuitsim.netlist.writer import text_of, with_letter
from circuitsim.units import exact

if TYPE_CHECKING:
    from circuitsim.netlist.roles import Roles


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

    def card(self, k: int, names: Sequence[str], nodes: Sequence[str]) -> str | None:
        """The card of an element that acts over time; None where it is like any other."""
        following = self.following
        kind, first, second, value = self.circuit.columns()
        ends = f"{nodes[first[k]]} {nodes[second[k]]}"
        if k in following.switches:
            law, own = following.switches[k], self.names(names)[k]
            if isinstance(law.control, str):
                control = self.names(names)[self.circuit.element_index(law.control)]
            else:
                control = " ".join(nodes[node] for node in law.control)
            return f"{own} {ends} {control} switch{k}{' ON' * law.closed}"
        if self.turned_on(k):
            return f"{names[k]} {ends} PWL(0 0 {exact(STARTUP)} {exact(value[k])})"
        if k in self.circuit.laws or kind[k] not in (VOLTAGE, CURRENT):
            pass
        elif k in following.formulas:
            return self.formula(k, names, nodes)
        elif k in following.waves or k in following.phasors:
            words = [names[k], ends]
            wave = following.waves.get(k)
            if wave is None or value[k] != wave.at(0.0, STEADY):
                words.append(exact(value[k]) if wave is None else f"DC {exact(value[k] / wave.factor)}")
            if k in following.phasors:
                size, angle = cmath.polar(following.phasors[k] / (1.0 if wave is None else wave.factor))
                words.append(f"AC {exact(size)} {math.degrees(angle):.15g}")
            return " ".join(words if wave is None else [*words, _function(wave, kind[k] == CURRENT)])
        if kind[k] in (CAPACITOR, INDUCTOR) and k in following.initials:
            return f"{names[k]} {ends} {exact(value[k])} ic={exact(following.initials[k])}"
        return None

    def formula(self, k: int, names: Sequence[str], nodes: Sequence[str]) -> str:
        """The card of a source given by a formula that is no law: as it was written, where it means the same.

        Raises
        ------
        UsageError
            It stands in a sub-circuit, or reads parameters, functions of the deck, or what has another name here.
        """
        found, circuit = self.following.formulas[k], self.circuit
        code, (_, first, second, _) = found.code, circuit.columns()
        card = " ".join(code.card.text.split())
        used = {first[k], second[k]}
        same = card.split()[0].lower() == circuit.names[k].lower() == names[k].lower() and not code.names
        for signal in code.signals:
            if signal.kind == "v":
                used |= {circuit.node_index(found.nodes(node)) for node in (signal.first, signal.second or "0")}
            elif signal.kind != "time":
                j = circuit.element_index(found.elements(signal.first))
                same = same and names[j].lower() == circuit.names[j].lower()
        same = same and all(nodes[node].lower() == circuit.node_names[node].lower() for node in used)
        own = [argument[0] for instruction, argument, _ in code.program if instruction == CALL]
        if not same or any(code.scope.find_function(name) is not None for name in own):
            raise UsageError(
                f"{circuit.names[k]} is a formula that is not affine, in a sub-circuit or with parameters or functions "
                "of the deck: a flat deck cannot hold it; write its numbers into the formula, at the top level"
            )
        return card

    def closing(self, names: Sequence[str], nodes: Sequence[str]) -> list[str]:
        """Models of switches, couplings and analyses."""
        lines = []
        for k, law in self.following.switches.items():
            numbers = self.switches[k]
            letter, (at, wide) = ("CSW", ("it", "ih")) if isinstance(law.control, str) else ("SW", ("vt", "vh"))
            lines.append(
                f".model switch{k} {letter}({at}={exact(numbers['vt'])} {wide}={exact(numbers['vh'])} "
                f"ron={exact(numbers['ron'])} roff={exact(numbers['roff'])})"
            )
        index = self.circuit.element_index
        for number, ((first, second), factor) in enumerate(self.following.couplings.items(), start=1):
            lines.append(f"Kpair{number} {names[index(first)]} {names[index(second)]} {exact(factor)}")
        for card in self.analyses:
            if isinstance(card, InitialValues):
                held = [f"v({nodes[self.circuit.node_index(node)]})={exact(v)}" for node, v in card.voltages.items()]
                held += [f"i({names[index(coil)]})={exact(i)}" for coil, i in card.currents.items()]
                lines.append(f".ic {' '.join(held)}")
            else:
                try:
                    lines.append(self.analysis(card, names, nodes))
                except UsageError as error:
                    if not self.lenient:
                        raise
                    lines.append(f"* {error}")
        return lines or [".op"]

    def analysis(self, card: Analysis, names: Sequence[str], nodes: Sequence[str]) -> str:
        """The card of an analysis, a measurement or an output.

        Raises
        ------
        UsageError
            It varies what a flat deck does not have.
        """
        called = _Renamed(self.circuit, names, nodes)
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

    def varied(self, one: DcRange | TableRange, word: str, called: _Renamed) -> str:
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


class _Renamed:
    """Names of a written deck in texts that name quantities."""

    def __init__(self, circuit: Circuit, names: Sequence[str], nodes: Sequence[str]) -> None:
        self.circuit, self.names, self.nodes = circuit, names, nodes

    def element(self, name: str) -> str:
        """An element's name."""
        return self.names[self.circuit.element_index(name)] if name in self.circuit else name

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
