"""Conjugate gradients preconditioned by the strongest spanning tree: networks of good wires and weak cross links.

In a crossbar the wires conduct ten thousand times better than the cells. Without the cells they are a tree, which two
walks solve exactly; with them a potential changes little, and conjugate gradients on what is left (Vaidya 1991) need
some ten steps where a factor of the whole fills in. How much an edge changes the tree is its stretch: conductance times
the tree's resistance between its ends. The eigenvalues of the preconditioned Laplacian are at least one and exceed it
by the total stretch in all (Spielman & Woo 2009).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.errors import ConvergenceError
from circuitsim.program.components import component_labels
from circuitsim.program.flow import rooted, spanning_forest
from circuitsim.solvers.conjugate import HOPELESS, at_nodes, by_unknown

NAME = "conjugate gradients along the strongest spanning tree"
STRETCH = 0.05
"""Largest mean stretch for each node of networks that this is for, while no diode conducts."""
TIED = 1.0
"""Conducting diodes that tie the wires by a larger one make it hopeless: the steps grow with the total's cube root."""
SAMPLE = 512
"""How many off-tree edges tell of the others."""
STEPS = 300
"""Conjugate gradients that need more steps are the wrong method."""


class Tree(NamedTuple):
    """A Laplacian with groups of shorted nodes merged, numbered from earth outwards along its strongest spanning tree.

    Attributes
    ----------
    row : (n + 1,) int array
        Unknown of each node; −1 in earth's group.
    up : (k,) int array
        Parent of each unknown, always of a smaller number; −1 is earth.
    strength, resistance : (k,) float array
        Conductance of the tree's edge to the parent, and one over it.
    one, other, g : (m,) int and float arrays
        Ends and conductances of the edges off the tree; ``one`` is never earth, ``other`` is −1 there.
    stretch : float
        Total stretch of the edges off the tree over the number of unknowns, estimated from `SAMPLE` of them.
    """

    row: np.ndarray
    up: np.ndarray
    strength: np.ndarray
    resistance: np.ndarray
    one: np.ndarray
    other: np.ndarray
    g: np.ndarray
    stretch: float


def merge(n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray, u: np.ndarray, v: np.ndarray) -> Tree:
    """The network of conductances ``g`` between a–b with the nodes u–v shorted; n is earth.

    Every node must have a path of conductances to earth.
    """
    group = component_labels(n + 1, u, v) if u.size else np.arange(n + 1)
    a, b = group[a], group[b]
    # Powers of two are exact enough for a preconditioner, and sorted in linear time.
    strongest = np.argsort(-np.frexp(g)[1].astype(np.int16), kind="stable")
    tree = spanning_forest(n, a, b, strongest)
    at_earth = np.zeros(n + 1)
    at_earth[group[n]] = 1.0
    order, edge, parent = rooted(n, a[tree], b[tree], at_earth)
    row = np.full(n + 1, -1)
    row[order] = np.arange(-1, order.size - 1)
    up, strength = row[parent[1:]], g[tree[edge[1:]]]
    resistance = 1.0 / strength
    off = row[a] != row[b]
    off[tree] = False
    cut = np.flatnonzero(off)
    one, other = np.maximum(row[a[cut]], row[b[cut]]), np.minimum(row[a[cut]], row[b[cut]])
    # One end after the other in memory; only the others jump about.
    along = np.argsort(one, kind="stable")
    one, other, g = one[along], other[along], g[cut[along]]
    some = np.linspace(0, cut.size - 1, min(SAMPLE, cut.size)).astype(np.int64)
    stretch = _stretch(one[some], other[some], g[some], up, resistance) * cut.size / max(1, some.size * up.size)
    return Tree(row[group], up, strength, resistance, one, other, g, stretch)


def suits(n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray) -> bool:
    """Whether the edges off the strongest spanning tree stretch by no more than `STRETCH` a node."""
    if g.size > n:
        # In a tree of the n strongest every other edge would span two of them or more: most networks end here.
        ordered = np.partition(g, g.size - n)
        if 2.0 * ordered[: g.size - n].sum() > STRETCH * n * np.median(ordered[g.size - n :]):
            return False
    nothing = np.zeros(0, dtype=a.dtype)
    return merge(n, a, b, g, nothing, nothing).stretch <= STRETCH


def solve(tree: Tree, current: np.ndarray, guess: np.ndarray, accuracy: float) -> np.ndarray:
    """Potentials (n + 1,) for injected currents (n,), each group at one potential and earth's at 0.

    Parameters
    ----------
    tree : Tree
    current : (n,) float array
    guess : (n + 1,) float array
        Potentials to start from.
    accuracy : float
        Size of the remaining currents against the injected ones, both by the power they cost in the tree.

    Raises
    ------
    ConvergenceError
        Not within `STEPS` steps, or hopeless: conducting diodes have `TIED` the wires together.
    """
    if not tree.stretch <= TIED:
        raise ConvergenceError(HOPELESS)
    b, x = by_unknown(tree.row, tree.up.size, current, guess)
    if _descend(*tree[1:7], b, x, accuracy, STEPS) >= STEPS:
        raise ConvergenceError(HOPELESS)
    return at_nodes(tree.row, x)


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


@jit()
def _apply(up, strength, one, other, g, p, q):
    """q = A p, and p · q: edge by edge, those of the tree in order."""
    product = 0.0
    for i in range(p.size):
        q[i] = 0.0
    for e in range(g.size):
        i, j = one[e], other[e]
        drop = p[i] - p[j] if j >= 0 else p[i]
        through = g[e] * drop
        q[i] += through
        if j >= 0:
            q[j] -= through
        product += through * drop
    for i in range(p.size):
        above = up[i]
        drop = p[i] - p[above] if above >= 0 else p[i]
        through = drop * strength[i]
        q[i] += through
        if above >= 0:
            q[above] -= through
        product += through * drop
    return product


@jit()
def _turn(up, resistance, flow, z, beta, p):
    """p = z + beta p with z the tree's potentials for the currents ``flow``, which is 0 afterwards."""
    for i in range(up.size):
        drop = flow[i] * resistance[i]
        z[i] = drop + z[up[i]] if up[i] >= 0 else drop
        flow[i] = 0.0
        p[i] = z[i] + beta * p[i]


@jit()
def _go(alpha, p, q, x, r, up, resistance, flow):
    """Go alpha along p; then the tree's currents ``flow``, 0 before, for those r still missing, and their power.

    Everything injected beyond an edge of the tree flows through it.
    """
    power = 0.0
    for i in range(up.size - 1, -1, -1):
        x[i] += alpha * p[i]
        r[i] -= alpha * q[i]
        through = flow[i] + r[i]
        flow[i] = through
        if up[i] >= 0:
            flow[up[i]] += through
        power += through * through * resistance[i]
    return power


@jit()
def _descend(up, strength, resistance, one, other, g, b, x, accuracy, most):
    """Preconditioned conjugate gradients in place; returns the number of steps."""
    q, z, p, flow, r = np.empty_like(x), np.empty_like(x), np.zeros_like(x), np.zeros_like(x), b.copy()
    _apply(up, strength, one, other, g, x, q)
    enough = accuracy * accuracy * _go(0.0, p, q, x, r, up, resistance, flow)
    flow[:] = 0.0
    power = _go(1.0, p, q, x, r, up, resistance, flow)
    beta = 0.0
    for step in range(most):
        if power <= enough:
            return step
        _turn(up, resistance, flow, z, beta, p)
        new = _go(power / _apply(up, strength, one, other, g, p, q), p, q, x, r, up, resistance, flow)
        beta = new / power
        power = new
    return most
