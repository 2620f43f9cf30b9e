"""Steps of an implicit run, taken again from their beginnings, and integrals as sums over their stages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.time_domain.implicit_step import WEIGHTS, Point, Step, euler_step, third_order_step

TOGETHER = 2**20
"""Voltages and currents of stages that are looked at together."""
SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
"""Weights of the ends and the middle in integrals over a step."""


class Sums(NamedTuple):
    """Waveforms whose weighted sums are integrals.

    Attributes
    ----------
    weights : (n,) float array
        s.
    voltage, current : (n, m) float arrays
        V, A.
    """

    weights: np.ndarray
    voltage: np.ndarray
    current: np.ndarray


class Outline(NamedTuple):
    """Waveforms at the beginnings of steps and in their stages (p, 4, m), V, A."""

    voltage: np.ndarray
    current: np.ndarray


class StepsAgain:
    """The steps of a run.

    Parameters
    ----------
    result : ImplicitResult
    """

    def __init__(self, result: Any) -> None:
        self.result, self.run, self.stretches = result, result.run, list(result.run.stretches)
        if self.stretches[-1].time < result.stop:  # an error ended the run
            self.stretches.append(self.stretches[-1]._replace(time=result.stop, late=0.0))
        self.last = len(self.stretches) - 2
        self._latest: tuple[int, OperatingPoint | None] = 0, None
        self._before: tuple[int, Step] | None = None

    def begins(self, n: int) -> float:
        """Where step ``n`` begins, s."""
        own = self.stretches[n]
        return own.time + 2.0 * own.instant

    def at_event(self, n: int) -> bool:
        """Whether an event ends step ``n``."""
        return self.stretches[n + 1].late > 0.0 and n < self.last

    def near(self, n: int) -> OperatingPoint | None:
        """An operating point that step ``n`` begins with: where there may be several, the one that the run had; where
        that is not kept, by the steps from the last one that is."""
        own, circuit = self.stretches[n], self.run.companion.circuit
        if own.near is not None or not circuit.laws:
            return own.near or self._latest[1]
        k, point = self._latest
        if k > n or point is None:
            k = max((j for j in range(n) if self.stretches[j].near is not None), default=0)
            point = self.stretches[k].near
        while k < n:
            self._latest = k, point
            point = self.whole(k).end.solved
            if first := self.first(k + 1, point):
                point = first[-1][1].end.solved
            k += 1
        self._latest = k, point
        return point

    def up_to(self, n: int, time: float) -> Step:
        """Step ``n`` up to a time, s."""
        own, begin = self.stretches[n], self.begins(n)
        if own.fresh and time <= begin:
            return self.first(n)[-1][1]
        moving, companion, near = self.run.moving(own.conduction.switches), self.run.companion, self.near(n)
        if self.result._beside(n, time):
            short = self.result._short(n, time)
            return self._kept(n, euler_step(companion, moving, own.time + short, own.x, short, near))
        beginning = begin, own.x, own.slope, near
        return self._kept(n, third_order_step(companion, moving, beginning, time - begin, time))

    def whole(self, n: int) -> Step:
        """Step ``n``; before an event, if one ends it."""
        own, after, begin = self.stretches[n], self.stretches[n + 1], self.begins(n)
        end, length = math.nextafter(after.time, 0.0), after.time - begin
        if self.at_event(n) and after.late < length:
            length -= after.late
            end = begin + length
        moving = self.run.moving(own.conduction.switches)
        beginning = begin, own.x, own.slope, self.near(n)
        step = self._kept(n, third_order_step(self.run.companion, moving, beginning, length, end))
        if self.run.companion.circuit.laws and not after.fresh:
            self._latest = n + 1, step.end.solved
        return step

    def first(self, n: int, near: OperatingPoint | None = None) -> list[tuple[Step, Step, np.ndarray]]:
        """The short steps at the beginning of step ``n``, where something changes, and the switches there; ``near``: an
        operating point before them, else the one after them."""
        own, found, companion = self.stretches[n], [], self.run.companion
        for x, switches in own.jumps:
            moving, instant, start = self.run.moving(switches), own.instant, near or self.near(n)
            jump = euler_step(companion, moving, own.time + instant, x, instant, start)
            step = euler_step(companion, moving, own.time + 2.0 * instant, jump.end.x, instant, jump.end.solved)
            found.append((jump, step, switches))
        return found

    def _kept(self, n: int, step: Step) -> Step:
        """A step, of which the next one finds a stage nearby."""
        if self.run.companion.follows and not self.run.companion.circuit.laws:
            self._latest = n, step.stages[0].solved
        return step

    # ------------------------------------------------------------------ stages
    def sums(self, begin: float, end: float, linear: bool) -> Iterator[Sums]:
        """Waveforms whose weighted sums are their integrals between two times, s, and where not ``linear`` those of
        their products too; some steps at a time."""
        starts = np.array([own.time for own in self.stretches])
        for some in self._between(starts, begin, end):
            parts = list[Sums]()
            for n in some:
                parts.append(self._sum(n, end if end < starts[n + 1] else None, linear))
                if begin > starts[n]:
                    before = self._sum(n, begin, linear)
                    parts.append(before._replace(weights=-before.weights))
            yield Sums(*(np.concatenate(columns) for columns in zip(*parts)))

    def _sum(self, n: int, time: float | None, linear: bool) -> Sums:
        """Step ``n`` up to a time, else all of it: the sum over its stages, else Simpson's rule."""
        own, points = self.stretches[n], self._points(n)
        last = self.stretches[n + 1].time if time is None else time
        if time is not None:
            stages = _waves(*self.up_to(n, time).stages)
            points = np.concatenate([points[:1], stages if len(stages) > 1 else np.repeat(stages, 3, axis=0)])
        weights = WEIGHTS * (last - self.begins(n))
        if not linear:
            middle = _waves(self.up_to(n, 0.5 * (own.time + last)).end)
            points, weights = np.concatenate([points[:1], middle, points[-1:]]), SIMPSON * (last - own.time)
        elif last > self.begins(n):
            weights[0] += 2.0 * own.instant
        else:
            weights = np.eye(WEIGHTS.size)[-1] * (last - own.time)
        return Sums(weights, *np.moveaxis(points, 1, 0))

    def outline(self, begin: float, end: float) -> Iterator[Outline]:
        """Waveforms in the stages between two times, s, some steps at a time."""
        starts = np.array([own.time for own in self.stretches])
        for some in self._between(starts, begin, end):
            yield Outline(*np.moveaxis(np.array([self._points(n) for n in some]), 2, 0))

    def _between(self, starts: np.ndarray, begin: float, end: float) -> Iterator[range]:
        """The steps between two times, some at a time."""
        first = min(max(int(np.searchsorted(starts, begin, side="right")) - 1, 0), self.last)
        until = min(int(np.searchsorted(starts, end)), self.last + 1)
        many = TOGETHER // (8 * len(self.run.circuit)) + 1
        yield from (range(n, min(n + many, until)) for n in range(first, until, many))

    def _points(self, n: int) -> np.ndarray:
        """Voltages and currents (4, 2, m) at the beginning and in the stages of step ``n``."""
        if n < len(self.run.stages):
            return self.run.stages[n]
        first = self.first(n)
        before = None if first or self._before is None or self._before[0] != n - 1 else self._before[1]
        begin = first[-1][1] if first else before or self.whole(n - 1)
        step = self.whole(n)
        self._before = n, step
        return _waves(begin.end, *step.stages)


def _waves(*points: Point) -> np.ndarray:
    """Voltages and currents (n, 2, m) of points, V, A."""
    return np.array([(point.voltage, point.current) for point in points])


__all__ = ["Outline", "StepsAgain", "Sums"]
