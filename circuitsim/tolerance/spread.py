"""Tolerances: which numbers of a circuit deviate, how far, with which distribution, and which of them together."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from circuitsim.analysis.parameters import names_of
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.units import NumberError, parse

SIGMAS = 3.0
"""Standard deviations of a normal distribution that its tolerance stands for."""

FORM = "write NAMES=AMOUNT, for instance 'R*=1%', 'R*=1%,normal', 'V1=0.1', 'R*=0.5%,lot'"


class Distribution(enum.Enum):
    """How a deviation is spread over ± its tolerance."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    """The tolerance is three standard deviations; larger deviations occur."""
    TRUNCATED = "truncated"
    """Normal, without what lies beyond the tolerance."""


class Tolerance(NamedTuple):
    """One statement of tolerances.

    Attributes
    ----------
    names : str
        Of elements and device parameters (``D1.vfwd``); ``*`` and ``?`` stand for other characters.
    amount : float
        Largest deviation: of the value where ``relative``, else in its unit.
    relative : bool
    distribution : Distribution
    lot : bool
        Whether all that ``names`` matches deviate by one common share; else each by its own.
    """

    names: str
    amount: float
    relative: bool = True
    distribution: Distribution = Distribution.UNIFORM
    lot: bool = False

    def __str__(self) -> str:
        amount = f"{100.0 * self.amount:g}%" if self.relative else f"{self.amount:g}"
        words = ([] if self.distribution is Distribution.UNIFORM else [self.distribution.value]) + ["lot"] * self.lot
        return ",".join([f"{self.names}={amount}", *words])


def parse_tolerance(text: str) -> Tolerance:
    """A tolerance as ``--tol`` has it.

    Raises
    ------
    UsageError
        Text of another form, an amount that is not positive.

    Examples
    --------
    >>> parse_tolerance("R*=1%,normal").amount
    0.01
    """
    names, equals, rest = text.partition("=")
    words = [word.strip().lower() for word in rest.split(",")]
    if not equals or not names.strip() or not words[0]:
        raise UsageError(f"--tol {text!r}: {FORM}")
    relative = words[0].endswith("%")
    try:
        amount = parse(words[0].removesuffix("%")) / (100.0 if relative else 1.0)
    except NumberError as error:
        raise UsageError(f"--tol {text!r}: {error}; {FORM}") from None
    if not 0.0 < amount < math.inf:
        raise UsageError(f"--tol {text!r}: the tolerance must be positive")
    known = {one.value: one for one in Distribution}
    distribution, lot = Distribution.UNIFORM, False
    for word in words[1:]:
        if word == "lot":
            lot = True
        elif word in known:
            distribution = known[word]
        else:
            raise UsageError(f"--tol {text!r}: {word!r} is none of {', '.join(known)}, lot")
    return Tolerance(names.strip(), amount, relative, distribution, lot)


class Spread(NamedTuple):
    """The tolerances of one circuit.

    Attributes
    ----------
    names : tuple of str
        The p numbers that deviate.
    nominal : (p,) float array
        Their values.
    variables : tuple of str
        Names of the v independent random variables, as tables show them.
    amount : (v,) float array
        Largest deviation of each.
    distribution : tuple of Distribution
    weights : (v, p) sparse float array
        Change of each number by a deviation of 1: values = nominal + deviations @ weights. Mostly one entry a row.
    """

    names: tuple[str, ...]
    nominal: np.ndarray
    variables: tuple[str, ...]
    amount: np.ndarray
    distribution: tuple[Distribution, ...]
    weights: csr_array

    def values(self, deviations: np.ndarray) -> np.ndarray:
        """Values (…, p) of the numbers for deviations (…, v)."""
        return self.nominal + deviations @ self.weights


def spread_of(circuit: Circuit, tolerances: Sequence[Tolerance]) -> Spread:
    """The independent variables that tolerances mean for a circuit.

    Of several tolerances of single elements that match one, the last counts; lots are added to them.

    Raises
    ------
    UsageError
        A tolerance that matches nothing, or nothing with a value other than zero; a resistance that may become
        negative.
    """
    known = names_of(circuit)
    lower = [name.lower() for name in known]
    own: dict[int, Tolerance] = {}
    lots: list[tuple[Tolerance, list[int]]] = []
    for tolerance in tolerances:
        pattern = re.sub(r"\[", "[[]", tolerance.names.lower())
        found = [k for k, name in enumerate(lower) if fnmatchcase(name, pattern)]
        # R* means the elements; parameters of devices are named with their dot.
        found = [k for k in found if ("." in tolerance.names) or known[k] in circuit]
        found = [k for k in found if not tolerance.relative or value_of(circuit, known[k]) != 0.0]
        if not found:
            raise UsageError(f"--tol {tolerance}: no element or parameter with a value other than zero is called so")
        if tolerance.lot:
            lots.append((tolerance, found))
        else:
            own |= dict.fromkeys(found, tolerance)
    places = sorted({*own, *(k for _, members in lots for k in members)})
    if not places:
        raise UsageError("no tolerance: give at least one, for instance --tol 'R*=1%'")
    column = {k: p for p, k in enumerate(places)}
    nominal = np.array([value_of(circuit, known[k]) for k in places])
    rows = [(known[k], own[k], [k]) for k in places if k in own]
    rows += [(f"{t.names} (lot)", t, members) for t, members in lots]
    own_row = [row for row, (_, _, members) in enumerate(rows) for _ in members]
    place = [column[k] for _, _, members in rows for k in members]
    change = [abs(nominal[column[k]]) if t.relative else 1.0 for _, t, members in rows for k in members]
    weights = csr_array((change, (own_row, place)), shape=(len(rows), len(places)))
    spread = Spread(
        tuple(known[k] for k in places), nominal, tuple(name for name, _, _ in rows),
        np.array([t.amount for _, t, _ in rows]), tuple(t.distribution for _, t, _ in rows), weights,
    )  # fmt: skip
    _check(circuit, spread)
    return spread


def _check(circuit: Circuit, spread: Spread) -> None:
    """Refuse tolerances with which a resistance may not be positive."""
    least = spread.nominal - spread.amount @ abs(spread.weights)
    for name, value in zip(spread.names, least.tolist()):
        if name in circuit and circuit[name].kind == "resistor" and value <= 0.0:
            raise UsageError(f"with its tolerance the resistance of {name} may be {value:g} Ω: it must stay positive")


def value_of(circuit: Circuit, name: str) -> float:
    """The value of an element or of a device's parameter."""
    if name in circuit:
        return float(circuit.columns()[3][circuit.element_index(name)])
    element, _, parameter = name.rpartition(".")
    return float(circuit.device_of(element).parameters()[parameter.lower()])


__all__ = ["Distribution", "Spread", "Tolerance", "parse_tolerance", "spread_of", "value_of"]
