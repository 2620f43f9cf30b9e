"""Numeric factorisation: weights to shares and pivots, in full or only where weights changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from circuitsim.solvers.laplacian import panel
from circuitsim.solvers.laplacian.symbolic import Symbolic
from circuitsim.solvers.laplacian.tile import OVERREAD

#: Weight of an ideal short, for weights scaled to about one. Products of a weight and a share (≤ 1) never exceed the
#: largest weight, so nothing overflows; the weakest share, 1e-30 / 1e120 times a weight 1e-30, is far from underflow.
SHORT = 1e120
#: Weights beyond this could add up to infinity.
LARGEST = 1e280


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """A factored Laplacian.

    Attributes
    ----------
    symbolic : Symbolic
    weights : ndarray, shape (m,)
        The weights it was made from.
    values : ndarray
        Shares l_ik of all panels, by columns.
    pivots : ndarray, shape (n,)
        In elimination order; zero at one node of each component without a path to ground, whose potential is zero.
    """

    symbolic: Symbolic
    weights: np.ndarray
    values: np.ndarray
    pivots: np.ndarray

    @property
    def spent(self) -> bool:
        """Whether a later factor has taken this one's memory."""
        return self.values.size == 0

    def __repr__(self) -> str:
        return f"Factor({self.symbolic!r})"


def _checked(symbolic: Symbolic, weights: np.ndarray) -> np.ndarray:
    weights = np.array(weights, dtype=np.float64)
    if weights.shape != symbolic.pattern.a.shape:
        raise ValueError(f"{symbolic.pattern.a.size} weights wanted, got an array of shape {weights.shape}")
    if weights.size and not (weights.min() >= 0.0 and weights.max() <= LARGEST):
        raise ValueError(f"weights must lie between 0 and {LARGEST:g}")
    return weights


def _upwards(symbolic: Symbolic, changed: np.ndarray) -> np.ndarray:
    """Mark the panels of the changed edges and all their ancestors."""
    active = np.zeros(symbolic.panels, np.bool_)
    touched = symbolic.panel_of_edge[changed]
    active[touched[touched >= 0]] = True
    panel.mark_ancestors(symbolic.above, active)
    return active


def _memory(symbolic: Symbolic, previous: Factor | None, recycle: bool) -> tuple[np.ndarray, np.ndarray]:
    """Values and pivots to work on: fresh, copied from `previous`, or taken from it."""
    if previous is None:
        values = np.empty(symbolic.stored + OVERREAD)
        values[symbolic.stored :] = 0.0
        return values, np.empty(symbolic.n)
    if not recycle:
        return previous.values.copy(), previous.pivots.copy()
    values, pivots = previous.values, previous.pivots
    for name in ("values", "pivots"):
        object.__setattr__(previous, name, np.empty(0))
    values.setflags(write=True)
    pivots.setflags(write=True)
    return values, pivots


def factor(symbolic: Symbolic, weights: np.ndarray, previous: Factor | None = None, recycle: bool = False) -> Factor:
    """Factor the Laplacian with these edge weights.

    Parameters
    ----------
    symbolic : Symbolic
    weights : array_like, shape (m,)
        From 0 to `LARGEST`; zero is an open edge, `SHORT` an ideal connection.
    previous : Factor, optional
        Of the same `symbolic`: only panels that a changed weight can reach are computed again, with the same bits as
        a factorisation from nothing.
    recycle : bool
        Take the memory of `previous`, which cannot be used afterwards; saves a copy as long as the factor.

    Raises
    ------
    ValueError
        Wrong number of weights, a negative, too large or undefined one, or a `previous` of another analysis or
        already recycled.
    """
    weights = _checked(symbolic, weights)
    active = np.ones(symbolic.panels, np.bool_)
    if previous is not None:
        if previous.symbolic is not symbolic:
            raise ValueError("previous factor belongs to another symbolic analysis")
        if previous.spent:
            raise ValueError("previous factor's memory was recycled for a later one")
        active = _upwards(symbolic, np.flatnonzero(weights != previous.weights))
    values, pivots = _memory(symbolic, previous, recycle)
    panel.factor_active(active, symbolic.arrays, weights, values, pivots)
    for array in (weights, values, pivots):
        array.setflags(write=False)
    return Factor(symbolic, weights, values, pivots)
