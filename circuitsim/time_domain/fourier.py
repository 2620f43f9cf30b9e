"""Fourier series of waveforms (``.four``): integrals over whole periods, by Gauss quadrature between events.

Output times play no role: between two events of an exact run a waveform is smooth, so its coefficients are as accurate
as the waveform.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, parse_probe, parse_probes
from circuitsim.circuit import Circuit
from circuitsim.errors import Problem, ResultWarning, UsageError
from circuitsim.formats import Result, Table
from circuitsim.netlist.deck import Deck, FourierCard, lowered
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.result import TransientResult
from circuitsim.time_domain.signals import Signal
from circuitsim.units import format_quantity, parse

FORM = "FREQUENCY [harmonics [periods]] v(out) i(R1) …"
NODES, NODES_OF_STEPS = 32, 4
"""Quadrature nodes per part of a segment of an exact run, and per step of an implicit one."""
CYCLES, CYCLES_OF_STEPS = 1.0, 0.125
"""Maximum number of periods of the highest harmonic in one part."""
TOGETHER = 4096
"""Number of parts evaluated together."""
MOST = 100_000
"""Maximum number of harmonics."""


@dataclass(frozen=True, eq=False, repr=False)
class FourierSeries(Result):
    """mean + Σ amplitude · sin(2π k frequency t + phase), k = 1, 2, …

    Attributes
    ----------
    quantity : str
    frequency : float
        Hz.
    mean : float
        V, A or W.
    amplitude : (harmonics,) float array
        V, A or W.
    phase : (harmonics,) float array
        Degrees, at time 0.
    """

    PICTURE = "plot_harmonics"

    quantity: str
    frequency: float
    mean: float
    amplitude: np.ndarray
    phase: np.ndarray

    @property
    def distortion(self) -> float:
        """The total harmonic distortion: the root of Σ amplitude² from the second harmonic on, of the first; infinite
        without a first one."""
        first, others = float(self.amplitude[0]), float(np.linalg.norm(self.amplitude[1:]))
        return others / first if first else math.inf if others else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON; a distortion that is infinite is None."""
        return {
            "quantity": self.quantity,
            "frequency": self.frequency,
            "mean": self.mean,
            "amplitude": self.amplitude.tolist(),
            "phase": self.phase.tolist(),
            "distortion": self.distortion if math.isfinite(self.distortion) else None,
        }

    def tables(self) -> dict[str, Table]:
        """``harmonics``: quantity, harmonic, frequency, amplitude, phase, of the first; harmonic 0 is the mean."""
        return {"harmonics": fourier_table([self])}

    @property
    def _percent(self) -> str:
        return f"{100.0 * self.distortion:.4g} %"

    def _heading(self) -> tuple[str, str]:
        frequency = format_quantity(self.frequency, "Hz", 4)
        return "", f"{self.quantity} at {frequency}, {self.amplitude.size} harmonics, distortion {self._percent}"


class FourierRequest(NamedTuple):
    """The arguments of ``.four``: frequency, Hz, number of last periods (−1: all whole ones), and quantities."""

    frequency: float
    harmonics: int
    periods: int
    probes: tuple[Probe | Formula, ...]


def fourier(
    result: TransientResult,
    quantity: str,
    frequency: float,
    harmonics: int = 9,
    periods: int = 1,
    names: Mapping[str, float] = MappingProxyType({}),
) -> FourierSeries:
    """The Fourier series of a quantity over the last periods of a run.

    Parameters
    ----------
    result : TransientResult
    quantity : str
        ``v(out)``, ``v(a,b)``, ``i(R1)``, ``p(R1)``, or an expression of them in braces.
    frequency : float
        Of the first harmonic, Hz.
    harmonics : int
    periods : int
        At the end of the run; −1: as many as it has.
    names : mapping of str to float, optional
        Parameters of expressions, in lower case.

    Raises
    ------
    UsageError
        An unknown quantity; a frequency or numbers that are not positive; a run that is shorter than the periods.

    Examples
    --------
    ``fourier(run, "v(out)", 1e3).distortion``
    """
    probe = parse_probe(quantity, result.circuit, f"{quantity!r} is not one quantity")
    return series(result, FourierRequest(frequency, harmonics, periods, (probe,)), names)[0]


def series(result: TransientResult, request: FourierRequest, names: Mapping[str, float]) -> list[FourierSeries]:
    """The Fourier series of all quantities of a request; see `fourier`."""
    count, stop, frequency = check_request(request, result.stop), result.stop, request.frequency
    implicit = isinstance(result, ImplicitResult)
    nodes, weights = np.polynomial.legendre.leggauss(NODES_OF_STEPS if implicit else NODES)
    order, found = np.arange(request.harmonics + 1), []
    for probe in request.probes:
        signal, total = Signal(result, probe, names, 0.0), np.zeros(order.size, complex)
        ends = signal.bounds(stop - count / frequency, stop)
        longest = (CYCLES_OF_STEPS if implicit else CYCLES) / (frequency * request.harmonics)
        begin, length = _parts(ends, longest)
        for k in range(0, begin.size, TOGETHER):
            some = slice(k, k + TOGETHER)
            times = (begin[some, None] + 0.5 * length[some, None] * (1.0 + nodes)).ravel()
            values = signal.at(times) * (0.5 * length[some, None] * weights).ravel()
            for n in order.tolist():
                total[n] += values @ np.exp(-2j * math.pi * np.mod(n * frequency * times, 1.0))
        mean, *others = total * frequency / count
        amplitude, phase = 2.0 * np.abs(others), np.degrees(np.angle(others)) + 90.0
        phase = np.where(amplitude > 0.0, np.mod(phase + 180.0, 360.0) - 180.0, 0.0)
        found.append(FourierSeries(str(probe), frequency, float(mean.real), amplitude, phase))
    return found


def check_request(request: FourierRequest, stop: float) -> int:
    """The number of periods at the end of a run of ``stop`` s.

    Raises
    ------
    UsageError
        See `fourier`.
    """
    frequency, harmonics, periods = request.frequency, request.harmonics, request.periods
    if not 0.0 < frequency < math.inf or not 1 <= harmonics <= MOST or not (periods == -1 or periods >= 1):
        raise UsageError(
            f"a Fourier series needs a positive frequency, 1 to {MOST:,} harmonics, and 1 or more periods "
            f"(-1: all), not {frequency!r}, {harmonics}, {periods}"
        )
    if stop == math.inf:
        return max(periods, 1)
    whole = math.floor(stop * frequency * (1.0 + 1e-12))
    if whole < max(periods, 1):
        raise UsageError(
            f"the run of {stop:g} s has {whole} periods of {1.0 / frequency:g} s, not {max(periods, 1)}: extend the run"
        )
    return whole if periods == -1 else periods


def _parts(ends: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of equal parts of intervals (p, 2), each at most ``longest``, s."""
    width = ends[:, 1] - ends[:, 0]
    count = np.maximum(np.ceil(width / longest), 1.0).astype(np.int64)
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    length = np.repeat(width / count, count)
    return np.repeat(ends[:, 0], count) + number * length, length


def parse_request(text: str, circuit: Circuit, names: Mapping[str, float]) -> FourierRequest:
    """Parse the arguments of ``.four``: `FORM`.

    Raises
    ------
    UsageError
    """
    words = text.split()
    numbers = list[float]()
    while words and (value := _number(words[0], circuit, names)) is not None and len(numbers) < 3:
        numbers.append(value)
        words.pop(0)
    if not numbers or not words:
        raise UsageError(f"{text!r}: write {FORM}")
    whole = [9.0, 1.0]
    whole[: len(numbers) - 1] = numbers[1:]
    if any(not value.is_integer() for value in whole):
        raise UsageError(f"{text!r}: harmonics and periods are whole numbers")
    return FourierRequest(numbers[0], int(whole[0]), int(whole[1]), tuple(parse_probes(" ".join(words), circuit)))


def requests(deck: Deck, texts: Sequence[str], stop: float) -> list[FourierRequest]:
    """The Fourier series that ``texts``, or without them the deck's ``.four`` cards, request of a run of ``stop`` s; a
    warning of each card that no run, or none of this length, could have.

    Raises
    ------
    UsageError
        The same of one of ``texts``.
    """
    found, cards = list[FourierRequest](), {} if texts else {card.text: card for card in deck.of_kind(FourierCard)}
    for text in texts or cards:
        try:
            request = parse_request(text, deck.operating_circuit, lowered(deck))
            check_request(request, stop)
            found.append(request)
        except UsageError as error:
            if texts:
                raise
            problem = Problem("fourier", f".four is left out: {error}", cards[text].location)
            warnings.warn(ResultWarning([problem]), stacklevel=4)
    return found


def _number(word: str, circuit: Circuit, names: Mapping[str, float]) -> float | None:
    """A number, a parameter, or a formula of them in braces; None for a quantity."""
    if word.lower() in names and word not in circuit.node_names:
        return names[word.lower()]
    try:
        return Formula(word[1:-1], circuit).value({}, names) if word[:1] == "{" else parse(word)
    except (ValueError, KeyError, UsageError):
        return None


def fourier_table(found: Sequence[FourierSeries]) -> Table:
    """One row per harmonic of each quantity; harmonic 0 is the mean."""
    rows: list[tuple[Any, ...]] = []
    for own in found:
        first, count = float(own.amplitude[0]), own.amplitude.size
        harmonics = [(0, own.mean, 90.0), *zip(range(1, count + 1), own.amplitude.tolist(), own.phase.tolist())]
        for k, amplitude, phase in harmonics:
            share = amplitude / first if first else math.nan
            rows.append((own.quantity, k, k * own.frequency, amplitude, phase, share))
    header = "quantity, harmonic, frequency, amplitude, phase, of the first"
    return Table.of(header, rows, ("", "", "Hz", "", "°", ""))


__all__ = ["FourierRequest", "FourierSeries", "check_request", "fourier", "fourier_table", "requests", "series"]
