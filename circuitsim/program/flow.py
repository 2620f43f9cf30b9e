"""Currents on forests: Kirchhoff's current law by leaf elimination."""

from __future__ import annotations

import numpy as np

NOISE = 1e-13
"""Currents below this share of the magnitudes they are sums of (and voltages, of the potentials) are rounding."""


def spanning_forest(n: int, tail: np.ndarray, head: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Those of ``edges`` that join something new, taken in order."""
    parent = list(range(n + 1))

    def find(u: int) -> int:
        while parent[u] != u:
            parent[u] = u = parent[parent[u]]
        return u

    kept = []
    for e, u, v in zip(edges.tolist(), tail[edges].tolist(), head[edges].tolist()):
        u, v = find(u), find(v)
        if u != v:
            parent[max(u, v)] = min(u, v)
            kept.append(e)
    return np.array(kept, dtype=np.int64)


def forest_flow(
    n: int, tail: np.ndarray, head: np.ndarray, need: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Currents tail → head on a forest that carry away ``need`` (n,) from its nodes, by leaf elimination.

    Each tree is rooted at earth, else at the node of the largest ``scale``: what is left over from rounding stays
    there, where it is smallest in proportion.

    Returns
    -------
    flow, noise : (f,) float arrays
        Current of each edge and the scale of its rounding, A.
    """
    flow, noise = np.zeros(tail.size), np.zeros(tail.size)
    rest, size = np.append(need, 0.0), np.append(scale, 0.0)
    for order, via in rooted_trees(n, tail, head, scale):
        for u in order[:0:-1]:
            k, parent, leaving = via[u]
            flow[k] = rest[u] if leaving else -rest[u]
            noise[k] = size[u]
            rest[parent] += rest[u]
            size[parent] += size[u]
    return flow, noise


def rooted_trees(
    n: int, tail: np.ndarray, head: np.ndarray, scale: np.ndarray
) -> list[tuple[list[int], dict[int, tuple[int, int, bool]]]]:
    """Each tree of a forest as (nodes from the root outwards, node → (edge, parent, edge leaves the node)).

    The root is earth (index n) if the tree holds it, else its node of the largest scale.
    """
    adjacent: dict[int, list[tuple[int, int]]] = {}
    for k, (u, v) in enumerate(zip(tail.tolist(), head.tolist())):
        adjacent.setdefault(u, []).append((v, k))
        adjacent.setdefault(v, []).append((u, k))
    size = np.append(scale, np.inf)
    touched = np.array(sorted(adjacent), dtype=np.int64)
    seen: set[int] = set()
    trees = []
    for root in touched[np.argsort(-size[touched], kind="stable")].tolist():
        if root in seen:
            continue
        seen.add(root)
        order, via = [root], {}
        for u in order:
            for v, k in adjacent[u]:
                if v not in seen:
                    seen.add(v)
                    via[v] = (k, u, int(tail[k]) == v)
                    order.append(v)
        trees.append((order, via))
    return trees
