"""AC analyses of a deck for several values of its elements and parameters: ``.ac`` with ``.step``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.analysis.probes import all_probes, parse_probes
from circuitsim.analysis.sweep_axes import Combinations, Sort, moving_at
from circuitsim.analysis.sweep_result import Sweep, runs
from circuitsim.errors import CircuitError, ConvergenceError, NoSteadyStateError, UsageError
from circuitsim.formats.result import Result
from circuitsim.formats.table import Table
from circuitsim.netlist.deck import measurements_of, steps_of
from circuitsim.small_signal.deck import asked
from circuitsim.small_signal.frequency import LARGEST, TOLERANCE, ac, response_table
from circuitsim.small_signal.measure import measure_all
from circuitsim.time_domain.measure import Failed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.netlist.deck import Deck

FREQUENCY = "frequency"


@dataclass(frozen=True, eq=False, repr=False)
class AcSweep(Result):
    """Responses of several runs.

    Attributes
    ----------
    responses : Sweep
        A row for each frequency of each run: ``frequency``, Hz, runs fastest, then the varied values; of each quantity
        magnitude, decibels and phase in degrees; nan where a run failed.
    measured : Sweep
        A row per run: the varied values and the measurements; nan where one failed.
    """

    responses: Sweep
    measured: Sweep

    def tables(self) -> dict[str, Table]:
        """``responses`` and ``measurements``."""
        return {"responses": self.responses.tables()["points"], "measurements": self.measured.tables()["points"]}

    def _figure(self) -> Figure:
        """A Bode plot: a curve per quantity and run."""
        from circuitsim.plotting.curves import plot_bode

        found, count = self.responses, self.responses.shape[0]
        header, units, columns = [FREQUENCY], ["Hz"], [found.axes[FREQUENCY][:count]]
        for k in range(len(self.measured)):
            rows = slice(k * count, (k + 1) * count)
            at = ", ".join(f"{name}={values[k]:g}" for name, values in self.measured.axes.items())
            for number, (name, column) in enumerate(found.columns.items()):
                header.append(f"{name}, {at}" if number % 3 == 0 else name)
                units.append(found.units[name])
                columns.append(column[rows])
        varied = next(iter(self.measured.axes.values()))
        return plot_bode(found.title, Table(tuple(header), tuple(units), tuple(columns)), varied)

    def _heading(self) -> tuple[str, str]:
        return self.responses.title, f"{len(self.measured)} responses over {', '.join(self.measured.axes)}"


def ac_sweep(
    deck: Deck,
    vary: Mapping[str | tuple[str, ...], Sequence[Any]] | None = None,
    columns: str | None = None,
    over: str | None = None,
    measurements: Sequence[str] | None = None,
    frequencies: Sequence[float] | np.ndarray | None = None,
    sources: Mapping[str, complex] | None = None,
    tolerance: float = TOLERANCE,
    failed: Failed | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> AcSweep:
    """Small-signal responses of a deck at all combinations of varied values.

    Parameters
    ----------
    deck : Deck
    vary : dict of str to sequence of float, optional
        As for `circuitsim.sweep`, without ``time``; the deck's ``.step`` cards without it. The first runs fastest.
    columns : str, optional
        What to keep: ``"v(out) i(R1)"``; all node voltages without it.
    over : str, optional
        A quantity that they are divided by.
    measurements : sequence of str, optional
        As ``.meas ac`` states them; those of the deck without it.
    frequencies, sources, tolerance
        See `circuitsim.ac`.
    failed : callable, optional
        Called with the error of a measurement without an answer; without it that is raised.
    progress : callable, optional
        Called with the number of runs done and the total.

    Returns
    -------
    AcSweep
        Runs without an operating point or a response are marked with their status.

    Raises
    ------
    UsageError
        Unknown names, values out of range, too many values.

    Examples
    --------
    >>> from circuitsim import loads
    >>> from circuitsim.small_signal import ac_sweep
    >>> deck = loads('''low-pass
    ... V1 in 0 AC 1
    ... R1 in out {r}
    ... C1 out 0 1u
    ... .param r=1k
    ... .ac dec 10 1 1k
    ... .step param r list 1k 2k
    ... .meas ac f3 WHEN vdb(out)=-3.0103 FALL=1
    ... ''')
    >>> ac_sweep(deck, columns="v(out)").measured["f3"].round(2).tolist()  # 1 / (2 π R C)
    [159.15, 79.58]
    """
    grid = Combinations.of(steps_of(deck) if vary is None else vary, deck)
    if any(axis.sort is Sort.TIME for axis in grid.axes):
        raise UsageError("AC analysis does not depend on the time: leave it out")
    circuit = deck.operating_circuit
    chosen = [probe for probe in all_probes(circuit) if probe.kind == "v"]
    probes = chosen if columns is None else parse_probes(columns, circuit)
    below = None if over is None else parse_probes(over, circuit)[0]
    hertz = asked(deck) if frequencies is None else np.atleast_1d(np.asarray(frequencies, dtype=float))
    if grid.points * hertz.size * 3 * len(probes) > LARGEST:
        raise UsageError(f"{grid.points:,} runs of {hertz.size:,} frequencies exceed the memory limit: take fewer")
    texts, varied = measurements_of(deck, "ac") if measurements is None else measurements, grid.varied()
    answers: list[Mapping[str, float | None]] = []
    nothing = np.zeros((3 * len(probes), 0))
    tables, errors, units = list[np.ndarray](), dict[int, CircuitError](), dict[str, str]()
    for k, values in enumerate(varied.T.tolist()):
        own, following = moving_at(deck, grid.axes, values)
        answers.append({})
        tables.append(nothing)
        try:
            found = ac(own.carrying(following), hertz, sources, tolerance)
            response = response_table(found, probes, below)  # type: ignore[arg-type]
            units = dict(zip(response.header[1:], response.units[1:]))
            tables[-1] = np.array(response.columns[1:])
            known = {name.lower(): value for name, value in following.names().items()}
            answers[-1] = measure_all(found, texts, known, failed)
        except (NoSteadyStateError, ConvergenceError) as error:
            errors[k], tables[-1] = error, nothing
        if progress is not None:
            progress(k + 1, grid.points)
    if len(errors) == grid.points:
        raise errors[0]
    axis = (FREQUENCY, "Hz", hertz)
    return AcSweep(*runs(deck.title, grid.axes, varied, grid.shape, axis, units, tables, answers, errors))
