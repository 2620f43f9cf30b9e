"""The branch of operating points that a sweep follows where there may be several."""

from __future__ import annotations

from collections.abc import Mapping

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.errors import Problem

OWN = ("several", "jump")
"""Kinds of warnings that are said once for a whole sweep, or with the values of their point."""


class Branch:
    """The last operating point of a sweep, and what happened on the way.

    Attributes
    ----------
    last : OperatingPoint or None
        The start of the next point.
    """

    def __init__(self) -> None:
        self.last: OperatingPoint | None = None
        self._several: list[Problem] = []
        self._jumps: list[Problem] = []

    def take(self, values: Mapping[str, float], point: OperatingPoint) -> list[Problem]:
        """Go on to ``point``; its warnings but for those of branches."""
        self.last = point
        self._several += [warning for warning in point.warnings if warning.kind == "several"]
        at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
        for warning in point.warnings:
            if warning.kind == "jump":
                message = f"the branch of operating points ends before {at}: the operating point jumps there"
                self._jumps.append(Problem("jump", message, names=warning.names))
        return [warning for warning in point.warnings if warning.kind not in OWN]

    def warnings(self) -> list[Problem]:
        """What is said once at the end."""
        found = list(self._jumps)
        if self._several:
            count, names = len(self._several), self._several[0].names
            some = "one point has" if count == 1 else f"{count} points have"
            message = f"{some} several operating points: the branch of the point before is followed"
            found.append(Problem("several", message, names=names))
        return found
