"""The operating point of one sample: primal–dual active sets on a `Plan`, then every branch current.

What comes back is a claim. Whoever asked proves it with the certificate, or hands the circuit to the general solver,
which knows about loops, ties and free potentials.
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit.elements import VOLTAGE
from circuitsim.compact.linear import assemble, factorise, lower, substitute
from circuitsim.compact.plan import grow_forest
from circuitsim.compact.workspace import Forest

NOISE = 1e-13
"""Rounding of a sum or a difference, relative to the size of what went in."""
TIGHT = 1e-12
"""Ends of a blocking diode that are closer than this share of their potentials could carry current too."""
ROUNDS = 40
"""Most linear circuits to solve before the general solver's dual method takes over."""
ROUNDED = 1e-15
"""What is left over at a node is rounding: this share of the currents there, of which each potential has a share of its
own."""
FEW = 50
"""Nodes up to which what is left over is always solved for once more: it takes a microsecond, and of so few numbers
people read the last digits (nothing flows through the galvanometer of a balanced bridge)."""
SETTLED, SHARED, FREE, NO_REST, NOT_CONVEX = range(5)
"""How a sample ended: potentials and currents unique; currents may be shared among loops of diodes in other ways too;
some potentials may be free, or voltage constraints close a loop; the diodes did not come to rest or a part has no path
to earth; negative conductances outweigh the others."""


def offsets(plan, kind, first, value, offset):
    """Fill in the potential of each node against its super-node's root, V."""
    offset[:] = 0.0
    for k in range(plan.tree_node.size):
        u, v, e = plan.tree_parent[k], plan.tree_node[k], plan.tree_edge[k]
        held = value[e] if kind[e] == VOLTAGE else 0.0
        offset[v] = offset[u] + held if first[e] == v else offset[u] - held


def take_conductances(plan, value, space):
    """Fill in the conductances of ``plan.resistor``, S; factors of others are forgotten, the forest they rooted and the
    tree of their order."""
    strength = space.strength
    strength[:] = 0.0
    for r in range(space.g.size):
        g = 1.0 / value[plan.resistor[r]]
        space.g[r] = g
        strength[plan.coordinate[plan.resistor_first[r]]] += g
        strength[plan.coordinate[plan.resistor_second[r]]] += g
    assemble(plan, space.g, space.base)
    space.stamp[:] = 0
    space.grown[0] = 0
    space.walked[0] = 0
    space.stubs.count[0] = 0


def refactor(plan, space, closed):
    """The factor with these diodes closed: one at hand, or what differs from the latest done anew.

    Returns
    -------
    int
        Its number among those of the workspace; -1 if not convex.
    """
    stamp = space.stamp
    clock = stamp.size - 1
    latest, oldest = 0, 0
    for f in range(clock):
        if stamp[f] > 0 and same(space.factored[f], closed):
            stamp[clock] += 1
            stamp[f] = stamp[clock]
            return f
        if stamp[f] > stamp[latest]:
            latest = f
        if stamp[f] < stamp[oldest]:
            oldest = f
    dirty, factored = space.dirty, space.factored[oldest]
    if stamp[latest] > 0 and latest != oldest:
        copy(space.weight[latest], space.weight[oldest])
        copy(space.multiplier[latest], space.multiplier[oldest])
        copy(space.pivot[latest], space.pivot[oldest])
        dirty[:] = False
        for e in range(closed.size):
            if closed[e] != space.factored[latest, e]:
                dirty[lower(plan, e)] = True
    else:
        dirty[:] = True
    for e in range(closed.size):
        factored[e] = closed[e]
    stamp[oldest] = 0
    if not factorise(
        plan, space.base, closed, dirty, space.weight[oldest], space.multiplier[oldest], space.pivot[oldest], space.work
    ):
        return -1
    held = True
    for k in range(plan.n):
        held = held and space.pivot[oldest, k] > 0.0
    space.held[oldest] = held
    stamp[clock] += 1
    stamp[oldest] = stamp[clock]
    return oldest


def same(one, other):
    """Whether two rows are equal."""
    equal = True
    for e in range(one.size):
        if one[e] != other[e]:
            equal = False
            break
    return equal


def copy(source, target):
    """Copy one row over another."""
    for k in range(target.size):
        target[k] = source[k]


def far_away(plan, space, factor):
    """Fill in +1 or −1 for every coordinate of a part that a net current drives away, 0 elsewhere."""
    far = space.far
    far[:] = 0.0
    if space.held[factor]:
        return
    fill = plan.rows.size
    weight, multiplier, pivot = space.weight[factor], space.multiplier[factor], space.pivot[factor]
    for k in range(plan.n - 1, -1, -1):
        if pivot[k] == 0.0:
            far[k] = np.sign(space.stranded[k])
        elif weight[fill + k] == 0.0:
            for q in range(plan.col_ptr[k], plan.col_ptr[k + 1]):
                if multiplier[q] > 0.0:
                    far[k] = far[plan.rows[q]]
                    break


def demands(plan, g, v, injected, need, size):
    """Current that must leave each node through sources and diodes, A, and the scale of its rounding."""
    for k in range(v.size):
        need[k] = injected[k]
        size[k] = abs(injected[k])
    for r in range(g.size):
        a, b = plan.resistor_first[r], plan.resistor_second[r]
        if v[a] == 0.0 and v[b] == 0.0:
            continue  # nearly all of them, before there are potentials
        current = g[r] * (v[a] - v[b])
        reach = abs(g[r]) * (abs(v[a]) + abs(v[b]))
        need[a] -= current
        need[b] += current
        size[a] += reach
        size[b] += reach


def gather(plan, at_node, total):
    """Fill in the sums of an amount over the nodes of each coordinate (n + 1,)."""
    total[:] = 0.0
    for k in range(at_node.size):
        total[plan.coordinate[k]] += at_node[k]


def diode_ends(plan, chosen, some, a, b):
    """Fill in the chosen diodes, and the coordinates of their anodes and cathodes; returns how many there are."""
    count = 0
    for d in range(chosen.size):
        if chosen[d]:
            some[count] = d
            a[count] = plan.coordinate[plan.anode[d]]
            b[count] = plan.coordinate[plan.cathode[d]]
            count += 1
    return count


def close(plan, space, closed):
    """The spanning forest of the conducting diodes; takes those that close loops out of ``closed``.

    Trees are rooted where most conductance meets: what is left over from rounding stays there (`forest_currents`).
    """
    node, parent, edge, last = space.forest
    some, root = space.some, space.root
    if space.grown[0] > 0 and same(space.spanned, closed):
        found = space.grown[0] - 1
        return Forest(node[:found], parent[:found], edge[:found], last)
    count = diode_ends(plan, closed, some, space.a, space.b)
    found = grow_forest(
        plan.n + 1, count, space.a, space.b, plan.n, space.strength, space.tracks, node, parent, edge, root
    )  # fmt: skip
    for k in range(plan.n + 1):
        last[k] = k
    for k in range(plan.n + 1):
        last[root[k]] = max(last[root[k]], k)
    for k in range(plan.n + 1):
        last[k] = last[root[k]]
    if found < count:
        closed[:] = False
    for k in range(found):
        edge[k] = some[edge[k]]
        closed[edge[k]] = True
    for e in range(closed.size):
        space.spanned[e] = closed[e]
    space.grown[0] = found + 1
    return Forest(node[:found], parent[:found], edge[:found], last)


def group_potentials(plan, forest, offset, w):
    """Fill in the potentials of the coordinates against their groups' roots that make the ends of conducting diodes
    equal, V."""
    w[:] = 0.0
    for k in range(forest.node.size):
        a, c = plan.anode[forest.diode[k]], plan.cathode[forest.diode[k]]
        bound = offset[c] - offset[a]
        u, v = forest.parent[k], forest.node[k]
        w[v] = w[u] + bound if plan.coordinate[a] == v else w[u] - bound


def node_potentials(plan, forest, x, offset, v):
    """Node potentials, V; the ends of conducting diodes exactly equal."""
    for k in range(v.size):
        v[k] = x[plan.coordinate[k]] + offset[k]
    for k in range(forest.node.size):
        a, c = plan.anode[forest.diode[k]], plan.cathode[forest.diode[k]]
        if plan.coordinate[a] == forest.node[k]:
            v[a] = v[c]
        else:
            v[c] = v[a]


def forest_currents(plan, forest, space, flow):
    """Currents of conducting diodes, A, by leaf elimination, and the scale of their rounding in ``space.noise``.

    Returns
    -------
    bool
        Whether only rounding is left over, at every group of coordinates that conducting diodes join.
    """
    need, size = space.change, space.w
    gather(plan, space.need, need)
    gather(plan, space.size, size)
    flow[:] = 0.0
    for k in range(forest.node.size - 1, -1, -1):
        d, u, v = forest.diode[k], forest.parent[k], forest.node[k]
        flow[d] = need[v] if plan.coordinate[plan.anode[d]] == v else -need[v]
        space.noise[d] = size[v]
        need[u] += need[v]
        size[u] += size[v]
        need[v] = 0.0
    rounded = True
    for k in range(plan.n):
        rounded = rounded and abs(need[k]) <= ROUNDED * size[k]
    return rounded


def begin(plan, injected, offset, forest, space, v):
    """Potentials that only voltage sources and conducting diodes set, others zero; fills in v and the workspace's x,
    need and size."""
    group_potentials(plan, forest, offset, space.x)
    for k in range(v.size):
        v[k] = space.x[plan.coordinate[k]] + offset[k]
    demands(plan, space.g, v, injected, space.need, space.size)


def improve(plan, injected, offset, forest, space, factor, v):
    """Solve for what the nodes need, in place: the linear circuit after `begin`, then steps of iterative refinement."""
    x, change = space.x, space.change
    gather(plan, space.need, change)
    change[plan.n] = 0.0
    substitute(plan, space.multiplier[factor], space.pivot[factor], change, space.stranded)
    for k in range(x.size):
        x[k] += change[forest.last[k]]
    node_potentials(plan, forest, x, offset, v)
    demands(plan, space.g, v, injected, space.need, space.size)


def judge(plan, v, space, flow, closed):
    """Which diodes should conduct next, in ``space.wanted``; returns whether any is wrong now."""
    far, noise, wanted = space.far, space.noise, space.wanted
    wrong = False
    for d in range(closed.size):
        a, c = plan.anode[d], plan.cathode[d]
        if closed[d]:
            wanted[d] = flow[d] >= -NOISE * noise[d]
        else:
            away = far[plan.coordinate[a]] - far[plan.coordinate[c]]
            wanted[d] = away > 0.0 or (away == 0.0 and v[a] - v[c] > NOISE * (abs(v[a]) + abs(v[c])))
        wrong |= wanted[d] != closed[d]
    return wrong


def settle(plan, injected, offset, rounds, space, closed, v, flow):
    """Find which diodes conduct, and the node potentials.

    Parameters
    ----------
    plan : Plan
    injected : (n_nodes,) float array
        Currents that flow into the nodes from current sources, A.
    offset : (n_nodes,) float array
        Potential of each node against its super-node's root, V.
    rounds : int
        Most linear circuits to solve; 0: one, with the diodes as given.
    space : Workspace
        Has the conductances (`take_conductances`).
    closed : (d,) bool array
        The diodes to start with; on return those of a spanning forest that conduct.
    v : (n_nodes,) float array
        Filled: potentials, V.
    flow : (d,) float array
        Filled: diode currents, A.

    Returns
    -------
    status, rounds : int
        `SETTLED` (whether uniquely is another question: `uniqueness`), `NO_REST` or `NOT_CONVEX`; the linear circuits
        solved.
    """
    count = 0
    while True:
        count += 1
        forest = close(plan, space, closed)
        factor = refactor(plan, space, closed)
        if factor < 0:
            return NOT_CONVEX, count
        begin(plan, injected, offset, forest, space, v)
        refined = False
        while True:
            improve(plan, injected, offset, forest, space, factor, v)
            if not refined:
                far_away(plan, space, factor)
            rounded = forest_currents(plan, forest, space, flow) and v.size > FEW
            wrong = judge(plan, v, space, flow, closed)
            if refined or rounded or (wrong and count <= rounds):
                break
            refined = True
        if not wrong or count > rounds:
            break
        copy(space.wanted, closed)
    if rounds > 0:
        stray = wrong
        for k in range(space.far.size):
            stray = stray or space.far[k] != 0.0
        if stray:
            return NO_REST, count
    return SETTLED, count


def uniqueness(plan, v, flow, closed, space):
    """`SETTLED`, `SHARED` or `FREE`: whether other potentials or other currents are an operating point too.

    Potentials are unique where every coordinate is held by resistors and by diodes that really carry something, which
    ``space.carries`` tells afterwards; currents where the diodes whose ends are equal (but for rounding) close no loop.
    """
    if not plan.regular:
        return FREE
    carries = space.carries
    for d in range(closed.size):
        carries[d] = closed[d] and abs(flow[d]) > NOISE * space.noise[d]
    factor = refactor(plan, space, carries)
    if factor < 0 or not space.held[factor]:
        return FREE
    # The closed diodes are a forest, rooted when it was grown: which of the others would join two of its trees?
    joined = space.tracks.put
    for k in range(plan.n + 1):
        joined[k] = space.root[k]
    for d in range(closed.size):
        if closed[d] or not nearly(v, plan.anode[d], plan.cathode[d], TIGHT):
            continue
        a, c = plan.coordinate[plan.anode[d]], plan.coordinate[plan.cathode[d]]
        while joined[a] != a:
            joined[a] = joined[joined[a]]
            a = joined[a]
        while joined[c] != c:
            joined[c] = joined[joined[c]]
            c = joined[c]
        if a == c:
            return SHARED
        joined[max(a, c)] = min(a, c)
    return SETTLED


def nearly(v, anode, cathode, share):
    """Whether a diode blocks, if it does, less than this share of its ends' potentials."""
    return v[cathode] - v[anode] <= share * max(abs(v[anode]), abs(v[cathode]))


def solve_sample(plan, rounds, space, closed, v, merged):
    """The operating point of one sample, with the sources in the workspace.

    Diodes that are closed but carry nothing are opened in the end. Where conducting diodes close loops, the currents
    are those of some forest that came out conducting; with ``merged``, for callers who choose currents themselves,
    those of a forest of all diodes whose ends are equal (``space.equal``).

    Parameters
    ----------
    closed : (d,) bool array
        The diodes to start with; where the rounds do not come to rest, they begin again with none. On return those of a
        forest that conduct.
    merged : bool

    Returns
    -------
    status, rounds : int
        See `SETTLED`; the linear circuits solved.
    """
    last, status, count, started = False, NO_REST, 0, False
    for d in range(closed.size):
        started = started or closed[d]
    while True:  # one call of `settle`, since wherever it stands it is compiled anew
        rest, tried = settle(plan, space.injected, space.offset, 0 if last else rounds, space, closed, v, space.flow)
        if last:
            break
        count += tried
        if rest == NO_REST and started:
            started = False
            closed[:] = False
            continue
        status = uniqueness(plan, v, space.flow, closed, space) if rest == SETTLED else rest
        if status == SETTLED:
            last = not same(closed, space.carries)
            copy(space.carries, closed)
        elif merged and status == SHARED:
            for d in range(closed.size):
                space.equal[d] = closed[d] or nearly(v, plan.anode[d], plan.cathode[d], NOISE)
                last = last or space.equal[d] != closed[d]
            copy(space.equal, closed)
        if not last:
            break
    return status, count


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
