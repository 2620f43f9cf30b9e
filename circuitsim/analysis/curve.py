"""The I–V curve of a two-terminal circuit, with the breakpoints of piecewise-linear ones.

Values at given voltages are operating points with a voltage source between the two nodes. Breakpoints are located along
load lines w = v + r i, which intersect every monotone curve once, vertical pieces included: between two operating
points with the same conducting diodes the curve is straight, so bisection ends at the breakpoints, where the lines on
both sides intersect.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.analysis.sweep import Sweep, sweep
from circuitsim.arguments import NAMES
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE
from circuitsim.circuit.source import analysis
from circuitsim.errors import ConvergenceError, NoSteadyStateError, UsageError
from circuitsim.formats import Result, Table, plain
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.deck import warn_of_switches
from circuitsim.program.components import component_labels

NEAR = 1e-12
"""Fraction of a load line's range within which a breakpoint is bracketed."""

MOST = 2000
"""Maximum number of breakpoints."""

DOUBLINGS = 60
"""Maximum number of doublings of the load line's range to reach a voltage."""

STRAIGHT = 1e-9
"""Relative difference of slopes below which two pieces are collinear."""


class Breakpoint(NamedTuple):
    """A breakpoint of a piecewise-linear curve: voltage (V), current (A), and the slopes below and above (S; infinite
    for a vertical piece)."""

    voltage: float
    current: float
    below: float
    above: float


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Result):
    """An I–V curve.

    Attributes
    ----------
    between : (str, str)
        The nodes; voltage from the first to the second, current into the first.
    points : Sweep
        Axis ``v``, column ``i``; rows without an operating point, where the current has no bound, are marked.
    breakpoints : tuple of Breakpoint, or None
        In ascending order; None where the curve is not piecewise linear or not known to be monotone.
    """

    PICTURE = "plot_curve"

    between: tuple[str, str]
    points: Sweep
    breakpoints: tuple[Breakpoint, ...] | None

    def tables(self) -> dict[str, Table]:
        """``points``: voltage, status, current; ``breakpoints``: voltage, current, and the slopes below and above."""
        bends = Table.of("v, i, below, above", self.breakpoints or (), ("V", "A", "S", "S"))
        return self.points.tables() | {"breakpoints": bends}

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the JSON object of ``circuitsim curve --format json``; a vertical slope is None."""
        bends = None
        if self.breakpoints is not None:
            bends = [{"voltage": b.voltage, "current": b.current, "slopes": plain(b[2:])} for b in self.breakpoints]
        return {**self.points.to_dict(), "between": list(self.between), "breakpoints": bends}

    def _heading(self) -> tuple[str, str]:
        bends = "" if self.breakpoints is None else f", {len(self.breakpoints)} breakpoints"
        return self.points.title, f"i over v({','.join(self.between)}), {len(self.points)} points{bends}"

    def _proof(self) -> str:
        return self.points._proof()


@analysis(without=NAMES)
def curve(
    circuit: Circuit,
    between: tuple[str, str],
    voltages: Sequence[float],
    without: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> Curve:
    """The I–V curve of a circuit between two of its nodes.

    Parameters
    ----------
    circuit : Circuit
        Its own sources keep their values.
    between : (str, str)
        Two nodes.
    voltages : sequence of float
        V.
    without : sequence of str
        Elements to leave out, for instance the source that drives the circuit.
    tolerance : float
        As for `circuitsim.solve`.

    Raises
    ------
    UsageError
        No two different nodes of the circuit, no voltages, or elements that a controlled source needs.
    """
    warn_of_switches(circuit)
    ends = [circuit.node_index(node) for node in between]
    if ends[0] == ends[1]:
        raise UsageError(f"a curve needs two different nodes, not {between[0]} and {between[1]}")
    values = np.asarray(voltages)
    rest = _without(circuit, without)
    _check_free(rest, between, ends)
    source = _free(rest, "between")
    driven = _only(rest, range(len(rest)))
    driven.voltage_source(source, *between, 0.0)
    found = sweep(driven, {source: values.tolist()}, f"i({source})", tolerance=tolerance)
    current = -found.columns[f"i({source})"] + 0.0
    label = f"v({','.join(between)})"
    warnings = [warning for warning in found.warnings if warning.kind != "floating"]  # currents need no ground
    points = Sweep(
        circuit.title, {label: values}, {"i": current}, {label: "V", "i": "A"}, found.failures, warnings, found.shape
    )
    straight = not rest.laws and not rest.amplified
    straight = straight and not any(isinstance(device, SmoothDevice) for device in rest.devices.values())
    limits = float(values.min()), float(values.max())
    return Curve(between, points, _breakpoints(rest, between, limits, tolerance) if straight else None)


def device_curve(circuit: Circuit, name: str, voltages: Sequence[float], tolerance: float = TOLERANCE) -> Curve:
    """The I–V curve of one element, from its first terminal to its second; see `curve`."""
    k = circuit.element_index(name)
    if k in circuit.laws:
        raise UsageError(f"{circuit.names[k]} is a controlled source: alone it has no curve")
    return curve(_only(circuit, [k]), (circuit[k].first, circuit[k].second), voltages, (), tolerance)


def _check_free(circuit: Circuit, between: tuple[str, str], ends: Sequence[int]) -> None:
    """Refuse nodes whose voltage the circuit fixes."""
    arrays = circuit.arrays()
    fixes, (_, first, second, _, n) = arrays.fixed_voltages, arrays
    label = component_labels(n, first[fixes], second[fixes])
    if label[ends[0]] == label[ends[1]]:
        names = [circuit.names[k] for k in np.flatnonzero(fixes & (label[first] == label[ends[0]])).tolist()[:4]]
        raise UsageError(
            f"{', '.join(names)} fixes the voltage between {between[0]} and {between[1]}; leave it out: --without "
            f"{names[0]} (without=)"
        )


def _without(circuit: Circuit, names: Sequence[str]) -> Circuit:
    """The circuit without some elements."""
    gone = {circuit.element_index(name) for name in names}
    if not gone:
        return circuit
    if circuit.dynamics is not None:
        circuit.dynamics.check_changes(names)
    for k, law in circuit.laws.items():
        needed = [c.element for c in law.currents if c.element in gone]
        if needed and k not in gone:
            raise UsageError(f"{circuit.names[needed[0]]} cannot be left out: its current controls {circuit.names[k]}")
    return _only(circuit, [k for k in range(len(circuit)) if k not in gone])


def _only(circuit: Circuit, places: Sequence[int]) -> Circuit:
    """The circuit of these elements, with all nodes."""
    kind, first, second, value = circuit.columns()
    order = {old: new for new, old in enumerate(places)}
    codes, ends, others = (array(column.typecode, [column[k] for k in places]) for column in (kind, first, second))
    columns = codes, ends, others, array(value.typecode, [value[k] for k in places])
    laws = {order[k]: law.renumbered(lambda n: n, lambda e: order[e]) for k, law in circuit.laws.items() if k in order}
    devices = {order[k]: device for k, device in circuit.devices.items() if k in order}
    names = [circuit.names[k] for k in places]
    return Circuit.from_columns(circuit.title, columns, names, list(circuit.node_names), devices=devices, laws=laws)


def _free(circuit: Circuit, name: str) -> str:
    """An unused element name."""
    while name in circuit:
        name += "_"
    return name


class _Sample(NamedTuple):
    """One point of the curve: w, v (V), i (A), and the conducting diodes."""

    w: float
    v: float
    i: float
    states: bytes


class _LoadLine:
    """The circuit driven by a source through a resistance."""

    def __init__(self, circuit: Circuit, between: tuple[str, str], tolerance: float) -> None:
        self.ohms = circuit.arrays().typical_resistance
        driven = _only(circuit, range(len(circuit)))
        self.resistor, self.source = _free(circuit, "Rload"), _free(circuit, "Vload")
        middle = "load_line"
        while middle in circuit.node_names:
            middle += "_"
        driven.resistor(self.resistor, middle, between[0], self.ohms)
        driven.voltage_source(self.source, middle, between[1], 0.0)
        self.ready = prepared(driven, tolerance=tolerance)

    def at(self, w: float) -> _Sample:
        """The point on the load line with open-circuit voltage w."""
        point = self.ready.solve({self.source: w})
        i = point.current(self.resistor)
        return _Sample(w, w - self.ohms * i, i, _states(point))


def _states(point: OperatingPoint) -> bytes:
    """The conducting diodes of the elementary elements."""
    point = point.elementary or point
    kind = point.circuit.arrays().kind
    return bytes((point.currents[kind == DIODE] > 0.0).tobytes())


def _breakpoints(
    circuit: Circuit, between: tuple[str, str], limits: tuple[float, float], tolerance: float
) -> tuple[Breakpoint, ...] | None:
    """All breakpoints between two voltages; None where there are too many, or a load line has no operating point."""
    line = _LoadLine(circuit, between, tolerance)
    try:
        low, high = _reach(line, limits[0], -1.0), _reach(line, limits[1], 1.0)
        samples = _samples(line, low, high)
    except (NoSteadyStateError, ConvergenceError):
        return None
    if samples is None:
        return None
    pieces, span = [list(piece) for _, piece in groupby(samples, attrgetter("states"))], high.w - low.w
    pieces = [piece for piece in pieces if piece[-1].w - piece[0].w > 1e3 * NEAR * span]
    found = []
    for one, other in pairwise(pieces):
        bend = _meeting(line.ohms, one, other)
        if bend is not None and limits[0] <= bend.voltage <= limits[1]:
            found.append(bend)
    return tuple(found)


def _reach(line: _LoadLine, voltage: float, sign: float) -> _Sample:
    """A point of the curve at or beyond a voltage, or on the last piece if it never gets there."""
    sample, step, still = line.at(voltage), abs(voltage) or 1.0, 0
    for _ in range(DOUBLINGS):
        if sign * (sample.v - voltage) >= 0.0 or still == 6:
            break
        new = line.at(sample.w + sign * step)
        still = still + 1 if new.states == sample.states and abs(new.v - sample.v) <= STRAIGHT * step else 0
        sample, step = new, 2.0 * step
    return sample


def _samples(line: _LoadLine, low: _Sample, high: _Sample) -> list[_Sample] | None:
    """Points in order, such that conducting diodes change only between neighbours closer than `NEAR`; None beyond
    `MOST`."""
    near = NEAR * (high.w - low.w)
    found, waiting = [low], [high]
    while waiting:
        one, other = found[-1], waiting[-1]
        middle = 0.5 * (one.w + other.w)
        if one.states == other.states or other.w - one.w <= near or not one.w < middle < other.w:
            found.append(waiting.pop())
            if len(found) > 50 * MOST:
                return None
        else:
            waiting.append(line.at(middle))
    return found


def _meeting(ohms: float, one: list[_Sample], other: list[_Sample]) -> Breakpoint | None:
    """Intersection of two pieces; None where they are collinear."""
    (a, b), (c, d) = (one[0], one[-1]), (other[0], other[-1])
    # Currents and voltages are affine in w; since v + r i = w, their slopes determine each other.
    left, right = (b.i - a.i) / (b.w - a.w), (d.i - c.i) / (d.w - c.w)
    below, above = (_slope(ohms, share) for share in (left, right))
    if abs(left - right) <= STRAIGHT / ohms:
        return None
    w = b.w + (c.i - b.i - right * (c.w - b.w)) / (left - right)
    w = min(max(w, b.w), c.w)
    current = b.i + left * (w - b.w)
    return Breakpoint(w - ohms * current + 0.0, current + 0.0, below, above)


def _slope(ohms: float, share: float) -> float:
    """Conductance of a piece, S, from its current per volt of the load line."""
    flat, steep = abs(share) * ohms <= STRAIGHT, abs(1.0 - share * ohms) <= STRAIGHT
    return 0.0 if flat else np.inf if steep else share / (1.0 - share * ohms)
