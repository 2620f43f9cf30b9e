"""Couplings between neighbouring layers of an alternating energy: −⟨upper, C lower⟩ with a linear (or pooled) map C.

A coupling knows the shape of its weights, draws initial ones, and differentiates by them (`outer`); bound to weights,
it is the map of one relaxation, which writes into the arrays given. `lift` gives the upper layer before pooling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from circuitsim._arrays import Array, namespace, product_into

Coupling = Any
"""C: `DenseCoupling`, or any class with its attributes; with pooling, the indices of the pooled entries are its
*switches*, which `forward` finds anew (`renew`) or takes, and returns."""


@dataclass(frozen=True)
class DenseCoupling:
    """Every unit of a layer with every unit of the next: C below = below @ weights. Images are read as rows.

    Parameters
    ----------
    lower, upper : int
        Units.
    spread : float
        Weights start uniform in ±spread/√lower.
    gain : float, optional
        Given, they start as a random matrix with orthogonal rows or columns, whose singular values are all this.
    weights : (lower, upper) array, optional
        Those that it is bound to.
    """

    lower: int
    upper: int
    spread: float = 1.0
    gain: float | None = None
    weights: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """(lower, upper)."""
        return self.lower, self.upper

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(lower, upper) uniform or orthogonal."""
        if self.gain is not None:
            left, _, right = np.linalg.svd(rng.normal(size=self.shape), full_matrices=False)
            return self.gain * (left @ right)
        limit = self.spread / math.sqrt(self.lower)
        return rng.uniform(-limit, limit, self.shape)

    def bind(self, weights: Array) -> Self:
        """The coupling with these weights."""
        return replace(self, weights=weights)

    def forward(self, below: Array, out: Array, switches: Array | None = None, renew: bool = True) -> None:
        """``out = below @ weights``."""
        xp = namespace(out)
        product_into(xp, rows(xp, below), self.weights, rows(xp, out))

    def backward(self, above: Array, out: Array, switches: Array | None = None) -> None:
        """``out = above @ weights.T``."""
        xp = namespace(out)
        product_into(xp, rows(xp, above), self.weights.T, rows(xp, out))

    def lift(self, above: Array, switches: Array | None) -> Array:
        """The upper layer itself: no pooling."""
        return above

    def outer(self, below: Array, lifted: Array) -> Array:
        """(lower, upper) Σ_b below_b ⊗ lifted_b."""
        xp = namespace(below)
        return rows(xp, below).T @ rows(xp, lifted)


def rows(xp: Any, array: Array) -> Array:
    """A batch as a matrix, one sample a row; a view, as all arrays of a relaxation are contiguous."""
    return array if array.ndim == 2 else xp.reshape(array, (array.shape[0], math.prod(array.shape[1:])))
