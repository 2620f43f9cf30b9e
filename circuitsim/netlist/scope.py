"""Scopes: the deck itself and its sub-circuits, parsed but not yet expanded.

Elements are columns, as in `Circuit`, with node numbers local to the scope; what has to be evaluated in each call
(an expression, a multiplier) is in ``specials``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from circuitsim.models import ElementModel
from circuitsim.netlist.cards import Card
from circuitsim.netlist.evaluate import Function
from circuitsim.netlist.expression import Code
from circuitsim.netlist.source import Source
from circuitsim.netlist.tokens import CardError, Token

Value = float | Code
"""A number, or an expression to be evaluated where the scope is called."""

Phasor = tuple[Value, Value]
"""Magnitude, V or A, and phase in degrees."""


class Choice(NamedTuple):
    """The outcome of a condition on a parameter of a sub-circuit, in one of its variants."""

    card: Card
    code: Code
    holds: bool


class Wave(NamedTuple):
    """A time function whose numbers may need evaluation; ``repeat`` and ``delay`` are ``r=`` and ``td=`` of PWL."""

    name: str
    numbers: list[Value]
    offset: int
    repeat: Value | None = None
    delay: Value = 0.0


class Count(NamedTuple):
    """A number beside the value of an element's card (``m=``, ``tc1=``)."""

    card: Card
    offset: int
    value: Value


class ModelUse(NamedTuple):
    """An element that names a model (or, if there is none of that name, an area or a parameter)."""

    card: Card
    offset: int
    element: str
    model: str


class Details(NamedTuple):
    """What a resistor, capacitor, inductor or switch states beside its value.

    Attributes
    ----------
    letter : str
        First letter of its card, which tells the law of its value (`circuitsim.netlist.physical.element_value`).
    numbers : dict of str to Count
        Its temperature coefficients, temperature, scale and size.
    model : ModelUse or None
    bare : bool
        Whether the model's name is all that is stated: without such a model it is a parameter's.
    """

    letter: str
    numbers: dict[str, Count]
    model: ModelUse | None
    bare: bool = False

    @property
    def plain(self) -> bool:
        """Whether a name is all that it has."""
        return self.bare and not self.numbers


class Special(NamedTuple):
    """What an element needs evaluated: its value (None: its model's), its multiplier (1.0 if it has none), details."""

    card: Card
    offset: int
    value: Value | Wave | None
    multiplier: Value
    details: Details | None = None


class SwitchControl(NamedTuple):
    """What controls a switch: the voltage between two local nodes, or the current of a source; its state at first."""

    card: Card
    nodes: tuple[int, ...]
    source: Token | None
    closed: bool


class Coupling(NamedTuple):
    """A ``K`` card: inductors of the scope and their coupling factor."""

    card: Card
    inductors: list[Token]
    factor: Value


class Call(NamedTuple):
    """An ``X`` card: ``position`` is the number of elements before it in its scope."""

    card: Card
    name: str
    nodes: array[int]
    target: str
    target_offset: int
    passed: dict[str, Value]
    offsets: dict[str, int]
    position: int


class Model(NamedTuple):
    """A ``.model`` card in its scope: its name, its type in capitals, its parameters, and those that have a value."""

    card: Card
    scope: Scope
    name: str
    type: str
    parameters: tuple[str, ...]
    pairs: tuple[tuple[Token, Token], ...]
    words: tuple[Token, ...] = ()


class DeviceUse(NamedTuple):
    """What elements are whose model makes them devices: the row of the element table, and the card's values by name."""

    row: ElementModel
    model: Model
    values: dict[str, tuple[int, Value]]


class Scope:
    """The deck, or one ``.subckt``.

    Attributes
    ----------
    name, card : str, Card or None
        The sub-circuit's name and card; empty for the deck.
    parent : Scope or None
        The scope of the definition.
    ports : list of int
        Local nodes of the ports.
    cards : list of str or None
        Where the name is reserved: the cards as written, to be compared, not read.
    nodes : dict
        Node name, as spelled and in lower case → local number; 0 is ground.
    node_names : list of str
        Names as first written, by number.
    modelled : dict of str to array
        Model, in lower case → positions of all elements that name it.
    deferred : list
        Cards of a library's sub-circuit that are not supported, which matter where it is called.
    readings : list
        Numbers such as ``2K2`` (IEC 60062) that were read, one list for all scopes.
    waves : dict of int to Wave
        Position → time function of a source.
    initials : dict of int to Value
        Position → ``ic=`` of a capacitor or inductor.
    phasors : dict of int to (Value, Value)
        Position → magnitude (V or A) and phase (degrees) of a source (``AC``).
    controlled : dict of int
        Position → card of a controlled source (`circuitsim.netlist.controlled`).
    formulas : dict of int to Code
        Position → formula of a source, which reads other sources or the time.
    counts : dict of int to dict
        Position → ``m=`` and ``n=`` of an element with a model, where they are written.
    switches : dict of int to SwitchControl
        Position → what controls the switch.
    couplings : list of Coupling
    tolerances : dict of int to float
        Position → share of its value by which an element may deviate (``tol=``).
    choices : list of Choice
        Outcomes of ``.if`` on parameters of the sub-circuit that this scope was read for.
    variants : list of Scope
        This scope and those for all other outcomes; empty without such conditions.
    """

    def __init__(self, name: str = "", card: Card | None = None, parent: Scope | None = None) -> None:
        self.name, self.card, self.parent = name, card, parent
        self.ports: list[int] = []
        self.cards: list[str] | None = None
        self.nodes: dict[str, int] = {"0": 0, "gnd": 0}
        self.node_names: list[str] = ["0"]
        self.kind, self.value = array("b"), array("d")
        self.first, self.second, self.lines = array("q"), array("q"), array("q")
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.spans: list[tuple[int, Source]] = []
        self.specials: dict[int, Special] = {}
        self.waves: dict[int, Wave] = {}
        self.initials: dict[int, Value] = {}
        self.phasors: dict[int, Phasor] = {}
        self.deferred: list[tuple[Card, CardError]] = []
        self.readings: list[tuple[Card, int, str]] = parent.readings if parent is not None else []
        self.formulas: dict[int, Code] = {}
        self.calls: list[Call] = []
        self.defaults: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}
        self.functions: dict[str, Function] = {}
        self.models: dict[str, Model] = {}
        self.subcircuits: dict[str, Scope] = {}
        self.uses: dict[str, list[ModelUse]] = {}
        self.modelled: dict[str, array[int]] = {}
        self.counts: dict[int, dict[str, Count]] = {}
        self.controlled: dict[int, Any] = {}
        self.switches: dict[int, SwitchControl] = {}
        self.couplings: list[Coupling] = []
        self.tolerances: dict[int, float] = {}
        self.choices: list[Choice] = []
        self.variants: list[Scope] = []

    def node(self, word: str) -> int:
        """Local number of the node spelled ``word``, added if it is new."""
        key = word.lower()
        found = self.nodes.get(key)
        if found is None:
            found = len(self.node_names)
            self.node_names.append(word)
            self.nodes[key] = found
        self.nodes[word] = found
        return found

    def element(self, code: int, name: str, first: int, second: int, value: float, card: Card) -> int:
        """Append one element; returns its position."""
        position = len(self.kind)
        self.at(card.source)
        self.names.append(name)
        self.index[name.lower()] = position
        self.kind.append(code)
        self.first.append(first)
        self.second.append(second)
        self.value.append(value)
        self.lines.append(card.line)
        return position

    def at(self, source: Source) -> None:
        """Note that elements come from ``source`` from here on."""
        if not self.spans or self.spans[-1][1] is not source:
            self.spans.append((len(self.kind), source))

    def outwards(self) -> Iterator[Scope]:
        """This scope and those around it."""
        here: Scope | None = self
        while here is not None:
            yield here
            here = here.parent

    def find_function(self, name: str) -> Function | None:
        """The ``.func`` that ``name`` means here."""
        return next((scope.functions[name] for scope in self.outwards() if name in scope.functions), None)

    def find_model(self, name: str) -> Model | None:
        """The ``.model`` that ``name`` means here."""
        return next((scope.models[name] for scope in self.outwards() if name in scope.models), None)

    def find_subcircuit(self, name: str) -> Scope | None:
        """The ``.subckt`` that ``name`` means here."""
        return next((scope.subcircuits[name] for scope in self.outwards() if name in scope.subcircuits), None)

    def read_names(self) -> set[str]:
        """The names that the expressions of this scope's own cards read, in lower case."""
        found, left = set[str](), [value for name, value in vars(self).items() if name not in ("parent", "variants")]
        while left:
            value = left.pop()
            if isinstance(value, Code):
                found.update(value.names)
            elif isinstance(value, dict):
                left += value.values()
            elif isinstance(value, (tuple, list)) and not isinstance(value, Card):
                left += value
        return found

    def is_parameter(self, name: str) -> bool:
        """Whether a parameter of that name is declared in this scope itself."""
        return name in self.parameters or name in self.defaults
