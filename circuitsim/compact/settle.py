"""The operating point of one sample: primal–dual active sets on a `Plan`, then every branch current.

What comes back is a claim. Whoever asked proves it with the certificate, or hands the circuit to the general solver,
which knows about loops, ties and free potentials.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.compact.linear import factorise, substitute
from circuitsim.compact.plan import grow_forest, taken

NOISE = 1e-13
"""Rounding of a sum or a difference, relative to the size of what went in."""
TIGHT = 1e-12
"""Ends of a blocking diode that are closer than this share of their potentials could carry current too."""

SETTLED, SHARED, FREE, NO_REST, NOT_CONVEX = range(5)
"""How a sample ended: potentials and currents unique; currents may be shared among loops of diodes in other ways too;
some potentials may be free, or voltage constraints close a loop; the diodes did not come to rest or a part has no path
to earth; negative conductances outweigh the others."""


class Workspace(NamedTuple):
    """Arrays that samples share, one set a thread; sized by `workspace`."""

    weight: np.ndarray
    multiplier: np.ndarray
    pivot: np.ndarray
    work: np.ndarray
    factored: np.ndarray  # (d + 1,) bool: the diodes that the factor holds closed; last: whether there is a factor


def workspace(plan):
    """Fresh work arrays."""
    fill, n = plan.rows.size, plan.n
    return Workspace(
        np.empty(fill + n), np.empty(fill), np.empty(n), np.empty(n + 1), np.zeros(plan.diode.size + 1, np.bool_)
    )


def offsets(plan, kind, first, value, offset):
    """Fill in the potential of each node against its super-node's root, V."""
    offset[:] = 0.0
    for k in range(plan.tree_node.size):
        u, v, e = plan.tree_parent[k], plan.tree_node[k], plan.tree_edge[k]
        held = value[e] if kind[e] == VOLTAGE else 0.0
        offset[v] = offset[u] + held if first[e] == v else offset[u] - held


def conductances(plan, value):
    """Of ``plan.resistor``, S."""
    g = np.empty(plan.resistor.size)
    for r in range(g.size):
        g[r] = 1.0 / value[plan.resistor[r]]
    return g


def refactor(plan, g, closed, space):
    """Factorise unless the factor at hand is of these very diodes; False if not convex."""
    same = space.factored[-1]
    if same:
        for e in range(closed.size):
            if space.factored[e] != closed[e]:
                same = False
                break
    if same:
        return True
    space.factored[:-1] = closed
    space.factored[-1] = factorise(plan, g, closed, space.weight, space.multiplier, space.pivot, space.work)
    return space.factored[-1]


def far_away(plan, space, stranded):
    """+1 or −1 for every coordinate of a part that a net current drives away, 0 elsewhere (n + 1,)."""
    fill = plan.rows.size
    far = np.zeros(plan.n + 1)
    for k in range(plan.n - 1, -1, -1):
        if space.pivot[k] == 0.0:
            far[k] = np.sign(stranded[k])
        elif space.weight[fill + k] == 0.0:
            for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
                if space.multiplier[q] > 0.0:
                    far[k] = far[plan.rows[q]]
                    break
    return far


def demands(plan, first, second, g, v, injected, need, size):
    """Current that must leave each node through sources and diodes, A, and the scale of its rounding."""
    for k in range(v.size):
        need[k] = injected[k]
        size[k] = abs(injected[k])
    for r in range(g.size):
        e = plan.resistor[r]
        a, b = first[e], second[e]
        current = g[r] * (v[a] - v[b])
        reach = abs(g[r]) * (abs(v[a]) + abs(v[b]))
        need[a] -= current
        need[b] += current
        size[a] += reach
        size[b] += reach


def gather(plan, at_node):
    """Sum of an amount over the nodes of each coordinate (n + 1,)."""
    total = np.zeros(plan.n + 1)
    for k in range(at_node.size):
        total[plan.coordinate[k]] += at_node[k]
    return total


class Forest(NamedTuple):
    """Conducting diodes as trees over coordinates, from the roots outwards (indices into ``plan.diode``)."""

    node: np.ndarray
    parent: np.ndarray
    diode: np.ndarray
    last: np.ndarray  # (n + 1,): the coordinate of each group that is eliminated last


def diode_ends(plan, first, second, chosen):
    """The chosen diodes, and the coordinates of their anodes and cathodes."""
    some = np.empty(chosen.size, np.int64)
    count = 0
    for d in range(chosen.size):
        if chosen[d]:
            some[count] = d
            count += 1
    some = some[:count].copy()
    diode = taken(plan.diode, some)
    return some, taken(plan.coordinate, taken(first, diode)), taken(plan.coordinate, taken(second, diode))


def close(plan, first, second, closed):
    """The spanning forest of the conducting diodes; takes those that close loops out of ``closed``."""
    some, a, b = diode_ends(plan, first, second, closed)
    node, parent, edge, root = grow_forest(plan.n + 1, a, b, plan.n)
    last = root.copy()
    for k in range(plan.n + 1):
        last[root[k]] = max(last[root[k]], k)
    for k in range(plan.n + 1):
        root[k] = last[root[k]]
    closed[:] = False
    for k in range(edge.size):
        closed[some[edge[k]]] = True
    return Forest(node, parent, taken(some, edge), root)


def group_potentials(plan, first, second, forest, offset):
    """Potential of each coordinate against its group's root that makes the ends of conducting diodes equal, V."""
    w = np.zeros(plan.n + 1)
    for k in range(forest.node.size):
        e = plan.diode[forest.diode[k]]
        bound = offset[second[e]] - offset[first[e]]
        u, v = forest.parent[k], forest.node[k]
        w[v] = w[u] + bound if plan.coordinate[first[e]] == v else w[u] - bound
    return w


def node_potentials(plan, first, second, forest, x, offset, v):
    """Node potentials, V; the ends of conducting diodes exactly equal."""
    for k in range(v.size):
        v[k] = x[plan.coordinate[k]] + offset[k]
    for k in range(forest.node.size):
        e = plan.diode[forest.diode[k]]
        if plan.coordinate[first[e]] == forest.node[k]:
            v[first[e]] = v[second[e]]
        else:
            v[second[e]] = v[first[e]]


def forest_currents(plan, first, forest, need, size, flow, noise):
    """Currents of conducting diodes, A, by leaf elimination, and the scale of their rounding; uses up need and size."""
    flow[:] = 0.0
    noise[:] = 0.0
    for k in range(forest.node.size - 1, -1, -1):
        d, u, v = forest.diode[k], forest.parent[k], forest.node[k]
        outward = plan.coordinate[first[plan.diode[d]]] == v
        flow[d] = need[v] if outward else -need[v]
        noise[d] = size[v]
        need[u] += need[v]
        size[u] += size[v]


def spread(x, last):
    """Each coordinate's potential: that of its group's last member, V."""
    found = np.empty(x.size)
    for k in range(x.size):
        found[k] = x[last[k]]
    return found


def linear(plan, first, second, g, injected, offset, forest, space, v, need, size):
    """Coordinates' potentials of the linear circuit with a forest of diodes closed; fills in v, need and size."""
    n = plan.n
    w = group_potentials(plan, first, second, forest, offset)
    for k in range(v.size):
        v[k] = w[plan.coordinate[k]] + offset[k]
    demands(plan, first, second, g, v, injected, need, size)
    x = gather(plan, need)
    x[n] = 0.0
    stranded = substitute(plan, space.multiplier, space.pivot, x)
    x = spread(x, forest.last)
    for k in range(n + 1):
        x[k] += w[k]
    node_potentials(plan, first, second, forest, x, offset, v)
    demands(plan, first, second, g, v, injected, need, size)
    return x, stranded


def improve(plan, first, second, g, injected, offset, forest, space, x, v, need, size):
    """One step of iterative refinement, in place."""
    correction = gather(plan, need)
    correction[plan.n] = 0.0
    substitute(plan, space.multiplier, space.pivot, correction)
    correction = spread(correction, forest.last)
    for k in range(x.size):
        x[k] += correction[k]
    node_potentials(plan, first, second, forest, x, offset, v)
    demands(plan, first, second, g, v, injected, need, size)


def judge(plan, first, second, v, far, flow, noise, closed, wanted):
    """Which diodes should conduct next; returns whether any is wrong now."""
    wrong = False
    for d in range(closed.size):
        e = plan.diode[d]
        a, c = first[e], second[e]
        if closed[d]:
            wanted[d] = flow[d] >= -NOISE * noise[d]
        else:
            away = far[plan.coordinate[a]] - far[plan.coordinate[c]]
            wanted[d] = away > 0.0 or (away == 0.0 and v[a] - v[c] > NOISE * (abs(v[a]) + abs(v[c])))
        wrong |= wanted[d] != closed[d]
    return wrong


def settle(plan, first, second, g, injected, offset, rounds, space, closed, v, flow):
    """Find which diodes conduct, and the node potentials.

    Parameters
    ----------
    plan : Plan
    first, second : (m,) int arrays
        Terminals of the elements.
    g : (r,) float array
        Conductances of ``plan.resistor``, S.
    injected : (n_nodes,) float array
        Currents that flow into the nodes from current sources, A.
    offset : (n_nodes,) float array
        Potential of each node against its super-node's root, V.
    rounds : int
        Most linear circuits to solve; 0: one, with the diodes as given.
    space : Workspace
    closed : (d,) bool array
        The diodes to start with; on return those of a spanning forest that conduct.
    v : (n_nodes,) float array
        Filled: potentials, V.
    flow : (d,) float array
        Filled: diode currents, A.

    Returns
    -------
    status, rounds : int
        See `SETTLED`; the linear circuits solved.
    """
    noise, wanted = np.empty(closed.size), np.empty(closed.size, np.bool_)
    need, size = np.empty(v.size), np.empty(v.size)
    count = 0
    while True:
        count += 1
        forest = close(plan, first, second, closed)
        if not refactor(plan, g, closed, space):
            return NOT_CONVEX, count
        x, stranded = linear(plan, first, second, g, injected, offset, forest, space, v, need, size)
        far = far_away(plan, space, stranded)
        forest_currents(plan, first, forest, gather(plan, need), gather(plan, size), flow, noise)
        wrong = judge(plan, first, second, v, far, flow, noise, closed, wanted)
        if not wrong or count > rounds:
            improve(plan, first, second, g, injected, offset, forest, space, x, v, need, size)
            forest_currents(plan, first, forest, gather(plan, need), gather(plan, size), flow, noise)
            wrong = judge(plan, first, second, v, far, flow, noise, closed, wanted)
            if not wrong or count > rounds:
                break
        closed[:] = wanted
    if rounds > 0:
        stray = wrong
        for k in range(far.size):
            stray = stray or far[k] != 0.0
        if stray:
            return NO_REST, count
    return uniqueness(plan, first, second, g, v, flow, noise, closed, space), count


def uniqueness(plan, first, second, g, v, flow, noise, closed, space):
    """`SETTLED`, `SHARED` or `FREE`: whether other potentials or other currents are an operating point too.

    Potentials are unique where every coordinate is held by resistors and by diodes that really carry something;
    currents where the diodes whose ends are equal (but for rounding) close no loop.
    """
    if not plan.regular:
        return FREE
    carries, tight = closed.copy(), closed.copy()
    for d in range(closed.size):
        e = plan.diode[d]
        va, vc = v[first[e]], v[second[e]]
        if closed[d]:
            carries[d] = flow[d] > NOISE * noise[d]
        else:
            tight[d] = vc - va <= TIGHT * max(abs(va), abs(vc))
    if not refactor(plan, g, carries, space):
        return FREE
    for k in range(plan.n):
        if space.pivot[k] <= 0.0:
            return FREE
    some, a, b = diode_ends(plan, first, second, tight)
    return SETTLED if grow_forest(plan.n + 1, a, b, plan.n)[2].size == some.size else SHARED


def branch_currents(plan, kind, first, second, value, v, flow, current):
    """Every element's current in SPICE signs, A: Ohm's law, the sources, the diodes; then what is left at the nodes
    flows through the voltage constraints (leaf elimination from the leaves of their trees).
    """
    need = np.zeros(v.size)
    for e in range(kind.size):
        if kind[e] == RESISTOR and value[e] != 0.0:
            current[e] = (v[first[e]] - v[second[e]]) / value[e]
        elif kind[e] == CURRENT:
            current[e] = value[e]
        else:
            current[e] = 0.0
    for d in range(flow.size):
        current[plan.diode[d]] = max(flow[d], 0.0)
    constraint_currents(plan, first, second, need, current)


def constraint_currents(plan, first, second, need, current):
    """Currents of the voltage constraints, A, from the leaves of their trees: what currents ``need`` into the nodes and
    all other branches leave over. Uses up ``need``.
    """
    for e in range(current.size):
        need[first[e]] -= current[e]
        need[second[e]] += current[e]
    for k in range(plan.tree_node.size - 1, -1, -1):
        u, w, e = plan.tree_parent[k], plan.tree_node[k], plan.tree_edge[k]
        current[e] = need[w] if first[e] == w else -need[w]
        need[u] += need[w]
