"""The forest of voltage constraints: each tree of ideal sources and shorts is one super-node with fixed offsets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.program.precise import two_sum

EPSILON = 2.0**-52
"""Distance between 1 and the next double."""


class VoltageForest(NamedTuple):
    """A spanning forest of the voltage constraints v(first) − v(second) = V, independent of the values.

    Attributes
    ----------
    root : (n_nodes,) int array
        Root node of each node's tree (its own index where no constraint touches it).
    order : int array
        The non-root nodes, parents before children, grouped by depth.
    level : int array
        Start of each depth in ``order``, and its end: depth d is order[level[d]:level[d + 1]].
    parent : (n_nodes,) int array
        Parent node; itself at a root.
    edge : (n_nodes,) int array
        Position (in the edge list) of the constraint to the parent; −1 at a root.
    sign : (n_nodes,) float array
        v(node) = v(parent) + sign · V(edge).
    closing : int array
        Positions of the constraints that close a loop.
    """

    root: np.ndarray
    order: np.ndarray
    level: np.ndarray
    parent: np.ndarray
    edge: np.ndarray
    sign: np.ndarray
    closing: np.ndarray

    def offsets(self, voltage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Potential of each node relative to its root, V, from the constraint voltages, and what rounds off."""
        offset, low = np.zeros(self.root.size), np.zeros(self.root.size)
        for start, stop in zip(self.level[:-1], self.level[1:]):
            nodes = self.order[start:stop]
            above = self.parent[nodes]
            offset[nodes], error = two_sum(offset[above], self.sign[nodes] * voltage[self.edge[nodes]])
            low[nodes] = low[above] + error
        return offset, low

    def path(self, u: int, v: int) -> list[int]:
        """Constraints (positions in the edge list) along the tree path from node ``u`` to node ``v``."""
        up, down = self._climb(u, v)
        return [int(self.edge[k]) for k in up] + [int(self.edge[k]) for k in reversed(down)]

    def members(self, u: int, v: int, voltage: np.ndarray) -> list[float]:
        """The voltages along the tree path between two nodes, with the signs that add up to v(u) − v(v)."""
        up, down = self._climb(u, v)
        rises = [float(self.sign[k] * voltage[self.edge[k]]) for k in up]
        return rises + [-float(self.sign[k] * voltage[self.edge[k]]) for k in down]

    def _climb(self, u: int, v: int) -> tuple[list[int], list[int]]:
        """The nodes from ``u`` and from ``v`` up to their lowest common ancestor, which is left out."""
        up, down = [u], [v]
        while self.edge[up[-1]] >= 0:
            up.append(int(self.parent[up[-1]]))
        while self.edge[down[-1]] >= 0:
            down.append(int(self.parent[down[-1]]))
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        return up[:-1], down[:-1]


def excess_of(members: list[float]) -> float:
    """The sum of n source values, right to the last digit; 0 where it is below n · 2⁻⁵² of the largest.

    Then the loop or cut closes.
    """
    total = math.fsum(members)
    return 0.0 if abs(total) <= len(members) * EPSILON * max(map(abs, members), default=0.0) else total


def grow_forest(n_nodes: int, first: np.ndarray, second: np.ndarray, preferred_roots: list[int]) -> VoltageForest:
    """Breadth-first spanning forest of the constraint edges.

    Parameters
    ----------
    n_nodes : int
    first, second : (m,) int arrays
        Ends of each constraint, v(first) − v(second) = V.
    preferred_roots : list of int
        Nodes that must be roots of their trees (ground, references), at most one a tree; elsewhere the smallest node.
    """
    root = np.arange(n_nodes)
    parent = np.arange(n_nodes)
    edge = np.full(n_nodes, -1, dtype=np.int64)
    sign = np.zeros(n_nodes)
    adjacent: dict[int, list[tuple[int, int, float]]] = {}
    for e, (u, v) in enumerate(zip(first.tolist(), second.tolist())):
        adjacent.setdefault(u, []).append((v, e, -1.0))
        adjacent.setdefault(v, []).append((u, e, 1.0))
    used = np.zeros(first.size, dtype=bool)
    seen: set[int] = set()
    depths: list[list[int]] = []
    for start in [*(r for r in preferred_roots if r in adjacent), *sorted(adjacent)]:
        if start in seen:
            continue
        seen.add(start)
        frontier, depth = [start], 0
        while frontier:
            reached = []
            for u in frontier:
                for v, e, s in adjacent[u]:
                    if v not in seen:
                        seen.add(v)
                        used[e] = True
                        root[v], parent[v], edge[v], sign[v] = start, u, e, s
                        reached.append(v)
            if reached:
                if depth == len(depths):
                    depths.append([])
                depths[depth].extend(reached)
            frontier, depth = reached, depth + 1
    order = np.array([v for nodes in depths for v in nodes], dtype=np.int64)
    level = np.cumsum([0, *(len(nodes) for nodes in depths)])
    return VoltageForest(root, order, level, parent, edge, sign, np.flatnonzero(~used))
