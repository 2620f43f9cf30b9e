"""Scopes: the deck and its sub-circuits, parsed but not expanded; and the values on their cards.

Elements are columns, as in `Circuit`, with node numbers local to the scope; further data on an element's card, and
everything to be evaluated per call, is one record of ``stated``.

Expressions of printed quantities, outside any deck, are vectorised if they consist of sums, products and quotients.

Values of resistors and capacitors from their cards and models, their size, scale and temperature, as ngspice 39
computes them (tested against it)::

    R = stated value, else RSH (L − 2 SHORT)/(W − 2 NARROW), else R of the model
    R(T) = R (1 + TC1 ΔT + TC2 ΔT²), or R · 1.01^(TCE ΔT) where the card or the model states TCE;  ΔT = T − TNOM

Capacitances and inductances have the same coefficients TC1 and TC2. Values on the card take precedence over the
model's.

As in ngspice: the default is 27 °C; ``set temp`` of a ``.control`` block takes precedence over ``.temp``, and that over
``.options temp``; the last card of each counts. A ``.temp`` card with several values is a sweep
(`circuitsim.analysis.sweep`); the operating point is that of the first.

Attributes that LTspice writes on R, L, C, V and I: parasitic elements act, ratings do not.

V1 a b 5 Rser=1          →  V1 V1.inner b 5,  V1.Rser a V1.inner 1
L1 a b 1m Rser=2 Cpar=8p →  L1 L1.inner b 1m, L1.Rser a L1.inner 2, L1.Cpar a b 8p
C1 a b 1u Rser=1 Lser=1n →  C1 C1.inner b 1u, C1.Lser C1.middle C1.inner 1n, C1.Rser a C1.middle 1

Values on cards are checked against the ranges in the element table.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from circuitsim.circuit.elements import BY_LETTER, CAPACITOR, CURRENT, ELEMENTS, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.models import ElementModel
from circuitsim.models.base import ROOM
from circuitsim.netlist.cards import EXPRESSION, STRING, WORD, Card, CardError, Place, Source, Token, delimited
from circuitsim.netlist.expression import (
    NUMBER,
    Code,
    Environment,
    Evaluator,
    ExpressionError,
    Signal,
    no_ampere,
    outwards,
    parse,
    read_rkm,
)
from circuitsim.netlist.functions import CONSTANTS, Row, Waveform
from circuitsim.units import NumberError, exact, scan, short
from circuitsim.units import parse as parse_number

VALUED = (RESISTOR, CAPACITOR, INDUCTOR, VOLTAGE, CURRENT)
"""Kinds of elements with a value on their cards."""
LEAST = [row.value.minimum for row in ELEMENTS]
"""Smallest value of an element, by its code."""

Value = float | Code
"""A number, or an expression to be evaluated where the scope is called."""

Phasor = tuple[Value, Value]
"""Magnitude, V or A, and phase in degrees."""


class Count(NamedTuple):
    """A number on an element's card in addition to the value (``m=``, ``tc1=``)."""

    at: Token
    value: Value


class SwitchControl(NamedTuple):
    """The control of a switch: the voltage between two local nodes, or the current of a source; its initial state."""

    nodes: tuple[int, ...]
    source: Token | None
    closed: bool


class ControlledSource(NamedTuple):
    """A source that may be controlled.

    Attributes
    ----------
    kind : int
        Its code in the circuit: a plain gain, affine, or a nullor.
    law : Code
        Its value.
    fixable : bool
        Whether it is independent if other sources fix all that it reads.
    """

    kind: int
    law: Code
    fixable: bool


NOTHING: dict[str, Count] = {}


class ElementCard(NamedTuple):
    """The data on an element's card besides its nodes and a plain value.

    Attributes
    ----------
    at : Place
        The value in the card; None for a plain element.
    value : Value or None
        None: given by its model or time function.
    numbers : dict of str to Count
        By name: temperature coefficients, temperature, scale, size; for an element with a model its cells and area.
    model : Token or None
        The name of its model.
    bare : bool
        Whether only the model's name is given; if there is no such model it is a parameter's.
    multiplier : Value
        Number of equal elements in parallel.
    tolerance : float or None
        Fraction of its value by which the element may deviate (``tol=``).
    initial : Value or None
        ``ic=`` of a capacitor or junction, V, or inductor, A.
    wave : Waveform or None
        Time function of a source; its numbers may need evaluation.
    phasor : Phasor or None
        Amplitude of a source (``AC``).
    switch : SwitchControl or None
    source : ControlledSource or None
    """

    at: Any
    value: Value | None = None
    numbers: dict[str, Count] = NOTHING
    model: Token | None = None
    bare: bool = False
    multiplier: Value = 1.0
    tolerance: float | None = None
    initial: Value | None = None
    wave: Waveform | None = None
    phasor: Phasor | None = None
    switch: SwitchControl | None = None
    source: ControlledSource | None = None


PLAIN = ElementCard(None)
"""The record of an element that states only its value."""


class Coupling(NamedTuple):
    """A ``K`` card: inductors of the scope and their coupling factor."""

    inductors: list[Token]
    factor: Value


class Call(NamedTuple):
    """An ``X`` card: ``position`` is the number of elements before it in its scope."""

    card: Card
    name: str
    nodes: array[int]
    target: Token
    passed: dict[str, Value]
    keys: dict[str, Token]
    position: int


class Model(NamedTuple):
    """A ``.model`` card in its scope: its name, its type in capitals, its parameters with values, and further words."""

    card: Card
    scope: Scope
    name: str
    type: str
    pairs: list[tuple[Token, Token]]
    words: list[Token]

    @property
    def parameters(self) -> list[str]:
        """The names on its card, with or without a value."""
        return [key.text for key, _ in self.pairs] + [word.text for word in self.words if word.kind == WORD]


class DeviceUse(NamedTuple):
    """The device of elements with a model: the row of the element table, and the numbers of the card by name."""

    row: ElementModel
    model: Model
    values: dict[str, Count]


IN_FILE = 1 << 32
"""More than the lines of a file."""


class Columns:
    """Elements as columns, and the names of nodes.

    Attributes
    ----------
    nodes : dict
        Node name, as spelled and in lower case → number; 0 is ground.
    node_names : list of str
        Names as first written, by number.
    lines : array
        Lines of the elements, plus `IN_FILE` times the numbers of their sources.
    files : dict of int to str
        Names of these sources.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {"0": 0, "gnd": 0}
        self.node_names: list[str] = ["0"]
        self.kind, self.value = array("b"), array("d")
        self.first, self.second, self.lines = array("q"), array("q"), array("q")
        self.names: list[str] = []
        self.files: dict[int, str] = {}

    def node(self, word: str) -> int:
        """The number of the node spelled ``word``, added if it is new."""
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
        self.names.append(name)
        self.kind.append(code)
        self.first.append(first)
        self.second.append(second)
        self.value.append(value)
        self.lines.append(self.line(card.source, card.line))
        return len(self.kind) - 1

    def line(self, source: Source, number: int) -> int:
        """A line of a source as an entry of ``lines``."""
        self.files[source.number] = source.name
        return source.number * IN_FILE + number


class Scope(Columns):
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
        For a reserved name: the cards as written, to be compared, not read.
    modelled : dict of str to array
        Model (or, if there is no such model, an area), in lower case → positions of the diodes that name it.
    deferred : list
        Unsupported cards of a library's sub-circuit, which matter if it is called.
    readings : list
        Numbers such as ``2K2`` (IEC 60062) that were read, one list for all scopes.
    stated : dict of int to ElementCard
        Position → data on its card besides a plain value.
    couplings : list of Coupling
    choices : list of (Code, bool)
        Conditions and their outcomes, of ``.if`` on parameters of the sub-circuit for which this scope was read.
    variants : list of Scope
        This scope and those for all other outcomes; empty without such conditions.
    """

    def __init__(self, name: str = "", card: Card | None = None, parent: Scope | None = None) -> None:
        super().__init__()
        self.name, self.parent = name, parent
        self.card: Any = card
        self.ports: list[int] = []
        self.cards: list[str] | None = None
        self.index: dict[str, int] = {}
        self.stated: dict[int, ElementCard] = {}
        self.deferred: list[tuple[Card, CardError]] = []
        self.readings: list[Token] = parent.readings if parent is not None else []
        self.calls: list[Call] = []
        self.defaults: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}
        self.functions: dict[str, Row] = {}
        self.models: dict[str, Model] = {}
        self.subcircuits: dict[str, Scope] = {}
        self.modelled: dict[str, array[int]] = {}
        self.couplings: list[Coupling] = []
        self.choices: list[tuple[Code, bool]] = []
        self.variants: list[Scope] = []

    def state(self, code: int, name: str, first: int, second: int, stated: ElementCard) -> None:
        """Append the element of a card."""
        value = stated.value
        number = value if isinstance(value, float) else 0.0 if code in VALUED else math.nan
        plain = value is None or (isinstance(value, float) and value >= LEAST[code])
        position = self.element(code, name, first, second, number, stated.at.card)
        self.index[name.lower()] = position
        if not plain or stated != ElementCard(stated.at, value):
            self.stated[position] = stated

    def found(self, table: str, name: str) -> Any:
        """The entry of a name in a table (``functions``, ``models``, ``subcircuits``) of this scope or of the innermost
        enclosing one that has it, or None."""
        tables = (getattr(scope, table) for scope in outwards(self))
        return next((own[name] for own in tables if name in own), None)

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


class Frame(NamedTuple):
    """The deck, or one call of a sub-circuit inside another frame."""

    scope: Scope
    environment: Environment
    prefix: str = ""
    nodes: list[int] | None = None
    multiplier: float = 1.0
    call: Any = None
    parent: Frame | None = None

    def node(self, local: int) -> int:
        """The circuit node of a node of the scope."""
        return local if self.nodes is None else self.nodes[local]

    def defining(self, scope: Scope) -> Environment:
        """The parameters of the innermost call of a scope; by default those of this call."""
        return next((frame.environment for frame in outwards(self) if frame.scope is scope), self.environment)

    def callers(self) -> tuple[str, ...]:
        """The chain of calls, innermost first."""
        calls = [(frame.call, frame.prefix) for frame in islice(outwards(self), 20)]
        return tuple(
            f"in {short(prefix[:-1])}, called at {call.card.source.name}:{line}:{column}"
            for call, prefix in calls
            if call is not None
            for line, column in [call.card.where()]
        )


class Placed(NamedTuple):
    """Element ``k`` of a scope in one call, at a position in the circuit."""

    frame: Frame
    k: int
    position: int

    @property
    def name(self) -> str:
        """Its name in the circuit."""
        return self.frame.prefix + self.frame.scope.names[self.k]

    @property
    def kind(self) -> int:
        """Its code in the scope."""
        return self.frame.scope.kind[self.k]

    @property
    def stated(self) -> ElementCard:
        """The data on its card."""
        return self.frame.scope.stated.get(self.k, PLAIN)

    @property
    def letter(self) -> str:
        """The letter of an element with a value, which selects its formula
        (`element_value`)."""
        switch = self.stated.switch
        return ELEMENTS[self.kind].letter if switch is None else "S" if switch.source is None else "W"


_GOES_ON = re.compile(r"\s*[-+*/%^\\<>=!?&|]")
"""The continuation of an expression after a group."""


def value_of(token: Token, scope: Scope) -> Value:
    """A float, or an expression if it depends on parameters.

    Raises
    ------
    CardError, ExpressionError
        Not a number or an expression, or out of a double's range.
    """
    if token.kind == STRING:
        at = token.card.at(token.offset - 1)
        raise CardError("a value in double quotes", at, "write the number, or {an expression}", "number")
    if token.kind == EXPRESSION:
        return constant(of_token(token, scope))
    try:
        number, letters = parse_number(token.text) + 0.0, scan(token.text, 0)[2]  # no negative zero
        if letters[:1] == "A":
            message, hint = no_ampere(token.text, letters)
            raise CardError(message, token, hint, "atto")
        return number
    except NumberError as error:
        if (value := read_rkm(token.text)) is not None:
            scope.readings.append(token)
            return value
        if token.kind == WORD and token.text.isidentifier():
            # ngspice accepts a bare parameter name as the value; whether it exists is checked later.
            return of_token(token, scope)
        raise CardError(str(error), token, error.hint, "number") from None


def of_token(token: Token, scope: Scope, arguments: tuple[str, ...] = (), signals: bool = False) -> Code:
    """The expression in ``token``."""
    return formula(token.card, token.offset, scope, arguments, token.offset + len(token.text), signals)


def formula(
    card: Card,
    at: int,
    scope: Scope,
    arguments: tuple[str, ...] = (),
    stop: int | None = None,
    signals: bool = False,
    whole: bool = True,
) -> Code:
    """The expression that begins at ``at``: it may be, or contain, groups in braces or quotes; ``whole``: it fills the
    text up to ``stop``.

    Raises
    ------
    CardError, ExpressionError
        It is not an expression.
    """
    stop = len(card.text) if stop is None else stop
    group = delimited(card, at) if card.text[at : min(at + 1, stop)] in ("{", "'") else None
    if group is None or _GOES_ON.match(card.text, group.end, stop):
        code = parse(card, at, stop, scope, arguments, signals)
    else:
        code = of_token(group, scope, arguments, signals)
        code.end = group.end
    rest = card.text[code.end : stop].lstrip()
    if whole and rest:
        hint = "an operator is missing before it" if rest[0].isalnum() or rest[0] in "({'" else ""
        message = f"{short(rest[:30].split()[0])!r} does not belong in the expression"
        place = card.at(stop - len(rest))
        raise ExpressionError(message, place, "compare with ==" if rest[0] == "=" else hint, "expression")
    return code


def constant(value: Value) -> Value:
    """``value`` as a float if it is the expression of a plain number (it may still need a warning)."""
    if isinstance(value, Code) and value.tree.kind == NUMBER and not value.mega:
        return float(value.tree.argument)
    return value


def parse_formula(text: str) -> Code:
    """Parse an expression; it may read ``v(a,b)``, ``i(R1)`` and ``p(R1)``.

    Raises
    ------
    ExpressionError
        The text is not an expression.
    """
    return formula(Card(Source("<columns>", "", text), 1, text), 0, Scope(), signals=True)


def values_at_once(code: Code, known: Mapping[Signal, Any], names: Mapping[str, float]) -> Any:
    """The values (n,) of an expression.

    Parameters
    ----------
    code : Code
        Without functions of a deck.
    known : mapping of Signal to (n,) float array
    names : mapping of str to float
        Values of parameters, by names in lower case.

    Returns
    -------
    (n,) float array or None
        None where the expression has other operations, or a value is infinite: `circuitsim.netlist.expression` then
        reports the error.
    """
    import numpy as np

    evaluator = Evaluator(signals=known.__getitem__, check=lambda name, result, values: result)
    found: Any = np.zeros(np.broadcast_shapes(*(own.shape for own in known.values())))
    if found.shape == (1,):  # functions of the module math would take it for a number
        return None
    try:
        with np.errstate(all="ignore"):
            found = found + evaluator.value(code, Environment(dict(names)))
    except (ExpressionError, TypeError, ValueError):
        return None
    return found if np.isfinite(found).all() else None


# ---------------------------------------------------------------------- physical values
BOLTZMANN, CHARGE = 1.380649e-23, 1.602176634e-19
"""J/K and C, exact since 2019."""

ABSOLUTE_ZERO = -273.15
"""°C."""


class Temperatures(NamedTuple):
    """Temperatures of a deck.

    Attributes
    ----------
    ambient : float
        Of all elements without their own (``temp=``, or ``dtemp=`` above this one), °C.
    nominal : float
        Temperature for which values on cards hold, unless a model states its own (``tnom=``), °C.
    """

    ambient: float = ROOM
    nominal: float = ROOM

    def constants(self) -> dict[str, float]:
        """The constants of expressions at this temperature: ``temper`` and ``temp`` in °C, ``vt`` = kT/q in V."""
        thermal = BOLTZMANN * (self.ambient - ABSOLUTE_ZERO) / CHARGE
        return {**CONSTANTS, "temper": self.ambient, "temp": self.ambient, "vt": thermal}

    def of(self, own: Mapping[str, float]) -> float:
        """The temperature (°C) of an element with these values on its card: ``temp``, else ambient and ``dtemp``."""
        return own["temp"] if "temp" in own else self.ambient + own.get("dtemp", 0.0)


def checked_temperature(value: float, at: Place) -> float:
    """``value`` in °C, above absolute zero.

    Raises
    ------
    CardError
    """
    if value < ABSOLUTE_ZERO:
        raise CardError(f"{exact(value)} °C is below absolute zero", at, "temperatures are in °C", "range")
    return value


def positive(name: str, word: str, number: float, at: Place) -> None:
    """Refuse a count ``m=`` or ``n=`` that is not above zero.

    Raises
    ------
    CardError
    """
    if number <= 0:
        what = "multiplier m" if word == "m" else "number n in series"
        raise CardError(
            f"{short(name)}: the {what} must be positive, not {exact(number)}", at, "remove the card", "range"
        )


def checked(code: int, name: str, value: float, at: Place) -> float:
    """``value``, if the element table allows it.

    Raises
    ------
    CardError
        Below the table's minimum.
    """
    row = ELEMENTS[code]
    if wrong := row.value.wrong(value):
        hint = f"a passive circuit has no negative {row.parameter}" if row.unit else ""
        raise CardError(f"{short(name)}: {wrong}", at, hint, "range")
    return value


SERIES = {"rser": ("Rser", RESISTOR), "lser": ("Lser", INDUCTOR)}
"""Parasitic elements in series, starting at the element's first node: their names and kinds."""
PARALLEL = {"rpar": ("Rpar", RESISTOR), "cpar": ("Cpar", CAPACITOR)}
PARASITIC: dict[int, tuple[str, ...]] = {
    VOLTAGE: ("rser", "cpar"),
    INDUCTOR: ("rser", "rpar", "cpar"),
    CAPACITOR: ("rser", "lser", "rpar", "cpar"),
}
"""Attributes that are parasitic elements, by element."""


def percent(text: str) -> float | None:
    """``5%`` as 0.05; None for anything but a positive percentage."""
    try:
        amount = parse_number(text.removesuffix("%")) / 100.0
    except NumberError:
        return None
    return amount if amount > 0.0 and text.endswith("%") else None


def tolerance(token: Token) -> float | None:
    """``tol=`` (per cent, with or without its sign) as a fraction; None for zero.

    Raises
    ------
    CardError
        It is not a percentage.
    """
    amount = percent(token.text.removesuffix("%") + "%")
    if amount is None and token.text.strip("0.%"):
        raise CardError(f"tol={short(token.text)} is not a percentage", token, "write tol=5%")
    return amount


SIZE = 10e-6
"""Default length and width of a resistor, m."""

OWN = ("tc", "tc1", "tc2", "tce", "temp", "dtemp", "scale", "l", "w")
"""Numbers on the card of a resistor, capacitor or inductor in addition to its value."""


class CardModel(NamedTuple):
    """The ``.model`` cards of elements with one letter: their types, and the parameters that are read, as spelled →
    name."""

    types: tuple[str, ...]
    parameters: Mapping[str, str]


def _model(types: str, parameters: str) -> CardModel:
    """The row of a model whose parameters are ``name`` or ``spelling=name``."""
    pairs = (word.partition("=") for word in parameters.split())
    return CardModel(tuple(types.split()), {word: name or word for word, _, name in pairs})


CARD_MODELS = {
    "R": _model("R RES", "r res=r rsh narrow dw=narrow short dlr=short w defw=w l tc1 tc2 tce tnom t_measured=tnom"),
    "C": _model("C CAP", "cap c=cap cj cjsw narrow short defw defl tc1 tc2 tnom t_measured=tnom"),
    "L": _model("L IND", "ind l=ind tc1 tc2 tnom t_measured=tnom"),
    "S": _model("SW", "vt vh ron roff"),
    "W": _model("CSW", "it=vt ih=vh ron roff"),
}
"""By the letter of the elements."""


def letter_of(type_: str) -> str:
    """The letter of the elements that take models of this type; empty for other types."""
    return next((letter for letter, row in CARD_MODELS.items() if type_ in row.types), "")


TOLERANCES = frozenset(("dev", "lot"))
"""Words of a passive element's model that give tolerances."""


Numbers = Mapping[str, float]


def element_value(
    letter: str, stated: float | None, own: Numbers, model: Numbers, temperatures: Temperatures
) -> tuple[float, float]:
    """The value of a resistor (Ω), capacitor (F), inductor (H) or switch (Ω), and its ratio to the value on its card.

    Parameters
    ----------
    letter : str
        First letter of its card.
    stated : float or None
        Value on its card, at the nominal temperature.
    own, model : mapping of str to float
        Other numbers of its card (`OWN`) and of its model (`CARD_MODELS`), by name.
    temperatures : Temperatures

    Raises
    ------
    ValueError
        No resistance is given, or the temperature makes a value nonpositive; the message is for the user.
    """
    if letter not in _LAWS:
        key = "ron" if own["closed"] else "roff"
        return model.get(key, SWITCH[key]), 1.0
    base, factor = _LAWS[letter](stated, own, model), factor_of(own, model, temperatures)
    if base > 0.0 and factor <= 0.0:
        row, where = ELEMENTS[BY_LETTER[letter]], f"at {temperatures.of(own):g} °C"
        raise ValueError(f"its temperature coefficients make the {row.parameter} {base * factor:g} {row.unit} {where}")
    return base * factor, factor


def factor_of(own: Numbers, model: Numbers, temperatures: Temperatures) -> float:
    """Ratio of a value to that on its card or model: scale and temperature."""
    rise = temperatures.of(own) - model.get("tnom", temperatures.nominal)
    if "tce" in own or "tce" in model:
        found = float(1.01 ** (own.get("tce", model.get("tce", 0.0)) * rise))
    else:
        linear = own.get("tc", own.get("tc1", model.get("tc1", 0.0)))
        found = 1.0 + (own.get("tc2", model.get("tc2", 0.0)) * rise + linear) * rise
    return found * own.get("scale", 1.0)


def _resistance(stated: float | None, own: Numbers, model: Numbers) -> float:
    """The resistance before scale and temperature, Ω; raises as `element_value`."""
    if stated is not None:
        return stated
    length = own.get("l", model.get("l", SIZE))
    width = own.get("w", model.get("w", SIZE))
    sheet = model.get("rsh", 0.0)
    if sheet * length * width > 0.0:
        long = length - 2.0 * model.get("short", 0.0)
        wide = width - 2.0 * model.get("narrow", 0.0)
        if long < 0.0 or wide <= 0.0:
            raise ValueError(f"SHORT and NARROW leave {long:g} m of its length and {wide:g} m of its width")
        return sheet * long / wide
    if "r" not in model:
        raise ValueError("neither its card nor its model states a resistance")
    return model["r"]


def _capacitance(stated: float | None, own: Numbers, model: Numbers) -> float:
    """The capacitance before scale and temperature, F; 0 by default."""
    if stated is None:
        stated = model.get("cap")
    if stated is None:
        long = own.get("l", model.get("defl", 0.0)) - model.get("short", 0.0)
        wide = own.get("w", model.get("defw", SIZE)) - model.get("narrow", 0.0)
        stated = model.get("cj", 0.0) * wide * long + 2.0 * model.get("cjsw", 0.0) * (wide + long)
    return stated


def _inductance(stated: float | None, _: Numbers, model: Numbers) -> float:
    """The inductance before scale and temperature, H; 0 by default."""
    return model.get("ind", 0.0) if stated is None else stated


SWITCH: Numbers = MappingProxyType({"vt": 0.0, "vh": 0.0, "ron": 1.0, "roff": 1e12})
"""Defaults of a switch model."""


_LAWS: dict[str, Callable[[float | None, Numbers, Numbers], float]] = {
    "R": _resistance,
    "C": _capacitance,
    "L": _inductance,
}
"""First letter of a card → its value from the value and numbers on the card, and its model."""
