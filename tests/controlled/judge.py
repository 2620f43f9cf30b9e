"""Holds answers about circuits with controlled sources against the exact oracle."""

import enum
import warnings
from fractions import Fraction

from exact_controlled import AllPoints, Count, all_points

import circuitsim
from circuitsim import Circuit, OperatingPoint
from circuitsim.analysis.operating_point import Uniqueness
from circuitsim.errors import ConvergenceError, NoOperatingPointError, NoSteadyStateError


class Answer(enum.Enum):
    """What came of one circuit."""

    UNIQUE = "unique"
    SEVERAL = "several"
    UNKNOWN = "unknown"
    NONE = "none, proven"
    SINGULAR = "not determined, or none found"
    MISSED = "not solved, or no verdict, with exactly one operating point"
    SKIPPED = "skipped: the oracle has too many inequalities"


FAR = 10**10
"""Largest potential or current of a circuit of small values that its values determine: beyond, their rounding does."""


def judged(circuit: Circuit) -> Answer:
    """What circuitsim says; an assertion fails where it is wrong: what is proven holds for doubles, and for the
    decimals that they stand for."""
    exact, decimal = all_points(circuit), all_points(circuit, decimal=True)
    if exact is None or decimal is None:
        return Answer.SKIPPED
    counts = exact.count, decimal.count
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            point = circuitsim.solve(circuit)
    except NoSteadyStateError as error:
        proven = error.proven if isinstance(error, NoOperatingPointError) else True
        if proven:
            assert counts == (Count.NONE, Count.NONE), f"{counts}, not none: {error}"
            return Answer.NONE
        return _missed(exact, counts, Answer.SINGULAR)
    except ConvergenceError:
        return _missed(exact, counts, Answer.SINGULAR)
    shown = [point] if point.other is None else [point, point.other]
    assert all(one.certificate.certified for one in shown)
    assert counts != (Count.NONE, Count.NONE), "there is no operating point"
    if Count.CONTINUUM not in counts:
        points = [*exact.points, *decimal.points]
        assert all(any(agrees(one, *other) for other in points) for one in shown), "no exact point is near"
    if point.uniqueness is Uniqueness.UNIQUE:
        assert counts == (Count.UNIQUE, Count.UNIQUE), f"{counts}, not unique"
        return Answer.UNIQUE
    if point.uniqueness is Uniqueness.SEVERAL:
        assert not {Count.NONE, Count.UNIQUE} & set(counts), f"{counts}, not several"
        assert (shown[0].voltages != shown[1].voltages).any(), "one point twice"
        return Answer.SEVERAL
    return _missed(exact, counts, Answer.UNKNOWN)


def _missed(exact: AllPoints, counts: tuple[Count, Count], answer: Answer) -> Answer:
    if counts != (Count.UNIQUE, Count.UNIQUE) or max(abs(x) for part in exact.points[0] for x in part) > FAR:
        return answer
    return Answer.MISSED


def agrees(point: OperatingPoint, volts: list[Fraction], amperes: list[Fraction]) -> bool:
    """Whether potentials and currents are these to 1e-9 of the largest."""
    return near(point.voltages.tolist(), volts) and near(point.currents.tolist(), amperes)


def near(found: list[float], exact: list[Fraction]) -> bool:
    """Whether numbers are these to 1e-9 of the largest."""
    return all(abs(Fraction(x) - y) <= Fraction(1, 10**9) * max(map(abs, exact)) for x, y in zip(found, exact))
