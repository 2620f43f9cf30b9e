"""Periodic steady states: shooting with the exact derivative of the states after a period.

x(T; x₀) = x₀ is solved by Newton's method with the monodromy matrix. With ideal diodes and without switches a period
brings two runs no further apart in energy, so the mismatch is a monotone function of the states: a step that makes it
larger is shortened to where its product with the step is zero, and after some of those replaced by a plain period.
The period is a common one of all sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.switching import Switch
from circuitsim.circuit import Circuit
from circuitsim.circuit.waveforms import Waveform
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.netlist.deck import Deck
from circuitsim.time_domain.course import Course
from circuitsim.time_domain.deck import stated, steady_grid, steady_setting
from circuitsim.time_domain.jumps import jump_maps
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.monodromy import monodromy
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.result import TransientResult
from circuitsim.time_domain.run import finished, output_times
from circuitsim.time_domain.windows import CURRENT, VOLTAGE

WHOLE = 1000
"""Most periods of the slowest source in a common one."""
EXACT = 1e-9
"""Deviation from a whole number of periods that is rounding."""


class Recurrence(NamedTuple):
    """A waveform's period (0: constant; inf: none), and the time since which it recurs, s."""

    period: float
    since: float


def recurrence(wave: Waveform) -> Recurrence:
    """The recurrence of a waveform."""
    return Recurrence(common(wave.periods), wave.recurs_from)


def common(periods: Sequence[float]) -> float:
    """The least common multiple of periods, s; 0 of none.

    Raises
    ------
    UsageError
        None up to `WHOLE` times the longest of them.
    """
    longest = max(periods, default=0.0)
    if longest in (0.0, math.inf):
        return longest
    for count in range(1, WHOLE + 1):
        shares = [count * longest / period for period in periods]
        if all(abs(share - round(share)) <= EXACT * share for share in shares):
            return count * longest
    raise UsageError(f"the sources have no common period up to {MOST} times {longest:g} s; state one (--period)")


class Later(Waveform):
    """A waveform from a later time on.

    Parameters
    ----------
    wave : Waveform
    since : float
        What is time 0, s.
    """

    def __init__(self, wave: Waveform, since: float) -> None:
        self.wave, self.since, self.system, self.row = wave, since, wave.system, wave.row

    def corners(self, after: float, until: float, most: int) -> np.ndarray:
        """The waveform's own corners, less the time before; its states there are those after them."""
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
    """The common period, s, and the waveforms from a time on at which all of them recur.

    Raises
    ------
    UsageError
        A waveform that never recurs, or not with the period that is stated; no period at all.
    """
    found = {name: recurrence(wave) for name, wave in waves.items()}
    for name, own in found.items():
        if math.isinf(own.period):
            raise UsageError(f"the waveform of {name} is not periodic: there is no periodic steady state")
    moving = [own.period for own in found.values() if own.period > 0.0]
    if not moving and period is None:
        raise UsageError("no source is periodic; circuitsim solve finds the operating point")
    length = common(moving) if period is None else period
    for name, own in found.items():
        share = length / own.period if own.period else 0.0
        if abs(share - round(share)) > EXACT * max(share, 1.0) or (own.period and share < 0.5):
            raise UsageError(f"{length:g} s are not a whole number of the periods of {name}, {own.period:g} s")
    since = max((own.since for own in found.values()), default=0.0)
    since = length * math.ceil(since / length - EXACT) if since > 0.0 else 0.0
    return length, {name: Later(wave, since) if since else wave for name, wave in waves.items()}


MOST = 100
"""Most periods that are run."""
SHARE = 0.01
"""Share of the tolerance that the distance from the periodic state may take."""
BENDS = 12
"""Corrections of Newton's step for the curvature of the mismatch."""
SEARCHES = 3
"""Most steps in a row that are shortened."""
SHORTEST, LONGEST, QUARTER = 0.05, 0.9, 0.25
"""Shares of a step to which it is shortened at least and at most, and where the mismatch tells none."""
ONCE = 1e-9
"""Multipliers nearer to 1 belong to charges or fluxes that nothing changes: these stay as they began."""


class Shooting(NamedTuple):
    """How a periodic state was found.

    Attributes
    ----------
    period : float
        s.
    periods : int
        Number of periods that were run.
    mismatch : float
        Largest difference between the states at both ends over the largest voltage or current of the period.
    distance : float
        Estimate of the distance from the exact periodic state over the same scale.
    multipliers : (q,) complex array
        What a deviation of the states is multiplied by in a period (Floquet); below 1 in magnitude it dies out.
    """

    period: float
    periods: int
    mismatch: float
    distance: float
    multipliers: np.ndarray


class Shot(NamedTuple):
    """States at the beginning of a period (q,), what they change by in it, and the derivative of its end (q, q)."""

    x: np.ndarray
    gap: np.ndarray
    derivative: np.ndarray


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
) -> PeriodicResult:
    """The periodic steady state of a circuit of R, C, L, diodes, switches and periodic sources.

    Parameters
    ----------
    circuit : Circuit or Deck
        A deck states waveforms, switches and couplings itself; those that are given come before its own.
    waveforms : mapping of str to Waveform, optional
        Of voltage and current sources by name; all other sources keep the circuit's values.
    period : float, optional
        s; without it the least common period of the waveforms.
    initial : mapping of str to float, optional
        Capacitor voltages, V, and inductor currents, A, to begin the search with; without it the operating point.
    points : int
        Number of output times over the period, both ends included.
    tolerance : float
        Of the certificate, and of the mismatch of the states at both ends.
    switches, couplings
        See `circuitsim.time_domain.transient`.
    progress : callable, optional
        Called after each period with their number and the most that are run.

    Returns
    -------
    PeriodicResult

    Raises
    ------
    UsageError
        Sources that are not periodic, or not with this period.
    ConvergenceError
        No periodic state was found.
    InfeasibleError, UnboundedError
        Sources that contradict each other at some time.
    """
    if period is not None and not 0.0 < period < np.inf:
        raise UsageError(f"a period is a positive time, not {period!r} s")
    if circuit.dynamics is not None or isinstance(circuit, Deck):
        if isinstance(circuit, Deck):
            grid, initial = steady_setting(circuit, period, initial)
            circuit = circuit.operating_circuit
        else:
            grid = steady_grid(circuit.dynamics.waves.values(), period or 1.0)
        if circuit.dynamics is not None:
            circuit, waveforms, switches, couplings, _ = stated(circuit, grid, waveforms, switches, couplings, False)
    length, waves = periodic(dict(waveforms), period)
    problem = Problem(circuit, waves, switches, couplings)
    run, shooting = _found(problem, length, initial, tolerance, progress)
    return PeriodicResult(finished(run, output_times(0.0, length, points), tolerance), shooting)


def _found(
    problem: Problem,
    length: float,
    initial: Mapping[str, float] | None,
    tolerance: float,
    progress: Callable[[float, float], bool | None] | None,
) -> tuple[Course, Shooting]:
    """A run over one period that ends where it begins."""
    run = Course(problem, length)
    run.begin(initial, {})
    x = run.x0
    energy, d = np.sqrt(problem.parts.value[problem.storing]), problem.diodes.size
    least, shot, searches, back, before = np.inf, False, 0, x, Shot(x, x, np.zeros((x.size, x.size)))
    for count in range(1, MOST + 1):
        run.go(None)
        segments, end = run.segments(), run.walk.x.copy()
        gap, last = end - x, segments.conducting(np.array([-1]))[0]
        derivative = monodromy(segments, length, jump_maps(problem, run.turns))
        step = _step(derivative, gap, energy)
        if shot:
            step = _bent(before, Shot(x, gap, derivative), energy, step)
        size = _sizes(run, problem)
        mismatch, distance = (float((np.abs(v) / size).max(initial=0.0)) for v in (gap, step))
        same = (last[d:] == segments.conducting(np.array([0]))[0][d:]).all()
        if max(mismatch, distance) <= SHARE * tolerance and same:
            multipliers = np.linalg.eigvals(derivative)
            return run, Shooting(length, count, mismatch, distance, multipliers)
        if progress is not None:
            progress(count, MOST)
        now, norm = Shot(x, gap, derivative), float(np.linalg.norm(energy * gap))
        if not shot or norm <= least:
            least, back, before, searches = norm, end, now, 0
            x, shot = x + step, True
        elif searches < SEARCHES:
            x, searches = before.x + _share(before, now, energy) * (x - before.x), searches + 1
        else:
            x, shot = back, False
        run = Course(problem, length, run.library)
        run.set_out(x, last)
    raise ConvergenceError(
        f"no periodic state within {MOST} periods: the states after the last differ by {mismatch:.2g} of their size; "
        "it may not exist (charge or flux that grows), or have another period (--period)"
    )


def _step(derivative: np.ndarray, gap: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Newton's step: (1 − M) step = gap, of least energy where 1 − M is singular."""
    if not gap.size:
        return gap
    matrix = (np.eye(gap.size) - derivative) * energy[:, None] / energy
    return np.linalg.lstsq(matrix, energy * gap, rcond=ONCE)[0] / energy


def _bent(before: Shot, now: Shot, energy: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Newton's step, bent as the mismatch is: along the last step its second and third derivatives follow from the
    mismatches and their derivatives at both ends (Hermite); unbent where it is longer than the last step or turns back.
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
        found = _step(now.derivative, now.gap + bend, energy)
    return found


def _share(before: Shot, now: Shot, energy: np.ndarray) -> float:
    """Share of a step at which the product of mismatch and step is zero: a root of Hermite's cubic."""
    step = now.x - before.x
    weight = energy**2 * step
    begin, end = (float(weight @ shot.gap) for shot in (before, now))
    rise, fall = (float(weight @ (shot.derivative @ step - step)) for shot in (before, now))
    second, third = 3.0 * (end - begin) - 2.0 * rise - fall, 2.0 * (begin - end) + rise + fall
    cubic = np.polynomial.Polynomial([begin, rise, second, third])
    roots = cubic.roots()
    real = roots.real[(roots.imag == 0.0) & (roots.real > 0.0) & (roots.real < 1.0)]
    return min(max(float(real.min()), SHORTEST), LONGEST) if real.size else QUARTER


def _sizes(run: Course, problem: Problem) -> np.ndarray:
    """Largest voltage and current of the run, for each capacitor and inductor."""
    capacitors = problem.parts.role[problem.storing] == Role.CAPACITOR
    found = np.where(capacitors, run.walk.number[VOLTAGE], run.walk.number[CURRENT])
    return np.asarray(np.where(found > 0.0, found, 1.0))
