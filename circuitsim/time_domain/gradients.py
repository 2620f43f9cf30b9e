"""Exact gradients of values, integrals and mean squares of waveforms, through events, by one adjoint run.

On a segment the waveforms are e^{A t} z; the derivative by A of an integral of their square follows by reversing the
doubling E ← E E, W ← W + Eᵀ W E (Van Loan 1978 for the integrals). Derivatives of a mode's matrices are complex steps
through its equations. Events contribute by their shift in time (`circuitsim.time_domain.monodromy`). A periodic state
is an implicit function of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.time_domain.exponentials import PRODUCTS
from circuitsim.time_domain.functionals import EventTime, EventValue, Functional, Integral, Value, branch_weights, check
from circuitsim.time_domain.implicit_gradients import implicit_gradient
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.jumps import Jumps, constraint, key, storage
from circuitsim.time_domain.kernels import time_kernel
from circuitsim.time_domain.library import Modes, ordered, ordered_square
from circuitsim.time_domain.modes import Role, mode_of
from circuitsim.time_domain.monodromy import embedding, event_row, monodromy, propagator, slip
from circuitsim.time_domain.numbers import STEP, Stepped, stepped
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.result import Jump, Origin, TransientResult
from circuitsim.time_domain.shooting import ONCE
from circuitsim.time_domain.steady import ImplicitPeriodicResult, PeriodicResult
from circuitsim.time_domain.tangents import Rest

NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
"""Gauss–Legendre rule on the shortest interval: exact to rounding if h times the radius is at most a half."""


class Interval(NamedTuple):
    """ż = A z over an interval: A (n, n), spectral radius, 1/s, length, s, and initial state (n,)."""

    system: np.ndarray
    radius: float
    length: float
    state: np.ndarray


class IntervalGradient(NamedTuple):
    """Derivatives by A (n, n) and by the initial state (n,), and ∫ z zᵀ dt (n, n), the derivative by Q."""

    system: np.ndarray
    state: np.ndarray
    gram: np.ndarray


def interval_gradient(interval: Interval, by_end: np.ndarray, form: np.ndarray | None) -> IntervalGradient:
    """The derivatives over one interval.

    Parameters
    ----------
    interval : Interval
    by_end : (n,) float array
        λ, the derivative by the final state.
    form : (n, n) float array or None
        Q, symmetric, of the integral ∫ zᵀ Q z dt.
    """
    system, radius, length, z = interval
    n = z.size
    doublings = max(0, math.frexp(2.0 * radius * length)[1])
    short = math.ldexp(length, -doublings)
    times = 0.5 * short * (1.0 + NODES)
    inside = _powers(system, radius, times) if form is not None else np.zeros((0, n, n))
    weights = 0.5 * short * WEIGHTS
    power = [_powers(system, radius, np.array([short]))[0]]
    kept = form if form is not None else np.zeros((n, n))
    whole = [np.einsum("p,pji,jk,pkl->il", weights[: len(inside)], inside, kept, inside)]
    for _ in range(doublings):
        whole.append(whole[-1] + power[-1].T @ whole[-1] @ power[-1])
        power.append(power[-1] @ power[-1])
    by_power, by_whole = np.outer(by_end, z), np.outer(z, z)
    state = power[-1].T @ by_end + 2.0 * whole[-1] @ z
    for e, w in zip(power[-2::-1], whole[-2::-1]):
        by_power = by_power @ e.T + e.T @ by_power + 2.0 * w @ e @ by_whole
        by_whole = by_whole + e @ by_whole @ e.T
    gradient = _by_system(system, radius, short, by_power)
    gram = np.zeros((n, n))
    for e, t, weight in zip(inside, times.tolist(), weights.tolist()):
        gradient += _by_system(system, radius, t, 2.0 * weight * kept @ e @ by_whole)
        gram += weight * e @ by_whole @ e.T
    return IntervalGradient(gradient, state, gram)


def _powers(system: np.ndarray, radius: float, times: np.ndarray) -> np.ndarray:
    """e^{A t} at times (p,): (p, n, n)."""
    n = len(system)
    found = np.zeros((n, times.size, n))
    time_kernel("node_exponentials", PRODUCTS * times.size * n**3)(np.ascontiguousarray(system), radius, times, found)
    return found.transpose(1, 2, 0)


def _by_system(system: np.ndarray, radius: float, time: float, by_power: np.ndarray) -> np.ndarray:
    """Derivative of ⟨by_power, e^{A t}⟩ by A: a block of the exponential of a matrix of twice the size."""
    n = len(system)
    double = np.zeros((2 * n, 2 * n))
    double[:n, :n] = double[n:, n:] = system.T
    double[:n, n:] = by_power
    return _powers(double, radius, np.array([time]))[0][:n, n:]


class ModeDerivative(NamedTuple):
    """Derivatives of one mode by one parameter; see `circuitsim.time_domain.library.Modes` for the arrays."""

    system: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    switching: np.ndarray
    storing: np.ndarray


def mode_derivative(problem: Problem, modes: Modes, m: int, of: Stepped) -> ModeDerivative:
    """The derivative of mode ``m``."""
    d, s, q = problem.diodes.size, problem.system.shape[0], problem.storing.size
    conducting, value = modes.conducting[m], of.value.copy()
    value[problem.switched] = np.where(conducting[d:], *of.ohms)
    parts = problem.parts._replace(value=value, coupling=of.coupling)
    mode = mode_of(parts, problem.diodes, conducting[:d], problem.sources, problem.system, of.rows)

    def part(matrix: np.ndarray) -> np.ndarray:
        return ordered(matrix.imag / STEP, mode.states.size, s, q)

    voltage, current = part(mode.voltage), part(mode.current)
    diodes = np.where(conducting[:d, None], current[problem.diodes], -voltage[problem.diodes])
    controls, levels = np.zeros((len(problem.control), s + q)), of.thresholds.imag / STEP
    for k, ((by_current, element), closed) in enumerate(zip(problem.control.tolist(), conducting[d:].tolist())):
        control = (current if by_current else voltage)[element]
        controls[k] = control if closed else -control
        controls[k, s - 1] += -levels[1, k] if closed else levels[0, k]
    system = ordered_square(mode._replace(system=mode.system.imag / STEP), s, q)
    switching = np.concatenate([diodes, controls])
    return ModeDerivative(system, voltage, current, switching, part(mode.dependent[problem.storing]))


def beginning_derivative(origin: Origin, of: Stepped, rest: Rest) -> float:
    """The effect of a parameter on the functional through the operating point at time 0: by sources, resistances,
    closed switches, and values held by ``.ic``."""
    problem, by = origin.problem, rest.by_value
    value = of.value.imag.copy()
    value[problem.switched] = np.where(origin.start.closed, *of.ohms.imag)
    value[problem.sources] = of.rows.imag @ problem.states(0.0)[0]
    found = float(value[: len(problem.circuit)] @ by[: len(problem.circuit)])
    return found + sum(rest.by_held[name.lower()] * level.imag for name, level in of.held.items())


SAME = 1e-7
"""Largest relative difference between the states after a jump and those of its linear map."""


class JumpSweep:
    """The jumps of a run, and their accumulated contributions.

    Attributes
    ----------
    jumps : Jumps
    """

    def __init__(self, origin: Origin) -> None:
        self.problem, self.recorded = origin.problem, origin.jumps
        self.jumps = Jumps(self.problem, self.recorded)
        self.before: dict[int, list[Jump]] = {}
        for jump in self.recorded:
            self.before.setdefault(jump.segment, []).append(jump)
            _, given, p, _ = self.jumps.sets[key(jump)]
            gap = p @ jump.before + given @ jump.w - p @ (given @ jump.w) - jump.after
            if np.abs(gap).max(initial=0.0) > SAME * np.abs([jump.before, jump.after]).max():
                raise UsageError("states jump between two sets of conducting diodes: there is no gradient")
        self.clear()

    def clear(self) -> None:
        """Reset all contributions."""
        q, s = self.jumps.q, self.jumps.s
        self.by_storage, self.by_given = np.zeros((q, q)), {own: np.zeros((q, s)) for own in self.jumps.sets}

    def back(self, segment: int, by_x: np.ndarray) -> np.ndarray:
        """From the derivative by the states after the jumps before a segment to that by the states before them (q,)."""
        for jump in reversed(self.before.get(segment, [])):
            _, _, p, inner = self.jumps.sets[key(jump)]
            self.by_given[key(jump)] += np.outer(by_x - p.T @ by_x, jump.w)
            self.by_storage += np.outer(inner @ by_x, jump.before - jump.after)
            by_x = p.T @ by_x
        return by_x

    def product(self, of: Stepped) -> float:
        """The effect of a parameter on the functional through the jumps."""
        if not self.recorded:
            return 0.0
        found = float((self.by_storage * storage(self.problem, of.value, of.coupling).imag).sum())
        if of.rows.imag.any():
            for own, (jump, *_) in self.jumps.sets.items():
                given = constraint(self.problem, jump.carrying, jump.open, of.rows).given
                found += float((self.by_given[own] * given.imag).sum())
        return found / STEP


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
        Resistors, capacitors, inductors and sources by name; parameters of piecewise-linear devices (``D1.vfwd``);
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
    count = len(functionals)
    shares = np.ones(count) if weights is None else np.asarray(weights, float)
    if isinstance(result, ImplicitPeriodicResult):
        functionals, shares = result.with_its_state(functionals, shares)
    if isinstance(result, ImplicitResult):
        values, gradient = implicit_gradient(result, functionals, names, shares)
        return WaveformGradient(values[:count], gradient)
    origin = result.origin
    steps = {name: stepped(origin, name) for name in names}
    sweep = _Sweep(result, functionals, shares)
    begin = sweep.run(np.zeros(sweep.q))
    if isinstance(result, PeriodicResult):
        derivative = monodromy(result.segments, result.stop, sweep.jumps.jumps)
        last = np.linalg.lstsq(np.eye(sweep.q) - derivative.T, begin, rcond=ONCE)[0]
        sweep.clear()
        sweep.run(last)
        begin = np.zeros(sweep.q)
    problem, segments, found = origin.problem, result.segments, {}
    met, rest = sorted(set(segments.mode.tolist())), None
    if origin.start.point is not None:
        by_level, parts = np.zeros(problem.parts.role.size), problem.parts
        by_level[problem.storing] = begin
        by_level[parts.role == Role.WINDING] = parts.turns @ by_level
        before = np.zeros(len(problem.circuit), dtype=bool)
        before[problem.diodes] = segments.conducting(np.array([0]))[0, : problem.diodes.size]
        rest = Rest(origin.start, by_level[: before.size], before)
    for name, of in steps.items():
        total = sum(sweep.product(m, mode_derivative(problem, sweep.modes, m, of)) for m in met)
        total += sweep.jumps.product(of)
        at_first = float(begin @ of.initial.imag) if rest is None else beginning_derivative(origin, of, rest)
        found[name] = float(total + at_first / STEP)
    return WaveformGradient(sweep.values, found)


class _Sweep:
    """One adjoint run: the contribution of each entry of each mode's matrices."""

    def __init__(self, result: TransientResult, functionals: Sequence[Functional], weights: np.ndarray) -> None:
        self.result, self.functionals, self.weights = result, functionals, weights
        self.segments, self.modes = result.segments, result.segments.modes
        self.n, self.q = self.modes.storing.shape[1:]
        self.one = result.origin.problem.system.shape[0] - 1
        for functional in functionals:
            check(result, functional)
        self.at: dict[float, list[int]] = {}
        for f, own in enumerate(functionals):
            if isinstance(own, Value):
                self.at.setdefault(own.time, []).append(f)
        ends = [t for own in functionals if isinstance(own, Integral) for t in (own.begin, own.end)]
        self.cuts = np.unique([*self.at, *ends])
        none = np.zeros((2, self.modes.voltage.shape[2]))
        self.of = [none if isinstance(f, EventTime) else branch_weights(result, f.quantity) for f in functionals]
        self.jumps = JumpSweep(result.origin)
        self.clear()

    def clear(self) -> None:
        """Reset all contributions."""
        modes = self.modes
        self.jumps.clear()
        self.values, self.by_system = np.zeros(len(self.functionals)), np.zeros(modes.system.shape)
        self.by_switching, self.by_storing, self.by_voltage, self.by_current = (
            np.zeros(own.transpose(0, 2, 1).shape)
            for own in (modes.switching, modes.storing, modes.voltage, modes.current)
        )

    def product(self, m: int, change: NamedTuple) -> float:
        """The effect of a change of a mode's matrices on the functional."""
        parts = (self.by_system, self.by_voltage, self.by_current, self.by_switching, self.by_storing)
        return float(sum((part[m] * own).sum() for part, own in zip(parts, change)))

    def row(self, f: int, m: int) -> np.ndarray:
        """The functional's quantity as a row over the state of a mode."""
        by_voltage, by_current = self.of[f]
        return np.asarray(self.modes.voltage[m] @ by_voltage + self.modes.current[m] @ by_current)

    def add_row(self, f: int, m: int, gradient: np.ndarray) -> None:
        """Accumulate the derivative by the quantity's own row."""
        by_voltage, by_current = self.of[f]
        self.by_voltage[m] += np.outer(by_voltage, gradient)
        self.by_current[m] += np.outer(by_current, gradient)

    def form(self, m: int, time: float) -> tuple[np.ndarray | None, list[int]]:
        """The quadratic form whose integral contributes at a time, and its functionals."""
        inside = [
            f for f, own in enumerate(self.functionals) if isinstance(own, Integral) and own.begin <= time < own.end
        ]
        if not inside:
            return None, []
        found = np.zeros((self.n, self.n))
        for f in inside:
            row, own = self.row(f, m), self.functionals[f]
            other = row if isinstance(own, Integral) and own.power == 2 else np.eye(self.n)[self.one]
            found += 0.5 * self.weights[f] * (np.outer(row, other) + np.outer(other, row))
        return found, inside

    def run(self, last: np.ndarray) -> np.ndarray:
        """The derivative by the initial states (q,), from that by the final ones."""
        seg, by_x = self.segments, last
        ends = np.append(seg.start[1:], self.result.stop)
        for k in range(seg.start.size - 1, -1, -1):
            m = int(seg.mode[k])
            by_z = self._event(k, m, float(ends[k]), by_x)
            by_x = embedding(self.modes, m, self.n - self.q).T @ self._segment(k, m, float(ends[k]), by_z)
        return self.jumps.back(0, by_x)

    def _event(self, k: int, m: int, end: float, by_x: np.ndarray) -> np.ndarray:
        """From the derivative by the states after an event to that by the states at the end of the segment before
        it."""
        seg, modes = self.segments, self.modes
        state = propagator(modes, m, end - float(seg.start[k])) @ seg.state[k]
        event, last = int(seg.cause[k]), k + 1 == seg.start.size
        moved = 0.0
        if not last:
            after = int(seg.mode[k + 1])
            later, moved = self._at_event(after, end, seg.state[k + 1], after=True)
            by_x = by_x + embedding(modes, after, self.n - self.q).T @ later
        before = self.jumps.back(k + 1, by_x)
        self.by_storing[m] += np.outer(before, state)
        by_z = modes.storing[m] @ before
        if last:
            return np.asarray(by_z)
        found, more = self._at_event(m, end, state, after=False)
        if event < 0:
            return np.asarray(by_z + found)
        row = event_row(modes, m, event, state)
        if row is None:
            raise UsageError(f"at {end:g} s a waveform touches zero without crossing: there is no gradient")
        rate = modes.system[m] @ state
        shift = moved + more + float(by_x @ slip(seg, k, state, self.jumps.jumps.at(k + 1)))
        for mode, z, sign in ((m, state, 1.0), (after, seg.state[k + 1], -1.0)):
            form, _ = self.form(mode, end)
            shift += 0.0 if form is None else sign * float(z @ form @ z)
        self.by_switching[m, event] -= shift / float(modes.switching[m, :, event] @ rate) * state
        return np.asarray(by_z + found - shift * row)

    def _at_event(self, m: int, time: float, state: np.ndarray, after: bool) -> tuple[np.ndarray, float]:
        """Contributions of values at an event and of its time: by the state on one side of it (N,), by its time."""
        found, moved = np.zeros(self.n), 0.0
        for f, own in enumerate(self.functionals):
            if isinstance(own, EventTime) and own.time == time and not after:
                self.values[f] = time
                moved += float(self.weights[f])
            elif isinstance(own, EventValue) and own.time == time and own.after is after:
                row = self.row(f, m)
                self.values[f] = float(row @ state)
                self.add_row(f, m, self.weights[f] * state)
                found += self.weights[f] * row
                moved += float(self.weights[f] * (row @ (self.modes.system[m] @ state)))
        return found, moved

    def _segment(self, k: int, m: int, end: float, by_z: np.ndarray) -> np.ndarray:
        """Across one segment, cut at the times of values and at the ends of integrals."""
        seg = self.segments
        start, last = float(seg.start[k]), k + 1 == seg.start.size
        cuts = self.cuts[np.searchsorted(self.cuts, start, "right") : np.searchsorted(self.cuts, end)]
        times = sorted({start, end, *cuts.tolist()})
        states = [propagator(self.modes, m, t - start) @ seg.state[k] for t in times]
        for at in range(len(times) - 1, -1, -1):
            if times[at] < end or last:
                by_z = by_z + self._values(m, times[at], states[at])
            if at == 0:
                break
            form, inside = self.form(m, 0.5 * (times[at - 1] + times[at]))
            length, radius = times[at] - times[at - 1], float(self.modes.radius[m])
            found = interval_gradient(Interval(self.modes.system[m], radius, length, states[at - 1]), by_z, form)
            self.by_system[m] += found.system
            for f in inside:
                square = self.functionals[f].power == 2  # type: ignore[union-attr]
                other = found.gram @ (self.row(f, m) if square else np.eye(self.n)[self.one])
                self.values[f] += float(self.row(f, m) @ other)
                self.add_row(f, m, self.weights[f] * (2.0 if square else 1.0) * other)
            by_z = found.state
        return by_z

    def _values(self, m: int, time: float, state: np.ndarray) -> np.ndarray:
        """Contributions of values at this time: their derivative by the state."""
        found = np.zeros(self.n)
        for f in self.at.get(time, ()):
            row = self.row(f, m)
            self.values[f] = float(row @ state)
            self.add_row(f, m, self.weights[f] * state)
            found += self.weights[f] * row
        return found
