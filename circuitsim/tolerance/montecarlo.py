"""Monte Carlo analysis: statistics over random values; every sample is a certified operating point.

Deviations are drawn in blocks that depend only on the seed and the block number, so results are the same on any
machine. Statistics have confidence intervals; contributions are fractions of the variance.
"""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.convex import Prepared, SmallCircuitSolver
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.probes import Formula, Probe, Reader, parse_probe, parse_probes
from circuitsim.analysis.solve import prepared
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.engine.small.active_set import MAX_ITERATIONS, Outcome
from circuitsim.engine.small.single import solve_once
from circuitsim.errors import ConvergenceError, NoSteadyStateError, TopologyError, UsageError, look_up
from circuitsim.formats import OWN, Result, Table, plain
from circuitsim.kernels import NODE, kernel
from circuitsim.netlist.deck import Deck
from circuitsim.netlist.functions import SIGMAS, Distribution
from circuitsim.points import Journal, computed
from circuitsim.tolerance.spread import Asked, Specification, Spread, Tolerance, Tolerances, tolerance_analysis


class Interval(NamedTuple):
    """An estimate with lower and upper bound."""

    low: float
    value: float
    high: float


def quantile(ordered: np.ndarray, probability: float, confidence: float) -> Interval:
    """A quantile of sorted numbers (n,) with the distribution-free interval of order statistics."""
    from scipy.special import bdtrik

    tail, n = 0.5 * (1.0 - confidence), ordered.size
    low, high = (float(bdtrik(p, n, probability)) for p in (tail, 1.0 - tail))
    first = 0.0 if np.isnan(low) else np.floor(low)
    last = n + 1.0 if np.isnan(high) else np.ceil(high) + 1.0
    middle = min(max(np.ceil(probability * n), 1.0), n)
    ranks = np.array([first, middle, last], dtype=np.int64)
    return Interval(*np.concatenate([[-np.inf], ordered, [np.inf]])[ranks].tolist())


class Moments(NamedTuple):
    """Means and variances of several outputs, and their covariances with the variables.

    Attributes
    ----------
    size : int
    mean, spread : (q + v,) float arrays
        Of outputs, then of variables: means, sums of squared deviations from them.
    product : (v, q) float array
        Sums of products of the deviations of both.
    """

    size: int
    mean: np.ndarray
    spread: np.ndarray
    product: np.ndarray

    @classmethod
    def of(cls, outputs: np.ndarray, variables: np.ndarray) -> Moments:
        """The moments of outputs (n, q) and variables (n, v)."""
        n, q = outputs.shape
        rows = np.hstack([outputs, variables])
        mean = rows.mean(axis=0) if n else np.zeros(rows.shape[1])
        rows -= mean
        return cls(n, mean, (rows * rows).sum(axis=0), rows[:, q:].T @ rows[:, :q])

    def plus(self, block: Moments) -> Moments:
        """The moments of both together (Chan, Golub & LeVeque 1983)."""
        n, m = self.size, block.size
        if not m:
            return self
        q, apart, share = self.product.shape[1], block.mean - self.mean, n * m / (n + m)
        return Moments(
            n + m,
            self.mean + m / (n + m) * apart,
            self.spread + (block.spread + share * apart * apart),
            self.product + (block.product + share * np.outer(apart[q:], apart[:q])),
        )

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations of the outputs."""
        return np.sqrt(self.spread[: self.product.shape[1]] / max(self.size - 1, 1))

    def contributions(self) -> np.ndarray:
        """Fraction of each output's variance explained by each variable (v, q): squared correlations, corrected for
        chance."""
        q = self.product.shape[1]
        scale = np.outer(self.spread[q:], self.spread[:q])
        squared = np.divide(self.product**2, scale, out=np.zeros_like(scale), where=scale > 0.0)
        n = self.size
        return np.clip((n * squared - 1.0) / (n - 1.0), 0.0, 1.0) if n > 2 else np.full_like(squared, np.nan)


def proportion(successes: int, trials: int, confidence: float) -> Interval:
    """A probability with its exact interval (Clopper & Pearson 1934)."""
    from scipy.special import betaincinv

    tail = 0.5 * (1.0 - confidence)
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1.0 - tail)) if successes < trials else 1.0
    return Interval(low, successes / trials, high)


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Probabilities of the reported quantiles."""

EXACT, HELD = 1 << 14, 1 << 24
"""Quantiles and histograms are those of the first samples: at least so many, and so many numbers of all quantities."""

BINS = 60
"""Number of bins of a histogram."""


class Summary:
    """Running statistics of a stream of samples.

    Parameters
    ----------
    outputs, variables : int
    specifications : sequence of Specification
    places : sequence of int
        The output that each specification limits.
    """

    def __init__(
        self, outputs: int, variables: int, specifications: Sequence[Specification], places: Sequence[int]
    ) -> None:
        self.moments = Moments.of(np.zeros((0, outputs)), np.zeros((0, variables)))
        self.held: list[np.ndarray] = []
        self.room = max(EXACT, HELD // outputs)
        self.least, self.most = np.full(outputs, np.inf), np.full(outputs, -np.inf)
        self.specifications, self.places = tuple(specifications), tuple(places)
        self.met, self.all_met = [0] * len(specifications), 0
        self.failures, self.worst = 0, 0.0

    @property
    def samples(self) -> int:
        """Samples so far."""
        return self.moments.size + self.failures

    def add(self, block: Block) -> None:
        """Add the next block."""
        values, moments, failures, worst = block
        self.moments = self.moments.plus(moments)
        self.held.append(values[: self.room])
        self.room -= len(self.held[-1])
        self.least = np.minimum(self.least, values.min(axis=0, initial=np.inf))
        self.most = np.maximum(self.most, values.max(axis=0, initial=-np.inf))
        good = np.ones(len(values), dtype=bool)
        for k, (specification, q) in enumerate(zip(self.specifications, self.places)):
            met = specification.met(values[:, q])
            self.met[k] += int(met.sum())
            good &= met
        self.all_met += int(good.sum())
        self.failures += failures
        self.worst = max(self.worst, worst)


class Quantity(NamedTuple):
    """The distribution of one quantity.

    Attributes
    ----------
    name, unit : str
    nominal : float
        With the nominal values.
    mean : float
    mean_error : float
        Standard error of the mean; an upper bound with a Latin hypercube.
    deviation : float
        Standard deviation.
    least, most : float
        Smallest and largest of the samples.
    quantiles : dict of float to Interval
        By probability, each with its confidence interval.
    contributions : tuple of (str, float)
        Variables and their fractions of the variance by their linear effect, the largest first.
    unexplained : float
        Fraction of the variance that no variable explains linearly.
    counts, edges : arrays
        Histogram.
    """

    name: str
    unit: str
    nominal: float
    mean: float
    mean_error: float
    deviation: float
    least: float
    most: float
    quantiles: dict[float, Interval]
    contributions: tuple[tuple[str, float], ...]
    unexplained: float
    counts: np.ndarray
    edges: np.ndarray


BASIC = Quantity._fields[1:8]
"""Unit, nominal value and moments: the leading entries of all forms of a quantity."""


class MonteCarlo(Result):
    """Statistics over random values.

    Attributes
    ----------
    nominal : OperatingPoint
    quantities : tuple of Quantity
    samples, failures : int
        Samples in all, and those without a steady state.
    specifications : tuple of (Specification, Interval)
        Each with the probability that it is met.
    yield_ : Interval or None
        Probability that all are met; samples without a steady state do not.
    worst : float
        Largest relative residual of any sample's certificate.
    seed : int
    latin : bool
    confidence : float
    tolerances : tuple of Tolerance
    """

    PICTURE = "plot_montecarlo"

    def __init__(
        self,
        nominal: OperatingPoint,
        probes: Sequence[Probe | Formula],
        spread: Spread,
        tolerances: Sequence[Tolerance],
        summary: Summary,
        seed: int,
        latin: bool,
        confidence: float,
    ) -> None:
        self.nominal, self.seed, self.latin, self.confidence = nominal, seed, latin, confidence
        self.tolerances, self.samples, self.failures = tuple(tolerances), summary.samples, summary.failures
        self.worst = summary.worst
        values = Reader(probes, nominal.circuit).read(nominal)
        moments, held = summary.moments, np.sort(np.concatenate(summary.held), axis=0)
        error = moments.deviation / math.sqrt(moments.size)
        columns = values, moments.mean[: values.size], error, moments.deviation, summary.least, summary.most
        self.quantities = tuple(
            Quantity._make(
                [
                    str(probe),
                    probe.unit,
                    *row,
                    {p: quantile(numbers, p, confidence) for p in QUANTILES},
                    tuple((spread.variables[v], float(share[v])) for v in np.argsort(-share, kind="stable").tolist()),
                    max(0.0, 1.0 - float(share.sum())) if row[3] else 0.0,
                    *np.histogram(numbers, BINS),
                ]
            )
            for probe, row, share, numbers in zip(
                probes, np.array(columns).T.tolist(), moments.contributions().T, held.T
            )
        )
        self.specifications = tuple(
            (one, proportion(met, self.samples, confidence)) for one, met in zip(summary.specifications, summary.met)
        )
        self.yield_ = proportion(summary.all_met, self.samples, confidence) if summary.specifications else None

    def __getitem__(self, name: str) -> Quantity:
        """The distribution of a quantity; case does not matter."""
        return look_up(name, {one.name: one for one in self.quantities}, "result")

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the JSON object of ``circuitsim montecarlo --format json``."""
        return {
            "schema": 2,
            "title": self.nominal.circuit.title,
            "samples": self.samples,
            "failures": self.failures,
            "seed": self.seed,
            "latin_hypercube": self.latin,
            "confidence": self.confidence,
            "tolerances": [str(one) for one in self.tolerances],
            "worst_violation": self.worst,
            "quantities": {q.name: _plain(q) for q in self.quantities},
            "specifications": {str(one): plain(share) for one, share in self.specifications},
            "yield": plain(self.yield_),
        }

    def tables(self) -> dict[str, Table]:
        """``quantities``: unit, nominal, mean, mean_error, deviation, least, most, three columns a quantile;
        ``contributions``: fractions of the variance; ``yield`` of each specification.
        """
        rows = [{"quantity": q.name, **numbers(q)} for q in self.quantities]
        units = ["", *[OWN] * (len(rows[0]) - 1)]
        shares = [(q.name, *share) for q in self.quantities for share in q.contributions]
        met = [(str(one), *share) for one, share in self.specifications]
        return {
            "quantities": Table.of(", ".join(rows[0]), [[*row.values()] for row in rows], units, True),
            "contributions": Table.of("quantity, variable, share", shares),
            "yield": Table.of("specification, low, value, high", met, named=True),
        }

    def _heading(self) -> tuple[str, str]:
        failed = f", {self.failures:,} without an operating point" if self.failures else ""
        good = "" if self.yield_ is None else f", yield {100 * self.yield_.value:.4g} %"
        spread = [f"{q.name} = {q.mean:.6g} ± {q.deviation:.3g} {q.unit}" for q in self.quantities]
        return self.nominal.circuit.title, f"{self.samples:,} samples{failed}{good}, {', '.join(spread)}"

    def _proof(self) -> str:
        how = f"intervals of {100 * self.confidence:g} %, seed {self.seed}"
        return f"all samples certified, worst relative violation {self.worst:.1e}; {how}"


def numbers(q: Quantity) -> dict[str, Any]:
    """One row of a table."""
    row: dict[str, Any] = dict(zip(BASIC, q[1:]))
    for probability, (low, value, high) in q.quantiles.items():
        word = f"q{100.0 * probability:g}"
        row |= {f"{word}_low": low, word: value, f"{word}_high": high}
    return row


def _plain(q: Quantity) -> dict[str, Any]:
    return {
        **dict(zip(BASIC, q[1:])),
        "quantiles": {f"{p:g}": plain(interval) for p, interval in q.quantiles.items()},
        "contributions": dict(q.contributions),
        "unexplained": q.unexplained,
        "histogram": plain({"counts": q.counts, "edges": q.edges}),
    }


BLOCK = 1024
"""Number of samples in a block."""


def deviations(spread: Spread, seed: int, block: int, count: int, latin: bool) -> np.ndarray:
    """Deviations (count, v) of block ``block``.

    Parameters
    ----------
    spread : Spread
    seed, block : int
        Seed of the random generator.
    count : int
        Number of samples: `BLOCK`, except in the last block.
    latin : bool
        Latin hypercube: within the block each variable takes each of ``count`` equally probable strata once (McKay,
        Beckman & Conover 1979).
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, block])))
    variables = len(spread.variables)
    result = rng.random((count, variables))
    if latin:
        strata = np.broadcast_to(np.arange(count)[:, None], (count, variables))
        result += rng.permuted(strata, axis=0)
        result /= count
    for rule in Distribution:
        at = np.flatnonzero([one is rule for one in spread.distribution])
        if at.size:
            result[:, at] = _shaped(result[:, at], rule)
    return result * spread.amount


def _shaped(u: np.ndarray, rule: Distribution) -> np.ndarray:
    """Map uniform numbers in [0, 1) to deviations as fractions of the tolerance."""
    if rule is Distribution.UNIFORM:
        return 2.0 * u - 1.0
    if rule is Distribution.ENDS:
        return np.where(u < 0.5, -1.0, 1.0)
    from scipy.special import ndtr, ndtri

    if rule is Distribution.TRUNCATED:
        low = float(ndtr(-SIGMAS))
        return ndtri(low + (1.0 - 2.0 * low) * u) / SIGMAS
    return ndtri(np.maximum(u, 2.0**-54)) / SIGMAS


CIRCUITS = 4
"""Number of prepared circuits cached per process."""


class Job(NamedTuple):
    """Data common to all samples; sent to other processes.

    Attributes
    ----------
    circuit : Circuit
    names : tuple of str
        The varying parameters.
    columns : str
        Quantities to read.
    tolerance : float
        Of the certificates.
    """

    circuit: Circuit
    names: tuple[str, ...]
    columns: str
    tolerance: float


class Worker:
    """A circuit prepared for samples.

    Every sample starts from the conducting diodes of the nominal operating point, so that its result depends only on
    its values.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.circuit = job, job.circuit
        self.ready = prepared(job.circuit, tolerance=job.tolerance)
        self.nominal: OperatingPoint = self.ready.solve()
        self.probes = parse_probes(job.columns, job.circuit)
        self.reader = Reader(self.probes, job.circuit)
        elements = [name for name in job.names if name in job.circuit]
        self.places = np.array([job.circuit.element_index(name) for name in elements], dtype=np.int64)
        small = self.ready.small if isinstance(self.ready, Prepared) else None
        simple = self.reader.plain and len(elements) == len(job.names)
        self.small = small if isinstance(small, SmallCircuitSolver) and simple else None

    def solve(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        """The quantities (n, q) of samples with these values (n, p) of the varying parameters, nan without a steady
        state; the number of those, the largest residual of any."""
        found, worst, failures = np.full((len(values), len(self.probes)), np.nan), 0.0, 0
        rest: Iterable[tuple[int, np.ndarray | dict[str, float]]]
        rest = enumerate(dict(zip(self.job.names, row)) for row in values.tolist())
        if self.small is not None:
            found, worst, rest = self._by_kernel(self.small, values)
        for s, own in rest:
            point = self._point(own)
            failures += point is None
            found[s] = np.nan if point is None else self.reader.read(point)
            worst = max(worst, 0.0 if point is None else point.certificate.worst)
        return found, failures, worst

    def _by_kernel(
        self, small: SmallCircuitSolver, values: np.ndarray
    ) -> tuple[np.ndarray, float, list[tuple[int, np.ndarray]]]:
        """The quantities and the largest residual of those samples that the kernel certifies; the places of all others
        with the values of all elements."""
        m, n = small.value.size, len(values)
        out = np.empty((n, small.size))
        out[:, :m] = small.value
        out[:, self.places] = values
        guess, memory = self.nominal.currents, small.memory()
        solve = kernel(solve_once, n * small._nodes, NODE)
        status, worst = np.empty(n, np.int64), np.empty(n)
        for s in range(n):
            status[s], worst[s] = solve(*memory, guess, MAX_ITERATIONS, True, out[s])
        good = (status == Outcome.CONVERGED) & (worst <= self.job.tolerance)
        with np.errstate(invalid="ignore", over="ignore"):  # of uncertified samples
            found = self.reader.columns(out[:, small.voltages], out[:, small.currents]) + 0.0
        return found, float(worst[good].max(initial=0.0)), [(s, out[s, :m]) for s in np.flatnonzero(~good).tolist()]

    def _point(self, values: np.ndarray | dict[str, float]) -> OperatingPoint | None:
        """The operating point of one sample; None without one."""
        try:
            return self.ready.solve(values, self.nominal)
        except NoSteadyStateError:
            return None
        except ConvergenceError as error:
            raise ConvergenceError(f"a sample has no certified operating point: {error}") from None
        except TopologyError as error:
            raise UsageError(f"a sample is out of range: {error}; a truncated distribution keeps the limits") from None


@lru_cache(CIRCUITS)
def worker_of(job: bytes) -> Worker:
    """The circuit of a pickled job, prepared once in each process."""
    return Worker(pickle.loads(job))


TASKS, LARGEST = 256, 64
"""Minimum number of tasks, if there are as many blocks; maximum number of blocks in a task."""


class Block(NamedTuple):
    """The quantities (n, q) of samples, their moments with the variables', failures, the largest residual."""

    values: np.ndarray
    moments: Moments
    failures: int
    worst: float


@tolerance_analysis()
def montecarlo(
    source: Circuit | Deck,
    tolerances: Tolerances = (),
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
        For instance ``{"R*": 0.01, "V1": "0.1,normal"}``, where a number is relative to the value, or ``["R*=1%",
        "V1=0.1,normal", "R*=0.5%,lot"]``; beside those of a deck (``tol=``, ``dev=``, ``mc()`` …), and
        in place of them where they name the same element.
    observe : str or sequence of str, optional
        Quantities: ``"v(out) i(R1)"``; without them and specifications what a deck's ``.print`` names,
        or else all node voltages.
    samples : int
    specifications : sequence of str or Specification, optional
        Ranges that make a circuit good, for instance ``["4.9<v(out)<5.1"]``.
    seed : int
        The same seed gives the same results, whatever the workers.
    latin : bool
        Latin hypercube within blocks of 1024 samples.
    confidence : float
        Confidence level of all intervals.
    tolerance : float
        Largest relative residual of each sample's certificate.
    workers : int, optional
        Number of processes; 1: only this one; by default a thread per processor.
    executor : concurrent.futures.Executor, optional
        Runs the tasks, in place of ``workers``.
    progress : callable, optional
        Called with the number of samples done and the total.
    rows : callable, optional
        Called with the names of the quantities and their values (n, q) in each task, in order, for keeping them.
    checkpoint : path, optional
        A folder for finished blocks of samples: the same call resumes after them.

    Raises
    ------
    UsageError
        Unknown names or invalid ranges; fewer than two samples; a checkpoint of another run.
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
    stated, wanted, circuit, spread, text = Asked.of(source, tolerances, observe, specifications, tolerance, True)
    # Quantities of specifications are observed too.
    probes = parse_probes(" ".join([text, *(s.quantity for s in wanted)]), circuit)
    if not probes:
        raise UsageError("nothing is observed: name at least one quantity, for instance v(out)")
    names = [str(probe) for probe in probes]
    limited = "a specification limits one quantity"
    places = [names.index(str(parse_probe(s.quantity, circuit, f"--spec {s.quantity!r}: {limited}"))) for s in wanted]
    job = pickle.dumps(Job(circuit, spread.names, " ".join(names), tolerance), 5)
    nominal = worker_of(job).nominal
    summary = Summary(len(probes), len(spread.variables), wanted, places)
    blocks = -(-samples // BLOCK)
    size = max(1, min(blocks // TASKS, LARGEST))
    run = (job, spread, seed, latin, samples, size)
    journal = None if checkpoint is None else Journal(Path(checkpoint), run, _encoded, _decoded)
    tasks = [range(first, min(first + size, blocks)) for first in range(0, blocks, size)]
    draw: Callable[[range], Block] = partial(draw_blocks, job, spread, seed, latin, samples)
    for block in computed(draw, tasks, workers, executor, journal):
        summary.add(block)
        if rows is not None:
            rows(names, block.values)
        if progress is not None:
            progress(summary.samples, samples)
    if not summary.moments.size:
        raise NoSteadyStateError("no sample has a steady state", [], [])
    return MonteCarlo(nominal, probes, spread, stated, summary, seed, latin, confidence)


def _encoded(block: Block) -> dict[str, np.ndarray]:
    """The block of a task as arrays."""
    found = {**block._asdict(), **block.moments._asdict()}
    del found["moments"]
    return {name: np.asarray(own) for name, own in found.items()}


def _decoded(arrays: dict[str, np.ndarray]) -> Block:
    """The block of `_encoded`."""
    size, *moments = (arrays[name] for name in Moments._fields)
    return Block(arrays["values"], Moments(int(size), *moments), int(arrays["failures"]), float(arrays["worst"]))


def draw_blocks(job: bytes, spread: Spread, seed: int, latin: bool, samples: int, blocks: range) -> Block:
    """Compute some blocks of a run, in any process."""
    worker, found = worker_of(job), list[Block]()
    for block in blocks:
        x = deviations(spread, seed, block, min(BLOCK, samples - block * BLOCK), latin)
        values, lost, largest = worker.solve(spread.values(x))
        there = ~np.isnan(values).any(axis=1)
        found.append(Block(values[there], Moments.of(values[there], x[there]), lost, largest))
    values, moments, failures, worst = zip(*found)
    return Block(np.concatenate(values), reduce(Moments.plus, moments), sum(failures), max(worst))
