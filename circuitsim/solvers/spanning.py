"""Conjugate gradients preconditioned by the strongest spanning tree: networks of good wires and weak cross links.

In a crossbar the wires conduct ten thousand times better than the cells. Without the cells they are a tree, which two
walks solve exactly; with them a potential changes little, and conjugate gradients on what is left (Vaidya 1991) need
some ten steps where a factor of the whole fills in. How much an edge changes the tree is its stretch: conductance times
the tree's resistance between its ends. The eigenvalues of the preconditioned Laplacian are at least one and exceed it
by the total stretch in all (Spielman & Woo 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.errors import ConvergenceError
from circuitsim.program.components import component_labels
from circuitsim.program.flow import rooted, spanning_forest
from circuitsim.solvers.conjugate import HOPELESS
from circuitsim.solvers.linear import ACCURACY, Factored, NodalPattern, by_column, unit_of

NAME = "conjugate gradients along the strongest spanning tree"
STRETCH = 0.05
"""Largest mean stretch for each node of networks that this is for, while no diode conducts."""
TIED = 1.0
"""Conducting diodes that tie the wires by a larger one make it hopeless: the steps grow with the total's cube root."""
SAMPLE = 512
"""How many off-tree edges tell of the others."""
STEPS = 300
"""Conjugate gradients that need more steps are the wrong method."""
LONG = 8
"""Runs of parents that are this long on average are walked as vectors."""


class Tree(NamedTuple):
    """A Laplacian with groups of shorted nodes merged, numbered from ground outwards along its strongest spanning tree.

    Unknown 0 is ground. Inner unknowns come first, level by level, so that along parallel wires the parents of
    neighbours are neighbours too; unknowns without children follow.

    Attributes
    ----------
    row : (n + 1,) uint32 array
        Unknown of each node; 0 in ground's group.
    node : (k + 1,) uint32 array
        A node of each unknown.
    further : int array
        The nodes shorted to those.
    up : (k + 1,) uint32 array
        Parent of each unknown, always of a smaller number; that of ground is ground.
    runs : int64 array
        Where *runs* begin, and after the last one the first unknown outside of runs. Within a run the parents are as
        far away for all unknowns, and before the run.
    resistance : (k + 1,) float array
        One over the conductance of the tree's edge to the parent; 0 for ground.
    one, other, g : (m,) uint32, uint32 and float arrays
        Ends and conductances of the edges off the tree.
    stretch : float
        Total stretch of the edges off the tree over the number of unknowns, estimated from `SAMPLE` of them.
    """

    row: np.ndarray
    node: np.ndarray
    further: np.ndarray
    up: np.ndarray
    runs: np.ndarray
    resistance: np.ndarray
    one: np.ndarray
    other: np.ndarray
    g: np.ndarray
    stretch: float


def merge(n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray, u: np.ndarray, v: np.ndarray) -> Tree:
    """The network of conductances ``g`` between a–b with the nodes u–v shorted; n is ground.

    Every node must have a path of conductances to ground.
    """
    group = component_labels(n + 1, u, v) if u.size else np.arange(n + 1)
    a, b = group[a], group[b]
    # Powers of two are exact enough for a preconditioner, and sorted in linear time.
    strongest = np.argsort(-np.frexp(g)[1].astype(np.int16), kind="stable")
    tree = spanning_forest(n, a, b, strongest)
    at_ground = np.zeros(n + 1)
    at_ground[group[n]] = 1.0
    order, edge, parent = rooted(n, a[tree], b[tree], at_ground)
    if not order.size:
        # Every node is shorted to ground: no edge leads anywhere.
        order, edge, parent = group[n:], np.array([-1]), group[n:]
    inner = np.zeros(n + 1, dtype=bool)
    inner[parent] = True
    last = ~inner[order]
    along = np.concatenate([np.flatnonzero(~last), np.flatnonzero(last)])
    row = np.zeros(n + 1, dtype=np.int64)
    row[order[along]] = np.arange(order.size)
    up = row[parent[along]].astype(np.uint32)
    resistance = np.zeros(order.size)
    elements = tree[edge[along[1:]]]
    resistance[1:] = 1.0 / g[elements]
    runs = _runs(up, order.size - np.count_nonzero(last))
    off = row[a] != row[b]
    off[tree] = False
    cut = np.flatnonzero(off)
    one, other = np.maximum(row[a[cut]], row[b[cut]]), np.minimum(row[a[cut]], row[b[cut]])
    # Edges whose ends lie close together in memory follow each other.
    close = np.argsort(_interleaved(one, other), kind="stable")
    one, other, g = one[close].astype(np.uint32), other[close].astype(np.uint32), g[cut[close]]
    some = np.linspace(0, cut.size - 1, min(SAMPLE, cut.size)).astype(np.int64)
    stretch = _stretch(one[some], other[some], g[some], up, resistance) * cut.size / max(1, some.size * (up.size - 1))
    further = np.flatnonzero(group != np.arange(n + 1))
    node, row = order[along].astype(np.uint32), row[group].astype(np.uint32)
    return Tree(row, node, further, up, runs, resistance, one, other, g, stretch)


def _interleaved(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The bits of both numbers in turn (Morton 1966): sorted by them, pairs fill square after square."""
    key = np.zeros(one.size, dtype=np.uint64)
    for shift, number in enumerate((other, one)):
        spread = number.astype(np.uint64)
        for by, mask in (
            (16, 0x0000FFFF0000FFFF),
            (8, 0x00FF00FF00FF00FF),
            (4, 0x0F0F0F0F0F0F0F0F),
            (2, 0x3333333333333333),
            (1, 0x5555555555555555),
        ):
            spread = (spread | spread << np.uint64(by)) & np.uint64(mask)
        key |= spread << np.uint64(shift)
    return key


@dataclass(frozen=True, eq=False)
class TreeSolver:
    """Conjugate gradients along the strongest spanning tree, see `circuitsim.solvers.linear.LinearSolver`."""

    pattern: NodalPattern
    g: np.ndarray
    method_name = NAME
    direct = False

    @property
    def order(self) -> np.ndarray:
        """The nodes as they are numbered."""
        return np.arange(self.pattern.n + 1)

    @cached_property
    def suits(self) -> bool:
        """Whether the edges off the strongest spanning tree stretch by no more than `STRETCH` a node."""
        g, n = self.g, self.pattern.n
        if g.size > n:
            # In a tree of the n strongest every other edge would span two of them or more: most networks end here.
            ordered = np.partition(g, g.size - n)
            if 2.0 * ordered[: g.size - n].sum() > STRETCH * n * np.median(ordered[g.size - n :]):
                return False
        return self.blocking.tree.stretch <= STRETCH

    @cached_property
    def blocking(self) -> TreeFactored:
        """The tree while no diode conducts."""
        return self._at(np.zeros(0, dtype=np.int64))

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> TreeFactored:
        """See `LinearSolver.factor`; the tree is found anew for every set."""
        if not closed.size:
            return self.blocking
        if isinstance(previous, TreeFactored) and np.array_equal(previous.closed, closed):
            return previous
        return self._at(closed)

    def _at(self, closed: np.ndarray) -> TreeFactored:
        unit, r, (a, b) = unit_of(self.g), self.g.size, (self.pattern.a, self.pattern.b)
        tree = merge(self.pattern.n, a[:r], b[:r], self.g / unit, a[closed], b[closed])
        return TreeFactored(closed, tree, unit)


@dataclass(frozen=True, eq=False)
class TreeFactored:
    """`Factored` of `TreeSolver`."""

    closed: np.ndarray
    tree: Tree
    unit: float

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """See `Factored.solve`."""
        return by_column(lambda scaled: solve(self.tree, scaled, None, accuracy)[0], current / self.unit)


def solve(tree: Tree, current: np.ndarray, guess: np.ndarray | None, accuracy: float) -> tuple[np.ndarray, np.ndarray]:
    """Potentials for injected currents, each group at one potential and ground's at 0, and the currents they leave.

    Parameters
    ----------
    tree : Tree
    current : (n,) float array
    guess : (n + 1,) float array, optional
        Potentials to start from; otherwise 0 V.
    accuracy : float
        Size of the remaining currents against the injected ones, both by the power they cost in the tree.

    Returns
    -------
    x : (n + 1,) float array
    missing : (k + 1,) float array
        Injected currents that the potentials leave unexplained, by unknown (see `at_nodes`): those the steps went by,
        which differ from the true ones by the rounding of what was injected.

    Raises
    ------
    ConvergenceError
        Not within `STEPS` steps, or hopeless: conducting diodes have `TIED` the wires together.
    """
    if not tree.stretch <= TIED:
        raise ConvergenceError(HOPELESS)
    b, x = _by_unknown(tree.row, tree.node, tree.further, current), np.zeros(tree.up.size)
    if guess is not None and guess.any():
        x[tree.row] = guess
        x[0] = 0.0
    steps, r = _descend(*tree[3:9], b, x, accuracy, STEPS)
    if steps >= STEPS:
        raise ConvergenceError(HOPELESS)
    return at_nodes(tree, x), r


def at_nodes(tree: Tree, x: np.ndarray) -> np.ndarray:
    """Of every node (n + 1,) what is known of the unknowns."""
    return _at_nodes(tree.row, x)


#: Sums in any order, which lets them be vectors: of a preconditioner and of steps that correct themselves.
_SUMS = {"contract", "reassoc"}


@jit()
def _by_unknown(row, node, further, current):
    """Currents (n,) injected at the nodes as those injected at the unknowns; 0 for ground."""
    b = np.empty(node.size)
    for i in range(1, node.size):
        b[i] = current[node[i]]
    for k in further:
        if k < current.size:
            b[row[k]] += current[k]
    b[0] = 0.0
    return b


@jit()
def _at_nodes(row, x):
    """See `at_nodes`."""
    v = np.empty(row.size)
    for node in range(row.size):
        v[node] = x[row[node]]
    return v


@jit()
def _runs(up, inner):
    """Where runs begin among the unknowns 1…inner − 1, and their end; no runs at all where they would be short."""
    starts = np.empty(inner + 1, np.int64)
    count, away = 0, np.int64(0)
    for i in range(1, inner):
        if i - np.int64(up[i]) != away or i - starts[count - 1] == away:
            away = i - np.int64(up[i])
            starts[count] = i
            count += 1
    if count * LONG > inner:
        return np.ones(1, np.int64)
    starts[count] = inner
    return starts[: count + 1].copy()


@jit()
def _stretch(a, b, g, up, resistance):
    """Σ g R, with R the tree's resistance between a and b; a parent has the smaller number."""
    total = 0.0
    for e in range(a.size):
        i, j, between = a[e], b[e], 0.0
        while i != j:
            if i > j:
                between += resistance[i]
                i = up[i]
            else:
                between += resistance[j]
                j = up[j]
        total += g[e] * between
    return total


@jit(fastmath=_SUMS)
def _gather(up, runs, resistance, flow):
    """From the currents injected at the unknowns (in place) to those of the tree; returns the power they cost.

    Everything injected beyond an edge of the tree flows through it.
    """
    for i in range(flow.size - 1, runs[-1] - 1, -1):
        flow[up[i]] += flow[i]
    for k in range(runs.size - 2, -1, -1):
        lo, hi = runs[k], runs[k + 1]
        above = np.int64(up[lo])
        here, there = flow[lo:hi], flow[above : above + hi - lo]
        for i in range(hi - lo):
            there[i] += here[i]
    power = 0.0
    for i in range(1, flow.size):
        power += flow[i] * flow[i] * resistance[i]
    return power


@jit(fastmath=_SUMS)
def _fall(up, runs, resistance, flow):
    """From the currents of the tree (in place) to its potentials."""
    flow[0] = 0.0
    for k in range(runs.size - 1):
        lo, hi = runs[k], runs[k + 1]
        above = np.int64(up[lo])
        here, there, ohms = flow[lo:hi], flow[above : above + hi - lo], resistance[lo:hi]
        for i in range(hi - lo):
            here[i] = here[i] * ohms[i] + there[i]
    for i in range(runs[-1], flow.size):
        flow[i] = flow[i] * resistance[i] + flow[up[i]]


@jit()
def _across(one, other, g, x, q):
    """Add the currents out of the unknowns through the edges off the tree."""
    for e in range(g.size):
        i, j = one[e], other[e]
        through = g[e] * (x[i] - x[j])
        q[i] += through
        q[j] -= through


@jit()
def _missing(up, resistance, one, other, g, b, x):
    """b − A x."""
    r = np.zeros_like(x)
    _across(one, other, g, x, r)
    for i in range(1, x.size):
        through = (x[i] - x[up[i]]) / resistance[i]
        r[i] += through
        r[up[i]] -= through
    for i in range(x.size):
        r[i] = b[i] - r[i]
    return r


@jit(fastmath=_SUMS)
def _descend(up, runs, resistance, one, other, g, b, x, accuracy, most):
    """Preconditioned conjugate gradients in place; returns the number of steps and what is still missing.

    The tree's potentials z for what is missing, r, draw currents r from it, so that A z is r and what flows across.
    With it A p follows as p does from z: the tree's own edges are not looked at.
    """
    flow, r = b.copy(), b.copy()
    power = _gather(up, runs, resistance, flow)
    enough = accuracy * accuracy * power
    for i in range(x.size):
        if x[i] != 0.0:
            r = _missing(up, resistance, one, other, g, b, x)
            for j in range(r.size):
                flow[j] = r[j]
            power = _gather(up, runs, resistance, flow)
            break
    p, q, beta = np.zeros_like(x), np.zeros_like(x), 0.0
    for step in range(most):
        if power <= enough:
            r[0] = 0.0
            return step, r
        z = flow
        _fall(up, runs, resistance, z)
        for i in range(x.size):
            p[i] = z[i] + beta * p[i]
            q[i] = r[i] + beta * q[i]
        _across(one, other, g, z, q)
        product = 0.0
        for i in range(1, x.size):
            product += p[i] * q[i]
        alpha = power / product
        for i in range(x.size):
            x[i] += alpha * p[i]
            r[i] -= alpha * q[i]
            flow[i] = r[i]
        new = _gather(up, runs, resistance, flow)
        beta = new / power
        power = new
    return most, r
