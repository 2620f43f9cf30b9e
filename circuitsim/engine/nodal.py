"""The large driver: active-set iterations on node potentials in doubles, around any linear solver.

The steps are those of the small driver (`circuitsim.engine.steps`). Only clear violations count here (`CLEAR`): linear
solvers may be iterative. What is left to decide, refined currents and potentials decide
(`circuitsim.engine.active_set`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim._graphs import choose_forest
from circuitsim.engine import steps
from circuitsim.engine.exchange import exchange_all
from circuitsim.engine.kernels import kernel
from circuitsim.engine.network import Network
from circuitsim.engine.search import Change, Search
from circuitsim.solvers.linear import Supernodal
from circuitsim.solvers.protocol import ACCURACY, Factored

CLEAR = 1e-9
"""A current or voltage above this share of the magnitudes that it is a sum of is clear."""

EQUAL = 1e-13
"""Ends of a diode that differ by less than this share of their potentials are equal."""

PARTS = 40
"""Most iterations in which a part of the violated diodes changes. Where it takes more, potentials in doubles do not
tell which diodes conduct: with 200, a mesh of 20,000 nodes, resistances over 24 decades, takes twice as long."""

HIGHEST, LEVELS = 1025, 2105
"""Largest exponent of a double, and how many there are."""


class End(NamedTuple):
    """The conducting diodes ``on`` (d,), and the ``state`` of an iteration with its potentials."""

    on: np.ndarray
    state: steps.State


class Start(NamedTuple):
    """Where refined iterations begin.

    Attributes
    ----------
    closed : int array
        Conducting diodes, the largest current first.
    v : (n_nodes,) float array
        Node potentials, V.
    factored : Factored or None
        The nodal matrix of the last iteration.
    iterations : int
        Linear circuits solved.
    end : End or None
        What the last iteration has left, where it has left no violation.
    """

    closed: np.ndarray
    v: np.ndarray
    factored: Factored
    iterations: int
    end: End | None

    def currents(self, net: Network) -> np.ndarray:
        """Branch currents of the resistors (m,), A."""
        plan, current = net.resistances.wiring.topology, np.zeros(net.first.size)
        drop = self.v[plan.resistor_first] - self.v[plan.resistor_second]
        current[plan.resistor] = drop * net.resistances.siemens
        return current


ROUGH = 1e-4
"""What iterative linear solvers leave of the net currents while many diodes are in the wrong state."""
FEW = 0.02
"""Share of the diodes that is not many."""


FINE = 1e-12
"""The same once there is no violation: each digit missing here is one that corrections in pairs of doubles add."""
LEAST = 1e-2
"""What they leave at most of the currents to carry."""


class _Accuracy:
    """What an iterative linear solver may leave of the currents in an iteration, against those of the first one.

    Attributes
    ----------
    rough : bool
        Whether that is `ROUGH`; no violation then is followed by the same diodes with `ACCURACY`.
    """

    def __init__(self, net: Network) -> None:
        self._direct = net.laplacian.direct
        self.rough, self._whole = not self._direct, 0.0

    def next(self, state: steps.State) -> float:
        """The share of the currents to carry that the next solution may leave."""
        if self._direct:
            return ACCURACY
        # Conducting diodes carry what cancels within their groups; ground takes any current.
        need = np.bincount(state.root, state.change, state.root.size)
        need[state.root[-1]] = 0.0
        size = float(np.linalg.norm(need))
        self._whole = self._whole or size
        share = ROUGH if self.rough else FINE
        return min(share * self._whole / size, LEAST) if size > 0.0 else share


def suits(net: Network) -> bool:
    """Whether there are diodes and resistors, and resistors and sources lead from every node to ground."""
    return bool(net.diodes.size and net.grounded and net.structure.resistors.size)


def iterate(net: Network, closed: np.ndarray, limit: int, factored: Factored | None = None) -> Start:
    """Active-set iterations until no violation is clear, a set returns or ``limit`` linear circuits are solved.

    They begin with the diodes ``closed``; ``factored``, the nodal matrix at another set, is used up.
    """
    m, d, made = net.first.size, net.diodes, net.resistances
    plan = made.wiring.topology
    state = steps.new_state(plan, made.siemens, made.strength)
    v, offset = np.zeros((2, net.n_nodes))
    kernel(steps.offsets, plan.tree_node.size)(plan, net.structure.arrays.kind, net.first, net.emf, offset)
    injected = source_currents(net)
    tail, head = plan.coordinate[plan.anode], plan.coordinate[plan.cathode]
    begin, finish, arrange = kernel(_begin, m), kernel(_finish, m), kernel(_arrange, m)
    branch, room = net.branch[d], np.empty(d.size, dtype=np.int64)
    on, leave, enter = np.zeros((3, d.size), dtype=bool)
    order, count, search, budget = np.searchsorted(d, closed), 0, Search(closed.size > 0, PARTS), _Accuracy(net)
    if not closed.size and isinstance(net.laplacian, Supernodal) and limit > 1:
        count = 1
        begin(plan, injected, offset, state, tail, head, order, net.laplacian.order, on, v)
        factored = _alternated(net, offset, branch >= 0, state)
        np.greater(state.flow, 0.0, out=on)
        order = room[: arrange(plan, v, state.flow, enter, on, room)]
    while True:
        count += 1
        begin(plan, injected, offset, state, tail, head, order, net.laplacian.order, on, v)
        shorts = branch[on]
        factored = net.laplacian.factor(shorts[shorts >= 0], factored)
        state.change[:] = factored.solve(state.change[:-1], budget.next(state))
        leaves, enters, spare = finish(plan, injected, offset, state, tail, head, on, v, leave, enter)
        flow = state.flow
        if spare:
            flow = _exchanged(plan, state, tail, head, on, v)
            np.not_equal(flow, 0.0, out=on)
            np.logical_and(on, flow < -CLEAR * state.noise, out=leave)
            leaves = int(np.count_nonzero(leave))
        wrong = leaves + enters
        if not wrong and budget.rough and count < limit:
            order = np.flatnonzero(on)
            budget.rough = False
            continue
        budget.rough = budget.rough and wrong > FEW * d.size
        change = search.next(np.packbits(on).tobytes(), wrong, enters)
        if change is Change.PART and wrong:
            part = search.part(leave | enter)
            leave &= part
            enter &= part
        last = not wrong or change is Change.DUAL or count >= limit
        if last:
            enter[:] = False
        order = room[: arrange(plan, v, flow, enter, on if change is Change.ENTER_ONLY else on & ~leave, room)]
        if last:
            return Start(d[order], v, factored, count, None if wrong else End(on, state))
        if change in (Change.NONE_CONDUCTS, Change.ALL_CONDUCT):
            order = np.arange(d.size if change is Change.ALL_CONDUCT else 0)


def _alternated(net: Network, offset: np.ndarray, there: np.ndarray, state: steps.State) -> Factored:
    """Currents of the diodes, A, by alternating directions, in ``state.flow``, 0 for those that block; the factor that
    serves all steps. Diodes of the pattern are ``there``."""
    assert isinstance(net.laplacian, Supernodal)
    plan, siemens, w = net.resistances.wiring.topology, np.empty(there.size), np.zeros(there.size)
    kernel(steps.conductances_between, there.size)(plan, net.resistances.strength, siemens)
    factored, drive = net.laplacian.between(siemens[there]), state.change.copy()
    step, few = kernel(steps.alternate, there.size), steps.SETTLED * there.size
    step(plan, offset, siemens, state.x, 0.0, w, state.change)
    for k in range(steps.STEPS):
        state.x[:] = factored.solve(state.change[:-1])
        state.change[:] = drive
        if step(plan, offset, siemens, state.x, steps.RELAXED, w, state.change) <= few and k:
            break
    np.multiply(siemens, np.maximum(w, 0.0), out=state.flow)
    state.x[:] = 0.0
    return factored


def source_currents(net: Network) -> np.ndarray:
    """Currents that sources inject into the nodes (n_nodes,), A."""
    amperes = net.source[net.sources]
    found = np.bincount(net.second[net.sources], amperes, net.n_nodes)
    found = found - np.bincount(net.first[net.sources], amperes, net.n_nodes)
    return found.astype(np.float64, copy=False)  # counts, where there is no source


def _exchanged(
    plan: steps.Topology, state: steps.State, tail: np.ndarray, head: np.ndarray, on: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Currents of all diodes (d,), A, after exchanges in the trees of conducting ones among those of equal ends."""
    a, c = v[plan.anode], v[plan.cathode]
    equal = np.abs(a - c) <= EQUAL * np.maximum(np.abs(a), np.abs(c))
    need, scale, gather = np.empty(plan.n + 1), np.empty(plan.n + 1), kernel(steps.gather, plan.coordinate.size)
    gather(plan, state.need, need)
    gather(plan, state.size, scale)
    return exchange_all(tail, head, state.root, equal, on, state.flow, state.noise, need, scale)


def _begin(plan, injected, offset, state, tail, head, diodes, elimination, on, v):
    """The step before a linear solve with the ``diodes`` conducting, the earlier of them where they close loops."""
    kept = np.empty(min(plan.n, diodes.size), np.int64)
    count = choose_forest(plan.n + 1, tail, head, diodes, kept)
    for d in range(on.size):
        on[d] = False
    for k in range(count):
        on[kept[k]] = True
    steps.start(plan, injected, offset, state, on, v)
    # The potential of a group is that of the coordinate eliminated last, which has the least rounding.
    last, root = state.forest.last, state.root
    for k in range(elimination.size):
        last[root[elimination[k]]] = elimination[k]
    for k in range(plan.n + 1):
        last[k] = last[root[k]]


def _finish(plan, injected, offset, state, tail, head, on, v, leave, enter):
    """The step after a linear solve: diodes that ``leave`` and that ``enter``, unless diodes of equal ends are to be
    exchanged first.

    Returns
    -------
    leaves, enters : int
        How many they are.
    spare : bool
        Whether one leaves and another one that blocks has equal ends and joins nodes that conducting ones join. If not,
        diodes without a current are taken out of ``on``.
    """
    steps.finish_at_hand(plan, injected, offset, state, on, v, CLEAR)
    wanted, root, flow, noise = state.wanted, state.root, state.flow, state.noise
    leaves, enters, spare = 0, 0, False
    for d in range(on.size):
        leave[d], enter[d] = on[d] and not wanted[d], wanted[d] and not on[d]
        leaves += leave[d]
        enters += enter[d]
    if leaves > 0:
        for d in range(on.size):
            if not on[d] and tail[d] != head[d] and root[tail[d]] == root[head[d]]:
                a, c = v[plan.anode[d]], v[plan.cathode[d]]
                spare = spare or abs(a - c) <= EQUAL * max(abs(a), abs(c))
        if not spare:
            leaves = 0
            for d in range(on.size):
                on[d] = on[d] and flow[d] != 0.0
                leave[d] = on[d] and flow[d] < -CLEAR * noise[d]
                leaves += leave[d]
    return leaves, enters, spare


def _arrange(plan, v, flow, enter, stay, order):
    """Fill in the diodes that enter by falling voltage, then those that stay by falling current, both to a power of
    two: that orders well enough for a tree. Returns how many they are."""
    count = 0
    for stays in range(2):
        chosen, place = stay if stays else enter, np.zeros(LEVELS + 1, np.int64)
        level = np.empty(order.size, np.int64)
        for d in range(order.size):
            if chosen[d]:
                amount = flow[d] if stays else v[plan.anode[d]] - v[plan.cathode[d]]
                level[d] = min(max(HIGHEST - math.frexp(amount)[1], 0), LEVELS - 1)
                place[level[d] + 1] += 1
        place = count + np.cumsum(place)
        for d in range(order.size):
            if chosen[d]:
                order[place[level[d]]] = d
                place[level[d]] += 1
                count += 1
    return count
