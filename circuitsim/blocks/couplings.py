"""Couplings between neighbouring layers of an alternating energy: −⟨upper, C lower⟩ with a linear (or pooled) map C.

A *coupling specification* is the shape of such a map: initial weights, derivatives with respect to weights, and the
*coupling* for given weights, which is used for one relaxation and writes into the arrays given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from circuitsim._arrays import Array, namespace, product_into


class Coupling(Protocol):
    """C for one value of its weights; with pooling, the indices of the pooled entries are its *switches*."""

    def forward(self, below: Array, out: Array, switches: Array | None, renew: bool) -> Array | None:
        """Write C below into `out`, with the given `switches` or, with `renew`, new ones; returns the switches."""
        ...

    def backward(self, above: Array, out: Array, switches: Array | None) -> None:
        """Write Cᵀ above into `out`."""
        ...


class CouplingSpec(Protocol):
    """The shape of a coupling."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of its weights."""
        ...

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Initial weights."""
        ...

    def bind(self, weights: Array) -> Coupling:
        """The coupling with these weights."""
        ...

    def lift(self, above: Array, switches: Array | None) -> Array:
        """The upper layer before pooling."""
        ...

    def outer(self, below: Array, lifted: Array) -> Array:
        """Σ_b ∂⟨lifted, C below⟩/∂weights."""
        ...


class DenseCoupling:
    """C is a matrix: C below = below @ weights. Layers of images are read as rows.

    Parameters
    ----------
    weights : (lower, upper) array
        Used as they are, not copied.
    """

    def __init__(self, weights: Array) -> None:
        self._xp = namespace(weights)
        self._weights = weights
        self._transposed = weights.T

    def forward(self, below: Array, out: Array, switches: Array | None = None, renew: bool = True) -> None:
        """``out = below @ weights``."""
        product_into(self._xp, rows(self._xp, below), self._weights, rows(self._xp, out))

    def backward(self, above: Array, out: Array, switches: Array | None = None) -> None:
        """``out = above @ weights.T``."""
        product_into(self._xp, rows(self._xp, above), self._transposed, rows(self._xp, out))


@dataclass(frozen=True)
class DenseCouplingSpec:
    """Every unit of a layer with every unit of the next.

    Parameters
    ----------
    lower, upper : int
        Units.
    spread : float
        Weights start uniform in ±spread/√lower.
    gain : float, optional
        Given, they start as a random matrix with orthogonal rows or columns, whose singular values are all this.
    """

    lower: int
    upper: int
    spread: float = 1.0
    gain: float | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(lower, upper)."""
        return self.lower, self.upper

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(lower, upper) uniform or orthogonal."""
        if self.gain is not None:
            left, _, right = np.linalg.svd(rng.normal(size=(self.lower, self.upper)), full_matrices=False)
            return self.gain * (left @ right)
        limit = self.spread / math.sqrt(self.lower)
        return rng.uniform(-limit, limit, (self.lower, self.upper))

    def bind(self, weights: Array) -> DenseCoupling:
        """The coupling with these weights."""
        return DenseCoupling(weights)

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
