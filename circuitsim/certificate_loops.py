"""Kirchhoff's voltage law for the certificate by sums of drops around loops, for drops that the potentials do not
resolve.

Nothing here is shared with the program or the solvers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.kernels import kernel

Tied = tuple[np.ndarray, np.ndarray]
"""Elements, and the elements whose currents control them (t,)."""


def largest_in_block(arrays: CircuitArrays, carried: np.ndarray, tied: Tied | None = None) -> np.ndarray:
    """Largest |current| in the biconnected component of each element (m,), A, and in the components ``tied`` to it.

    Currents inside a super-node, between nodes joined by voltage sources and shorts, count as zero, because no other
    current depends on them.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    joins = (arrays.kind == VOLTAGE) | (arrays.kind == INDUCTOR) | ((arrays.kind == RESISTOR) & (arrays.value == 0.0))
    edges = csr_array((np.ones(joins.sum()), (arrays.first[joins], arrays.second[joins])), shape=(arrays.n_nodes,) * 2)
    node = connected_components(edges, directed=False)[1]
    carried = np.where(node[arrays.first] == node[arrays.second], 0.0, carried)
    ends = arrays.first.tobytes(), arrays.second.tobytes()
    label = _blocks(*ends) if tied is None else _joined(*ends, *(elements.tobytes() for elements in tied))
    largest = np.zeros(label.max(initial=-1) + 2)
    np.maximum.at(largest, label[label >= 0], np.abs(carried)[label >= 0])
    return largest[label]


@lru_cache(maxsize=4)
def _blocks(first: bytes, second: bytes) -> np.ndarray:
    """The biconnected component of each element (m,), −1 for an element between equal nodes; cached, as the steps of a
    run share it."""
    import networkx

    ends = list(zip(*(np.frombuffer(nodes, dtype=np.int64).tolist() for nodes in (first, second))))
    graph = networkx.Graph()
    graph.add_edges_from(ends)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    block: dict[tuple[int, int], int] = {}
    for k, edges in enumerate(networkx.biconnected_component_edges(graph)):
        for a, b in edges:
            block[a, b] = block[b, a] = k
    label = np.array([block.get(pair, -1) for pair in ends], dtype=np.int64)
    label.setflags(write=False)
    return label


@lru_cache(maxsize=4)
def _joined(first: bytes, second: bytes, tied: bytes, controls: bytes) -> np.ndarray:
    """Component labels (m,), equal for tied elements; cached."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    label = _blocks(first, second)
    count, (one, other) = int(label.max(initial=-1)) + 1, (label[np.frombuffer(k, np.int64)] for k in (tied, controls))
    inside = (one >= 0) & (other >= 0)
    links = csr_array((np.ones(inside.sum()), (one[inside], other[inside])), shape=(count, count))
    groups = np.append(connected_components(links, directed=False)[1], -1)
    found = np.asarray(groups[label], dtype=np.int64)
    found.setflags(write=False)
    return found


class LoopViolations(NamedTuple):
    """Per element: the sum of drops around its loop, V, and the largest drop there, V; if loops were summed, also the
    difference between the drop and the printed potentials, V, and the larger of them, V."""

    violation: np.ndarray
    scale: np.ndarray
    printed: np.ndarray
    printed_scale: np.ndarray


def loop_violations(
    arrays: CircuitArrays,
    resistor: np.ndarray,
    fixed: np.ndarray,
    voltages: np.ndarray,
    low: np.ndarray,
    currents: np.ndarray,
    drops: np.ndarray,
    size: np.ndarray,
    tolerance: float,
) -> LoopViolations:
    """Kirchhoff's voltage law for all elements, with the scale ``size`` of each drop (m,), V.

    An element whose drop agrees with its potential difference to a relative ``tolerance`` needs no loop, because the
    differences sum to zero around every loop. For the others, drops are summed around the fundamental loop of a
    spanning tree of fixed voltages, conducting diodes and the smallest resistances.
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
    tree = _Tree(arrays.n_nodes, first, second, order)
    kernel(loop_sums, unclear.size)(
        unclear,
        first,
        second,
        drops,
        size,
        tree.inside,
        tree.root,
        tree.depth,
        tree.parent,
        tree.edge,
        violation,
        scale,
    )
    reach = np.maximum(np.abs(voltages[first]), np.abs(voltages[second]))[unclear]
    printed = np.abs(drops - difference)[unclear]
    return LoopViolations(violation, scale, printed, np.maximum(reach, scale[unclear]))


class _Tree:
    """A spanning forest grown from edges in the order given, with paths between nodes."""

    def __init__(self, n: int, first: np.ndarray, second: np.ndarray, order: np.ndarray) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

        low, high = np.minimum(first, second)[order], np.maximum(first, second)[order]
        # Of parallel edges, the first in order; its position, from 1 on, is its weight.
        places = np.unique(low * n + high, return_index=True)[1]
        places = places[low[places] != high[places]]
        weights = csr_array((places + 1.0, (low[places], high[places])), shape=(n, n))
        grown = minimum_spanning_tree(weights).tocoo()
        taken = order[grown.data.astype(np.int64) - 1]
        self.inside = np.zeros(first.size, dtype=bool)
        self.inside[taken] = True
        component = connected_components(grown, directed=False)[1]
        # An extra node, connected to the first node of each component, starts the search.
        roots = np.unique(component, return_index=True)[1]
        ends = np.append(first[taken], np.full(roots.size, n)), np.append(second[taken], roots)
        above = breadth_first_order(csr_array((np.ones(ends[0].size), ends), shape=(n + 1, n + 1)), n, directed=False)
        parent, edge = above[1], np.full(n + 1, -1)
        below = np.where(parent[second[taken]] == first[taken], second[taken], first[taken])
        edge[below] = taken
        self.parent, self.edge, self.root = parent.astype(np.int64), edge, component.astype(np.int64)
        self.depth = np.zeros(n + 1, dtype=np.int64)
        kernel(depths, n)(above[0][1:].astype(np.int64), self.parent, self.depth)


def depths(order, parent, depth):
    """Fill in the depth of each node; ``order`` has each node after its parent."""
    for node in order:
        depth[node] = depth[parent[node]] + 1


def loop_sums(unclear, first, second, drops, size, inside, root, depth, parent, edge, violation, scale):
    """Fill in the |sum| of drops around the loop of each unclear element, V, and their largest scale; 0 if no loop
    closes. Sums are in double-double arithmetic.
    """
    for element in unclear:
        u, v = first[element], second[element]
        most = size[element]
        if inside[element] or root[u] != root[v]:
            violation[element], scale[element] = 0.0, most
            continue
        high, low = drops[element], 0.0
        while u != v:
            if depth[u] >= depth[v]:
                e, sign, end = edge[u], -1.0, u
                u = parent[u]
            else:
                e, sign, end = edge[v], 1.0, v
                v = parent[v]
            term = sign * drops[e] if first[e] == end else -sign * drops[e]
            total = high + term
            part = total - high
            low += (high - (total - part)) + (term - part)
            high = total
            most = max(most, size[e])
        violation[element], scale[element] = abs(high + low), most
