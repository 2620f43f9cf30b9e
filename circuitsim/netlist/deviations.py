"""Random functions and tolerances of a deck: values with their deviations.

``R1 a b {mc(1k, 5%)}`` is 1 kΩ that changes by 1 kΩ per unit of a deviation within ±0.05. A number carries such
coefficients (`functions.Linear`) through sums, products with numbers and quotients by numbers; other operations drop
them. A function on an element's card is drawn once per element, one in a parameter once. `circuitsim.tolerance` turns
them into random variables.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from circuitsim.netlist.cards import Token
from circuitsim.netlist.functions import Linear
from circuitsim.units import short

SIGMAS = 3.0
"""Tolerance of a normal distribution in standard deviations."""


class Distribution(enum.Enum):
    """Distribution of a deviation over ± its tolerance."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    """The tolerance is three standard deviations; larger deviations occur."""
    TRUNCATED = "truncated"
    """Normal, truncated at the tolerance."""
    ENDS = "ends"
    """One of the two ends of the tolerance, with equal probability."""


class Variable(NamedTuple):
    """An independent random deviation.

    Attributes
    ----------
    label : str
        Its location in the deck, for tables.
    amount : float
        Largest deviation, or three standard deviations.
    distribution : Distribution
    """

    label: str
    amount: float
    distribution: Distribution


class Deviations(NamedTuple):
    """How the values of a deck's elements deviate.

    Attributes
    ----------
    variables : tuple of Variable
    effects : dict of int to dict of int to float
        Element → variable → change of its value for a deviation of 1.
    refused : tuple of str
        Descriptions of random functions without a linear effect, for messages.
    """

    variables: tuple[Variable, ...]
    effects: Mapping[int, Mapping[int, float]]
    refused: tuple[str, ...]


def _relative(nominal: float, tolerance: float) -> tuple[float, float, float]:
    return nominal, nominal, tolerance


def _absolute(nominal: float, tolerance: float) -> tuple[float, float, float]:
    return nominal, 1.0, tolerance


def _spread(sigma: float) -> float:
    if sigma <= 0.0:
        raise ValueError("the number of standard deviations must be positive")
    return SIGMAS / sigma


Law = tuple[Distribution, Callable[..., tuple[float, float, float]]]
_LAWS: dict[str, Law] = {
    "mc(value, tolerance)": (Distribution.UNIFORM, _relative),
    "flat(width)": (Distribution.UNIFORM, lambda width: (0.0, width, 1.0)),
    "unif(value, tolerance)": (Distribution.UNIFORM, _relative),
    "aunif(value, width)": (Distribution.UNIFORM, _absolute),
    "gauss(deviation)": (Distribution.NORMAL, lambda deviation: (0.0, deviation, SIGMAS)),
    "gauss(value, tolerance, sigmas)": (Distribution.NORMAL, lambda x, part, n: _relative(x, part * _spread(n))),
    "agauss(value, deviation, sigmas)": (Distribution.NORMAL, lambda x, amount, n: _absolute(x, amount * _spread(n))),
    "limit(value, width)": (Distribution.ENDS, _absolute),
    **dict.fromkeys(("rand()", "rand(number)", "random(number)"), (Distribution.UNIFORM, lambda *_: (0.5, 1.0, 0.5))),
}
"""Syntax → distribution; nominal value, change for a deviation of 1, and largest deviation."""

FUNCTIONS = {(form.partition("(")[0], len(form.split("(")[1].strip(")").split())): law for form, law in _LAWS.items()}
"""Distributions by name and number of arguments."""
FORMS = {name: " or ".join(form for form in _LAWS if form.startswith(f"{name}(")) for name, _ in FUNCTIONS}
"""Syntax of each function."""

SHARED: dict[str, Callable[[float], float]] = {"rand": math.floor, "random": float}
"""Functions of LTspice whose argument determines the number from 0 to 1; maps the argument to its key."""


class Draws:
    """The random variables of one elaboration."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.effects: dict[int, dict[int, float]] = {}
        self.refused: dict[str, None] = {}
        self.waiting: list[Linear] = []
        """Random results of expressions not yet used by an element's value."""
        self.lots: dict[int, int] = {}
        self.shared: dict[tuple[str, float], int] = {}
        """Function of LTspice and its key → its variable."""
        self.cards: dict[tuple[str, int], Token] = {}
        """Function and line → its location, for the note."""

    def draw(self, name: str, arguments: tuple[float, ...], at: Token) -> float:
        """The nominal value of a random function, with its deviation.

        Raises
        ------
        ValueError
            Wrong number of arguments.
        """
        law = FUNCTIONS.get((name, len(arguments)))
        if law is None:
            raise ValueError(f"write {FORMS[name]}")
        nominal, slope, amount = law[1](*map(float, arguments))
        line, _ = at.card.where(at.offset)
        self.cards.setdefault((name, line), at)
        if any(isinstance(argument, Linear) for argument in arguments):
            return Linear(nominal)
        if amount == 0.0 or slope == 0.0:
            return nominal
        number = len(self.variables)
        if name in SHARED and arguments:
            number = self.shared.setdefault((name, SHARED[name](arguments[0])), number)
        if number == len(self.variables):
            self.variables.append(Variable(f"{name}() in line {line}", abs(amount), law[0]))
        return Linear(nominal, {number: slope})

    def decided(self, condition: Linear, at: Token) -> None:
        """Record that a condition reads a random value."""
        self.refused[f"a condition in line {at.card.where(at.offset)[0]} depends on a random value"] = None

    def taken(self, position: int, name: str, value: float, before: int) -> None:
        """Record an element's value, which includes the pending results since ``before``."""
        if isinstance(value, Linear):
            del self.waiting[before:]
            if value.terms is None:
                self.refused[f"the value of {short(name)} is not a linear combination of random values"] = None
            else:
                self.effects[position] = {**self.effects.get(position, {}), **value.terms}

    def tolerance(self, position: int, name: str, change: float, amount: float, law: Distribution) -> None:
        """Record an element's own tolerance: its value changes by ``change`` per unit deviation."""
        self.lot(-1 - len(self.variables), name, position, change, amount, law)

    def lot(self, key: int, label: str, position: int, change: float, amount: float, law: Distribution) -> None:
        """Record a tolerance shared by all elements with one ``key``."""
        if key not in self.lots:
            self.lots[key] = len(self.variables)
            self.variables.append(Variable(label, amount, law))
        self.effects.setdefault(position, {})[self.lots[key]] = change

    def scaled(self, position: int, factor: float) -> None:
        """Scale the value of an element."""
        if position in self.effects:
            self.effects[position] = {k: factor * change for k, change in self.effects[position].items()}

    def elsewhere(self, name: str, value: float) -> None:
        """Record a parameter that formulas of sources may read."""
        if isinstance(value, Linear):
            self.refused[f"parameter {short(name)} may affect something other than the value of R, L, C, V or I"] = None

    def found(self) -> Deviations:
        """The result, without variables that have no effect."""
        refused = dict(self.refused)
        for value in self.waiting:
            labels = [self.variables[k].label for k in value.terms or {}]
            what = ", ".join(labels) or "a random value"
            refused[f"{what} affects something other than the value of R, L, C, V or I"] = None
        used = sorted({k for terms in self.effects.values() for k in terms})
        number = {k: n for n, k in enumerate(used)}
        effects = {p: {number[k]: change for k, change in terms.items()} for p, terms in self.effects.items()}
        return Deviations(tuple(self.variables[k] for k in used), effects, tuple(refused))
