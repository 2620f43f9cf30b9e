"""Batches of circuits with smooth devices: Newton's method for each sample, from the sample before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.load_lines import Ports
from circuitsim.analysis.newton import OPEN, Found, Smooth, Start, Way, iterate
from circuitsim.analysis.smooth_proof import device_currents, worst_sum
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE
from circuitsim.errors import ConvergenceError, TopologyError, UnboundedError

if TYPE_CHECKING:
    from circuitsim.analysis.batch import BatchSolver
    from circuitsim.analysis.batch_solution import BatchSolution


class _Sample(NamedTuple):
    """One sample as Newton's method sees it, and the batch of one that it came from."""

    voltages: np.ndarray
    currents: np.ndarray
    drops: np.ndarray
    batch: Any


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
        """Operating points of a batch; see `BatchSolver.solve`. Samples run one after the other."""
        x, count = self.inner.samples(values, injected)
        k, nodes = self.inner.inputs.size, self.circuit.arrays().n_nodes
        if start is not None and len(start) != count:
            raise TopologyError(f"the start has {len(start)} samples, the batch {count}")
        diodes = int((self.circuit.arrays().kind == DIODE).sum())
        voltages, currents = np.zeros((count, nodes)), np.zeros((count, self.value.size))
        closed, relative = np.zeros((count, diodes), dtype=bool), np.full(count, np.inf)
        iterations, before = np.zeros(count, dtype=np.int64), None
        for s in range(count):
            if start is not None:
                before = _sample(self.circuit, start, s)
            try:
                found = self._newton(x[s, :k], x[s, k:], stiffness, before)
            except ConvergenceError:
                continue
            before = found.point
            voltages[s], currents[s] = before.voltages, before.currents
            closed[s], iterations[s] = before.batch.closed[0], found.steps
            relative[s] = self._violation(found, x[s, k:], stiffness)
        output = voltages[:, self.inner.outputs[:, 0]] - voltages[:, self.inner.outputs[:, 1]]
        return self._solution(voltages, currents, closed, relative, output, iterations, stiffness)

    def _solution(
        self, voltages: np.ndarray, currents: np.ndarray, closed: np.ndarray, relative: np.ndarray,
        output: np.ndarray, iterations: np.ndarray, stiffness: float,
    ) -> BatchSolution:  # fmt: skip
        from circuitsim.analysis.batch_solution import BatchSolution

        certified = relative <= self.inner.tolerance
        return BatchSolution(
            self.circuit, voltages, currents, closed, relative, certified, output, iterations, float(stiffness)
        )

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
        responses, currents = [], []
        for s in range(len(solution)):
            tangents = self._tangents(solution, s)
            row, amperes = tangents.adjoint(_row(solution, s), cotangent[s : s + 1], threads)
            responses.append(row[0])
            currents.append(amperes[0])
        return np.array(responses), np.array(currents)

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
        solution, voltages=solution.voltages[at], currents=solution.currents[at], closed=solution.closed[at],
        relative=solution.relative[at], certified=solution.certified[at], output=solution.output[at],
        iterations=solution.iterations[at],
    )  # fmt: skip


def _sample(circuit: Circuit, solution: BatchSolution, s: int) -> _Sample:
    """Sample ``s`` of a batch, in the places of the circuit of elementary elements."""
    arrays = circuit.arrays()
    v = solution.voltages[s]
    return _Sample(v, solution.currents[s], v[arrays.first] - v[arrays.second], _row(solution, s))
