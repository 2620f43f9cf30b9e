"""Many samples of one circuit: sources change, the structure does not.

Everything that changes from sample to sample is a right-hand side: source values, currents pushed into the outputs.
Resistances are shared by a batch. One plan serves them all; samples run side by side on threads, each from the diodes
it is given. A sample that the fast kernel cannot certify goes to the engine, or comes back with ``certified`` false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from circuitsim.analysis.batch_solution import BatchSolution
from circuitsim.analysis.engine_batch import Batch, EngineBatch
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR
from circuitsim.engine.small.active_set import MAX_ITERATIONS
from circuitsim.engine.small.currents import ACCURATE
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.small.outcome import Outcome
from circuitsim.engine.small.plan import Plan
from circuitsim.engine.small.samples import BLOCK
from circuitsim.errors import TopologyError, UnboundedError, UsageError
from circuitsim.points import processors

LARGEST = 4000
"""Most nodes of a circuit whose samples go through the small driver; the engine takes those of larger ones."""
SHARE = 5_000
"""Fewest node-samples that are worth a thread of their own: to start one takes as long as 2,000 of them."""


@dataclass(frozen=True, eq=False, repr=False)
class BatchSolver:
    """A circuit ready for batches; make it with `circuitsim.batched`.

    Attributes
    ----------
    circuit : Circuit
    tolerance : float
    inputs : (k,) int array
        Elements (sources) whose values each sample brings.
    outputs : (q, 2) int array
        Node pairs.
    plan : Plan or None
        Of `columns`; None for circuits too large for the small driver.
    columns : tuple of arrays
        kind, first, second of the circuit's elements, then for every output a resistor (the stiffness) across it and a
        current source (what is injected).
    value : (m,) float array
        Element values, Ω, V, A.
    engine : EngineBatch
        For samples that the small driver does not solve.
    """

    circuit: Circuit
    tolerance: float
    inputs: np.ndarray
    outputs: np.ndarray
    plan: Plan | None
    columns: tuple[np.ndarray, np.ndarray, np.ndarray]
    value: np.ndarray
    engine: EngineBatch

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: _own(value) for name, value in state.items()})

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
        resistor = self.columns[0][: self.value.size] == RESISTOR
        if value.shape != self.value.shape:
            raise TopologyError(f"{self.value.size} element values are needed, not {value.shape}")
        if not (value[resistor] >= 0.0).all() or ((value == 0.0) != (self.value == 0.0))[resistor].any():
            raise TopologyError("resistances must stay positive (or zero) for a prepared batch: make a new one")
        return replace(self, value=value)

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
            Diodes to start with: a solution of as many samples. Without it each sample of a circuit of at most 4,000
            nodes starts with those of the one before it, but the first of every 16 with none.
        threads : int, optional
            Most threads; as many as the process may use, if not given. The result is the same.

        Raises
        ------
        UnboundedError
            A negative stiffness takes more conductance from the outputs than `stiffness_limit` allows.
        UsageError
            A negative stiffness in a circuit of more than 4,000 nodes.
        TopologyError
            Arrays of wrong shapes.
        """
        if stiffness < 0.0 and self.plan is None:
            raise UsageError(
                f"a circuit of more than {LARGEST:,} nodes takes no negative nudging resistor: use the constant nudge, "
                "or the positive variant"
            )
        if stiffness < 0.0 and -stiffness >= (limit := self.stiffness_limit()):
            raise UnboundedError(
                f"a nudge of {stiffness:g} S leaves no convex energy: the circuit holds its outputs with {limit:.6g} S "
                "when all diodes block; use a smaller beta, a current nudge or the positive estimator",
                elements=[],
                nodes=sorted({self.circuit.node_names[k] for k in self.outputs.ravel().tolist()}),
            )
        x, count = self.samples(values, injected)
        value = self.all_values(stiffness)
        kind, first, second = self.columns
        n, m, d = self.circuit.arrays().n_nodes, kind.size, int((kind == DIODE).sum())
        closed = np.zeros((count, d), dtype=bool)
        if start is not None:
            if start.closed.shape != closed.shape:
                raise TopologyError(f"the start has {len(start)} samples, the batch {count}")
            closed[:] = start.closed
        v, current = np.zeros((count, n)), np.zeros((count, m))
        worst, relative = np.empty((count, 7)), np.full((count, 8), np.inf)
        status, iterations = np.full(count, Outcome.MAX_ITERATIONS), np.zeros(count, dtype=np.int64)
        sources = np.concatenate([self.inputs, np.arange(m - len(self.outputs), m)])
        if self.plan is not None:
            rows = (closed, v, current, worst, relative, status, iterations)
            shared = kind, first, second, value, sources, x, MAX_ITERATIONS, start is None
            self._side_by_side("solve", count, threads, shared, rows, BLOCK if start is None else 1)
        if (status == Outcome.NONCONVEX).any():
            raise UnboundedError(f"a nudge of {stiffness:g} S leaves no convex energy: use a smaller beta", [], [])
        error = relative[:, :7].max(axis=1)
        batch = Batch(sources, x, closed, v, current, error, iterations)
        if self.plan is None and stiffness >= 0.0:
            self.engine.solve(value, batch, start is not None, threads or processors())
        elif stiffness >= 0.0:
            singular = status == Outcome.SINGULAR
            floats = bool(singular.any()) and self.engine.floats(value)
            good = (status <= Outcome.NONUNIQUE_CURRENTS) | (singular & (not floats))
            uncertified = ~(good & (error <= self.tolerance) & (relative[:, 7] <= ACCURATE))
            error[uncertified] = np.inf
            for s in np.flatnonzero(uncertified).tolist():
                self.engine.step_in(value, batch, s)
                iterations[s] = 0
        own = self.value.size
        output = v[:, self.outputs[:, 0]] - v[:, self.outputs[:, 1]]
        certified = error <= self.tolerance
        return BatchSolution(
            self.circuit, v, current[:, :own], closed, error, certified, output, iterations, float(stiffness)
        )

    def adjoint(
        self, solution: BatchSolution, cotangent: np.ndarray, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Linear response at a solution: H λ = −Bᵀ cotangent, conducting diodes held merged, sources at zero.

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
        v, current = self._responses(solution.stiffness, solution.closed, -cotangent, threads)
        return v, current[:, : self.value.size]

    def _responses(
        self, stiffness: float, closed: np.ndarray, injected: np.ndarray, threads: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Responses to currents into the outputs, (samples, q), A: sources at zero, conducting diodes as shorts."""
        value, count, n = self.all_values(stiffness), len(closed), self.circuit.arrays().n_nodes
        if self.plan is None:
            return self.engine.respond(value, closed, injected, threads or processors())
        into = np.zeros((count, n))
        for k, (p, q) in enumerate(self.outputs.tolist()):
            into[:, p] += injected[:, k]
            into[:, q] -= injected[:, k]
        v, current = np.zeros((count, n)), np.zeros((count, self.columns[0].size))
        self._side_by_side("respond", count, threads, (*self.columns, value, into), (closed, v, current))
        return v, current

    def stiffness_limit(self) -> float:
        """The conductance, S, that a negative nudge at the outputs must stay below whatever the diodes do: the least
        eigenvalue of S = (B H⁻¹ Bᵀ)⁻¹ with all diodes blocking; 0 where only diodes connect the two nodes of an output.
        """
        return self._limit

    @cached_property
    def _limit(self) -> float:
        if not len(self.outputs):
            return 0.0
        value, count, n = self.all_values(0.0), len(self.outputs), self.circuit.arrays().n_nodes
        blocking = np.zeros((count, int((self.columns[0] == DIODE).sum())), dtype=bool)
        if self.plan is not None and small_kernel("stable", n * count)(self.plan, value, blocking[0]):
            v = self._responses(0.0, blocking, np.eye(count), None)[0]
        else:  # large, or parts without a path to ground
            try:
                v = self.engine.respond(value, blocking, np.eye(count), processors())[0]
            except UnboundedError:
                return 0.0
        compliance = v[:, self.outputs[:, 0]] - v[:, self.outputs[:, 1]]
        largest = float(np.linalg.eigvalsh(0.5 * (compliance + compliance.T)).max())
        return 1.0 / largest if largest > 0.0 else np.inf

    def samples(self, values: np.ndarray | None, injected: np.ndarray | None) -> tuple[np.ndarray, int]:
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
        # One order of arrays, one compilation.
        return np.ascontiguousarray(np.concatenate([values, injected], axis=1)), count

    def all_values(self, stiffness: float) -> np.ndarray:
        """Values of all columns: the circuit's own, the nudging resistors', no injected current."""
        q = len(self.outputs)
        return np.concatenate([self.value, np.full(q, 1.0 / stiffness if stiffness else np.inf), np.zeros(q)])

    def _side_by_side(
        self,
        name: str,
        count: int,
        threads: int | None,
        shared: tuple[Any, ...],
        rows: tuple[Any, ...],
        block: int = 1,
    ) -> None:
        """Run a kernel over the samples, in as many parts as there are threads worth having, of whole blocks each."""
        nodes = self.circuit.arrays().n_nodes
        kernel = small_kernel(f"{name}_samples", nodes * count)
        parts = min(threads or processors(), nodes * count // SHARE)
        in_parts(lambda begin, end: kernel(self.plan, *shared, begin, end, *rows), count, block, parts)


def in_parts(run: Callable[[int, int], object], count: int, block: int, parts: int) -> None:
    """Run over ``count`` samples in so many parts at most, of whole blocks each, the first part on this thread."""
    blocks = -(-count // block)
    parts = max(1, min(parts, blocks))
    ends = [min(blocks * k // parts * block, count) for k in range(parts + 1)]
    if parts == 1:
        run(0, count)
        return
    with ThreadPoolExecutor(parts - 1) as pool:
        others = pool.map(run, ends[1:-1], ends[2:])
        run(ends[0], ends[1])
        list(others)


def _own(value: Any) -> Any:
    """A value whose arrays can be written to: one kind of array, one compilation. Those in a mapped file are copied."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else np.array(value)
    if isinstance(value, tuple):
        parts = map(_own, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return {key: _own(part) for key, part in value.items()} if isinstance(value, dict) else value
