"""Iterative refinement of the branch currents of one linear circuit, its stopping tests, and the ideal diodes in the
wrong state there.

There are two stopping tests: the last two corrections changed no current by more than its tolerance, or the residuals
prove that the next one would not. For the latter: the remaining error is the projection of the residual loop voltages s
onto the flows, in the norm of dissipated power, so Σ R δ² ≤ P = Σ s²/R for the errors δ of the currents (Thomson's
principle). Hence |δ| ≤ √(P/R) in each resistor, |δ| ≤ √(P ΣG) through any cut, and a potential along a path of the tree
is off by at most √(P ΣR).

Refinement is in branch variables: tree currents and potentials follow from the chord currents in pairs of
doubles (`circuitsim.engine.tree`), and the nodal matrix in doubles turns loop residuals into corrections. So the
current of a picoohm resistor next to a kiloohm is a sum of currents, never a difference of rounded potentials.

The tolerances of the Karush–Kuhn–Tucker conditions of ideal diodes are the resolution of refinement: `OVERALL` times
the largest current in the biconnected component, or times the largest drop in the loop.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from circuitsim.engine import steps, tree
from circuitsim.engine.network import Network, representative, spanning_tree
from circuitsim.engine.tree import CLOSES, RESOLUTION, Tree, loop_scales, spanning_forest
from circuitsim.kernels import kernel
from circuitsim.program.components import block_labels, by_node
from circuitsim.solvers.linear import ACCURACY, Factored

LOCAL = 1e-12
"""Tolerance of a current relative to the largest current at its ends."""
OVERALL = 1e-22
"""Tolerance of a current relative to the largest current in its biconnected component, where that is larger."""
FINEST = 1e-13
"""Smallest relative residual requested from an iterative linear solver."""
MARGIN = 1e-5
"""Factor between the tolerance of the currents and that of the residuals."""
CLOSED, PRINTED = 1e-10, 1e-14
"""Tolerance of Kirchhoff's voltage law in a chord's loop: relative to the chord's own drop, and to the potentials at
its ends, whose rounding is accepted."""
DIGITS = 1e-3
"""A current that changes by a larger fraction of itself is not yet determined."""


class LinearPoint:
    """Currents and potentials of the linear circuit at one set of conducting diodes, refined in place.

    Parameters
    ----------
    net : Network
    made : Tree
    on : (m,) bool array
        Conducting diodes.
    guess : (m,) float array
        Initial branch currents, A.
    anchor : (n_nodes,) float array
        Potentials of the roots of components without a path to ground, V.
    factored : Factored
        The nodal matrix with the conducting diodes as shorts.

    Attributes
    ----------
    tree : Tree
    closed : (m,) bool array
        Conducting diodes: those of the tree.
    current, current_low : (m,) float arrays
        Branch currents, A; 0 in elements of fixed voltage outside the tree.
    v, v_low : (n_nodes,) float arrays
        Node voltages, V.
    need : (n_nodes,) float array
        Net current into the component of each root, A.
    block : (m,) int array
        Biconnected component of each element that carries current, −1 elsewhere.
    correction : (m,) float array
        Size of the last change of each current, A.
    in_block : float array
        Largest |current| in each biconnected component, A.
    converged : bool
        Whether the last correction met `LOCAL` or `OVERALL`.
    """

    def __init__(
        self,
        net: Network,
        made: Tree,
        on: np.ndarray,
        guess: np.ndarray,
        anchor: np.ndarray,
        factored: Factored,
    ) -> None:
        m, n = net.first.size, net.n_nodes
        self.net, self.tree, self.closed, self.factored, self.converged = net, made, on, factored, False
        self.block, self.active = active_blocks(net, on)
        chords = (net.ohms > 0.0) & ~made.inside
        crossing = made.root_of[net.first[net.sources]] != made.root_of[net.second[net.sources]]
        if on.any() and not crossing.any():
            live = np.flatnonzero(chords & self.active)
            kernel(tree.mark_live, m)(made, net.branches, live, net.sources, self.active)
        self.chords = np.flatnonzero(chords & self.active)
        self.current, self.current_low = net.source.copy(), np.zeros(m)
        self.current[self.chords] = guess[self.chords]
        self.before, self.correction = np.zeros((2, m))
        self.v, self.v_low, self._need, self._need_low, self._at_node, self._most = np.zeros((6, n))
        self.need = np.zeros(n)
        free = made.root_of == np.arange(n)
        free[net.structure.roots] = False
        self.v[free] = anchor[free]
        self.in_block = np.zeros(self.block.max(initial=-1) + 1)
        self.injected, self.residual = np.zeros(net.structure.n + 1), np.zeros(self.chords.size)
        self.zero = self.chords[:0]
        self._carrying = np.concatenate([self.chords, net.sources[~crossing]])
        self._old = self.residual
        self._above = np.where(made.edge_of >= 0, self.block[made.edge_of], -2)
        self._base, self._base_low = np.zeros((2, 0))
        if crossing.any():
            self._balance(net.sources[crossing])

    def _balance(self, crossing: np.ndarray) -> None:
        """Find the tree currents of the sources between trees, which stay fixed, and the trees' net currents."""
        net, made = self.net, self.tree
        m, n = net.first.size, net.n_nodes
        self._base, self._base_low = net.source.copy(), np.zeros(m)
        self._base_low[crossing] = balanced_sources(net, made, crossing)
        one, nothing = np.zeros(max(m, n), dtype=np.int64), np.zeros(0)
        kernel(tree.tree_currents, m)(
            made,
            net.branches,
            crossing,
            one[:m],
            one[:n],
            nothing,
            nothing,
            self._base,
            self._base_low,
            self.need,
            np.zeros(n),
            self._most,
            RESOLUTION,
        )

    def follow(self, share: float = 0.0) -> bool:
        """Update tree currents, potentials and the largest current of each block from the chord currents; tree currents
        below ``share`` of the largest in their subtree become zero. Returns whether any is below `RESOLUTION` of
        that."""
        net = self.net
        tiny = kernel(tree.follow, net.first.size)(
            self.tree,
            net.branches,
            self._carrying,
            self.block,
            self._above,
            self._base,
            self._base_low,
            self.current,
            self.current_low,
            self._need,
            self._need_low,
            self._most,
            share,
            self.v,
            self.v_low,
            self.in_block,
        )
        return bool(tiny)

    def residuals(self) -> float:
        """Residual voltages of the chords' loops and the currents they inject; returns their power Σ s²/R, W."""
        net = self.net
        power: float = kernel(tree.loop_residuals, net.first.size)(
            self.chords,
            self.tree,
            net.branches,
            net.structure.coordinate,
            self.current,
            self.current_low,
            self.v,
            self.v_low,
            self.residual,
            self.injected,
        )
        return power

    def proven(self, power: float) -> bool:
        """Whether residuals of this power prove all currents and the signs of all diodes, and every loop closes
        (`CLOSED`, `PRINTED`): a current within its tolerance may be far from its own drop. Fills in ``correction``."""
        net, made, e = self.net, self.tree, self.chords
        allowed = np.maximum(CLOSED * np.abs(self.current[e]), OVERALL * self.in_block[self.block[e]]) * net.ohms[e]
        reach = np.maximum(np.abs(self.v[net.first[e]]), np.abs(self.v[net.second[e]]))
        allowed = np.maximum(allowed, PRINTED * reach)
        if not (np.abs(self.residual) <= allowed).all():
            return False
        bounds = np.zeros(net.first.size)
        if not kernel(tree.bounded, net.first.size)(
            net.branches,
            self.active & (made.inside | (net.ohms > 0.0)),
            self.block,
            self.current,
            self.in_block,
            power,
            OVERALL,
            LOCAL,
            bounds,
        ):
            return False
        reach = np.zeros(net.n_nodes)
        if not kernel(tree.resolved, net.first.size)(
            made, net.branches, net.diodes, self.closed, self.v, self.v_low, power, LOCAL, reach
        ):
            return False
        self.correction, self.zero = bounds, self.chords[:0]
        return True

    def accuracy(self, power: float) -> float:
        """Relative residual to request from an iterative linear solver so that the next residuals prove all currents,
        given the power of the present ones."""
        net, e = self.net, self.chords
        if net.laplacian.direct or power == 0.0:
            return ACCURACY
        size = np.abs(self.current[e])
        there = size > OVERALL * self.in_block[self.block[e]]
        least = float((size * np.sqrt(net.ohms[e]))[there].min(initial=np.inf))
        return min(max(MARGIN * LOCAL * least / np.sqrt(power), FINEST), ACCURACY)

    def correct(self, x: np.ndarray, last: np.ndarray) -> None:
        """Correct the chord currents by the potentials ``x`` (n + 1,), V; ``last`` maps nodes to coordinates."""
        net, chords = self.net, self.chords
        self.before[:] = self.current
        self._old = self.current[chords]
        kernel(tree.correct_chords, net.first.size)(
            chords, net.branches, last, self.residual, x, self.current, self.current_low
        )

    def change(self) -> float:
        """The largest last change of a current relative to its tolerance; fills in ``correction``."""
        net = self.net
        np.abs(self.current - self.before, out=self.correction)
        kernel(tree.node_maxima, net.first.size)(net.first, net.second, self.current, self._at_node)
        ratio: float = kernel(tree.largest_correction, net.first.size)(
            net.first, net.second, self.block, self.correction, self._at_node, self.in_block, LOCAL, OVERALL
        )
        return ratio

    def rounding(self) -> bool:
        """Find the chords whose currents are rounding (``zero``); returns whether further corrections could resolve
        more.

        These are currents below `OVERALL` of the largest in their block, in which the last two corrections agree on no
        digit. As long as they exceed the resolution of pairs of doubles, the next correction may find digits.
        """
        chords, largest = self.chords, self.in_block[self.block[self.chords]]
        size = np.abs(self.current[chords])
        unclear = np.abs(self.current[chords] - self._old) > DIGITS * size
        self.zero = chords[unclear & (size <= OVERALL * largest)]
        return bool((unclear & (size > RESOLUTION * largest)).any())


def active_blocks(net: Network, on: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Biconnected component of each element that may carry current, and whether it contains a source (m,)."""
    there = (net.ohms > 0.0) | on
    there[net.fixed] = there[net.sources] = True
    edges, block = np.flatnonzero(there), np.full(there.size, -1, dtype=np.int64)
    block[edges] = block_labels(net.n_nodes, net.first[edges], net.second[edges])
    fed = np.zeros(block.max(initial=-1) + 2, dtype=bool)
    fed[block[((net.emf != 0.0) | (net.source != 0.0))]] = True
    fed[-1] = False
    return block, fed[block]


def balanced_sources(net: Network, made: Tree, crossing: np.ndarray) -> np.ndarray:
    """Corrections of the current sources ``crossing`` between trees, A, that make net currents of trees zero where they
    are rounding of these sources.

    Trees are joined by the largest sources, without loops, and balanced from the leaves to ground.
    """
    a, b = made.root_of[net.first[crossing]], made.root_of[net.second[crossing]]
    value, low = net.source[crossing], np.zeros(crossing.size)
    joining = spanning_forest(net.n_nodes, a, b, net.structure.roots, np.argsort(-np.abs(value), kind="stable"))
    ptr, position = by_node(net.n_nodes, np.concatenate([a, b]))
    at, sign = position % a.size, np.where(position < a.size, -1.0, 1.0)
    for root, k in zip(joining.order[::-1].tolist(), joining.edge[::-1].tolist()):
        if k >= 0:
            here, into = at[ptr[root] : ptr[root + 1]], sign[ptr[root] : ptr[root + 1]]
            left = math.fsum([*(into * value[here]).tolist(), *(into * low[here]).tolist()])
            if abs(left) <= here.size * CLOSES * np.abs(value[here]).max():
                low[k] += -left if b[k] == root else left
    return low


FURTHER = 6
"""Number of corrections after which a small current that still changes counts as rounding."""
STEPS = 60
"""Maximum number of corrections; each gains about ten digits, except in networks of extreme spread."""


def solve_linear(
    net: Network,
    closed: np.ndarray,
    guess: np.ndarray,
    anchor: np.ndarray,
    previous: Factored | None = None,
) -> LinearPoint:
    """Solve the linear circuit in which the diodes ``closed`` conduct and all others block.

    Parameters
    ----------
    net : Network
    closed : int array
        Conducting diodes, most important first; one that closes a loop with fixed voltages and earlier ones is left
        out.
    guess : (m,) float array
        Initial branch currents, A.
    anchor : (n_nodes,) float array
        Potentials of the roots of components without a path to ground, V.
    previous : Factored, optional
        The nodal matrix at another set; consumed.
    """
    made = spanning_tree(net, closed)
    on = np.zeros(net.first.size, dtype=bool)
    on[closed] = True
    on &= made.inside
    factored = net.laplacian.factor(net.branch[np.flatnonzero(on & (net.branch >= 0))], previous)
    last = representative(net, on)[net.structure.coordinate]
    work = LinearPoint(net, made, on, guess, anchor, factored)
    agree, steps, proven, open_digits = 0, 0, False, True
    tiny = work.follow()
    while work.chords.size:
        power = work.residuals()
        proven = work.proven(power)
        if proven:
            break
        if steps:
            ratio = work.change()
            agree = agree + 1 if ratio <= 1.0 else 0
            open_digits = work.rounding()
            if not ratio < np.inf or steps >= STEPS or (agree >= 2 and not open_digits) or agree >= FURTHER:
                break
        work.correct(factored.solve(work.injected[:-1], work.accuracy(power)), last)
        steps += 1
        tiny = work.follow()
    if tiny or work.zero.size:
        work.current[work.zero] = work.current_low[work.zero] = 0.0
        work.follow(tree.RESOLUTION)
    work.converged = bool(agree) or proven or not work.chords.size
    return work


class Violations(NamedTuple):
    """Diodes in the wrong state at a linear point.

    Attributes
    ----------
    leave : int array
        Conducting diodes with a negative current.
    enter : int array
        Blocking diodes with a forward voltage, the largest voltage first.
    """

    leave: np.ndarray
    enter: np.ndarray


def kkt_violations(point: LinearPoint) -> Violations:
    """The diodes in the wrong state."""
    net, d = point.net, point.net.diodes
    if not d.size:
        return Violations(d, d)
    a, c = net.first[d], net.second[d]
    on = point.closed[d]
    least_current, least_voltage = np.zeros((2, d.size))
    least_current[on] = least_currents(point)[d[on]]
    forward = forward_voltages(point)
    joined = point.tree.root_of[a] == point.tree.root_of[c]
    least_voltage[~joined] = CLOSES * np.maximum(np.abs(point.v[a]), np.abs(point.v[c]))[~joined]
    candidates = np.flatnonzero(~on & joined & (forward > 0.0))
    least_voltage[candidates] = resolved_voltages(point, d[candidates])[1]
    driven = component_net_currents(point)
    away = _first_blocking(point, driven, forward).astype(float) if driven.any() else np.zeros(d.size)
    wanted = steps.conducts(on, point.current[d], least_current, forward, least_voltage, away)
    enter = np.flatnonzero(wanted & ~on)
    return Violations(d[on & ~wanted], d[enter[np.argsort(-forward[enter], kind="stable")]])


def least_currents(point: LinearPoint) -> np.ndarray:
    """Resolution of the branch currents (m,), A: of their last correction, and of the largest current in their
    block."""
    return np.maximum(4.0 * point.correction, tree.RESOLUTION * np.append(point.in_block, 0.0)[point.block])


def forward_voltages(point: LinearPoint) -> np.ndarray:
    """Anode minus cathode potential of each diode, V."""
    return voltages_between(point, point.net.diodes)


def voltages_between(point: LinearPoint, elements: np.ndarray) -> np.ndarray:
    """Potential of the first terminal minus that of the second, V."""
    net = point.net
    a, b = net.first[elements], net.second[elements]
    found = np.empty(elements.size)
    kernel(tree.differences, elements.size)(a, b, point.v, point.v_low, found)
    coarse = np.flatnonzero(np.abs(found) < tree.COARSE * np.maximum(np.abs(point.v[a]), np.abs(point.v[b])))
    if coarse.size:
        finer = found[coarse]
        kernel(tree.path_voltages, net.first.size)(
            point.tree, net.branches, point.current, point.current_low, a[coarse], b[coarse], finer
        )
        found[coarse] = finer
    return found


def resolved_voltages(point: LinearPoint, diodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Resolution of the voltages of blocking diodes, from the largest drop in the loop through each.

    Returns
    -------
    resolved : float array
        Voltages up to this are zero, V.
    closing : float array
        The same or, where the loop consists of n voltage sources and conducting diodes, n · 2⁻⁵² of its largest drop,
        V: such a loop closes.
    """
    largest, members = loop_scales(point.tree, point.net.branches, point.current, diodes)
    share = np.maximum(OVERALL, (members + np.sign(members)) * CLOSES)
    return OVERALL * largest, share * largest


def sources_alone(net: Network, point: LinearPoint, elements: np.ndarray) -> np.ndarray:
    """Whether sources, shorts and conducting diodes of the tree alone connect the ends of each element."""
    return loop_scales(point.tree, net.branches, point.current, elements)[1] > 0


def component_net_currents(point: LinearPoint) -> np.ndarray:
    """Sign of the net current into each node's component if it has no path to ground (n_nodes,), 0 where it
    balances."""
    net, made = point.net, point.tree
    free = (made.root_of == np.arange(net.n_nodes)) & (point.need != 0.0)
    free[net.structure.roots] = False
    if not free.any():
        return np.zeros(net.n_nodes)
    s = net.sources
    ra, rb = made.root_of[net.first[s]], made.root_of[net.second[s]]
    s, ra, rb = s[ra != rb], ra[ra != rb], rb[ra != rb]
    largest, count = np.zeros(net.n_nodes), np.zeros(net.n_nodes)
    for end in (ra, rb):
        np.maximum.at(largest, end, np.abs(net.source[s]))
        np.add.at(count, end, 1.0)
    net_current = np.where(np.abs(point.need) > count * CLOSES * largest, np.sign(point.need), 0.0)
    net_current[~free] = 0.0
    return net_current[made.root_of]


def _first_blocking(point: LinearPoint, driven: np.ndarray, forward: np.ndarray) -> np.ndarray:
    """For each driven component the blocking diode that limits its potential first (d,)."""
    net, d, root = point.net, point.net.diodes, point.tree.root_of
    a, c = net.first[d], net.second[d]
    crossing = ~point.closed[d] & (root[a] != root[c])
    found = np.zeros(d.size, dtype=bool)
    for sign, inside in ((1.0, a), (-1.0, c)):
        k = np.flatnonzero(crossing & (driven[inside] == sign))
        order = k[np.lexsort((k, -forward[k], root[inside[k]]))]
        first = np.append(True, root[inside[order[1:]]] != root[inside[order[:-1]]]) if order.size else order
        found[order[first]] = True
    return found
