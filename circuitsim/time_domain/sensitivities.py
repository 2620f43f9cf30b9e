"""Sensitivities of exact runs: the segments once more, with an imaginary step in each of several numbers.

Imaginary parts over the step are derivatives to rounding (complex step), through the equations of the modes, matrix
exponentials and jumps. The time of an event depends on the state before it: δt = −g·δz / g·ż where g·z is the
switching function, which adds (ẋ⁻ − ẋ⁺) δt to the change of the states after it (the saltation matrix of Aizerman and
Gantmakher 1958).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.time_domain.functionals import (
    EventTime,
    EventValue,
    Functional,
    Integral,
    Value,
    branch_weights,
    check,
)
from circuitsim.time_domain.jumps import constraint, projection
from circuitsim.time_domain.mode_rows import Supply, switching_functions
from circuitsim.time_domain.modes import mode_of
from circuitsim.time_domain.numbers import STEP, ExactDirections
from circuitsim.time_domain.result import Jump, Origin, Segments, TransientResult
from circuitsim.time_domain.small_matrices import DEGREE, TERMS

GRAZING = 1e-12
"""Slopes of a switching function at its zero below this fraction of its terms are zero: there is no derivative."""
SAME = 1e-7
"""Largest relative difference between the states after a jump and those of its linear map."""
TOGETHER = 32
"""Number of parameters in one pass, whose matrices are held for each mode: 8 MB for one of 128 states."""


class SteppedMode(NamedTuple):
    """A mode's matrices for each of p steps; see `circuitsim.time_domain.library.Modes`.

    Attributes
    ----------
    system : (p, N, N) complex array
    switching, storing : (p, d, N), (p, q, N) complex arrays
    rows : (p, c, N) complex array
        The quantities of functionals.
    """

    system: np.ndarray
    switching: np.ndarray
    storing: np.ndarray
    rows: np.ndarray


class Sensitivities:
    """The run with steps.

    Parameters
    ----------
    origin : Origin
    segments : Segments
    stop : float
        s.
    steps : sequence of Supply
    functionals : sequence of Functional
    weights : mapping of str to tuple of two (m,) float arrays
        Of branch voltages and currents in their quantities.
    strict : bool
        Whether to refuse events and jumps without a derivative, which otherwise contribute nothing.

    Attributes
    ----------
    values : (f, p) complex array
        Of the functionals.
    """

    def __init__(
        self,
        origin: Origin,
        segments: Segments,
        stop: float,
        steps: Sequence[Supply],
        functionals: Sequence[Functional],
        weights: Mapping[str, tuple[np.ndarray, np.ndarray]],
        strict: bool,
    ) -> None:
        self.problem, self.segments, self.stop, self.strict = origin.problem, segments, stop, strict
        self.steps, self.functionals = steps, functionals
        self.names, self.weights = [*weights], [*weights.values()]
        self.modes = segments.modes
        self.q, self.s = self.modes.storing.shape[2], len(self.problem.system)
        self.stepped: dict[int, SteppedMode] = {}
        self.maps: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
        self.jumps: dict[int, list[Jump]] = {}
        for jump in origin.jumps:
            self.jumps.setdefault(jump.segment, []).append(jump)
        self.at: dict[float, list[int]] = {}
        for f, own in enumerate(functionals):
            if not isinstance(own, Integral):
                self.at.setdefault(own.time, []).append(f)
        ends = [t for own in functionals if isinstance(own, Integral) for t in (own.begin, own.end)]
        self.cuts = np.unique([*self.at, *ends])

    def run(self, x: np.ndarray) -> np.ndarray:
        """The final states (p, q), complex, from the imaginary parts of the initial ones (p, q)."""
        seg, ends = self.segments, np.append(self.segments.start[1:], self.stop)
        self.values = np.zeros((len(self.functionals), len(x)), complex)
        if not len(x):
            return x
        x = self._jumped(0, 1j * x, np.zeros((len(x), self.s), complex))
        moved = np.zeros(len(x))
        for k, (m, end) in enumerate(zip(seg.mode.tolist(), ends.tolist())):
            own, state, last = self.mode(m), seg.state[k], k + 1 == seg.start.size
            rate = own.system[0].real @ state
            dz = self._state(m, x.imag - np.outer(moved, self.modes.storing[m].T @ rate))
            z = state + 1j * dz
            if k:
                self._at_event(own, float(seg.start[k]), z, rate, moved, after=True)
            z = self._through(own, m, float(seg.start[k]), end, z, last)
            moved = np.zeros(len(x))
            if not last:
                rate = own.system[0].real @ z[0].real
                if seg.cause[k] >= 0:
                    moved = self._delay(own.switching[:, seg.cause[k]], z, rate, end)
                self._at_event(own, end, z, rate, moved, after=False)
                z = z + 1j * np.outer(moved, rate)
            x = self._jumped(k + 1, _applied(own.storing, z), z[:, : self.s])
        return x

    def mode(self, m: int) -> SteppedMode:
        """The matrices of mode ``m``."""
        if m not in self.stepped:
            self.stepped[m] = SteppedMode(*map(np.stack, zip(*(self._of_step(m, step) for step in self.steps))))
        return self.stepped[m]

    def _of_step(self, m: int, of: Supply) -> SteppedMode:
        """The matrices of mode ``m`` for one step."""
        s, q, conducting = self.s, self.q, self.modes.conducting[m]
        mode = mode_of(of, conducting)
        left = q - mode.states.size
        voltage, current, storing = (
            np.pad(own, ((0, 0), (0, left))) for own in (mode.voltage, mode.current, mode.storing)
        )
        switching = switching_functions(of, conducting, voltage, current)
        rows = np.array([by_v @ voltage + by_i @ current for by_v, by_i in self.weights]).reshape(-1, s + q)
        return SteppedMode(np.pad(mode.system, (0, left)), switching, storing, rows)

    def _state(self, m: int, x: np.ndarray) -> np.ndarray:
        """The change of the state of a mode (p, N) for that of capacitor voltages and inductor currents (p, q)."""
        modes, many = self.modes, int(self.modes.size[m])
        found = np.zeros((len(x), self.s + self.q))
        own = x @ modes.onto[m, :many].T if modes.onto.size else x[:, modes.place[m, :many]]
        found[:, self.s : self.s + many] = own
        return found

    def _through(self, own: SteppedMode, m: int, start: float, end: float, z: np.ndarray, last: bool) -> np.ndarray:
        """Across one segment, cut at the times of values and at the ends of integrals."""
        cuts = self.cuts[np.searchsorted(self.cuts, start, "right") : np.searchsorted(self.cuts, end)]
        times = [start, *cuts.tolist(), end]
        for begin, until in pairwise(times):
            self._values(own, begin, z)
            inside = self._inside(0.5 * (begin + until))
            z, gram = interval(own.system, float(self.modes.radius[m]), until - begin, z, bool(inside))
            for f in inside:
                self.values[f] += self._product(own, f, gram)
        if last:
            self._values(own, end, z)
        return z

    def _values(self, own: SteppedMode, time: float, z: np.ndarray) -> None:
        for f in self.at.get(time, ()):
            if isinstance(functional := self.functionals[f], Value):
                self.values[f] = (self._row(own, functional) * z).sum(axis=1)

    def _row(self, own: SteppedMode, functional: Value | EventValue | Integral) -> np.ndarray:
        """A functional's quantity over the state of a mode (p, N)."""
        return own.rows[:, self.names.index(functional.quantity)]

    def _inside(self, time: float) -> list[int]:
        """The integrals at a time."""
        every = enumerate(self.functionals)
        return [f for f, own in every if isinstance(own, Integral) and own.begin <= time < own.end]

    def _product(self, own: SteppedMode, f: int, gram: np.ndarray) -> np.ndarray:
        """The integrand of an integral, or itself, from z zᵀ (p, N, N) or its integral."""
        functional = self.functionals[f]
        assert isinstance(functional, Integral)
        row = self._row(own, functional)
        by_row = (gram @ row[..., None])[..., 0]
        return np.asarray((row * by_row).sum(axis=1) if functional.power == 2 else by_row[:, self.s - 1])

    def _delay(self, row: np.ndarray, z: np.ndarray, rate: np.ndarray, time: float) -> np.ndarray:
        """The imaginary part of an event's time (p,), from its switching function (p, N)."""
        slope = float(row[0].real @ rate)
        if abs(slope) > GRAZING * float(np.abs(row[0].real) @ np.abs(rate)):
            return np.asarray(-(row * z).sum(axis=1).imag / slope)
        if self.strict:
            raise UsageError(f"at {time:g} s a waveform touches zero without crossing: there is no gradient")
        return np.zeros(len(z))

    def _at_event(
        self, own: SteppedMode, time: float, z: np.ndarray, rate: np.ndarray, moved: np.ndarray, after: bool
    ) -> None:
        """Values on one side of an event, and what its delay adds to integrals."""
        for f in self.at.get(time, ()):
            functional = self.functionals[f]
            if isinstance(functional, EventTime) and not after:
                self.values[f] = time + 1j * moved
            elif isinstance(functional, EventValue) and functional.after is after:
                self.values[f] = (self._row(own, functional) * (z + 1j * np.outer(moved, rate))).sum(axis=1)
        if moved.any():
            for f in self._inside(time):
                here = self._product(own, f, z[:, :, None] * z[:, None, :])
                self.values[f] += 1j * moved * (-here.real if after else here.real)

    def _jumped(self, segment: int, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The states (p, q) after the jumps before a segment; of the sources the imaginary parts are those of ``w``."""
        for jump in self.jumps.get(segment, ()):
            key = jump.carrying.tobytes() + jump.open.tobytes()
            if key not in self.maps:
                both = [self._jump_map(jump, step) for step in self.steps]
                self.maps[key] = np.stack([own[0] for own in both]), np.stack([own[1] for own in both])
            project, given = self.maps[key]
            driven = _applied(given, jump.w + 1j * w.imag)
            x = driven + _applied(project, jump.before + 1j * x.imag - driven)
            gap = np.abs(x[0].real - jump.after).max(initial=0.0)
            if self.strict and gap > SAME * np.abs([jump.before, jump.after]).max():
                raise UsageError("states jump between two sets of conducting diodes: there is no gradient")
        return x

    def _jump_map(self, jump: Jump, of: Supply) -> tuple[np.ndarray, np.ndarray]:
        """P (q, q) and N (q, s) of a jump: see `circuitsim.time_domain.jumps`."""
        free, given = constraint(of, jump.carrying, jump.open)
        return projection(free, self.problem.storage(of.parts.value, of.parts.coupling)), given


def _applied(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Products of matrices (p or 1, r, c) and vectors (p, c)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def interval(
    system: np.ndarray, radius: float, length: float, z: np.ndarray, integrals: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The state after an interval, and ∫ z zᵀ dt over it.

    By Taylor's series over a short step, then by doubling: E ← E E, G ← G + E G Eᵀ (Van Loan 1978).

    Parameters
    ----------
    system : (p, N, N) array
    radius : float
        Largest absolute eigenvalue, 1/s.
    length : float
        s.
    z : (p, N) array
        At its beginning.
    integrals : bool
        Whether the integral is needed; zero without.

    Returns
    -------
    state : (p, N) array
    gram : (p, N, N) array
    """
    doublings = max(0, math.frexp(2.0 * radius * length)[1])
    short, one = math.ldexp(length, -doublings), np.eye(z.shape[1])
    e = np.zeros_like(system)
    for k in range(DEGREE, 0, -1):
        e = short / k * (system @ (e + one))
    gram = z[:, :, None] * z[:, None, :] * short if integrals else np.zeros((*z.shape, z.shape[1]))
    if integrals:
        term = gram
        for k in range(2, TERMS + 1):
            image = system @ term
            term = short / k * (image + image.transpose(0, 2, 1))
            gram = gram + term
    for _ in range(doublings):
        if integrals:
            whole = e + one
            gram = gram + whole @ gram @ whole.transpose(0, 2, 1)
        e = 2.0 * e + e @ e
    return z + _applied(e, z), gram


def exact_sensitivities(
    result: TransientResult, functionals: Sequence[Functional], names: Sequence[str], strict: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Values of functionals (f,), and their derivatives by numbers (f, n); see
    `circuitsim.time_domain.steady.sensitivities`."""
    for functional in functionals:
        check(result, functional)
    origin, segments = result.origin, result.segments
    of, before = ExactDirections(origin.problem, result.begun, names), np.zeros(len(origin.problem.circuit), dtype=bool)
    before[origin.problem.diodes] = segments.conducting(np.array([0]))[0, : origin.problem.diodes.size]
    initial = STEP * of.states(before)
    timed = [own for own in functionals if not isinstance(own, EventTime)]
    quantities = {own.quantity: branch_weights(result, own.quantity) for own in timed}
    moving = np.flatnonzero(of.moves)
    alike = [moving[k : k + TOGETHER] for k in range(0, moving.size, TOGETHER)]
    found = np.zeros((len(functionals), len(of.steps)), complex)
    for own in (*alike, np.flatnonzero(~of.moves)):
        # Numbers that move nothing but initial states share their matrices.
        steps = [of.steps[j] for j in own.tolist() if of.moves[j] or j == own[0]]
        if steps:
            run = Sensitivities(origin, segments, result.stop, steps, functionals, quantities, strict)
            run.run(initial[own])
            found[:, own] = run.values
    return found[:, 0].real.copy(), found[:, : len(names)].imag / STEP
