"""Transient analyses of a deck for several values of its elements and parameters: ``.tran`` with ``.step``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from circuitsim.analysis.probes import Formula, Probe, all_probes, drawn_probes, parse_probes
from circuitsim.analysis.sweep import Axis, Combinations, Sort, Sweep, moving_at
from circuitsim.certificate import TOLERANCE
from circuitsim.errors import CircuitError, ConvergenceError, NoSteadyStateError, UsageError
from circuitsim.formats import Result, Table
from circuitsim.measurements import MeasurementError, Run, check_asked, check_size, combinations, measure_all, stepped
from circuitsim.netlist.deck import Deck, Vary, measurements_of
from circuitsim.time_domain.deck import setting
from circuitsim.time_domain.result import EVENT_UNITS, EVENTS, TransientResult, events_table, waveform_table
from circuitsim.time_domain.run import ACCURACY, Method, output_times, transient
from circuitsim.time_domain.signals import OverTime

if TYPE_CHECKING:
    from concurrent.futures import Executor


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

    def _figure(self) -> Any:
        return self.waves.plot()

    def _heading(self) -> tuple[str, str]:
        return self.waves.title, f"{len(self.measured)} runs over {', '.join(self.measured.axes)}"


def transient_sweep(
    deck: Deck,
    vary: Vary,
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
    refused = "the time cannot vary over runs: --step and --stop set the output times"
    grid = combinations(deck, vary, refused) if vary else Combinations([])
    for axis in grid.axes:
        _check(deck, axis)
    text = columns if columns is None or isinstance(columns, str) else " ".join(columns)
    probes = [*all_probes(deck.operating_circuit)] if text is None else parse_probes(text, deck.operating_circuit)
    own = setting(deck, step, stop, initial)
    times = output_times(own.begin, own.stop, None, own.step)
    check_size(grid.points, times.size, "output times", len(probes))
    wanted = tuple(measurements_of(deck, "tran") if measurements is None else measurements)
    check_asked(deck, own.circuit, (own.begin, own.stop), wanted, [axis.name for axis in grid.axes])
    options = {"tolerance": tolerance, "method": method, "accuracy": accuracy}
    run = partial(run_at, deck, grid.axes, probes, wanted, (step, stop, initial), options)
    found = stepped(deck, grid, times, run, progress, workers, executor)
    if text is None:
        found.curves.drawn = [str(probe) for probe in drawn_probes(deck.operating_circuit)]
    labels, units = [axis.label for axis in grid.axes], [axis.unit for axis in grid.axes]
    events = [row for run in found.runs for row in run.events]
    table = Table.of(", ".join([*labels, EVENTS]), events, (*units, *EVENT_UNITS))
    return TransientSweep(found.curves, found.measured, table)


def _check(deck: Deck, axis: Axis) -> None:
    """Refuse to vary a source with a waveform or a switch, whose value is a function of time."""
    if axis.sort is not Sort.VALUE or axis.name not in deck.operating_circuit:
        return
    place = deck.operating_circuit.element_index(axis.name)
    for kind, known in (("a source with a waveform", deck.following.waves), ("a switch", deck.following.switches)):
        if place in known:
            raise UsageError(f"{axis.name} is {kind}: write one of its numbers as a parameter, {{x}}, and vary x")


def run_at(
    deck: Deck,
    axes: Sequence[Axis],
    probes: Sequence[Probe | Formula],
    wanted: Sequence[str],
    times: tuple[float | None, float | None, Mapping[str, float] | None],
    options: Mapping[str, Any],
    values: Sequence[float],
) -> Run:
    """The waveforms of the run at these values of the axes, in any process; see `transient_sweep`."""
    circuit, following = moving_at(deck, axes, values)
    names = following.names()
    own = setting(deck, *times, (circuit, following))
    found: object
    error: CircuitError | None = None
    try:
        found = transient(**own._asdict(), **options)
    except (NoSteadyStateError, ConvergenceError) as failed:
        found, error, failed.partial_result = failed.partial_result, failed, None
    if not isinstance(found, TransientResult):
        header, units = (TIME, *map(str, probes)), ("s", *(probe.unit for probe in probes))
        return Run(Table(header, units, ([],) * len(header)), {}, error)
    curves, unmeasured = waveform_table(found, probes, names), list[MeasurementError]()
    events = [(*values, *row) for row in events_table(found).rows()]
    if error is not None:
        columns = tuple(column[:-1] for column in curves.columns)
        return Run(curves._replace(columns=columns), {}, error, (), events)
    measured = measure_all(OverTime(found), wanted, names, unmeasured.append)
    return Run(curves, measured, None, unmeasured, events)
