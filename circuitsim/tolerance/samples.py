"""Many operating points of one circuit whose values all change: the work of a task on any machine."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.probes import Formula, Probe, Reader, parse_probes
from circuitsim.analysis.small_circuit import SmallCircuitSolver
from circuitsim.analysis.solve import Prepared, prepared
from circuitsim.circuit import Circuit
from circuitsim.engine.small.active_set import MAX_ITERATIONS
from circuitsim.engine.small.kernels import small_kernel
from circuitsim.engine.small.outcome import Outcome
from circuitsim.errors import ConvergenceError, NoSteadyStateError, TopologyError, UsageError
from circuitsim.journal import digest

NUMBERS_AT_ONCE = 1 << 20
"""Most numbers of the results that are held at once for reading."""

CIRCUITS = 4
"""Circuits that a process keeps prepared."""


class Job(NamedTuple):
    """What every sample has in common; travels to other processes.

    Attributes
    ----------
    circuit : Circuit
    names : tuple of str
        The numbers that change.
    columns : str
        Quantities to read.
    tolerance : float
        Of the certificates.
    """

    circuit: Circuit
    names: tuple[str, ...]
    columns: str
    tolerance: float


class Solved(NamedTuple):
    """Quantities (n, q) of each sample, nan where there is no steady state, and the worst violation of any."""

    values: np.ndarray
    worst: float
    failures: int


class Worker:
    """A circuit ready for samples.

    Every sample starts with the conducting diodes of the nominal operating point, so that results depend on its values
    alone.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.circuit = job, job.circuit
        self.ready = prepared(job.circuit, tolerance=job.tolerance)
        self.nominal: OperatingPoint = self.ready.solve()
        self.probes = parse_probes(job.columns, job.circuit)
        self.reader = Reader(self.probes, job.circuit)
        elements = [name for name in job.names if name in job.circuit]
        self.places = np.array([job.circuit.element_index(name) for name in elements], dtype=np.int64)
        simple = all(isinstance(probe, Probe) and probe.kind in "vip" for probe in self.probes)
        small = self.ready.small if isinstance(self.ready, Prepared) else None
        simple = simple and len(elements) == len(job.names)
        self.small = small if isinstance(small, SmallCircuitSolver) and simple else None
        self._forms = _forms(self.probes, job.circuit) if self.small is not None else None

    def solve(self, values: np.ndarray) -> Solved:
        """The quantities of samples with these values (n, p) of the changing numbers."""
        if self.small is None:
            return self._one_by_one(values)
        rows = max(1, NUMBERS_AT_ONCE // self.small.size)
        parts = [self._by_kernel(values[k : k + rows]) for k in range(0, len(values), rows)]
        return Solved(
            np.concatenate([part.values for part in parts]),
            max(part.worst for part in parts),
            sum(part.failures for part in parts),
        )

    def _by_kernel(self, values: np.ndarray) -> Solved:
        small = self.small
        assert small is not None and self._forms is not None
        m, n = small.value.size, len(values)
        out = np.empty((n, small.size))
        out[:, :m] = small.value
        out[:, self.places] = values
        guess, (packed, numbers) = self.nominal.currents, small.memory()
        kernel = small_kernel("solve_once", n * small._nodes)
        status, worst = np.empty(n, np.int64), np.empty(n)
        for s in range(n):
            status[s], worst[s] = kernel(packed, numbers, guess, MAX_ITERATIONS, out[s])
        good = (status == Outcome.CONVERGED) & (worst <= self.job.tolerance)
        with np.errstate(invalid="ignore", over="ignore"):  # of samples that are not certified
            found = self._forms.read(out[:, small.voltages], out[:, small.currents])
        failures, largest = 0, float(worst[good].max(initial=0.0))
        for s in np.flatnonzero(~good).tolist():
            point = self._point(out[s, :m])
            failures += point is None
            found[s] = np.nan if point is None else self.reader.read(point)
            largest = max(largest, 0.0 if point is None else point.certificate.worst)
        return Solved(found, largest, failures)

    def _point(self, values: np.ndarray | dict[str, float]) -> OperatingPoint | None:
        """The operating point of one sample, None where there is none."""
        try:
            return self.ready.solve(values, self.nominal)
        except NoSteadyStateError:
            return None
        except ConvergenceError as error:
            raise ConvergenceError(f"a sample has no certified operating point: {error}") from None
        except TopologyError as error:
            raise UsageError(f"a sample is out of range: {error}; a truncated distribution keeps the limits") from None

    def _one_by_one(self, values: np.ndarray) -> Solved:
        found, worst, failures = np.full((len(values), len(self.probes)), np.nan), 0.0, 0
        for s, row in enumerate(values.tolist()):
            point = self._point(dict(zip(self.job.names, row)))
            if point is None:
                failures += 1
            else:
                found[s] = self.reader.read(point)
                worst = max(worst, point.certificate.worst)
        return Solved(found, worst, failures)


class _Forms(NamedTuple):
    """Where the quantities of many samples stand."""

    plus: np.ndarray
    minus: np.ndarray
    carrier: np.ndarray
    kind: np.ndarray

    def read(self, v: np.ndarray, i: np.ndarray) -> np.ndarray:
        """Quantities (n, q) from potentials (n, n_nodes) and currents (n, m)."""
        found = np.empty((len(v), self.kind.size))
        for q, kind in enumerate(self.kind.tolist()):
            if kind == 1:
                found[:, q] = i[:, self.carrier[q]]
                continue
            found[:, q] = v[:, self.plus[q]]
            if self.minus[q] >= 0:
                found[:, q] -= v[:, self.minus[q]]
            if kind == 2:
                found[:, q] *= i[:, self.carrier[q]]
        return found + 0.0


def _forms(probes: Sequence[Probe | Formula], circuit: Circuit) -> _Forms:
    plus, minus, carrier, kind = [], [], [], []
    _, first, second, _, _ = circuit.arrays()
    for probe in probes:
        assert isinstance(probe, Probe)
        kind.append("vip".index(probe.kind))
        if probe.kind == "v":
            plus.append(circuit.node_index(probe.first))
            minus.append(-1 if probe.second is None else circuit.node_index(probe.second))
            carrier.append(-1)
        else:
            k = circuit.element_index(probe.first)
            plus.append(int(first[k]))
            minus.append(int(second[k]))
            carrier.append(k)
    return _Forms(*(np.array(column, dtype=np.int64) for column in (plus, minus, carrier, kind)))


_workers: OrderedDict[bytes, Worker] = OrderedDict()
_lock = Lock()


class Marked(NamedTuple):
    """A job with the digest of its content, so that a process prepares a circuit once."""

    digest: bytes
    job: Job

    @classmethod
    def of(cls, job: Job) -> Marked:
        """The job with its digest."""
        return cls(digest(job), job)

    def worker(self) -> Worker:
        """The prepared circuit, made anew where this process has none."""
        with _lock:
            found = _workers.get(self.digest)
            if found is None:
                found = _workers[self.digest] = Worker(self.job)
                while len(_workers) > CIRCUITS:
                    _workers.popitem(last=False)
            return found


__all__ = ["Job", "Marked", "Solved", "Worker"]
