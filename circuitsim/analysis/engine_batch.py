"""Batches of circuits beyond the small driver: samples by the active-set engine, one by one.

Samples of a circuit without diodes are columns of one factor (`circuitsim.engine.steady_state.linear_states`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.certificate import certify
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE, RESISTOR, VOLTAGE
from circuitsim.engine.network import Network
from circuitsim.engine.refinement import solve_linear
from circuitsim.engine.steady_state import linear_states
from circuitsim.errors import CircuitError
from circuitsim.kernels import keep_memory
from circuitsim.solvers.protocol import Factored

GROUP = 8
"""Samples that one thread treats together: right-hand sides of one pass of a substitution."""


class Batch(NamedTuple):
    """Samples and where their results go, one row each.

    Attributes
    ----------
    inputs : (k,) int array
        Elements (sources) whose values change from sample to sample.
    x : (samples, k) float array
        Those values, V, A.
    closed : (samples, d) bool array
        Diodes to start with; on return those that conduct.
    v, current : (samples, n_nodes), (samples, m) float arrays
        Filled: V and A.
    error : (samples,) float array
        Worst relative violation; infinite where a sample has no result.
    iterations : (samples,) int array
        Linear circuits solved.
    """

    inputs: np.ndarray
    x: np.ndarray
    closed: np.ndarray
    v: np.ndarray
    current: np.ndarray
    error: np.ndarray
    iterations: np.ndarray


class Ready(NamedTuple):
    """The circuit of the elements that are ``there`` (m,): all but resistors of infinite resistance."""

    there: np.ndarray
    solver: Prepared

    def network(self, value: np.ndarray) -> Network:
        """The network at the values (m,) of all elements, Ω, V, A."""
        structure = self.solver.structure
        arrays = structure.arrays._replace(value=value[self.there])
        return self.solver.resistances.network(structure._replace(arrays=arrays), direct=True)


@dataclass(frozen=True, eq=False)
class EngineBatch:
    """The columns of a circuit and what was analysed of them, for all values.

    Attributes
    ----------
    kind, first, second : (m,) arrays
    n_nodes : int
    tolerance : float
        Of the certificates.
    """

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    n_nodes: int
    tolerance: float
    _ready: dict[bytes, Ready] = field(default_factory=dict, init=False)

    def ready(self, value: np.ndarray) -> Ready:
        """The analysed circuit of those elements that are there at these values (m,), Ω, V, A, with factors at its
        latest resistances."""
        there = np.isfinite(value) | (self.kind == DIODE)
        key, own = np.packbits(there).tobytes(), value[there]
        made = self._ready.get(key)
        if made is None:
            columns = self.kind[there], self.first[there], self.second[there], own
            solver = prepared(Circuit.from_arrays(*columns, self.n_nodes), tolerance=self.tolerance)
            assert isinstance(solver, Prepared)
            made = Ready(there, solver)
        elif (own != made.solver.circuit.arrays().value)[self.kind[there] == RESISTOR].any():
            made = Ready(there, made.solver.at(own))
        self._ready[key] = made
        return made

    def floats(self, value: np.ndarray) -> bool:
        """Whether some part has no path to ground: its potentials are those against a reference node."""
        return bool(self.ready(value).solver.structure.references.size)

    # ------------------------------------------------------------------ operating points
    def solve(self, value: np.ndarray, batch: Batch, started: bool, threads: int) -> None:
        """Fill in all samples; ``started`` where ``batch.closed`` holds diodes to start with.

        A sample without a certified steady state keeps an infinite error.
        """
        ready = self.ready(value)
        if not ready.solver.structure.diodes.size:
            self._together(ready, value, batch, threads)

        def each(rows: Sequence[int]) -> None:
            for s in rows:
                self.step_in(value, batch, s, started)

        rest = np.flatnonzero(~(batch.error <= self.tolerance)).tolist()
        each(rest[:1])  # with it what all share is made once
        _in_groups(each, rest[1:], threads)

    def step_in(self, value: np.ndarray, batch: Batch, s: int, started: bool = False) -> None:
        """Fill in sample ``s``, where the engine has an answer."""
        ready, own = self.ready(value), value.copy()
        own[batch.inputs] = batch.x[s]
        start = np.zeros(own.size)
        start[self.kind == DIODE] = batch.closed[s]
        try:
            point = ready.solver.solve_from(own[ready.there], start[ready.there] if started else None)
        except CircuitError:
            return  # no steady state, or none that can be certified
        batch.v[s], batch.error[s] = point.voltages, point.certificate.worst
        batch.current[s, ready.there] = point.currents
        batch.closed[s] = point.currents[ready.solver.circuit.arrays().kind == DIODE] > 0.0
        batch.iterations[s] = point.solver["iterations"]

    def _together(self, ready: Ready, value: np.ndarray, batch: Batch, threads: int) -> None:
        """Fill in samples of a linear circuit, those that its one factor proves."""
        keep_memory()
        net = ready.network(value)
        factored = net.laplacian.factor(net.diodes)

        def some(rows: Sequence[int]) -> None:
            columns = np.tile(value, (len(rows), 1))
            columns[:, batch.inputs] = batch.x[rows]
            nets = [ready.network(column) for column in columns]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                for s, net, found in zip(rows, nets, linear_states(nets, factored)):
                    if found is not None:
                        arrays = net.structure.arrays
                        state = found.voltages, found.current, found.drop
                        batch.error[s] = certify(arrays, arrays.value, *state, self.tolerance, found.low).worst
                        batch.v[s], batch.current[s, ready.there] = state[:2]
                        batch.iterations[s] = found.iterations

        _in_groups(some, range(len(batch.x)), threads)

    # ------------------------------------------------------------------ linear responses
    def respond(
        self, value: np.ndarray, closed: np.ndarray, injected: np.ndarray, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Responses to injected currents: sources at zero, conducting diodes as shorts, all others absent.

        Parameters
        ----------
        value : (m,) float array
        closed : (samples, d) bool array
            Conducting diodes.
        injected : (samples, q) float array
            Currents of the last q elements, A.
        threads : int
            Most threads.

        Returns
        -------
        v : (samples, n_nodes) float array
            Node potentials, V.
        current : (samples, m) float array
            Branch currents, A.

        Raises
        ------
        UnboundedError
            A net current into a part without a path to ground.
        """
        ready, count = self.ready(value), len(closed)
        v, current = np.zeros((count, self.n_nodes)), np.zeros((count, value.size))

        def some(rows: Sequence[int]) -> None:
            factored = None
            for s in rows:
                values = np.where(self.kind == RESISTOR, value, 0.0)
                values[value.size - injected.shape[1] :] = injected[s]
                factored = self._respond(ready, values, closed[s], factored, v[s], current[s])

        # Samples with equal diodes one after the other have one factor.
        rows = sorted(range(count), key=lambda s: closed[s].tobytes())
        some(rows[:1])  # with it what all share is made once
        _in_groups(some, rows[1:], threads)
        return v, current

    def _respond(
        self,
        ready: Ready,
        value: np.ndarray,
        closed: np.ndarray,
        factored: Factored | None,
        v: np.ndarray,
        current: np.ndarray,
    ) -> Factored | None:
        """Fill in the response ``v``, ``current`` to the sources in ``value``; returns the factor for the next one."""
        structure, net = ready.solver.structure, ready.network(value)
        on = structure.diodes[closed]
        if not (structure.forest.closing.size or structure.references.size):
            nothing = np.zeros(max(net.first.size, self.n_nodes))
            point = solve_linear(net, on, nothing[: net.first.size], nothing[: self.n_nodes], factored)
            if point.converged and point.closed[on].all() and not point.tree.root_of.any():
                v[:], current[ready.there] = point.v, point.current
                return point.factored
        # Loops without a resistance, or parts without a path to ground: sources of 0 V as conducting diodes.
        kind, there = self.kind.copy(), ready.there.copy()
        diode = np.flatnonzero(kind == DIODE)
        kind[diode], there[diode] = VOLTAGE, closed
        columns = kind[there], self.first[there], self.second[there], value[there]
        found = prepared(Circuit.from_arrays(*columns, self.n_nodes)).solve()
        v[:], current[there] = found.voltages, found.currents
        return None


def _in_groups(action: Callable[[Sequence[int]], None], rows: Sequence[int], threads: int) -> None:
    """Do something for groups of samples, on so many threads at most."""
    groups = [rows[k : k + GROUP] for k in range(0, len(rows), GROUP)]
    if min(threads, len(groups)) <= 1:
        for group in groups:
            action(group)
    else:
        with ThreadPoolExecutor(min(threads, len(groups))) as pool:
            list(pool.map(action, groups))
