"""Gradients of the implicit method: the adjoint of its steps, in one backward run.

Each step is repeated from its stored start, so the memory is that of the run. Between an event and the next corner the
steps keep their fractions of the time; an event's time is an implicit function, given by the condition that ends its
step. Values and integrals are weighted sums over the stages, by the dense output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit.elements import CURRENT, ELEMENTS, INDUCTOR, VOLTAGE
from circuitsim.circuit.parameters import SWITCH, Parameter, Sort, parameter
from circuitsim.errors import UsageError
from circuitsim.time_domain.beginning import Beginning
from circuitsim.time_domain.formula_sources import check_by_source
from circuitsim.time_domain.functionals import EventTime, EventValue, Functional, Integral, Value, check, own_weights
from circuitsim.time_domain.implicit import Implicit, StepStart
from circuitsim.time_domain.implicit_events import Conduction
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.implicit_step import (
    DIAGONAL,
    NODES,
    STAGES,
    TABLE,
    Moving,
    Point,
    Step,
    dense,
    dense_slopes,
    euler_step,
    runge_kutta_step,
)
from circuitsim.time_domain.numbers import NAMES
from circuitsim.time_domain.tangents import Rest, Sizes, Tangents


class Adjoint(NamedTuple):
    """Derivatives of the functional by the quantities at a point.

    Attributes
    ----------
    voltage, current : (m,) float arrays
        By branch voltages and currents of the circuit's own elements.
    x, slope : (q,) float arrays
        By states and their derivatives.
    diodes : (2, d) float array or None
        By voltages and currents of ideal diodes.
    """

    voltage: np.ndarray
    current: np.ndarray
    x: np.ndarray
    slope: np.ndarray
    diodes: np.ndarray | None = None

    def plus(self, voltage: np.ndarray, current: np.ndarray) -> Adjoint:
        """With further derivatives by voltages and currents added."""
        return self._replace(voltage=self.voltage + voltage, current=self.current + current)

    def times(self, factor: float) -> Adjoint:
        """Multiplied by a factor."""
        return Adjoint(*(None if part is None else factor * part for part in self))  # type: ignore[arg-type]


class StartAdjoint(NamedTuple):
    """Derivatives of the functional by the start of a step.

    Attributes
    ----------
    x, slope : (q,) float arrays
    length, time : float
        By its length, and by a shift of all its times.
    """

    x: np.ndarray
    slope: np.ndarray
    length: float
    time: float


class StageGradients:
    """The adjoint of the companion circuit.

    Parameters
    ----------
    run : Implicit

    Attributes
    ----------
    tangents : Tangents
    by_weight : (q,) float array
        Sums of the derivatives by capacitances and inductances.
    by_turns : (n, n) float array or None
        By the turns of coupled inductors (`circuitsim.circuit.couplings.Windings`).
    by_wave : dict of int to float
        By factors on waveforms.
    by_ohms : (2, s) float array
        By resistances of closed and of open switches.
    """

    def __init__(self, run: Implicit) -> None:
        self.run, self.companion = run, run.companion
        own = self.companion
        self.tangents = Tangents(own.circuit, own.storing[own.capacitor])
        self.by_weight = np.zeros(own.storing.size)
        self.by_turns = None if own.windings is None else np.zeros(own.windings.turns.shape)
        self.by_wave = dict.fromkeys(run.sources, 0.0)
        self.by_ohms = np.zeros((2, run.switching.places.size))
        self.count = True
        self._first, self._second = own.own.arrays()[1:3]
        self._flows = {
            k: [(self.tangents.parts[k][p], sign) for p, sign in device.entering(device.expand())]
            for k, device in own.own.devices.items()
        }

    def none(self) -> Adjoint:
        """Nothing."""
        m, q = self._first.size, self.by_weight.size
        return Adjoint(np.zeros(m), np.zeros(m), np.zeros(q), np.zeros(q))

    def of_diodes(self, chosen: np.ndarray, now: Conduction) -> np.ndarray:
        """The sum of conducting diodes' currents and blocking diodes' voltages, over the largest, as weights (2, d)."""
        sizes, found = self.sizes(), np.zeros((2, now.diodes.size))
        found[0, chosen] = np.where(now.diodes[chosen], 0.0, 1.0 / sizes.volts)
        found[1, chosen] = np.where(now.diodes[chosen], 1.0 / sizes.amperes, 0.0)
        return found

    def sizes(self) -> Sizes:
        """Largest voltage and current of the run."""
        watch = self.run.watch
        return Sizes(*(own if own > 1e-200 else 1.0 for own in (watch.volts, watch.amperes)))

    def step(self, step: Step, begin: tuple[float, np.ndarray], now: Conduction, stages: list[Adjoint]) -> StartAdjoint:
        """The adjoint of a Runge–Kutta step.

        Parameters
        ----------
        step : Step
        begin : tuple of float and (q,) float array
            Start time, s, and slopes there.
        now : Conduction
            States of diodes and switches during the step.
        stages : list of Adjoint
            Derivatives by the quantities of its stages.
        """
        h, x, shift = step.length, np.zeros(self.by_weight.size), 0.0
        slopes, by_length = [np.zeros(x.size) for _ in NODES], 0.0
        known = [begin[1], *(point.slope for point in step.stages)]
        for k in reversed(range(STAGES)):
            adjoint = stages[k]._replace(slope=stages[k].slope + slopes[k + 1])
            by_base, by_g, by_time = self.stage(step.stages[k], DIAGONAL * h, now, adjoint)
            x += by_base
            for weight, own, into in zip(TABLE[k + 1, : k + 1].tolist(), known, slopes):
                into += h * weight * by_base
                by_length += weight * float(own @ by_base)
            by_length += DIAGONAL * by_g + float(NODES[k + 1]) * by_time
            shift += by_time
        return StartAdjoint(x, slopes[0], by_length, shift)

    def euler(self, step: Step, now: Conduction, adjoint: Adjoint) -> StartAdjoint:
        """The adjoint of a backward Euler step; its time is that of its end."""
        by_base, by_g, by_time = self.stage(step.end, step.length, now, adjoint)
        return StartAdjoint(by_base, np.zeros(by_base.size), by_g, by_time)

    def stage(self, point: Point, g: float, now: Conduction, adjoint: Adjoint) -> tuple[np.ndarray, float, float]:
        """Derivatives by the base (q,), the length g and the time of a stage."""
        own, tangents, solved = self.companion, self.tangents, point.solved
        capacitor, storing, weight = own.capacitor, own.storing, own.weight
        by_x = adjoint.x.copy()
        adjoint, by_turns = self._of_cores(adjoint, point)
        by_x[~capacitor] += adjoint.current[storing[~capacitor]]
        by_slope = adjoint.slope + g * by_x
        column, (places, (values,)) = own.column(g), self.run.moving(now.switches)(np.array([point.time]))
        column[places] = values
        sizes = self.sizes()
        inner = tangents.column_at(solved, column, sizes)
        before = np.zeros(inner.size, dtype=bool)
        before[own.diodes] = now.diodes
        weights = self._weights(adjoint, by_slope)
        if adjoint.diodes is not None:
            np.add.at(weights[0], tangents.first[own.diodes], adjoint.diodes[0])
            np.add.at(weights[0], tangents.second[own.diodes], -adjoint.diodes[0])
            weights[1][own.diodes] += adjoint.diodes[1]
        found = tangents.backward(solved, inner, tangents.conducting(solved, before, sizes), weights, sizes, self.count)
        by = found.by_value
        ohms = by[storing]
        by_g = float(by_x @ point.slope) + float((ohms * np.where(capacitor, 1.0 / weight, -weight / g**2)).sum())
        by_g -= float(by[own.series[own.series >= 0]].sum()) / g**2
        by_time = sum(float(by[k]) * wave.slope(point.time) for k, wave in self.run.sources.items())
        if self.count:
            self.by_weight -= by_slope * point.slope / weight
            self.by_weight += ohms * np.where(capacitor, -g / weight**2, 1.0 / g)
            if by_turns is not None:
                self._count_turns(by_turns, found.by_law, point)
            for k, wave in self.run.sources.items():
                self.by_wave[k] += float(by[k]) * wave.value(point.time)
            places = self.run.switching.places
            self.by_ohms += np.where([now.switches, ~now.switches], by[places], 0.0)
        return by_x + by[own.base], by_g, float(by_time)

    def _of_cores(self, adjoint: Adjoint, point: Point) -> tuple[Adjoint, np.ndarray | None]:
        """Derivatives with respect to core currents instead of the coupled inductors' own, and with respect to turns
        (n, n)."""
        windings = self.companion.windings
        if windings is None:
            return adjoint, None
        coils, current = windings.coils, adjoint.current.copy()
        current[coils] = windings.inverse.T @ current[coils]
        by_turns = -np.outer(current[coils], point.current[coils])
        return adjoint._replace(current=current), by_turns

    def _count_turns(self, by_turns: np.ndarray, by_law: np.ndarray, point: Point) -> None:
        """Accumulate the contributions of turns, to currents and to the sources of the transformers."""
        own, windings = self.companion, self.companion.windings
        assert windings is not None and self.by_turns is not None
        r = windings.independent
        slope, voltage = point.slope[own.place], windings.inductance[:r] * point.slope[own.place]
        into, beside = (np.where(of >= 0, by_law[of], 0.0) for of in (own.series, own.beside))
        self.by_turns += by_turns - np.outer(beside, point.current[windings.coils])
        self.by_turns[:r] += np.outer(voltage, into)
        self.by_weight[own.place] += slope * (np.triu(windings.turns, 1)[:r] @ into)

    def _weights(self, adjoint: Adjoint, by_slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The adjoint as weights of potentials and of currents of elementary elements.

        A capacitor's slope is its current over the capacitance, an inductor's its voltage over the inductance.
        """
        own, tangents = self.companion, self.tangents
        potentials, currents = np.zeros(tangents.nodes), np.zeros(tangents.kind.size)
        np.add.at(potentials, self._first, adjoint.voltage)
        np.add.at(potentials, self._second, -adjoint.voltage)
        stored = np.zeros(self._first.size, dtype=bool)
        stored[own.storing] = True
        for k in np.flatnonzero(adjoint.current).tolist():
            if k in self._flows:
                for part, sign in self._flows[k]:
                    currents[part] += sign * adjoint.current[k]
            elif not stored[k]:
                currents[k] += adjoint.current[k]
        c, coil = own.storing[own.capacitor], own.storing[~own.capacitor]
        currents[c] += adjoint.current[c] + by_slope[own.capacitor] / own.weight[own.capacitor]
        share = by_slope[~own.capacitor] / own.weight[~own.capacitor]
        np.add.at(potentials, tangents.first[coil], share)
        np.add.at(potentials, tangents.second[coil], -share)
        return potentials, currents


AT_ONCE = 1e-4
"""Distance of a diode or switch from its change before an event up to which it takes part in the event."""


GAUSS = (np.polynomial.legendre.leggauss(5)[0] + 1.0) / 2.0, np.polynomial.legendre.leggauss(5)[1] / 2.0
"""Gauss nodes and weights that integrate the square of the dense output over a step exactly."""


class ImplicitSweep:
    """One backward run.

    Attributes
    ----------
    values : (f,) float array
        Of the functionals.
    stages : StageGradients
        With the accumulated contributions.
    by_threshold : (2, s) float array
        By thresholds and by hystereses of switches.
    """

    def __init__(self, result: ImplicitResult, functionals: Sequence[Functional], weights: np.ndarray) -> None:
        for functional in functionals:
            check(result, functional)
        self.result, self.run, self.functionals, self.weights = result, result.run, functionals, weights
        self.stages, self.values = StageGradients(result.run), np.zeros(len(functionals))
        self.by_threshold = np.zeros((2, self.run.switching.places.size))
        none = self.stages.none()
        # Parasitic capacitances are not part of the shown circuit.
        hidden = 0, none.voltage.size - len(result.circuit)
        self.of = [
            (none.voltage, none.current)
            if isinstance(f, EventTime)
            else tuple(np.pad(own, hidden) for own in own_weights(result, f.quantity))
            for f in functionals
        ]
        self.step_starts = list(self.run.step_starts)
        if self.step_starts[-1].time < result.stop:  # an error or a caller ended the run
            self.step_starts.append(self.step_starts[-1]._replace(time=result.stop, late=0.0))
        self._near: OperatingPoint | None = None
        self._plan()

    def _plan(self) -> None:
        """For each step, the functionals that depend on it."""
        self.parts: list[list[int]] = [[] for _ in self.step_starts]
        for f, own in enumerate(self.functionals):
            if isinstance(own, Value | Integral):
                ends = [own.time] * 2 if isinstance(own, Value) else [own.begin, own.end]
                first, last = self.result._step_at(np.array(ends)).tolist()
                for n in range(first, last + 1):
                    self.parts[n].append(f)

    # ------------------------------------------------------------------ steps
    def _begins(self, n: int) -> float:
        """Where step ``n`` begins, s."""
        return self.step_starts[n].time + 2.0 * self.step_starts[n].instant

    def _at_end(self, n: int) -> bool:
        """Whether an event ends step ``n``."""
        return self.step_starts[n + 1].late > 0.0 and n < len(self.step_starts) - 2

    def _moving(self, n: int) -> tuple[Moving, OperatingPoint | None]:
        """Values of sources and switches in step ``n``, and an operating point nearby."""
        own = self.step_starts[n]
        return self.run.moving(own.conduction.switches), own.near or self._near

    def _step(self, n: int) -> Step:
        """Step ``n``; up to before the event, if one ends it."""
        own, after, begin = self.step_starts[n], self.step_starts[n + 1], self._begins(n)
        end, length, (moving, near) = math.nextafter(after.time, 0.0), after.time - begin, self._moving(n)
        if self._at_end(n) and after.late < length:
            length -= after.late
            end = begin + length
        step = runge_kutta_step(self.run.companion, moving, (begin, own.x, own.slope, near), length, end)
        if self.run.companion.follows:
            self._near = step.stages[0].solved
        return step

    def _first(self, n: int) -> list[tuple[Step, Step, np.ndarray]]:
        """The short steps after a discontinuity at the start of step ``n``, and the switches there."""
        own, found, companion, near = self.step_starts[n], [], self.run.companion, self._moving(n)[1]
        for x, switches in own.jumps:
            moving, instant = self.run.moving(switches), own.instant
            jump = euler_step(companion, moving, own.time + instant, x, instant, near)
            step = euler_step(companion, moving, own.time + 2.0 * instant, jump.end.x, instant, jump.end.solved)
            found.append((jump, step, switches))
        return found

    # ------------------------------------------------------------------ backwards
    def back(self) -> np.ndarray:
        """The derivative by the initial states (q,)."""
        adjoint, by_time = self.stages.none(), 0.0
        last = len(self.step_starts) - 2
        step, first = self._step(last), self._first(last)
        for n in range(last, -1, -1):
            before = None if n == 0 or first else self._step(n - 1)
            begin = first[-1][1].end if before is None else before.end
            adjoint, by_time = self._through(n, step, begin, adjoint, by_time)
            if first:
                adjoint, by_time = self._through_first(n, first, adjoint, by_time)
            if n:
                step, first = before or self._step(n - 1), self._first(n - 1)
        return adjoint.x

    def _through(self, n: int, step: Step, begin: Point, adjoint: Adjoint, by_time: float) -> tuple[Adjoint, float]:
        """The adjoint of step ``n``: from derivatives by its end and the time there to those by its start."""
        own, after = self.step_starts[n], self.step_starts[n + 1]
        adjoint, by_time = self._at_event(n + 1, step.end, adjoint, by_time, after=False)
        stages = [self.stages.none() for _ in NODES]
        stages[-1] = adjoint
        by_length = by_begin = 0.0
        for f in self.parts[n]:
            length, shift = self._part(f, n, step, begin, stages)
            by_length, by_begin = by_length + length, by_begin + shift
        start, reached = stages[0], self.stages.step(step, (begin.time, own.slope), own.conduction, stages[1:])
        reached = reached._replace(length=reached.length + by_length, time=reached.time + by_begin)
        total = _sum(self.stages.none(), reached, start)
        if self._at_end(n):
            turned, more = self._event_time(step, begin, own, after, reached.length + by_time)
            return _sum(total, turned, self.stages.none()), by_time + reached.time + more
        share = step.length / (after.aim - self._begins(n)) if after.aim > after.time else 1.0
        return total, (1.0 - share) * by_time + reached.time - share * reached.length

    def _part(self, f: int, n: int, step: Step, begin: Point, stages: list[Adjoint]) -> tuple[float, float]:
        """Contribution of step ``n`` to a functional: adds its value, adds its derivatives by the start and the stages,
        and returns those by the step's length and by a shift in time."""
        own, h = self.functionals[f], step.length
        levels = np.array([self._value(f, point) for point in (begin, *step.stages)])

        def share(time: float) -> float:
            return min(max((time - begin.time) / h, 0.0), 1.0)

        if isinstance(own, Value):
            low = high = share(own.time)
            shares, weights, power = np.array([low]), np.ones(1), 1
        else:
            assert isinstance(own, Integral)
            low, high, power = share(own.begin), share(own.end), own.power
            shares, weights = low + (high - low) * GAUSS[0], h * (high - low) * GAUSS[1]
        at = dense(shares)
        level = at @ levels
        factor = self.weights[f] * weights * power * level ** (power - 1)
        self.values[f] += float(weights @ level**power)
        for k, weight in enumerate((factor @ at).tolist()):
            stages[k] = stages[k].plus(*(weight * of for of in self.of[f]))
        if isinstance(own, Integral):
            # Ends inside the step are fixed in time, others as fractions of the step.
            ends = self.weights[f] * (dense(np.array([low, high])) @ levels) ** power
            ends *= -1.0 * (low > 0.0), 1.0 * (high < 1.0)
            total = self.weights[f] * float(weights @ level**power) / h
            return total - float(ends @ [low, high]), -float(ends.sum())
        moved = float(factor[0] * (dense_slopes(shares) @ levels)[0]) / h if 0.0 < low < 1.0 else 0.0
        return -low * moved, -moved

    def _through_first(
        self, n: int, first: list[tuple[Step, Step, np.ndarray]], adjoint: Adjoint, by_time: float
    ) -> tuple[Adjoint, float]:
        """The adjoint of the short steps at the start of step ``n``."""
        none = self.stages.none()
        adjoint, by_time = self._at_event(n, first[-1][1].end, adjoint, by_time, after=True)
        for jump, step, switches in reversed(first):
            now = self.step_starts[n].conduction._replace(switches=switches)
            for own in (step, jump):
                reached = self.stages.euler(own, now, adjoint)
                adjoint, by_time = none._replace(x=reached.x), by_time + reached.time
        return adjoint, by_time

    def _event_time(
        self, step: Step, begin: Point, own: StepStart, after: StepStart, by_time: float
    ) -> tuple[StartAdjoint, float]:
        """What the time of the event at the end of a step contributes, and by a shift of the step's beginning."""
        adjoint, threshold = self._condition(step.end, own.conduction, after.conduction)
        stages, start = [*(self.stages.none() for _ in step.stages[1:]), adjoint], (begin.time, own.slope)
        self.stages.count = False
        rate = self.stages.step(step, start, own.conduction, stages).length
        self.stages.count = True
        if rate == 0.0:
            raise UsageError(f"at {after.time:g} s a waveform touches zero without crossing: there is no gradient")
        factor = -by_time / rate
        reached = self.stages.step(step, start, own.conduction, [each.times(factor) for each in stages])
        self.by_threshold += factor * threshold
        return reached, reached.time

    def _condition(self, end: Point, now: Conduction, then: Conduction) -> tuple[Adjoint, np.ndarray]:
        """What is zero at the event, as weights, and its derivatives by thresholds and hystereses (2, s)."""
        run, watch, none = self.run, self.run.watch, self.stages.none()
        distances = np.abs(watch.distances(now, end)[0])
        changed = np.concatenate([now.diodes != then.diodes, now.switches != then.switches])
        distances[~changed] = np.inf if changed.any() else distances[~changed]
        nearest, d = int(distances.argmin()), now.diodes.size
        threshold = np.zeros((2, now.switches.size))
        if nearest >= d:
            s = nearest - d
            threshold[:, s] = -1.0, 1.0 if now.switches[s] else -1.0
            control = run.switching.switches[s].control
            text = f"i({control})" if isinstance(control, str) else f"v({control[0]},{control[1]})"
            return none.plus(*own_weights(self.result, text)), threshold
        within = max(AT_ONCE, self.result.accuracy, float(distances[nearest]))
        chosen = np.flatnonzero(distances[:d] <= within)
        return none._replace(diodes=self.stages.of_diodes(chosen, now)), threshold

    def _at_event(self, n: int, point: Point, adjoint: Adjoint, by_time: float, after: bool) -> tuple[Adjoint, float]:
        """Add the functionals' values at the start of step ``n`` and the time of an event there."""
        time, fresh = self.step_starts[n].time, self.step_starts[n].fresh
        for f, own in enumerate(self.functionals):
            if isinstance(own, EventTime) and own.time == time and not after:
                self.values[f], by_time = time, by_time + float(self.weights[f])
            elif isinstance(own, EventValue) and own.time == time and (own.after is after or not fresh):
                self.values[f] = self._value(f, point)
                adjoint = adjoint.plus(*(self.weights[f] * of for of in self.of[f]))
        return adjoint, by_time

    def _value(self, f: int, point: Point) -> float:
        return float(self.of[f][0] @ point.voltage + self.of[f][1] @ point.current)


def _sum(total: Adjoint, reached: StartAdjoint, start: Adjoint) -> Adjoint:
    """The total derivative by the start of a step."""
    return Adjoint(
        total.voltage + start.voltage,
        total.current + start.current,
        total.x + reached.x,
        total.slope + reached.slope,
    )


def implicit_gradient(
    result: ImplicitResult, functionals: Sequence[Functional], names: Sequence[str], weights: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    """Values of functionals (f,), and the gradient of their sum with weights (f,); see
    `circuitsim.time_domain.waveform_gradient`."""
    if result.run.companion.charged.size:
        name = result.circuit.names[int(result.run.companion.charged_elements[0])]
        raise UsageError(f"{name} has a charge, and runs with charges have no gradients; state CJO=0 TT=0")
    numbers = _Numbers(result)
    chosen = {name: numbers.called(name) for name in names}
    sweep = ImplicitSweep(result, functionals, weights)
    begin = sweep.back()
    by_level = result.run.companion.by_levels(begin)
    rest = None if result.begun.point is None else Rest(result.begun, by_level)
    return sweep.values, {name: numbers.of(own, sweep, begin, rest) for name, own in chosen.items()}


class _Numbers:
    """The circuit's parameters by name."""

    def __init__(self, result: ImplicitResult) -> None:
        self.result, self.run, self.circuit = result, result.run, result.circuit
        self.kind, self.value = self.circuit.arrays().kind, self.circuit.arrays().value
        companion = self.run.companion
        self.states = {int(k): j for j, k in enumerate(companion.storing)}
        self.stores, self.windings = companion.elements, companion.windings
        self.coupled = {} if self.windings is None else {int(k): j for j, k in enumerate(self.windings.coils)}
        self.switched = {int(k): s for s, k in enumerate(self.run.switching.places)}
        self.held = {name.lower() for name in result.begun.held if result.begun.begins is Beginning.HELD}

    def called(self, name: str) -> Parameter:
        """The parameter with a name.

        Raises
        ------
        UsageError
            No such parameter, or one without a gradient.
        """
        own, stated = parameter(self.circuit, name), self.result.begun.begins is Beginning.STATED
        k = own.elements[0] if own is not None and own.elements else -1
        there = own is not None and {
            Sort.HELD: own.key.lower() in self.held,
            Sort.SWITCH: k in self.switched,
            Sort.INITIAL: bool(self.stores[k]),
        }.get(own.sort, True)
        if own is None or not there:
            raise UsageError(f"{name} is not a number of the circuit: {NAMES}")
        if own.sort is Sort.ELEMENT:
            self._check_element(k, name)
        elif own.sort is Sort.COUPLING:
            self._check_coupling(own)
        elif own.sort is Sort.INITIAL and not stated and not self._holds(k):
            raise UsageError(f"{name} has no effect (the run begins at the operating point): {NAMES}")
        return own

    def _holds(self, k: int) -> bool:
        """Whether an element is an inductor held by ``.ic``."""
        return bool(self.kind[k] == INDUCTOR) and self.circuit.names[k].lower() in self.held

    def _check_element(self, k: int, name: str) -> None:
        varies = bool(ELEMENTS[self.kind[k]].parameter) and k not in self.switched and not np.isnan(self.value[k])
        source = k in self.run.sources or self.kind[k] in (VOLTAGE, CURRENT) or k in self.circuit.laws
        if not varies or (self.value[k] == 0.0 and not source):
            raise UsageError(f"{name} cannot take this value: {NAMES}")
        if source:
            check_by_source(self.run.sources.values(), name)

    def _check_coupling(self, own: Parameter) -> None:
        a, b = (self.coupled.get(k, -1) for k in own.elements)
        if self.windings is None or min(a, b) < 0 or a == b or self.windings.mutual[a, b] == 0.0:
            raise UsageError(f"{own.name} couples nothing: {NAMES}")
        change = np.zeros(self.windings.mutual.shape)
        change[a, b] = change[b, a] = 1.0
        if not self.windings.keeps_rank(change):
            raise UsageError(f"{own.name} is an ideal coupling: what a smaller one stores has no gradient")

    def of(self, number: Parameter, sweep: ImplicitSweep, begin: np.ndarray, rest: Rest | None) -> float:
        """The derivative by one parameter."""
        sort, stages, k = number.sort, sweep.stages, number.elements[0] if number.elements else -1
        if sort is Sort.ELEMENT:
            return self._of_element(k, sweep, begin, rest)
        if sort is Sort.COUPLING:
            a, b = (self.coupled[k] for k in number.elements)
            by, own = self._by_inductances(sweep, begin)
            return float((by[a, b] + by[b, a]) * np.sqrt(own[a, a] * own[b, b]))
        if sort is Sort.DEVICE:
            parts = (stages.tangents, *(() if rest is None else (rest.tangents,)))
            return sum(own.of_device(k, number.key, number.name) for own in parts)
        if sort is Sort.SWITCH:
            return self._of_switch(k, SWITCH.index(number.key), sweep, rest)
        if rest is None:
            return float(self.run.companion.by_levels(begin)[k])
        return rest.by_held[number.key.lower() if sort is Sort.HELD else self.circuit.names[k].lower()]

    def _by_inductances(self, sweep: ImplicitSweep, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives by the inductances of coupled inductors (n, n), and these, H; ``begin``: by the initial
        states."""
        windings, stages, place = self.windings, sweep.stages, self.run.companion.place
        assert windings is not None and stages.by_turns is not None
        by_turns, by_own = stages.by_turns.copy(), np.zeros(windings.inductance.size)
        by_turns[: place.size] += np.outer(begin[place], self.result.begun.level[windings.coils])
        by_own[: place.size] = stages.by_weight[place]
        return windings.by_inductances(by_own, by_turns), windings.mutual

    def _of_element(self, k: int, sweep: ImplicitSweep, begin: np.ndarray, rest: Rest | None) -> float:
        stages = sweep.stages
        if k in self.coupled:
            # M = k √(L₁ L₂) at fixed k.
            j, (by, own) = self.coupled[k], self._by_inductances(sweep, begin)
            return 0.5 * float((by[j] + by[:, j]) @ own[j]) / float(own[j, j])
        if k in self.states:
            return float(stages.by_weight[self.states[k]])
        factor = self.run.sources[k].value(0.0) if k in self.run.sources else 1.0
        found = stages.by_wave[k] if k in self.run.sources else float(stages.tangents.by_value[k])
        return found if rest is None else found + factor * float(rest.by_value[k])

    def _of_switch(self, k: int, which: int, sweep: ImplicitSweep, rest: Rest | None) -> float:
        s = self.switched[k]
        if which < 2:
            return float(sweep.by_threshold[which, s])
        found = float(sweep.stages.by_ohms[which - 2, s])
        if rest is not None and self.result.begun.closed[s] == (which == 2):
            found += float(rest.by_value[k])
        return found
