"""Operating points with sources whose values are formulas of other sources' values, or of voltages and currents that do
not depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from circuitsim.analysis.operating_point import OperatingPoint, Values, check_start
from circuitsim.analysis.switching import Solvable
from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError
from circuitsim.netlist.functional import FollowingSources


@dataclass(frozen=True, eq=False)
class PreparedFollowing:
    """A prepared circuit with such sources, which are independent sources of the inner one.

    Formulas of values that independent sources fix are known before. The first operating point has zeros in place of
    all others. Each further one has the values of one more level, which the one before determines
    (`circuitsim.netlist.dependence`); the last one no longer depends on the zeros.

    Attributes
    ----------
    circuit : Circuit
    inner : Solvable
    sources : FollowingSources
    tolerance : float
        Largest difference between the value of a source and that of its formula at the operating point, relative.
    """

    circuit: Circuit
    inner: Solvable
    sources: FollowingSources
    tolerance: float

    def solve(self, values: Values = None, start: OperatingPoint | None = None) -> OperatingPoint:
        """The operating point with other values; see `Prepared.solve`. A source named in ``values`` has that value.

        Raises
        ------
        NetlistError
            A formula has no value.
        UsageError
            A law of the circuit holds a value that would change.
        ConvergenceError
            The value of a formula changes by its rounding.
        """
        check_start(start)
        names, levels = self.circuit.names, self.sources.in_order()
        given = self.circuit.changes(values)
        stated = {name.lower() for name in given}
        open_ = [[k for k in level if names[k].lower() not in stated] for level in levels]
        found = self.sources.values(given) | {names[k]: 0.0 for level in open_ for k in level}
        point = self.inner.solve({**given, **found}, start)
        for level in open_:
            found |= {names[k]: self.sources.at_point(k, point) for k in level}
            point = self.inner.solve({**given, **found}, start)
        for k, value in ((k, found[names[k]]) for level in open_ for k in level):
            name, now = names[k], self.sources.at_point(k, point)
            if not abs(now - value) <= self.tolerance * max(abs(now), abs(value)):
                raise ConvergenceError(
                    f"{name}: the value of its formula, {now:.6g}, changes with the rounding of what it reads"
                )
        return point
