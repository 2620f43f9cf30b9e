"""Couplings of inductors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError

ROUNDING = 1e-12
"""Least eigenvalue of the coupling factors, of a matrix with ones on its diagonal, that is not rounding."""


def mutual_inductances(
    circuit: Circuit, value: np.ndarray, couplings: Mapping[tuple[str, str], float], ideal: bool = False
) -> np.ndarray | None:
    """Mutual inductances k √(L₁ L₂) (m, m), H, of inductances (m,), H; None without couplings.

    ``ideal``: whether factors may be ±1, so that some currents store no energy.

    Raises
    ------
    UsageError
        Couplings of other elements, out of range, or that store negative energy.
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
        if abs(factor) == 1.0 and not ideal:
            raise UsageError(
                f"the coupling of {first} and {second} is {factor:g}: only the implicit method takes ideal couplings"
            )
        found[a, b] = found[b, a] = factor * np.sqrt(value[a] * value[b])
    coils = np.flatnonzero(found.any(axis=0))
    scale = 1.0 / np.sqrt(value[coils])
    factors = found[np.ix_(coils, coils)] * scale * scale[:, None] + np.eye(coils.size)
    if np.linalg.eigvalsh(factors)[0] <= (-ROUNDING if ideal else ROUNDING):
        raise UsageError("the couplings of the inductors store negative energy; make them smaller")
    return found
