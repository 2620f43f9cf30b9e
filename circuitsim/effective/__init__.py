"""A linear circuit as a matrix, outputs = matrix · inputs + offset, with error bounds and derivatives
(`effective_matrix`), and crossbars with wire resistance (`CrossbarLayer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csc_array, hstack

from circuitsim.analysis.probes import FORMS, Probe, parse_probe
from circuitsim.analysis.solve import solve
from circuitsim.arguments import NAMES, number, pair, sequence
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.source import analysis
from circuitsim.engine.port_network import EPSILON, PortNetwork, independent_sources
from circuitsim.errors import ConvergenceError, TopologyError, UsageError
from circuitsim.formats import Result, Table
from circuitsim.kernels import keep_memory
from circuitsim.points import processors
from circuitsim.program.structure import Structure, analyse

Output = str | tuple[str, str]

T = TypeVar("T")

GROUP = 32
"""Minimum number of ports that share an error bound; each group costs one solve."""


class _Sides(NamedTuple):
    """Inputs and outputs as combinations of ports.

    Attributes
    ----------
    inputs : (ports, k + 1) sparse float array
        One column per input, then one for the values of all other sources, V, A, together.
    outputs : (ports, q) sparse float array
        One column per output: 1, or −1 for currents (SPICE signs).
    """

    inputs: csc_array
    outputs: csc_array

    @property
    def by_outputs(self) -> bool:
        """Whether responses to the outputs are computed, because they are fewer."""
        return bool(self.outputs.shape[1] <= self.inputs.shape[1])

    @property
    def near_and_far(self) -> tuple[csc_array, csc_array]:
        """The driven side and the read side."""
        return self[::-1] if self.by_outputs else self[:]

    @classmethod
    def of(cls, network: PortNetwork, inputs: csc_array, outputs: csc_array) -> _Sides:
        """Inputs (ports, k) with a column for the network's other sources."""
        constant = np.zeros(network.n_ports)
        constant[: network.sources.size] = network.arrays.value[network.sources]
        constant[inputs.indices] = 0.0
        return cls(hstack([inputs, csc_array(constant[:, None])], format="csc"), outputs)


@dataclass(frozen=True, eq=False, repr=False)
class EffectiveMatrix(Result):
    """A linear circuit between its inputs and outputs, from `effective_matrix`.

    Calling it with input values (samples, k) gives outputs (samples, q) by one matrix product.

    Attributes
    ----------
    circuit : Circuit
    inputs : tuple of str
        Sources, V or A.
    outputs : tuple of str
        What is read: ``v(a,b)``, V, or ``i(V1)``, A, in SPICE sign (into the source at its + terminal).
    matrix : (q, k) float array
        ∂output/∂input: S for currents from voltages, Ω for voltages from currents, else without unit.
    offset : (q,) float array
        Outputs with all inputs at zero, V or A: what the other sources cause.
    error : (q, k + 1) float array
        Bound on the error of each entry of matrix and offset.
    relative_error : float
        The largest of these bounds as a fraction of the largest entry of its row, or of its column where the inputs are
        fewer than the outputs (voltages of opposite sign that cancel counted by magnitude); within the tolerance.
    tolerance : float
    """

    PICTURE = "plot_matrix"

    circuit: Circuit
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    matrix: np.ndarray
    offset: np.ndarray
    error: np.ndarray
    relative_error: float
    tolerance: float
    _network: PortNetwork
    _sides: _Sides

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Outputs (samples, q), V or A, for input values (samples, k), V or A; one sample may be a vector.

        Raises
        ------
        UsageError
            Values of the wrong width, or non-finite outputs.
        """
        values = np.asarray(values)
        if values.ndim not in (1, 2) or values.shape[-1] != len(self.inputs):
            raise UsageError(f"{len(self.inputs)} input values a sample are needed, not an array of {values.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            found: np.ndarray = values @ self.matrix.T + self.offset
        if not np.isfinite(found).all():
            raise UsageError("outputs are not finite: the input values are nan or too large")
        return found

    def tables(self) -> dict[str, Table]:
        """``matrix``: a row per output, a column per input, and the offset."""
        header = ("output", *self.inputs, "offset")
        return {"matrix": Table(header, ("",) * len(header), (list(self.outputs), *self.matrix.T, self.offset), True)}

    def _heading(self) -> tuple[str, str]:
        q, k = self.matrix.shape
        return self.circuit.title, f"{q} × {k}, {self._proof()}"

    def _proof(self) -> str:
        return f"relative error ≤ {self.relative_error:.1e}"

    def at(self, values: np.ndarray | Mapping[str, float]) -> EffectiveMatrix:
        """The matrix at other element values: all (m,), Ω, V, A, or some by name. The analysis is shared.

        Raises
        ------
        TopologyError
            Values out of range; a resistance that becomes zero or nonzero.
        """
        circuit = self.circuit
        changed = circuit.with_values(circuit.changes(values))
        own, arrays = circuit.arrays(), changed.arrays()
        if ((own.value == 0.0) != (arrays.value == 0.0))[own.kind == RESISTOR].any():
            raise TopologyError("resistances must stay positive (or zero): make a new effective_matrix")
        network = replace(self._network, arrays=arrays)
        sides = _Sides.of(network, self._sides.inputs[:, :-1], self._sides.outputs)
        return _found(changed, self.inputs, self.outputs, network, sides, self.tolerance)

    def vjp(self, cotangent: np.ndarray, offset_cotangent: np.ndarray | None = None) -> np.ndarray:
        """Derivatives of a loss with respect to all conductances, from those with respect to the matrix.

        Parameters
        ----------
        cotangent : (q, k) float array
            ∂loss/∂matrix. For outputs y of samples x: ``cotangent = (∂loss/∂y).T @ x``.
        offset_cotangent : (q,) float array, optional
            ∂loss/∂offset: ``(∂loss/∂y).sum(0)``.

        Returns
        -------
        (m,) float array
            ∂loss/∂g of each resistor, in units of the loss per S; 0 for all other elements and for shorts.

        Raises
        ------
        UsageError
            Arrays of other shapes.

        Notes
        -----
        ∂matrix/∂g = ± Δv_o Δv_i for the drops of the resistor at a unit drive of output and input (Cohn 1950): twice as
        many solves as the matrix took, whatever the number of resistors.
        """
        q, k = self.matrix.shape
        outer = np.zeros(q) if offset_cotangent is None else np.asarray(offset_cotangent, dtype=np.float64)
        cotangent = np.asarray(cotangent, dtype=np.float64)
        if cotangent.shape != (q, k) or outer.shape != (q,):
            have = f"{cotangent.shape} and {outer.shape}"
            raise UsageError(f"cotangents of shape {(q, k)} and {(q,)} are needed, not {have}")
        full = np.concatenate([cotangent, outer[:, None]], axis=1)
        network, (near, far) = self._network, self._sides.near_and_far
        weight = np.ascontiguousarray(full.T if self._sides.by_outputs else full)

        def part(columns: slice) -> np.ndarray:
            one = network.respond(near[:, columns].toarray())
            return network.products(one, network.respond(far @ weight[:, columns]))

        gradient = np.zeros(len(self.circuit))
        for found in _side_by_side(part, near.shape[1], network.width):
            gradient[network.resistors] += found
        return gradient


@analysis(
    inputs=NAMES,
    outputs=sequence(
        lambda what, one: one if isinstance(one, str) else pair(what, one), "'out', 'i(V1)', or a list of such", str
    ),
)
def effective_matrix(
    circuit: Circuit, inputs: Sequence[str], outputs: Sequence[Output], tolerance: float = TOLERANCE
) -> EffectiveMatrix:
    """A linear circuit as a matrix, from one factor of its nodal matrix and as few solves as it has inputs or outputs.

    Parameters
    ----------
    circuit : Circuit
        Of resistors and independent sources (inductors: shorts, capacitors: open).
    inputs : sequence of str
        Voltage and current sources, each once; a name alone is one input.
    outputs : sequence of str or (str, str)
        Nodes, pairs of nodes, ``v(a,b)``, or currents of voltage sources, ``i(V1)``.
    tolerance : float
        Largest error of an entry as a fraction of the largest entry of its row (column, where inputs are fewer).

    Returns
    -------
    EffectiveMatrix

    Raises
    ------
    TopologyError
        An element that is not linear, unknown names, loops of voltage sources, nodes without a path to ground.
    UsageError
        Inputs that are not sources, or are repeated; outputs that are neither voltages nor currents of voltage sources.
    ConvergenceError
        The bounds on errors exceed the tolerance: `circuitsim.prepared` solves such circuits one input at a time.

    Examples
    --------
    >>> from circuitsim import effective_matrix, loads
    >>> divider = loads('''divider
    ... V1 in 0 1
    ... I1 0 out 0
    ... R1 in out 1k
    ... R2 out 0 3k
    ... ''')
    >>> effective_matrix(divider, ["V1", "I1"], ["out", "i(V1)"]).matrix.round(6)
    array([[ 7.5e-01,  7.5e+02],
           [-2.5e-04,  7.5e-01]])
    """
    structure = _linear(circuit)
    arrays = structure.arrays
    sources = independent_sources(arrays)
    port = dict(zip(sources.tolist(), range(sources.size)))
    driven = list[int]()
    for name in inputs:
        k = circuit.element_index(name)
        if k not in port:
            raise UsageError(f"{circuit.names[k]} is not a source: inputs are voltage or current sources")
        if port[k] in driven:
            raise UsageError(f"{circuit.names[k]} is an input twice: a source has one value")
        driven.append(port[k])
    probes = [_probe(output, circuit) for output in outputs]
    if not driven or not probes:
        raise UsageError("a matrix needs at least one input and one output")
    volts = [p for p in probes if p.kind == "v"]
    pairs = [(circuit.node_index(p.first), 0 if p.second is None else circuit.node_index(p.second)) for p in volts]
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    network = PortNetwork(structure, arrays, sources, ends)
    pair = iter(range(sources.size, network.n_ports))
    read = []
    for probe in probes:
        place = next(pair) if probe.kind == "v" else port.get(circuit.element_index(probe.first), -1)
        if place < 0 or (probe.kind == "i" and not network.is_voltage[place]):
            raise UsageError(
                f"{probe}: currents are read from voltage sources; read the voltage of a resistor, or put a source of "
                "0 V in series"
            )
        read.append(place)
    signs = [1.0 if p.kind == "v" else -1.0 for p in probes]
    columns = (
        csc_array((entries, (ports, range(len(ports)))), shape=(network.n_ports, len(ports)))
        for entries, ports in ((np.ones(len(driven)), driven), (signs, read))
    )
    sides = _Sides.of(network, *columns)
    names = tuple(circuit.names[k] for k in sources[driven].tolist())
    return _found(circuit, names, tuple(map(str, probes)), network, sides, tolerance)


def _linear(circuit: Circuit) -> Structure:
    """The structure of a linear circuit, or an error that names the cause."""
    named = [circuit.names[k] for k in np.flatnonzero(circuit.arrays().kind == DIODE).tolist()[:3]]
    if named or circuit.devices or circuit.laws or circuit.amplified:
        what = f"diodes ({', '.join(named)})" if named else "devices, amplifiers or controlled sources"
        raise TopologyError(f"an effective matrix needs a circuit of resistors and independent sources, without {what}")
    structure = analyse(circuit)
    if structure.forest.closing.size:
        k = int(structure.forest.closing[0])
        raise TopologyError(f"{circuit.names[k]} closes a loop of voltage sources and shorts: no unique current")
    islands = structure.islands[structure.coordinate]
    apart = np.flatnonzero(islands != islands[0])
    apart = structure.references if structure.references.size else apart
    if apart.size:
        name = circuit.node_names[int(apart[0])]
        raise TopologyError(f"no path of resistors and voltage sources leads from node {name} to ground")
    return structure


def _probe(output: Output, circuit: Circuit) -> Probe:
    """The probe of an output."""
    if not isinstance(output, str):
        first, second = output
        return Probe("v", *(circuit.node_names[circuit.node_index(name)] for name in (first, second)))
    refused = f"{output!r} is not an output of a matrix; {FORMS.split(', p(')[0]}"
    found: Probe = parse_probe(output, circuit, refused, ("v", "i"))
    return found


def _found(
    circuit: Circuit,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    network: PortNetwork,
    sides: _Sides,
    tolerance: float,
) -> EffectiveMatrix:
    """The matrix, from responses to the outputs or to the inputs, whichever are fewer."""
    by_outputs, (near, far) = sides.by_outputs, sides.near_and_far
    # Ports share error bounds, but the constant sources have their own.
    ports = far.shape[1] - by_outputs
    count = max(1, min(near.shape[1] // 8, ports // GROUP))
    group = np.append(np.arange(ports) * count // ports, np.full(int(by_outputs), count))
    shares = abs(far) @ (group[:, None] == np.arange(group[-1] + 1))
    keep_memory()
    weight = network.weights(shares)

    def part(columns: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        reading = network.read(network.respond(near[:, columns].toarray()), weight)
        magnitude = abs(far).T @ reading.size
        return far.T @ reading.value, 16.0 * EPSILON * magnitude + reading.bound[group], magnitude

    parts = _side_by_side(part, near.shape[1], network.width)
    entry, bound, size = (np.concatenate(columns, axis=1) for columns in zip(*parts))
    # The constant sources are one more input: their column has its own scale.
    scale = np.empty_like(bound)
    if by_outputs:
        scale[:-1], scale[-1] = size[:-1].max(axis=0), size[-1]
    else:
        scale[:] = size.max(axis=0)
    worst = float(np.divide(bound, scale, out=np.where(bound > 0.0, np.inf, 0.0), where=scale > 0.0).max())
    if not worst <= tolerance:
        raise ConvergenceError(
            f"an entry of the matrix is off by {worst:.1e} (tolerance {tolerance:.0e}): solve the circuit input "
            "by input with circuitsim.prepared, or use a larger tolerance"
        )
    if by_outputs:
        entry, bound = entry.T, bound.T
    matrix, offset = np.ascontiguousarray(entry[:, :-1]), np.ascontiguousarray(entry[:, -1])
    return EffectiveMatrix(circuit, inputs, outputs, matrix, offset, bound, worst, tolerance, network, sides)


def _side_by_side(part: Callable[[slice], T], count: int, width: int) -> Iterator[T]:
    """Results of ``part`` for ranges of ``width`` columns, in order, in parallel on all CPUs."""
    ranges = [slice(k, min(k + width, count)) for k in range(0, count, width)]
    if len(ranges) == 1:
        return iter([part(ranges[0])])
    with ThreadPoolExecutor(processors()) as pool:
        return iter(list(pool.map(part, ranges)))


class WireVoltages(NamedTuple):
    """Potentials along the wires of a crossbar at one input.

    Attributes
    ----------
    word_lines, bit_lines : (rows, columns) float arrays
        Potentials at both ends of each device, V.
    inputs : (rows,) float array
        Voltages at the word lines' sources, V.
    """

    word_lines: np.ndarray
    bit_lines: np.ndarray
    inputs: np.ndarray

    @property
    def loss(self) -> np.ndarray:
        """(rows, columns) fraction of the input voltage lost at each device; nan in rows without input."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return 1.0 - (self.word_lines - self.bit_lines) / self.inputs[:, None]


class Gradient(NamedTuple):
    """Derivatives of a loss.

    Attributes
    ----------
    conductance : (rows, columns) float array
        With respect to the devices, 1/S.
    inputs : (samples, rows) float array
        With respect to the input voltages, 1/V.
    """

    conductance: np.ndarray
    inputs: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class CrossbarLayer:
    """A passive crossbar: sources at the left ends of the word lines, bit lines held at 0 V at their lower ends.

    A device connects word line and bit line at each crossing. Every wire segment between two crossings has a
    resistance, as do those between source and first column and between last row and ground.

    Parameters
    ----------
    conductance : (rows, columns) array
        Of the devices, S, all positive.
    word_wire, bit_wire : float
        Resistance of a segment of word line (bit line), Ω; 0 for ideal wires.
    source, sense : float
        Resistance in series with each source, and between each bit line and its virtual ground, Ω.
    tolerance : float
        See `circuitsim.effective_matrix`.

    Raises
    ------
    UsageError
        Conductances that are not a matrix of positive, finite values; negative resistances.

    Examples
    --------
    >>> import numpy as np
    >>> from circuitsim import CrossbarLayer
    >>> layer = CrossbarLayer(np.full((3, 2), 1e-3), word_wire=10.0, bit_wire=10.0)
    >>> layer(np.array([1.0, 0.5, 0.2])).round(7)
    array([0.0015835, 0.0015686])
    >>> layer.ideal(np.array([1.0, 0.5, 0.2]))
    array([0.0017, 0.0017])
    """

    conductance: np.ndarray
    word_wire: float = 1.0
    bit_wire: float = 1.0
    source: float = 0.0
    sense: float = 0.0
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        try:
            g = np.array(self.conductance, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            g = np.zeros(0)
        if g.ndim != 2 or not g.size or not (np.isfinite(g) & (g > 0.0)).all():
            raise UsageError("the conductances of a crossbar are a matrix (rows, columns) of positive values, S")
        for ohms in ("word_wire", "bit_wire", "source", "sense"):
            object.__setattr__(self, ohms, number(0)(ohms, getattr(self, ohms)))
        g.flags.writeable = False
        object.__setattr__(self, "conductance", g)

    def __repr__(self) -> str:
        rows, columns = self.conductance.shape
        return f"CrossbarLayer({rows} × {columns}, wires {self.word_wire:g} and {self.bit_wire:g} Ω)"

    # ------------------------------------------------------------------ circuit
    @cached_property
    def circuit(self) -> Circuit:
        """The circuit: sources ``V1`` … of the rows, ``Vsense1`` … of the columns, devices, then wires."""
        rows, columns = self.conductance.shape
        crossing = np.arange(rows * columns).reshape(rows, columns)
        word, bit = 1 + crossing, 1 + rows * columns + crossing
        driven = 1 + 2 * rows * columns + np.arange(rows)
        held = driven[-1] + 1 + np.arange(columns)
        ground = np.zeros(rows + columns, dtype=np.int64)
        first = [driven, held, word.ravel(), driven, word[:, :-1].ravel(), bit[:-1].ravel(), bit[-1]]
        second = [ground, bit.ravel(), word[:, 0], word[:, 1:].ravel(), bit[1:].ravel(), held]
        pieces = [
            np.full(rows, self.word_wire + self.source),
            np.full(rows * (columns - 1), self.word_wire),
            np.full((rows - 1) * columns, self.bit_wire),
            np.full(columns, self.bit_wire + self.sense),
        ]
        value = np.concatenate([ground.astype(float), 1.0 / self.conductance.ravel(), *pieces])
        kind = np.full(value.size, RESISTOR)
        kind[: rows + columns] = VOLTAGE
        wires = value.size - rows - columns - rows * columns
        names = [f"V{k + 1}" for k in range(rows)] + [f"Vsense{k + 1}" for k in range(columns)]
        names += [f"R{j + 1}_{k + 1}" for j in range(rows) for k in range(columns)]
        names += [f"Rw{k + 1}" for k in range(wires)]
        return Circuit.from_arrays(
            kind,
            np.concatenate(first),
            np.concatenate(second),
            value,
            int(held[-1]) + 1,
            f"crossbar {rows} x {columns}",
            names,
        )

    @cached_property
    def effective(self) -> EffectiveMatrix:
        """The crossbar as a matrix (columns, rows), S, with error bounds; computed once."""
        rows, columns = self.conductance.shape
        inputs = [f"V{k + 1}" for k in range(rows)]
        return effective_matrix(self.circuit, inputs, [f"i(Vsense{k + 1})" for k in range(columns)], self.tolerance)

    @property
    def matrix(self) -> np.ndarray:
        """(columns, rows) transfer conductances, S; ``conductance.T`` with ideal wires."""
        return self.effective.matrix

    def at(self, conductance: np.ndarray) -> CrossbarLayer:
        """The same crossbar with other devices (rows, columns), S; the analysis of the circuit is shared.

        Raises
        ------
        UsageError
            Conductances of the wrong shape or out of range.
        """
        other = CrossbarLayer(conductance, self.word_wire, self.bit_wire, self.source, self.sense, self.tolerance)
        if other.conductance.shape != self.conductance.shape:
            raise UsageError(f"conductances of shape {self.conductance.shape} are needed, not {np.shape(conductance)}")
        value = self.circuit.arrays().value.copy()
        value[self._devices] = 1.0 / other.conductance.ravel()
        matrix = self.effective.at(value)
        other.__dict__.update(effective=matrix, circuit=matrix.circuit)
        return other

    @property
    def _devices(self) -> slice:
        rows, columns = self.conductance.shape
        return slice(rows + columns, rows + columns + rows * columns)

    # ------------------------------------------------------------------ values
    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Currents out of the bit lines (samples, columns), A, for word line voltages (samples, rows), V."""
        return self.effective(x)

    def ideal(self, x: np.ndarray) -> np.ndarray:
        """Currents without resistance of wires, sources and sensing, A."""
        found: np.ndarray = np.asarray(x) @ self.conductance
        return found

    def gradient(self, x: np.ndarray, cotangent: np.ndarray) -> Gradient:
        """Derivatives of a loss, from its derivatives with respect to the currents.

        Parameters
        ----------
        x : (samples, rows) float array
            Voltages, V.
        cotangent : (samples, columns) float array
            ∂loss/∂current, 1/A.

        Raises
        ------
        UsageError
            Arrays of wrong shapes or different numbers of samples.
        """
        matrix = self.effective
        x, cotangent = np.asarray(x, dtype=np.float64), np.asarray(cotangent, dtype=np.float64)
        if x.ndim != 2 or cotangent.ndim != 2 or len(x) != len(cotangent):
            have = f"{x.shape} and {cotangent.shape}"
            raise UsageError(f"samples (n, rows) and derivatives (n, columns) of one length are needed, not {have}")
        found = matrix.vjp(cotangent.T @ x)[self._devices]
        return Gradient(found.reshape(self.conductance.shape), cotangent @ matrix.matrix)

    def voltages(self, x: np.ndarray) -> WireVoltages:
        """Potentials along the wires at one input (rows,), V, from the certified operating point.

        Raises
        ------
        UsageError
            An input of another length.
        """
        rows, columns = self.conductance.shape
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (rows,):
            raise UsageError(f"one input of {rows} voltages is needed, not an array of shape {x.shape}")
        value = self.circuit.arrays().value.copy()
        value[:rows] = x
        v = solve(self.circuit.with_column(value), tolerance=self.tolerance).voltages
        word, bit = v[1 : 1 + 2 * rows * columns].reshape(2, rows, columns)
        return WireVoltages(word, bit, x)


__all__ = ["CrossbarLayer", "EffectiveMatrix", "effective_matrix"]
