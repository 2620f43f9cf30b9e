"""Periodic steady states of a circuit, by shooting.

The period is a common multiple of those of all sources.

Shooting is Newton's method with the exact derivative of the states after a period. x(T; x₀) = x₀ is solved with the
monodromy matrix. With ideal diodes and without switches the period map is nonexpansive in energy, so the mismatch is a
monotone function of the states. A step that increases it is shortened to the zero of their inner product, and after
several shortened steps replaced by a plain period.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.switching import Switch
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CAPACITOR, INDUCTOR
from circuitsim.circuit.waveforms import Waveform
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.models.junction_diode import CJO, TT
from circuitsim.netlist.deck import Deck
from circuitsim.time_domain.beginning import charged_junctions
from circuitsim.time_domain.deck import stated, steady_grid, steady_setting
from circuitsim.time_domain.functionals import Functional, Value
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.implicit_sensitivities import implicit_sensitivities
from circuitsim.time_domain.result import TransientResult
from circuitsim.time_domain.run import ACCURACY, needs_implicit, transient, waves
from circuitsim.time_domain.sensitivities import exact_sensitivities

MOST = 100
"""Maximum number of periods."""
BENDS = 12
"""Maximum number of corrections of Newton's step for the curvature of the mismatch."""
SEARCHES = 3
"""Maximum number of consecutive shortened steps."""
SHORTEST, LONGEST, QUARTER = 0.05, 0.9, 0.25
"""Bounds on the fraction of a shortened step, and its value where the mismatch gives none."""
ONCE = 1e-9
"""Multipliers this close to 1 belong to conserved charges or fluxes, which keep their initial values."""


class Shooting(NamedTuple):
    """How a periodic state was found.

    Attributes
    ----------
    period : float
        s.
    periods : int
        Number of periods computed.
    mismatch : float
        Largest difference between the states at both ends over the largest voltage or current of the period.
    distance : float
        Estimate of the distance from the exact periodic state over the same scale.
    multipliers : (q,) complex array
        Floquet multipliers: the factors of deviations of the states over a period; those below 1 in magnitude decay.
    """

    period: float
    periods: int
    mismatch: float
    distance: float
    multipliers: np.ndarray


class Period(NamedTuple):
    """A run over one period.

    Attributes
    ----------
    run : object
    x : (q,) float array
        Capacitor voltages and inductor currents at its beginning, V, A.
    gap : (q,) float array
        Their change over the period.
    derivative : (q, q) float array
        Of the final states by the initial ones.
    size : (q,) float array
        Largest voltage or current of the period.
    within : float
        Tolerance of the relative distance from the periodic state; 0 where the run is not accurate enough.
    same : bool
        Whether diodes and switches have the same states at both ends.
    """

    run: Any
    x: np.ndarray
    gap: np.ndarray
    derivative: np.ndarray
    size: np.ndarray
    within: float
    same: bool


def shoot(
    go: Callable[[np.ndarray | None], Period],
    energy: np.ndarray,
    length: float,
    progress: Callable[[float, float], bool | None] | None,
) -> tuple[Period, Shooting]:
    """Find the period with equal states at both ends.

    Parameters
    ----------
    go : callable
        From states (q,) to the period that starts there; from None to that of the initial guess.
    energy : (q,) float array
        Square roots of the capacitances and inductances.
    length : float
        s.
    progress : callable, optional
        Called with the number of periods computed and its maximum.

    Raises
    ------
    ConvergenceError
        There is none within `MOST` periods.
    """
    least, shot, searches = np.inf, False, 0
    before = now = go(None)
    back = now.x
    for count in range(1, MOST + 1):
        step = newton_step(now.derivative, now.gap, energy)
        if shot:
            step = _bent(before, now, energy, step)
        mismatch, distance = (float((np.abs(v) / now.size).max(initial=0.0)) for v in (now.gap, step))
        if max(mismatch, distance) <= now.within and now.same:
            return now, Shooting(length, count, mismatch, distance, np.linalg.eigvals(now.derivative))
        if progress is not None:
            progress(count, MOST)
        norm = float(np.linalg.norm(energy * now.gap))
        if not shot or norm <= least:
            least, back, before, searches = norm, now.x + now.gap, now, 0
            x, shot = now.x + step, True
        elif searches < SEARCHES:
            x, searches = before.x + _share(before, now, energy) * (now.x - before.x), searches + 1
        else:
            x, shot = back, False
        now = go(x)
    raise ConvergenceError(
        f"no periodic state within {MOST} periods: the states after the last differ by {mismatch:.2g} of their size; "
        "it may not exist (charge or flux that grows), or have another period (--period)"
    )


def newton_step(derivative: np.ndarray, gap: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Newton's step: (1 − M) step = gap, of minimum energy where 1 − M is singular."""
    if not gap.size:
        return gap
    matrix = (np.eye(gap.size) - derivative) * energy[:, None] / energy
    return np.linalg.lstsq(matrix, energy * gap, rcond=ONCE)[0] / energy


def _bent(before: Period, now: Period, energy: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Newton's step corrected for curvature: second and third derivatives along the last step follow from the
    mismatches and their derivatives at its ends (Hermite); uncorrected where it is longer than the last step or
    reverses it.
    """
    last = now.x - before.x
    whole = float((energy * last) @ (energy * last))
    slope = (now.derivative - before.derivative) @ last
    rise = now.gap - before.gap - (before.derivative @ last - last)
    third = 12.0 * (0.5 * slope - rise)
    second = slope + 0.5 * third
    found = step
    for _ in range(BENDS):
        share = float((energy * last) @ (energy * found)) / whole if whole > 0.0 else -1.0
        if not 0.0 < share <= 1.0:
            return step
        bend = 0.5 * share**2 * second + share**3 / 6.0 * third
        found = newton_step(now.derivative, now.gap + bend, energy)
    return found


def _share(before: Period, now: Period, energy: np.ndarray) -> float:
    """Fraction of a step at which the product of mismatch and step is zero: a root of Hermite's cubic."""
    step = now.x - before.x
    weight = energy**2 * step
    begin, end = (float(weight @ one.gap) for one in (before, now))
    rise, fall = (float(weight @ (one.derivative @ step - step)) for one in (before, now))
    second, third = 3.0 * (end - begin) - 2.0 * rise - fall, 2.0 * (begin - end) + rise + fall
    cubic = np.polynomial.Polynomial([begin, rise, second, third])
    roots = cubic.roots()
    real = roots.real[(roots.imag == 0.0) & (roots.real > 0.0) & (roots.real < 1.0)]
    return min(max(float(real.min()), SHORTEST), LONGEST) if real.size else QUARTER


WHOLE = 1000
"""Maximum common period in periods of the slowest source."""
EXACT = 1e-9
"""Deviation from a whole number of periods that counts as rounding."""


def common(periods: Sequence[float]) -> float:
    """The least common multiple of periods, s; 0 if there are none.

    Raises
    ------
    UsageError
        It exceeds `WHOLE` times the longest of them.
    """
    longest = max(periods, default=0.0)
    if longest in (0.0, math.inf):
        return longest
    for count in range(1, WHOLE + 1):
        shares = [count * longest / period for period in periods]
        if all(abs(share - round(share)) <= EXACT * share for share in shares):
            return count * longest
    raise UsageError(f"the sources have no common period up to {WHOLE} times {longest:g} s; state one (--period)")


class Later(Waveform):
    """A waveform shifted in time.

    Parameters
    ----------
    wave : Waveform
    since : float
        The time that becomes 0, s.
    """

    def __init__(self, wave: Waveform, since: float) -> None:
        self.wave, self.since, self.system, self.row = wave, since, wave.system, wave.row

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The waveform's own corners, shifted."""
        own = self.wave.corners(after + self.since, until + self.since, most)
        found = own - self.since
        found = np.where(found + self.since < own, np.nextafter(found, np.inf), found)
        return found[(found > after) & (found < until)]

    def cycles(self, until: float) -> float:
        """The waveform's own periods."""
        return self.wave.cycles(until + self.since)

    def states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The waveform's own states."""
        return self.wave.states(times + self.since)


def periodic(waves: dict[str, Waveform], period: float | None) -> tuple[float, dict[str, Waveform]]:
    """The common period, s, and the waveforms shifted to a time from which all of them are periodic.

    Raises
    ------
    UsageError
        A waveform that is never periodic, or not with the stated period; no period at all.
    """
    found = {name: common(wave.periods) for name, wave in waves.items()}
    for name, own in found.items():
        if math.isinf(own):
            raise UsageError(f"the waveform of {name} is not periodic: there is no periodic steady state")
    moving = [own for own in found.values() if own > 0.0]
    if not moving and period is None:
        raise UsageError("no source is periodic; circuitsim solve finds the operating point")
    length = common(moving) if period is None else period
    for name, own in found.items():
        share = length / own if own else 0.0
        if abs(share - round(share)) > EXACT * max(share, 1.0) or (own and share < 0.5):
            raise UsageError(f"{length:g} s are not a whole number of the periods of {name}, {own:g} s")
    since = max((wave.recurs_from for wave in waves.values()), default=0.0)
    since = length * math.ceil(since / length - EXACT) if since > 0.0 else 0.0
    return length, {name: Later(wave, since) if since else wave for name, wave in waves.items()}


SHARE = 0.01
"""Fraction of the tolerance allowed for the distance from the periodic state."""
FINEST = 1e-10
"""Smallest accuracy of a period by the implicit method."""


class PeriodicResult(TransientResult):
    """Waveforms over one period of the periodic steady state, with the certificate of a run over it.

    Attributes
    ----------
    shooting : Shooting
    """

    def __init__(self, run: TransientResult, shooting: Shooting) -> None:
        self.__dict__.update(run.__dict__)
        self.shooting = shooting

    def checks(self) -> dict[str, Any]:
        """Certificate, energies and how the state was found as plain values."""
        multipliers = [[float(value.real), float(value.imag)] for value in self.shooting.multipliers]
        return super().checks() | {"shooting": self.shooting._asdict() | {"multipliers": multipliers}}

    def _heading(self) -> tuple[str, str]:
        title, words = super()._heading()
        return title, f"one period, {words}"


class ImplicitPeriodicResult(PeriodicResult, ImplicitResult):
    """One period of the steady state by the implicit method; ``difference`` includes the error of the state."""


def states_of(circuit: Circuit) -> tuple[list[int], list[str], list[str]]:
    """The capacitors, inductors and junctions with a charge, their names, and the quantities that are their states."""
    kind, first, second, value, _ = circuit.arrays()
    node, names, quantities = circuit.node_names, circuit.names, dict[int, str]()
    for k in np.flatnonzero(value > 0.0).tolist():
        if kind[k] == CAPACITOR:
            quantities[k] = f"v({node[first[k]]},{node[second[k]]})"
        elif kind[k] == INDUCTOR:
            quantities[k] = f"i({names[k]})"
    quantities |= {k: f"u({names[k]})" for k in charged_junctions(circuit)}
    return [*quantities], [names[k] for k in quantities], [*quantities.values()]


@waves()
def steady_state(
    circuit: Circuit | Deck,
    waveforms: Mapping[str, Waveform] = MappingProxyType({}),
    period: float | None = None,
    initial: Mapping[str, float] | None = None,
    points: int = 1001,
    tolerance: float = 1e-9,
    switches: Mapping[str, Switch] = MappingProxyType({}),
    couplings: Mapping[tuple[str, str], float] = MappingProxyType({}),
    progress: Callable[[float, float], bool | None] | None = None,
    accuracy: float = ACCURACY,
) -> PeriodicResult:
    """The periodic steady state of a circuit of R, C, L, devices, switches and periodic sources.

    Parameters
    ----------
    circuit : Circuit or Deck
        A deck states waveforms, switches and couplings itself; those that are given come before its own.
    waveforms : mapping of str to Waveform, optional
        Of voltage and current sources by name; all other sources keep the circuit's values.
    period : float, optional
        s; without it the least common period of the waveforms.
    initial : mapping of str to float, optional
        As of `circuitsim.time_domain.transient`, to begin the search with; without it the operating point.
    points : int
        Number of output times over the period, both ends included.
    tolerance : float
        Of the certificate, and of the mismatch of the states at both ends.
    switches, couplings
        See `circuitsim.time_domain.transient`.
    progress : callable, optional
        Called after each period with their number and the most that are run.
    accuracy : float
        Of the implicit method, which circuits have that the exact one does not take; see
        `circuitsim.time_domain.transient`.

    Returns
    -------
    PeriodicResult
        An `ImplicitPeriodicResult` of the implicit method.

    Raises
    ------
    UsageError
        Sources that are not periodic, or not with this period.
    ConvergenceError
        No periodic state was found.
    InfeasibleError, UnboundedError
        Sources that contradict each other at some time.
    """
    if circuit.dynamics is not None or isinstance(circuit, Deck):
        if isinstance(circuit, Deck):
            grid, initial = steady_setting(circuit, period, initial)
            circuit = circuit.operating_circuit
        else:
            grid = steady_grid(circuit.dynamics.waves.values(), period or 1.0)
        if circuit.dynamics is not None:
            circuit, waveforms, switches, couplings = stated(circuit, grid, waveforms, switches, couplings, False)
    length, waves = periodic(dict(waveforms), period)
    reason = needs_implicit(circuit, waves)
    run = partial(transient, circuit, length, waves, points=points, tolerance=tolerance, couplings=couplings)
    run = partial(run, method="implicit" if reason else "exact")
    within = accuracy if reason else SHARE * tolerance
    periods = _Periods(circuit, run, initial, switches, accuracy, within)
    found, shooting = shoot(periods, periods.energy, length, progress)
    if not reason:
        return PeriodicResult(found.run, shooting)
    result = ImplicitPeriodicResult(found.run, shooting)
    result.accuracy, result.reason = accuracy, reason
    if result.difference is not None and result.errors is not None:
        more = 1.0 + periods.gain(found.derivative, found.size)
        result.difference, result.errors = more * result.difference, more * result.errors
    return result


class _Periods:
    """Periods from states at their beginning.

    An error within a period changes the periodic state by (1 − M)⁻¹ times it, so periods of the implicit method are
    that much more accurate.
    """

    def __init__(
        self,
        circuit: Circuit,
        run: Callable[..., TransientResult],
        initial: Mapping[str, float] | None,
        switches: Mapping[str, Switch],
        accuracy: float,
        within: float,
    ) -> None:
        self.run, self.initial, self.within = run, initial, within
        self.switches = {circuit.names[circuit.element_index(name)]: own for name, own in switches.items()}
        self.accuracy = self.fine = accuracy
        self.places, self.names, self.quantities = states_of(circuit)
        kind, _, _, value, _ = circuit.arrays()
        self.inductor, stored = kind[self.places] == INDUCTOR, value[self.places]
        for k, device in charged_junctions(circuit).items():  # the scale of its capacitance, at a slope of 1 S
            stored[self.places.index(k)] = device.row()[CJO] + device.row()[TT]
        self.energy = np.sqrt(stored)

    def __call__(self, x: np.ndarray | None) -> Period:
        while True:
            begin = self.initial if x is None else dict(zip(self.names, x.tolist()))
            run = self.run(initial=begin, switches=self.switches, accuracy=self.fine)
            run.begun = run.begun._replace(point=None)  # derivatives are by the states
            begun, (ended, derivative) = run.begun.level[self.places], self.ended(run)
            finer = max(self.accuracy / (1.0 + self.gain(derivative, self._sizes(run))), FINEST)
            if finer > 0.5 * self.fine or not isinstance(run, ImplicitResult):
                break
            self.fine = finer
        first, last = (dict(zip(run.changing, own)) for own in run.states()[1][[0, -1]].tolist())
        same = all(first[name] == last[name] for name in self.switches)
        self.switches = {name: own._replace(closed=last[name]) for name, own in self.switches.items()}
        return Period(run, begun, ended - begun, derivative, self._sizes(run), self.within, same)

    def ended(self, run: TransientResult) -> tuple[np.ndarray, np.ndarray]:
        """The final states (q,), and their derivatives by the initial ones (q, q)."""
        ends = [Value(quantity, run.stop) for quantity in self.quantities]
        return sensitivities(run, ends, [f"{name}.ic" for name in self.names], strict=False)

    def _sizes(self, run: TransientResult) -> np.ndarray:
        """Largest voltage or current of the run, for each state."""
        largest = [float(np.abs(own).max(initial=0.0)) or 1.0 for own in run.at(run.times)]
        return np.where(self.inductor, *largest[::-1])

    def gain(self, derivative: np.ndarray, size: np.ndarray) -> float:
        """Amplification of an error within the period to that of the periodic state."""
        inverse = np.linalg.pinv(np.eye(size.size) - derivative, rcond=ONCE)
        return float((np.abs(inverse) @ size / size).max(initial=0.0))


def sensitivities(
    result: TransientResult, functionals: Sequence[Functional], names: Sequence[str], strict: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Values of functionals (f,), and their derivatives by numbers (f, n), of a run from its beginning.

    ``strict``: refuse events and jumps of exact runs without a derivative, which otherwise contribute nothing.
    """
    if isinstance(result, ImplicitResult):
        return implicit_sensitivities(result, functionals, names)
    return exact_sensitivities(result, functionals, names, strict)
