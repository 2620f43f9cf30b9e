"""Coupled inductors, as uncoupled inductors with ideal transformers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import INDUCTOR
from circuitsim.errors import UsageError

UNCOUPLED: Mapping[tuple[str, str], float] = MappingProxyType({})
ROUNDING = 1e-12
"""Smallest eigenvalue of the coupling matrix, whose diagonal is one, above rounding."""
SHARE = 1e-3
"""Smallest component of an eigenvector, relative to the largest, whose inductor is named."""


class Windings(NamedTuple):
    """M = Uᵀ D U, the pivoted Cholesky factors of inductances: v = Uᵀ D c′ with the core currents c = U i.

    Each inductor is an uncoupled one, carrying its core current, and an ideal transformer from those before it.

    Attributes
    ----------
    inductors : (n,) int array
        Coupled inductors in the order of elimination; ideally coupled ones last.
    inductance : (n,) float array
        D, H; 0 of an inductor whose voltage comes only from ideal transformers.
    turns : (n, n) float array
        U, unit upper triangular.
    inverse : (n, n) float array
        Of U.
    mutual : (n, n) float array
        M, H.
    """

    inductors: np.ndarray
    inductance: np.ndarray
    turns: np.ndarray
    inverse: np.ndarray
    mutual: np.ndarray

    @property
    def independent(self) -> int:
        """Number of inductors that store energy independently: the first ones."""
        return int((self.inductance > 0.0).sum())

    def change(self, mutual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Changes of D (r,) and U (r, n) of the r independent inductors with a change of M (n, n) that keeps its
        rank."""
        r = self.independent
        inner = (self.inverse.T @ mutual @ self.inverse)[:r]
        return inner.diagonal(), np.triu(inner, 1) / self.inductance[:r, None] @ self.turns

    def keeps_rank(self, change: np.ndarray) -> bool:
        """Whether a change of M (n, n) keeps its rank."""
        r = self.independent
        own = self.inverse.T @ change @ self.inverse
        return bool(np.abs(own[r:, r:]).max(initial=0.0) <= ROUNDING * np.abs(change).max(initial=0.0))


def windings_of(circuit: Circuit, couplings: Mapping[tuple[str, str], float]) -> Windings:
    """The coupled inductors of a circuit, none without couplings. Errors: `mutual_inductances`."""
    kind, value = circuit.arrays().kind, circuit.arrays().value
    size = np.where(kind == INDUCTOR, value, 0.0)
    found = mutual_inductances(circuit, size, couplings)
    if found is None or not found.any():
        return Windings(np.zeros(0, int), np.zeros(0), *np.zeros((3, 0, 0)))
    inductors = np.flatnonzero(found.any(axis=0))
    own = found[np.ix_(inductors, inductors)] + np.diag(size[inductors])
    order, inductance, turns = _factors(own)
    return Windings(inductors[order], inductance, turns, np.linalg.inv(turns), own[np.ix_(order, order)])


def _factors(own: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order of elimination, D and U of inductances (n, n), by the largest remaining fraction of the diagonal."""
    from scipy.linalg.lapack import dpstrf

    scale = np.sqrt(own.diagonal())
    factors = own / np.outer(scale, scale)
    np.fill_diagonal(factors, 1.0)
    upper, order, r, _ = dpstrf(factors, tol=ROUNDING)
    order -= 1
    rows = np.triu(upper[:r])
    rows *= rows.diagonal()[:, None]
    inductance, turns = np.zeros(scale.size), np.eye(scale.size)
    turns[:r] = np.where(np.abs(rows) > ROUNDING, rows / rows.diagonal()[:, None], 0.0) * scale[order]
    turns[:r] /= scale[order[:r], None]
    # D from U and M of the independent inductors, without the rounding of repeated subtraction.
    back = np.linalg.inv(turns[:r, :r])
    inductance[:r] = (back.T @ own[np.ix_(order[:r], order[:r])] @ back).diagonal()
    return order, inductance, turns


def ideal_windings(circuit: Circuit, couplings: Mapping[tuple[str, str], float]) -> tuple[np.ndarray, np.ndarray]:
    """Inductors without independent energy (w,), ascending, and their turns ratios (w, m) to the others: their voltages
    are these times the others' voltages."""
    made, m = windings_of(circuit, couplings), len(circuit)
    if made.independent == made.inductors.size:
        return np.zeros(0, int), np.zeros((0, m))
    r, size = made.independent, np.sqrt(made.mutual.diagonal())
    found = np.linalg.solve(made.turns[:r, :r], made.turns[:r, r:]).T
    found = np.where(np.abs(found) * size[:r] > ROUNDING * size[r:, None], found, 0.0)
    order, turns = np.argsort(made.inductors[r:]), np.zeros((made.inductors.size - r, m))
    turns[:, made.inductors[:r]] = found
    return made.inductors[r:][order], turns[order]


def mutual_inductances(
    circuit: Circuit, value: np.ndarray, couplings: Mapping[tuple[str, str], float]
) -> np.ndarray | None:
    """Mutual inductances k √(L₁ L₂) (m, m), H, of inductances (m,), H; None without couplings.

    Raises
    ------
    UsageError
        Couplings of elements other than inductors, out of range, or with negative energy.
    """
    if not couplings:
        return None
    found = np.zeros((value.size, value.size))
    for (first, second), factor in couplings.items():
        a, b = circuit.element_index(first), circuit.element_index(second)
        if not (circuit[first].kind == circuit[second].kind == "inductor" and a != b):
            raise UsageError(f"{first} and {second} are not two inductors: they have no coupling")
        if not abs(factor) <= 1.0:
            raise UsageError(f"the coupling of {first} and {second} is {factor:g}: it must lie between -1 and 1")
        found[a, b] = found[b, a] = factor * np.sqrt(value[a] * value[b])
    inductors = np.flatnonzero(found.any(axis=0))
    scale = 1.0 / np.sqrt(value[inductors])
    factors = found[np.ix_(inductors, inductors)] * scale * scale[:, None] + np.eye(inductors.size)
    energies, currents = np.linalg.eigh(factors)
    if inductors.size and energies[0] < -ROUNDING:
        size = np.abs(currents[:, 0])
        named = ", ".join(str(circuit.names[k]) for k in inductors[size > SHARE * size.max()])
        raise UsageError(f"the couplings of {named} store negative energy; make their factors smaller")
    return found
