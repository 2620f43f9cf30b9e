"""Smooth devices with controlled sources: Newton's method, and proofs about other operating points.

A step is an operating point of the linearised circuit (`circuitsim.analysis.controlled`). There is no energy, so
neither convergence nor uniqueness is guaranteed. The operating point is unique if the circuit with an ideal diode in
place of every device has P-matrices: for two operating points the products Δv Δi of all monotone devices are
nonnegative, which a P-matrix excludes (Sandberg & Willson 1969).

For small circuits others are searched for at the ports. At the ports of its devices and diodes the rest of the circuit
is linear: v = v₀ + P z, ρ i = i₀ + Q z with z = v − ρ i (`circuitsim.controlled.states`). In the wave w = v + ρ i each
curve is a function v(w) with a slope between 0 and 1:

    w = b + S (2 v(w) − w),   b = v₀ + i₀,   S = P + Q,

an equation with as many unknowns as ports, solved by Newton's method from many starts. Its solutions have the accuracy
of one elimination: they are initial guesses for the certified iteration, not operating points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.collapse import assembled, proof
from circuitsim.analysis.controlled import NOISE, PreparedControlled, always_one, loaded_ports, measured, unknowns
from circuitsim.analysis.newton import (
    FALLBACKS,
    Found,
    Smooth,
    iterate,
    own_distance,
    project,
)
from circuitsim.analysis.operating_point import OperatingPoint, Uniqueness
from circuitsim.analysis.solution_warnings import several
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import Expansion
from circuitsim.controlled.linear import Pair
from circuitsim.controlled.rational import IDEAL, LEVEL, RISING
from circuitsim.controlled.search import port_values
from circuitsim.errors import ConvergenceError, NoOperatingPointError, NoSteadyStateError, Problem, some
from circuitsim.models.smooth import SmoothDevice
from circuitsim.newton.steps import FIXED, NOTHING

STEPS = 40
"""Maximum number of steps from one start."""

SHORTER = 12
"""Maximum number of halvings of a step."""

MOST = 200
"""Maximum number of ports for this search."""

CLOSE = 1e-9
"""Largest relative residual of a converged equation."""

SAME = 1e-6
"""Relative difference below which two waves are equal."""


class Waves(NamedTuple):
    """The equation of the waves.

    Attributes
    ----------
    constant : (d,) float array
        b, V.
    scattering : (d, d) float array
        S.
    load : (d,) float array
        ρ, Ω.
    smooth : Smooth
        The smooth devices.
    device : (d,) int array
        The one of each port; −1 for an ideal diode.
    point : callable
        The circuit's state, given z (d,), V, and the ports whose wave is positive (d,).
    """

    constant: np.ndarray
    scattering: np.ndarray
    load: np.ndarray
    smooth: Smooth
    device: np.ndarray
    point: Callable[[np.ndarray, np.ndarray], OperatingPoint]

    def curve(self, wave: np.ndarray, guess: np.ndarray) -> _Curves:
        """The points of all curves at these waves, V (d,); ``guess``: nearby junction voltages of the devices, V."""
        smooth, count, inside = self.smooth, self.smooth.slope.size, self.device >= 0
        own = self.device[inside]
        v, slope = np.minimum(wave, 0.0), (wave < 0.0).astype(float)
        at, line, series = np.zeros(count), np.ones(count), smooth.rows[:, 0]
        at[own], line[own] = wave[inside], self.load[inside]
        points = project(smooth, at, np.zeros(count), line - series, guess)
        v[inside] = points[0, own]
        slope[inside] = 1.0 / (1.0 + self.load[inside] * points[4, own])
        return _Curves(v, slope, points)

    def newton(self, wave: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The waves and the points of the devices' curves, by Newton's method with step halving; None without
        convergence."""
        at = self.curve(wave, np.zeros(self.smooth.slope.size))
        residual = self._residual(wave, at.v)
        for _ in range(STEPS):
            matrix = np.eye(wave.size) - self.scattering * (2.0 * at.slope - 1.0)
            try:
                step = np.linalg.solve(matrix, -residual)
            except np.linalg.LinAlgError:
                return None
            size, share = float(np.abs(residual).max()), 1.0
            for _ in range(SHORTER):
                new = wave + share * step
                there = self.curve(new, at.points[0])
                moved = self._residual(new, there.v)
                if np.isfinite(moved).all() and np.abs(moved).max() <= (1.0 - 0.1 * share) * size:
                    break
                share *= 0.5
            else:
                return None
            wave, residual, at = new, moved, there
            terms = np.abs(self.constant) + np.abs(self.scattering) @ np.abs(2.0 * at.v - wave) + np.abs(wave)
            if (np.abs(residual) <= CLOSE * terms).all() and np.abs(share * step).max() <= SAME * np.abs(wave).max():
                return wave, at.points
        return None

    def _residual(self, wave: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(wave - self.constant - self.scattering @ (2.0 * v - wave))

    def starts(self, count: int) -> Iterator[Found]:
        """The solutions found from ``count`` starts, or from as many farther ones, as initial guesses for the certified
        iteration."""
        random = np.random.default_rng(0)
        known: list[np.ndarray] = []
        scale = float(np.abs(self.constant).max(initial=0.0)) or 1.0
        for k in range(2 * count):
            far = k >= count  # where no solution is of the size of the sources: curves have their own
            if far and known:
                return
            spread = scale * 10.0 ** random.uniform(-2.0 + 3.5 * far, 1.5 + 3.5 * far)
            wave = spread * random.standard_normal(self.load.size) * (k > 0)
            with np.errstate(all="ignore"):
                found = self.newton(wave)
            if found is not None and not any(np.abs(found[0] - w).max() <= SAME * np.abs(w).max() for w in known):
                wave, points = found
                known.append(wave)
                with np.errstate(all="ignore"):
                    point = self.point(2.0 * self.curve(wave, points[0]).v - wave, wave > 0.0)
                yield Found.at(point, points[1], points[2])


class _Curves(NamedTuple):
    """Voltages v(w), V, and slopes of v(w) of all ports; the points of the devices' curves."""

    v: np.ndarray
    slope: np.ndarray
    points: np.ndarray


STARTS, FEW = 32, 6
"""Number of starts in the search for a second operating point: in general, and along a branch."""

LONG = 100
"""Maximum number of steps of Newton's method from zero volts."""

PATIENCE = 25
"""Maximum number of steps of Newton's method from a start close to an operating point, if there is one."""

HALVINGS = 4
"""Maximum number of halvings of the step from a start to new values where the branch seems to jump."""

APART = 1e-6
"""Minimum relative distance from the curves of the midpoint of two distinct operating points."""

FAR = 1e10
"""Node voltage, V, above which a point may be an artefact of a matrix that is singular up to rounding."""

FARTHEST = 1e60
"""Device voltage, V, above which it would depend on the minimum conductance of tangents, 1e-100 S, which is no part of
the circuit: in op-amps with positive feedback through open devices."""


@dataclass(frozen=True, eq=False)
class SmoothControlled:
    """A prepared circuit with smooth devices and controlled sources.

    Attributes
    ----------
    circuit : Circuit
        With the values to solve for.
    smooth : Smooth
        Its smooth devices.
    expansion : Expansion
        The circuit of elementary elements.
    inner : PreparedControlled
        That circuit, prepared.
    tolerance : float
    """

    circuit: Circuit
    smooth: Smooth
    expansion: Expansion
    inner: PreparedControlled
    tolerance: float
    _proven: dict[bytes, bool] = field(default_factory=dict)

    def solve(self, column: np.ndarray, start: OperatingPoint | None) -> OperatingPoint:
        """The operating point with its verdict.

        Parameters
        ----------
        column : (m,) float array
            Values of the elementary elements.
        start : OperatingPoint, optional
            Its branch is continued to the new values.

        Raises
        ------
        NoOperatingPointError
            None was found, or the equations are singular.
        """
        if self._one(column):
            point = self.first(column, start)
            point.uniqueness = Uniqueness.UNIQUE
            return point
        if start is None:
            point, jumped = self.first(column, None), False
        else:
            inner = self._inner(start)
            before = column if inner is None else inner.circuit.arrays().value
            point, jumped = self.followed(before, column, start, HALVINGS)
        other = point.other
        if other is None:
            other = self.second(column, point, STARTS if start is None else FEW)
        point.other, point.uniqueness = other, Uniqueness.UNKNOWN if other is None else Uniqueness.SEVERAL
        if other is not None:
            point.warnings = (*point.warnings, several(point, other))
        if jumped:
            point.warnings = (*point.warnings, _jump(self.circuit, self.smooth))
        return point

    def _one(self, column: np.ndarray) -> bool:
        """Whether there is provably at most one operating point for any sources and curves."""
        smooth, value = self.smooth, self._open(column)
        kind = self.expansion.circuit.arrays().kind
        key = np.where((kind == VOLTAGE) | (kind == CURRENT), 0.0, value).tobytes()
        if key not in self._proven:
            self._proven.clear()
            made = _with_diodes(self.expansion.circuit, smooth, value)
            own = {int(at): _curve(self.circuit, k) for at, k in zip(smooth.slope, smooth.elements.tolist())}
            curves = [own.get(k, IDEAL) for k in np.flatnonzero(made.arrays().kind == DIODE).tolist()]
            self._proven[key] = always_one(made, np.array(curves))
        return self._proven[key]

    def _open(self, column: np.ndarray) -> np.ndarray:
        """Values of the elementary elements with an ideal diode and a resistance in place of each smooth device."""
        smooth, value = self.smooth, column.copy()
        value[smooth.slope], value[smooth.touch], value[smooth.rest] = np.nan, smooth.rows[:, 0], 0.0
        return value

    def waves(self, column: np.ndarray) -> Waves | None:
        """The wave equation at the ports; None where the ports are singular or too many."""
        smooth = self.smooth
        made = _with_diodes(self.expansion.circuit, smooth, self._open(column))
        place = {int(k): d for d, k in enumerate(smooth.slope)}
        with np.errstate(all="ignore"):
            ports = loaded_ports(made, MOST)
        if ports is None:
            return None
        system, response = ports
        eq = system.eq

        def point(z: np.ndarray, conducting: np.ndarray) -> OperatingPoint:
            x = response @ np.append(1.0, z)
            return measured(system, made, Pair(x, np.zeros(x.size)), conducting, self.tolerance)

        v, i = port_values(eq, np.arange(eq.diode.size), response)
        device = np.array([place.get(int(k), -1) for k in eq.diode])
        return Waves(v[:, 0] + i[:, 0], v[:, 1:] + i[:, 1:], eq.load, smooth, device, point)

    @np.errstate(over="ignore", invalid="ignore")
    def newton(
        self, column: np.ndarray, start: Found | None, steps: int = LONG, sure: bool = False
    ) -> OperatingPoint | None:
        """Newton's method from one start; None without a certified operating point, or, if ``sure``, one that rounding
        determines."""
        value = column.copy()
        for noise in (0.0, NOISE):
            solve = partial(self._step, noise=noise)
            try:
                found = iterate(
                    solve,
                    self.expansion.circuit,
                    self.smooth,
                    value,
                    start,
                    self.tolerance,
                    steps,
                    False,
                    self._resistances,
                )
            except (ConvergenceError, NoSteadyStateError):
                return None  # a failure of the linearised circuit says nothing about the circuit itself
            if np.abs(found.voltage).max() > FARTHEST:
                return None
            point = self._certified(found, sure)
            if point is not None:
                return point
            start = found._replace(steps=0)  # noise next to noise counts as zero
        return None

    def _certified(self, found: Found, sure: bool) -> OperatingPoint | None:
        """The operating point of the last step; None if it fails its certificate, is an artefact of the rounding of
        values, or a piecewise-linear device is off its characteristic."""
        value = found.point.circuit.arrays().value
        arrays = self.expansion.circuit.arrays()._replace(value=value)
        certificate = proof(found, arrays, self.smooth, self.tolerance, self.inner.laws)
        far = np.abs(found.point.voltages).max() > FAR
        if not certificate.certified or ((sure or far) and not self._determined(found)):
            return None
        try:
            return assembled(self.circuit, self.expansion, self.smooth, found, self.tolerance, certificate)
        except ConvergenceError:
            return None

    def _determined(self, found: Found) -> bool:
        """Whether the last step is determined beyond rounding of values and of currents at a device's ends."""
        if own_distance(self.smooth, found)[1] > self.tolerance:
            return False
        system = self.inner.system(found.point.circuit.arrays())
        x = unknowns(system.eq, found.point)
        try:
            return system.tied(system.states(found.point.currents), quick=True).determined(x)
        except ArithmeticError:
            return False  # the diodes that conduct do not determine the point

    def _step(self, column: np.ndarray, before: OperatingPoint | None, noise: float) -> OperatingPoint:
        """The linearised circuit, without search where `FALLBACKS` limit resistances. Voltages and currents below the
        fraction ``noise`` of the largest are zero."""
        return self.inner.near(column, before, not (column[self.smooth.slope] > FALLBACKS[-1]).any(), noise)

    def first(self, column: np.ndarray, start: OperatingPoint | None) -> OperatingPoint:
        """An operating point: from ``start``, or from zero volts, or from currents through the devices.

        Raises
        ------
        NoOperatingPointError
            No start leads to one.
        """
        if start is not None:
            point = self.newton(column, self._start(start), PATIENCE)
            if point is not None:
                return point
        for one in chain([None], self._starts(column)):
            point = self.newton(column, one, LONG if one is None else PATIENCE)
            if point is not None:
                return point
        raise self._none()

    def second(self, column: np.ndarray, point: OperatingPoint, count: int) -> OperatingPoint | None:
        """Another operating point, if one is found from ``count`` starts."""
        for start in chain(self._beside(point), self._starts(column, count)):
            other = self.newton(column, start, PATIENCE, sure=True)
            if other is not None and self._apart(point, other):
                return other
        return None

    def followed(
        self, before: np.ndarray, column: np.ndarray, start: OperatingPoint, halvings: int
    ) -> tuple[OperatingPoint, bool]:
        """The operating point on the branch of ``start``, which has the values ``before``; and whether the branch
        ended.

        On a branch, stepping back leads to the start. Otherwise the step is halved.
        """
        point = self.newton(column, self._start(start), PATIENCE)
        if point is not None:
            back = start if before is column else self.newton(before, self._start(point), PATIENCE)
            if back is not None and not self._apart(back, start):
                return point, False
        if halvings == 0:
            return self.first(column, start), True
        middle = np.where(before == column, column, 0.5 * (before + column))
        between, early = self.followed(before, middle, start, halvings - 1)
        last, late = self.followed(middle, column, between, halvings - 1)
        return last, early or late

    def _beside(self, point: OperatingPoint) -> list[Found]:
        """The second operating point of the linearised circuit, if it has one."""
        elementary = point.elementary
        assert elementary is not None
        try:
            other = self.inner.solve(elementary.circuit.arrays().value).other
        except (ConvergenceError, NoSteadyStateError):
            return []
        return [] if other is None else [self.smooth.start_at(other)]

    def _inner(self, point: OperatingPoint) -> OperatingPoint | None:
        """An operating point of the elementary elements; None where devices of other parameters have other parts."""
        inner = point.elementary
        return inner if inner is not None and len(inner.circuit) == len(self.expansion.circuit) else None

    def _start(self, point: OperatingPoint) -> Found:
        """Newton's start at an operating point."""
        return self.smooth.start(point, self._inner(point))

    def _starts(self, column: np.ndarray, count: int = STARTS) -> Iterator[Found]:
        """Solutions at the ports; none where these are singular or too many."""
        waves = self.waves(column)
        return iter(()) if waves is None else waves.starts(count)

    def _apart(self, one: OperatingPoint, other: OperatingPoint) -> bool:
        """Whether two operating points differ beyond rounding: their midpoint is not an operating point."""
        v, i = (
            0.5 * (a[self.smooth.elements] + b[self.smooth.elements])
            for a, b in ((one.drops, other.drops), (one.currents, other.currents))
        )
        size = (
            np.abs(v) + 1e-12 * np.abs(one.voltages).max() + NOTHING,
            np.abs(i) + 1e-12 * np.abs(one.currents).max() + NOTHING,
        )
        near = project(self.smooth, v, i, size[0] / size[1], v)
        if (np.maximum(np.abs(near[1] - v) / size[0], np.abs(near[2] - i) / size[1]) > APART).any():
            return True
        a, b = one.elementary, other.elementary
        assert a is not None and b is not None
        d = a.circuit.arrays().kind == DIODE
        reach, most = np.abs(a.voltages).max(), np.abs(a.currents).max()
        changed = (a.drops[d] * (b.currents[d] > APART * most) < -APART * reach) | (
            b.drops[d] * (a.currents[d] > APART * most) < -APART * reach
        )
        return bool(changed.any())

    def _none(self) -> NoOperatingPointError:
        """The error of an unsuccessful search."""
        names = [self.circuit.names[k] for k in self.smooth.elements.tolist()]
        names += [self.circuit.names[k] for k in self.circuit.laws]
        return NoOperatingPointError(
            "no operating point was found (which is no proof that none exists): Newton's method did not converge "
            f"for {some(names)}",
            names,
        )

    def _resistances(self, column: np.ndarray, point: OperatingPoint, conductance: np.ndarray) -> np.ndarray:
        """Driving-point resistances at the devices, Ω (s,), from the factors of the step; if not positive,
        the resistance of the tangent."""
        inner, smooth = self.inner, self.smooth
        arrays = inner.circuit.with_column(column).arrays()
        system = inner.system(arrays)
        ends = arrays.first[smooth.rest] - 1, arrays.second[smooth.rest] - 1
        with np.errstate(all="ignore"):
            try:
                factor = system.factor(system.states(point.currents), quick=True)
            except ArithmeticError:
                return np.asarray(1.0 / conductance)
            injected = np.zeros((system.eq.size + 1, conductance.size))  # the last row is ground's
            at = np.arange(conductance.size)
            injected[ends[0], at] += 1.0
            injected[ends[1], at] -= 1.0
            injected[system.eq.pinned - 1] = 0.0
            answer = np.vstack([factor.rough(injected[:-1]), np.zeros((1, conductance.size))])
            rest = 1.0 / (answer[ends[0], at] - answer[ends[1], at]) - conductance
            resistance = 1.0 / np.maximum(rest, FIXED * conductance)
        return np.where((rest > -FIXED * conductance) & np.isfinite(resistance), resistance, 1.0 / conductance)


def _curve(circuit: Circuit, k: int) -> int:
    """Whether a device's curve increases strictly, or has flat segments."""
    device = circuit.devices[k]
    assert isinstance(device, SmoothDevice)
    return RISING if device.rises() else LEVEL


def _with_diodes(elementary: Circuit, smooth: Smooth, value: np.ndarray) -> Circuit:
    """The circuit with an ideal diode and a resistance in series in place of each smooth device."""
    kind, first, second, _, n = elementary.arrays()
    kind = kind.copy()
    kind[smooth.slope], kind[smooth.touch] = DIODE, RESISTOR
    columns = kind, first, second, value, n
    return Circuit.from_arrays(*columns, "", elementary.names, elementary.node_names, elementary.laws)


def _jump(circuit: Circuit, smooth: Smooth) -> Problem:
    names = [circuit.names[k] for k in smooth.elements.tolist()]
    return Problem("jump", "the branch of operating points ended: the operating point jumped", names=names[:8])
