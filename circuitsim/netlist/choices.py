"""Values that conditions on voltages and currents choose: piecewise linear where both values meet at the threshold.

A condition is a comparison u > 0 of an affine value. Between two values that differ by a function d of u alone with
d(0) = 0 the choice is the second value + d(max(0, u)): a sum of ramps. Any other choice jumps, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.netlist import limits
from circuitsim.netlist.ramps import Affine, Ramps, scaled, total

if TYPE_CHECKING:
    from circuitsim.netlist.affine import Reference

MEET = 1e-12
"""Share of its terms by which two values may differ at the threshold: rounding of the numbers in a deck."""


class Steps(NamedTuple):
    """Numbers that conditions choose: ``yes`` where ``test`` > 0, else ``no``; each a number or further steps."""

    test: Affine
    yes: Steps | float
    no: Steps | float
    size: int


class Choices:
    """The choices of one expression.

    Parameters
    ----------
    ramps : Ramps
        Of the expression; choices add to them.
    controls : list of Reference
        Voltages and currents by number.
    """

    def __init__(self, ramps: Ramps, controls: list[Reference]) -> None:
        self.ramps, self.controls = ramps, controls

    def chosen(self, steps: Any, value: Callable[[float], Any]) -> Any:
        """``value(number)`` for the number that holds.

        Raises
        ------
        ValueError
            It jumps, or there are too many conditions.
        """
        if not isinstance(steps, Steps):
            return value(steps)
        yes, no = self.chosen(steps.yes, value), self.chosen(steps.no, value)
        if isinstance(yes, Affine) or isinstance(no, Affine):
            return self.joined(steps.test, self.affine(yes), self.affine(no))
        if yes == no:
            return yes
        size = 1 + sum(one.size for one in (yes, no) if isinstance(one, Steps))
        if size > limits.CONDITIONS:
            raise ValueError(f"more than {limits.CONDITIONS} conditions in one expression")
        return Steps(steps.test, yes, no, size)

    def affine(self, value: Any) -> Affine:
        """A value as an affine one; steps jump, so that they are none."""
        if isinstance(value, Steps):
            return self.joined(value.test, self.affine(value.yes), self.affine(value.no))
        return value if isinstance(value, Affine) else Affine(value, {})

    def joined(self, test: Affine, yes: Affine, no: Affine) -> Affine:
        """``yes`` where ``test`` > 0, else ``no``."""
        if not _clear(yes):  # the constant one is exact where it holds
            test, yes, no = scaled(test, -1.0), no, yes
        difference = _cleared(total(yes, scaled(no, -1.0)), yes, no)
        jump = self.along(difference, test, 0.0)
        slope = max(map(abs, difference.coefficients.values()), default=0.0) / max(map(abs, test.coefficients.values()))
        size = abs(yes.constant) + abs(no.constant) + slope * abs(test.constant)
        if not isinstance(jump, float) or abs(jump) > MEET * size:
            raise ValueError(self.place(test, yes, no))
        change = self.along(difference, test, self.ramps.ramp(test)) if difference.coefficients else 0.0
        return total(total(no, change), -jump if difference.coefficients else 0.0)

    def along(self, value: Affine, test: Affine, instead: Affine | float, before: int | None = None) -> Any:
        """``value`` with ``instead`` in place of ``test``; None where it is no function of ``test`` alone.

        Arguments of ramps may read the ramps ``before`` them.
        """
        pivot = max(test.coefficients, key=lambda key: abs(test.coefficients[key]))
        share = value.coefficients.get(pivot, 0.0) / test.coefficients[pivot]
        rest = _cleared(total(value, scaled(test, -share)), value, scaled(test, share))
        found: Any = (
            total(rest.constant, scaled(instead, share))
            if isinstance(instead, Affine)
            else (rest.constant + share * instead)
        )
        for key, coefficient in rest.coefficients.items():
            ramp = -1 - key
            if ramp < 0 or (before is not None and ramp >= before):
                return None
            inside = self.along(self.ramps.values[ramp], test, instead, ramp)
            if inside is None:
                return None
            if isinstance(inside, Affine):
                found = total(found, scaled(self.ramps.ramp(inside), coefficient))
            else:
                found += coefficient * max(inside, 0.0)
        return found

    def place(self, test: Affine, yes: Affine, no: Affine) -> str:
        """Where a choice jumps, and from what to what."""
        terms = sorted(_clear(test).items())
        if any(key < 0 for key, _ in terms):
            where = "where its condition changes"
        elif len(terms) == 1:
            where = f"at {self.controls[terms[0][0]].text} = {0.0 - test.constant / terms[0][1]:.6g}"
        else:
            both = " + ".join(f"{c:.6g}*{self.controls[key].text}" for key, c in terms)
            where = f"where {both.replace('+ -', '- ')} = {0.0 - test.constant:.6g}"
        ends = sorted((self.along(one, test, 0.0) for one in (yes, no)), key=lambda end: (end is None, end))
        if None in ends:
            return f"the value jumps {where}"
        return f"the value jumps by {ends[1] - ends[0]:.6g} {where} (between {ends[0]:.6g} and {ends[1]:.6g})"


def _clear(value: Affine) -> dict[int, float]:
    return {key: c for key, c in value.coefficients.items() if c}


def _cleared(value: Affine, *parts: Affine) -> Affine:
    """Without the coefficients that only rounding left of those of its parts."""
    kept = {
        key: c
        for key, c in value.coefficients.items()
        if abs(c) > MEET * max(abs(part.coefficients.get(key, 0.0)) for part in parts)
    }
    return Affine(value.constant, kept)


__all__ = ["Choices", "Steps"]
