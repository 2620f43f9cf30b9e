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
from circuitsim.circuit.waveforms import LINE, Waveform, check_cycles
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.models.smooth import SmoothDevice
from circuitsim.time_domain.companion import Companion
from circuitsim.time_domain.implicit_events import NOISE, Conduction, Watch, located
from circuitsim.time_domain.implicit_ledger import Ledger
from circuitsim.time_domain.implicit_step import ERROR, NODES, ORDER, Moving, Point, Step, euler_step, third_order_step
from circuitsim.time_domain.result import Event

INSTANT, LONGEST = 1e-12, 1e-6
"""Length of each of the first steps after a discontinuity, of the run, and the most, of the time to the next corner:
shorter ones span more resistances than pairs of doubles hold, longer ones more of the waveform than the accuracy."""
ULPS = 4.0
"""Least length of any step, in distances of doubles at its time: below that the length is rounding."""
SAFETY, LEAST, MOST, KEEP = 0.85, 0.1, 4.0, 1.4
"""Bounds of the change of the step length; where it could grow by less than `KEEP` it stays, and factors with it."""
SAME_TIME, SAME_LENGTH = 1e-14, 1e-9
"""Difference of the lengths of two steps that is rounding, of the time that is reached and of the length."""
AT_ONCE, CLOSE = 60, 1e-8
"""Events in succession, each within this share of the run after the one before, that end it."""
FLOOR = 1e-3
"""Least scale of a state's error, of the largest voltage or current of all branches."""
ROUGH = 10.0
"""Error of a step over an event, of the accuracy, above which a shorter one is tried before the event is located."""
SHARP = 0.01
"""Error of an event's time, of the accuracy, in steps."""
ROUNDING = 1e-14
"""Share of a time within which another one is the same: corners are sums of a few numbers."""
BEGIN = 1e-3
"""First step that is tried, of the run."""
SAMPLES = 64
"""Times of the run, and corners of each source, at which sources are looked at ahead."""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Their distance, of the run, modulo the run: in no ratio to any period."""
MOST_STEPS, STEPS_A_CYCLE, LATEST = 2_000_000, 4, 10_000
"""Most steps of a run, each of about a kilobyte; fewest of a period of a source; steps between two looks ahead."""
BATCH = 4096
"""Corners of a source that are asked for at a time."""
KEPT = 2**24
"""Most voltages and currents of stages that a run keeps for measurements; later steps are taken again for these."""


BENT = 3.0 * float(ERROR @ NODES**2) / np.array([np.prod(own - NODES[own != NODES]) for own in NODES])
"""Weights of a waveform at the times of stages: for its third derivative as `ERROR` for that of a state."""
SHARES = np.linspace(0.0, 1.0, 18)[1:-1]
"""Times within a step at which cubics are looked at."""
LOOKS = np.vander(SHARES, 4) @ np.linalg.inv(np.vander(NODES, 4))
"""Their weights of the stages."""


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
        Length of each of these two steps, s.
    near : OperatingPoint or None
        What its stages begin with, where the circuit may have several operating points: the step taken again is on the
        same branch.
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
    near: OperatingPoint | None = None


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
        self._moved = np.array([*self.waves], dtype=np.int64)
        self._curved = {k: wave for k, wave in self.waves.items() if wave.system is not LINE}
        smooth = [k for k, device in circuit.devices.items() if isinstance(device, SmoothDevice)]
        self._smooth = np.array(smooth, dtype=np.int64)
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
            return [(self._moved, np.array([wave.value(time) for wave in self.waves.values()])), *fixed]

        return values

    def _largest_sources(self, end: float) -> tuple[float, float]:
        """Largest voltage and current that sources have at some times, V, A; without current sources the current that
        this voltage drives through the largest resistance."""
        kind, level = self.circuit.arrays().kind, np.abs(self.circuit.arrays().value)
        for k, wave in self.waves.items():
            spread = end * np.modf(GOLDEN * np.arange(SAMPLES + 1))[0]
            times = np.concatenate([spread, wave.corners(0.0, end, SAMPLES), [end]])
            level[k] = np.abs(wave.at(times)).max()
        self._size_of_curved = np.maximum(level[[*self._curved]], 1e-300)
        volts, amperes, ohms = (float(level[kind == own].max(initial=0.0)) for own in (VOLTAGE, CURRENT, RESISTOR))
        return volts, amperes or (volts / ohms if ohms else 0.0)

    def _corners(self, after: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """Corners of all sources up to a time, which is the last of these: the first and the last of those that
        rounding alone separates."""
        found = [wave.corners(after, end, BATCH) for wave in self.waves.values()]
        until = min([end, *(float(times[-1]) for times in found if times.size >= BATCH)])
        marks = np.unique(np.concatenate([*found, [until]]))
        marks = marks[(marks <= until) & ((marks == end) | (marks < end * (1.0 - ROUNDING)))]
        apart = np.diff(marks) > ROUNDING * marks[1:]
        first, last = np.flatnonzero(np.append(True, apart)), np.flatnonzero(np.append(apart, True))
        for k in np.flatnonzero(last > first).tolist():
            self._hold_short(marks[first[k] : last[k] + 1])
        return marks[first], marks[last]

    def _hold_short(self, marks: np.ndarray) -> None:
        """Refuse a pulse between corners (n,) that rounding alone separates; a step is one.

        Raises
        ------
        UsageError
        """
        times = np.append(math.nextafter(marks[0], 0.0), marks)
        for k, wave in self.waves.items():
            levels = wave.at(times)
            ends = sorted((levels[0], levels[-1]))
            if max(ends[0] - levels.min(), levels.max() - ends[1]) > NOISE * np.abs(levels).max():
                raise UsageError(
                    f"{self.circuit.names[k]} has a pulse of {marks[-1] - marks[0]:.2g} s at {marks[0]:.9g} s, where "
                    "double precision does not tell such times apart; make it longer, or begin the run just before it"
                )

    def _off_sources(self, begin: float, step: Step) -> float:
        """What a quadratic misses of the sources that are no straight lines, as the states' error is estimated, over
        what a cubic then may miss: between its stages a step sees no more of them."""
        if not self._curved:
            return 0.0
        times = np.array([begin, *(point.time for point in step.stages)])
        levels = np.array([wave.at(times) for wave in self._curved.values()])
        off = float((np.abs(levels @ BENT) / self._size_of_curved).max())
        return off / self.accuracy**0.75

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
        end = self._end = float(times[-1])
        for k, wave in self.waves.items():
            check_cycles(self.circuit.names[k], wave, end, MOST_STEPS // STEPS_A_CYCLE)
        now = Conduction(np.zeros(self.companion.diodes.size, dtype=bool), closed)
        (marks, passed), m, k, want, at = self._corners(0.0, end), 0, 0, BEGIN * end, None
        time, error, busy, aim = 0.0, 0.0, 0, 0.0
        near: OperatingPoint | None = None
        self.ledger.begin(x)
        self.watch.see_states(x)
        self.watch.see_sources(*self._largest_sources(end))
        while True:
            while at is not None and times[k] <= at.time + ULPS * math.ulp(at.time):
                keep(k, at)
                k += 1
                if k == times.size or (progress is not None and progress(time, end)):
                    return time
            if m == marks.size:
                (marks, passed), m = self._corners(float(passed[-1]), end), 0
            if len(self.stretches) > MOST_STEPS or self._too_slow(time, end):
                raise ConvergenceError(
                    f"{time:.6g} s took {len(self.stretches):,} steps, and all of the run would take more than the "
                    f"{MOST_STEPS:,} that memory is meant to hold: end it earlier, accept less accuracy, or look for "
                    "sources and parts that are much faster than the run"
                )
            if at is None:
                at, now = self._begin(time, x, now, self._instant(time, float(marks[m])), (aim, error), near)
                continue
            # An output time that rounding alone separates from a corner is the corner.
            target = float(marks[m])
            if times[k] < target * (1.0 - ROUNDING):
                target = float(times[k])
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
            m += time >= marks[m] * (1.0 - ROUNDING)
            busy = busy + 1 if after is not None and time - began <= CLOSE * end else 0
            if busy > AT_ONCE:
                self._chatter(now, after, time)
            fresh = after is not None or (corner and time >= target)
            if fresh and time < end:
                now, near, at = after or now, at.solved if self.companion.follows else None, None
            else:
                self.stretches.append(Stretch(time, x, at.slope, now, False, aim, near=self._near(at)))
                error = 0.0

    def _too_slow(self, time: float, end: float) -> bool:
        """Whether the latest steps are so short that a hundred times as many as may be would not reach the end."""
        many = len(self.stretches)
        if many % LATEST or not many:
            return False
        return end - time > 100.0 * MOST_STEPS / LATEST * (time - self.stretches[-LATEST].time)

    def _near(self, at: Point) -> OperatingPoint | None:
        """What a step from a point that is taken again begins with: nothing where any operating point is the only one,
        or where all of them would take too much memory."""
        kept = self.companion.circuit.laws and len(self.stretches) <= KEPT // (8 * len(self.circuit))
        return at.solved if kept else None

    def _instant(self, time: float, corner: float) -> float:
        """Length of each of the first steps after a discontinuity, s, with the next corner."""
        return max(min(INSTANT * self._end, LONGEST * (corner - time)), ULPS * math.ulp(time))

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
            jump, step, instant = self._first(time, x, self.moving(now.switches), instant, near)
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
        if before is not None and not (before.same(now) and lost <= NOISE * self.ledger.turned_over()):
            self.events.append(Event(time, error, self._names(before, now), lost))
        self._scale(x)
        self.stretches.append(
            Stretch(time, x, step.end.slope, now, True, aim, error, tuple(jumps), instant, self._near(step.end))
        )
        return step.end, now

    def _first(
        self, time: float, x: np.ndarray, moving: Moving, instant: float, near: OperatingPoint | None
    ) -> tuple[Step, Step, float]:
        """Both steps, and their length, s: so short that they miss no more than the accuracy, but where states jump
        however short they are."""
        missed, found = math.inf, None
        while True:
            # With the sources as late as the states: else these move away from them, and diodes conduct or not by that.
            try:
                jump = euler_step(self.companion, moving, time + instant, x, instant, near)
                step = euler_step(self.companion, moving, time + 2.0 * instant, jump.end.x, instant, jump.end.solved)
            except ConvergenceError:  # beside what jumps, sources that have just begun may be less than rounding
                if found is None:
                    raise
                return found
            found, off = (jump, step, instant), self._off(step._replace(error=step.error - jump.error))
            if off <= 1.0 or off > 0.5 * missed or instant <= ULPS * math.ulp(time):
                return found
            missed, instant = off, max(1e-3 * instant, ULPS * math.ulp(time))

    def _step(
        self, at: Point, now: Conduction, target: float, want: float
    ) -> tuple[Step, Conduction | None, float, float]:
        """A step of the accuracy towards a time; states after it, error of the event that ends it, the next length."""
        moving, begin = self.moving(now.switches), (at.time, at.x, at.slope, at.solved)

        def attempt(length: float, end: float | None = None) -> Step:
            return third_order_step(self.companion, moving, begin, length, at.time + length if end is None else end)

        left, want = target - at.time, min(want, self._longest)
        while True:
            count = max(math.ceil(left / want - 1e-9), 1)
            length = whole = self._like_last(left / count, target)
            if length < ULPS * math.ulp(at.time):
                raise ConvergenceError(
                    f"after {at.time:.9g} s the waveforms need steps of {length:.1e} s, shorter than double precision "
                    "tells times apart there; look for a resistance, capacitance or inductance much smaller than the "
                    "others, or accept less accuracy"
                )
            last = count == 1
            end = math.nextafter(target, 0.0) if last else None
            step, late = attempt(length, end), 0.0
            far = self.watch.distances(now, at, *step.stages)
            after, dip = self.watch.after(now, far[-1]), self._dip(far)
            if after is None and dip:
                shorter = attempt(dip * length)
                there = self.watch.distances(now, at, *shorter.stages)
                if (there[-1] < -self.accuracy).any():
                    step, far, after, length, last = (
                        shorter,
                        there,
                        self.watch.after(now, there[-1]),
                        dip * length,
                        False,
                    )
            elif after is None and (peak := self._peak(at, step)):
                step, length, last = attempt(peak * length), peak * length, False
                far = self.watch.distances(now, at, *step.stages)
                after = self.watch.after(now, far[-1])
            off = max(self._off(step), self._off_sources(at.time, step))
            if after is not None and off <= ROUGH:
                length, late, step = self._located(attempt, at, now, step, target)
                off, far = self._off(step), self.watch.distances(now, at, *step.stages)
                after = self.watch.after(now, far[-1])
                last = last and length == whole
            # A stage before the end beyond an event by more than the accuracy: two events, or too long a step over a
            # transient. An event at the beginning, to what its time is known, leaves one in a step of any length.
            inside = off <= 1.0 and late < length and bool((far[1:-1] < -self.accuracy).any())
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

    def _dip(self, far: np.ndarray) -> float:
        """Where a diode or switch may have changed and changed back between the stages of a step, in steps: where the
        cubic through its distances (4, d + s) is least; 0 where none is beyond."""
        if (far < -self.accuracy).any():
            return 0.0
        between = LOOKS @ far
        k, _ = np.unravel_index(int(between.argmin()), between.shape) if between.size else (0, 0)
        return float(SHARES[k]) if between.size and between.min() < -self.accuracy else 0.0

    def _peak(self, at: Point, step: Step) -> float:
        """Where a smooth device may conduct between the stages of a step as in none of them, in steps: where the cubic
        through its voltages says so, the step ends, and the next one sees the current; else 0."""
        volts = np.array([point.voltage[self._smooth] for point in (at, *step.stages)])
        between = LOOKS @ volts
        over = np.maximum(between - volts.max(axis=0), volts.min(axis=0) - between)
        for j in np.flatnonzero(over.max(axis=0) > self.accuracy * self.watch.volts).tolist():
            k, element = int(over[:, j].argmax()), int(self._smooth[j])
            device = self.circuit.devices[element]
            assert isinstance(device, SmoothDevice)
            most = max(abs(point.current[element]) for point in (at, *step.stages))
            if abs(device.at(float(between[k, j]))[1]) > most + self.accuracy * self.watch.amperes:
                return float(SHARES[k])
        return 0.0

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
