"""Sensitivities: derivatives of voltages, currents and powers by every parameter, from one adjoint solution each.

The transfer function of a source at zero frequency (``.tf``) too: gain, input resistance, output resistance.

In the linearised circuit a conducting diode is a source of 0 V, a blocking one a source of 0 A, a smooth device its
tangent, and all independent sources are zero. By Tellegen's theorem one solution of the adjoint circuit gives the
derivatives of one quantity by all element values (Director & Rohrer 1969). With voltages û and currents ĵ of the
adjoint circuit, v and i of the operating point, they are

    by R: −ĵ i      by V: −ĵ      by I: û      by the gain of a controlled source: −ĵ · control.

It solves the transposed small-signal equations. Where a diode has zero current and voltage, the response in one
direction is that of a circuit in which such diodes are ideal diodes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.collapse import elementary_point
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.parameters import DependsOn, dependencies
from circuitsim.analysis.probes import Formula, Probe, parse_probe, parse_probes
from circuitsim.analysis.solve import linearized_circuit, prepared, solve
from circuitsim.arguments import QUANTITIES, checked, instance
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.circuit.source import analysis
from circuitsim.controlled.equations import parts, references
from circuitsim.engine.tree import spanning_forest
from circuitsim.errors import ConvergenceError, NoSteadyStateError, UsageError, look_up
from circuitsim.formats import OWN, Result, Table, plain, quantity
from circuitsim.netlist.deck import Deck, outputs_of, transfers_of
from circuitsim.small_signal.equations import (
    SmallSignalEquations,
    Solution,
    of_elements,
    small_signal_equations,
    solution_at,
)

if TYPE_CHECKING:
    from circuitsim.analysis.solve import Ready

ACCURATE = 1e-9
"""Largest relative residual of the transposed equations."""


class Weights(NamedTuple):
    """A quantity as a linear form in potentials and currents at the operating point.

    Attributes
    ----------
    potentials : (n_nodes,) float array
    currents : (m,) float array
        Of the elementary elements.
    """

    potentials: np.ndarray
    currents: np.ndarray


class Gradient(NamedTuple):
    """Derivatives of a quantity by the values of the elementary elements (m,), and the largest relative residual of
    the adjoint equations."""

    values: np.ndarray
    error: float


class SmallSignal:
    """The linearisation of an operating point of elementary elements.

    A change of an element's value acts like a source in it (`unit`): in series with voltage sources, shorts and
    controlled sources, in parallel to resistors and current sources.

    Parameters
    ----------
    point : OperatingPoint
        Of a circuit without devices and amplifiers.
    """

    def __init__(self, point: OperatingPoint) -> None:
        self.point, self.circuit = point, point.circuit
        self.kind, self.first, self.second, self.value, self.n_nodes = point.circuit.arrays()
        diode, resistor = self.kind == DIODE, self.kind == RESISTOR
        self.kinks = diode & point.kink
        self.conducting = diode & (point.currents > 0.0)
        """Diodes that become sources of 0 V; of the degenerate ones, those with a positive current."""
        short = resistor & (self.value == 0.0)
        self.ohmic = resistor & ~short
        self.held = (self.kind == VOLTAGE) | (self.kind == INDUCTOR) | short | self.conducting
        """Elements with a fixed voltage in the linearised circuit."""
        conductance = np.divide(1.0, self.value, out=np.zeros(self.kind.size), where=self.ohmic)
        self.unit = np.where(self.ohmic, -point.currents * conductance, np.where(short, point.currents, 1.0))
        """The source in each element, V or A, per unit of its value: of a controlled one with a gain, its control."""
        self.current_controls = list[tuple[int, int, float]]()
        """Controlled source, the element whose current controls it, the current's coefficient."""
        for k, law in self.circuit.laws.items():
            gain = 1.0 if np.isnan(self.value[k]) else float(self.value[k])
            self.current_controls += [(k, e, gain * c) for c, e in law.currents]
            drops = (c * (point.voltages[plus] - point.voltages[minus]) for c, plus, minus in law.voltages)
            control = sum(drops) + sum(c * point.currents[e] for c, e in law.currents)
            self.unit[k] = 0.0 if np.isnan(self.value[k]) else control

    # ------------------------------------------------------------------ adjoint
    @cached_property
    def _system(self) -> SmallSignalEquations:
        """The small-signal equations at s = 0."""
        inner = of_elements(self.circuit, self.circuit, self.conducting, capacitors=CURRENT)
        kind, first, second, value, n = inner.arrays
        held = np.flatnonzero(self.held)
        order = held[np.argsort(self.conducting[held], kind="stable")]
        # Currents in loops of elements with fixed voltages are not unique; no output depends on them.
        loops = held[~spanning_forest(n, first, second, np.zeros(1, int), order).inside[held]]
        kind[loops], value[loops] = CURRENT, 0.0
        return small_signal_equations(inner, {})

    @cached_property
    def _dual(self) -> Solution:
        """The factors of the transposed equations."""
        return solution_at(self._system.transposed())

    def floats(self, weights: Weights) -> bool:
        """Whether a quantity depends on the potential of a part that only blocking diodes connect to the rest."""
        label = parts(self._system.linear.arrays)
        loose = np.setdiff1d(self._system.eq.pinned, references(self.circuit.arrays()))
        return bool(np.bincount(label, weights.potentials)[label[loose]].any())

    def gradient(self, weights: Weights) -> Gradient:
        """The derivatives of a quantity, from one solution of the adjoint circuit.

        Raises
        ------
        ConvergenceError
            Its equations are singular, or the solution is not accurate.
        """
        system, potentials = self._system, weights.potentials.copy()
        own = system.eq.own
        inside, read = own >= 0, np.where(self.ohmic, weights.currents, 0.0)
        share = np.divide(read, self.value, out=np.zeros(read.size), where=self.ohmic)
        np.add.at(potentials, self.first, share)
        np.add.at(potentials, self.second, -share)
        right = np.zeros(system.eq.size)
        right[: self.n_nodes - 1] = potentials[1:]
        right[own[inside]] = (weights.currents - read)[inside]
        try:
            found, off = self._dual.of(right)
        except ArithmeticError:
            raise ConvergenceError("the tangents at the operating point have no unique solution") from None
        found, scale = found[:, 0], self._dual.scale[: right.size]
        largest = np.abs(found[0] / scale).max(initial=0.0) or 1.0
        error = float(np.abs(off / scale).max(initial=0.0) / largest)
        if not error <= ACCURATE:
            raise ConvergenceError(f"the adjoint equations are off by {error:.1e} of their scale")
        found[..., system.eq.pinned - 1] = 0.0  # a reference node has no equation
        # The current of the element itself changes, too.
        along = weights.currents - system.drops(found).sum(axis=0).astype(float)
        inward = np.zeros(self.kind.size)
        inward[inside] = found.sum(axis=0).astype(float)[own[inside]]
        for k, e, gain in self.current_controls:
            along[e] += inward[k] * gain
        parallel = self.ohmic | (self.kind == CURRENT)
        return Gradient(self.unit * np.where(parallel, along, inward) + 0.0, error)

    # ------------------------------------------------------------------ one direction
    def response(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of all potentials (n_nodes,) and branch currents (m,) in one direction, which decides the states
        of degenerate diodes.

        Parameters
        ----------
        values : (m,) float array
            Changes of element values (Ω, V, A, gains).

        Raises
        ------
        NoSteadyStateError
            There is no steady state in that direction.
        """
        circuit, column = self._incremental
        laws, m, change = dict(circuit.laws), self.kind.size, self.unit * values
        series, extra = np.where(self.ohmic, 0.0, change), np.where(self.ohmic, change, 0.0)
        for k, law in laws.items():
            laws[k] = law._replace(constant=series[k])
            series[k] = 0.0
        for k, e, share in self.current_controls:
            laws[k] = laws[k]._replace(constant=laws[k].constant + share * extra[e])
        value = column + np.append(series, extra)
        if laws:
            found = prepared(Circuit.from_arrays(*circuit.arrays()._replace(value=value), laws=laws)).solve()
        else:
            found = self._ready.solve(value)
        return found.voltages, found.currents[:m] + extra

    @cached_property
    def _incremental(self) -> tuple[Circuit, np.ndarray]:
        """The linearised circuit with ideal diodes where these are degenerate, and a 0 A source parallel to every
        element."""
        m = self.kind.size
        kind = np.where(self.kinks, DIODE, np.where(self.ohmic, RESISTOR, np.where(self.held, VOLTAGE, CURRENT)))
        value = np.where(self.kinks, np.nan, np.where(self.ohmic, self.value, 0.0))
        laws = {k: law._replace(constant=0.0) for k, law in self.circuit.laws.items()}
        for k in laws:
            kind[k], value[k] = self.kind[k], self.value[k]
        column = np.append(value, np.zeros(m))
        ends = np.tile(self.first, 2), np.tile(self.second, 2)
        return Circuit.from_arrays(np.append(kind, np.full(m, CURRENT)), *ends, column, self.n_nodes, laws=laws), column

    @cached_property
    def _ready(self) -> Ready:
        return prepared(self._incremental[0])


HEADER = "output, name, value, unit, derivative, per_percent, below, above, kink"
"""Columns of the table of derivatives."""

EQUAL = 1e-9
"""Largest relative difference of one-sided derivatives that count as equal."""


def two_sided(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """The derivatives; nan where the one-sided ones differ."""
    size = np.maximum(np.abs(below), np.abs(above))
    same = (below == above) | (np.abs(above - below) <= EQUAL * size)
    return np.where(same, 0.5 * (below + above), np.nan)


class Row(NamedTuple):
    """The derivative of one quantity by one parameter.

    Attributes
    ----------
    name : str
        Of the element, or ``D1.vfwd``.
    value : float
        The parameter at the operating point.
    unit : str
        Its unit.
    derivative : float
        In units of the quantity per unit of the parameter; nan where the one-sided ones differ.
    per_percent : float
        First-order change of the quantity for 1 % of the parameter: value · derivative / 100.
    below, above : float
        One-sided derivatives; nan on a side without a steady state.
    """

    name: str
    value: float
    unit: str
    derivative: float
    per_percent: float
    below: float
    above: float

    @property
    def kink(self) -> bool:
        """Whether the one-sided derivatives differ."""
        return bool(np.isnan(self.derivative))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, without the name; None for nan."""
        *names, below, above = self._fields[1:]
        found: dict[str, Any] = plain({name: getattr(self, name) for name in (*names, "kink", below, above)})
        return found


class Sensitivity(Result):
    """Derivatives of quantities at an operating point.

    Attributes
    ----------
    point : OperatingPoint
    outputs : tuple of str
        The quantities.
    values : (q,) float array
        Their values, V, A or W.
    units : tuple of str
    names : tuple of str
        Element values and device parameters.
    numbers : (p,) float array
        Their values.
    number_units : tuple of str
    below, above : (q, p) float arrays
        Derivatives towards smaller and larger parameters; equal except at degenerate points.
    derivative : (q, p) float array
        The derivatives; nan where the one-sided ones differ.
    error : float
        Largest relative residual of the equations that gave them.
    """

    PICTURE = "plot_sensitivity"

    def __init__(
        self,
        point: OperatingPoint,
        probes: Sequence[Probe],
        by: Sequence[DependsOn],
        values: np.ndarray,
        below: np.ndarray,
        above: np.ndarray,
        error: float,
    ) -> None:
        self.point, self.values, self.error = point, values, error
        self.outputs, self.units = tuple(map(str, probes)), tuple(probe.unit for probe in probes)
        self.names, self.number_units = tuple(row.name for row in by), tuple(row.unit for row in by)
        self.numbers = np.array([row.value for row in by])
        self.below, self.above = below, above
        self.derivative = two_sided(below, above)
        self._derivatives = self.derivative, below, above

    def __getitem__(self, key: tuple[str, str]) -> float:
        """``s["v(out)", "R1"]``: the derivative of an output by a parameter; nan where the one-sided ones differ."""
        q, p = (_place(self.outputs, key[0]), _place(self.names, key[1]))
        return float(self.derivative[q, p])

    def rows(self, output: str | int = 0) -> list[Row]:
        """The derivatives of one output, in descending order of the effect of 1 %."""
        q = output if isinstance(output, int) else _place(self.outputs, output)
        columns = self.names, self.numbers.tolist(), self.number_units, *(own[q].tolist() for own in self._derivatives)
        found = [
            Row(name, number, unit, slope, number * slope / 100.0, low, high)
            for name, number, unit, slope, low, high in zip(*columns)
        ]
        return sorted(found, key=_influence)

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the JSON object of ``circuitsim sensitivity --format json``."""
        outputs = {}
        for q, name in enumerate(self.outputs):
            rows = {row.name: row.to_dict() for row in self.rows(q)}
            outputs[name] = {"value": float(self.values[q]), "unit": self.units[q], "by": rows}
        return {
            "schema": 2,
            "title": self.point.circuit.title,
            "outputs": outputs,
            "error": self.error,
            "certificate": self.point.certificate.to_dict(),
        }

    def tables(self, top: int | None = None) -> dict[str, Table]:
        """``derivatives`` of each output (of those of largest effect, ``top``): name, value, unit, derivative,
        per_percent, below, above, kink.
        """
        rows = [(name, *row, row.kink) for q, name in enumerate(self.outputs) for row in self.rows(q)[:top]]
        return {"derivatives": Table.of(HEADER, rows, ("", "", OWN, *[""] * 6))}

    def _heading(self) -> tuple[str, str]:
        kinks = int(np.isnan(self.derivative).sum())
        flagged = f", {kinks} at kinks" if kinks else ""
        return self.point.circuit.title, f"{', '.join(self.outputs)} by {len(self.names)} numbers{flagged}"

    def _proof(self) -> str:
        return f"{super()._proof()}; equations of the derivatives within {self.error:.1e}"


@checked(source=instance("a circuit, a deck or an operating point", Circuit, OperatingPoint), outputs=QUANTITIES)
def sensitivity(
    source: Circuit | Deck | OperatingPoint, outputs: str | Sequence[str] = (), tolerance: float = TOLERANCE
) -> Sensitivity:
    """Derivatives of voltages, currents and powers by all element values and device parameters.

    Parameters
    ----------
    source : Circuit, Deck or OperatingPoint
        A circuit is solved first.
    outputs : str or sequence of str, optional
        Quantities: ``"v(out) v(a,b) i(R1) p(R1)"``; without them those of a deck's ``.sens``.
    tolerance : float
        As for `circuitsim.solve`.

    Returns
    -------
    Sensitivity
        Exact derivatives (adjoint method), not difference quotients. At a kink, where a diode has neither current nor
        voltage, both one-sided derivatives.

    Raises
    ------
    UsageError
        No such quantity; one whose value is not unique; a circuit with bidirectional amplifiers.
    NoSteadyStateError, ConvergenceError
        As `circuitsim.solve`.

    Examples
    --------
    >>> import circuitsim
    >>> deck = circuitsim.loads('''divider
    ... V1 in 0 10
    ... R1 in out 1k
    ... R2 out 0 3k
    ... ''')
    >>> s = circuitsim.sensitivity(deck, "v(out)")
    >>> round(s["v(out)", "V1"], 12), round(s["v(out)", "R1"] * 1e3, 12)
    (0.75, -1.875)
    """
    point = source if isinstance(source, OperatingPoint) else _solved(source, tolerance)
    if point.circuit.dynamics is not None:
        point.circuit.dynamics.check_changes(None)
    text = " ".join(outputs) or (outputs_of(source) if isinstance(source, Deck) else "")
    probes = [_linear(probe) for probe in parse_probes(text, point.circuit)]
    if not probes:
        raise UsageError("no output: name at least one, for instance v(out)")
    return derivatives(point, probes, dependencies(point))


def derivatives(point: OperatingPoint, probes: Sequence[Probe], by: Sequence[DependsOn]) -> Sensitivity:
    """The derivatives of ``probes`` by the parameters ``by``; see `sensitivity`."""
    near = SmallSignal(elementary_point(point))
    values, table, error = np.empty(len(probes)), np.empty((len(probes), len(by))), point.certificate.worst
    terms = [(p, *term) for p, row in enumerate(by) for term in row.by_value]
    place, column = np.array([term[:2] for term in terms], int).reshape(-1, 2).T
    amount = np.array([term[2] for term in terms])
    forms = [_weights(probe, point, near) for probe in probes]
    for q, (probe, (value, weights)) in enumerate(zip(probes, forms)):
        values[q] = value
        if near.floats(weights):
            raise UsageError(f"{probe} has no derivatives: its value is not unique at the operating point")
        found = near.gradient(weights)
        table[q] = np.bincount(place, amount * found.values[column], len(by))
        error = max(error, found.error)
    if not near.kinks.any():
        return Sensitivity(point, probes, by, values, table, table, error)
    below, above = (_one_sided(near, forms, by, sign) for sign in (-1.0, 1.0))
    return Sensitivity(point, probes, by, values, below, above, error)


def _one_sided(
    near: SmallSignal, forms: Sequence[tuple[float, Weights]], by: Sequence[DependsOn], sign: float
) -> np.ndarray:
    """The derivatives (q, p) towards smaller (−1) or larger (1) parameters."""
    table = np.full((len(forms), len(by)), np.nan)
    for p, row in enumerate(by):
        values = np.zeros(near.kind.size)
        for k, amount in row.by_value:
            values[k] = sign * amount
        try:
            potentials, currents = near.response(values)
        except NoSteadyStateError:
            continue  # no steady state on this side
        for q, (_, weights) in enumerate(forms):
            table[q, p] = sign * (weights.potentials @ potentials + weights.currents @ currents)
    return table


def _weights(probe: Probe, point: OperatingPoint, near: SmallSignal) -> tuple[float, Weights]:
    """Value and linear form of a quantity."""
    weights = Weights(np.zeros(near.n_nodes), np.zeros(near.kind.size))
    circuit = point.circuit
    if probe.kind == "v":
        plus = circuit.node_index(probe.first)
        minus = None if probe.second is None else circuit.node_index(probe.second)
        weights.potentials[plus] += 1.0
        if minus is not None:
            weights.potentials[minus] -= 1.0
        return float(point.voltages[plus] - (0.0 if minus is None else point.voltages[minus])), weights
    k = circuit.element_index(probe.first)
    if not point.unique[k]:
        raise UsageError(f"{probe} has no derivatives: the current is not unique at the operating point")
    current, drop = float(point.currents[k]), float(point.drops[k])
    share = 1.0 if probe.kind == "i" else drop
    for e, sign in expanded(circuit).carriers.get(k, [(k, 1.0)]):
        weights.currents[e] += share * sign
    if probe.kind == "p":
        first, second = circuit.arrays().first[k], circuit.arrays().second[k]
        weights.potentials[first] += current
        weights.potentials[second] -= current
        return current * drop, weights
    return current, weights


def _linear(probe: Probe | Formula) -> Probe:
    if isinstance(probe, Formula) or probe.kind not in ("v", "i", "p"):
        raise UsageError(f"{probe}: sensitivities exist for v(node), v(a,b), i(element) and p(element)")
    return probe


def _solved(source: Circuit | Deck, tolerance: float) -> OperatingPoint:
    return solve(linearized_circuit(source, tolerance), tolerance=tolerance)


def _place(names: Sequence[str], name: str) -> int:
    """Position of a name."""
    return look_up(name, {own: k for k, own in enumerate(names)}, "result")


def _influence(row: Row) -> tuple[float, float, str]:
    """Sort key: descending effect of 1 %, then descending derivative."""
    steepest = np.nanmax([abs(row.below), abs(row.above), 0.0])
    return -abs(row.value) * steepest, -steepest, row.name


TEST = "i_output_test"
"""Name of the 0 A source across the output; with underscores appended where the circuit has the name."""


class TwoSided(NamedTuple):
    """A value at an operating point; at a degenerate point its values towards smaller and larger sources."""

    below: float
    above: float

    @property
    def value(self) -> float:
        """The number; nan at a kink."""
        return float(two_sided(*np.array(self)))

    @property
    def kink(self) -> bool:
        """Whether the sides differ."""
        return self.value != self.value


@dataclass(frozen=True, eq=False, repr=False)
class Transfer(Result):
    """The linear two-port of a circuit for small changes of one source.

    Attributes
    ----------
    output, source : str
    gain : TwoSided
        Derivative of the output by the source.
    gain_unit : str
    input_resistance : TwoSided
        Driving-point resistance at the source, Ω; infinite where its current does not change.
    output_resistance : TwoSided
        Driving-point resistance at the output, all sources at constant values, Ω; at a degenerate point ``below`` for a
        current into the output's first node, ``above`` for a current drawn from it (of an output current: for a smaller
        and a larger voltage of its source).
    point : OperatingPoint
    """

    output: str
    source: str
    gain: TwoSided
    gain_unit: str
    input_resistance: TwoSided
    output_resistance: TwoSided
    point: OperatingPoint

    def to_dict(self) -> dict[str, Any]:
        """As plain values; None where infinite, or at a kink."""
        found: dict[str, Any] = {"output": self.output, "source": self.source, "gain_unit": self.gain_unit}
        for name, number, _ in self.numbers:
            sides = {key: getattr(number, key) for key in ("value", "kink", "below", "above")}
            found[name.replace(" ", "_")] = plain(sides)
        return found

    @property
    def numbers(self) -> list[tuple[str, TwoSided, str]]:
        """Names, numbers and units."""
        return [
            ("gain", self.gain, self.gain_unit),
            ("input resistance", self.input_resistance, "Ω"),
            ("output resistance", self.output_resistance, "Ω"),
        ]

    def tables(self) -> dict[str, Table]:
        """``transfer``: gain, input resistance and output resistance with value, unit, below, above."""
        rows = [(name, number.value, unit, *number) for name, number, unit in self.numbers]
        return {"transfer": Table.of("quantity, value, unit, below, above", rows, ("", OWN, "", OWN, OWN), True)}

    def _figure(self) -> Any:
        return self.point.draw().figure()

    def _heading(self) -> tuple[str, str]:
        numbers = [f"{name} {quantity(number.value, unit)}" for name, number, unit in self.numbers]
        return self.point.circuit.title, f"{self.output} by {self.source}, {', '.join(numbers)}"


@analysis()
def transfer_function(
    source: Circuit | Deck, output: str | None = None, input_source: str | None = None, tolerance: float = TOLERANCE
) -> Transfer:
    """Gain, input and output resistance for small changes of a source, as ``.tf`` has them.

    Parameters
    ----------
    source : Circuit or Deck
    output : str, optional
        ``v(out)``, ``v(a,b)`` or ``i(V2)``, the current of a voltage source.
    input_source : str, optional
        An independent source. Without output and source those of a deck's ``.tf`` card.
    tolerance : float
        As for `circuitsim.solve`.

    Raises
    ------
    UsageError
        Another output; no such source; neither, and no ``.tf`` card or several.

    Examples
    --------
    >>> import circuitsim
    >>> deck = circuitsim.loads('''divider
    ... V1 in 0 10
    ... R1 in out 1k
    ... R2 out 0 3k
    ... ''')
    >>> tf = circuitsim.transfer_function(deck, "v(out)", "V1")
    >>> tf.gain.value, round(tf.input_resistance.value, 6), round(tf.output_resistance.value, 6)
    (0.75, 4000.0, 750.0)
    """
    if output is None or input_source is None:
        stated = transfers_of(source) if isinstance(source, Deck) else []
        if len(stated) != 1 or output is not input_source:
            raise UsageError("a transfer function needs an output and a source, for instance v(out) and V1")
        [(output, input_source)] = stated
    circuit = linearized_circuit(source, tolerance, [input_source])
    probe, k = output_and_input(circuit, output, input_source)
    held, of_current = circuit.arrays().kind[k] == VOLTAGE, probe.kind == "i"
    at_input = Probe("i", circuit.names[k]) if held else Probe("v", circuit[k].first, circuit[k].second)
    # What varies is the input, and the output's source, or one of 0 A out of the output's first node.
    tested, name = circuit, probe.first if of_current else TEST
    if not of_current:
        while name in circuit:
            name += "_"
        tested = circuit.with_values({})
        tested.current_source(name, probe.first, probe.second or "0", 0.0)
    varied = (k, "V" if held else "A"), (tested.element_index(name), "V" if of_current else "A")
    value, names = tested.arrays().value, tested.names
    by = [DependsOn(names[at], float(value[at]), unit, ((at, 1.0),)) for at, unit in varied]
    point = solve(tested, tolerance=tolerance)
    found = derivatives(point, [probe, at_input], by)
    gain = TwoSided(float(found.below[0, 0]), float(found.above[0, 0]))
    resistances = _resistance(found, 1, 0, held), _resistance(found, 0, 1, of_current)
    return Transfer(str(probe), circuit.names[k], gain, f"{probe.unit}/{by[0].unit}", *resistances, found.point)


def output_and_input(circuit: Circuit, output: str, input_source: str) -> tuple[Probe, int]:
    """The arguments of ``.tf``: the output, and the position of the input source.

    Raises
    ------
    UsageError
        Another output than a voltage or the current of a voltage source; no such source.
    """
    probe = parse_probe(output, circuit, f"{output!r}: a transfer function has one output, for instance v(out)")
    k = circuit.element_index(input_source)
    if circuit.arrays().kind[k] not in (VOLTAGE, CURRENT):
        raise UsageError(f"{circuit.names[k]} is a {circuit[k].kind}: the input must be an independent source")
    if not isinstance(probe, Probe) or not _readable(probe, circuit):
        raise UsageError(f"{probe}: the output is v(node), v(a,b), or i(V2) of a voltage source")
    return probe, k


def _readable(probe: Probe, circuit: Circuit) -> bool:
    if probe.kind == "v":
        return True
    return probe.kind == "i" and circuit.arrays().kind[circuit.element_index(probe.first)] == VOLTAGE


def _resistance(found: Sensitivity, output: int, by: int, held: bool) -> TwoSided:
    """−dv/di at a source: a voltage source is varied and its current read, or vice versa."""
    sides = []
    for table in (found.below, found.above):
        slope = -float(table[output, by])
        sides.append(slope + 0.0 if not held else (1.0 / slope if slope else float("inf")))
    return TwoSided(*sides)


__all__ = [
    "Gradient",
    "Row",
    "Sensitivity",
    "SmallSignal",
    "Transfer",
    "TwoSided",
    "Weights",
    "derivatives",
    "sensitivity",
    "transfer_function",
]
