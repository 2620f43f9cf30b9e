"""Operating points over ranges of element values, device parameters, a deck's parameters and temperature, and time: one
prepared structure, results as columns.

Its rows are solved in blocks, by any process. Where there may be several operating points a sweep follows one branch.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint, Status, cause_of, status_of, warning_to_dict
from circuitsim.analysis.probes import Formula, Probe, Reader, all_probes, drawn_probes, parse_probes
from circuitsim.analysis.solve import prepared_switched
from circuitsim.arguments import QUANTITIES, anything, numbers, real, table
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.parameters import parameter
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.circuit.table import checked_value
from circuitsim.errors import (
    CircuitError,
    ConvergenceError,
    Location,
    NoSteadyStateError,
    Problem,
    UsageError,
    look_up,
    similar,
    some,
)
from circuitsim.formats import Result, Table, plain
from circuitsim.netlist.deck import (
    OVER_TIME,
    PARAMETER,
    STEADY,
    TEMPERATURE,
    TIME,
    Deck,
    OutputTimes,
    Vary,
    columns_of,
    memory,
    ranges_of,
    warn_of_time,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from circuitsim.analysis.solve import Ready
    from circuitsim.netlist.functional import FollowingSources
    from circuitsim.netlist.functions import Grid


class Failure(NamedTuple):
    """A point without an operating point: its row, and the error."""

    row: int
    error: CircuitError

    @property
    def status(self) -> Status:
        """``INFEASIBLE``, ``UNBOUNDED`` or ``NOT_CONVERGED``."""
        return status_of(self.error)


def ends_before(values: Mapping[str, float]) -> str:
    """How the warning of a jump to the point at these values begins."""
    at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    return f"the branch of operating points ends before {at}"


@dataclass(eq=False, repr=False)
class Sweep(Result):
    """The rows of a sweep as columns.

    Attributes
    ----------
    title : str
        Title of the circuit.
    axes : dict of str to (n_rows,) float array
        The varied values, Ω, V, A or the parameter's unit; the first runs fastest.
    columns : dict of str to (n_rows,) float array
        ``v(node)`` in V, ``i(element)`` in A, ``p(element)`` in W; nan in rows without an operating point.
    units : dict of str to str
        Unit of each axis (empty for parameters) and column.
    failures : sequence of Failure
    warnings : sequence of Problem
        Warnings about the operating points, each once.
    shape : tuple of int
        Number of values of each axis, in the order of ``axes``.
    measured : Sweep or None
        Measurements over the first axis, a row for all values of the others, if `circuitsim.run` makes them.
    drawn : collection of str
        The columns of the picture.
    """

    PICTURE = "plot_sweep"

    title: str
    axes: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]
    units: dict[str, str]
    failures: Sequence[Failure]
    warnings: Sequence[Problem]
    shape: tuple[int, ...]
    measured: Sweep | None = None
    drawn: Collection[str] = ()

    def __post_init__(self) -> None:
        self.drawn = self.drawn or self.columns

    @cached_property
    def status(self) -> tuple[Status, ...]:
        """The status of each row."""
        failed = {failure.row: failure.status for failure in self.failures}
        return tuple(failed.get(row, Status.SOLVED) for row in range(len(self)))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, name: str) -> np.ndarray:
        """A column (or an axis) by name; case does not matter.

        Raises
        ------
        UsageError
            No such column.
        """
        return look_up(name, self.axes | self.columns, "sweep")

    def at(self, row: int) -> str:
        """The varied values of a row, as text."""
        return ", ".join(f"{name}={values[row]:g}" for name, values in self.axes.items()) or "the deck's values"

    def grid(self, name: str) -> np.ndarray:
        """A column as an array with one axis for each swept name, in the order of ``axes``."""
        return self[name].reshape(self.shape[::-1]).transpose()

    def _jumps(self) -> np.ndarray:
        """The rows to which the operating point jumps, where the branch before them ends (n_rows,)."""
        found = np.zeros(len(self), dtype=bool)
        said = {warning.message.partition(":")[0] for warning in self.warnings if warning.kind == "jump"}
        for row in range(len(self)) if said else ():
            found[row] = ends_before({name: values[row] for name, values in self.axes.items()}) in said
        return found

    def rows(self) -> Iterator[list[Any]]:
        """Axes, status and columns of each row."""
        return map(list, self.tables()["points"].rows())

    @property
    def header(self) -> list[str]:
        """Names of what `rows` yields."""
        return [*self.axes, "status", *self.columns]

    def to_dict(self) -> dict[str, Any]:
        """The sweep as plain values: the JSON object of ``circuitsim sweep --format json`` (None where unsolved,
        or where a measurement failed)."""
        return {
            "schema": 2,
            "title": self.title,
            "axes": plain(self.axes),
            "status": [status.value for status in self.status],
            "columns": {
                name: [None if math.isnan(value) else value for value in values.tolist()]
                for name, values in self.columns.items()
            },
            "failures": [
                {"row": f.row, "status": f.status.value, "message": str(f.error), "cause": cause_of(f.error)}
                for f in self.failures
            ],
            "warnings": [warning_to_dict(warning) for warning in self.warnings],
        }

    def tables(self) -> dict[str, Table]:
        """``points``: the axes, ``status``, and the columns (nan where unsolved); and ``measurements``, if any."""
        status = [status.value for status in self.status]
        units = tuple(self.units.get(name, "") for name in self.header)
        points = Table(tuple(self.header), units, (*self.axes.values(), status, *self.columns.values()))
        return {"points": points} | (
            {} if self.measured is None else {"measurements": self.measured.tables()["points"]}
        )

    def _picture(self) -> str:
        return super()._picture() if self.columns and self.shape[0] > 1 else ""

    def _heading(self) -> tuple[str, str]:
        over = " × ".join(f"{name} ({n})" for name, n in zip(self.axes, self.shape))
        failed = f", {len(self.failures)} without an operating point" if self.failures else ""
        return self.title, f"{over}, {len(self)} points, {len(self.columns)} columns{failed}"

    def _proof(self) -> str:
        return "Certified: every point whose status is solved"


class Sort(Enum):
    """What an axis varies: a circuit value, something that requires re-elaboration of the deck, or time."""

    VALUE = "value"
    PARAMETER = "parameter"
    TEMPERATURE = "temperature"
    TIME = "time"


class Axis(NamedTuple):
    """One varied name: heading, name, unit, kind, values; the grid of a time axis."""

    label: str
    name: str
    unit: str
    sort: Sort
    values: np.ndarray
    grid: Grid | None = None


class Combinations(NamedTuple):
    """All combinations of varied values: groups of axes that vary together, the first fastest."""

    groups: list[list[Axis]]

    @classmethod
    def of(cls, vary: Vary, source: Circuit | Deck) -> Combinations:
        """From names and values, as in `circuitsim.sweep`."""
        found = cls([group(names, values, source) for names, values in vary.items()])
        labels = [axis.label for axis in found.axes]
        twice = [label for k, label in enumerate(labels) if label in labels[:k]]
        if twice:
            raise UsageError(f"{twice[0]} is varied twice")
        if not labels:
            raise UsageError("a sweep needs at least one name to vary")
        return found

    @property
    def axes(self) -> list[Axis]:
        """All axes."""
        return [axis for group in self.groups for axis in group]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each group."""
        return tuple(len(group[0].values) for group in self.groups)

    @property
    def points(self) -> int:
        """Number of combinations."""
        return math.prod(self.shape)

    def varied(self) -> np.ndarray:
        """The values (axes, points)."""
        grids = np.meshgrid(*(np.arange(n) for n in reversed(self.shape)), indexing="ij")
        rows = [grid.ravel() for grid in reversed(grids)]
        return np.array([axis.values[rows[k]] for k, group in enumerate(self.groups) for axis in group])


def group(names: str | tuple[str, ...], values: Sequence[Any], source: Circuit | Deck) -> list[Axis]:
    """Axes that vary together: one name, or several with rows of values."""
    if isinstance(names, str):
        return [_axis(names, values, source)]
    if any(len(row) != len(names) for row in values) or not names:
        raise UsageError(f"a table of {len(names)} names needs rows of {len(names)} values")
    return [_axis(name, [row[k] for row in values], source) for k, name in enumerate(names)]


def _axis(name: str, values: Sequence[float], source: Circuit | Deck) -> Axis:
    """The values of one name, checked in advance."""
    circuit, known = source, source.parameters if isinstance(source, Deck) else {}
    bare = name.removeprefix(PARAMETER)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"{name}: what varies takes several values, for instance [0, 5, 10], not {values!r}")
    column = numbers(real)(name, values)
    found = parameter(circuit, bare) if bare == name else None
    if bare == name and bare in circuit:
        index = circuit.element_index(name)
        code = int(circuit.arrays().kind[index])
        if not ELEMENTS[code].parameter:
            own = ", ".join(f"{circuit.names[index]}.{row.name}" for row in ELEMENTS[code].parameters)
            hint = f"; what can vary is {own}" if own else ""
            raise UsageError(f"{circuit.names[index]} is {_an(ELEMENTS[code].name)}: it has no value to vary{hint}")
        for value in column.tolist():
            checked_value(code, circuit.names[index], value)
    elif found is not None and found.plain:
        for value in column.tolist():
            circuit.with_values({found.name: value})
    if found is not None and found.plain:
        return Axis(found.name, found.name, found.unit, Sort.VALUE, column)
    parameters = {key.lower(): key for key in known}
    if bare.lower() in parameters:
        own = parameters[bare.lower()]
        return Axis(PARAMETER + own if own in circuit else own, own, "", Sort.PARAMETER, column)
    if ":" in bare and isinstance(source, Deck) and source.has_parameter(bare):
        return Axis(bare, bare, "", Sort.PARAMETER, column)
    if name.lower() == TEMPERATURE and isinstance(source, Deck):
        return Axis(TEMPERATURE, TEMPERATURE, "°C", Sort.TEMPERATURE, column)
    if name.lower() == TIME and isinstance(source, Deck):
        return Axis(TIME, TIME, "s", Sort.TIME, column, _grid(values, column))
    raise UsageError(_unknown(bare, [*circuit.names[:5000], *known]))


def _grid(values: Sequence[float], column: np.ndarray) -> Grid:
    """Step and stop time, the defaults of time functions."""
    from circuitsim.netlist.functions import Grid

    if isinstance(values, OutputTimes):
        return values.grid
    if column.size and column.min() < 0:
        raise UsageError("the time must not be negative")
    last = float(column.max()) if column.size else 0.0
    return Grid(last / max(column.size - 1, 1), last)


def _an(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _unknown(name: str, names: Sequence[str]) -> str:
    hint = similar(name.lower(), map(str.lower, names), f"there are {some(names)}") if names else ""
    what = f"nothing that can vary is called {name!r}: no element, no parameter of the deck"
    return f"{what}; {hint}" if hint else what


def elaborated(
    source: Circuit | Deck, axes: Sequence[Axis], setting: Sequence[float], varied: Sequence[str] = ()
) -> tuple[Circuit, FollowingSources | None]:
    """The circuit of a deck with these parameters and this temperature where the elements ``varied`` vary, and the
    sources that depend on others."""
    if not isinstance(source, Deck):
        return source, None
    stated = of_deck(axes, setting)
    return source.unfrozen(source.with_sources(*stated, False), varied, *stated, False)


def of_deck(axes: Sequence[Axis], setting: Sequence[float]) -> tuple[dict[str, float], float | None]:
    """The deck's parameters and its temperature, °C (None: its own), among varied values."""
    chosen = list(zip(axes, setting))
    temperature = next((value for axis, value in chosen if axis.sort is Sort.TEMPERATURE), None)
    return {axis.name: value for axis, value in chosen if axis.sort is Sort.PARAMETER}, temperature


def moving_at(
    deck: Deck, axes: Sequence[Axis], setting: Sequence[float], all_vary: bool = False
) -> tuple[Circuit, FollowingSources]:
    """The circuit of a deck at these values where sources vary over time (``all_vary``: all elements, as at
    frequencies), and the sources that depend on others."""
    stated = of_deck(axes, setting)
    circuit, following = found = deck.with_sources(*stated)
    given = {axis.name: value for axis, value in zip(axes, setting) if axis.sort is Sort.VALUE}
    moving = [*given, *(circuit.names[k] for k in (*following.waves, *following.formulas))]
    circuit, following = deck.unfrozen(found, None if all_vary else moving, *stated, over_time=True)
    circuit = circuit.with_values(following.of_cards(given))
    return circuit, following.of(circuit)


def values_at(axes: Sequence[Axis], values: Sequence[float], following: FollowingSources | None) -> dict[str, float]:
    """The element values of one row, including those of sources that depend on time or on other sources."""
    given = {axis.name: value for axis, value in zip(axes, values) if axis.sort is Sort.VALUE}
    if following is None:
        return given
    given = following.of_cards(given)
    if not following:
        return given
    for axis, value in zip(axes, values):
        if axis.sort is Sort.TIME and axis.grid is not None:
            return given | following.values(given, value, axis.grid)
    return given | following.values(given)


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
        self._prepared = lru_cache(1)(self._made)

    def solve(self, block: tuple[int, np.ndarray], progress: Callable[[int], None] | None = None) -> Solved:
        """Solve the rows of a block, each from the row before; ``progress`` is called with the rows done."""
        first, varied = block
        axes, probes = self._job.axes, self._job.probes
        table = np.full((len(probes), varied.shape[1]), np.nan)
        failures: list[Failure] = []
        warnings: dict[str, Problem] = {}
        branch = Branch()
        for row, setting in enumerate(varied.T.tolist()):
            following, ready, reader = self._prepared(tuple(setting[k] for k in self._fixed))
            values = values_at(axes, setting, following)
            try:
                point = ready.solve(values, branch.last)
            except (NoSteadyStateError, ConvergenceError) as error:
                failures.append(Failure(first + row, error))
            else:
                table[:, row] = reader.read(point)
                for warning in branch.take(dict(zip((axis.label for axis in axes), setting)), point):
                    warnings.setdefault(str(warning), warning)
            if progress is not None:
                progress(first + row + 1)
        return Solved(table, failures, [*warnings.values(), *branch.warnings()])

    def _made(self, setting: tuple[float, ...]) -> tuple[FollowingSources | None, Ready, Reader]:
        """For a setting of parameters and temperature the dependent sources, the prepared circuit, and the reader of
        the columns."""
        job = self._job
        varied = [axis.name for axis in job.axes if axis.sort is Sort.VALUE]
        circuit, following = elaborated(job.source, [job.axes[k] for k in self._fixed], setting, varied)
        names = following.names() if following is not None and self._formulas else {}
        ready = prepared_switched(
            circuit, circuit.dynamics if following is None else following, job.solver, job.tolerance
        )
        return following, ready, Reader(job.probes, circuit, names)


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
    rows = [[p.kind, p.message, p.hint, p.names, p.location] for p in problems]
    return np.frombuffer(json.dumps(rows).encode(), dtype=np.uint8)


def problems_of(text: np.ndarray) -> list[Problem]:
    """The problems of `text_of`."""
    rows: Sequence[Any] = json.loads(text.tobytes())
    return [
        Problem(kind, message, place and Location(*place), hint, names) for kind, message, hint, names, place in rows
    ]


MAX_POINTS = 1_000_000
MAX_VALUES = 50_000_000
"""Points × columns that a sweep may hold (400 MB)."""


@analysis(vary=table(anything, "{'V1': [0, 5]}"), columns=QUANTITIES)
def sweep(
    source: Circuit | Deck,
    vary: Vary | None = None,
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
    asked: Vary = {**(vary or {}), **values}  # type: ignore[dict-item]
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
        drawn=[str(probe) for probe in drawn_probes(circuit)] if columns is None else (),
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
