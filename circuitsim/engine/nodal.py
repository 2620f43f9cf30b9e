"""Linear circuits on node voltages in doubles, with any linear solver, and the initial guess of conducting diodes.

The steps are those of the small driver (`circuitsim.engine.steps`). Only violations above `CLEAR` count, since linear
solvers may be iterative; refined currents and potentials decide the rest (`circuitsim.engine.active_set`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._graphs import choose_forest, make_root
from circuitsim.engine import steps
from circuitsim.engine.network import Network
from circuitsim.engine.steps import start
from circuitsim.kernels import kernel
from circuitsim.solvers.linear import ACCURACY, Factored, NodalPattern

CLEAR = 1e-9
"""Currents and voltages above this fraction of the terms they sum are significant."""

LOWEST = -2000
"""Below the exponents of all doubles."""

EQUAL = 1e-13
"""Ends of a diode that differ by less than this fraction of their potentials count as equal."""


ROUGH = 1e-4
"""Relative residual requested from iterative linear solvers while many diodes are in the wrong state."""
FEW = 0.02
"""Fraction of the diodes above which they are many."""


FINE = 1e-12
"""The same without violations: each digit missing here is added later by corrections in pairs of doubles."""
LEAST = 1e-2
"""Largest residual relative to the currents to carry."""


class _Accuracy:
    """Relative residuals to request from an iterative linear solver in each iteration, against those of the first.

    Attributes
    ----------
    rough : bool
        Whether it is `ROUGH`; an iteration without violation is then repeated with `FINE`.
    """

    def __init__(self, net: Network) -> None:
        self._direct = net.laplacian.direct
        self.rough, self._whole = not self._direct, 0.0

    def next(self, state: steps.State) -> float:
        """The relative residual for the next solve."""
        if self._direct:
            return ACCURACY
        # Currents that cancel within groups of conducting diodes, or enter ground, need not be carried.
        need = np.bincount(state.root, state.change, state.root.size)
        need[state.root[-1]] = 0.0
        size = float(np.linalg.norm(need))
        self._whole = self._whole or size
        share = ROUGH if self.rough else FINE
        return min(share * self._whole / size, LEAST) if size > 0.0 else share


def suits(net: Network) -> bool:
    """Whether there are diodes and resistors, and resistors and sources connect every node to ground."""
    return bool(net.diodes.size and net.structure.grounded and net.structure.resistors.size)


class Step(NamedTuple):
    """The states of the diodes after one linear circuit.

    Attributes
    ----------
    key : bytes
        The set that conducted.
    wrong : int
        Number of diodes in the wrong state.
    following : int array
        Diodes that conduct next (positions among the diodes), most important first.
    """

    key: bytes
    wrong: int
    following: np.ndarray


class Guess(NamedTuple):
    """Load lines ``siemens`` (d,), S, and diode currents (d,), A; voltages of the super-nodes (n + 1,), V."""

    siemens: np.ndarray
    current: np.ndarray
    x: np.ndarray


def falling(amount: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Positions of the ``chosen`` amounts (mask) in descending order to a power of two, accurate enough for ordering a
    tree. Amounts ≤ 0 come last."""
    places = np.flatnonzero(chosen)
    power = np.where(amount[places] > 0.0, np.frexp(amount[places])[1], LOWEST)
    return places[np.argsort(-power.astype(np.int16), kind="stable")]


def without_loops(tail: np.ndarray, head: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """Currents (d,) ≥ 0, A, on a forest, with the same net currents at the nodes as ``flow``: the smallest current
    around each loop is cancelled."""
    flow, n = np.maximum(flow, 0.0), 1 + int(max(tail.max(initial=0), head.max(initial=0)))
    falling = np.argsort(-flow, kind="stable")[: np.count_nonzero(flow)]
    kernel(cancel_loops, falling.size)(tail, head, falling, flow, *np.full((2, n), -1))
    return flow


def cancel_loops(tail, head, order, flow, parent, edge):
    """Grow a forest, ``parent`` and ``edge`` (n,) to it, −1 at roots, by the edges in ``order``; where one closes a
    loop, the smallest current ahead in it is cancelled, and its edge leaves."""
    for k in order:
        a, b = tail[k], head[k]
        make_root(a, parent, edge)
        least, leaving, u = np.inf, b, b
        while parent[u] >= 0:
            if tail[edge[u]] == u and flow[edge[u]] < least:
                least, leaving = flow[edge[u]], u
            u = parent[u]
        if u != a:
            parent[a], edge[a] = b, k
            continue
        stays = least <= flow[k]
        least, u = min(least, flow[k]), b
        while u != a:
            flow[edge[u]] += -least if tail[edge[u]] == u else least
            u = parent[u]
        flow[k] -= least
        if stays:
            parent[leaving] = edge[leaving] = -1
            make_root(b, parent, edge)
            parent[b], edge[b] = a, k


class Potentials:
    """Linear circuits of a network on node voltages in doubles.

    Parameters
    ----------
    net : Network
    factored : Factored, optional
        The nodal matrix at any set; consumed.
    """

    def __init__(self, net: Network, factored: Factored | None = None) -> None:
        self.net, self.count, self.factored, self._budget = net, 0, factored, _Accuracy(net)
        self.plan = plan = net.structure.topology
        self._state = steps.new_state(plan, net.resistances.siemens, net.resistances.strength)
        self._v, self.offset, self.injected = np.zeros(net.n_nodes), self._state.offset, self._state.injected
        kernel(steps.offsets, plan.tree_node.size)(plan, net.structure.arrays.kind, net.first, net.emf, self.offset)
        self.injected[:] = source_currents(net)
        self.tail, self.head = plan.coordinate[plan.anode], plan.coordinate[plan.cathode]
        self.current, self.siemens = np.zeros((2, net.diodes.size))
        kernel(steps.conductances_between, self.siemens.size)(plan, net.resistances.strength, self.siemens)
        self.there = np.flatnonzero(net.branch[net.diodes] >= 0)
        self._tight = self.there[:0]
        alone = self.there[self.siemens[self.there] == 0.0]  # an end without resistors
        if alone.size:
            g = net.resistances.conductances
            self.siemens[alone] = np.exp(np.log(g).mean()) if g.size else 1.0

    def conducting(self, current: np.ndarray) -> np.ndarray:
        """See `circuitsim.engine.active_set.Circuits`."""
        self.current = current
        return falling(current, current > 0.0)

    def solve(self, conducting: np.ndarray) -> Step:
        """See `circuitsim.engine.active_set.Circuits`."""
        net, plan, state, on, v = self.net, self.plan, self._state, self._state.closed, self._v
        while True:
            self._begin(conducting)
            self.count += 1
            shorts = net.branch[net.diodes[on]]
            self.factored = net.laplacian.factor(shorts[shorts >= 0], self.factored)
            state.change[:] = self.factored.solve(state.change[:-1], self._budget.next(state))
            kernel(steps.finish, net.first.size)(plan, state, v, CLEAR)
            forward = v[plan.anode] - v[plan.cathode]
            loops = self._share(conducting, forward)
            wrong = int(np.count_nonzero(state.wanted != on))
            if wrong or not self._budget.rough:
                break
            conducting, self._budget.rough = falling(state.flow, on), False
        if loops.size and not wrong:  # the currents on a forest, at the same voltages
            state.flow[loops] = without_loops(self.tail[loops], self.head[loops], state.flow[loops])
            on[loops] = state.wanted[loops] = state.flow[loops] > 0.0
        self._budget.rough = self._budget.rough and wrong > FEW * on.size
        enter, stay = state.wanted & ~on, state.wanted & on
        self.current = np.where(enter, self.siemens * forward, state.flow * stay)
        following = np.append(falling(forward, enter), falling(state.flow, stay))
        return Step(np.packbits(on).tobytes(), wrong, following)

    def _share(self, conducting: np.ndarray, forward: np.ndarray) -> np.ndarray:
        """Currents of conducting diodes that close loops, as close to the previous ones as possible: the Newton step of
        smallest change in the norm of the load lines. Returns the diodes of all groups with loops."""
        state, on, v, plan = self._state, self._state.closed, self._v, self.plan
        spare = conducting[~on[conducting] & (self.tail != self.head)[conducting]]
        reach = np.maximum(np.abs(v[plan.anode[spare]]), np.abs(v[plan.cathode[spare]]))
        spare = spare[np.abs(forward[spare]) <= EQUAL * reach]
        spare = spare[state.root[self.tail[spare]] == state.root[self.head[spare]]]
        if not spare.size:
            return spare
        on[spare] = True
        group = np.zeros(plan.n + 1, dtype=bool)
        group[state.root[self.tail[spare]]] = True
        tight = np.flatnonzero(on & group[state.root[self.tail]])
        if not np.array_equal(tight, self._tight):  # they stay mostly the same from one step to the next
            nodes, ends = np.unique(np.append(self.tail[tight], self.head[tight]), return_inverse=True)
            a, b = ends[: tight.size], ends[tight.size :]
            pattern = NodalPattern(nodes.size, a, b, 0, False, self.net.structure.pattern.compiled)
            siemens = self.siemens[tight] / self.siemens[tight].max()
            self._tight = tight
            self._loops = nodes, a, b, siemens, pattern.direct(siemens[:0]).with_conductances(siemens)
        nodes, a, b, siemens, factored = self._loops
        y, n = self.current[tight], nodes.size
        left = np.bincount(plan.coordinate, state.need, plan.n + 1)[nodes]
        left += np.bincount(b, y, n) - np.bincount(a, y, n)
        x = factored.solve(left)
        state.flow[tight] = y + siemens * (x[a] - x[b])
        state.noise[tight] = state.w[state.root[self.tail[tight]]]
        state.wanted[tight] = state.flow[tight] >= -CLEAR * state.noise[tight]
        return tight

    def _begin(self, conducting: np.ndarray) -> None:
        kernel(_begin, self.net.first.size)(
            self.plan, self._state, self.tail, self.head, conducting, self.net.laplacian.order, self._v
        )

    def currents(self) -> np.ndarray:
        """Branch currents of the resistors after the last step (m,), A."""
        v, plan, current = self._v, self.plan, np.zeros(self.net.first.size)
        current[plan.resistor] = self.net.resistances.siemens * (v[plan.resistor_first] - v[plan.resistor_second])
        return current

    def guess(self) -> Guess:
        """Douglas–Rachford steps (Lions & Mercier 1979), each one substitution with the same factor."""
        plan, state, there = self.plan, self._state, self.there
        self.count += 1
        self._begin(there[:0])
        siemens, w, drive = self.siemens, np.zeros(state.closed.size), state.change.copy()
        factored = self.net.resistances.direct.between(siemens[there])
        step, few = kernel(steps.alternate, w.size), steps.SETTLED * w.size
        step(plan, self.offset, siemens, state.x, 0.0, w, state.change)
        for k in range(steps.STEPS):
            state.x[:] = factored.solve(state.change[:-1])
            state.change[:] = drive
            if step(plan, self.offset, siemens, state.x, steps.RELAXED, w, state.change) <= few and k:
                break
        x = state.x.copy()
        state.x[:] = 0.0
        return Guess(siemens, siemens * np.maximum(w, 0.0), x)


def source_currents(net: Network) -> np.ndarray:
    """Currents that sources inject into the nodes (n_nodes,), A."""
    amperes = net.source[net.sources]
    found = np.bincount(net.second[net.sources], amperes, net.n_nodes)
    found = found - np.bincount(net.first[net.sources], amperes, net.n_nodes)
    return found.astype(np.float64, copy=False)  # counts, where there is no source


def _begin(plan, state, tail, head, diodes, elimination, v):
    """The part of a step before the linear solve, with ``diodes`` conducting (where they close loops, the earlier
    ones)."""
    kept = np.empty(min(plan.n, diodes.size), np.int64)
    count = choose_forest(plan.n + 1, tail, head, diodes, kept)
    state.closed[:] = False
    for d in kept[:count]:
        state.closed[d] = True
    start(plan, state, v)
    # The potential of a group is that of the coordinate eliminated last, which has the smallest rounding error.
    last, root = state.forest.last, state.root
    for k in elimination:
        last[root[k]] = k
    for k in range(plan.n + 1):
        last[k] = last[root[k]]
