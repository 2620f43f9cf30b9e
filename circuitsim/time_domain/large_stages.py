"""Stages of circuits that are too large for one kernel: node voltages corrected by one factorisation.

Successive stages are close: the node voltages of the previous stage are corrected by the residual of Kirchhoff's
current law. They are pairs of doubles, so their differences have all digits of the currents. The nodal matrix
(`circuitsim.solvers.laplacian`) is factored once for each step length and set of conducting diodes. What this does not
decide or certify (loops of diodes, sets that do not settle) the active-set engine does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.analysis.convex import Deferred, Prepared
from circuitsim.analysis.operating_point import OperatingPoint, Status, Values
from circuitsim.certificate import Certificate, certify
from circuitsim.circuit.elements import VOLTAGE
from circuitsim.engine.tree import Tree, spanning_forest
from circuitsim.kernels import kernel
from circuitsim.program.components import component_labels
from circuitsim.program.precise import add
from circuitsim.solvers.linear import ITERATIVE

if TYPE_CHECKING:
    from circuitsim.solvers.laplacian import Factor


def follow(order, edge, parent, first, second, resistors, siemens, sources, emf, roots, v, low, current, need, most):
    """Fill in potentials, and the resulting currents of resistors, voltage sources and conducting diodes.

    Parameters
    ----------
    order, edge, parent : int arrays
        Trees of voltage sources, shorts, conducting diodes and dead ends, see `circuitsim.engine.tree.Tree`.
    first, second : (m,) int arrays
    resistors, sources : int arrays
        Resistors; current sources.
    siemens : float array
        Conductances of the resistors, S.
    emf : (m,) float array
        Voltages of voltage sources, else 0, V.
    roots : (r,) int array
        Roots of the trees without ground, single nodes included.
    v, low : (n_nodes,) float arrays
        Potentials as pairs, V: given at roots, elsewhere overwritten.
    current : (m,) float array
        Given for current sources, overwritten for resistors, voltage sources and conducting diodes, A.
    need : (n_nodes,) float array
        Overwritten: net current into each root, A.
    most : (n_nodes,) float array
        Overwritten: largest |current| at each node, A.

    Returns
    -------
    float
        The largest net current into a root, relative to the largest current there.
    """
    for k in range(order.size):
        e = edge[k]
        if e < 0:
            continue
        u, p = order[k], parent[k]
        if emf[e] == 0.0:
            v[u], low[u] = v[p], low[p]
        else:
            v[u], low[u] = add(v[p], low[p], emf[e] if first[e] == u else -emf[e], 0.0)
    for k in range(need.size):
        need[k] = most[k] = 0.0
    for k in range(resistors.size):
        e = resistors[k]
        a, b = first[e], second[e]
        c = siemens[k] * ((v[a] - v[b]) + (low[a] - low[b]))
        current[e] = c
        if c != 0.0:
            need[a] -= c
            need[b] += c
            c = abs(c)
            most[a], most[b] = max(most[a], c), max(most[b], c)
    for e in sources:
        a, b, c = first[e], second[e], current[e]
        if c != 0.0:
            need[a] -= c
            need[b] += c
            c = abs(c)
            most[a], most[b] = max(most[a], c), max(most[b], c)
    for k in range(order.size - 1, -1, -1):
        e = edge[k]
        if e < 0:
            continue
        u, p, c = order[k], parent[k], need[order[k]]
        current[e] = c if first[e] == u else -c
        need[p] += c
        most[u], most[p] = max(most[u], abs(c)), max(most[p], abs(c))
    worst = 0.0
    for k in range(roots.size):
        off, scale = abs(need[roots[k]]), most[roots[k]]
        if not off <= worst * scale:
            worst = off / scale
    return worst


def add_to(roots, rows, change, v, low):
    """Add changes of unknowns, V, to the potentials of roots."""
    for k in range(roots.size):
        u = roots[k]
        v[u], low[u] = add(v[u], low[u], change[rows[k]], 0.0)


def differences(first, second, given, emf, v, low, drop):
    """Fill in the voltages first − second of all elements, V; returns the largest relative error of those of
    sources."""
    worst = 0.0
    for e in range(first.size):
        a, b = first[e], second[e]
        drop[e] = (v[a] - v[b]) + (low[a] - low[b])
    for e in given:
        worst = max(worst, abs(drop[e] - emf[e]) / max(abs(emf[e]), 1e-300))
    return worst


def dead_ends(first, second, edges, sources, degree, joined, dead):
    """Mark the elements of pendant subtrees, which carry no current whatever the values are.

    Parameters
    ----------
    first, second : (m,) int arrays
    edges, sources : int arrays
        Elements that conduct, current sources.
    degree, joined : (n_nodes,) int arrays
        Workspace, zero: degree of each node, and exclusive or of its elements.
    dead : (m,) bool array
        Overwritten.
    """
    for e in edges:
        a, b = first[e], second[e]
        if a != b:
            degree[a] += 1
            degree[b] += 1
            joined[a] ^= e
            joined[b] ^= e
    for e in sources:
        degree[first[e]] += 2
        degree[second[e]] += 2
    for k in range(1, degree.size):
        u = k
        while u != 0 and degree[u] == 1:
            e = joined[u]
            p = second[e] if first[e] == u else first[e]
            dead[e] = True
            degree[u] = 0
            degree[p] -= 1
            joined[p] ^= e
            u = p


KEPT = 4
"""Maximum number of factors kept."""
CORRECTIONS = 5
"""Maximum number of corrections of one linear circuit: the first removes the change, the second rounding."""
GAIN = 0.1
"""A correction that leaves more than this fraction of the worst net current is the last."""
MARGIN = 1e-3
"""Net currents below this fraction of the tolerance are accepted."""
INFO = {"name": "active-set", "why": "node voltages of a nearby stage", "linear": "sparse factors"}
"""Solver information of these operating points."""
SETS = 12
"""Maximum number of sets of conducting diodes."""


class Groups(NamedTuple):
    """Nodes joined by voltage sources, shorts, conducting diodes and resistors without a current.

    Attributes
    ----------
    tree : Tree
        Of these elements.
    root : (r,) int array
        A node of each group without ground, single nodes included.
    row : (r,) int array
        The unknown of the group: the coordinate of its members that is eliminated last.
    group : (n_nodes,) int array
        Root of each node's group.
    """

    tree: Tree
    root: np.ndarray
    row: np.ndarray
    group: np.ndarray


class Kept(NamedTuple):
    """A factor, with its scale, S, and groups of nodes."""

    unit: float
    factor: Factor
    groups: Groups


class Change(NamedTuple):
    """Changes of currents, A, and drops, V (m,)."""

    currents: np.ndarray
    drops: np.ndarray


class Corrected(OperatingPoint):
    """An operating point from corrected potentials; its certificate is computed on first access."""

    status = Status.SOLVED

    def __init__(self, of: LargeStages, value: np.ndarray, v: np.ndarray, current: np.ndarray, drop: np.ndarray):
        # Adding zero turns −0.0 into 0.0.
        self.voltages, self.currents, self.drops = v + 0.0, current + 0.0, drop + 0.0
        self.circuit, self.warnings, self.intervals, self.solver = of.circuit, of.circuit.notes, {}, dict(INFO)
        self.unique, self._of, self._value = np.ones(value.size, dtype=bool), of, value

    @Deferred
    def certificate(self) -> Certificate:
        """See `OperatingPoint`."""
        parts = self.voltages, self.currents, self.drops, self._of.tolerance, self.low
        return certify(self._of.structure.arrays, self._value, *parts)


@dataclass(frozen=True, eq=False)
class LargeStages(Prepared):
    """A prepared circuit whose `solve` starts from the potentials of a nearby operating point."""

    @cached_property
    def _given(self) -> np.ndarray:
        """Which elements are voltage sources (m,)."""
        return self.structure.arrays.kind == VOLTAGE

    @cached_property
    def _work(self) -> list[np.ndarray]:
        """Workspace, zero at first: two values per node and coordinate, two per element."""
        n, m = self.structure.arrays.n_nodes, len(self.circuit)
        return [np.zeros(size) for size in (n, n, n, m, m)]

    @cached_property
    def _factor(self) -> Callable[[bytes, bytes], Kept | None]:
        """`_factored`, with the last factors kept."""
        return lru_cache(KEPT)(self._factored)

    @cached_property
    def _groups(self) -> Callable[[bytes], Groups | None]:
        """`_grouped`, with the last groups kept."""
        return lru_cache(KEPT)(self._grouped)

    @cached_property
    def suits(self) -> bool:
        """Whether resistors and sources connect every node to ground, no sources close a loop, and the graph has small
        separators."""
        made = self.structure
        plain = not (made.references.size or made.forest.closing.size or not made.resistors.size)
        return bool(plain and made.grounded and (made.n < ITERATIVE or not self.structure.pattern.small_diameter))

    def solve(
        self,
        values: Values = None,
        start: OperatingPoint | None = None,
    ) -> OperatingPoint:
        """See `Prepared.solve`."""
        value = self._column(values)
        if self.suits and start is not None:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                found = self._beside(value, start)
            if found is not None:
                return found
        return super().solve(value, start)

    def _beside(self, value: np.ndarray, start: OperatingPoint) -> OperatingPoint | None:
        """The operating point at the values (m,), from a nearby one; None where it fails its certificate."""
        structure, (_, first, second, _, n_nodes) = self.structure, self.structure.arrays
        r, i, d = structure.resistors, structure.currents, structure.diodes
        ohms = value[r]
        if not ohms.all():
            return None
        siemens, emf = 1.0 / ohms, np.where(self._given, value, 0.0)
        v, need, most, current, drop = self._work
        v[:], low = start.voltages, np.zeros(n_nodes) if start.low is None else start.low.copy()
        current[i], on = value[i], start.currents[d] > 0.0
        for _ in range(SETS):
            kept = self._factor(siemens.tobytes(), on.tobytes())
            if kept is None:
                return None
            made = kept.groups
            ends = *made.tree[:3], first, second
            worst = np.inf
            for count in range(CORRECTIONS + 1):
                left = kernel(follow, value.size)(*ends, r, siemens, i, emf, made.root, v, low, current, need, most)
                if left <= MARGIN * self.tolerance or not left < GAIN * worst or count == CORRECTIONS:
                    break
                worst = left
                self._correct(kept, need, v, low)
            missed = kernel(differences, value.size)(first, second, structure.voltage_edges, emf, v, low, drop)
            if not max(left, missed) <= self.tolerance:
                return None
            current[d[~on]], drop[d[on]] = 0.0, 0.0
            wrong = np.where(on, current[d] < 0.0, drop[d] > 0.0)
            if not wrong.any():
                break
            on = on ^ wrong
        else:
            return None
        # A blocking diode that could carry some of the current of conducting ones is left to the engine.
        if (~on & (made.group[first[d]] == made.group[second[d]]) & (drop[d] == 0.0)).any():
            return None
        point = Corrected(self, value, v, current, drop)
        point.low = low
        return point

    def change(self, value: np.ndarray, at: OperatingPoint, sources: np.ndarray) -> Change | None:
        """The changes at an operating point with values (m,), for changes of the sources (m,), V, A, while the diodes
        keep their states; None where these close loops, or a resistance is zero."""
        structure, (_, first, second, _, n_nodes) = self.structure, self.structure.arrays
        r, on = structure.resistors, at.currents[structure.diodes] > 0.0
        siemens = 1.0 / value[r] if value[r].all() else None
        kept = None if siemens is None else self._factor(siemens.tobytes(), on.tobytes())
        if kept is None:
            return None
        (v, low), (need, most), (current, drop) = (np.zeros((2, size)) for size in (n_nodes, n_nodes, value.size))
        current[structure.currents], emf = sources[structure.currents], np.where(self._given, sources, 0.0)
        tree, root = kept.groups.tree[:3], kept.groups.root
        for corrects in (False, True):
            if corrects:
                self._correct(kept, need, v, low)
            kernel(follow, value.size)(
                *tree, first, second, r, siemens, structure.currents, emf, root, v, low, current, need, most
            )
        kernel(differences, value.size)(first, second, structure.voltage_edges, emf, v, low, drop)
        return Change(current, drop)

    def _correct(self, kept: Kept, need: np.ndarray, v: np.ndarray, low: np.ndarray) -> None:
        """Correct the potentials of the groups' roots for the net currents into them."""
        from circuitsim.solvers import laplacian

        rows = np.zeros(self.structure.n)
        rows[kept.groups.row] = need[kept.groups.root] / kept.unit
        change = laplacian.solve(kept.factor, rows)
        kernel(add_to, v.size)(kept.groups.root, kept.groups.row, change, v, low)

    def _factored(self, conductances: bytes, conducting: bytes) -> Kept | None:
        """The factor for conductances (r,), S, and conducting diodes (d,); None where the diodes close loops."""
        from circuitsim.solvers import laplacian

        groups = self._groups(conducting)
        if groups is None:
            return None
        siemens, on, pattern = np.frombuffer(conductances), np.frombuffer(conducting, bool), self.structure.pattern
        between, shorts = (self.structure.branch[own] for own in (self.structure.resistors, self.structure.diodes[on]))
        unit = float(siemens.max())
        w = np.zeros(pattern.a.size)
        w[between[between >= 0]] = siemens[between >= 0] / unit
        w[shorts[shorts >= 0]] = laplacian.SHORT
        made = laplacian.factor(pattern.symbolic, w)
        return Kept(unit, made, groups) if made.pivots.all() else None

    def _grouped(self, conducting: bytes) -> Groups | None:
        """The groups of nodes with these conducting diodes (d,); None where the diodes close loops."""
        structure, (_, first, second, _, n_nodes) = self.structure, self.structure.arrays
        d = structure.diodes[np.frombuffer(conducting, bool)]
        r, held = structure.resistors, np.concatenate([structure.voltage_edges, d])
        dead, degree = np.zeros(first.size, dtype=bool), np.zeros((2, n_nodes), dtype=np.int64)
        kernel(dead_ends, first.size)(first, second, np.concatenate([held, r]), structure.currents, *degree, dead)
        # Resistors in pendant subtrees have no voltage.
        edges = np.concatenate([held, r[dead[r]]])
        tree = spanning_forest(n_nodes, first, second, np.zeros(1, dtype=np.int64), edges)
        if not tree.inside[d].all():
            return None
        n, coordinate = structure.n, structure.coordinate
        order, last = np.append(self.structure.pattern.symbolic.order, n), np.arange(n + 1)
        joined = component_labels(n + 1, coordinate[first[d]], coordinate[second[d]])
        last[joined[order]] = order
        root = np.flatnonzero((tree.parent_of == np.arange(n_nodes)) & (coordinate < n))
        return Groups(tree, root, last[joined[coordinate[root]]], tree.root_of)
