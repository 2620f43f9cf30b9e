"""The error an answer really has: node voltages from whoever, branch currents by our recovery, our certificate."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.recovery import recover
from circuitsim.certificate import certify
from circuitsim.errors import CircuitError
from circuitsim.program import Structure
from circuitsim.program.components import component_labels

SLACKS = (1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2)
"""How far apart the ends of a conducting diode may be, tried in turn; the answer is judged by the kindest."""
MOVES = (1e-12, 1e-10, 1e-9)
"""How far apart, in shares of the largest potential, ends may be that are made equal: no farther than what an answer is
then held to."""
EQUAL = 1e-12
"""Ends that were made equal differ by less than this share of their potentials."""


class Verified(NamedTuple):
    """Worst relative violation of the circuit's equations, and which equation that is."""

    error: float
    equation: str


def verified_error(structure: Structure, value: np.ndarray, voltages: np.ndarray, good: float = 0.0) -> Verified:
    """The certificate's worst relative violation at some node voltages.

    Which diodes conduct is not known of a foreign answer, and where one does its ends are hardly ever equal to the last
    bit, which at zero volts is all that a local scale allows. So it is given the benefit of the doubt: ends of diodes
    that are closer than some share of their own potentials count as equal (`SLACKS`), or are made equal where they are
    closer than a small share of the largest potential of all (`MOVES`); what makes the answer look best is taken.

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
    views = itertools.chain(
        ((voltages, slack) for slack in SLACKS),
        ((_with_equal_ends(structure, voltages, move), EQUAL) for move in MOVES),
    )
    for answer, tight in views:
        best = min(best, _judged(structure, value, answer, tight))
        if best.error <= good:
            break
    return best


def _judged(structure: Structure, value: np.ndarray, voltages: np.ndarray, tight: float) -> Verified:
    """What the certificate says of an answer if diodes with ends as close as ``tight`` may conduct."""
    with np.errstate(all="ignore"):
        try:
            current = recover(structure, value, voltages, tight).current
        except CircuitError as error:
            return Verified(float("inf"), f"no currents: {error}")
        relative = certify(structure.arrays, value, voltages, current).relative
    worst = max(relative, key=lambda name: relative[name])
    return Verified(relative[worst], worst)


def _with_equal_ends(structure: Structure, voltages: np.ndarray, move: float) -> np.ndarray:
    """The answer with diodes shorted whose ends differ by at most ``move`` of the largest potential.

    Nodes so joined take the potential of one that sources hold against ground, or else their mean.
    """
    d = structure.diodes
    a, c = structure.arrays.first[d], structure.arrays.second[d]
    close = np.abs(voltages[a] - voltages[c]) <= move * np.abs(voltages).max(initial=0.0)
    group = component_labels(voltages.size, a[close], c[close])
    common = np.bincount(group, voltages, voltages.size) / np.maximum(np.bincount(group, minlength=voltages.size), 1)
    held = np.flatnonzero(structure.coordinate >= structure.n)[::-1]
    common[group[held]] = voltages[held]
    return common[group]


def distance(voltages: np.ndarray, exact: np.ndarray) -> float:
    """Largest |Δv| against the largest |v| of the circuit: a kinder, circuit-wide measure."""
    scale = float(np.abs(exact).max(initial=0.0))
    gap = np.abs((voltages - voltages[0]) - (exact - exact[0])).max(initial=0.0)
    return float(gap / scale) if scale else float(gap)
