"""Random graphs, whose factors fill in: Erdős–Rényi and scale-free."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.bench.families.sheet import Sheet, driven, edges_with_diodes, random_currents, usual_conductances
from circuitsim.circuit import Circuit

MEAN_DEGREE = 4
ATTACHED = 2


def sparse(unknowns: int, seed: int) -> Circuit:
    """Erdős–Rényi graph of mean degree 4: its giant component, numbered anew.

    The 2 % of nodes in other components would float; with them left out every source has its way to ground.
    """
    n = max(4, unknowns - 1)
    rng = np.random.default_rng([seed, n, 2])
    first, second = _distinct_pairs(rng, n, MEAN_DEGREE * n // 2)
    component = _giant(n, first, second)
    number = np.cumsum(component) - 1
    inside = component[first]
    return _graph("erdos-renyi", seed, rng, int(component.sum()), number[first[inside]], number[second[inside]])


def scale_free(unknowns: int, seed: int) -> Circuit:
    """Barabási–Albert graph: each new node joins two old ones, chosen by their degrees."""
    n = max(4, unknowns - 1)
    rng = np.random.default_rng([seed, n, 3])
    ends = [0, 1]  # every node as often as it has edges
    draws = rng.random((n, 8 * ATTACHED)).tolist()
    for new in range(2, n):
        found: dict[int, None] = {}
        for draw in draws[new]:
            found[ends[int(draw * len(ends))]] = None
            if len(found) == ATTACHED:
                break
        for old in found:
            ends += (new, old)
    pairs = np.array(ends).reshape(-1, 2)
    return _graph("scale-free", seed, rng, n, pairs[:, 0], pairs[:, 1])


def _graph(family: str, seed: int, rng: np.random.Generator, n: int, first: np.ndarray, second: np.ndarray) -> Circuit:
    """Values as in the grid; √n random nodes are inputs, √n others outputs."""
    sheet = Sheet()
    node = sheet.nodes(n)
    edges_with_diodes(sheet, rng, node[first], node[second], usual_conductances(rng, first.size))
    random_currents(sheet, rng, node, n // 20)
    ends = node[rng.permutation(n)]
    side = max(1, math.isqrt(n))
    driven(sheet, ends[:side], ends[side : 2 * side])
    return sheet.circuit(family, seed)


def _distinct_pairs(rng: np.random.Generator, n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """``count`` different unordered pairs of different nodes (fewer where there are not so many)."""
    count = min(count, n * (n - 1) // 2)
    keys = np.zeros(0, dtype=np.int64)
    while keys.size < count:
        a, b = rng.integers(0, n, (2, 2 * count))
        low, high = np.minimum(a, b), np.maximum(a, b)
        drawn = np.concatenate([keys, (low * n + high)[low != high]])
        keys = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return keys[:count] // n, keys[:count] % n


def _giant(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Which nodes belong to the largest component."""
    from circuitsim.program.components import component_labels

    label = component_labels(n, first, second)
    return label == np.argmax(np.bincount(label, minlength=n))
