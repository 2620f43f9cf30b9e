"""What readers of single cards need of the deck that is being read, and laws of its elaboration.

The deck's reader imports every module that reads a card, and the elaboration every module that makes an element; these
import only the protocols.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, Protocol

from circuitsim.circuit.elements import ELEMENTS
from circuitsim.netlist.cards import Card
from circuitsim.netlist.deviations import Draws
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Call, Scope, Value, Wave
from circuitsim.netlist.source import Files, Source
from circuitsim.netlist.temperature import Temperatures
from circuitsim.netlist.tokens import Token
from circuitsim.netlist.waveform import Waveform
from circuitsim.units import short


class Reader(Protocol):
    """A deck that is being read (`reader.DeckReader`)."""

    files: Files
    reporter: Reporter
    parts: Any
    top: Scope
    scope: Scope
    requests: list[Card]
    globals: dict[str, str]
    options: dict[str, tuple[Card, Token]]
    open_files: list[str]
    conditions: Any
    section: Any
    ended: bool
    library: bool
    missing: list[str]

    def read(self, source: Source, first: int) -> None:
        """Read the cards of ``source`` from line ``first`` on, into the current scope."""


class Frame(NamedTuple):
    """One call of a sub-circuit being expanded, inside another."""

    scope: Scope
    environment: Environment
    prefix: str
    nodes: list[int] | None
    multiplier: float
    call: Call | None
    outer: Frame | None
    stated: list[int]
    devices: list[int]
    progress: list[int]  # the next call, the next element

    def name(self, k: int) -> str:
        """The name of an element of the scope in the circuit."""
        return self.prefix + self.scope.names[k]

    def letter(self, k: int) -> str:
        """The letter of an element with a value, which tells its law (`circuitsim.netlist.physical.element_value`)."""
        switch = self.scope.stated[k].switch
        return ELEMENTS[self.scope.kind[k]].letter if switch is None else "S" if switch.source is None else "W"

    def node(self, local: int) -> int:
        """The node of the circuit that a node of the scope is."""
        return local if self.nodes is None else self.nodes[local]

    def outwards(self) -> Iterator[Frame]:
        """This call and those around it."""
        here: Frame | None = self
        while here is not None:
            yield here
            here = here.outer

    def defining(self, scope: Scope) -> Environment:
        """The parameters of the innermost call of a scope; without one those of this call."""
        return next((frame.environment for frame in self.outwards() if frame.scope is scope), self.environment)

    def callers(self) -> tuple[str, ...]:
        """The chain of calls, innermost first."""
        calls = [(frame.call, frame.prefix) for frame in islice(self.outwards(), 20)]
        return tuple(
            f"in {short(prefix[:-1])}, called at {call.card.source.name}:{line}:{column}"
            for call, prefix in calls
            if call is not None
            for line, column in [call.card.where(call.card.start)]
        )


class Elaboration(Protocol):
    """A linked deck that is being expanded (`elaborate.Elaborator`)."""

    reporter: Reporter
    temperatures: Temperatures
    all_controlled: bool
    draws: Draws
    evaluator: Evaluator
    environment: Environment
    out: Any
    element_values: Any
    formulas: dict[int, Any]
    frozen: dict[int, Any]

    def number(self, value: Value, frame: Frame) -> float:
        """The value of a number or expression inside a call."""

    def scaled(self, frame: Frame, k: int, value: float, m: float) -> float:
        """The value of an element that stands for ``m`` in parallel."""

    def waveform(self, frame: Frame, wave: Wave) -> Waveform:
        """A time function with its numbers evaluated inside a call."""

    def following(self, circuit: Any) -> Any:
        """The sources of the elaborated circuit that follow time or other sources."""
