"""Piecewise-linear functions of voltages and currents: affine values and ramps max(0, u) of affine values u.

A ramp is a control like a voltage: u may hold earlier ramps, so functions of functions need nothing more. In the
circuit it is a source of the voltage u behind an ideal diode, with a resistor to ground: the exact methods apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.circuit.elements import AFFINE_VOLTAGE, DIODE, RESISTOR
from circuitsim.circuit.laws import Law, Quantity, VoltageControl
from circuitsim.netlist import limits

if TYPE_CHECKING:
    from circuitsim.netlist.controlled_laws import PendingLaw
    from circuitsim.netlist.protocols import Elaboration

VOLTS = 1024.0
"""Volts of a ramp's node for each unit of the ramp: in other programs the drop of its diode counts for so much less."""

OHMS = 1e6
"""The resistor that a ramp's diode drives."""


class Affine(NamedTuple):
    """constant + Σ coefficients[k] · control k; control −1 − n is ramp n."""

    constant: float
    coefficients: dict[int, float]


class Ramps:
    """The ramps of one expression.

    Attributes
    ----------
    values : list of Affine
        u of each ramp max(0, u).
    """

    def __init__(self) -> None:
        self.values: list[Affine] = []
        self._numbers: dict[tuple[float, frozenset[tuple[int, float]]], int] = {}

    def ramp(self, value: Affine) -> Affine:
        """max(0, value); the same one for the same value.

        Raises
        ------
        ValueError
            Too many ramps in one expression.
        """
        key = value.constant, frozenset(value.coefficients.items())
        if key not in self._numbers:
            if len(self.values) == limits.RAMPS:
                raise ValueError(f"more than {limits.RAMPS:,} kinks in one expression")
            self.values.append(value)
            self._numbers[key] = -len(self.values)
        return Affine(0.0, {self._numbers[key]: 1.0})

    # ------------------------------------------------------------------ functions
    def larger(self, a: Any, b: Any) -> Affine:
        """max(a, b)."""
        return total(a, self.ramp(total(b, scaled(a, -1.0))))

    def smaller(self, a: Any, b: Any) -> Affine:
        """min(a, b)."""
        return total(a, scaled(self.ramp(total(a, scaled(b, -1.0))), -1.0))

    def extreme(self, best: Callable[..., float], of_two: Callable[[Any, Any], Any], *values: Any) -> Any:
        """max or min of any number of values; that of the numbers comes first."""
        numbers = [value for value in values if not isinstance(value, Affine)]
        found = ([best(numbers)] if numbers else []) + [value for value in values if isinstance(value, Affine)]
        result = found[0]
        for value in found[1:]:
            result = of_two(result, value)
        return result

    def magnitude(self, x: Affine) -> Affine:
        """|x| = 2 max(0, x) − x."""
        return total(scaled(self.ramp(x), 2.0), scaled(x, -1.0))

    def part(self, x: Affine, most: float) -> Affine:
        """``x`` held between 0 and ``most``, both exact."""
        return total(most, scaled(self.ramp(total(most, scaled(self.ramp(x), -1.0))), -1.0))

    def clamp(self, x: Any, low: Any, high: Any) -> Affine:
        """``x`` held between two bounds, in either order."""
        if isinstance(x, Affine) and not isinstance(low, Affine) and not isinstance(high, Affine):
            low, high = min(low, high), max(low, high)
            return total(low, self.part(total(x, -low), high - low))
        return self.larger(self.smaller(low, high), self.smaller(self.larger(low, high), x))

    def polygon(self, x: Any, *points: Any) -> Any:
        """The polygon through pairs of abscissa and value; constant outside."""
        places, values = points[0::2], points[1::2]
        if not isinstance(x, Affine) or any(isinstance(point, Affine) for point in points):
            raise ValueError("the points of a table must be numbers")
        if len(places) != len(values) or any(b <= a for a, b in pairwise(places)):
            raise ValueError("table needs pairs with growing first numbers")
        if len(places) == 1:
            return values[0]
        slopes = [(b - a) / (q - p) for (p, q), (a, b) in zip(pairwise(places), pairwise(values))]
        if len(places) == 2 and slopes[0]:  # in units of the value, so that both values are exact
            rise = abs(values[1] - values[0])
            part = self.part(scaled(total(x, -places[0]), abs(slopes[0])), rise)
            return total(values[0], scaled(part, math.copysign(1.0, slopes[0])))
        along = self.part(total(x, -places[0]), places[-1] - places[0])
        found = total(values[0], scaled(along, slopes[0]))
        for place, (before, behind) in zip(places[1:-1], pairwise(slopes)):
            bend = self.ramp(total(along, places[0] - place))
            for key, share in bend.coefficients.items():  # in place: a table may be long
                found.coefficients[key] = found.coefficients.get(key, 0.0) + share * (behind - before)
        return found

    def extended(self, x: Any, *points: Any) -> Any:
        """The polygon through pairs of abscissa and value, its outer segments extended."""
        places, values = points[0::2], points[1::2]
        if not isinstance(x, Affine) or any(isinstance(point, Affine) for point in points):
            raise ValueError("the points of pwl must be numbers")
        if len(places) != len(values) or any(b <= a for a, b in pairwise(places)):
            raise ValueError("pwl needs pairs with growing first numbers")
        slopes = [(b - a) / (q - p) for (p, q), (a, b) in zip(pairwise(places), pairwise(values))]
        found = total(values[0], scaled(total(x, -places[0]), slopes[0]))
        for place, (before, behind) in zip(places[1:-1], pairwise(slopes)):
            found = total(found, scaled(self.ramp(total(x, -place)), behind - before))
        return found

    def function(self, name: str) -> tuple[Callable[..., Any], int, int] | None:
        """A piecewise-linear function, its fewest and most arguments; None for all others."""
        known: dict[str, tuple[Callable[..., Any], int, int]] = {
            "max": (partial(self.extreme, max, self.larger), 1, limits.RAMPS),
            "min": (partial(self.extreme, min, self.smaller), 1, limits.RAMPS),
            "abs": (self.magnitude, 1, 1),
            "uramp": (self.ramp, 1, 1),
            "limit": (self.clamp, 3, 3),
            "table": (self.polygon, 3, 2 * limits.RAMPS + 1),
            "pwl": (self.extended, 5, 2 * limits.RAMPS + 1),
        }
        return known.get(name)


def scaled(value: Any, factor: float) -> Any:
    """``value`` times a number."""
    if not isinstance(value, Affine):
        return value * factor
    return Affine(value.constant * factor, {k: c * factor for k, c in value.coefficients.items()})


def total(left: Any, right: Any) -> Affine:
    """The sum of two values of which one at least is affine (or will be added to one)."""
    a = left if isinstance(left, Affine) else Affine(left, {})
    b = right if isinstance(right, Affine) else Affine(right, {})
    together = dict(a.coefficients)
    for k, c in b.coefficients.items():
        together[k] = together.get(k, 0.0) + c
    return Affine(a.constant + b.constant, together)


# ---------------------------------------------------------------------- elements
def built(elaborator: Elaboration) -> None:
    """Append the elements of all ramps, and put their nodes into the laws that read them."""
    out = elaborator.out
    with_ramps = sorted(k for k, pending in out.pending.items() if pending.ramps)
    taken = {name.lower() for name in out.names} if with_ramps else set()
    for position in with_ramps:
        pending = out.pending[position]
        nodes: list[int] = []
        for law, names in pending.ramps:
            nodes.append(_ramp(elaborator, pending, _placed(law, nodes, VOLTS), names, len(nodes) + 1, taken))
        out.pending[position] = pending._replace(law=_placed(pending.law, nodes, 1.0), ramps=())


def _placed(law: Law, nodes: list[int], factor: float) -> Law:
    """``factor`` times the law, with the nodes of ramps in place of their numbers."""
    voltages = [
        VoltageControl(c * factor, plus, minus)
        if plus >= 0
        else VoltageControl(c * factor / VOLTS, nodes[-1 - plus], 0)
        for c, plus, minus in law.voltages
    ]
    currents = tuple(control._replace(coefficient=control.coefficient * factor) for control in law.currents)
    return law._replace(constant=law.constant * factor, voltages=tuple(voltages), currents=currents)


def _ramp(
    elaborator: Elaboration, owner: PendingLaw, law: Law, names: tuple[str, ...], number: int, taken: set[str]
) -> int:
    """Source, diode and resistor of one ramp; the node whose voltage it is."""
    out = elaborator.out
    stem = f"{owner.own}."
    while any(f"{stem}{letter}{number}".lower() in taken for letter in "bdr") or any(
        f"{stem}{letter}{number}".lower() in out.nodes for letter in "uy"
    ):
        stem += "."
    inside, output = out.node(f"{stem}u{number}"), out.node(f"{stem}y{number}")
    source = len(out.kind)
    if not out.files or out.files[-1] != owner.card.source.name:
        out.starts.append(source)
        out.files.append(owner.card.source.name)
    for letter, code, ends, value in (
        ("B", AFFINE_VOLTAGE, (inside, 0), float("nan")),
        ("D", DIODE, (inside, output), float("nan")),
        ("R", RESISTOR, (output, 0), OHMS),
    ):
        out.kind.append(code)
        out.first.append(ends[0])
        out.second.append(ends[1])
        out.value.append(value)
        out.lines.append(owner.card.line)
        out.names.append(f"{stem}{letter}{number}")
        taken.add(f"{stem}{letter}{number}".lower())
    law = law._replace(quantity=Quantity.VOLTAGE)
    out.pending[source] = owner._replace(
        law=law, names=names, own=f"{stem}B{number}", code=AFFINE_VOLTAGE, value=float("nan"), ramps=()
    )
    return output


__all__ = ["Affine", "Ramps", "built", "scaled", "total"]
