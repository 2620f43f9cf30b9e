"""The steps of an active-set iteration, common to both drivers: plain functions on arrays, interpreted or compiled.

    start                   conducting diodes contracted to rooted trees; potentials within trees; net currents to carry
    (linear solve)          small driver: scalar factor (`circuitsim.engine.small.active_set`);
                            large driver: any linear solver (`circuitsim.engine.nodal`)
    finish                  potentials; currents of conducting diodes by leaf elimination; diodes that leave and enter

``plan`` is a `circuitsim.program.structure.Topology` or has its members, like a `Plan` of the small driver; ``space``
is a `State` or has its members, like a `Workspace`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from circuitsim._graphs import Tracks, grow_forest, new_tracks
from circuitsim.circuit.elements import VOLTAGE

ROUNDED = 1e-15
"""Relative size of a node's residual that counts as rounding: of the currents there, each with the rounding of its
potentials."""


BETWEEN = 0.7
"""Conductance of every diode in the first linear circuit, relative to the smaller sum of conductances at its ends:
about the circuit's own between them. With half or twice of it, alternating directions leave as many wrong states one
step later."""

RELAXED = 1.8
"""Overrelaxation of alternating directions, which converge for values from 1 to 2."""

STEPS = 5
"""Maximum number of steps of alternating directions. In a mesh of 10,000 nodes 10 % of the diodes are in the wrong
state after the first, 3, 1.5, 0.8 and 0.5 % after the next ones; an active-set iteration takes as long as five
steps."""

SETTLED = 0.003
"""Fraction of the diodes; fewer changes end the steps."""


class Forest(NamedTuple):
    """Conducting diodes as trees over coordinates, from the roots outwards (indices into ``plan.diode``)."""

    node: np.ndarray
    parent: np.ndarray
    diode: np.ndarray
    last: np.ndarray  # (n + 1,): the coordinate of each group that is eliminated last


class State(NamedTuple):
    """Numbers and workspace of one iteration."""

    g: np.ndarray  # (r,): conductances, S
    strength: np.ndarray  # (n + 1,): sum of conductances at each coordinate, S
    x: np.ndarray  # (n + 1,): potentials of the coordinates, V
    change: np.ndarray  # (n + 1,): net currents to carry, A; after the linear solve, changes of potential, V
    w: np.ndarray  # (n + 1,)
    driven: np.ndarray  # (n + 1,): sign of the net current of floating components
    offset: np.ndarray  # (n_nodes,): potential of each node relative to its super-node's root, V
    injected: np.ndarray  # (n_nodes,): currents from current sources, A
    need: np.ndarray  # (n_nodes,): current that must leave each node through sources and diodes, A
    size: np.ndarray  # (n_nodes,): scale of its rounding, A
    noise: np.ndarray  # (d,): scale of the rounding of the diodes' currents, A
    flow: np.ndarray  # (d,): currents of the diodes, A
    forest: Forest
    grown: np.ndarray  # (1,): 1 + the diodes of the current forest, 0 if there is none
    root: np.ndarray  # (n + 1,)
    tracks: Tracks
    some: np.ndarray  # (d,)
    a: np.ndarray  # (d,)
    b: np.ndarray  # (d,)
    closed: np.ndarray  # (d,): the diodes that conduct
    spanned: np.ndarray  # (d,): the diodes of the current forest
    wanted: np.ndarray  # (d,): the diodes that should conduct next


def new_state(plan, g, strength):
    """A state for conductances ``g``, S, and their sums ``strength`` at the coordinates, S."""
    c, d = plan.n + 1, plan.anode.size
    places = partial(np.empty, dtype=np.int64)
    made = (
        g,
        strength,
        *np.zeros((4, c)),
        *np.zeros((4, plan.coordinate.size)),
        *np.zeros((2, d)),
        Forest(*places((4, c))),
        np.zeros(1, np.int64),
        places(c),
        new_tracks(c, d),
        *places((3, d)),
        *np.zeros((3, d), bool),
    )
    return State._make(made)


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


def offsets(plan, kind, first, value, offset):
    """Fill in the potential of each node relative to its super-node's root, V."""
    offset[:] = 0.0
    for k in range(plan.tree_node.size):
        u, v, e = plan.tree_parent[k], plan.tree_node[k], plan.tree_edge[k]
        held = value[e] if kind[e] == VOLTAGE else 0.0
        offset[v] = offset[u] + held if first[e] == v else offset[u] - held


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


def forest_at_hand(space):
    """The forest left by `contract_diodes`."""
    node, parent, diode, last = space.forest
    found = space.grown[0] - 1
    return Forest(node[:found], parent[:found], diode[:found], last)


def contract_diodes(plan, space):
    """The spanning forest of the conducting diodes; removes those that close loops from ``space.closed``.

    Trees are rooted at the largest sum of conductances: the rounding residual stays there (`forest_currents`).
    """
    node, parent, edge, last = space.forest
    some, root, closed = space.some, space.root, space.closed
    if space.grown[0] > 0 and same(space.spanned, closed):
        return forest_at_hand(space)
    count = 0
    for d in range(closed.size):
        if closed[d]:
            space.a[count], space.b[count] = plan.coordinate[plan.anode[d]], plan.coordinate[plan.cathode[d]]
            some[count] = d
            count += 1
    found = grow_forest(
        plan.n + 1, count, space.a, space.b, plan.n, space.strength, space.tracks, node, parent, edge, root
    )
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
    space.spanned[:] = closed
    space.grown[0] = found + 1
    return forest_at_hand(space)


def node_potentials(plan, forest, space, v):
    """Node voltages, V; the ends of conducting diodes exactly equal."""
    for k in range(v.size):
        v[k] = space.x[plan.coordinate[k]] + space.offset[k]
    for k in range(forest.node.size):
        a, c = plan.anode[forest.diode[k]], plan.cathode[forest.diode[k]]
        if plan.coordinate[a] == forest.node[k]:
            v[a] = v[c]
        else:
            v[c] = v[a]


def begin(plan, forest, space, v):
    """Potentials set by voltage sources and conducting diodes, given those of the trees' roots in ``space.x``; fills in
    v and the state's need and size."""
    x, offset = space.x, space.offset
    for k in range(forest.node.size):
        a, c = plan.anode[forest.diode[k]], plan.cathode[forest.diode[k]]
        bound = offset[c] - offset[a]
        u, w = forest.parent[k], forest.node[k]
        x[w] = x[u] + bound if plan.coordinate[a] == w else x[u] - bound
    for k in range(v.size):
        v[k] = x[plan.coordinate[k]] + offset[k]
    demands(plan, space.g, v, space.injected, space.need, space.size)


def start(plan, space, v):
    """The part of a step before the linear solve, from the potentials in ``space.x``; ``space.change``: currents to
    carry."""
    begin(plan, contract_diodes(plan, space), space, v)
    gather(plan, space.need, space.change)


def forest_currents(plan, forest, space):
    """Fill in the currents of conducting diodes, A, by leaf elimination, and the scale of their rounding.

    Returns
    -------
    bool
        Whether the residual of every group of coordinates joined by conducting diodes is rounding.
    """
    need, size, flow = space.change, space.w, space.flow
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


def conducts(closed, current, current_noise, forward, forward_noise, away):
    """Whether a diode should conduct next: a conducting one if its current is forward; a blocking one if its voltage is
    forward, or as the path out of a part with a net current (``away`` > 0). For one diode, or for arrays of them."""
    enters = (away > 0.0) | ((away == 0.0) & (forward > forward_noise))
    return (closed & (current >= -current_noise)) | (np.logical_not(closed) & enters)


def kkt_violations(plan, v, space, share):
    """Which diodes should conduct next, in ``space.wanted``; returns whether any is in the wrong state.

    Currents and voltages below ``share`` of their terms are zero.
    """
    driven, noise, wanted, flow, closed = space.driven, space.noise, space.wanted, space.flow, space.closed
    wrong = False
    for d in range(closed.size):
        a, c = plan.anode[d], plan.cathode[d]
        away = driven[plan.coordinate[a]] - driven[plan.coordinate[c]]
        reach = share * (abs(v[a]) + abs(v[c]))
        wanted[d] = conducts(closed[d], flow[d], share * noise[d], v[a] - v[c], reach, away)
        wrong |= wanted[d] != closed[d]
    return wrong


def finish(plan, space, v, share):
    """The part of a step after the linear solve, which has put changes of potential into ``space.change``.

    Parameters
    ----------
    share : float
        See `kkt_violations`.

    Returns
    -------
    wrong, rounded : bool
        Whether diodes are in the wrong state (``space.wanted``: the right one); whether the residuals at the nodes are
        rounding.
    """
    forest = forest_at_hand(space)
    for k in range(space.x.size):
        space.x[k] += space.change[forest.last[k]]
    node_potentials(plan, forest, space, v)
    demands(plan, space.g, v, space.injected, space.need, space.size)
    rounded = forest_currents(plan, forest, space)
    return kkt_violations(plan, v, space, share), rounded


def conductances_between(plan, strength, siemens):
    """Fill in conductances of the diodes (d,), S, between those for no and for all diodes conducting (`BETWEEN`), given
    the sum of conductances at each coordinate, S; 0 where both ends are one coordinate."""
    for d in range(siemens.size):
        a, c = plan.coordinate[plan.anode[d]], plan.coordinate[plan.cathode[d]]
        if a == c:
            siemens[d] = 0.0
        elif a == plan.n or c == plan.n:  # ground takes any current
            siemens[d] = BETWEEN * max(strength[min(a, c)], 0.0)
        else:
            siemens[d] = BETWEEN * max(min(strength[a], strength[c]), 0.0)


def alternate(plan, offset, siemens, x, relaxed, w, change):
    """A step of alternating directions (ADMM, Gabay & Mercier 1976) for the minimum dissipated power subject to
    nonpositive diode voltages.

    Each diode is a conductance G in parallel with a current source G |w|, where w is its voltage and its current over
    G: it blocks with the voltage w < 0, or conducts the current G w > 0.

    Parameters
    ----------
    siemens : (d,) float array
        G, S.
    x : (n + 1,) float array
        Potentials of the coordinates in the linear circuit of the last step, V.
    relaxed : float
        Overrelaxation; 0: ``w`` is kept, whatever is in ``x``.
    w : (d,) float array
        V; updated.
    change : (n + 1,) float array
        Updated: currents of the sources parallel to the diodes, and of the diodes if all of ``x`` is zero, A.

    Returns
    -------
    int
        Number of diodes that change their state.
    """
    changed = 0
    for d in range(w.size):
        a, c = plan.coordinate[plan.anode[d]], plan.coordinate[plan.cathode[d]]
        held, before = offset[plan.anode[d]] - offset[plan.cathode[d]], w[d]
        after = relaxed * (x[a] - x[c] + held) + (1.0 - relaxed) * min(before, 0.0) + max(before, 0.0)
        changed += (after > 0.0) != (before > 0.0)
        w[d] = after
        amperes = siemens[d] * (held + abs(after))
        change[a] -= amperes
        change[c] += amperes
    return changed
