"""`OperatingPoint`: a certified steady state, in volts, amperes and watts.

A JSON object of one can be the start of another solve.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from circuitsim.arguments import refused
from circuitsim.certificate import EQUATIONS, RESOLUTION, Certificate, largest_at_nodes
from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.elements import AMPLIFIER, CURRENT, DIODE, ELEMENTS, RESISTOR
from circuitsim.engine.tree import loop_scales, resistive_tree
from circuitsim.errors import (
    CircuitError,
    InfeasibleError,
    NoOperatingPointError,
    NoSteadyStateError,
    Problem,
    TopologyError,
    UnboundedError,
    UsageError,
)
from circuitsim.formats import Picture, Result, Table, cell, html_certificate, proof, quantity, scale_of, verdict
from circuitsim.models import Region
from circuitsim.models.smooth import SmoothDevice
from circuitsim.program.components import block_labels

Values: TypeAlias = Mapping[str, float] | Sequence[float] | np.ndarray | None
"""Element values, Ω, V, A: some by name, or those of all elements (m,)."""

CONDUCTING, BLOCKING = Region("conducting", True), Region("blocking", False)
"""Regions of an ideal diode."""


SMALLEST_SHARE = 1e-24
"""Of the largest voltage, current or power: what text shows as 0. One column has parts of unlike scales (a nanoampere
beside a kiloampere), each of which may hold what is 1e-12 of it."""

PARTS = ("circuit", "voltages", "currents", "intervals", "unique", "certificate", "solver", "warnings", "drops")
"""The arguments of `OperatingPoint`."""


class Status(enum.Enum):
    """How a solve ended."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NOT_CONVERGED = "not converged"


class OperatingPoint(Result):
    """The steady state of a circuit, with its certificate.

    Attributes
    ----------
    circuit : Circuit
    status : Status
        Always ``Status.SOLVED``: anything else is an exception.
    voltages : (n_nodes,) float array
        Node voltages, V, in the order of ``circuit.node_names``.
    currents : (m,) float array
        Branch currents, A, in the order of ``circuit.names``: from the first terminal through the element (into an
        amplifier on its left).
    intervals : dict of str to (float or None, float or None)
        Nodes whose potential is not unique: its range, V, None where open.
    unique : (m,) bool array
        Where a branch current is the only one possible; elsewhere it is that of least norm.
    certificate : Certificate
    solver : dict
        The method, why it was chosen, and counts of its work.
    warnings : tuple of Problem
        Notes about the deck and warnings about the solution.
    regions : mapping of int to Region
        Of each piecewise-linear device (`circuitsim.models`), by element: the region of its characteristic.
    elementary : OperatingPoint or None
        With devices: that of the elementary elements they consist of, which has the same certificate; smooth devices
        are linearised there.
    junctions : mapping of int to float
        Voltage of the junction of each smooth device, V, by element.
    transformed : OperatingPoint or None
        With amplifiers: that of the circuit without them, in other coordinates.
    uniqueness : Uniqueness or None
        With controlled sources: whether it is the only operating point. Without any, potentials and currents are
        unique except for ``intervals`` and ``unique``.
    other : OperatingPoint or None
        A second operating point, where one was found.
    low : (n_nodes,) float array or None
        With controlled sources: low-order parts of the potentials, V.
    """

    elementary: OperatingPoint | None = None
    junctions: Mapping[int, float] = MappingProxyType({})
    _device_parts: Mapping[int, Sequence[int]] = MappingProxyType({})
    _smooth_drops: Mapping[int, float] = MappingProxyType({})
    transformed: OperatingPoint | None = None
    uniqueness: Uniqueness | None = None
    other: OperatingPoint | None = None
    low: np.ndarray | None = None
    ROWS = None

    def __init__(
        self,
        circuit: Circuit,
        voltages: np.ndarray,
        currents: np.ndarray,
        intervals: dict[str, tuple[float | None, float | None]],
        unique: np.ndarray,
        certificate: Certificate,
        solver: dict[str, object],
        warnings: tuple[Problem, ...],
        drops: np.ndarray | None = None,
    ) -> None:
        self.circuit = circuit
        self.status = Status.SOLVED
        # Adding zero turns −0.0 into 0.0.
        self.voltages = voltages = voltages + 0.0
        self.currents = currents = currents + 0.0
        self.intervals = intervals
        self.unique = unique
        self.certificate = certificate
        self.solver = solver
        self.warnings = warnings
        if drops is not None:
            self.drops = drops + 0.0
        for array in (voltages, currents, unique):
            array.flags.writeable = False

    def changed(self, **parts: Any) -> OperatingPoint:
        """A point with other values of some arguments."""
        return OperatingPoint(**{name: getattr(self, name) for name in PARTS} | parts)

    @cached_property
    def drops(self) -> np.ndarray:
        """Branch voltages v(first) − v(second), V (m,), accurate on their own scale where node voltages are too coarse
        to resolve them."""
        arrays = self.circuit.arrays()
        drops = self.voltages[arrays.first] - self.voltages[arrays.second]
        if self._device_parts and self.elementary is not None:
            plain = np.ones(drops.size, dtype=bool)
            plain[[*self._device_parts]] = False
            np.copyto(drops, self.elementary.drops[: drops.size], where=plain)
            drops[[*self._smooth_drops]] = [*self._smooth_drops.values()]
        return drops

    @cached_property
    def margin(self) -> np.ndarray:
        """For each ideal diode the larger of current and voltage relative to local scales (m,); for a device the
        smallest of its ideal diodes; NaN for other elements. See `diode_margins`.
        """
        if self.transformed is not None:
            return self.transformed.margin
        if self.elementary is None:
            return diode_margins(self.circuit.arrays(), self.voltages, self.currents, self.drops)
        inner = self.elementary.margin
        margin = inner[: len(self.circuit)].copy()
        for k, places in self._device_parts.items():
            margin[k] = np.fmin.reduce(inner[list(places)], initial=np.nan)
        return margin

    @property
    def kink(self) -> np.ndarray:
        """Diodes whose current and voltage both vanish at their scales (m,): ``margin`` within the tolerance.

        Either state is correct there, and derivatives by source values and resistances are one-sided.
        """
        return self.margin <= self.certificate.tolerance

    @cached_property
    def powers(self) -> np.ndarray:
        """Power absorbed by each element, W (m,)."""
        kind, first, second, value, _ = self.circuit.arrays()
        # An amplifier absorbs on its left what it does not deliver on its right: v_L i_L − (a v_R) i_L.
        amplified = self.voltages[first] - np.where(kind == AMPLIFIER, value, 1.0) * self.voltages[second]
        return np.where(kind == AMPLIFIER, amplified, self.drops) * self.currents

    @cached_property
    def energy(self) -> float:
        """½ Σ g v² + Σ I v, W (Scellier 2024, Theorem 1); with amplifiers in the coordinates v/c, i/c, with devices
        their co-contents. Controlled sources have none: nan.
        """
        if self.circuit.laws:
            return math.nan
        if self.elementary is not None and not self.junctions:
            return self.elementary.energy
        own = sum(device.energy(float(self.drops[k])) for k, device in self.circuit.devices.items())
        kind, value = self.circuit.arrays().kind, self.circuit.arrays().value
        half = np.where(kind == RESISTOR, 0.5 * self.drops * self.currents, 0.0)
        return float(np.where(kind == CURRENT, value * self.drops, half).sum()) + own

    def __getitem__(self, node: str | int) -> float:
        """Voltage of a node, V; ``point[1]`` is that of the node ``"1"``."""
        return float(self.voltages[self.circuit.node_index(node)])

    def voltage(self, first: str | int, second: str | int | None = None) -> float:
        """Voltage between two nodes.

        Parameters
        ----------
        first, second : str or int
            Names of nodes; without ``second`` against ground (or the reference).

        Returns
        -------
        float
            v(first) − v(second), V.

        Raises
        ------
        TopologyError
            There is no such node.
        """
        return self[first] - (0.0 if second is None else self[second])

    def current(self, name: str) -> float:
        """Current of an element, A, from its first terminal through it to its second."""
        return float(self.currents[self.circuit.element_index(name)])

    def power(self, name: str | None = None) -> float:
        """Power that an element absorbs, W; without a name the total that all resistors dissipate."""
        if name is not None:
            k = self.circuit.element_index(name)
            return float(self.powers[k])
        resistors = self.circuit.arrays().kind == RESISTOR
        return float(self.powers[resistors].sum())

    def state(self, name: str) -> str:
        """``"conducting"`` if an ideal diode carries current, else ``"blocking"``; of a device the name of its region.

        Raises
        ------
        TopologyError
            The element is neither.
        """
        k = self.circuit.element_index(name)
        region = self.region(k)
        if region is None:
            raise TopologyError(f"{name} is a {self.circuit[k].kind}; only diodes have a state")
        return region.name

    @cached_property
    def regions(self) -> dict[int, Region]:
        """See the attributes of the class."""
        found, inner = dict[int, Region](), self.elementary
        for k in sorted(self._device_parts.keys() - self.junctions.keys()):
            assert inner is not None
            device, currents = self.circuit.devices[k], inner.currents[list(self._device_parts[k])].tolist()
            found[k] = device.region(dict(zip((part.name for part in device.expand()), currents)))
        return found

    def region(self, k: int) -> Region | None:
        """The region of element ``k`` on its characteristic; None where that has one piece."""
        if self.circuit.columns()[0][k] == DIODE:
            return CONDUCTING if self.currents[k] > 0.0 else BLOCKING
        if k in self.junctions:
            device = self.circuit.devices[k]
            assert isinstance(device, SmoothDevice)
            return device.region_at(self.junctions[k])
        return self.regions.get(k)

    def to_dict(self) -> dict[str, Any]:
        """The operating point as plain values: the JSON object of ``circuitsim solve --format json``."""
        circuit = self.circuit
        columns = zip(
            circuit.names,
            self.drops.tolist(),
            self.currents.tolist(),
            self.powers.tolist(),
            self.unique.tolist(),
            self.margin.tolist(),
        )
        branches = {}
        for k, (name, voltage, current, power, unique, margin) in enumerate(columns):
            branch: dict[str, object] = {"voltage": voltage, "current": current, "power": power}
            region = self.region(k)
            if region is not None:
                branch["state"] = region.name
            if not math.isnan(margin):
                branch |= {"margin": margin, "kink": margin <= self.certificate.tolerance}
            branch["unique"] = unique
            branches[name] = branch
        nodes, inner = self._potentials()
        hidden = {
            circuit.names[k]: branches.pop(circuit.names[k]) for k in inner_parts(circuit)[1].nonzero()[0].tolist()
        }
        return (
            {
                "schema": 2,
                "title": circuit.title,
                "status": self.status.value,
                "warnings": [warning_to_dict(w) for w in self.warnings],
                "nodes": nodes,
                "intervals": {name: list(ends) for name, ends in self.intervals.items()},
                "branches": branches,
                "energy": None if self.circuit.laws else self.energy,
                "certificate": self.certificate.to_dict(),
                "solver": self.solver,
            }
            | ({"inner": {"nodes": inner, "branches": hidden}} if hidden else {})
            | self._verdict()
        )

    def _verdict(self) -> dict[str, object]:
        """Keys for circuits with controlled sources only."""
        if self.uniqueness is None:
            return {}
        other = self.other and {"nodes": self.other._potentials()[0], "certificate": self.other.certificate.to_dict()}
        return {"uniqueness": self.uniqueness.value, "other": other}

    def _potentials(self) -> tuple[dict[str, float], dict[str, float]]:
        """Node voltages, V, and those of `inner_parts`."""
        inner = inner_parts(self.circuit)[0]
        shown, hidden = self._shown_nodes(), inner.nonzero()[0].tolist()
        names, volts = self.circuit.node_names, self.voltages.tolist()
        return {names[k]: volts[k] for k in shown}, {names[k]: volts[k] for k in hidden}

    def tables(self) -> dict[str, Table]:
        """``elements``: kind, first, second, value, voltage, current, power, state, kink, unique; ``nodes``: voltage,
        and low and high, the range of one that is not unique.
        """
        circuit, shown = self.circuit, self._shown_nodes()
        own = (~inner_parts(circuit)[1]).nonzero()[0]
        kind, first, second, value = (column[own] for column in circuit.arrays()[:4])
        regions = [self.region(k) for k in own.tolist()]
        elements = {
            "element": [circuit.names[k] for k in own.tolist()],
            "kind": [ELEMENTS[k].name for k in kind.tolist()],
            "first": [circuit.node_names[k] for k in first.tolist()],
            "second": [circuit.node_names[k] for k in second.tolist()],
            "value": value,
            "voltage": self.drops[own],
            "current": self.currents[own],
            "power": self.powers[own],
            "state": [None if region is None else region.name for region in regions],
            "kink": self.kink[own],
            "unique": self.unique[own],
        }
        names = [circuit.node_names[k] for k in shown]
        ends = np.full((len(names), 2), np.nan)
        for k, name in enumerate(names):
            if name in self.intervals:
                low, high = self.intervals[name]
                ends[k] = -np.inf if low is None else low, np.inf if high is None else high
        columns = names, self.voltages[shown], *ends.T
        units = ("", "", "", "", "", "V", "A", "W", "", "", "")
        return {
            "elements": Table(tuple(elements), units, tuple(elements.values()), True),
            "nodes": Table(("node", "voltage", "low", "high"), ("", "V", "V", "V"), columns, True),
        }

    @property
    def absorbed(self) -> float:
        """The power that elements absorb, W, without those that deliver any."""
        return float(np.maximum(self.powers[~inner_parts(self.circuit)[1]], 0.0).sum())

    def text(self, tables: Sequence[Table] = ()) -> str:
        """The operating point as text: node voltages, elements, power and certificate.

        Parameters
        ----------
        tables : sequence of Table
            In place of nodes and elements.
        """
        return super().text(tables or self._listed())

    def _listed(self) -> list[Table]:
        """Nodes, and elements with ``°`` at kinks and ``*`` at currents that are not unique."""
        elements, nodes = self.tables().values()
        (names, volts, *_), of = nodes.columns, dict(zip(elements.header, elements.lists()))
        ranges = [_interval(*self.intervals[name]) if name in self.intervals else "" for name in names]
        head = "node", "voltage", *["anywhere in"] * bool(self.intervals)
        least = SMALLEST_SHARE * scale_of(of["current"])
        columns = {name: of[name] for name in ("element", "voltage", "current", "power", "state")}
        columns["current"] = [cell(x, "A", least) + " *" * (not own) for x, own in zip(of["current"], of["unique"])]
        columns["state"] = [(own or "") + " °" * kink for own, kink in zip(of["state"], of["kink"])]
        return [
            Table(head, ("", "V", ""), (names, volts, ranges), share=SMALLEST_SHARE),
            Table(("branch", *[*columns][1:]), ("", "V", "", "W", ""), (*columns.values(),), share=SMALLEST_SHARE),
        ]

    def _shown_nodes(self) -> list[int]:
        shown = ~inner_parts(self.circuit)[0]
        shown[GROUND] = self.circuit.grounded
        found: list[int] = shown.nonzero()[0].tolist()
        return found

    def draw(self) -> Picture:
        """A drawing with voltages as colour and currents as width; a notebook shows it, `Picture.save` writes it."""
        return Picture(self)

    def _figure(self) -> Any:
        return self.draw().figure()

    def _picture(self) -> str:
        return self.draw().inline()

    def _lines(self) -> list[str]:
        return super()._lines()[:1]

    def _proof(self) -> str:
        own, lines = ~inner_parts(self.circuit)[1], list[str]()
        if not self.unique[own].all():
            lines += ["* not unique: the smallest currents that satisfy Kirchhoff's current law", ""]
        if self.kink[own].any():
            lines += ["° kink: current and voltage are both zero, either state is correct", ""]
        lines.append(f"{self.status.value} by {self.solver['name']}; {quantity(self.absorbed, 'W')} absorbed")
        if self.uniqueness is not None:
            lines.append(VERDICTS[self.uniqueness])
        if self.other is not None:
            rows = [(name, quantity(volts, "V")) for name, volts in self.other._potentials()[0].items()]
            lines += Table.of("node, voltage", rows).text().splitlines()
        return "\n".join([*lines, proof(self.certificate)])

    def _certificate(self) -> str:
        return html_certificate(self.certificate.to_dict(), self.uniqueness is None)

    def _heading(self) -> tuple[str, str]:
        circuit, shown = self.circuit, self._shown_nodes()
        nodes = [k for k in shown if k != GROUND]
        volts = [f"v({circuit.node_names[k]}) = {quantity(float(self.voltages[k]), 'V')}" for k in nodes[:4]]
        more = ["…"] * (len(nodes) > 4)
        elements = len(circuit) - int(inner_parts(circuit)[1].sum())
        words = f"{len(shown)} nodes, {elements} elements, {verdict(self.certificate)}"
        return circuit.title, ": ".join(filter(None, [words, ", ".join(volts + more)]))


def _interval(low: float | None, high: float | None) -> str:
    """The range of a node voltage."""
    left = "(-∞" if low is None else f"[{quantity(low, 'V')}"
    return f"{left}, " + ("∞)" if high is None else f"{quantity(high, 'V')}]")


def inner_parts(circuit: Circuit) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes (n_nodes,) and elements (m,) are parts of a controlled source that stands for its formula: of B1 the
    node ``B1.u1``, the diode ``B1.D1``; of ``limited_opamp`` all but its output. Tables and pictures leave them out."""
    nodes, elements = np.zeros(len(circuit.node_names), bool), np.zeros(len(circuit), bool)
    owners = {circuit.names[k] for k in circuit.laws}
    if owners:
        elements[:] = [name.rpartition(".")[0].rstrip(".") in owners for name in circuit.names]
        _, first, second, _, _ = circuit.arrays()
        nodes[first[elements]] = nodes[second[elements]] = True
        nodes[first[~elements]] = nodes[second[~elements]] = nodes[GROUND] = False
    return nodes, elements


def warning_to_dict(warning: Problem) -> dict[str, object]:
    """A warning as in the JSON output: message, file, line, names."""
    stated = warning.to_dict()
    return {key: stated[key] for key in ("message", "file", "line", "names")}


def open_ended(ends: tuple[float, float]) -> tuple[float | None, float | None]:
    """An interval with None for an open end (strict JSON has no infinity)."""
    lo, hi = ends
    return (lo if math.isfinite(lo) else None, hi if math.isfinite(hi) else None)


def status_of(error: CircuitError) -> Status:
    """``INFEASIBLE``, ``UNBOUNDED`` or ``NOT_CONVERGED``."""
    if isinstance(error, InfeasibleError) or (isinstance(error, NoOperatingPointError) and error.proven):
        return Status.INFEASIBLE
    return Status.UNBOUNDED if isinstance(error, UnboundedError) else Status.NOT_CONVERGED


def cause_of(error: CircuitError) -> dict[str, object] | None:
    """The witness as in the JSON output; None for an error without one."""
    return error.cause if isinstance(error, NoSteadyStateError) else None


def check_start(start: object) -> None:
    """Refuse a start that is no operating point.

    Raises
    ------
    ArgumentError
        Anything else.
    """
    if start is not None and not hasattr(start, "currents"):
        raise refused("start", start, "an operating point, as solve returns it")


def changed_by(circuit: Circuit, values: Values) -> Circuit:
    """The circuit with other values, by name or of all elements (m,)."""
    if isinstance(values, Mapping):
        return circuit.with_values(values)
    return circuit if values is None else circuit.with_column(circuit.column(values))


def stored_point(stored: Mapping[str, Any], circuit: Circuit) -> OperatingPoint:
    """The operating point written by ``circuitsim solve --format json``, for a circuit with the same names.

    Parameters
    ----------
    stored : mapping
        The JSON object.
    circuit : Circuit
        Its values may differ from those of the circuit that was solved.

    Raises
    ------
    UsageError
        Not such an object, or one of another circuit.
    """
    try:
        branches, nodes, inner = stored["branches"], stored["nodes"], stored.get("inner", {})
        nodes, branches = nodes | inner.get("nodes", {}), branches | inner.get("branches", {})
        old = stored["certificate"]
        volts = np.array([_number(nodes.get(name, 0.0)) for name in map(str, circuit.node_names)])
        rows = [branches[name] for name in circuit.names]
        currents, drops = (np.array([_number(row[key]) for row in rows]) for key in ("current", "voltage"))
        certificate = Certificate(
            **{name: _number(old[name]) for name in EQUATIONS},
            relative={name: _number(old["relative"][name]) for name in EQUATIONS},
            tolerance=_number(old["tolerance"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"no operating point of this circuit ({type(error).__name__}: {error}): write one with circuitsim solve "
            "DECK --format json"
        ) from None
    unique = np.ones(currents.size, dtype=bool)
    return OperatingPoint(circuit, volts, currents, {}, unique, certificate, {"name": "stored"}, (), drops)


def _number(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise ValueError("a number that is not finite")
    return number


def diode_margins(arrays: CircuitArrays, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray) -> np.ndarray:
    """The larger of current and voltage of each ideal diode, relative to local scales.

    Parameters
    ----------
    arrays : CircuitArrays
    voltages : (n_nodes,) float array
        Potentials, V.
    currents, drops : (m,) float arrays
        Branch currents, A, and voltages, V.

    Returns
    -------
    (m,) float array
        NaN for other elements. The scale of a current is the largest current at the diode's ends (at least 1e-13 of the
        largest in its biconnected component), that of a voltage the largest drop in the diode's loop through sources,
        shorts, conducting diodes and the smallest resistors; the larger end potential where there is no such loop.
    """
    margin = np.full(drops.size, np.nan)
    diodes = np.flatnonzero(arrays.kind == DIODE)
    margin[diodes] = np.maximum(
        _ratio(np.abs(currents[diodes]), _current_scale(arrays, currents, diodes)),
        _ratio(np.abs(drops[diodes]), _voltage_scale(arrays, voltages, currents, drops, diodes)),
    )
    return margin


def _current_scale(arrays: CircuitArrays, currents: np.ndarray, diodes: np.ndarray) -> np.ndarray:
    """Largest |current| at the ends of each diode, A, or `RESOLUTION` of the largest in its biconnected component."""
    first, second, size = arrays.first, arrays.second, np.abs(currents)
    largest = largest_at_nodes(arrays, size)
    scale = np.maximum(largest[first[diodes]], largest[second[diodes]])
    if diodes.size and (scale < RESOLUTION * size.max()).any():
        label = block_labels(arrays.n_nodes, first, second)
        in_block = np.zeros(label.max(initial=-1) + 2)
        np.maximum.at(in_block, label, size)  # self-loops, of label −1, last
        scale = np.maximum(scale, RESOLUTION * in_block[label[diodes]])
    return scale


def _voltage_scale(
    arrays: CircuitArrays, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray, diodes: np.ndarray
) -> np.ndarray:
    """Largest |drop| in the fundamental loop of each nonconducting diode, V; 0 for diodes of zero voltage."""
    scale = np.zeros(diodes.size)
    asked = np.flatnonzero(drops[diodes] != 0.0)
    if not asked.size:
        return scale
    chosen = diodes[asked]
    made, branches = resistive_tree(arrays, np.flatnonzero((arrays.kind == DIODE) & (currents > 0.0)))
    in_loop, _ = loop_scales(made, branches, currents, chosen)
    a, b, own = arrays.first[chosen], arrays.second[chosen], np.abs(drops[chosen])
    reach = np.maximum(np.abs(voltages[a]), np.abs(voltages[b]))
    in_loop = np.where(made.root_of[a] == made.root_of[b], in_loop, reach)
    scale[asked] = np.maximum(in_loop, own)
    return scale


def _ratio(amount: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """amount / scale; 0 over 0 is 0."""
    return np.divide(amount, scale, out=np.zeros(amount.size), where=scale > 0.0)


class Uniqueness(enum.Enum):
    """Whether an operating point is the only one."""

    UNIQUE = "unique"
    """Proven."""
    SEVERAL = "several"
    """Proven by a second operating point."""
    UNKNOWN = "unknown"
    """No other was found, without proof that none exists."""


VERDICTS = {
    Uniqueness.UNIQUE: "the only operating point: proven",
    Uniqueness.SEVERAL: "one of several operating points; another:",
    Uniqueness.UNKNOWN: "no other operating point was found; nothing proves that there is none",
}
