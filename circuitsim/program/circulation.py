"""Which currents of a network nothing can go round and change."""

from __future__ import annotations

import numpy as np

from circuitsim.program.blocks import block_labels
from circuitsim.program.strong import strong_labels


def unchangeable(n: int, first: np.ndarray, second: np.ndarray, both_ways: np.ndarray) -> np.ndarray:
    """Edges whose currents no circulation can change.

    Within a strongly connected part of the directions in which currents may change every edge but a bridge lies on a
    cycle.

    Parameters
    ----------
    n : int
        Number of nodes.
    first, second : (m,) int arrays
        Ends of the edges, whose currents may grow from first to second.
    both_ways : (m,) bool array
        The edges whose currents may fall too; a diode's only where it carries some.

    Returns
    -------
    (m,) bool array
    """
    falling = np.flatnonzero(both_ways)
    strong = strong_labels(n, np.concatenate([first, second[falling]]), np.concatenate([second, first[falling]]))
    inside = np.flatnonzero(strong[first] == strong[second])
    label = block_labels(n, first[inside], second[inside])
    unique = np.ones(first.size, dtype=bool)
    unique[inside] = np.bincount(label)[label] == 1 if inside.size else True
    return unique
