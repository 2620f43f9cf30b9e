"""Which of the tight diodes carry the current: exchanges in spanning trees, as in the network simplex method.

Diodes between shorted nodes often close loops. A spanning tree of each group then carries all current, but not every
tree carries it forwards, and a set of conducting diodes must not be given up for a bad choice of trees: to part a group
that belongs together moves all that is connected to it, and the active-set iterations cycle.
"""

from __future__ import annotations

import numpy as np

from circuitsim.kernels import kernel
from circuitsim.program.incidence import by_node

NOISE = 1e-13
"""Share of the magnitudes in a sum of currents that its rounding is below."""


def exchange_all(
    tail: np.ndarray, head: np.ndarray, group: np.ndarray, equal: np.ndarray, on: np.ndarray, flow: np.ndarray,
    noise: np.ndarray, need: np.ndarray, scale: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Currents of all diodes (d,), A, after exchanges; ``noise`` is updated.

    Parameters
    ----------
    tail, head, group, need, scale
        See `exchange`.
    equal : (d,) bool array
        Zero-voltage diodes.
    on : (d,) bool array
        Conducting diodes: a forest.
    flow, noise : (d,) float arrays
        Their currents and the scale of the rounding, A.
    """
    forest = np.flatnonzero(on & (tail != head))
    tight = equal & (group[tail] == group[head]) & (tail != head)
    forest, carried, size = exchange(tail, head, group, tight, forest, flow[forest], noise[forest], need, scale)
    found = np.zeros(on.size)
    found[forest], noise[forest] = carried, size
    return found


def exchange(
    tail: np.ndarray, head: np.ndarray, group: np.ndarray, tight: np.ndarray, forest: np.ndarray,
    flow: np.ndarray, noise: np.ndarray, need: np.ndarray, scale: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Swap diodes that carry current backwards for others that can relieve them.

    A diode e of a tree cuts it in two. If its current is negative, any tight diode that crosses the cut the other way
    can take its place; where none does, the group has to be parted there. A group that has to be parted may swap in
    circles elsewhere: after a number of swaps it stays as it is.

    Parameters
    ----------
    tail, head : (d,) int arrays
        Anodes and cathodes, 0…n.
    group : (n + 1,) int array
        Label of each node's group of shorted nodes.
    tight : (d,) bool array
        Diodes within groups, at their bounds.
    forest : (f,) int array
        Conducting diodes, a spanning forest, ascending.
    flow, noise : (f,) float arrays
        Their currents and the scale of the rounding, A.
    need, scale : (n + 1,) float arrays
        Current that leaves each node through diodes and the scale of its rounding, A.

    Returns
    -------
    forest, flow, noise
        The same for the new forest.
    """
    inside = np.zeros(tail.size, dtype=bool)
    inside[forest] = True
    spare = tight & ~inside
    if not spare.any():
        return forest, flow, noise
    backwards, relievable = np.zeros(group.size, dtype=bool), np.zeros(group.size, dtype=bool)
    backwards[group[tail[forest[flow < -NOISE * noise]]]] = True
    relievable[group[tail[spare]]] = True
    chosen = np.flatnonzero((inside | spare) & (backwards & relievable)[group[tail]])
    if not chosen.size:
        return forest, flow, noise
    # Nodes numbered group by group, the one of the largest scale first: it is the root.
    nodes = np.unique(np.concatenate([tail[chosen], head[chosen]]))
    nodes = nodes[np.lexsort((-scale[nodes], group[nodes]))]
    number = np.zeros(group.size, dtype=np.int64)
    number[nodes] = np.arange(nodes.size)
    first = np.flatnonzero(np.append(True, group[nodes[1:]] != group[nodes[:-1]]))
    a, b = number[tail[chosen]], number[head[chosen]]
    ptr, position = by_node(nodes.size, np.concatenate([a, b]))
    used = inside[chosen]
    spares = np.flatnonzero(~used)
    home = np.searchsorted(first, a[spares], side="right") - 1
    offers = np.searchsorted(home[np.argsort(home, kind="stable")], np.arange(first.size + 1))
    spares = spares[np.argsort(home, kind="stable")]
    carried, size = np.zeros(chosen.size), np.zeros(chosen.size)
    work = [np.empty(nodes.size, dtype=np.int64) for _ in range(5)]
    # Each swap walks the tree of its group anew.
    kernel(_exchange_trees, chosen.size * (spares.size + 1))(
        np.append(first, nodes.size), offers, spares, ptr, position % chosen.size, a, b, need[nodes], scale[nodes],
        used, carried, size, *work,
    )  # fmt: skip
    inside[chosen] = used
    all_flow, all_noise = np.zeros(tail.size), np.zeros(tail.size)
    all_flow[forest], all_noise[forest] = flow, noise
    all_flow[chosen], all_noise[chosen] = carried, size
    forest = np.flatnonzero(inside)
    return forest, all_flow[forest], all_noise[forest]


def _exchange_trees(
    first, offers, spares, ptr, edge_at, tail, head, need, scale, used, flow, noise, order, edge, parent, depth, tree
):  # fmt: skip
    """Group by group: root the trees, find their currents by leaf elimination, swap one pair, and again."""
    for q in range(first.size - 1):
        low, high = first[q], first[q + 1]
        for swaps in range(4 * (offers[q + 1] - offers[q]) + 20, -1, -1):
            tree[low:high] = -1
            found = low
            for root in range(low, high):
                if tree[root] >= 0:
                    continue
                order[found], edge[root], parent[root], depth[root], tree[root] = root, -1, root, 0, root
                visited = found
                found += 1
                while visited < found:
                    u = order[visited]
                    visited += 1
                    for at in range(ptr[u], ptr[u + 1]):
                        e = edge_at[at]
                        v = head[e] if tail[e] == u else tail[e]
                        if used[e] and tree[v] < 0:
                            order[found] = v
                            edge[v], parent[v], depth[v], tree[v] = e, u, depth[u] + 1, root
                            found += 1
            rest, size = need[low:high].copy(), scale[low:high].copy()
            for k in range(high - 1, low - 1, -1):
                u = order[k]
                e = edge[u]
                if e >= 0:
                    flow[e] = rest[u - low] if tail[e] == u else -rest[u - low]
                    noise[e] = size[u - low]
                    rest[parent[u] - low] += rest[u - low]
                    size[parent[u] - low] += size[u - low]
            out, into = -1, -1
            for k in range(offers[q], offers[q + 1]):
                # Current through a spare diode relieves what the tree carries from its anode to its cathode.
                u, v = tail[spares[k]], head[spares[k]]
                if used[spares[k]] or tree[u] != tree[v]:
                    continue
                while u != v:
                    if depth[u] >= depth[v]:
                        e = edge[u]
                        along = tail[e] == u
                        u = parent[u]
                    else:
                        e = edge[v]
                        along = head[e] == v
                        v = parent[v]
                    if not along and flow[e] < -NOISE * noise[e] and (out < 0 or flow[e] < flow[out]):
                        out, into = e, spares[k]
                if out >= 0:
                    break
            if out < 0 or swaps == 0:
                break
            used[out], used[into] = False, True
            flow[out] = 0.0
