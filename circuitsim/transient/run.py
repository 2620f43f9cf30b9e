"""The run through time: the compiled loop goes on until a mode, a window or a jump is missing, computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError, InfeasibleError, UnboundedError, UsageError
from circuitsim.transient.beginning import from_held, operating_point
from circuitsim.transient.germs import NOISE, signs
from circuitsim.transient.jumps import capacitor_jump, inductor_jump
from circuitsim.transient.library import Library
from circuitsim.transient.loop import (
    BEFORE,
    CORNER,
    CORNERS,
    DELIVERED,
    DISSIPATED,
    DONE,
    ENDLESS,
    ENTER,
    EVENTS,
    FAST,
    JUMP,
    LARGEST,
    LOST,
    MODE,
    NO_SET,
    NOW,
    ROOM,
    SEGMENTS,
    SMALLEST,
    SOURCES,
    TIME,
    TURNED,
    WANTED,
    WINDOW,
    Track,
    Walk,
    advance,
    sizes,
)
from circuitsim.transient.modes import Role
from circuitsim.transient.problem import Problem, Switch
from circuitsim.transient.proof import certify
from circuitsim.transient.result import Energies, Event, Segments, TransientResult, evaluate
from circuitsim.transient.waveforms import Waveform, schedule

LARGEST_POINTS = 1_000_000
"""Most output times."""
JUMPS = 2
"""Most jumps at one time."""
CHUNK = 2048
"""Segments and events between two calls of the compiled loop."""
NONE: Mapping[str, Waveform] = MappingProxyType({})


def transient(
    circuit: Circuit,
    stop: float,
    waveforms: Mapping[str, Waveform] = NONE,
    initial: Mapping[str, float] | None = None,
    points: int = 1001,
    tolerance: float = 1e-9,
    switches: Mapping[str, Switch] = MappingProxyType({}),
    couplings: Mapping[tuple[str, str], float] = MappingProxyType({}),
    progress: Callable[[float, float], bool | None] | None = None,
    begin: float = 0.0,
    held: Mapping[str, float] = MappingProxyType({}),
) -> TransientResult:
    """The waveforms of a circuit of R, C, L, ideal diodes, switches and sources from 0 to ``stop`` s.

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
    switches : mapping of str to Switch, optional
        Resistors by name that are switches.
    couplings : mapping of (str, str) to float, optional
        Coupling factors of pairs of inductors, between −1 and 1.
    progress : callable, optional
        Called with the time that is reached and ``stop``, s, from time to time; True ends the run there.
    begin : float
        First output time, s; the run itself begins at 0.
    held : mapping of str to float, optional
        Potentials of nodes, V, and currents of inductors, A, that the operating point at time 0 is held at (SPICE's
        ``.ic``). With `initial` they are the initial values of inductors and of capacitors that it does not name.

    Returns
    -------
    TransientResult

    Raises
    ------
    UsageError
        A time that is not positive, an unknown source, too many states.
    InfeasibleError, UnboundedError
        Sources that contradict each other at some time, through diodes or at once; the error names them and the time.
    ConvergenceError
        Events that do not end; waveforms that fail their certificate.
    """
    if not 0.0 < stop < np.inf:
        raise UsageError(f"a run ends at a positive time, not at {stop!r} s")
    if not 0.0 <= begin < stop:
        raise UsageError(f"the first output time is {begin:g} s: it must lie between 0 and {stop:g} s")
    if not 2 <= points <= LARGEST_POINTS:
        raise UsageError(f"a run has 2 to {LARGEST_POINTS:,} output times, not {points}")
    problem = Problem(circuit, waveforms, switches, couplings)
    run = _Run(problem, stop)
    run.begin(initial, held)
    run.go(progress)
    times = np.linspace(begin, stop, points)
    if run.stop < stop:
        if run.stop <= begin:
            raise UsageError(f"the run was ended at {run.stop:g} s, before its first output time of {begin:g} s")
        times, stop = np.append(times[times < run.stop], run.stop), run.stop
    segments, energies = run.segments(), run.energies()
    voltage, current, where = evaluate(segments, times)
    m = circuit.arrays().kind.size
    ohms = np.broadcast_to(problem.own.value[problem.resistors], (times.size, problem.resistors.size)).copy()
    places = np.searchsorted(problem.resistors, problem.switched)
    ohms[:, places] = problem.ohms(segments.conducting(where)[:, problem.diodes.size :])
    voltage, current = voltage[:, :m], current[:, :m]
    found = certify(problem.own, problem.diodes, voltage, current, ohms, energies.imbalance, tolerance)
    if not found.certified:
        raise ConvergenceError(f"the waveforms fail their certificate: {found}; accept less with a larger tolerance")
    return TransientResult(
        circuit, times, segments, run.events(), energies, stop, found, (voltage, current),
        [circuit.names[k] for k in (*problem.diodes, *problem.switched)],
    )  # fmt: skip


class _Run:
    """The state of a run."""

    def __init__(self, problem: Problem, stop: float) -> None:
        self.problem, self.stop = problem, stop
        s, q, d = problem.system.shape[0], problem.storing.size, problem.diodes.size + problem.switched.size
        elements = problem.parts.role.size
        self.fixed = problem.fixed()
        self.library = Library(problem.library_rows(), s, elements, stop)
        sets = np.zeros((3, d), dtype=bool)
        self.walk = Walk(
            np.zeros(10), np.zeros(8, dtype=np.int64), np.zeros(s), np.zeros(s), np.zeros(q), np.zeros(s + q),
            sets[0], sets[1], sets[2], np.zeros(d, dtype=np.int64), np.zeros(d),
        )  # fmt: skip
        self.track = _track(CHUNK, s + q)
        self.done: list[Track] = []
        self.jumps, self.lost = 0, 0.0

    # ------------------------------------------------------------------ beginning
    def begin(self, initial: Mapping[str, float] | None, held: Mapping[str, float]) -> None:
        """The state and the mode at time 0."""
        problem, walk = self.problem, self.walk
        names, storing = problem.circuit.names, problem.storing.tolist()
        x = np.zeros(problem.parts.role.size)
        closed = np.array([switch.closed for switch in problem.switches], dtype=bool)
        if initial is None:
            x, walk.conducting[:] = operating_point(problem, closed, held)
        else:
            walk.conducting[problem.diodes.size :] = closed
            initial = from_held(problem, held) | dict(initial)
        for name, level in (initial or {}).items():
            k = problem.circuit.element_index(name)
            if k not in storing:
                raise UsageError(f"{names[k]} is neither a capacitor nor an inductor: it has no initial value")
            x[k] = level
        walk.x[:] = x[problem.storing]
        walk.w[:], walk.w_size[:] = problem.states(0.0)
        walk.number[SMALLEST], walk.number[LARGEST] = problem.resistances()
        walk.mark[NOW] = walk.mark[BEFORE] = -1
        walk.mark[ENTER] = 1
        self.x0 = walk.x.copy()
        self.schedule = schedule(problem.waveforms, 0.0, self.stop)

    # ------------------------------------------------------------------ the loop
    def go(self, progress: Callable[[float, float], bool | None] | None) -> None:
        """Go to the end; what the compiled loop lacks is computed here."""
        supply = {
            MODE: self._mode, WINDOW: self._window, CORNERS: self._corners, ROOM: self._room, JUMP: self._jump,
            SOURCES: self._sources, FAST: self._fast, ENDLESS: self._endless, NO_SET: self._no_set,
        }  # fmt: skip
        while True:
            library, walk = self.library, self.walk
            code = advance(
                library.modes, library.count, library.inside, library.exponent, self.schedule, self.fixed, walk,
                self.track, self.stop,
            )  # fmt: skip
            if not walk.mark[ENTER]:
                self.jumps = 0
            if code == DONE:
                break
            supply[code]()
            if progress is not None and progress(float(walk.number[TIME]), self.stop):
                self.stop = float(walk.number[TIME])
                break
        self._room()

    def _mode(self) -> None:
        self.library.add(self.problem.mode(self.walk.found))

    def _window(self) -> None:
        self.library.add_window(int(self.walk.mark[NOW]), int(self.walk.mark[WANTED]))

    def _corners(self) -> None:
        self.schedule = schedule(self.problem.waveforms, self.schedule.until, self.stop)
        self.walk.mark[CORNER] = 0

    def _room(self) -> None:
        """Put away the segments and events so far."""
        n, e = int(self.walk.mark[SEGMENTS]), int(self.walk.mark[EVENTS])
        self.done.append(Track(*(
            column[: n if k < 3 else e].copy() for k, column in enumerate(self.track)
        )))  # fmt: skip
        self.walk.mark[[SEGMENTS, EVENTS]] = 0

    def _jump(self) -> None:
        """Charges and fluxes move in no time."""
        walk, parts, problem = self.walk, self.problem.own, self.problem
        if self.jumps == JUMPS:
            raise ConvergenceError(f"states do not agree with the sources at {self._now()}, also after jumps")
        self.jumps += 1
        if parts.coupling is not None:
            raise UsageError(f"currents of coupled inductors would jump at {self._now()}, which is not done yet")
        x, values = np.zeros((2, parts.role.size))
        x[problem.storing], values[problem.sources] = walk.x, problem.rows @ walk.w
        after, delivered = np.zeros(x.size), 0.0
        for role, jumped in ((Role.CAPACITOR, capacitor_jump), (Role.INDUCTOR, inductor_jump)):
            if (parts.role == role).any():
                jump = jumped(parts, problem.circuit.names, x, values, problem.diodes)
                after, delivered = after + jump.x, delivered + jump.delivered
        new, size = after[problem.storing], np.zeros(walk.x.size)
        sizes(walk, self.fixed, size)
        if (np.abs(new - walk.x) > NOISE * size).any():
            lost = delivered + problem.stored(walk.x) - problem.stored(new)
            walk.number[DELIVERED] += delivered
            walk.number[TURNED] += abs(delivered)
            walk.number[LOST] += lost
            self.lost += lost
            walk.x[:] = new
        walk.conducting[:] = walk.found

    def _sources(self) -> None:
        """Sources alone, through conducting diodes or across blocking ones, do not agree: say which."""
        mode, names = self.problem.mode(self.walk.found), self.problem.circuit.names
        for rows, error, what, hint in (
            (mode.source_loops, InfeasibleError, "form a loop whose voltages do not add up", "in series"),
            (mode.source_cuts, UnboundedError, "drive a net current that has no path", "in parallel"),
        ):
            order, sign, free = np.zeros(len(rows), np.int64), np.zeros(len(rows)), np.zeros(len(rows), bool)
            signs(self.problem.system, rows, self.walk.w, self.walk.w_size, free, order, sign)
            wrong = [names[k] for k in np.flatnonzero(sign).tolist() if k < len(names)]
            if wrong:
                raise error(f"after {self._now()} {', '.join(wrong)} {what}: a resistance {hint} is missing", wrong)

    def _fast(self) -> None:
        raise ConvergenceError(f"waveforms at {self._now()} are faster than any window")

    def _endless(self) -> None:
        raise ConvergenceError(f"diodes or switches change without end at {self._now()}")

    def _no_set(self) -> None:
        if self.jumps < JUMPS:
            self._jump()
            return
        d, now = self.problem.diodes.size, self._now()
        chatter = self.problem.named_switches(self.walk.sign[d:] < 0.0)
        if chatter:
            raise ConvergenceError(f"after {now} {chatter} would open and close without end: a hysteresis is missing")
        raise ConvergenceError(f"no set of conducting diodes was found to hold after {now}")

    def _now(self) -> str:
        return f"{self.walk.number[TIME]:g} s"

    # ------------------------------------------------------------------ the end
    def segments(self) -> Segments:
        """All segments of the run."""
        start, mode, state = (np.concatenate([part[k] for part in self.done]) for k in range(3))
        return Segments(start, mode, state, self.library.modes)

    def events(self) -> tuple[Event, ...]:
        """All events of the run."""
        names = [self.problem.circuit.names[k] for k in (*self.problem.diodes, *self.problem.switched)]
        sets, found = self.library.modes.conducting, []
        changed: dict[tuple[int, int], tuple[str, ...]] = {}
        for part in self.done:
            for time, error, lost, before, after in zip(*(column.tolist() for column in part[3:])):
                if (before, after) not in changed:
                    which = np.flatnonzero(sets[before] != sets[after]).tolist()
                    changed[before, after] = tuple("-+"[int(sets[after, k])] + names[k] for k in which)
                found.append(Event(time, error, changed[before, after], lost))
        return tuple(found)

    def energies(self) -> Energies:
        """The energies of the run."""
        delivered, dissipated, turned = self.walk.number[[DELIVERED, DISSIPATED, TURNED]].tolist()
        stored = self.problem.stored(self.walk.x), self.problem.stored(self.x0)
        return Energies(delivered, dissipated, stored[0] - stored[1], self.lost, turned + max(stored))


def _track(room: int, states: int) -> Track:
    """Room for segments and events."""
    whole = np.zeros((2, room), dtype=np.int64), np.zeros((2, room), dtype=np.int64)
    return Track(np.zeros(room), whole[0][0], np.zeros((room, states)), *np.zeros((3, room)), *whole[1])
