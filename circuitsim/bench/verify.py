"""The error an answer really has: node voltages from whoever, branch currents by our recovery, our certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.recovery import recover
from circuitsim.certificate import certify
from circuitsim.errors import CircuitError
from circuitsim.program import Structure

SLACKS = (1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2)
"""How far apart the ends of a conducting diode may be, tried in turn; the answer is judged by the kindest."""


class Verified(NamedTuple):
    """Worst relative violation of the circuit's equations, and which equation that is."""

    error: float
    equation: str


def verified_error(structure: Structure, value: np.ndarray, voltages: np.ndarray, good: float = 0.0) -> Verified:
    """The certificate's worst relative violation at some node voltages.

    Which diodes conduct is not known of a foreign answer. It is given the benefit of the doubt: of all slacks below
    which the ends of a diode count as equal, the one that makes the answer look best is taken.

    Parameters
    ----------
    structure : Structure
        Of the circuit.
    value : (m,) float array
        Element values, Ω, V, A.
    voltages : (n_nodes,) float array
        The answer, V; any constant may be added.
    good : float
        Stop looking for a better slack at this error.
    """
    best = Verified(float("inf"), "not finite")
    if voltages.shape != (structure.arrays.n_nodes,) or not np.isfinite(voltages).all():
        return best
    voltages = voltages - voltages[0]
    for slack in SLACKS:
        with np.errstate(all="ignore"):
            try:
                current = recover(structure, value, voltages, slack).current
            except CircuitError as error:
                best = min(best, Verified(float("inf"), f"no currents: {error}"))
                continue
            relative = certify(structure.arrays, value, voltages, current).relative
        worst = max(relative, key=lambda name: relative[name])
        best = min(best, Verified(relative[worst], worst))
        if best.error <= good:
            break
    return best


def distance(voltages: np.ndarray, exact: np.ndarray) -> float:
    """Largest |Δv| against the largest |v| of the circuit: a kinder, circuit-wide measure."""
    scale = float(np.abs(exact).max(initial=0.0))
    gap = np.abs((voltages - voltages[0]) - (exact - exact[0])).max(initial=0.0)
    return float(gap / scale) if scale else float(gap)
