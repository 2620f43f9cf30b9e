"""Statistics of samples, with confidence intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
