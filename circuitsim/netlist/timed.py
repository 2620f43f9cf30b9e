"""What acts over time as text: time functions, switches, couplings, initial values, ``.tran`` and ``.meas``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, VOLTAGE
from circuitsim.netlist.deck import STARTUP, Deck, FourierCard, InitialValues, MeasurementRequest, Transient
from circuitsim.netlist.waveform import Waveform
from circuitsim.netlist.writer import text_of, with_letter
from circuitsim.units import exact

if TYPE_CHECKING:
    from circuitsim.netlist.roles import Roles


class Timed(NamedTuple):
    """A deck whose circuit, or whose switches, may have other values.

    Attributes
    ----------
    deck : Deck
    circuit : Circuit
    switches : dict of int to dict of str to float
        ``vt``, ``vh``, ``ron``, ``roff`` by position.
    """

    deck: Deck
    circuit: Circuit
    switches: dict[int, dict[str, float]]

    def turned_on(self, k: int) -> bool:
        """Whether an element is a constant source that ``startup`` turns on."""
        following = self.deck.following
        moving = k in following.waves or k in following.formulas or k in self.circuit.laws
        constant = self.circuit.columns()[0][k] in (VOLTAGE, CURRENT) and not moving
        return constant and any(isinstance(card, Transient) and card.startup for card in self.deck.analyses)

    def names(self, names: Sequence[str]) -> list[str]:
        """The elements' names in the text: those of switches have their own letter."""
        found = list(names)
        for k, law in self.deck.following.switches.items():
            found[k] = with_letter(str(self.circuit.names[k]), "W" if isinstance(law.control, str) else "S")
        return found

    def card(self, k: int, names: Sequence[str], nodes: Sequence[str]) -> str | None:
        """The card of an element that acts over time; None where it is like any other."""
        following = self.deck.following
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
        if k in following.waves:
            return f"{names[k]} {ends} {_function(following.waves[k], kind[k] == CURRENT)}"
        if kind[k] in (CAPACITOR, INDUCTOR) and k in following.initials:
            return f"{names[k]} {ends} {exact(value[k])} ic={exact(following.initials[k])}"
        return None

    def closing(self, names: Sequence[str], nodes: Sequence[str]) -> list[str]:
        """Models of switches, couplings and analyses."""
        lines = []
        for k, law in self.deck.following.switches.items():
            numbers = self.switches[k]
            letter, (at, wide) = ("CSW", ("it", "ih")) if isinstance(law.control, str) else ("SW", ("vt", "vh"))
            lines.append(
                f".model switch{k} {letter}({at}={exact(numbers['vt'])} {wide}={exact(numbers['vh'])} "
                f"ron={exact(numbers['ron'])} roff={exact(numbers['roff'])})"
            )
        index = self.circuit.element_index
        for number, ((first, second), factor) in enumerate(self.deck.following.couplings.items(), start=1):
            lines.append(f"Kpair{number} {names[index(first)]} {names[index(second)]} {exact(factor)}")
        for card in self.deck.analyses:
            if isinstance(card, Transient):
                stated = card.step, card.stop, card.start, *([card.longest] if card.longest else [])
                times = " ".join(exact(time) for time in stated)
                lines.append(f".tran {times}{' uic' * card.uic}")
            elif isinstance(card, MeasurementRequest):
                lines.append(f".meas tran {card.text}")
            elif isinstance(card, FourierCard):
                lines.append(f".four {card.text}")
            elif isinstance(card, InitialValues):
                held = [f"v({nodes[self.circuit.node_index(node)]})={exact(v)}" for node, v in card.voltages.items()]
                held += [f"i({names[index(coil)]})={exact(i)}" for coil, i in card.currents.items()]
                lines.append(f".ic {' '.join(held)}")
        return lines


def _function(wave: Waveform, current: bool) -> str:
    """A time function."""
    inner = " ".join(exact(number) for number in wave.numbers)
    more = "" if wave.repeat is None else f" r={exact(wave.repeat)}"
    more += f" td={exact(wave.delay)}" if wave.delay else ""
    more += f" m={exact(wave.factor)}" if current and wave.factor != 1.0 else ""
    return f"{wave.name.upper()}({inner}){more}"


def timed_text(timed: Timed, roles: Roles | None = None) -> str:
    """The deck as a flat SPICE deck with all that acts over time; `circuitsim.netlist.dumps` leaves that out.

    Parameters
    ----------
    timed : Timed
    roles : Roles, optional
        Written as comment directives.
    """
    return text_of(timed.circuit, roles, timed)
