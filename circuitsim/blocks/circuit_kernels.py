"""Loops over samples and branches that differences of energies need; each beside its readable numpy twin."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit


@jit()
def branch_products(
    first: np.ndarray, second: np.ndarray, left: np.ndarray, right: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Σ_b weight_b (left_a − left_c)(right_a − right_c) for every branch a → c.

    Parameters
    ----------
    first, second : (r,) int arrays
        Ends of the branches.
    left, right : (batch, n_nodes) float arrays
    weight : (batch,) float array

    Returns
    -------
    (r,) float array
    """
    out = np.zeros(first.size)
    for b in range(weight.size):
        if weight[b] != 0.0:
            for r in range(first.size):
                a, c = first[r], second[r]
                out[r] += weight[b] * ((left[b, a] - left[b, c]) * (right[b, a] - right[b, c]))
    return out


def branch_products_reference(
    first: np.ndarray, second: np.ndarray, left: np.ndarray, right: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The numpy twin of `branch_products`."""
    return weight @ ((left[:, first] - left[:, second]) * (right[:, first] - right[:, second]))


@jit()
def tree_currents(
    starts: np.ndarray,
    neighbour: np.ndarray,
    edge: np.ndarray,
    sign: np.ndarray,
    active: np.ndarray,
    need: np.ndarray,
    wanted: np.ndarray,
) -> np.ndarray:
    """Currents that chosen edges carry where all current flows along trees of active edges.

    Every node is left with a net current that only sources and conducting diodes can take away. These form trees (where
    they close loops, one tree of many is taken); from the leaves inwards each edge carries what lies beyond it.

    Parameters
    ----------
    starts, neighbour, edge, sign : int arrays
        The edges by node: node u has ``neighbour[k], edge[k], sign[k]`` for k in ``starts[u]…starts[u + 1]``; the sign
        is +1 where u is the edge's first node.
    active : (batch, edges) bool array
        Which edges there are in each sample.
    need : (batch, n_nodes) float array
        Net current that flows into each node by all other ways, A.
    wanted : (k,) int array
        Edges whose current is asked for.

    Returns
    -------
    (batch, k) float array
        Currents from first to second node, A.
    """
    batch, n = need.shape
    out = np.zeros((batch, wanted.size))
    order = np.empty(n, np.int64)
    above = np.empty(n, np.int64)
    through = np.empty(n, np.int64)
    rest = np.empty(n)
    for b in range(batch):
        above[:] = -2
        count = 0
        for root in range(n):
            if above[root] != -2:
                continue
            above[root], through[root] = -1, -1
            order[count] = root
            head = count
            count += 1
            while head < count:
                u = order[head]
                head += 1
                for k in range(starts[u], starts[u + 1]):
                    v = neighbour[k]
                    if active[b, edge[k]] and above[v] == -2:
                        # Seen from v, the edge's sign is the other way round.
                        above[v], through[v] = u, k
                        order[count] = v
                        count += 1
        rest[:] = need[b]
        for place in range(n - 1, -1, -1):
            v = order[place]
            if above[v] >= 0:
                rest[above[v]] += rest[v]
                for j in range(wanted.size):
                    if wanted[j] == edge[through[v]]:
                        out[b, j] = -sign[through[v]] * rest[v]
    return out


def tree_currents_reference(
    ends: np.ndarray, active: np.ndarray, need: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """The numpy twin of `tree_currents`, by least squares on the incidence matrix; ``ends`` is (edges, 2)."""
    out = np.zeros((len(need), wanted.size))
    for b, now in enumerate(active):
        incidence = np.zeros((need.shape[1], len(ends)))
        for k in np.flatnonzero(now):
            incidence[ends[k, 0], k] += 1.0
            incidence[ends[k, 1], k] -= 1.0
        out[b] = np.linalg.lstsq(incidence, need[b], rcond=None)[0][wanted]
    return out
