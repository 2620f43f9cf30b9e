"""Results of a Monte Carlo analysis: statistics with confidence intervals, yield, contributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.probes import Formula, Probe, Reader
from circuitsim.errors import UsageError
from circuitsim.formats.result import Result
from circuitsim.formats.table import OWN, Table
from circuitsim.tolerance.specification import Specification
from circuitsim.tolerance.spread import Spread, Tolerance
from circuitsim.tolerance.statistics import Interval, Moments, proportion, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    def add(self, values: np.ndarray, moments: Moments, failures: int, worst: float) -> None:
        """Add the quantities (n, q) of the next block."""
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
        shares, held = summary.moments.contributions(), np.sort(np.concatenate(summary.held), axis=0)
        self.quantities = tuple(
            _quantity(
                str(probe), probe.unit, float(values[q]), q, summary, held[:, q], shares[:, q], spread, confidence
            )
            for q, probe in enumerate(probes)
        )
        self.specifications = tuple(
            (one, proportion(met, self.samples, confidence)) for one, met in zip(summary.specifications, summary.met)
        )
        self.yield_ = proportion(summary.all_met, self.samples, confidence) if summary.specifications else None

    def __getitem__(self, name: str) -> Quantity:
        """The distribution of a quantity; case does not matter."""
        for quantity in self.quantities:
            if quantity.name.lower() == name.lower():
                return quantity
        raise UsageError(f"{name!r} was not observed; there are {', '.join(q.name for q in self.quantities)}")

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
            "specifications": {str(one): _ends(share) for one, share in self.specifications},
            "yield": None if self.yield_ is None else _ends(self.yield_),
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

    def _figure(self) -> Figure:
        from circuitsim.plotting.bars import plot_montecarlo

        return plot_montecarlo(self)

    def _heading(self) -> tuple[str, str]:
        failed = f", {self.failures:,} without an operating point" if self.failures else ""
        good = "" if self.yield_ is None else f", yield {100 * self.yield_.value:.4g} %"
        spread = [f"{q.name} = {q.mean:.6g} ± {q.deviation:.3g} {q.unit}" for q in self.quantities]
        return self.nominal.circuit.title, f"{self.samples:,} samples{failed}{good}, {', '.join(spread)}"

    def _proof(self) -> str:
        how = f"intervals of {100 * self.confidence:g} %, seed {self.seed}"
        return f"all samples certified, worst relative violation {self.worst:.1e}; {how}"


def _quantity(
    name: str,
    unit: str,
    nominal: float,
    q: int,
    summary: Summary,
    held: np.ndarray,
    shares: np.ndarray,
    spread: Spread,
    confidence: float,
) -> Quantity:
    moments = summary.moments
    order = np.argsort(-shares, kind="stable")
    deviation = float(moments.deviation[q])
    return Quantity(
        name,
        unit,
        nominal,
        float(moments.mean[q]),
        deviation / math.sqrt(moments.size),
        deviation,
        float(summary.least[q]),
        float(summary.most[q]),
        {p: quantile(held, p, confidence) for p in QUANTILES},
        tuple((spread.variables[v], float(shares[v])) for v in order.tolist()),
        max(0.0, 1.0 - float(shares.sum())) if deviation else 0.0,
        *np.histogram(held, BINS),
    )


def numbers(q: Quantity) -> dict[str, Any]:
    """One row of a table."""
    row: dict[str, Any] = dict(zip(BASIC, q[1:]))
    for probability, (low, value, high) in q.quantiles.items():
        word = f"q{100.0 * probability:g}"
        row |= {f"{word}_low": low, word: value, f"{word}_high": high}
    return row


def _ends(interval: Interval) -> dict[str, float | None]:
    return {key: value if math.isfinite(value) else None for key, value in interval._asdict().items()}


def _plain(q: Quantity) -> dict[str, Any]:
    return {
        **dict(zip(BASIC, q[1:])),
        "quantiles": {f"{p:g}": _ends(interval) for p, interval in q.quantiles.items()},
        "contributions": dict(q.contributions),
        "unexplained": q.unexplained,
        "histogram": {"counts": q.counts.tolist(), "edges": q.edges.tolist()},
    }
