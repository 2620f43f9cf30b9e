"""AC analyses of a deck for several values of its elements and parameters: ``.ac`` with ``.step``.

Measurements of an AC analysis in the syntax of ``.meas ac``: values, extremes, crossings, bandwidths, margins.

The circuit is solved again between the frequencies of a result: a crossing is a root of the response itself, not of an
interpolant. Means and integrals are those of the piecewise-linear interpolant.
"""

from __future__ import annotations

import re
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
from circuitsim.measurements import Between
from circuitsim.netlist.deck import measurements_of, steps_of
from circuitsim.small_signal.deck import asked
from circuitsim.small_signal.frequency import LARGEST, TOLERANCE, AcResult, ac, response, response_table
from circuitsim.time_domain.measure import Failed, Measurement, Words, in_order

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.netlist.deck import Deck

PARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "m": np.abs,
    "db": lambda z: 20.0 * np.log10(np.abs(z)),
    "p": lambda z: np.degrees(np.unwrap(np.angle(z))),
    "r": np.real,
    "i": np.imag,
}
"""Functions of an amplitude in ``vm(out)``, ``vdb(out)``, ``vp(out)`` …; the phase, in degrees, is unwrapped."""

WORDS = {"mag": "m", "abs": "m", "db": "db", "ph": "p", "phase": "p", "re": "r", "im": "i"}
"""Equivalent functions: ``db(v(out)/v(in))``."""

FORMS = "vm(a) vdb(a) vp(a) vr(a) vi(a), the same of i, v(a) for vm(a), and mag db ph re im of one or of a quotient"

_NAMED = re.compile(r"([vi])(m|db|p|r|i)?(\([^()]*\))", re.IGNORECASE)

_FUNCTION = re.compile(r"(mag|abs|db|ph|phase|re|im)\((.*)\)", re.IGNORECASE)

_PLAIN = re.compile(r"[vi]\([^()]*\)", re.IGNORECASE)


class Response(Between):
    """A real function of a response over frequency, minus a level."""

    def __init__(self, result: AcResult, part: str, above: str, below: str | None, level: float) -> None:
        self.found, self.part, self.level = result, part, level
        self.quotient = [parse_probes(text, result.circuit)[0] for text in (above, below) if text is not None]
        self.grid, self.known = result.frequencies, self._number(result)

    def _number(self, result: AcResult) -> np.ndarray:
        amplitude = response(result, self.quotient[0])
        if len(self.quotient) > 1:
            amplitude = amplitude / response(result, self.quotient[1])
        with np.errstate(divide="ignore"):
            return PARTS[self.part](amplitude) - self.level

    def at(self, frequencies: np.ndarray) -> np.ndarray:
        """Values at frequencies (n,), Hz."""
        run = ac(self.found.circuit, frequencies, self.found.sources, couplings=self.found.couplings)
        found = self._number(run)
        if self.part == "p":  # unwrapped from the nearest known phase
            near = np.interp(frequencies, self.grid, self.known)
            found += 360.0 * np.round((near - found) / 360.0)
        return found


class _Reader(Words):
    """Evaluator of one measurement over frequency."""

    def __init__(self, result: AcResult, text: str, names: Mapping[str, float]) -> None:
        shown = float(result.frequencies.min()), float(result.frequencies.max())
        super().__init__(result.circuit, shown, text, names)
        self.found = result

    def signal(self, text: str, level: float = 0.0) -> Response:
        """A function of an amplitude, or of a quotient of two."""
        bare = text.strip("{}'\"")
        named, function = _NAMED.fullmatch(bare), _FUNCTION.fullmatch(bare)
        try:
            if named is not None:
                return Response(self.found, (named[2] or "m").lower(), f"{named[1]}{named[3]}", None, level)
            if function is not None:
                above, _, below = function[2].partition("/")
                if _PLAIN.fullmatch(above) and (not below or _PLAIN.fullmatch(below)):
                    return Response(self.found, WORDS[function[1].lower()], above, below or None, level)
        except UsageError as error:
            raise self.wrong(str(error)) from None
        raise self.wrong(f"{text!r} is not an AC quantity: {FORMS}")

    def meeting(self, first: str, second: str) -> float | None:
        """The crossing at which a quantity equals a number."""
        level = self.number(second)
        return self.crossing(self.signal(first, level), first, second, level=level)

    def time(self, text: str) -> float:
        """A frequency within the result, Hz."""
        value = self.number(text)
        if not self.begin <= value <= self.stop:
            raise self.wrong(f"{text} lies outside {self.begin:g} to {self.stop:g} Hz")
        return value


def measure(result: AcResult, text: str, names: Mapping[str, float] | None = None) -> Measurement:
    """One measurement over frequency.

    Parameters
    ----------
    result : AcResult
    text : str
        What follows ``.meas ac``: ``"f3 WHEN vdb(out)=-3 FALL=1"``, ``"bw TRIG vm(out) VAL=0.5 RISE=1 TARG vm(out)
        VAL=0.5 FALL=1"``, ``"peak MAX vm(out)"``, ``"margin FIND vp(out) WHEN vdb(out)=0"``.
    names : mapping of str to float, optional
        Parameters that may stand for numbers, in lower case.

    Returns
    -------
    Measurement
        Frequencies in Hz, phases in degrees.

    Raises
    ------
    UsageError
        Another form, an unknown quantity, frequencies outside the result.

    Examples
    --------
    >>> import math
    >>> from circuitsim import ac, loads
    >>> from circuitsim.small_signal import measure
    >>> run = ac(loads("low pass\\nV1 in 0 AC 1\\nR1 in out 1k\\nC1 out 0 1u\\n.ac dec 5 1 10k\\n"))
    >>> corner = measure(run, "f3 WHEN vm(out)=0.70710678118654752 FALL=1").value
    >>> round(corner * 2 * math.pi, 6)  # 1/RC
    1000.0
    """
    return _Reader(result, text, names or {}).measurement()


def measure_all(
    result: AcResult, texts: Sequence[str], names: Mapping[str, float], failed: Failed | None = None
) -> dict[str, float | None]:
    """Measurements by name; see `circuitsim.time_domain.measure.in_order`."""
    return in_order(texts, names, lambda text, known: measure(result, text, known), failed)


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
                header.append(f"{name}  {at}" if number % 3 == 0 else name)
                units.append(found.units[name])
                columns.append(column[rows])
        varied = next(iter(self.measured.axes.items()))
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
