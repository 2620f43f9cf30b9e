"""Operating points over ranges of element values and parameters: one prepared structure, results as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.amplified import PreparedAmplified
from circuitsim.analysis.branches import Branch
from circuitsim.analysis.expanded import PreparedExpanded
from circuitsim.analysis.operating_point import Status, warning_to_dict
from circuitsim.analysis.outcome import cause_of, status_of
from circuitsim.analysis.probes import Formula, Probe, Reader, all_probes, parse_probes
from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import ELEMENTS, Circuit
from circuitsim.circuit.columns import checked_value
from circuitsim.errors import CircuitError, ConvergenceError, NoSteadyStateError, Problem, UsageError

if TYPE_CHECKING:
    import pandas

    from circuitsim.analysis.controlled import PreparedControlled

    Ready = Prepared | PreparedAmplified | PreparedControlled | PreparedExpanded

    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.functional import FollowingSources
    from circuitsim.netlist.waveform import Grid

MAX_POINTS = 1_000_000
MAX_VALUES = 50_000_000
"""Points × columns that a sweep may hold (400 MB)."""

PARAMETER = "param:"
"""Prefix of a swept name that is a parameter of the deck although an element is called the same."""

TEMPERATURE = "temp"
"""Swept name of a deck's temperature (°C), where no parameter and no element is called the same."""

TIME = "time"
"""Swept name of the time (s) at which the sources of a deck are taken, likewise."""


class Failure(NamedTuple):
    """A point without an operating point: its row, and the error."""

    row: int
    error: CircuitError

    @property
    def status(self) -> Status:
        """``INFEASIBLE``, ``UNBOUNDED`` or ``NOT_CONVERGED``."""
        return status_of(self.error)


class Sweep:
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
    status : tuple of Status
        One a row.
    failures : tuple of Failure
    warnings : tuple of Problem
        Warnings about the operating points, each once.
    shape : tuple of int
        Number of values of each axis, in the order of ``axes``.
    """

    def __init__(
        self, title: str, axes: dict[str, np.ndarray], columns: dict[str, np.ndarray], units: dict[str, str],
        failures: Sequence[Failure], warnings: Sequence[Problem], shape: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.title, self.axes, self.columns, self.units, self.shape = title, axes, columns, units, shape
        self.failures, self.warnings = tuple(failures), tuple(warnings)
        failed = {failure.row: failure.status for failure in failures}
        self.status = tuple(failed.get(row, Status.SOLVED) for row in range(math.prod(shape)))

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, name: str) -> np.ndarray:
        """A column (or an axis) by name; case does not matter.

        Raises
        ------
        UsageError
            No such column.
        """
        for key, values in (*self.columns.items(), *self.axes.items()):
            if key.lower() == name.lower():
                return values
        raise UsageError(f"the sweep has no column {name!r}; it has {', '.join((*self.axes, *self.columns))[:300]}")

    def grid(self, name: str) -> np.ndarray:
        """A column as an array with one axis for each swept name, in the order of ``axes``."""
        return self[name].reshape(self.shape[::-1]).transpose()

    def rows(self) -> Iterator[list[float | str]]:
        """Axes, status and columns of each row."""
        axes, columns = list(self.axes.values()), list(self.columns.values())
        for row, status in enumerate(self.status):
            yield [*(float(a[row]) for a in axes), status.value, *(float(c[row]) for c in columns)]

    @property
    def header(self) -> list[str]:
        """Names of what `rows` yields."""
        return [*self.axes, "status", *self.columns]

    def to_dict(self) -> dict[str, Any]:
        """The sweep as plain values: the JSON object of ``circuitsim sweep --format json`` (None where unsolved)."""
        solved = [status is Status.SOLVED for status in self.status]
        return {
            "schema": 2,
            "title": self.title,
            "axes": {name: values.tolist() for name, values in self.axes.items()},
            "status": [status.value for status in self.status],
            "columns": {
                name: [value if there else None for value, there in zip(values.tolist(), solved)]
                for name, values in self.columns.items()
            },
            "failures": [
                {"row": f.row, "status": f.status.value, "message": str(f.error), "cause": cause_of(f.error)}
                for f in self.failures
            ],
            "warnings": [warning_to_dict(warning) for warning in self.warnings],
        }

    def to_dataframe(self) -> pandas.DataFrame:
        """One row a point: the axes, ``status``, and the columns (nan where unsolved)."""
        import pandas

        return pandas.DataFrame({**self.axes, "status": [s.value for s in self.status], **self.columns})

    def _repr_html_(self) -> str:
        from circuitsim.notebook import of_sweep

        return of_sweep(self)

    def __repr__(self) -> str:
        over = " × ".join(f"{name} ({n})" for name, n in zip(self.axes, self.shape))
        failed = f", {len(self.failures)} without a steady state" if self.failures else ""
        return f"Sweep of {self.title!r} over {over}: {len(self)} points, {len(self.columns)} columns{failed}"


def sweep(
    source: Circuit | Deck,
    vary: Mapping[str | tuple[str, ...], Sequence[Any]],
    columns: str | Sequence[str] | None = None,
    solver: str = "auto",
    tolerance: float = TOLERANCE,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Operating points at all combinations of the varied values.

    Parameters
    ----------
    source : Circuit or Deck
        A deck also lets its parameters vary.
    vary : dict of str to sequence of float
        Values by element name (of a deck: those of its card, of which ``m=`` and temperature make the element's), by
        device parameter (``D1.vfwd``), by parameter of the deck (``param:NAME`` where an
        element has the name too), of its temperature (``temp``, °C), or of the time (``time``, s) at which its sources
        are taken. A tuple of names takes rows of one value for each. The first runs fastest, as in ``.dc``.
    columns : str or sequence of str, optional
        What to keep, as in ``.print``: ``"v(out) v(a,b) i(R1) p(R1)"``. By default all node potentials and currents.
    solver, tolerance
        As for `circuitsim.solve`.
    progress : callable, optional
        Called with the points done and the points in all.

    Returns
    -------
    Sweep
        Points without a steady state are rows marked with their status, not errors.

    Raises
    ------
    UsageError, TopologyError
        Unknown names, values out of range, too many points.

    Examples
    --------
    >>> from circuitsim import Circuit, sweep
    >>> c = Circuit("half-wave rectifier")
    >>> c.voltage_source("V1", "in", "0", 1.0)
    >>> c.diode("D1", "in", "out")
    >>> c.resistor("R1", "out", "0", 1e3)
    >>> sweep(c, {"V1": [-1.0, 0.0, 2.0]}, "v(out)")["v(out)"].tolist()
    [0.0, 0.0, 2.0]
    """
    circuit = source if isinstance(source, Circuit) else source.circuit
    groups = [_group(names, values, source) for names, values in vary.items()]
    axes = [axis for group in groups for axis in group]
    twice = [axis.label for k, axis in enumerate(axes) if axis.label in [a.label for a in axes[:k]]]
    if twice:
        raise UsageError(f"{twice[0]} is varied twice")
    shape = tuple(len(group[0].values) for group in groups)
    probes = _probes(columns, source)
    points = math.prod(shape)
    if not axes or not points:
        raise UsageError("a sweep needs at least one name to vary and one value")
    if points > MAX_POINTS or points * len(probes) > MAX_VALUES:
        raise UsageError(
            f"the sweep has {points:,} points of {len(probes):,} columns; at most {MAX_POINTS:,} points and "
            f"{MAX_VALUES:,} values fit: take larger steps or fewer columns"
        )
    grids = np.meshgrid(*(np.arange(n) for n in reversed(shape)), indexing="ij")
    rows = [grid.ravel() for grid in reversed(grids)]
    varied = [axis.values[rows[k]] for k, group in enumerate(groups) for axis in group]
    table, failures, warnings = _run(source, axes, varied, probes, (solver, tolerance), progress)
    return Sweep(
        circuit.title,
        {axis.label: values for axis, values in zip(axes, varied)},
        {str(probe): table[k] for k, probe in enumerate(probes)},
        {axis.label: axis.unit for axis in axes} | {str(probe): probe.unit for probe in probes},
        failures, warnings, shape,
    )  # fmt: skip


class _Sort(Enum):
    """What an axis varies: a value of the circuit, what only another elaboration of the deck changes, or the time."""

    VALUE = "value"
    PARAMETER = "parameter"
    TEMPERATURE = "temperature"
    TIME = "time"


class _Axis(NamedTuple):
    """One varied name: its heading, the name itself, its unit, what it is, its values; the grid of a time axis."""

    label: str
    name: str
    unit: str
    sort: _Sort
    values: np.ndarray
    grid: Grid | None = None


def _group(names: str | tuple[str, ...], values: Sequence[Any], source: Circuit | Deck) -> list[_Axis]:
    """The axes that vary together: one name, or several with rows of values."""
    if isinstance(names, str):
        return [_axis(names, values, source)]
    if any(len(row) != len(names) for row in values) or not names:
        raise UsageError(f"a table of {len(names)} names needs rows of {len(names)} values")
    return [_axis(name, [row[k] for row in values], source) for k, name in enumerate(names)]


def _axis(name: str, values: Sequence[float], source: Circuit | Deck) -> _Axis:
    """The values of one name, checked before anything is solved."""
    circuit, known = (source, {}) if isinstance(source, Circuit) else (source.circuit, source.parameters)
    bare = name.removeprefix(PARAMETER)
    column = np.array([float(value) for value in values])
    place = circuit.device_parameter(bare) if bare == name else None
    if place is not None:
        return _device_axis(place, column, circuit)
    if bare == name and bare in circuit:
        index = circuit.element_index(name)
        code = int(circuit.arrays().kind[index])
        if not ELEMENTS[code].parameter:
            own = ", ".join(f"{circuit.names[index]}.{row.name}" for row in ELEMENTS[code].parameters)
            hint = f"; what can vary is {own}" if own else ""
            raise UsageError(f"{circuit.names[index]} is {_an(ELEMENTS[code].name)}: it has no value to vary{hint}")
        for value in column.tolist():
            checked_value(code, circuit.names[index], value)
        return _Axis(circuit.names[index], circuit.names[index], ELEMENTS[code].unit, _Sort.VALUE, column)
    parameters = {key.lower(): key for key in known}
    if bare.lower() in parameters:
        own = parameters[bare.lower()]
        return _Axis(PARAMETER + own if own in circuit else own, own, "", _Sort.PARAMETER, column)
    if name.lower() == TEMPERATURE and not isinstance(source, Circuit):
        return _Axis(TEMPERATURE, TEMPERATURE, "°C", _Sort.TEMPERATURE, column)
    if name.lower() == TIME and not isinstance(source, Circuit):
        return _Axis(TIME, TIME, "s", _Sort.TIME, column, _grid(values, column))
    raise UsageError(_unknown(bare, [*circuit.names[:5000], *known]))


def _grid(values: Sequence[float], column: np.ndarray) -> Grid:
    """Step and stop time that time functions refer to."""
    from circuitsim.netlist.transient import OutputTimes
    from circuitsim.netlist.waveform import Grid

    if isinstance(values, OutputTimes):
        return values.grid
    if column.size and column.min() < 0:
        raise UsageError("the time must not be negative")
    last = float(column.max()) if column.size else 0.0
    return Grid(last / max(column.size - 1, 1), last)


def _an(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _device_axis(place: tuple[int, str], column: np.ndarray, circuit: Circuit) -> _Axis:
    """Values of one parameter of a device."""
    k, parameter = place
    row = circuit.devices[k].model.parameter_called(parameter)
    label = f"{circuit.names[k]}.{parameter}"
    for number in column.tolist():
        circuit.with_values({label: number})
    return _Axis(label, label, row.unit if row is not None else "", _Sort.VALUE, column)


def _unknown(name: str, names: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"nothing that can vary is called {name!r}: no element, no parameter of the deck{hint}"


def _probes(columns: str | Sequence[str] | None, source: Circuit | Deck) -> list[Probe | Formula]:
    circuit = source if isinstance(source, Circuit) else source.circuit
    if columns is None:
        return [*all_probes(circuit)]
    found = parse_probes(columns if isinstance(columns, str) else " ".join(columns), circuit)
    if not found:
        raise UsageError("no columns: name at least one, for instance v(out)")
    return found


def _run(
    source: Circuit | Deck, axes: Sequence[_Axis], varied: Sequence[np.ndarray], probes: Sequence[Probe | Formula],
    how: tuple[str, float], progress: Callable[[int, int], None] | None,
) -> tuple[np.ndarray, list[Failure], list[Problem]]:  # fmt: skip
    """Solve every row; the columns (n_probes, n_rows), the failures, and the warnings, each text once."""
    points = varied[0].size
    table = np.full((len(probes), points), np.nan)
    failures: list[Failure] = []
    warnings: dict[str, Problem] = {}
    branch = Branch()
    for row, values, ready, reader in _points(source, axes, varied, probes, how):
        try:
            point = ready.solve(values, branch.last)
        except (NoSteadyStateError, ConvergenceError) as error:
            failures.append(Failure(row, error))
        else:
            table[:, row] = reader.read(point)
            for warning in branch.take(values, point):
                warnings.setdefault(str(warning), warning)
        if progress is not None:
            progress(row + 1, points)
    return table, failures, [*warnings.values(), *branch.warnings()]


def _points(
    source: Circuit | Deck, axes: Sequence[_Axis], varied: Sequence[np.ndarray], probes: Sequence[Probe | Formula],
    how: tuple[str, float],
) -> Iterator[tuple[int, dict[str, float], Ready, Reader]]:  # fmt: skip
    """Row, element values, and the prepared circuit, which only other parameters make anew."""
    settings = [k for k, axis in enumerate(axes) if axis.sort in (_Sort.PARAMETER, _Sort.TEMPERATURE)]
    rows = zip(*(column.tolist() for column in varied))
    groups = itertools.groupby(enumerate(rows), key=lambda item: tuple(item[1][k] for k in settings))
    for setting, group in groups:
        circuit, following = _elaborated(source, [axes[k] for k in settings], setting)
        formulas = following is not None and any(isinstance(probe, Formula) for probe in probes)
        names = following.names() if following is not None and formulas else {}
        ready, reader = prepared(circuit, *how), Reader(probes, circuit, names)
        for row, values in group:
            yield row, _values_at(axes, values, following), ready, reader


def _elaborated(
    source: Circuit | Deck, axes: Sequence[_Axis], setting: Sequence[float]
) -> tuple[Circuit, FollowingSources | None]:
    """The circuit of a deck with these parameters and this temperature, and the sources that follow others."""
    if isinstance(source, Circuit):
        return source, None
    chosen = list(zip(axes, setting))
    temperature = next((value for axis, value in chosen if axis.sort is _Sort.TEMPERATURE), None)
    own = {axis.name: value for axis, value in chosen if axis.sort is _Sort.PARAMETER}
    circuit, following = source.elaborate_with_sources(own, temperature)
    return circuit, following


def _values_at(axes: Sequence[_Axis], values: Sequence[float], following: FollowingSources | None) -> dict[str, float]:
    """The element values of one row, those of sources that follow the time or other sources among them."""
    given = {axis.name: value for axis, value in zip(axes, values) if axis.sort is _Sort.VALUE}
    if following is None:
        return given
    given = following.of_cards(given)
    if not following:
        return given
    for axis, value in zip(axes, values):
        if axis.sort is _Sort.TIME and axis.grid is not None:
            return given | following.values(given, value, axis.grid)
    return given | following.values(given)
