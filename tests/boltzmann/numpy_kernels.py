"""The readable twins of `circuitsim.boltzmann.kernels`, in numpy, equal to them bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from circuitsim.boltzmann import kernels


def exp_of_minus(a: np.ndarray) -> np.ndarray:
    """exp(−a) for a ≥ 0, in multiplications and additions only."""
    if a.dtype == np.float32:
        return _exp_single(a)
    a = np.minimum(a, kernels.LARGEST)
    k = (a * kernels.LOG2_E + 0.5).astype(np.int64)
    p = _taylor(k * kernels.LN2_HIGH - a + k * kernels.LN2_LOW, 13)
    return p * ((1023 - k) << 52).view(np.float64)


def _exp_single(a: np.ndarray) -> np.ndarray:
    cut = np.minimum(a, kernels.LARGEST_SINGLE)
    k = (cut * kernels.LOG2_E_SINGLE + np.float32(0.5)).astype(np.int32)
    whole = k.astype(np.float32)
    p = _taylor(whole * kernels.LN2_HIGH_SINGLE - cut + whole * kernels.LN2_LOW_SINGLE, 7)
    return np.where(a <= kernels.LARGEST_SINGLE, p * ((127 - k) << 23).view(np.float32), np.float32(0))


def _taylor(r: np.ndarray, order: int) -> np.ndarray:
    """Σ r^k / k!, from the highest power down."""
    p = np.full_like(r, 1.0 / math.factorial(order))
    for k in range(order - 1, -1, -1):
        p = p * r + r.dtype.type(1.0 / math.factorial(k))
    return p


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(−x))."""
    z = exp_of_minus(np.abs(x))
    one = x.dtype.type(1)
    return np.where(x >= 0, one, z) / (one + z)


def uniforms(key: int, count: int, dtype: Any = np.float64) -> np.ndarray:
    """The first random numbers of a key, in [0, 1)."""
    z = np.uint64(key) + np.arange(1, count + 1, dtype=np.uint64) * kernels.STEP
    z = (z ^ (z >> np.uint64(30))) * kernels.FIRST_FACTOR
    z = (z ^ (z >> np.uint64(27))) * kernels.SECOND_FACTOR
    z = z ^ (z >> np.uint64(31))
    if dtype == np.float32:
        return (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return (z >> np.uint64(11)) * 2.0**-53


def sample(x: np.ndarray, key: int) -> np.ndarray:
    """1 where the key's random number lies below logistic(x), else 0."""
    z, one = exp_of_minus(np.abs(x)), x.dtype.type(1)
    below = uniforms(key, x.size, x.dtype).reshape(x.shape) * (one + z) < np.where(x >= 0, one, z)
    return below.astype(x.dtype)


def draw(probability: np.ndarray, key: int) -> np.ndarray:
    """1 where the key's random number lies below the probability, else 0."""
    below = uniforms(key, probability.size, probability.dtype).reshape(probability.shape) < probability
    return below.astype(probability.dtype)


def affine(units: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """``bias + units @ weights``, summed in the order of the units."""
    out = np.tile(bias, (len(units), 1))
    for j in range(units.shape[1]):
        out += units[:, j, None] * weights[j]
    return out
