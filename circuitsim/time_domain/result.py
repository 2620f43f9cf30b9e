"""`TransientResult`: waveforms of a circuit at any time, with their events, energies and certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import count, islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from circuitsim import errors as circuit_errors
from circuitsim.analysis.operating_point import inner_parts
from circuitsim.analysis.probes import VALUE, Formula, Probe, all_probes, drawn_probes, parse_probes
from circuitsim.arguments import instance
from circuitsim.errors import UsageError
from circuitsim.formats import Result, Table, verdict
from circuitsim.kernels import SHORT, kernel
from circuitsim.time_domain import small_matrices
from circuitsim.time_domain.beginning import Start
from circuitsim.time_domain.decays import ORDER, evaluate_decays
from circuitsim.time_domain.library import Library, Modes, products
from circuitsim.time_domain.problem import Paths, Problem, Terminals, along, paths_to
from circuitsim.time_domain.proof import TransientCertificate
from circuitsim.time_domain.roots import POINTS
from circuitsim.units import format_quantity

R = TypeVar("R")

DRAWN = 2_001
"""Minimum number of times in a picture, which shows what happens between the output times."""
CURVES = 8
"""Maximum number of waveforms in a plot for which none are named."""


class Event(NamedTuple):
    """A change of the conducting diodes and closed switches.

    Attributes
    ----------
    time : float
        s.
    error : float
        Estimate of the time's error, s; 0 at corners of sources.
    changed : tuple of str
        Diodes and switches that change, with a ``+`` (now conducting) or ``-`` (now blocking) before the name.
    energy_lost : float
        Energy lost in a jump of capacitor voltages or inductor currents, J.
    """

    time: float
    error: float
    changed: tuple[str, ...]
    energy_lost: float


def changed(before: np.ndarray, after: np.ndarray, names: Sequence[str]) -> tuple[str, ...]:
    """The diodes and switches whose states (d,) differ: ``+D1`` conducts after, ``-D1`` before."""
    return tuple("-+"[int(after[k])] + names[k] for k in np.flatnonzero(after != before).tolist())


class Changes(NamedTuple):
    """The events of a run, (e,) arrays: times and their errors, s, energies lost, J, numbers of the modes before and
    after."""

    time: np.ndarray
    error: np.ndarray
    lost: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def named(self, sets: np.ndarray, names: Sequence[str]) -> tuple[Event, ...]:
        """The events, from the conducting diodes and closed switches of all modes (modes, d) and their names."""

        @cache
        def labels(before: int, after: int) -> tuple[str, ...]:
            return changed(sets[before], sets[after], names)

        rows = zip(*(own.tolist() for own in self))
        return tuple(Event(time, error, labels(before, after), lost) for time, error, lost, before, after in rows)


class Segments(NamedTuple):
    """Time intervals with one mode each: from ``start`` s on, the state is e^{A (t − start)} ``state``.

    Attributes
    ----------
    start : (n,) float array
    mode : (n,) int array
    state : (n, N) float array
    cause : (n,) int array
        The diode or switch whose event ends it; −1 for corners, and ends of windows and of the run.
    halvings : (n,) int array
        Halvings of the library's longest window for the one that resolved it.
    parts : (n, c) float array
        Decaying parts at the start.
    library : Library
        Modes and windows.
    """

    start: np.ndarray
    mode: np.ndarray
    state: np.ndarray
    cause: np.ndarray
    halvings: np.ndarray
    parts: np.ndarray
    library: Library

    @property
    def modes(self) -> Modes:
        """All modes."""
        return self.library.modes

    def conducting(self, where: np.ndarray) -> np.ndarray:
        """Conducting diodes and closed switches (n, d) in segments (n,)."""
        return np.asarray(self.modes.conducting[self.mode[where]])


class Energies(NamedTuple):
    """Energy over the whole run, J.

    Attributes
    ----------
    delivered : float
        By all sources.
    dissipated : float
        In resistors and devices.
    stored : float
        Increase in capacitors and inductors.
    lost : float
        In jumps.
    turned_over : float
        ∫ |p| dt over all sources and resistors (implicit method: all elements), plus the stored energy: the scale of
        the balance.
    """

    delivered: float
    dissipated: float
    stored: float
    lost: float
    turned_over: float

    @property
    def imbalance(self) -> float:
        """|delivered − dissipated − stored − lost| over the energy turned over."""
        missing = self.delivered - self.dissipated - self.stored - self.lost
        return abs(missing) / self.turned_over if self.turned_over else 0.0


def evaluate(segments: Segments, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Branch voltages and currents (n, m) at times (n,) and their segments (n,); at a jump the values after it."""
    where = np.searchsorted(segments.start, times, side="right") - 1
    modes = segments.modes
    elements = modes.voltage.shape[2]
    voltage, current = np.empty((2, elements, times.size))  # contiguous in time for its readers
    library = segments.library
    if library.decaying:
        work = times.size * modes.voltage.shape[1] * (ORDER + elements)
        kernel(evaluate_decays, work, SHORT)(
            library.inside,
            modes.window[0],
            library.exponent,
            library.decays,
            modes,
            (segments.mode, segments.start, segments.state, segments.parts, segments.halvings),
            where,
            times,
            voltage,
            current,
        )
        return voltage.T, current.T, where
    n, steps = modes.system.shape[1], modes.radius[segments.mode[where]] * (times - segments.start[where])
    kernel(small_matrices.evaluate, products(n, steps) + n * voltage.size, SHORT)(
        modes.system,
        modes.radius,
        modes.voltage,
        modes.current,
        segments.mode,
        segments.start,
        segments.state,
        where,
        times,
        voltage,
        current,
    )
    return voltage.T, current.T, where


class Jump(NamedTuple):
    """A jump of states.

    Attributes
    ----------
    segment : int
        The segment after it.
    before, after : (q,) float arrays
        Capacitor voltages and inductor currents.
    w : (s,) float array
        States of the sources.
    carrying, open : (d,) bool arrays
        Diodes that conduct charge; diodes that do not block flux.
    """

    segment: int
    before: np.ndarray
    after: np.ndarray
    w: np.ndarray
    carrying: np.ndarray
    open: np.ndarray


class Origin(NamedTuple):
    """The origin of a run, for its derivatives.

    Attributes
    ----------
    problem : Problem
    jumps : tuple of Jump
        The jumps, in their order.
    """

    problem: Problem
    jumps: tuple[Jump, ...]


class TransientResult(Result):
    """Waveforms over time.

    Attributes
    ----------
    circuit : Circuit
    times : (n,) float array
        Output times, s.
    energies : Energies
    certificate : TransientCertificate
    stop : float
        End of the run, s.
    changing : tuple of str
        Diodes and switches.
    segments : Segments
    origin : Origin
        Of exact runs.
    begun : Start
    difference : float or None
    errors : (2, m) float array, or None
        Of implicit runs; see `circuitsim.time_domain.ImplicitResult`.
    warnings : tuple of circuitsim.errors.Problem
    method : str
        ``exact`` or ``implicit``.
    reason : str
        Why the run needed the implicit method; empty for exact runs, and if it was requested.
    """

    difference: float | None = None
    errors: np.ndarray | None = None
    reason = ""
    warnings: tuple[circuit_errors.Problem, ...] = ()

    method = "exact"
    points = POINTS
    """Chebyshev nodes that resolve a waveform between two of `segment_starts`."""
    _resolution = 1e-9
    """Relative difference below which two interpolated values of a signal are equal."""

    def __init__(
        self,
        terminals: Terminals,
        times: np.ndarray,
        segments: Segments,
        changes: Changes,
        energies: Energies,
        stop: float,
        certificate: TransientCertificate,
        waves: tuple[np.ndarray, np.ndarray],
        changing: Sequence[str],
        origin: Origin,
        begun: Start,
    ) -> None:
        self.circuit, self.times, self.energies = terminals.circuit, times, energies
        self._terminals, self.origin, self.begun = terminals, origin, begun
        self.stop, self.certificate = stop, certificate
        self.segments, self._changes, self._waves, self.changing = segments, changes, waves, tuple(changing)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events of the run, ascending in time."""
        return self._changes.named(self.segments.modes.conducting, self.changing)

    def at(self, times: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Branch voltages (n, m), V, and currents (n, m), A, at any times of the run: no interpolation.

        At a jump the values after it.

        Raises
        ------
        UsageError
            A time outside the run.
        """
        return self._waves if times is self.times else self._evaluated(self._checked(times))

    def _evaluated(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`at` for times (n,) within the run."""
        voltage, current, _ = evaluate(self.segments, times)
        return self._terminals.of_parts(voltage, current)

    def _checked(self, times: Sequence[float] | np.ndarray) -> np.ndarray:
        """Times (n,), s, checked to be within the run except for the rounding of a sum."""
        found = np.atleast_1d(np.asarray(times, dtype=float))
        ends = np.clip(found, 0.0, self.stop)
        if not (np.abs(found - ends) <= 2.0 * np.spacing(self.stop)).all():
            raise UsageError(f"times must lie between 0 s and {self.stop:g} s")
        return ends

    def segment_starts(self) -> np.ndarray:
        """Times between which all waveforms are analytic and resolved by a polynomial (n,), s; 0 is the first."""
        return self.segments.start

    def _moves_at(self, time: float) -> bool:
        """Whether an event whose time depends on circuit parameters is at a time, s."""
        seg = self.segments
        after = np.flatnonzero(seg.start == time)
        return bool((seg.cause[after[after > 0] - 1] >= 0).any())

    def voltage(self, first: str, second: str = "0", times: Sequence[float] | np.ndarray | None = None) -> np.ndarray:
        """Voltage between two nodes.

        Parameters
        ----------
        first, second : str
            Names of the nodes, joined by a path of elements.
        times : (n,) array, optional
            Within the run, s; the output times by default.

        Returns
        -------
        (n,) float array
            v(first) − v(second), V; at a jump the value after it.

        Raises
        ------
        UsageError
            A time outside the run, or no elements between the nodes.
        TopologyError
            An unknown node.
        """
        return columns(self, [Probe("v", str(first), str(second))], {}, self.times if times is None else times)[0]

    def current(self, element: str, times: Sequence[float] | np.ndarray | None = None) -> np.ndarray:
        """Current through an element.

        Parameters
        ----------
        element : str
            Its name.
        times : (n,) array, optional
            Within the run, s; the output times by default.

        Returns
        -------
        (n,) float array
            A, from its first to its second terminal; at a jump the value after it.

        Raises
        ------
        UsageError
            A time outside the run.
        TopologyError
            An unknown element.
        """
        _, current = self.at(self.times if times is None else times)
        return current[:, self.circuit.element_index(element)]

    def conduction(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """For each diode and switch, except `inner_parts`, its name and the intervals of time, s, in which it
        conducts, if longer than the rounding of event times."""
        starts, sets = self.states()
        step = np.diff(sets.astype(np.int8), axis=0, prepend=0, append=0).T
        ends, least = np.append(starts, self.stop), 4.0 * np.spacing(self.stop)
        spans = [zip(ends[own > 0].tolist(), ends[own < 0].tolist()) for own in step]
        hidden = {self.circuit.names[k] for k in inner_parts(self.circuit)[1].nonzero()[0].tolist()}
        shown = [pair for pair in zip(self.changing, spans) if pair[0] not in hidden]
        return [(name, [s for s in own if s[1] - s[0] > least]) for name, own in shown]

    def states(self) -> tuple[np.ndarray, np.ndarray]:
        """Times (n,), s, and which diodes and switches conduct from then on (n, d)."""
        start = self.segments.start
        return start, self.segments.conducting(np.arange(start.size))

    def tables(self) -> dict[str, Table]:
        """``waveforms``: time, v(node), i(element); ``events``: time, error, changed, energy_lost."""
        probes = [*self._voltages(drawn=False), *(probe for probe in all_probes(self.circuit) if probe.kind == "i")]
        return {"waveforms": waveform_table(self, probes), "events": events_table(self)}

    def to_dict(self) -> dict[str, Any]:
        """The waveforms as plain values, with certificate and energies: the JSON object of ``circuitsim tran``."""
        return super().to_dict() | self.checks()

    def checks(self) -> dict[str, Any]:
        """Method, certificate and energies as plain values."""
        how = {"method": self.method, "reason": self.reason}
        return how | {"certificate": self.certificate._asdict(), "energies": self.energies._asdict()}

    def _voltages(self, drawn: bool = True) -> Iterator[Probe]:
        """The node voltages, of a plot or all, except those of parts without a path to ground."""
        for probe in drawn_probes(self.circuit, "v") if drawn else all_probes(self.circuit):
            if probe.kind == "v":
                with suppress(UsageError):
                    self.path(probe.first)
                    yield probe

    def _chosen(self, columns: str = "", drawn: bool = False) -> Table:
        """The waveforms of a plot, by default the first `CURVES` node voltages."""
        probes = parse_probes(columns, self.circuit) if columns else [*islice(self._voltages(), CURVES)]
        return waveform_table(self, probes, drawn=drawn)

    def _shown(self) -> dict[str, Table]:
        return {"waveforms": self._chosen(), "events": events_table(self)}

    def _figure(self, columns: str = "") -> Any:
        from circuitsim.plotting.charts import plot_waveforms

        more = not columns and len([*islice(self._voltages(), CURVES + 1)]) > CURVES
        heading = f"First {CURVES} node voltages: {self.circuit.title}" if more else self.circuit.title
        return plot_waveforms(heading, self._chosen(columns, True), self.conduction())

    def _heading(self) -> tuple[str, str]:
        first, last = self.times[[0, -1]].tolist()
        span = f"{format_quantity(first, 's' * (first > 0.0), 4)} to {format_quantity(last, 's', 4)}"
        how = f"{self.method} ({self.reason})" if self.reason else self.method
        return self.circuit.title, f"{span}, {self.times.size} times, {how}, {verdict(self.certificate)}"

    def _proof(self) -> str:
        sizes = self.certificate._asdict()
        energy, allowed, tolerance = (sizes.pop(name, None) for name in ("energy", "energy_tolerance", "tolerance"))
        words = [f"largest relative residual {max(sizes.values()):.1e} (tolerance {tolerance:.0e})"]
        words.append(f"energy balance {energy:.1e} (tolerance {allowed or tolerance:.0e})")
        if self.difference is not None:
            words.append(f"waveforms within {self.difference:.1e} of their largest values (estimated)")
        return f"{verdict(self.certificate).capitalize()}: {', '.join(words)}"

    def path(self, first: str, second: str = "0") -> list[tuple[int, float]]:
        """Elements on a path between two nodes, with their signs.

        Parameters
        ----------
        first, second : str
            Names of the nodes.

        Returns
        -------
        list of (int, float)
            Position of each element in the circuit, and +1 if it points along the path; the voltage is the signed sum.

        Raises
        ------
        UsageError
            No elements lead from one to the other.
        TopologyError
            An unknown node.
        """
        start, end = self.circuit.node_index(first), self.circuit.node_index(second)
        if end not in self._paths:
            ends = (own.tolist() for own in self.circuit.arrays()[1:3])
            self._paths[end] = paths_to(end, zip(count(), *ends))
        if start not in self._paths[end]:
            raise UsageError(f"no elements lead from {first} to {second}: their voltage is not determined")
        return along(self._paths[end], start)

    @cached_property
    def _paths(self) -> dict[int, Paths]:
        """Paths to each node that was asked for."""
        return {}


def up_to_end(
    go: Callable[[], float], reached: Callable[[], float], times: np.ndarray, result: Callable[[np.ndarray], R]
) -> R:
    """The result of a run at its output times (n,), or up to where it was ended.

    Parameters
    ----------
    go : callable
        Runs; returns the time at which it ended, s.
    reached : callable
        Returns that time after an error, which has the result up to there.
    times : (n,) float array
    result : callable
        From output times, s.

    Raises
    ------
    UsageError
        The run was ended before its first output time.
    """

    def until(stop: float) -> np.ndarray:
        return np.append(times[times < stop], stop)

    try:
        stop = go()
    except circuit_errors.CircuitError as error:
        if (stop := reached()) > times[0]:
            with suppress(circuit_errors.ConvergenceError):
                error.partial_result = result(until(stop))
        raise
    if stop <= times[0]:
        raise UsageError(f"the run was ended at {stop:g} s, before its first output time of {times[0]:g} s")
    return result(until(stop) if stop < times[-1] else times)


RESULT = instance("a result of circuitsim.transient", TransientResult)


def waveform_table(
    result: TransientResult,
    probes: Sequence[Probe | Formula],
    names: Mapping[str, float] = MappingProxyType({}),
    drawn: bool = False,
) -> Table:
    """Quantities at the output times.

    Parameters
    ----------
    result : TransientResult
    probes : sequence of Probe or Formula
    names : mapping of str to float
        Parameters that formulas read, in lower case.
    drawn : bool
        Whether at the times of a picture, `DRAWN` others included.
    """
    times = result.times
    if drawn and times.size < DRAWN:
        times = np.union1d(times, np.linspace(times[0], times[-1], DRAWN))
    found = columns(result, probes, names, times)
    return Table(("time", *map(str, probes)), ("s", *(probe.unit for probe in probes)), (times, *found))


def columns(
    result: TransientResult,
    probes: Sequence[Probe | Formula],
    names: Mapping[str, float],
    times: Sequence[float] | np.ndarray,
) -> list[np.ndarray]:
    """Quantities at times (n,) of the run."""
    return of_waves(result, probes, names, *result.at(times))


def of_waves(
    result: TransientResult,
    probes: Sequence[Probe | Formula],
    names: Mapping[str, float],
    voltage: np.ndarray,
    current: np.ndarray,
) -> list[np.ndarray]:
    """Quantities from branch voltages, V, and currents, A (n, m)."""
    found = []
    for probe in probes:
        if isinstance(probe, Formula):
            known = {signal: of_probe(result, own, voltage, current) for signal, own in probe.probes.items()}
            found.append(probe.values(known, names) if known else np.full(len(voltage), probe.value({}, names)))
        else:
            found.append(of_probe(result, probe, voltage, current))
    return found


def of_probe(result: TransientResult, probe: Probe, voltage: np.ndarray, current: np.ndarray) -> np.ndarray:
    """A quantity (n,) from branch voltages, V, and currents, A (n, m)."""
    circuit = result.circuit
    if probe.kind == "v":
        ends = result.path(probe.first, probe.second or circuit.node_names[0])
        return np.asarray(voltage[:, [k for k, _ in ends]] @ np.array([sign for _, sign in ends]))
    k = circuit.element_index(probe.first)
    if probe.kind == VALUE:
        return np.full(len(voltage), circuit.arrays().value[k])
    return current[:, k] if probe.kind == "i" else voltage[:, k] * current[:, k]


EVENTS = "time, error, changed, energy_lost"
EVENT_UNITS = ("s", "s", "", "J")


def events_table(result: TransientResult) -> Table:
    """Events of diodes and switches: ``+`` if conducting from then on, ``-`` if blocking."""
    rows = [(e.time, float(e.error), " ".join(e.changed), e.energy_lost) for e in result.events]
    return Table.of(EVENTS, rows, EVENT_UNITS)
