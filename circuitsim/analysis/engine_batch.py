"""Batches of circuits beyond the small driver: samples by the active-set engine, by one factor where they share it.

Samples with the same conducting diodes are right-hand sides of one linear circuit. These diodes are known where a batch
has a start; else alternating directions tell most of them (`SingleSamples.likely`), or those of a sample that the
engine has solved are tried on the next ones of its block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.linear_batch import LinearBatch, Samples, linear_batch
from circuitsim.analysis.single_samples import Linear, SingleSamples
from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.engine import nodal
from circuitsim.engine.small.currents import ACCURATE
from circuitsim.engine.small.samples import BLOCK
from circuitsim.errors import CircuitError

FEWEST = 3
"""Fewest samples for which alternating directions take less time than what they save."""

NEAR = 0.1
"""Samples that differ by less than this share of their values from the one before begin with its diodes."""

NO_ELEMENTS = np.zeros(0, dtype=np.int64)


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
        Linear circuits solved; 0 where the engine solved them.
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

    @property
    def diodes(self) -> np.ndarray:
        """Diodes, as elements of this circuit."""
        return self.solver.structure.diodes

    @property
    def place(self) -> np.ndarray | slice:
        """Its elements among all: nothing to pick where all are there."""
        return slice(None) if self.there.all() else self.there


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
    _singles: list[SingleSamples] = field(default_factory=list, init=False)
    """The solver of samples one by one at the latest resistances."""

    def ready(self, value: np.ndarray) -> Ready:
        """The analysed circuit of those elements that are there at these values (m,), Ω, V, A."""
        there = np.isfinite(value) | (self.kind == DIODE)
        key = np.packbits(there).tobytes()
        if key not in self._ready:
            columns = self.kind[there], self.first[there], self.second[there], value[there]
            made = prepared(Circuit.from_arrays(*columns, self.n_nodes), tolerance=self.tolerance)
            assert isinstance(made, Prepared)
            self._ready[key] = Ready(there, made)
        return self._ready[key]

    def floats(self, value: np.ndarray) -> bool:
        """Whether some part has no path to ground: its potentials are those against a reference node."""
        return bool(self.ready(value).solver.structure.references.size)

    # ------------------------------------------------------------------ operating points
    def solve(self, value: np.ndarray, batch: Batch, started: bool, threads: int) -> None:
        """Fill in all samples; ``started`` where ``batch.closed`` holds diodes to start with.

        A sample without a certified steady state keeps an infinite error.
        """
        ready = self.ready(value)
        single = self._single(ready, value)
        if single is not None:
            single.kept.clear()
            if not started and len(batch.x) >= FEWEST:
                started = self._likely(ready, value, batch, single, threads)
        if not ready.diodes.size:
            self._together(ready, value, batch, np.arange(len(batch.x)), NO_ELEMENTS, threads)
        elif started:
            for rows in _alike(batch.closed):
                if rows.size > 1:
                    self._together(ready, value, batch, rows, np.flatnonzero(batch.closed[rows[0]]), threads)
        ready.solver.resistances  # noqa: B018 made once, before threads share it
        _each(
            lambda rows: self._block(ready, value, batch, rows, started, single), _blocks(range(len(batch.x))), threads
        )

    def step_in(self, value: np.ndarray, batch: Batch, s: int, currents: np.ndarray | None = None) -> bool:
        """The engine's answer for sample ``s``, where it has one, from the branch ``currents`` of a start."""
        ready = self.ready(value)
        own = value.copy()
        own[batch.inputs] = batch.x[s]
        try:
            point = ready.solver.solve_from(own[ready.there], currents)
        except CircuitError:
            return False  # no steady state, or none that can be certified
        batch.v[s], batch.error[s], batch.iterations[s] = point.voltages, point.certificate.worst, 0
        batch.current[s, ready.there] = point.currents
        batch.closed[s] = point.currents[ready.solver.circuit.arrays().kind == DIODE] > 0.0
        return True

    def _likely(self, ready: Ready, value: np.ndarray, batch: Batch, single: SingleSamples, threads: int) -> bool:
        """Fill in ``batch.closed`` with diodes to start with; returns whether they are better than those of the sample
        before."""
        if not single.tells or _near(batch.x):
            return False

        def part(rows: range) -> int:
            own = np.tile(value, (len(rows), 1))
            own[:, batch.inputs] = batch.x[rows.start : rows.stop]
            batch.closed[rows.start : rows.stop], changed = single.likely(own[:, ready.place])
            return changed

        changed = sum(_each(part, _blocks(range(len(batch.x))), threads))
        good = changed <= nodal.FEW * batch.closed.size
        if not good:
            batch.closed[:] = False
        return good

    def _single(self, ready: Ready, value: np.ndarray) -> SingleSamples | None:
        """The solver of samples that share no linear circuit with others, where the circuit allows it."""
        arrays = ready.solver.circuit.arrays()._replace(value=value[ready.there])
        own, r = ready.solver.resistances, ready.solver.structure.resistors
        if self._singles and self._singles[0].resistances.wiring is ready.solver.wiring:
            own = self._singles[0].resistances
        if not np.array_equal(own.ohms[r], arrays.value[r]):
            own = ready.solver.wiring.at(arrays.value)
        if not self._singles or self._singles[0].resistances is not own:
            self._singles[:] = [SingleSamples(own, arrays)]
        return self._singles[0] if self._singles[0].suits else None

    def _block(
        self, ready: Ready, value: np.ndarray, batch: Batch, rows: range, started: bool, single: SingleSamples | None
    ) -> None:
        """A block of samples that have no result yet, each but the first from the one before it if not ``started``."""
        before, linear, useful = NO_ELEMENTS, None, not started
        for s in rows:
            if batch.error[s] <= self.tolerance:
                before = ready.diodes[batch.closed[s]]
                continue
            if started:
                before = ready.diodes[batch.closed[s]]
            linear = self._alone(ready, value, batch, s, before, linear, single)
            if linear is None:
                start = np.zeros(int(ready.there.sum()))
                start[before] = 1.0
                if not self.step_in(value, batch, s, start):
                    before = NO_ELEMENTS
                    continue
            alike = linear is None or np.array_equal(before, linear.closed)
            before = ready.diodes[batch.closed[s]]
            rest = np.array([k for k in rows if k > s and not batch.error[k] <= self.tolerance], dtype=np.int64)
            if useful and alike and rest.size and ready.diodes.size:
                self._together(ready, value, batch, rest, np.flatnonzero(batch.closed[s]), 1)
                useful = bool((batch.error[rest] <= self.tolerance).any())

    def _alone(
        self,
        ready: Ready,
        value: np.ndarray,
        batch: Batch,
        s: int,
        closed: np.ndarray,
        before: Linear | None,
        single: SingleSamples | None,
    ) -> Linear | None:
        """Sample ``s`` from the diodes ``closed`` by a linear circuit of its own, which is the result; None without an
        answer."""
        if single is None:
            return None
        own, place = value.copy(), ready.place
        own[batch.inputs] = batch.x[s]
        found = single.solve(own[place], closed, before, self.tolerance)
        if found is None:
            return None
        batch.v[s], batch.error[s], batch.iterations[s] = found.v, found.relative, found.iterations
        batch.current[s, place] = found.current
        conducts = np.zeros(found.current.size, dtype=bool)
        conducts[found.linear.closed] = True
        batch.closed[s] = conducts[ready.diodes]
        return single.keep(found.linear)

    def _together(
        self, ready: Ready, value: np.ndarray, batch: Batch, rows: np.ndarray, on: np.ndarray, threads: int
    ) -> None:
        """Solve the linear circuit in which the diodes ``on`` conduct for some samples; keep what is certified."""
        made = self._linear(ready, value, ready.diodes[on], True)
        if made is None:
            return
        drive = np.repeat(value[np.flatnonzero(ready.there)[made.network.sources]][:, None], rows.size, axis=1)
        place = np.full(value.size, -1, dtype=np.int64)
        place[np.flatnonzero(ready.there)[made.network.sources]] = np.arange(len(drive))
        drive[place[batch.inputs]] = batch.x[rows].T
        into = _room(rows.size, self.n_nodes, int(ready.there.sum()))
        made.solve(drive, into, threads)
        error = into.relative[:, :7].max(axis=1)
        good = (error <= self.tolerance) & (into.relative[:, 7] <= ACCURATE)
        kept = rows[good]
        batch.v[kept], batch.error[kept], batch.iterations[kept] = into.v[good], error[good], 1
        batch.current[np.ix_(kept, ready.there)] = into.current[good]
        batch.closed[kept] = False
        batch.closed[np.ix_(kept, on)] = True

    def _linear(
        self, ready: Ready, value: np.ndarray, closed: np.ndarray, signed: bool, last: LinearBatch | None = None
    ) -> LinearBatch | None:
        arrays = ready.solver.circuit.arrays()._replace(value=value[ready.there])
        before = None if last is None else last.network.factored
        return linear_batch(ready.solver.wiring, arrays, closed, signed, before)

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
        found = np.zeros((count, self.n_nodes)), np.zeros((count, value.size))
        groups = list(_alike(closed))
        blocks = _blocks(groups)
        ready.solver.wiring.pattern.symbolic  # noqa: B018 made once, before threads share it
        inner = threads if len(blocks) == 1 else 1
        _each(lambda some: self._respond_block(ready, value, some, closed, injected, found, inner), blocks, threads)
        return found

    def _respond_block(
        self,
        ready: Ready,
        value: np.ndarray,
        groups: list[np.ndarray],
        closed: np.ndarray,
        injected: np.ndarray,
        into: tuple[np.ndarray, np.ndarray],
        threads: int,
    ) -> None:
        """`respond` for some groups of samples that are alike, each after the one before it."""
        (v, current), made, single, linear = into, None, self._single(ready, value), None
        m, q = int(ready.there.sum()), injected.shape[1]
        for rows in groups:
            on = np.flatnonzero(closed[rows[0]])
            if rows.size == 1 and single is not None:
                alone = single.respond(ready.diodes[on], np.arange(m - q, m), injected[rows[0]], linear, TOLERANCE)
                linear = None if alone is None else alone.linear
                if alone is not None:
                    v[rows[0]], current[rows[0], ready.place] = alone.v, alone.current
                    continue
            made = self._linear(ready, value, ready.diodes[on], False, made)
            found = None if made is None else _responses(made, injected[rows], self.n_nodes, threads)
            if found is None:
                v[rows], current[rows] = self._one_by_one(value, on, injected[rows])
            else:
                v[rows], current[np.ix_(rows, ready.there)] = found

    def _one_by_one(self, value: np.ndarray, on: np.ndarray, injected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One operating point a response, with sources of 0 V as conducting diodes."""
        kinds, values = self.kind.copy(), value.copy()
        diode = np.flatnonzero(kinds == DIODE)
        kinds[diode] = VOLTAGE
        values[(kinds == VOLTAGE) | (kinds == CURRENT)] = 0.0
        there = np.isfinite(values)
        there[diode] = False
        there[diode[on]] = True
        columns = kinds[there], self.first[there], self.second[there]
        v, current = np.zeros((len(injected), self.n_nodes)), np.zeros((len(injected), value.size))
        for s, amperes in enumerate(injected):
            values[values.size - amperes.size :] = amperes
            point = prepared(Circuit.from_arrays(*columns, values[there], self.n_nodes)).solve()
            v[s], current[s, there] = point.voltages, point.currents
        return v, current


def _blocks(rows: Any) -> list[Any]:
    """Parts of `BLOCK` items."""
    return [rows[k : k + BLOCK] for k in range(0, len(rows), BLOCK)]


def _each(action: Callable[[Any], Any], blocks: Sequence[Any], threads: int) -> list[Any]:
    """What ``action`` returns for each of the blocks, on so many threads at most."""
    if min(threads, len(blocks)) <= 1:
        return [action(block) for block in blocks]
    with ThreadPoolExecutor(min(threads, len(blocks))) as pool:
        return list(pool.map(action, blocks))


def _near(x: np.ndarray) -> bool:
    """Whether most rows are near the one before."""
    half = 0.5 * x  # differences of the largest doubles are none
    steps, sizes = (np.abs(part).max(axis=1, initial=0.0) for part in (np.diff(half, axis=0), half))
    return bool(np.median(steps) <= NEAR * np.median(sizes))


def _alike(closed: np.ndarray) -> Iterator[np.ndarray]:
    """Rows of equal samples, in the order in which they first occur."""
    groups: dict[bytes, list[int]] = {}
    for s, key in enumerate(np.packbits(closed, axis=1)):
        groups.setdefault(key.tobytes(), []).append(s)
    return iter([np.array(rows) for rows in groups.values()])


def _room(count: int, n_nodes: int, m: int) -> Samples:
    return Samples(np.zeros((count, n_nodes)), np.zeros((count, m)), np.empty((count, 7)), np.full((count, 8), np.inf))


def _responses(
    made: LinearBatch, injected: np.ndarray, n_nodes: int, threads: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """All responses of one linear circuit; None where one of them is not certified."""
    count, q = injected.shape
    drive = np.zeros((made.network.sources.size, count))
    drive[drive.shape[0] - q :] = injected.T
    into = _room(count, n_nodes, made.network.arrays.kind.size)
    made.solve(drive, into, threads, np.inf)
    return (into.v, into.current) if (into.relative[:, :7] <= TOLERANCE).all() else None
