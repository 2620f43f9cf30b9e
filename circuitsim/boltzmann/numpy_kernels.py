"""The readable twins of `kernels`, in numpy, equal to them bit for bit."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.boltzmann.kernels import LARGEST, LN2_HIGH, LN2_LOW, LOG2_E


def exp_of_minus(a: np.ndarray) -> np.ndarray:
    """exp(−a) for a ≥ 0, in multiplications and additions only; float64."""
    a = np.minimum(a, LARGEST)
    k = (a * LOG2_E + 0.5).astype(np.int64)
    r = k * LN2_HIGH - a + k * LN2_LOW
    p = np.full_like(r, 1.0 / math.factorial(13))
    for order in range(12, -1, -1):
        p = p * r + 1.0 / math.factorial(order)
    return p * ((1023 - k) << 52).view(np.float64)


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(−x)) in the type of ``x``, computed in float64."""
    a = x.astype(np.float64)
    z = exp_of_minus(np.abs(a))
    return (np.where(a >= 0.0, 1.0, z) / (1.0 + z)).astype(x.dtype)


def sample(x: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """1 where the uniform lies below logistic(x), else 0."""
    a = x.astype(np.float64)
    z = exp_of_minus(np.abs(a))
    return (uniforms * (1.0 + z) < np.where(a >= 0.0, 1.0, z)).astype(x.dtype)


def affine(units: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """``bias + units @ weights``, summed in the order of the units."""
    out = np.tile(bias, (len(units), 1))
    for j in range(units.shape[1]):
        out += units[:, j, None] * weights[j]
    return out
