"""Operating points over ranges of element values and parameters: one prepared structure, results as columns.

Its rows are solved in blocks, by any process. Where there may be several operating points a sweep follows one branch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.probes import Formula, Probe, Reader, all_probes, parse_probes
from circuitsim.analysis.solve import prepared_switched
from circuitsim.analysis.sweep_axes import Axis, Combinations, Sort, elaborated, values_at
from circuitsim.analysis.sweep_result import Failure, Sweep, ends_before
from circuitsim.arguments import QUANTITIES, anything, table
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.errors import ConvergenceError, Location, NoSteadyStateError, Problem, UsageError
from circuitsim.netlist.deck import OVER_TIME, STEADY, TIME, Deck, Vary, columns_of, memory, ranges_of, warn_of_time

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from circuitsim.analysis.solve import Ready
    from circuitsim.netlist.functional import FollowingSources

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
            varied = [axis.name for axis in job.axes if axis.sort is Sort.VALUE]
            circuit, following = elaborated(job.source, [job.axes[k] for k in self._fixed], setting, varied)
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


MAX_POINTS = 1_000_000
MAX_VALUES = 50_000_000
"""Points × columns that a sweep may hold (400 MB)."""


@analysis(vary=table(anything, "{'V1': [0, 5]}"), columns=QUANTITIES)
def sweep(
    source: Circuit | Deck,
    vary: Mapping[str | tuple[str, ...], Sequence[Any]] | None = None,
    columns: str | Sequence[str] | None = None,
    solver: str = "auto",
    tolerance: float = TOLERANCE,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = 1,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **values: Sequence[Any],
) -> Sweep:
    """Operating points at all combinations of the varied values.

    Parameters
    ----------
    source : Circuit or Deck
        A deck also lets its parameters vary.
    vary : dict of str to sequence of float, optional
        By default what a deck's ``.dc``, ``.step`` and ``.temp`` cards vary. Values by element name (of
        a deck: those of its card, of which ``m=`` and temperature make the element's), by
        device parameter (``D1.vfwd``), by parameter of the deck (``param:NAME`` where an
        element has the name too), of its temperature (``temp``, °C), or of the time (``time``, s) at which its sources
        are taken. A tuple of names takes rows of one value for each. The first runs fastest, as in ``.dc``.
    columns : str or sequence of str, optional
        What to keep: ``"v(out) v(a,b) i(R1) p(R1)"``; by default what a deck's ``.print`` names, else all node voltages
        and currents.
    solver, tolerance
        As for `circuitsim.solve`.
    progress : callable, optional
        Called with the number of points done and the total.
    workers : int, optional
        Processes; 1: only this one; None: a thread per processor. Results do not depend on it. With controlled
        sources the rows follow one another in one task.
    executor : concurrent.futures.Executor, optional
        Runs the tasks, in place of ``workers``.
    checkpoint : path, optional
        A folder for finished blocks of rows: the same call resumes after them.
    **values : sequence of float
        More of ``vary``, by names that Python can write: ``sweep(circuit, V1=[0, 5])``.

    Returns
    -------
    Sweep
        Points without a steady state are rows marked with their status, not errors.

    Raises
    ------
    UsageError, TopologyError
        Unknown names, values out of range, too many points, a checkpoint of another sweep.
    WorkerError
        A worker process was killed.

    Examples
    --------
    >>> from circuitsim import Circuit, sweep
    >>> c = Circuit("half-wave rectifier")
    >>> c.voltage_source("V1", "in", "0", 1.0)
    >>> c.diode("D1", "in", "out")
    >>> c.resistor("R1", "out", "0", 1e3)
    >>> sweep(c, columns="v(out)", V1=[-1.0, 0.0, 2.0])["v(out)"].tolist()
    [0.0, 0.0, 2.0]
    """
    circuit = circuit_of(source)
    asked: Vary = dict(vary or {})
    asked.update(values)
    if not asked and isinstance(source, Deck):
        asked = ranges_of(source)
        if TIME in asked and memory(circuit):
            raise UsageError("the deck has a .tran: use circuitsim.transient, or transient_sweep for .step")
    if TIME not in asked:
        warn_of_time(source)
    if columns is None and isinstance(source, Deck):
        stated = columns_of(source, OVER_TIME if TIME in asked else STEADY)
        columns = None if stated is None else [stated]
    grid = Combinations.of(asked, source)
    axes, points = grid.axes, grid.points
    if not isinstance(source, Deck) and circuit.dynamics is not None:
        circuit.dynamics.check_changes([axis.name for axis in axes])
    probes = _probes(columns, source)
    if points > MAX_POINTS or points * len(probes) > MAX_VALUES:
        raise UsageError(
            f"the sweep has {points:,} points of {len(probes):,} columns; at most {MAX_POINTS:,} points and "
            f"{MAX_VALUES:,} values fit: take larger steps or fewer columns"
        )
    varied = grid.varied()
    bare = tuple(axis._replace(values=axis.values[:0]) for axis in axes)
    job = Job(source, bare, tuple(probes), solver, tolerance)
    table, failures, warnings = _solved(job, varied, progress, (workers, executor), checkpoint)
    return Sweep(
        circuit.title,
        {axis.label: values for axis, values in zip(axes, varied)},
        {str(probe): table[k] for k, probe in enumerate(probes)},
        {axis.label: axis.unit for axis in axes} | {str(probe): probe.unit for probe in probes},
        failures,
        warnings,
        grid.shape,
    )


def _probes(columns: Sequence[str] | None, source: Circuit | Deck) -> list[Probe | Formula]:
    circuit = circuit_of(source)
    if columns is None:
        return [*all_probes(circuit)]
    found = parse_probes(" ".join(columns), circuit)
    if not found:
        raise UsageError("no columns: name at least one, for instance v(out)")
    return found


def _solved(
    job: Job,
    varied: np.ndarray,
    progress: Callable[[int, int], None] | None,
    where: tuple[int | None, Executor | None],
    checkpoint: str | os.PathLike[str] | None,
) -> Solved:
    """All rows (n_axes, n_rows), here or elsewhere."""
    # Here: a single operating point needs no modules of processes.
    from circuitsim.points import Journal, computed

    points = varied.shape[1]
    journal = None if checkpoint is None else Journal(Path(checkpoint), (job, varied), encoded, decoded)
    tables: list[np.ndarray] = []
    failures: list[Failure] = []
    warnings: dict[str, Problem] = {}
    (workers, executor), rows = where, Rows(job)

    def solve_here(block: tuple[int, np.ndarray]) -> Solved:
        return rows.solve(block, None if progress is None else lambda done: progress(done, points))

    here = workers == 1 and executor is None
    for solved in computed(
        solve_here if here else partial(solve_block, job), blocks(job, varied), workers, executor, journal
    ):
        tables.append(solved.table)
        failures += solved.failures
        for warning in solved.warnings:
            warnings.setdefault(str(warning), warning)
        if progress is not None and not here:
            progress(sum(table.shape[1] for table in tables), points)
    return Solved(np.concatenate(tables, axis=1), failures, [*warnings.values()])
