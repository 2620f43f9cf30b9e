"""Many samples of one circuit: sources change, the structure does not.

Everything that changes from sample to sample is a right-hand side: source values, currents pushed into the outputs.
Resistances are shared by a batch. Each sample is an operating point of the circuit with its nudges as elements, solved
and certified as any other; samples of large circuits without diodes are columns of one factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.batch_solution import BatchSolution
from circuitsim.analysis.newton import OPEN, Smooth, Start, Way, iterate, tangents
from circuitsim.analysis.newton import Ports as LoadLines
from circuitsim.analysis.small_circuit import LazyOperatingPoint, SmallCircuitSolver
from circuitsim.analysis.smooth_proof import proof
from circuitsim.analysis.smooth_small import SmallNewton, Solved
from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.certificate import certify
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.network import Network
from circuitsim.engine.refinement import solve_linear
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.steady_state import linear_states
from circuitsim.errors import CircuitError, TopologyError, UnboundedError, UsageError
from circuitsim.kernels import keep_memory
from circuitsim.newton.steps import CURRENT as AMPERES
from circuitsim.newton.steps import DISTANCE
from circuitsim.newton.steps import VOLTAGE as VOLTS
from circuitsim.points import processors
from circuitsim.solvers.protocol import Factored

BLOCK = 16
"""Consecutive samples of which each but the first starts at the one before."""

SHARE = 5_000
"""Fewest node-samples that are worth a thread of their own: to start one takes as long as 2,000 of them."""

GROUP = 8
"""Samples that one thread treats together: right-hand sides of one pass of a substitution."""


class _Sample(NamedTuple):
    """A sample of an earlier batch: potentials, V, currents, A, drops, V."""

    voltages: np.ndarray
    currents: np.ndarray
    drops: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class BatchSolver:
    """A circuit of elementary elements ready for batches; make it with `circuitsim.batched`.

    Attributes
    ----------
    circuit : Circuit
    tolerance : float
    inputs : (k,) int array
        Elements (sources) whose values each sample brings.
    outputs : (q, 2) int array
        Node pairs.
    value : (m,) float array
        Element values, Ω, V, A; those of the tangents' elements are replaced.
    smooth : Smooth or None
        The smooth devices, whose tangents are among the elements.
    """

    circuit: Circuit
    tolerance: float
    inputs: np.ndarray
    outputs: np.ndarray
    value: np.ndarray
    smooth: Smooth | None = None
    _made: dict[bool, Prepared] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    def with_values(self, values: np.ndarray | Mapping[str, float]) -> BatchSolver:
        """The same structure with other element values: all of them in an array (Ω, V, A), or some by name.

        Raises
        ------
        TopologyError
            Values out of range, unknown names, or a resistance that becomes (or ceases to be) zero: another structure.
        """
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
            Values of the inputs, V or A; without them as many samples as ``injected`` has, at the circuit's own values.
        injected : (samples, q) float array, optional
            Current pushed into the first node of each output pair and out of the second, A.
        stiffness : float
            Conductance across each output pair, S; negative while the energy stays convex.
        start : BatchSolution, optional
            Where to start: a solution of as many samples. Without it each sample of a circuit that one kernel solves
            starts at the one before it, but the first of every 16 from nothing.
        threads : int, optional
            Most threads; as many as the process may use, if not given. The result is the same.

        Raises
        ------
        UnboundedError
            A negative stiffness takes more conductance from the outputs than `stiffness_limit` allows.
        UsageError
            A negative stiffness in a circuit that is too large for one kernel.
        TopologyError
            Arrays of wrong shapes.
        """
        ready, smooth = self._ready(stiffness), self.smooth
        small = ready.small if isinstance(ready.small, SmallCircuitSolver) else None
        if stiffness < 0.0 and small is None:
            raise UsageError(
                "a circuit that is too large for one kernel takes no negative nudging resistor: use the constant "
                "nudge, or the positive variant"
            )
        if stiffness < 0.0 and smooth is None:
            self._require_convex(stiffness)
        x = self.samples(values, injected)
        count, own, (kind, _, _, _, n) = len(x), self.value.size, self.circuit.arrays()
        if start is not None and len(start) != count:
            raise TopologyError(f"the start has {len(start)} samples, the batch {count}")
        m, diodes, shared = len(ready.circuit), np.flatnonzero(kind == DIODE), self._column(stiffness)
        sources = np.concatenate([self.inputs, np.arange(m - len(self.outputs), m)])
        v, current, error = np.zeros((count, n)), np.zeros((count, m)), np.full(count, np.inf)
        closed, iterations = np.zeros((count, diodes.size), dtype=bool), np.zeros(count, dtype=np.int64)
        # Potentials of parts without a path to ground are those against a reference node.
        free = stiffness < 0.0 or not ready.structure.references.size
        solve = _Plain(ready, diodes, free) if smooth is None else _Newton(ready, smooth, stiffness, self.tolerance)

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
                elif small is None or s % BLOCK == 0:
                    near, devices = None, None
                try:
                    point, error[s], iterations[s], devices = solve(column, near, devices)
                except CircuitError:  # no operating point, or none that can be certified
                    near, devices = None, None
                    continue
                v[s], current[s] = point.voltages, point.currents
                closed[s] = point.closed() if isinstance(point, LazyOperatingPoint) else current[s, diodes] > 0.0
                near = closed[s]

        if small is None and not diodes.size and smooth is None:
            self._together(ready, shared, sources, x, (v, current, error, iterations), threads)
        first = int(small is None)
        run(0, min(first, count))  # with it what all share is made once
        _side_by_side(lambda begin, end: run(begin + first, end + first), count - first, n, threads, BLOCK)
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

    def _devices(self, solution: BatchSolution, s: int, m: int) -> Start:
        """Sample ``s`` of an earlier batch as a start of the smooth devices, with currents of m elements."""
        assert self.smooth is not None
        _, first, second, _, _ = self.circuit.arrays()
        slope, rest, own = self.smooth.slope, self.smooth.rest, solution.currents[s]
        currents, v = np.zeros(m), solution.voltages[s]
        currents[: own.size] = own
        drops = v[first] - v[second]
        return Start(_Sample(v, currents, drops), drops[rest], own[slope] + own[rest])

    def _together(
        self,
        ready: Prepared,
        shared: np.ndarray,
        sources: np.ndarray,
        x: np.ndarray,
        rows: tuple[np.ndarray, ...],
        threads: int | None,
    ) -> None:
        """Fill in samples of a linear circuit, those that its one factor proves."""
        keep_memory()
        v, current, error, iterations = rows
        net = _network(ready, shared)
        factored = net.laplacian.factor(net.diodes)

        def some(begin: int, end: int) -> None:
            columns = np.tile(shared, (end - begin, 1))
            columns[:, sources] = x[begin:end]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                nets = [_network(ready, column) for column in columns]
                for s, net, found in zip(range(begin, end), nets, linear_states(nets, factored)):
                    if found is not None:
                        arrays = net.structure.arrays
                        state = found.voltages, found.current, found.drop
                        error[s] = certify(arrays, arrays.value, *state, self.tolerance, found.low).worst
                        v[s], current[s], iterations[s] = *state[:2], found.iterations

        _side_by_side(_in_groups(some), len(x), v.shape[1], threads, GROUP)

    def samples(self, values: np.ndarray | None, injected: np.ndarray | None) -> np.ndarray:
        """Values of the inputs beside the currents into the outputs, (samples, k + q)."""
        k, q = self.inputs.size, len(self.outputs)
        if values is None:
            count = 1 if injected is None else len(injected)
            values = np.broadcast_to(self.value[self.inputs], (count, k))
        values = np.asarray(values, dtype=float)
        count = len(values)
        injected = np.zeros((count, q)) if injected is None else np.asarray(injected, dtype=float)
        if values.shape != (count, k) or injected.shape != (count, q):
            raise TopologyError(
                f"a batch needs values of shape (samples, {k}) and injected currents of shape (samples, {q}), not "
                f"{values.shape} and {injected.shape}"
            )
        if not (np.isfinite(values).all() and np.isfinite(injected).all()):
            raise TopologyError("the values of a batch must be finite")
        return np.concatenate([values, injected], axis=1)

    def _ready(self, stiffness: float) -> Prepared:
        """The circuit with its nudges: for every output a resistor across it, if there is a stiffness, then for every
        output a source of the current out of it."""
        nudged, column = stiffness != 0.0, self._column(abs(stiffness))
        made = self._made.get(nudged)
        if made is None:
            kind, first, second, _, n = self.circuit.arrays()
            more, times = np.repeat([RESISTOR, CURRENT], len(self.outputs)), 2
            if not nudged:
                more, times = more[len(self.outputs) :], 1
            ends = [np.append(own, np.tile(nodes, times)) for own, nodes in zip((first, second), self.outputs.T)]
            ends[0][first.size + more.size - len(self.outputs) :] = self.outputs[:, 1]
            ends[1][first.size + more.size - len(self.outputs) :] = self.outputs[:, 0]
            nudges = np.append(kind, more).astype(kind.dtype)
            found = prepared(Circuit.from_arrays(nudges, *ends, column, n), tolerance=self.tolerance)
            assert isinstance(found, Prepared)
            made = found
            if isinstance(made.small, SmallCircuitSolver):
                made.small.allow_negative_resistors()
        elif isinstance(made.small, str) and (column != made.circuit.arrays().value)[made.structure.resistors].any():
            made = made.at(column)
        self._made[nudged] = made
        return made

    def _column(self, stiffness: float) -> np.ndarray:
        """Values of the circuit with its nudges, no injected current."""
        q = len(self.outputs)
        return np.concatenate([self.value, np.full(q if stiffness else 0, 1.0 / (stiffness or 1.0)), np.zeros(q)])

    # ------------------------------------------------------------------ linear responses
    def adjoint(
        self, solution: BatchSolution, cotangent: np.ndarray, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Linear response at a solution: H λ = −Bᵀ cotangent, conducting diodes held merged, smooth devices as their
        tangents, sources at zero.

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
        v, current = self._responses(solution.stiffness, solution.closed, -cotangent, threads, solution)
        return v, current[:, : self.value.size]

    def _responses(
        self,
        stiffness: float,
        closed: np.ndarray,
        injected: np.ndarray,
        threads: int | None,
        at: BatchSolution | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Responses to currents into the outputs, (samples, q), A: sources at zero, conducting diodes as shorts, smooth
        devices as their tangents at a solution.

        Raises
        ------
        UnboundedError
            A net current into a part without a path to ground.
        """
        ready, count, n = self._ready(stiffness), len(closed), self.circuit.arrays().n_nodes
        column, q = self._column(stiffness), len(self.outputs)
        v, current = np.zeros((count, n)), np.zeros((count, column.size))
        into = np.zeros((count, n))
        for k, (p, r) in enumerate(self.outputs.tolist()):
            into[:, p] += injected[:, k]
            into[:, r] -= injected[:, k]

        def tangent(s: int) -> np.ndarray:
            value = column.copy()
            if at is not None and self.smooth is not None:
                tangents(self._devices(at, s, value.size).state(self.smooth), value, self.smooth)
            return value

        def small(begin: int, end: int) -> None:
            columns = plan, *plan_columns
            step = end - begin if self.smooth is None else 1
            for s in range(begin, end, max(step, 1)):
                kernel(*columns, tangent(s), into, s, s + step, closed, v, current)

        def large(begin: int, end: int) -> None:
            factored, before = None, None
            for s in rows[begin:end]:
                value = np.where(kind == RESISTOR, tangent(s), 0.0)
                value[value.size - q :] = injected[s]
                at_hand = ready if self.smooth is None else ready.at(value)
                factored = _respond(
                    at_hand, value, closed[s], factored if before is at_hand else None, v[s], current[s]
                )
                before = at_hand

        if isinstance(ready.small, SmallCircuitSolver):
            plan, plan_columns = ready.small.plan()
            kernel = small_kernel("respond_samples", n * count)
            _side_by_side(small, count, n, threads, 1)
        else:
            kind = ready.circuit.arrays().kind
            # Samples with equal diodes one after the other have one factor.
            rows = sorted(range(count), key=lambda s: closed[s].tobytes())
            large(0, min(1, count))  # with it what all share is made once
            _side_by_side(_in_groups(lambda begin, end: large(begin + 1, end + 1)), count - 1, n, threads, GROUP)
        return v, current

    def stiffness_limit(self) -> float:
        """The conductance, S, that a negative nudge at the outputs must stay below whatever the diodes do: the least
        eigenvalue of S = (B H⁻¹ Bᵀ)⁻¹ with all diodes blocking and smooth devices open; 0 where only diodes connect
        the two nodes of an output.
        """
        return self._limit

    def _require_convex(self, stiffness: float) -> None:
        """Refuse a negative stiffness beyond the limit."""
        limit = self.stiffness_limit()
        if -stiffness >= limit:
            raise UnboundedError(
                f"a nudge of {stiffness:g} S leaves no convex energy: the circuit holds its outputs with {limit:.6g} S "
                "when all diodes block; use a smaller beta, a current nudge or the positive estimator",
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
        count, ready = len(self.outputs), self._ready(0.0)
        blocking = np.zeros((count, int((self.circuit.arrays().kind == DIODE).sum())), dtype=bool)
        small = ready.small
        whole = not isinstance(small, SmallCircuitSolver) or bool(
            small_kernel("stable", len(self.value) * count)(small.plan()[0], self._column(0.0), blocking[0])
        )
        try:
            # Parts without a path to ground, or large: the engine tells a current that has nowhere to go.
            using = self if whole else replace(self, _made={False: replace(ready, small="parts without ground")})
            v = using._responses(0.0, blocking, np.eye(count), None)[0]
        except UnboundedError:
            return 0.0
        compliance = v[:, self.outputs[:, 0]] - v[:, self.outputs[:, 1]]
        largest = float(np.linalg.eigvalsh(0.5 * (compliance + compliance.T)).max())
        return 1.0 / largest if largest > 0.0 else np.inf


Found = tuple[Any, float, int, Start | None]
"""A sample: the operating point, its worst violation, linear circuits or steps, the start that it is for others."""


class _Plain:
    """Samples of a circuit without smooth devices."""

    def __init__(self, ready: Prepared, diodes: np.ndarray, free: bool) -> None:
        self._ready, self._diodes, self._free = ready, diodes, free

    def __call__(self, column: np.ndarray, near: np.ndarray | None, devices: Start | None) -> Found:
        guess = None
        if near is not None:
            guess = np.zeros(column.size)
            guess[self._diodes] = near
        point = self._ready.solve_from(column, guess, self._free)
        return point, point.certificate.worst, int(point.solver["iterations"]), None  # type: ignore[call-overload]


class _Newton:
    """Samples of a circuit with smooth devices, by Newton's method: in one kernel where that certifies it."""

    def __init__(self, ready: Prepared, smooth: Smooth, stiffness: float, tolerance: float) -> None:
        self._ready, self._smooth, self._tolerance = ready, smooth, tolerance
        small = ready.small
        self._small = SmallNewton(small, smooth) if isinstance(small, SmallCircuitSolver) else None
        # A negative resistor is no element of the energy of the circuit.
        self._way = Way(LoadLines(ready.circuit, smooth).resistances) if stiffness < 0.0 else None

    def __call__(self, column: np.ndarray, near: np.ndarray | None, devices: Start | None) -> Found:
        circuit, smooth, solved = self._ready.circuit, self._smooth, None
        for start in (devices, None)[devices is None :]:
            if self._small is not None and not isinstance(solved, Solved):
                solved = self._small.solve(smooth, column, start, few=True)
        if isinstance(solved, Solved):
            own, point = solved.own, solved.point
            worst = max(point.certificate.worst, float(own[DISTANCE].max()))
            return point, worst, solved.steps, Start(point, own[VOLTS], own[AMPERES])
        start, worst = solved if isinstance(solved, Start) else devices, np.inf
        for _ in range(2):  # tangents that touch where the first steps end leave potentials with more digits
            if worst <= self._tolerance:
                break
            ended = iterate(self._ready.solve, circuit, smooth, column.copy(), start, self._tolerance, self._way)
            worst = proof(ended, circuit.arrays(), smooth).worst
            start = Start(ended.point, ended.voltage, ended.current, ended.steps)
        return ended.point, worst, ended.steps, start


def _network(ready: Prepared, column: np.ndarray) -> Network:
    """The network at the values (m,) of all elements, Ω, V, A."""
    structure = ready.structure
    arrays = structure.arrays._replace(value=column)
    return ready.resistances.network(structure._replace(arrays=arrays), direct=True)


def _respond(
    ready: Prepared,
    value: np.ndarray,
    closed: np.ndarray,
    factored: Factored | None,
    v: np.ndarray,
    current: np.ndarray,
) -> Factored | None:
    """Fill in the response ``v``, ``current`` to the sources in ``value``; returns the factor for the next one."""
    structure, net = ready.structure, _network(ready, value)
    on = structure.diodes[closed]
    if not (structure.forest.closing.size or structure.references.size):
        nothing = np.zeros(max(net.first.size, net.n_nodes))
        point = solve_linear(net, on, nothing[: net.first.size], nothing[: net.n_nodes], factored)
        if point.converged and point.closed[on].all() and not point.tree.root_of.any():
            v[:], current[:] = point.v, point.current
            return point.factored
    # Loops without a resistance, or parts without a path to ground: sources of 0 V as conducting diodes.
    arrays = structure.arrays
    kind, there = arrays.kind.copy(), np.ones(value.size, dtype=bool)
    diode = np.flatnonzero(kind == DIODE)
    kind[diode], there[diode] = VOLTAGE, closed
    columns = kind[there], arrays.first[there], arrays.second[there], value[there]
    found = prepared(Circuit.from_arrays(*columns, net.n_nodes)).solve()
    v[:], current[there] = found.voltages, found.currents
    return None


def _in_groups(some: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """What is done for a range of samples, for `GROUP` of them at a time."""

    def run(begin: int, end: int) -> None:
        for k in range(begin, end, GROUP):
            some(k, min(k + GROUP, end))

    return run


def _side_by_side(run: Callable[[int, int], object], count: int, nodes: int, threads: int | None, block: int) -> None:
    """Run over ``count`` samples in as many parts as there are threads worth having, of whole blocks each, the first
    part on this thread."""
    blocks = -(-count // block)
    parts = max(1, min(threads or processors(), nodes * count // SHARE, blocks))
    ends = [min(blocks * k // parts * block, count) for k in range(parts + 1)]
    if parts == 1:
        run(0, max(count, 0))
        return
    with ThreadPoolExecutor(parts - 1) as pool:
        others = pool.map(run, ends[1:-1], ends[2:])
        run(ends[0], ends[1])
        list(others)
