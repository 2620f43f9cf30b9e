"""The run through time: a mode, its windows up to the next event, a jump where one is due, the next mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import block_diag, expm

from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import AMPLIFIER, CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.transient.jumps import capacitor_jump, inductor_jump
from circuitsim.transient.modes import Mode, Parts, Role, mode_of
from circuitsim.transient.proof import certify
from circuitsim.transient.result import Energies, Event, Segment, TransientResult, evaluate
from circuitsim.transient.select import NOISE, State, contradicted, germs, select, slack_rows
from circuitsim.transient.waveforms import Constant, Piece, Waveform
from circuitsim.transient.windows import (
    TO_COEFFICIENTS,
    Window,
    first_root,
    longest,
    resolved,
    window,
)

STATES = 60
"""Most capacitors and inductors: matrix exponentials cost the cube of their number."""
LARGEST_POINTS = 1_000_000
"""Most output times."""
AT_ONCE = 100
"""Events without a step forward in time after which the run is given up."""
FLOOR = 1e-3
"""Scale of currents against the largest voltage in the smallest resistance, of voltages against the largest current in
the largest one."""
HALVINGS = 100
"""Shortest window against the time left: 2 to this negative power."""
ROLES = {RESISTOR: Role.RESISTOR, DIODE: Role.BLOCKING, VOLTAGE: Role.VOLTAGE, CURRENT: Role.CURRENT,
         INDUCTOR: Role.INDUCTOR, CAPACITOR: Role.CAPACITOR}  # fmt: skip


def transient(
    circuit: Circuit,
    stop: float,
    waveforms: Mapping[str, Waveform] | None = None,
    initial: Mapping[str, float] | None = None,
    points: int = 1001,
    tolerance: float = 1e-9,
) -> TransientResult:
    """The waveforms of a circuit of resistors, capacitors, inductors, ideal diodes and sources from 0 to ``stop`` s.

    Parameters
    ----------
    circuit : Circuit
    stop : float
        s.
    waveforms : mapping of str to Waveform, optional
        Of voltage and current sources by name; all other sources keep the circuit's values.
    initial : mapping of str to float, optional
        Capacitor voltages, V, and inductor currents, A, by name, all others 0 (SPICE's ``uic``); without it the
        operating point at time 0.
    points : int
        Number of output times, evenly spaced, both ends included.
    tolerance : float
        What Kirchhoff's laws, the diodes' laws and the energy balance are held to (`TransientCertificate`).

    Returns
    -------
    TransientResult

    Raises
    ------
    UsageError
        A time that is not positive, an unknown source, too many states.
    InfeasibleError, UnboundedError
        No steady state at time 0, or no state after a jump.
    ConvergenceError
        Events that do not end; waveforms that fail their certificate.
    """
    if not 0.0 < stop < np.inf:
        raise UsageError(f"a run ends at a positive time, not at {stop!r} s")
    if not 2 <= points <= LARGEST_POINTS:
        raise UsageError(f"a run has 2 to {LARGEST_POINTS:,} output times, not {points}")
    run = _Run(circuit, dict(waveforms or {}))
    run.begin(initial)
    while run.time < stop:
        run.advance(stop)
    times = np.linspace(0.0, stop, points)
    energies = run.energies()
    voltage, current = evaluate(run.segments, times)
    found = certify(run.parts, run.diodes, voltage, current, energies.imbalance, tolerance)
    if not found.certified:
        raise ConvergenceError(f"the waveforms fail their certificate: {found}; accept less with a larger tolerance")
    return TransientResult(circuit, times, run.segments, tuple(run.events), energies, stop, found)


class _Found(NamedTuple):
    """The end of a window: its length, the diode whose event ends it (−1: none), the error of the time."""

    length: float
    diode: int
    error: float


class _Run:
    """The state of a run."""

    def __init__(self, circuit: Circuit, waveforms: dict[str, Waveform]) -> None:
        self.circuit, self.parts = circuit, _parts(circuit)
        role, kind = self.parts.role, circuit.arrays().kind
        self.diodes = np.flatnonzero(role == Role.BLOCKING)
        self.sources = np.flatnonzero((role == Role.VOLTAGE) | (role == Role.CURRENT))
        self.storing = np.flatnonzero((role == Role.CAPACITOR) | (role == Role.INDUCTOR))
        self.resistors = np.flatnonzero(role == Role.RESISTOR)
        if self.storing.size > STATES:
            raise UsageError(f"the circuit has {self.storing.size} capacitors and inductors; at most {STATES} are done")
        given = {circuit.element_index(name): waveform for name, waveform in waveforms.items()}
        for k in given:
            if kind[k] not in (VOLTAGE, CURRENT):
                raise UsageError(f"{circuit.names[k]} is no source; only sources have waveforms")
        value = circuit.arrays().value
        own = {k: float(value[k]) if kind[k] in (VOLTAGE, CURRENT) else 0.0 for k in self.sources.tolist()}
        self.waveforms = [given.get(k, Constant(level)) for k, level in own.items()]
        self.time = 0.0
        self.segments: list[Segment] = []
        self.events: list[Event] = []
        self.modes: dict[bytes, Mode] = {}
        self.windows: dict[tuple[bytes, int], Window] = {}
        self.powers = np.zeros(3)
        self.lost, self.still = 0.0, 0
        self.largest = np.zeros(2)
        self._pieces(0.0)

    # ------------------------------------------------------------------ beginning
    def begin(self, initial: Mapping[str, float] | None) -> None:
        """The state and the mode at time 0."""
        x = np.zeros(self.parts.role.size)
        conducting = np.zeros(self.diodes.size, dtype=bool)
        if initial is None:
            names = [self.circuit.names[k] for k in self.sources.tolist()]
            kind = self.circuit.arrays().kind
            values = {
                name: waveform.value(0.0)
                for name, k, waveform in zip(names, self.sources, self.waveforms)
                if kind[k] in (VOLTAGE, CURRENT)
            }
            point = solve(self.circuit.with_values(values))
            coils = self.parts.role == Role.INDUCTOR
            x[coils] = point.currents[coils]
            caps = np.flatnonzero(self.parts.role == Role.CAPACITOR)
            x[caps] = point.drops[caps] if point.drops is not None else 0.0
            conducting = point.currents[self.diodes] > 0.0
        for name, level in (initial or {}).items():
            k = self.circuit.element_index(name)
            if k not in self.storing:
                raise UsageError(f"{name} is neither a capacitor nor an inductor: it has no initial value")
            x[k] = level
        self.x0 = x
        self.lost += self._enter(conducting, x, np.zeros(self.diodes.size, dtype=bool), True)

    def _pieces(self, time: float) -> None:
        """The pieces of all source waveforms from ``time`` s on."""
        pieces: list[Piece] = [waveform.piece(time) for waveform in self.waveforms]
        self.w = np.concatenate([np.zeros(0), *(piece.state for piece in pieces)])
        self.w_scale = np.concatenate([np.zeros(0), *(piece.scale for piece in pieces)])
        self.corner = min((piece.end for piece in pieces), default=np.inf)
        self.system = block_diag(*(piece.system for piece in pieces)) if pieces else np.zeros((0, 0))
        self.rows = block_diag(*(piece.row for piece in pieces)) if pieces else np.zeros((0, 0))
        self.key = self.system.tobytes()

    def _mode(self, conducting: np.ndarray) -> Mode:
        key = conducting.tobytes() + self.key
        if key not in self.modes:
            self.modes[key] = mode_of(self.parts, self.diodes, conducting, self.sources, self.system, self.rows)
        return self.modes[key]

    def _enter(self, conducting: np.ndarray, x: np.ndarray, tied: np.ndarray, step: bool) -> float:
        """Select the mode from here on, after a jump where states may ``step``; returns the energy lost, J."""
        lost = 0.0
        for attempt in range(3):
            if step or attempt:
                x, gone = self._jumped(x)
                lost += gone
            at = self._state(x)
            mode, found = select(conducting, self._mode, self.diodes, at, tied, self.time)
            if not contradicted(mode, at):
                self.mode, self.germs, self.x = mode, found, x
                self.z = at.z(mode)
                return lost
            conducting = mode.conducting
        raise ConvergenceError(f"states do not agree with the sources at {self.time:g} s, also after jumps")

    def _jumped(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The states after a jump, and the energy lost in it, J; the same states where nothing contradicts them."""
        values = np.zeros(x.size)
        values[self.sources] = self.rows @ self.w
        after, delivered = np.zeros(x.size), 0.0
        if (self.parts.role == Role.CAPACITOR).any():
            jump = capacitor_jump(self.parts, x, values, self.diodes)
            after, delivered = after + jump.x, delivered + jump.delivered
        if (self.parts.role == Role.INDUCTOR).any():
            jump = inductor_jump(self.parts, x, values, self.diodes)
            after, delivered = after + jump.x, delivered + jump.delivered
        if (np.abs(after - x) <= NOISE * self._state(x).x_scale).all():
            return x, 0.0
        self.powers += [delivered, 0.0, abs(delivered)]
        return after, delivered + self._stored(x) - self._stored(after)

    def _state(self, x: np.ndarray) -> State:
        """The state, with the largest voltage and the largest current so far as its scales."""
        roles, values = self.parts.role, np.abs(self.rows) @ self.w_scale
        for kind, source, k in ((Role.CAPACITOR, Role.VOLTAGE, 0), (Role.INDUCTOR, Role.CURRENT, 1)):
            given = values[roles[self.sources] == source].max(initial=0.0)
            self.largest[k] = max(self.largest[k], given, np.abs(x[roles == kind]).max(initial=0.0))
        # Where nothing flows yet, currents are the rounding of voltages in the smallest resistance, and vice versa.
        ohms = self.parts.value[self.resistors]
        v, i = self.largest
        self.largest[0] = max(v, FLOOR * i * ohms.max(initial=0.0))
        self.largest[1] = max(i, FLOOR * v / ohms.min(initial=np.inf))
        scale = np.where(roles == Role.CAPACITOR, self.largest[0], 0.0)
        scale[roles == Role.INDUCTOR] = self.largest[1]
        return State(x, self.w, scale, self.w_scale)

    def _stored(self, x: np.ndarray) -> float:
        """Energy in capacitors and inductors, J."""
        return float(0.5 * (self.parts.value[self.storing] * x[self.storing] ** 2).sum())

    # ------------------------------------------------------------------ one window
    def advance(self, stop: float) -> None:
        """One window: up to an event, a corner of a source, or its end."""
        left = min(self.corner, stop) - self.time
        found = self._window(left)
        last = found.diode < 0 and found.length >= left
        since = left if last else found.length
        self.still = 0 if since > 4.0 * np.spacing(self.time) else self.still + 1
        if self.still > AT_ONCE:
            raise ConvergenceError(f"more than {AT_ONCE} events at {self.time:g} s: diodes change without end")
        z = expm(since * self.mode.system) @ self.z
        x = self.mode.dependent @ z
        before = self.mode.conducting
        bound = min(self.corner, stop)
        self.time = bound if last else min(self.time + since, bound)
        self.w = z[self.mode.states.size :]
        tied = np.zeros(self.diodes.size, dtype=bool)
        conducting = before
        if found.diode >= 0:
            tied[found.diode] = True
            conducting = before ^ tied
        corner = self.time >= self.corner
        step = False
        if corner:
            values, sizes = self.rows @ self.w, np.abs(self.rows) @ self.w_scale
            self._pieces(self.time)
            sizes = np.maximum(sizes, np.abs(self.rows) @ self.w_scale)
            step = bool((np.abs(self.rows @ self.w - values) > NOISE * sizes).any())
        if not (corner or found.diode >= 0):
            self.x, self.z = x, z
            self.germs = germs(self.mode, self.diodes, self._state(x), tied)
            return
        lost = self._enter(conducting, x, tied, step)
        self.lost += lost
        changed = np.flatnonzero(self.mode.conducting != before)
        if changed.size or lost:
            names = tuple("-+"[int(self.mode.conducting[d])] + self.circuit.names[self.diodes[d]] for d in changed)
            self.events.append(Event(self.time, found.error, names, lost))

    def _window(self, left: float) -> _Found:
        """The first event within the next window, which is recorded as a segment."""
        mode = self.mode
        key = mode.conducting.tobytes() + self.key
        scale = np.floor(np.log2(min(left, longest(mode.system))))
        power = int(scale) + (1 if 2.0**scale < min(left, longest(mode.system)) else 0)
        rows = slack_rows(mode, self.diodes)
        scale_z = self._state(self.x).scale(mode)
        for exponent in range(power, power - HALVINGS, -1):
            at = (key, exponent)
            if at not in self.windows:
                self.windows[at] = window(mode.system, 2.0**exponent)
            states = (self.windows[at].inside @ self.z).T
            peak = np.maximum(np.abs(states).max(axis=1, initial=0.0), scale_z)
            slack, size = rows @ states, np.abs(rows) @ peak
            if resolved(states, peak) and resolved(slack, size):
                break
        else:
            raise ConvergenceError(f"waveforms at {self.time:g} s are faster than any window")
        length = self.windows[at].length
        orders = np.where(self.germs.order > 8, -1, np.maximum(self.germs.order, 0))
        share, diode = first_root(slack, orders, size)
        end, error = min(length, left), 0.0
        if share * length < end:
            end, error = self._refined(rows[diode], share * length, size[diode])
        else:
            diode = -1
        self.largest[0] = max(self.largest[0], np.abs(mode.voltage @ states).max(initial=0.0))
        self.largest[1] = max(self.largest[1], np.abs(mode.current @ states).max(initial=0.0))
        self.segments.append(Segment(self.time, mode, self.z))
        self._integrate(mode, states, 2.0 * end / length - 1.0, length)
        return _Found(end, diode, error)

    def _refined(self, row: np.ndarray, time: float, size: float) -> tuple[float, float]:
        """A root of row · e^{A t} z by Newton's method from ``time`` s, and the estimate of its error, s."""
        error = 0.0
        for _ in range(3):
            z = expm(time * self.mode.system) @ self.z
            value, slope = float(row @ z), float(row @ (self.mode.system @ z))
            if slope >= 0.0:
                return time, error
            step = -value / slope
            error = 1e-15 * size / -slope
            if not abs(step) <= 1e-3 * time:
                return time, error
            time += step
            if abs(step) <= 4.0 * np.spacing(self.time + time):
                break
        return time, error

    def _integrate(self, mode: Mode, states: np.ndarray, until: float, length: float) -> None:
        """Add the energies of a window up to ``until`` (−1 … 1)."""
        r, s = self.resistors, self.sources
        lost = ((mode.voltage[r] @ states) * (mode.current[r] @ states)).sum(axis=0)
        each = -(mode.voltage[s] @ states) * (mode.current[s] @ states)
        powers = np.stack([each.sum(axis=0), lost, np.abs(each).sum(axis=0) + lost])
        for k, coefficients in enumerate((TO_COEFFICIENTS @ powers.T).T):
            whole = chebyshev.chebint(coefficients, lbnd=-1.0)
            self.powers[k] += 0.5 * length * float(chebyshev.chebval(until, whole))

    def energies(self) -> Energies:
        """The energies of the run."""
        delivered, dissipated, turned = self.powers.tolist()
        stored = self._stored(self.x), self._stored(self.x0)
        return Energies(delivered, dissipated, stored[0] - stored[1], self.lost, turned + max(stored))


def _parts(circuit: Circuit) -> Parts:
    """The elements by role: zero resistances are sources of 0 V, zero inductances too, zero capacitances of 0 A."""
    kind, first, second, value, n_nodes = circuit.arrays()
    if circuit.devices:
        raise UsageError("devices in time are not done yet; only ideal diodes")
    if (kind == AMPLIFIER).any():
        raise UsageError("amplifiers in time are not done yet")
    role = np.array([int(ROLES[k]) for k in kind.tolist()], dtype=np.int64)
    size = np.where(np.isin(kind, (RESISTOR, INDUCTOR, CAPACITOR)), value, 0.0)
    if (size < 0.0).any():
        raise UsageError(f"{circuit.names[int(np.argmin(size))]} is negative: its energy is not bounded below")
    role[(size == 0.0) & ((kind == RESISTOR) | (kind == INDUCTOR))] = Role.VOLTAGE
    role[(size == 0.0) & (kind == CAPACITOR)] = Role.CURRENT
    return Parts(n_nodes, first, second, role, size, None)
