"""Symbolic analysis: everything about a factorisation that does not depend on the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from circuitsim.solvers.laplacian import graph, structure, tree
from circuitsim.solvers.laplacian.order import fill_reducing

#: Widest panel: small enough that its diagonal block stays in the first-level cache.
WIDEST = 64


@dataclass(frozen=True, eq=False, repr=False)
class Pattern:
    """Ordering and predicted cost of a factorisation; cheap even where the factorisation itself is not.

    Attributes
    ----------
    n : int
        Unknowns; index n is ground.
    a, b : ndarray of int64
        Edge ends.
    order, position : ndarray of int64
        ``order[k]`` is eliminated k-th; ``position`` is its inverse.
    parent, count : ndarray
        Elimination tree and column counts (diagonal included, ground not), in elimination order.
    fill : int
        Entries of the factor, without relaxation.
    flops : float
        Multiplications and additions of the numeric factorisation, without relaxation.
    """

    n: int
    a: np.ndarray
    b: np.ndarray
    order: np.ndarray
    position: np.ndarray
    parent: np.ndarray
    count: np.ndarray
    fill: int
    flops: float
    ptr: np.ndarray
    idx: np.ndarray

    def __repr__(self) -> str:
        return f"Pattern(n={self.n}, edges={self.a.size}, fill={self.fill}, flops={self.flops:.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class Symbolic:
    """The panels of a factorisation, ready for numbers.

    A panel is a set of consecutive columns ``first[t]:first[t+1]`` with one list of rows: its own columns, rows below,
    and ground last. Its values are stored by columns, ``height × width``, from ``offset[t]``.
    """

    pattern: Pattern
    first: np.ndarray
    row_ptr: np.ndarray
    rows: np.ndarray
    offset: np.ndarray
    above: np.ndarray
    update_ptr: np.ndarray
    target: np.ndarray
    lo: np.ndarray
    held_ptr: np.ndarray
    held: np.ndarray
    edge_ptr: np.ndarray
    edges: np.ndarray
    place: np.ndarray
    panel_of_edge: np.ndarray

    @property
    def n(self) -> int:
        """Unknowns."""
        return self.pattern.n

    @property
    def panels(self) -> int:
        """Number of panels."""
        return self.first.size - 1

    @property
    def stored(self) -> int:
        """Doubles one numeric factor stores."""
        return int(self.offset[-1])

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What `panel.factor_active` takes."""
        return (
            self.first,
            self.row_ptr,
            self.offset,
            self.update_ptr,
            self.target,
            self.lo,
            self.held_ptr,
            self.held,
            self.edge_ptr,
            self.edges,
            self.place,
        )

    def __repr__(self) -> str:
        return f"Symbolic(n={self.n}, edges={self.pattern.a.size}, panels={self.panels}, stored={self.stored})"


def _ends(n: int, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a = np.ascontiguousarray(a, dtype=np.int64)
    b = np.ascontiguousarray(b, dtype=np.int64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"edge ends must be two equally long vectors, not {a.shape} and {b.shape}")
    if not 0 <= n < 2**31 - 1:
        raise ValueError(f"number of nodes {n} out of range")
    if a.size and (min(a.min(), b.min()) < 0 or max(a.max(), b.max()) > n):
        raise ValueError(f"edge ends must lie in 0..{n} ({n} is ground)")
    return a, b


def predict(n: int, a: np.ndarray, b: np.ndarray) -> Pattern:
    """Order the graph and predict the cost of its factorisation.

    Parameters
    ----------
    n : int
        Unknowns 0..n-1; index n is ground.
    a, b : array_like of int, shape (m,)
        Edge ends. Repeated edges add up, loops are ignored.
    """
    a, b = _ends(n, a, b)
    ptr, idx = graph.adjacency(n, a, b)
    order = fill_reducing(ptr, idx)
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    new_ptr, new_idx = graph.relabel(ptr, idx, order, position)
    parent = tree.elimination_tree(new_ptr, new_idx)
    post = tree.postorder(parent)
    order = order[post]
    position[order] = np.arange(n)
    ptr, idx = graph.relabel(ptr, idx, order, position)
    parent = tree.renumbered(parent, post)
    count = tree.column_counts(ptr, idx, parent)
    width = count.astype(np.float64)
    return Pattern(n, a, b, order, position, parent, count, int(count.sum()), float(width @ width), ptr, idx)


def analyse(n: int, a: np.ndarray, b: np.ndarray) -> Symbolic:
    """Symbolic factorisation of the Laplacian of a graph with ground; parameters as of `predict`."""
    return panels(predict(n, a, b))


def panels(pattern: Pattern, widest: int = WIDEST) -> Symbolic:
    """Supernodes, their rows and all maps the numeric factorisation needs."""
    uncut = tree.supernodes(pattern.parent, pattern.count)
    below_ptr, below = structure.supernode_rows(pattern.ptr, pattern.idx, pattern.parent, pattern.count, uncut)
    first, owner = tree.split_wide(uncut, widest)
    row_ptr, rows = structure.panel_rows(below_ptr, below, uncut, first, owner)
    offset = np.concatenate(([0], np.cumsum(np.diff(first) * np.diff(row_ptr))))
    begin, target, lo, held_ptr, held, home, above = structure.updates(first, row_ptr, rows)
    edge_ptr, edges, place = structure.place_edges(
        pattern.a, pattern.b, pattern.position, first, row_ptr, rows, offset, home
    )
    panel_of_edge = np.full(pattern.a.size, -1, np.int64)
    panel_of_edge[edges] = np.repeat(np.arange(first.size - 1), np.diff(edge_ptr))
    return Symbolic(
        pattern,
        first,
        row_ptr,
        rows,
        offset,
        above,
        begin,
        target,
        lo,
        held_ptr,
        held,
        edge_ptr,
        edges,
        place,
        panel_of_edge,
    )
