"""Which of the tight diodes carry the current: exchanges in spanning trees, as in the network simplex method.

Diodes between shorted nodes often close loops. A spanning tree of each group then carries all current, but not every
tree carries it forwards, and a set of conducting diodes must not be given up for a bad choice of trees: to part a group
that belongs together moves all that is connected to it, and the active-set iterations cycle.
"""

from __future__ import annotations

import numpy as np

from circuitsim.engine.kernels import kernel
from circuitsim.engine.pivots import NOISE, exchange_trees
from circuitsim.program.components import by_node


def exchange_all(
    tail: np.ndarray,
    head: np.ndarray,
    group: np.ndarray,
    equal: np.ndarray,
    on: np.ndarray,
    flow: np.ndarray,
    noise: np.ndarray,
    need: np.ndarray,
    scale: np.ndarray,
) -> np.ndarray:
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
    tail: np.ndarray,
    head: np.ndarray,
    group: np.ndarray,
    tight: np.ndarray,
    forest: np.ndarray,
    flow: np.ndarray,
    noise: np.ndarray,
    need: np.ndarray,
    scale: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    negative = forest[flow < -NOISE * noise]
    backwards[group[tail[negative]]] = True
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
    work = [np.empty(nodes.size, dtype=np.int64) for _ in range(4)]
    # Each pivot walks paths of a tree.
    kernel(exchange_trees, chosen.size + 8 * spares.size)(
        np.append(first, nodes.size),
        offers,
        spares,
        ptr,
        position % chosen.size,
        a,
        b,
        need[nodes],
        scale[nodes],
        used,
        carried,
        size,
        *work,
        np.empty(nodes.size, dtype=bool),
    )
    inside[chosen] = used
    all_flow, all_noise = np.zeros(tail.size), np.zeros(tail.size)
    all_flow[forest], all_noise[forest] = flow, noise
    all_flow[chosen], all_noise[chosen] = carried, size
    forest = np.flatnonzero(inside)
    return forest, all_flow[forest], all_noise[forest]
