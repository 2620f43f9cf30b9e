"""Exact gradients of values, integrals and mean squares of waveforms, through events: one run backwards for all values.

On a segment the waveforms are e^{A t} z; the derivative of an integral of their square by A follows from doubling,
E ← E E, W ← W + Eᵀ W E, run backwards (Van Loan 1978 for the integrals). At an event its shift in time enters
(`circuitsim.transient.monodromy`). A periodic state is an implicit function of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.probes import Probe, parse_probes
from circuitsim.errors import UsageError
from circuitsim.transient.mode_derivatives import (
    mode_derivative,
    operating_point_derivative,
    parameter,
)
from circuitsim.transient.monodromy import embedding, event_row, monodromy, propagator
from circuitsim.transient.result import Beginning, TransientResult
from circuitsim.transient.steady import ONCE, PeriodicResult
from circuitsim.transient.stretch_gradients import Stretch, stretch_gradient


class Value(NamedTuple):
    """A voltage or current at a time.

    Attributes
    ----------
    quantity : str
        ``v(out)``, ``v(a,b)`` or ``i(R1)``.
    time : float
        s.
    """

    quantity: str
    time: float


class Integral(NamedTuple):
    """∫ of a voltage or current, or of its square, over time.

    Attributes
    ----------
    quantity : str
    begin, end : float
        s.
    power : int
        1 or 2.
    """

    quantity: str
    begin: float
    end: float
    power: int = 1


class WaveformGradient(NamedTuple):
    """Values of functionals, and the gradient of their weighted sum.

    Attributes
    ----------
    values : (f,) float array
    gradient : dict of str to float
        By element: per Ω, F, H; per V or A of a DC source; per unit of a factor on a source with a waveform.
    """

    values: np.ndarray
    gradient: dict[str, float]


def waveform_gradient(
    result: TransientResult, functionals: Sequence[Value | Integral], names: Sequence[str],
    weights: Sequence[float] | None = None,
) -> WaveformGradient:  # fmt: skip
    """Functionals of waveforms and the gradient of their weighted sum by values of elements.

    Parameters
    ----------
    result : TransientResult
        Of `circuitsim.transient.transient`, or of `steady_state_periodic`: then the beginning moves with the values.
    functionals : sequence of Value or Integral
    names : sequence of str
        Resistors, capacitors, inductors and sources.
    weights : sequence of float, optional
        All 1 without them; of a loss its derivatives by the functionals.

    Returns
    -------
    WaveformGradient

    Raises
    ------
    UsageError
        States that jump, an event at which a waveform only touches zero, times outside the run, other quantities.

    Examples
    --------
    ``waveform_gradient(run, [Integral("v(out)", 0.0, 0.02)], ["R1", "C1"]).gradient["C1"]``
    """
    if result.origin.jumps:
        raise UsageError("states of this run jump: gradients through jumps are not done")
    if result.origin.begins is Beginning.HELD:
        raise UsageError("the run begins where .ic holds it: state initial values for a gradient")
    sweep = _Sweep(result, functionals, np.ones(len(functionals)) if weights is None else np.asarray(weights, float))
    begin = sweep.run(np.zeros(sweep.q))
    if isinstance(result, PeriodicResult):
        derivative = monodromy(result.segments, result.stop, ())
        last = np.linalg.lstsq(np.eye(sweep.q) - derivative.T, begin, rcond=ONCE)[0]
        sweep.clear()
        sweep.run(last)
    problem, segments, found = result.origin.problem, result.segments, {}
    met = sorted(set(segments.mode.tolist()))
    for name in names:
        of = parameter(problem, name)
        total = sum(sweep.product(m, mode_derivative(problem, segments.modes, m, of)) for m in met)
        if result.origin.begins is Beginning.OPERATING_POINT:
            conducting = segments.conducting(np.array([0]))[0]
            total += float(begin @ operating_point_derivative(problem, conducting, of))
        found[name] = float(total)
    return WaveformGradient(sweep.values, found)


class _Sweep:
    """One run backwards: what each entry of each mode's matrices contributes."""

    def __init__(
        self, result: TransientResult, functionals: Sequence[Value | Integral], weights: np.ndarray
    ) -> None:
        self.result, self.functionals, self.weights = result, functionals, weights
        self.segments, self.modes = result.segments, result.segments.modes
        self.q, self.n = self.modes.storing.shape[1:]
        self.one = result.origin.problem.system.shape[0] - 1
        for functional in functionals:
            ends = (functional.time,) * 2 if isinstance(functional, Value) else (functional.begin, functional.end)
            if not 0.0 <= ends[0] <= ends[1] <= result.stop:
                raise UsageError(f"{functional}: times must lie in order between 0 s and {result.stop:g} s")
            if isinstance(functional, Integral) and functional.power not in (1, 2):
                raise UsageError(f"{functional}: the power is 1 or 2")
        self.of = [_weights(result, functional.quantity) for functional in functionals]
        self.clear()

    def clear(self) -> None:
        """Forget all contributions."""
        modes = self.modes
        self.values = np.zeros(len(self.functionals))
        self.by_system, self.by_slack = np.zeros(modes.system.shape), np.zeros(modes.slack.shape)
        self.by_storing = np.zeros(modes.storing.shape)
        self.by_voltage, self.by_current = np.zeros(modes.voltage.shape), np.zeros(modes.current.shape)

    def product(self, m: int, change: NamedTuple) -> float:
        """What a change of a mode's matrices makes of the functional."""
        parts = (self.by_system, self.by_voltage, self.by_current, self.by_slack, self.by_storing)
        return float(sum((part[m] * own).sum() for part, own in zip(parts, change)))

    def row(self, f: int, m: int) -> np.ndarray:
        """The functional's quantity over the state of a mode."""
        by_voltage, by_current = self.of[f]
        return np.asarray(by_voltage @ self.modes.voltage[m] + by_current @ self.modes.current[m])

    def add_row(self, f: int, m: int, gradient: np.ndarray) -> None:
        """Count what the quantity's own row contributes."""
        by_voltage, by_current = self.of[f]
        self.by_voltage[m] += np.outer(by_voltage, gradient)
        self.by_current[m] += np.outer(by_current, gradient)

    def form(self, m: int, time: float) -> tuple[np.ndarray | None, list[int]]:
        """The quadratic form whose integral counts around a time, and the functionals in it."""
        inside = [
            f for f, own in enumerate(self.functionals)
            if isinstance(own, Integral) and own.begin <= time < own.end
        ]  # fmt: skip
        if not inside:
            return None, []
        found = np.zeros((self.n, self.n))
        for f in inside:
            row, own = self.row(f, m), self.functionals[f]
            other = row if isinstance(own, Integral) and own.power == 2 else np.eye(self.n)[self.one]
            found += 0.5 * self.weights[f] * (np.outer(row, other) + np.outer(other, row))
        return found, inside

    def run(self, last: np.ndarray) -> np.ndarray:
        """The derivative by the states at the beginning (q,), from that by those at the end."""
        seg, by_x = self.segments, last
        ends = np.append(seg.start[1:], self.result.stop)
        for k in range(seg.start.size - 1, -1, -1):
            m = int(seg.mode[k])
            by_z = self._event(k, m, float(ends[k]), by_x)
            by_x = embedding(self.modes, m, self.n - self.q).T @ self._segment(k, m, float(ends[k]), by_z)
        return by_x

    def _event(self, k: int, m: int, end: float, by_x: np.ndarray) -> np.ndarray:
        """From states at the beginning of the next segment to those at the end of this one."""
        seg, modes = self.segments, self.modes
        state = propagator(modes, m, end - float(seg.start[k])) @ seg.state[k]
        self.by_storing[m] += np.outer(by_x, state)
        by_z = modes.storing[m].T @ by_x
        event = int(seg.cause[k])
        if event < 0 or k + 1 == seg.start.size:
            return np.asarray(by_z)
        row = event_row(modes, m, event, state)
        if row is None:
            raise UsageError(f"at {end:g} s a waveform only touches zero: there is no gradient")
        after, begin = int(seg.mode[k + 1]), seg.state[k + 1]
        rate, then = modes.system[m] @ state, modes.system[after] @ begin
        shift = float(by_x @ (modes.storing[m] @ rate - modes.storing[after] @ then))
        for mode, z, sign in ((m, state, 1.0), (after, begin, -1.0)):
            form, _ = self.form(mode, end)
            shift += 0.0 if form is None else sign * float(z @ form @ z)
        self.by_slack[m, event] -= shift / float(modes.slack[m, event] @ rate) * state
        return np.asarray(by_z - shift * row)

    def _segment(self, k: int, m: int, end: float, by_z: np.ndarray) -> np.ndarray:
        """Through one segment, cut at the times of values and at the ends of integrals."""
        seg = self.segments
        start, last = float(seg.start[k]), k + 1 == seg.start.size
        cuts = [own.time for own in self.functionals if isinstance(own, Value)]
        cuts += [t for own in self.functionals if isinstance(own, Integral) for t in (own.begin, own.end)]
        times = sorted({start, end, *(t for t in cuts if start < t < end)})
        states = [propagator(self.modes, m, t - start) @ seg.state[k] for t in times]
        for at in range(len(times) - 1, -1, -1):
            if times[at] < end or last:
                by_z = by_z + self._values(m, times[at], states[at])
            if at == 0:
                break
            form, inside = self.form(m, 0.5 * (times[at - 1] + times[at]))
            length, radius = times[at] - times[at - 1], float(self.modes.radius[m])
            found = stretch_gradient(Stretch(self.modes.system[m], radius, length, states[at - 1]), by_z, form)
            self.by_system[m] += found.system
            for f in inside:
                square = self.functionals[f].power == 2  # type: ignore[union-attr]
                other = found.gram @ (self.row(f, m) if square else np.eye(self.n)[self.one])
                self.values[f] += float(self.row(f, m) @ other)
                self.add_row(f, m, self.weights[f] * (2.0 if square else 1.0) * other)
            by_z = found.state
        return by_z

    def _values(self, m: int, time: float, state: np.ndarray) -> np.ndarray:
        """What values at this time contribute, and their derivative by the state."""
        found = np.zeros(self.n)
        for f, own in enumerate(self.functionals):
            if isinstance(own, Value) and own.time == time:
                row = self.row(f, m)
                self.values[f] = float(row @ state)
                self.add_row(f, m, self.weights[f] * state)
                found += self.weights[f] * row
        return found


def _weights(result: TransientResult, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """A quantity as weights of branch voltages and currents of the elementary elements.

    Raises
    ------
    UsageError
        Neither a voltage nor a current.
    """
    probes = parse_probes(quantity, result.circuit)
    if len(probes) != 1 or not isinstance(probes[0], Probe) or probes[0].kind not in ("v", "i"):
        raise UsageError(f"{quantity!r} is neither one voltage nor one current")
    probe, terminals = probes[0], result.origin.problem.terminals
    by_voltage, by_current = np.zeros((2, result.segments.modes.voltage.shape[1]))
    if probe.kind == "v":
        pairs = result.path(probe.first, probe.second or result.circuit.node_names[0])
        target, inner = by_voltage, terminals.drops
    else:
        pairs, target, inner = [(result.circuit.element_index(probe.first), 1.0)], by_current, terminals.flows
    for k, sign in pairs:
        if k in terminals.devices:
            places, signs = inner[terminals.devices.index(k)]
            np.add.at(target, places, sign * signs)
        else:
            target[k] += sign
    return by_voltage, by_current
