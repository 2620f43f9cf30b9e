"""The certificate of a run: each element's law and Kirchhoff's at all output times and at random times between events,
and the energy balance.

It reads voltages and currents alone and shares no code with the methods. v = L di/dt and i = C dv/dt are judged without
derivatives: on short intervals between events the change of flux or charge is the integral of voltage or current. Each
violation is relative to what meets at the element at that time: the largest voltage (nodes to ground included) or
current of the elements at its nodes, in the same interval. A pulse of gigavolts earlier in the run excuses nothing. The
energy balance joins the times: what sources deliver is dissipated, stored or lost in jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

RESIDUE = 1e-5
"""Least scale, of the largest anywhere at that time and of the largest at the place during the run: with a tolerance of
1e-9 it is the error of a state, `circuitsim.time_domain.part_states.STATE`, of what all is computed from."""
ROUNDING = 1e-4
"""Least scale of a current, of the voltages at its nodes in its resistor; of a change of flux or charge, of the flux or
charge itself: sums of some ten states, each with that error."""
SIGNS = 1e-3
"""Least scale of signs, of the largest at the diode's nodes during the run: with that tolerance it is the share that
counts as zero where events are sought, `circuitsim.time_domain.roots.VALUE`."""
INTERVALS = 24
"""Most intervals by number of segments; a third as many more are by their lengths."""
QUARTER = 0.25
"""Length of an interval over that of its segment, whose waveforms `NODES` then integrate to rounding."""
RESOLUTION = 1e3
"""Least length of a segment in units in the last place of its time: no shorter one shows between two times."""
GAUSS = np.polynomial.legendre.leggauss(10)
SHARES = np.concatenate([[0.0], 0.5 * (1.0 + GAUSS[0]), [1.0]])
"""Times of an interval, of its length: its ends and the nodes of Gauss and Legendre."""
WEIGHTS = np.concatenate([[0.0], 0.5 * GAUSS[1], [0.0]])
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
"""What the columns of a certificate are about."""


class Place(NamedTuple):
    """Where a law is violated most: the element or node, and the time, s."""

    name: str
    time: float


def violations(columns: Iterable[tuple[str, float, float]], places: dict[str, Place] | None = None) -> str:
    """The laws of a certificate that are violated, from the name, size and tolerance of each column."""
    wrong = []
    for name, size, most in columns:
        if not size <= most:
            place = (places or {}).get(name)
            where = "" if place is None else f" of {place.name} at {place.time:.9g} s"
            wrong.append(f"{LAWS[name]}{where} by {size:.1e} (tolerance {most:.0e})")
    return "the waveforms fail their certificate, relative to the sizes there: " + ", ".join(wrong)


class TransientCertificate(NamedTuple):
    """Largest violations over all output times and random times between events.

    Attributes
    ----------
    kcl : float
        Net current of a node over the largest current there.
    kvl : float
        Net voltage of a loop over the largest voltage at that time, whose rounding coupled windings have.
    sources : float
        Distance of a source from its waveform, over the waveform's own size.
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
        What the energy balance misses, over the energy turned over.
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
        """`violations`, with the places."""
        return violations(((name, size, self.tolerance) for name, size in zip(self._fields[:-1], self)), places)


class Elements(NamedTuple):
    """What the laws of a circuit's elements are.

    Attributes
    ----------
    names, nodes : sequence of str
    first, second : (m,) int arrays
        Terminals.
    resistors, inductors, capacitors, diodes, sources : int arrays
        Elements.
    inductance : (l, l) float array
        With mutual ones, H.
    capacitance : (c,) float array
        F.
    is_voltage : (sources,) bool array
    switches : sequence of str
    levels : callable
        Of the sources (n, sources) at times (n,): values, the sizes that they are rounding of, and what they change by
        within the rounding of the times.
    """

    names: Sequence[str]
    nodes: Sequence[str]
    first: np.ndarray
    second: np.ndarray
    resistors: np.ndarray
    inductors: np.ndarray
    capacitors: np.ndarray
    diodes: np.ndarray
    sources: np.ndarray
    is_voltage: np.ndarray
    switches: Sequence[str]
    inductance: np.ndarray
    capacitance: np.ndarray
    levels: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


class Waves(NamedTuple):
    """Waveforms at times (g, n): g intervals, or single times where n is 1.

    Attributes
    ----------
    times : (g, n) float array
    voltage, current : (g, n, m) float arrays
    ohms : (g, n, r) float array
        Of the resistors.
    beyond : (g, n, switches) float array
        How far a switch's control is on the wrong side of its threshold.
    """

    times: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    ohms: np.ndarray
    beyond: np.ndarray


def intervals(starts: np.ndarray, stop: float) -> np.ndarray:
    """Times (g, n) of intervals within some of the segments that begin at ``starts`` (n,), the same for the same
    segments: as many long as short ones, and as many more where most of the time is spent."""
    ends = np.append(starts[1:], stop)
    length = ends - starts
    usable = np.flatnonzero(length > RESOLUTION * np.spacing(ends))
    if not usable.size:
        return np.zeros((0, SHARES.size))
    draw = np.random.default_rng(usable.size)
    chosen = draw.choice(usable, min(INTERVALS, usable.size), replace=False)
    long = np.searchsorted(starts, stop * draw.random(INTERVALS // 3), side="right") - 1
    chosen = np.concatenate([chosen, long[np.isin(long, usable)]])
    begin = starts[chosen] + (1.0 - QUARTER) * draw.random(chosen.size) * length[chosen]
    found: np.ndarray = begin[:, None] + QUARTER * length[chosen, None] * SHARES
    return found


class _Judge:
    """The largest violations so far, and where they are."""

    def __init__(self) -> None:
        self.worst = dict.fromkeys(TransientCertificate._fields[:-2], 0.0)
        self.places: dict[str, Place] = {}

    def take(self, law: str, off: np.ndarray, scale: np.ndarray, times: np.ndarray, names: Sequence[str]) -> None:
        """Violations (g, n, k) of elements with these names, and what they are relative to."""
        size = np.divide(off, scale, out=np.where(off == 0.0, 0.0, np.inf), where=scale > 0.0)
        if not size.size:
            return
        at = np.unravel_index(np.argmax(np.where(np.isnan(size), np.inf, size)), size.shape)
        if not size[at] <= self.worst[law]:
            self.worst[law] = float(size[at])
            self.places[law] = Place(names[int(at[2])], float(np.broadcast_to(times[..., None], size.shape)[at]))


def certify(
    of: Elements, output: Waves, between: Waves, imbalance: float, tolerance: float
) -> tuple[TransientCertificate, dict[str, Place]]:
    """The certificate of waveforms at output times and in intervals between events, and where each law is violated
    most."""
    judge = _Judge()
    sizes = [_sizes(of, waves) for waves in (output, between)]
    # What the place has seen at output times and in the intervals; pulses that are over before one are not in it.
    run = [np.maximum(*(own[k].max(axis=(0, 1), initial=0.0) for own in sizes)) for k in range(2)]
    # Where currents alone are given, voltages may all be zero: these count by the smallest resistance.
    least = (np.maximum(run[0], output.ohms.min(initial=np.inf) * run[1]) if of.resistors.size else run[0]), run[1]
    for waves, (drop, flow, potential) in zip((output, between), sizes):
        drop, flow = (
            np.maximum(now, RESIDUE * np.maximum(now.max(axis=2, keepdims=True, initial=0.0), most))
            for now, most in (
                (own.max(axis=1, keepdims=True, initial=0.0), most) for own, most in zip((drop, flow), least)
            )
        )
        _hold(judge, of, waves, drop, flow, potential, tolerance)
        _signs(judge, of, waves, np.maximum(drop, SIGNS * least[0]), np.maximum(flow, SIGNS * least[1]))
    return TransientCertificate(**judge.worst, energy=imbalance, tolerance=tolerance), judge.places


def _sizes(of: Elements, waves: Waves) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each element the largest voltage and the largest current at its nodes (g, n, m), and the potentials of all
    nodes (g, n, nodes)."""
    potential = _potentials(of, waves.voltage)
    ends = of.first, of.second
    at_node = np.abs(potential)
    for nodes in ends:
        _into(at_node, nodes, np.abs(waves.voltage))
    drop = np.maximum(at_node[..., of.first], at_node[..., of.second])
    # A current is no less than the rounding of voltages in its resistor.
    carried = np.abs(waves.current)
    carried[..., of.resistors] = np.maximum(carried[..., of.resistors], ROUNDING * drop[..., of.resistors] / waves.ohms)
    met = np.zeros(at_node.shape)
    for nodes in ends:
        _into(met, nodes, carried)
    return drop, np.maximum(met[..., of.first], met[..., of.second]), potential


def _into(at_node: np.ndarray, nodes: np.ndarray, own: np.ndarray) -> None:
    """Take the largest values of the elements that end at each node."""
    order = np.argsort(nodes, kind="stable")
    begins = np.flatnonzero(np.diff(nodes[order], prepend=-1))
    if begins.size:
        here = nodes[order][begins]
        at_node[..., here] = np.maximum(at_node[..., here], np.maximum.reduceat(own[..., order], begins, axis=-1))


def _potentials(of: Elements, voltage: np.ndarray) -> np.ndarray:
    """Potentials of all nodes along paths from ground; of floating parts from one of their nodes."""
    around: list[list[tuple[int, int, float]]] = [[] for _ in of.nodes]
    for k, (a, b) in enumerate(zip(of.first.tolist(), of.second.tolist())):
        around[a].append((b, k, -1.0))
        around[b].append((a, k, 1.0))
    found = np.zeros((*voltage.shape[:-1], len(of.nodes)))
    seen = set[int]()
    for root in range(len(of.nodes)):
        if root in seen:
            continue
        seen.add(root)
        queue = [root]
        for u in queue:
            for v, k, sign in around[u]:
                if v not in seen:
                    seen.add(v)
                    queue.append(v)
                    found[..., v] = found[..., u] + sign * voltage[..., k]
    return found


def _hold(
    judge: _Judge,
    of: Elements,
    waves: Waves,
    drop: np.ndarray,
    flow: np.ndarray,
    potential: np.ndarray,
    tolerance: float,
) -> None:
    """Hold all laws; ``drop`` and ``flow`` (g, 1, m) are what voltages and currents are relative to."""
    v, i, times, names = waves.voltage, waves.current, waves.times, of.names

    def named(chosen: np.ndarray) -> list[str]:
        return [names[k] for k in chosen.tolist()]

    net, met = np.zeros(potential.shape), np.zeros((*flow.shape[:-1], len(of.nodes)))
    for nodes, sign in ((of.first, 1.0), (of.second, -1.0)):
        for k, node in enumerate(nodes.tolist()):
            net[..., node] += sign * i[..., k]
        _into(met, nodes, flow)
    judge.take("kcl", np.abs(net), met, times, of.nodes)
    around, largest = (
        v - potential[..., of.first] + potential[..., of.second],
        drop.max(axis=2, keepdims=True, initial=0.0),
    )
    judge.take("kvl", np.abs(around), np.broadcast_to(largest, around.shape), times, names)
    r = of.resistors
    judge.take("resistors", np.abs(v[..., r] - waves.ohms * i[..., r]), drop[..., r], times, named(r))
    judge.take("switches", waves.beyond, np.ones(waves.beyond.shape), times, of.switches)
    if times.shape[1] == 1:
        return
    level, size, late = (own.reshape(*times.shape, -1) for own in of.levels(times.ravel()))
    own = np.where(of.is_voltage, v[..., of.sources], i[..., of.sources])
    judge.take("sources", np.maximum(np.abs(own - level) - late, 0.0), size, times, named(of.sources))
    length = (times[:, -1] - times[:, 0])[:, None, None]
    # Each time is rounded: what a waveform changes by in that enters its integral.
    late = np.spacing(times[:, -1])[:, None, None] / length
    for chosen, store, state, push, size, scale in (
        (of.inductors, of.inductance, i, v, flow, drop),
        (of.capacitors, np.diag(of.capacitance), v, i, drop, flow),
    ):
        kept, pushed = state[..., chosen], push[..., chosen]
        change = (kept[:, -1:] - kept[:, :1]) @ store
        missing = np.abs(change - length * (WEIGHTS @ pushed)[:, None])
        values = tolerance * ROUNDING * size[..., chosen] @ np.abs(store)
        allowed = length * (tolerance + late) * scale[..., chosen] + values
        judge.take("reactances", tolerance * missing, allowed, times[:, :1], named(chosen))


def _signs(judge: _Judge, of: Elements, waves: Waves, drop: np.ndarray, flow: np.ndarray) -> None:
    """Hold diodes to their signs, relative to ``drop`` and ``flow`` (g, 1, m)."""
    d = of.diodes
    over, back = waves.voltage[..., d] / _nonzero(drop[..., d]), -waves.current[..., d] / _nonzero(flow[..., d])
    one, names = np.ones(over.shape), [of.names[k] for k in d.tolist()]
    judge.take("diodes", np.maximum(np.maximum(over, back), 0.0), one, waves.times, names)
    judge.take("complementarity", np.minimum(np.abs(over), np.abs(back)), one, waves.times, names)


def _nonzero(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 0.0, scale, np.inf)
