"""Runs of the exact method: the compiled loop runs until a mode, a window or a jump is missing, which is computed here.

The corners of all sources are merged in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from circuitsim.circuit.waveforms import Waveform
from circuitsim.engine.small.pointers import Pinned
from circuitsim.errors import ConvergenceError, NoOperatingPointError
from circuitsim.kernels import LOADING, PRODUCT, count, kernel
from circuitsim.time_domain.beginning import start
from circuitsim.time_domain.jumps import contradiction, jump
from circuitsim.time_domain.library import Library
from circuitsim.time_domain.loop import (
    CORNERS,
    DONE,
    ENDLESS,
    FAST,
    JUMP,
    MODE,
    NO_SET,
    ROOM,
    SOURCES,
    WINDOW,
    advance,
    advance_decays,
)
from circuitsim.time_domain.mode_selection import NOISE, signs
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.part_states import STATE, nothing_carried
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.proof import RESIDUE
from circuitsim.time_domain.result import Changes, Energies, Jump, Segments
from circuitsim.time_domain.roots import ORDERS, POINTS
from circuitsim.time_domain.windows import (
    BEFORE,
    CORNER,
    CURRENT,
    DELIVERED,
    DISSIPATED,
    ENTER,
    EVENTS,
    LARGEST,
    LOST,
    NOW,
    SEGMENTS,
    SMALLEST,
    TIME,
    TRIES,
    TURNED,
    VOLTAGE,
    WANTED,
    Record,
    Run,
    sizes,
)


class Schedule(NamedTuple):
    """The states of all sources at their corners, up to a time.

    Attributes
    ----------
    until : float
        Later corners are not included, s.
    times : (n,) float array
        Ascending, s.
    place, width : (n,) int arrays
        Position of the first state among those of all sources, and number of states.
    states, sizes : (n, k) float arrays
        See `Waveform.states`; unused entries are 0.
    """

    until: float
    times: np.ndarray
    place: np.ndarray
    width: np.ndarray
    states: np.ndarray
    sizes: np.ndarray


def schedule(waveforms: Sequence[Waveform], after: float, until: float, most: int = 4096) -> Schedule:
    """The corners of all sources within (``after``, ``until``), about ``most`` of each at a time."""
    begin = np.cumsum([0, *(waveform.row.size for waveform in waveforms)])
    found = [waveform.corners(after, until, most) for waveform in waveforms]
    until = min([until, *(float(times[-1]) for times in found if times.size >= most)])
    widest = max([1, *(waveform.row.size for waveform in waveforms)])
    parts = []
    for k, (waveform, times) in enumerate(zip(waveforms, found)):
        if not times.size:
            continue
        times = times[times <= until]
        states, sizes = np.zeros((2, times.size, widest))
        states[:, : waveform.row.size], sizes[:, : waveform.row.size] = waveform.states(times)
        parts.append((times, np.full(times.size, begin[k]), np.full(times.size, waveform.row.size), states, sizes))
    empty = (np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), *np.zeros((2, 0, widest)))
    columns = [np.concatenate(column) for column in zip(empty, *parts)]
    order = np.argsort(columns[0], kind="stable")
    return Schedule(until, *(column[order] for column in columns))


JUMPS = 2
"""Maximum number of jumps at one time."""
FEW, CHUNK = 128, 2048
"""Segments and events between two calls of the loop: initially, and at most."""
MEMORY = 2_000_000_000
"""Maximum size of all segments and events, bytes, which the waveforms of a result need."""
EVENT = 400
"""Size of an event in a result, bytes."""


class ExactRun:
    """The state of a run.

    Parameters
    ----------
    problem : Problem
    stop : float
        s.

    Attributes
    ----------
    jumps : list of Jump
        The jumps, for their derivatives.
    """

    def __init__(self, problem: Problem, stop: float) -> None:
        self.jumps: list[Jump] = []
        self.problem, self.stop = problem, stop
        s, q, d = problem.system.shape[0], problem.storing.size, problem.diodes.size + problem.switched.size
        elements = problem.parts.role.size
        self.fixed = problem.fixed()
        self.library = Library(problem, stop)
        sets = np.zeros((3, d), dtype=bool)
        self.state = Run(
            np.zeros(10),
            np.zeros(9, dtype=np.int64),
            np.zeros(s),
            np.zeros(s),
            np.zeros(q),
            np.zeros(s + q),
            np.zeros(s + q),
            sets[0],
            sets[1],
            sets[2],
            np.zeros(d, dtype=np.int64),
            np.zeros(d),
            nothing_carried(self.library.parts, elements, q, problem.resistors),
        )
        self.record = Pinned(_record(FEW, s + q, self.state.parts.y.size))
        self._pinned = Pinned(self.fixed), Pinned(self.state)
        self.done: list[Record] = []
        self.kept = self.counted = self.worked = 0
        self.jumps_here, self.jumped_at, self.lost = 0, -1.0, 0.0

    # ------------------------------------------------------------------ beginning
    def begin(self, initial: Mapping[str, float] | None, held: Mapping[str, float]) -> None:
        """The state and the mode at time 0."""
        problem, state = self.problem, self.state
        role, waves = problem.parts.role, dict(zip(problem.sources.tolist(), problem.waveforms))
        stores = (role == Role.CAPACITOR) | (role == Role.INDUCTOR) | (role == Role.WINDING)
        self.began = start(problem.circuit, waves, problem.switching, stores, initial, held)
        level, diodes, point = np.zeros(role.size), np.zeros(problem.diodes.size, dtype=bool), self.began.point
        level[: len(problem.circuit)] = self.began.level
        if point is not None:
            diodes = point.currents[problem.diodes] > 0.0
        x = problem.states_of(level)[problem.storing]
        state.x[:], state.conducting[:] = x, np.concatenate([diodes, self.began.closed])
        state.w[:], state.w_size[:] = problem.states(0.0)
        state.number[VOLTAGE], state.number[CURRENT] = problem.largest(state.w_size)
        state.number[SMALLEST], state.number[LARGEST] = problem.resistances()
        state.mark[NOW] = state.mark[BEFORE] = -1
        state.mark[ENTER] = 1
        state.parts.holds[0] = False
        state.parts.x_error[:] = STATE * (np.abs(x) if point is None else np.abs(x).max(initial=0.0))
        state.parts.energy[0] = self.fixed.storage @ state.parts.x_error**2
        self.x0 = state.x.copy()
        self.schedule = Pinned(schedule(problem.waveforms, 0.0, self.stop))

    # ------------------------------------------------------------------ the loop
    def go(self, progress: Callable[[float, float], bool | None] | None) -> float:
        """Run to the end; compute what the compiled loop lacks. Returns the time reached, s."""
        supply = {
            MODE: self._mode,
            WINDOW: self._window,
            CORNERS: self._corners,
            ROOM: self._room,
            JUMP: self._jump,
            SOURCES: self._sources,
            FAST: self._fast,
            ENDLESS: self._endless,
            NO_SET: self._no_set,
        }
        run = advance_decays if self.library.decaying else advance
        while True:
            library, state = self.library, self.state
            code = kernel(run, 0, PRODUCT, self._ahead())(
                *library.pinned[: 1 + library.decaying],
                library.count,
                library.inside,
                library.exponent,
                self.schedule,
                *self._pinned,
                self.record,
                self.stop,
            )
            work = self._work()
            self.worked += work
            count(run, work, PRODUCT)
            if state.number[TIME] != self.jumped_at:
                self.jumps_here, self.jumped_at = 0, float(state.number[TIME])
            if code == DONE:
                break
            supply[code]()
            if progress is not None and progress(float(state.number[TIME]), self.stop):
                return self.end_here()
        self.put_away()
        return self.stop

    def end_here(self) -> float:
        """End the run at the time reached, s."""
        self.stop = float(self.state.number[TIME])
        self.put_away()
        return self.stop

    def _ahead(self) -> float:
        """Estimated work until the end, extrapolated; 0 before there is enough of it."""
        time = float(self.state.number[TIME])
        return self.worked * (self.stop / time - 1.0) if self.worked > LOADING and time > 0.0 else 0.0

    def _work(self) -> int:
        """Approximate number of products of two numbers in the segments of the last call, and in the windows tried."""
        n, d, many = self.state.z.size, self.state.tied.size, int(self.state.mark[SEGMENTS]) - self.counted
        tries, self.state.mark[TRIES] = int(self.state.mark[TRIES]), 0
        self.counted += many
        nodes = POINTS * (n + self.problem.parts.role.size)
        return (tries * (n * n + d * (n + POINTS)) + many * nodes) * POINTS

    def _mode(self) -> None:
        self.library.add(self.state.found)

    def _window(self) -> None:
        self.library.add_window(int(self.state.mark[NOW]), int(self.state.mark[WANTED]))

    def _corners(self) -> None:
        self.schedule = Pinned(schedule(self.problem.waveforms, self.schedule.members.until, self.stop))
        self.state.mark[CORNER] = 0

    def put_away(self) -> None:
        """Store the segments and events so far."""
        n, e = int(self.state.mark[SEGMENTS]), int(self.state.mark[EVENTS])
        self.done.append(Record(*(column[: n if k < 6 else e].copy() for k, column in enumerate(self.record.members))))
        self.state.mark[[SEGMENTS, EVENTS]] = 0
        self.counted -= n
        room, columns = len(self.record.members.start), self.record.members[2:6:3]
        if room < CHUNK:
            self.record = Pinned(_record(2 * room, *(column.shape[1] for column in columns)))
        self.kept += sum(column.nbytes for column in self.done[-1]) + EVENT * e

    def _room(self) -> None:
        """Make room for segments and events.

        Raises
        ------
        ConvergenceError
            They exceed their memory limit.
        """
        before = self.kept
        self.put_away()
        # Whether ten times the latest segments that memory may hold would not reach the end; a few megabytes of them,
        # some 70,000, are more than a transient before a calm run of a thousand times its length has.
        time = float(self.state.number[TIME])
        slow = (self.stop - time) * (self.kept - before) > 10.0 * MEMORY * (time - self.done[-1].start[0])
        if self.kept > MEMORY or (slow and self.kept > 0.002 * MEMORY):
            segments, events = (sum(part[k].size for part in self.done) for k in (0, 6))
            raise ConvergenceError(
                f"{self._now()} took {segments:,} segments and {events:,} events, and all of the run would take more "
                f"than the {MEMORY // 10**9} GB that memory is meant to hold: end it earlier, use tran --steady where "
                "it is periodic, or look for sources and parts that are much faster than the run"
            )

    def _jump(self, least: float = NOISE) -> None:
        """Let charges and fluxes jump; fractions of the largest states up to ``least`` do not count."""
        state, problem = self.state, self.problem
        if self.jumps_here == JUMPS:
            raise ConvergenceError(f"states contradict the sources at {self._now()}, even after jumps")
        self.jumps_here += 1
        new, delivered, sets = jump(problem, state.x, state.w, self._now())
        size = np.zeros(state.x.size)
        kernel(sizes, self.fixed.weights.size + size.size, PRODUCT)(state, self.fixed, size)
        if (np.abs(new - state.x) > least * size).any():
            lost = delivered + problem.stored(state.x) - problem.stored(new)
            state.number[DELIVERED] += delivered
            state.number[TURNED] += abs(delivered)
            state.number[LOST] += lost
            self.lost += lost
            at = int(state.mark[SEGMENTS]) + sum(part.start.size for part in self.done)
            self.jumps.append(Jump(at, state.x.copy(), new, state.w.copy(), *sets))
            state.x[:], state.parts.holds[0], state.mark[NOW] = new, False, -1
            state.parts.x_error[:] = STATE * size
            state.parts.energy[0] = max(state.parts.energy[0], self.fixed.storage @ state.parts.x_error**2)
        # Switches keep their states through the jump: their controls are only known after it.
        d = problem.diodes.size
        state.conducting[:d] = state.found[:d]

    def _sources(self) -> None:
        """Report which sources contradict each other, through conducting diodes or across blocking ones."""
        state, names = self.state, self.problem.circuit.names
        rows = self.library.modes.source_checks[state.mark[NOW]]
        order, sign, free = (np.zeros(rows.shape[1], kind) for kind in (np.int64, float, bool))
        kernel(signs, ORDERS * rows.size, PRODUCT)(
            self.problem.system, rows, state.w, state.w_size, free, NOISE, order, sign
        )
        loops, cuts = sign.reshape(2, -1)
        for own, role in ((loops, Role.CAPACITOR), (cuts, Role.INDUCTOR)):
            wrong = [names[k] for k in np.flatnonzero(own).tolist() if k < len(names)]
            if wrong:
                raise contradiction(wrong, role, self._now())

    def _fast(self) -> None:
        raise ConvergenceError(f"waveforms at {self._now()} change faster than the shortest window")

    def _endless(self) -> None:
        raise ConvergenceError(f"diodes or switches change state endlessly at {self._now()}")

    def _no_set(self) -> None:
        if self.jumps_here < JUMPS:
            # A state that looks like rounding may be the reason why no set is consistent.
            with suppress(NoOperatingPointError):
                self._jump(0.0)
                return
        d, now = self.problem.diodes.size, self._now()
        chatter = self.problem.switching.named(self.state.sign[d:] < 0.0)
        if chatter:
            raise ConvergenceError(f"after {now} {chatter} would open and close endlessly: add a hysteresis")
        raise ConvergenceError(
            f"no consistent set of conducting diodes after {now}; use the implicit method, or give diodes and "
            "switches resistances within fewer decades"
        )

    def _now(self) -> str:
        return f"{self.state.number[TIME]:g} s"

    # ------------------------------------------------------------------ the end
    def segments(self) -> Segments:
        """All segments of the run."""
        start, mode, state, cause, halvings, parts = (np.concatenate([one[k] for one in self.done]) for k in range(6))
        return Segments(start, mode, state, cause, halvings, parts, self.library)

    def changes(self) -> Changes:
        """All events of the run."""
        return Changes(*(np.concatenate([part[k] for part in self.done]) for k in range(6, 11)))

    def energies(self) -> Energies:
        """The energies of the run."""
        delivered, dissipated, turned = self.state.number[[DELIVERED, DISSIPATED, TURNED]].tolist()
        stored = self.problem.stored(self.state.x), self.problem.stored(self.x0)
        # Where all voltages vanish: rounding of the largest current in the smallest resistance.
        ohms, most = self.state.number[[SMALLEST, CURRENT]].tolist()
        volts = ohms * (RESIDUE * most)
        least = self.stop * volts * (RESIDUE * most) if ohms < np.inf else 0.0
        return Energies(delivered, dissipated, stored[0] - stored[1], self.lost, max(turned + max(stored), least))


def _record(room: int, states: int, parts: int) -> Record:
    """Room for segments and events."""
    mode, cause, halvings, before, after = np.zeros((5, room), dtype=np.int64)
    time, error, lost = np.zeros((3, room))
    return Record(
        np.zeros(room),
        mode,
        np.zeros((room, states)),
        cause,
        halvings,
        np.zeros((room, parts)),
        time,
        error,
        lost,
        before,
        after,
    )
