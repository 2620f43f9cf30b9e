"""Batches of samples of one circuit: sources change, the structure does not.

Samples differ only in right-hand sides: source values, currents injected at the outputs. Resistances are common to a
batch. Each sample is an operating point of the circuit with its nudges as elements, solved and certified like any
other; samples of large circuits without diodes are columns of one linear solve.

Source values and operating points of samples are arrays with a row each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.collapse import proof
from circuitsim.analysis.controlled import PreparedControlled, prepared_controlled
from circuitsim.analysis.convex import LazyOperatingPoint, Prepared, SmallCircuitSolver
from circuitsim.analysis.newton import Found, SmallNewton, Smooth, attempts, smooth_devices
from circuitsim.analysis.smooth_controlled import SmoothControlled
from circuitsim.analysis.solve import prepared
from circuitsim.certificate import certify
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import Expansion, same_shape
from circuitsim.engine.port_network import PortNetwork, independent_sources
from circuitsim.errors import CircuitError, NoEnergyError, TopologyError, UnboundedError, UsageError, some
from circuitsim.kernels import keep_memory
from circuitsim.newton.steps import OPEN
from circuitsim.points import processors


def samples_of(
    own: np.ndarray, outputs: int, values: np.ndarray | None, injected: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Values of the inputs (samples, k), by default their ``own``, and currents into the outputs (samples, q), A, by
    default none.

    Raises
    ------
    TopologyError
        Arrays of wrong shapes, or numbers that are not finite.
    """
    k = own.size
    count = len(values) if values is not None else 1 if injected is None else len(injected)
    values = np.asarray(np.broadcast_to(own, (count, k)) if values is None else values, dtype=float)
    injected = np.zeros((count, outputs)) if injected is None else np.asarray(injected, dtype=float)
    if values.shape != (count, k) or injected.shape != (count, outputs):
        raise TopologyError(
            f"a batch needs values of shape (samples, {k}) and injected currents of shape (samples, {outputs}), not "
            f"{values.shape} and {injected.shape}"
        )
    if not (np.isfinite(values).all() and np.isfinite(injected).all()):
        raise TopologyError("the values of a batch must be finite")
    return values, injected


@dataclass(frozen=True, eq=False, repr=False)
class BatchSolution:
    """Operating points of many samples, one row each.

    Attributes
    ----------
    voltages : (samples, n_nodes) float array
        Node voltages, V.
    currents : (samples, m) float array
        Branch currents in SPICE signs, A.
    closed : (samples, d) bool array
        Diodes (in the order of the circuit) that conduct: a set without loops.
    relative : (samples,) float array
        Largest relative residual of the circuit's equations on local scales (`circuitsim.certificate`), nudges
        included.
    certified : (samples,) bool array
        Whether that is within the tolerance.
    output : (samples, outputs) float array
        Voltage between the two nodes of each output pair, V.
    iterations : (samples,) int array
        Linear circuits solved; 0 where the engine was needed.
    stiffness : float
        Conductance across the outputs while these were solved, S.
    elementary : BatchSolution or None
        With devices: that of their elementary elements, whose ideal diodes ``closed`` refers to; currents of devices
        are those at the first terminal.
    """

    circuit: Circuit
    voltages: np.ndarray
    currents: np.ndarray
    closed: np.ndarray
    relative: np.ndarray
    certified: np.ndarray
    output: np.ndarray
    iterations: np.ndarray
    stiffness: float
    elementary: BatchSolution | None = None

    def __getitem__(self, node: str) -> np.ndarray:
        """Voltages of a node, V (samples,)."""
        return self.voltages[:, self.circuit.node_index(node)]

    def current(self, name: str) -> np.ndarray:
        """Currents of an element, A (samples,)."""
        return self.currents[:, self.circuit.element_index(name)]

    def __len__(self) -> int:
        return len(self.voltages)

    def __repr__(self) -> str:
        return (
            f"BatchSolution of {self.circuit.title!r}: {len(self)} samples, {int(self.certified.sum())} certified, "
            f"worst relative violation {self.relative.max(initial=0.0):.1e}"
        )


BLOCK = 16
"""Number of samples in one task: each but the first starts from the previous one; columns of one substitution."""

SHARE = 5_000
"""Minimum number of node-samples per thread; starting a thread takes as long as 2,000 of them."""


class _Sample(NamedTuple):
    """A sample of an earlier batch: node voltages, V, currents, A, drops, V."""

    voltages: np.ndarray
    currents: np.ndarray
    drops: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class BatchSolver:
    """A circuit prepared for batches; made by `circuitsim.batched`.

    With controlled sources there is no energy to add a nudge to: only the free state and its adjoint.

    Attributes
    ----------
    circuit : Circuit
        Of elementary elements.
    tolerance : float
    inputs : (k,) int array
        Elements (sources) whose values vary by sample.
    outputs : (q, 2) int array
        Node pairs.
    value : (m,) float array
        Element values, Ω, V, A; those of companion models are overwritten.
    smooth : Smooth or None
        The smooth devices, whose companion models are among the elements.
    devices : (Circuit, Expansion) or None
        The circuit with devices, and its expansion.
    inside : bool
        Whether values and solutions are those of the elementary elements, not of the circuit with devices.
    """

    circuit: Circuit
    tolerance: float
    inputs: np.ndarray
    outputs: np.ndarray
    value: np.ndarray
    smooth: Smooth | None = None
    devices: tuple[Circuit, Expansion] | None = None
    inside: bool = True
    _made: dict[bool, Prepared] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    def with_values(self, values: np.ndarray | Mapping[str, float]) -> BatchSolver:
        """The same structure with other element values: all of them in an array (Ω, V, A), or some by name, as
        parameters of devices (``D1.vfwd``).

        Raises
        ------
        TopologyError
            Values out of range, unknown names, a resistance that becomes (or ceases to be) zero, or a device of other
            parts: another structure.
        """
        if self.devices is None or self.inside:
            return self._valued(values)
        before, expansion = self.devices
        changed = before.changes(values)
        circuit = before.with_values(changed)
        for name in [*changed]:
            found = circuit.device_parameter(name)
            if found is not None:
                old, new = (c.devices[found[0]] for c in (before, circuit))
                if not same_shape(old, new):
                    raise TopologyError(f"{name} changes what the device consists of: make a new batch")
                del changed[name]
                changed |= expansion.values(found[0], new)
        made = self._valued(changed)
        return made.with_devices(circuit, expansion, smooth_devices(circuit, expansion), False)

    def _valued(self, values: np.ndarray | Mapping[str, float]) -> BatchSolver:
        """`with_values` for values of the elementary elements."""
        if isinstance(values, Mapping):
            value = self.value.copy()
            for name, number in values.items():
                value[self.circuit.element_index(name)] = number
        else:
            value = np.array(values, dtype=float)
        if value.shape != self.value.shape:
            raise TopologyError(f"{self.value.size} element values are needed, not {value.shape}")
        resistor = self.circuit.arrays().kind == RESISTOR
        if not (value[resistor] >= 0.0).all() or ((value == 0.0) != (self.value == 0.0))[resistor].any():
            raise TopologyError("resistances must stay positive (or zero) for a prepared batch: make a new one")
        return replace(self, value=value)

    def with_devices(
        self, circuit: Circuit, expansion: Expansion, smooth: Smooth | None, inside: bool = True
    ) -> BatchSolver:
        """With smooth devices of a circuit in place of companion models; its elementary elements are those of this
        one."""
        return replace(self, smooth=smooth, devices=(circuit, expansion), inside=inside)

    @cached_property
    def controlled(self) -> PreparedControlled:
        """A circuit with controlled sources at these values, prepared."""
        return prepared_controlled(self.circuit.with_column(self.value), self.tolerance)

    # ------------------------------------------------------------------ operating points
    def solve(
        self,
        values: np.ndarray | None = None,
        injected: np.ndarray | None = None,
        stiffness: float = 0.0,
        start: BatchSolution | None = None,
        threads: int | None = None,
    ) -> BatchSolution:
        """Operating points of a batch.

        Parameters
        ----------
        values : (samples, k) float array, optional
            Values of the inputs, V or A; by default the circuit's own, for as many samples as ``injected`` has.
        injected : (samples, q) float array, optional
            Current injected into the first node of each output pair and out of the second, A.
        stiffness : float
            Conductance across each output pair, S; negative while the energy stays convex.
        start : BatchSolution, optional
            Initial guess: a solution with as many samples. By default each sample of a circuit that one kernel solves
            starts from the previous one, the first of every 16 from zero. No effect with controlled sources.
        threads : int, optional
            Maximum number of threads; by default as many as the process may use. The result does not depend on it.

        Raises
        ------
        UnboundedError
            A negative stiffness exceeds `stiffness_limit`.
        UsageError
            A negative stiffness in a circuit too large for one kernel; a conductance as the nudge of sections.
        NoEnergyError
            A nudge of a circuit with controlled sources that has no sections.
        TopologyError
            Arrays of wrong shapes.
        """
        rows, injected = samples_of(self.value[self.inputs], len(self.outputs), values, injected)
        if start is not None and len(start) != len(rows):
            raise TopologyError(f"the start has {len(start)} samples, the batch {len(rows)}")
        found = self._solved(rows, injected, stiffness, _inner(start), threads)
        if self.inside:
            return found
        assert self.devices is not None
        v, current = self._seen(found.voltages, found.currents)
        return replace(found, circuit=self.devices[0], voltages=v, currents=current, elementary=found)

    def _seen(self, voltages: np.ndarray, currents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of the circuit's own nodes and elements."""
        if self.inside:
            return voltages, currents
        assert self.devices is not None
        circuit, expansion = self.devices
        return voltages[:, : len(circuit.node_names)], expansion.entering(currents.T, len(circuit)).T

    def _solved(
        self,
        rows: np.ndarray,
        injected: np.ndarray,
        stiffness: float,
        start: BatchSolution | None,
        threads: int | None,
    ) -> BatchSolution:
        """`solve` for the elementary elements."""
        laws, smooth = self.circuit.laws, self.smooth
        if laws and (stiffness or injected.any()):
            raise NoEnergyError(no_energy(self.circuit))
        ready = None if laws else self._ready(stiffness)
        small = ready.small if ready is not None and isinstance(ready.small, SmallCircuitSolver) else None
        if stiffness < 0.0 and small is None:
            raise UsageError(
                "a circuit that is too large for one kernel takes no negative nudging resistor: use the constant "
                "nudge, or the positive variant"
            )
        if stiffness < 0.0 and smooth is None:
            self._require_convex(stiffness)
        count, own, (kind, _, _, _, n) = len(rows), self.value.size, self.circuit.arrays()
        diodes, shared = np.flatnonzero(kind == DIODE), self._column(stiffness)
        x, m = np.hstack([rows, injected[:, : self._nudges]]), shared.size
        sources = np.concatenate([self.inputs, np.arange(m - self._nudges, m)])
        v, current, error = np.zeros((count, n)), np.zeros((count, m)), np.full(count, np.inf)
        closed, iterations = np.zeros((count, diodes.size), dtype=bool), np.zeros(count, dtype=np.int64)
        if ready is None:
            solve, start, threads = partial(_controlled, self.controlled, self._smooth_controlled()), None, 1
        elif smooth is None:
            # Potentials of parts without a path to ground are relative to a reference node.
            solve = partial(_plain, ready, diodes, stiffness < 0.0 or not ready.structure.references.size)
        else:
            # A negative resistor is not part of the circuit's energy.
            newton = None if small is None else SmallNewton(small, smooth)
            solve = partial(_newton, ready, smooth, newton, stiffness >= 0.0)

        def run(begin: int, end: int) -> None:
            near, devices = None, None
            for s in range(begin, end):
                if error[s] <= self.tolerance:
                    continue
                column = shared.copy()
                column[sources] = x[s]
                if start is not None:
                    near = start.closed[s]
                    devices = None if smooth is None else self._devices(start, s, m)
                try:
                    point, error[s], iterations[s], devices = solve(column, near, devices)
                except CircuitError:  # no operating point, or an uncertified one
                    near, devices = None, None
                    continue
                v[s], current[s] = point.voltages, point.currents
                closed[s] = point.closed() if isinstance(point, LazyOperatingPoint) else current[s, diodes] > 0.0
                near = None if small is None else closed[s]

        if ready is not None and small is None and not diodes.size and smooth is None:
            self._together(ready, shared, sources, x, (v, current, error, iterations), threads)
        _side_by_side(run, count, n, threads)
        certified = error <= self.tolerance
        if stiffness < 0.0 and not certified.all():
            self._require_convex(stiffness)
        output = v[:, self.outputs[:, 0]] - v[:, self.outputs[:, 1]]
        return BatchSolution(
            self.circuit,
            v,
            current[:, :own],
            closed,
            error,
            certified,
            output,
            iterations,
            float(stiffness),
        )

    def _smooth_controlled(self) -> SmoothControlled | None:
        """Newton's method for smooth devices with controlled sources."""
        if self.smooth is None or self.devices is None:
            return None
        circuit, expansion = self.devices
        return SmoothControlled(circuit, self.smooth, expansion, self.controlled, self.tolerance)

    def _devices(self, solution: BatchSolution, s: int, m: int) -> Found:
        """Sample ``s`` of an earlier batch as an initial guess of the smooth devices, with currents of m elements."""
        assert self.smooth is not None
        _, first, second, _, _ = self.circuit.arrays()
        own, currents, v = solution.currents[s], np.zeros(m), solution.voltages[s]
        currents[: own.size] = own
        return self.smooth.start_at(_Sample(v, currents, v[first] - v[second]))

    def _together(
        self,
        ready: Prepared,
        shared: np.ndarray,
        sources: np.ndarray,
        x: np.ndarray,
        rows: tuple[np.ndarray, ...],
        threads: int | None,
    ) -> None:
        """Fill in samples of a linear circuit, as columns of one factor, where that certifies them."""
        structure, arrays = ready.structure, ready.structure.arrays._replace(value=shared)
        if structure.forest.closing.size or structure.references.size or not structure.grounded:
            return
        keep_memory()
        v, current, error, iterations = rows
        network = PortNetwork(structure, arrays, independent_sources(arrays), np.zeros((0, 2), np.int64))

        def some(begin: int, end: int) -> None:
            columns = np.tile(shared, (end - begin, 1))
            columns[:, sources] = x[begin:end]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                found = network.states(columns[:, network.sources].T)
                for s, value, volts, low, amperes, drops in zip(range(begin, end), columns, *(a.T for a in found)):
                    error[s] = certify(arrays, value, volts, amperes, drops, self.tolerance, low).worst
                    v[s], current[s], iterations[s] = volts, amperes, 2

        _side_by_side(some, len(x), v.shape[1], threads)

    def _ready(self, stiffness: float) -> Prepared:
        """The circuit with its nudges: a resistor across every output if there is a stiffness, then a source of the
        current out of every output."""
        nudged, column = stiffness != 0.0, self._column(abs(stiffness))
        made = self._made.get(nudged)
        if made is None:
            (kind, first, second, _, n), (p, r) = self.circuit.arrays(), self.outputs.T
            resistors = [p[:0], r[:0]] if not nudged else [p, r]
            ends = np.concatenate([first, resistors[0], r]), np.concatenate([second, resistors[1], p])
            nudges = np.repeat([RESISTOR, CURRENT], [resistors[0].size, p.size])
            kinds = np.append(kind, nudges).astype(kind.dtype)
            found = prepared(Circuit.from_arrays(kinds, *ends, column, n), tolerance=self.tolerance)
            assert isinstance(found, Prepared)
            made = found
            if isinstance(made.small, SmallCircuitSolver):
                made.small.allow_negative_resistors()
        elif isinstance(made.small, str) and (column != made.circuit.arrays().value)[made.structure.resistors].any():
            made = made.at(column)
        self._made[nudged] = made
        return made

    @property
    def _nudges(self) -> int:
        """The number of sources of injected currents."""
        return 0 if self.circuit.laws else len(self.outputs)

    def _column(self, stiffness: float) -> np.ndarray:
        """Values of the circuit with its nudges, without injected current."""
        q = self._nudges
        return np.concatenate([self.value, np.full(q if stiffness else 0, 1.0 / (stiffness or 1.0)), np.zeros(q)])

    # ------------------------------------------------------------------ linear responses
    def adjoint(
        self, solution: BatchSolution, cotangent: np.ndarray, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Adjoint of a solution: H λ = −Bᵀ cotangent, with conducting diodes as shorts, smooth devices linearised,
        sources at zero.

        For a cost C with ∂C/∂output = cotangent: dC/dg of a resistor is Δv Δλ, dC/dI of a current source a → b is
        λ_a − λ_b, dC/dV of a voltage source is minus its (SPICE) current in the response.

        Parameters
        ----------
        cotangent : (samples, q) float array

        Returns
        -------
        response : (samples, n_nodes) float array
            λ.
        currents : (samples, m) float array
            Branch currents of the response.
        """
        solution = _inner(solution)
        if self.circuit.laws:
            return self._seen(*self._transposed(solution, cotangent))
        v, current = self._responses(solution.stiffness, solution.closed, -cotangent, threads, solution)
        return self._seen(v, current[:, : self.value.size])

    def _tangent(self, column: np.ndarray, at: BatchSolution | None, s: int) -> np.ndarray:
        """The values for which sample ``s`` of a solution is linear."""
        value = column.copy()
        if self.smooth is not None:
            assert at is not None
            self.smooth.linearise(self._devices(at, s, value.size), value)
        return value

    def _transposed(self, solution: BatchSolution, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The adjoint by the transposed equations of a circuit with controlled sources."""
        own = self.circuit.arrays()
        n = own.n_nodes
        response, currents = np.zeros((len(solution), n)), np.zeros((len(solution), own.kind.size))
        for s, closed in enumerate(solution.closed):
            system = self.controlled.system(own._replace(value=self._tangent(self.value, solution, s)))
            eq = system.eq
            inside, right = eq.own >= 0, np.zeros(eq.size + 1)  # the last row is ground's
            np.add.at(right, self.outputs[:, 0] - 1, cotangent[s])
            np.add.at(right, self.outputs[:, 1] - 1, -cotangent[s])
            try:
                dual = system.factor(closed).transposed(right[:-1])
            except ArithmeticError:
                response[s], currents[s] = np.nan, np.nan
                continue
            response[s, 1:] = -dual[: n - 1]
            response[s, eq.pinned] = 0.0
            currents[s, inside] = -dual[eq.own[inside]]
        return response, currents

    def _responses(
        self,
        stiffness: float,
        closed: np.ndarray,
        injected: np.ndarray,
        threads: int | None,
        at: BatchSolution | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Responses to currents into the outputs, (samples, q), A: sources at zero, conducting diodes as shorts, smooth
        devices linearised at a solution; without one the engine solves for them, for any circuit.

        Raises
        ------
        UnboundedError
            A net current into a part without a path to ground.
        """
        ready, count = self._ready(stiffness), len(closed)
        column, q, (kind, first, second, _, n) = self._column(stiffness), len(self.outputs), ready.circuit.arrays()
        v, current, diodes = np.zeros((count, n)), np.zeros((count, column.size)), np.flatnonzero(kind == DIODE)
        small = None if at is None or isinstance(ready.small, str) else ready.small
        # Conducting diodes are sources of 0 V; consecutive samples with the same ones are the same linear circuit.
        kinds, ohms = np.where(kind == DIODE, VOLTAGE, kind), np.where(kind == RESISTOR, column, 0.0)
        rows = sorted(range(count), key=lambda s: closed[s].tobytes())

        def run(begin: int, end: int) -> None:
            linear, before, there = None, closed[:0], kind == kind
            for s in rows[begin:end]:
                value = np.where(kind == RESISTOR, self._tangent(column, at, s), 0.0)
                value[value.size - q :] = injected[s]
                if small is not None:
                    v[s], current[s] = small.response(value, closed[s])
                    continue
                if linear is None or (closed[s] != before).any():
                    before, there[diodes] = closed[s], closed[s]
                    linear = prepared(Circuit.from_arrays(kinds[there], first[there], second[there], ohms[there], n))
                point = linear.solve(value[there])
                v[s], current[s, there] = point.voltages, point.currents

        _side_by_side(run, count, n, threads)
        return v, current

    def stiffness_limit(self) -> float:
        """Bound, S, on a negative stiffness at the outputs for which the energy stays convex in any diode states: the
        smallest eigenvalue of S = (B H⁻¹ Bᵀ)⁻¹ with all diodes blocking and smooth devices open; 0 where only diodes
        connect the two nodes of an output.

        Raises
        ------
        NoEnergyError
            Controlled sources without sections: there are no nudges.
        """
        if self.circuit.laws:
            raise NoEnergyError(no_energy(self.circuit))
        return self._limit

    def _require_convex(self, stiffness: float) -> None:
        """Refuse a negative stiffness beyond the limit."""
        limit = self.stiffness_limit()
        if -stiffness >= limit:
            raise UnboundedError(
                f"a nudge of {stiffness:g} S makes the energy nonconvex: the circuit's conductance at its outputs is "
                f"{limit:.6g} S with all diodes blocking; use a smaller beta, a current nudge or the positive variant",
                elements=[],
                nodes=sorted({self.circuit.node_names[k] for k in self.outputs.ravel().tolist()}),
            )

    @cached_property
    def _limit(self) -> float:
        if not len(self.outputs):
            return 0.0
        if self.smooth is not None:
            value = self.value.copy()
            value[self.smooth.slope] = 1.0 / OPEN
            return replace(self, value=value, smooth=None).stiffness_limit()
        count = len(self.outputs)
        blocking = np.zeros((count, int((self.circuit.arrays().kind == DIODE).sum())), dtype=bool)
        try:
            v = self._responses(0.0, blocking, np.eye(count), None, None)[0]
        except UnboundedError:
            return 0.0
        compliance = v[:, self.outputs[:, 0]] - v[:, self.outputs[:, 1]]
        largest = float(np.linalg.eigvalsh(0.5 * (compliance + compliance.T)).max())
        return 1.0 / largest if largest > 0.0 else np.inf


def _inner(solution: Any) -> Any:
    """A solution in terms of the elementary elements."""
    return solution if solution is None or solution.elementary is None else solution.elementary


def no_energy(circuit: Circuit) -> str:
    """The message for methods that need an energy function."""
    names = [circuit.names[k] for k in circuit.laws]
    return (
        f"{some(names)}: controlled sources have no energy function: use implicit differentiation (method implicit). "
        "Equilibrium and frequency propagation need the energies of sections: no smooth devices such as junction "
        "diodes, and controls without a loop (voltages, or currents of voltage sources: buffers between passive "
        "sections). Coupled learning and agnostic propagation need one energy of the whole circuit"
    )


Sample = tuple[Any, float, int, Found | None]
"""A sample: operating point, largest relative residual, linear circuits or steps, initial guess for others."""


def _controlled(
    ready: PreparedControlled,
    devices: SmoothControlled | None,
    column: np.ndarray,
    near: np.ndarray | None,
    before: Found | None,
) -> Sample:
    """A sample of a circuit with controlled sources."""
    found = ready.solve(column) if devices is None else devices.first(column, None)
    return found if found.elementary is None else found.elementary, found.certificate.worst, 1, None


def _plain(
    ready: Prepared, diodes: np.ndarray, free: bool, column: np.ndarray, near: np.ndarray | None, devices: Found | None
) -> Sample:
    """Solve a sample of a circuit without smooth devices, starting from the diode states of a nearby sample."""
    guess = None
    if near is not None:
        guess = np.zeros(column.size)
        guess[diodes] = near
    point = ready.solve_from(column, guess, free)
    if isinstance(point, LazyOperatingPoint):
        return point, point.worst, point.iterations, None
    return point, point.certificate.worst, int(point.solver["iterations"]), None  # type: ignore[call-overload]


def _newton(
    ready: Prepared,
    smooth: Smooth,
    small: SmallNewton | None,
    energy: bool,
    column: np.ndarray,
    near: np.ndarray | None,
    devices: Found | None,
) -> Sample:
    """A sample of a circuit with smooth devices by Newton's method, in one kernel where that certifies it."""
    arguments = ready.solve, ready.circuit, smooth, small, column, devices, ready.tolerance, True, energy
    for found in attempts(*arguments):
        if found.certified:
            worst = max(found.point.certificate.worst, float(found.distance.max()))
        else:
            worst = proof(found, found.point.circuit.arrays(), smooth, ready.tolerance).worst
        if worst <= ready.tolerance:
            break
    return found.point, worst, found.steps, found._replace(steps=0)


def _side_by_side(run: Callable[[int, int], None], count: int, nodes: int, threads: int | None) -> None:
    """Process ``count`` samples in blocks, on as many threads as pay off."""
    begins = range(0, count, BLOCK)
    ends = [min(begin + BLOCK, count) for begin in begins]
    parts = min(threads or processors(), nodes * count // SHARE, len(ends))
    if parts <= 1:
        list(map(run, begins, ends))
        return
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(run, begins, ends))
