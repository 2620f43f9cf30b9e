"""Holds answers about circuits with controlled sources against the exact oracle."""

from __future__ import annotations

import enum
import warnings
from fractions import Fraction

from exact_controlled import all_points

import circuitsim
from circuitsim import Circuit, OperatingPoint
from circuitsim.controlled.verdict import Uniqueness
from circuitsim.errors import ConvergenceError, NoOperatingPointError, NoSteadyStateError


class Answer(enum.Enum):
    """What came of one circuit."""

    UNIQUE = "unique"
    SEVERAL = "several"
    UNKNOWN = "unknown"
    NONE = "none, proven"
    SINGULAR = "not determined, or none found"
    UNCERTIFIED = "an error: not certified"
    SKIPPED = "skipped"
    """Not called unique; a state leaves currents or voltages open, or at a kink the rounding of decimals decides."""


def judged(circuit: Circuit) -> Answer:
    """What circuitsim says; an assertion fails where it is wrong."""
    exact = all_points(circuit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            point = circuitsim.solve(circuit)
    except NoSteadyStateError as error:
        if exact is None:
            return Answer.SINGULAR
        proven = error.proven if isinstance(error, NoOperatingPointError) else True
        assert not exact.points or not proven, f"missed {len(exact.points)} operating points: {error}"
        return Answer.NONE if proven else Answer.SINGULAR
    except ConvergenceError:
        return Answer.UNCERTIFIED
    if exact is None:
        return Answer.SKIPPED
    shown = [point] if point.other is None else [point, point.other]
    assert all(one.certificate.certified for one in shown)
    unique = point.uniqueness is Uniqueness.UNIQUE
    if not unique and (exact.open or any(one.kink.any() for one in shown)):
        return Answer.SKIPPED
    if unique and exact.open:  # currents that diodes in loops share in any proportion: the potentials are held
        volts = [volts for volts, _ in exact.points]
        assert all(one == volts[0] for one in volts[1:]), f"false unique: {len(volts)}"
        assert not volts or near(point.voltages.tolist(), volts[0]), "other potentials"
        return Answer.UNIQUE
    assert all(any(agrees(one, *other) for other in exact.points) for one in shown), "no exact operating point is near"
    if unique:
        assert len(exact.points) == 1, f"false unique: {len(exact.points)}"
        return Answer.UNIQUE
    if point.uniqueness is Uniqueness.SEVERAL:
        assert len(exact.points) > 1, "false several"
        assert not any(all(agrees(one, *other) for one in shown) for other in exact.points)
        return Answer.SEVERAL
    return Answer.UNKNOWN


def agrees(point: OperatingPoint, volts: list[Fraction], amperes: list[Fraction]) -> bool:
    """Whether potentials and currents are these to 1e-9 of the largest."""
    return near(point.voltages.tolist(), volts) and near(point.currents.tolist(), amperes)


def near(found: list[float], exact: list[Fraction]) -> bool:
    """Whether numbers are these to 1e-9 of the largest."""
    return all(abs(Fraction(x) - y) <= Fraction(1, 10**9) * max(map(abs, exact)) for x, y in zip(found, exact))
