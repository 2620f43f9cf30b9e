"""The certificate of a transient: each element's equation and Kirchhoff's laws at all output times and at random times
between events, and the energy balance.

It reads only voltages and currents and shares no code with the methods. v = L di/dt and i = C dv/dt are checked without
derivatives: on short intervals between events the change of flux or charge is the integral of voltage or current. Each
residual is relative to the element's surroundings at that time: the largest voltage (nodes to ground included) or
current of the elements at its nodes, in the same interval, whatever pulses the run had earlier. The energy balance
connects the times: the energy delivered by sources is dissipated, stored or lost in jumps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.engine.tree import spanning_forest
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.problem import Problem

RESIDUE = 1e-5
"""Minimum scale, relative to the largest value anywhere at that time and to the largest at the node during the run. At
a tolerance of 1e-9 it is the error of a state, `circuitsim.time_domain.part_states.STATE`."""
ROUNDING = 1e-4
"""Minimum scale of a current relative to that of the voltages at its nodes across its resistor; of a change of flux or
charge relative to the flux or charge: sums of about ten states with that error."""
SIGNS = 1e-3
"""Minimum scale of signs, relative to the largest value at the diode's nodes during the run. At that tolerance it is
the zero level of the event search, `circuitsim.time_domain.roots.VALUE`."""
SMALLEST = 5e-324
"""Smallest scale: zero divided by it is zero, anything else exceeds every tolerance."""
INTERVALS = 24
"""Maximum number of intervals sampled by segment number; a third as many more are sampled by length."""
QUARTER = 0.25
"""Length of an interval relative to its segment, such that `NODES` integrate the waveforms to rounding."""
RESOLUTION = 1e3
"""Minimum length of a segment in ulps of its time, below which it is not resolved."""
GAUSS = np.polynomial.legendre.leggauss(10)
SHARES = np.concatenate([[0.0], 0.5 * (1.0 + GAUSS[0]), [1.0]])
"""Times in an interval relative to its length: its ends and the Gauss–Legendre nodes."""
WEIGHTS = np.concatenate([[0.0], 0.5 * GAUSS[1], [0.0]])
LAST = np.zeros((SHARES.size, 2))
LAST[1:-1] = GAUSS[1][:, None] * np.polynomial.legendre.legvander(GAUSS[0], 9)[:, 8:] * [8.5, 9.5]
"""The last two Legendre coefficients over the values at `SHARES`."""
COARSE = 1e-5
"""Relative size of the last coefficient above which an integral may be off by a tenth of a tolerance of 1e-9: the error
of the Gauss rule is the coefficient of twice that order, about the square."""
SHORTER = 12
"""Maximum number of times an interval is quartered."""
LAWS = {
    "kcl": "Kirchhoff's current law",
    "kvl": "Kirchhoff's voltage law",
    "sources": "the source's waveform",
    "resistors": "Ohm's law",
    "reactances": "v = L di/dt or i = C dv/dt",
    "diodes": "the signs of its current and voltage",
    "complementarity": "complementarity",
    "switches": "its control",
    "devices": "its characteristic",
    "energy": "the energy balance",
}
"""Descriptions of a certificate's columns."""


class Place(NamedTuple):
    """Where an equation has its largest residual: element or node, and time, s."""

    name: str
    time: float


def violations(columns: Iterable[tuple[str, float, float]], places: dict[str, Place] | None = None) -> str:
    """Describe the violated equations of a certificate, from name, value and tolerance of each column."""
    wrong = []
    for name, size, most in columns:
        if not size <= most:
            place = (places or {}).get(name)
            where = "" if place is None else f" of {place.name} at {place.time:.9g} s"
            wrong.append(f"{LAWS[name]}{where} by {size:.1e} (tolerance {most:.0e})")
    return "the waveforms fail their certificate (relative residuals): " + ", ".join(wrong)


class TransientCertificate(NamedTuple):
    """Largest residuals over all output times and random times between events.

    Attributes
    ----------
    kcl : float
        Net current of a node over the largest current there.
    kvl : float
        Net voltage of a loop over the largest voltage at that time, which sets the rounding of coupled windings.
    sources : float
        Distance of a source from its waveform, relative to the waveform's value there, or `RESIDUE` of its largest.
    resistors : float
        v − R i over the largest voltage at the resistor's nodes.
    reactances : float
        Change of flux less ∫ v dt, over the time and the largest voltage at the inductor's nodes; change of charge less
        ∫ i dt over the time and the largest current at the capacitor's nodes.
    diodes : float
        Reverse current or forward voltage over the largest current or voltage at the diode's nodes.
    complementarity : float
        Smaller of |v| and |i| of a diode, each over these sizes.
    switches : float
        How far a control is on the wrong side of its switch's threshold, over the largest voltage or current there.
    energy : float
        Imbalance of energies over the energy turned over.
    tolerance : float
    """

    kcl: float
    kvl: float
    sources: float
    resistors: float
    reactances: float
    diodes: float
    complementarity: float
    switches: float
    energy: float
    tolerance: float

    @property
    def certified(self) -> bool:
        """Whether all are within the tolerance."""
        return all(size <= self.tolerance for size in self[:-1])

    @property
    def violations(self) -> str:
        """What is violated, in words."""
        return self.violated({})

    def violated(self, places: dict[str, Place]) -> str:
        """`violations`, with the places of the largest residuals."""
        return violations(((name, size, self.tolerance) for name, size in zip(self._fields[:-1], self)), places)


class Waves(NamedTuple):
    """Waveforms at output times, then at `SHARES` of each interval.

    Attributes
    ----------
    times : (t,) float array
    outputs : int
        Number of output times.
    voltage, current : (m, t) float arrays
    ohms : (r, t) float array
        Of the resistors.
    beyond : (switches, t) float array
        How far a switch's control is on the wrong side of its threshold.
    """

    times: np.ndarray
    outputs: int
    voltage: np.ndarray
    current: np.ndarray
    ohms: np.ndarray
    beyond: np.ndarray

    def inside(self, values: np.ndarray) -> np.ndarray:
        """The part of values (k, t) in intervals: (k, g, n)."""
        count, n = self.times.size - self.outputs, SHARES.size
        return values[:, self.outputs :].reshape(len(values), count // n, n)


def intervals(starts: np.ndarray, stop: float) -> np.ndarray:
    """Times (g, n) of intervals in some of the segments that start at ``starts`` (n,), a deterministic choice: equally
    many long and short ones, and as many more weighted by length."""
    ends = np.append(starts[1:], stop)
    length = ends - starts
    long_enough = length > RESOLUTION * np.spacing(ends)
    usable = np.flatnonzero(long_enough)
    if not usable.size:
        return np.zeros((0, SHARES.size))
    draw = np.random.default_rng(usable.size)
    chosen = draw.choice(usable, min(INTERVALS, usable.size), replace=False)
    long = np.searchsorted(starts, stop * draw.random(INTERVALS // 3), side="right") - 1
    chosen = np.concatenate([chosen, long[long_enough[long]]])
    begin = starts[chosen] + (1.0 - QUARTER) * draw.random(chosen.size) * length[chosen]
    return begin[:, None] + QUARTER * length[chosen, None] * SHARES


def shortened(times: np.ndarray, coarse: np.ndarray) -> np.ndarray:
    """The intervals (g, n) with those in ``coarse`` cut to their first quarter."""
    begin, length = times[coarse, :1], times[coarse, -1:] - times[coarse, :1]
    found = times.copy()
    found[coarse] = begin + 0.25 * length * SHARES
    return found


def levels(problem: Problem, times: np.ndarray, outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of the sources (sources, n) at times (n,), the first ``outputs`` of which are output times; the scales of
    their rounding, at least a fraction of the largest at any time; and their changes within the rounding of the times
    (an edge of 1 ns at 1 s changes by 1e-6 of its height).

    Rounding of times includes that of the segment's start, of the offset and of their sum.
    """
    inside = times[outputs:]
    found = np.zeros((3, problem.sources.size, inside.size))
    for k, wave in enumerate(problem.waveforms[: problem.sources.size]):
        (states, sizes), row = wave.states(times), np.abs(wave.row)
        late = 4.0 * np.spacing(inside + getattr(wave, "since", 0.0))
        moved = wave.states(np.concatenate([inside + late, inside - late]))[0] @ wave.row
        size = sizes @ row
        found[0, k] = states[outputs:] @ wave.row
        found[1, k] = np.maximum(size[outputs:], RESIDUE * size.max())
        found[2, k] = np.abs(moved[: inside.size] - moved[inside.size :])
    return found[0], found[1], found[2]


class _Judge:
    """Waveforms, scales of their residuals, the largest residuals so far, and where they are.

    Attributes
    ----------
    ends : list of (int, int)
        Terminals of each element.
    potential : (nodes, t) float array
    volts, amperes : (nodes, t) float arrays
        Largest voltage and current of the elements at each node.
    sizes : tuple of (array, array)
        Each of these and the largest of the run (nodes,) at output times and in the intervals; pulses that end before
        one are excluded.
    """

    def __init__(self, of: Problem, waves: Waves) -> None:
        self.of, self.waves, self.names = of, waves, np.array(of.circuit.names)
        self.ends = list(zip(of.own.first.tolist(), of.own.second.tolist()))
        self.worst = dict.fromkeys(TransientCertificate._fields[:-2], 0.0)
        self.places: dict[str, Place] = {}
        self.coarse = np.zeros((waves.times.size - waves.outputs) // SHARES.size, dtype=bool)
        self.potential = self._potentials()
        self.volts, self.amperes, r = np.abs(self.potential), np.zeros(self.potential.shape), of.resistors
        self._into(self.volts, self.ends, waves.voltage)
        self._into(self.amperes, self.ends, waves.current)
        # A current's scale is at least the rounding of voltages across its resistor.
        self._into(self.amperes, [self.ends[k] for k in r.tolist()], ROUNDING * self._at(self.volts, r) / waves.ohms)
        volts_seen, amperes_seen = (own.max(axis=1, initial=0.0) for own in (self.volts, self.amperes))
        if r.size:
            # With current sources only, all voltages may be zero: scale by the smallest resistance.
            by_current = waves.ohms[:, : waves.outputs].min() * amperes_seen
            volts_seen = np.maximum(volts_seen, by_current)
        self.sizes = (self.volts, volts_seen), (self.amperes, amperes_seen)
        for own, seen in self.sizes:
            inside = waves.inside(own)
            inside[...] = inside.max(axis=2, keepdims=True)
            np.maximum(own, RESIDUE * own.max(axis=0), out=own)
            np.maximum(own, np.maximum(RESIDUE * seen, SMALLEST)[:, None], out=own)

    def _potentials(self) -> np.ndarray:
        """Potentials of all nodes along paths from ground, or from one node of a floating part."""
        (many, first, second, *_), voltage = self.of.own, self.waves.voltage
        tree = spanning_forest(many, first, second, np.zeros(1, dtype=np.int64), np.arange(first.size))
        found = np.zeros((many, self.waves.times.size))
        for node, k, above in zip(tree.order.tolist(), tree.edge.tolist(), tree.parent.tolist()):
            if k >= 0:
                (np.add if first[k] == node else np.subtract)(found[above], voltage[k], out=found[node])
        return found

    def _into(self, at_node: np.ndarray, ends: Sequence[tuple[int, int]], own: np.ndarray) -> None:
        """Update the largest absolute values at each node from the elements that end there."""
        nodes, size = list(at_node), np.empty(at_node.shape[1])
        for (a, b), value in zip(ends, own):
            np.abs(value, out=size)
            np.maximum(nodes[a], size, out=nodes[a])
            np.maximum(nodes[b], size, out=nodes[b])

    def _at(self, at_node: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The larger of the values (nodes, …) at the two nodes of each element."""
        found: np.ndarray = at_node[self.of.own.first[chosen]]
        return np.maximum(found, at_node[self.of.own.second[chosen]], out=found)

    def take(
        self, law: str, off: np.ndarray, scale: np.ndarray | float, times: np.ndarray, names: Sequence[str] | np.ndarray
    ) -> None:
        """Record residuals (k, t) of the named elements relative to a scale; ``off`` is overwritten."""
        if not off.size:
            return
        size = np.divide(off, scale, out=off)
        at = int(np.argmax(size))  # the first nan, if any
        most, so_far = float(size.flat[at]), self.worst[law]
        if not most <= so_far:
            element, time = divmod(at, times.size)
            self.worst[law] = most if most > so_far else math.inf
            self.places[law] = Place(str(names[element]), float(times[time]))

    def hold_kirchhoff(self) -> None:
        """Check Kirchhoff's laws."""
        of, waves, amperes, potential = self.of, self.waves, self.amperes, self.potential
        net, met = np.zeros(amperes.shape), amperes.copy()
        sums, most, own = list(net), list(met), list(amperes)
        for (a, b), current in zip(self.ends, waves.current):
            sums[a] += current
            sums[b] -= current
            np.maximum(most[a], own[b], out=most[a])
            np.maximum(most[b], own[a], out=most[b])
        self.take("kcl", np.abs(net, out=net), met, waves.times, of.circuit.node_names)
        around = potential[of.own.second]
        around -= potential[of.own.first]
        around += waves.voltage
        self.take("kvl", np.abs(around, out=around), self.volts.max(axis=0), waves.times, self.names)

    def hold_elements(self, tolerance: float) -> None:
        """Check resistors and switches at all times; sources, inductors and capacitors in the intervals."""
        of, waves, names = self.of, self.waves, self.names
        v, i, r, late = waves.voltage, waves.current, of.resistors, waves.times[waves.outputs :]
        self.take("resistors", np.abs(v[r] - waves.ohms * i[r]), self._at(self.volts, r), waves.times, names[r])
        self.take("switches", waves.beyond.copy(), 1.0, waves.times, of.switching.names)
        level, size, moved = levels(of, waves.times, waves.outputs)
        volts = of.own.role[of.sources, None] == Role.VOLTAGE
        own = np.where(volts, v[of.sources, waves.outputs :], i[of.sources, waves.outputs :])
        self.take("sources", np.abs(own - level) - moved, np.maximum(size, SMALLEST), late, names[of.sources])
        times = waves.inside(waves.times[None])[0]
        length = times[:, -1] - times[:, 0]
        # Times are rounded, which enters the integral by the waveform's change.
        share = tolerance + np.spacing(times[:, -1]) / length
        plates = np.flatnonzero(of.own.role == Role.CAPACITOR)
        for chosen, store, state, push, size, scale in (
            (of.inductors, of.inductance(), i, v, self.amperes, self.volts),
            (plates, np.diag(of.own.value[plates]), v, i, self.volts, self.amperes),
        ):
            kept, pushed = waves.inside(state[chosen]), waves.inside(push[chosen])
            missing = np.abs(store @ (kept[..., -1] - kept[..., 0]) - length * (pushed @ WEIGHTS))
            values, scale = (waves.inside(self._at(own, chosen))[..., 0] for own in (size, scale))
            allowed = length * share * scale + tolerance * ROUNDING * (np.abs(store) @ values)
            allowed = np.maximum(allowed, SMALLEST)
            last = np.abs(pushed @ LAST).max(axis=2) > COARSE * np.abs(pushed).max(axis=2)
            self.coarse |= (last & (missing > allowed)).any(axis=0)
            self.take("reactances", tolerance * missing, allowed, times[:, 0], names[chosen])

    def hold_signs(self) -> None:
        """Check the signs of diodes; from here on scales are at least a fraction of the run's."""
        waves, d, names = self.waves, self.of.diodes, self.names[self.of.diodes]
        for own, seen in self.sizes:
            np.maximum(own, SIGNS * seen[:, None], out=own)
        over, back = waves.voltage[d] / self._at(self.volts, d), waves.current[d] / self._at(self.amperes, d)
        self.take("diodes", np.maximum(over, -back), 1.0, waves.times, names)
        self.take("complementarity", np.minimum(np.abs(over), np.abs(back)), 1.0, waves.times, names)


@np.errstate(over="ignore", invalid="ignore")
def certify(
    of: Problem, waves: Waves, imbalance: float, tolerance: float
) -> tuple[TransientCertificate, dict[str, Place], np.ndarray]:
    """The certificate of waveforms, where each equation has its largest residual, and the intervals that are too long:
    inductors or capacitors violate their equation there, and the waveforms vary too fast for the integral."""
    judge = _Judge(of, waves)
    judge.hold_kirchhoff()
    judge.hold_elements(tolerance)
    judge.hold_signs()
    return TransientCertificate(**judge.worst, energy=imbalance, tolerance=tolerance), judge.places, judge.coarse
