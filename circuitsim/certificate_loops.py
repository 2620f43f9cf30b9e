"""Kirchhoff's voltage law for the certificate where potentials are too coarse: sums of drops round loops.

Like the certificate it belongs to, nothing here is shared with the program or the solvers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import DIODE


def largest_in_block(arrays: CircuitArrays, carried: np.ndarray) -> np.ndarray:
    """Largest |current| in the biconnected component of each element (m,), A."""
    import networkx

    graph = networkx.Graph()
    graph.add_edges_from(zip(arrays.first.tolist(), arrays.second.tolist()))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    block: dict[tuple[int, int], int] = {}
    for k, edges in enumerate(networkx.biconnected_component_edges(graph)):
        for a, b in edges:
            block[a, b] = block[b, a] = k
    ends = zip(arrays.first.tolist(), arrays.second.tolist())
    label = np.array([block.get(pair, -1) for pair in ends], dtype=np.int64)
    largest = np.zeros(label.max(initial=-1) + 2)
    np.maximum.at(largest, label[label >= 0], np.abs(carried)[label >= 0])
    return largest[label]


class LoopViolations(NamedTuple):
    """Per element: the sum of drops round its loop, V, and the largest drop there, V; where loops were walked, also
    what the drop and the printed potentials differ by, V, and the larger of them, V."""

    violation: np.ndarray
    scale: np.ndarray
    printed: np.ndarray
    printed_scale: np.ndarray


def loop_violations(
    arrays: CircuitArrays, resistor: np.ndarray, fixed: np.ndarray, voltages: np.ndarray, low: np.ndarray,
    currents: np.ndarray, drops: np.ndarray, size: np.ndarray, tolerance: float,
) -> LoopViolations:  # fmt: skip
    """Kirchhoff's voltage law for all elements, with the scale ``size`` of each drop (m,), V.

    An element whose drop agrees with the difference of its potentials to ``tolerance`` of itself needs no loop: the
    differences add up to zero round every loop. Others are summed up round their fundamental loop of a spanning tree of
    fixed voltages, conducting diodes and the smallest resistances.
    """
    first, second = arrays.first, arrays.second
    difference = (voltages[first] - voltages[second]) + (low[first] - low[second])
    violation, scale = np.abs(drops - difference), size.copy()
    unclear = np.flatnonzero(~(violation <= 1e-3 * tolerance * scale))
    if not unclear.size:
        return LoopViolations(violation, scale, np.zeros(0), np.zeros(0))
    conducting = (arrays.kind == DIODE) & (currents > 0.0)
    rank = np.flatnonzero(resistor)
    rank = rank[np.argsort(arrays.value[rank], kind="stable")]
    order = np.concatenate([np.flatnonzero(fixed), np.flatnonzero(conducting), rank])
    tree = _Tree(arrays.n_nodes, first, second, order.tolist())
    for e in unclear.tolist():
        total, most = tree.loop(e, drops, size)
        violation[e], scale[e] = abs(total), most
    reach = np.maximum(np.abs(voltages[first]), np.abs(voltages[second]))[unclear]
    printed = np.abs(drops - difference)[unclear]
    return LoopViolations(violation, scale, printed, np.maximum(reach, scale[unclear]))


class _Tree:
    """A spanning forest grown from edges in the order given, with paths between nodes."""

    def __init__(self, n: int, first: np.ndarray, second: np.ndarray, order: list[int]) -> None:
        self.first, self.second = first, second
        leader = list(range(n))

        def find(u: int) -> int:
            while leader[u] != u:
                leader[u] = u = leader[leader[u]]
            return u

        around: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.inside: set[int] = set()
        for e in order:
            u, v = int(first[e]), int(second[e])
            ru, rv = find(u), find(v)
            if ru != rv:
                leader[ru] = rv
                around[u].append((v, e))
                around[v].append((u, e))
                self.inside.add(e)
        self.parent, self.edge, self.depth, self.root = [-1] * n, [-1] * n, [0] * n, list(range(n))
        seen = [False] * n
        for start in range(n):
            if seen[start]:
                continue
            seen[start], stack = True, [start]
            while stack:
                u = stack.pop()
                for v, e in around[u]:
                    if not seen[v]:
                        seen[v] = True
                        self.parent[v], self.edge[v], self.depth[v], self.root[v] = u, e, self.depth[u] + 1, start
                        stack.append(v)

    def loop(self, element: int, drops: np.ndarray, size: np.ndarray) -> tuple[float, float]:
        """The sum of drops round the loop of an element, V, and the largest scale of them; 0 where none closes."""
        u, v = int(self.first[element]), int(self.second[element])
        if element in self.inside or self.root[u] != self.root[v]:
            return 0.0, float(size[element])
        terms, most = [float(drops[element])], float(size[element])
        sign_u, sign_v = -1.0, 1.0
        while u != v:
            if self.depth[u] >= self.depth[v]:
                e, sign, low = self.edge[u], sign_u, u
                u = self.parent[u]
            else:
                e, sign, low = self.edge[v], sign_v, v
                v = self.parent[v]
            terms.append(sign * float(drops[e] if int(self.first[e]) == low else -drops[e]))
            most = max(most, float(size[e]))
        return math.fsum(terms), most
