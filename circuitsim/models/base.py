"""Element models, used by the reader, the writer, the program and the drawings.

Symbols extend along x from −half to +half, in inches, with the first terminal on the left.
"""

from __future__ import annotations

import enum
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

Line = tuple[tuple[float, float], ...]
"""A polyline of (x, y)."""


class Symbol(NamedTuple):
    """One element's drawing.

    Attributes
    ----------
    half : float
        The wires end at ±half.
    lines : tuple of Line
        Stroked polylines.
    body : Line or None
        A closed outline to fill.
    graded : Line or None
        A polyline with a colour gradient from the first terminal's potential to the second's.
    """

    half: float
    lines: tuple[Line, ...] = ()
    body: Line | None = None
    graded: Line | None = None


def circle(radius: float) -> Line:
    """A circle about the origin."""
    angles = [2.0 * math.pi * k / 48 for k in range(49)]
    return tuple((radius * math.cos(angle), radius * math.sin(angle)) for angle in angles)


def zigzag(half: float, height: float, teeth: int = 6, pieces: int = 84) -> Line:
    """A resistor's line, in many short pieces for a smooth colour gradient."""
    rise = height * 1j
    corners = [-half + (k + 0.5) * (2.0 * half / teeth) + rise * (-1.0) ** k for k in range(teeth)]
    corners = [complex(-half), *corners, complex(half)]
    points = []
    for step in range(pieces):
        k, part = divmod(step * (teeth + 1), pieces)
        points.append(corners[k] + (corners[k + 1] - corners[k]) * (part / pieces))
    return tuple((point.real, point.imag) for point in (*points, corners[-1]))


def coil(half: float, loops: int = 4) -> Line:
    """Half circles in a row."""
    radius = half / loops
    return tuple(
        (-half + radius * (2 * k + 1) + radius * math.cos(angle), radius * math.sin(angle))
        for k in range(loops)
        for angle in (math.pi * (16 - step) / 16 for step in range(17))
    )


def arrow(tail: float, tip: float, barb: float = 0.045) -> tuple[Line, ...]:
    """An arrow along x."""
    return ((tail, 0.0), (tip, 0.0)), ((tip - barb, barb), (tip, 0.0), (tip - barb, -barb))


BOX: Line = ((-0.3, -0.12), (0.3, -0.12), (0.3, 0.12), (-0.3, 0.12), (-0.3, -0.12))
"""The outline of a nonlinear resistor."""
RADIUS = 0.17
"""Radius of a source's circle."""

TRIANGLE: Line = ((-0.12, 0.13), (0.12, 0.0), (-0.12, -0.13))
"""A diode's body."""
DIODE = Symbol(0.12, (((0.12, 0.13), (0.12, -0.13)),), TRIANGLE)
ZENER = Symbol(0.12, (((0.17, 0.17), (0.12, 0.13), (0.12, -0.13), (0.07, -0.17)),), TRIANGLE)


POSITIVE = sys.float_info.min
"""Minimum of a parameter that must be positive."""


class Multiplier(enum.Enum):
    """Effect of ``m`` equal elements in parallel on the value."""

    UNCHANGED = enum.auto()
    DIVIDES = enum.auto()
    MULTIPLIES = enum.auto()


class Parameter(NamedTuple):
    """A parameter of an element or its ``.model`` card.

    Attributes
    ----------
    name : str
        In words (``resistance``) or as on its model card (``vfwd``).
    unit : str
        Empty for a pure number.
    minimum : float
        Smallest allowed value (inclusive).
    meaning : str
        Description for tables and error messages; empty if the name suffices.
    default : float or None
        Value of a device's parameter if unstated; None: absent.
    trainable : bool
        Whether it has a gradient rule.
    """

    name: str
    unit: str = ""
    minimum: float = -math.inf
    meaning: str = ""
    default: float | None = None
    trainable: bool = False

    def wrong(self, number: float) -> str:
        """The error message if ``number`` is out of range, else empty."""
        what = self.meaning or self.name
        if not math.isfinite(number):
            return f"the {what} must be finite, not {number}"
        if number >= self.minimum:
            return ""
        rule = "must be positive" if self.minimum > 0.0 else "must not be negative"
        return f"the {what} {rule} ({f'{number:g} {self.unit}'.strip()})"


TEMPERATURES = ("temp", "tnom")
"""Parameters of a temperature-dependent device: its own temperature and that of its parameters, °C."""

ROOM = 27.0
"""Default temperature, °C, as in every SPICE program."""

IDEAL_TYPE = "D"
"""Type of the ``.model`` cards that can also mean an ideal diode."""

OWN_TEMPERATURE = Parameter("temp", "°C", -273.15, "temperature", ROOM)
SERIES = Parameter("rs", "Ω", 0.0, "series resistance RS", 0.0, trainable=True)
PERIMETER = Parameter("pj", "", 0.0, "perimeter PJ", 0.0)

NO_PARAMETER = Parameter("")
"""The parameter of an element without a value."""


class Region(NamedTuple):
    """One segment of a piecewise characteristic: its name, and whether the element counts as conducting (drawn
    filled)."""

    name: str
    conducting: bool


class Part(NamedTuple):
    """An elementary element that a device consists of.

    Attributes
    ----------
    letter : str
        Letter of an elementary model: ``R``, ``D``, ``V`` or ``I``.
    name : str
        Unique suffix to the device's name in messages.
    first, second : str
        Terminals of the device's model, or internal nodes (not named like a part).
    value : float or None
        Ω, V, A; None for an ideal diode.
    """

    letter: str
    name: str
    first: str
    second: str
    value: float | None = None


class Device(ABC):
    """The immutable parameters of one element that consists of others.

    A subclass annotates its attributes: the parameters of its model (floats; None where absent) and the counts.

    Parameters
    ----------
    label : str
        Name of the ``.model`` card, for the writer; ignored when comparing devices.
    **values : float or None
        Parameters and counts by name; the model's defaults otherwise.

    Raises
    ------
    ValueError
        Unknown, out of range or contradictory values; the message names the cause.
    """

    model: ClassVar[ElementModel]
    label: str

    def __init__(self, *, label: str = "", **values: float | None) -> None:
        rows = (*self.model.parameters, *self.model.on_card)
        own = {row.name: row.default for row in rows} | dict.fromkeys(self.model.counts, 1.0)
        if self.model.thermal:
            own |= dict.fromkeys(TEMPERATURES, ROOM)
        for name, value in values.items():
            if name not in own:
                raise ValueError(f"no parameter {name!r}; known: {', '.join(own)}")
            own[name] = None if value is None else float(value)
        self.__dict__.update(own, label=label)
        for row in rows:
            number = own[row.name]
            wrong = "" if number is None else row.wrong(number)
            if wrong:
                raise ValueError(wrong)
        if not all(0.0 < getattr(self, name) < math.inf for name in self.model.counts):
            raise ValueError(f"the counts {' and '.join(self.model.counts)} must be positive and finite")
        self.check()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a device is immutable: {name} is set when it is made")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.values() == self.values()

    def __hash__(self) -> int:
        return hash(tuple(self.values().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.values().items())})"

    def values(self) -> dict[str, float | None]:
        """Parameters and counts by name."""
        return {name: value for name, value in self.__dict__.items() if name != "label"}

    def check(self) -> None:  # noqa: B027
        """Refuse parameters that contradict each other.

        Raises
        ------
        ValueError
        """

    @abstractmethod
    def expand(self) -> tuple[Part, ...]:
        """The equivalent circuit of elementary elements."""

    @abstractmethod
    def region(self, currents: Mapping[str, float]) -> Region:
        """The device's region, from the currents of its parts (A) by their names in `expand`."""

    def entering(self, parts: Sequence[Part]) -> list[tuple[int, float]]:
        """The parts at the first terminal, with the signs of their currents into the device there."""
        terminal = self.model.terminals[0]
        signs = ((part.first == terminal) - (part.second == terminal) for part in parts)
        return [(k, float(sign)) for k, sign in enumerate(signs) if sign]

    @abstractmethod
    def law(self, voltage: float) -> tuple[float, float]:
        """Minimum and maximum current (A) of the characteristic at ``voltage`` (V); they differ only where the curve is
        vertical.

        Independent of `expand`: the operating point is checked against it.
        """

    @abstractmethod
    def energy(self, voltage: float) -> float:
        """Co-content ∫ i dv from 0 to ``voltage`` (V), in W; infinite outside the allowed voltages."""

    def trapezoids(self, voltage: float, knees: Iterable[float]) -> float:
        """Co-content, W, of a `law` that is linear between knees: by the trapezoidal rule.

        Parameters
        ----------
        voltage : float
            V.
        knees : iterable of float
            V, in any order.
        """
        low, high = sorted((0.0, voltage))
        ends = [low, *sorted(knee for knee in knees if low < knee < high), *[high] * (low < high)]
        total = sum(0.5 * (self.law(a)[1] + self.law(b)[0]) * (b - a) for a, b in pairwise(ends))
        return total if voltage >= 0.0 else -total

    def parameters(self) -> dict[str, float]:
        """The set parameters of its model card, in the model's order."""
        stated = {row.name: getattr(self, row.name) for row in self.model.parameters}
        return {name: value for name, value in stated.items() if value is not None}

    def counts(self) -> dict[str, float]:
        """Values of its own card (``m``, ``n``, ``temp``, ``pj``) other than their defaults."""
        usual = dict.fromkeys(self.model.counts, 1.0) | {row.name: row.default for row in self.model.on_card}
        return {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}

    def with_value(self, parameter: str, value: float) -> Device:
        """A copy with another value of one parameter of its model card.

        Parameters
        ----------
        parameter : str
            Its name; case does not matter.
        value : float
            In the parameter's unit.

        Returns
        -------
        Device

        Raises
        ------
        ValueError
            No such parameter, or a value out of range.
        """
        row = self.model.parameter_called(parameter)
        if row is None:
            raise ValueError(f"no parameter {parameter!r}; known: {', '.join(r.name for r in self.model.parameters)}")
        return type(self)(label=self.label, **{**self.values(), row.name: value})


class ElementModel(NamedTuple):
    """One row of the element table.

    Attributes
    ----------
    letter : str
        First letter of the element's SPICE name.
    name : str
        The common name.
    terminals : tuple of str
        The names of its two terminals, in SPICE order.
    law : str
        Its branch equation at DC, in SPICE signs.
    symbol : Symbol
        Its drawing.
    value : Parameter
        The parameter that the number on its card states; `NO_PARAMETER` if there is none.
    keywords : tuple of str
        Keywords for that number (``R=``).
    multiplier : Multiplier
    device : type of Device, or None
        For an element that consists of others.
    card_type : str
        Type of the ``.model`` cards that state the device's parameters.
    parameters : tuple of Parameter
        The parameters of these cards. A card with one of them means this device.
    counts : tuple of str
        Numbers of equal cells on the element's own card: ``m`` (in parallel), ``n`` (in series).
    dialect : str
        A comment on its cards in a written deck: the programs that read them.
    idle : frozenset of str
        Parameters of its cards without effect at DC. If nonempty, every other parameter of a card, known or not, means
        this device, unless an earlier row takes the card.
    spellings : mapping of str to str
        Alternative parameter names on cards.
    required : frozenset of str
        Parameters of which a card must state one to mean this device, if any.
    listed : bool
        Whether a card may list the parameter values in order.
    thermal : bool
        Whether the device depends on temperature: it then has the values ``temp`` (its own temperature) and ``tnom``
        (that of its parameters), °C, besides its parameters and counts.
    spice : str
        The text of its card, with the fields ``name``, ``first``, ``second``, ``value`` (of a device: its model).
    """

    letter: str
    name: str
    terminals: tuple[str, str]
    law: str
    symbol: Symbol
    value: Parameter = NO_PARAMETER
    keywords: tuple[str, ...] = ()
    multiplier: Multiplier = Multiplier.UNCHANGED
    device: type[Device] | None = None
    card_type: str = ""
    parameters: tuple[Parameter, ...] = ()
    counts: tuple[str, ...] = ()
    dialect: str = ""
    idle: frozenset[str] = frozenset()
    spellings: Mapping[str, str] = {}  # no proxy: models are pickled
    required: frozenset[str] = frozenset()
    listed: bool = False
    thermal: bool = False
    spice: str = "{name} {first} {second} {value}"

    def takes(self, letter: str, card_type: str, names: frozenset[str]) -> bool:
        """Whether a card means this device.

        Parameters
        ----------
        letter : str
            First letter of the element's name, upper case.
        card_type : str
            Type of its ``.model`` card.
        names : frozenset of str
            Parameters of the card and of the element, lower case.

        Returns
        -------
        bool
        """
        if self.device is None or (self.letter, self.card_type) != (letter, card_type):
            return False
        if self.required or card_type != IDEAL_TYPE:
            return not self.required or not self.required.isdisjoint(names)
        own = {row.name for row in self.parameters} - self.idle
        return not names.isdisjoint(own) or bool(self.idle and names - self.idle)

    @property
    def parameter(self) -> str:
        """The name of its value; empty for an element without one."""
        return self.value.name

    @property
    def unit(self) -> str:
        """Unit of its value."""
        return self.value.unit

    @property
    def on_card(self) -> tuple[Parameter, ...]:
        """``temp``, a number on the element's own card, if it depends on temperature."""
        return (OWN_TEMPERATURE, PERIMETER) if self.thermal else ()

    def parameter_called(self, name: str) -> Parameter | None:
        """The parameter of its cards called ``name`` (case does not matter)."""
        return next((row for row in (*self.parameters, *self.on_card) if row.name == name.lower()), None)

    def __repr__(self) -> str:
        return f"<model of the {self.name}>"
