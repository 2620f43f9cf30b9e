"""The implicit method: a run through time whose steps are operating points, for any convex device and any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.switching import Switch, Switching
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import AMPLIFIER, CURRENT, RESISTOR, VOLTAGE
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.time_domain.companion import Companion
from circuitsim.time_domain.implicit_events import NOISE, Conduction, Watch, located
from circuitsim.time_domain.implicit_ledger import Ledger
from circuitsim.time_domain.implicit_step import ORDER, Moving, Point, Step, euler_step, third_order_step
from circuitsim.time_domain.result import Event
from circuitsim.time_domain.source_switches import SourceSwitches
from circuitsim.time_domain.source_values import SourceValues
from circuitsim.time_domain.waveforms import Waveform

INSTANT = 1e-9
"""Length of the first steps after a discontinuity, of the time to the next output time or corner."""
BRIEF, LONGEST = 1e-11, 1e-6
"""Least length of these steps, of the distance of output times, where that is within a share of the time left: still
shorter ones span more resistances than pairs of doubles hold."""
SAFETY, LEAST, MOST, KEEP = 0.85, 0.1, 4.0, 1.4
"""Bounds of the change of the step length; where it could grow by less than `KEEP` it stays, and factors with it."""
SHORTEST = 1e-15
"""Shortest step, of the time that is reached and of the distance of the output times."""
SAME_TIME, SAME_LENGTH = 1e-14, 1e-9
"""Difference of the lengths of two steps that is rounding, of the time that is reached and of the length."""
AT_ONCE, CLOSE = 60, 1e-5
"""Events in succession, each within this share of the time to the next output time or corner, that end the run."""
FLOOR = 1e-3
"""Least scale of a state's error, of the largest voltage or current of all branches."""
ROUGH = 10.0
"""Error of a step over an event, of the accuracy, above which a shorter one is tried before the event is located."""
SHARP = 0.01
"""Error of an event's time, of the accuracy, in steps."""
ROUNDING = 1e-9
"""Share of the distance of output times below which two times are one."""
SAMPLES = 64
"""Most output times at which sources are looked at ahead."""
BATCH = 4096
"""Corners of a source that are asked for at a time."""
KEPT = 2**24
"""Most voltages and currents of stages that a run keeps for measurements; later steps are taken again for these."""


class Stretch(NamedTuple):
    """The beginning of a step.

    Attributes
    ----------
    time : float
        s.
    x, slope : (q,) float arrays
        States and their derivatives.
    conduction : Conduction
    fresh : bool
        Whether something changes at its beginning.
    aim : float
        Time that the step which ends here was towards, s.
    late : float
        How much later than the event it ends at most, s; 0 where it ends at no event.
    jumps : tuple of ((q,) float array, (s,) bool array)
        States and switches before each pair of first steps, where something changes.
    instant : float
        Length of these steps, s.
    """

    time: float
    x: np.ndarray
    slope: np.ndarray
    conduction: Conduction
    fresh: bool
    aim: float
    late: float = 0.0
    jumps: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    instant: float = 0.0


class Implicit:
    """A circuit with its waveforms, ready for a run.

    Parameters
    ----------
    circuit, waveforms, switches, couplings, tolerance, accuracy
        See `circuitsim.time_domain.transient`.
    longest : float
        Step, s.

    Attributes
    ----------
    companion : Companion
    switching : Switching
    stretches : list of Stretch
    events : list of Event
    ledger : Ledger
    reached : Point or None
        The end of the last step.
    stages : list of (4, 2, m) float arrays
        Voltages, V, and currents, A, at the beginning and in the stages of the first steps.
    """

    def __init__(
        self,
        circuit: Circuit,
        waveforms: Mapping[str, Waveform],
        switches: Mapping[str, Switch],
        couplings: Mapping[tuple[str, str], float],
        tolerance: float,
        accuracy: float,
        longest: float = math.inf,
    ) -> None:
        if not 0.0 < accuracy <= 0.1:
            raise UsageError(f"the accuracy must lie between 0 and 0.1, not {accuracy!r}")
        kind = circuit.arrays().kind
        if (kind == AMPLIFIER).any():
            raise UsageError(f"{circuit.names[int(np.argmax(kind == AMPLIFIER))]}: amplifiers are not done in time")
        self.circuit, self.accuracy, self._longest = circuit, accuracy, longest
        self.companion = Companion(circuit, couplings, tolerance)
        places = np.array([circuit.element_index(name) for name in switches], dtype=np.int64)
        self.switching = Switching(places, tuple(switches.values()), tuple(switches))
        self.waves = {circuit.element_index(name): wave for name, wave in waveforms.items()}
        for k in self.waves:
            if kind[k] not in (VOLTAGE, CURRENT):
                raise UsageError(f"{circuit.names[k]} is no source; only sources have waveforms")
        self._moved, self._levels = np.array([*self.waves], dtype=np.int64), SourceValues([*self.waves.values()])
        self._turning = SourceSwitches(circuit, self.switching, self.waves)
        self.watch = Watch(self.companion, self.switching)
        self.ledger = Ledger(self.companion)
        self.stretches: list[Stretch] = []
        self.events: list[Event] = []
        self.reached: Point | None = None
        self.stages: list[np.ndarray] = []
        self._size, self._length = np.zeros(self.companion.storing.size), 0.0

    # ------------------------------------------------------------------ sources
    def moving(self, closed: np.ndarray) -> Moving:
        """Values of sources at a time, and of switches in these states."""
        fixed = [(self.switching.places, self.switching.ohms(closed))] if closed.size else []

        def values(time: float) -> list[tuple[np.ndarray, np.ndarray]]:
            return [(self._moved, self._levels(time)), *fixed]

        return values

    def _largest_sources(self, times: np.ndarray) -> tuple[float, float]:
        """Largest voltage and current that sources have at some of the output times, V, A; without current sources the
        current that this voltage drives through the largest resistance."""
        kind, level = self.circuit.arrays().kind, np.abs(self.circuit.arrays().value)
        some = times[:: -(-times.size // SAMPLES)]
        for k, wave in self.waves.items():
            level[k] = np.abs(wave.states(some)[0] @ wave.row).max()
        volts, amperes, ohms = (float(level[kind == own].max(initial=0.0)) for own in (VOLTAGE, CURRENT, RESISTOR))
        return volts, amperes or (volts / ohms if ohms else 0.0)

    def _corners(self, after: float, end: float, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Corners of all sources up to a time, which is the last of these: the first and the last of those that
        rounding alone separates; output times that it separates from one become equal to the first."""
        found = [wave.corners(after, end, BATCH) for wave in self.waves.values()]
        until = min([end, *(float(times[-1]) for times in found if times.size >= BATCH)])
        marks = np.unique(np.concatenate([*found, [until]]))
        marks = marks[(marks <= until) & ((marks == end) | (marks < end - ROUNDING * self._grain))]
        near = np.minimum(np.searchsorted(times, marks - ROUNDING * self._grain), times.size - 1)
        close = np.abs(times[near] - marks) <= ROUNDING * self._grain
        times[near[close]] = marks[close]
        apart = np.diff(marks) > ROUNDING * self._grain
        return marks[np.append(True, apart)], marks[np.append(apart, True)]

    # ------------------------------------------------------------------ the run
    def run(
        self,
        x: np.ndarray,
        closed: np.ndarray,
        times: np.ndarray,
        keep: Callable[[int, Point], None],
        progress: Callable[[float, float], bool | None] | None,
    ) -> float:
        """Go through output times.

        Parameters
        ----------
        x : (q,) float array
            States at 0.
        closed : (switches,) bool array
            States of the switches at 0.
        times : (n,) float array
            Ascending, s.
        keep : callable
            Takes the number of each output time and the point there.
        progress : callable, optional
            See `circuitsim.time_domain.transient`.

        Returns
        -------
        float
            The time that is reached, s.
        """
        end, self._grain, times = float(times[-1]), float(times[-1] - times[0]) / (times.size - 1), times.copy()
        now = Conduction(np.zeros(self.companion.diodes.size, dtype=bool), closed)
        (marks, passed), m, k, want, at = self._corners(0.0, end, times), 0, 0, self._grain, None
        time, error, busy, aim = 0.0, 0.0, 0, 0.0
        near: OperatingPoint | None = None
        self.ledger.begin(x)
        self.watch.see_states(x)
        self.watch.see_sources(*self._largest_sources(times))
        while True:
            if at is not None and times[k] <= time:
                keep(k, at)
                k += 1
                if k == times.size or (progress is not None and progress(time, end)):
                    return time
            if m == marks.size:
                (marks, passed), m = self._corners(float(passed[-1]), end, times), 0
            target = min(float(times[k]) if times[k] > time else float(times[k + 1]), float(marks[m]))
            if at is None:
                at, now = self._begin(time, x, now, self._instant(target - time), (aim, error), near)
                continue
            corner = marks[m] == target and target < end
            began, aim = time, target
            step, after, error, want = self._step(at, now, target, want)
            if corner and step.end.time == target:
                step = step._replace(stages=(*step.stages[:-1], step.end._replace(time=float(passed[m]))))
            if len(self.stages) + 1 == len(self.stretches) <= KEPT // (8 * len(self.circuit)):
                self.stages.append(np.array([(point.voltage, point.current) for point in (at, *step.stages)]))
            at, x, time = step.end, step.end.x, step.end.time
            self.reached = at
            self.ledger.take(step)
            m += time >= marks[m]
            busy = busy + 1 if after is not None and time - began <= CLOSE * (target - began) else 0
            if busy > AT_ONCE:
                self._chatter(now, after, time)
            fresh = after is not None or (corner and time >= target)
            if fresh and time < end:
                now, near, at = after or now, at.solved if self.companion.follows else None, None
            else:
                self.stretches.append(Stretch(time, x, at.slope, now, False, aim))
                error = 0.0

    def _instant(self, left: float) -> float:
        """Length of the first steps after a discontinuity, s, where so much time is left."""
        return max(INSTANT * left, min(BRIEF * self._grain, LONGEST * left))

    def _begin(
        self,
        time: float,
        x: np.ndarray,
        now: Conduction,
        instant: float,
        ended: tuple[float, float],
        near: OperatingPoint | None,
    ) -> tuple[Point, Conduction]:
        """Two short steps of backward Euler after a discontinuity: in the first states jump, the second has their
        derivatives. ``ended``: what the step before was towards, and its event's error, s."""
        before, lost = self.stretches[-1].conduction if self.stretches else None, 0.0
        (aim, error), jumps = ended, list[tuple[np.ndarray, np.ndarray]]()
        for _ in range(AT_ONCE):
            jumps.append((x, now.switches))
            moving = self.moving(now.switches)
            jump = euler_step(self.companion, moving, time, x, instant, near)
            step = euler_step(self.companion, moving, time + instant, jump.end.x, instant, jump.end.solved)
            self.watch.see(step.end)
            self.ledger.take(jump, step)
            lost += self.companion.energy(jump.error)
            x, near = step.end.x, step.end.solved
            after = self.watch.changed(step.end, now)
            same_switches = after is None or (after.switches == now.switches).all()
            now = after or now
            if same_switches:
                break
        else:
            self._chatter(now, after, time)
        if before is not None and not (before.same(now) and lost <= INSTANT * self.ledger.turned_over()):
            self.events.append(Event(time, error, self._names(before, now), lost))
        self._scale(x)
        self.stretches.append(Stretch(time, x, step.end.slope, now, True, aim, error, tuple(jumps), instant))
        return step.end, now

    def _step(
        self, at: Point, now: Conduction, target: float, want: float
    ) -> tuple[Step, Conduction | None, float, float]:
        """A step of the accuracy towards a time; states after it, error of the event that ends it, the next length."""
        moving, begin = self.moving(now.switches), (at.time, at.x, at.slope, at.solved)

        def attempt(length: float, end: float | None = None) -> Step:
            return third_order_step(self.companion, moving, begin, length, at.time + length if end is None else end)

        turn, want = self._turning.next(at.time, now.switches), min(want, self._longest)
        while True:
            left = target - at.time
            # Steps that a known event ends are as long as it is late at most.
            beyond = SHARP * self.accuracy * min(want, left)
            turns = turn + beyond < target
            if turns:
                left = turn + beyond - at.time
            count = max(math.ceil(left / want - 1e-9), 1)
            length = whole = self._like_last(left / count, target)
            if length < SHORTEST * (at.time + self._grain):
                raise ConvergenceError(f"steps of {length:.1e} s at {at.time:g} s are too short; accept less accuracy")
            last = count == 1 and not turns
            end = math.nextafter(target, 0.0) if last else None
            step, late = attempt(length, end), 0.0
            off, far = self._off(step), self.watch.distances(now, *step.stages)
            after = self.watch.after(now, far[-1])
            if after is not None and turns and count == 1 and (after.diodes == now.diodes).all():
                late = beyond
            elif after is not None and off <= ROUGH:
                length, late, step = self._located(attempt, at, now, step, target)
                off, far = self._off(step), self.watch.distances(now, *step.stages)
                after = self.watch.after(now, far[-1])
                last = last and length == whole
            # A stage before the end beyond an event by more than the accuracy: two events, or too long a step over a
            # transient. An event at the beginning, to what its time is known, leaves one in a step of any length.
            inside = off <= 1.0 and late < length and bool((far[:-1] < -self.accuracy).any())
            if off <= 1.0 and not inside:
                break
            want = length * (0.5 if inside else max(LEAST, SAFETY * off ** (-1.0 / ORDER)))
        self._scale(step.end.x)
        self._length = step.length
        self.watch.see(step.end)
        if last:
            step = step._replace(stages=(*step.stages[:-1], step.end._replace(time=target)))
        grown = SAFETY * max(off, 1e-9) ** (-1.0 / ORDER)
        if grown >= KEEP:
            want = max(want, length * min(grown, MOST))
        elif after is None:
            want = length * min(grown, 1.0)
        return step, after, late, want

    def _like_last(self, length: float, time: float) -> float:
        """The length of the step before where rounding of times alone separates this one from it: factors depend on
        all bits of a length, s."""
        return self._length if abs(length - self._length) <= min(SAME_TIME * time, SAME_LENGTH * length) else length

    def _located(
        self, attempt: Callable[[float], Step], at: Point, now: Conduction, step: Step, target: float
    ) -> tuple[float, float, Step]:
        """The shortest step over the first change of what has changed at the end of a longer one; see `located`."""
        which = self.watch.distances(now, step.end)[0] < 0.0

        def distance(point: Point) -> float:
            return float(self.watch.distances(now, point)[0, which].min())

        resolution = max(SHARP * self.accuracy * step.length, 4e-16 * target)
        bend = NOISE if which[: now.diodes.size].any() else math.inf
        return located(attempt, distance, bend, at, step, resolution)

    # ------------------------------------------------------------------ sizes
    def _scale(self, x: np.ndarray) -> None:
        self._size = np.maximum(self._size, np.abs(x))

    def _off(self, step: Step) -> float:
        """The estimate of the local error over the accuracy."""
        size = np.maximum(np.maximum(self._size, np.abs(step.end.x)), FLOOR * self.companion.size)
        off = float((np.abs(step.error) / size).max(initial=0.0))
        return off / self.accuracy

    # ------------------------------------------------------------------ words
    def _names(self, before: Conduction, now: Conduction) -> tuple[str, ...]:
        found = []
        for names, old, new in (
            (self.companion.diode_names, before.diodes, now.diodes),
            (self.switching.names, before.switches, now.switches),
        ):
            found += ["-+"[int(new[k])] + names[k] for k in np.flatnonzero(old != new).tolist()]
        return tuple(found)

    def _chatter(self, now: Conduction, after: Conduction | None, time: float) -> None:
        named = self._names(now, after or now)
        raise ConvergenceError(
            f"after {time:g} s {', '.join(name[1:] for name in named)} would open and close without end: a hysteresis "
            "is missing"
        )
