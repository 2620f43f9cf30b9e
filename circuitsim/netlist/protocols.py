"""What readers of single cards need of the deck that is being read, and laws of its elaboration.

The deck's reader imports every module that reads a card, and the elaboration every module that makes an element; these
import only the protocols.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from circuitsim.netlist.cards import Card
from circuitsim.netlist.deviations import Draws
from circuitsim.netlist.evaluate import Environment, Evaluator
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.scope import Call, Scope, Value
from circuitsim.netlist.source import Files, Source
from circuitsim.netlist.temperature import Temperatures
from circuitsim.netlist.tokens import Token


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
    """One call of a sub-circuit being expanded."""

    scope: Scope
    environment: Environment
    prefix: str
    nodes: list[int] | None
    multiplier: float
    call: Call | None
    specials: list[int]
    devices: list[int]
    following: list[int]
    progress: list[int]  # the next call, the next element

    def name(self, k: int) -> str:
        """The name of an element of the scope in the circuit."""
        return self.prefix + self.scope.names[k]

    def node(self, local: int) -> int:
        """The node of the circuit that a node of the scope is."""
        return local if self.nodes is None else self.nodes[local]


class Elaboration(Protocol):
    """A linked deck that is being expanded (`elaborate.Elaborator`)."""

    reporter: Reporter
    temperatures: Temperatures
    all_controlled: bool
    draws: Draws
    evaluator: Evaluator
    environment: Environment
    out: Any
    stack: list[Frame]
    element_values: Any
    followers: Any

    def number(self, value: Value, frame: Frame) -> float:
        """The value of a number or expression inside a call."""

    def scaled(self, frame: Frame, k: int, value: float, m: float) -> float:
        """The value of an element that stands for ``m`` in parallel."""

    def callers(self) -> tuple[str, ...]:
        """The chain of calls that is being expanded, innermost first."""

    def following(self, circuit: Any) -> Any:
        """The sources of the elaborated circuit that follow time or other sources."""
