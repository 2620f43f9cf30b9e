"""Sensitivities of implicit runs: the steps once more, with derivatives by several numbers.

Each stage is an implicit function of the states before it and of the numbers, through the linearised companion circuit.
Between an event and the next corner the steps keep their fractions of the time; an event's time is an implicit
function, given by the condition that ends its step. Values and integrals are weighted sums over the stages, by the
dense output. The last column of all derivatives is zero except in a step that an event ends, where it is the derivative
by the step's length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.models.junction_diode import RATE, charge, junction
from circuitsim.time_domain.functionals import (
    EventTime,
    EventValue,
    Functional,
    Integral,
    Value,
    check,
    ends,
    junction_of,
    own_weights,
)
from circuitsim.time_domain.implicit_events import NOISE, Conduction
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.implicit_step import (
    DIAGONAL,
    NODES,
    TABLE,
    Point,
    Step,
    dense,
    dense_slopes,
    first_steps,
    runge_kutta_step,
)
from circuitsim.time_domain.numbers import Directions
from circuitsim.time_domain.tangents import Changes, Sizes, Tangents

TOGETHER, LARGEST = 32, 2**22
"""Maximum number of numbers in one pass, and of derivatives at a point: 32 MB."""
AT_ONCE = 1e-4
"""Distance of a diode or switch from its change before an event up to which it takes part in the event."""
NEARBY = 1e-5
"""Relative step of difference quotients of charges by parameters of their junctions."""
GAUSS = (np.polynomial.legendre.leggauss(5)[0] + 1.0) / 2.0, np.polynomial.legendre.leggauss(5)[1] / 2.0
"""Gauss nodes and weights that integrate the square of the dense output over a step exactly."""


class At(NamedTuple):
    """Derivatives at a point.

    Attributes
    ----------
    time : (p,) float array
    x, slope : (q, p) float arrays
        Of states and of their derivatives.
    rows : (r, p) float array
        Of the quantities of functionals and of the switches' controls.
    diodes : (2, d, p) float array
        Of voltages and currents of ideal diodes.
    """

    time: np.ndarray
    x: np.ndarray
    slope: np.ndarray
    rows: np.ndarray
    diodes: np.ndarray


class ImplicitSensitivities:
    """One pass.

    Parameters
    ----------
    result : ImplicitResult
    functionals : sequence of Functional
    names : sequence of str
        Of all directions but the last.

    Attributes
    ----------
    of : Directions
    weight : (q, p) float array
        Derivatives of `Companion.weight`.
    charged : list of int
        Elements with a charge, the last states.
    junctions : list of (int, int)
        Rows that are the voltage of a junction, and their elements.
    turns : (r, n, p) float array
        Of coupled inductors, the independent ones first (`circuitsim.circuit.couplings.Windings`).
    values, by : (f,), (f, p) float arrays
        The functionals and their derivatives.
    """

    def __init__(self, result: ImplicitResult, functionals: Sequence[Functional], names: Sequence[str]) -> None:
        self.result, self.run, self.functionals = result, result.run, functionals
        own, watch, switched = result.run.companion, result.run.watch, result.run.switching.places
        self.companion, self.p, windings = own, len(names) + 1, own.windings
        of = self.of = Directions(own.own, result.begun, switched, self.run.sources, windings, names, self.p)
        self.weight, core = of.value[own.storing], np.zeros((own.place.size, self.p))
        self.turns = np.zeros((own.place.size, of.mutual.shape[1], self.p))
        for j in np.flatnonzero(of.mutual.any(axis=(1, 2))).tolist():
            core[:, j], self.turns[:, :, j] = windings.change(of.mutual[j])
        self.weight[own.place] = core
        self.charged = own.charged_elements.tolist()
        self.tangents = Tangents(own.circuit, own.storing[own.capacitor])
        self.sizes = Sizes(*(size if size > 1e-200 else 1.0 for size in (watch.volts, watch.amperes)))
        self.values, self.by = np.zeros(len(functionals)), np.zeros((len(functionals), self.p))
        controls = [switch.control for switch in self.run.switching.switches]
        quantities = ["" if isinstance(f, EventTime) else f.quantity for f in functionals]
        quantities += [f"i({own})" if isinstance(own, str) else f"v({own[0]},{own[1]})" for own in controls]
        of_junctions = ((r, junction_of(result.circuit, quantity)) for r, quantity in enumerate(quantities))
        self.junctions = [(r, own[0]) for r, own in of_junctions if own is not None]
        # Parasitic capacitances are not part of the shown circuit.
        self.weights = np.zeros((2, len(quantities), len(own.own)))
        for r, quantity in enumerate(quantities):
            if quantity:
                self.weights[:, r, : len(result.circuit)] = own_weights(result, quantity)
        self.changes = Changes(of.value, of.devices)
        self.starts = list(self.run.step_starts)
        if self.starts[-1].time < result.stop:  # an error or a caller ended the run
            self.starts.append(self.starts[-1]._replace(time=result.stop, late=0.0))
        self.spans = result._step_at(np.array([ends(own) for own in functionals]).reshape(-1, 2).T)

    def go(self) -> None:
        """Take all steps."""
        own, coupled = self.companion, self.companion.windings
        begun, initial = self.result.begun.level, self.of.initial(self.changes)
        x = np.array([own.states(level) for level in initial.T]).T
        x[own.place] += np.tensordot(begun[coupled.inductors], self.turns, (0, 1))
        for e in self.charged:
            capacitance, by = self._charge(e, float(begun[e]))
            x = np.vstack([x, capacitance * initial[e] + by])
        at, point = At(np.zeros(self.p), x, x, x, x), None
        for n, start in enumerate(self.starts[:-1]):
            if start.jumps:
                at, point = self._first(n, at, point.solved if point is not None and own.follows else None)
            assert point is not None
            at, point = self._through(n, at, point)

    # ------------------------------------------------------------------ steps
    def _first(self, n: int, at: At, near: OperatingPoint | None) -> tuple[At, Point]:
        """The short steps after a discontinuity at the start of step ``n``."""
        own, companion = self.starts[n], self.companion
        for x, switches in own.jumps:
            moving, instant, now = self.run.moving(switches), own.instant, own.conduction._replace(switches=switches)
            for step in first_steps(companion, moving, own.time, x, instant, near):
                at = self._stage(step.end, instant, now, at.x, np.zeros(self.p), at.time)
            near = step.end.solved
        self._at_event(n, step.end, at, after=True)
        return at, step.end

    def _through(self, n: int, at: At, point: Point) -> tuple[At, Point]:
        """Step ``n``; up to before the event, if one ends it."""
        own, after = self.starts[n], self.starts[n + 1]
        begin = own.time + 2.0 * own.instant
        end, length = math.nextafter(after.time, 0.0), after.time - begin
        event = after.late > 0.0 and n < len(self.starts) - 2
        if event and after.late < length:
            length -= after.late
            end = begin + length
        start = point._replace(time=begin, x=own.x, slope=own.slope)
        step = runge_kutta_step(self.companion, self.run.moving(own.conduction.switches), start, length, end)
        share = step.length / (after.aim - begin) if after.aim > after.time else 1.0
        by_length = (np.arange(self.p) == self.p - 1) * 1.0 if event else -share * at.time
        stages = [at, *self._stages(step, own.slope, own.conduction, at, by_length)]
        if event:
            off = self._condition(step.end, stages[-1], own.conduction, after.conduction)
            # A diode without a current does not decide when it opens: another part of the circuit does.
            delay = -at.time - by_length if abs(off[-1]) * self.result.stop <= NOISE else -off / off[-1]
            stages = [At(*(part + part[..., -1:] * delay for part in stage)) for stage in stages]
            by_length = by_length + delay
        levels = np.array([self._rows(each.voltage, each.current) for each in (point, *step.stages)])
        rows = np.array([stage.rows for stage in stages])
        for f in np.flatnonzero((self.spans[0] <= n) & (n <= self.spans[1])).tolist():
            self._part(f, (begin, step.length), levels[:, f], rows[:, f], at.time, by_length)
        self._at_event(n + 1, step.end, stages[-1], after=False)
        return stages[-1], step.end

    def _stages(self, step: Step, slope: np.ndarray, now: Conduction, begin: At, by_length: np.ndarray) -> list[At]:
        """The stages of a step from a point with these slopes (q,)."""
        known, by, found = [slope], [begin.slope], list[At]()
        for k, point in enumerate(step.stages, 1):
            base = begin.x + step.length * np.tensordot(TABLE[k, :k], by, 1)
            base += np.outer(TABLE[k, :k] @ known, by_length)
            time = begin.time + NODES[k] * by_length
            found.append(self._stage(point, DIAGONAL * step.length, now, base, DIAGONAL * by_length, time))
            known.append(point.slope)
            by.append(found[-1].slope)
        return found

    def _stage(
        self, point: Point, g: float, now: Conduction, base: np.ndarray, by_g: np.ndarray, time: np.ndarray
    ) -> At:
        """A stage, from the derivatives of its base (q, p), of its length g and of its time (p,)."""
        own, of, tangents, places = self.companion, self.of, self.tangents, self.run.switching.places
        column, (moved, (values,)) = own.column(g), self.run.moving(now.switches)(np.array([point.time]))
        column[moved] = values
        before = np.zeros(tangents.kind.size, dtype=bool)
        before[own.diodes] = now.diodes
        q, rows, charges = own.storing.size, dict(tangents.rows), list[tuple[float, np.ndarray]]()
        for k, e in enumerate(self.charged, q):
            rows[e] = *rows[e][:RATE], 1.0 / g, point.x[k] - g * point.slope[k]
        value, capacitor = tangents.changes_at(point.solved, self.changes, rows), own.capacitor[:, None]
        weight, slope = own.weight[:, None], point.slope[:q, None]
        share = by_g / g - self.weight / weight
        value[own.storing] = column[own.storing][:, None] * np.where(capacitor, share, -share)
        value[own.series[own.series >= 0]] = -by_g / g**2
        value[own.base] = base[:q]
        for k, e in enumerate(self.charged, q):
            u = point.solved.junctions[e]
            charges.append(self._charge(e, u))
            current = (charges[-1][1] - base[k] - point.slope[k] * by_g) / g
            value[tangents.parts[e][-1]] += current / (1.0 + rows[e][0] * junction(rows[e], u)[1])
        for k, wave in self.run.sources.items():
            value[k] = value[k] * wave.value(point.time) + wave.slope(point.time) * time
        value[places] = np.where(now.switches[:, None], *of.ohms)
        laws = self._transformers(point)
        _, drops, currents = found = tangents.change(point.solved, column, before, value, self.sizes, laws, rows)
        x, slopes = np.empty((2, *base.shape))
        slopes[:q] = (
            np.where(capacitor, currents[own.storing], drops[own.storing]) / weight - slope * self.weight / weight
        )
        x[:q] = base[:q] + g * slopes[:q] + slope * by_g
        volts = {e: tangents.junction_change(e, found, float(point.current[e]), self.changes) for e in self.charged}
        for k, (e, (capacitance, by)) in enumerate(zip(self.charged, charges), q):
            x[k] = capacitance * volts[e] + by
            slopes[k] = (x[k] - base[k] - point.slope[k] * by_g) / g
        _, first, second, *_ = own.own.arrays()
        current = self.tangents.expansion.entering(currents, first.size)
        current[own.storing[~own.capacitor]] = x[:q][~own.capacitor]
        inductors = own.windings.inductors
        current[own.storing[own.place]] -= np.tensordot(point.current[inductors], self.turns, (0, 1))
        current[inductors] = own.windings.inverse @ current[inductors]
        quantities = self._rows(found.potentials[first] - found.potentials[second], current)
        for r, e in self.junctions:
            quantities[r] = volts[e]
        return At(time, x, slopes, quantities, np.array([drops[own.diodes], currents[own.diodes]]))

    def _charge(self, e: int, u: float) -> tuple[float, np.ndarray]:
        """Capacitance of a junction at this voltage, F, and the derivatives (p,) of its charge by parameters alone."""
        row = np.array(self.tangents.rows[e])

        def stored(row: np.ndarray) -> float:
            return float(charge(row, u, *junction(row, u))[0])

        slopes, by = self.changes.of_row(e, self.tangents.rows[e]), np.zeros(self.p)
        for j in np.flatnonzero(slopes.any(axis=0)).tolist():
            both = (row != 0.0) & (slopes[:, j] != 0.0)
            step = NEARBY * float(np.abs(row[both] / slopes[both, j]).min(initial=1.0))
            by[j] = (stored(row + step * slopes[:, j]) - stored(row - step * slopes[:, j])) / (2.0 * step)
        return float(charge(row, u, *junction(row, u))[1]), by

    def _transformers(self, point: Point) -> dict[int, np.ndarray]:
        """Derivatives of the transformers' voltages and currents by their turns and by the cores' inductances, by
        element."""
        own, windings = self.companion, self.companion.windings
        if not windings.inductors.size:
            return {}
        r, slope = windings.independent, point.slope[own.place]
        volts = np.tensordot(windings.inductance[:r] * slope, self.turns, 1)
        volts += np.triu(windings.turns, 1)[:r].T @ (slope[:, None] * self.weight[own.place])
        amperes = -np.tensordot(point.current[windings.inductors], self.turns, (0, 1))
        both = *zip(own.series.tolist(), volts), *zip(own.beside.tolist(), amperes)
        return {k: by for k, by in both if k >= 0}

    def _rows(self, voltage: np.ndarray, current: np.ndarray) -> np.ndarray:
        """Quantities of functionals and of switches' controls, from branch voltages and currents (m,) or (m, p)."""
        return np.asarray(self.weights[0] @ voltage + self.weights[1] @ current)

    def _condition(self, end: Point, at: At, now: Conduction, then: Conduction) -> np.ndarray:
        """The derivative (p,) of what is zero at the event after a step."""
        distances = np.abs(self.run.watch.distances(now, [end.solved])[0])
        changed = np.concatenate([now.diodes != then.diodes, now.switches != then.switches])
        distances[~changed] = np.inf if changed.any() else distances[~changed]
        nearest, d = int(distances.argmin()), now.diodes.size
        if nearest >= d:
            s, (threshold, hysteresis) = nearest - d, self.of.thresholds
            sign = 1.0 if now.switches[s] else -1.0
            return np.asarray(at.rows[len(self.functionals) + s] - threshold[s] + sign * hysteresis[s])
        within = max(AT_ONCE, self.result.accuracy, float(distances[nearest]))
        forward = at.diodes[0] / self.sizes.volts + at.diodes[1] / self.sizes.amperes
        return np.asarray(forward[distances[:d] <= within].sum(axis=0))

    # ------------------------------------------------------------------ functionals
    def _part(
        self,
        f: int,
        span: tuple[float, float],
        levels: np.ndarray,
        rows: np.ndarray,
        by_begin: np.ndarray,
        by_length: np.ndarray,
    ) -> None:
        """Contribution of a step to a functional, from its quantity at the start and in the stages (6,), and from the
        derivatives of these (6, p), of the step's beginning and of its length (p,)."""
        own, (begin, h) = self.functionals[f], span

        def share(time: float) -> float:
            return min(max((time - begin) / h, 0.0), 1.0)

        if isinstance(own, Value):
            low = high = share(own.time)
            shares, weights, power = np.array([low]), np.ones(1), 1
        elif isinstance(own, Integral):
            low, high, power = share(own.begin), share(own.end), own.power
            shares, weights = low + (high - low) * GAUSS[0], h * (high - low) * GAUSS[1]
        else:
            return
        at = dense(shares)
        level = at @ levels
        total = float(weights @ level**power)
        self.values[f] += total
        self.by[f] += power * (weights * level ** (power - 1)) @ at @ rows
        if isinstance(own, Integral):
            # Ends inside the step are fixed in time, others as fractions of the step.
            edges = (dense(np.array([low, high])) @ levels) ** power * (-1.0 * (low > 0.0), 1.0 * (high < 1.0))
            self.by[f] += total / h * by_length
            for edge, place in zip(edges.tolist(), (low, high)):
                self.by[f] -= edge * (by_begin + place * by_length)
        elif 0.0 < low < 1.0:
            self.by[f] -= (dense_slopes(shares) @ levels)[0] / h * (by_begin + low * by_length)

    def _at_event(self, n: int, point: Point, at: At, after: bool) -> None:
        """The functionals' values at the start of step ``n`` and the time of an event there."""
        time, fresh = self.starts[n].time, self.starts[n].fresh
        for f, own in enumerate(self.functionals):
            if isinstance(own, EventTime) and own.time == time and not after:
                self.values[f], self.by[f] = time, at.time
            elif isinstance(own, EventValue) and own.time == time and (own.after is after or not fresh):
                self.values[f], self.by[f] = self._rows(point.voltage, point.current)[f], at.rows[f]


def implicit_sensitivities(
    result: ImplicitResult, functionals: Sequence[Functional], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Values of functionals (f,), and their derivatives by numbers (f, n); see
    `circuitsim.time_domain.waveform_gradient`."""
    companion = result.run.companion
    for functional in functionals:
        check(result, functional)
    together, found = max(1, min(TOGETHER, LARGEST // len(companion.circuit))), list[np.ndarray]()
    for k in range(0, max(len(names), 1), together):
        some = names[k : k + together]
        own = ImplicitSensitivities(result, functionals, some)
        own.go()
        found.append(own.by[:, :-1])
    return own.values, np.hstack(found)
