"""Gradients of the implicit method: the derivative of the result of its steps, by one run backwards.

The steps are taken again from their beginnings, which the run keeps, so the memory is that of the run. Between an event
and the next output time or corner the steps keep their shares of the time; an event's time follows from the condition
that ends its step. Integrals are sums over the stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.time_domain.functionals import EventTime, EventValue, Functional, Integral, Value, check, own_weights
from circuitsim.time_domain.implicit import Stretch
from circuitsim.time_domain.implicit_events import Conduction
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.implicit_step import WEIGHTS, Point, Step
from circuitsim.time_domain.stage_gradients import Reached, StageGradients, Wanted

AT_ONCE = 1e-4
"""Distance from a diode's or switch's change, before an event, up to which it takes part."""


class _Part(NamedTuple):
    """Functionals that end at a time within a step: values, and integrals from the step's beginning with factors."""

    values: list[int]
    integrals: list[tuple[int, float]]


class ImplicitSweep:
    """One run backwards.

    Attributes
    ----------
    values : (f,) float array
        Of the functionals.
    stages : StageGradients
        With what each number contributes.
    by_threshold : (2, s) float array
        By thresholds and by hystereses of switches.
    """

    def __init__(self, result: ImplicitResult, functionals: Sequence[Functional], weights: np.ndarray) -> None:
        for functional in functionals:
            check(result, functional)
        self.result, self.run, self.functionals, self.weights = result, result.run, functionals, weights
        self.stages, self.values = StageGradients(result.run), np.zeros(len(functionals))
        self.by_threshold = np.zeros((2, self.run.switching.places.size))
        self.again = result.again
        none = self.stages.none()
        self.of = [
            (none.voltage, none.current) if isinstance(f, EventTime) else own_weights(result, f.quantity)
            for f in functionals
        ]
        self.stretches = self.again.stretches
        self.times = np.array([own.time for own in self.stretches])
        self._plan()

    # ------------------------------------------------------------------ what is asked for
    def _plan(self) -> None:
        """For each step the times up to which something is asked for, and the integrals over all of it."""
        self.parts: list[dict[float, _Part]] = [{} for _ in self.stretches]
        self.whole: list[list[tuple[int, float]]] = [[] for _ in self.stretches]
        last = len(self.stretches) - 2

        def at(n: int, time: float) -> _Part:
            return self.parts[n].setdefault(time, _Part([], []))

        for f, own in enumerate(self.functionals):
            if isinstance(own, Value):
                at(self.result._stretch_at(own.time), own.time).values.append(f)
            if not isinstance(own, Integral) or own.begin == own.end:
                continue
            first = min(max(int(np.searchsorted(self.times, own.begin, side="right")) - 1, 0), last)
            until = int(np.searchsorted(self.times, own.end))
            for n in range(first, min(until, last + 1)):
                if own.end >= self.times[n + 1]:
                    self.whole[n].append((f, 1.0))
                else:
                    at(n, own.end).integrals.append((f, 1.0))
                if own.begin > self.times[n]:
                    at(n, own.begin).integrals.append((f, -1.0))

    # ------------------------------------------------------------------ backwards
    def back(self) -> np.ndarray:
        """The derivative by the states at the beginning (q,)."""
        wanted, by_time = self.stages.none(), 0.0
        last = len(self.stretches) - 2
        step, first = self.again.whole(last), self.again.first(last)
        for n in range(last, -1, -1):
            before = None if n == 0 or first else self.again.whole(n - 1)
            begin = first[-1][1].end if before is None else before.end
            wanted, by_time = self._through(n, step, begin, wanted, by_time)
            if first:
                wanted, by_time = self._through_first(n, first, wanted, by_time)
            if n:
                step, first = before or self.again.whole(n - 1), self.again.first(n - 1)
        return wanted.x

    def _through(self, n: int, step: Step, begin: Point, wanted: Wanted, by_time: float) -> tuple[Wanted, float]:
        """Back through step ``n``: from what its end has, and the time there, to its beginning."""
        own, after = self.stretches[n], self.stretches[n + 1]
        end, total, later = after.time, self.stages.none(), 0.0
        for time, part in self.parts[n].items():
            taken = self.again.up_to(n, time)
            reached, start = self._part(taken, begin, own, part, self.stages.none())
            total, later = _sum(total, reached, start), later + reached.time - reached.length
        wanted, by_time = self._at_event(n + 1, step.end, wanted, by_time, after=False)
        reached, start = self._part(step, begin, own, _Part([], self.whole[n]), wanted)
        total = _sum(total, reached, start)
        if self.again.at_event(n):
            turned, more = self._turn(step, begin, own, after, reached.length + by_time)
            total = _sum(total, turned, self.stages.none())
            return total, later + by_time + reached.time + more
        share = step.length / (after.aim - self.again.begins(n)) if after.aim > end else 1.0
        return total, later + (1.0 - share) * by_time + reached.time - share * reached.length

    def _part(self, step: Step, begin: Point, own: Stretch, part: _Part, wanted: Wanted) -> tuple[Reached, Wanted]:
        """Back through a step with values at its end and integrals over it; also what the point before it has."""
        start, by_length = self.stages.none(), 0.0
        stages = [self.stages.none() for _ in step.stages[:-1]] + [wanted]
        for f in part.values:
            stages[-1] = stages[-1].plus(*(self.weights[f] * of for of in self.of[f]))
            self.values[f] = self._value(f, step.end)
        several = len(step.stages) > 1
        points = [begin, *step.stages] if several else [step.end]
        for f, factor in part.integrals:
            functional = self.functionals[f]
            power = functional.power if isinstance(functional, Integral) else 1
            for k, (weight, point) in enumerate(zip(WEIGHTS.tolist() if several else [1.0], points)):
                level = self._value(f, point)
                self.values[f] += factor * weight * step.length * level**power
                by_length += self.weights[f] * factor * weight * level**power
                share = self.weights[f] * factor * weight * step.length * power * level ** (power - 1)
                more = tuple(share * of for of in self.of[f])
                if several and k == 0:
                    start = start.plus(*more)
                else:
                    stages[k - several] = stages[k - several].plus(*more)
        reached = self._back(step, begin, own, stages)
        return reached._replace(length=reached.length + by_length), start

    def _back(self, step: Step, begin: Point, own: Stretch, stages: list[Wanted]) -> Reached:
        if len(step.stages) == 1:
            return self.stages.euler(step, own.conduction, stages[0])
        return self.stages.step(step, (begin.time, own.slope), own.conduction, stages)

    def _through_first(
        self, n: int, first: list[tuple[Step, Step, np.ndarray]], wanted: Wanted, by_time: float
    ) -> tuple[Wanted, float]:
        """Back through the short steps at the beginning of step ``n``."""
        none = self.stages.none()
        wanted, by_time = self._at_event(n, first[-1][1].end, wanted, by_time, after=True)
        for jump, step, switches in reversed(first):
            now = self.stretches[n].conduction._replace(switches=switches)
            for own in (step, jump):
                reached = self.stages.euler(own, now, wanted)
                wanted, by_time = none._replace(x=reached.x), by_time + reached.time
        return wanted, by_time

    def _turn(self, step: Step, begin: Point, own: Stretch, after: Stretch, by_time: float) -> tuple[Reached, float]:
        """What the time of the event at the end of a step contributes, and by a shift of the step's beginning."""
        wanted, threshold = self._condition(step.end, own.conduction, after.conduction)
        stages = [self.stages.none(), self.stages.none(), wanted]
        self.stages.count = False
        rate = self._back(step, begin, own, stages).length
        self.stages.count = True
        if rate == 0.0:
            raise UsageError(f"at {after.time:g} s a waveform only touches zero: there is no gradient")
        factor = -by_time / rate
        reached = self._back(step, begin, own, [own.times(factor) for own in stages])
        self.by_threshold += factor * threshold
        return reached, reached.time

    def _condition(self, end: Point, now: Conduction, then: Conduction) -> tuple[Wanted, np.ndarray]:
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

    def _at_event(self, n: int, point: Point, wanted: Wanted, by_time: float, after: bool) -> tuple[Wanted, float]:
        """With values at the beginning of step ``n`` and the time of an event there."""
        time, fresh = self.stretches[n].time, self.stretches[n].fresh
        for f, own in enumerate(self.functionals):
            if isinstance(own, EventTime) and own.time == time and not after:
                self.values[f], by_time = time, by_time + float(self.weights[f])
            elif isinstance(own, EventValue) and own.time == time and (own.after is after or not fresh):
                self.values[f] = self._value(f, point)
                wanted = wanted.plus(*(self.weights[f] * of for of in self.of[f]))
        return wanted, by_time

    def _value(self, f: int, point: Point) -> float:
        return float(self.of[f][0] @ point.voltage + self.of[f][1] @ point.current)


def _sum(total: Wanted, reached: Reached, start: Wanted) -> Wanted:
    """What the beginning of a step has."""
    return Wanted(
        total.voltage + start.voltage,
        total.current + start.current,
        total.x + reached.x,
        total.slope + reached.slope,
    )
