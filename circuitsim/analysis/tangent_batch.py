"""Batches of circuits with smooth devices: Newton's method for each sample, in one kernel where that certifies it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.newton import OPEN, Found, Ports, Smooth, Start, Way, iterate
from circuitsim.analysis.smooth_proof import device_currents, worst_sum
from circuitsim.analysis.smooth_small import at_zero, tangent_places
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE
from circuitsim.engine.small.samples import BLOCK
from circuitsim.errors import ConvergenceError, TopologyError, UnboundedError
from circuitsim.newton.kernels import newton_kernel

if TYPE_CHECKING:
    from circuitsim.analysis.batch import BatchSolver
    from circuitsim.analysis.batch_solution import BatchSolution


class _Sample(NamedTuple):
    """One sample as Newton's method sees it, and the batch of one that it came from."""

    voltages: np.ndarray
    currents: np.ndarray
    drops: np.ndarray
    batch: Any


class _Found(NamedTuple):
    """What a batch fills in: ideal diodes, potentials, V, currents of all columns, A, violations, steps."""

    closed: np.ndarray
    voltages: np.ndarray
    currents: np.ndarray
    relative: np.ndarray
    steps: np.ndarray

    @classmethod
    def empty(cls, batch: TangentBatch, count: int) -> _Found:
        """Nothing found yet."""
        kind, nodes = batch.inner.columns[0], batch.circuit.arrays().n_nodes
        return cls(
            np.zeros((count, int((kind == DIODE).sum())), dtype=bool),
            np.zeros((count, nodes)),
            np.zeros((count, kind.size)),
            np.full(count, np.inf),
            np.zeros(count, dtype=np.int64),
        )


@dataclass(frozen=True, eq=False, repr=False)
class TangentBatch:
    """A circuit of elementary elements, tangents of smooth devices among them; stands in for `BatchSolver`.

    Attributes
    ----------
    inner : BatchSolver
        Of the same elements; its values at the tangents' places are replaced in each step.
    smooth : Smooth
    """

    inner: BatchSolver
    smooth: Smooth

    @property
    def circuit(self) -> Circuit:
        """The circuit of elementary elements."""
        return self.inner.circuit

    @property
    def value(self) -> np.ndarray:
        """Values of all elements, Ω, V, A (m,)."""
        return self.inner.value

    def with_values(self, values: Any) -> TangentBatch:
        """The same structure with other element values; see `BatchSolver.with_values`."""
        return TangentBatch(self.inner.with_values(values), self.smooth)

    def solve(
        self,
        values: np.ndarray | None = None,
        injected: np.ndarray | None = None,
        stiffness: float = 0.0,
        start: BatchSolution | None = None,
        threads: int | None = None,
    ) -> BatchSolution:
        """Operating points of a batch; see `BatchSolver.solve`."""
        x, count = self.inner.samples(values, injected)
        if start is not None and len(start) != count:
            raise TopologyError(f"the start has {len(start)} samples, the batch {count}")
        found = _Found.empty(self, count)
        if start is not None:
            own = start.currents.shape[1]  # the last elements, which hold outputs, may be new
            found.closed[:], found.voltages[:], found.currents[:, :own] = start.closed, start.voltages, start.currents
        if self.inner.plan is not None and stiffness >= 0.0:
            self._in_kernel(x, stiffness, start is not None, threads, found)
        self._one_by_one(x, stiffness, start, found)
        pairs, own = self.inner.outputs, self.value.size
        output = found.voltages[:, pairs[:, 0]] - found.voltages[:, pairs[:, 1]]
        from circuitsim.analysis.batch_solution import BatchSolution

        return BatchSolution(
            self.circuit,
            found.voltages,
            found.currents[:, :own].copy(),
            found.closed,
            found.relative,
            found.relative <= self.inner.tolerance,
            output,
            found.steps,
            float(stiffness),
        )

    def _in_kernel(self, x: np.ndarray, stiffness: float, given: bool, threads: int | None, found: _Found) -> None:
        """The samples that the kernel certifies, on threads, in whole blocks each."""
        kind, first, second = self.inner.columns
        m, nodes = kind.size, self.circuit.arrays().n_nodes
        sources = np.concatenate([self.inner.inputs, np.arange(m - len(self.inner.outputs), m)])
        zero = at_zero(self.smooth)
        points = np.concatenate([zero.junctions[None], zero.points])
        shared = (
            self.inner.plan,
            kind,
            first,
            second,
            self.inner.all_values(stiffness),
            sources,
            x,
            *self._places(),
            self.smooth.rows,
            points,
            given,
            self.inner.tolerance,
        )
        work = (nodes + 20 * self.smooth.rest.size) * len(x)
        _side_by_side("newton_samples", work, len(x), threads, shared, found[:5], 1 if given else BLOCK)

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """See `circuitsim.analysis.smooth_small.tangent_places`."""
        return tangent_places(self.smooth, self.inner.columns[0].size)

    def _one_by_one(self, x: np.ndarray, stiffness: float, start: BatchSolution | None, found: _Found) -> None:
        """The samples that are not certified yet, each from the start or the one before."""
        k, before = self.inner.inputs.size, None
        for s in np.flatnonzero(~(found.relative <= self.inner.tolerance)).tolist():
            if start is not None:
                before = _sample(self.circuit, start, s)
            try:
                ended = self._newton(x[s, :k], x[s, k:], stiffness, before)
            except ConvergenceError:
                continue
            before, own = ended.point, self.value.size
            found.voltages[s], found.currents[s, :own] = before.voltages, before.currents
            found.closed[s], found.steps[s] = before.batch.closed[0], ended.steps
            found.relative[s] = self._violation(ended, x[s, k:], stiffness)

    def _newton(self, x: np.ndarray, injected: np.ndarray, stiffness: float, before: _Sample | None) -> Found:
        """Newton's method for one sample."""

        def solve(column: np.ndarray, previous: _Sample | None) -> _Sample:
            at = replace(self.inner, value=column.copy())
            if stiffness < 0.0 and -stiffness >= at.stiffness_limit():
                raise UnboundedError(f"a nudge of {stiffness:g} S leaves no convex energy: use a smaller beta", [], [])
            near = None if previous is None else previous.batch
            found = at.solve(x[None, :], injected[None, :], stiffness, near)
            if not found.certified[0]:
                raise ConvergenceError("a step of Newton's method has no certified operating point")
            return _sample(self.circuit, found, 0)

        start, slope, rest = None, self.smooth.slope, self.smooth.rest
        if before is not None:
            start = Start(before, before.drops[rest], before.currents[slope] + before.currents[rest])
        column = self.value.copy()
        column[self.inner.inputs] = x
        nudged = stiffness != 0.0 or injected.any()  # with terms of the energy that no element has
        way = Way(Ports(self.circuit, self.smooth).resistances) if nudged else None
        return iterate(solve, self.circuit, self.smooth, column, start, self.inner.tolerance, way)

    def _violation(self, found: Found, injected: np.ndarray, stiffness: float) -> float:
        """The worst relative violation: of the linear circuit, of Kirchhoff's current law with the devices' own
        currents, and of the distance from the curves."""
        _, first, second, _, n_nodes = self.circuit.arrays()
        pairs = self.inner.outputs
        drop = found.point.voltages[pairs[:, 0]] - found.point.voltages[pairs[:, 1]]
        currents = np.concatenate([device_currents(found, self.smooth), stiffness * drop - injected])
        a, b = np.concatenate([first, pairs[:, 0]]), np.concatenate([second, pairs[:, 1]])
        _, kcl = worst_sum(a, b, currents, np.zeros(currents.size), n_nodes)
        return max(float(found.point.batch.relative[0]), kcl, float(found.distance.max()))

    def adjoint(
        self, solution: BatchSolution, cotangent: np.ndarray, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Linear response at a solution, with the tangents there; see `BatchSolver.adjoint`."""
        if self.inner.plan is None:
            parts = [
                self._tangents(solution, s).adjoint(_row(solution, s), cotangent[s : s + 1], threads)
                for s in range(len(solution))
            ]
            return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        kind, first, second = self.inner.columns
        count, nodes, own = len(solution), self.circuit.arrays().n_nodes, self.value.size
        injected = np.zeros((count, nodes))
        for k, (p, q) in enumerate(self.inner.outputs.tolist()):
            injected[:, p] -= cotangent[:, k]
            injected[:, q] += cotangent[:, k]
        response, flows, current = np.zeros((count, nodes)), np.zeros((count, kind.size)), np.zeros((count, kind.size))
        current[:, :own] = solution.currents
        shared = (
            self.inner.plan,
            kind,
            first,
            second,
            self.inner.all_values(solution.stiffness),
            self._places()[0],
            self.smooth.rows,
            injected,
        )
        rows = solution.closed, solution.voltages, current, response, flows
        _side_by_side("newton_responses", nodes * count, count, threads, shared, rows)
        return response, flows[:, :own]

    def _tangents(self, solution: BatchSolution, s: int) -> BatchSolver:
        """The solver with the tangents of sample ``s``."""
        from circuitsim.analysis.newton import tangents

        at = _sample(self.circuit, solution, s)
        slope, rest = self.smooth.slope, self.smooth.rest
        start = Start(at, at.drops[rest], at.currents[slope] + at.currents[rest])
        column = self.value.copy()
        tangents(start.state(self.smooth), column, self.smooth)
        return replace(self.inner, value=column)

    def stiffness_limit(self) -> float:
        """A bound for all states: smooth devices count as open (least slope); see `BatchSolver.stiffness_limit`."""
        column = self.value.copy()
        column[self.smooth.slope] = 1.0 / OPEN
        return replace(self.inner, value=column).stiffness_limit()


def _row(solution: BatchSolution, s: int) -> BatchSolution:
    """The batch of sample ``s`` alone."""
    at = slice(s, s + 1)
    return replace(
        solution,
        voltages=solution.voltages[at],
        currents=solution.currents[at],
        closed=solution.closed[at],
        relative=solution.relative[at],
        certified=solution.certified[at],
        output=solution.output[at],
        iterations=solution.iterations[at],
    )


def _sample(circuit: Circuit, solution: BatchSolution, s: int) -> _Sample:
    """Sample ``s`` of a batch, in the places of the circuit of elementary elements."""
    arrays = circuit.arrays()
    v = solution.voltages[s]
    return _Sample(v, solution.currents[s], v[arrays.first] - v[arrays.second], _row(solution, s))


NEWTON = 6
"""How many times as long as a linear circuit's a sample of Newton's method takes."""


def _side_by_side(
    name: str,
    work: int,
    count: int,
    threads: int | None,
    shared: tuple[Any, ...],
    rows: tuple[Any, ...],
    block: int = 1,
) -> None:
    """Run a kernel over the samples, in as many parts as there are threads worth having, of whole blocks each."""
    from circuitsim.analysis.batch import SHARE, in_parts
    from circuitsim.points import processors

    kernel = newton_kernel(name, work)
    parts = min(threads or processors(), NEWTON * work // SHARE)
    in_parts(lambda begin, end: kernel(*shared, begin, end, *rows), count, block, parts)
