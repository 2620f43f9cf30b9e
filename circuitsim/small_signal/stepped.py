"""AC analyses of a deck for several values of its elements and parameters: ``.ac`` with ``.step``.

Measurements of an AC analysis in the syntax of ``.meas ac``: values, extremes, crossings, bandwidths, margins.

The circuit is solved again between the frequencies of a result: a crossing is a root of the response itself, not of an
interpolant. Means and integrals are those of the piecewise-linear interpolant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circuitsim.analysis.probes import all_probes, drawn_probes, parse_probes
from circuitsim.analysis.sweep import Sweep, moving_at
from circuitsim.errors import ConvergenceError, NoSteadyStateError, UsageError
from circuitsim.formats import Result, Table
from circuitsim.measurements import (
    Abscissa,
    Curve,
    Failed,
    Measurement,
    Reader,
    Run,
    check_size,
    combinations,
    measure_all,
    stepped,
)
from circuitsim.netlist.deck import Deck, Vary, measurements_of, steps_of
from circuitsim.small_signal.deck import asked
from circuitsim.small_signal.frequency import TOLERANCE, AcResult, ac, response, response_table

PARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "m": np.abs,
    "db": lambda z: 20.0 * np.log10(np.abs(z)),
    "p": lambda z: np.degrees(np.unwrap(np.angle(z))),
    "r": np.real,
    "i": np.imag,
}
"""Functions of an amplitude in ``vm(out)``, ``vdb(out)``, ``vp(out)`` …; the phase, in degrees, is unwrapped."""

WORDS = {"mag": "m", "abs": "m", "ph": "p", "phase": "p", "re": "r", "im": "i"}
"""Equivalent functions: ``db(v(out)/v(in))``."""

FORMS = "vm(a) vdb(a) vp(a) vr(a) vi(a), the same of i, v(a) for vm(a), and mag db ph re im of one or of a quotient"

_NAMED = re.compile(r"([vi])(m|db|p|r|i)?(\([^()]*\))", re.IGNORECASE)

_FUNCTION = re.compile(r"(m|mag|abs|db|p|ph|phase|r|re|i|im)\((.*)\)", re.IGNORECASE)

_PLAIN = re.compile(r"[vi]\([^()]*\)", re.IGNORECASE)


class Response(Curve):
    """A real function of a response over frequency, less a level."""

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

    def at(self, places: np.ndarray) -> np.ndarray:
        """Values at frequencies (n,), Hz."""
        run = ac(self.found.circuit, places, self.found.sources, couplings=self.found.couplings)
        found = self._number(run)
        if self.part == "p":  # unwrapped from the nearest known phase
            near = np.interp(places, self.grid, self.known)
            found += 360.0 * np.round((near - found) / 360.0)
        return found


class OverFrequency(Abscissa):
    """The frequency of an AC analysis, Hz."""

    def __init__(self, result: AcResult) -> None:
        first, last = float(result.frequencies.min()), float(result.frequencies.max())
        super().__init__(result.circuit, first, last, first, f"{first:g} to {last:g} Hz")
        self.found = result

    def curve(self, text: str, names: Mapping[str, float], level: float) -> Curve:
        """A function of an amplitude, or of a quotient of two, less a level."""
        bare = text.strip("{}'\"")
        if (named := _NAMED.fullmatch(bare)) is not None:
            bare = f"{named[2] or 'm'}({named[1]}{named[3]})"
        if (function := _FUNCTION.fullmatch(bare)) is not None:
            word, (above, _, below) = function[1].lower(), function[2].partition("/")
            if _PLAIN.fullmatch(above) and (not below or _PLAIN.fullmatch(below)):
                return Response(self.found, WORDS.get(word, word), above, below or None, level)
        raise UsageError(f"{text!r} is not an AC quantity: {FORMS}")


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
    return Reader(OverFrequency(result), text, names or {}).measurement()


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

    def _figure(self) -> Any:
        """A Bode plot: a curve per quantity and run."""
        from circuitsim.plotting.charts import plot_bode

        found, count = self.responses, self.responses.shape[0]
        columns = [(FREQUENCY, "Hz", found.axes[FREQUENCY][:count])]
        for k in range(len(self.measured)):
            for number, name in enumerate(found.drawn):
                called = f"{name}  {self.measured.at(k)}" if number % 3 == 0 else name
                columns.append((called, found.units[name], found.columns[name][k * count : (k + 1) * count]))
        varied = next(iter(self.measured.axes.items()))
        return plot_bode(found.title, Table(*zip(*columns)), varied)

    def _heading(self) -> tuple[str, str]:
        return self.responses.title, f"{len(self.measured)} responses over {', '.join(self.measured.axes)}"


def ac_sweep(
    deck: Deck,
    vary: Vary | None = None,
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
    grid = combinations(
        deck, steps_of(deck) if vary is None else vary, "AC analysis does not depend on the time: leave it out"
    )
    circuit = deck.operating_circuit
    chosen = [probe for probe in all_probes(circuit) if probe.kind == "v"]
    probes = chosen if columns is None else parse_probes(columns, circuit)
    below = None if over is None else parse_probes(over, circuit)[0]
    hertz = asked(deck) if frequencies is None else np.atleast_1d(np.asarray(frequencies, dtype=float))
    check_size(grid.points, hertz.size, "frequencies", 3 * len(probes))
    texts = measurements_of(deck, "ac") if measurements is None else measurements

    def run(values: Sequence[float]) -> Run:
        own, following = moving_at(deck, grid.axes, values, True)
        try:
            found = ac(own.carrying(following), hertz, sources, tolerance)
            curves = response_table(found, probes, below)  # type: ignore[arg-type]
            return Run(curves, measure_all(OverFrequency(found), texts, following.names(), failed))
        except (NoSteadyStateError, ConvergenceError) as error:
            return Run(Table((FREQUENCY,), ("Hz",), ([],)), {}, error)

    found = stepped(deck, grid, hertz, run, progress)
    if all(one.error is not None for one in found.runs):
        raise found.measured.failures[0].error
    if columns is None:
        drawn = drawn_probes(circuit, "v")
        found.curves.drawn = [name for k, name in enumerate(found.curves.columns) if probes[k // 3] in drawn]
    return AcSweep(found.curves, found.measured)
