"""Statistics of a stream of numbers in bounded memory, with confidence intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

KEPT = 1 << 14
"""Capacity of a level of a quantile sketch; a full level passes on every other number."""


class Interval(NamedTuple):
    """An estimate with lower and upper bound."""

    low: float
    value: float
    high: float


class QuantileSketch:
    """Order statistics of a stream, exact up to `KEPT` numbers.

    A full level is sorted, and every other number goes to the next level, where it counts twice (Munro & Paterson
    1980; Manku, Rajagopalan & Lindsay 1998). Which half goes alternates, so that results depend on the numbers and
    their order alone. `rank_error` bounds the error of any rank.
    """

    def __init__(self) -> None:
        self._levels: list[list[np.ndarray]] = [[]]
        self._odd = [False]
        self.count, self.rank_error = 0, 0
        self.least, self.most = np.inf, -np.inf

    def add(self, numbers: np.ndarray) -> None:
        """Add numbers of the stream."""
        if not numbers.size:
            return
        self.count += numbers.size
        self.least, self.most = min(self.least, float(numbers.min())), max(self.most, float(numbers.max()))
        self._push(0, numbers.copy())

    def _push(self, level: int, numbers: np.ndarray) -> None:
        if level == len(self._levels):
            self._levels.append([])
            self._odd.append(False)
        held = self._levels[level]
        held.append(numbers)
        if sum(part.size for part in held) < KEPT:
            return
        full = np.concatenate(held)
        self._levels[level] = [full[KEPT:]] if full.size > KEPT else []
        self.rank_error += 1 << level
        chosen = np.sort(full[:KEPT])[int(self._odd[level]) :: 2]
        self._odd[level] = not self._odd[level]
        self._push(level + 1, chosen)

    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers held, sorted, and the number of stream elements each represents."""
        parts = [(part, 1 << level) for level, held in enumerate(self._levels) for part in held]
        if not parts:
            return np.zeros(0), np.zeros(0, np.int64)
        numbers = np.concatenate([part for part, _ in parts])
        weights = np.concatenate([np.full(part.size, weight) for part, weight in parts])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], weights[order]

    def order_statistic(self, ranks: np.ndarray) -> np.ndarray:
        """The numbers of ranks 1 … count; −∞ and ∞ beyond."""
        numbers, weights = self.weighted()
        found = numbers[np.minimum(np.searchsorted(np.cumsum(weights), ranks), numbers.size - 1)]
        return np.where(ranks < 1, -np.inf, np.where(ranks > self.count, np.inf, found))

    def quantile(self, probability: float, confidence: float) -> Interval:
        """A quantile with the distribution-free interval of order statistics, widened by the rank error."""
        from scipy.special import bdtrik

        tail, n = 0.5 * (1.0 - confidence), self.count
        low, high = (float(bdtrik(p, n, probability)) for p in (tail, 1.0 - tail))
        first = 0.0 if np.isnan(low) else np.floor(low)
        last = n + 1.0 if np.isnan(high) else np.ceil(high) + 1.0
        middle = min(max(np.ceil(probability * n), 1.0), n)
        ranks = np.array([first - self.rank_error, middle, last + self.rank_error])
        return Interval(*self.order_statistic(ranks).tolist())

    def histogram(self, bins: int = 60) -> tuple[np.ndarray, np.ndarray]:
        """Counts (bins,) and edges (bins + 1,)."""
        numbers, weights = self.weighted()
        return np.histogram(numbers, bins, weights=weights)


class Moments(NamedTuple):
    """Means and variances of several outputs, and their covariances with the variables.

    Attributes
    ----------
    size : int
    mean, spread : (q,) float arrays
        Of outputs: means, sums of squared deviations from them.
    mean_x, spread_x : (v,) float arrays
        Of variables.
    product : (v, q) float array
        Sums of products of both deviations.
    """

    size: int
    mean: np.ndarray
    spread: np.ndarray
    mean_x: np.ndarray
    spread_x: np.ndarray
    product: np.ndarray

    @classmethod
    def of(cls, outputs: np.ndarray, variables: np.ndarray) -> Moments:
        """The moments of outputs (n, q) and variables (n, v)."""
        if not (n := len(outputs)):
            (q, v), zero = (outputs.shape[1], variables.shape[1]), np.zeros
            return cls(0, zero(q), zero(q), zero(v), zero(v), zero((v, q)))
        mean, mean_x = outputs.mean(axis=0), variables.mean(axis=0)
        y, x = outputs - mean, variables - mean_x
        return cls(n, mean, (y * y).sum(axis=0), mean_x, np.einsum("ij,ij->j", x, x), x.T @ y)

    def plus(self, block: Moments) -> Moments:
        """The moments of both together (Chan, Golub & LeVeque 1983)."""
        n, m = self.size, block.size
        if not m:
            return self
        dy, dx = block.mean - self.mean, block.mean_x - self.mean_x
        share = n * m / (n + m)
        return Moments(
            n + m,
            self.mean + m / (n + m) * dy,
            self.spread + (block.spread + share * dy * dy),
            self.mean_x + m / (n + m) * dx,
            self.spread_x + (block.spread_x + share * dx * dx),
            self.product + (block.product + share * np.outer(dx, dy)),
        )

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations of the outputs."""
        return np.sqrt(self.spread / max(self.size - 1, 1))

    def contributions(self) -> np.ndarray:
        """Fraction of each output's variance explained by each variable (v, q): squared correlations, corrected for
        chance."""
        scale = np.outer(self.spread_x, self.spread)
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
