"""Exact gradients of values, integrals and mean squares of waveforms, through events.

They are forward sensitivities of exact runs (`circuitsim.time_domain.sensitivities`) and of implicit ones
(`circuitsim.time_domain.implicit_sensitivities`). A periodic state is an implicit function of the parameters.

Values of ``.meas`` are weighted functionals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from circuitsim.analysis.probes import parse_probes
from circuitsim.arguments import NAMES, checked, listed, numbers, real
from circuitsim.errors import UsageError
from circuitsim.measurements import Measurement, Reader
from circuitsim.time_domain.functionals import (
    EventTime,
    EventValue,
    Functional,
    Integral,
    Value,
    own_weights,
)
from circuitsim.time_domain.result import RESULT, TransientResult
from circuitsim.time_domain.signals import OverTime, Signal
from circuitsim.time_domain.steady import ONCE, PeriodicResult, sensitivities, states_of


class WaveformGradient(NamedTuple):
    """Values of functionals, and the gradient of their weighted sum.

    Attributes
    ----------
    values : (f,) float array
    gradient : dict of str to float
        By name: per Ω, F, H; per V or A of a DC source; per unit of a factor on a source with a waveform; per unit of
        the number of a device, a switch, a coupling, an initial value.
    """

    values: np.ndarray
    gradient: dict[str, float]


@checked(
    result=RESULT,
    functionals=listed("a functional such as Value('v(out)', 1e-3)", *get_args(Functional)),
    names=NAMES,
    weights=numbers(real, 0),
)
def waveform_gradient(
    result: TransientResult,
    functionals: Sequence[Functional],
    names: Sequence[str],
    weights: Sequence[float] | None = None,
) -> WaveformGradient:
    """Functionals of waveforms and the gradient of their weighted sum by numbers of the circuit.

    Parameters
    ----------
    result : TransientResult
        Of `circuitsim.time_domain.transient`, or of `steady_state`: then the beginning moves with the numbers.
    functionals : sequence of Value, Integral, EventValue or EventTime
    names : sequence of str
        Resistors, capacitors, inductors and sources by name; parameters of devices (``D1.vfwd``);
        ``vt``, ``vh``, ``ron`` and ``roff`` of switches (``S1.vt``); couplings ``k(L1,L2)``; initial values that the
        run was begun with (``C1.ic``), or held at (``L1.ic``, ``v(out)``).
    weights : sequence of float, optional
        All 1 without them; of a loss its derivatives by the functionals.

    Returns
    -------
    WaveformGradient

    Raises
    ------
    UsageError
        An event at which a waveform only touches zero, a jump between two sets of diodes, times outside the run, other
        quantities and names.

    Examples
    --------
    ``waveform_gradient(run, [Integral("v(out)", 0.0, 0.02)], ["R1", "D1.vfwd"]).gradient["D1.vfwd"]``
    """
    shares = shares_of(weights, len(functionals))
    values, by_number = _sensitivities(result, functionals, names)
    return WaveformGradient(values, dict(zip(names, (shares @ by_number).tolist())))


def shares_of(weights: Sequence[float] | None, count: int) -> np.ndarray:
    """The weights of ``count`` values, 1 by default."""
    shares = np.ones(count) if weights is None else np.asarray(weights, float)
    if shares.shape != (count,):
        raise UsageError(f"{shares.size} weights for {count} values: give one of each")
    return shares


def _sensitivities(
    result: TransientResult, functionals: Sequence[Functional], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Values of functionals (f,), and their derivatives by numbers (f, n), through the periodic state x = x(T; x) where
    the run is one."""
    if not isinstance(result, PeriodicResult):
        return sensitivities(result, functionals, names)
    f, n, (_, states, quantities) = len(functionals), len(names), states_of(result.circuit)
    ends = [Value(quantity, result.stop) for quantity in quantities]
    values, by = sensitivities(result, [*functionals, *ends], [*names, *(f"{state}.ic" for state in states)])
    monodromy = by[f:, n:]
    through = np.linalg.lstsq(np.eye(len(states)) - monodromy.T, by[:f, n:].T, rcond=ONCE)[0]
    return values[:f], by[:f, :n] + through.T @ by[f:, :n]


NEAR = 1e-9
"""Distance from the end of a segment, relative to the run, within which an extreme or a crossing lies at the end."""


class Terms(NamedTuple):
    """A measurement and its derivative: the sum of ``weights`` times the derivatives of ``functionals``.

    Attributes
    ----------
    name : str
    value : float or None
        None where its event does not happen; then there are no functionals.
    functionals : tuple of Functional
    weights : tuple of float
    """

    name: str
    value: float | None
    functionals: tuple[Functional, ...]
    weights: tuple[float, ...]


def measurement_terms(result: TransientResult, text: str, names: Mapping[str, float] | None = None) -> Terms:
    """A measurement with its derivative.

    Parameters
    ----------
    result : TransientResult
    text : str
        As `circuitsim.time_domain.measure`, without ``DERIV``, ``MIN_AT``, ``MAX_AT``, ``PARAM=`` and formulas.
    names : mapping of str to float, optional
        Parameters that may stand for numbers, in lower case.

    Raises
    ------
    UsageError
        Another form, an unknown quantity, times outside the run.
    """
    return _TermsReader(result, text, names or {}).read()


def measurement_error(result: TransientResult, text: str, names: Mapping[str, float]) -> float | None:
    """Error bound of a measurement: by its derivative from the errors of the waveforms (`TransientResult.errors`).

    Parameters
    ----------
    result : TransientResult
    text, names
        See `measurement_terms`.

    Returns
    -------
    float or None
        None where unknown: ``DERIV``, ``MIN_AT``, ``MAX_AT``, ``PARAM=``, formulas, crossings by a jump.
    """
    if result.errors is None:
        return None
    try:
        found = measurement_terms(result, text, names)
        offs = [_off(result, own) for own in found.functionals]
    except UsageError:
        return None
    total = sum(abs(weight) * off for weight, off in zip(found.weights, offs))
    return float(total) if found.value is not None and np.isfinite(total) else None


def _off(result: TransientResult, functional: Functional) -> float:
    """Error bound of a functional; inf where unknown."""
    if isinstance(functional, EventTime) or result.errors is None:
        return np.inf
    weights = own_weights(result, functional.quantity)
    off = sum(float(np.abs(own) @ error) for own, error in zip(weights, result.errors))
    if isinstance(functional, Integral):
        off *= functional.end - functional.begin
        if functional.power == 2:
            (probe,) = parse_probes(functional.quantity, result.circuit)
            ends = Signal(result, probe, {}, 0.0).extremes(functional.begin, functional.end)
            off *= 2.0 * max(abs(value) for value, _ in ends)
    return off


def measure_gradient(
    result: TransientResult,
    texts: Sequence[str],
    by: Sequence[str],
    weights: Sequence[float] | None = None,
    names: Mapping[str, float] | None = None,
) -> tuple[dict[str, float | None], dict[str, float]]:
    """Measurements, and the gradient of their weighted sum by numbers of the circuit.

    Parameters
    ----------
    result : TransientResult
    texts : sequence of str
        See `measurement_terms`.
    by : sequence of str
        As `circuitsim.time_domain.waveform_gradient` names numbers.
    weights : sequence of float, optional
        All 1 without them.
    names : mapping of str to float, optional
        Parameters that may stand for numbers, in lower case.

    Returns
    -------
    values : dict of str to float or None
    gradient : dict of str to float

    Raises
    ------
    UsageError
        As `measurement_terms` and `circuitsim.time_domain.waveform_gradient`.

    Examples
    --------
    ``measure_gradient(run, ["ripple PP v(out) FROM=10m"], ["C1"])[1]["C1"]``
    """
    found = [measurement_terms(result, text, names) for text in texts]
    shares = shares_of(weights, len(found)).tolist()
    functionals = [own for terms in found for own in terms.functionals]
    each = [share * weight for share, terms in zip(shares, found) for weight in terms.weights]
    gradient = waveform_gradient(result, functionals, by, each).gradient
    return {terms.name: terms.value for terms in found}, gradient


class _TermsReader(Reader):
    """Evaluator of one measurement that also collects the terms of its derivative."""

    def __init__(self, result: TransientResult, text: str, names: Mapping[str, float]) -> None:
        super().__init__(OverTime(result), text, names)
        self.result, self.terms = result, list[tuple[float, Functional]]()

    def read(self) -> Terms:
        """The measurement."""
        name, value, _ = self.measurement()
        terms = self.terms if value is not None else []
        return Terms(name, value, tuple(own for _, own in terms), tuple(weight for weight, _ in terms))

    def measurement(self) -> Measurement:
        """The whole measurement."""
        if len(self.words) > 1 and self.words[1].lower().partition("=")[0] in ("param", "deriv", "min_at", "max_at"):
            raise self.wrong(f"{self.words[1]} has no gradient")
        if "trig" in (word.lower() for word in self.words[2:]):
            raise self.wrong("an interval between events has no gradient")
        return super().measurement()

    def add(self, weight: float, functional: Functional) -> None:
        """Add a term."""
        self.terms.append((weight, functional))

    def over_interval(self, kind: str, curve: Any, begin: float, end: float) -> float | None:
        """The value over an interval."""
        value, quantity = super().over_interval(kind, curve, begin, end), str(curve.probe)
        if value is None:
            return None
        if kind in ("avg", "integ", "integral"):
            self.add(1.0 / (end - begin) if kind == "avg" else 1.0, Integral(quantity, begin, end))
        elif kind == "rms":
            self.add(0.5 / (value * (end - begin)) if value else 0.0, Integral(quantity, begin, end, 2))
        elif kind in ("min", "max", "pp"):
            low, high = curve.extremes(begin, end)
            signs = {"min": ((1.0, low),), "max": ((1.0, high),), "pp": ((-1.0, low), (1.0, high))}[kind]
            for sign, (extreme, time) in signs:
                self.add(sign, self._place(curve, time, extreme, (begin, end)))
        return value

    def _place(self, signal: Signal, time: float, value: float, fixed: tuple[float, float]) -> Functional:
        """An extreme: at a time, or on one side of an event or of a source's corner."""
        starts = self.result.segment_starts()
        start = float(starts[int(np.abs(starts - time).argmin())])
        if abs(start - time) > NEAR * self.result.stop or abs(time - fixed[0]) <= NEAR * self.result.stop:
            return Value(str(signal.probe), time)
        after = float(signal.at(np.array([start]))[0])
        return EventValue(str(signal.probe), start, abs(after - value) <= self.result._resolution * abs(value))

    def value(self, curve: Any, place: float) -> float:
        """The value at a time, which may be that of a crossing."""
        if self.terms:
            slope = curve.slope(place)
            self.terms = [(slope * weight, own) for weight, own in self.terms]
        self.add(1.0, Value(str(curve.probe), place))
        return super().value(curve, place)

    def crossing(self, curve: Any, first: str, second: str, *, level: float = math.nan) -> float | None:
        """The crossing selected by the options; its time changes by the signal's change over minus its slope."""
        time = super().crossing(curve, first, second, level=level)
        if time is None:
            return None
        starts = self.result.segment_starts()
        start = float(starts[int(np.abs(starts - time).argmin())])
        if abs(start - time) <= NEAR * self.result.stop and self._jumps(curve, start):
            # It crosses by a jump: at an event, or at a corner of a source, whose time is fixed.
            if self.result._moves_at(start):
                self.add(1.0, EventTime(start))
        else:
            self.add(-1.0 / curve.slope(time), Value(str(curve.probe), time))
        return time

    def _jumps(self, signal: Signal, time: float) -> bool:
        """Whether the signal jumps at the beginning of a segment."""
        if time <= 0.0:
            return False
        starts = np.append(self.result.segment_starts(), self.result.stop)
        k = int(np.searchsorted(starts, time))
        _, c = signal.pieces(float(starts[k - 1]), time)
        before = float(c[-1].sum())
        size = float(np.abs(c[-1]).sum()) + abs(signal.level)
        return abs(float(signal.at(np.array([time]))[0]) - before) > self.result._resolution * size

    def edge(self) -> float | None:
        """The time of TRIG or TARG, less the one before."""
        self.terms = [(-weight, own) for weight, own in self.terms]
        return super().edge()
