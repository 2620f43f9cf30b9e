"""The rows of a sweep, in blocks that any process can solve.

Where there may be several operating points a sweep follows one branch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.probes import Formula, Probe, Reader
from circuitsim.analysis.solve import prepared_switched
from circuitsim.analysis.sweep_axes import Axis, Sort, elaborated, values_at
from circuitsim.analysis.sweep_result import Failure, ends_before
from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError, Location, NoSteadyStateError, Problem
from circuitsim.netlist.deck import Deck

OWN = ("several", "jump")
"""Kinds of warnings issued once for a whole sweep, or with the values of their point."""


class Branch:
    """The last operating point of a sweep, and the events along the branch.

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
        """Continue to ``point``; returns its warnings except for those of branches."""
        self.last = point
        self._several += [warning for warning in point.warnings if warning.kind == "several"]
        for warning in point.warnings:
            if warning.kind == "jump":
                message = f"{ends_before(values)}: the operating point jumps there"
                self._jumps.append(Problem("jump", message, names=warning.names))
        return [warning for warning in point.warnings if warning.kind not in OWN]

    def warnings(self) -> list[Problem]:
        """Warnings issued once at the end."""
        found = list(self._jumps)
        if self._several:
            count, names = len(self._several), self._several[0].names
            some = "one point has" if count == 1 else f"{count} points have"
            message = f"{some} several operating points: the branch of the previous point is followed"
            found.append(Problem("several", message, names=names))
        return found


if TYPE_CHECKING:
    from circuitsim.analysis.solve import Ready
    from circuitsim.netlist.functional import FollowingSources

BLOCKS = 64
"""Target number of blocks of a sweep."""

LEAST, LARGEST = 16, 256
"""Minimum and maximum number of rows of a block."""


class Job(NamedTuple):
    """Data common to all rows; sent to other processes.

    Attributes
    ----------
    source : Circuit or Deck
    axes : tuple of Axis
        Without their values.
    probes : tuple of Probe or Formula
    solver : str
    tolerance : float
    """

    source: Circuit | Deck
    axes: tuple[Axis, ...]
    probes: tuple[Probe | Formula, ...]
    solver: str
    tolerance: float

    @property
    def follows_branch(self) -> bool:
        """Whether a row starts from the operating point of the previous one: with controlled sources or switches."""
        source = self.source
        return bool(source.laws or (source.dynamics is not None and source.dynamics.switches))


class Solved(NamedTuple):
    """Columns (n_probes, n_rows) of a block, its failures, and its distinct warnings."""

    table: np.ndarray
    failures: list[Failure]
    warnings: list[Problem]


def blocks(job: Job, varied: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The first row and the values (axes, rows) of each block; blocks depend on the number of rows alone, and there is
    one where a branch is followed."""
    points = varied.shape[1]
    size = points if job.follows_branch else max(LEAST, min(points // BLOCKS, LARGEST))
    for first in range(0, points, size):
        yield first, varied[:, first : first + size]


class Rows:
    """A sweep's rows; the circuit is prepared once for equal parameters and temperature."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._fixed = [k for k, axis in enumerate(job.axes) if axis.sort in (Sort.PARAMETER, Sort.TEMPERATURE)]
        self._formulas = any(isinstance(probe, Formula) for probe in job.probes)
        self._at: _Prepared | None = None

    def solve(self, block: tuple[int, np.ndarray], progress: Callable[[int], None] | None = None) -> Solved:
        """Solve the rows of a block, each from the row before; ``progress`` is called with the rows done."""
        first, varied = block
        axes, probes = self._job.axes, self._job.probes
        table = np.full((len(probes), varied.shape[1]), np.nan)
        failures: list[Failure] = []
        warnings: dict[str, Problem] = {}
        branch = Branch()
        for row, setting in enumerate(varied.T.tolist()):
            at = self._prepared(tuple(setting[k] for k in self._fixed))
            values = values_at(axes, setting, at.following)
            try:
                point = at.ready.solve(values, branch.last)
            except (NoSteadyStateError, ConvergenceError) as error:
                failures.append(Failure(first + row, error))
            else:
                table[:, row] = at.reader.read(point)
                for warning in branch.take(dict(zip((axis.label for axis in axes), setting)), point):
                    warnings.setdefault(str(warning), warning)
            if progress is not None:
                progress(first + row + 1)
        return Solved(table, failures, [*warnings.values(), *branch.warnings()])

    def _prepared(self, setting: tuple[float, ...]) -> _Prepared:
        """The circuit of a setting of parameters and temperature."""
        at, job = self._at, self._job
        if at is None or at.setting != setting:
            circuit, following = elaborated(job.source, [job.axes[k] for k in self._fixed], setting)
            names = following.names() if following is not None and self._formulas else {}
            ready = prepared_switched(
                circuit, circuit.dynamics if following is None else following, job.solver, job.tolerance
            )
            reader = Reader(job.probes, circuit, names)
            at = self._at = _Prepared(setting, following, ready, reader)
        return at


class _Prepared(NamedTuple):
    """A setting, its dependent sources, the prepared circuit, and the reader of the columns."""

    setting: tuple[float, ...]
    following: FollowingSources | None
    ready: Ready
    reader: Reader


def solve_block(job: Job, block: tuple[int, np.ndarray]) -> Solved:
    """Solve every row of a block, in any process."""
    return Rows(job).solve(block)


def encoded(solved: Solved) -> dict[str, np.ndarray] | None:
    """A block as arrays; None with failures, whose errors are recovered by solving the block again."""
    return None if solved.failures else {"table": solved.table, "warnings": text_of(solved.warnings)}


def decoded(arrays: dict[str, np.ndarray]) -> Solved:
    """The block of `encoded`."""
    return Solved(arrays["table"], [], problems_of(arrays["warnings"]))


def text_of(problems: Iterable[Problem]) -> np.ndarray:
    """Problems as an array of bytes."""
    rows = [
        [p.kind, p.message, p.hint, p.names, p.location and [getattr(p.location, n) for n in Location.__slots__]]
        for p in problems
    ]
    return np.frombuffer(json.dumps(rows).encode(), dtype=np.uint8)


def problems_of(text: np.ndarray) -> list[Problem]:
    """The problems of `text_of`."""
    rows: Sequence[Any] = json.loads(text.tobytes())
    return [
        Problem(kind, message, place and Location(**dict(zip(Location.__slots__, place))), hint, names)
        for kind, message, hint, names, place in rows
    ]
