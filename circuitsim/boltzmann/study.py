"""The experiment of Fischer & Igel (2011): bias of CD-k and both bounds, exact along training, over many runs.

Training is by *expected* CD-k, the mean of the update over all samples of the chain, compiled; a loop over
`exact.expected_contrastive_divergence` gives the same. The pattern sets are those of Bengio & Delalleau (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.boltzmann import exact
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.training.trainer import check_counts

# Three summaries of the runs' gaps between bound and bias; the paper's is not specified.
PER_RUN = "mean over runs of (bound − largest |bias|)"
MEAN_SIZE = "mean bound − largest over parameters of mean |bias|"
SIZE_OF_MEAN = "mean bound − largest over parameters of |mean bias|"
AGGREGATIONS = (PER_RUN, MEAN_SIZE, SIZE_OF_MEAN)
_BOOTSTRAPS = 2000


def diag(units: int) -> np.ndarray:
    """0…0, 10…0, 110…0, …, 1…1: (units + 1, units)."""
    return np.tril(np.ones((units + 1, units)), -1)


def ball(units: int) -> np.ndarray:
    """1DBall: every cyclic shift of ⌊units / 2⌋ ones followed by zeros: (units, units)."""
    start = np.arange(units) < units // 2
    return np.array([np.roll(start, shift) for shift in range(units)], dtype=np.float64)


PATTERNS = {"diag": diag, "1dball": ball}


def pattern_set(name: str, units: int) -> np.ndarray:
    """One of the sets by name.

    Parameters
    ----------
    name : {"diag", "1dball"}
    units : int
        Length of a pattern, at least 1.

    Returns
    -------
    (patterns, units) ndarray
        Zeros and ones: `diag` has ``units`` + 1 patterns, `ball` ``units``.

    Raises
    ------
    UsageError
        No set of this name, or no units.
    """
    if name not in PATTERNS:
        raise UsageError(f"there is no pattern set '{name}'; there are {', '.join(PATTERNS)}")
    if units < 1:
        raise UsageError(f"patterns need at least one unit, not {units}")
    return PATTERNS[name](units)


@jit(fastmath={"reassoc", "nsz"})
def ascend(parameters, distribution, states, rate, steps, updates):
    """Take ``updates`` steps of gradient ascent with expected CD-k, in place.

    Parameters
    ----------
    parameters : (n + 1, m + 1) ndarray
        The weights; before them a row of the visible biases and a column of the hidden biases, those of a unit of each
        layer that is always on. Changed in place.
    distribution : (2^m,) ndarray
        Empirical distribution of the patterns.
    states : (2^m, m + 1) ndarray
        Ones, and bit j of state s.
    rate : float
        Learning rate.
    steps : int
        k.
    updates : int
        How many.
    """
    (hidden, visible), count = parameters.shape, len(states)
    count_hidden = 1 << (hidden - 1)
    joint, on = np.empty((count, count_hidden)), np.ones((count, hidden))
    by_row, by_column = np.empty(count), np.empty(count_hidden)
    chain, over_hidden = np.empty(count), np.empty(count_hidden)
    for _ in range(updates):
        # p(v, h) up to a factor: each bit of h multiplies what the lower ones give by the odds of its unit.
        by_column[:] = 0.0
        for s in range(count):
            for i in range(hidden):
                total = 0.0
                for j in range(visible):
                    total += parameters[i, j] * states[s, j]
                odds, half = np.exp(total), 1 << i >> 1
                if i == 0:
                    joint[s, 0] = odds
                else:
                    on[s, i] = odds / (1.0 + odds)
                for t in range(half):
                    joint[s, half + t] = joint[s, t] * odds
            total = 0.0
            for t in range(count_hidden):
                total += joint[s, t]
                by_column[t] += joint[s, t]
            by_row[s] = total
            chain[s] = distribution[s]
        for _ in range(steps):
            over_hidden[:] = 0.0
            for s in range(count):
                share = chain[s] / by_row[s]
                for t in range(count_hidden):
                    over_hidden[t] += share * joint[s, t]
            for t in range(count_hidden):
                over_hidden[t] /= by_column[t]
            for s in range(count):
                total = 0.0
                for t in range(count_hidden):
                    total += over_hidden[t] * joint[s, t]
                chain[s] = total
        # Data minus chain, weighted by the states: the expected update.
        for s in range(count):
            push = rate * (distribution[s] - chain[s])
            for i in range(hidden):
                for j in range(visible):
                    parameters[i, j] += push * on[s, i] * states[s, j]


def train_expected(
    machine: RestrictedBoltzmannMachine, distribution: np.ndarray, rate: float, steps: int, updates: int
) -> RestrictedBoltzmannMachine:
    """The machine after ``updates`` steps of full-batch expected CD-k (Fischer & Igel 2011, §3).

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        Start; not changed. At most 16 units in a layer and 24 in both.
    distribution : (2^m,) ndarray
        Empirical distribution of the patterns (`exact.empirical_distribution`).
    rate : float
        Learning rate on the gradient of the mean log-likelihood of a pattern.
    steps : int
        k.
    updates : int
        Number of updates.

    Raises
    ------
    ConvergenceError
        Parameters so large that their exponentials overflow.
    """
    exact.check_enumerable(machine)
    if steps < 1 or updates < 0 or not rate >= 0:
        raise UsageError(f"expected CD-k needs k ≥ 1, updates ≥ 0 and rate ≥ 0, not {steps}, {updates} and {rate}")
    if distribution.shape != (2**machine.visible,):
        raise UsageError(f"the distribution must have {2**machine.visible} entries, not shape {distribution.shape}")
    parameters = np.zeros((machine.hidden + 1, machine.visible + 1))
    parameters[0, 1:], parameters[1:, 0] = machine.visible_bias, machine.hidden_bias
    parameters[1:, 1:] = machine.weights
    visible = np.insert(exact.states(machine.visible), 0, 1.0, axis=1)
    ascend(parameters, distribution, visible, rate, steps, updates)
    if not np.isfinite(parameters).all():
        raise ConvergenceError("expected CD-k diverged: the weights are no longer finite; try a lower learning rate")
    return RestrictedBoltzmannMachine(parameters[1:, 1:], parameters[0, 1:], parameters[1:, 0])


@dataclass(frozen=True)
class Settings:
    """Fischer & Igel 2011, §3. The defaults are the paper's own.

    Parameters
    ----------
    runs : int
        Initialisations in a batch of runs.
    updates : int
        Full-batch updates with expected CD-k.
    k : int
        Gibbs steps.
    batches : int
        Batches of runs; with several, the spread of the final gaps is measured between them.
    seed : int
        Source of all initial weights.
    rate : float
        Learning rate.
    visible, hidden : int
        Units.
    spread : float
        Initial weights are uniform in [−spread, spread]; biases start at zero.
    """

    runs: int = 25
    updates: int = 50_000
    k: int = 1
    batches: int = 1
    seed: int = 0
    rate: float = 0.1
    visible: int = 6
    hidden: int = 6
    spread: float = 0.5

    def __post_init__(self) -> None:
        check_counts(self, runs=2, updates=1, k=1, batches=1, seed=0)

    def moments(self) -> np.ndarray:
        """Numbers of updates after which to measure: dense at first, then evenly spread; 0 and the last included."""
        early = np.geomspace(1, self.updates, 40)
        return np.unique(np.concatenate([[0], early, np.linspace(0, self.updates, 51)]).astype(np.int64))


@dataclass(frozen=True)
class BiasCurves:
    """What was measured on one pattern set; R runs (all batches), M moments, P parameters.

    Attributes
    ----------
    updates : (M,) ndarray
    bias : (R, M, P) ndarray
        Bias of every parameter, signed: weights, visible biases, hidden biases.
    bound, older, distance, delta, log_likelihood : (R, M) ndarray
        The bound of the paper, the older bound, ½‖p_e − p‖₁, Δ, and the mean log-likelihood of a pattern.
    """

    updates: np.ndarray
    bias: np.ndarray
    bound: np.ndarray
    older: np.ndarray
    distance: np.ndarray
    delta: np.ndarray
    log_likelihood: np.ndarray

    @property
    def largest_bias(self) -> np.ndarray:
        """Largest |bias| over the parameters, (R, M)."""
        return np.abs(self.bias).max(axis=2)


class Gap(NamedTuple):
    """The gap between bound and bias after the last update, and its spread."""

    mean: float
    spread: float


def run_study(settings: Settings, patterns: str, progress: Callable[[float], None] = lambda done: None) -> BiasCurves:
    """All runs on one pattern set.

    Parameters
    ----------
    settings : Settings
        What to run.
    patterns : {"diag", "1dball"}
        The pattern set.
    progress : callable
        Called with the fraction done after every run.

    Notes
    -----
    Run r starts from the r-th child of the seed's sequence: the same weights for every number of runs, and the same
    for both pattern sets.
    """
    start = exact.empirical_distribution(pattern_set(patterns, settings.visible))
    total = settings.runs * settings.batches
    runs = []
    for number, child in enumerate(np.random.SeedSequence(settings.seed).spawn(total)):
        runs.append(_one_run(settings, start, np.random.default_rng(child)))
        progress((number + 1) / total)
    return BiasCurves(settings.moments(), *map(np.array, zip(*runs, strict=True)))


def _one_run(settings: Settings, start: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """One training run: bias (M, P), then bound, older bound, distance, Δ and log-likelihood, (M,) each."""
    k, moments = settings.k, settings.moments()
    weights = rng.uniform(-settings.spread, settings.spread, (settings.hidden, settings.visible))
    machine = RestrictedBoltzmannMachine(weights, np.zeros(settings.visible), np.zeros(settings.hidden))
    rows = []
    for updates in np.diff(moments, prepend=0).tolist():
        machine = train_expected(machine, start, settings.rate, k, updates)
        model = exact.model_distribution(machine)
        distance = exact.total_variation(start, model)
        bias = [array.ravel() for array in exact.bias(machine, start, k).values()]
        likelihood = float(start[start > 0] @ np.log(model[start > 0]))
        bounds = exact.bias_bound(machine, k, distance), exact.older_bound(machine, k)
        rows.append((np.concatenate(bias), *bounds, distance, exact.max_energy_change(machine), likelihood))
    return [np.array(column) for column in zip(*rows, strict=True)]


def final_gaps(curves: BiasCurves, settings: Settings) -> dict[str, Gap]:
    """The gap between bound and bias after the last update, by three summaries (`AGGREGATIONS`).

    With several batches of runs, mean and spread (standard deviation) are between batches. With one, the spread is that
    of batches redrawn from its runs with replacement (bootstrap).
    """
    bias, bound = curves.bias[:, -1], curves.bound[:, -1]
    batches = np.arange(len(bound)).reshape(settings.batches, settings.runs)
    again = batches
    if settings.batches == 1:
        again = np.random.default_rng((settings.seed, 1)).integers(len(bound), size=(_BOOTSTRAPS, len(bound)))
    means = _gaps(bias[batches], bound[batches]).mean(axis=1)
    spreads = _gaps(bias[again], bound[again]).std(axis=1, ddof=1)
    return {name: Gap(*pair) for name, *pair in zip(AGGREGATIONS, means.tolist(), spreads.tolist(), strict=True)}


def _gaps(bias: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """The three aggregations for G batches of R runs, (3, G); bias (G, R, P), bound (G, R)."""
    size, mean = np.abs(bias), bound.mean(axis=1)
    return np.array(
        [
            (bound - size.max(axis=2)).mean(axis=1),
            mean - size.mean(axis=1).max(axis=1),
            mean - np.abs(bias.mean(axis=1)).max(axis=1),
        ]
    )
