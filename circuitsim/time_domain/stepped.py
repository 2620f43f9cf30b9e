"""Transient analyses of a deck for several values of its elements and parameters: ``.tran`` with ``.step``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, all_probes, parse_probes
from circuitsim.analysis.sweep_axes import Axis, Combinations, Sort, moving_at
from circuitsim.analysis.sweep_result import Sweep, runs
from circuitsim.certificate import TOLERANCE
from circuitsim.errors import CircuitError, ConvergenceError, NoSteadyStateError, Problem, UsageError
from circuitsim.formats.result import Result
from circuitsim.formats.table import Table
from circuitsim.netlist.deck import measurements_of
from circuitsim.points import computed
from circuitsim.time_domain.deck import setting
from circuitsim.time_domain.measure import MeasurementError, check_asked, measure_all, not_measured
from circuitsim.time_domain.result import TransientResult, events_table, waveform_table
from circuitsim.time_domain.run import ACCURACY, Method, output_times, transient

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from circuitsim.netlist.deck import Deck

MAX_RUNS = 100_000
MAX_VALUES = 50_000_000
"""Output times × columns × runs that a result may hold (400 MB)."""
TIME = "time"


@dataclass(frozen=True, eq=False, repr=False)
class TransientSweep(Result):
    """Waveforms of several runs.

    Attributes
    ----------
    waves : Sweep
        A row for each output time of each run: ``time``, s, runs fastest, then the varied values; nan from the time on
        at which a run ended with an error.
    measured : Sweep
        A row per run: the varied values and the measurements; nan where one failed. Without varied values one row.
    events : Table
        Changes of diodes and switches, after the values of their run.
    """

    waves: Sweep
    measured: Sweep
    events: Table

    def tables(self) -> dict[str, Table]:
        """``waveforms``, ``measurements`` and ``events``."""
        waves, measured = (sweep.tables()["points"] for sweep in (self.waves, self.measured))
        return {"waveforms": waves, "measurements": measured, "events": self.events}

    def _figure(self) -> Figure:
        return self.waves.plot()

    def _heading(self) -> tuple[str, str]:
        return self.waves.title, f"{len(self.measured)} runs over {', '.join(self.measured.axes)}"


class Job(NamedTuple):
    """Data common to all runs."""

    deck: Deck
    axes: tuple[Axis, ...]
    probes: tuple[Probe | Formula, ...]
    wanted: tuple[str, ...]
    step: float | None
    stop: float | None
    initial: Mapping[str, float] | None
    tolerance: float
    method: Method | str | None
    accuracy: float


class Run(NamedTuple):
    """Results kept of a run: columns (n_columns, n_times), measurements, events, error, why measurements failed."""

    columns: np.ndarray
    measured: dict[str, float | None]
    events: Table | None
    error: CircuitError | None
    unmeasured: list[MeasurementError]


def transient_sweep(
    deck: Deck,
    vary: Mapping[str | tuple[str, ...], Sequence[Any]],
    columns: str | Sequence[str] | None = None,
    measurements: Sequence[str] | None = None,
    step: float | None = None,
    stop: float | None = None,
    initial: Mapping[str, float] | None = None,
    tolerance: float = TOLERANCE,
    method: Method | str | None = None,
    accuracy: float = ACCURACY,
    progress: Callable[[float, int], bool | None] | None = None,
    workers: int | None = 1,
    executor: Executor | None = None,
) -> TransientSweep:
    """The waveforms of a deck at all combinations of varied values.

    Parameters
    ----------
    deck : Deck
    vary : dict of str to sequence of float
        As for `circuitsim.sweep`, without ``time``: elements, device parameters, the deck's parameters and its
        temperature. The first runs fastest. Empty: one run.
    columns : str or sequence of str, optional
        What to keep: ``"v(out) i(R1)"``; all node voltages and currents without it.
    measurements : sequence of str, optional
        As `circuitsim.time_domain.measure` takes them; those of the deck without it.
    step, stop, initial, tolerance, method, accuracy
        See `circuitsim.time_domain.transient`.
    progress : callable, optional
        Called with the runs done and the runs in all; True ends the work there, and the result has the runs done.
    workers, executor
        See `circuitsim.sweep`.

    Returns
    -------
    TransientSweep
        Runs that end with an error are marked with its status; their rows before it are kept.

    Raises
    ------
    UsageError, TopologyError
        Unknown names, values out of range, a varied source with a waveform, too many values.

    Examples
    --------
    >>> from circuitsim.netlist import loads
    >>> from circuitsim.time_domain import transient_sweep
    >>> deck = loads('''charging
    ... V1 in 0 5
    ... R1 in out {r}
    ... C1 out 0 1u ic=0
    ... .param r=1k
    ... .tran 10u 10m uic
    ... .meas tran half WHEN v(out)=2.5
    ... ''')
    >>> found = transient_sweep(deck, {"r": [1e3, 2e3]}, "v(out)")
    >>> (1e3 * found.measured["half"]).round(6).tolist()  # R C ln 2, ms
    [0.693147, 1.386294]
    """
    grid = Combinations.of(vary, deck) if vary else None
    axes = grid.axes if grid else []
    if any(axis.sort is Sort.TIME for axis in axes):
        raise UsageError("the time cannot vary over runs: --step and --stop set the output times")
    for axis in axes:
        _check(deck, axis)
    text = columns if columns is None or isinstance(columns, str) else " ".join(columns)
    probes = [*all_probes(deck.operating_circuit)] if text is None else parse_probes(text, deck.operating_circuit)
    own, many = setting(deck, step, stop, initial), grid.points if grid else 1
    times = output_times(own.begin, own.grid.stop, None, own.grid.step)
    if many > MAX_RUNS or many * times.size * max(len(probes), 1) > MAX_VALUES:
        raise UsageError(
            f"{many:,} runs of {times.size:,} output times and {len(probes):,} columns: at most {MAX_RUNS:,} runs and "
            f"{MAX_VALUES:,} values fit; take larger steps or fewer columns"
        )
    wanted = tuple(measurements_of(deck, "tran") if measurements is None else measurements)
    check_asked(deck, own.circuit, (own.begin, own.grid.stop), wanted, [axis.name for axis in axes])
    job = Job(deck, tuple(axes), tuple(probes), wanted, step, stop, initial, tolerance, method, accuracy)
    varied = grid.varied() if grid else np.zeros((0, 1))
    done: list[Run] = []
    try:
        for run in computed(partial(run_at, job), varied.T.tolist(), workers, executor):
            done.append(run)
            if progress is not None and progress(len(done), many):
                break
    except KeyboardInterrupt:  # of a worker process, which Ctrl-C reaches too
        if not done or progress is None or not progress(len(done), many):
            raise
    shape = grid.shape if grid else ()
    if len(done) < many:
        varied, shape = varied[:, : len(done)], (len(done),)
    errors = {k: run.error for k, run in enumerate(done) if run.error is not None}
    units = {str(probe): probe.unit for probe in probes}
    tables, measured = [run.columns for run in done], [run.measured for run in done]
    found = runs(deck.title, axes, varied, shape, (TIME, "s", times), units, tables, measured, errors)
    found[1].warnings = tuple(_unmeasured(job, done, varied))
    return TransientSweep(*found, _events(job, done, varied))


def _unmeasured(job: Job, done: Sequence[Run], varied: np.ndarray) -> Iterator[Problem]:
    """A warning for each measurement that failed in some runs, with the reason in the first."""
    places: dict[str, list[int]] = {}
    for k, run in enumerate(done):
        for error in run.unmeasured:
            places.setdefault(error.text, []).append(k)
    for text, failing in places.items():
        error = next(error for error in done[failing[0]].unmeasured if error.text == text)
        at = ", ".join(f"{axis.label}={value:g}" for axis, value in zip(job.axes, varied[:, failing[0]]))
        problem = not_measured(job.deck, error)
        problem.message += f" (at {at}, the first of {len(failing)} such runs)" if at else ""
        yield problem


def _check(deck: Deck, axis: Axis) -> None:
    """Refuse to vary a source with a waveform or a switch, whose value is a function of time."""
    if axis.sort is not Sort.VALUE or axis.name not in deck.operating_circuit:
        return
    place = deck.operating_circuit.element_index(axis.name)
    for kind, known in (("a source with a waveform", deck.following.waves), ("a switch", deck.following.switches)):
        if place in known:
            raise UsageError(f"{axis.name} is {kind}: write one of its numbers as a parameter, {{x}}, and vary x")


def run_at(job: Job, values: Sequence[float]) -> Run:
    """The waveforms of the run at these values of the axes, in any process."""
    circuit, following = moving_at(job.deck, job.axes, values)
    names = {name.lower(): value for name, value in following.names().items()}
    own = setting(job.deck, job.step, job.stop, job.initial, (circuit, following))
    found: object
    error: CircuitError | None = None
    unmeasured: list[MeasurementError] = []
    try:
        options: dict[str, Any] = {"tolerance": job.tolerance, "method": job.method, "accuracy": job.accuracy}
        found = transient(own.circuit, **own.arguments(), **options)
    except (NoSteadyStateError, ConvergenceError) as failed:
        found, error, failed.partial_result = failed.partial_result, failed, None
    if not isinstance(found, TransientResult):
        return Run(np.zeros((len(job.probes), 0)), {}, None, error, unmeasured)
    columns = waveform_table(found, job.probes, names).columns[1:]
    if error is not None:
        columns, measured = tuple(column[:-1] for column in columns), dict[str, float | None]()
    else:
        measured = measure_all(found, job.wanted, names, unmeasured.append)
    return Run(np.array(columns), measured, events_table(found), error, unmeasured)


def _events(job: Job, runs: Sequence[Run], varied: np.ndarray) -> Table:
    """The events of all runs."""
    empty = Table.of("time, error, changed, energy_lost", (), ("s", "s", "", "J"))
    tables = [empty if run.events is None else run.events for run in runs]
    many = [len(table.columns[0]) for table in tables]
    axes = [[value for value, n in zip(values.tolist(), many) for _ in range(n)] for values in varied]
    columns = [[cell for table in tables for cell in table.columns[k]] for k in range(len(empty.header))]
    labels, units = tuple(axis.label for axis in job.axes), tuple(axis.unit for axis in job.axes)
    return Table((*labels, *empty.header), (*units, *empty.units), (*axes, *columns))
