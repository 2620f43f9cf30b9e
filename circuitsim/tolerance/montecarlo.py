"""Monte Carlo: statistics of a circuit whose values spread, every sample a certified operating point."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.probes import parse_probes
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.errors import NoSteadyStateError, UsageError
from circuitsim.executors import executor_of, in_order
from circuitsim.journal import Journal
from circuitsim.netlist.deck import Deck
from circuitsim.tolerance.draws import BLOCK, deviations
from circuitsim.tolerance.result import MonteCarlo, Summary
from circuitsim.tolerance.samples import Job, Marked
from circuitsim.tolerance.specification import Specification, parse_specification
from circuitsim.tolerance.spread import Spread, Tolerance, observed, parse_tolerances, spread_circuit
from circuitsim.tolerance.statistics import BlockMoments, block_moments

TASKS = 256
"""Least number of tasks, if there are as many blocks."""

LARGEST = 64
"""Most blocks of a task."""

MOST = 10**9
"""Most samples."""


class _Task(NamedTuple):
    """Blocks ``first`` … ``last`` − 1 of a run."""

    job: Marked
    spread: Spread
    seed: int
    latin: bool
    samples: int
    first: int
    last: int


class _Block(NamedTuple):
    """The quantities (n, q) of a block, their moments with the variables', failures, the worst violation."""

    values: np.ndarray
    moments: BlockMoments
    failures: int
    worst: float


def montecarlo(
    source: Circuit | Deck,
    tolerances: Mapping[str, float | str] | Sequence[str | Tolerance] = (),
    observe: str | Sequence[str] = (),
    samples: int = 10_000,
    specifications: Sequence[str | Specification] = (),
    seed: int = 0,
    latin: bool = False,
    confidence: float = 0.95,
    tolerance: float = TOLERANCE,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    rows: Callable[[Sequence[str], np.ndarray], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> MonteCarlo:
    """Statistics of quantities over random values of a circuit.

    Parameters
    ----------
    source : Circuit or Deck
    tolerances : mapping, or sequence of str or Tolerance, optional
        For instance ``{"R*": 0.01, "V1": "0.1,normal"}``, where a number is a share of the value, or ``["R*=1%",
        "V1=0.1,normal", "R*=0.5%,lot"]``; beside those of a deck (``tol=``, ``dev=``, ``mc()`` …), and
        in place of them where they name the same element.
    observe : str or sequence of str, optional
        Quantities: ``"v(out) i(R1)"``; without them and specifications what a deck's ``.print`` names.
    samples : int
    specifications : sequence of str or Specification, optional
        Ranges that make a circuit good, for instance ``["4.9<v(out)<5.1"]``.
    seed : int
        The same seed gives the same results, whatever the workers.
    latin : bool
        Latin hypercube within blocks of 1024 samples.
    confidence : float
        Of all intervals.
    tolerance : float
        Of each sample's certificate.
    workers : int, optional
        Processes; 1: none but this one; by default a thread a processor.
    executor : concurrent.futures.Executor, optional
        Where the tasks run, in place of ``workers``.
    progress : callable, optional
        Called with the samples done and the samples in all.
    rows : callable, optional
        Called with the names of the quantities and their values (n, q) in each block, in order, for keeping them.
    checkpoint : path, optional
        A folder for finished blocks of samples: the same call goes on after them.

    Raises
    ------
    UsageError
        Names or ranges that are not there; fewer than two samples; a checkpoint of another run.
    WorkerError
        A worker process was killed.
    NoSteadyStateError
        The circuit with its nominal values has none. Samples without one are counted.
    ConvergenceError
        A sample without a certificate.

    Examples
    --------
    >>> import circuitsim
    >>> deck = circuitsim.loads('''divider
    ... V1 in 0 10
    ... R1 in out 1k
    ... R2 out 0 1k
    ... ''')
    >>> mc = circuitsim.montecarlo(deck, ["R*=1%"], "v(out)", 2000, ["4.98<v(out)<5.02"])
    >>> round(mc["v(out)"].mean, 2), mc["v(out)"].deviation < 0.03, 0.5 < mc.yield_.value < 0.7
    (5.0, True, True)
    """
    _check(samples, confidence, seed)
    stated = parse_tolerances(tolerances)
    wanted = [parse_specification(s) if isinstance(s, str) else s for s in specifications]
    circuit, spread = spread_circuit(source, stated, tolerance)
    text = observed(source, observe, specifications)
    # Quantities of specifications are observed too.
    probes = parse_probes(" ".join([text, *(s.quantity for s in wanted)]), circuit)
    if not probes:
        raise UsageError("nothing is observed: name at least one quantity, for instance v(out)")
    names = [str(probe) for probe in probes]
    of_specification = [names.index(_canonical(s.quantity, circuit)) for s in wanted]
    job = Marked.of(Job(circuit, spread.names, " ".join(names), tolerance))
    nominal = job.worker().nominal
    summary = Summary(len(probes), len(spread.variables), wanted, of_specification)
    run = (job.digest, spread, seed, latin, samples)
    journal = None if checkpoint is None else Journal(Path(checkpoint), run, _encoded, _decoded)
    with executor_of(workers, executor) as (pool, count):
        for block in _blocks(_tasks(job, spread, seed, latin, samples), pool, count, journal):
            summary.add(block.values, block.moments, block.failures, block.worst)
            if rows is not None:
                rows(names, block.values)
            if progress is not None:
                progress(summary.samples, samples)
    if not summary.moments.count:
        raise NoSteadyStateError("no sample has a steady state", [], [])
    return MonteCarlo(nominal, probes, spread, stated, summary, seed, latin, confidence)


def _check(samples: int, confidence: float, seed: int) -> None:
    if not 2 <= samples <= MOST:
        raise UsageError(f"between 2 and {MOST:,} samples are possible, not {samples}")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"the confidence must lie between 0 and 1, not {confidence:g}")
    if seed < 0:
        raise UsageError(f"the seed must be at least 0, not {seed}")


def _canonical(quantity: str, circuit: Circuit) -> str:
    found = parse_probes(quantity, circuit)
    if len(found) != 1:
        raise UsageError(f"--spec {quantity!r}: a specification limits one quantity")
    return str(found[0])


def _tasks(job: Marked, spread: Spread, seed: int, latin: bool, samples: int) -> Iterator[_Task]:
    blocks = -(-samples // BLOCK)
    size = max(1, min(blocks // TASKS, LARGEST))
    for first in range(0, blocks, size):
        yield _Task(job, spread, seed, latin, samples, first, min(first + size, blocks))


def _blocks(
    tasks: Iterator[_Task], pool: Executor | None, count: int, journal: Journal[list[_Block]] | None
) -> Iterator[_Block]:
    for blocks in in_order(pool, count, run_task, tasks, journal):
        yield from blocks


def _encoded(blocks: list[_Block]) -> dict[str, np.ndarray]:
    """The blocks of a task as arrays."""
    arrays = {"failures": np.array([b.failures for b in blocks])}
    arrays["worst"] = np.array([b.worst for b in blocks])
    arrays["values"] = np.concatenate([b.values for b in blocks])
    for name in BlockMoments._fields:
        arrays[name] = np.array([getattr(b.moments, name) for b in blocks])
    return arrays


def _decoded(arrays: dict[str, np.ndarray]) -> list[_Block]:
    """The blocks of `_encoded`."""
    blocks = []
    columns = [arrays[name] for name in ("failures", "worst", *BlockMoments._fields)]
    values = np.split(arrays["values"], np.cumsum(arrays["size"][:-1]))
    for own, failures, worst, size, *moments in zip(values, *columns):
        blocks.append(_Block(own, BlockMoments(int(size), *moments), int(failures), float(worst)))
    return blocks


def run_task(task: _Task) -> list[_Block]:
    """The blocks of a task."""
    worker, found = task.job.worker(), []
    for block in range(task.first, task.last):
        count = min(BLOCK, task.samples - block * BLOCK)
        x = deviations(task.spread, task.seed, block, count, task.latin)
        solved = worker.solve(task.spread.values(x))
        there = ~np.isnan(solved.values).any(axis=1)
        y = solved.values[there]
        found.append(_Block(y, block_moments(y, x[there]), solved.failures, solved.worst))
    return found


__all__ = ["MonteCarlo", "montecarlo"]
