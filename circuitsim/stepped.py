"""Analyses of a deck at several values of its elements and parameters (``.step``): curves, measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.sweep import Axis, Combinations, Failure, Sort, Sweep, moving_at
from circuitsim.errors import CircuitError, Problem, UsageError
from circuitsim.formats import Table
from circuitsim.measurements import EventError, MeasurementError, OverSweep, measure_all, not_measured
from circuitsim.points import computed

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from circuitsim.netlist.deck import Deck, Vary

MAX_RUNS = 100_000
MAX_VALUES = 50_000_000
"""Values that the curves of all runs may hold (400 MB)."""


class Run(NamedTuple):
    """What is kept of a run.

    Attributes
    ----------
    curves : Table
        Columns over the variable, the first, up to where the run ended.
    measured : dict of str to float or None
        Measurements by name.
    error : CircuitError or None
        With which the run ended.
    unmeasured : list of MeasurementError
        Why measurements failed.
    events : list of tuple
        Changes of diodes and switches, after the values of the run.
    """

    curves: Table
    measured: Mapping[str, float | None]
    error: CircuitError | None = None
    unmeasured: Sequence[MeasurementError] = ()
    events: Sequence[tuple[Any, ...]] = ()


class Stepped(NamedTuple):
    """Several runs.

    Attributes
    ----------
    curves : Sweep
        A row for each value of the variable in each run: the variable runs fastest, then the varied values; nan from
        where a run ended with an error.
    measured : Sweep
        A row per run: the varied values and the measurements; nan where one failed.
    runs : list of Run
    """

    curves: Sweep
    measured: Sweep
    runs: list[Run]


def combinations(deck: Deck, vary: Vary, refused: str) -> Combinations:
    """The varied values of runs.

    Raises
    ------
    UsageError
        Unknown names, values out of range, the time (``refused`` says why it cannot vary).
    """
    grid = Combinations.of(vary, deck)
    if any(axis.sort is Sort.TIME for axis in grid.axes):
        raise UsageError(refused)
    return grid


def check_size(runs: int, values: int, what: str, columns: int) -> None:
    """Refuse more runs, or values of the variable (``what`` they are) and columns in each, than a result may hold."""
    if runs > MAX_RUNS or runs * values * max(columns, 1) > MAX_VALUES:
        raise UsageError(
            f"{runs:,} runs of {values:,} {what} and {columns:,} columns: at most {MAX_RUNS:,} runs and "
            f"{MAX_VALUES:,} values fit; take larger steps or fewer columns"
        )


def stepped(
    deck: Deck,
    grid: Combinations,
    variable: np.ndarray,
    run: Callable[[Sequence[float]], Run],
    progress: Callable[[int, int], object] | None = None,
    workers: int | None = 1,
    executor: Executor | None = None,
) -> Stepped:
    """The runs of a deck at all combinations of varied values.

    Parameters
    ----------
    deck : Deck
    grid : Combinations
        Without any, one run.
    variable : (n,) float array
        Values of the variable of each run.
    run : callable
        The run at given values of the axes, in any process.
    progress : callable, optional
        Called with the number of runs done and the total; True ends the work there, and the result has the runs done.
    workers, executor
        See `circuitsim.sweep`.
    """
    varied, shape, done = grid.varied() if grid.groups else np.zeros((0, 1)), grid.shape, list[Run]()
    many = varied.shape[1]
    try:
        for one in computed(run, varied.T.tolist(), workers, executor):
            done.append(one)
            if progress is not None and progress(len(done), many):
                break
    except KeyboardInterrupt:  # of a worker process, which Ctrl-C reaches too
        if not done or progress is None or not progress(len(done), many):
            raise
    if len(done) < many:
        varied, shape = varied[:, : len(done)], (len(done),)
    n = variable.size
    (name, *names), (unit, *units), *_ = max((one.curves for one in done), key=lambda curves: len(curves.header))
    ends = [len(one.curves.columns[0]) for one in done]
    whole = np.full((len(names), len(done), n), np.nan)
    for k, one in enumerate(done):
        whole[:, k, : ends[k]] = one.curves.columns[1:]
    errors = [Failure(k, one.error) for k, one in enumerate(done) if one.error is not None]
    failures = [Failure(k * n + row, error) for k, error in errors for row in range(ends[k], n)]
    labels = {axis.label: values for axis, values in zip(grid.axes, varied)}
    own = {axis.label: axis.unit for axis in grid.axes}
    rows = {name: np.tile(variable, len(done))} | {label: np.repeat(values, n) for label, values in labels.items()}
    columns, all_units = dict(zip(names, whole.reshape(len(names), -1))), {name: unit, **own, **dict(zip(names, units))}
    curves = Sweep(deck.title, rows, columns, all_units, failures, [], (n, *shape))
    return Stepped(curves, measurements(deck, labels, own, shape, done, errors), done)


def measurements(
    deck: Deck,
    axes: dict[str, np.ndarray],
    units: Mapping[str, str],
    shape: tuple[int, ...],
    runs: Sequence[Run],
    errors: Sequence[Failure] = (),
) -> Sweep:
    """The measurements of runs at values of ``axes``, with a warning for each that failed in some runs."""
    names = dict.fromkeys((own for run in runs for own in run.measured), "")
    numbers = {own: np.array([run.measured.get(own) for run in runs], dtype=float) for own in names}  # None: nan
    found = Sweep(deck.title, axes, numbers, {**units, **names}, errors, [], shape)
    found.warnings = [*_unmeasured(deck, found, runs)]
    return found


def _unmeasured(deck: Deck, found: Sweep, runs: Sequence[Run]) -> Iterator[Problem]:
    """A warning for each measurement that failed in some runs, with the reason in the first."""
    failing: dict[str, list[tuple[int, MeasurementError]]] = {}
    for k, run in enumerate(runs):
        for error in run.unmeasured:
            failing.setdefault(error.text, []).append((k, error))
    for (first, error), *others in failing.values():
        problem = not_measured(deck, error)
        problem.message += f" (at {found.at(first)}, the first of {1 + len(others)} such runs)" * bool(found.axes)
        yield problem


def measure_each(deck: Deck, found: Sweep, texts: Sequence[str], asked: Sequence[str] = ()) -> Sweep:
    """Measurements over the fastest axis of a DC sweep, for all values of the others (``.dc`` in ``.step``).

    Parameters
    ----------
    deck : Deck
    found : Sweep
        Of the deck.
    texts : sequence of str
        As `circuitsim.measurements.measure_sweep` takes them.
    asked : sequence of str
        Those that are refused if they cannot be computed.

    Returns
    -------
    Sweep
        A row for each combination of the other axes; nan where a measurement failed, with a warning.

    Raises
    ------
    UsageError
        One of ``asked`` cannot be computed.

    Examples
    --------
    >>> from circuitsim import loads, sweep
    >>> from circuitsim.stepped import measure_each
    >>> deck = loads("divider\\nV1 in 0 0\\nR1 in k 1k\\nR2 k 0 1k\\n.dc V1 0 5 1\\n.step R2 list 1k 3k\\n")
    >>> measure_each(deck, sweep(deck), ["x WHEN v(k)=1.5", "top MAX v(k)"])["x"].tolist()
    [3.0, 2.0]
    """
    count, done, unmeasured = found.shape[0], list[Run](), list[MeasurementError]()

    def failed(error: MeasurementError) -> None:
        if error.text in asked and not isinstance(error, EventError):
            raise error
        unmeasured.append(error)

    for first in range(0, len(found), count):
        over = OverSweep(deck, found, slice(first, first + count))
        axes: list[Axis] = Combinations.of(over.fixed, deck).axes
        names = moving_at(deck, axes, [axis.values[0] for axis in axes])[1].names()
        measured = measure_all(over, texts, names, failed)
        done.append(Run(Table((), (), ()), measured, None, [*unmeasured]))
        unmeasured.clear()
    axes_of_runs = {name: values[::count] for name, values in list(found.axes.items())[1:]}
    return measurements(deck, axes_of_runs, {name: found.units[name] for name in axes_of_runs}, found.shape[1:], done)
