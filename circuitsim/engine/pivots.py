"""Pivots of the network simplex method in the trees of conducting diodes: loops over arrays (`engine.exchange`).

A tree is stored by ``parent`` and ``edge`` of each node (−1 at the root). A pivot raises the current of a spare diode
until a backward current of the tree on its loop is zero, and turns the path between the two round: work of the length
of the paths, not of the tree.
"""

from __future__ import annotations

NOISE = 1e-13
"""Share of the magnitudes in a sum of currents that its rounding is below."""


def exchange_trees(
    first, offers, spares, ptr, edge_at, tail, head, need, scale, used, flow, noise, order, edge, parent, tree, mark
):
    """Swap diodes of backward current for spare ones, group by group; fills in the trees' currents and their noise.

    Parameters
    ----------
    first : (groups + 1,) int array
        Nodes of group q: ``first[q]`` … ``first[q + 1] − 1``.
    offers, spares : int arrays
        Spare diodes of group q: ``spares[offers[q]:offers[q + 1]]``.
    ptr, edge_at : int arrays
        Diodes at each node.
    tail, head : (e,) int arrays
        Anodes and cathodes.
    need, scale : (nodes,) float arrays
        Current that leaves each node through diodes and the scale of its rounding, A.
    used : (e,) bool array
        Diodes of the trees, in place.
    flow, noise : (e,) float arrays
        Filled: currents and the scale of their rounding, A.
    order, edge, parent, tree : (nodes,) int arrays
        Work space.
    mark : (nodes,) bool array
        Work space.
    """
    for k in range(mark.size):
        mark[k] = False
    for q in range(first.size - 1):
        low, high = first[q], first[q + 1]
        root_trees(low, high, ptr, edge_at, tail, head, used, order, edge, parent, tree)
        carry(low, high, tail, need, scale, flow, noise, order, edge, parent)
        begin, count = offers[q], offers[q + 1] - offers[q]
        swaps, idle, k = 4 * count + 20, 0, 0
        while swaps > 0 and idle < count:
            into = spares[begin + k]
            k = k + 1 if k + 1 < count else 0
            idle += 1
            if used[into] or tree[tail[into]] != tree[head[into]]:
                continue
            out = backward(into, tail, head, flow, noise, edge, parent, mark)
            if out >= 0:
                pivot(out, into, tail, head, flow, edge, parent, mark)
                used[out], used[into], noise[into] = False, True, noise[out]
                swaps, idle = swaps - 1, 0
        if swaps < 4 * count + 20:
            root_trees(low, high, ptr, edge_at, tail, head, used, order, edge, parent, tree)
            carry(low, high, tail, need, scale, flow, noise, order, edge, parent)


def root_trees(low, high, ptr, edge_at, tail, head, used, order, edge, parent, tree):
    """Root the trees of the ``used`` diodes among the nodes ``low`` … ``high − 1`` at their first nodes; ``order`` is
    from the roots outwards, ``tree`` each node's root."""
    for u in range(low, high):
        tree[u] = -1
    found = low
    for root in range(low, high):
        if tree[root] >= 0:
            continue
        order[found], edge[root], parent[root], tree[root] = root, -1, root, root
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
                    edge[v], parent[v], tree[v] = e, u, root
                    found += 1


def carry(low, high, tail, need, scale, flow, noise, order, edge, parent):
    """Currents of the trees by leaf elimination, and the scale of their rounding, A."""
    rest, size = need[low:high].copy(), scale[low:high].copy()
    for k in range(high - 1, low - 1, -1):
        u = order[k]
        e = edge[u]
        if e >= 0:
            flow[e] = rest[u - low] if tail[e] == u else -rest[u - low]
            noise[e] = size[u - low]
            rest[parent[u] - low] += rest[u - low]
            size[parent[u] - low] += size[u - low]


def meeting(into, tail, head, edge, parent, mark):
    """Where the paths from the ends of the diode ``into`` to the root meet; ``mark`` is False before and after."""
    for marks in (True, False):
        u = tail[into]
        mark[u] = marks
        while edge[u] >= 0:
            u = parent[u]
            mark[u] = marks
        if marks:
            top = head[into]
            while not mark[top]:
                top = parent[top]
    return top


def backward(into, tail, head, flow, noise, edge, parent, mark):
    """The diode of the tree of the largest backward current that current through the spare diode ``into`` relieves, −1
    without one: current from its anode to its cathode relieves what the tree carries that way."""
    top, out = meeting(into, tail, head, edge, parent, mark), -1
    for side in range(2):
        x = tail[into] if side == 0 else head[into]
        while x != top:
            e = edge[x]
            along = (tail[e] == x) == (side == 0)
            if not along and flow[e] < -NOISE * noise[e] and (out < 0 or flow[e] < flow[out]):
                out = e
            x = parent[x]
    return out


def pivot(out, into, tail, head, flow, edge, parent, mark):
    """Take the diode ``into`` into the tree and ``out``, of negative current, from it."""
    amount, top, found = -flow[out], meeting(into, tail, head, edge, parent, mark), 0
    for side in range(2):
        x = tail[into] if side == 0 else head[into]
        while x != top:
            e = edge[x]
            if e == out:
                found = side
            flow[e] += -amount if (tail[e] == x) == (side == 0) else amount
            x = parent[x]
    flow[out], flow[into] = 0.0, amount
    # The nodes from the end of ``into`` up to ``out`` hang on the other end of ``into``.
    x, above, e = (tail[into], head[into], into) if found == 0 else (head[into], tail[into], into)
    while True:
        following, between = parent[x], edge[x]
        parent[x], edge[x] = above, e
        if between == out:
            break
        x, above, e = following, x, between
