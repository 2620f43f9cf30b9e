"""A layered network in plain numpy: what blocks and compiled kernels are held to.

States are lists of (batch, units) arrays for layers 1..L. The input enters as a `Drive`: its products with the first
matrix, computed once for a batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

States = list[np.ndarray]
Matrices = list[np.ndarray]


class Drive(NamedTuple):
    """What the clamped input does to the first layer.

    Attributes
    ----------
    current : (batch, n_1) ndarray
        A x (P − M), A.
    load : (n_1,) ndarray
        Column sums of P and M, S.
    """

    current: np.ndarray
    load: np.ndarray


def drive(first: np.ndarray, x: np.ndarray, gain: float) -> Drive:
    """The drive of inputs x, (batch, D), through the doubled first matrix, (2 D, n_1)."""
    half = len(first) // 2
    return Drive(x @ (first[:half] - first[half:]) * first.dtype.type(gain), first.sum(axis=0))


def conductances(inner: Matrices, load: np.ndarray) -> list[np.ndarray]:
    """Σ g at every unit; ``inner`` holds the matrices of layers 2..L."""
    sums = [load] + [g.sum(axis=0) for g in inner]
    for layer, g in enumerate(inner):
        sums[layer] = sums[layer] + g.sum(axis=1)
    return sums


def numerator(layer: int, inner: Matrices, biases: Matrices, given: Drive, u: States) -> np.ndarray:
    """Σ g u + b of a layer (counted from 0) from its neighbours."""
    below = given.current if layer == 0 else u[layer - 1] @ inner[layer - 1]
    above = u[layer + 1] @ inner[layer].T if layer < len(inner) else 0
    return below + above + biases[layer]


def clamp(p: np.ndarray, is_output: bool) -> np.ndarray:
    """Back into the layer's bounds."""
    if is_output:
        return p
    half = p.shape[1] // 2
    return np.concatenate([np.maximum(p[:, :half], 0), np.minimum(p[:, half:], 0)], axis=1)


def sweep(inner: Matrices, biases: Matrices, given: Drive, sums: list[np.ndarray], u: States) -> States:
    """Layers 1, 3, … together, then 2, 4, …: exact block coordinate descent."""
    u = list(u)
    for first in (0, 1):
        for layer in range(first, len(u), 2):
            p = numerator(layer, inner, biases, given, u) / sums[layer]  # Theorem 2's p
            u[layer] = clamp(p, layer == len(inner))
    return u


def relax(inner: Matrices, biases: Matrices, given: Drive, u: States, sweeps: int) -> States:
    """So many sweeps."""
    sums = conductances(inner, given.load)
    for _ in range(sweeps):
        u = sweep(inner, biases, given, sums, u)
    return u
